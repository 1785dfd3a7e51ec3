"""Tables as plain text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate

_SIDES = {"l": "left", "r": "right"}


def text_table(
    rows: Iterable[Sequence[str]],
    headers: Sequence[str] = (),
    *,
    align: str = "",
    least: int = 0,
    indent: str = "",
) -> str:
    """Return rows of text in columns two spaces apart, without blanks at the ends of lines.

    Numbers are printed as they are given: format them first.

    Args:
        rows: of cells, as many in each.
        headers: the names of the columns; none leaves the line of names out.
        align: `l` or `r` for each column, such as `lrr`; those that it leaves out stand left.
        least: characters that each column is wide, at least.
        indent: what each line starts with.

    >>> print(text_table([("LM0", "0.02"), ("length", "12.50")], ("weight", "mean"), align="lr"))
    weight   mean
    LM0      0.02
    length  12.50
    """
    lines = [list(row) for row in (headers, *rows) if row]
    if not lines:
        return ""
    sides = [_SIDES[side] for side in align.ljust(len(lines[0]), "l")]
    lines[0] = [
        cell.rjust(least) if side == "right" else cell.ljust(least)
        for cell, side in zip(lines[0], sides, strict=True)
    ]
    # The names go in as a row: as names they would be given two characters more than they have.
    table = tabulate(
        lines,
        tablefmt="plain",
        colalign=sides,
        disable_numparse=True,
        preserve_whitespace=True,
    )
    return "\n".join(f"{indent}{line}".rstrip() for line in table.split("\n"))
