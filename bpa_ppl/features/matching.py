"""Lists with all features of a posterior, and where the weights of these features start.

Without canonical weights, those of features of the texts start at values learned from public
collections of judged lists. They are of the columns of the sources `consensus` and `length` without
settings. `pretrained.json` holds them in units of the spread within lists, with typical spreads.
`tools/learn_pretrained.py` makes it, and `benchmarks/bench_pretrained.py` measures what they are
worth on collections that they were not learned from.

The weights of other features start at 0, and the mean of their prior follows what these features
have in common: see `measure_agreement`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.progress import Reporter, inherit_progress
from bpa_ppl.errors import list_names
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.features.length import Length
from bpa_ppl.features.recipe import Recipe, require_features
from bpa_ppl.features.source import FeatureSource, make_adder
from bpa_ppl.lists.labels import matches
from bpa_ppl.lists.nbest import NBest, standardise
from bpa_ppl.weights import CANONICAL, NONE, Match, StartingWeights, match, start

#: 2 p - 1 for the probability p of the sign of what all features agree on. On judged lists, 0.8 to
#: 0.95 do the same: docs/results/choices.md, "The sign".
_CERTAINTY = 0.9


class MatchedLists(NamedTuple):
    """Lists with all features of a posterior.

    Attributes:
        lists: all adaptation lists, those without an observation too.
        recipe: how the features are made.
        columns: the names of the columns of each source of features.
        match: where their weights start.
        pretrained: the variances of weights that start at learned values, by feature.
    """

    lists: NBest
    recipe: Recipe
    columns: tuple[tuple[str, ...], ...]
    match: Match
    pretrained: Mapping[str, float] = MappingProxyType({})

    @property
    def indicators(self) -> list[str]:
        """The features that are indicators of a category, such as a system."""
        sources = zip(self.recipe.sources, self.columns, strict=True)
        return [n for source, names in sources if isinstance(source, Indicators) for n in names]

    def without_indicators(self) -> MatchedLists:
        """Return the lists without the indicators."""
        recipe, columns = self.recipe.without_indicators(self.columns)
        names = self.indicators
        return MatchedLists(
            self.lists.without(*names), recipe, columns, self.match.without(names), self.pretrained
        )


def match_lists(
    lists: NBest,
    weights: StartingWeights,
    recipe: Recipe,
    *,
    of_judges: bool = False,
    progress: bool | Reporter = False,
) -> MatchedLists:
    """Make the features of the adaptation lists, and match the weights to them.

    Args:
        lists: the adaptation lists.
        weights: where the weights start.
        recipe: how the features are made, from `recipe_for`.
        of_judges: whether answers of judges are observed. The features are then grades, of which
            higher ones are better unless lower ones are said to be.
        progress: as for `adapt`.

    Raises:
        DataError: if a column or a weight is missing, or a source cannot be fitted.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.gains.ter import TER
    >>> from bpa_ppl.features.recipe import recipe_for
    >>> lists = from_lists([["a b", "a"]], [[[1.0], [2.0]]], ["LM0"])
    >>> recipe = recipe_for(lists, TER(), add="length")
    >>> matched = match_lists(lists, StartingWeights({"LM0": 0.5}), recipe)
    >>> matched.match.names, matched.match.values.tolist()
    (('LM0', 'LengthWords'), [0.5, 0.0])
    """
    lists = recipe.without_gain(lists)
    if not recipe.sources:
        require_features(lists, recipe.gain, recipe.features, recipe.exclude)
    lower = tuple(weights.lower_is_better)
    canonical, initial, origin = start(weights.weights, lists, lower)
    with inherit_progress(progress):
        lists, columns = make_adder(recipe.sources, cross_fit=True)(lists)
    default_weights = weights.defaults or {}
    defaults = {**dict.fromkeys(chain.from_iterable(columns), 0.0), **initial, **default_weights}
    matched = match(canonical, lists, fixed=weights.fixed, defaults=defaults)
    mean, variance = dict[str, float](), dict[str, float]()
    if origin != CANONICAL and weights.pretrained:
        mean, variance = find_pretrained(recipe.sources, columns, matched.free_spread)
    learned = {name: variance[name] for name in mean if name not in default_weights}
    if learned:
        log_info(
            f"the weights of {list_names(learned)} start at values learned from public judged "
            "lists; to turn this off: the weights none:pretrained=false"
        )
    pairs = zip(matched.names, matched.values, strict=True)
    values = np.array([mean[n] if n in learned else value for n, value in pairs], np.float64)
    matched = matched._replace(values=values, origin=origin)
    result = MatchedLists(lists, recipe, columns, matched, learned)
    read = {*matched.free_spread}.difference(*columns) if len(lists) else ()
    if unused := [n for n, spread in matched.free_spread.items() if n in read and not spread]:
        are, their = ("is", "its weight has") if len(unused) == 1 else ("are", "their weights have")
        it = "it" if len(unused) == 1 else "them"
        note = f"{list_names(unused)} {are} constant within each list, so {their} no effect there"
        log_info(f"{note}; to leave {it} out: exclude")
    if origin != NONE:
        return result
    starting = {name for name, value in zip(matched.names, values, strict=True) if value}
    starting.update(default_weights, result.indicators)
    names = [n for n, spread in matched.free_spread.items() if spread and n not in starting]
    if of_judges:
        agreement, probability = {n: -1.0 if matches(n, lower) else 1.0 for n in names}, 1.0
    else:
        agreement, probability = measure_agreement(lists, names, lower)
    matched = matched._replace(agreement=agreement, sign_probability=probability)
    return result._replace(match=matched)


def measure_agreement(
    lists: NBest, names: Sequence[str], lower_is_better: Collection[str] = ()
) -> tuple[dict[str, float], float]:
    """Return the correlation of each feature with the first principal component of all of them.

    Before, each feature is centred in every list and divided by its standard deviation. Higher
    values of most features are better, so the sign of the component is the one for which the
    correlations have a positive sum, in which those of features for which lower is better are
    negated. This says little where features disagree: of two of them, the sum is then 0.

    Args:
        lists: the lists.
        names: features that vary within a list.
        lower_is_better: names or labels of features for which lower is better.

    Returns:
        a number from -1 to 1 for each name; and the probability of the sign a priori: from 0.5
        where the sum is 0 to 0.95 where all correlations have one sign, and 1 if lower is better
        for one of the features.

    >>> from bpa_ppl import from_lists
    >>> table = [[[1.0, 2.0, -4.0], [3.0, 6.0, -9.0]]]
    >>> lists = from_lists([["a", "b"]], table, ["LM0", "comet", "cost"])
    >>> agreement, probability = measure_agreement(lists, ["LM0", "cost"])
    >>> {name: round(value, 3) for name, value in agreement.items()}, probability
    ({'LM0': 1.0, 'cost': -1.0}, 0.5)
    >>> measure_agreement(lists, ["LM0"])[1]
    0.95
    >>> agreement, probability = measure_agreement(lists, ["cost"], lower_is_better=["cost"])
    >>> round(agreement["cost"], 3), probability
    (-1.0, 1.0)
    """
    from scipy.linalg import eigh

    if not names:
        return {}, 1.0
    values = standardise(lists, names)
    is_wide = len(names) > len(values)
    products = values @ values.T if is_wide else values.T @ values
    last = len(products) - 1
    _, vectors = eigh(products, subset_by_index=[last, last])
    scores = vectors[:, 0] if is_wide else values @ vectors[:, 0]
    agreement = values.T @ scores / np.sqrt(len(values) * (scores @ scores))
    lower = [matches(name, lower_is_better) for name in names]
    expected = agreement * np.where(lower, -1.0, 1.0)
    share = round(float(expected.sum() / np.abs(expected).sum()), 9)  # else rounding decides on 0
    agreement = agreement * np.sign(share or expected[0])
    probability = 1.0 if any(lower) else (1 + _CERTAINTY * abs(share)) / 2
    return dict(zip(names, agreement.tolist(), strict=True)), probability


def find_pretrained(
    sources: Iterable[FeatureSource],
    columns: Iterable[Sequence[str]],
    spread: Mapping[str, float],
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the learned weights of the features that some sources have added.

    The more other features there are, the less these weights count: with K of all features known,
    means are multiplied by (known / K)². On judged lists with 3 and with 17 quality metrics this is
    better than full means and than none.

    Args:
        sources: of the added features.
        columns: the names of the columns of each source.
        spread: the standard deviation within the lists of every free feature, by name; without
            lists it is 0, and a typical one is used.

    Returns:
        the mean, and the variance, of the prior of each weight, by feature.

    >>> source = Consensus()
    >>> names = ["consensus.chrf5", "consensus.length"]
    >>> mean, variance = find_pretrained([source], [names], dict.fromkeys(names, 2.0))
    >>> mean["consensus.chrf5"] > 0, variance["consensus.length"] > 0
    (True, True)
    >>> find_pretrained([Consensus(metric="chrf")], [["consensus.chrf"]], {"consensus.chrf": 1})
    ({}, {})
    """
    learned = {}
    for source, names in zip(sources, columns, strict=True):
        for name in names if isinstance(source, Consensus | Length) else ():
            key = name.replace(f"{source.label}.", "consensus.", 1)
            if name in spread and key in _read_content()["features"]:
                learned[name] = _read_content()["features"][key]
    others = [name for name, value in spread.items() if value > 0 and name not in learned]
    share = (len(learned) / max(len(learned) + len(others), 1)) ** 2
    mean, variance = {}, {}
    for name, feature in learned.items():
        unit = spread[name] or feature["spread"]
        mean[name] = share * feature["mean"] / unit
        variance[name] = _read_content()["variance"] / unit**2
    return mean, variance


@cache
def _read_content() -> dict[str, Any]:
    text = files("bpa_ppl.features").joinpath("pretrained.json").read_text("utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
