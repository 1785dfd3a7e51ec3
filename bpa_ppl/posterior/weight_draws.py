"""Draws of the weights of n-best lists: what belongs to features, around any draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl.errors import DataError, UsageError, list_names, quote
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.posterior.draws import Draws, name_array
from bpa_ppl.posterior.record import Record
from bpa_ppl.weights import Weights, match

POINTS = ("mean", "mode", "draw")
WEIGHTS = "weights"
#: The directions that were sampled in place of more weights (`bpa_ppl.adapting.weights_target`).
DIRECTIONS = "directions"
#: The weights of each domain, and the name of the dimension of domains.
OWN, DOMAIN = "own", "domain"
#: The slip rates of raters, and the name of their dimension.
SLIP, RATER = "slip", "rater"
#: The dimensions of the features, of the weights that were not adapted, and of the sentences.
FEATURE, OTHER_FEATURE, FIXED_FEATURE = "feature", "other_feature", "fixed_feature"
SENTENCE = "sentence"
#: The constant with the weights that were not adapted.
FIXED = "fixed"

#: Constants of the prior of the weights that have one value for each feature; all such constants.
PRIOR_BY_FEATURE = ("prior_mean", "prior_variance", "prior_log_deviation")
BY_FEATURE = ("canonical", "agreement", *PRIOR_BY_FEATURE, "mode")
#: The dimensions of the weights, and of what is known of features and sentences.
DIMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((WEIGHTS, *BY_FEATURE), (FEATURE,)),
    **dict.fromkeys(("oracle_score", "observation_weight", "observation_rater"), (SENTENCE,)),
    "oracle": (SENTENCE,),
    "prior_covariance": (FEATURE, OTHER_FEATURE),
    FIXED: (FIXED_FEATURE,),
}


@dataclass(frozen=True, eq=False)
class WeightDraws:
    """Draws of the weights of n-best lists, one for each of Q features.

    Attributes:
        draws: with the site `weights`, (C, D, Q), along the dimension `feature`, whose labels are
            the features. Its constants are `canonical` (Q,), `agreement` (Q,) of each feature with
            the others, `prior_mean` (Q,), `prior_variance` (Q,) or `prior_covariance` (Q, Q),
            `mode` (Q,), `fixed`, the weights that were not adapted, and `oracle_score`,
            `observation_weight` and `observation_rater` along `sentence`; each if known.

    Raises:
        DataError: if the weights do not have the shape of the features, or two have one name.

    >>> weights = name_weights(
    ...     [[[1.0, 0.0], [2.0, 0.0]], [[3.0, 1.0], [2.0, 1.0]]],
    ...     ("LM0", "WP0"),
    ...     fixed=Weights({"UnknownWordPenalty0": 1.0}),
    ...     constants={"canonical": np.zeros(2), "mode": np.array([2.0, 0.5])},
    ... )
    >>> weights.weights.shape, weights.mean.tolist(), weights.canonical.tolist()
    ((2, 2, 2), [2.0, 0.5], [0.0, 0.0])
    >>> weights.at_point("mode")
    Weights({'LM0': 2, 'WP0': 0.5, 'UnknownWordPenalty0': 1})
    >>> weights.largest_shifts(1), weights.draws.names
    ([0], ('LM0', 'WP0'))
    """

    draws: Draws

    def __str__(self) -> str:
        return str(self.draws)

    def __post_init__(self) -> None:
        """Refuse weights that are not those of the features."""
        shape, count = self.weights.shape, len(self.features)
        if shape[2:] != (count,):
            message = f"weights has the shape {shape}: it must be (chains, draws, {count} features)"
            raise DataError(message, parameter="values", code="mismatch")
        names, values = self.draws.coords.get(FIXED_FEATURE, ()), self._fixed_values
        if len(names) != len(values) or values.dtype.kind not in "iuf":
            problem = "the fixed weights are not numbers with names (fixed_feature): adapt again"
            raise DataError(problem, code="bad-name")
        if twice := find_repeated((*self.features, *self.fixed)):
            message = f"two weights of {quote(twice[0])}: rename one"
            raise DataError(message, parameter="features", code="duplicate")

    @cached_property
    def features(self) -> tuple[str, ...]:
        """(Q,) the names of the free features."""
        return tuple(map(str, self.draws.coords[FEATURE]))

    @cached_property
    def fixed(self) -> Weights:
        """The weights that were not adapted."""
        names = map(str, self.draws.coords.get(FIXED_FEATURE, ()))
        return Weights(zip(names, self._fixed_values.tolist(), strict=True), "the posterior")

    @property
    def _fixed_values(self) -> npt.NDArray[Any]:
        return np.asarray(self.draws.constants.get(FIXED, np.zeros(0)))

    @property
    def sentence_ids(self) -> npt.NDArray[Any] | None:
        """(S,) the ids of the adaptation sentences, or None."""
        ids = self.draws.coords.get(SENTENCE)
        return None if ids is None else np.asarray(ids)

    @property
    def record(self) -> Record:
        """How the draws were made."""
        return self.draws.record

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of chains and of kept draws per chain."""
        return self.draws.shape

    @property
    def importance(self) -> Float64:
        """(C · D,): importance weights that sum to one, chains concatenated."""
        return self.draws.importance

    @property
    def weights(self) -> Float64:
        """(C, D, Q): the draws of the free weights."""
        return np.asarray(self.draws.values[WEIGHTS], np.float64)

    @cached_property
    def marginal(self) -> Draws:
        """The draws of the weights alone."""
        kind, log_weight = self.draws.kind, self.draws.log_weight
        return name_array(self.weights, self.features, kind=kind, log_weight=log_weight)

    @property
    def flat(self) -> Float64:
        """(C · D, Q): the draws of the weights, chains concatenated."""
        return self.marginal.flat

    @property
    def mean(self) -> Float64:
        """(Q,): the posterior mean of the weights."""
        return self.marginal.mean

    @property
    def deviation(self) -> Float64:
        """(Q,): the posterior standard deviation of the weights."""
        return self.marginal.deviation

    @property
    def canonical(self) -> Float64 | None:
        """(Q,): the canonical weights λ_T, or None if unknown."""
        weights = self.draws.constants.get("canonical")
        return None if weights is None else np.asarray(weights, np.float64)

    @property
    def lacks_canonical(self) -> bool:
        """Whether there are no canonical weights, or they are not recorded as such."""
        return self.canonical is None or not self.record.canonical

    @property
    def sentence_sites(self) -> tuple[str, ...]:
        """The sites that are observed once for each sentence."""
        sites, dims = self.draws.log_likelihood, self.draws.dims
        named = [site for site in sites if dims.get(site) == (SENTENCE,)]
        # Other programs may have one site.
        single = [site for site, x in sites.items() if np.ndim(x) == 3]
        return tuple(named or (single if len(single) == 1 else []))

    @property
    def pointwise(self) -> Float64 | None:
        """(C, D, S): the log-likelihood of each adaptation sentence, or None."""
        parts = [np.asarray(self.draws.log_likelihood[site]) for site in self.sentence_sites]
        return np.asarray(sum(parts[1:], start=parts[0])) if parts else None

    @property
    def domains(self) -> tuple[str, ...]:
        """The names of the domains that have weights of their own."""
        coords = self.draws.coords
        return tuple(map(str, coords.get(DOMAIN, ()))) if OWN in self.draws.values else ()

    def of_domain(self, domain: str) -> WeightDraws:
        """Return draws whose weights are those of one domain; the mode is not known.

        Raises:
            UsageError: if there is no such domain, or no domain has weights of its own.

        >>> values = {"weights": np.zeros((1, 2, 1)), "own": np.ones((1, 2, 2, 1))}
        >>> coords = {"feature": ("LM0",), "domain": ("news", "talks")}
        >>> WeightDraws(Draws(values, coords=coords)).of_domain("talks").mean.tolist()
        [1.0]
        """
        if not self.domains:
            message = "the posterior has the same weights for all domains: leave out the domain"
            raise UsageError(message, parameter=DOMAIN, code="not-supported")
        place = self.domains.index(require_one_of(domain, self.domains, "domain"))
        values = {**self.draws.values, WEIGHTS: np.asarray(self.draws.values[OWN])[:, :, place]}
        constants = {name: of for name, of in self.draws.constants.items() if name != "mode"}
        return WeightDraws(replace(self.draws, values=values, constants=constants))

    def at_point(self, point: str = "mean", draw: int = 0) -> Weights:
        """Return one vector of weights that summarises the posterior, fixed weights included.

        Args:
            point: `mean`, `mode`, or `draw`.
            draw: index of the draw in the concatenated chains.

        Raises:
            DataError: if the posterior has no such draw, or no mode.
            UsageError: if there is no such point, or a draw is chosen of another one.
        """
        require_one_of(point, POINTS, "point")
        if draw and point != "draw":
            message = f"the {point} is no single draw: leave out the draw, or choose the point draw"
            raise UsageError(message, parameter="draw", code="conflict")
        values = self.mean
        if point == "mode":
            if "mode" not in self.draws.constants:
                problem = (
                    "the mode of the weights of a domain is not known: use the mean"
                    if self.domains
                    else "this posterior does not contain its mode: use a sampler that finds it "
                    "(map, nuts) or the mean"
                )
                raise DataError(problem, parameter="point")
            values = np.asarray(self.draws.constants["mode"], float)
        elif point == "draw":
            if not 0 <= draw < len(self.flat):
                problem = f"there is no draw {draw}: the posterior has 0 to {len(self.flat) - 1}"
                raise DataError(problem, parameter="draw")
            values = self.flat[draw]
        free = dict(zip(self.features, values.tolist(), strict=True))
        return Weights({**free, **self.fixed}, f"the posterior {point}")

    def aligned(self, lists: NBest, vectors: npt.ArrayLike | None = None) -> Float64:
        """Return weights, the fixed ones included, in the order of the columns of n-best lists.

        Args:
            lists: lists with K features.
            vectors: (n, Q) free weights in the order of `features`; by default every draw.

        Returns:
            (n, K).

        Raises:
            DataError: if the lists have a feature without a weight.

        >>> from bpa_ppl import from_lists
        >>> weights = name_weights(np.ones((1, 2, 1)), ("LM0",), fixed=Weights({"W0": 3.0}))
        >>> weights.aligned(from_lists([["a"]], [[[1.0, 2.0]]], ["W0", "LM0"])).tolist()
        [[3.0, 1.0], [3.0, 1.0]]
        """
        values = self.flat if vectors is None else np.asarray(vectors, np.float64)
        free = {name: values[:, k] for k, name in enumerate(self.features)}
        weights = Weights({**dict.fromkeys(free, 0.0), **self.fixed}, "the posterior")
        missing = [name for name in lists.feature_names if name not in weights]
        if missing:
            message = (
                f"no weight for the lists {list_names(missing)}: the posterior has weights for "
                f"{list_names(weights)}; give lists with these features, or default weights for "
                "the others"
            )
            raise DataError(message, weights.origin, parameter="defaults", code="missing-weight")
        matched = match(weights, lists, fixed=())
        pairs = zip(matched.names, matched.values, strict=True)
        return np.column_stack([free.get(n, np.full(len(values), v)) for n, v in pairs])

    def largest_shifts(self, count: int) -> list[int]:
        """Return the indices of the weights with the largest shifts, ascending.

        Shifts are from the canonical weights, in posterior standard deviations. Without canonical
        weights these are the first features.
        """
        start = self.mean if self.canonical is None else self.canonical
        shift = np.abs(self.mean - start) / np.maximum(self.deviation, np.finfo(np.float64).tiny)
        return sorted(np.argsort(-shift, kind="stable")[:count].tolist())


