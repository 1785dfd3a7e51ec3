"""Metric: what TER, BLEU and chrF have in common, with sacreBLEU as the judge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bpa_ppl.nbest import Float64
from bpa_ppl.quality.references import References, Streams, streams_of
from bpa_ppl.quality.score import Score


class Metric(ABC):
    """A metric with its settings; each is a frozen dataclass in a module of its own.

    Attributes:
        key: the name by which the metric is asked for.
        lower_is_better: True for error rates.
    """

    key: ClassVar[str]
    lower_is_better: ClassVar[bool] = False

    @property
    def threads(self) -> bool:
        """Whether threads can score side by side; if not, it takes processes."""
        return False

    @abstractmethod
    def judge(self, streams: Streams | None = None, *, sentence: bool = False) -> Any:
        """Return sacreBLEU's metric with these settings.

        Args:
            streams: references to be kept in it.
            sentence: whether single sentences will be scored, not a corpus.
        """

    def details(self, score: Any) -> Mapping[str, float | tuple[float, ...]]:
        """Return what one of sacreBLEU's scores says beside its value."""
        return {}

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return sacreBLEU's signature; the number of references is part of it."""
        judge = self.judge(sentence=sentence)
        counts = {len(refs) for refs in references}
        judge.num_refs = counts.pop() if len(counts) == 1 else -1
        return str(judge.get_signature())

    def corpus(self, hypotheses: Sequence[str], references: References) -> Score:
        """Return the corpus score of one hypothesis a sentence."""
        score = self.judge().corpus_score(hypotheses, streams_of(references))
        signature = self.signature(references)
        return Score(score.score, self.key, score.name, signature, self.details(score))

    def sentences(
        self, lists: Sequence[Sequence[str]], references: References, *, only_best: bool
    ) -> Float64:
        """Return the sentence score of each hypothesis of some lists, one list after the other.

        Args:
            lists: the hypotheses of each sentence.
            references: one tuple a sentence.
            only_best: hypotheses that cannot be the best of their list may get an infinitely bad
                score instead of their own.
        """
        scores = []
        for hypotheses, refs in zip(lists, references, strict=True):
            judge = self.judge(streams_of([refs]), sentence=True)
            scores += [judge.corpus_score([text], None).score for text in hypotheses]
        return np.array(scores, dtype=np.float64)
