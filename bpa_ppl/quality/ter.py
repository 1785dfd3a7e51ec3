"""TER (Snover et al., 2006), as sacreBLEU defines it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bpa_ppl.quality.base import Metric, Streams


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

    def judge(self, streams: Streams | None, *, sentence: bool) -> Any:
        """Return sacreBLEU's TER with these settings; it scores a sentence as a corpus."""
        from sacrebleu import metrics

        return metrics.TER(
            normalized=self.normalized,
            no_punct=self.no_punct,
            asian_support=self.asian_support,
            case_sensitive=self.case_sensitive,
            references=streams,
        )

    def details(self, score: Any) -> Mapping[str, float | tuple[float, ...]]:
        """Return the edits and the reference length (words), summed over the sentences."""
        return {"edits": score.num_edits, "reference_length": score.ref_length}
