"""TER (Snover et al., 2006), as sacreBLEU defines it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from bpa_ppl.errors import BpaWarning
from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.references import References, Streams, check_parallel, streams_of
from bpa_ppl.quality.score import Score
from bpa_ppl.quality.words import Vocabulary, starts_of


@dataclass(frozen=True)
class TER(Metric):
    """Settings of the translation edit rate, in percent of the mean reference length.

    Args:
        normalized: whether Tercom's normalisation splits punctuation off.
        no_punct: whether punctuation is removed.
        asian_support: whether both of these treat Chinese and Japanese text too.
        case_sensitive: whether case counts.

    >>> TER(case_sensitive=True)
    TER(normalized=False, no_punct=False, asian_support=False, case_sensitive=True)
    """

    key: ClassVar[str] = "ter"
    lower_is_better: ClassVar[bool] = True
    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    @property
    def threads(self) -> bool:
        """Whether threads can score side by side: in the compiled code they can."""
        return _tercom() is not None

    def judge(self, streams: Streams | None = None, *, sentence: bool = False) -> Any:
        """Return sacreBLEU's TER with these settings; it scores a sentence as a corpus."""
        from sacrebleu import metrics

        return metrics.TER(
            normalized=self.normalized,
            no_punct=self.no_punct,
            asian_support=self.asian_support,
            case_sensitive=self.case_sensitive,
            references=streams,
        )

    def corpus(self, hypotheses: Sequence[str], references: References) -> Score:
        """Return the corpus score of one hypothesis a sentence."""
        edits, lengths = ter_edits(hypotheses, references, self)
        total, length = edits.sum(), _sum_in_order(lengths)
        return Score(
            float(_percent(total, length)),
            self.key,
            "TER",
            self.signature(references),
            {"edits": int(total), "reference_length": length},
        )

    def sentences(
        self, lists: Sequence[Sequence[str]], references: References, *, only_best: bool
    ) -> Float64:
        """Return the sentence score of each hypothesis of some lists, one list after the other."""
        edits, lengths = _count(self, lists, references, only_best)
        return _percent(edits, np.repeat(lengths, [len(texts) for texts in lists]))


_DEFAULT = TER()


def ter_edits(
    hypotheses: Sequence[str], references: References, config: TER = _DEFAULT
) -> tuple[Int64, Float64]:
    """Count the edits of hypotheses, one a sentence: what TER is the quotient of.

    Args:
        hypotheses: (sentences,) texts.
        references: one tuple a sentence; the edits are those to the nearest.
        config: settings of TER.

    Returns:
        (sentences,) edits: insertions, deletions, substitutions and shifts, and (sentences,) mean
        lengths of the references in words.

    Raises:
        DataError: if there are no sentences, or one of them has no reference.

    >>> edits, lengths = ter_edits(["the cat sat"], [("sat the cat", "the cat sat down ever")])
    >>> edits.tolist(), lengths.tolist()
    ([1], [4.0])
    """
    check_parallel(hypotheses, references)
    edits, lengths = _count(config, [[text] for text in hypotheses], references, only_best=False)
    return edits.astype(np.int64), lengths


def _count(
    config: TER, lists: Sequence[Sequence[str]], references: References, only_best: bool
) -> tuple[Float64, Float64]:
    """Return the edits of each hypothesis, infinite where left out, and each reference length."""
    tercom = _tercom()
    if tercom is None:
        return _count_by_sacrebleu(config, lists, references)
    split = _splitter(config)
    hypotheses = [split(text) for text in chain.from_iterable(lists)]
    # sacreBLEU tokenises references twice, which is not once in all cases: `..3` and normalised.
    refs = [split(" ".join(split(text))) for text in chain.from_iterable(references)]
    vocabulary = Vocabulary()
    ref_starts = starts_of(references)
    edits = tercom.count_edits(
        vocabulary.number(hypotheses),
        vocabulary.number(refs),
        starts_of(lists),
        ref_starts,
        len(vocabulary),
        only_best,
    )
    total_lengths = np.add.reduceat([len(words) for words in refs], ref_starts[:-1])
    lengths = total_lengths / np.diff(ref_starts)
    return np.where(edits == tercom.PRUNED, np.inf, edits), lengths


def _count_by_sacrebleu(
    config: TER, lists: Sequence[Sequence[str]], references: References
) -> tuple[Float64, Float64]:
    edits, lengths = [], []
    for texts, refs in zip(lists, references, strict=True):
        judge = config.judge(streams_of([refs]))
        scores = [judge.corpus_score([text], None) for text in texts]
        edits += [score.num_edits for score in scores]
        lengths.append(scores[0].ref_length)
    return np.array(edits, dtype=np.float64), np.array(lengths, dtype=np.float64)


def _splitter(config: TER) -> Callable[[str], list[str]]:
    """Return what cuts a text into words."""
    if not (config.normalized or config.no_punct):  # then Tercom's tokeniser does no more
        return str.split if config.case_sensitive else lambda text: text.lower().split()
    from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

    tokenise = TercomTokenizer(
        config.normalized, config.no_punct, config.asian_support, config.case_sensitive
    )
    return lambda text: tokenise(text.rstrip()).split()


def _percent(edits: Any, lengths: Any) -> Float64:
    """Return 100 · edits / lengths; where there is no reference word, 100 for any edit at all."""
    none = np.equal(lengths, 0)
    return 100 * np.where(none, np.greater(edits, 0), edits / np.where(none, 1, lengths))


def _sum_in_order(values: Float64) -> float:
    """Return the sum, added from left to right as sacreBLEU does; NumPy's rounds differently."""
    return float(np.cumsum(values)[-1])


@cache
def _tercom() -> ModuleType | None:
    """Return the compiled edit counts; None, with a warning, where Numba cannot be imported."""
    try:
        from bpa_ppl.quality import tercom
    except ImportError as error:
        warnings.warn(
            f"Numba cannot be imported ({error}): TER is left to sacreBLEU, which gives the same "
            "numbers some hundred times slower",
            BpaWarning,
            stacklevel=2,
        )
        return None
    return tercom
