"""chrF (Popović, 2015) and chrF++ (Popović, 2017), as sacreBLEU defines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bpa_ppl.errors import UsageError
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.references import Streams


@dataclass(frozen=True)
class CHRF(Metric):
    """Settings of chrF, in percent.

    Args:
        char_order: longest character n-gram, at least 1.
        word_order: longest word n-gram; 2 makes it chrF++.
        beta: how many times recall counts for precision, at least 1.

    Raises:
        UsageError: if a value is out of range.

    >>> CHRF(word_order=2)
    CHRF(char_order=6, word_order=2, beta=2)
    """

    key: ClassVar[str] = "chrf"
    char_order: int = 6
    word_order: int = 0
    beta: int = 2

    def __post_init__(self) -> None:
        for name, least in (("char_order", 1), ("word_order", 0), ("beta", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} of chrF is {getattr(self, name)}: at least {least}")

    def judge(self, streams: Streams | None = None, *, sentence: bool = False) -> Any:
        """Return sacreBLEU's chrF with these settings; it scores a sentence as a corpus."""
        from sacrebleu import metrics

        return metrics.CHRF(
            char_order=self.char_order,
            word_order=self.word_order,
            beta=self.beta,
            references=streams,
        )
