"""Likelihood: how probable the adaptation sentences are, given weights."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bpa_ppl.component import Component
from bpa_ppl.errors import UsageError
from bpa_ppl.models.lists import Bucket, Lists
from bpa_ppl.nbest import Float64


class Likelihood(Component, frozen=True):
    """p(A | λ), or what stands for it, as a factor for each adaptation sentence.

    Settings that are None are left open: `scaled` decides them, in the unit of the gain.

    Attributes:
        needs_gains: whether it looks at what each hypothesis is worth (`Bucket.gain`), not only at
            which one is the oracle.
        generative: whether it is a distribution of the observed row, which can be simulated; it
            then observes a site called `oracle`.
        compares: whether it observes preferences, laid out by `bpa_ppl.quality.choice_sets`, in
            place of the oracles of the lists.

    >>> from bpa_ppl.registry import LIKELIHOODS
    >>> likely = LIKELIHOODS.resolve("margin", {"gamma": 1.5})
    >>> likely.settings(), likely.needs_gains, likely.generative
    ({'gamma': 1.5}, True, False)
    """

    needs_gains: ClassVar[bool] = False
    generative: ClassVar[bool] = False
    compares: ClassVar[bool] = False

    def scaled(self, edit: float) -> Likelihood:
        """Return the likelihood with a number for every setting that was left open.

        Args:
            edit: how much of the gain is as much as one edit: 1 for TER; for any other gain its
                standard deviation within the lists, since that of edits is about one (1.0 to 1.14
                on three domains).
        """
        return self

    def start(self) -> Likelihood | None:
        """Return a log-concave likelihood at whose mode the search for this one's begins.

        None where this one is log-concave itself, so that the search may begin anywhere.
        """
        return None

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Fold the settings into the lists, once and in NumPy, as far as they are constants.

        What is folded in needs no compilation of its own when a setting changes.

        Returns:
            the lists to condition on, and the likelihood that observes those.
        """
        return lists, self

    def sample_parameters(self) -> Likelihood:
        """Sample the parameters of the likelihood itself, and return it with their values.

        A model calls it before the plate over sentences. Most likelihoods have no parameter.
        """
        return self

    def observe(self, lists: Lists, weights: Any) -> None:
        """State in NumPyro what was observed, within a plate over sentences.

        Args:
            lists: from `prepare`.
            weights: (Q,) λ of the free features, or (K, Q), those of each domain.
        """
        raise NotImplementedError


def decided(value: float) -> float:
    """Return a setting as it is recorded, in three digits.

    >>> decided(2 / 0.7461)
    2.68
    """
    return float(f"{value:.3g}")


def with_gains(lists: Lists, name: str) -> tuple[Bucket, ...]:
    """Return the buckets of lists that were laid out with gains.

    Raises:
        UsageError: if they were not.
    """
    if any(bucket.gain is None for bucket in lists.buckets):
        raise UsageError(f"the likelihood {name} needs gains: give them to tabulate")
    return lists.buckets


def worse(bucket: Bucket) -> Float64:
    """Return how much less the rows of each list are worth than its best one, (B, S, N).

    Rows beyond the list are as good as it, so that nothing depends on them.
    """
    used = bucket.hypothesis >= 0
    gain = np.where(used, bucket.gain.astype(np.float64), -np.inf)
    best = gain.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):  # a sentence of no list has no best hypothesis
        return np.asarray(np.where(used, best - gain, 0.0))
