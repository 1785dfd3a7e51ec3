"""ArviZ's plots of our posteriors: each of the gallery that applies is drawn without an error."""

from __future__ import annotations

import warnings
from typing import Any

import arviz_gallery as gallery
import numpy as np
import pytest

import bpa_ppl as bpa
from bpa_ppl.diagnostics import with_predictions
from bpa_ppl.experiments import target
from bpa_ppl.posterior.arviz_functions import generation

pytestmark = pytest.mark.skipif(generation() >= 1, reason="ArviZ 1 has other plots")


@pytest.fixture(autouse=True)
def without_warnings_of_arviz() -> Any:
    """Its plots warn of changes in later versions, and its LOO of few draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def data_of(sampler: str, name: str = "two-hypotheses", **options: Any) -> Any:
    known = target(name)
    options = {**known.options, "draws": 100, **options}
    posterior = bpa.adapt(known.lists, known.weights, sampler=sampler, **options)
    gains = np.random.default_rng(0).normal(size=len(known.lists.features))
    return with_predictions(posterior, known.lists, gains=gains)


@pytest.fixture(scope="module")
def nuts() -> Any:
    return data_of("nuts")


#: One plot of each group of data that the plots read.
QUICK = ("plot_forest", "plot_dist_comparison", "plot_ppc", "plot_trace", "plot_loo_pit")
QUICK += ("plot_khat", "plot_energy", "plot_pair (divergences)")


@pytest.mark.parametrize("name", QUICK)
def test_plots_of_chains(nuts: Any, name: str) -> None:
    plots = gallery.ANY_DRAWS | gallery.CHAINS | gallery.HMC
    gallery.draw({name: plots[name]}, nuts, None)


@pytest.mark.slow
def test_the_other_plots(nuts: Any) -> None:
    plots = gallery.ANY_DRAWS | gallery.CHAINS | gallery.HMC | gallery.SLOW
    gallery.draw({name: plots[name] for name in plots if name not in QUICK}, nuts, None)


def test_plots_of_importance_samples() -> None:
    plots = ("plot_posterior", "plot_dist_comparison", "plot_ppc")
    gallery.draw({name: gallery.ANY_DRAWS[name] for name in plots}, data_of("laplace"), None)


def test_plots_of_several_posteriors() -> None:
    both = [(str(v), data_of("imh", prior_variance=v)) for v in (2.0, 0.5)]
    gallery.draw(gallery.SEVERAL, both, None)
