"""Formulas: the posterior mean of the weights as the settings of other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.formats.values import format_shortest
from bpa_ppl.posterior.draws import Draws, quantiles, standardise
from bpa_ppl.weights import Weights

_INTERVAL = (0.025, 0.975)
_SHOWN = 3  # pairs in a message
_ACOUSTIC = re.compile(r"(?i)(^|.*[_.\-])(am|acoustic|ac)([_.\-].*|\d*)$")
# Elasticsearch wants scores ≥ 0: this is increasing, and has the precision of the sum around 0.
_SCRIPT = (
    "double s = 0; "
    "for (def w : params.weights.entrySet()) { s += w.getValue() * doc[w.getKey()].value; } "
    "return s < 0 ? 1 / (1 - s) : 1 + s;"
)


def find_undecided(draws: Draws) -> list[tuple[str, str]]:
    """Return the pairs of features whose difference has 0 in its 95 % interval.

    The weights are those of standardised features, where the posterior records their spread.

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal([1.0, 1.1, 5.0], 0.2, (4, 250, 3))
    >>> find_undecided(Draws({"weights": draws}, ("a", "b", "c")))
    [('a', 'b')]
    """
    comparable = standardise(draws) or draws
    flat, pairs = comparable.flat, list(combinations(range(len(draws.features)), 2))
    if not pairs:
        return []
    first, second = zip(*pairs, strict=True)
    differences = flat[:, list(first)] - flat[:, list(second)]
    low, high = quantiles(differences, _INTERVAL, comparable.importance)
    undecided = (low <= 0) & (high >= 0)
    names = draws.features
    return [(names[i], names[k]) for (i, k), open_ in zip(pairs, undecided, strict=True) if open_]


def describe_undecided(draws: Draws) -> str:
    """Return one sentence about the differences that the labels do not decide; or "".

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal([1.0, 1.1, 5.0], 0.2, (4, 250, 3))
    >>> describe_undecided(Draws({"weights": draws}, ("a", "b", "c")))
    'the difference of a and b is not decided by your labels'
    """
    if draws.kind == "point":
        return "one point does not say which differences your labels decide: adapt with draws"
    pairs = [f"{one} and {other}" for one, other in find_undecided(draws)]
    if len(pairs) <= 1:
        return "".join(f"the difference of {pair} is not decided by your labels" for pair in pairs)
    more = [f"and of {len(pairs) - _SHOWN} more pairs"] if len(pairs) > _SHOWN else []
    shown = "; ".join(["; of ".join(pairs[:_SHOWN]), *more])
    return f"these differences are not decided by your labels: of {shown}"


def format_weights(
    draws: Draws, program: str, weights: Weights, acoustic: str | None = None
) -> str:
    r"""Return weights as the settings of another program, which then chooses as the rule `mean`.

    Args:
        draws: of a posterior.
        program: one of `FORMULAS`.
        weights: one weight for each feature, such as the posterior mean. They and the intervals of
            `json` are divided by the sum of their absolute values, which keeps all choices.
        acoustic: for `lm-scale`, the feature whose scale is 1; by default the one named `am`, `ac`
            or `acoustic`.

    Raises:
        DataError: if the program cannot compute a feature, or cannot have such weights.
        UsageError: if there is no such program.

    >>> draws = Draws({"weights": [[[0.5, 1.5]]]}, ("helpful", "safe"))
    >>> print(format_weights(draws, "trl", draws.at_point()), end="")
    # reward_funcs in this order: ["helpful", "safe"]
    reward_weights = [0.25, 0.75]
    """
    require_one_of(program, FORMULAS, "program", "format")
    names = [name for source in draws.record.recipe.sources for name in source.feature_names]
    if names and program != "json":
        problem = f"{program} does not have {list_names(names)}, which bpa_ppl computes"
        raise DataError(f"{problem}: adapt without", parameter="format", code="not-supported")
    scaled = weights.normalised()
    if program == "json":
        return _json(draws, scaled, sum(map(abs, weights.values())))
    return _WRITERS[program](draws, scaled, acoustic)


def _json(draws: Draws, weights: Weights, norm: float) -> str:
    content: dict[str, Any] = {"weights": dict(weights)}
    if draws.kind != "point":
        bounds = quantiles(draws.flat / norm, _INTERVAL, draws.importance).T
        content["intervals"] = dict(zip(draws.features, bounds.tolist(), strict=True))
        content["undecided"] = find_undecided(draws)
    return _to_json(content)


def _trl(_: Draws, weights: Weights, __: str | None) -> str:
    return f"# reward_funcs in this order: {_names(weights)}\nreward_weights = {_list(weights)}\n"


def _trulens(_: Draws, weights: Weights, __: str | None) -> str:
    for name, weight in weights.items():
        if weight < 0:
            problem = f"the weight of {name} is negative, and a weighted mean has none"
            remedy = "adapt without it, or use Reranker.aggregate"
            raise DataError(f"{problem}: {remedy}", parameter="format", code="not-supported")
    order = f"# jurors in this order: {_names(weights)}"
    return f'{order}\naggregation = "weighted_mean"\nweights = {_list(weights)}\n'


def _opensearch(draws: Draws, weights: Weights, _: str | None) -> str:
    scales, model = draws.record.feature_scales, {"type": "model/linear"}
    spread = {name: scales[name].spread if name in scales else 0.0 for name in weights}
    linear = {name: weight * (spread[name] or 1.0) for name, weight in weights.items()}
    normalisers = {
        name: {"standard": {"mean": 0.0, "standard_deviation": deviation}}
        for name, deviation in spread.items()
        if deviation
    }
    definition = {"feature_normalizers": normalisers, "definition": json.dumps(linear)}
    return _to_json({"model": {"name": "bpa_ppl", "model": model | definition}})


def _elasticsearch(_: Draws, weights: Weights, __: str | None) -> str:
    script = {"source": _SCRIPT, "params": {"weights": dict(weights)}}
    scored = {"script_score": {"query": {"match_all": {}}, "script": script}}
    query = {"rescore_query": scored, "query_weight": 0, "rescore_query_weight": 1}
    return _to_json({"rescore": {"window_size": 50, "query": query}})


def _lm_scale(_: Draws, weights: Weights, acoustic: str | None) -> str:
    named = [acoustic] if acoustic else list(filter(_ACOUSTIC.fullmatch, weights))
    if len(named) != 1 or named[0] not in weights:
        problem = f"the acoustic score is one of {list_names(weights)}"
        raise DataError(f"{problem}: name it with acoustic", parameter="acoustic", code="bad-name")
    unit = weights[named[0]]
    if unit <= 0:
        problem = f"the weight of {named[0]} is not positive: there are no ratios to it"
        raise DataError(f"{problem}; give more lists", parameter="acoustic", code="not-supported")
    lines = [f"{name}= {format_shortest(weight / unit)}\n" for name, weight in weights.items()]
    return f"# scales of scores if that of {named[0]} is 1, such as lm_scale\n{''.join(lines)}"


def _names(weights: Weights) -> str:
    return json.dumps(list(weights), ensure_ascii=False)  # names may have commas


def _list(weights: Weights) -> str:
    return f"[{', '.join(map(format_shortest, weights.values()))}]"


def _to_json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


_WRITERS: dict[str, Callable[[Draws, Weights, str | None], str]] = {
    "trl": _trl,
    "trulens": _trulens,
    "opensearch": _opensearch,
    "elasticsearch": _elasticsearch,
    "lm-scale": _lm_scale,
}
#: The programs; `json` is for any.
FORMULAS = ("json", *_WRITERS)
