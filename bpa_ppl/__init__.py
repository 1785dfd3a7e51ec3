"""Bayesian predictive adaptation of the log-linear weights of an n-best reranker."""

from importlib.util import find_spec

from bpa_ppl._runtime.lazy import attach_stub

__version__ = "1.0.0"

if find_spec("bpa_ppl.models") is None:  # in a clone they are next to this folder
    raise ImportError(
        "Python found the source folder of bpa_ppl, which is only a part of it: run "
        "`pip install --editable .` in the clone, or start Python in another folder"
    )

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
