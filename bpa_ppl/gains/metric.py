"""Metric: the base class of TER, BLEU, chrF and custom metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import format_fixed
from bpa_ppl.components import Component, Registry

#: One tuple of references per sentence, which may differ in length.
References = Sequence[Sequence[str]]

#: The candidates of each sentence.
Lists = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Score:
    """A corpus score, with the signature that is needed to reproduce it.

    Attributes:
        value: the score in the unit of the metric, percent for TER, BLEU and chrF.
        metric: the registered name of the metric, such as "ter".
        name: its published name, such as "TER" or "chrF2++".
        signature: tokenisation, number of references, version and so on; for TER, BLEU and chrF the
            signature of sacreBLEU.
        details: further numbers, such as BLEU's precisions.
        decimals: the number of decimals that are printed.
    """

    value: float
    metric: str
    name: str
    signature: str
    details: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict)
    decimals: int = 2

    def __str__(self) -> str:
        return f"{self.name} {format_fixed(self.value, self.decimals)} ({self.signature})"


class Metric(Component, frozen=True):
    """A metric, which gives candidates their gains; the fields are its settings.

    Its corpus score is a function of counts that are summed over sentences. A custom metric defines
    `key`, `counts` and `value`. A metric that is a mean of sentence scores subclasses `Averaged`.

    Attributes:
        key: the registered name of the metric.
        lower_is_better: True for error rates.
        needs: its inputs: "references", "sources", "columns", or nothing. A metric that does not
            need references gets an empty tuple per sentence. `counts` gets sources as the keyword
            `sources`, (sentences,), and the columns that `columns` names as the keyword `columns`,
            name -> (candidates,).
        reported: whether comparisons always report it, if it needs only references.
        decimals: the number of decimals of a score that are printed.
        columns: the names of the features and extras that it reads.
        threads: whether threads can score in parallel; otherwise processes do.

    >>> ter = GAINS.resolve("ter")
    >>> counts = ter.counts([["a cat", "the cat"]], [("the cat",)])  # edits, reference length
    >>> counts.tolist(), ter.value(counts).tolist(), ter.gain(counts).tolist()
    ([[1.0, 2.0], [0.0, 2.0]], [50.0, 0.0], [-1.0, 0.0])
    >>> print(ter.score(counts[0], [("the cat",)]))
    TER 50.00 (nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:...)
    >>> ter.width, ter.title, ter.signed(50.0)
    (2, 'TER', -50.0)
    """

    key: ClassVar[str]
    lower_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset({"references"})
    reported: ClassVar[bool] = True
    decimals: ClassVar[int] = 2
    columns: ClassVar[tuple[str, ...]] = ()
    threads: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """The name of the metric in tables."""
        return type(self).__name__

    @property
    def width(self) -> int:
        """S, the number of counts per candidate."""
        sources = {"sources": [""]} if "sources" in self.needs else {}
        return int(self.counts([[""]], [("",)], **sources).shape[1])

    def counts(self, lists: Lists, references: References, *_: Any, **more: Any) -> Float64:
        """Return (candidates, S) counts of lists with one tuple of references per sentence.

        `more` has `sources` and `columns`, if the metric needs them; counts are summed.
        """
        name = type(self).__name__
        raise NotImplementedError(f"{name} has no counts: define them, or subclass Averaged")

    def value(self, sums: Float64) -> Float64:
        """Return corpus scores, (…, S) ↦ (…), of counts summed over the sentences of a text."""
        raise NotImplementedError(f"{type(self).__name__} has no value of its counts")

    def details_of(self, sums: Float64) -> dict[str, float]:
        """Return further numbers for tables, by name, from summed counts, (S,)."""
        return {}

    def signed(self, values: Any) -> Any:
        """Return scores so that higher is better."""
        return -values if self.lower_is_better else values

    def sentence_values(self, counts: Float64) -> Float64:
        """Return the scores of single sentences, (n, S) ↦ (n,), by which oracles are chosen."""
        return self.value(counts)

    def fraction(self, counts: Float64) -> Float64:
        """Return the score of single sentences, (n, S) ↦ (n,), as a fraction; higher is better."""
        fraction: Float64 = self.signed(self.value(counts)) / 100
        return fraction

    def gain(self, counts: Float64) -> Float64:
        """Return the gain of each candidate, (n, S) ↦ (n,), in words; higher is better."""
        return self.fraction(counts)

    def background(self) -> Float64:
        """Return the counts, (S,), of the initial pseudo-corpus of batch MIRA."""
        return np.zeros(self.width)

    def within(self, counts: Float64, background: Float64) -> Float64:
        """Return the gains of sentences as a part of a pseudo-corpus, (n, S) ↦ (n,), in words."""
        return self.gain(counts + background)

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return what identifies how corpora or sentences are scored, as in sacreBLEU."""
        settings = "".join(f"|{name}:{value}" for name, value in self.settings().items())
        return f"{self.key}|nrefs:{_count_references(references) or 'var'}{settings}"

    def score(self, sums: Float64, references: References) -> Score:
        """Return the corpus score of counts, (S,), summed from left to right over the sentences."""
        value, signature = float(self.value(sums)), self.signature(references)
        details = self.details_of(sums)
        return Score(value, self.key, self.title, signature, details, self.decimals)


class Averaged(Metric, frozen=True):
    """A metric whose corpus score is the mean of its sentence scores, in its own unit.

    A subclass defines a `key` and `sentences`.
    """

    decimals: ClassVar[int] = 4

    width = 2

    def sentences(self, lists: Lists, references: References, **more: Any) -> Float64:
        """Return the score of each candidate, list by list; NaN is a missing one."""
        raise NotImplementedError(f"{type(self).__name__} has no sentence scores")

    def counts(self, lists: Lists, references: References, *_: Any, **more: Any) -> Float64:
        """Return (candidates, 2): the sentence score and 1, or 0 and 0 if the score is missing."""
        scores = self.sentences(lists, references, **more)
        present = np.isfinite(scores)
        return np.column_stack([np.where(present, scores, 0.0), present])

    def value(self, sums: Float64) -> Float64:
        mean = sums[..., 0] / np.maximum(sums[..., 1], 1)
        return np.asarray(np.where(sums[..., 1] > 0, mean, np.nan))

    def fraction(self, counts: Float64) -> Float64:
        return np.asarray(self.signed(self.value(counts)))

    def within(self, counts: Float64, background: Float64) -> Float64:
        """Return the gains; the background makes no difference to a mean."""
        return self.gain(counts)


def sacrebleu_signature(scorer: Any, references: References) -> str:
    """Return the signature of a sacreBLEU metric, with the number of references."""
    scorer.num_refs = _count_references(references) or -1
    return str(scorer.get_signature())


def _count_references(references: References) -> int | None:
    """Return the number of references of each sentence; None if it varies."""
    numbers = {len(refs) for refs in references}
    return numbers.pop() if len(numbers) == 1 else None


#: The gains by name; each is a metric, and a column or a function of a user is one, too.
GAINS: Registry[Metric] = Registry(
    "metric",
    "bpa_ppl.metrics",
    Metric,
    {
        "ter": "bpa_ppl.gains.ter:TER",
        "bleu": "bpa_ppl.gains.bleu:BLEU",
        "chrf": "bpa_ppl.gains.chrf:CHRF",
        "ter+bleu": "bpa_ppl.gains.ter:TERAndBLEU",
        "wer": "bpa_ppl.gains.wer:WER",
        "cer": "bpa_ppl.gains.wer:CER",
        "column": "bpa_ppl.gains.column:Column",
    },
)
