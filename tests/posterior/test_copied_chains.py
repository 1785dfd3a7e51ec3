"""Copies of chains are found, of continuous and of discrete draws, and only copies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bpa_ppl import check
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.statistics import find_copied_chains

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
    joined = np.concatenate([first[: DRAWS // 2]] * 2)
    assert (3, 3) in find_copied_chains([first, *between, joined])


def test_chains_that_stay_at_one_value_are_no_copies() -> None:
    rarely = np.random.default_rng(0).random(SHAPE) < 0.01
    assert find_copied_chains(rarely.astype(float)) == []
    assert find_copied_chains(np.zeros(SHAPE)) == []


def test_the_check_accepts_a_posterior_of_two_modes() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(CHAINS, 1000, 1)) + 10 * rng.choice([-1, 1], (CHAINS, 1000, 1))
    report = check(Draws({"weights": values}, ("LM0",)))
    assert report, str(report)
