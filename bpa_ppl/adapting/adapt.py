"""adapt: from n-best lists and canonical weights to a posterior over weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from bpa_ppl.adapting.build import build_target
from bpa_ppl.adapting.draw import run_sampler
from bpa_ppl.adapting.finish import Finished, finish
from bpa_ppl.adapting.indicators import choose_indicators
from bpa_ppl.adapting.observe import observe
from bpa_ppl.adapting.prepare import Prepared, prepare
from bpa_ppl.adapting.prior import choose_prior
from bpa_ppl.adapting.settings import ResolvedSettings, Settings, record_settings, resolve_settings
from bpa_ppl.adapting.warn import warn_about
from bpa_ppl.densities.target import NUMPYRO_LOCK, Target
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.weights import AnyStart

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData


def adapt(lists: NBest, weights: AnyStart = None, **settings: Unpack[Settings]) -> InferenceData:
    """Condition the weights on the oracles of a few sentences (Eq. 7), or on preferences.

    Settings belong to the object that they are of, `Margin(gamma=4)`, or are written after its
    name, `"margin:gamma=4"`: this holds for gains, likelihoods, priors, samplers and feature
    sources.

    Args:
        lists: n-best lists of the adaptation sentences, with references if the gain needs them;
            with no sentence at all the posterior equals the prior, which is warned about unless
            the likelihood is `none`. An extra `domain` of the sentences numbers their domains.
        weights: the canonical weights λ_T, by feature name, or one for each column in their order.
            None starts at 0 for all features but those named as log-probabilities, with a prior
            mean that follows what they have in common; `"equal"` starts at the mean of the
            standardised features. `StartingWeights` also says which weights are fixed, and where
            the weights of other features start.
        gain: how good a candidate is, which says what an oracle is: `ter`, `bleu`, `chrf`, `wer`, a
            metric, a function, or a column of the lists, which is then not a feature; or
            `Oracles` that were found before, which need no references. None is `ter` where there
            are canonical weights or totals, else `chrf`.
        likelihood: `oracle`, as published, `margin`, `risk`, `pairs`, `preference`, or `none`, with
            which the posterior equals the prior: only the features and their spread are taken
            from the lists. Settings left open are derived from the gain, and recorded. None
            is `oracle` for a published sampler, `margin` where the gain is TER, BLEU, chrF,
            `ter+bleu`, WER or CER, `pairs:exponent=0.25,power=0.75` for any other gain, and
            `preference` for lists without references that carry preferences: see
            `choose_likelihood`.
        prior: `isotropic`, as published, also with its variance, `isotropic:variance=0.5`;
            `horseshoe`; a `Prior`, such as that of other lists; or a family of priors. None is
            `isotropic` with the variance 0.1, and for features without a canonical weight with a
            scale that is learned from these sentences: see `Isotropic`.
        model: a NumPyro program of (lists, prior, likelihood) with a site `weights`; or
            `hierarchical`, with weights for each `domain` of the lists. None is `log_linear`.
        sampler: `auto`, `imh`, `nuts`, `rwm`, `laplace`, `map`; as published `heuristic`,
            `rwm-isotropic` and `weight-trace`, whose default likelihood is `oracle`; any kernel of
            NumPyro, `numpyro:HMC`; or a `Sampler`. None is `auto`. The published 100 samples of
            `heuristic` with delta=8 cannot pass `check`, which needs 100 effective ones:
            `heuristic:draws=1000,delta=50` passes. The number of draws of each chain and of chains
            are settings of the sampler: `nuts:draws=2000,chains=2`.
        features: the columns of the lists that are features: names, labels and patterns such as
            `judge_*`; `*` is every column of numbers without another role. The others become
            extras, here and in `rerank`. None takes the features of the lists.
        exclude: columns that are not features: names, labels and patterns.
        categorical: columns of texts, integers, or true and false, such as `system`, whose values
            become features of 0 and 1 with mean 0, here and in `rerank`. With other features and a
            learned scale of the prior their weights are 0 if they do not explain the order of the
            candidates, which is warned about.
        add: sources of further features with mean 0, by name or with their settings, such as
            `lm=domain.txt`: the posterior records their recipe, with the hashes of their files, and
            `rerank` computes the same features of new lists.
        preset: the sampler, the likelihood and the prior of a paper: `published` is the random walk
            of 2015, in four chains (`sampler="rwm-isotropic:chains=1"` is the one of the paper),
            `published-2010` the heuristic sample of COLING 2010 with 100 draws, delta=8 and
            σ_T = 1, `published-sspr` the weight trace of S+SSPR 2010, which needs the lists that
            the canonical weights were tuned on: `sampler="weight-trace:lists=FILE"`. What is named
            explicitly replaces it.
        seed: the same seed gives the same draws, to the bit on the same machine.
        jobs: processes that score candidates; -1 uses every core.
        progress: True draws a bar on standard error.

    Returns:
        InferenceData with the groups named in `bpa_ppl.posterior.adapter`. Its attribute
        `sampling_time` has the seconds that the sampler took, with the search for the mode and the
        warm-up, and `compilation_time` those of compilation; files leave them out unless
        `write_posterior` is asked for them.

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
    finished = run_adaptation(lists, weights, resolve_settings(**settings))
    with NUMPYRO_LOCK:  # SciPy fails in a thread while xarray imports Dask in another
        return to_arviz(finished.draws)


def adapt_draws(lists: NBest, weights: AnyStart = None, **settings: Unpack[Settings]) -> Draws:
    """Adapt as `adapt` does, and return plain draws, without loading ArviZ.

    Args:
        lists: as for `adapt`.
        weights: as for `adapt`.
        settings: the keyword arguments of `adapt`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat"]], [[[1.0], [0.0]]], ["Errors"], references=["the cat"]
    ... )
    >>> adapt_draws(lists, {"Errors": 0.5}, sampler="map").kind
    'point'
    """
    return run_adaptation(lists, weights, resolve_settings(**settings)).draws


def run_adaptation(
    lists: NBest,
    weights: AnyStart,
    settings: ResolvedSettings,
    *,
    reading: Mapping[str, Any] | None = None,
) -> Finished:
    """Adapt as `adapt` does, and return plain draws, their check and their comparison.

    Args:
        lists: as for `adapt`.
        weights: as for `adapt`.
        settings: from `resolve_settings`.
        reading: the options with which the file of the lists was read.
    """
    prepared = prepare(lists, weights, resolved=settings)
    target = _build(prepared)
    run = run_sampler(target, prepared.sampler, seed=prepared.seed, progress=prepared.progress)
    return finish(run, options=record_settings(weights, settings.given), reading=reading)


def _build(prepared: Prepared) -> Target:
    """Return the density of the posterior: all steps from the lists to the target."""
    warn_about(prepared)
    observed = observe(prepared)
    prepared, observed = choose_indicators(prepared, observed)
    prior = choose_prior(observed, prepared)
    return build_target(prepared, observed, prior)


def log_density(lists: NBest, weights: AnyStart = None, **settings: Unpack[Settings]) -> Target:
    """Return the log density of the posterior that `adapt` samples, for any algorithm.

    Args:
        lists: n-best lists of the adaptation sentences, as for `adapt`.
        weights: the canonical weights λ_T, as for `adapt`.
        settings: the keyword arguments of `adapt`.

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
