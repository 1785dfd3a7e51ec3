"""Texts side by side, with their differences marked, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise

from bpa_ppl.diagnostics.page import Html, render
from bpa_ppl.text.differences import Parts, mark_differences, token_pattern

_MAX_COMPARED = 2000  # words of a text that are shown side by side


def side_by_side(
    title: str,
    context: Sequence[tuple[str, str]],
    titles: Sequence[str],
    texts: Sequence[str],
) -> Html:
    """Return texts side by side, with the words marked that the text before lacks, or has alone.

    What counts as a word is described at `mark_differences`. The context belongs to all texts.
    """
    parts = zip(titles, differences(texts), strict=True)
    sides = [(of, "ins" if k else "del", marked) for k, (of, marked) in enumerate(parts)]
    return render("side_by_side", title, context, sides)


def differences(texts: Sequence[str]) -> list[Parts]:
    """Return the parts of each text, and whether the text before it (the first: after) lacks them.

    >>> differences(["the cat", "a cat"])
    [[('the', True), (' cat', False)], [('a', True), (' cat', False)]]
    """
    compared = [mark_differences(*pair) for pair in pairwise(map(_shorten, texts))]
    return [compared[0][0], *(inserted for _, inserted in compared)]


def _shorten(text: str) -> str:
    """Return a text, or its first words if it has very many."""
    words = list(islice(token_pattern().finditer(text), _MAX_COMPARED + 1))
    return text if len(words) <= _MAX_COMPARED else f"{text[: words[-1].start()].rstrip()} …"
