"""Simulations of the oracles, or of the answers, of lists, for simulation-based calibration."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.adapting.adaptation import require_adaptation
from bpa_ppl.adapting.weights_target import Model, WeightsTarget
from bpa_ppl.densities.target import NUMPYRO_LOCK, inspect_model
from bpa_ppl.diagnostics.samplers.calibration import Simulation, label_cells, simulate
from bpa_ppl.errors import UsageError
from bpa_ppl.gains.gains import AnyGain, resolve
from bpa_ppl.gains.oracles import Oracles
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.weight_draws import WEIGHTS
from bpa_ppl.weights import AnyStart

if TYPE_CHECKING:
    from bpa_ppl.models.priors.prior import Prior, PriorFamily

_OBSERVED = "oracle"


def make_lists_simulation(
    lists: NBest,
    weights: AnyStart,
    *,
    prior: str | PriorFamily | Prior = "isotropic:variance=0.1",
    likelihood: str | Likelihood = "oracle",
    gain: AnyGain | None = None,
    model: Model = log_linear,
) -> Simulation:
    """Return how the oracles or answers of lists are simulated, for `calibrate`.

    Weights are drawn from the prior, and oracles or answers from the model given the weights. The
    lists need no references.

    Args:
        lists: the lists; preferences in them say which candidates are compared, and by whom.
        weights: the canonical weights λ_T.
        prior: from which the weights are drawn.
        likelihood: a distribution of the observations: `oracle` or `preference`.
        gain: if the likelihood uses gains; as for `adapt`.
        model: a NumPyro model with the sites `weights` and `oracle`, such as one of your own.

    Raises:
        DataError: if lists and weights do not fit together.
        UsageError: if the likelihood cannot be simulated.

    >>> from bpa_ppl import calibrate, from_lists
    >>> texts, features = [["a", "b"]] * 8, [[[1.0], [0.0]], [[0.0], [2.0]]] * 4
    >>> simulation = make_lists_simulation(from_lists(texts, features, ["LM0"]), {"LM0": 0.5})
    >>> (result,) = calibrate(simulation, samplers=["laplace:draws=200"], replications=20)
    >>> result.names, bool(result)
    (('LM0', 'log likelihood'), True)
    """
    resolved = LIKELIHOODS.resolve(likelihood)
    _require_generative(resolved)
    first = np.zeros(len(lists), np.int64)
    key = "" if gain is None else resolve(gain, lists).key
    density = log_density(
        lists,
        weights,
        gain=Oracles(first, np.full(len(first), np.nan), first + 1, "", key, ""),
        likelihood=resolved,
        prior=prior,
        model=model,
    )
    return make_density_simulation(density)


def make_density_simulation(density: WeightsTarget) -> Simulation:
    """Return how the oracles or answers of a density of lists are simulated, for `calibrate`.

    Args:
        density: the result of `log_density`, whose own oracles or answers are not used.

    Raises:
        UsageError: if its likelihood cannot be simulated, answers have weights other than 1, or the
            density was not made by `log_density`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> make_density_simulation(log_density(lists, {"LM0": 0.5}, likelihood="oracle")).labels
    {'weights': ('LM0',)}
    """
    adaptation = require_adaptation(density)
    _require_generative(adaptation.likelihood)
    choices = adaptation.observed.choices
    if choices is not None and (choices.weight != 1).any():
        message = "answers with weights other than 1 cannot be simulated: leave out the weights"
        raise UsageError(message, parameter="likelihood", code="not-supported")
    with NUMPYRO_LOCK, jax.enable_x64(True):
        others = [name for name in inspect_model(density).latent if name != WEIGHTS]
        labels = {WEIGHTS: density.features, **label_cells(density, others)}
    return Simulation(labels, partial(simulate, density, tuple(labels)), partial(_given, density))


def _given(density: WeightsTarget, simulated: dict[str, Any]) -> WeightsTarget:
    """Return the posterior given simulated oracles, by site."""
    oracle = simulated[_OBSERVED].astype(density.lists.oracle.dtype)
    lists = density.lists._replace(oracle=oracle)
    return replace(density, data=density.data._replace(lists=lists))


def _require_generative(likelihood: Likelihood) -> None:
    """Refuse a likelihood that is no distribution of what is observed."""
    if not likelihood.generative:
        name = LIKELIHOODS.name_of(likelihood)
        message = f"oracles cannot be simulated from {name}: choose oracle or preference"
        raise UsageError(message, parameter="likelihood", code="not-supported")
