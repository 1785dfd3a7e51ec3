"""Draws: a posterior sample as plain named arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import check_seed, require_one_of
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import format_count
from bpa_ppl._runtime.names import find_positions, number_repeats
from bpa_ppl.errors import DataError, list_names, suggest_name
from bpa_ppl.posterior.record import Record

#: Chains that follow the posterior, draws with importance weights, or one point.
KINDS = ("chains", "weighted", "point")
#: Names of variables that are printed.
_NAMES_SHOWN = 5

Arrays = Mapping[str, npt.NDArray[Any]]


class Cells(NamedTuple):
    """The scalars of some sites.

    Attributes:
        sites: (K,) the site of each.
        names: (K,) their names, see `Draws.components`.
        values: (C, D, K) their draws.
    """

    sites: tuple[str, ...]
    names: tuple[str, ...]
    values: Float64


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Draws of named values in C chains of D draws, with densities, statistics and constants.

    Attributes:
        values: site -> (C, D, …) its values.
        kind: `chains`, `weighted` (with importance weights) or `point`.
        log_weight: (C, D) logarithms of importance weights, or None if all draws have equal weight.
        log_density: (C, D) log p(z, data) up to a constant, or None.
        log_likelihood: observed site -> (C, D, …) one value per observation.
        log_prior: site -> (C, D, …) its log prior density, and the values of factors; empty if not
            recorded by site.
        predictive: observed site -> (C, D, …) what each draw predicts.
        statistics: name as in ArviZ -> (C, D), such as `acceptance_rate`.
        warmup: site -> (C, W, …) the discarded draws.
        prior: site -> (C, P, …) draws of the prior.
        sampled: the sites that were sampled, of which other values are functions; None if that is
            not recorded, as in draws of other programs.
        main: the sites that the posterior is for, as the weights of lists. Their cells have the
            names of their labels alone, and are checked even if they are constant or computed.
        dims: name of an array -> the names of its dimensions, after chain and draw if it has these;
            for arrays whose dimensions have names.
        coords: dimension -> its labels; other dimensions are numbered.
        observed: site -> what was observed.
        constants: name -> values that are the same for all draws.
        record: how the draws were made.

    Raises:
        DataError: if the parts do not fit together.

    Four draws of a variable of two values, in two chains:

    >>> draws = Draws(
    ...     {"theta": [[[1.0, 0.0], [2.0, 0.0]], [[3.0, 1.0], [2.0, 1.0]]]},
    ...     dims={"theta": ("school",)},
    ...     coords={"school": ("a", "b")},
    ... )
    >>> draws.names, draws.shape, draws.array.shape, draws.flat.shape, draws.weighted
    (('theta[a]', 'theta[b]'), (2, 2), (2, 2, 2), (4, 2), False)
    >>> draws.mean.tolist(), draws.deviation.round(2).tolist(), draws.importance.tolist()
    ([2.0, 0.5], [0.71, 0.5], [0.25, 0.25, 0.25, 0.25])
    >>> draws.interval(0.5).tolist()
    [[1.0, 0.0], [2.0, 1.0]]
    >>> {name: values.tolist() for name, values in draws.components().items()}
    {'theta[a]': [[1.0, 2.0], [3.0, 2.0]], 'theta[b]': [[0.0, 0.0], [1.0, 1.0]]}
    >>> print(draws)
    kind      chains
    shape     2 chains × 2 draws
    values    2: theta[a], theta[b]
    sampler   not recorded
    observed  not recorded
    check     not recorded
    """

    values: Arrays
    kind: str = "chains"
    log_weight: Float64 | None = None
    log_density: Float64 | None = None
    log_likelihood: Arrays = field(default_factory=dict)
    log_prior: Arrays = field(default_factory=dict)
    predictive: Arrays = field(default_factory=dict)
    statistics: Arrays = field(default_factory=dict)
    warmup: Arrays = field(default_factory=dict)
    prior: Arrays = field(default_factory=dict)
    sampled: tuple[str, ...] | None = None
    main: tuple[str, ...] = ()
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, Sequence[Any] | npt.NDArray[Any]] = field(default_factory=dict)
    observed: Arrays = field(default_factory=dict)
    constants: Arrays = field(default_factory=dict)
    record: Record = field(default_factory=Record)

    def __post_init__(self) -> None:
        """Refuse names, shapes and types that are not consistent."""
        require_one_of(self.kind, KINDS, "kind of draws", "kind")
        problem = f"draws of the kind {self.kind} {'have' if self.weighted else 'lack'} importance "
        problem += "weights (log_weight): only weighted draws have them"
        _require((self.kind == "weighted") == self.weighted, problem, "log_weight")
        name, first = next(iter(self.values.items()), ("", ()))
        shape = np.shape(first)[:2]
        problem = f"the posterior has no draws: {name} has the shape {np.shape(first)}"
        _require(len(shape) == 2 and shape[0] * shape[1] > 0, problem, "values", "no-data")
        problem = f"draws of the kind point have one draw, not {shape}"
        _require(self.kind != "point" or shape == (1, 1), problem, "kind", "mismatch")
        for site in (*(self.sampled or ()), *self.main):
            problem = f"there are no draws of the sampled site {site!r:.80}"
            _require(site in self.values, problem, "sampled")
        groups: tuple[Mapping[str, Any], ...] = (
            *(self.values, self.log_likelihood, self.log_prior, self.predictive, self.statistics),
            {"log_weight": self.log_weight, "log_density": self.log_density},
        )
        expected = [(name, x, shape) for group in groups for name, x in group.items()]
        for name in self.main_constants:
            sizes = tuple(len(self.coords[dim]) for dim in self.dims[name] if dim in self.coords)
            expected.append((name, self.constants[name], sizes))
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
        return f"Draws({self.kind}, {chains} × {draws}, {format_count(len(self.names), 'value')})"

    def __str__(self) -> str:
        chains, draws = self.shape
        record, more = self.record, "" if len(self.names) <= _NAMES_SHOWN else ", …"
        verdict = "not recorded" if record.verdict is None else str(record.verdict)
        chosen = "" if record.figures.chosen is None else f" ({record.figures.chosen})"
        sizes = {site: np.size(values) for site, values in self.observed.items()}
        observed = [f"{format_count(size, 'value')} of {site}" for site, size in sizes.items()]
        return "\n".join(
            (
                f"kind      {self.kind}",
                f"shape     {format_count(chains, 'chain')} × {format_count(draws, 'draw')}",
                f"values    {len(self.names)}: {', '.join(self.names[:_NAMES_SHOWN])}{more}",
                f"sampler   {record.sampler.name or 'not recorded'}{chosen}",
                f"observed  {', '.join(observed) or 'not recorded'}",
                f"check     {verdict}",
            )
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of chains and of kept draws per chain."""
        chains, draws = np.shape(next(iter(self.values.values())))[:2]
        return chains, draws

    @cached_property
    def sites(self) -> tuple[str, ...]:
        """The sites that were sampled; if that is not recorded, the main and those that vary."""
        if self.sampled is not None:
            return self.sampled
        arrays = {name: np.asarray(values) for name, values in self.values.items()}
        vary = [n for n, x in arrays.items() if n in self.main or np.any(x != x[:1, :1])]
        return tuple(vary or arrays)

    @property
    def main_names(self) -> tuple[str, ...]:
        """The names of the cells of the main sites."""
        cells = zip(self.cells.sites, self.cells.names, strict=True)
        return tuple(name for site, name in cells if site in self.main)

    @property
    def main_constants(self) -> tuple[str, ...]:
        """The constants that have a value for each cell of a main site."""
        first = {self.dims.get(site, ())[:1] for site in self.main} - {()}
        return tuple(name for name in self.constants if self.dims.get(name, ())[:1] in first)

    @property
    def names(self) -> tuple[str, ...]:
        """(K,) the names of the cells of all sampled sites, as of `components`."""
        return self.cells.names

    @property
    def array(self) -> Float64:
        """(C, D, K): the draws of the cells of all sampled sites."""
        return self.cells.values

    @property
    def flat(self) -> Float64:
        """(C · D, K): the draws of the cells of all sampled sites, chains concatenated."""
        return self.array.reshape(-1, self.array.shape[-1])

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
        """(K,): the posterior means."""
        weight = self.importance if self.weighted else None
        return np.asarray(np.average(self.flat, axis=0, weights=weight))

    @property
    def deviation(self) -> Float64:
        """(K,): the posterior standard deviations."""
        variance = np.average((self.flat - self.mean) ** 2, axis=0, weights=self.importance)
        return np.asarray(np.sqrt(variance))

    def interval(self, probability: float) -> Float64:
        """Return the equal-tailed interval of each value, (2, K)."""
        tail = (1 - probability) / 2
        return quantiles(self.flat, (tail, 1 - tail), self.importance)

    @cached_property
    def cells(self) -> Cells:
        """The scalars of the main and of all sampled sites."""
        return self._list_cells([name for name in self.values if name in self.sites])

    def components(self, *, derived: bool = False) -> dict[str, Float64]:
        """Return the draws of every scalar by name, each (C, D): `site`, `site[2]`, or `LM0`.

        Names that repeat are numbered.

        >>> draws = Draws(
        ...     {"weights": np.zeros((1, 2, 2)), "own": np.zeros((1, 2, 3, 2))},
        ...     main=("weights",),
        ...     dims={"weights": ("feature",), "own": ("domain", "feature")},
        ...     coords={"domain": ("news", "talks", "news"), "feature": ("LM0", "WP0")},
        ... )
        >>> list(draws.components(derived=True))[1:6]
        ['WP0', 'own[news, LM0]', 'own[news, WP0]', 'own[talks, LM0]', 'own[talks, WP0]']
        """
        cells = self._list_cells(tuple(self.values)) if derived else self.cells
        return dict(zip(cells.names, np.moveaxis(cells.values, -1, 0), strict=True))

    def _list_cells(self, sites: Sequence[str]) -> Cells:
        of_sites, names, values = list[str](), list[str](), [np.zeros((*self.shape, 0))]
        for site in dict.fromkeys((*self.main, *sites)):
            cells = np.asarray(self.values[site], np.float64).reshape(*self.shape, -1)
            labels = self.label_cells(site)
            if site in self.main:
                names += [label or site for label in labels]
            else:
                names += [site] if len(labels) == 1 else [f"{site}[{label}]" for label in labels]
            of_sites += [site] * cells.shape[-1]
            values.append(cells)
        joined = values[1] if len(values) == 2 else np.concatenate(values, axis=-1)
        return Cells(tuple(of_sites), tuple(number_repeats(names)), joined)

    def label_cells(self, site: str) -> list[str]:
        """Return the labels of the cells of a site, such as `talks, LM0` or `3`; empty of a scalar.

        Those of a dimension without labels are numbers from 0.
        """
        shape, dims = np.shape(self.values[site])[2:], self.dims.get(site, ())
        named = [self.coords.get(dim, ()) for dim in (*dims, *[""] * (len(shape) - len(dims)))]
        labels: list[Any] = [
            of_dim if len(of_dim) == size else range(size)
            for of_dim, size in zip(named, shape, strict=False)
        ]
        return [", ".join(map(str, cell)) for cell in product(*labels)]

    def reordered(self, names: Sequence[str]) -> Draws:
        """Return the draws of the sampled sites as one array, with the cells in another order.

        Raises:
            DataError: if they are not the same cells.

        >>> draws = Draws({"a": np.zeros((1, 2)), "b": np.ones((1, 2))})
        >>> draws.reordered(("b", "a")).mean.tolist()
        [1.0, 0.0]
        """
        differing = list_names(sorted(set(names) ^ set(self.names)))
        problem = f"posteriors of different features cannot be compared: {differing}"
        _require(not differing, problem, code="mismatch")
        values = self.array[..., find_positions(names, self.names)]
        return name_array(values, names, kind=self.kind, log_weight=self.log_weight)

    def resampled(self, seed: int = 0) -> Draws:
        """Return draws of equal weight: these, or one chain resampled by importance weights.

        Systematic resampling: a draw of share w comes ⌊Dw⌋ or ⌈Dw⌉ times among D draws.

        >>> drawn = Draws({"x": np.array([[0.0, 1.0]])}, "weighted", np.log([[1e-9, 1.0]]))
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


class HasDraws(Protocol):
    """An object around draws, which says more about them, such as which lists they belong to."""

    @property
    def draws(self) -> Draws:
        """The draws."""


def unwrap(posterior: Any) -> Any:
    """Return the draws of an object around them (`HasDraws`), and other posteriors as they are."""
    draws = getattr(posterior, "draws", None)
    return draws if isinstance(draws, Draws) else posterior


def _require(
    condition: bool, problem: str, parameter: str | None = None, code: str | None = None
) -> None:
    """Raise a DataError unless a condition holds."""
    if not condition:
        raise DataError(problem, parameter=parameter, code=code)


def name_array(values: npt.ArrayLike, names: Sequence[str], **parts: Any) -> Draws:
    """Return draws of scalars as one array (C, D, K), with their names and other parts of `Draws`.

    >>> name_array(np.zeros((4, 100, 2)), ("mu", "theta[3]")).names
    ('mu', 'theta[3]')
    """
    dims, coords = {"values": ("name",)}, {"name": tuple(names)}
    array = np.asarray(values)
    return Draws({"values": array}, main=("values",), dims=dims, coords=coords, **parts)


def check_finite(draws: Draws) -> None:
    """Raise if a value of a main site, a constant of its cells, or a log density is not finite.

    Raises:
        DataError: naming the value and the draw.
    """
    remedy = "fix the sampler that drew it"
    cells = draws.cells
    of_main = np.isin(cells.sites, draws.main)
    wrong = ~np.isfinite(cells.values) & of_main
    if wrong.any():
        chain, draw, k = np.argwhere(wrong)[0].tolist()
        count = int(wrong.any(axis=2).sum())
        message = (
            f"{cells.names[k]} is not finite in draw {draw} of chain {chain} ({count} in total): "
            f"{remedy}"
        )
        raise DataError(message, code="bad-number")
    constants = {name: np.abs(draws.constants[name]) for name in draws.main_constants}
    largest = {name: np.max(values, initial=0.0) for name, values in constants.items()}
    # Logarithms of weights that are not all zero.
    logs = {"log_weight": draws.log_weight, "log density": draws.log_density}
    largest |= {n: np.max(v, initial=-np.inf) for n, v in logs.items() if v is not None}
    for name, value in largest.items():
        problem = f"{name} holds NaN or an infinite number: {remedy}"
        _require(bool(np.isfinite(value)), problem, code="bad-number")


def choose_components(draws: Draws, var_names: Sequence[str]) -> list[str]:
    """Return the components of some variables: all cells of a variable, or single cells.

    Raises:
        DataError: if there is none of a name.

    >>> draws = Draws({"s": np.zeros((1, 2, 2))})
    >>> choose_components(draws, ["s"]), choose_components(draws, ["s[1]"])
    (['s[0]', 's[1]'], ['s[1]'])
    """
    components, chosen = list(draws.components(derived=True)), list[str]()
    for name in var_names:
        cells = [one for one in components if one == name or one.startswith(f"{name}[")]
        cells = cells or (list(draws.main_names) if name in draws.main else [])
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

    >>> draws = Draws({"theta": np.zeros((1, 2, 2)), "s": np.ones((1, 2))})
    >>> select_components(draws, ["s", "theta[1]"]).names
    ('s', 'theta[1]')
    """
    cells, chosen = draws.components(derived=True), choose_components(draws, var_names)
    values = {name: cells[name] for name in chosen}
    main = tuple(name for name in chosen if name in draws.main_names)
    parts: dict[str, Any] = {
        key: {} for key in ("dims", "coords", "constants", "prior", "log_prior")
    }
    return replace(draws, values=values, sampled=None, main=main, **parts)


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
