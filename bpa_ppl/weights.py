"""Weights: the named λ of a log-linear model, matched to n-best lists by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, to_floats
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl._runtime.named_columns import name_values
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl.components import read_settings
from bpa_ppl.errors import (
    MEMORY,
    DataError,
    UsageError,
    bad_value,
    list_names,
    locate,
    name_lists,
    unknown_name,
    wrong_type,
    wrong_value,
)
from bpa_ppl.lists.labels import find_label, matches
from bpa_ppl.lists.nbest import NBest

#: Moses and its tools never tune the weight of the unknown-word penalty.
_UNTUNED = ("UnknownWordPenalty0",)

#: Words in the name of a feature that mark it as a log-probability, which has a positive initial
#: weight. Words end at a digit, at `_`, `-` or `.`.
_LOG_PROBABILITIES = ("logprob", "logprobs", "logp", "lprob", "loglikelihood", "lm")

#: Where weights start: at canonical ones, at equal ones for standardised features, or without any.
Start = Literal["canonical", "equal", "none"]
CANONICAL: Final = "canonical"
EQUAL: Final = "equal"
NONE: Final = "none"

#: Weights by name, in the order of the columns, "equal", or None.
AnyWeights = Mapping[str, float] | Sequence[float] | npt.NDArray[Any] | str | None


class Weights(Mapping[str, float]):
    """An immutable mapping from feature name to weight, in a fixed order.

    Args:
        values: the weights by name, or pairs of name and weight.
        origin: the file or object they are from, for messages.

    Attributes:
        positional: whether they have no names of their own, as those of Marian, which are in the
            order of the columns; until they are matched to lists, their names are their positions.

    Raises:
        DataError: if a name occurs twice, or a weight is not finite.
        UsageError: if they have no names.

    >>> canonical = Weights({"LM0": 0.5, "WordPenalty0": -1.5})
    >>> canonical["LM0"], canonical.normalised()["WordPenalty0"]
    (0.5, -0.75)
    """

    def __init__(
        self,
        values: Mapping[str, float] | Iterable[tuple[str, float]],
        origin: str = MEMORY,
    ):
        pairs = _to_pairs(values)
        self._values = dict(pairs)
        self.origin, self.positional = origin, False
        if len(self._values) != len(pairs):
            twice = find_repeated(name for name, _ in pairs)
            raise DataError(f"two weights of {twice[0]}: remove one", origin, code="duplicate")
        for name, value in pairs:
            if not np.isfinite(value):
                raise bad_value(f"the weight of {name}", float(value), "a finite number", origin)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name!r}: {value:g}" for name, value in self.items())
        return f"Weights({{{inside}}})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in order.

        >>> Weights({"LM0": 0.5, "W0": -1.0}).names
        ('LM0', 'W0')
        """
        return tuple(self._values)

    @property
    def values_array(self) -> Float64:
        """(features,) float64, the weights in the order of `names`.

        >>> Weights({"LM0": 0.5, "W0": -1.0}).values_array
        array([ 0.5, -1. ])
        """
        return np.array(list(self._values.values()), dtype=np.float64)

    def updated(self, values: Mapping[str, float]) -> Weights:
        """Return these weights with some values replaced or added.

        >>> Weights({"LM0": 0.5, "W0": -1.0}).updated({"W0": 0.0, "lm": 2.0})
        Weights({'LM0': 0.5, 'W0': 0, 'lm': 2})
        """
        return Weights({**self._values, **values}, self.origin)

    def normalised(self) -> Weights:
        """Return the weights divided by Σ|λ|, which choose the same candidates.

        Raises:
            DataError: if they are all zero.

        >>> Weights({"LM0": 0.5, "W0": -1.5}).normalised()
        Weights({'LM0': 0.25, 'W0': -0.75})
        """
        norm = sum(map(abs, self.values()))
        if norm == 0:
            message = "no weight other than 0 to normalise by: give one"
            raise DataError(message, self.origin, code="no-data")
        return self.updated({name: weight / norm for name, weight in self.items()})


def unnamed_weights(values: Iterable[float], origin: str = MEMORY) -> Weights:
    """Return weights without names, in the order of the columns.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"]], [[[1.0, 2.0]]], ["LM0", "W0"])
    >>> match(unnamed_weights([0.5, 1.0]), lists).values
    array([0.5, 1. ])
    """
    weights = Weights({str(k): value for k, value in enumerate(values)}, origin)
    weights.positional = True
    return weights


