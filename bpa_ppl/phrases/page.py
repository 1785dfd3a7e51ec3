"""The page about latent subdomains: sizes, typical words, specific phrases, incoherent pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.columns import counted
from bpa_ppl.diagnostics.pages.figures import empty_figure
from bpa_ppl.diagnostics.pages.page import Block, Section, Table, Verdict, drawn, page
from bpa_ppl.errors import UsageError
from bpa_ppl.phrases.subdomains import (
    CountedPhrases,
    NumberedText,
    Subdomains,
    chebyshev,
    posteriors,
    renyi_entropy,
)
from bpa_ppl.phrases.tables import SIDES, Side

_PRIOR = 1000.0  # tokens that the prior of typical words is equivalent to
_MIN_Z = 2.0  # minimum z-score of a typical word
_MAX_WORDS = 2000  # of each side, among which associated pairs are searched


def spread(subdomains: Subdomains, side: Side, phrases: Sequence[str]) -> tuple[Float64, Float64]:
    """Return how many sentence pairs have each phrase of one side, and P(z | phrase), (n, K).

    >>> text = NumberedText.of([["a", "b"], ["a"]])
    >>> counts, shares = spread(Subdomains(text, text, [0, 1], [0.5, 0.5]), "source", ["a", "b"])
    >>> counts.tolist(), shares.tolist()
    ([2.0, 1.0], [[0.5, 0.5], [1.0, 0.0]])
    """
    phrase_counts = CountedPhrases(subdomains, side)
    counts = phrase_counts.counts(phrase_counts.numbers(phrases))
    return counts.sum(axis=1), posteriors(counts, subdomains.weights)


def typical_words(subdomains: Subdomains, side: Side, top: int) -> list[list[str]]:
    """Return the words that are most typical of each subdomain, the most typical one first.

    They have the largest z-scores, at least 2, of the log-odds of the subdomain against all
    others, with the frequencies in the whole corpus as prior (Monroe, Colaresi & Quinn 2008,
    Eq. 16, 20 and 22).

    Args:
        subdomains: the subdomains.
        side: the language.
        top: the maximum number of words of each subdomain.

    >>> text = NumberedText.of([["a", "x"]] * 40 + [["b", "x"]] * 40)
    >>> typical_words(Subdomains(text, text, [0] * 40 + [1] * 40, [0.5, 0.5]), "source", 2)
    [['a'], ['b']]
    """
    text = subdomains.text(side)
    inside = text.word_counts().T @ subdomains.posteriors().astype(np.float64)
    everywhere = inside.sum(axis=1, keepdims=True)
    prior = _PRIOR * everywhere / max(everywhere.sum(), 1.0)
    log_odds, variance = [], 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        for counts in (inside, everywhere - inside):
            total = counts.sum(axis=0) + _PRIOR
            log_odds.append(np.log(counts + prior) - np.log(total - counts - prior))
            variance += 1 / (counts + prior)
        scores = np.nan_to_num((log_odds[0] - log_odds[1]) / np.sqrt(variance))
    order = np.argsort(-scores, axis=0, kind="stable")[:top]
    return [
        [text.words[word] for word in words if scores[word, z] > _MIN_Z]
        for z, words in enumerate(order.T)
    ]


def along(subdomains: Subdomains, parts: int = 100) -> Float64:
    """Return (parts, K) the shares of the subdomains in consecutive parts of the corpus.

    >>> text = NumberedText.of([["a"]] * 4)
    >>> along(Subdomains(text, text, [0, 0, 0, 1], [0.5, 0.5]), 2).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    bounds = np.unique(np.linspace(0, len(subdomains), min(parts, len(subdomains)) + 1).astype(int))
    shares = subdomains.posteriors()
    return np.array([shares[a:b].mean(axis=0, dtype=np.float64) for a, b in pairwise(bounds)])


def frequent_phrases(text: NumberedText, least: int, longest: int = 3) -> list[str]:
    """Return the frequent phrases of a text, the shorter first.

    Args:
        text: the sentences.
        least: the minimum number of occurrences.
        longest: the maximum number of words.

    >>> frequent_phrases(NumberedText.of([["a", "b", "a"], ["b", "a", "c"]]), 2)
    ['a', 'b', 'b a']
    """
    result: list[str] = []
    left = np.repeat(text.starts[1:], np.diff(text.starts)) - np.arange(len(text.numbers))
    # The number of the frequent phrase of n words that begins at each token, or −1; of no words 0.
    phrases, numbers = [""], np.zeros(len(text.numbers), np.int64)
    for n in range(1, longest + 1):
        positions = np.flatnonzero((numbers >= 0) & (left >= n))
        keys = numbers[positions] * len(text.words) + text.numbers[positions + n - 1]
        distinct, first, inverse, counts = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        kept = np.flatnonzero(counts >= least)
        kept = kept[np.argsort(first[kept])]
        pairs = zip(*np.divmod(distinct[kept], len(text.words)), strict=True)
        phrases = [f"{phrases[head]} {text.words[tail]}".strip() for head, tail in pairs]
        result += phrases
        renumbered = np.full(len(distinct), -1)
        renumbered[kept] = np.arange(len(kept))
        numbers = np.full(len(numbers), -1)
        numbers[positions] = renumbered[inverse]
    return result


