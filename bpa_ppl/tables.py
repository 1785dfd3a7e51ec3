"""Tables as plain text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def text_table(
    rows: Iterable[Sequence[str]],
    headers: Sequence[str] = (),
    *,
    align: str = "",
    least: int = 0,
) -> str:
    """Return rows of text in columns two spaces apart, without trailing spaces.

    Format numbers before.

    Args:
        rows: of cells, of equal lengths.
        headers: the names of the columns; empty prints no header.
        align: `l` or `r` for each column, such as `lrr`; the default is left.
        least: the minimum width of a column, in characters.

    >>> print(text_table([("LM0", "0.02"), ("length", "12.50")], ("weight", "mean"), align="lr"))
    weight   mean
    LM0      0.02
    length  12.50
    """
    lines = [list(row) for row in (headers, *rows) if row]
    if not lines:
        return ""
    columns = []
    for side, column in zip(align.ljust(len(lines[0]), "l"), zip(*lines, strict=True), strict=True):
        width = max(least, *map(len, column))
        columns.append([c.rjust(width) if side == "r" else c.ljust(width) for c in column])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))