def _to_pairs(values: Any) -> list[tuple[str, float]]:
    """Return names and weights of a mapping, or of pairs."""
    try:
        pairs = list(values.items() if isinstance(values, Mapping) else values)
        if any(np.iscomplexobj(value) for _, value in pairs):
            raise TypeError("complex numbers")
        items = [(name, float(value)) for name, value in pairs]
    except (TypeError, ValueError, OverflowError) as error:
        raise _nameless(values, "values") from error
    if not all(isinstance(name, str) for name, _ in items):
        raise _nameless(values, "values")
    return items


def _check_named(values: Any) -> None:
    """Raise a UsageError unless default weights are given by name.

    >>> _check_named({"LM0": 0.5})
    """
    if not isinstance(values, Mapping):
        raise _nameless(values, "defaults")


def _read_fixed(fixed: Any) -> tuple[str, ...]:
    """Return names of fixed features as a tuple."""
    if isinstance(fixed, str) or not isinstance(fixed, Iterable):
        raise wrong_type("fixed features are a list of names", fixed, "fixed")
    return tuple(fixed)


def _nameless(values: Any, parameter: str) -> UsageError:
    return wrong_type("weights are given by name, as {name: number}", values, parameter)


@dataclass(frozen=True)
class StartingWeights:
    """Where the weights start, and which of them stay there.

    Where weights are given to `adapt`, others stand for `StartingWeights` of them.

    Args:
        weights: the canonical weights λ_T, by feature name, or one for each column in their order.
            None starts at 0 for all features but those named as log-probabilities (see
            `initial_weights`), with a prior mean that follows what they have in common; `"equal"`
            starts at the mean of the standardised features (see `equal_weights`). Both scale the
            prior to the spread of each feature within the lists.
        fixed: names or labels of features that stay at their canonical weight, and are not adapted.
            None fixes `UnknownWordPenalty0`, and an empty sequence fixes none.
        defaults: weights of features that the canonical weights do not name.
        lower_is_better: names or labels of features for which lower is better, without canonical
            weights: equal weights of these are negative; otherwise see `measure_agreement` in
            `bpa_ppl.features.matching`.
        pretrained: without canonical weights, start the weights of the columns of the sources
            `consensus` and `length` at values learned from public judged lists: see
            `bpa_ppl.features.matching`. False does not use these values.

    As a text, settings follow the weights `none` and `equal`, such as `equal:lower_is_better=cost`.

    Raises:
        UsageError: if names are missing, or `lower_is_better` is given with canonical weights.

    >>> StartingWeights({"LM0": 0.5, "TM0": 0.2}, fixed=["TM0"]).fixed
    ('TM0',)
    >>> StartingWeights("equal", lower_is_better="cost").lower_is_better
    ('cost',)
    """

    weights: AnyWeights = None
    _: KW_ONLY
    fixed: Iterable[str] | None = None
    defaults: Mapping[str, float] | None = None
    lower_is_better: str | Iterable[str] = ()
    pretrained: bool = True

    def __post_init__(self) -> None:
        _check_named({} if self.defaults is None else self.defaults)
        lower = self.lower_is_better
        names = (lower,) if isinstance(lower, str) else tuple(lower)
        if names and has_canonical(self.weights):
            message = "canonical weights have signs: leave out features for which lower is better"
            raise UsageError(message, parameter="lower_is_better", code="conflict")
        object.__setattr__(self, "lower_is_better", names)
        if not isinstance(self.pretrained, bool):
            rule = "pretrained must be true or false"
            raise wrong_value(rule, self.pretrained, "pretrained", code="invalid-setting")
        if self.fixed is not None:
            object.__setattr__(self, "fixed", _read_fixed(self.fixed))

    @classmethod
    def of(cls, weights: AnyStart) -> StartingWeights:
        """Return starting weights, made of others or of their text if these are none.

        Raises:
            UsageError: if `none` or `equal` have no such setting, or a value makes no sense.

        >>> StartingWeights.of("equal").is_equal, StartingWeights.of("none").weights
        (True, None)
        >>> StartingWeights.of("equal:lower_is_better=cost,length").lower_is_better
        ('cost', 'length')
        >>> StartingWeights.of("none:pretrained=false").pretrained
        False
        """
        if isinstance(weights, StartingWeights):
            return weights
        name, _, written = weights.partition(":") if isinstance(weights, str) else ("", "", "")
        if name not in (NONE, EQUAL):
            return cls(weights)
        title, names = f"the weights {name}", [field.name for field in fields(cls)][1:]
        settings = read_settings(written, title)
        for setting in settings:
            if setting not in names:
                owner = f"the start {name}"
                raise unknown_name("setting", setting, names, setting, owner=owner)
        return cls(None if name == NONE else name, **settings)

    @property
    def is_equal(self) -> bool:
        """Whether every standardised feature starts with the same weight."""
        return isinstance(self.weights, str) and self.weights == EQUAL


