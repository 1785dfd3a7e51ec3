"""Draws: a posterior sample as plain named arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import check_seed, require_one_of
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import format_count
from bpa_ppl.errors import DataError, UsageError, list_names, quote, suggest_name
from bpa_ppl.lists.labels import find_positions, find_repeated, number_repeats
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.posterior.record import Record
from bpa_ppl.weights import Weights, match

POINTS = ("mean", "mode", "draw")
#: Chains that follow the posterior, draws with importance weights, or one point.
KINDS = ("chains", "weighted", "point")
WEIGHTS = "weights"
#: The directions that were sampled in place of more weights (`bpa_ppl.densities.weights_target`).
DIRECTIONS = "directions"
#: The weights of each domain, and the name of the dimension of domains.
OWN, DOMAIN = "own", "domain"
#: The slip rates of raters, and the name of their dimension.
SLIP, RATER = "slip", "rater"

#: Constants of the prior of the weights that have one value for each feature; all such constants.
PRIOR_BY_FEATURE = ("prior_mean", "prior_variance", "prior_log_deviation")
BY_FEATURE = ("canonical", "agreement", *PRIOR_BY_FEATURE, "mode")
#: Names of features that are printed.
_FEW = 5

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Draws of named values in C chains of D draws, with densities, statistics and constants.

    Attributes:
        values: site -> (C, D, …) its values; with features `weights` is (C, D, Q).
        features: (Q,) the names of the free features; none of a program without lists.
        kind: `chains`, `weighted` (with importance weights) or `point`.
        log_weight: (C, D) logarithms of importance weights, or None if all draws have equal weight.
        log_density: (C, D) log p(z, data) up to a constant, or None.
        log_likelihood: observed site -> (C, D, …) one value per observation.
        log_prior: site -> (C, D, …) its log prior density, and the values of factors; empty if not
            recorded by site.
        predictive: observed site -> (C, D, …) what each draw predicts.
        sentence_sites: sites observed once per sentence: (C, D, S), in the order of the lists.
        statistics: name as in ArviZ -> (C, D), such as `acceptance_rate`.
        warmup: site -> (C, W, …) the discarded draws.
        prior: site -> (C, P, …) draws of the prior.
        sites: the sampled sites; other values are functions of them.
        dims: site -> the names of its dimensions after chain and draw, for sites whose dimensions
            have names: `feature` and `other_feature` are the free features.
        coords: dimension -> its labels; other dimensions are numbered.
        observed: site -> what was observed.
        constants: `canonical` (Q,), `agreement` (Q,) of each feature with the others,
            `prior_mean` (Q,), `prior_variance` (Q,) or `prior_covariance` (Q, Q), `mode` (Q,),
            `oracle_score` (S,), `observation_weight` (S,), `observation_rater` (S,); each if known.
        fixed: weights that were not adapted.
        sentence_ids: (S,) of the adaptation sentences, or None.
        record: how the draws were made.

    Raises:
        DataError: if the parts do not fit together.

    Four draws of two weights in two chains, with constants as `adapt` records them:

    >>> draws = Draws(
    ...     {"weights": [[[1.0, 0.0], [2.0, 0.0]], [[3.0, 1.0], [2.0, 1.0]]]},
    ...     ("LM0", "WP0"),
    ...     log_likelihood={"oracle": np.full((2, 2, 3), -0.5)},
    ...     sentence_sites=("oracle",),
    ...     constants={"canonical": np.zeros(2), "mode": np.array([2.0, 0.5])},
    ...     fixed=Weights({"UnknownWordPenalty0": 1.0}),
    ... )
    >>> draws.weights.shape, draws.shape, draws.flat.shape, draws.weighted
    ((2, 2, 2), (2, 2), (4, 2), False)
    >>> draws.mean.tolist(), draws.deviation.round(2).tolist(), draws.canonical.tolist()
    ([2.0, 0.5], [0.71, 0.5], [0.0, 0.0])
    >>> draws.correlation.round(2).tolist(), draws.importance.tolist()
    ([[1.0, 0.71], [0.71, 1.0]], [0.25, 0.25, 0.25, 0.25])
    >>> draws.interval(0.5).tolist(), draws.largest_shifts(1)
    ([[1.0, 0.0], [2.0, 1.0]], [0])
    >>> draws.pointwise.shape
    (2, 2, 3)
    >>> draws.at_point("mode")
    Weights({'LM0': 2, 'WP0': 0.5, 'UnknownWordPenalty0': 1})
    >>> {name: values.tolist() for name, values in draws.components().items()}
    {'LM0': [[1.0, 2.0], [3.0, 2.0]], 'WP0': [[0.0, 0.0], [1.0, 1.0]]}
    >>> draws.reordered(("WP0", "LM0")).mean.tolist()
    [0.5, 2.0]
    >>> print(draws)
    kind      chains
    shape     2 chains × 2 draws
    features  2: LM0, WP0
    sampler   not recorded
    observed  not recorded
    check     not recorded
    """

    values: Arrays
    features: tuple[str, ...]
    kind: str = "chains"
    log_weight: Float64 | None = None
    log_density: Float64 | None = None
    log_likelihood: Arrays = field(default_factory=dict)
    log_prior: Arrays = field(default_factory=dict)
    predictive: Arrays = field(default_factory=dict)
    sentence_sites: tuple[str, ...] = ()
    statistics: Arrays = field(default_factory=dict)
    warmup: Arrays = field(default_factory=dict)
    prior: Arrays = field(default_factory=dict)
    sites: tuple[str, ...] = (WEIGHTS,)
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    observed: Arrays = field(default_factory=dict)
    constants: Arrays = field(default_factory=dict)
    fixed: Weights = field(default_factory=lambda: Weights({}))
    sentence_ids: npt.NDArray[Any] | None = None
    record: Record = field(default_factory=Record)

    def __post_init__(self) -> None:
        """Refuse names, shapes and types that are not consistent."""
        require_one_of(self.kind, KINDS, "kind of draws", "kind")
        problem = f"draws of the kind {self.kind} {'have' if self.weighted else 'lack'} importance "
        problem += "weights (log_weight): only weighted draws have them"
        _require((self.kind == "weighted") == self.weighted, problem, "log_weight")
        size, of_weights = len(self.features), np.shape(self.values.get(WEIGHTS, ()))
        problem = f"weights has the shape {of_weights}: it must be (chains, draws, {size} features)"
        fits = not size or (len(of_weights) == 3 and of_weights[2] == size)
        _require(fits, problem, "values", "mismatch")
        name, first = next(iter(self.values.items()), ("", ()))
        shape = np.shape(first)[:2]
        problem = f"the posterior has no draws: {name} has the shape {np.shape(first)}"
        _require(len(shape) == 2 and shape[0] * shape[1] > 0, problem, "values", "no-data")
        problem = f"draws of the kind point have one draw, not {shape}"
        _require(self.kind != "point" or shape == (1, 1), problem, "kind", "mismatch")
        if twice := find_repeated((*self.features, *self.fixed)):
            message = f"two weights of {quote(twice[0])}: rename one"
            raise DataError(message, parameter="features", code="duplicate")
        for site in self.sites:
            problem = f"there are no draws of the sampled site {site!r:.80}"
            _require(site in self.values, problem, "sites")
        groups: tuple[Mapping[str, Any], ...] = (
            *(self.values, self.log_likelihood, self.log_prior, self.predictive, self.statistics),
            {"log_weight": self.log_weight, "log_density": self.log_density},
        )
        expected = [(name, x, shape) for group in groups for name, x in group.items()]
        expected += [(name, self.constants.get(name), (size,)) for name in BY_FEATURE]
        expected.append(("prior_covariance", self.constants.get("prior_covariance"), (size, size)))
        for name, values, needed in expected:
            if values is None:
                continue
            array = np.asarray(values)
            problem = f"{name} has the type {array.dtype}, not numbers: make the posterior again"
            _require(array.dtype.kind in "biuf", problem, code="bad-number")
            problem = (
                f"{name} has the shape {array.shape}, which must begin with {needed}: it does not "
                "belong to these draws; select the same chains and draws in all groups"
            )
            _require(array.shape[: len(needed)] == needed, problem, code="mismatch")

    def __repr__(self) -> str:
        chains, draws = self.shape
        return (
            f"Draws({self.kind}, {chains} × {draws}, {format_count(len(self.features), 'feature')})"
        )

    def __str__(self) -> str:
        chains, draws = self.shape
        record, more = self.record, "" if len(self.features) <= _FEW else ", …"
        verdict = "not recorded" if record.verdict is None else str(record.verdict)
        chosen = "" if record.figures.chosen is None else f" ({record.figures.chosen})"
        return "\n".join(
            (
                f"kind      {self.kind}",
                f"shape     {format_count(chains, 'chain')} × {format_count(draws, 'draw')}",
                f"features  {len(self.features)}: {', '.join(self.features[:_FEW])}{more}",
                f"sampler   {record.sampler.name or 'not recorded'}{chosen}",
                f"observed  {record.observed}",
                f"check     {verdict}",
            )
        )

    @property
    def weights(self) -> Float64:
        """(C, D, Q): the draws of the free weights."""
        if not self.features:
            return np.zeros((*self.shape, 0))
        return np.asarray(self.values[WEIGHTS], np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of chains and of kept draws per chain."""
        chains, draws = np.shape(next(iter(self.values.values())))[:2]
        return chains, draws

    @property
    def flat(self) -> Float64:
        """(C · D, Q): the draws of the weights, chains concatenated."""
        chains, draws = self.shape
        return self.weights.reshape(chains * draws, len(self.features))

    @property
    def weighted(self) -> bool:
        """Whether the draws have importance weights."""
        return self.log_weight is not None

    @property
    def importance(self) -> Float64:
        """(C · D,): importance weights that sum to one, chains concatenated."""
        logs = np.zeros(self.shape) if self.log_weight is None else self.log_weight
        return importance_weights(logs.reshape(-1))

    @property
    def mean(self) -> Float64:
        """(Q,): the posterior mean of the weights."""
        weight = self.importance if self.weighted else None
        return np.asarray(np.average(self.flat, axis=0, weights=weight))

    @property
    def deviation(self) -> Float64:
        """(Q,): the posterior standard deviation of the weights."""
        variance = np.average((self.flat - self.mean) ** 2, axis=0, weights=self.importance)
        return np.asarray(np.sqrt(variance))

    @property
    def correlation(self) -> Float64:
        """(Q, Q): correlations of the weights; 0 for a weight that is constant."""
        centred = self.flat - self.mean
        covariance = (centred * self.importance[:, None]).T @ centred
        scale = np.sqrt(np.diag(covariance))
        scale[scale == 0] = np.inf
        return np.asarray(covariance / np.outer(scale, scale))

    @property
    def canonical(self) -> Float64 | None:
        """(Q,): the canonical weights λ_T, or None if unknown."""
        weights = self.constants.get("canonical")
        return None if weights is None else np.asarray(weights, np.float64)

    @property
    def pointwise(self) -> Float64 | None:
        """(C, D, S): the log-likelihood of each adaptation sentence, or None."""
        parts = [np.asarray(self.log_likelihood[site]) for site in self.sentence_sites]
        return np.asarray(sum(parts[1:], start=parts[0])) if parts else None

    def interval(self, probability: float) -> Float64:
        """Return the equal-tailed interval of each weight, (2, Q)."""
        tail = (1 - probability) / 2
        return quantiles(self.flat, (tail, 1 - tail), self.importance)

    @property
    def domains(self) -> tuple[str, ...]:
        """The names of the domains that have weights of their own."""
        return self.coords.get(DOMAIN, ()) if OWN in self.values else ()

    def of_domain(self, domain: str) -> Draws:
        """Return draws whose weights are those of one domain; the mode is not known.

        Raises:
            UsageError: if there is no such domain, or no domain has weights of its own.

        >>> values = {"weights": np.zeros((1, 2, 1)), "own": np.ones((1, 2, 2, 1))}
        >>> draws = Draws(values, ("LM0",), coords={"domain": ("news", "talks")})
        >>> draws.of_domain("talks").mean.tolist()
        [1.0]
        """
        if not self.domains:
            message = "the posterior has the same weights for all domains: leave out the domain"
            raise UsageError(message, parameter=DOMAIN, code="not-supported")
        place = self.domains.index(require_one_of(domain, self.domains, "domain"))
        own = np.asarray(self.values[OWN])[:, :, place]
        constants = {name: of for name, of in self.constants.items() if name != "mode"}
        return replace(self, values={**self.values, WEIGHTS: own}, constants=constants)

    def components(self, *, derived: bool = False) -> dict[str, Float64]:
        """Return the draws of every scalar by name, each (C, D).

        A weight has the name of its feature; a cell of another site is called `site[2]`, or
        `site[LM0]` if its dimensions have names, and a scalar site `site`. Names that repeat are
        numbered.

        Args:
            derived: whether to include functions of the sampled sites.

        >>> draws = Draws(
        ...     {"weights": np.zeros((1, 2, 2)), "own": np.zeros((1, 2, 3, 2))},
        ...     ("LM0", "WP0"),
        ...     sites=("weights", "own"),
        ...     dims={"own": ("domain", "feature")},
        ...     coords={"domain": ("news", "talks", "news")},
        ... )
        >>> list(draws.components())[4:7]
        ['own[talks, LM0]', 'own[talks, WP0]', 'own[news, LM0] (2)']
        """
        return {name: cell for _, name, cell in self.cells(derived=derived)}

    def cells(self, *, derived: bool = False) -> list[tuple[str, str, Float64]]:
        """Return the site, the name and the draws of every scalar, as `components`."""
        # Weights are included even if they are a function of other sites.
        weights = [WEIGHTS] if self.features else []
        others = [name for name in self.values if derived or name in self.sites]
        sites, names, values = list[str](), list[str](), list[Float64]()
        for site in dict.fromkeys([*weights, *others]):
            cells = np.asarray(self.values[site], np.float64).reshape(*self.shape, -1)
            count = cells.shape[-1]
            labels = self._cell_names(site) or [f"{site}[{k}]" for k in range(count)]
            labels = [site] if count == 1 else labels
            names += self.features if site == WEIGHTS and self.features else labels
            sites += [site] * count
            values.extend(np.moveaxis(cells, -1, 0))
        return list(zip(sites, number_repeats(names), values, strict=True))

    def _cell_names(self, site: str) -> list[str]:
        """Return the names of the cells of a site whose dimensions have names, else nothing."""
        dims, shape = self.dims.get(site, ()), np.shape(self.values[site])[2:]
        named = {**self.coords, "feature": self.features, "other_feature": self.features}
        labels: list[Any] = [
            names if len(names := named.get(dim, ())) == size else range(size)
            for dim, size in zip(dims, shape, strict=False)
        ]
        if tuple(map(len, labels)) != shape:
            return []
        return [f"{site}[{', '.join(map(str, cell))}]" for cell in product(*labels)]

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
            problem = (
                "this posterior does not contain its mode: use a sampler that finds it (map, nuts) "
                "or the mean"
            )
            if self.domains:
                problem = "the mode of the weights of a domain is not known: use the mean"
            _require("mode" in self.constants, problem, "point")
            values = np.asarray(self.constants["mode"], float)
        elif point == "draw":
            problem = f"there is no draw {draw}: the posterior has 0 to {len(self.flat) - 1}"
            _require(0 <= draw < len(self.flat), problem, "draw")
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
        >>> draws = Draws({"weights": np.ones((1, 2, 1))}, ("LM0",), fixed=Weights({"W0": 3.0}))
        >>> draws.aligned(from_lists([["a"]], [[[1.0, 2.0]]], ["W0", "LM0"])).tolist()
        [[3.0, 1.0], [3.0, 1.0]]
        """
        values = self.flat if vectors is None else np.asarray(vectors, np.float64)
        free = {name: values[:, k] for k, name in enumerate(self.features)}
        weights = Weights({**dict.fromkeys(free, 0.0), **self.fixed}, "the posterior")
        missing = [name for name in lists.feature_names if name not in weights]
        if missing:
            message = (
                f"no weight for the lists {list_names(missing)}: the posterior has weights for "
                f"{', '.join(weights)}; give lists with these features, or default weights for the "
                "others"
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

    def reordered(self, features: tuple[str, ...]) -> Draws:
        """Return the draws of the weights with the features in another order.

        Raises:
            DataError: if they are not the same features.
        """
        differing = ", ".join(sorted(set(features) ^ set(self.features)))
        problem = f"posteriors of different features cannot be compared: {differing}"
        _require(not differing, problem, code="mismatch")
        weights = self.weights[..., find_positions(features, self.features)]
        return Draws({WEIGHTS: weights}, features, self.kind, self.log_weight)

    def resampled(self, seed: int = 0) -> Draws:
        """Return draws that count alike: these, or one chain resampled by importance weights.

        Systematic resampling: a draw of share w comes ⌊Dw⌋ or ⌈Dw⌉ times among D draws.

        >>> drawn = Draws(
        ...     {"weights": [[[0.0], [1.0]]]}, ("LM0",), "weighted", np.log([[1e-9, 1.0]])
        ... )
        >>> drawn.resampled().flat.tolist()
        [[1.0], [1.0]]
        """
        if self.log_weight is None:
            return self
        share = np.cumsum(self.importance)
        count = len(share)
        marks = (np.arange(count) + np.random.default_rng(check_seed(seed)).uniform()) / count
        chosen = np.searchsorted(share, marks).clip(max=count - 1)

        def select(values: Any) -> Any:
            """Return the chosen draws, counted over all chains, as one chain."""
            if isinstance(values, Mapping):
                return {name: select(array) for name, array in values.items()}
            array = np.asarray(values)
            return array.reshape(-1, *array.shape[2:])[chosen][None]

        names = ("values", "log_likelihood", "log_prior", "predictive", "statistics", "log_density")
        parts = {name: getattr(self, name) for name in names}
        chosen_parts = {name: select(part) for name, part in parts.items() if part is not None}
        return replace(self, kind="chains", log_weight=None, warmup={}, **chosen_parts)


def _require(
    condition: bool, problem: str, parameter: str | None = None, code: str | None = None
) -> None:
    """Raise a DataError unless a condition holds."""
    if not condition:
        raise DataError(problem, parameter=parameter, code=code)


def check_finite(draws: Draws) -> None:
    """Raise if any weight or log density is not finite.

    Raises:
        DataError: naming the feature and the draw.
    """
    remedy = "fix the sampler that drew it"
    wrong = ~np.isfinite(draws.weights)
    if wrong.any():
        chain, draw, feature = np.argwhere(wrong)[0].tolist()
        name, count = draws.features[feature], int(wrong.any(axis=2).sum())
        message = (
            f"{name} is not finite in draw {draw} of chain {chain} ({count} in total): {remedy}"
        )
        raise DataError(message, code="bad-number")
    constants = {name: np.abs(draws.constants.get(name, 0.0)) for name in BY_FEATURE}
    largest = {name: np.max(values, initial=0.0) for name, values in constants.items()}
    # Logarithms of weights that are not all zero.
    logs = {"log_weight": draws.log_weight, "log density": draws.log_density}
    largest |= {n: np.max(v, initial=-np.inf) for n, v in logs.items() if v is not None}
    for name, value in largest.items():
        problem = f"{name} holds NaN or an infinite number: {remedy}"
        _require(bool(np.isfinite(value)), problem, code="bad-number")


def standardise(draws: Draws) -> Draws | None:
    """Return draws of each weight times the standard deviation of its feature within lists.

    These are the weights to compare: they do not depend on the units of the features. The lists are
    those of the adaptation; None if the posterior does not record their spread.

    >>> from bpa_ppl.posterior.record import FeatureScale
    >>> record = Record(feature_scales={"LM0": FeatureScale(spread=3.0)})
    >>> standardise(Draws({"weights": [[[0.5]]]}, ("LM0",), record=record)).mean.tolist()
    [1.5]
    >>> standardise(Draws({"weights": [[[0.5]]]}, ("LM0",)))
    """
    scales = draws.record.feature_scales
    if not draws.features or not scales.keys() >= {*draws.features, *draws.fixed}:
        return None
    spread = np.array([scales[name].spread for name in draws.features])

    def scaled(arrays: Arrays, names: Sequence[str]) -> Arrays:
        return {n: np.asarray(a) * spread if n in names else a for n, a in arrays.items()}

    constants = scaled(draws.constants, ("canonical", "prior_mean", "mode"))
    unscaled = ("prior_variance", "prior_covariance")
    return replace(
        draws,
        values=scaled(draws.values, (WEIGHTS,)),
        warmup=scaled(draws.warmup, (WEIGHTS,)),
        prior=scaled(draws.prior, (WEIGHTS,)),
        constants={name: array for name, array in constants.items() if name not in unscaled},
        fixed=Weights({name: w * scales[name].spread for name, w in draws.fixed.items()}),
    )


def choose_components(draws: Draws, var_names: Sequence[str]) -> list[str]:
    """Return the components of some variables: features, all cells of a variable, or single cells.

    Raises:
        DataError: if there is none of a name.

    >>> draws = Draws({"s": np.zeros((1, 2, 2))}, (), sites=("s",))
    >>> choose_components(draws, ["s"]), choose_components(draws, ["s[1]"])
    (['s[0]', 's[1]'], ['s[1]'])
    """
    components, chosen = list(draws.components(derived=True)), list[str]()
    for name in var_names:
        cells = [one for one in components if one == name or one.startswith(f"{name}[")]
        cells = list(draws.features) if not cells and name == WEIGHTS else cells
        if not cells:
            message = (
                f"no variable of the posterior {name}{suggest_name(name, components)}: choose from "
                f"{list_names(components) or 'none'}"
            )
            raise DataError(message, parameter="var_names", code="missing-feature")
        chosen += cells
    return list(dict.fromkeys(chosen))


def select_components(draws: Draws, var_names: Sequence[str]) -> Draws:
    """Return draws of some components, without constants and prior.

    Args:
        draws: the draws.
        var_names: as for `choose_components`.

    >>> draws = Draws({"weights": np.zeros((1, 2, 2)), "s": np.ones((1, 2))}, ("LM0", "WP0"))
    >>> list(select_components(draws, ["WP0", "s"]).components())
    ['WP0', 's']
    """
    cells, chosen = draws.components(derived=True), choose_components(draws, var_names)
    features = tuple(name for name in chosen if name in draws.features)
    values = {name: cells[name] for name in chosen if name not in features}
    if features:
        values = {WEIGHTS: np.stack([cells[name] for name in features], axis=-1), **values}
    return replace(
        draws,
        values=values,
        features=features,
        sites=tuple(values),
        dims={},
        constants={},
        prior={},
        log_prior={},
        fixed=Weights({}),
    )


def find_ids(draws: Draws, lists: NBest) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any]]:
    """Return the ids of the lists that a posterior was adapted to, and those of some lists.

    Args:
        draws: of the posterior; None is returned for it if it does not record them.
        lists: the lists.

    >>> from bpa_ppl import from_lists
    >>> draws = Draws({"weights": np.ones((1, 2, 1))}, ("lm",), sentence_ids=np.array(["x"]))
    >>> lists = from_lists([["a"]], [[[1.0]]], ["lm"], sentence_extras={"id": ["y"]})
    >>> find_ids(draws, lists)
    (array(['x'], dtype='<U1'), array(['y'], dtype='<U1'))
    """
    if draws.sentence_ids is None or np.asarray(draws.sentence_ids).dtype.kind in "iu":
        return draws.sentence_ids, lists.sentence_ids
    return np.asarray(draws.sentence_ids, str), np.asarray(lists.ids, str)


