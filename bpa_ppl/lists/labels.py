"""Names of features and their labels.

In files of Moses `TM0= a b` is `TM0[0]` and `TM0[1]`; `TM0` is the label of both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

_INDEXED = re.compile(r"(?P<label>.+)\[(?P<index>\d+)\]")


def expand(label: str, count: int) -> tuple[str, ...]:
    """Return the names of `count` features with one label.

    >>> expand("LM0", 1), expand("TM0", 2)
    (('LM0',), ('TM0[0]', 'TM0[1]'))
    """
    return (label,) if count == 1 else tuple(f"{label}[{i}]" for i in range(count))


def find_label(name: str) -> str:
    """Return the label of a feature.

    >>> find_label("TM0[1]"), find_label("LM0")
    ('TM0', 'LM0')
    """
    match = _INDEXED.fullmatch(name)
    return match["label"] if match else name


def group_by_label(names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return (label, positions) for each label, in order of first appearance.

    >>> group_by_label(["TM0[0]", "TM0[1]", "LM0"])
    [('TM0', [0, 1]), ('LM0', [2])]
    """
    groups: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        groups.setdefault(find_label(name), []).append(position)
    return list(groups.items())


def count_by_label(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return (label, number of values) such that expanding them in order gives `names` again.

    In an incomplete group, such as `TM0[1]` alone, the label includes the index.

    >>> count_by_label(["TM0[0]", "TM0[1]", "LM0", "RM0[1]"])
    [('TM0', 2), ('LM0', 1), ('RM0[1]', 1)]
    """
    labels: list[tuple[str, int]] = []
    sizes = Counter(map(find_label, names))
    start = 0
    while start < len(names):
        label = find_label(names[start])
        count = sizes[label]
        if tuple(names[start : start + count]) != expand(label, count):
            label, count = names[start], 1
        labels.append((label, count))
        start += count
    return labels


def matches(name: str, selected: Collection[str]) -> bool:
    """Return whether the name of a feature, or its label, is among those selected.

    In a loop over many names, many of them are selected by a set.

    >>> matches("TM0[1]", ["TM0"]), matches("LM0", ["LM1"])
    (True, False)
    """
    return name in selected or find_label(name) in selected


def with_labels(names: Iterable[str]) -> set[str]:
    """Return names of features and their labels: all that can select one of them.

    >>> sorted(with_labels(["TM0[0]", "TM0[1]", "LM0"]))
    ['LM0', 'TM0', 'TM0[0]', 'TM0[1]']
    """
    names = tuple(names)
    return {*names, *map(find_label, names)}
