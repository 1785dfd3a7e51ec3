"""Formulas: the posterior mean of the weights as the settings of other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl.errors import DataError, conflict, list_names, not_supported
from bpa_ppl.formats.values import format_shortest
from bpa_ppl.posterior.draws import Draws, quantiles, standardise
from bpa_ppl.weights import Weights

_INTERVAL = (0.025, 0.975)
_SHOWN = 3  # the number of pairs that a message names
_ACOUSTIC = re.compile(r"(?i)(^|.*[_.\-])(am|acoustic|ac)([_.\-].*|\d*)$")
# Elasticsearch needs scores ≥ 0. This function of the sum is increasing and precise around 0.
_SCRIPT = (
    "double s = 0; "
    "for (def w : params.weights.entrySet()) { s += w.getValue() * doc[w.getKey()].value; } "
    "return s < 0 ? 1 / (1 - s) : 1 + s;"
)


def find_undecided(draws: Draws) -> list[tuple[str, str]]:
    """Return the pairs of features whose difference in weight the labels do not decide.

    The 95 % interval of such a difference contains 0. Weights are per standard deviation of the
    feature, if the posterior records it.

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal([1.0, 1.1, 5.0], 0.2, (4, 250, 3))
    >>> find_undecided(Draws({"weights": draws}, ("a", "b", "c")))
    [('a', 'b')]
    """
    comparable = standardise(draws) or draws
    weights = zip(draws.features, comparable.flat.T, strict=True)
    undecided = []
    for (one, of_one), (other, of_other) in combinations(weights, 2):
        low, high = quantiles(of_one - of_other, _INTERVAL, comparable.importance)
        undecided += [(one, other)] if low <= 0 <= high else []
    return undecided


def describe_undecided(draws: Draws) -> str:
    """Return a sentence that names the differences that the labels do not decide, or "".

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal([1.0, 1.1, 5.0], 0.2, (4, 250, 3))
    >>> describe_undecided(Draws({"weights": draws}, ("a", "b", "c")))
    'the difference of a and b is not decided by your labels'
    """
    if draws.kind == "point":
        return "a single point does not show which differences your labels decide: adapt with draws"
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

    For two candidates, that rule averages the probability over the draws, so choices may differ if
    the probability is close to ½.

    Args:
        draws: the draws of a posterior.
        program: one of `FORMULAS`.
        weights: one weight for each feature, such as the posterior mean. The weights, and the
            intervals of `json`, are divided by the sum of the absolute weights, which does not
            change any choice.
        acoustic: for `lm-scale`, the feature whose scale is 1; by default the feature named `am`,
            `ac` or `acoustic`.

    Raises:
        DataError: if the program cannot compute a feature, or does not accept such weights.
        UsageError: if there is no such program, or it has no acoustic score.

    >>> draws = Draws({"weights": [[[0.5, 1.5]]]}, ("helpful", "safe"))
    >>> print(format_weights(draws, "trl", draws.at_point()), end="")
    # reward_funcs in this order: ["helpful", "safe"]
    reward_weights = [0.25, 0.75]
    """
    require_one_of(program, FORMULAS, "program", "format")
    names = [name for source in draws.record.recipe.sources for name in source.feature_names]
    if names and program != "json":
        reason = f"{program} does not have {list_names(names)}, which bpa_ppl computes"
        raise not_supported(reason, "adapt without these", "format")
    if acoustic is not None and program != "lm-scale":
        reason = f"{program} has no acoustic scale"
        raise conflict(reason, "acoustic, or choose lm-scale", "acoustic")
    settings = _WRITERS[program](draws, weights, acoustic)
    if isinstance(settings, str):
        return settings
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _format_json(draws: Draws, weights: Weights, _: str | None) -> dict[str, Any]:
    content: dict[str, Any] = {"weights": dict(weights.normalised())}
    if draws.kind != "point":
        norm = sum(map(abs, weights.values()))
        bounds = draws.interval(0.95).T / norm
        content["intervals"] = dict(zip(draws.features, bounds.tolist(), strict=True))
        content["undecided"] = find_undecided(draws)
    return content


def _format_trl(_: Draws, weights: Weights, __: str | None) -> str:
    return _format_ordered("reward_funcs", "reward_weights", weights)


def _format_trulens(_: Draws, weights: Weights, __: str | None) -> str:
    for name, weight in weights.items():
        if weight < 0:
            reason = f"the weight of {name} is negative, which a weighted mean does not allow"
            raise not_supported(reason, "adapt without it, or use Reranker.aggregate", "format")
    return _format_ordered("jurors", 'aggregation = "weighted_mean"\nweights', weights)


def _format_ordered(of: str, setting: str, weights: Weights) -> str:
    names = json.dumps(list(weights), ensure_ascii=False)  # names may have commas
    values = ", ".join(map(format_shortest, weights.normalised().values()))
    return f"# {of} in this order: {names}\n{setting} = [{values}]\n"


def _format_opensearch(draws: Draws, weights: Weights, _: str | None) -> dict[str, Any]:
    weights, scales = weights.normalised(), draws.record.feature_scales
    spread = {n: scales[n].spread for n in weights if n in scales and scales[n].spread}
    linear = {n: weight * spread.get(n, 1.0) for n, weight in weights.items()}
    standard = {n: {"standard": {"mean": 0.0, "standard_deviation": s}} for n, s in spread.items()}
    definition = {"feature_normalizers": standard, "definition": json.dumps(linear)}
    return {"model": {"name": "bpa_ppl", "model": {"type": "model/linear", **definition}}}


def _format_elasticsearch(_: Draws, weights: Weights, __: str | None) -> dict[str, Any]:
    script = {"source": _SCRIPT, "params": {"weights": dict(weights.normalised())}}
    scored = {"script_score": {"query": {"match_all": {}}, "script": script}}
    query = {"rescore_query": scored, "query_weight": 0, "rescore_query_weight": 1}
    return {"rescore": {"window_size": 50, "query": query}}


def _format_lm_scale(_: Draws, weights: Weights, acoustic: str | None) -> str:
    named = [acoustic] if acoustic else list(filter(_ACOUSTIC.fullmatch, weights))
    if len(named) != 1 or named[0] not in weights:
        problem = f"the acoustic score is one of {list_names(weights)}"
        raise DataError(f"{problem}: name it with acoustic", parameter="acoustic", code="bad-name")
    unit = weights[named[0]]
    if unit <= 0:
        reason = f"the weight of {named[0]} is not positive, so there are no ratios to it"
        raise not_supported(reason, "give more lists", "acoustic")
    lines = [f"{name}= {format_shortest(weight / unit)}\n" for name, weight in weights.items()]
    return f"# scales of scores if that of {named[0]} is 1, such as lm_scale\n{''.join(lines)}"


#: The function for each program; `json` is for any program.
_WRITERS: dict[str, Callable[[Draws, Weights, str | None], str | dict[str, Any]]] = {
    "json": _format_json,
    "trl": _format_trl,
    "trulens": _format_trulens,
    "opensearch": _format_opensearch,
    "elasticsearch": _format_elasticsearch,
    "lm-scale": _format_lm_scale,
}
FORMULAS = tuple(_WRITERS)
