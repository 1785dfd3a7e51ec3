"""adapt: from n-best lists and canonical weights to a posterior over weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from bpa_ppl._runtime.messages import log_info, warn_user
from bpa_ppl.adaptation_record import change_adaptation
from bpa_ppl.adapting.adaptation import require_adaptation
from bpa_ppl.adapting.build import build_target
from bpa_ppl.adapting.indicators import choose_indicators
from bpa_ppl.adapting.observe import observe
from bpa_ppl.adapting.prepare import Prepared, prepare
from bpa_ppl.adapting.prior import choose_prior
from bpa_ppl.adapting.settings import ResolvedSettings, Settings, record_settings, resolve_settings
from bpa_ppl.adapting.warn import warn_about
from bpa_ppl.adapting.weights_target import WeightsTarget
from bpa_ppl.densities.target import NUMPYRO_LOCK
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.posterior.arviz_data import to_arviz
from bpa_ppl.posterior.arviz_functions import prepare_arviz
from bpa_ppl.sampling.finish import Finished, finish
from bpa_ppl.sampling.run_sampler import run_sampler
from bpa_ppl.weight_draws import WeightDraws
from bpa_ppl.weights import AnyStart

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData


def adapt(lists: NBest, weights: AnyStart = None, **settings: Unpack[Settings]) -> InferenceData:
    """Condition the weights on the oracles of a few sentences, or on preferences.

    Source: Sanchis-Trilles & Casacuberta (2015), Eq. 5.

    Args:
        lists: n-best lists of the adaptation sentences, with references if the gain needs them. An
            extra `domain` of the sentences numbers their domains.
        weights: the canonical weights λ_T, by feature name, or one for each column in their order;
            None or `"equal"` if there are none: see `StartingWeights`.
        settings: those of `bpa_ppl.extending.Settings`; settings of a component follow its name,
            `"margin:gamma=4"`, or belong to an object, `Margin(gamma=4)`.

    Returns:
        InferenceData with the groups named in `bpa_ppl.posterior.arviz_data`.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if a sampler, gain or setting does not exist or makes no sense.

    >>> from bpa_ppl import Isotropic, from_lists, point_weights, rerank
    >>> lists = from_lists(
    ...     [["a cat", "the cat"], ["the dog", "dog"]],
    ...     [[[1.0], [0.0]], [[0.0], [2.0]]],
    ...     ["Errors"],
    ...     references=["the cat", "the dog"],
    ... )
    >>> posterior = adapt(lists, {"Errors": 0.5}, prior="isotropic:variance=1", sampler="map")
    >>> bool(point_weights(posterior)["Errors"] < 0), rerank(lists, posterior).texts
    (True, ['the cat', 'the dog'])

    The same with settings on objects, and starting at 0:

    >>> posterior = adapt(lists, prior=Isotropic(variance=1), gain="ter", sampler="map")
    """
    resolved = resolve_settings(**settings)
    with NUMPYRO_LOCK:  # SciPy fails in a thread while xarray imports Dask in another
        prepare_arviz()
    finished = run_adaptation(lists, weights, resolved)
    with NUMPYRO_LOCK:
        return to_arviz(finished.draws)


def adapt_draws(
    lists: NBest, weights: AnyStart = None, **settings: Unpack[Settings]
) -> WeightDraws:
    """Adapt as `adapt` does, and return plain draws, without loading ArviZ.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat"]] * 2, [[[1.0], [0.0]]] * 2, ["Errors"], references=["the cat"] * 2
    ... )
    >>> adapt_draws(lists, {"Errors": 0.5}, sampler="map").features
    ('Errors',)
    """
    return WeightDraws(run_adaptation(lists, weights, resolve_settings(**settings)).draws)


def run_adaptation(
    lists: NBest,
    weights: AnyStart,
    settings: ResolvedSettings,
    *,
    reading: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> Finished:
    """Adapt as `adapt` does, and return plain draws and their check.

    One pair of candidates of which one is better is logged, to show what is learned.

    Args:
        lists: as for `adapt`.
        weights: as for `adapt`.
        settings: from `resolve_settings`.
        reading: the options with which the file of the lists was read.
        quiet: whether no pair is logged.
    """
    prepared = prepare(lists, weights, resolved=settings)
    if len(prepared.judged.lists) == 1 and not prepared.answers:
        warn_user("one judged list teaches little about the weights: judge at least ten")
    target = _build(prepared)
    if (example := require_adaptation(target).observed.example) and not quiet:
        log_info(example)
    progress = prepared.settings.progress
    run = run_sampler(target, prepared.sampler, seed=prepared.settings.seed, progress=progress)
    draws, report = finish(run, progress=progress)
    options = record_settings(weights, settings.given)
    record = change_adaptation(draws.record, options=options, reading=dict(reading or {}))
    return Finished(replace(draws, record=record), report)


def _build(prepared: Prepared) -> WeightsTarget:
    """Return the density of the posterior: all steps from the lists to the target."""
    warn_about(prepared)
    observed = observe(prepared)
    prepared, observed = choose_indicators(prepared, observed)
    prior = choose_prior(observed, prepared)
    return build_target(prepared, observed, prior)


def log_density(
    lists: NBest, weights: AnyStart = None, **settings: Unpack[Settings]
) -> WeightsTarget:
    """Return the log density of the posterior that `adapt` samples, with the arguments of `adapt`.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if a gain, likelihood, prior or setting does not exist or makes no sense.

    Newton's method on it, without this package:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> settings = {"likelihood": "oracle", "prior": "isotropic:variance=1"}
    >>> with jax.enable_x64(True):
    ...     density = log_density(lists, {"LM0": 0.5}, **settings)
    ...     z = density.initial_position
    ...     for _ in range(5):
    ...         z = z - jnp.linalg.solve(jax.hessian(density)(z), jax.grad(density)(z))
    ...     print(density.constrain(z)["weights"].round(4))
    [0.8083]
    """
    return _build(prepare(lists, weights, **settings))
