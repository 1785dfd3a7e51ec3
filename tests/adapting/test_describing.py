"""Descriptions of lists: counts against counting by hand, and one list for each warning."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import NBest, from_lists
from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.adapting.build import require_adaptation
from bpa_ppl.adapting.describe import Plan
from bpa_ppl.errors import UsageError
from bpa_ppl.extending import oracles


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


def plan_of(nbest: NBest, gain: str | None = None) -> Plan:
    plan = bpa.describe(nbest, gain).plan
    assert plan is not None
    return plan


def new_warnings(nbest: NBest) -> list[str]:
    """Return the warnings that the lists of all tests do not have."""
    usual = bpa.describe(lists()).warnings
    return [warning for warning in bpa.describe(nbest).warnings if warning not in usual]


def test_counts() -> None:
    known = lists(mqm=MQM, system=list("ABABAA")).with_sources(["u", "v", "w"])
    found = bpa.describe(known, "mqm")
    assert (found.sentences, found.candidates, found.sizes) == (3, 6, (1, 2.0, 3))
    assert (found.missing_ids, found.duplicates, found.sources, found.references) == (3, 1, 3, 0)
    assert found.texts == {"system": 2}
    assert found.empty == 0
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
    plan = plan_of(known, "mqm")
    assert plan[:5] == ("mqm", "pairs", "isotropic", "auto", "shared")
    assert (plan.start, plan.judged, plan.tied, plan.equal) == (("logprob",), 1, 0, 0)


def test_references_and_ties() -> None:
    known = lists().with_references([("the cat", "b"), (), ("y",)])
    found, plan = bpa.describe(known), plan_of(known)
    assert (found.references, found.among) == (2, 1)
    assert (plan.gain, plan.likelihood, plan.judged) == ("chrf", "margin", 2)
    assert (plan.tied, plan.equal) == (1, 0)  # "the cat" twice
    assert any("reference" in warning for warning in found.warnings)


def test_what_adapt_does_is_what_is_described() -> None:
    known = lists(mqm=[-5.0, None, 0.0, -1.0, -1.0, None])
    plan = plan_of(known, "mqm")
    record = require_adaptation(
        log_density(known, gain="mqm", prior="isotropic:variance=1.0")
    ).describe()
    assert (record.likelihood.name, record.prior.name) == (plan.likelihood, plan.prior)
    assert (record.observed.ties, plan.judged, plan.equal) == (plan.ties, 2, 1)


@pytest.mark.parametrize("kind", ["none", "canonical", "totals", "chosen"])
def test_default_gain(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    known = lists().with_references([("the cat", "b"), ("hey",), ("y",)])
    if kind == "totals":
        known = replace(known, totals=np.arange(6, dtype=np.float32))
    weights: Any = None if kind in ("none", "totals") else {"logprob": 0.5, "comet": 0.0}
    with caplog.at_level("INFO", logger="bpa_ppl"):
        gain = "bleu" if kind == "chosen" else None
        observed = require_adaptation(log_density(known, weights, gain=gain)).describe().observed
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
    assert plan_of(known).gain == ("ter" if kind == "totals" else "chrf")
    if kind == "none":  # oracles that were found before have a metric of their own
        found = oracles(known, "ter", ties="shared")
        assert require_adaptation(log_density(known, gain=found)).describe().observed.gain == "ter"


def test_preferences_and_nothing() -> None:
    plan = plan_of(lists().with_sentence_extras(preferences=[[[1, 0]], None, None]))
    assert (plan.gain, plan.likelihood) == (None, "preference")
    both = lists(mqm=[1.0, 2, 3, 4, 5, 6]).with_sentence_extras(preferences=[[[1, 0]], None, None])
    assert "the preferences are not used" in str(bpa.describe(both, "mqm"))
    assert "are not used" not in str(bpa.describe(both))
    for nothing in (lists(), lists(mqm=[1.0, 2, 3, 4, 5, 7])):
        assert bpa.describe(nothing).plan is None
    assert bpa.describe(lists(), "bleu").plan is None
    with raises(UsageError, "unknown-name", parameter="gain"):
        bpa.describe(lists(), "cometh")


def test_json_has_everything() -> None:
    found = bpa.describe(lists(mqm=np.full(6, np.nan)), "mqm")
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    expected = {"name": "mqm", "kind": "gain", "type": "number", "within": 0.0, "missing": 6}
    unknown = ("minimum", "median", "maximum", "different")
    assert plain["columns"][2] == expected | dict.fromkeys(unknown)
    values = {"logprob": -2.0, "comet": 4.0, "mqm": None}
    assert plain["examples"][0] == {"id": 0, "text": "a cat", "values": values}
    assert plain["proposal"]["command"] == ""
    plain = bpa.describe(lists(mqm=MQM), "mqm").as_dict()
    assert plain["proposal"]["command"] == "bpa.adapt(lists, gain='mqm')"


def test_examples_are_lines_of_the_first_list_with_several_candidates() -> None:
    texts = [["alone"], ["x\ny" * 100, "", "b", "c"]]
    nbest = from_lists(texts, [[[]], [[]] * 4], [])
    nbest = nbest.with_extras(ok=[True, None, False, True, True], spans=[[1]] * 5)
    described = bpa.describe(nbest)
    first, second, third = described.examples
    assert (first.id, second.text, third.text) == (1, "", "b")
    assert (first.text[:4], first.text[-1], len(first.text)) == ("x\\ny", "…", 60)
    assert first.values == {"ok": None, "spans": "[1]"}
    assert '- example: list 1: "b" (ok True, spans [1])' in str(described)


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
    assert ("x" in described.texts, "x" in described.lists) == (kind == "text", kind == "list")
    assert ("x" in described.verdicts) == (kind == "true/false")
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
    found = bpa.describe(nbest)
    assert found.empty == 2
    assert "2 candidates with an empty text" in str(found)
    assert "empty text" not in str(bpa.describe(lists()))


def test_there_is_no_plan_for_preferences_that_are_refused() -> None:
    described = bpa.describe(lists().with_sentence_extras(preferences=[[[0, 7]], None, None]))
    assert described.plan is None
    assert described.warnings[0].startswith("adapt refuses the preferences")
    assert "adapt: preferences" not in str(described)
