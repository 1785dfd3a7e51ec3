"""Refuse to compare posteriors of other data, or of another model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.names import find_positions
from bpa_ppl.adaptation_record import AdaptationRecord
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.weight_draws import PRIOR_BY_FEATURE, SENTENCE

_ORACLE = "oracle"
#: What differs between lists and the tables that a model makes of them.
_OF_SENTENCES = {"number of sentences", "sentence_ids", _ORACLE}
_PRIOR = {"prior_covariance", *PRIOR_BY_FEATURE}


def check_same_posterior(name: str, draws: Draws, expected: Draws) -> None:
    """Refuse draws with other data or another model; properties that are not recorded are ignored.

    Args:
        name: of the draws, for the message.
        draws: the draws to check.
        expected: the draws that they are compared with.

    Raises:
        DataError: if they differ; the message says in what.

    >>> from bpa_ppl.adaptation_record import ComponentRecord
    >>> likelihoods = (ComponentRecord(name) for name in ("oracle", "risk"))
    >>> records = (AdaptationRecord(likelihood=one).add_to() for one in likelihoods)
    >>> from bpa_ppl.posterior.draws import name_array
    >>> one, other = (name_array([[[0.0]]], ("LM0",), record=one) for one in records)
    >>> check_same_posterior("mine", other, one)
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: mine is a posterior of other data or another model: its likelihood ...
    """
    problems = []
    if unshared := sorted(set(draws.main_names) ^ set(expected.main_names)):
        problems = [f"only one of both has the features {list_names(unshared)}"]
    else:
        ours, theirs = (_read_properties(one, expected.main_names) for one in (draws, expected))
        same = ours.keys() & theirs.keys()
        if _observes_rows(draws) != _observes_rows(expected):
            problems = _compare_sentences(*sorted([draws, expected], key=_observes_rows))
            same -= _OF_SENTENCES
        for what in same:
            value, other = ours[what], theirs[what]
            if not isinstance(value, np.ndarray):
                problems += [f"its {what} is {value}, not {other}"] if value != other else []
            elif not _are_equal(value, other):
                problems.append(f"it has other values of {what}")
    adaptations = (AdaptationRecord.of(one.record) for one in (draws, expected))
    if not problems and (other_data := AdaptationRecord.compare_data(*adaptations)):
        problems = [f"it was made from other {', '.join(other_data)}"]
    if problems:
        problem = f"{name} is a posterior of other data or another model: {min(problems)}"
        remedy = "only posteriors of the same data, model and prior can be compared"
        raise DataError(f"{problem}; {remedy}", code="mismatch")


def _observes_rows(draws: Draws) -> bool:
    """Return whether the observed oracles are rows of the tables of a model, as NumPyro has them.

    Row 0 of each list is its oracle: see `Lists`. `adapt` records positions in the lists instead.
    """
    oracle = draws.observed.get(_ORACLE)
    count = AdaptationRecord.of(draws.record).observed.sentences
    return oracle is not None and count is None and not oracle.any()


def _compare_sentences(listed: Draws, tabulated: Draws) -> list[str]:
    """Return what differs between the sentences of lists and those of tables of a model.

    Tables have the same sentences in another order, and others of one candidate, whose probability
    is 1, as padding.
    """
    if _ORACLE not in listed.observed:
        return []
    count, rows = len(listed.observed[_ORACLE]), len(tabulated.observed[_ORACLE])
    log_p = tabulated.log_likelihood.get(_ORACLE)
    effective = rows if log_p is None else int(np.any(log_p, axis=(0, 1)).sum())
    if rows < count:
        return [f"there are {count} lists, and tables of only {rows}"]
    if log_p is not None and effective > count:
        return [f"there are {count} lists, and tables of {effective}"]
    return []


def _are_equal(value: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether arrays are equal, those of numbers up to rounding."""
    numbers = {value.dtype.kind, other.dtype.kind} <= {*"biuf"}
    if value.shape != other.shape or not numbers:
        return np.array_equal(value, other)
    return np.allclose(value, other, rtol=1e-5, atol=1e-9)


def _read_properties(draws: Draws, features: tuple[str, ...]) -> dict[str, Any]:
    """Return what draws record of their data and model, for features in this order."""
    record, ids = AdaptationRecord.of(draws.record), draws.coords.get(SENTENCE)
    order = find_positions(features, draws.main_names)
    count = record.observed.sentences
    count = len(ids) if count is None and ids is not None else count
    constants = {name: np.asarray(draws.constants[name]) for name in _PRIOR & set(draws.constants)}
    values = {
        "number of sentences": count,
        "sentence_ids": None if ids is None else np.asarray(ids),
        **{site: np.asarray(values) for site, values in draws.observed.items()},
        "likelihood": record.likelihood,
        "prior": record.prior,
        **{name: value[np.ix_(*[order] * value.ndim)] for name, value in constants.items()},
    }
    return {what: value for what, value in values.items() if value is not None}
