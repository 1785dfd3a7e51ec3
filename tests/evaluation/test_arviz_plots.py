"""ArviZ's plots of our posteriors: those of the gallery of ArviZ 0.23 that apply.

Those that do not: `plot_hdi`, `plot_lm`, `plot_ts` (regression on a covariate, time series),
`plot_separation` (an observation is a choice among many), `plot_dot` and `plot_kde` (arrays;
`plot_posterior` and `plot_density` call them).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib import pyplot
from support.known_targets import target
from support.posteriors import arviz_version, import_arviz

import bpa_ppl as bpa
from bpa_ppl.evaluation.predictive_checks import with_predictions

pytestmark = pytest.mark.skipif(arviz_version() >= 1, reason="ArviZ 1 has other plots")
Plot = Callable[[Any, Any], Any]


def of_weights(name: str, **options: Any) -> Plot:
    return lambda az, data: getattr(az, name)(data, var_names=["weights"], **options)


def first_weight(data: Any, group: str = "posterior") -> Any:
    return data[group]["weights"][..., 0].values


def bayes_factor(az: Any, data: Any) -> Any:
    groups = {group: {"w": first_weight(data, group)} for group in ("posterior", "prior")}
    return az.plot_bf(az.from_dict(**groups), "w", ref_val=0.0)


def loos(az: Any, data: Any) -> Any:
    return {name: az.loo(one, var_name="oracle", pointwise=True) for name, one in data}


#: For draws that count equally: chains, or importance samples after `resampled()`.
ANY_DRAWS: dict[str, Plot] = {
    "posterior": of_weights("plot_posterior"),
    "forest": of_weights("plot_forest", combined=True),
    "ridge": of_weights("plot_forest", kind="ridgeplot"),
    "pair": of_weights("plot_pair", kind="kde", marginals=True),
    "density": of_weights("plot_density"),
    "violin": of_weights("plot_violin"),
    "dist": lambda az, data: az.plot_dist(first_weight(data)),
    "dist_comparison": of_weights("plot_dist_comparison"),
    "ppc": lambda az, data: az.plot_ppc(data, num_pp_samples=50, random_seed=1),
    "ppc cumulative": lambda az, data: az.plot_ppc(
        data, kind="cumulative", num_pp_samples=50, random_seed=1
    ),
    "bpv": lambda az, data: az.plot_bpv(data, kind="t_stat", t_stat="mean"),
}
#: For chains; the last three for what NUTS and HMC record.
CHAINS: dict[str, Plot] = {
    "trace": of_weights("plot_trace", compact=False),
    "rank bars": of_weights("plot_trace", compact=False, kind="rank_bars"),
    "rank": of_weights("plot_rank"),
    "autocorr": of_weights("plot_autocorr", combined=True),
    "ess": of_weights("plot_ess", kind="evolution"),
    "mcse": of_weights("plot_mcse"),
    "loo_pit": lambda az, data: az.plot_loo_pit(data, y="oracle", ecdf=True),
    "khat": lambda az, data: az.plot_khat(az.loo(data, var_name="oracle", pointwise=True)),
    "ecdf": lambda az, data: az.plot_ecdf(first_weight(data).ravel()),
    "bf": bayes_factor,  # compiles for half a minute
    "energy": lambda az, data: az.plot_energy(data),
    "parallel": of_weights("plot_parallel"),
    "divergences": of_weights("plot_pair", divergences=True),
}
#: For several posteriors: pairs of a name and data.
SEVERAL: dict[str, Plot] = {
    "compare": lambda az, data: az.plot_compare(az.compare(loos(az, data))),
    "elpd": lambda az, data: az.plot_elpd(loos(az, data)),
    "density": lambda az, data: az.plot_density(
        [one for _, one in data], data_labels=[name for name, _ in data], var_names=["weights"]
    ),
    "forest": lambda az, data: az.plot_forest(
        [one for _, one in data], model_names=[name for name, _ in data], combined=True
    ),
}
#: One plot of each group of data that the plots read.
QUICK = ("forest", "dist_comparison", "ppc", "trace", "loo_pit", "khat")


def draw(plots: dict[str, Plot], names: Any, data: Any) -> None:
    """Draw some plots: ArviZ warns of changes in later versions, and its LOO of few draws."""
    mpl.use("agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            plots[name](import_arviz(), data)
            assert any(axes.has_data() for axes in pyplot.gcf().axes), name
            pyplot.close("all")


def data_of(sampler: str, **options: Any) -> Any:
    known = target("two-candidates")
    options = {**known.options, "sampler": f"{sampler}:draws=100", **options}
    posterior = bpa.adapt(known.lists, known.weights, **options)
    return with_predictions(posterior, known.lists)


@pytest.fixture(scope="module")
def imh() -> Any:
    return data_of("imh", prior="isotropic:variance=2.0")


def test_plots_of_chains(imh: Any) -> None:
    draw(ANY_DRAWS | CHAINS, QUICK, imh)


@pytest.mark.slow
def test_the_other_plots() -> None:
    plots = ANY_DRAWS | CHAINS
    draw(plots, plots.keys() - {*QUICK}, data_of("nuts"))


def test_plots_of_importance_samples() -> None:
    draw(ANY_DRAWS, ("posterior", "dist_comparison", "ppc"), data_of("laplace"))


def test_plots_of_several_posteriors(imh: Any) -> None:
    draw(
        SEVERAL,
        SEVERAL,
        [("wide", imh), ("narrow", data_of("imh", prior="isotropic:variance=0.5"))],
    )
