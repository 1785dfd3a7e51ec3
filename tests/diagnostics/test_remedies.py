"""The advice of a failed check, followed once, gives draws that pass."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from bpa_ppl import check, from_lists
from bpa_ppl.adapting import build_problem
from bpa_ppl.diagnostics.check import Remedies
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import Figures, Record, SamplerRecord
from bpa_ppl.problem import Problem
from bpa_ppl.sampling.sampler import SAMPLERS

NAMES = [f"F{k}" for k in range(8)]
_VALUE = re.compile(r"(\w+)=([\w.]+)")
_SAMPLER = re.compile(r"\b(nuts|rwm)\b")


@cache
def problem(kind: str) -> Problem:
    """Twenty lists of five candidates: with an oracle, a gain, or 60 with a preference."""
    count = 60 if kind == "preference" else 20
    rng = np.random.default_rng(4)
    features = rng.normal(size=(count, 5, len(NAMES))) * np.linspace(0.5, 3, len(NAMES))
    utility = features @ rng.normal(0, 0.4, len(NAMES)) + rng.gumbel(size=(count, 5))
    texts = [[f"{s} {k}" for k in range(5)] for s in range(count)]
    lists = from_lists(texts, features, NAMES, extras={"gain": utility.tolist()})
    if kind == "preference":
        better = [[[0, 1] if first > second else [1, 0]] for first, second, *_ in utility]
        lists = lists.without("gain").with_sentence_extras(preferences=better)
        return build_problem(lists)
    return build_problem(lists, dict.fromkeys(NAMES, 0.1), gain="gain", likelihood=kind)


def run(kind: str, sampler: str, settings: dict[str, Any], seed: int = 0) -> Draws:
    """Draw from a problem."""
    return problem(kind).sample(SAMPLERS.resolve(sampler, settings), seed=seed)


def alternatives(sampler: str, settings: dict[str, Any], advice: str) -> Iterator[tuple[str, str]]:
    """Yield the samplers and settings, as JSON, that an advice names."""
    for alternative in re.split(r", or | or |; ", advice):
        values = {name: json.loads(value) for name, value in _VALUE.findall(alternative)}
        other = next(iter(_SAMPLER.findall(alternative)), sampler)
        if other == sampler:
            values = settings | values
        if (other, values) != (sampler, settings):
            yield other, json.dumps(values, sort_keys=True)


#: One case of each sampler, and longer ones.
QUICK: list[tuple[str, str, dict[str, Any]]] = [
    ("risk", "rwm-isotropic", {}),
    ("oracle", "rwm-isotropic", {"proposal_variance": 9.0}),
    ("oracle", "rwm", {"scale": 30.0}),
    ("oracle", "imh", {"draws": 60}),
    ("oracle", "heuristic", {"draws": 100, "delta": 8.0}),
]
LONG: list[tuple[str, str, dict[str, Any]]] = [
    ("oracle", "rwm-isotropic", {}),
    ("preference", "rwm-isotropic", {}),
    ("oracle", "rwm-isotropic", {"proposal_variance": 1e-4}),
    ("oracle", "rwm", {"thinning": 1}),
    ("oracle", "rwm", {"scale": 0.1}),
    ("preference", "nuts", {"draws": 60}),
]


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")  # of draws that are no posterior
@pytest.mark.parametrize(
    ("kind", "sampler", "settings"),
    [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in LONG)],
)
def test_every_advice_followed_once_gives_draws_that_pass(
    kind: str, sampler: str, settings: dict[str, Any]
) -> None:
    report = check(run(kind, sampler, settings))
    assert not report
    advised = {
        one
        for finding in report.failures
        for one in alternatives(sampler, settings, finding.advice)
    }
    assert advised
    for other, values in sorted(advised):
        again = check(run(kind, other, json.loads(values), seed=1))
        assert again, f"{other} {values}\n{report}\n{again}"


def _walk(settings: dict[str, Any], values: np.ndarray) -> Remedies:
    sampler, figures = SamplerRecord(name="rwm", settings=settings), Figures(step_setting="scale")
    record = Record(sampler=sampler, figures=figures)
    return Remedies(Draws({"weights": values}, NAMES[:1], record=record))


def test_a_longer_warmup_is_advised_only_where_it_helps() -> None:
    """Where the second half of the draws agrees, and not for proposals that it only tunes."""
    rng, settings = np.random.default_rng(1), {"warmup": 50, "draws": 1000}
    stationary = rng.normal(size=(4, 1000, 1))
    burn_in = (
        stationary + np.array([9, -9, 4, 0])[:, None, None] * np.exp(-np.arange(1000) / 50)[:, None]
    )
    apart = stationary + np.arange(4)[:, None, None]
    for sampler, values, expected in (
        ("rwm", burn_in, True),
        ("rwm", apart, False),
        ("imh", burn_in, False),
    ):
        record = Record(sampler=SamplerRecord(name=sampler, settings=settings))
        report = check(Draws({"weights": values}, NAMES[:1], record=record))
        finding = next(finding for finding in report.findings if finding.name == "R-hat")
        advice = finding.advice
        assert not finding.passed
        assert ("warmup" in advice) == expected, advice
    assert _walk(settings, burn_in).agreement(3.0, settled=True) == "raise warmup (warmup=1100)"
