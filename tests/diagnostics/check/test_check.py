"""Good chains pass, each fault is found by its diagnostic, and the advice can be followed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from support.html_outline import Outline
from support.posteriors import (
    Figures,
    Finding,
    Record,
    SamplerRecord,
    autoregressive,
    external_posterior,
    import_arviz,
    name_weights,
    read_weight_draws,
    with_parts,
    with_record,
)
from support.raising import raises
from support.registries import SAMPLERS

from bpa_ppl import (
    Draws,
    NotConverged,
    Report,
    Reranker,
    adapt,
    as_weight_draws,
    check,
    from_lists,
    sample,
    write_posterior,
)
from bpa_ppl.diagnostics.check import report as check_module
from bpa_ppl.diagnostics.check.advice import find_advice
from bpa_ppl.diagnostics.check.convergence import Tails, compare_chains
from bpa_ppl.diagnostics.check.report import check_and_record, read_report
from bpa_ppl.extending import Run

NAMES = ("LM0", "TM0", "WP0")
CHAINS, DRAWS = 4, 1000
RATES = np.full((CHAINS, DRAWS), 0.3)
ENERGY = np.random.default_rng(5).normal(size=(CHAINS, DRAWS))


def good(correlation: float = 0.2) -> np.ndarray:
    return autoregressive(correlation, CHAINS, DRAWS, len(NAMES), seed=2)


def found(report: Report, name: str) -> Finding:
    return next(finding for finding in report.rows if finding.name == name)


def failed(posterior: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in check(posterior).failures}


def test_good_chains_pass_every_diagnostic() -> None:
    diverging = np.zeros((CHAINS, DRAWS), bool)
    recorded = {"acceptance_rate": RATES + 0.4, "energy": ENERGY, "diverging": diverging}
    report = check(external_posterior(good(), NAMES, **recorded))
    assert report
    assert [finding.name for finding in report.rows] == [
        *("equal draws", "divergences", "BFMI", "acceptance", "burn-in (|z|)", "R-hat"),
        *("bulk ESS", "tail ESS", "MCSE / sd", "chain means (|z|)", "tails (Pareto k̂)"),
    ]
    assert max(map(len, str(report).splitlines())) <= 80
    assert "converged" in str(report)
    assert "NOT" not in str(report)


def test_the_numbers_are_those_of_arviz() -> None:
    posterior = external_posterior(good(0.6), NAMES, energy=ENERGY)
    report, arviz = check(posterior), import_arviz()
    bulk = arviz.ess(posterior, method="bulk")["weights"].values
    tail = arviz.ess(posterior, method="tail", prob=(0.05, 0.95))["weights"].values
    errors = arviz.mcse(posterior)["weights"].values
    expected = {
        "R-hat": arviz.rhat(posterior)["weights"].values.max(),
        "bulk ESS": bulk.min(),
        "tail ESS": tail.min(),
        "MCSE / sd": (errors / posterior["posterior"]["weights"].values.std()).max(),
        "BFMI": arviz.bfmi(ENERGY).min(),
    }
    for name, value in expected.items():
        tolerance = 0.05 if name == "MCSE / sd" else 1e-9
        assert found(report, name).value == pytest.approx(value, rel=tolerance), name
    assert found(report, "bulk ESS").where == NAMES[int(bulk.argmin())]


@pytest.mark.parametrize(
    ("name", "chains", "shift"),
    [
        ("R-hat", slice(2, 3), 2.0),  # a chain elsewhere
        ("burn-in (|z|)", slice(None), np.linspace(-0.5, 0.5, DRAWS)),  # chains drift together
        ("burn-in (|z|)", slice(None), 2 * np.exp(-np.arange(DRAWS) / 30)),  # from one start
        ("R-hat", slice(None), 5 * np.exp(-np.arange(DRAWS) / 100)),  # a burn-in was kept
    ],
)
def test_chains_that_disagree_or_drift_are_found(name: str, chains: slice, shift: Any) -> None:
    draws = good()
    draws[chains, :, 1] += shift
    finding = failed(external_posterior(draws, NAMES))[name]
    assert finding.where == "TM0"
    assert "raise warmup" in finding.advice


@pytest.mark.parametrize(
    ("correlation", "chains", "draws"), [(0.0, 4, 60), (0.99, 4, 1000), (0.0, 1, 200)]
)
def test_too_few_effective_draws_are_found(correlation: float, chains: int, draws: int) -> None:
    values = autoregressive(correlation, chains, draws, 3, seed=1)
    finding = failed(external_posterior(values, NAMES))["bulk ESS"]
    assert "draw more" in finding.advice


@pytest.mark.parametrize(
    ("draws", "value", "problem", "remedy"),
    [
        (slice(300, 500), 0.2, "chain 1 stays where it is for 20% of its", "take smaller steps"),
        (slice(0, 300), 0.3, "chain 1 stays where it is for 30% of its", "raise warmup"),
        (
            slice(300, DRAWS),
            0.7,
            "the last 700 draws of chain 1 are equal",
            "leave out what was pad",
        ),
        (slice(0, DRAWS), 1.0, "chain 1 does not move", "take smaller steps"),
    ],
)
def test_a_chain_that_is_stuck_or_padded_is_the_first_reason(
    draws: slice, value: float, problem: str, remedy: str
) -> None:
    """And no other reason has the advice to draw more, which would not help."""
    values = good()
    values[1, draws] = values[1, draws.start]
    for posterior in (name_weights(values, NAMES), without_lists(values)):
        first, *others = check(posterior).failures
        assert (first.name, first.where, first.value) == ("equal draws", "chain 1", value)
        assert problem in first.advice
        assert first.advice.rpartition(": ")[2].startswith(remedy)
        assert {one.advice.rpartition(": ")[2] for one in others} <= {
            first.advice.rpartition(": ")[2]
        }


def test_a_component_that_one_chain_does_not_move_is_the_first_reason() -> None:
    values = good()
    values[2, :, 0] = 0.3
    first, *others = check(without_lists(values)).failures
    assert (first.name, first.where, first.value) == ("equal draws", "chain 2", 1.0)
    assert "R-hat" in {one.name for one in others}
    assert not any("draw more" in one.advice or "warmup" in one.advice for one in others)


def test_the_energy_of_heavy_tails_does_not_fail() -> None:
    """Of a Cauchy distribution its variance is π²/3, and momenta change it by one: 1 / 3.79."""
    draws = 4 * DRAWS
    walk = autoregressive(0.87, CHAINS, draws, 1, seed=4)[..., 0]
    heavy = np.random.default_rng(3).standard_cauchy((CHAINS, draws))
    none = np.zeros((CHAINS, draws), bool)
    for values, energy, diverging, passed in (
        (heavy, walk, none, True),
        (walk, walk, none, False),
        (heavy, walk, np.arange(draws) < 1 + none, False),
        (heavy, autoregressive(0.99, CHAINS, draws, 1, seed=4)[..., 0], none, False),
    ):
        statistics = {"energy": energy, "diverging": diverging}
        posterior = replace(without_lists(values[..., None]), statistics=statistics)
        row = found(check(posterior), "BFMI")
        assert (row.value < 0.3, row.passed) == (True, passed)


@pytest.mark.slow
def test_programs_with_heavy_tails_pass_and_a_funnel_does_not() -> None:
    """Its BFMI is low, too, and the draws of its sites have heavy tails."""

    def cauchy() -> None:
        numpyro.sample("x", dist.Cauchy(0, 1).expand([5]).to_event(1))

    def funnel() -> None:
        scale = numpyro.sample("v", dist.Normal(0, 3))
        numpyro.sample("x", dist.Normal(0, jnp.exp(scale / 2)).expand([9]).to_event(1))

    report = check(sample(cauchy, sampler="nuts:draws=6000", seed=1))
    assert report, str(report)
    row = found(report, "BFMI")
    assert (row.limit, row.value) == ("reported", pytest.approx(1 / (np.pi**2 / 3 + 0.5), abs=0.1))
    assert "BFMI" in failed(sample(funnel, sampler="nuts", seed=1))


def test_a_constant_energy_is_no_slow_one() -> None:
    constant = check(external_posterior(good(), NAMES, energy=np.full((CHAINS, DRAWS), 3.0)))
    assert constant
    assert "BFMI" not in {one.name for one in constant.rows}
    energy = ENERGY.copy()
    energy[2] = 3.0
    assert found(check(external_posterior(good(), NAMES, energy=energy)), "BFMI").value > 0.3


def test_draws_without_chains_do_not_converge() -> None:
    shape = {"kind": "weighted", "log_weight": np.zeros((1, CHAINS * DRAWS))}
    values = good().reshape(1, -1, len(NAMES))
    report = check(name_weights(values, NAMES, **shape))
    assert report.title.endswith(": passed")
    assert "converged" not in str(report)
    failing = 30 * np.random.default_rng(0).normal(size=(1, CHAINS * DRAWS))
    refused = check(name_weights(values, NAMES, kind="weighted", log_weight=failing))
    assert refused.title.endswith(": NOT passed")


def test_weights_that_are_zero_but_for_a_few_are_refused() -> None:
    log_weight = np.random.default_rng(3).normal(0, 0.3, size=4000)
    log_weight[1500:] = -np.inf
    assert check(weighted(log_weight))
    log_weight[150:] = -np.inf
    assert failed(weighted(log_weight)).keys() == {"Pareto k̂"}


@pytest.mark.parametrize("draws", [1, 2, 3, 5])
def test_a_handful_of_draws_fails_without_a_fuss(draws: int) -> None:
    values, energy = autoregressive(0.0, 1, draws, 3, seed=1), np.ones((1, draws))
    report = check(external_posterior(values, NAMES, energy=energy))
    assert not report
    advice = f"{draws} draws per chain cannot be checked: draw at least 1000"
    assert [finding.advice == advice for finding in report.failures].count(True) == (draws < 4)


@pytest.mark.parametrize(("rate", "change"), [(0.97, "raise"), (0.001, "lower")])
@pytest.mark.parametrize("sampler", ["rwm", "rwm-isotropic"])
def test_a_walk_of_wrong_steps_gets_advice(rate: float, change: str, sampler: str) -> None:
    rates = RATES.copy()
    rates[3] = rate
    draws = external_posterior(good(), NAMES, acceptance_rate=rates)
    walk = with_record(as_weight_draws(draws), sampler=SamplerRecord(name=sampler, settings={}))
    finding = failed(walk)["acceptance"]
    assert finding.value == pytest.approx(rate)
    assert finding.where == "chain 3"
    expected = f"{change} scale" if sampler == "rwm" else "use rwm, whose steps have the shape"
    assert expected in finding.advice


@pytest.mark.parametrize(
    ("rate", "of_walk", "of_hamiltonian", "of_others"),
    [
        *((0.05, 0, 0, 0), (0.12, 0, 0, 1), (0.3, 1, 0, 1), (0.45, 1, 1, 1), (0.6, 0, 1, 1)),
        (0.97, 0, 1, 1),
    ],
)
def test_the_sound_acceptance_is_that_of_the_sampler(
    rate: float, of_walk: bool, of_hamiltonian: bool, of_others: bool
) -> None:
    statistics = {"acceptance_rate": np.full((CHAINS, DRAWS), rate)}
    draws = name_weights(good()[..., :1], NAMES[:1], statistics=statistics)
    diverging = {"diverging": np.zeros((CHAINS, DRAWS), bool)}
    walk = with_record(draws, sampler=SamplerRecord(name="rwm", settings={}))
    hamiltonian = with_parts(draws, statistics=statistics | diverging)
    for sampled, sound in ((walk, of_walk), (hamiltonian, of_hamiltonian), (draws, of_others)):
        assert found(check(sampled), "acceptance").passed == sound
    assert check(walk, {"acceptance": (rate - 0.01, 1.0)})
    finding = found(check(draws), "acceptance")
    assert finding.passed or finding.advice.endswith("use nuts")


def test_what_explains_other_findings_comes_first() -> None:
    """Divergences before the R-hat of chains that they keep apart; a density before both."""
    apart = good() + 1.5 * (np.arange(CHAINS) == 1)[:, None, None]
    statistics = {"diverging": np.arange(CHAINS * DRAWS).reshape(CHAINS, DRAWS) < 57}
    draws = name_weights(apart, NAMES, statistics=statistics)
    recorded, report = check_and_record(draws.draws)
    assert [finding.name for finding in report.failures][:2] == ["divergences", "R-hat"]
    advice = [line for line in str(report).splitlines() if line.startswith("- ")]
    assert "57 divergent transitions" in advice[0]
    assert "the chains disagree" in advice[1]
    assert read_report(recorded) == report
    broken = with_parts(draws, log_density=np.full((CHAINS, DRAWS), -np.inf))
    assert check(broken).failures[0].name == "log density"


def test_divergences_and_an_energy_that_barely_moves_are_found() -> None:
    diverging, energy = np.zeros((CHAINS, DRAWS), bool), ENERGY.copy()
    diverging[1, [3, 5]] = True
    energy[2] = np.cumsum(energy[2])
    findings = failed(external_posterior(good(), NAMES, diverging=diverging, energy=energy))
    assert findings["divergences"].value == 2
    # Settings of other programs have other names: PyMC's warm-up is `tune`. And their sites are
    # unknown, so that nothing is said about them.
    assert findings["divergences"].advice == "2 divergent transitions: raise target_accept"
    assert findings["BFMI"].where == "chain 2"
    assert findings["BFMI"].advice == "the energy mixes slowly (BFMI 0.02)"


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"target_accept": None, "warmup": 100}, ": raise target_accept (nuts:target_accept=0.99,"),
        ({"target_accept": 0.99, "warmup": 1000}, "raise target_accept (nuts:target_accept=0.999,"),
        ({"target_accept": 0.999, "warmup": 1000}, "3 divergent transitions"),
    ],
)
def test_no_advice_repeats_the_settings_that_were_used(
    settings: dict[str, Any], advice: str
) -> None:
    diverging = np.arange(CHAINS * DRAWS).reshape(CHAINS, DRAWS) < 3
    slow = np.random.default_rng(2).normal(size=(CHAINS, DRAWS, 3)).cumsum(axis=1)
    for chosen in (False, True):
        sampler = SamplerRecord(name="nuts", settings={"draws": DRAWS, **settings})
        figures = Figures()
        if chosen:
            figures = Figures(chosen="nuts", chosen_settings=sampler.settings)
            sampler = SamplerRecord(name="auto", settings={"draws": 1000, "chains": CHAINS})
        record = Record(sampler=sampler, figures=figures)
        draws = name_weights(slow, NAMES, statistics={"diverging": diverging}, record=record)
        findings = {one.name: one.advice for one in check(draws).failures}
        assert advice in findings["divergences"]
        again = settings["target_accept"] is not None
        assert ("target_accept=0.99" in findings["bulk ESS"]) != again
        assert str(settings["target_accept"]) + "," not in findings["divergences"]
        assert not findings["divergences"].endswith(": ")
        assert findings["bulk ESS"].endswith("raising draws is not enough") == again


def test_chains_at_different_modes_are_advised_about_modes() -> None:
    apart = good() + 4.0 * (np.arange(CHAINS) % 2)[:, None, None]
    findings = failed(without_lists(apart))
    for name in ("R-hat", "bulk ESS", "chain means (|z|)"):
        assert "several modes" in findings[name].advice
        assert "order" not in findings[name].advice
    drifting = apart + np.linspace(0, 4, DRAWS)[:, None]
    assert "modes" not in failed(without_lists(drifting))["R-hat"].advice


def without_lists(values: np.ndarray) -> Draws:
    """Draws of a vector x of a program without lists."""
    return Draws({"x": values}, sampled=("x",))


def test_a_variable_without_a_mean_passes_by_its_quantiles() -> None:
    values = np.random.default_rng(5).standard_cauchy((CHAINS, DRAWS, 2))
    values[..., 1] = good()[..., 0]
    free = without_lists(values)
    report = check(free)
    assert report, str(report)
    (tails,) = [one for one in report.rows if one.name.startswith("tails")]
    assert (tails.where, tails.limit) == ("x[0]", "reported")
    assert "- these draws have no reliable " in str(report)
    assert "sd of x[0], as their tails are so heavy (Pareto k̂ up to " in str(report)
    quantiles = np.quantile(values[..., 0], [0.05, 0.5, 0.95])
    assert f"x[0] {', '.join(f'{one:.3g}' for one in quantiles)}" in str(report)
    # The means of the others are checked.
    assert {one.where for one in report.rows if one.name == "MCSE / sd"} == {"x[1]"}
    # Weights of lists need means: they fail, and more draws are no remedy.
    weights = external_posterior(values[..., :1], NAMES[:1])
    advice = failed(weights)["tails (Pareto k̂)"].advice
    assert "use a prior with lighter tails" in advice
    assert "draw more" not in advice
    values[1, :, 0] += 3.0  # is found by the ranks
    assert "R-hat" in failed(free)


@pytest.mark.parametrize(
    ("where", "value", "name", "advice"),
    [
        ((slice(None), slice(None), 1), 0.0, "constant", "fix it instead"),
        ((0, slice(None), 1), 0.0, "equal draws", "take smaller steps"),
        ((slice(None), slice(None), 1), np.nan, "not finite", "4000 of 4000 draws of TM0"),
        ((1, 7, 1), np.inf, "not finite", "1 of 4000 draws of TM0"),
    ],
)
def test_a_constant_or_broken_chain_fails(
    where: tuple, value: float, name: str, advice: str
) -> None:
    draws = good()
    draws[where] = value
    failures = failed(external_posterior(draws, NAMES))
    assert advice in failures[name].advice
    assert all(one.where == "TM0" for one in failures.values() if one.name != "equal draws")
    assert len(failures) == 1 or name == "equal draws"


@pytest.mark.parametrize("shape", [(1, 1000), (50, 40), (500, 10)])
def test_the_required_effective_draws_do_not_depend_on_the_number_of_chains(
    shape: tuple[int, int],
) -> None:
    drawn = np.random.default_rng(4).normal(size=(*shape, 2))
    report = check(name_weights(drawn, NAMES[:2]))
    assert report, str(report)
    assert found(report, "bulk ESS").limit == "≥ 400"


STUCK = np.repeat(np.arange(CHAINS, dtype=float), DRAWS).reshape(CHAINS, DRAWS)


def test_the_worst_cell_of_another_site_is_named() -> None:
    raw = np.random.default_rng(2).normal(size=(CHAINS, DRAWS, 2, 2))
    raw[2, :, 1, 0] += 1.0
    finding = failed(external_posterior(good(), NAMES, sites={"raw": raw}))["R-hat"]
    assert "for raw[1, 0]" in finding.advice
    broken = raw[..., 0, 0].copy()
    broken[1, 7] = np.inf
    findings = failed(external_posterior(good(), NAMES, sites={"scale": broken}))
    assert {finding.where for finding in findings.values()} == {"scale"}


def test_a_site_and_a_feature_of_one_name_are_both_checked() -> None:
    site = failed(external_posterior(good(), NAMES, sites={"TM0": STUCK}))["R-hat"]
    assert site.where == "TM0 (2)"
    assert site.value > 1000
    draws = good()
    draws[..., 1] = STUCK
    normal = np.random.default_rng(2).normal(size=(CHAINS, DRAWS))
    assert failed(external_posterior(draws, NAMES, sites={"TM0": normal}))["R-hat"].where == "TM0"


def test_a_constant_fails_only_if_it_is_a_sampled_site() -> None:
    correlation = np.ones((CHAINS, DRAWS, 2, 2))
    correlation[..., 0, 1] = correlation[..., 1, 0] = ENERGY
    sites = {"total": np.full((CHAINS, DRAWS), 3.0), "correlation": correlation}
    draws = as_weight_draws(external_posterior(good(), NAMES, sites=sites))
    assert check(draws)
    assert not check(with_parts(draws, sampled=("weights", "total")))


def test_functions_of_the_sampled_sites_are_not_looked_at_but_the_weights_are() -> None:
    other = {"raw": good()[..., 0], "sum": STUCK}
    draws = with_parts(
        as_weight_draws(external_posterior(good(), NAMES, sites=other)), sampled=("raw",)
    )
    assert check(draws)
    stuck = np.repeat(STUCK[..., None], len(NAMES), axis=-1)
    assert not check(with_parts(draws, values={**draws.draws.values, "weights": stuck}))


def test_a_chain_elsewhere_is_found_where_r_hat_accepts_it() -> None:
    draws = good(0.0)
    draws[2, :, 1] += 0.25
    report = check(name_weights(draws, NAMES))
    assert found(report, "R-hat").passed
    assert [(finding.name, finding.where) for finding in report.failures] == [
        ("chain means (|z|)", "TM0")
    ]


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_differences_of_chains_are_z_scores(correlation: float) -> None:
    """Their spread is that of a normal distribution."""
    values = autoregressive(correlation, CHAINS, DRAWS, 200, seed=2)
    assert compare_chains(values).std() == pytest.approx(1.0, abs=0.1)  # 2.8 standard errors


@pytest.mark.parametrize("degrees", [1.0, 1.2])
def test_means_that_barely_exist_are_found(degrees: float) -> None:
    draws = good()
    draws[..., 2] = np.random.default_rng(3).standard_t(degrees, size=(CHAINS, DRAWS))
    finding = failed(name_weights(draws, NAMES))["tails (Pareto k̂)"]
    assert finding.where == "WP0"
    assert finding.value == pytest.approx(1 / degrees, abs=0.3)
    draws[..., 2] = np.random.default_rng(3).standard_t(4.0, size=(CHAINS, DRAWS))
    assert check(name_weights(draws, NAMES))


def test_heavy_tails_of_correlated_draws_are_found() -> None:
    """A visit to a tail is many draws; chains of samplers: benchmarks/bench_copies.py."""

    def refused(degrees: float, seed: int) -> bool:
        visits = np.random.default_rng(seed).standard_t(degrees, size=(CHAINS, DRAWS, 1))
        draws = name_weights(np.repeat(visits, 5, axis=1), ("LM0",))
        return not Tails().measure(Run(draws.draws)).passed

    assert sum(refused(1.0, seed) for seed in range(20)) >= 18
    assert not any(refused(3.0, seed) for seed in range(20))


def test_a_random_walk_that_moves_may_repeat_draws() -> None:
    values = np.repeat(good(0.0), 8, axis=1)
    assert check(name_weights(values, NAMES))


def test_the_report_says_what_one_chain_cannot_show() -> None:
    sentence = "one chain: R-hat compares its halves"
    assert sentence in str(check(name_weights(good()[:1], NAMES)))
    assert sentence not in str(check(name_weights(good(), NAMES)))


def weighted(log_weight: np.ndarray, **figures: Any) -> Draws:
    draws = autoregressive(0.0, 1, len(log_weight), 3, seed=1)
    posterior = external_posterior(draws, NAMES, log_weight=log_weight[None])
    return with_record(as_weight_draws(posterior), figures=Figures(**figures))


def test_importance_weights_are_checked_by_their_effective_size_and_tail() -> None:
    log_weight = np.random.default_rng(3).normal(size=2000)
    report, w = check(weighted(log_weight)), np.exp(log_weight)
    assert report
    assert found(report, "ESS of the weights").value == pytest.approx(w.sum() ** 2 / (w @ w))
    # Weights of a Pareto distribution of index 1 have k = 1.
    heavy = failed(weighted(np.random.default_rng(3).exponential(size=20_000)))["Pareto k̂"]
    assert heavy.value == pytest.approx(1.0, abs=0.2)
    assert "unreliable" in heavy.advice
    # The tail of weights that are almost equal does not matter.
    even = check(weighted(1e-4 * np.random.default_rng(3).pareto(1.0, 2000)))
    assert found(even, "Pareto k̂").value > 0.7
    assert even


def test_a_recorded_k_hat_only_counts_if_it_is_the_larger_one() -> None:
    heavy = np.random.default_rng(0).standard_normal(4000) * 3
    computed = failed(weighted(heavy))["Pareto k̂"].value
    for recorded, expected in ((0.1, computed), (9.0, 9.0), (np.nan, computed)):
        assert failed(weighted(heavy, pareto_k=recorded))["Pareto k̂"].value == expected


def test_a_report_is_data_a_table_and_html() -> None:
    draws = good()
    draws[2, :, 1] += 2.0
    report = check(external_posterior(draws, ("LM0", "<b>TM0", "WP0")))
    data = json.loads(json.dumps(report.as_dict()))
    assert (data["passed"], data["chains"], data["draws"]) == (False, CHAINS, DRAWS)
    assert [finding["name"] for finding in data["findings"]] == [f.name for f in report.rows]
    text, outline = str(report), Outline(report._repr_html_())
    parts = [finding.advice.rsplit(": ", 1) for finding in report.failures]
    assert all(fault in text and remedy in text for fault, remedy in parts)
    assert len({remedy for _, remedy in parts}) == text.count("\n- ")
    assert text.count("FAILED") == len(report.failures)
    assert "b" not in outline.tags
    assert outline.column(0, "worst at")["R-hat"] == "<b>TM0"
    assert any("NOT converged" in text for text in outline.texts)


#: Draws of chains whose diagnostics all fail.
SHORT = 200
OF_NUTS = {"n_steps": np.ones((CHAINS, SHORT)), "diverging": np.ones((CHAINS, SHORT), bool)}
_VALUE = re.compile(r"(\w+)=([\w.]+)")
_SAMPLER = re.compile(r"\b(nuts|rwm)\b")


def alternatives(sampler: str, advice: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the samplers and settings that an advice names."""
    for alternative in re.split(r", or | or |; ", advice):
        values = {name: json.loads(value) for name, value in _VALUE.findall(alternative)}
        yield next(iter(_SAMPLER.findall(alternative)), sampler), values