def associated_words(subdomains: Subdomains, min_count: int) -> tuple[list[str], list[str]]:
    """Return the frequent source words, and the target word most associated with each.

    Association is the Dice coefficient, 2 c(f, e) / (c(f) + c(e)), of the numbers of sentence
    pairs, among the 2000 most frequent words of each side.

    Args:
        subdomains: the subdomains with their corpus.
        min_count: the minimum number of occurrences of a word.
    """
    words, inside = [], []
    for text in map(subdomains.text, SIDES):
        counts = np.bincount(text.numbers, minlength=len(text.words))
        frequent = np.argsort(-counts, kind="stable")[:_MAX_WORDS]
        words.append(frequent[counts[frequent] >= min_count])
        inside.append(text.word_counts()[:, words[-1]])
        inside[-1].data[:] = 1
    if not (len(words[0]) and len(words[1])):
        return [], []
    joint = (inside[0].T @ inside[1]).toarray()
    marginals = [np.asarray(side.sum(axis=0)).ravel() for side in inside]
    best = (joint / (marginals[0][:, None] + marginals[1])).argmax(axis=1)
    sources = [subdomains.source.words[word] for word in words[0]]
    return sources, [subdomains.target.words[words[1][pair]] for pair in best]


#: Phrase pairs: source phrases, and as many target phrases.
PhrasePairTexts = tuple[Sequence[str], Sequence[str]]

_TYPICAL = (
    "Words with the highest log-odds of the subdomain against all others, in standard deviations, "
    "with the frequencies of the whole corpus as prior (Monroe, Colaresi & Quinn 2008)."
)
_ALONG = (
    "Share of each subdomain in consecutive parts of the corpus, from left to right; darker is "
    "more. A vertical border suggests that the source of the text changes there."
)
_SPECIFIC = (
    "Rényi entropy of order 2 (nats) of P(z | phrase): 0 if a phrase occurs in one subdomain only, "
    "log K if it occurs equally often in all. Effective number: e to the entropy."
)
_INCOHERENT = (
    "Chebyshev distance, max |P(z | source phrase) − P(z | target phrase)|: 0 if both have the "
    "same distribution, 1 if they have no subdomain in common."
)


def subdomains_page(
    subdomains: Subdomains,
    *,
    title: str = "Latent subdomains",
    pairs: PhrasePairTexts | None = None,
    min_count: int = 50,
    top: int = 8,
) -> str:
    """Return a self-contained HTML page about the subdomains of a corpus.

    Args:
        subdomains: the subdomains with their corpus.
        title: of the page.
        pairs: distinct phrase pairs, of a table or of lists. Without pairs, the phrases are the
            frequent ones of the corpus, and the pairs are words that often occur together.
        min_count: the minimum number of sentence pairs that contain a phrase: P(z | phrase) of rare
            ones is noisy.
        top: the number of words, phrases and pairs of each kind.

    Raises:
        UsageError: if `top` or `min_count` is below 1.

    >>> from bpa_ppl.phrases.subdomains import NumberedText
    >>> text = NumberedText.of([["a", "b"], ["c"]])
    >>> subdomains = Subdomains(text, text, [0, 1], [0.5, 0.5])
    >>> "2 sentence pairs" in subdomains_page(subdomains, min_count=1)
    True
    """
    for name, value in (("top", top), ("min_count", min_count)):
        if value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}", parameter=name)
    if pairs is None:
        candidates = [frequent_phrases(subdomains.text(side), min_count) for side in SIDES]
        origin = "of up to three words"
    else:
        candidates = [list(dict.fromkeys(side)) for side in pairs]
        origin = "of the pairs"
    phrase_blocks: list[Block] = [
        f"Phrases {origin} in at least {min_count} sentence pairs of the corpus. {_SPECIFIC}"
    ]
    for side, phrases in zip(SIDES, candidates, strict=True):
        counts, shares = spread(subdomains, side, phrases)
        entropies, often = renyi_entropy(shares), np.flatnonzero(counts >= min_count)
        for sign, word in ((1, "Most"), (-1, "Least")):
            # Of equal ones the most frequent first.
            order = often[np.lexsort((-counts[often], sign * entropies[often]))[:top]]
            table = [
                (phrases[k], f"{counts[k]:.0f}", f"{h:.3f}", f"{np.exp(h):.2f}", _most(shares[k]))
                for k, h in zip(order.tolist(), entropies[order], strict=True)
            ]
            header = ("phrase", "sentence pairs", "entropy", "effective number", "most in")
            caption = f"{word} specific {side} phrases."
            missing = f"{caption} None is frequent enough."
            phrase_blocks.append(Table(header, table, caption) if table else missing)
    typical = [typical_words(subdomains, side, top) for side in SIDES]
    rows = [(str(z), *map(" ".join, words)) for z, words in enumerate(zip(*typical, strict=True))]
    settings = [(name, _printed(value)) for name, value in subdomains.settings.items()]
    provenance = Table(("what", "value"), settings) if settings else "It is not recorded."
    chosen = pairs or associated_words(subdomains, min_count)
    sizes = subdomains.posteriors().sum(axis=0, dtype=np.float64)
    sections = [
        Section("Subdomains", _sizes(subdomains, sizes)),
        Section("Typical words", [_TYPICAL, Table(("z", *SIDES), rows)]),
        Section("Phrases", phrase_blocks),
        Section("Pairs least coherent", _pairs(subdomains, chosen, min_count, top)),
        Section("How they were induced", [provenance]),
    ]
    kind = "hard: each pair is in one" if subdomains.hard else "soft: each pair is partly in all"
    largest = f"the largest has {sizes.max() / max(len(subdomains), 1):.0%}"
    size = f"{subdomains.k} subdomains of {counted(len(subdomains), 'sentence pair')} ({kind})"
    return page(title, Verdict(f"{size}; {largest}."), sections)


