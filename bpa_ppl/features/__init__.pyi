"""Public names; `__init__.py` imports each from its module on first use."""

from .base import (
    Added as Added,
    FeatureSource as FeatureSource,
    add_features as add_features,
    feature_adder as feature_adder,
    of_each_string as of_each_string,
    resolve_sources as resolve_sources,
)
from .consensus import (
    Consensus as Consensus,
)
from .indicators import (
    Indicators as Indicators,
)
from .invariance import (
    Invariance as Invariance,
)
from .length import (
    Length as Length,
)
from .lexicon import (
    Lexicon as Lexicon,
)
from .lm import (
    LanguageModel as LanguageModel,
)
from .neural import (
    EmbeddingSimilarity as EmbeddingSimilarity,
    QualityEstimate as QualityEstimate,
)
from .phrases import (
    PhraseMixture as PhraseMixture,
)
