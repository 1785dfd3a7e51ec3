"""chrF (Popović, 2015) and chrF++ (Popović, 2017), as sacreBLEU defines them."""

from __future__ import annotations

from typing import Any, ClassVar

from bpa_ppl.component import Count, CountOrNone
from bpa_ppl.quality.base import SacreMetric


class CHRF(SacreMetric, frozen=True):
    """chrF, in percent.

    Args:
        char_order: length of the longest character n-grams, at least 1.
        word_order: length of the longest word n-grams; 2 for chrF++.
        beta: the weight of recall relative to precision, at least 1.

    Raises:
        UsageError: if a value is out of range.

    >>> CHRF(word_order=2)
    CHRF(char_order=6, word_order=2, beta=2)
    """

    key: ClassVar[str] = "chrf"
    char_order: Count = 6
    word_order: CountOrNone = 0
    beta: Count = 2

    def scorer(self, streams: list[Any] | None = None, *, sentence: bool = False) -> Any:
        """Return sacreBLEU's chrF with these settings; it scores a sentence as a corpus."""
        from sacrebleu import metrics

        return metrics.CHRF(**self.settings(), references=streams)
