"""OracleChoice: sampling frequencies, padding and equal rows; and the fast power of two."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import reference_model
from scipy.stats import chisquare

from bpa_ppl import NBest
from bpa_ppl.models import Lists, OracleChoice, tabulate
from bpa_ppl.models.lists import in_order
from bpa_ppl.weights import match

WEIGHTS = np.array([0.4, -0.7])
SIZES = (4, 1, 6, 2, 40)
ORACLE = (3, 0, 1, 0, 17)
DRAWS = 20_000


@jax.jit
def log_prob(table: Lists, weights: jax.Array, rows: jax.Array) -> jax.Array:
    return OracleChoice(table, weights).log_prob(rows)


@pytest.fixture
def lists() -> NBest:
    rng = np.random.default_rng(2)
    texts = [[str(i) for i in range(n)] for n in SIZES]
    return NBest.from_lists(texts, [rng.normal(size=(n, 2)) for n in SIZES], ["LM0", "WP0"])


def tabulated(lists: NBest, oracle: tuple[int, ...]) -> tuple[Lists, np.ndarray]:
    data = tabulate(lists, match({"LM0": 0.1, "WP0": 0.2}, lists), oracle)
    return data, in_order(data)


@pytest.mark.slow
def test_samples_have_model_frequencies(lists: NBest) -> None:
    data, order = tabulated(lists, ORACLE)
    distribution = OracleChoice(data, jax.numpy.asarray(WEIGHTS))
    samples = np.asarray(distribution.sample(jax.random.key(0), (DRAWS,)))[:, order]
    assert samples.shape == (DRAWS, len(SIZES))
    assert set(samples[:, 1]) == {0}  # of a single hypothesis
    for sentence in np.flatnonzero(lists.sizes > 1).tolist():
        p = np.exp(reference_model.log_choice(lists.features[lists.rows(sentence)], WEIGHTS))
        counts = np.bincount(samples[:, sentence], minlength=len(p))
        assert len(counts) == len(p), "a padded row was drawn"
        # Row 0 of the table is the oracle; the others are matched by their probabilities.
        oracle = ORACLE[sentence]
        expected = np.append(p[oracle], np.sort(np.delete(p, oracle)))
        observed = np.append(counts[0], np.sort(counts[1:]))
        assert chisquare(observed, DRAWS * expected / expected.sum()).pvalue > 1e-4


def test_padding_sentences_have_zero_log_probability(lists: NBest) -> None:
    many = lists.select(np.arange(33) % len(SIZES))
    data, order = tabulated(many, tuple(ORACLE[s % len(SIZES)] for s in range(33)))
    log_p = np.asarray(log_prob(data, WEIGHTS, data.oracle))
    np.testing.assert_array_equal(np.delete(log_p, order), 0.0)
    assert len(order) == 33


def test_rows_have_the_probabilities_of_their_hypotheses() -> None:
    """Also those of other rows than the oracle, with a fixed feature and equal hypotheses."""
    rng = np.random.default_rng(3)
    features = [rng.normal(size=(n, 2)) for n in SIZES]
    for table in features:
        table[1::3] = table[0]
    texts = [[str(i) for i in range(n)] for n in SIZES]
    pool = NBest.from_lists(texts, features, ["LM0", "WP0"])
    matched = match({"LM0": 0.1, "WP0": 0.7}, pool, fixed=["WP0"])
    data = tabulate(pool, matched, ORACLE)
    order, rows = in_order(data), np.arange(max(SIZES))
    of_rows = jax.vmap(log_prob, in_axes=(None, None, 0))
    log_p = np.asarray(of_rows(data, np.array([0.4]), np.tile(rows[:, None], len(data.oracle))))
    hypotheses = [
        bucket["hypothesis"].reshape(-1, bucket["base"].shape[-1]) for bucket in data.buckets
    ]
    places = [row for bucket in hypotheses for row in bucket]
    for sentence, place in enumerate(order):
        table = pool.features[pool.rows(sentence)]
        p = np.exp(reference_model.log_choice(table, [0.4, 0.7]))
        represented = places[place][places[place] >= 0]
        others = np.arange(len(p)) != ORACLE[sentence]
        expected = [
            p[h] if row == 0 else p[others & (table == table[h]).all(axis=1)].sum()
            for row, h in enumerate(represented)
        ]
        assert sum(expected) == pytest.approx(1.0)
        result = np.exp(log_p[: len(expected), place])
        np.testing.assert_allclose(result, expected, rtol=1e-5)
