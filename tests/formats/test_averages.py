"""Several judgements of a candidate: rows of raters, lists of numbers, nested ratings."""

from __future__ import annotations

import io
import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.table_content import table_content
from support.user_files import Write, run_shell, write_frame

import bpa_ppl as bpa
from bpa_ppl import concatenate, describe, from_records, iter_nbest, read_nbest
from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.formats.averages import average_lists

RATINGS = """id,text,judge_a,worker,rating
s1,the house is big,0.7,w1,4
s1,the house is big,0.7,w2,5
s1,the house is big,0.7,w3,2
s1,a big house,0.4,w1,3
s1,a big house,0.4,w2,3
s1,a big house,0.4,w3,3
s2,good morning,0.2,w1,5
s2,good morning,0.2,w2,4
s2,good mourning,0.9,w1,1
s2,good mourning,0.9,w2,2
"""
MEANS = {"the house is big": 11 / 3, "a big house": 3, "good morning": 4.5, "good mourning": 1.5}
JUDGE = dict(zip(MEANS, (0.7, 0.4, 0.2, 0.9), strict=True))


def frame(order: int = 0, raters: str = "texts") -> pd.DataFrame:
    """Return the table of ratings, in some order, with raters that are texts or integers."""
    table = pd.read_csv(io.StringIO(RATINGS))
    if raters == "integers":
        table["worker"] = table["worker"].str[1:].astype(int)
    return table.sample(frac=1, random_state=order, ignore_index=True) if order else table


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("raters", ["texts", "integers"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_rows_of_raters(tmp_path: Path, ending: str, raters: str, order: int) -> None:
    path = tmp_path / f"x.{ending}"
    table = frame(order, raters)
    name = write_frame(table, path)
    with pytest.warns(BpaWarning) as notes:  # what the note says has to work
        read_nbest(path, format=name)
    (note,) = (str(one.message) for one in notes if "repeat the text" in str(one.message))
    assert "10 of 10 rows repeat" in note
    assert set(re.findall(r"differ in (\w+), (\w+):", note)[0]) == {"rating", "worker"}
    setting = re.findall(r"mean_over=\w+", note)[0]
    assert setting == "mean_over=worker"
    with pytest.warns(BpaWarning, match="not adjacent") if order else nullcontext():
        lists = read_nbest(path, format=f"{name}:{setting}")
    if not order:
        parts = iter_nbest(path, format=f"{name}:{setting}", chunk=1)
        assert table_content(concatenate(parts)) == table_content(lists)
    found = {lists.text(k): lists.features[k].tolist() for k in range(4)}
    assert lists.feature_names == ("judge_a", "rating")
    assert found == {text: [JUDGE[text], MEANS[text]] for text in MEANS}
    expected = table.groupby(["id", "text"])["rating"].mean()
    assert sorted(expected) == sorted(lists.features[:, 1])
    for text, judgements in zip(map(lists.text, range(4)), lists.extras["worker"], strict=True):
        of_text = table[table["text"] == text]
        assert [one["rating"] for one in judgements] == of_text["rating"].tolist()
        assert [one["worker"] for one in judgements] == of_text["worker"].tolist()


def test_rows_of_raters_in_a_data_frame() -> None:
    with pytest.warns(BpaWarning, match="differ in rating, worker.*such as their sum or mean$"):
        from_records(frame())


@pytest.mark.parametrize(
    ("names", "setting"),
    [
        (("fluency", "adequacy", "worker_id"), "worker_id"),
        (("stars", "annotator"), "annotator"),
        (("stars", "who"), "who"),
        (("stars", "number"), "NAME"),  # either
    ],
)
def test_ratings_are_no_raters(write: Write, names: tuple[str, ...], setting: str) -> None:
    """Also where each rater of a candidate gives another rating."""
    rows = []
    for n, text in enumerate("abcd"):
        for rater in (0, 1):
            name = "xy"[rater] if names[-1] == "who" else 100 + rater
            cells = (n // 2, text, n / 8, *[n // 2 + 2 * rater + 1] * (len(names) - 1), name)
            rows.append(",".join(map(str, cells)))
    path = write(f"id,text,comet,{','.join(names)}", *rows)
    with pytest.warns(BpaWarning, match=f"mean_over={setting}, which reads means"):
        read_nbest(path)
    lists = read_nbest(path, format=f"csv:mean_over={names[-1]}")
    assert lists.feature_names == ("comet", *names[:-1])
    assert lists.features[:, 1].tolist() == [2, 2, 3, 3]


def test_a_few_rows_of_several_errors_are_noted(write: Write) -> None:
    """As in MQM, where most candidates may have one error, if a column is named like raters."""
    rows = [f"{n // 4},t{n},0.{n},{'XY'[n % 2]},ann,Style,Minor" for n in range(12)]
    rows[1:1] = [rows[0].replace("Style", "Grammar"), rows[0].replace("Minor", "Major")]
    rows[5:5] = [rows[5].replace("Minor", "Major")]
    header = "id,text,comet,system,{},category,severity"
    match = "5 of 15 rows .*differ in category, severity: .*sum or mean$"
    with pytest.warns(BpaWarning, match=match):
        read_nbest(write(header.format("annotator"), *rows))
    read_nbest(write(header.format("style"), *rows))  # samples of a model may be equal


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_lists_in_the_cells_of_a_table(tmp_path: Path, ending: str) -> None:
    """As pandas writes columns of lists."""
    ratings = [[4, 5], [], [1, 2.5], [3]]
    table = pd.DataFrame({"id": [0, 0, 1, 1], "text": list("abcd"), "ratings": ratings})
    name = write_frame(table, path := tmp_path / f"x.{ending}")
    described = describe(read_nbest(path))
    assert described.lists == {
        "ratings": "lists of numbers: mean_over=ratings in the format adds ratings.mean"
    }
    assert described.texts == {}
    with pytest.warns(BpaWarning, match="ratings.mean is missing for 1 of 4"):
        lists = read_nbest(path, format=f"{name}:mean_over=ratings")
    np.testing.assert_array_equal(lists.extras["ratings.mean"], [4.5, np.nan, 1.75, 3])


def test_numbers_that_are_too_large_do_not_count() -> None:
    ratings = [[1, 10**400], [-(10**400)], [2, float("inf"), float("nan")]]
    lists = from_records([{"id": 0, "text": "a", "lm": 1, "by": of} for of in ratings])
    assert describe(lists).lists["by"].startswith("lists of numbers")
    np.testing.assert_array_equal(average_lists("by", ratings)["by.mean"], [1, np.nan, 2])


WIDE = {
    "rater_*": (["rater_1", "rater_2"], "rater"),
    "annotator_*": (["annotator_a", "annotator_b"], "annotator"),
    "Rater * score": (["Rater 1 score", "Rater 2 score"], "Rater score"),
    "rating*": (["rating1", "rating2"], "rating"),
}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("pattern", WIDE)
@pytest.mark.filterwarnings("ignore:.*missing for")
def test_a_column_for_each_rater(tmp_path: Path, ending: str, pattern: str) -> None:
    (first, second), name = WIDE[pattern]
    table = pd.DataFrame({"id": [0, 0, 1, 1], "text": list("abcd"), "lm": [0.5, 1, 2, 0]})
    table[first], table[second] = [4, None, 3, None], [5, 2, None, None]
    write_frame(table, path := tmp_path / f"x.{ending}")
    with pytest.warns(BpaWarning, match="seem to be of several raters") as notes:
        read_nbest(path)
    (setting,) = re.findall("raters: (mean_over=.*?) in the format", str(notes[0].message))
    assert setting == f"mean_over={pattern}"
    lists = read_nbest(path, format=f"{ending}:{setting}")
    assert (lists.feature_names, lists.extras[name]) == (
        ("lm",),
        ([4, 5], [None, 2], [3, None], [None, None]),
    )
    assert bpa.gains(lists, f"{name}.mean").tolist() == pytest.approx(
        [4.5, 2, 3, np.nan], nan_ok=True
    )
    with pytest.warns(BpaWarning, match="raters: replace them by their mean"):
        from_records(table)
    table["mean"] = table[[first, second]].mean(axis=1)  # as it says
    without = from_records(table.drop(columns=[first, second]))
    assert np.array_equal(without.extras["mean"], lists.extras[f"{name}.mean"], equal_nan=True)


@pytest.mark.parametrize(
    "names",
    [("rater", "rating"), ("judge_1", "judge_2"), ("rater_1", "lm_1"), ("human", "human_b")],
)
def test_columns_that_are_not_of_several_raters(write: Write, names: tuple[str, str]) -> None:
    lists = read_nbest(write(f"id,text,{','.join(names)}", "0,a,1,0.5", "0,b,0.5,2"))
    assert lists.feature_names == names  # each a feature of its own, without a note


def test_patterns_of_columns_of_several_aspects(write: Write) -> None:
    path = write("id,text,rater,r1_x,r2_x,r1_y,r2_y", "0,a,7,1,2,3,4", "0,b,7,5,6,7,9")
    lists = read_nbest(path, format="csv:mean_over=r*_x,r*_y")
    assert lists.feature_names == ("rater", "r_x.mean", "r_y.mean")
    assert lists.features.tolist() == [[7, 1.5, 3.5], [7, 5.5, 8]]
    with raises(DataError, "missing-column", parameter="format", match=r"is z\* .*mean_over=z\*"):
        read_nbest(path, format="csv:mean_over=z*")


@pytest.mark.parametrize(
    ("cells", "means"),
    [(("TRUE", "FALSE", "FALSE"), [0.5, 0]), (("4 stars", "1 star", ""), [4, 1]),
     (("4/5", "3/5", "1/5"), [2.5, 3])],
)  # fmt: skip
def test_ratings_that_are_texts(
    write: Write, cells: tuple[str, str, str], means: list[float]
) -> None:
    first, second, third = cells
    path = write("id,text,by,r", f"0,a,w1,{first}", f"0,b,w1,{second}", f"0,a,w2,{third}")
    lists = read_nbest(path, format="csv:mean_over=by")
    assert (lists.feature_names, lists.features[:, 0].tolist()) == (("r",), means)
    wide = write("id,text,r_1,r_2,r_name", f"0,a,{first},{third},x", f"0,b,{second},,y")
    lists = read_nbest(wide, format="csv:mean_over=r_*")
    assert (lists.feature_names, lists.features[:, 0].tolist()) == (("r.mean",), means)
    assert lists.extras["r_name"] == ("x", "y")


def test_a_row_for_each_error_is_noted_and_not_averaged(write: Write) -> None:
    """A mean over the errors of one rater would not be a mean over raters."""
    kinds = ["accuracy,minor,-1", "fluency,major,-5", "accuracy,major,-5"]
    rows = [f"0,{text},{lm},{rater},{kind}" for text, lm in [("a", 1), ("b", 2)]
            for rater in "xy" for kind in kinds]  # fmt: skip
    path = write("id,text,lm,rater,category,severity,weight", *rows)
    with pytest.warns(BpaWarning, match="12 of 12 .* rater, category, severity: .* one row, such"):
        read_nbest(path)
    with raises(DataError, "bad-line", line=3, match="a second row of rater 'x' for one candidate"):
        read_nbest(path, format="csv:mean_over=rater")
    table = pd.read_csv(path)
    sums = table.groupby(["id", "text", "lm", "rater"], as_index=False)["weight"].sum()
    sums.to_csv(path, index=False)
    lists = read_nbest(path, format="csv:mean_over=rater")
    assert lists.features.tolist() == [[1, -11], [2, -11]]


MARKED = """system\tseg\trater\tsource\ttarget\tcategory\tseverity\tscore
A\t1\tr1\tein Haus\tthe <v>hose</v>\tAccuracy\tMajor\t-5
A\t1\tr1\tein Haus\t<v>the</v> hose\tStyle\tMinor\t-1
A\t1\tr2\tein Haus\tthe <v>hose</v>\tAccuracy\tMinor\t-1
B\t1\tr1\tein Haus\tthe house\tNo-error\tNo-error\t0
B\t1\tr2\tein Haus\tthe <v>house</v>\tStyle\tMinor\t-1
"""


def test_errors_that_are_marked_in_texts_are_noted(tmp_path: Path) -> None:
    """As in the tables of MQM of WMT."""
    path = tmp_path / "mqm.tsv"
    path.write_text(MARKED)
    with pytest.warns(BpaWarning, match="<v>…</v>, so the rows of a candidate differ") as notes:
        assert len(read_nbest(path, format="tsv:id=seg,text=target").features) == 5
    (command,) = re.findall("`(.*?)`", str(notes[0].message))
    run_shell(f"{command} mqm.tsv >new && mv new mqm.tsv", tmp_path)
    with pytest.warns(BpaWarning, match="repeat the text of another row .* give each candidate"):
        read_nbest(path, format="tsv:id=seg,text=target")
    table = pd.read_csv(path, sep="\t")
    keys = ["system", "seg", "source", "target", "rater"]
    table.groupby(keys, as_index=False)["score"].sum().to_csv(path, sep="\t", index=False)
    lists = read_nbest(path, format="tsv:id=seg,text=target,mean_over=rater")
    assert (lists.texts(0), lists.sources) == (["the hose", "the house"], ("ein Haus",))
    assert lists.features[:, 0].tolist() == [-3.5, -0.5]


@pytest.mark.parametrize(
    "rows",
    [
        # Derivations of one string, and repeated samples of several models.
        [f"{k},{t},{k + n / 7},{n % 3},x" for k in range(3) for n, t in enumerate("aabbab")],
        [f"{k},{t},{n}.5,{n},m{n % 2}" for k in range(3) for n, t in enumerate("aaaabb")],
        # The same text of several systems.
        [f"{k},{t},{n}.5,1,s{n}" for k in range(3) for n, t in enumerate("aaabbb")],
        # Few repeats.
        [f"{k},{t},{n}.5,1,w{n % 2}" for k in range(3) for n, t in enumerate("aabcdef")],
    ],
)
@pytest.mark.parametrize("by", ["system", "model"])
def test_other_repeats_are_not_noted(write: Write, rows: list[str], by: str) -> None:
    lists = read_nbest(write(f"id,text,lm,phrases,{by}", *rows))  # a warning would be an error
    assert len(lists.features) == len(rows)


LISTED = [
    {"id": 0, "text": "a", "lm": 1, "ratings": [4, 5], "by": [{"x": 1, "ok": True}, {"x": 2}]},
    {"id": 0, "text": "b", "lm": 2, "ratings": [3], "by": [{"x": 5, "ok": False, "who": "w"}]},
    {"id": 1, "text": "c", "lm": 3, "ratings": [1, 2, 6], "by": [{"x": 0, "ok": True}]},
]


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_lists_of_numbers_and_of_objects(tmp_path: Path, nested: bool, ending: str) -> None:
    records: list[dict[str, Any]] = LISTED
    if nested:
        records = [
            {"id": k, "candidates": [{n: v for n, v in r.items() if n != "id"} for r in LISTED
                                     if r["id"] == k]}
            for k in range(2)
        ]  # fmt: skip
    path = tmp_path / f"x.{ending}"
    name = write_frame(pd.DataFrame(records), path)
    shown = bpa.describe(read_nbest(path))
    settings = [re.findall(r"mean_over=\w+", use)[0] for use in shown.lists.values()]
    assert settings == ["mean_over=ratings", "mean_over=by"]
    assert "ratings: lists of numbers: mean_over=ratings in the format adds ratings.mean" in str(
        shown
    )
    lists = read_nbest(path, format=f"{name}:{','.join(settings).replace(',mean_over=', ',')}")
    columns = dict(zip(lists.feature_names, lists.features.T.tolist(), strict=True))
    assert columns == {
        "lm": [1, 2, 3],
        "ratings.mean": [4.5, 3, 3],
        "by.x": [1.5, 5, 0],
        "by.ok": [1, 0, 1],
    }
    assert [list(of) for of in lists.extras["ratings"]] == [[4, 5], [3], [1, 2, 6]]
    assert bpa.describe(lists).lists == {"ratings": "lists", "by": "lists"}


def test_columns_that_are_not_there(write: Write) -> None:
    path = write(*RATINGS.splitlines())
    listed = r"no column .* \(the columns are 'judge_a, rating, worker'\): .* leave out mean_over="
    for name in ("nope", "judge_a"):  # which has fractions
        with raises(DataError, "missing-column", parameter="format", match=listed):
            read_nbest(path, format=f"csv:mean_over={name}")
    path = write(json.dumps({"id": 0, "text": "a", "tags": ["x"]}))
    with raises(DataError, "missing-column", parameter="format", match="'tags'"):
        read_nbest(path, format="jsonl:mean_over=tags")
    path = write(json.dumps({"id": 0, "text": "a", "human": {"ratings": [1, 2]}}))
    lists = read_nbest(path, format="jsonl:mean_over=human.ratings")
    assert lists.feature_names == ("human.ratings.mean",)


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "records"])
def test_a_list_of_one_number_is_a_number(tmp_path: Path, ending: str) -> None:
    records = [
        {"id": 0, "text": "a", "rm": [0.5], "mqm": [-1], "tokens": [1], "tag": ["x"], "ok": [True]},
        {"id": 0, "text": "b", "rm": [0.25], "mqm": None, "tokens": [1, 2], "tag": ["y"]},
    ]
    if ending != "records":
        write_frame(pd.DataFrame(records), tmp_path / f"x.{ending}")
    read = (
        (lambda: from_records(records))
        if ending == "records"
        else (lambda: read_nbest(tmp_path / f"x.{ending}"))
    )
    with pytest.warns(BpaWarning, match="mqm is missing for 1 of 2"):
        lists = read()
    assert (lists.feature_names, lists.features.tolist()) == (("rm",), [[0.5], [0.25]])
    np.testing.assert_array_equal(lists.extras["mqm"], [-1, np.nan])
    assert lists.extras["tokens"] == ([1], [1, 2])
    assert bpa.describe(lists).lists.keys() == {"tokens", "tag", "ok"}


@pytest.mark.parametrize(
    ("texts", "repeated"), [("aaaaabbbbb", 10), ("aabbccdefg", 6), ("aabbcdefgh", 4)]
)
def test_half_of_the_rows_have_to_repeat(write: Write, texts: str, repeated: int) -> None:
    """Unless a column is named like raters."""
    rows = [f"0,{text},0.{n},{'vwxyz'[n % 5]},{n}" for n, text in enumerate(texts)]
    path = write("id,text,comet,who,stars", *rows)
    noted = pytest.warns(BpaWarning, match=f"{repeated} of 10 rows .*mean_over=who")
    with noted if repeated > 5 else nullcontext():
        read_nbest(path)