#: Weights as `adapt` takes them.
AnyStart = AnyWeights | StartingWeights


def split_arguments(arguments: Mapping[str, Any]) -> tuple[AnyStart, dict[str, Any]]:
    """Divide arguments into the starting weights and the others.

    >>> split_arguments({"weights": {"LM0": 0.5}, "seed": 1})
    ({'LM0': 0.5}, {'seed': 1})
    >>> split_arguments({"pretrained": False, "seed": 1})[0].pretrained
    False
    """
    names = [field.name for field in fields(StartingWeights)]
    of_weights = {name: arguments[name] for name in names if name in arguments}
    others = {name: value for name, value in arguments.items() if name not in of_weights}
    if of_weights.keys() <= {"weights"}:
        return of_weights.get("weights"), others
    return replace(StartingWeights.of(of_weights.pop("weights", None)), **of_weights), others


class Match(NamedTuple):
    """Weights matched to the columns of an n-best table.

    Attributes:
        names: the feature names of the table.
        values: (features,) float64, the weight of each column.
        free: (features,) bool, False where the weight is fixed at its canonical value.
        spread: (features,) float64, the standard deviation within the lists of features without a
            canonical weight, nan for all others; None if every feature has one.
        origin: `canonical`, or where the weights start without canonical ones: `equal` or `none`.
        agreement: for each feature without a starting value, its correlation with what these
            features have in common, from `measure_agreement`; for answers of judges 1, or -1 for
            features for which lower is better. The prior mean of judged lists is proportional to
            it, and it has the signs of the mean of the features.
        sign_probability: that these signs, and not all the opposite ones, are right, a priori.
    """

    names: tuple[str, ...]
    values: Float64
    free: npt.NDArray[np.bool_]
    spread: Float64 | None = None
    origin: Start = CANONICAL
    agreement: Mapping[str, float] = MappingProxyType({})
    sign_probability: float = 1.0

    @property
    def free_names(self) -> tuple[str, ...]:
        """The names of the features whose weights are adapted."""
        return tuple(n for n, free in zip(self.names, self.free, strict=True) if free)

    @property
    def fixed_names(self) -> tuple[str, ...]:
        """The names of the features whose weights are fixed."""
        return tuple(n for n, free in zip(self.names, self.free, strict=True) if not free)

    @property
    def free_values(self) -> Float64:
        """(free,) float64, the canonical weights of the free features."""
        return self.values[self.free]

    @property
    def fixed_values(self) -> Float64:
        """(fixed,) float64, the weights of the fixed features."""
        return self.values[~self.free]

    @property
    def free_spread(self) -> dict[str, float]:
        """The spread of those free features that have no canonical weight, by name."""
        if self.spread is None:
            return {}
        pairs = zip(self.free_names, self.spread[self.free].tolist(), strict=True)
        return {name: spread for name, spread in pairs if not np.isnan(spread)}

    def without(self, names: Collection[str]) -> Self:
        """Return the match to a table without some of the columns.

        >>> match = Match(("LM0", "W0"), np.array([0.5, 2.0]), np.array([True, False]))
        >>> match.without(["W0"]).names
        ('LM0',)
        """
        kept = [k for k, name in enumerate(self.names) if name not in names]
        spread = None if self.spread is None else self.spread[kept]
        left = tuple(self.names[k] for k in kept)
        return self._replace(
            names=left, values=self.values[kept], free=self.free[kept], spread=spread
        )

    def full(self, free: npt.ArrayLike) -> Float64:
        """Return (…, features) the weights of all features from (…, free features) the free ones.

        >>> matched = Match(("LM0", "W0"), np.array([0.5, 2.0]), np.array([True, False]))
        >>> matched.full([[1.0], [3.0]]).tolist()
        [[1.0, 2.0], [3.0, 2.0]]
        """
        weights = np.asarray(free, dtype=np.float64)
        result = np.broadcast_to(self.values, (*weights.shape[:-1], len(self.names))).copy()
        result[..., self.free] = weights
        return result


