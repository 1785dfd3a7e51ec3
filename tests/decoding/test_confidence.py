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
from sacrebleu.metrics import BLEU, CHRF, TER

from bpa_ppl import NBest, Reranked, as_draws, rerank
from bpa_ppl.decoding.options import RerankOptions
from bpa_ppl.decoding.outputs import rerank_to

NAMES = ("LM0", "WP0")
WORDS = ("the", "a", "cat", "dog", "sat", "on", "mat")
DRAWS = 64
UNCHECKED = RerankOptions(unchecked=True)


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(14)
    sizes = [1, *rng.integers(2, 9, size=29)]
    texts = []
    for n in sizes:
        strings = [" ".join(rng.choice(WORDS, size=rng.integers(2, 8))) for _ in range(1 + n // 2)]
        texts.append([str(rng.choice(strings)) for _ in range(n)])
    return NBest.from_lists(texts, [rng.normal(-5, 2, size=(n, 2)) for n in sizes], NAMES)


@pytest.fixture(scope="module")
def weights() -> reference_model.Array:
    return np.random.default_rng(6).normal([-0.5, 0.4], 0.5, size=(1, DRAWS, 2))


@pytest.fixture(scope="module")
def posterior(weights: reference_model.Array) -> Any:
    return external_posterior(weights, NAMES)


def reference_expectations(
    lists: NBest, result: Reranked, s: int, p: reference_model.Array, gain: str
) -> Any:
    """Return p(better), p(worse), the edits of both and the length, one derivation at a time."""
    actual = np.zeros(5)
    for q, right in zip(p, lists.texts(s), strict=True):
        both = [result.texts[s], result.canonical_texts[s]]
        scored = [TER().sentence_score(text, [right]) for text in both]
        edits, lengths = (
            np.array([getattr(score, name) for score in scored], float)
            for name in ("num_edits", "ref_length")
        )
        scores = -edits
        if gain == "chrf":
            scores = np.array([CHRF().sentence_score(t, [right]).score for t in both])
        actual += q * np.array([scores[0] > scores[1], scores[0] < scores[1], *edits, lengths[0]])
    return actual


@pytest.mark.parametrize("metric", ["chrf", "bleu", "mqm"])
def test_better_is_by_the_criterion_of_the_posterior(
    lists: NBest, weights: reference_model.Array, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column has no value of one candidate with another as the reference: chrF stands for it."""

    def no_edits(*arguments: object) -> None:
        raise AssertionError("no word edits are needed")

    monkeypatch.setattr("bpa_ppl.decoding.confidence.Edited", no_edits)
    attrs: dict[str, Any] = {"oracle_metric": metric}
    if metric == "mqm":
        attrs |= {"gain_column": {"column": "mqm", "negative": False}}
    posterior = replace(as_draws(external_posterior(weights, NAMES)), attrs=attrs)
    result = rerank(lists, posterior, unchecked=True, confidence=True)
    assert result.confidence is not None
    scorer: Any = BLEU(effective_order=True) if metric == "bleu" else CHRF()
    for s, p in enumerate(reference_model.predictive(lists, weights[0])):
        new, old = (
            np.array([scorer.sentence_score(text, [right]).score for right in lists.texts(s)])
            for text in (result.texts[s], result.canonical_texts[s])
        )
        assert result.confidence.better[s] == pytest.approx(p @ (new > old + 1e-9), abs=2e-5)
        assert result.confidence.worse[s] == pytest.approx(p @ (new < old - 1e-9), abs=2e-5)


@pytest.mark.parametrize("rule", ["predictive", "chrf"])
def test_expectations_agree_with_loops(
    lists: NBest, weights: reference_model.Array, posterior: Any, rule: str
) -> None:
    from bpa_ppl.decoding.rules import Mbr

    chosen: Any = Mbr(gain="chrf") if rule == "chrf" else rule
    result = rerank(lists, posterior, rule=chosen, unchecked=True, confidence=True)
    actual = result.confidence
    assert actual is not None
    predicted = reference_model.predictive(lists, weights[0])
    expectations = [
        reference_expectations(lists, result, s, p, rule) for s, p in enumerate(predicted)
    ]
    table = np.array(expectations).T
    ours = actual.better, actual.worse, actual.score, actual.canonical_score
    table = [*table[:2], *(100 * edits / table[4] for edits in table[2:4])]
    for actual_values, expected_values in zip(ours, table, strict=True):
        np.testing.assert_allclose(actual_values, expected_values, rtol=1e-4, atol=2e-5)
    assert np.all(actual.better[~result.changed] == 0)
    assert actual.better.max() > 0.5


@pytest.mark.parametrize("metric", ["ter", "bleu", "chrf", "mqm"])
def test_expected_scores_use_metric_of_posterior(
    lists: NBest, weights: reference_model.Array, metric: str, tmp_path: Path
) -> None:
    posterior = as_draws(external_posterior(weights, NAMES))
    posterior = posterior.with_attrs(oracle_metric=metric)
    paths = tmp_path / "out", tmp_path / "details.jsonl"
    rerank_to(lists, posterior, *paths, options=UNCHECKED)
    details = [json.loads(line) for line in paths[1].read_text().splitlines()]
    if metric == "mqm":
        assert not [name for one in details for name in one if "expected" in name]
        return
    scorer: Any = {"ter": TER(), "bleu": BLEU(effective_order=True), "chrf": CHRF()}[metric]
    for s, p in enumerate(reference_model.predictive(lists, weights[0])):
        for name, text in (("expected", "text"), ("canonical_expected", "canonical_text")):
            scores = [
                scorer.sentence_score(details[s][text], [right]).score for right in lists.texts(s)
            ]
            expected = p @ scores
            if metric == "ter":  # expected edits divided by the expected length
                lengths = [len(right.split()) for right in lists.texts(s)]
                expected = p @ (np.multiply(scores, lengths)) / (p @ lengths)
            assert details[s][f"{name}_{metric}"] == pytest.approx(expected, rel=1e-4, abs=1e-3)


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
        assert rows[s]["expected_mqm"] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert rows[1]["expected_mqm"] is None
    header, _, second, *_ = (line.split("\t") for line in table.read_text().splitlines())
    assert (header[-1], second[-1]) == ("expected_mqm", "")
    rerank_to(lists, posterior, tmp_path / "out", table, options=UNCHECKED)
    assert table.read_text().split("\n")[0].endswith("\tworse")
