"""Lists of names: positions in them, and names that repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def find_positions(selected: Iterable[str], names: Sequence[str]) -> list[int]:
    """Return the positions of some names among all names.

    >>> find_positions(["LM0", "TM0[0]"], ["TM0[0]", "TM0[1]", "LM0"])
    [2, 0]
    """
    positions = {name: position for position, name in enumerate(names)}
    return [positions[name] for name in selected]


def number_repeats(names: Iterable[str]) -> list[str]:
    """Return names that are all different: a name that was there before gets a number.

    >>> number_repeats(["x[A]", "x[A]", "x[B]", "x[A]"])
    ['x[A]', 'x[A] (2)', 'x[B]', 'x[A] (3)']
    """
    result: dict[str, None] = {}
    for name in names:
        number, unique = 1, name
        while unique in result:
            number += 1
            unique = f"{name} ({number})"
        result[unique] = None
    return list(result)


def find_repeated(names: Iterable[K]) -> list[K]:
    """Return the names, or ids, that occur more than once, in order of first appearance.

    >>> find_repeated(["LM0", "TM0", "LM0"])
    ['LM0']
    """
    return [name for name, count in Counter(names).items() if count > 1]
