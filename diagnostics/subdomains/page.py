"""The page about latent subdomains: sizes, typical words, specific phrases, incoherent pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.columns import counted
from bpa_ppl.diagnostics.pages.canvas import canvas
from bpa_ppl.diagnostics.pages.page import Block, Section, Table, Text, Verdict, drawn, page
from bpa_ppl.diagnostics.subdomains.spreading import (
    Spread,
    along,
    associated_words,
    frequent_phrases,
    incoherence,
    spread,
    typical_words,
)
from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float64
from bpa_ppl.phrases.subdomains import Subdomains

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Distinct phrase pairs: source phrases, and as many target phrases.
Pairs = tuple[Sequence[str], Sequence[str]]

_TYPICAL = (
    "Words with the highest log-odds of the subdomain against all others, in standard deviations, "
    "with the frequencies of the whole corpus as prior (Monroe, Colaresi & Quinn 2008)."
)
_ALONG = (
    "Share of each subdomain in consecutive parts of the corpus, from its first sentence pair at "
    "the left to its last one; darker is more. A border from top to bottom is one between sources."
)
_SPECIFIC = (
    "The entropy of Rényi of order 2 (nats) of P(z | phrase): 0 where a phrase is in one subdomain "
    "alone, log K where it is in all alike. Over so many: e to the entropy, the number of "
    "subdomains that would spread so if they were alike."
)
_INCOHERENT = (
    "The distance of Chebyshev, max |P(z | source phrase) − P(z | target phrase)|: 0 where both "
    "spread alike, 1 where they have no subdomain in common."
)


def subdomains_page(
    found: Subdomains,
    *,
    title: str = "Latent subdomains",
    pairs: Pairs | None = None,
    least: int = 50,
    shown: int = 8,
) -> str:
    """Return a self-contained HTML page about the subdomains of a corpus.

    Args:
        found: the subdomains with their corpus.
        title: of the page.
        pairs: distinct phrase pairs, of a table or of lists. Without any, the phrases are those of
            the corpus that are frequent, and the pairs words that often stand together.
        least: how often a phrase occurs at least: P(z | phrase) of rare ones says little.
        shown: how many words, phrases and pairs of each kind.

    Raises:
        UsageError: if nothing is to be shown, or `least` is below 1.

    >>> from bpa_ppl.phrases.subdomains import NumberedText
    >>> text = NumberedText.of([["a", "b"], ["c"]])
    >>> "2 sentence pairs" in subdomains_page(Subdomains(text, text, [0, 1], [0.5, 0.5]), least=1)
    True
    """
    if shown < 1 or least < 1:
        raise UsageError(f"shown and least must be at least 1, not {shown} and {least}")
    if pairs is None:
        phrases = [frequent_phrases(text, least) for text in (found.source, found.target)]
    else:
        phrases = [list(dict.fromkeys(side)) for side in pairs]
    chosen = associated_words(found, least) if pairs is None else pairs
    sides = [
        _often(spread(found, "source", phrases[0]), least),
        _often(spread(found, "target", phrases[1]), least),
    ]
    sections = [
        Section("Subdomains", _sizes(found)),
        Section("Typical words", (Text(_TYPICAL), *_words(found, shown))),
        Section("Phrases", (_origin(pairs is None, least), *_phrases(sides, shown))),
        Section("Pairs least coherent", _pairs(found, chosen, least, shown)),
        Section("How they were induced", (_settings(found),)),
    ]
    return page(title, _verdict(found), sections)


def sizes_figure(found: Subdomains) -> Figure:
    """Draw the share of each subdomain along the corpus."""
    figure, ((axis,),) = canvas(1, 1, max(1.5, 0.22 * found.k + 0.6))
    axis.imshow(along(found).T, aspect="auto", cmap="Blues", vmin=0, extent=_extent(found))
    axis.set_yticks(range(found.k), map(str, range(found.k)))
    axis.set_xlabel("sentence pair")
    axis.set_ylabel("z")
    return figure


def _extent(found: Subdomains) -> tuple[float, float, float, float]:
    return 0, max(len(found), 1), found.k - 0.5, -0.5


def _verdict(found: Subdomains) -> Verdict:
    largest = _shares(found).max(initial=0)
    kind = "hard: each pair is in one" if found.hard else "soft: each pair is in all to some extent"
    told = f"{found.k} subdomains of {counted(len(found), 'sentence pair')} ({kind}); "
    return Verdict(f"{told}the largest has {largest:.0%}.")


def _shares(found: Subdomains) -> Float64:
    result: Float64 = found.posteriors().sum(axis=0, dtype=np.float64) / max(len(found), 1)
    return result


def _sizes(found: Subdomains) -> list[Block]:
    tokens = [np.diff(text.starts) for text in (found.source, found.target)]
    inside = found.posteriors().astype(np.float64)
    sums = inside.sum(axis=0)
    means = [lengths @ inside / np.where(sums > 0, sums, 1) for lengths in tokens]
    rows = [
        (str(z), f"{sums[z]:.0f}", f"{share:.1%}", f"{found.weights[z]:.4f}", *map(_mean, at))
        for z, (share, *at) in enumerate(zip(_shares(found), *means, strict=True))
    ]
    header = ("z", "sentence pairs", "share", "P(z)", "words, source", "words, target")
    blocks: list[Block] = [Table(header, rows, "Words: on average of a sentence.")]
    if len(found):
        told = f"Share of {found.k} subdomains along the corpus"
        blocks.append(drawn(sizes_figure(found), told, _ALONG))
    return blocks


def _mean(value: float) -> str:
    return f"{value:.1f}"


def _words(found: Subdomains, shown: int) -> list[Block]:
    columns = [typical_words(found, side, shown) for side in ("source", "target")]
    rows = [(str(z), *map(" ".join, words)) for z, words in enumerate(zip(*columns, strict=True))]
    return [Table(("z", "source", "target"), rows)]


def _often(of: Spread, least: int) -> Spread:
    return of.part(np.flatnonzero(of.counts >= least))


def _origin(own: bool, least: int) -> Block:
    of = "of up to three words" if own else "that were given"
    return Text(f"Phrases {of} that the corpus has {least} times or more. {_SPECIFIC}")


def _phrases(sides: Sequence[Spread], shown: int) -> list[Block]:
    blocks: list[Block] = []
    for name, of in zip(("source", "target"), sides, strict=True):
        # Of equal ones the most frequent first.
        order = np.lexsort((-of.counts, of.entropies))
        blocks.append(_ranked(of.part(order[:shown]), f"Most specific {name} phrases."))
        order = np.lexsort((-of.counts, -of.entropies))
        blocks.append(_ranked(of.part(order[:shown]), f"Least specific {name} phrases."))
    return blocks


def _ranked(of: Spread, caption: str) -> Block:
    rows = [
        (phrase, f"{count:.0f}", f"{entropy:.3f}", f"{np.exp(entropy):.2f}", _most(shares))
        for phrase, count, entropy, shares in zip(
            of.phrases, of.counts, of.entropies, of.probabilities, strict=True
        )
    ]
    header = ("phrase", "occurrences", "entropy", "over so many", "most in")
    return Table(header, rows, caption) if rows else Text(f"{caption} None is frequent enough.")


def _most(shares: Float64) -> str:
    """Return the subdomains that have most of a phrase.

    >>> _most(np.array([0.1, 0.7, 0.2]))
    '1 (70%), 2 (20%)'
    """
    best = [z for z in np.argsort(-shares, kind="stable")[:2] if shares[z] > 0]
    return ", ".join(f"{z} ({shares[z]:.0%})" for z in best)


def _pairs(found: Subdomains, pairs: Pairs, least: int, shown: int) -> list[Block]:
    if not len(pairs[0]):
        return [Text("There are no pairs.")]
    source, target = spread(found, "source", pairs[0]), spread(found, "target", pairs[1])
    often = np.flatnonzero(np.minimum(source.counts, target.counts) >= least)
    source, target = source.part(often), target.part(often)
    distance = incoherence(source, target)
    order = np.argsort(-distance, kind="stable")[:shown]
    rows = [
        (
            source.phrases[row],
            target.phrases[row],
            f"{distance[row]:.3f}",
            _most(source.probabilities[row]),
            _most(target.probabilities[row]),
        )
        for row in order
    ]
    header = ("source", "target", "distance", "source most in", "target most in")
    mean = f" Mean of {len(often)} pairs: {distance.mean():.3f}." if len(often) else ""
    return [Text(_INCOHERENT + mean), Table(header, rows) if rows else Text("None is frequent.")]


def _settings(found: Subdomains) -> Block:
    rows = [(name, _printed(value)) for name, value in found.settings.items()]
    return Table(("what", "value"), rows) if rows else Text("The file does not record it.")


def _printed(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_printed, value))
    return f"{value:.8g}" if isinstance(value, float) else str(value)
