"""Rated lists and preferences together: one posterior of the same weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import handlers

from bpa_ppl.component import Count
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.lists import Lists


class Mixed(Likelihood, frozen=True):
    """log p = log p(rated lists | λ) + log p(preferences | λ), a likelihood for each kind of list.

    For lists from `joined`. `adapt` makes it where lists with gains carry preferences too, and it
    has no name.

    Args:
        rated: the likelihood of the rated lists.
        compared: that of the preferences.
        buckets: how many buckets hold rated lists: the first ones.

    >>> from bpa_ppl.models import Margin, Preference
    >>> Mixed(rated=Margin(gamma=2.0), compared=Preference(), buckets=1).start() is None
    True
    """

    rated: Any
    compared: Any
    buckets: Count

    def start(self) -> Likelihood | None:
        """Return the likelihood with log-concave parts; None where both are."""
        rated, compared = self.rated.start(), self.compared.start()
        if rated is None and compared is None:
            return None
        return self._of(rated or self.rated, compared or self.compared)

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Fold the settings of both likelihoods into their lists.

        Raises:
            UsageError: if the lists were laid out without the gains that one of them needs.
        """
        rated, compared = _apart(lists, self.buckets)
        prepared, observing = self.rated.prepare(rated)
        others, comparing = self.compared.prepare(compared)
        buckets = (*prepared.buckets, *others.buckets)
        return lists._replace(buckets=buckets), self._of(observing, comparing)

    def sample_parameters(self) -> Likelihood:
        """Sample the parameters of both likelihoods."""
        return self._of(self.rated.sample_parameters(), self.compared.sample_parameters())

    def observe(self, lists: Lists, weights: Any) -> None:
        """State what was observed of either kind; the site is `oracle`, (S,)."""
        parts = zip((self.rated, self.compared), _apart(lists, self.buckets), strict=True)
        found = [_log_likelihood(likelihood, part, weights) for likelihood, part in parts]
        numpyro.factor("oracle", jnp.concatenate(found))

    def _of(self, rated: Likelihood, compared: Likelihood) -> Mixed:
        return Mixed(rated=rated, compared=compared, buckets=self.buckets)


def joined(rated: Lists, compared: Lists) -> Lists:
    """Return rated lists and choices in one table: their buckets, one after the other.

    >>> from bpa_ppl import NBest
    >>> from bpa_ppl.models import in_order, tabulate
    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a", "b"]], [[[1.0], [3.0]]], ["LM0"])
    >>> one = tabulate(nbest, match({"LM0": 0.5}, nbest))
    >>> in_order(joined(one, one)).tolist()
    [0, 1]
    """
    before = int(np.max(rated.sentence)) + 1
    sentence = np.where(compared.sentence < 0, -1, compared.sentence + before)
    return Lists(
        (*rated.buckets, *compared.buckets),
        np.concatenate([rated.oracle, compared.oracle]),
        np.concatenate([rated.sentence, sentence]).astype(np.int32),
        np.concatenate([rated.domain, compared.domain]),
    )


def _apart(lists: Lists, buckets: int) -> tuple[Lists, Lists]:
    """Return the rated lists and the choices."""
    first, others = lists.buckets[:buckets], lists.buckets[buckets:]
    count = sum(bucket.base.shape[0] * bucket.base.shape[1] for bucket in first)
    of_sentences = (lists.oracle, lists.sentence, lists.domain)
    return (
        Lists(first, *(column[:count] for column in of_sentences)),
        Lists(others, *(column[count:] for column in of_sentences)),
    )


def _log_likelihood(likelihood: Likelihood, lists: Lists, weights: Any) -> jax.Array:
    """Return what a likelihood adds to the log density for each of some lists, (S,)."""
    # The plate of the model is of all lists: it must not see the sites of one kind.
    with handlers.block(), handlers.trace() as sites:
        likelihood.observe(lists, weights)
    total: jax.Array = sum(site["fn"].log_prob(site["value"]) for site in sites.values())
    return total
