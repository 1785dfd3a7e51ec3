"""Statistics of draws: the figures of arviz-stats, and what is added to them.

Copies of chains are found, of continuous and of discrete draws, and only copies.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from arviz_stats.base import array_stats
from support.posteriors import autoregressive

from bpa_ppl.posterior.arviz_functions import import_arviz
from bpa_ppl.posterior.statistics import (
    TAILS,
    bfmi,
    ess,
    estimate_tail_shapes,
    find_copied_chains,
    mcse,
    r_hat,
    smooth_log_weights,
)


def test_each_component_has_the_figures_of_arviz() -> None:
    values = autoregressive(0.6, 4, 101, 6, seed=0).reshape(4, 101, 2, 3)
    for k in range(6):
        one = values[:, :, k // 3, k % 3]
        assert r_hat(values)[k // 3, k % 3] == array_stats.rhat(one)
        assert mcse(values)[k // 3, k % 3] == array_stats.mcse(one)
        for method in ("bulk", "tail", "mean"):
            options = {"prob": TAILS} if method == "tail" else {}
            expected = array_stats.ess(one, method=method, **options)
            assert ess(values, method)[k // 3, k % 3] == expected


@pytest.mark.parametrize(
    ("values", "size", "ratio"),
    [
        (np.full((2, 50), 0.3), 100, np.nan),
        (np.repeat([[0.0], [1.0]], 50, axis=1), None, np.inf),  # chains that do not move
        (np.where(np.arange(50) == 7, np.nan, 1.0)[None], np.nan, np.nan),
        (np.ones((2, 3)), np.nan, np.nan),
    ],
)
def test_draws_without_figures_raise_no_warning(
    values: np.ndarray, size: float | None, ratio: float
) -> None:
    assert r_hat(values) == pytest.approx(ratio, nan_ok=True)
    if size is not None:
        assert ess(values) == pytest.approx(size, nan_ok=True)


def test_a_single_chain_is_compared_with_itself() -> None:
    values = autoregressive(0.2, 1, 400, 1, seed=1)
    assert np.isnan(array_stats.rhat(values[..., 0]))
    assert r_hat(values)[0] == array_stats.rhat(values[..., 0].reshape(2, 200))
    values[0, 300:] += 3
    assert r_hat(values)[0] > 1.1


def test_bfmi_is_that_of_arviz() -> None:
    energy = np.cumsum(np.random.default_rng(0).normal(size=(3, 200)), axis=1)
    energy[1] = np.random.default_rng(1).normal(size=200)
    np.testing.assert_allclose(bfmi(energy), import_arviz().bfmi(energy), rtol=1e-10)
    assert np.isnan(bfmi(energy[:, :1])).all()


@pytest.mark.parametrize("count", [30, 226, 4000])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0])
def test_pareto_smoothing(count: int, scale: float) -> None:
    log_weight = scale * np.random.default_rng(count).normal(size=(2, count // 2))
    smoothed, k_hat = smooth_log_weights(log_weight)
    expected, expected_k = array_stats.psislw(-log_weight.reshape(-1))
    assert k_hat == expected_k
    np.testing.assert_array_equal(smoothed, expected.reshape(2, -1))


def test_no_tail_is_fitted_to_equal_few_and_zero_weights() -> None:
    for weights in (np.zeros(100), np.arange(24.0)):
        smoothed, k_hat = smooth_log_weights(weights)
        assert k_hat == np.inf
        assert len(smoothed) == len(weights)
    assert smooth_log_weights(np.full(100, -np.inf))[1] == np.inf
    log_weight = np.random.default_rng(0).normal(size=4000)
    expected = array_stats.psislw(-np.where(np.arange(4000) < 1000, log_weight, -np.inf))[1]
    assert smooth_log_weights(np.where(np.arange(4000) < 1000, log_weight, -np.inf))[1] == expected
    # 150 weights are fewer than the tail of 189 that k̂ describes; ArviZ calls it short.
    few = np.where(np.arange(4000) < 150, log_weight, -np.inf)
    assert array_stats.psislw(-few)[1] < 0.7
    assert smooth_log_weights(few)[1] == np.inf


def test_tails_of_draws_are_those_of_arviz_where_one_draw_is_far_away() -> None:
    rng = np.random.default_rng(0)
    normal, cauchy = rng.normal(size=(4, 500)), rng.standard_cauchy((4, 500))
    shapes = estimate_tail_shapes(
        np.stack([normal, cauchy, np.ones((4, 500))], axis=-1), np.ones(3)
    )
    assert shapes[[0, 2]].tolist() == [0, 0]
    assert shapes[1] == array_stats.pareto_khat(cauchy, r_eff=1.0, tail="both")


CHAINS, DRAWS = 4, 500
SHAPE = (CHAINS, DRAWS, 1)
Sample = Callable[[np.random.Generator], np.ndarray]


def with_repeats(values: np.ndarray, rng: np.random.Generator, accepted: float) -> np.ndarray:
    """Repeat the last draw where a proposal is rejected."""
    moves = rng.random(values.shape[:2]) < accepted
    last = np.maximum.accumulate(np.where(moves, np.arange(values.shape[1]), 0), axis=1)
    return np.take_along_axis(values, last[..., None], axis=1)


def with_returns(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return to the last draw but one in four of ten steps, as from one proposal of a pair."""
    values, back = values.copy(), rng.random(values.shape[:2]) < 0.4
    for step in range(2, values.shape[1]):
        values[:, step] = np.where(back[:, step, None], values[:, step - 2], values[:, step])
    return values


