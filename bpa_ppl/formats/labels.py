"""Labels as files print them: how a sequence of feature names is cut into `Name0= v v`."""

from __future__ import annotations

from collections.abc import Sequence

from bpa_ppl.features import expand, label_of


def printed_labels(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return (label, number of values) such that expanding them in order gives `names` again.

    A group that is not whole, such as `TM0[1]` alone, keeps the index in its label.

    >>> printed_labels(["TM0[0]", "TM0[1]", "LM0", "RM0[1]"])
    [('TM0', 2), ('LM0', 1), ('RM0[1]', 1)]
    """
    labels: list[tuple[str, int]] = []
    at = 0
    while at < len(names):
        label = label_of(names[at])
        count = sum(label_of(name) == label for name in names)
        if tuple(names[at : at + count]) != expand(label, count):
            label, count = names[at], 1
        labels.append((label, count))
        at += count
    return labels
