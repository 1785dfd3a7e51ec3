"""Descriptions of lists: counts against counting by hand, one list for each warning, and calls.

The calls of `adapt` run as they are printed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import NBest, UsageError, from_lists, log_density
from bpa_ppl.extending import Observed, Prepared, observe, oracles, prepare


def lists(**extras: Any) -> NBest:
    """Return 3 lists with 3, 2 and 1 candidates, two of them equal."""
    nbest = from_lists(
        [["a cat", "the cat", "the cat"], ["hi", "hey"], ["x"]],
        [[[-2.0, 4.0], [-1.0, 8.0], [-3.0, 5.0]], [[-1.0, 5.0], [-2.0, 9.0]], [[-4.0, 7.0]]],
        ["logprob", "comet"],
        sentence_ids=[0, 1, 5],
    )
    return nbest.with_extras(**extras)


MQM = [-5.0, None, 0.0, -1.0, None, None]


def new_warnings(nbest: NBest) -> list[str]:
    """Return the warnings that the lists of all tests do not have."""
    usual = bpa.describe(lists()).warnings
    return [warning for warning in bpa.describe(nbest).warnings if warning not in usual]


def test_counts() -> None:
    known = lists(mqm=MQM, system=list("ABABAA")).with_sources(["u", "v", "w"])
    found = bpa.describe(known, "mqm")
    assert (found.sentences, found.candidates, found.sizes) == (3, 6, (1, 2.0, 3))
    assert found.facts[3:] == (
        *("sources for 3 of 3 lists", "a reference for 0 of 3 lists"),
        "3 ids between the first and the last without a list",
        "1 candidate with the text of another of the list",
        "mqm is known in 1 of 3 lists: several candidates are the best in 0 of them, and all are "
        "equally good in 0",
    )
    logprob, comet, judged, system = found.columns
    assert logprob[:5] == ("logprob", "feature", -4, -2, -1)
    within = np.concatenate([[0, 1, -1], [0.5, -0.5], [0]])
    assert logprob.within == pytest.approx(np.sqrt(np.mean(within**2)))
    assert comet[2:5] == (4, 6, 9)
    assert judged[:5] == ("mqm", "gain", -5, -1, 0)
    named = bpa.describe(lists(mqm=MQM), "-comet").columns
    assert [column.kind for column in named] == ["feature", "gain", "extra"]
    assert (judged.missing, judged.within) == (3, 2.5)
    assert (system.type, system.missing, system.different) == ("text", 0, 2)
    assert np.isnan(system.median)
    assert found.gain == "mqm"


def test_references_and_ties() -> None:
    known = lists().with_references([("the cat", "b"), (), ("y",)])
    found = bpa.describe(known)
    assert "a reference for 2 of 3 lists, which is a candidate in 1" in found.facts
    assert found.gain == "chrf"
    known = "chrf is known in 2 of 3 lists: several candidates are the best in 1 of them"
    assert found.facts[-1].startswith(known)  # "the cat" twice
    assert any("reference" in warning for warning in found.warnings)


def test_what_adapt_does_is_what_is_described() -> None:
    known = lists(mqm=[-5.0, None, 0.0, -1.0, -1.0, None])
    found = bpa.describe(known, "mqm")
    observed = as_printed(found.command, known).observed.record()
    assert observed.gain == found.gain == "mqm"
    assert "known in 2 of 3 lists: several candidates are the best in 1" in found.facts[-1]


@pytest.mark.parametrize("kind", ["none", "canonical", "totals", "chosen"])
def test_default_gain(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    known = lists().with_references([("the cat", "b"), ("hey",), ("y",)])
    if kind == "totals":
        known = replace(known, totals=np.arange(6, dtype=np.float32))
    weights: Any = None if kind in ("none", "totals") else {"logprob": 0.5, "comet": 0.0}
    with caplog.at_level("INFO", logger="bpa_ppl"):
        gain = "bleu" if kind == "chosen" else None
        observed = observe(prepare(known, weights, gain=gain)).record()
    expected = {"none": "chrf", "chosen": "bleu"}.get(kind, "ter")
    assert observed.gain == expected
    messages = [record.message for record in caplog.records if "the gain is" in record.message]
    reason = {
        "none": "chrF, because there are neither canonical weights nor totals of a decoder",
        "totals": "TER, because the lists have totals of a decoder",
    }
    assert [message.split("; ")[0] for message in messages] == [
        f"the gain is {reason[kind]}" for _ in messages
    ]
    assert len(messages) == (kind in reason)
    assert bpa.describe(known).gain == ("ter" if kind == "totals" else "chrf")
    if kind == "none":  # oracles that were found before have a metric of their own
        found = oracles(known, "ter", ties="shared")
        assert observe(prepare(known, gain=found)).record().gain == "ter"


def test_preferences_and_nothing() -> None:
    preferred = lists().with_sentence_extras(preferences=[[[1, 0]], None, None])
    found = bpa.describe(preferred)
    assert (found.gain, found.command) == ("preferences", "bpa.adapt(lists)")
    assert as_printed(found.command, preferred).prepared.likelihood.observes == "preferences"
    assert bpa.describe(lists()).gain == bpa.describe(lists(), "bleu").gain == ""
    with raises(UsageError, "unknown-name", parameter="gain"):
        bpa.describe(lists(), "cometh")


def test_json_has_everything() -> None:
    found = bpa.describe(lists(mqm=np.full(6, np.nan)), "mqm")
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    expected = {"name": "mqm", "kind": "gain", "type": "number", "within": 0.0, "missing": 6}
    unknown = ("minimum", "median", "maximum", "different")
    assert plain["columns"][2] == expected | dict.fromkeys(unknown)
    assert plain["facts"][0] == 'example: list 0: "a cat" (logprob -2, comet 4)'
    assert plain["command"] == ""
    plain = bpa.describe(lists(mqm=MQM), "mqm").as_dict()
    assert plain["command"] == "bpa.adapt(lists, gain='mqm')"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None], "number"),
        ([1, float("inf"), 1e300], "number"),
        (np.array([1.0, np.nan, 2.0]), "number"),
        ([True, None, False], "true/false"),
        (np.array([True, True, False]), "true/false"),
        (["a", "1", None], "text"),
        (["1", "2", "3"], "text"),  # only cells of a text file print numbers
        ([[1], [], None], "list"),
        (np.ones((3, 2)), "list"),
        ([1, "a", None], "other"),
        ([{"a": 1}, None, None], "other"),
        (np.array(["2024-01-01"] * 3, "datetime64[D]"), "other"),
        ([None] * 3, "empty"),
    ],
)
def test_types_of_columns(values: Any, kind: str) -> None:
    nbest = from_lists([["a", "b", "c"]], [[[]] * 3], []).with_extras(x=values)
    described = bpa.describe(nbest)
    (column,) = described.columns
    assert column.type == kind
    missing = [v is None or (isinstance(v, float) and np.isnan(v)) for v in values]
    assert column.missing == sum(missing)
    json.dumps(described.as_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("doc", [3, 3, 3, 4, 4, 5]),
        ("copy", [-2, -1, -3, -1, -2, -4]),
    ],
)
def test_suspicious_columns_are_named(name: str, column: list[float]) -> None:
    (warning,) = new_warnings(lists().with_features([name], np.array(column)[:, None]))
    assert name in warning


def test_empty_candidates_are_counted() -> None:
    """Marian and recognisers print candidates without words; they are candidates as others."""
    lines = ["0 |||  ||| F0= -1 ||| -1", "0 ||| a ||| F0= -2 ||| -2", "1 |||  ||| F0= -3 ||| -3"]
    nbest = bpa.read_nbest(lines)
    assert (nbest.texts(0), nbest.texts(1)) == (["", "a"], [""])
    assert "2 candidates with an empty text" in bpa.describe(nbest).facts
    assert "empty text" not in str(bpa.describe(lists()))


LM, QE = [-2.0, -1.5, -3.0, -1.0, -2.5, -0.5], [0.5, 0.75, 0.25, 0.5, 0.125, 0.875]
HUMAN = [3.0, None, 1.0, 2.0, 5.0, 4.0]


def table(**extras: Any) -> NBest:
    """Return two lists of three candidates without features."""
    texts = [["a cat", "the cat", "cat"], ["hi", "hey", "hello"]]
    return from_lists(texts, [[[]] * 3] * 2, []).with_extras(**extras)


class Started(NamedTuple):
    """What `adapt` prepares and observes before it builds a density."""

    prepared: Prepared
    observed: Observed


def as_printed(command: str, nbest: NBest) -> Started:
    """Start the adaptation of a call of `adapt` as it is printed."""

    def start(*args: Any, **options: Any) -> Started:
        prepared = prepare(*args, **options)
        return Started(prepared, observe(prepared))

    result: Started = eval(command, {"bpa": SimpleNamespace(adapt=start), "lists": nbest})
    return result


MAY_JUDGE = "may be a judgement: it "


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1, 1, 1, 2, 2, 2], "is constant in each list"),
        (["a", "a", "a", "b", "b", "b"], "is constant in each list"),
        ([True, True, True, False, False, False], "is constant in each list"),
        ([1, 2, 3, 1, 2, 3], "counts the candidates of each list"),
        ([0.5, 0.25, 0.0, 1.5, 1.25, 1.0], "counts the candidates of each list"),
        ([7, 8, 9, 10, 11, 12], "numbers the rows"),
        ([10, 11, 13, 9, 12, 14], "numbers the rows"),
        (LM, "is equal to lm"),
        ([None] * 6, "has no values"),
        (np.full(6, np.nan), "has no values"),
        ([*range(5), None], f"{MAY_JUDGE}is missing for 1 of 6 candidates: give a value if it is"),
        ([1e70, 1, 2, 3, 5, 6], "has numbers that are not finite, or beyond 1e60"),
        ([True, False] * 3, f"{MAY_JUDGE}is true or false"),
        ([1, 0, 1, 0, 0, 0.5], f"{MAY_JUDGE}has no numbers but 0, 0.5 and 1: name it if it is a"),
        (list("ABCABC"), "has texts (3 different): make a feature of each (--categorical 'a b'; "),
        (list("ABCDEF"), "has texts (6 different)"),
        (list("AABABA"), "has texts (2 different)"),
        (
            ["5/5", "4/5", "3/5", "5/5", "4/5", "3/5"],
            "has judgements as texts, such as '5/5': write",
        ),
        (["yes", "No", "yes", "true", "no", "no"], "has judgements as texts, such as 'yes': write"),
        (["5 stars", "1 star"] * 3, "has judgements as texts, such as '5 stars': write"),
        ([*"ABCAB", None], "has texts (3 different)"),
        ([[1]] * 6, "has lists"),
        ([{"a": 1}] * 6, "has values of other types"),
    ],
)
def test_a_sentence_says_why_a_column_is_left_out(values: Any, reason: str) -> None:
    nbest = table(lm=LM, qe=QE, **{"a b": values}).with_references(["the cat", "hey"])
    found = bpa.describe(nbest)
    assert found.features == ("lm", "qe")
    (sentence,) = found.left_out
    assert sentence.startswith(f"a b {reason}")
    assert as_printed(found.command, nbest).prepared.lists.feature_names == ("lm", "qe")


def test_words_among_numbers_of_a_text_file_are_named() -> None:
    lines = ["id,text,lm,mqm", "0,a,-1,NA", "0,b,-2.5,1", "1,c,-3,2", "1,d,-1.5,"]
    described = bpa.describe(bpa.read_nbest(lines, format="csv"))
    assert described.left_out == (
        "mqm has texts among its numbers, such as 'NA': write numbers, and leave cells empty where "
        "there is none",
    )


TRUTH = [True, False, True, None, True, False]


@pytest.mark.parametrize(
    ("extras", "choices"),
    [
        ({"human": HUMAN}, ("lm", "qe", "human")),
        ({"ok": TRUTH, "human": HUMAN}, ("lm", "qe", "ok", "human")),
        ({"row": range(6), "year": [1, 1, 1, 2, 2, None]}, ("lm", "qe")),
        ({"better": [1, 0, 0, 0, 1, 0]}, ("lm", "qe", "better")),
    ],
)
def test_the_gain_is_not_guessed(extras: dict[str, Any], choices: tuple[str, ...]) -> None:
    nbest = table(lm=LM, qe=QE, **extras)
    found = bpa.describe(nbest)
    assert (found.gain, found.features, found.choices) == ("COLUMN", ("COLUMNS",), choices)
    assert found.command == "bpa.adapt(lists, features=['COLUMNS'], gain='COLUMN')"
    with pytest.raises(bpa.BpaError, match="COLUMN"):
        as_printed(found.command, nbest)
    gain = choices[-1]
    command = bpa.describe(nbest, gain).command
    adapted = as_printed(command, nbest)
    assert adapted.observed.record().gain == gain
    assert adapted.prepared.lists.feature_names == tuple(n for n in ("lm", "qe") if n != gain)


def test_what_was_chosen_is_kept() -> None:
    nbest = table(lm=LM, qe=QE, human=HUMAN, copy=LM).with_references(["the cat", "hey"])
    call = {gain: bpa.describe(nbest, gain).command for gain in (None, "-qe", "bleu")}
    assert call == {
        None: "bpa.adapt(lists, features=['lm', 'qe'])",
        "-qe": "bpa.adapt(lists, features=['lm'], gain='-qe')",
        "bleu": "bpa.adapt(lists, features=['lm', 'qe'], gain='bleu')",
    }
    found = bpa.describe(nbest, exclude="l*")
    assert found.features == ("qe", "copy")
    assert found.left_out[0] == "lm is excluded"
    assert bpa.describe(table(lm=QE, qe=QE), "qe").left_out == ("lm is equal to qe",)


def test_features_of_the_lists_are_taken() -> None:
    nbest = from_lists([["a", "b"]] * 2, [[[-2.0], [-1.0]], [[-1.0], [-3.0]]], ["lm"])
    nbest = nbest.with_extras(qe=[1, 3, 2, 5], ok=[True, False] * 2)
    found = bpa.describe(nbest)
    assert (found.command, found.choices) == ("bpa.adapt(lists, gain='COLUMN')", ("qe", "ok"))
    found = bpa.describe(nbest, "ok")
    assert (found.command, found.gain) == ("bpa.adapt(lists, gain='ok')", "ok")
    assert found.left_out == ("qe is not named as a feature",)


def test_lists_without_features_or_judgements() -> None:
    references = table().with_references(["the cat", "hey"])
    command = bpa.describe(references).command
    assert command == "bpa.adapt(lists, add=['consensus', 'length'])"
    assert as_printed(command, references).prepared.lists.feature_names
    human = table(human=[1, 3, 2, 5, 4, 4])
    found = bpa.describe(human)
    assert found.command == "bpa.adapt(lists, add=['consensus', 'length'], gain='COLUMN')"
    assert as_printed(found.command.replace("COLUMN", "human"), human).prepared.lists.feature_names
    for nothing in (table(), table(system=list("ABCABC"))):
        found = bpa.describe(nothing)
        assert found.command == ""
        assert "- adapt needs references, preferences, or a column" in str(found)
    assert bpa.describe(table(lm=LM), "bleu").warnings == ("the gain bleu needs references",)


def test_names_of_systems_are_categories_and_no_texts() -> None:
    nbest = from_lists([["A", "B"]] * 3, [[[]] * 2] * 3, [])
    nbest = nbest.with_extras(system=list("ABABAB"), score=[3, 2, 5, 1, 2, 4])
    assert bpa.describe(nbest).add == ()
    command = bpa.describe(nbest, "score").command
    assert command == "bpa.adapt(lists, categorical=['system'], gain='score')"
    assert as_printed(command, nbest).prepared.lists.feature_names
    for source in ("consensus", "length"):
        with raises(bpa.DataError, "mismatch", parameter="add"):
            bpa.add_features(nbest, source)


def test_several_judgements_of_one_candidate_are_named(caplog: pytest.LogCaptureFixture) -> None:
    columns = ["id,text,lm,kind,score", "0,house,-1,HUMAN,1", "0,house,-1,LLM,0.9"]
    rows = [*columns, "0,home,-2,HUMAN,0", "1,cat,-3,HUMAN,1", "1,dog,-2,LLM,0.2"]
    nbest = bpa.read_nbest(rows, format="csv", features="lm")
    (warning,) = (one for one in bpa.describe(nbest, "score").warnings if "rows with" in one)
    expected = "1 candidate in rows with different values of score, such as 'house' of list 0 (1 "
    assert warning.startswith(f"{expected}and 0.9), which also differ in kind: keep the rows of on")
    with pytest.warns(bpa.BpaWarning, match="rows with different values of score"):
        log_density(nbest, gain="score", prior="isotropic:scale=0.3")
    rows[2] = rows[1]  # a row that is repeated says nothing else
    assert not any(
        "rows with" in one for one in bpa.describe(bpa.read_nbest(rows), "score").warnings
    )


@pytest.mark.parametrize("gain", [None, "mark", "ok"])
def test_there_is_no_call_where_all_candidates_are_equally_good(gain: str | None) -> None:
    texts, ok = [["a", "a"], ["b", "b"], ["c"]], [True, True, False, False, True]
    nbest = from_lists(texts, [[[1.0], [2.0]], [[2.0], [1.0]], [[1.0]]], ["lm"])
    nbest = nbest.with_extras(mark=[1, None, 2, None, None], ok=ok).with_references([*"abc"])
    described = bpa.describe(nbest, gain)
    assert described.command == ""
    assert any("nothing can be learned" in one or "judge more" in one for one in described.warnings)
    with pytest.raises(bpa.DataError):
        log_density(nbest, gain=gain)


@pytest.mark.parametrize("seed", range(20))
def test_features_of_random_tables(seed: int) -> None:
    """They are what pandas finds: complete, different within a list, not repeated."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"id": np.sort([*range(4), *rng.integers(0, 4, 8)]), "text": list("abcdefghijkl")}
    )
    for place in range(6):
        column = rng.normal(size=12).round(int(rng.integers(0, 3)))
        column = [column, column[frame["id"].to_numpy()]][int(rng.integers(0, 2))]
        column[rng.random(12) < rng.choice([0, 0, 0.3])] = np.nan
        frame[f"f{place}"] = column
    frame["f6"] = frame["f0"]
    numbers = frame.drop(columns="text")
    varied = (numbers.groupby("id").std() > 1e-12).any()
    names = [name for name in varied.index if varied[name] and numbers[name].notna().all()]
    expected = list(numbers[names].T.drop_duplicates().index)
    nbest = bpa.from_records(frame, references=["x"] * 4)
    assert list(bpa.describe(nbest).features) == expected