CONTINUOUS: dict[str, Sample] = {
    "normal": lambda rng: rng.normal(size=SHAPE),
    "50 weights": lambda rng: rng.normal(size=(CHAINS, DRAWS, 50)),
    "rejections": lambda rng: with_repeats(rng.normal(size=(CHAINS, DRAWS, 3)), rng, 0.2),
    "returns": lambda rng: with_returns(rng.normal(size=(CHAINS, DRAWS, 3)), rng),
    "two modes": lambda rng: rng.normal(size=SHAPE) + 10 * rng.choice([-1, 1], SHAPE),
    "spike and slab": lambda rng: rng.normal(size=SHAPE) * (rng.random(SHAPE) < 0.5),
    "narrow and wide": lambda rng: rng.normal(size=SHAPE) * rng.choice([1.0, 1e-4], SHAPE),
    "log-normal": lambda rng: np.exp(2 * rng.normal(size=SHAPE)),
}
DISCRETE: dict[str, Sample] = {
    "Poisson": lambda rng: rng.poisson(3.0, SHAPE).astype(float),
    "two counts": lambda rng: rng.poisson(2.0, (CHAINS, DRAWS, 2)).astype(float),
    "two decimals": lambda rng: rng.normal(size=SHAPE).round(2),
    "rejections of rounded values": lambda rng: with_repeats(
        rng.normal(size=SHAPE), rng, 0.3
    ).round(2),
    "0 or 1": lambda rng: rng.integers(0, 2, SHAPE).astype(float),
}
KINDS = CONTINUOUS | DISCRETE


@pytest.mark.parametrize("kind", KINDS)
def test_no_copies_are_found_where_there_are_none(kind: str) -> None:
    """The rates of 1000 runs are in benchmarks/bench_copies.py."""
    samples = (KINDS[kind](np.random.default_rng(seed)) for seed in range(30))
    assert not any(find_copied_chains(sample) for sample in samples)


@pytest.mark.parametrize("kind", KINDS)
def test_every_copy_is_found(kind: str) -> None:
    rng = np.random.default_rng(1)
    first, *between, last = KINDS[kind](rng)
    noise = 1e-6 * first.std(axis=0) * rng.normal(size=first.shape)
    copies = {
        "same": first,
        "reversed": first[::-1],
        "shifted": np.concatenate([first[DRAWS // 2 :], last[: DRAWS // 2]]),
        "single precision": first.astype(np.float32),
        "noise": first + noise,
        "reversed with noise": (first + noise)[::-1],
    }
    if kind in CONTINUOUS:
        copies |= {"thinned": first[::3], "in another order": rng.permutation(first)}
    for name, copy in copies.items():
        assert (0, 3) in find_copied_chains([first, *between, copy]), name
    twice = {"joined": np.concatenate([first[: DRAWS // 2]] * 2)}
    if kind in CONTINUOUS:
        twice["drawn again"] = first[rng.integers(DRAWS // 2, size=DRAWS)]
    for name, values in twice.items():
        assert (3, 3) in find_copied_chains([first, *between, values]), name


def test_chains_that_stay_at_one_value_are_no_copies() -> None:
    rarely = np.random.default_rng(0).random(SHAPE) < 0.01
    assert find_copied_chains(rarely.astype(float)) == []
    assert find_copied_chains(np.zeros(SHAPE)) == []
