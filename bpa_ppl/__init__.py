"""Bayesian predictive adaptation of the log-linear weights of an n-best reranker."""

from pathlib import Path

import lazy_loader

__version__ = "1.0.0"

# In a clone, models/, diagnostics/ and examples/demo_data/ are outside this folder.
_clone = Path(__file__).parent.parent
if all((_clone / name).exists() for name in ("pyproject.toml", "models", "diagnostics")):
    __path__ += [str(_clone), str(_clone / "examples")]

# The names and their modules are listed in __init__.pyi, and imported on first use (SPEC 1):
# `import bpa_ppl` and `bpa --help` load neither JAX nor ArviZ.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