def _sizes(subdomains: Subdomains, sizes: Float64) -> list[Block]:
    """Return the table of sizes, and the figure of the shares along the corpus."""
    inside = subdomains.posteriors().astype(np.float64)
    lengths = [np.diff(subdomains.text(side).starts) for side in SIDES]
    means = [side_lengths @ inside / np.where(sizes > 0, sizes, 1) for side_lengths in lengths]
    shares = sizes / max(len(subdomains), 1)
    columns = zip(sizes, shares, subdomains.weights, *means, strict=True)
    rows = [
        (str(z), f"{size:.0f}", f"{share:.1%}", f"{weight:.4f}", f"{source:.1f}", f"{target:.1f}")
        for z, (size, share, weight, source, target) in enumerate(columns)
    ]
    header = ("z", "sentence pairs", "share", "P(z)", "words, source", "words, target")
    blocks: list[Block] = [Table(header, rows, "Words: mean per sentence.")]
    if not len(subdomains):
        return blocks
    figure, ((axes,),) = empty_figure(1, 1, max(1.5, 0.22 * subdomains.k + 0.6))
    extent = (0, len(subdomains), subdomains.k - 0.5, -0.5)
    axes.imshow(along(subdomains).T, aspect="auto", cmap="Blues", vmin=0, extent=extent)
    axes.set_yticks(range(subdomains.k), map(str, range(subdomains.k)))
    axes.set(xlabel="sentence pair", ylabel="z")
    alternative = f"Share of {subdomains.k} subdomains along the corpus"
    return [*blocks, drawn(figure, alternative, _ALONG)]


def _most(shares: Float64) -> str:
    """Return the subdomains with the largest shares.

    >>> _most(np.array([0.1, 0.7, 0.2]))
    '1 (70%), 2 (20%)'
    """
    best = [z for z in np.argsort(-shares, kind="stable")[:2] if shares[z] > 0]
    return ", ".join(f"{z} ({shares[z]:.0%})" for z in best)


def _pairs(subdomains: Subdomains, pairs: PhrasePairTexts, min_count: int, top: int) -> list[Block]:
    """Return the table of the pairs of frequent phrases with the largest distances."""
    if not len(pairs[0]):
        return ["There are no pairs."]
    (first, source), (second, target) = (
        spread(subdomains, side, phrases) for side, phrases in zip(SIDES, pairs, strict=True)
    )
    often = np.flatnonzero(np.minimum(first, second) >= min_count)
    distance = chebyshev(source[often], target[often])
    rows = []
    for row in np.argsort(-distance, kind="stable")[:top]:
        k = often[row]
        phrases = pairs[0][k], pairs[1][k]
        rows.append((*phrases, f"{distance[row]:.3f}", _most(source[k]), _most(target[k])))
    header = ("source", "target", "distance", "source most in", "target most in")
    mean = f" Mean of {len(often)} pairs: {distance.mean():.3f}." if len(often) else ""
    table = Table(header, rows) if rows else "None is frequent enough."
    return [_INCOHERENT + mean, table]


def _printed(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_printed, value))
    return f"{value:.8g}" if isinstance(value, float) else str(value)
