"""Likelihood: how probable the adaptation sentences are, given weights."""

from __future__ import annotations

from typing import Any, ClassVar

from bpa_ppl.component import Component
from bpa_ppl.models.lists import Lists


class Likelihood(Component, frozen=True):
    """p(A | λ), or what stands for it, as a factor for each adaptation sentence.

    Attributes:
        needs_gains: whether it looks at what each hypothesis is worth (`Bucket.gain`), not only at
            which one is the oracle.
    """

    needs_gains: ClassVar[bool] = False

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Fold the settings into the lists, once and in NumPy, as far as they are constants.

        What is folded in needs no compilation of its own when a setting changes.

        Returns:
            the lists to condition on, and the likelihood that observes those.
        """
        return lists, self

    def observe(self, lists: Lists, weights: Any) -> None:
        """State in NumPyro what was observed, within a plate over sentences.

        Args:
            lists: from `prepare`.
            weights: (Q,) λ of the free features, or (K, Q), those of each domain.
        """
        raise NotImplementedError
