"""Check arguments, and raise errors that list what is allowed."""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec
from typing import Any

from bpa_ppl.errors import UsageError, unknown_name, wrong_type, wrong_value

SEEDS = 2**32  # seeds are 0 to SEEDS - 1


def require_one_of(
    value: str, allowed: Collection[str], what: str, parameter: str | None = None
) -> str:
    """Return `value` when it is allowed, else raise a UsageError that lists the allowed values.

    >>> require_one_of("ter", ("ter", "bleu"), "metric")
    'ter'
    """
    if not isinstance(value, str) or value not in allowed:
        parameter = parameter or (what if what.isidentifier() else None)
        raise unknown_name(what, value, allowed, parameter)
    return value


def require_extra(problem: str, extra: str, *packages: str, parameter: str | None = None) -> None:
    """Raise a UsageError unless the packages of an optional extra are installed; none is imported.

    For an installed package, pip takes the packages of its extras from its metadata. So the command
    in the message is right for a package of any origin: a clone, a wheel or an index.

    >>> require_extra("numbers need NumPy", "numbers", "numpy")
    >>> require_extra("judging needs Starlette", "judge", "no_such_package")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: judging needs Starlette: install the extra judge with pip install ...
    """
    if any(find_spec(package) is None for package in packages):
        remedy = f"install the extra {extra} with pip install 'bpa_ppl[{extra}]'"
        raise UsageError(f"{problem}: {remedy}", parameter=parameter, code="missing-package")


def require(
    value: Any, kind: type | tuple[type, ...], what: str, parameter: str | None = None
) -> None:
    """Raise a UsageError unless a value is of some type.

    >>> require("dev.nbest", list, "files are given as a list")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: files are given as a list, not 'dev.nbest'
    """
    if not isinstance(value, kind):
        raise wrong_type(what, value, parameter)


def check_seed(seed: Any) -> int:
    """Return a seed, if it is one that every random generator in use takes: 0 to 2³² − 1.

    Raises:
        UsageError: if it is not.

    >>> check_seed(7)
    7
    >>> check_seed(-1)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: a seed is an integer from 0 to 4294967295, not -1
    """
    # NumPy's integers count as integers, booleans do not.
    is_integer = hasattr(seed, "__index__") and not isinstance(seed, bool)
    if not is_integer or not 0 <= int(seed) < SEEDS:
        raise wrong_value(f"a seed is an integer from 0 to {SEEDS - 1}", seed, "seed")
    return int(seed)
