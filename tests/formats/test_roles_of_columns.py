"""Which column is a feature, which one can be the gain, and which ones are left out."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.user_files import write_frame

import bpa_ppl as bpa
from bpa_ppl import BayesianRanker, BpaWarning, DataError, UsageError, describe, from_records
from bpa_ppl.metrics.column import read_column

#: The mode alone, with a prior that is not learned: fast, where the weights do not matter.
MODE: dict[str, Any] = {"sampler": "map", "prior": "isotropic:variance=1.0"}
TABLE = {
    "id": [1, 1, 1, 2, 2, 2],
    "text": ["a house", "the house", "house", "a cat", "the cat", "cat"],
    "judge": [0.7, 0.6, 0.9, 0.2, 0.4, 0.3],
}


def frame(**columns: Any) -> Any:
    """A data frame of the table, with more columns."""
    return pd.DataFrame(TABLE | columns)


def read_back(data: Any, format: str, folder: Path) -> bpa.NBest:
    """Return the lists of a data frame itself, or of a file that pandas has written."""
    if format == "records":
        return from_records(data)
    write_frame(data, path := folder / f"lists.{format}")
    return bpa.read_nbest(path)


@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("parquet", None),  # where it is not a column
        *product(("csv", "tsv", "jsonl", "parquet", "records"), ("Unnamed: 0", "")),
    ],
)
def test_the_index_of_a_frame_is_no_feature(tmp_path: Path, format: str, name: str | None) -> None:
    data = frame().iloc[[2, 1, 0, 4, 3, 5]]  # its index is not 0, 1, …
    table = data if name is None else data.reset_index(names=name)
    with pytest.warns(BpaWarning, match="is left out, the index of a data frame"):
        lists = read_back(table, format, tmp_path)
    assert (lists.feature_names, lists.extras) == (("judge",), {})
    assert lists.features.ravel().tolist() == pytest.approx(data.judge.tolist())


def test_a_named_index_of_numbers_is_no_feature(tmp_path: Path) -> None:
    data = frame(row=[5, 3, 1, 0, 4, 2]).set_index("row")
    data.to_parquet(tmp_path / "lists.parquet")
    for read in (lambda: from_records(data), lambda: bpa.read_nbest(tmp_path / "lists.parquet")):
        with pytest.warns(
            BpaWarning, match=r"row is left out.*: reset_index\(\) makes it a column"
        ):
            assert read().feature_names == ("judge",)
    assert from_records(data.reset_index()).feature_names == ("row", "judge")


def test_an_index_with_a_meaning_is_read(tmp_path: Path) -> None:
    data = frame(system=list("xyzxyz"))
    lists = from_records(data.set_index(["id", "text", "system"]))
    assert (lists.feature_names, list(lists.extras), lists.ids) == (("judge",), ["system"], (1, 2))
    data.rename(columns={"id": "seg"}).set_index("seg").to_parquet(tmp_path / "seg.parquet")
    with raises(DataError, "missing-column", line=1, parameter="format", match="seg.*id=NAME"):
        bpa.read_nbest(tmp_path / "seg.parquet")
    assert bpa.read_nbest(tmp_path / "seg.parquet", format="parquet:id=seg").ids == (1, 2)


def test_a_column_without_a_name_elsewhere_is_an_error() -> None:
    with raises(DataError, "bad-name", line=1):
        bpa.read_nbest([b"id,text,,lm", b"0,a,1,2"], format="csv")


def test_columns_are_excluded_before_they_are_read(tmp_path: Path) -> None:
    lines = [b"id,text,lm,odd,seed", b"0,a,1,2,7", b"0,b,2,three,8"]
    with raises(DataError, "bad-number", line=3, parameter="bad", match="odd"):
        bpa.read_nbest(lines, format="csv")
    for format in ("csv:exclude=odd,seed", "csv:exclude=seed,odd"):
        assert bpa.read_nbest(lines, format=format).feature_names == ("lm",)
    records = [{"id": 0, "candidates": [{"text": "a", "lm": 1, "meta": {"odd": 1, "n": 2}}]}]
    lines = [json.dumps(record).encode() for record in records]
    assert bpa.read_nbest(lines, format="jsonl:exclude=meta.odd").feature_names == ("lm", "meta.n")
    assert bpa.read_nbest(lines, format="jsonl:exclude=meta").feature_names == ("lm",)
    with raises(DataError, "missing-column", parameter="format", match="nothing .*meta.odd"):
        bpa.read_nbest(lines, format="jsonl:exclude=nothing")


STEPS = {
    "row": range(6),
    "rank": [1, 2, 3] * 2,
    "seed": range(13, 19),
    "last": [2, 1, 0] * 2,
    "step": [500, 1000, 1500, 100, 600, 1100],
}


@pytest.mark.parametrize("name", STEPS)
def test_columns_that_count_the_candidates(name: str) -> None:
    lists = from_records(frame(**{name: STEPS[name]}))
    (warning,) = describe(lists).warnings
    assert warning.startswith(f"{name} counts the candidates of each list")
    if name == "rank":  # `adapt` looks at no names, and does not warn, which is an error here
        bpa.adapt(lists.with_extras(gain=[1.0, 0, 0, 0, 1, 0]), gain="gain", **MODE)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3, 1, 2, 4],
        [4, 3, 1, 5, 4, 2],
        [0.1, 1.1, 2.2] * 2,
        [2, 6, 1, 4, 3, 5],
        [0.5, 2.5, 5.5, 1.5, 3.5, 4.5],
    ],
)
def test_columns_that_do_not_count_them(values: list[float]) -> None:
    assert describe(from_records(frame(mark=values))).warnings == ()


def test_rows_are_numbered_where_those_of_a_list_are_not_adjacent() -> None:
    data = frame(rank=[2, 1, 3, 1, 3, 2]).iloc[[0, 3, 1, 4, 5, 2]].assign(row=range(10, 16))
    with pytest.warns(BpaWarning, match="not adjacent"):
        lists = from_records(data)
    assert describe(lists).warnings == ("row numbers the rows: exclude it",)


@pytest.mark.filterwarnings("ignore:.*no log-probabilities in it")
def test_numbers_of_samples_do_not_count_them() -> None:
    """Where each prompt has an answer that was sampled twice, and one sampled once."""
    lists = bpa.from_samples([["a", "a", "b"], ["c", "c", "d"], ["e", "e", "f"]])
    assert (lists.feature_names, describe(lists).warnings) == (("count",), ())


def test_ratings_of_pairs_do_not_count_them() -> None:
    """Where the better one of two has five stars, and the other has one."""
    lists = bpa.from_lists([["a", "b"]] * 3, [[[5.0], [1.0]]] * 3, ["stars"])
    assert describe(lists).passed


def test_qid_in_the_frame_of_the_estimator() -> None:
    table, y = frame(qid=TABLE["id"]).drop(columns=["id", "text"]), [1, 0, 0, 0, 1, 0]
    for qid in (None, TABLE["id"]):
        with raises(DataError, "bad-name", parameter="X", match=r'qid=X.pop\("qid"\)'):
            BayesianRanker().fit(table, y, qid=qid)
    BayesianRanker(sampler="map").fit(table, y, qid=table.pop("qid"))


RIGHT = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
VERDICTS: dict[str, list[Any]] = {
    "true": [True, False, False, False, True, False],
    "True": ["True", "False", "False", "False", "True", "False"],
    "TRUE": ["TRUE", "FALSE", "FALSE", "FALSE", "TRUE", "FALSE"],
    "WAHR": ["WAHR", "FALSCH", "FALSCH", "FALSCH", "WAHR", "FALSCH"],
    "vrai": ["vrai", "faux", "faux", "faux", "vrai", "faux"],
    "pass": ["pass", "fail", "fail", "fail", "PASS", "fail"],
    "yes": ["yes", "no", "no", "no", "yes", "no"],
    "numpy": list(np.array([1, 0, 0, 0, 1, 0], bool)),
    "✓": ["✓", "✗", "✗", "✗", "✓", "✗"],
    "✅": ["✅", "❌", "❌", "❌", "✅", "❌"],
    "good": ["good", "bad", "bad", "bad", "Good", "bad"],
    "accepted": ["accepted", "rejected", "rejected", "rejected", "accepted", "rejected"],
    "success": ["success", "failure", "failure", "failure", "success", "failure"],
}


@pytest.mark.parametrize("name", VERDICTS)
@pytest.mark.parametrize("format", ["records", "csv", "parquet", "jsonl"])
def test_verdicts_are_the_gain_if_they_are_named(tmp_path: Path, name: str, format: str) -> None:
    lists = read_back(frame(correct=VERDICTS[name]), format, tmp_path)
    assert lists.feature_names == ("judge",)
    assert read_column(lists, "correct").tolist() == RIGHT
    assert bpa.gains(lists, "-correct").tolist() == [-gain for gain in RIGHT]
    assert "- correct: true in 2 of 6" in str(describe(lists))


def test_verdicts_that_are_missing_and_parallel_lists() -> None:
    line = {"id": 0, "candidates": ["a", "b", "c"], "s": [1, 2, 4], "ok": [True, None, False]}
    lists = bpa.read_nbest([json.dumps(line).encode()])
    np.testing.assert_equal(read_column(lists, "ok"), [1, np.nan, 0])
    assert "- ok: true in 1 of 2" in str(describe(lists))
    spelled = lists.with_extras(ok=["pass", "N/A", "fail"])
    np.testing.assert_equal(read_column(spelled, "ok"), [1, np.nan, 0])
    assert "- ok: true in 1 of 2" in str(describe(spelled))
    with pytest.raises(UsageError, match="t is a column of lists: `bpa lists` or describe"):
        bpa.gains(lists.with_extras(t=[[1, 2], [2], [4, 5]]), "t")
    with pytest.raises(UsageError, match=r"ok is a column of texts, such as 'maybe'"):
        bpa.gains(lists.with_extras(ok=["yes", "maybe", "no"]), "ok")
    for other in (["A", "B", "C"], ["4 stars", "5 stars", ""], ["3/5", "1/5", "5/5"]):
        with raises(UsageError, "wrong-type", parameter="gain", match="ok is a .*write numbers"):
            bpa.gains(lists.with_extras(ok=other), "-ok")
        numbers = lists.with_extras(ok=[3, 1, 2])  # as the message says
        assert bpa.gains(numbers, "-ok").tolist() == [-3, -1, -2]
    for other in (["yes", "maybe", "no"], [True, "cat", False], [True, 2.0, False]):
        with pytest.raises((DataError, UsageError), match="ok"):
            bpa.gains(lists.with_extras(ok=other), "ok")


@pytest.mark.parametrize("answers", [("six", 41), (41, "42"), (1, True), (False, 0), (1, "unsure")])
def test_a_column_of_two_types_can_be_left_out(tmp_path: Path, answers: tuple[Any, Any]) -> None:
    path = tmp_path / "lists.jsonl"
    candidates = [
        {"text": text, "lm": 0.5, "answer": of} for text, of in zip("ab", answers, strict=True)
    ]
    path.write_text(json.dumps({"id": 0, "candidates": candidates}))
    with pytest.raises(DataError, match="exclude=answer"):
        bpa.read_nbest(path)
    lists = bpa.read_nbest(path, format="jsonl:exclude=answer")
    assert (lists.feature_names, lists.extras) == (("lm",), {})
    with pytest.raises(DataError) as caught:  # records have no format
        from_records([{"id": 0, "candidates": candidates}])
    assert "exclude" not in str(caught.value)


def test_columns_that_no_format_can_read_are_left_out(tmp_path: Path) -> None:
    frame(month=pd.period_range("2020-01", periods=6, freq="M")).to_parquet(
        tmp_path / "lists.parquet"
    )
    with raises(DataError, "wrong-type", match="month .* exclude=month in the format"):
        bpa.read_nbest(tmp_path / "lists.parquet")
    lists = bpa.read_nbest(tmp_path / "lists.parquet", format="parquet:exclude=month")
    assert (lists.feature_names, lists.extras) == (("judge",), {})
    lines = [
        {"id": k, "candidates": {"hyp": ["a", "b"], "lm": [k, 1], "odd": ["x"] * (k + 1)}}
        for k in range(3)
    ]
    lists = bpa.read_nbest(list(map(json.dumps, lines)), format="jsonl:text=hyp,exclude=odd")
    assert (lists.feature_names, lists.extras, lists.texts(2)) == (("lm",), {}, ["a", "b"])


@pytest.mark.parametrize("name", ["id", "text"])
def test_ids_and_texts_cannot_be_left_out(name: str) -> None:
    with raises(DataError, "missing-column", line=1, parameter="format", match=f"exclude={name}"):
        bpa.read_nbest([b"id,text,lm", b"0,a,1"], format=f"csv:exclude={name}")


def test_a_number_as_a_text_is_an_extra() -> None:
    def line(**fields: Any) -> bytes:
        values = {name: [value, value] for name, value in fields.items()}
        return json.dumps({"id": 0, "candidates": ["a", "b"], "lm": [1, 2], **values}).encode()

    with pytest.warns(BpaWarning, match="answer is a column of texts, since '42' is in quotation"):
        lists = bpa.read_nbest([line(answer="42")])
    assert (lists.feature_names, lists.extras) == (("lm",), {"answer": ("42", "42")})
    for answers in (["None", "42"], ["42", "None"]):
        with pytest.warns(BpaWarning, match="x is a column of texts, since '42' is in quotation"):
            from_records({"id": [0, 0], "text": ["a", "b"], "lm": [1, 2], "x": answers})
    for use in ({"gain": "answer"}, {"features": ["answer"], "gain": "lm"}):
        with pytest.raises((DataError, UsageError), match="answer"):
            bpa.adapt(lists, **use)
    assert bpa.read_nbest([line(answer="42")], format="jsonl:exclude=answer").extras == {}


@pytest.mark.parametrize("cell", ['{"x": 4, "y": 2}', "{'x': 4}"])
def test_objects_in_cells_are_texts(cell: str) -> None:
    data = frame(scores=[cell] * 6)
    with pytest.warns(BpaWarning, match=r"scores is a column of texts, since .*\{.* is an object"):
        assert from_records(data).feature_names == ("judge",)


UNITS: dict[str, tuple[list[str | None], list[float]]] = {
    "%": (["85%", "7.5 %", "-90%"], [85, 7.5, -90]),
    "/": (["3/5", "4 / 5", "4.5/5"], [3, 4, 4.5]),
    "out of": (["3/5", "5 out of 5", "4 Out of 5"], [3, 5, 4]),
    "stars": (["4 stars", "1 star", "5 Stars"], [4, 1, 5]),
    "/5 stars": (["4/5 stars", "1/5 star", "0/5 stars"], [4, 1, 0]),
    "★": (["★★★★☆", "☆☆☆☆☆", "⭐⭐️"], [4, 0, 2]),
    "missing": (["N/A", "4 points", None], [np.nan, 4, np.nan]),
}


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("format", ["records", "csv", "jsonl"])
@pytest.mark.filterwarnings("ignore:.*rating is missing for")
def test_numbers_with_a_unit(tmp_path: Path, name: str, format: str) -> None:
    texts, numbers = UNITS[name]
    with pytest.warns(BpaWarning, match="rating: .* is read as .*, since all its values"):
        lists = read_back(frame(rating=texts * 2), format, tmp_path)
    np.testing.assert_array_equal(bpa.gains(lists, "rating"), np.float64(numbers * 2))
    assert ("rating" in lists.feature_names) == (name != "missing")


def test_numbers_with_a_unit_for_the_estimator() -> None:
    numbers, ranker = [3, 1, 2, 5, 4, 0], BayesianRanker(sampler="map")
    data = frame(rating=[f"{number}/5" for number in numbers])
    by_texts = ranker.fit(data[["judge"]], data["rating"], qid=data["id"]).coef_
    assert by_texts == ranker.fit(data[["judge"]], numbers, qid=data["id"]).coef_


@pytest.mark.parametrize(
    "texts",
    [
        ["85%", "high", "90%"],
        ["85%", "0.9", "70%"],
        ["3/5", "4/7", "5/5"],
        ["3/5", "12/5", "1/5"],  # dates
        ["1,234", "2,345", "999"],
        ["1,234,567", "1,234.5", "999"],
        ["18 dollars", "5 dollars", "7 dollars"],
        ["4", "3", "5"],  # texts in JSON
    ],
)
@pytest.mark.filterwarnings("ignore:.*is a column of texts, since")
def test_texts_that_are_no_numbers_with_one_unit(tmp_path: Path, texts: list[str]) -> None:
    lists = from_records(frame(rating=texts * 2))
    assert lists.extras["rating"] == tuple(texts * 2)
    with raises(UsageError, "wrong-type", parameter="gain", match="rating .*write numbers"):
        bpa.gains(lists, "rating")


@pytest.mark.filterwarnings("ignore:.*is read as")
def test_a_stream_has_the_same_choices_by_numbers_with_a_unit(tmp_path: Path) -> None:
    path = tmp_path / "lists.csv"
    sure = [90, 5, 70, 20, 80, 40]
    frame(sure=[f"{of}%" for of in sure]).to_csv(path, index=False)
    judged = from_records(frame(sure=sure, human=[3, 1, 2, 2, 5, 1]))
    posterior = bpa.adapt(judged, gain="human", **MODE)
    whole = bpa.rerank(bpa.read_nbest(path), posterior, unchecked=True)
    stream = bpa.rerank(bpa.iter_nbest(path, chunk=1), posterior, unchecked=True)
    assert stream.texts == whole.texts
    assert stream.probabilities.tolist() == whole.probabilities.tolist()


@pytest.mark.parametrize("values", [("85%", "70%"), ("★★★☆", "★☆☆☆"), ("pass", "fail")])
@pytest.mark.filterwarnings("ignore:.*(is read as|is missing for|is a column of texts, since)")
def test_the_gain_of_a_stream_is_that_of_the_lists(tmp_path: Path, values: Any) -> None:
    """Where it has a unit or is a verdict, and a part of the lists is not judged."""
    path = tmp_path / "lists.csv"
    frame(rating=["N/A"] * 3 + [values[0], *values]).to_csv(path, index=False)
    lists = bpa.read_nbest(path)
    posterior = bpa.adapt(lists, gain="rating", sampler="map")
    parts = list(bpa.iter_nbest(path, chunk=1))
    gains = [read_column(part, "rating") for part in (*parts, lists)]
    np.testing.assert_array_equal(np.concatenate(gains[:2]), gains[2])
    assert np.isnan(gains[0]).all()
    whole, stream = (bpa.rerank(of, posterior, unchecked=True) for of in (lists, parts))
    assert stream.texts == whole.texts


def test_numbers_with_a_unit_would_not_read_back(tmp_path: Path) -> None:
    lists = from_records(frame()).with_extras(share=["85%", "90%", "5%"] * 2)
    for ending in ("csv", "jsonl", "parquet"):
        with pytest.warns(BpaWarning, match="share left out, which would not read back"):
            bpa.write_nbest(lists, tmp_path / f"lists.{ending}")


def test_lists_names_columns_that_may_be_the_gain() -> None:
    """Not the names of candidates."""
    table = frame(human=[3, 1, 2, 2, 5, 1], ok=VERDICTS["pass"], mt=[0.5, None, 1, 1, 1, 1])
    with pytest.warns(BpaWarning, match="mt is missing for 1 of 6"):
        lists = from_records(table)
    assert describe(lists).gains == ("mt", "ok")
    for gain in describe(lists).gains:
        assert np.isfinite(bpa.gains(lists, gain)).any()
    named = {
        "id": 0,
        "candidates": [{"id": 7, "text": "a", "x": 1}, {"id": 9, "text": "b", "x": 3}],
    }
    described = describe(bpa.read_nbest([json.dumps(named).encode()]))
    assert described.gains == ()
    assert "a column to name as the gain: none here" in str(described)


def test_a_column_that_is_called_like_a_metric() -> None:
    lists = from_records(frame(chrf=[30.5, 10, 2, 20, 50, 10]))
    with pytest.raises(DataError, match="no references") as error:
        bpa.adapt(lists, gain="chrf")
    (gain,) = re.findall(r"--gain (\S+),", str(error.value))
    record = bpa.as_draws(bpa.adapt(lists, gain=gain, **MODE)).record
    assert record.recipe.gain.column == "chrf"  # type: ignore[union-attr]


def test_lists_says_that_nothing_can_be_learned() -> None:
    lists = from_records(frame(human=[3] * 6))
    problem = "all candidates of each list are equally good by human: nothing can be learned"
    assert problem in describe(lists, "human").warnings
    with pytest.raises(DataError, match="nothing can be learned"):
        bpa.adapt(lists, gain="human")
    assert problem not in describe(from_records(frame(human=[3] * 5 + [4])), "human").warnings


def test_lists_says_what_adapt_does() -> None:
    """A judge without one of its values is no gain, unless it is named."""
    with pytest.warns(BpaWarning, match="y is missing for 1 of 6"):
        lists = from_records(frame(y=[None, 2, 1, 1, 2, 1]))
    description = describe(lists)
    assert description.plan is None
    assert "name as the gain: y" in str(description)
    with raises(DataError, "missing-references", parameter="references", match="--gain COLUMN"):
        bpa.adapt(lists)
    plan = describe(lists, "y").plan
    assert plan is not None
    assert bpa.as_draws(bpa.adapt(lists, gain="y", **MODE)).record.observed.gain == plan.gain


@pytest.mark.filterwarnings("ignore:approved is missing for all 6 candidates")
def test_columns_without_a_value_are_no_gain() -> None:
    lists = from_records(frame(human=[3, 1, 2, 2, 5, 1], approved=[None] * 6))
    assert describe(lists).gains == ()
