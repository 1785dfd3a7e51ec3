"""Preferences from end to end: adapt, check, rerank, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from support.command_line import succeed
from support.raising import raises
from support.reference_model import given
from support.registries import LIKELIHOODS
from support.targets import by_domain

from bpa_ppl import (
    DataError,
    Draws,
    NBest,
    Prior,
    adapt,
    as_weight_draws,
    check,
    from_lists,
    log_density,
    write_posterior,
)
from bpa_ppl.adapting.adaptation import require_adaptation

TRUE = np.array([1.0, -0.6])
NAMES = ("LM0", "WP0")
ZERO = dict.fromkeys(NAMES, 0.0)
SENTENCES, CANDIDATES = 40, 6


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists whose candidates were compared, four pairs each, and whose first half has a gain."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(SENTENCES, CANDIDATES, 2)).astype(np.float32)
    gain = features @ TRUE + 0.5 * rng.normal(size=(SENTENCES, CANDIDATES))
    gain[SENTENCES // 2 :] = np.nan
    found: dict[str, list[Any]] = {"preferences": [], "ties": []}
    for own in features @ TRUE:
        pairs = [rng.choice(CANDIDATES, 2, replace=False).tolist() for _ in range(4)]
        worth = [np.exp([own[i], own[j], (own[i] + own[j]) / 2]) for i, j in pairs]
        answers = [rng.choice(3, p=w / w.sum()) for w in worth]
        found["ties"].append([p for p, a in zip(pairs, answers, strict=True) if a == 2])
        won = [p[:: 1 - 2 * a] for p, a in zip(pairs, answers, strict=True) if a < 2]
        found["preferences"].append(won)
    return from_lists(
        [[f"{s} {c}" for c in range(CANDIDATES)] for s in range(SENTENCES)],
        features,
        NAMES,
        extras={"mqm": gain},
    ).with_sentence_extras(**found)


def adapted(lists: NBest, **options: Any) -> Draws:
    options = {"prior": "isotropic:variance=1.0", **options}
    options |= {} if "sampler" in options else {"sampler": "imh:draws=500"}
    return as_weight_draws(adapt(lists, **{"weights": ZERO, **options}))


def test_weights_are_found_from_preferences(lists: NBest) -> None:
    posterior = adapted(lists)
    assert posterior.record.likelihood.plain == {"name": "preference", "slip": 0.0, "nu": None}
    counts = posterior.record.observed.comparisons
    assert counts["lists"] == SENTENCES
    assert counts["preferences"] + counts["ties"] == 4 * SENTENCES
    assert posterior.record.observed.sentences == 4 * SENTENCES
    assert check(posterior)
    assert as_weight_draws(posterior).pointwise.shape[-1] == 4 * SENTENCES
    z = (posterior.mean - TRUE) / posterior.deviation
    assert np.all(np.abs(z) < 3)
    log_nu = posterior.draws.values["log_nu"]
    assert abs(log_nu.mean() - 0.0) < 3 * log_nu.std()  # ν = 1 made the data


def test_preferences_are_the_default_without_references(lists: NBest) -> None:
    bare = lists.without("preferences", "ties", "mqm")
    with raises(DataError, "missing-references", parameter="references"):
        adapt(bare, ZERO)
    translated = bare.with_references([f"{k} {k}" for k in range(SENTENCES)])
    likelihood = require_adaptation(log_density(translated, ZERO)).likelihood
    assert LIKELIHOODS.name_of(likelihood) == "margin"
    with raises(DataError, "no-data"):
        adapt(bare, ZERO, likelihood="preference")


@pytest.mark.slow
def test_the_posterior_of_gains_is_a_prior_of_preferences(
    lists: NBest, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "bpa_ppl"):
        rated = adapted(lists, gain="mqm", likelihood="margin")
    assert "preferences are not used" in caplog.text
    assert rated.record.observed.sentences == SENTENCES // 2
    answered = adapt(lists, ZERO, likelihood="preference", prior=Prior.of(rated), sampler="imh")
    both = as_weight_draws(answered)
    assert both.record.observed.sentences == 4 * SENTENCES
    assert check(both)
    assert np.all(both.deviation < rated.deviation)


@pytest.mark.parametrize("domain", [["web", None], [1.0, np.nan]], ids=str)
def test_only_models_of_domains_need_the_domain_of_each_list(
    lists: NBest, domain: list[Any]
) -> None:
    named = lists[:2].with_sentence_extras(domain=domain)
    options = {"likelihood": "oracle", "gain": given(0, 0), "prior": "isotropic:variance=0.1"}
    assert not np.any(log_density(named, ZERO, **options).lists.domain)
    with raises(DataError, "missing-column", parameter="domain", match="list 1"):
        log_density(named, ZERO, model=by_domain, **options)


def answers(slips: dict[str, float], count: int, seed: int) -> NBest:
    """Return lists whose pairs were answered by raters with known weights and slip rates."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 2, 4)).astype(np.float32)
    worth = features @ np.array([3.0, -2.0, 1.0, 0.0])
    entries = []
    for own in worth:
        of_list = []
        for name, slip in slips.items():
            best = rng.uniform() < 1 / (1 + np.exp(own[1] - own[0]))
            first = rng.uniform() < 0.5 if rng.uniform() < slip else best
            of_list.append({"candidates": [0, 1] if first else [1, 0], "rater": name})
        entries.append(of_list)
    names = [f"F{k}" for k in range(4)]
    lists = from_lists([["a", "b"]] * count, features, names)
    return lists.with_sentence_extras(preferences=entries)