def match(
    weights: AnyWeights,
    lists: NBest,
    *,
    fixed: Iterable[str] | None = None,
    defaults: Mapping[str, float] | None = None,
) -> Match:
    """Match weights to the features of an n-best table: by name, or in the order of the columns.

    A weight whose feature the lists do not have is left out with a warning.

    Args:
        weights: the canonical weights, by name or one per column; None for `initial_weights`.
        lists: the lists.
        fixed: names or labels of features whose weights stay canonical; None fixes
            `UnknownWordPenalty0`, as Moses does, and an empty sequence fixes none.
        defaults: values for features without a canonical weight. A prior is scaled to the spread of
            such a feature within the lists.

    Raises:
        DataError: if a feature has no weight, or a name in `fixed` is not a feature; or if a weight
            is of a column with missing values.
        UsageError: if weights or lists have another type.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"]], [[[1.0, 2.0]]], ["LM0", "W0"])
    >>> match({"W0": 0.5, "LM0": 1.0}, lists, fixed=["W0"]).free_names
    ('LM0',)
    >>> match([1.0, 0.5], lists).values.tolist()
    [1.0, 0.5]
    """
    require(lists, NBest, "weights are matched to n-best lists (NBest)", "lists")
    defaults = {} if defaults is None else defaults
    _check_named(defaults)
    fixed = None if fixed is None else _read_fixed(fixed)
    canonical = _name_canonical(weights, lists)
    values = dict(Weights(defaults, "the default weights"))
    if weights is None:
        canonical, values = Weights({}, canonical.origin), {**canonical, **values}
    values |= canonical
    if names := [name for name in lists.feature_names if name not in values]:
        message = f"no weight for {list_names(names)}, found in {name_lists(lists.origin)}: add it"
        raise DataError(message, canonical.origin, parameter="weights", code="missing-weight")
    unused = canonical.keys() - set(lists.feature_names)
    for name in sorted(unused & lists.extras.keys()):
        column = np.asarray(lists.extras[name])
        absent = np.count_nonzero(np.isnan(column)) if column.dtype.kind == "f" else 0
        if absent:
            message = (
                f"{name}, which has a canonical weight, is missing for {absent:,} of "
                f"{format_count(len(column), 'candidate')}: add it to these lists, or leave its "
                "weight out"
            )
            raise DataError(message, lists.origin, code="bad-number")
    if unused:
        listed = list_names(name for name in canonical if name in unused)
        note = f"{listed} left out: there is no such feature in {name_lists(lists.origin)}"
        warn_user(locate(canonical.origin) + note)
    new = [name not in canonical for name in lists.feature_names]
    untouched = dict.fromkeys(_UNTUNED if fixed is None else fixed)
    if fixed is not None:
        _find_features(lists, untouched, "fixed")
    free = np.array([not matches(name, untouched) for name in lists.feature_names], dtype=bool)
    if not free.any():
        problem, parameter = "every feature is fixed: there is none to adapt", "fixed"
        if not lists.feature_names:
            problem, parameter = "the lists have no feature", "add"
            problem += ": add some that need only texts, such as length and consensus"
        raise DataError(problem, lists.origin, parameter=parameter, code="no-data")
    return Match(
        names=lists.feature_names,
        values=np.array([values[name] for name in lists.feature_names], dtype=np.float64),
        free=free,
        spread=np.where(new, lists.spread, np.nan) if any(new) else None,
    )


def initial_weights(lists: NBest) -> Weights:
    """Return initial weights, for lists without canonical ones.

    They are 1 / spread for features named as log-probabilities, such as `logprob` or `lm`, and 0
    for all others; the spread is the standard deviation within the lists. The unknown-word penalty
    of Moses, which is never tuned, has 1.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[-2.0, 0.7], [-6.0, 0.6]]], ["logprob", "comet"])
    >>> initial_weights(lists)
    Weights({'logprob': 0.5, 'comet': 0})
    """
    values = {name: float(name in _UNTUNED) for name in lists.feature_names}
    for name, spread in zip(lists.feature_names, lists.spread.tolist(), strict=True):
        if is_log_probability(name) and spread > 0 and name not in _UNTUNED:
            values[name] = 1 / spread
    return Weights(values, "no canonical weights")


