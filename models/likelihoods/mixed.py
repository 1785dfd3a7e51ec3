"""Judged lists and preferences together: one posterior of the same weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.component import Count
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.models.lists import Lists

if TYPE_CHECKING:
    import jax


class Mixed(Likelihood, frozen=True):
    """log p = log p(judged lists | λ) + log p(preferences | λ), each with its own likelihood.

    For lists from `join_lists`. `adapt` uses it for lists that have both gains and preferences; it
    cannot be chosen by name. Weights and raters are those of the preferences.

    Args:
        judged: the likelihood of the judged lists.
        preferences: that of the preferences.
        buckets: how many buckets hold judged lists: the first ones.

    >>> from bpa_ppl.models import Margin
    >>> mixed = Mixed(judged=Margin(gamma=2.0), preferences=Preference(), buckets=1)
    >>> mixed.log_concave_start() is None
    True
    """

    dims = Preference.dims
    judged: Any
    preferences: Any
    buckets: Count

    def log_concave_start(self) -> Likelihood | None:
        """Return the likelihood with log-concave parts; None if both are log-concave."""
        judged = self.judged.log_concave_start()
        preferences = self.preferences.log_concave_start()
        if judged is None and preferences is None:
            return None
        return self._with(judged or self.judged, preferences or self.preferences)

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Fold the settings of both likelihoods into their lists.

        Raises:
            UsageError: if the lists were tabulated without gains and one likelihood needs them.
        """
        judged, preferences = self._split(lists)
        judged, of_judged = self.judged.prepare(judged)
        preferences, of_preferences = self.preferences.prepare(preferences)
        buckets = (*judged.buckets, *preferences.buckets)
        rater = None if preferences.rater is None else lists.rater
        prepared = lists._replace(buckets=buckets, rater=rater)
        return prepared, self._with(of_judged, of_preferences)

    def sample_parameters(self) -> Likelihood:
        """Sample the parameters of both likelihoods."""
        return self._with(self.judged.sample_parameters(), self.preferences.sample_parameters())

    def observe(self, lists: Lists, weights: Any) -> None:
        """Observe both kinds of lists; the site is `oracle`, (S,)."""
        import jax.numpy as jnp
        import numpyro
        from numpyro import handlers

        log_p: list[jax.Array] = []
        parts = zip((self.judged, self.preferences), self._split(lists), strict=True)
        for likelihood, part in parts:
            # The plate of the model is over all lists, so it must not see the sites of one part.
            with handlers.block(), handlers.trace() as sites:
                likelihood.observe(part, weights)
            log_p.append(sum(site["fn"].log_prob(site["value"]) for site in sites.values()))
        numpyro.factor("oracle", jnp.concatenate(log_p))

    def _with(self, judged: Likelihood, preferences: Likelihood) -> Mixed:
        return Mixed(judged=judged, preferences=preferences, buckets=self.buckets)

    def _split(self, lists: Lists) -> tuple[Lists, Lists]:
        """Return the judged lists and the preferences."""
        first, last = lists.buckets[: self.buckets], lists.buckets[self.buckets :]
        count = sum(bucket["base"].shape[0] * bucket["base"].shape[1] for bucket in first)
        columns = {n: c for n, c in lists._asdict().items() if n != "buckets" and c is not None}
        return (
            Lists(first, **{name: column[..., :count] for name, column in columns.items()}),
            Lists(last, **{name: column[..., count:] for name, column in columns.items()}),
        )


def join_lists(judged: Lists, preferences: Lists) -> Lists:
    """Return judged lists and preferences in one table, with the buckets of both.

    >>> from bpa_ppl import NBest
    >>> from bpa_ppl.models.lists import in_order, tabulate
    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a", "b"]], [[[1.0], [3.0]]], ["LM0"])
    >>> one = tabulate(nbest, match({"LM0": 0.5}, nbest), multiple=2)
    >>> both = join_lists(one, one)
    >>> both.sentence.tolist(), in_order(both).tolist()
    ([0, -1, 1, -1], [0, 2])
    """
    count = int(np.max(judged.sentence)) + 1
    shifted = np.where(preferences.sentence < 0, -1, preferences.sentence + count)
    weight, rater = preferences.weight, preferences.rater
    return Lists(
        (*judged.buckets, *preferences.buckets),
        np.concatenate([judged.oracle, preferences.oracle]),
        np.concatenate([judged.sentence, shifted]).astype(np.int32),
        np.concatenate([judged.domain, preferences.domain]),
        None if weight is None else np.append(np.ones(len(judged.oracle), weight.dtype), weight),
        None if rater is None else np.pad(rater, ((0, 0), (len(judged.oracle), 0))),
    )
