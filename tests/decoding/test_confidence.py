"""Expected scores of choices, compared with loops."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_model
from external_posterior import external_posterior
from random_lists import NAMES, random_lists, random_sizes
from sacrebleu.metrics import BLEU, CHRF, TER

from bpa_ppl import NBest, as_draws, rerank
from bpa_ppl.decoding.options import RerankOptions
from bpa_ppl.decoding.outputs import rerank_to
from bpa_ppl.decoding.rules import Mbr

DRAWS = 64
UNCHECKED = RerankOptions(unchecked=True)


@pytest.fixture(scope="module")
def lists() -> NBest:
    return random_lists([1, *random_sizes(29, 9)], words=True, scale=1.0)


@pytest.fixture(scope="module")
def weights() -> reference_model.Array:
    return np.random.default_rng(6).normal([-0.5, 0.4, 0.1], 0.5, size=(1, DRAWS, 3))


SCORERS: dict[str, Any] = {"ter": TER(), "bleu": BLEU(effective_order=True), "chrf": CHRF()}


@pytest.mark.parametrize(
    ("metric", "gain"),
    [("ter", "ter"), ("ter", "chrf"), ("bleu", "bleu"), ("chrf", "chrf"), ("mqm", "chrf")],
)
def test_expectations_agree_with_sacrebleu(
    lists: NBest, weights: reference_model.Array, metric: str, gain: str
) -> None:
    """The gain is that of a rule that has one, else the criterion; chrF stands for a column."""
    rule = Mbr(gain="chrf") if (metric, gain) == ("ter", "chrf") else "predictive"
    posterior = as_draws(external_posterior(weights, NAMES)).with_attrs(oracle_metric=metric)
    if metric == "mqm":
        posterior = posterior.with_attrs(gain_column={"column": "mqm", "negative": False})
    result = rerank(lists, posterior, rule=rule, unchecked=True, confidence=True)
    found = result.confidence
    assert found is not None
    for s, p in enumerate(reference_model.predictive(lists, weights[0])):
        both, rights = (result.texts[s], result.canonical_texts[s]), lists.texts(s)
        scores = {
            name: np.array(
                [[SCORERS[name].sentence_score(t, [r]).score for r in rights] for t in both]
            )
            for name in {gain, metric} - {"mqm"}
        }
        new, old = -scores[gain] if gain == "ter" else scores[gain]
        assert found.better[s] == pytest.approx(p @ (new > old + 1e-9), abs=2e-5)
        assert found.worse[s] == pytest.approx(p @ (new < old - 1e-9), abs=2e-5)
        expected = found.score[s], found.canonical_score[s]
        if metric == "mqm":
            assert np.isnan(expected).all()
            continue
        # Expected edits divided by the expected length.
        share = p * [len(right.split()) for right in rights] if metric == "ter" else p
        means = scores[metric] @ share / share.sum()
        assert expected == pytest.approx(means, rel=1e-4, abs=2e-5)
    assert np.all(found.better[~result.changed] == 0)
    assert found.better.max() > 0.3


def test_expected_column_is_mean_over_judged_candidates(
    lists: NBest, weights: reference_model.Array, tmp_path: Path
) -> None:
    mqm = np.random.default_rng(4).normal(size=len(lists.features))
    mqm[::3] = np.nan
    mqm[lists.rows(1)] = np.nan
    attrs = {"oracle_metric": "mqm", "gain_column": {"column": "mqm", "negative": False}}
    posterior = replace(as_draws(external_posterior(weights, NAMES)), attrs=attrs)
    table, objects = tmp_path / "details", tmp_path / "details.jsonl"
    with_column = lists.with_extras(mqm=mqm)
    for details in (table, objects):
        rerank_to(with_column, posterior, tmp_path / "out", details, options=UNCHECKED)
    rows = [json.loads(line) for line in objects.read_text().splitlines()]
    for s, p in enumerate(reference_model.predictive(lists, weights[0])):
        values = mqm[lists.rows(s)]
        judged = np.isfinite(values)
        if not judged.any():
            assert rows[s]["expected_mqm"] is None
            continue
        expected = p[judged] @ values[judged] / p[judged].sum()
        assert rows[s]["text"] in lists.texts(s)
        assert rows[s]["expected_mqm"] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert rows[1]["expected_mqm"] is None
    header, _, second, *_ = (line.split("\t") for line in table.read_text().splitlines())
    assert (header[-1], second[-1]) == ("expected_mqm", "")
    rerank_to(lists, posterior, tmp_path / "out", table, options=UNCHECKED)
    assert table.read_text().split("\n")[0].endswith("\tworse")
