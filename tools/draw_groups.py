"""Draw the accuracy of weights by group: the picture of docs/how-to/groups.md.

python tools/draw_groups.py
"""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parent.parent / "docs"
#: Collection and number of labels, and the accuracy of three kinds of weights.
ROW = re.compile(r"\| (six customers|RewardBench), (\d+) \| (\S+) [^|]+\| (\S+) [^|]+\| (\S+) ")
MARKERS = {"hierarchical": "o", "pooled": "^", "separate": "s"}


def read_table() -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Return the accuracy by data set, method and number of labels of each group."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for line in (DOCS / "results" / "groups.txt").read_text("utf-8").splitlines():
        if row := ROW.match(line):
            lines = found.setdefault(row[1], {})
            for method, accuracy in zip(MARKERS, row.groups()[2:], strict=True):
                lines.setdefault(method, []).append((int(row[2]), float(accuracy)))
    return found


def main() -> None:
    """Write the picture."""
    tables = read_table()
    figure = Figure((4.2, 5.2), layout="constrained", dpi=200)
    for axes, (name, lines) in zip(figure.subplots(len(tables), 1), tables.items(), strict=True):
        for method, marker in MARKERS.items():
            axes.plot(*zip(*lines[method], strict=True), marker=marker, label=method)
        axes.set_xscale("log")
        ticks = [labels for labels, _ in lines["pooled"]]
        axes.set_xticks(ticks, map(str, ticks), minor=False)
        axes.set_xticks([], minor=True)
        axes.set(ylabel="mean accuracy of the groups", title=name, xlabel="labels of each group")
        axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(DOCS / "assets" / "groups.png")


if __name__ == "__main__":
    main()
