"""The prior of the weights: the one that was asked for, and the scale of weights without a value.

A wide prior suits 500-best lists of a decoder; a narrow one suits ten candidates of neural systems
that differ little. The scale τ (see `Isotropic`) maximises the marginal likelihood

    log p(A | τ) + log p(τ),   log τ ~ N(log τ₀, ½²),   τ₀² = 1 / (2 K) for K such features

(1 in place of ½ for data sets of pairs of which one is chosen), with Laplace's approximation of
p(A | τ) (MacKay 1992). The likelihood in it is that of `Likelihood.evidence`:

* that of the answers, if preferences in lists of two are observed; in longer lists the posterior
  integrates over τ instead, see `bpa_ppl.models.priors.isotropic.with_shared_scale`;
* `pairs`, where candidates have gains. How much worse the others are shows in the order of all
  candidates; the evidence of the best ones alone is blind to it, and with indicators of systems
  finds τ of several times the best value;
* `margin`, if that is the likelihood and there are canonical weights. It calls for larger weights,
  which suit the features that text of the domain adds to 500-best lists (0.1 to 0.4 TER);
* `oracle`, if gains are unknown or the likelihood does not use them.

One number, chosen before sampling, keeps the posterior log-concave. A site for τ would give it the
shape of a funnel, which fast samplers cannot follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors import isotropic
from bpa_ppl.models.priors.isotropic import expected_scale
from bpa_ppl.models.priors.prior import PRIORS, Prior, PriorFamily
from bpa_ppl.names import find_positions
from bpa_ppl.nbest import NBest, centre
from bpa_ppl.posterior.record import PriorRecord
from bpa_ppl.sampling.coordinates import prior_variances, standardise
from bpa_ppl.sampling.mode import build_target, mode_of
from bpa_ppl.sampling.observations import Compared, Scored, observe
from bpa_ppl.sampling.target import NUMPYRO_LOCK, Model, Target, unflatten
from bpa_ppl.weights import CANONICAL, EQUAL, Match

#: The standard deviation of log τ. 0.5 and 1 do the same on held-out judged lists, on average over
#: five data sets; 0.5 keeps τ away from 0 where features say little.
_OF_LISTS = 0.5
#: Of data sets of pairs of which one is chosen. Twice as much, so that easy and hard pairs have
#: calibrated probabilities: docs/results/confidence.md.
_OF_PAIRS = 1.0
#: The first scales to try, as multiples of the median; the neighbours of the best bound the search.
_GRID = np.geomspace(1 / 30, 100, 9)
_TOLERANCE = 0.02  # of log τ
#: Numbers that a standard deviation of a prior holds at least.
_DISTINCT = 1000
_TRIALS = 24  # about as many scales are tried, for the progress


def choose_prior(
    observed: Scored | Compared | None,
    match: Match,
    prior: str | PriorFamily | Prior = "isotropic",
    *,
    likelihood: str | Likelihood = "oracle",
    lists: NBest | None = None,
    defaults: Mapping[str, float] | None = None,
    model: Model | None = None,
    progress: bool | Reporter = False,
) -> tuple[Prior, PriorRecord]:
    """Choose the prior of the free weights: the second of the four steps of `adapt`.

    Args:
        observed: from `observe`; the scale of weights without a canonical value is learned from it.
            None for the prior of lists that have not been judged.
        match: the weights, matched to the lists.
        prior: the name of a family of priors, such as `isotropic`, as published; a family with its
            settings; or a prior.
        likelihood: as for `observe`.
        lists: all lists, those without an observation too; None are those of `observed`.
        defaults: weights without a canonical value that the user has given.
        model: as for `adapt`.
        progress: True draws a bar on standard error.

    Returns:
        the prior; and its record: name, settings and scale.

    Raises:
        DataError: if the prior does not fit the features.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.sampling.observations import observe
    >>> from bpa_ppl.weights import match
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> matched = match({"LM0": 0.5}, lists)
    >>> chosen, record = choose_prior(observe(lists, "ter", matched), matched, "isotropic")
    >>> chosen.mean.tolist(), chosen.variance.tolist(), record.name, record.settings
    ([0.5], [0.1], 'isotropic', {'variance': 0.1})
    """
    family = prior if isinstance(prior, Prior) else PRIORS.resolve(prior)
    if observed is None:
        if lists is None:
            raise UsageError("give observations, or lists to be judged", parameter="lists")
        observed = observe(lists[:0], likelihood="oracle")
    scale = choose_scale(
        observed,
        observed.table(match, domains=model not in (None, log_linear)),
        match,
        family,
        LIKELIHOODS.resolve(likelihood),
        observed.lists if lists is None else lists,
        model=model or log_linear,
        defaults=defaults,
        progress=progress,
    )
    return build_and_record(family, match, scale)


class Scale(NamedTuple):
    """The scale τ of the weights without a canonical value.

    Attributes:
        value: τ, or the typical τ if it is unknown; None if the prior has no such weights or the
            user has chosen τ.
        correlation: (n, n) of the n features with an unknown τ, within the lists; None if τ is
            known.
    """

    value: float | None = None
    correlation: Float64 | None = None


def choose_scale(
    observed: Scored | Compared,
    table: Lists,
    match: Match,
    family: PriorFamily | Prior,
    likelihood: Likelihood,
    lists: NBest,
    *,
    model: Model = log_linear,
    defaults: Mapping[str, float] | None = None,
    progress: bool | Reporter = False,
) -> Scale:
    """Return the scale of the prior: learned, expected, or unknown with a typical value.

    The scale is unknown if judges have compared candidates of lists of three or more, or will.

    Args:
        observed: as for `choose_prior`; without lists the prior is that of lists to be judged.
        table: its arrays.
        match: as for `choose_prior`.
        family: the prior, or the family of priors.
        likelihood: what it observes, with its settings as they were given.
        lists: all lists.
        model: as for `choose_prior`.
        defaults: weights without a canonical value that the user has given.
        progress: as for `choose_prior`.
    """
    scaled = isotropic.learns_scale(family, match)
    if not scaled:
        return Scale()
    sizes, answers = lists.sizes, likelihood.observes_answers(observed.gain, lists)
    of_pairs = len(lists) > 0 and int(sizes.max()) <= 2
    to_be_judged = likelihood.observes == "preferences" and not isinstance(observed, Compared)
    # Other models may use the variance of the prior.
    if answers and model is log_linear and len(lists) and (to_be_judged or not of_pairs):
        return _build_unknown_scale(match, scaled, lists, defaults or {})
    if not len(observed.lists):
        return Scale(expected_scale(len(scaled)))
    evidence = likelihood.evidence(canonical=match.origin == CANONICAL)
    deviation = _OF_PAIRS if answers and of_pairs else _OF_LISTS
    with reporter(progress, "learn the scale of the prior") as report, NUMPYRO_LOCK:
        return Scale(
            _learn_scale(
                lambda prior: build_target(table, prior, match, evidence),
                lambda scale: isotropic.build_prior(family, match, scale),
                np.isin(match.free_names, scaled),
                deviation,
                report,
            )
        )


def _build_unknown_scale(
    match: Match, scaled: list[str], lists: NBest, defaults: Mapping[str, float]
) -> Scale:
    """Return the typical scale of the prior of answers, with the correlation of the features."""
    has_start = match.origin == EQUAL or any(defaults.get(name) for name in scaled)
    factor = isotropic.FROM_START_FACTOR if has_start else isotropic.ANSWERS_FACTOR
    typical = float(f"{factor * expected_scale(len(scaled)):.3g}")
    return Scale(typical, correlate_within(lists, scaled))


def build_and_record(
    family: PriorFamily | Prior, match: Match, scale: Scale
) -> tuple[Prior, PriorRecord]:
    """Return the prior of the free features, and its record; log variances other than σ_T.

    Args:
        family: the prior, or the family of priors.
        match: as for `choose_prior`.
        scale: from `choose_scale`.

    Raises:
        DataError: if the prior does not fit the features, or is too narrow for a weight to vary.
    """
    missing: list[str] = []
    if isinstance(family, Prior):
        prior, missing = isotropic.complete_prior(family, match, scale.value)
    else:
        prior = isotropic.build_prior(family, match, scale.value)
    if scale.correlation is not None:
        names = isotropic.learns_scale(family, match)
        prior = isotropic.with_shared_scale(prior, names, scale.correlation)
    if prior.other is None:
        _require_width(prior)
    return prior, _record(family, match, scale, missing)


def _require_width(prior: Prior) -> None:
    """Refuse a prior that is too narrow for floating-point numbers around its mean.

    Raises:
        DataError: if there is one.
    """
    deviation, mean = np.sqrt(prior_variances(prior)), np.asarray(prior.mean)
    narrow = np.flatnonzero(deviation < _DISTINCT * np.spacing(np.abs(mean)))
    if narrow.size:
        k = narrow[0]
        raise DataError(
            f"the prior of {prior.names[k]}, {mean[k]:.3g} ± {deviation[k]:.2g}, is so narrow that "
            "its weight cannot change: multiply the feature by a constant and divide its weight by "
            "it, or give its prior another variance",
            parameter="prior",
            code="bad-number",
        )


def _record(
    family: PriorFamily | Prior, match: Match, scale: Scale, missing: list[str]
) -> PriorRecord:
    """Return the record of a prior, and log the scale of weights without a canonical value."""
    degrees = None if scale.correlation is None else isotropic.DEGREES
    if isinstance(family, Prior):
        kind = "NumPyro distribution" if family.other is not None else "Gaussian"
        kind = kind if family.degrees is None else "Student t"
        if missing:
            return PriorRecord(kind, isotropic=tuple(missing), degrees_of_freedom=degrees)
        return PriorRecord(kind)
    name = PRIORS.name_of(family)
    if not isinstance(family, isotropic.Isotropic):
        return PriorRecord(name, {n: np.asarray(v).tolist() for n, v in family.settings().items()})
    settings = {"variance": np.asarray(family.canonical_variance).tolist()}
    settings |= {"single": family.single} if family.single else {}
    if not (scaled := family.scaled(match)):
        return PriorRecord(name, settings)
    means = dict(zip(match.free_names, match.free_values.tolist(), strict=True))
    nonzero = [f"{name} ({means[name]:.3g})" for name in scaled if means[name]]
    tau = family.scale if scale.value is None else scale.value
    log_info(
        f"no canonical weight for {', '.join(scaled)}: the prior has "
        + (f"mean 0, except {', '.join(nonzero)}," if nonzero else "mean 0")
        + (" and an unknown scale, typically " if degrees else " and standard deviation ")
        + f"{tau:.3g} / spread, with the spread of each feature within the lists"
    )
    fitted = scale.value is not None and not degrees
    return PriorRecord(name, settings, tau, fitted, scaled, degrees)


def _learn_scale(
    target_of: Callable[[Prior], Target],
    prior_of: Callable[[float], Prior],
    scaled: npt.NDArray[np.bool_],
    deviation: float,
    report: Reporter,
) -> float:
    """Return the scale τ that maximises the marginal likelihood of the adaptation sentences.

    Args:
        target_of: returns the posterior with a prior.
        prior_of: returns the prior with a scale.
        scaled: (Q,) the features that the prior scales.
        deviation: the standard deviation of log τ.
        report: receives the progress.
    """
    from scipy.optimize import minimize_scalar  # slow to import

    expected, tried = expected_scale(int(scaled.sum())), 0
    with jax.enable_x64(True):
        coordinates = standardise(target_of(prior_of(expected)), varying=scaled)
        target = coordinates.target

        def loss(log_scale: float) -> float:
            nonlocal target, tried
            prior = prior_of(float(np.exp(log_scale)))._replace(names=None, posterior=None)
            target, tried = replace(target, prior=coordinates.project(prior)), tried + 1
            mode = mode_of(target)
            report(min(tried, _TRIALS), _TRIALS, "scale of the prior")
            if not mode.converged:
                return np.inf
            distance = (log_scale - np.log(expected)) / deviation
            # The search for the next mode begins at this one.
            target = replace(target, start=unflatten(mode.position, target.start))
            return float(distance**2 / 2 - mode.log_evidence)

        grid = np.log(expected * _GRID)
        values = [loss(log_scale) for log_scale in grid]
        best = int(np.argmin(values))
        bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        with np.errstate(invalid="ignore"):  # the loss of a scale without a mode is infinite
            result = minimize_scalar(loss, bounds=bounds, options={"xatol": _TOLERANCE})
    log_scale = result.x if result.fun < values[best] else grid[best]
    return float(f"{np.exp(log_scale):.3g}")


def correlate_within(nbest: NBest, names: Sequence[str]) -> Float64:
    """Return the correlations of features within lists, over all lists, (names, names).

    Args:
        nbest: the lists.
        names: features that vary within a list.

    >>> from bpa_ppl import from_lists
    >>> table = [[[1.0, -2.0], [3.0, -6.0]], [[5.0, 0.0], [5.0, 0.0]]]
    >>> lists = from_lists([["a", "b"]] * 2, table, ["LM0", "cost"])
    >>> round(float(correlate_within(lists, ["LM0", "cost"])[0, 1]), 6)
    -1.0
    """
    columns = nbest.features[:, find_positions(names, nbest.feature_names)]
    values = centre(columns, nbest.sizes)
    values /= np.sqrt(np.mean(values**2, axis=0))
    return np.asarray(values.T @ values / len(values))