RATED = 300
SLIPS = {"ann": 0.03, "bob": 0.3}
SMALL: dict[str, Any] = {"prior": "isotropic:variance=4.0", "sampler": "imh:draws=1000"}
NONE = {f"F{k}": 0.0 for k in range(4)}


def of_two_raters(count: int) -> NBest:
    """Return lists with answers of two raters, the last ones with weights."""
    judged = answers(SLIPS, count, 1)
    entries = [
        [{**e, "weight": 0.5 + s % 3 if s > count - 5 else 1.0} for e in part]
        for s, part in enumerate(judged.sentence_extras["preferences"])
    ]
    return judged.with_sentence_extras(preferences=entries)


@pytest.mark.slow
@pytest.mark.usefixtures("without_drawing")
def test_slip_rates_of_raters_are_found(tmp_path: Path) -> None:
    judged, path = of_two_raters(RATED), tmp_path / "p.nc"
    posterior = adapted(judged, weights=NONE, **SMALL)
    assert posterior.record.likelihood.settings["slip"] == "raters"
    assert posterior.record.observed.raters == {"ann": RATED, "bob": RATED}
    write_posterior(posterior, path)
    raters = json.loads(succeed("check", path, "--json").out)["raters"]
    intervals = {name: slip["interval"] for name, slip in raters["slips"].items()}
    assert all(low < SLIPS[name] < high for name, (low, high) in intervals.items())
    assert intervals["ann"][1] < intervals["bob"][0]
    entries = judged.sentence_extras["preferences"]
    alike = sum(ann["candidates"] == bob["candidates"] for ann, bob in entries)
    assert (raters["agreement"]["pairs"], raters["agreement"]["alike"]) == (RATED, alike)
    succeed("report", path, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert all(f"{slip['mean']:.3f}" in page for slip in raters["slips"].values())


def test_log_likelihoods_have_slip_rates_and_weights() -> None:
    judged = of_two_raters(30)
    posterior = adapted(judged, weights=NONE, sampler="laplace:draws=9")
    constants = posterior.draws.constants
    np.testing.assert_array_equal(constants["observation_rater"][-4:], [0, 1, 0, 1])
    *_, ann, bob = constants["observation_weight"]
    (of_ann, of_bob) = judged.sentence_extras["preferences"][-1]
    assert (ann, bob) == (of_ann["weight"], of_bob["weight"]) == (2.5, 2.5)
    scores = posterior.weights @ judged.features[-2:].T.astype(float)
    winner, loser = of_bob["candidates"]
    slip = posterior.draws.values["slip"][..., 1]
    p = (1 - slip) * expit(scores[..., winner] - scores[..., loser]) + slip / 2
    np.testing.assert_allclose(posterior.pointwise[..., -1], bob * np.log(p), rtol=1e-4, atol=1e-5)


def test_one_rater_has_the_rate_of_the_setting() -> None:
    judged = answers({"ann": 0.05}, 20, 4)
    zero = dict.fromkeys(judged.feature_names, 0.0)
    posterior = as_weight_draws(adapt(judged, zero, prior="isotropic:variance=1.0", sampler="map"))
    assert posterior.draws.sites == ("weights",)
    assert posterior.record.likelihood.settings["slip"] == 0.0
    assert posterior.record.observed.agreement is None
