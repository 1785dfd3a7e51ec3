"""Names of features and the labels they are printed under: `TM0= a b` is `TM0[0]` and `TM0[1]`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_INDEXED = re.compile(r"(?P<label>.+)\[(?P<index>\d+)\]")


def expand(label: str, count: int) -> tuple[str, ...]:
    """Return the names of the `count` features printed under one label.

    >>> expand("LM0", 1), expand("TM0", 2)
    (('LM0',), ('TM0[0]', 'TM0[1]'))
    """
    return (label,) if count == 1 else tuple(f"{label}[{i}]" for i in range(count))


def label_of(name: str) -> str:
    """Return the label under which a feature is printed.

    >>> label_of("TM0[1]"), label_of("LM0")
    ('TM0', 'LM0')
    """
    match = _INDEXED.fullmatch(name)
    return match["label"] if match else name


def grouped(names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return (label, positions) for each label, in order of first appearance.

    >>> grouped(["TM0[0]", "TM0[1]", "LM0"])
    [('TM0', [0, 1]), ('LM0', [2])]
    """
    groups: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        groups.setdefault(label_of(name), []).append(position)
    return list(groups.items())


def places_of(wanted: Iterable[str], names: Sequence[str]) -> list[int]:
    """Return where each of some names stands among all of them.

    >>> places_of(["LM0", "TM0[0]"], ["TM0[0]", "TM0[1]", "LM0"])
    [2, 0]
    """
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in wanted]


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that stand there more than once, in order of first appearance.

    >>> repeated(["LM0", "TM0", "LM0"])
    ['LM0']
    """
    return [name for name, count in Counter(names).items() if count > 1]


def matches(name: str, wanted: Iterable[str]) -> bool:
    """Say whether a feature is meant by any of `wanted`: its own name, or its label.

    >>> matches("TM0[1]", ["TM0"]), matches("LM0", ["LM1"])
    (True, False)
    """
    return not {name, label_of(name)}.isdisjoint(wanted)


def printed_labels(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return (label, number of values) such that expanding them in order gives `names` again.

    A group that is not whole, such as `TM0[1]` alone, keeps the index in its label.

    >>> printed_labels(["TM0[0]", "TM0[1]", "LM0", "RM0[1]"])
    [('TM0', 2), ('LM0', 1), ('RM0[1]', 1)]
    """
    labels: list[tuple[str, int]] = []
    sizes = Counter(map(label_of, names))
    at = 0
    while at < len(names):
        label = label_of(names[at])
        count = sizes[label]
        if tuple(names[at : at + count]) != expand(label, count):
            label, count = names[at], 1
        labels.append((label, count))
        at += count
    return labels
