"""Bayesian predictive adaptation of the log-linear weights of an n-best reranker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bpa_ppl.lazily import lazily

if TYPE_CHECKING:
    from bpa_ppl import decoding as decoding
    from bpa_ppl import diagnostics as diagnostics
    from bpa_ppl import experiments as experiments
    from bpa_ppl import features as features
    from bpa_ppl import models as models
    from bpa_ppl import phrases as phrases
    from bpa_ppl import posterior as posterior
    from bpa_ppl import quality as quality
    from bpa_ppl import sampling as sampling
    from bpa_ppl import tuning as tuning
    from bpa_ppl.decoding import Reranked, next_sentences, rerank
    from bpa_ppl.diagnostics import Report, check, compare_baselines
    from bpa_ppl.errors import BpaError, BpaWarning, DataError, NotConverged, UsageError
    from bpa_ppl.features import add_features
    from bpa_ppl.formats import (
        iter_nbest,
        read_nbest,
        read_references,
        read_weights,
        write_nbest,
        write_weights,
    )
    from bpa_ppl.models import Prior
    from bpa_ppl.nbest import NBest
    from bpa_ppl.posterior import Draws, as_draws, point_weights, read_posterior, write_posterior
    from bpa_ppl.quality import Oracles, corpus_score, gains, oracles
    from bpa_ppl.sampling import adapt, learn_prior
    from bpa_ppl.tuning import Reestimation, reestimate
    from bpa_ppl.updating import update
    from bpa_ppl.weights import Weights

# Public name -> module that defines it. Loaded on first use, so that `import bpa_ppl` and
# `bpa --help` do not pay for JAX and ArviZ.
_PUBLIC = {
    "BpaError": "errors",
    "BpaWarning": "errors",
    "DataError": "errors",
    "Draws": "posterior",
    "NBest": "nbest",
    "NotConverged": "errors",
    "Oracles": "quality",
    "Prior": "models",
    "Reestimation": "tuning",
    "Report": "diagnostics",
    "Reranked": "decoding",
    "UsageError": "errors",
    "Weights": "weights",
    "adapt": "sampling",
    "add_features": "features",
    "as_draws": "posterior",
    "check": "diagnostics",
    "compare_baselines": "diagnostics",
    "corpus_score": "quality",
    "gains": "quality",
    "iter_nbest": "formats",
    "learn_prior": "sampling",
    "next_sentences": "decoding",
    "oracles": "quality",
    "point_weights": "posterior",
    "read_nbest": "formats",
    "read_posterior": "posterior",
    "read_references": "formats",
    "read_weights": "formats",
    "reestimate": "tuning",
    "rerank": "decoding",
    "update": "updating",
    "write_nbest": "formats",
    "write_posterior": "posterior",
    "write_weights": "formats",
}

# Rooms that `bpa.models` and the like load when they are first named.
_ROOMS = (
    "decoding",
    "diagnostics",
    "experiments",
    "features",
    "models",
    "phrases",
    "posterior",
    "quality",
    "sampling",
    "tuning",
)

__all__ = [
    "BpaError",
    "BpaWarning",
    "DataError",
    "Draws",
    "NBest",
    "NotConverged",
    "Oracles",
    "Prior",
    "Reestimation",
    "Report",
    "Reranked",
    "UsageError",
    "Weights",
    "adapt",
    "add_features",
    "as_draws",
    "check",
    "compare_baselines",
    "corpus_score",
    "gains",
    "iter_nbest",
    "learn_prior",
    "next_sentences",
    "oracles",
    "point_weights",
    "read_nbest",
    "read_posterior",
    "read_references",
    "read_weights",
    "reestimate",
    "rerank",
    "update",
    "write_nbest",
    "write_posterior",
    "write_weights",
]
__version__ = "0.1.0"

# In a clone, models/, diagnostics/ and examples/demo_data/ are outside this folder.
_clone = Path(__file__).parent.parent
if all((_clone / name).exists() for name in ("pyproject.toml", "models", "diagnostics")):
    __path__ += [str(_clone), str(_clone / "examples")]

if not TYPE_CHECKING:  # a type checker knows all names, and finds those that are misspelt
    __getattr__, __dir__ = lazily(__name__, {**_PUBLIC, **dict.fromkeys(_ROOMS, "")})
