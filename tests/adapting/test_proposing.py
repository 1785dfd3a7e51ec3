"""Proposals of `describe`: which columns they take, and that the calls run as they are printed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bpa_ppl as bpa
from bpa_ppl import NBest, from_lists
from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.adapting.build import Adaptation, require_adaptation
from bpa_ppl.densities.target import Target

LM, QE = [-2.0, -1.5, -3.0, -1.0, -2.5, -0.5], [0.5, 0.75, 0.25, 0.5, 0.125, 0.875]
HUMAN = [3.0, None, 1.0, 2.0, 5.0, 4.0]


def lists(**extras: Any) -> NBest:
    """Return two lists of three candidates without features."""
    texts = [["a cat", "the cat", "cat"], ["hi", "hey", "hello"]]
    return from_lists(texts, [[[]] * 3] * 2, []).with_extras(**extras)


def as_printed(command: str, nbest: NBest) -> Adaptation:
    """Return the adaptation of a call of `adapt` as it is printed."""
    scope = {"bpa": SimpleNamespace(adapt=log_density), "lists": nbest}
    target: Target = eval(command, scope)
    return require_adaptation(target)


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
        ([*range(5), None], "is missing for 1 of 6 candidates: it can be the gain, or a feature "),
        ([1e70, 1, 2, 3, 5, 6], "has numbers that are not finite, or beyond 1e60"),
        ([True, False] * 3, "is true or false: it can be the gain"),
        (list("ABCABC"), "has texts (3 different): --categorical 'a b' makes a feature of each"),
        (list("ABCDEF"), "has texts (6 different)"),
        ([*"ABCAB", None], "has texts (3 different)"),
        ([[1]] * 6, "has lists"),
        ([{"a": 1}] * 6, "has values of other types"),
    ],
)
def test_a_sentence_says_why_a_column_is_left_out(values: Any, reason: str) -> None:
    nbest = lists(lm=LM, qe=QE, **{"a b": values}).with_references(["the cat", "hey"])
    proposal = bpa.describe(nbest).proposal
    assert proposal.features == ("lm", "qe")
    (sentence,) = proposal.left_out
    assert sentence.startswith(f"a b {reason}")
    assert as_printed(proposal.command, nbest).prepared.lists.feature_names == ("lm", "qe")


@pytest.mark.parametrize(
    "values",
    [[1, 2, 3, 1, 3, 2], [1, 2, 3, 3, 4, 6], [0, 5, 1, 2, 3, 4], LM[::-1], [0, 0, 1, 0, 0, 0]],
)
def test_other_columns_are_features(values: list[float]) -> None:
    nbest = lists(lm=LM, x=values).with_references(["the cat", "hey"])
    assert bpa.describe(nbest).proposal.features == ("lm", "x")


def test_two_steps_may_be_equal_by_chance() -> None:
    nbest = from_lists([["a", "b"]] * 2, [[[]] * 2] * 2, [], references=["a", "b"])
    assert bpa.describe(nbest.with_extras(x=[1, 2, 1, 2])).proposal.features == ("x",)


def test_words_among_numbers_of_a_text_file_are_named() -> None:
    lines = ["id,text,lm,mqm", "0,a,-1,NA", "0,b,-2.5,1", "1,c,-3,2", "1,d,-1.5,"]
    described = bpa.describe(bpa.read_nbest(lines, format="csv"))
    assert described.proposal.left_out == (
        "mqm has texts among its numbers, such as 'NA': write numbers, and leave cells empty where "
        "there is none",
    )
    assert described.texts == {"mqm": 3}


TRUTH = [True, False, True, None, True, False]


@pytest.mark.parametrize(
    ("extras", "gain", "features", "gains"),
    [
        ({"human": HUMAN}, "human", ("lm", "qe"), ("human", "lm", "qe")),
        ({"ok": TRUTH}, "ok", ("lm", "qe"), ("ok", "lm", "qe")),
        ({"ok": TRUTH, "human": HUMAN}, "COLUMN", ("lm", "qe"), ("ok", "human", "lm", "qe")),
        ({}, "COLUMN", ("lm", "qe"), ("lm", "qe")),
        ({"rank": [1, 2, 3] * 2}, "COLUMN", ("lm", "qe"), ("lm", "qe", "rank")),
        ({"row": range(6), "year": [1, 1, 1, 2, 2, None]}, "COLUMN", ("lm", "qe"), ("lm", "qe")),
        ({"ter": HUMAN}, "column:column=ter", ("lm", "qe"), ("ter", "lm", "qe")),
    ],
)
def test_the_gain(
    extras: dict[str, Any], gain: str, features: tuple[str, ...], gains: tuple[str, ...]
) -> None:
    nbest = lists(lm=LM, qe=QE, **extras)
    described = bpa.describe(nbest)
    proposal = described.proposal
    assert (proposal.gain, proposal.features, described.gains) == (gain, features, gains)
    if gain != "COLUMN":
        assert described.plan is not None
        adapted = as_printed(proposal.command, nbest)
        assert adapted.describe().observed.gain == described.plan.gain == gain.rpartition("=")[2]
        return
    assert described.plan is None
    assert proposal.note.startswith("replace COLUMN by the column that says how good a candidate")
    assert proposal.note.endswith(f"such as {', '.join(gains)}")
    for name in gains:
        adapted = as_printed(proposal.command.replace("COLUMN", name), nbest)
        assert adapted.prepared.lists.feature_names == tuple(one for one in features if one != name)


def test_what_was_chosen_is_kept() -> None:
    nbest = lists(lm=LM, qe=QE, human=HUMAN, copy=LM).with_references(["the cat", "hey"])
    call = {gain: bpa.describe(nbest, gain).proposal.command for gain in (None, "-qe", "bleu")}
    assert call == {
        None: "bpa.adapt(lists, features=['lm', 'qe'])",
        "-qe": "bpa.adapt(lists, features=['lm'], gain='-qe')",
        "bleu": "bpa.adapt(lists, features=['lm', 'qe'], gain='bleu')",
    }
    proposal = bpa.describe(nbest, exclude="l*").proposal
    assert proposal.features == ("qe", "copy")
    assert proposal.left_out[0] == "lm is excluded"
    assert bpa.describe(lists(lm=QE, qe=QE), "qe").proposal.left_out == ("lm is equal to qe",)


def test_features_of_the_lists_are_taken() -> None:
    nbest = from_lists([["a", "b"]] * 2, [[[-2.0], [-1.0]], [[-1.0], [-3.0]]], ["lm"])
    proposal = bpa.describe(nbest.with_extras(qe=[1, 3, 2, 5], ok=[True, False] * 2)).proposal
    assert (proposal.command, proposal.gain) == ("bpa.adapt(lists, gain='ok')", "ok")
    assert proposal.left_out == ("qe is not named as a feature",)


def test_lists_without_features_or_judgements() -> None:
    references = lists().with_references(["the cat", "hey"])
    command = bpa.describe(references).proposal.command
    assert command == "bpa.adapt(lists, add=['consensus', 'length'])"
    assert as_printed(command, references).prepared.lists.feature_names
    human = lists(human=[1, 3, 2, 5, 4, 4])
    command = bpa.describe(human).proposal.command
    assert command == "bpa.adapt(lists, add=['consensus', 'length'], gain='COLUMN')"
    assert as_printed(command.replace("COLUMN", "human"), human).prepared.lists.feature_names
    for nothing in (lists(), lists(system=list("ABCABC"))):
        proposal = bpa.describe(nothing).proposal
        assert proposal.command == ""
        assert proposal.note.startswith("adapt needs references, preferences, or a column")
    assert bpa.describe(lists(lm=LM), "bleu").proposal.note == "the gain 'bleu' needs references"


@pytest.mark.parametrize("gain", [None, "mark", "ok"])
def test_nothing_is_proposed_where_all_candidates_are_equally_good(gain: str | None) -> None:
    texts, ok = [["a", "a"], ["b", "b"], ["c"]], [True, True, False, False, True]
    nbest = from_lists(texts, [[[1.0], [2.0]], [[2.0], [1.0]], [[1.0]]], ["lm"])
    nbest = nbest.with_extras(mark=[1, None, 2, None, None], ok=ok).with_references([*"abc"])
    described = bpa.describe(nbest, gain)
    assert described.proposal.command == ""
    assert any("nothing can be learned" in one or "judge more" in one for one in described.warnings)
    with pytest.raises(bpa.DataError):
        log_density(nbest, gain=gain)


@pytest.mark.parametrize("seed", range(20))
def test_random_tables(seed: int) -> None:
    """What is proposed is what pandas finds: complete, different within a list, not repeated."""
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
    assert list(bpa.describe(nbest).proposal.features) == expected
