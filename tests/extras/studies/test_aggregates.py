"""Points, intervals and differences, compared with NumPy and theory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bpa_ppl.extras.studies.results import Row, aggregate, make_result_schema, make_row
from bpa_ppl.extras.studies.study import Cell

Rows = tuple[list[Row], list[Row]]
DRAWS, SENTENCES, WORDS = 6, 200, 10


def edits(rng: np.random.Generator, draw_effect: float, rate: float = 0.5) -> np.ndarray:
    """Counts of TER (draws, sentences, 2), with different error rates of the draws."""
    rates = np.clip(rate + draw_effect * rng.normal(size=(DRAWS, 1)), 0, 1)
    result = rng.binomial(WORDS, np.broadcast_to(rates, (DRAWS, SENTENCES)))
    return np.stack([result, np.full_like(result, WORDS)], axis=-1).astype(np.float64)


def results_of(counts: dict[str, np.ndarray]) -> pa.Table:
    bleu = np.tile([3.0, 2, 1, 1, 4, 3, 2, 1, 4], (SENTENCES, 1))
    rows = [
        make_row(Cell("d", 10, draw, method, ""), {"ter": each, "bleu": bleu}, "", [])
        for draw in range(DRAWS)
        for method, each in ((method, table[draw]) for method, table in counts.items())
    ]
    return pa.Table.from_pylist(rows, make_result_schema(["ter", "bleu"]))


@pytest.fixture(scope="module")
def counts() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    steady = edits(rng, 0.0)
    # One word in two hundred is better, in the same sentences: a small but consistent effect.
    better = steady.copy()
    better[:, ::20, 0] = np.maximum(better[:, ::20, 0] - 1, 0)
    return {"steady": steady, "same": steady.copy(), "better": better, "wild": edits(rng, 0.1)}


@pytest.fixture(scope="module")
def aggregates(counts: dict[str, np.ndarray]) -> Rows:
    return aggregate(results_of(counts))


def test_points_and_the_variance_of_sentences_and_samples(
    aggregates: Rows, counts: dict[str, np.ndarray]
) -> None:
    points = {p["method"]: p for p in aggregates[0] if p["metric"] == "ter"}
    assert set(points) == set(counts)
    for method, point in points.items():
        rates = 100 * counts[method][..., 0] / WORDS
        values = rates.mean(axis=1)
        assert point["mean"] == pytest.approx(values.mean())
        assert point["interval"] == pytest.approx(2 * np.std(values, ddof=1))
        assert point["low"] < point["mean"] < point["high"]
        assert (point["draws"], np.isnan(point["passed"])) == (DRAWS, True)
        # The relative error of a bootstrap standard error with 10 000 samples is 1/141.
        by_sentences = rates.mean(axis=0).std() / np.sqrt(SENTENCES)
        assert point["sentence_error"] == pytest.approx(by_sentences, rel=0.05)
        assert point["draw_error"] == pytest.approx(values.std() / np.sqrt(DRAWS), rel=0.05)
    assert points["wild"]["draw_error"] > 5 * points["steady"]["draw_error"]


def test_paired_differences(aggregates: Rows) -> None:
    ter = {(d["first"], d["second"]): d for d in aggregates[1] if d["metric"] == "ter"}
    assert len(ter) == 6
    same, better = ter["steady", "same"], ter["steady", "better"]
    assert tuple(same[name] for name in ("difference", "p_value", "adjusted")) == (0, 1, 1)
    assert better["adjusted"] < 0.01
    assert 0 < better["low"] < better["difference"] < better["high"]
    # An effect of this size is not significant if the draws of A differ much.
    wild = ter["better", "wild"]
    assert wild["high"] - wild["low"] > 10 * (better["high"] - better["low"])


@pytest.mark.slow
def test_p_values_are_uniform_without_a_difference() -> None:
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(100):
        first, second = (edits(rng, 0.03) for _ in range(2))
        _, pairs = aggregate(results_of({"first": first, "second": second}), samples=99)
        p_values += [d["p_value"] for d in pairs if d["metric"] == "ter"]
    # A bootstrap over six draws is slightly overconfident: 5 % become at most 13 %.
    assert 0.01 <= np.mean(np.array(p_values) <= 0.05) <= 0.2
