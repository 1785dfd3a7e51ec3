"""Tables as plain text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_SIDES = {"l": "left", "r": "right"}


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
    from tabulate import tabulate

    lines = [list(row) for row in (headers, *rows) if row]
    if not lines:
        return ""
    sides = [_SIDES[side] for side in align.ljust(len(lines[0]), "l")]
    lines[0] = [
        cell.rjust(least) if side == "right" else cell.ljust(least)
        for cell, side in zip(lines[0], sides, strict=True)
    ]
    # The header is a row, because tabulate makes columns with headers two characters wider.
    options = {"disable_numparse": True, "preserve_whitespace": True}
    table = tabulate(lines, tablefmt="plain", colalign=sides, **options)
    return "\n".join(map(str.rstrip, table.split("\n")))
