"""What uses a posterior refuses one that fails its check, as `rerank` does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from inspect import isclass, isfunction, signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.posteriors import (
    Figures,
    name_weights,
    read_weight_draws,
    with_check,
    with_parts,
    with_record,
)
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import BpaError, Draws, NotConverged, Prior, extending

NAMES = ("LM0", "TM0")
DRAWN = np.random.default_rng(0).normal(0.5, 0.2, size=(4, 1000, 2))
#: R-hat 1.5: half of the chains are elsewhere.
APART = DRAWN + 0.3 * np.array([0, 0, 1, 1])[:, None, None]
SCALED = {"prior_mean": np.zeros(2), "prior_covariance": np.eye(2)}
SCALED |= {"prior_log_deviation": np.ones(2)}
LISTS = bpa.from_lists([["a", "b"]] * 2, [np.eye(2)] * 2, NAMES)


def made(weights: np.ndarray, **parts: Any) -> Draws:
    constants = {"prior_mean": np.zeros(2), "prior_variance": np.ones(2), "mode": np.ones(2)}
    return name_weights(weights, NAMES, **{"constants": constants, **parts})


def weighted(spread: float) -> Draws:
    log_weight = np.random.default_rng(1).normal(0.0, spread, size=(1, 1000))
    return made(DRAWN.reshape(1, -1, 2)[:, :1000], kind="weighted", log_weight=log_weight)


def point(decrement: float) -> Draws:
    mode = made(np.ones((1, 1, 2)), kind="point")
    return with_record(mode, figures=Figures(newton_decrement=decrement))


#: A posterior, and whether it passes its check.
POSTERIORS: dict[str, tuple[Callable[[], Draws], bool]] = {
    "chains": (lambda: made(DRAWN), True),
    "chains that disagree": (lambda: made(APART), False),
    "recorded as passed": (lambda: with_check(made(DRAWN)), True),
    "recorded as failed": (lambda: with_check(made(APART)), False),
    "changed since it passed": (
        lambda: replace(with_check(made(DRAWN)), values={"weights": APART}),
        False,
    ),
    "importance weights": (lambda: weighted(0.5), True),
    "one heavy importance weight": (lambda: weighted(9.0), False),
    "mode": (lambda: point(0.0), True),
    "mode that was not found": (lambda: point(1.0), False),
}
#: What uses a posterior.
USES: dict[str, Callable[..., Any]] = {
    "Reranker": bpa.Reranker,
    "rerank": partial(bpa.rerank, LISTS),
    "point_weights": bpa.point_weights,
    "learn_prior": lambda posterior, **options: bpa.learn_prior([posterior] * 2, **options),
    "Prior.of": Prior.of,
    "Prior.recorded": lambda posterior, **options: Prior.recorded(
        with_parts(posterior, constants=SCALED), **options
    ),
}
#: What describes, stores or compares one, with any verdict, or takes nothing from its draws.
DESCRIBES = {
    "as_draws",
    "as_weight_draws",
    "check",
    "compare",
    "compare_baselines",
    "write_posterior",
}
DESCRIBES |= {"plot_trace", "read_posterior", "recorded_options"}


@cache
def checked(kind: str) -> tuple[Draws, bool]:
    """Return a posterior, and whether it passes its check."""
    posterior = POSTERIORS[kind][0]()
    return posterior, bool(bpa.check(posterior))


def is_refused(use: Callable[..., Any], posterior: Any, **options: Any) -> bool:
    """Return whether a posterior is refused because of its check; other errors do not count."""
    try:
        use(posterior, **options)
    except BpaError as error:
        return isinstance(error, NotConverged) and error.parameter == "unchecked"
    return False


@pytest.mark.parametrize("kind", POSTERIORS)
@pytest.mark.parametrize("name", USES)
def test_a_posterior_that_fails_its_check_is_refused(name: str, kind: str) -> None:
    (posterior, verdict), passes, use = checked(kind), POSTERIORS[kind][1], USES[name]
    assert verdict == passes
    assert is_refused(use, posterior) == (not passes)
    assert not is_refused(use, posterior, unchecked=True)


def test_the_recorded_verdict_of_a_file_counts(tmp_path: Path) -> None:
    """The names of files are in the message."""
    for name, weights in (("good", DRAWN), ("bad", APART)):
        bpa.write_posterior(with_check(made(weights)), tmp_path / f"{name}.nc")
    good, bad = (tmp_path / f"{name}.nc" for name in ("good", "bad"))
    passed, failed = read_weight_draws(good), read_weight_draws(bad)
    for name, use in USES.items():
        assert name == "Prior.recorded" or not is_refused(use, passed), name
        assert name == "Prior.recorded" or is_refused(use, failed), name
    with raises(NotConverged, parameter="unchecked", match="the posterior bad failed"):
        bpa.learn_prior([good, bad])


@pytest.mark.parametrize("preset", ["published", "published-2010"])
def test_published_presets(preset: str) -> None:
    """Few of the published draws are effective."""
    rng = np.random.default_rng(2)
    lists = bpa.from_lists([["a", "b"]] * 9, rng.normal(size=(9, 2, 2)), NAMES)
    lists = lists.with_references([["a"]] * 9)
    posterior = bpa.adapt(lists, dict.fromkeys(NAMES, 0.5), preset=preset)
    refused = {name: is_refused(use, posterior) for name, use in USES.items() if "rec" not in name}
    assert set(refused.values()) == {not bpa.check(posterior)}, refused


def test_what_is_refused_gives_the_same_as_unchecked() -> None:
    drawn = APART.reshape(-1, 2)
    np.testing.assert_allclose(
        list(bpa.point_weights(made(APART), unchecked=True).values()), drawn.mean(axis=0)
    )
    prior = Prior.of(made(APART), unchecked=True)
    np.testing.assert_allclose(prior.covariance, np.cov(drawn.T))


def test_the_table_has_all_that_takes_a_posterior() -> None:
    """Of the public functions, classes and class methods."""
    takers = set()
    for module, name in ((m, n) for m in (bpa, extending) for n in m.__all__):
        value = getattr(module, name)
        methods = vars(value).items() if isclass(value) else ()
        made_by = {f"{name}.{m}": x.__func__ for m, x in methods if isinstance(x, classmethod)}
        for taker, function in {name: value, **made_by}.items():
            if isclass(function) or isfunction(function):
                try:
                    parameters = signature(function).parameters
                except ValueError:
                    continue
                if {"posterior", "posteriors"} & parameters.keys() and taker != "Prior":
                    takers.add(taker)
    assert takers - DESCRIBES == USES.keys()
