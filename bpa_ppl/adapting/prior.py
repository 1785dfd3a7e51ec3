"""The prior of the weights: the one that was asked for, and the scale of weights without a value.

A wide prior suits 500-best lists of a decoder; a narrow one suits ten candidates of neural systems
that differ little. The scale τ (see `Isotropic`) maximises the marginal likelihood

    log p(A | τ) + log p(τ),   log τ ~ N(log τ₀, ½²),   τ₀² = 1 / (2 K) for K such features

with Laplace's approximation of p(A | τ) (MacKay 1992). The likelihood in it is that of
`Likelihood.evidence`:

* `pairs`, where candidates have gains. The order of all candidates shows how much worse the
  others are; the evidence of the best ones alone does not, and with indicators of systems its τ is
  several times the best value;
* `margin`, if that is the likelihood and there are canonical weights. It gives larger weights,
  which suit the features that text of the domain adds to 500-best lists (0.1 to 0.4 TER);
* `oracle`, if gains are unknown or the likelihood does not use them.

One number, chosen before sampling, keeps the posterior log-concave. A site for τ would give it the
shape of a funnel, which fast samplers cannot follow.

Where answers of judges are observed, the posterior integrates over τ instead, see
`bpa_ppl.models.priors.isotropic.with_shared_scale`; models other than the log-linear one use the
most probable τ, with 1 in place of ½ for data sets of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.progress import reporter
from bpa_ppl.adapting.observe import Observed
from bpa_ppl.adapting.prepare import Prepared
from bpa_ppl.adapting.weights_target import (
    choose_coordinates,
    make_weights_target,
    prior_variances,
    project_prior,
)
from bpa_ppl.densities.mode import find_mode
from bpa_ppl.densities.target import NUMPYRO_LOCK, unflatten
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.lists.nbest import NBest, standardise
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors import isotropic
from bpa_ppl.models.priors.isotropic import expected_scale
from bpa_ppl.models.priors.prior import PRIORS, Prior, PriorFamily
from bpa_ppl.posterior.record import PriorRecord
from bpa_ppl.weights import CANONICAL, EQUAL, Match

#: The standard deviation of log τ. 0.5 and 1 do the same on held-out judged lists, on average over
#: five data sets; 0.5 keeps τ away from 0 where features say little.
_SD_OF_LISTS = 0.5
#: Of data sets of pairs of which one is chosen, in models that need one number. Twice as much, so
#: that easy and hard pairs have calibrated probabilities: docs/results/pairs.md.
_SD_OF_PAIRS = 1.0
#: The first scales to try, as multiples of the median; the neighbours of the best bound the search.
_SCALE_GRID = np.geomspace(1 / 30, 100, 9)
_LOG_TOLERANCE = 0.02  # of log τ
#: Numbers that a standard deviation of a prior holds at least.
_DISTINCT = 1000
_TRIALS = 24  # about as many scales are tried, for the progress


def choose_prior(observed: Observed, prepared: Prepared) -> Prior:
    """Choose the prior of the free weights; its `record` says how.

    The scale of weights without a canonical value is learned from the observations, expected if
    there are none, or unknown with a typical value if judges have compared candidates, or will.

    Args:
        observed: from `observe`.
        prepared: from `prepare`.

    Raises:
        DataError: if the prior does not fit the features, or is too narrow for a weight to vary.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.adapting.observe import observe
    >>> from bpa_ppl.adapting.prepare import prepare
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> prepared = prepare(lists, {"LM0": 0.5})
    >>> chosen = choose_prior(observe(prepared), prepared)
    >>> chosen.mean.tolist(), chosen.variance.tolist(), chosen.record.name, chosen.record.settings
    ([0.5], [0.1], 'isotropic', {'variance': 0.1})
    """
    family, match, missing = prepared.prior, prepared.match, list[str]()
    scaled = isotropic.learns_scale(family, match)
    is_unknown = bool(scaled) and _is_unknown(prepared)
    if not _follows_agreement(prepared):
        match = match._replace(agreement={})
    if not match.agreement or _asks_mean(family):
        match = match._replace(sign_probability=1.0)
    scale, sign = None, 2 * match.sign_probability - 1  # its expectation, without observations
    if is_unknown:
        scale = _expect_scale_of_answers(scaled, prepared)
    elif len(observed.lists) and (scaled or sign < 1):
        scale, sign = _learn_scale(observed, prepared, match, scaled)
    elif scaled:
        scale = expected_scale(len(scaled))
    match = _multiply_agreement(match, sign)
    if isinstance(family, Prior):
        prior, missing = isotropic.complete_prior(family, match, scale)
    else:
        prior = isotropic.build_prior(family, match, scale)
    if is_unknown:
        correlation = correlate_within(prepared.lists, scaled)
        prior = isotropic.with_shared_scale(prior, scaled, correlation)
    if prior.other is None:
        _require_width(prior)
    return prior._replace(record=_record(prior, family, match, scale, sign, missing))


def _follows_agreement(prepared: Prepared) -> bool:
    """Return whether the prior mean follows what features have in common, as asked or by default.

    It does by default unless answers are observed or indicators have weights, where choices would
    be worse: docs/results/choices.md.
    """
    if _asks_mean(prepared.prior):
        return True
    if prepared.answers:
        return False
    return {*prepared.matched.indicators}.isdisjoint(prepared.match.free_names)


def _asks_mean(family: PriorFamily | Prior) -> bool:
    """Return whether the user has given the prior mean of weights without a starting value."""
    return isinstance(family, isotropic.Isotropic) and family.mean is not None


def _multiply_agreement(match: Match, factor: float) -> Match:
    """Return the match with its agreement, and so the prior mean, multiplied by a factor."""
    agreement = {name: factor * value for name, value in match.agreement.items()}
    return match._replace(agreement=agreement)


def _is_unknown(prepared: Prepared) -> bool:
    """Return whether the posterior integrates over the scale."""
    if not len(prepared.lists) or prepared.model is not log_linear:  # others may use the variance
        return False
    return prepared.answers


def _expect_scale_of_answers(scaled: list[str], prepared: Prepared) -> float:
    """Return the median of the scale of the prior of answers."""
    defaults = prepared.defaults or {}
    if int(prepared.lists.sizes.max()) <= 2:
        factor = isotropic.PAIRS_FACTOR
    elif prepared.match.origin == EQUAL or any(defaults.get(name) for name in scaled):
        factor = isotropic.FROM_START_FACTOR
    else:
        factor = isotropic.ANSWERS_FACTOR
    return float(f"{factor * expected_scale(len(scaled)):.3g}")


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
    prior: Prior,
    family: PriorFamily | Prior,
    match: Match,
    scale: float | None,
    sign: float,
    missing: list[str],
) -> PriorRecord:
    """Return the record of a prior that was built from a family, or from a prior of the user."""
    log_deviation = None if prior.scale is None else prior.scale.log_deviation
    if isinstance(family, Prior):
        kind = "NumPyro distribution" if family.other is not None else "Gaussian"
        kind = kind if family.scale is None else "Gaussian with a common scale"
        return PriorRecord(kind, isotropic=tuple(missing), log_deviation=log_deviation)
    name = PRIORS.name_of(family)
    if not isinstance(family, isotropic.Isotropic):
        return PriorRecord(name, {n: np.asarray(v).tolist() for n, v in family.settings().items()})
    settings = {"variance": np.asarray(family.canonical_variance).tolist()}
    settings |= {"single": family.single} if family.single else {}
    settings |= {"mean": sign * family.mean_factor} if match.agreement else {}
    if not (scaled := family.scaled(match)):
        return PriorRecord(name, settings)
    tau = family.scale if scale is None else scale
    fitted = scale is not None and prior.scale is None
    return PriorRecord(name, settings, tau, fitted, scaled, log_deviation)


def log_scale(record: PriorRecord | None, match: Match) -> None:
    """Log the prior of weights without a canonical weight, if there are any.

    Args:
        record: of the prior; None if the model does not use it.
        match: the weights, matched to the lists.
    """
    if record is None or record.scale is None:
        return
    names = record.spread
    starts = dict(zip(match.free_names, match.free_values.tolist(), strict=True))
    nonzero = [f"{name} ({starts[name]:.3g})" for name in names if starts[name]]
    factor, mean = (record.settings or {}).get("mean", 0.0), "mean 0"
    if factor:
        shared = [f"{n} {match.agreement[n]:+.2f}" for n in names if n in match.agreement]
        mean = f"mean {factor:g} × {record.scale:.3g} / spread × its correlation with what the "
        mean += f"features have in common ({list_names(shared)})"
    if nonzero:
        mean = f"{mean}, except {list_names(nonzero)},"
    scale = (
        "an unknown scale, typically" if record.log_deviation is not None else "standard deviation"
    )
    log_info(
        f"no canonical weight for {list_names(record.spread)}: the prior has {mean} and {scale} "
        f"{record.scale:.3g} / spread, with the spread of each feature within the lists"
    )


def _learn_scale(
    observed: Observed, prepared: Prepared, match: Match, names: list[str]
) -> tuple[float | None, float]:
    """Return the scale τ that maximises the marginal likelihood of the adaptation sentences.

    The prior mean follows what the features have in common. With the scale found, both of its signs
    are compared by their posterior probability; if the opposite sign wins, the scale is learned
    again.

    Args:
        observed: as for `choose_prior`.
        prepared: as for `choose_prior`.
        match: the weights, matched to the lists.
        names: the features that the prior scales; none if the scale is given.

    Returns:
        the scale, or None if it is given; and the sign of the prior mean, 1 or -1.
    """
    from scipy.optimize import minimize_scalar  # slow to import

    likelihood, probability = prepared.likelihood, match.sign_probability
    table = observed.table(match, domains=prepared.model is not log_linear)
    evidence = likelihood.evidence(canonical=match.origin == CANONICAL)
    of_pairs = int(prepared.lists.sizes.max()) <= 2
    deviation = _SD_OF_PAIRS if prepared.answers and of_pairs else _SD_OF_LISTS
    scaled = np.isin(match.free_names, names)
    expected, tried = expected_scale(len(names)), 0

    def prior_of(match: Match, scale: float | None) -> Prior:
        return isotropic.build_prior(prepared.prior, match, scale)

    with (
        reporter(prepared.settings.progress, "learn the scale of the prior") as report,
        NUMPYRO_LOCK,
        jax.enable_x64(True),
    ):
        first = make_weights_target(
            table, prior_of(match, expected if names else None), match, evidence
        )
        target = choose_coordinates(first, varying=scaled)

        def loss(match: Match, scale: float | None) -> float:
            nonlocal target, tried
            prior = prior_of(match, scale).as_arrays()
            data = target.data._replace(prior=project_prior(target, prior))
            target, tried = replace(target, data=data), tried + 1
            # The last step, in a table of many lists, would take a third of the time.
            mode = find_mode(target, last_step=False)
            report(min(tried, _TRIALS), _TRIALS, "scale of the prior")
            if not mode.converged:
                return np.inf
            distance = 0.0 if scale is None else (np.log(scale) - np.log(expected)) / deviation
            # The search for the next mode begins at this one.
            target = replace(target, start=unflatten(mode.position, target.start))
            # A Newton step adds half of its squared length to the log density.
            return float(distance**2 / 2 - mode.log_evidence - mode.decrement / 2)

        def search(match: Match) -> float:
            grid = np.log(expected * _SCALE_GRID)

            def loss_at(log_scale: float) -> float:
                return loss(match, float(np.exp(log_scale)))

            values = [loss_at(log_scale) for log_scale in grid]
            best = int(np.argmin(values))
            bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
            with np.errstate(invalid="ignore"):  # the loss of a scale without a mode is infinite
                result = minimize_scalar(loss_at, bounds=bounds, options={"xatol": _LOG_TOLERANCE})
            log_scale = result.x if result.fun < values[best] else grid[best]
            return float(f"{np.exp(log_scale):.3g}")

        scale = search(match) if names else None
        if probability < 1:
            turned = _multiply_agreement(match, -1.0)
            odds = np.log(probability / (1 - probability))
            if loss(turned, scale) + odds < loss(match, scale):
                return search(turned) if names else None, -1.0
    return scale, 1.0


def correlate_within(lists: NBest, names: Sequence[str]) -> Float64:
    """Return the correlations of features within lists, over all lists, (names, names).

    >>> from bpa_ppl import from_lists
    >>> table = [[[1.0, -2.0], [3.0, -6.0]], [[5.0, 0.0], [5.0, 0.0]]]
    >>> lists = from_lists([["a", "b"]] * 2, table, ["LM0", "cost"])
    >>> round(float(correlate_within(lists, ["LM0", "cost"])[0, 1]), 6)
    -1.0
    """
    values = standardise(lists, names)
    return np.asarray(values.T @ values / len(values))