def start(
    weights: AnyWeights, lists: NBest, lower_is_better: Collection[str] = ()
) -> tuple[Mapping[str, float] | None, Mapping[str, float], Start]:
    """Return where the weights of the columns of some lists start, by name.

    They are the canonical weights, or None; the values of features without one, for `match`; and
    the origin: `canonical`, `equal` or `none`.

    Raises:
        DataError: if there are more or fewer weights without names than columns, or
            `lower_is_better` names no feature.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5, 1.0], [0.7, 3.0]]], ["comet", "errors"])
    >>> start([1.0, 2.0], lists), start(None, lists)[1:]
    (({'comet': 1.0, 'errors': 2.0}, {}, 'canonical'), (Weights({'comet': 0, 'errors': 0}), 'none'))
    """
    if isinstance(weights, str) and weights == EQUAL:
        return None, equal_weights(lists, lower_is_better), EQUAL
    if weights is None:
        lower = _find_features(lists, lower_is_better, "lower_is_better")
        return None, initial_weights(lists).updated(dict.fromkeys(lower, 0.0)), NONE
    weights = name_values(weights, "weights")
    if isinstance(weights, Mapping) and not (isinstance(weights, Weights) and weights.positional):
        return weights, {}, CANONICAL
    columns = match(weights, lists, fixed=())
    return dict(zip(columns.names, columns.values.tolist(), strict=True)), {}, CANONICAL


def has_canonical(weights: AnyWeights) -> bool:
    """Return whether weights are canonical ones: neither None nor equal weights.

    >>> has_canonical({"lm": 0.5}), has_canonical(None), has_canonical(EQUAL)
    (True, False, False)
    """
    return weights is not None and not (isinstance(weights, str) and weights == EQUAL)


def equal_weights(lists: NBest, lower_is_better: Iterable[str] = ()) -> Weights:
    """Return weights that give every standardised feature the same weight.

    ±1 / (2 K spread) for K features; the spread is the standard deviation within the lists.

    Args:
        lists: the lists.
        lower_is_better: names or labels of features for which lower is better.

    Raises:
        DataError: if one of them is not a feature.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5, 1.0], [0.7, 3.0]]], ["comet", "errors"])
    >>> equal_weights(lists, ["errors"])
    Weights({'comet': 2.5, 'errors': -0.25})
    """
    lower = _find_features(lists, lower_is_better, "lower_is_better")
    spread = dict(zip(lists.feature_names, lists.spread.tolist(), strict=True))
    counted = [name for name in lists.feature_names if spread[name] > 0 and name not in _UNTUNED]
    values = {name: float(name in _UNTUNED) for name in lists.feature_names}
    for name in counted:
        sign = -1 if name in lower else 1
        values[name] = sign / (2 * len(counted) * spread[name])
    return Weights(values, "equal weights")


def is_log_probability(name: str) -> bool:
    """Return whether a feature is a log-probability, by its name.

    >>> [name for name in ("model.log_prob", "LM0", "comet") if is_log_probability(name)]
    ['model.log_prob', 'LM0']
    """
    words = re.findall(r"[a-z]+", name.lower())
    pairs = {first + second for first, second in pairwise(words)}
    # Marian names its scorers F0, F1, …
    is_score = words == ["score"] or re.fullmatch(r"F\d+", name) is not None
    return is_score or not pairs.union(words).isdisjoint(_LOG_PROBABILITIES)


def _name_canonical(canonical: Any, lists: NBest) -> Weights:
    """Return weights by name."""
    if canonical is None:
        return initial_weights(lists)
    canonical = name_values(canonical, "weights")
    if isinstance(canonical, Mapping):
        weights = canonical if isinstance(canonical, Weights) else Weights(canonical, "the weights")
    else:
        try:
            values = to_floats(canonical, "weights")
        except UsageError as error:
            raise _nameless(canonical, "weights") from error
        if values.ndim != 1:
            raise _nameless(canonical, "weights")
        weights = unnamed_weights(values, "the weights")
    if not weights.positional:
        return weights
    names = lists.feature_names
    if len(weights) != len(names):
        count = len(names)
        message = f"{len(weights)} weights without names, but {count} features: {list_names(names)}"
        raise DataError(message, weights.origin, code="wrong-length")
    return Weights(zip(names, weights.values(), strict=True), weights.origin)


def _find_features(lists: NBest, selected: Iterable[str], parameter: str) -> set[str]:
    """Return the features of lists that are selected by name or by label.

    Args:
        lists: the lists.
        selected: names and labels.
        parameter: the parameter that has them.

    Raises:
        DataError: if one of them selects no feature.

    >>> from bpa_ppl import from_lists
    >>> _find_features(from_lists([["a"]], [[[1.0]]], ["LM0"]), ["LM0"], "fixed")
    {'LM0'}
    """
    chosen = dict.fromkeys(selected)
    labels = {name: find_label(name) for name in lists.feature_names}
    names = labels.keys() | set(labels.values())
    if unknown := [name for name in chosen if name not in names]:
        message = f"no feature {unknown[0]}: choose from {list_names(lists.feature_names)}"
        raise DataError(message, lists.origin, parameter=parameter, code="missing-feature")
    return {name for name, label in labels.items() if name in chosen or label in chosen}