def name_weights(
    weights: npt.ArrayLike,
    features: tuple[str, ...],
    *,
    fixed: Weights | None = None,
    sentence_ids: npt.ArrayLike | None = None,
    **parts: Any,
) -> WeightDraws:
    """Return draws of weights with the names of their features.

    Args:
        weights: (C, D, Q) the draws.
        features: (Q,) the names of the features.
        fixed: weights that were not adapted.
        sentence_ids: (S,) of the adaptation sentences.
        parts: further parts of `Draws`; `values` has those of other sites, which are functions of
            the weights unless `sampled` has them, too.

    Raises:
        DataError: if the parts do not fit together.

    >>> name_weights(np.zeros((4, 100, 2)), ("LM0", "WP0")).draws
    Draws(chains, 4 × 100, 2 values)
    """
    values = {WEIGHTS: np.asarray(weights), **parts.pop("values", {})}
    constants, coords = parts.pop("constants", {}), parts.pop("coords", {})
    labels: dict[str, Any] = {FEATURE: features, OTHER_FEATURE: features}
    if fixed:
        labels[FIXED_FEATURE] = tuple(fixed)
        constants = {**constants, FIXED: fixed.values_array}
    if sentence_ids is not None:
        labels[SENTENCE] = np.asarray(sentence_ids)
    return WeightDraws(
        Draws(
            values,
            main=(WEIGHTS,),
            dims={**DIMS, **parts.pop("dims", {})},
            coords={**labels, **coords},
            constants=constants,
            **{"sampled": (WEIGHTS,), **parts},
        )
    )


