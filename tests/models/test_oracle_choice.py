"""OracleChoice: the frequencies of its draws, and what padding and equal rows may not do."""

from __future__ import annotations

import jax
import numpy as np
import plain
import pytest
from scipy.stats import chisquare

from bpa_ppl import NBest
from bpa_ppl.models import OracleChoice, in_order, tabulate
from bpa_ppl.weights import match

WEIGHTS = np.array([0.4, -0.7])
SIZES = (4, 1, 6, 2, 40)
ORACLE = (3, 0, 1, 0, 17)
DRAWS = 20_000


@pytest.fixture
def lists() -> NBest:
    rng = np.random.default_rng(2)
    texts = [[str(i) for i in range(n)] for n in SIZES]
    return NBest.from_lists(texts, [rng.normal(size=(n, 2)) for n in SIZES], ["LM0", "WP0"])


def tabulated(lists: NBest, oracle: tuple[int, ...]) -> tuple[OracleChoice, np.ndarray]:
    data = tabulate(lists, match({"LM0": 0.1, "WP0": 0.2}, lists), oracle)
    return OracleChoice(data, jax.numpy.asarray(WEIGHTS)), in_order(data)


@pytest.mark.slow
def test_draws_have_the_frequencies_of_the_model(lists: NBest) -> None:
    distribution, order = tabulated(lists, ORACLE)
    drawn = np.asarray(distribution.sample(jax.random.key(0), (DRAWS,)))[:, order]
    assert drawn.shape == (DRAWS, len(SIZES))
    for sentence in np.flatnonzero(lists.sizes > 1).tolist():
        p = np.exp(plain.log_choice(lists.features[lists.rows(sentence)], WEIGHTS))
        counts = np.bincount(drawn[:, sentence], minlength=len(p))
        assert len(counts) == len(p), "a padded row was drawn"
        # Row 0 of the table is the oracle; the others are told apart by how likely they are.
        oracle = ORACLE[sentence]
        expected = np.append(p[oracle], np.sort(np.delete(p, oracle)))
        observed = np.append(counts[0], np.sort(counts[1:]))
        assert chisquare(observed, DRAWS * expected / expected.sum()).pvalue > 1e-4


def test_a_list_of_one_has_no_choice(lists: NBest) -> None:
    distribution, order = tabulated(lists, ORACLE)
    drawn = np.asarray(distribution.sample(jax.random.key(1), (100,)))[:, order]
    assert set(drawn[:, 1]) == {0}


def test_a_list_has_the_same_density_alone_as_beside_longer_ones(lists: NBest) -> None:
    distribution, order = tabulated(lists, ORACLE)
    together = np.asarray(distribution.log_prob(distribution.lists.oracle))[order]
    for sentence, oracle in enumerate(ORACLE):
        alone, first = tabulated(lists.select([sentence]), (oracle,))
        log_p = np.asarray(alone.log_prob(alone.lists.oracle))[first]
        np.testing.assert_allclose(log_p, together[sentence], rtol=1e-6, atol=1e-6)


def test_rows_of_no_sentence_weigh_nothing(lists: NBest) -> None:
    many = lists.select(np.arange(33) % len(SIZES))
    distribution, order = tabulated(many, tuple(ORACLE[s % len(SIZES)] for s in range(33)))
    log_p = np.asarray(distribution.log_prob(distribution.lists.oracle))
    np.testing.assert_array_equal(np.delete(log_p, order), 0.0)
    assert len(order) == 33


def test_the_oracle_is_one_of_its_equals() -> None:
    pool = NBest.from_lists([["a", "a", "b"]], [[[1.0], [1.0], [0.0]]], ["LM0"])
    data = tabulate(pool, match({"LM0": 0.0}, pool), [1])
    distribution = OracleChoice(data, jax.numpy.array([0.7]))
    log_p = np.asarray(distribution.log_prob(data.oracle))[in_order(data)]
    np.testing.assert_allclose(np.exp(log_p), np.exp(0.7) / (2 * np.exp(0.7) + 1), rtol=1e-6)
