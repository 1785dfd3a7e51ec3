"""Tables as plain text, for terminals and logs."""

from __future__ import annotations

import math
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


def decimals_for(spread: float, least: int = 0) -> int:
    """Return how many decimals show two significant digits of a spread, or `least` if it is more.

    >>> [decimals_for(spread) for spread in (12.3, 0.43, 0.0012)]
    [0, 2, 4]
    """
    if not math.isfinite(spread) or spread <= 0:
        return least
    return max(least, 1 - math.floor(math.log10(spread)))


def has_width(spread: float, value: float) -> bool:
    """Return whether a spread is more than the rounding errors of equal numbers.

    >>> has_width(0.1, 50.0), has_width(7e-15, 50.0), has_width(math.nan, 50.0)
    (True, False, False)
    """
    return spread > 1e-9 * abs(value)


def with_spread(value: float, spread: float) -> str:
    """Return a number with its spread, to two significant digits of that; without it if it is 0.

    >>> with_spread(0.6243, 0.0312), with_spread(63.84, 1.23), with_spread(0.6243, 0.0)
    ('0.624 ± 0.031', '63.8 ± 1.2', '0.6243')
    """
    if not has_width(spread, value):
        return f"{value:.4g}"
    decimals = decimals_for(spread)
    return f"{value:.{decimals}f} ± {spread:.{decimals}f}"
