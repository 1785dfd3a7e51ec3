"""Are these draws of one posterior? What each records of its data and of its model tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.posterior import Draws

_PRIOR = {
    "prior_mean": "the mean of its prior",
    "prior_variance": "the variance of its prior",
    "prior_covariance": "the covariance of its prior",
}
_NAMED = 3  # features that are named


def check_same_posterior(name: str, draws: Draws, expected: Draws) -> None:
    """Refuse draws of other data or of another model; what one of them does not record is let pass.

    Args:
        name: of the draws, for the message.
        draws: to be compared.
        expected: with what they are compared.

    Raises:
        DataError: if they differ; the message says in what.

    >>> one = Draws({"weights": np.zeros((1, 2, 1))}, ("LM0",), attrs={"likelihood": "oracle"})
    >>> other = Draws({"weights": np.zeros((1, 2, 1))}, ("LM0",), attrs={"likelihood": "risk"})
    >>> check_same_posterior("mine", other, one)
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: mine is a posterior of another model: its likelihood is risk, not ...
    """
    for what, differences in (("other data", _of_data), ("another model", _of_model)):
        if told := next(differences(draws, expected), ""):
            raise DataError(
                f"{name} is a posterior of {what}: {told}; only posteriors of the same lists, "
                "oracles, features, likelihood and prior are compared"
            )


def _of_data(draws: Draws, expected: Draws) -> Iterator[str]:
    if apart := sorted(set(draws.features) ^ set(expected.features)):
        more = f" and {len(apart) - _NAMED} more" if len(apart) > _NAMED else ""
        yield f"only one of both has the features {', '.join(apart[:_NAMED])}{more}"
    counts = [_sentences(one) for one in (draws, expected)]
    if None not in counts and counts[0] != counts[1]:
        yield f"it was adapted to {counts[0]} sentences, not to {counts[1]}"
    ids, others = draws.sentence_ids, expected.sentence_ids
    if ids is not None and others is not None and not np.array_equal(ids, others):
        yield "its sentences have other ids, or another order"
    for site in sorted(set(draws.observed) & set(expected.observed)):
        ours, theirs = np.asarray(draws.observed[site]), np.asarray(expected.observed[site])
        if ours.shape != theirs.shape:
            yield f"{site} has the shape {ours.shape}, not {theirs.shape}"
        elif differing := int(np.sum(ours != theirs)):
            goal = draws.attrs.get("oracle_metric", "a metric that it does not record")
            yield f"{differing} of its {ours.size} oracles, by {goal}, are others"


def _of_model(draws: Draws, expected: Draws) -> Iterator[str]:
    for key in ("likelihood", "prior"):
        ours, theirs = draws.attrs.get(key), expected.attrs.get(key)
        if None not in (ours, theirs) and ours != theirs:
            yield f"its {key} is {_in_words(ours)}, not {_in_words(theirs)}"
    places = [expected.features.index(name) for name in draws.features]
    for constant, what in _PRIOR.items():
        if constant not in draws.constants or constant not in expected.constants:
            continue
        ours, theirs = (np.asarray(one.constants[constant]) for one in (draws, expected))
        if not np.allclose(ours, theirs[np.ix_(*[places] * theirs.ndim)], rtol=1e-5, atol=1e-9):
            yield f"{what} is another"


def _sentences(draws: Draws) -> int | None:
    recorded = draws.attrs.get("adaptation_sentences")
    if recorded is not None:
        return int(recorded)
    return None if draws.sentence_ids is None else len(draws.sentence_ids)


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        settings = [f"{key} {item}" for key, item in value.items() if key != "name"]
        more = f" ({', '.join(settings)})" if settings else ""
        return f"{value.get('name', 'one without a name')}{more}"
    return str(value)
