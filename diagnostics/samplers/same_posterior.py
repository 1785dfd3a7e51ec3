"""Refuse to compare posteriors of other data, or of another model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.names import find_positions
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import to_attributes

#: What the names of constants of the prior begin with.
_PRIOR = "prior_"
#: Attributes of the model, with settings by name; and that of the data, with hashes by name.
_COMPONENTS, _DATA = ("likelihood", "prior"), "data"


def check_same_posterior(name: str, draws: Draws, expected: Draws) -> None:
    """Refuse draws with other data or another model; properties that are not recorded are ignored.

    Compared are the cells of the main sites; what was observed, and the constants `prior_…`, by the
    labels of their dimensions; and the attributes `likelihood`, `prior` and `data`.

    Args:
        name: of the draws, for the message.
        draws: the draws to check.
        expected: the draws that they are compared with.

    Raises:
        DataError: if they differ; the message says in what.

    >>> heights = (np.array(y) for y in ([1.7, 1.8], [1.7, 1.9]))
    >>> one, other = (Draws({"mean": np.zeros((2, 9))}, observed={"y": y}) for y in heights)
    >>> check_same_posterior("mine", other, one)
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: mine is a posterior of other data or another model: it has other ...
    """
    if unshared := sorted(set(draws.main_names) ^ set(expected.main_names)):
        problems = [f"only one of both has {list_names(unshared)}"]
    else:
        problems = [*_compare_arrays(draws, expected), *_compare_components(draws, expected)]
    if problems := problems or [*_compare_hashes(draws, expected)]:
        problem = f"{name} is a posterior of other data or another model: {min(problems)}"
        remedy = "only posteriors of the same data, model and prior can be compared"
        raise DataError(f"{problem}; {remedy}", code="mismatch")


def _compare_arrays(draws: Draws, expected: Draws) -> Iterator[str]:
    """Yield what differs in what was observed, and in the constants of the prior."""
    for what in draws.observed.keys() & expected.observed.keys():
        value, other = (np.asarray(one.observed[what]) for one in (draws, expected))
        # Programs observe zeros in place of data that are among their arguments.
        if not any(array.dtype.kind in "biuf" and not array.any() for array in (value, other)):
            yield from _compare_labelled(what, value, other, draws, expected)
    for what in draws.constants.keys() & expected.constants.keys():
        if what.startswith(_PRIOR):
            value, other = (np.asarray(one.constants[what]) for one in (draws, expected))
            yield from _compare_labelled(what, value, other, draws, expected)


def _compare_labelled(
    what: str, value: npt.NDArray[Any], other: npt.NDArray[Any], draws: Draws, expected: Draws
) -> Iterator[str]:
    """Yield what differs between two arrays, whose cells belong together by their labels."""
    for axis, dim in enumerate(draws.dims.get(what, ())[: value.ndim]):
        if not {dim} <= draws.coords.keys() & expected.coords.keys():
            continue
        labels, others = (np.asarray(one.coords[dim]).tolist() for one in (draws, expected))
        if {*labels} != {*others}:
            yield f"it has other labels of {dim}"
            return
        if labels != others and len(labels) == len({*labels}) == value.shape[axis]:
            value = np.take(value, find_positions(others, labels), axis)
    if not _are_equal(value, other):
        yield f"it has other values of {what}"


def _are_equal(value: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether arrays are equal, those of numbers up to rounding."""
    numbers = {value.dtype.kind, other.dtype.kind} <= {*"biuf"}
    if value.shape != other.shape or not numbers:
        return np.array_equal(value, other)
    return np.allclose(value, other, rtol=1e-5, atol=1e-9)


def _compare_components(draws: Draws, expected: Draws) -> Iterator[str]:
    """Yield what differs in the likelihood and the prior that both record."""
    for what in _COMPONENTS:
        ours, theirs = (_read_attribute(one, what) for one in (draws, expected))
        if ours and theirs and ours != theirs:
            texts = (", ".join(f"{k}={v}" for k, v in one.items()) for one in (ours, theirs))
            yield f"its {what} is {', not '.join(texts)}"


def _compare_hashes(draws: Draws, expected: Draws) -> Iterator[str]:
    """Yield what differs in the hashes of data that both record."""
    ours, theirs = (_read_attribute(one, _DATA) for one in (draws, expected))
    if names := [name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]]:
        yield f"it was made from other {', '.join(sorted(names))}"


def _read_attribute(draws: Draws, name: str) -> dict[str, Any]:
    """Return a recorded attribute with values by name; empty if there is none of this form."""
    value = to_attributes(draws.record).get(name)
    return value if isinstance(value, dict) else {}