def poor(sampler: str, chosen: str | None = None) -> Iterator[Report]:
    """Yield reports in which every diagnostic of a sampler's draws fails."""
    settings = SAMPLERS[sampler]().settings() if sampler != "weight-trace" else {"restarts": 20}
    figures = Figures(chosen=chosen, chosen_because="of a test")
    record = Record(sampler=SamplerRecord(name=sampler, settings=settings), figures=figures)
    values = autoregressive(0.99, CHAINS, SHORT, 1, seed=1)
    values[2] += 3.0
    values[:, SHORT // 2 :] += 2.0
    draws = name_weights(values, NAMES[:1], record=record)
    if "nuts" in (sampler, chosen):
        energy = np.cumsum(np.random.default_rng(1).normal(size=(CHAINS, SHORT)), axis=1)
        draws = with_parts(draws, statistics={**OF_NUTS, "energy": energy})
    for rate in (0.001, 0.999):
        rates = np.full((CHAINS, SHORT), rate)
        # With low energies, too, advice names no settings.
        for statistics in (
            draws.draws.statistics,
            {k: x for k, x in OF_NUTS.items() if chosen is None},
        ):
            yield check(with_parts(draws, statistics={**statistics, "acceptance_rate": rates}))
    weights = 15 * np.random.default_rng(3).normal(size=(CHAINS, SHORT))
    yield check(with_parts(draws, kind="weighted", log_weight=weights))


@pytest.mark.parametrize(
    ("sampler", "chosen"), [*((name, None) for name in SAMPLERS), ("auto", "imh"), ("auto", "nuts")]
)
def test_every_advice_can_be_followed(sampler: str, chosen: str | None) -> None:
    advised = 0
    for report in poor(sampler, chosen):
        assert len(report.failures) >= 2
        for finding in report.failures:
            named = list(alternatives(sampler, finding.advice))
            for other, settings in named:
                if other != "weight-trace":
                    SAMPLERS.resolve(other, settings)
                else:
                    assert settings.keys() <= {"delta", "restarts"}
                advised += len(settings) + (other != sampler)
            samplers = [SAMPLERS[name] for name in (sampler, *dict(named))]
            has_warmup = any("warmup" in one.__struct_fields__ for one in samplers)
            assert has_warmup or "warmup" not in finding.advice
    assert advised


def test_other_programs_are_advised_in_words() -> None:
    values = autoregressive(0.99, CHAINS, SHORT, len(NAMES), seed=1)
    for finding in check(name_weights(values, NAMES)).failures:
        assert "=" not in finding.advice
        assert "draw" in finding.advice


@pytest.mark.parametrize(("size", "factor"), [(360, 1.1), (50, 8), (5, None), (np.nan, None)])
def test_the_missing_effective_draws_are_advised(size: float, factor: float | None) -> None:
    """Of 400 effective draws; too many to draw are another sampler's task."""
    sampler = SamplerRecord(name="rwm", settings={"draws": 1000, "warmup": 50})
    record = Record(sampler=sampler)
    draws = name_weights(np.zeros((CHAINS, DRAWS, 1)), ("LM0",), record=record)
    advice = find_advice(draws.draws).more_draws(400 / size)
    numbers = [int(number) for number in re.findall(r"draws=(\d+)", advice)]
    assert "nuts" in advice
    if factor is None:
        assert not numbers
    else:
        assert factor * DRAWS < numbers[0] < 2.5 * factor * DRAWS
        assert len(str(numbers[0]).rstrip("0")) <= 2


@pytest.mark.parametrize("shift", [5 * np.exp(-np.arange(DRAWS) / 100), np.arange(DRAWS) > 700])
def test_parts_of_one_chain_that_disagree_are_found(shift: np.ndarray) -> None:
    values = autoregressive(0.2, 1, DRAWS, len(NAMES), seed=1)
    values[..., 1] += 2 * shift
    finding = failed(name_weights(values, NAMES))["R-hat"]
    assert finding.where == "TM0"
    assert "parts of the chain" in finding.advice


@pytest.mark.parametrize("copied", [slice(None), slice(0, 600), slice(400, None)])
def test_copied_chains_are_found(copied: slice, tmp_path: Path) -> None:
    """Whole, shorter by a burn-in, and after a round trip through files."""
    values = good()
    first, last = values.copy(), values.copy()
    length = len(range(DRAWS)[copied])
    last[3, :length] = values[1, copied]  # shifted, if a burn-in is cut
    assert check(name_weights(first, NAMES))
    finding = failed(name_weights(last, NAMES))["independent chains (p)"]
    assert (finding.value, finding.where) == (0, "chain 3")
    write_posterior(name_weights(first[:2], NAMES), tmp_path / "run.nc")
    twice = np.concatenate([read_weight_draws(tmp_path / "run.nc").weights] * 2)
    advice = failed(name_weights(twice, NAMES))["independent chains (p)"].advice
    assert advice.startswith("chains 0 and 2, and 1 other pair, have the same draws")


def walkers(chains: int, time: float, effective: float, seed: int) -> np.ndarray:
    """AR(1) chains of two variables, of an autocorrelation time and a number of effective draws."""
    draws = round(effective * time / chains)
    return autoregressive((time - 1) / (time + 1), chains, draws, 2, seed)


@pytest.mark.parametrize(
    ("chains", "time", "effective"),
    [
        (4, 3, 1333),
        *(
            pytest.param(chains, time, 1300, marks=pytest.mark.slow)
            for chains in (4, 16, 32, 64)
            for time in (1, 10, 50)
            if chains < 64 or time > 1  # with more chains than draws, they may be exchanged
        ),
    ],
)
def test_good_chains_are_refused_as_seldom_as_stated(
    chains: int, time: float, effective: float
) -> None:
    # 1,000 runs are in benchmarks/bench_checks.py; of 40 at 1% more than 3 are one in 1,500.
    runs = (walkers(chains, time, effective, seed) for seed in range(40))
    assert sum(not check({"x": values}) for values in runs) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("chains", [4, 16, 64])
def test_a_chain_that_is_apart_is_found_among_many(chains: int) -> None:
    """By .3 sd, with 500 effective draws each: mostly, and by its mean."""
    seen = 0
    for seed in range(40):
        values = walkers(chains, 5, 500 * chains, seed)
        values[1] += 0.3
        seen += "chain means (|z|)" in failed(name_weights(values, NAMES[:2]))
    assert seen >= 30


@pytest.mark.parametrize(("chains", "effective"), [(1, 150), (4, 250), (32, 480)])
def test_chains_that_are_short_do_not_disagree(chains: int, effective: float) -> None:
    """They need more draws, and no longer warm-up; and one that is apart disagrees all the same."""
    values, runs = walkers(chains, 10, effective, 4), {}
    for name, shift in {"short": 0.0, "apart": 4.0}.items():
        parts = values.copy()
        parts[-1, parts.shape[1] // 2 * (chains == 1) :] += shift
        runs[name] = failed({"x": parts})["R-hat"].advice
    assert re.search(
        r"\d+ effective draws a chain of x\[\d\], where R-hat needs \d+: ", runs["short"]
    )
    assert "draw more" in runs["short"]
    assert "warmup" not in runs["short"]
    assert " disagree " in runs["apart"]


FEATURES = [f"F{k}" for k in range(8)]


def problem(kind: str) -> Callable[..., Any]:
    """Twenty lists of five candidates: with an oracle, a gain, or 60 with a preference."""
    count = 60 if kind == "preference" else 20
    rng = np.random.default_rng(4)
    features = rng.normal(size=(count, 5, len(FEATURES))) * np.linspace(0.5, 3, len(FEATURES))
    utility = features @ rng.normal(0, 0.4, len(FEATURES)) + rng.gumbel(size=(count, 5))
    texts = [[f"{s} {k}" for k in range(5)] for s in range(count)]
    lists = from_lists(texts, features, FEATURES, extras={"gain": utility.tolist()})
    if kind == "preference":
        better = [[[0, 1] if first > second else [1, 0]] for first, second, *_ in utility]
        lists = lists.without("gain").with_sentence_extras(preferences=better)
        return partial(adapt, lists)
    return partial(adapt, lists, dict.fromkeys(FEATURES, 0.1), gain="gain", likelihood=kind)


ADVISED: list[tuple[str, str, dict[str, Any]]] = [
    ("oracle", "rwm-isotropic", {"proposal_variance": 9.0}),
    ("oracle", "rwm", {"scale": 30.0}),
    ("oracle", "imh", {"draws": 60}),
    ("oracle", "heuristic", {"draws": 100, "delta": 8.0}),
    ("oracle", "rwm-isotropic", {}),
    ("risk", "rwm-isotropic", {}),
    ("preference", "rwm-isotropic", {}),
    ("oracle", "rwm-isotropic", {"proposal_variance": 1e-4}),
    ("oracle", "rwm", {"thinning": 1}),
    ("oracle", "rwm", {"scale": 0.1}),
    ("preference", "nuts", {"draws": 60}),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")  # of draws that are no posterior
@pytest.mark.parametrize(("kind", "sampler", "settings"), ADVISED)
def test_every_advice_followed_once_gives_draws_that_pass(
    kind: str, sampler: str, settings: dict[str, Any]
) -> None:
    report = check(problem(kind)(sampler=SAMPLERS.resolve(sampler, settings)))
    assert not report
    advised = set()
    for finding in report.failures:
        for other, values in alternatives(sampler, finding.advice):
            if (other, values) != (sampler, {}):
                values = settings | values if other == sampler else values
                advised.add(SAMPLERS.resolve(other, values))
    assert advised
    for changed in advised:
        again = check(problem(kind)(sampler=changed, seed=1))
        assert again, f"{changed}\n{report}\n{again}"


def test_a_longer_warmup_is_advised_only_where_it_helps() -> None:
    """Where the second half of the draws agrees, and not for proposals that it only tunes."""
    stationary = np.random.default_rng(1).normal(size=(4, 1000, 1))
    decay = np.exp(-np.arange(1000) / 50)[:, None]
    burn_in = stationary + np.array([9, -9, 4, 0])[:, None, None] * decay
    apart = stationary + np.arange(4)[:, None, None]
    settings = {"warmup": 50, "draws": 1000}
    cases = (("rwm", burn_in, True), ("rwm", apart, False), ("imh", burn_in, False))
    for sampler, values, expected in cases:
        record = Record(sampler=SamplerRecord(name=sampler, settings=settings))
        draws = name_weights(values, NAMES[:1], record=record)
        advice = failed(draws)["R-hat"].advice
        assert ("raise warmup" in advice) == expected, advice
    walk = with_record(draws, sampler=SamplerRecord(name="rwm", settings=settings))
    assert find_advice(walk.draws).agreement(3.0, settled=True) == "raise warmup (rwm:warmup=1100)"


def test_a_recorded_verdict_holds_for_the_same_draws_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = {"diverging": np.zeros((CHAINS, DRAWS), bool)}
    recorded, report = check_and_record(name_weights(good(), NAMES, statistics=statistics).draws)
    assert report
    write_posterior(recorded, tmp_path / "posterior.nc")
    copies = {name: tmp_path / f"{name}.nc" for name in ("weights", "diverging", "other")}
    for path in copies.values():
        shutil.copy(tmp_path / "posterior.nc", path)
    with (
        h5py.File(copies["weights"], "r+") as weights,
        h5py.File(copies["diverging"], "r+") as diverging,
        h5py.File(copies["other"], "r+") as other,
    ):
        weights["posterior/weights"][0] += 9
        diverging["sample_stats/diverging"][0, 0] = 1
        other.attrs["note"] = "nothing that is checked has changed"
    write_posterior(
        check_and_record(read_weight_draws(copies["weights"]).draws)[0], tmp_path / "failed.nc"
    )
    for name in ("weights", "diverging"):
        with raises(NotConverged, parameter="unchecked", match="NOT converged"):
            Reranker(copies[name])
    monkeypatch.setattr(check_module, "check_draws", lambda *_: pytest.fail("it is checked again"))
    Reranker(tmp_path / "posterior.nc")
    Reranker(copies["other"], defaults={"Other": 0.0})
    with raises(NotConverged, parameter="unchecked", match="R-hat"):
        Reranker(tmp_path / "failed.nc")
    with pytest.raises(pytest.fail.Exception):
        Reranker(copies["weights"])
