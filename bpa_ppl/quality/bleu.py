"""BLEU (Papineni et al., 2002), as sacreBLEU defines it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bpa_ppl.errors import one_of
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.references import Streams

#: sacreBLEU's tokenisers that need no further package or download.
TOKENISERS = ("none", "13a", "intl", "char", "zh")
SMOOTHINGS = ("exp", "floor", "add-k", "none")

#: The longest n-grams that BLEU counts.
ORDER = 4


@dataclass(frozen=True)
class BLEU(Metric):
    """Settings of BLEU; up to four-grams, in percent.

    Sentences are scored with effective order, a corpus without, as sacreBLEU advises.

    Args:
        tokenize: sacreBLEU's tokeniser; "none", because n-best lists are tokenised already.
        lowercase: whether case is ignored.
        smoothing: of n-gram orders without a match (Chen and Cherry, 2014).

    Raises:
        UsageError: if the tokeniser or the smoothing is unknown.

    >>> BLEU(lowercase=True)
    BLEU(tokenize='none', lowercase=True, smoothing='exp')
    """

    key: ClassVar[str] = "bleu"
    tokenize: str = "none"
    lowercase: bool = False
    smoothing: str = "exp"

    def __post_init__(self) -> None:
        one_of(self.tokenize, TOKENISERS, "tokeniser")
        one_of(self.smoothing, SMOOTHINGS, "smoothing")

    def judge(self, streams: Streams | None = None, *, sentence: bool = False) -> Any:
        """Return sacreBLEU's BLEU with these settings."""
        from sacrebleu import metrics

        return metrics.BLEU(
            lowercase=self.lowercase,
            force=True,
            tokenize=self.tokenize,
            smooth_method=self.smoothing,
            effective_order=sentence,
            references=streams,
        )

    def details(self, score: Any) -> Mapping[str, float | tuple[float, ...]]:
        """Return precisions (percent), brevity penalty, length ratio and lengths (words)."""
        return {
            "precisions": tuple(score.precisions),
            "brevity_penalty": score.bp,
            "length_ratio": score.ratio,
            "hypothesis_length": score.sys_len,
            "reference_length": score.ref_len,
        }