def importance_weights(log_weight: npt.ArrayLike) -> Float64:
    """Return importance weights that sum to one, from their logarithms.

    >>> importance_weights(np.log([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    values = np.asarray(log_weight, np.float64)
    shifted = np.exp(values - np.max(values))
    return np.asarray(shifted / shifted.sum())


def kish(importance: Float64) -> float:
    """Return the effective size of a sample with weights that sum to one (Kish 1965).

    >>> kish(np.array([0.5, 0.5, 0.0]))
    2.0
    """
    return float(1.0 / np.sum(importance**2))


def quantiles(
    draws: npt.ArrayLike, probabilities: Sequence[float], importance: npt.ArrayLike
) -> Float64:
    """Return quantiles of weighted draws (n, Q), one row per probability.

    >>> quantiles([[1.0], [2.0], [9.0]], (0.5,), [0.2, 0.2, 0.6]).tolist()
    [[9.0]]
    """
    values, weights = np.asarray(draws, np.float64), np.asarray(importance, np.float64)
    return np.quantile(values, probabilities, axis=0, weights=weights, method="inverted_cdf")


def total(arrays: Arrays, shape: tuple[int, int]) -> Float64:
    """Return the sum over the cells of all arrays, (C, D, …) ↦ (C, D); 0 without arrays.

    >>> total({"a": np.ones((1, 2, 3)), "b": np.ones((1, 2))}, (1, 2)).tolist()
    [[4.0, 4.0]]
    """
    parts = [np.reshape(part, (*shape, -1)).sum(-1, np.float64) for part in arrays.values()]
    return np.asarray(sum(parts, start=np.zeros(shape)))
