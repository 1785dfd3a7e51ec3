"""Choose whether indicators, such as those of systems, are features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.adapting.build import make_target
from bpa_ppl.adapting.observe import Observed
from bpa_ppl.adapting.prepare import Prepared
from bpa_ppl.adapting.prior import choose_prior
from bpa_ppl.adapting.weights_target import choose_coordinates
from bpa_ppl.densities.mode import mode_of
from bpa_ppl.densities.target import NUMPYRO_LOCK
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors import isotropic
from bpa_ppl.posterior.record import IndicatorsRecord

#: The likelihood of the order of the candidates by which indicators are left out. With this
#: exponent its intervals are about as wide as they should be: see `Pairs`.
_OF_ORDER = Pairs(exponent=1.5)
#: Indicators are left out if their log Bayes factor is below: docs/results/judged-lists.md.
_LEFT_OUT_BELOW = -3.0


def choose_indicators(prepared: Prepared, observed: Observed) -> tuple[Prepared, Observed]:
    """Leave out indicators that do not explain the order of the candidates, with a warning.

    They are left out if the log Bayes factor of the order of the candidates is below −3. This needs
    other features, and a prior whose scale is learned; otherwise the indicators are kept.

    Args:
        prepared: from `prepare`.
        observed: from `observe`.

    Returns:
        the same, without the indicators that are left out. `Prepared.indicators` is the record.
    """
    names = prepared.matched.indicators
    if observed.gains is None or not len(observed.lists) or prepared.model is not log_linear:
        return prepared, observed
    others = _fix_at_zero(prepared, names)
    if others is None or not set(names) & {*isotropic.learns_scale(prepared.prior, prepared.match)}:
        return prepared, observed
    difference = _log_evidence_of_order(prepared, observed)
    difference -= _log_evidence_of_order(others, observed)
    if difference >= _LEFT_OUT_BELOW:
        return replace(prepared, indicators=IndicatorsRecord(difference)), observed
    sources = prepared.matched.recipe.sources
    columns = tuple(source.column for source in sources if isinstance(source, Indicators))
    record = IndicatorsRecord(difference, columns)
    warn_user(str(record))
    matched = others.matched.without_indicators()
    return replace(others, matched=matched, indicators=record), observed.without_features(names)


def _fix_at_zero(prepared: Prepared, names: Sequence[str]) -> Prepared | None:
    """Return the same with the weights of some features fixed at 0, and a scale of its own.

    None if there are no such features or no others, or if the prior is not isotropic.
    """
    match = prepared.match
    fixed = np.isin(match.names, list(names))
    match = match._replace(values=np.where(fixed, 0.0, match.values), free=match.free & ~fixed)
    family = isotropic.restrict(prepared.prior, match.free_names)
    if not fixed.any() or not match.free.any() or family is None:
        return None
    return replace(
        prepared,
        matched=prepared.matched._replace(match=match),
        prior=family,
        defaults=None,
        settings=replace(prepared.settings, progress=False),
    )


def _log_evidence_of_order(prepared: Prepared, observed: Observed) -> float:
    """Return the log evidence of the order of the candidates."""
    target = make_target(prepared, observed, choose_prior(observed, prepared), _OF_ORDER)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        return mode_of(choose_coordinates(target)).log_evidence
