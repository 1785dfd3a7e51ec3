"""Simulated bilingual text with known subdomains."""

from __future__ import annotations

import numpy as np

from bpa_ppl.text.words import NumberedText


def planted(
    subdomain_count: int,
    pair_count: int,
    separation: float,
    seed: int = 0,
    words: int = 300,
    length: int = 12,
) -> tuple[NumberedText, NumberedText, np.ndarray]:
    """Return source and target sentences, and the subdomain of each pair.

    Args:
        subdomain_count: the number of subdomains.
        pair_count: the number of sentence pairs.
        separation: the share of words from the subdomain's own distribution, from 0 to 1; half
            this share of words has a subdomain-specific translation.
        seed: the random seed.
        words: the vocabulary size of each language.
        length: the mean sentence length.
    """
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(words, 0.1))
    specific = rng.dirichlet(np.full(words, 0.1), subdomain_count)
    translations = np.array([rng.permutation(words) for _ in range(subdomain_count)])
    subdomains = rng.integers(subdomain_count, size=pair_count)
    sides: tuple[list, list] = [], []
    for z in subdomains:
        count = rng.integers(length // 2, length * 3 // 2 + 1)
        source = rng.choice(words, count, p=(1 - separation) * common + separation * specific[z])
        target = np.where(rng.random(count) < separation / 2, translations[z][source], source)
        sides[0].append([f"f{word}" for word in source])
        sides[1].append([f"e{word}" for word in rng.permutation(target)])
    return NumberedText.of(sides[0]), NumberedText.of(sides[1]), subdomains
