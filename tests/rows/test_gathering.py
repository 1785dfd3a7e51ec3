"""Whether lists have a word in common with their references, held against a plain search."""

from __future__ import annotations

import random

import pytest

from bpa_ppl.rows.gathering import _related


def words(text: str) -> set[str]:
    """Return the words of a text, or its characters where nothing separates words."""
    folded = text.lower()
    split = folded.isascii() or " " in folded.strip()
    return set(folded.split()) if split else set(folded)


@pytest.mark.parametrize("seed", range(20))
def test_a_word_in_common_is_found_in_any_text(seed: int) -> None:
    rng = random.Random(seed)
    pieces = ["Cat", "category", "a", "the", "Σας", "ΟΔΟΣ", "οδος", "猫", "犬です", "é", "3", "33"]
    seen = set()
    for _ in range(200):
        texts = [" ".join(rng.choices(pieces, k=rng.randint(1, 2))) for _ in range(3)]
        references = [" ".join(rng.choices(pieces, k=rng.randint(1, 2)))]
        known = words(references[0])
        expected = any(known & words(text) for text in texts)
        assert _related(references, texts) is expected
        seen.add(expected)
    assert seen == {True, False}