def standardise(draws: Draws) -> Draws | None:
    """Return draws of each weight times the standard deviation of its feature within lists.

    These are the weights to compare: they do not depend on the units of the features. The lists are
    those of the adaptation; None if the posterior does not record their spread, or has no weights
    of features.

    >>> from bpa_ppl.posterior.record import FeatureScale
    >>> record = Record(feature_scales={"LM0": FeatureScale(spread=3.0)})
    >>> standardise(name_weights([[[0.5]]], ("LM0",), record=record).draws).mean.tolist()
    [1.5]
    >>> standardise(name_weights([[[0.5]]], ("LM0",)).draws)
    """
    if WEIGHTS not in draws.main:
        return None
    weights, scales = WeightDraws(draws), draws.record.feature_scales
    if not scales.keys() >= {*weights.features, *weights.fixed}:
        return None
    of_fixed = np.array([scales[name].spread for name in weights.fixed])
    spread = {
        **dict.fromkeys(
            (WEIGHTS, "canonical", "prior_mean", "mode"),
            np.array([scales[name].spread for name in weights.features]),
        ),
        FIXED: of_fixed,
    }

    def scaled(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        return {n: np.asarray(a) * spread[n] if n in spread else a for n, a in arrays.items()}

    unscaled = ("prior_variance", "prior_covariance")
    constants = {name: x for name, x in draws.constants.items() if name not in unscaled}
    return replace(
        draws,
        values=scaled(draws.values),
        warmup=scaled(draws.warmup),
        prior=scaled(draws.prior),
        constants=scaled(constants),
    )


def find_ids(
    weights: WeightDraws, lists: NBest
) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any]]:
    """Return the ids of the lists that a posterior was adapted to, and those of some lists.

    Args:
        weights: of the posterior; None is returned for it if it does not record them.
        lists: the lists.

    >>> from bpa_ppl import from_lists
    >>> weights = name_weights(np.ones((1, 2, 1)), ("lm",), sentence_ids=["x"])
    >>> lists = from_lists([["a"]], [[[1.0]]], ["lm"], sentence_extras={"id": ["y"]})
    >>> find_ids(weights, lists)
    (array(['x'], dtype='<U1'), array(['y'], dtype='<U1'))
    """
    ids = weights.sentence_ids
    if ids is None or ids.dtype.kind in "iu":
        return ids, lists.sentence_ids
    return np.asarray(ids, str), np.asarray(lists.ids, str)
