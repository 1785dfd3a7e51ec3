"""Public names; `__init__.py` imports each from its module on first use."""

from .base import (
    METRICS as METRICS,
    Averaged as Averaged,
    Metric as Metric,
    Score as Score,
    resolve as resolve,
)
from .bleu import (
    BLEU as BLEU,
)
from .chrf import (
    CHRF as CHRF,
)
from .column import (
    Column as Column,
)
from .oracle import (
    Oracles as Oracles,
    headroom as headroom,
    oracles as oracles,
)
from .rater_agreement import (
    agreement as agreement,
)
from .scoreboard import (
    compared as compared,
)
from .scoring import (
    corpus_score as corpus_score,
    gains as gains,
)
from .ter import (
    TER as TER,
)
from .wer import (
    WER as WER,
)
