"""Chains that depend on each other are found, and independent ones are not: rates by simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.posteriors import autoregressive

import bpa_ppl as bpa
from bpa_ppl.diagnostics.check.independence import find_common_draws, find_dependence

CHAINS, DRAWS = 4, 1000
Sample = Callable[[int], np.ndarray]


def problem(values: np.ndarray) -> str:
    """Return what is found in chains (C, D, K); empty if nothing is."""
    found = find_dependence(values, [f"x{k}" for k in range(values.shape[-1])])
    return "" if found is None else found.problem


def autocorrelated(correlation: float, chains: int = CHAINS, draws: int = DRAWS, size: int = 1):
    return lambda seed: autoregressive(correlation, chains, draws, size, seed)


def walk(one_key: bool, size: int = 2) -> Sample:
    """Random-walk Metropolis of a normal distribution, three moves for each draw."""

    def sample(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        x, kept = rng.normal(size=(CHAINS, size)), np.empty((DRAWS, CHAINS, size))
        for t in range(3 * DRAWS):
            shape = 1 if one_key else CHAINS
            proposed = x + 2.4 / np.sqrt(size) * rng.normal(size=(shape, size))
            ratio = ((x**2 - proposed**2).sum(axis=1)) / 2
            accepted = np.log(rng.random(shape)) < ratio
            x = np.where(accepted[:, None], proposed, x)
            kept[t // 3] = x
        return kept.swapaxes(0, 1)

    return sample


def stretch(walkers: int, size: int = 2, draws: int = DRAWS) -> Sample:
    """The stretch move of emcee: each half of the walkers moves towards the other (a = 2)."""

    def sample(seed: int) -> np.ndarray:
        rng, half = np.random.default_rng(seed), walkers // 2
        x, kept = rng.normal(size=(walkers, size)), np.empty((draws, walkers, size))
        for t in range(-100, draws):
            for moving in (slice(0, half), slice(half, walkers)):
                rest = np.delete(x, moving, axis=0)[rng.integers(half, size=half)]
                z = (rng.random(half) + 1) ** 2 / 2
                proposed = rest + z[:, None] * (x[moving] - rest)
                ratio = (x[moving] ** 2 - proposed**2).sum(axis=1) / 2
                accepted = np.log(rng.random(half)) < (size - 1) * np.log(z) + ratio
                x[moving] = np.where(accepted[:, None], proposed, x[moving])
            kept[t] = x
        return kept.swapaxes(0, 1)

    return sample


def antithetic(seed: int) -> np.ndarray:
    """Draws in pairs x, −x, of which a proposal in five is rejected."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(CHAINS, DRAWS // 2, 2))
    pairs = np.stack([first, -first], axis=2).reshape(CHAINS, DRAWS, 2)
    moves = rng.random((CHAINS, DRAWS)) < 0.8
    last = np.maximum.accumulate(np.where(moves, np.arange(DRAWS), 0), axis=1)
    return np.take_along_axis(pairs, last[..., None], axis=1)


def from_afar(seed: int) -> np.ndarray:
    return (
        autoregressive(0.5, CHAINS, DRAWS, 2, seed) + 4 * np.exp(-np.arange(DRAWS) / 100)[:, None]
    )


RIGHT: dict[str, Sample] = {
    **{
        f"AR({correlation}), {size}": autocorrelated(correlation, size=size)
        for correlation in (-0.9, -0.5, 0.0, 0.5, 0.9, 0.97, 0.999)
        for size in (1, 10)
    },
    "100 draws": autocorrelated(0.5, draws=100, size=2),
    "2 chains": autocorrelated(0.5, chains=2),
    "50 chains of 100": autocorrelated(0.5, 50, 100),
    "t with 2 degrees": lambda seed: np.random.default_rng(seed).standard_t(2, (4, DRAWS, 2)),
    "walks without end": lambda seed: (
        np.random.default_rng(seed).normal(size=(4, DRAWS, 2)).cumsum(1)
    ),
    "0 or 1": lambda seed: (autoregressive(0.9, 4, DRAWS, 2, seed) > 1).astype(float),
    "rarely 1": lambda seed: (np.random.default_rng(seed).random((4, DRAWS, 2)) < 0.01) * 1.0,
    "Poisson": lambda seed: np.random.default_rng(seed).poisson(1.0, (4, DRAWS, 2)).astype(float),
    "rounded": lambda seed: autoregressive(0.5, 4, DRAWS, 2, seed).round(2),
    "antithetic pairs": antithetic,
    "slow and antithetic": lambda seed: (
        autoregressive(0.7, 4, DRAWS, 2, seed) + 1.5 * autoregressive(-0.6, 4, DRAWS, 2, seed + 999)
    ),
    "2 chains, slow and antithetic": lambda seed: (
        autoregressive(0.7, 2, DRAWS, 2, seed) + 1.5 * autoregressive(-0.6, 2, DRAWS, 2, seed + 999)
    ),
    "random walks": walk(one_key=False),
    "from one start": from_afar,
}
WALKERS = {
    f"{walkers} walkers, {size}": stretch(walkers, size)
    for walkers, size in ((16, 1), (16, 5), (32, 2))
}


