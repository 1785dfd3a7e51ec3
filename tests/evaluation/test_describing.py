"""Descriptions of lists: counts against counting by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import NBest, UsageError, from_lists
from bpa_ppl.extending import observe, oracles, prepare


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


def test_counts() -> None:
    known = lists(mqm=MQM, system=list("ABABAA")).with_sources(["u", "v", "w"])
    found = bpa.describe(known, "mqm")
    assert (found.sentences, found.candidates, found.sizes) == (3, 6, (1, 2.0, 3))
    assert found.facts[2:] == (
        *("sources for 3 of 3 lists", "a reference for 0 of 3 lists", "1 list of one candidate"),
        "3 ids between the first and the last without a list",
        "1 candidate with the text of another of the list",
        'list 0: "the cat" (mqm 0) is better than "a cat" (mqm -5)',
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


def test_references_and_ties() -> None:
    known = lists().with_references([("the cat", "b"), (), ("y",)])
    found = bpa.describe(known, "chrf")
    assert "a reference for 2 of 3 lists, which is a candidate in 1" in found.facts
    known = "chrf is known in 2 of 3 lists: several candidates are the best in 1 of them"
    assert found.facts[-1].startswith(known)  # "the cat" twice


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
    if kind == "none":  # oracles that were found before have a metric of their own
        found = oracles(known, "ter", ties="shared")
        assert observe(prepare(known, gain=found)).record().gain == "ter"


def test_a_gain_that_there_is_not_is_refused() -> None:
    with raises(UsageError, "unknown-name", parameter="gain"):
        bpa.describe(lists(), "cometh")
    assert bpa.describe(lists(mqm=[None] * 6), "mqm").facts[-1] == "mqm is known in 0 of 3 lists"


def test_json_has_everything() -> None:
    found = bpa.describe(lists(mqm=np.full(6, np.nan)), "mqm")
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    expected = {"name": "mqm", "kind": "gain", "type": "number", "within": 0.0, "missing": 6}
    unknown = ("minimum", "median", "maximum", "different")
    assert plain["columns"][2] == expected | dict.fromkeys(unknown)
    assert plain["facts"][0] == 'example: list 0: "a cat" (logprob -2, comet 4)'


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


def test_empty_candidates_are_counted() -> None:
    """Marian and recognisers print candidates without words; they are candidates as others."""
    lines = ["0 |||  ||| F0= -1 ||| -1", "0 ||| a ||| F0= -2 ||| -2", "1 |||  ||| F0= -3 ||| -3"]
    nbest = bpa.read_nbest(lines)
    assert (nbest.texts(0), nbest.texts(1)) == (["", "a"], [""])
    assert "2 candidates with an empty text" in bpa.describe(nbest).facts
    assert "empty text" not in str(bpa.describe(lists()))
