"""Bilingual text of planted subdomains."""

from __future__ import annotations

import numpy as np

from bpa_ppl.phrases.subdomains import NumberedText


def planted(
    k: int, pairs: int, apart: float, seed: int = 0, words: int = 300, length: int = 12
) -> tuple[NumberedText, NumberedText, np.ndarray]:
    """Return source and target sentences, and the subdomain of each pair.

    Args:
        k: how many subdomains.
        pairs: how many sentence pairs.
        apart: from 0 to 1, the share of a subdomain's own distribution in its words; half as often
            a word is translated in its own way.
        seed: of all that is drawn.
        words: of each language.
        length: of a sentence, on average.
    """
    rng = np.random.default_rng(seed)
    common, own = rng.dirichlet(np.full(words, 0.1)), rng.dirichlet(np.full(words, 0.1), k)
    ways = np.array([rng.permutation(words) for _ in range(k)])
    subdomains = rng.integers(k, size=pairs)
    sides: tuple[list, list] = [], []
    for z in subdomains:
        count = rng.integers(length // 2, length * 3 // 2 + 1)
        source = rng.choice(words, count, p=(1 - apart) * common + apart * own[z])
        target = np.where(rng.random(count) < apart / 2, ways[z][source], source)
        sides[0].append([f"f{word}" for word in source])
        sides[1].append([f"e{word}" for word in rng.permutation(target)])
    return NumberedText.of(sides[0]), NumberedText.of(sides[1]), subdomains
