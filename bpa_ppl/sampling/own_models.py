"""What a model of a user may not contain: found while NumPyro runs it, and said in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from numpyro.distributions import ImproperUniform
from numpyro.primitives import Messenger

from bpa_ppl.errors import BpaError, UsageError
from bpa_ppl.posterior.draws import WEIGHTS

#: The plate over the sentences.
SENTENCE = "sentence"


def model_error(problem: str, code: str) -> UsageError:
    """Return the error of a model that cannot be sampled."""
    return UsageError(problem, parameter="model", code=code)


class CheckedSites(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Refuses sites and plates that samplers cannot use, as soon as a model reaches them.

    Args:
        model: a NumPyro program.
        features: the number of free features.
        sentences: the number of sentences.

    >>> import numpyro
    >>> model = CheckedSites(lambda: numpyro.param("scale", 1.0), features=2, sentences=5)
    >>> model()
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: the site scale of the model is a numpyro.param, which has no ...
    """

    def __init__(self, model: Callable[..., Any], features: int, sentences: int):
        self._features, self._sentences = features, sentences
        self._names = set[str]()
        super().__init__(model)

    def __enter__(self) -> CheckedSites:
        self._names.clear()
        super().__enter__()
        return self

    def process_message(self, site: dict[str, Any]) -> None:
        """Refuse a site before NumPyro draws its value."""
        kind, name = site["type"], site.get("name")
        if kind in ("param", "mutable"):
            problem = "no posterior: draw it with numpyro.sample, or make it a constant"
            raise model_error(
                f"the site {name} of the model is a numpyro.{kind}, which has {problem}",
                "not-supported",
            )
        if kind == "plate":
            self._check_plate(name, *site["args"])
        if kind in ("sample", "deterministic"):
            if name in self._names:
                problem = f"the model has two sites {name}: give each site its own name"
                raise model_error(problem, "duplicate")
            self._names.add(str(name))
        if kind == "sample" and not site["is_observed"] and _is_improper(site["fn"]):
            raise model_error(
                f"the site {name} of the model has an improper prior, from which nothing can be "
                "drawn: give it a wide proper one, such as numpyro.distributions.Normal(0, 10)",
                "not-supported",
            )

    def postprocess_message(self, site: dict[str, Any]) -> None:
        """Refuse weights of another shape than one value for each free feature."""
        if site.get("name") == WEIGHTS and site["type"] in ("sample", "deterministic"):
            require_shape(np.shape(site["value"]), self._features)

    def _check_plate(self, name: Any, size: int, subsample_size: int | None) -> None:
        if subsample_size not in (None, size):
            problem = f"the plate {name} of the model has a subsample_size: leave it out, because"
            raise model_error(f"{problem} samplers need the density of all data", "not-supported")
        if name == SENTENCE and size != self._sentences:
            raise model_error(
                f"the plate {SENTENCE} of the model has {size} members, but there are "
                f"{self._sentences} sentences: write numpyro.plate('{SENTENCE}', "
                "len(lists.oracle))",
                "mismatch",
            )


def require_shape(shape: tuple[int, ...] | None, features: int) -> None:
    """Raise a UsageError unless the site `weights` has one value for each free feature.

    Args:
        shape: of the site; None if there is none.
        features: the number of free features.
    """
    if shape != (features,):
        problem = "it has no such site" if shape is None else f"its shape is {shape}"
        needed = f"the model needs a site `weights` of shape ({features},)"
        raise UsageError(
            f"{needed}, one value for each of the {features} free features: {problem}",
            parameter="model",
        )


def _is_improper(distribution: Any) -> bool:
    while hasattr(distribution, "base_dist"):
        distribution = distribution.base_dist
    return isinstance(distribution, ImproperUniform)


@contextmanager
def explained(model: Any) -> Iterator[None]:
    """Raise the errors of a model, while it is traced, as errors that name the model.

    Raises:
        UsageError: if the model raises any exception; its cause is that exception.
    """
    try:
        yield
    except BpaError:
        raise
    except Exception as error:
        name = getattr(model, "__name__", str(model))
        text = " ".join(str(error).split("\n", 1)[0].split()) or "no message"
        remedy = "the line is in the traceback of this cause"
        if isinstance(error, jax.errors.JAXTypeError):
            remedy = (
                "a model is compiled, so it has the same sites whatever their values are, and "
                "computes with jax.numpy: use jnp.where in place of if, and jnp in place of np"
            )
        problem = f"the model {name} failed with {type(error).__name__}: {text.rstrip('.')}"
        raise model_error(f"{problem}; {remedy}", "not-supported") from error
