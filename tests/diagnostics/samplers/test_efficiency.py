"""The cost of samplers: numbers against ArviZ and simulation, intervals by their coverage."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from scipy.stats import t as student
from support.posteriors import (
    InferenceData,
    autoregressive,
    external_posterior,
    import_arviz,
    name_array,
)

from bpa_ppl import compare
from bpa_ppl.diagnostics.samplers.efficiency import (
    COLUMNS,
    Row,
    ess_of_means,
    measure_running_error,
    rank_samplers,
)

NAMES = ("LM0", "TM0", "WP0")


def runs(count: int = 4, correlation: float = 0.3) -> list[InferenceData]:
    """AR(1) chains of standard normal draws."""
    chains = (autoregressive(correlation, 4, 500, 3, seed=seed) for seed in range(count))
    return [external_posterior(values, NAMES) for values in chains]


def cost_of(*given: object) -> Row:
    return compare({"x": list(given)})["x"].efficiency


def test_the_numbers_are_those_of_arviz() -> None:
    some, arviz = runs(count=1, correlation=0.8), import_arviz()
    cost = cost_of(*some)
    assert tuple(cost) == COLUMNS
    for name, method in {"ess": "mean", "bulk_ess": "bulk", "tail_ess": "tail"}.items():
        tail = {"prob": (0.05, 0.95)} if method == "tail" else {}
        expected = arviz.ess(some[0], method=method, **tail)["weights"].values.min()
        assert cost[name] == pytest.approx(expected)
    assert cost["r_hat"] == pytest.approx(arviz.rhat(some[0])["weights"].values.max())
    assert cost["kish_ess"] is None


@pytest.mark.slow
def test_evaluations_of_numpyro_are_its_steps() -> None:
    def model() -> None:
        numpyro.sample("mu", dist.Normal(0.0, 1.0))

    chains = {"num_chains": 2, "chain_method": "sequential", "progress_bar": False}
    mcmc = MCMC(NUTS(model), num_warmup=100, num_samples=200, **chains)
    mcmc.run(jax.random.key(0), extra_fields=("num_steps",))
    cost = cost_of(import_arviz().from_numpyro(mcmc))
    steps = float(mcmc.get_extra_fields()["num_steps"].sum())
    assert cost["evaluations"] == pytest.approx(steps)
    assert cost["ess_per_evaluation"] == pytest.approx(cost["ess"] / steps)


def test_the_ess_of_weighted_draws_is_the_variance_ratio_of_their_means() -> None:
    """Against the spread of 1000 self-normalised means of 300 draws; chi-squared: sd 4.5 %."""
    rng = np.random.default_rng(3)
    x = 1.5 * rng.normal(size=(1000, 1, 300, 1))
    samples = [
        name_array(
            one, ("LM0",), kind="weighted", log_weight=-0.5 * one[..., 0] ** 2 * (1 - 1.5**-2)
        )
        for one in x
    ]
    expected = 1 / np.var([draws.mean[0] for draws in samples])
    sizes = [ess_of_means(draws)[0] for draws in samples]
    assert np.mean(sizes) == pytest.approx(expected, rel=4 * 0.045)
    # Kish's formula is another number: it counts draws, for any function.
    cost = cost_of(*samples[:4])
    assert abs(cost["kish_ess"] / expected - 1) > 4 * 0.045
    assert (cost["bulk_ess"], cost["tail_ess"], cost["r_hat"]) == (None, None, None)


def test_costs_are_stated_as_far_as_recorded() -> None:
    silent, timed = runs(count=2), runs(count=2)
    for run in silent:  # settings do not say how often the density was evaluated
        run.attrs["settings"] = '{"thinning": 10}'
    cost = cost_of(*silent)
    unknown = ("acceptance", "seconds", "evaluations", "ess_per_evaluation", "ess_per_second")
    assert [cost[name] for name in unknown] == [None] * len(unknown)
    for seconds, run in zip((2.0, 8.0), timed, strict=True):
        run["posterior"].attrs["sampling_time"] = seconds
        weights = run["posterior"]["weights"]
        run["sample_stats"] = weights[..., 0].astype(int).rename("n_steps").to_dataset() * 0 + 3
    cost = cost_of(*timed)
    assert (cost["acceptance"], cost["seconds"]) == (None, 5.0)
    sizes = [run["ess"] for run in cost["per_run"]]
    assert cost["ess"] == pytest.approx(np.mean(sizes))
    assert cost["ess_per_second"] == pytest.approx(np.sqrt(np.prod(sizes)) / 4)
    rates, (low, high) = np.log(np.array(sizes) / (2, 8)), cost["ess_per_second_interval"]
    half = student.ppf(0.975, 1) * rates.std(ddof=1) / np.sqrt(2)
    np.testing.assert_allclose(np.log([low, high]), [rates.mean() - half, rates.mean() + half])
    assert cost["evaluations"] == 4 * 500 * 3
    assert cost["ess_per_evaluation"] == pytest.approx(np.sqrt(np.prod(sizes)) / 6000)


def test_the_running_error_of_independent_draws_is_one_over_the_root_of_their_number() -> None:
    rng = np.random.default_rng(5)
    exact = name_array(np.full((1, 2, 50), [[3.0], [7.0]]), tuple(map(str, range(50))))
    drawn = [
        name_array(
            5 + 2 * rng.normal(size=(2, 500, 50)),
            exact.names,
            statistics={"n_steps": np.ones((2, 500))},
        )
        for _ in range(8)
    ]
    rows = measure_running_error(drawn, exact)
    assert (rows[0]["evaluations"], rows[-1]["evaluations"]) == (2, 1000)
    for row in rows:  # 400 squared errors: their mean has a relative error of √(2 / 400)
        squared = row["error"] ** 2 * row["evaluations"]
        assert abs(squared - 1) < 4 * np.sqrt(2 / 400)
    shifted = [name_array(run.array + 1, exact.names, statistics=run.statistics) for run in drawn]
    assert measure_running_error(shifted, exact)[-1]["error"] == pytest.approx(0.5, abs=0.01)


def test_the_running_error_of_weighted_draws_counts_weights_and_the_warm_up() -> None:
    """By hand: the means are 4, then (3 · 4 + 1 · 0) / 4 = 3; the reference has 1 ± 2."""
    reference = name_array(np.array([[[-1.0], [3.0]]]), ("x",))
    run = name_array(
        np.array([[[4.0], [0.0]]]),
        ("x",),
        kind="weighted",
        log_weight=np.log([[3.0, 1.0]]),
        statistics={"n_steps": np.array([[10, 20]])},
        warmup={"weights": np.zeros((1, 6, 1))},
    )
    first, second = measure_running_error([run], reference)
    assert (first["evaluations"], first["error"]) == (6 * 15 + 10, pytest.approx(1.5))
    assert (second["evaluations"], second["error"]) == (6 * 15 + 30, pytest.approx(1.0))
    assert measure_running_error([run, replace(run, statistics={})], reference) == ()


def with_rates(rates: np.ndarray) -> Row:
    """The costs of a sampler with these effective draws per second."""
    mean = float(np.exp(np.log(rates).mean()))
    per_run = [{"ess_per_second": rate} for rate in rates.tolist()]
    return {"ess_per_second": mean, "ess_per_second_interval": None, "per_run": per_run}


def test_ranks() -> None:
    """One run has no interval; a sampler that may be the fastest shares the first place."""
    one = runs(count=1)
    one[0]["posterior"].attrs["sampling_time"] = 2.0
    cost = cost_of(*one)
    assert cost["ess_per_second"] == pytest.approx(cost["ess"] / 2)
    (rank,) = rank_samplers({"one": cost})
    assert (rank["ratio"], rank["interval"], rank["ratio_interval"]) == (1.0, None, None)
    both = rank_samplers({"one": cost, "two": with_rates(np.array([1.0, 2.0]))})
    assert [rank["ratio_interval"] for rank in both] == [None, None]
    rates = {"slow": [1.0, 1.2], "near": [3.0, 5.5], "fast": [4.0, 5.0]}
    ranks = rank_samplers({name: with_rates(np.array(values)) for name, values in rates.items()})
    places = [(rank["sampler"], rank["place"]) for rank in ranks]
    assert places == [("fast", 1), ("near", 1), ("slow", 3)]


def test_ratios_cover_the_truth_on_a_machine_that_drifts() -> None:
    """Runs of a round share the speed of the machine; 95 % of the intervals contain 1/4."""
    rng, inside, widths = np.random.default_rng(5), 0, []
    for _ in range(1000):
        machine = np.exp(rng.normal(scale=0.5, size=4).cumsum())
        fast, slow = (
            mean * machine * np.exp(rng.normal(scale=0.1, size=4)) for mean in (400.0, 100.0)
        )
        rank = rank_samplers({"slow": with_rates(slow), "fast": with_rates(fast)})[1]
        low, high = rank["ratio_interval"]
        assert low < rank["ratio"] < high
        inside += low < 0.25 < high
        widths.append(np.log(high / low))
    assert abs(inside - 950) < 4 * np.sqrt(1000 * 0.95 * 0.05)
    # Two standard errors of a ratio with 3 degrees of freedom: 2 × 3.18 × 0.1 √2 / √4.
    assert np.mean(widths) == pytest.approx(0.45, rel=0.15)
