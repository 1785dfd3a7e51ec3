"""The roles of columns: features as they are named, strict values, and extras as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.raising import raises
from support.user_files import Write, write_frame

import bpa_ppl as bpa
from bpa_ppl import DataError, UsageError, from_records, iter_nbest, read_nbest
from bpa_ppl.extending import gains
from bpa_ppl.formats.roles import Roles

FIELD = Path(__file__).parent / "field" / "5"
#: A prior that is not learned: fast, where the weights do not matter.
PRIOR = "isotropic:variance=1.0,mean=0"
#: Columns of two lists: numbers, texts, and a number that is not one of the candidates.
TABLE: dict[str, list[Any]] = {
    "id": [1, 1, 2, 2],
    "text": ["a house", "the house", "a cat", "the cat"],
    "judge_a": [0.5, 0.25, 0.75, 0.125],
    "judge_b": [1, 2, 3, 4],
    "tm[0]": [-1.5, -2.5, -3.5, -4.5],
    "tm[1]": [7, 5, 3, 1],
    "by": ["x", "y", "x", "y"],
    "human": [4, 5, 1, 2],
}


def table(**changes: list[Any] | None) -> dict[str, list[Any]]:
    """Return the table with other columns, or without them."""
    return {name: of for name, of in (TABLE | changes).items() if of is not None}


def write_table(columns: dict[str, list[Any]], path: Path) -> Path:
    """Write a table in the format of the ending of a name; a missing cell is empty, or null."""
    write_frame(pd.DataFrame(columns), path)
    return path


@pytest.fixture(params=["csv", "tsv", "jsonl", "parquet"])
def ending(request: pytest.FixtureRequest) -> str:
    """Return the ending of the name of a table."""
    return str(request.param)


# --- features are named --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "exclude", "expected"),
    [
        (None, None, []),
        ("judge_a", None, ["judge_a"]),
        (["human", "judge_b"], None, ["judge_b", "human"]),  # in the order of the file
        ("tm", None, ["tm[0]", "tm[1]"]),
        ("tm[1]", None, ["tm[1]"]),
        ("judge_*", None, ["judge_a", "judge_b"]),
        ("judge_?", "judge_b", ["judge_a"]),
        ("judge_[!a]", None, ["judge_b"]),
        ("*", None, ["judge_a", "judge_b", "tm[0]", "tm[1]", "human"]),
        ("*", ["human", "tm"], ["judge_a", "judge_b"]),
        (["*", "judge_a"], "judge_*", ["tm[0]", "tm[1]", "human"]),
        (["*", "judge_a"], "*", []),
        (("tm", "judge_*"), "tm[0]", ["judge_a", "judge_b", "tm[1]"]),
    ],
)
def test_features_are_those_that_are_named(
    tmp_path: Path, ending: str, features: Any, exclude: Any, expected: list[str]
) -> None:
    """All other columns are extras, as they are."""
    path = write_table(TABLE, tmp_path / f"lists.{ending}")
    roles = {"features": features, "exclude": exclude}
    everywhere = [read_nbest(path, **roles), *iter_nbest(path, **roles, chunk=1)]
    everywhere.append(from_records(TABLE, **roles))
    for lists in everywhere:
        assert list(lists.feature_names) == expected
        assert list(lists.extras) == [n for n in list(TABLE)[2:] if n not in expected]
    lists = everywhere[0]
    for name, values in zip(lists.feature_names, lists.features.T, strict=True):
        assert values.tolist() == TABLE[name]
    for name, values in lists.extras.items():
        plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
        assert plain == (list(map(str, TABLE[name])) if lists.cells else TABLE[name])
    assert lists.cells == (set(lists.extras) if ending in ("csv", "tsv") else set())


def test_the_names_of_columns_decide_nothing() -> None:
    """Whatever they are called, and whatever their values look like."""
    odd: dict[str, list[Any]] = {
        "Unnamed: 0": [0, 1, 2, 3],
        "__index_level_0__": [3, 2, 1, 0],
        "rank": [1, 2, 1, 2],
        "seed": [7, 8, 9, 10],
        "created_at": [1636953689, 1636952922, 1700000000, 1],
        "mqm": [-1, 99, -999, 5],
        "rating": ["3/5", "85%", "★★★", "yes"],
        "lists": [[1, 2], [3], [], None],
    }
    lists = from_records(table(**odd))
    assert (lists.feature_names, list(lists.extras)) == ((), [*TABLE, *odd][2:])
    chosen = from_records(table(**odd), features=[n for n in odd if n not in ("rating", "lists")])
    assert chosen.feature_names == tuple(odd)[:-2]
    assert from_records(table(**odd), features="*").feature_names[-6:] == tuple(odd)[:-2]


def test_only_the_index_that_a_frame_adds_is_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame(TABLE).iloc[[2, 3, 1, 0]]  # its index is not 0, 1, …
    assert list(from_records(frame).extras) == list(TABLE)[2:]
    named = frame.set_index("judge_b")
    assert from_records(named, features="judge_b").features[:, 0].tolist() == [3, 4, 2, 1]
    frame.to_parquet(tmp_path / "lists.parquet")
    lists = read_nbest(tmp_path / "lists.parquet")
    assert list(lists.extras) == [*TABLE, "__index_level_0__"][2:]
    frame.to_csv(tmp_path / "lists.csv")
    with raises(DataError, "bad-name", line=1, match="without a name .*: name or remove it"):
        read_nbest(tmp_path / "lists.csv")


@pytest.mark.parametrize(
    "form", ["csv", "jsonl", "parquet", "jsonl of objects", "parquet of objects"]
)
def test_the_file_declares_its_features(tmp_path: Path, form: str) -> None:
    """In objects, or in columns that say so; other columns may be named as well."""
    ending, is_nested = form.partition(" ")[0], form.endswith("objects")
    objects = [{"lm": value, "tm": {"in": 1}} for value in TABLE["judge_a"]]
    columns = {"features": objects} if is_nested else {"features.lm": TABLE["judge_a"]}
    usual = {name: TABLE[name] for name in ("id", "text")}
    path = write_table({**usual, **columns, "comet": TABLE["judge_b"]}, tmp_path / f"a.{ending}")
    tm = ("tm.in",) * is_nested
    lists, without = read_nbest(path), read_nbest(path, exclude="lm")
    assert (lists.feature_names, list(lists.extras)) == (("lm", *tm), ["comet"])
    assert lists.features[:, 0].tolist() == TABLE["judge_a"]
    assert (without.feature_names, list(without.extras)) == (tm, ["lm", "comet"])
    for named, expected in {"comet": ("comet",), "*": ("lm", *tm, "comet")}.items():
        assert read_nbest(path, features=named).feature_names == expected


@pytest.mark.parametrize(
    ("candidate", "match"),
    [
        ({"features": {"lm": 1}, "lm": 2}, "two fields lm, one of them in features: rename one"),
        ({"features": {"lm": 1}, "features.lm": 2}, "two fields features.lm: rename one"),
        ({"features": {"text": 1}}, "a feature called text, as the text of candidates is: rename"),
        ({"features": {"total": 1}}, "a feature called total, as the total of candidates is"),
        ({"features": {"a": {"b": 1}, "a.b": 2}}, r"two fields features.a.b: rename one"),
        ({"x": {"y": 1}, "x.y": 2}, "two fields x.y: rename one"),
    ],
)
def test_two_fields_of_one_name(candidate: dict[str, Any], match: str) -> None:
    record = {"id": 0, "candidates": [{"text": "a", **candidate}]}
    for features in (None, "lm", "qe"):
        for read, given in ((from_records, [record]), (read_nbest, [json.dumps(record)])):
            with pytest.raises(DataError, match=match) as caught:
                read(given, features=features)
            assert caught.value.line == 1


def test_decoders_define_their_features() -> None:
    lines = ["0 ||| a ||| LM0= 1 TM0= 2 3 ||| 4", "0 ||| b ||| LM0= 2 TM0= 3 4 ||| 5"]
    assert read_nbest(lines).feature_names == ("LM0", "TM0[0]", "TM0[1]")
    for roles in ({"features": "TM0"}, {"exclude": "LM0"}, {"features": "TM0[[]?]"}):
        lists = read_nbest(lines, **roles)
        assert lists.feature_names == ("TM0[0]", "TM0[1]")
        assert gains(lists, "LM0").tolist() == [1, 2]
    with raises(DataError, "missing-column", parameter="features", match="no column LM1"):
        read_nbest(lines, features=["LM1"])


# --- names that match nothing, and no names ------------------------------------------------------

SHOWN = r"the columns of numbers are judge_a \(0.125 to 0.75\), judge_b \(1 to 4\), tm\[0\]"


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("judge_c", rf"no column judge_c .did you mean judge_[ab]\?.: {SHOWN}"),
        ("zz", f"no column zz: {SHOWN}"),
        ("lm_*", rf"no column lm_\*: {SHOWN}"),
        ("tm[2]", rf"no column tm\[2\] .did you mean tm\[.\]\?.: {SHOWN}"),
        ("Judge_a", rf"no column Judge_a .did you mean judge_a\?.: {SHOWN}"),
    ],
)
def test_a_name_that_matches_nothing(tmp_path: Path, ending: str, name: str, match: str) -> None:
    path = write_table(TABLE, tmp_path / f"lists.{ending}")
    for roles in ({"features": ["judge_a", name]}, {"features": "judge_a", "exclude": [name]}):
        parameter = list(roles)[-1]
        for read, shown in ((read_nbest, match), (iter_nbest, match[:12])):
            with raises(DataError, "missing-column", parameter=parameter, match=shown) as caught:
                list(read(path, **roles))
            assert str(path) in str(caught.value)


def test_a_column_of_texts_is_not_a_feature() -> None:
    with raises(DataError, "bad-number", parameter="bad", line=1, match="by is 'x', not a number"):
        from_records(TABLE, features="by")
    texts = {name: TABLE[name] for name in ("id", "text", "by")}
    none = "there are no columns of numbers, only by"
    with raises(DataError, "missing-column", parameter="features", match=none):
        from_records(texts, features="lm")
    assert from_records(texts, features="*").feature_names == ()


def test_values_in_place_of_missing_ones_are_of_columns(tmp_path: Path, ending: str) -> None:
    path = write_table(TABLE, tmp_path / f"lists.{ending}")
    match = r"no column judge_c .did you mean judge_[ab]\?.: the columns of numbers are judge_a "
    with raises(DataError, "missing-column", parameter="missing", match=match):
        read_nbest(path, features="judge_a", missing={"judge_a": 0, "judge_c": 0})
    posterior = Roles(("judge_a", "new"), optional=True)
    assert read_nbest(path, features=posterior, missing={"new": 0}).feature_names == ("judge_a",)
    with raises(DataError, "missing-column", parameter="missing"):
        read_nbest(path, features=posterior, missing={"judge_c": 0})


def test_all_columns_may_be_excluded_if_features_are_added() -> None:
    lists = from_records(table(text=["a house", "house", "a cat", "cat"]), features="*")
    alone = bpa.log_density(lists, gain="human", exclude="*", add="length", prior=PRIOR)
    assert alone.features == ("LengthWords",)
    match = "no features are left, because .* are excluded: exclude fewer columns"
    with raises(DataError, "missing-feature", parameter="features", match=match):
        bpa.log_density(lists, gain="human", exclude="*", prior=PRIOR)


@pytest.mark.parametrize("roles", [{"features": 1}, {"features": [1]}, {"exclude": [1.5]}])
def test_names_are_texts(roles: dict[str, Any]) -> None:
    (parameter,) = roles
    with raises(UsageError, "wrong-type", parameter=parameter, match="a list of names, not"):
        from_records(TABLE, **roles)


def test_adapt_without_features_shows_what_to_name(tmp_path: Path, ending: str) -> None:
    path = write_table(TABLE, tmp_path / f"lists.{ending}")
    with raises(DataError, "missing-feature", parameter="features", match=SHOWN[:60]) as caught:
        bpa.log_density(read_nbest(path), gain="human", prior=PRIOR)
    assert "too (--features COLUMN; in Python features=['COLUMN'])" in str(caught.value)
    assert "(--add consensus --add length; in Python add=['consensus', 'length'])" in str(
        caught.value
    )
    options: dict[str, Any] = {"gain": "human", "prior": PRIOR}
    again = bpa.log_density(read_nbest(path, features=["judge_a", "tm"]), **options)
    assert again.features == ("judge_a", "tm[0]", "tm[1]")
    # If the gain is the only column of numbers, features can only be those of the texts.
    alone = from_records({name: TABLE[name] for name in ("id", "text", "human")})
    with pytest.raises(DataError, match="--add consensus --add length; in Python add="):
        bpa.log_density(alone, **options)


def test_lists_in_objects_are_columns_of_candidates_if_named() -> None:
    path, form = FIELD / "scores_by_judge.jsonl", "jsonl:candidates=samples"
    named = read_nbest(path, format=form, features="scores.large")
    assert named.feature_names == ("scores.large",)
    assert named.features[:4, 0].tolist() == [0.55, 0.58, 0.63, 0.21]
    assert named.sentence_extras["scores"][0] == {"small": [0.98, 0.69, 0.3]}
    both = read_nbest(path, format=form, features=["scores.*", "human"])
    assert both.feature_names == ("scores.large", "scores.small", "human")
    assert "scores" not in both.sentence_extras
    assert read_nbest(path, format=form).sentence_extras["scores"][1]["large"][0] == 0.21
    rows = [{"candidates": ["a", "b"], "by": {"lm": of}} for of in ([1, 2], [1, 2, 3])]
    with raises(DataError, "bad-data", line=2, match="by.lm has 3 values, but there are 2"):
        from_records(rows, features="by.lm")
    rows[1]["by"] = {"other": 7}
    lists = from_records(rows, features="by.lm", missing=0)
    assert lists.features[:, 0].tolist() == [1, 2, 0, 0]
    assert lists.sentence_extras["by"] == (None, {"other": 7})


def test_lists_of_one_number_are_numbers_if_named() -> None:
    path = FIELD / "one_number_lists.jsonl"
    lists = read_nbest(path, features="scores")
    assert lists.features[:3, 0].tolist() == [-3.93, -3.77, -3.16]
    assert read_nbest(path).sentence_extras["scores"][0][0] == [-3.93]
    rows = [{"id": 0, "text": text, "lm": [n]} for n, text in enumerate("ab")]
    for records in (rows, pa.Table.from_pylist(rows)):
        assert from_records(records, features="lm").features.tolist() == [[0], [1]]
    for odd in ([], [1, 2], [None], ["1"], [True], 1, "1"):
        with raises(DataError, "bad-number", line=1, parameter="bad", match="lm is .0"):
            from_records([*rows, rows[1] | {"lm": odd}], features="lm")
    kept = from_records([*rows, rows[1] | {"lm": None}], features="lm", missing=7)
    assert kept.features.tolist() == [[0], [1], [7]]


def test_a_column_of_texts_called_candidates() -> None:
    path = FIELD / "candidates.csv"
    lists = read_nbest(path, format="csv:text=candidates", features="lm")
    assert lists.texts(0) == ["A house by the lake", "One house at lake", "House lake"]
    with raises(DataError, "missing-column", line=1, parameter="format", match="no column text"):
        read_nbest(path)
    other = read_nbest([b"id,text,candidates", b"0,a,x", b"0,b,y"])
    assert dict(other.extras) == {"candidates": ("x", "y")}


# --- strict values -------------------------------------------------------------------------------

#: Cells that print no number; the last ones print one that is too large.
TEXTS = [
    *("85%", "3/5", "1,5", "yes", "★★★", "2024-01-05", "tensor(0.5)", " 0.5", "0.5 ", "1_000"),
    *("0x10", "inf", "-Infinity", "nan", "NA", "None", "null", "-", "1 000", "1.234,5", "TRUE"),
    *("\u0661", "\u22121", "1e", "--1", "1.2.3", "$1.50", "4 stars", "#DIV/0!"),
]
LARGE = ["1e400", "1e61", "-2e60"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("cell", TEXTS + LARGE)
def test_a_cell_is_a_number_or_an_error(write: Write, cell: str, separator: str) -> None:
    rows = [["id", "text", "lm"], *(["0", f"t{k}", f"{k}"] for k in range(16))]
    rows[13][2] = f'"{cell}"' if separator in cell else cell
    path = write(*map(separator.join, rows))
    what = "write numbers, and nothing where" if cell in TEXTS else "not a finite number of at mo"
    shown = f"{path}:14: lm is {cell!r}, "
    for read in (read_nbest, lambda *of, **more: list(iter_nbest(*of, chunk=1, **more))):
        with raises(DataError, "bad-number", parameter="bad", line=14, match=what) as caught:
            read(path, features="lm")
        assert str(caught.value).startswith(shown)
    with pytest.warns(bpa.BpaWarning, match="1 candidate dropped"):
        assert len(read_nbest(path, features="lm", bad="drop").features) == 15
    assert read_nbest(path).extras["lm"][12] == cell  # as it is
    # The same in a column that is the gain.
    lists = read_nbest(path)
    with raises(DataError, "bad-number", match="lm of"):
        gains(lists, "lm")


@pytest.mark.parametrize("cell", ["1", "-1.5", "+.5", "1.", "1e-5", "1E+5", "00.5", "-0", "9e59"])
def test_decimal_and_scientific_literals_are_numbers(write: Write, cell: str) -> None:
    path = write("id,text,lm", "0,a,2", f"0,b,{cell}")
    assert read_nbest(path, features="lm").features[1].tolist() == [float(cell)]
    assert gains(read_nbest(path), "lm").tolist() == [2, float(cell)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((f'"{text}"', repr(text)) for text in ("0.5", "85%", "x", "")),
        *(("true", "true"), ("[1]", r"\[1\]"), ("1e400", "inf"), ("-Infinity", "-inf")),
        *(("1e61", r"1e\+61"), ("1" + 400 * "0", "100")),
    ],
)
def test_a_field_of_json_is_a_number_or_an_error(write: Write, value: str, shown: str) -> None:
    row = '{"id": 7, "text": "a", "lm": %s}'
    nested = '{"id": %s, "candidates": [{"text": "a", "lm": 1}, {"text": "b", "lm": %s}]}'
    for lines, place in (
        ((row % 0.5, row % value), "lm"),
        ((nested % (1, 1), nested % (2, value)), r"candidates\[1\].lm"),
    ):
        match = f":2: {place} is {shown}"
        with raises(DataError, "bad-number", parameter="bad", line=2, match=match):
            read_nbest(write(*lines), features="lm")


def test_true_and_false_are_gains_and_no_features() -> None:
    lists = from_records(table(right=[True, False, None, True]), features="judge_a")
    np.testing.assert_array_equal(gains(lists, "right"), [1, 0, np.nan, 1])
    np.testing.assert_array_equal(gains(lists, "-right"), [-1, 0, np.nan, -1])
    assert "right" not in from_records(table(right=[True, False] * 2), features="*").feature_names
    with raises(DataError, "bad-number", parameter="bad", line=1, match="right is true, not a num"):
        from_records(table(right=[True, False] * 2), features="right")
    words = from_records(table(right=["true", "false"] * 2))
    with raises(DataError, "bad-number", match="right of .* is 'true', not a number: write num"):
        gains(words, "right")


# --- missing values ------------------------------------------------------------------------------


def test_what_is_missing_is_counted_with_both_remedies(write: Write) -> None:
    path = write("id,text,lm,qe", "0,a,1,1", "0,b,,2", "1,c,3,", "1,d,,")
    match = rf"{path}:3: lm is missing for 2, qe for 2 of 4 candidates, the first is "
    match += r"candidates\[1\] of list 0: .*\(--missing lm=VALUE --missing qe=VALUE; .*"
    match += r"or leave them out \(--exclude lm --exclude qe; in Python exclude=\['lm', 'qe'\]\)"
    both = ["lm", "qe"]
    with raises(DataError, "missing-feature", parameter="missing", line=3, match=match):
        read_nbest(path, features=both)
    shown = r"\(--missing qe=VALUE; .*\), or leave it out \(--exclude qe; "
    with raises(DataError, "missing-feature", parameter="missing", line=4, match=shown):
        read_nbest(path, features=both, missing={"lm": -9})
    for filled, qe in ((-9, -9), ({"lm": -9, "qe": 0.5}, 0.5)):
        lists = read_nbest(path, features=both, missing=filled)
        assert lists.features.tolist() == [[1, 1], [-9, 2], [3, qe], [-9, qe]]
    assert read_nbest(path, features=both, exclude=both).feature_names == ()
    # A gain may be missing.
    np.testing.assert_array_equal(gains(read_nbest(path), "lm"), [1, np.nan, 3, np.nan])


@pytest.mark.parametrize("missing", ["0", [1], {"lm": "x"}, True])
def test_a_value_in_place_of_a_missing_one_is_a_number(missing: Any) -> None:
    with raises(UsageError, "wrong-type", parameter="missing", match="must be a number, or one"):
        from_records(TABLE, features="judge_a", missing=missing)


# --- extras are never looked at ------------------------------------------------------------------


def test_extras_are_kept_as_they_are(write: Write, tmp_path: Path) -> None:
    odd: list[Any] = [7, 7.5, "7", True, None, [1, "x"], "NA", "85%"]
    rows = [{"id": 0, "text": "a", "odd": value} for value in odd]
    lists = read_nbest(write(*map(json.dumps, rows)))
    assert [*map(repr, lists.extras["odd"])] == [*map(repr, odd)]
    cells = ["7", "07", "7.50", "NA", "", " x ", "★★★", "85%"]
    lists = read_nbest(write("id,text,odd", *(f"0,a,{cell}" for cell in cells)))
    assert lists.extras["odd"] == tuple(cell or None for cell in cells)
    frame = pd.DataFrame({"id": 0, "text": "a", "odd": pd.array([1, None], "Int64")})
    frame.to_parquet(tmp_path / "lists.parquet")
    for lists in (from_records(frame), read_nbest(tmp_path / "lists.parquet")):
        assert gains(lists, "odd").tolist()[0] == 1
