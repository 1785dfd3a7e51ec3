"""Public names; `__init__.py` imports each from its module on first use."""

from .outputs import (
    AlignedWriter as AlignedWriter,
    Summary as Summary,
    rerank_to as rerank_to,
    write_texts as write_texts,
)
from .predictions import (
    Candidate as Candidate,
    Predictions as Predictions,
)
from .reranking import (
    Reranked as Reranked,
    Reranker as Reranker,
    rerank as rerank,
)
from .rules import (
    RULES as RULES,
    Rule as Rule,
)