@pytest.mark.parametrize("name", RIGHT)
def test_independent_chains_are_let_be(name: str) -> None:
    assert not any(problem(RIGHT[name](seed)) for seed in range(2))


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_false_alarms_are_as_rare_as_stated(name: str) -> None:
    """Of 200 runs at two levels of 1/1000 more than 4 are one in 40,000."""
    assert sum(bool(problem(RIGHT[name](seed))) for seed in range(200)) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", WALKERS)
def test_walkers_of_emcee_are_independent_at_the_same_iteration(name: str) -> None:
    assert not any(problem(WALKERS[name](seed)) for seed in range(20))


def copies(correlation: float, noise: float, all_chains: bool) -> Sample:
    def sample(seed: int) -> np.ndarray:
        values = autoregressive(correlation, CHAINS, DRAWS, 2, seed)
        values = values[[0, 0, 0, 0] if all_chains else [0, 1, 2, 0]]
        return values + noise * np.random.default_rng(seed).normal(size=values.shape)

    return sample


COPIED = {
    f"AR({correlation}), noise {noise}, {'all' if every else 'one'}": copies(
        correlation, noise, every
    )
    for correlation in (0.0, 0.5, 0.9, 0.97)
    for noise in (0.0, 0.05, 0.5)
    for every in (True, False)
}


@pytest.mark.parametrize("name", [*COPIED][::3])
def test_copies_are_found(name: str) -> None:
    found = problem(COPIED[name](0))
    assert found.startswith("all chains" if "all" in name else "chains 0 and 3")
    assert "keep each run once" in found


@pytest.mark.slow
@pytest.mark.parametrize("name", COPIED)
def test_copies_are_always_found(name: str) -> None:
    assert all(problem(COPIED[name](seed)) for seed in range(50))


@pytest.mark.parametrize("size", [1, 10])
def test_chains_of_one_random_key_are_found(size: int) -> None:
    for seed in range(3):
        found = problem(walk(one_key=True, size=size)(seed))
        assert found.startswith("all chains")
        assert "have the same random key" in found


def test_copies_that_begin_elsewhere_or_are_in_another_order_are_found() -> None:
    first, *between, last = autoregressive(0.5, CHAINS, DRAWS, 2, 0)
    rng = np.random.default_rng(0)
    repeated = np.repeat(first, 3, axis=0)[:DRAWS]  # after rejected proposals
    for copy, of in (
        (np.concatenate([first[400:], last[:400]]), first),
        (first[::-1], first),
        (rng.permutation(first), first),
        (np.concatenate([repeated[200:], last[:200]]), repeated),
    ):
        found = problem(np.stack([of, *between, copy]))
        assert found.startswith("chains 0 and 3 have the same draws")


def mixed(chains: int, draws: int, correlation: float, places: float = 0.0) -> Sample:
    """Chains whose draws were stored by `reshape` in place of `swapaxes`."""

    def sample(seed: int) -> np.ndarray:
        values = autoregressive(correlation, chains, draws, 1, seed)
        values = values + places * np.sign(np.arange(chains) - (chains - 1) / 2)[:, None, None]
        return values.swapaxes(0, 1).reshape(chains, draws, 1)

    return sample


MIXED = {
    "4 chains": mixed(4, 1000, 0.5),
    "4 chains that never meet": mixed(4, 1000, 0.0, 0.87),
    "16 walkers": mixed(16, 500, 0.9),
    "50 walkers": mixed(50, 500, 0.9),
    "2 chains": mixed(2, 1000, 0.9),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_chains_are_found(name: str) -> None:
    found = problem(MIXED[name](0))
    assert found.startswith("chains are mixed")
    assert "transpose before you reshape" in found


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXED)
def test_mixed_chains_are_always_found(name: str) -> None:
    assert all(problem(MIXED[name](seed)) for seed in range(50))


def test_the_check_and_the_comparison_say_why() -> None:
    values = {"x": copies(0.2, 0.05, all_chains=True)(0)[..., 0]}
    (first, *_) = bpa.check(values).failures
    assert first.name == "independent chains (p)"
    assert first.advice.startswith("all chains are copies of one run, or have the same random key")
    right = {"x": autoregressive(0.2, CHAINS, 4 * DRAWS, 1, 7)[..., 0]}
    result = bpa.compare(values, right)["a"]
    assert (result.verdict, result.bound) == ("not converged", None)
    assert result.reason.startswith("all chains are copies of one run")
    dependent = bpa.compare(right, values)["a"]
    assert dependent.verdict == "not converged"
    assert "the reference has chains that depend on each other" in dependent.reason


def test_chains_of_two_samplers_are_compared_with_each_other_alone() -> None:
    first = autoregressive(0.5, CHAINS, DRAWS, 1, 0)
    others = autoregressive(0.5, CHAINS, DRAWS, 1, 1)
    copied = others[[0, 1, 2, 0]]
    assert find_common_draws([*first, *copied], ["x"], first=CHAINS) is None
    shorter = [*first, *others, first[2][:600]]
    assert find_common_draws(shorter, ["x"], first=CHAINS) is not None
