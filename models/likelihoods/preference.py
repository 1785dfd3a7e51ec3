"""Preferences: pairs, ties, choices and rankings of candidates, as a judge gives them."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from msgspec import Meta
from numpyro.distributions.util import validate_sample

from bpa_ppl.component import NotNegative, Positive
from bpa_ppl.errors import UsageError
from bpa_ppl.models.choice import OracleChoice
from bpa_ppl.models.likelihoods.base import Likelihood, with_gains
from bpa_ppl.models.lists import Bucket, Lists

#: The site of the logarithm of Davidson's ν.
LOG_NU = "log_nu"
#: Below 1: a judge who always slips says nothing.
Slip = Annotated[float, Meta(ge=0, lt=1)]


class Preference(Likelihood, frozen=True):
    """Candidates were compared: Bradley–Terry pairs, Plackett–Luce rankings, Davidson's ties.

    With s = λ·h, p(i preferred to j) = e^{s_i} / (e^{s_i} + e^{s_j}), and a ranking is a sequence
    of choices, each the best of the candidates that are left. Where "no difference" was among the
    answers to a pair, p(i) : p(j) : p(tie) = e^{s_i} : e^{s_j} : ν √(e^{s_i} e^{s_j}) (Davidson
    1970). With probability ε the judge slips and gives any of the n possible answers: p is then
    (1 − ε) p + ε / n. Log-concave in λ and log ν where ε is 0.

    Lists come from `bpa_ppl.quality.choice_sets`: the gain of a row is 1 where it stands for "no
    difference", else 0.

    Args:
        slip: ε, from 0 to below 1.
        nu: ν; twice the odds of a tie between equals. None infers it where there are ties, with a
            standard normal prior of its logarithm, the site `log_nu`; without any tie in the data
            "no difference" is then taken as no possible answer.

    >>> Preference(slip=0.1).start(), Preference(nu=0.5).start()
    (Preference(slip=0.0, nu=None), None)
    """

    needs_gains = True
    generative = True
    compares = True
    slip: Slip = 0.0
    nu: Positive | None = None

    def start(self) -> Likelihood | None:
        """Return the likelihood of a judge who never slips; None where this is one."""
        return Preference(nu=self.nu) if self.slip else None

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Add log ν to the scores of the ties, or leave in place of the gains where it belongs.

        Raises:
            UsageError: if the lists were laid out without gains.
        """
        relative = [_ties(bucket) for bucket in with_gains(lists, "preference")]
        free = self.nu is None and any(ties.any() for ties in relative)
        buckets = []
        for bucket, ties in zip(lists.buckets, relative, strict=True):
            base = bucket.base if free else bucket.base + np.log(self.nu or 1.0) * ties
            count = np.array(bucket.count)
            count[..., 0] += ~(count > 0).any(axis=-1)  # a sentence of no list has one outcome
            buckets.append(
                bucket._replace(
                    base=base.astype(np.float32),
                    gain=ties.astype(np.float32) if free else None,
                    count=count if self.slip else None,
                )
            )
        return lists._replace(buckets=tuple(buckets)), _Compared(slip=self.slip, ties=free)


def _ties(bucket: Bucket) -> Any:
    """Return 1 for ties where row 0 is none, −1 for the others where it is one, else 0."""
    used = bucket.hypothesis >= 0
    return np.where(used, bucket.gain.astype(np.float64) - bucket.gain[..., :1], 0.0)


class _Compared(Likelihood, frozen=True):
    """What observes prepared lists.

    Args:
        slip: ε.
        ties: whether log ν is a parameter; `Bucket.gain` then says how often it enters a score.
        log_nu: its value, within a run of the model.
    """

    generative = True
    slip: NotNegative
    ties: bool
    log_nu: Any = None

    def sample_parameters(self) -> Likelihood:
        """Sample log ν, where it is a parameter."""
        if not self.ties:
            return self
        log_nu = numpyro.sample(LOG_NU, dist.Normal(0.0, 1.0))
        return _Compared(slip=self.slip, ties=True, log_nu=log_nu)

    def observe(self, lists: Lists, weights: Any) -> None:
        """State which candidate was chosen from each list; the site is `oracle`, (S,)."""
        if self.ties:
            if self.log_nu is None:
                raise UsageError(
                    "the likelihood preference has a parameter of its own, log_nu: a model calls "
                    "likelihood = likelihood.sample_parameters() before its plate, or give ν as a "
                    "number (nu)"
                )
            lists, weights = _with_log_nu(lists, weights, self.log_nu)
        choice = (
            SlippingChoice(lists, weights, self.slip) if self.slip else OracleChoice(lists, weights)
        )
        numpyro.sample("oracle", choice, obs=lists.oracle)


def _with_log_nu(lists: Lists, weights: Any, log_nu: Any) -> tuple[Lists, jax.Array]:
    """Return lists with one more feature, how often log ν enters a score, and its weight log ν."""
    buckets = tuple(
        bucket._replace(
            features=jnp.concatenate([bucket.features, bucket.gain[:, None]], axis=1), gain=None
        )
        for bucket in lists.buckets
    )
    weights = jnp.asarray(weights)
    own = jnp.broadcast_to(log_nu, (*weights.shape[:-1], 1)).astype(weights.dtype)
    return lists._replace(buckets=buckets), jnp.concatenate([weights, own], axis=-1)


class SlippingChoice(OracleChoice):
    """The choice among the rows of each list by a judge who slips with probability ε.

    p = (1 − ε) p(e | f, λ) + ε / n, where n is the number of possible answers; batch shape (S,).

    Args:
        lists: from `tabulate`, with the number of derivations of each row.
        weights: as for `OracleChoice`.
        slip: ε, above 0 and below 1.
    """

    pytree_aux_fields = ("slip",)

    def __init__(
        self, lists: Lists, weights: Any, slip: float, *, validate_args: bool | None = None
    ):
        self.slip = slip
        super().__init__(lists, weights, validate_args=validate_args)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw a row of each list, (*sample_shape, S)."""
        meant, slips, *keys = jax.random.split(key, 2 + len(self.lists.buckets))
        chosen = super().sample(meant, sample_shape)
        any_row = jnp.concatenate(
            [
                jax.random.categorical(
                    own, jnp.log(bucket.count), shape=(*sample_shape, *bucket.count.shape[:2])
                ).reshape(*sample_shape, -1)
                for own, bucket in zip(keys, self.lists.buckets, strict=True)
            ],
            axis=-1,
        )
        return jnp.where(jax.random.bernoulli(slips, self.slip, chosen.shape), any_row, chosen)

    @validate_sample  # type: ignore[untyped-decorator]
    def log_prob(self, value: jax.Array) -> jax.Array:
        """Return log p of the rows at the positions `value`, (S,)."""
        meant: jax.Array = super().log_prob(value)
        shares, first = [], 0
        for bucket in self.lists.buckets:
            blocks, sentences = bucket.count.shape[:2]
            at = value[first : first + blocks * sentences].reshape(blocks, sentences, 1)
            first += blocks * sentences
            count = jnp.take_along_axis(bucket.count, at, axis=2)[..., 0]
            shares.append((count / bucket.count.sum(axis=-1)).reshape(-1))
        by_chance = jnp.log(self.slip * jnp.concatenate(shares)).astype(meant.dtype)
        return jnp.logaddexp(np.log1p(-self.slip) + meant, by_chance)
