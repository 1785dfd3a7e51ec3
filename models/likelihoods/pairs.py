"""Pairs: a composite likelihood of graded gains, from the comparisons of all pairs of a list."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from bpa_ppl._runtime.arrays import Float32
from bpa_ppl.components import NotNegative, Positive
from bpa_ppl.models.likelihoods.likelihood import (
    Likelihood,
    Observations,
    OfOracles,
    ScoreFactor,
    buckets_with,
    round_setting,
)
from bpa_ppl.models.likelihoods.lists import Lists

if TYPE_CHECKING:
    import jax

#: Up to twice as many candidates are all compared with each other; of more, each is compared with
#: at most twice as many others.
_WIDEST_STEP = 20


class Pairs(OfOracles, frozen=True):
    """log p_a = (2 c / k) Σ log σ(λ·(h_i − h_j)), over the pairs of a list with gain_i > gain_j.

    A composite likelihood (Varin, Reid & Firth 2011) of Bradley–Terry comparisons: every pair of
    the k candidates of a list counts, so that it uses which candidates are worse, and not only
    which one is best. The comparisons of one list depend on each other. The weight of each, 2 c / k
    with the exponent c = ½, makes a list of k candidates count as (k − 1) / 2 independent ones.
    Log-concave in λ. In lists of more than 40 candidates, and shorter ones in the same table, each
    is compared with at most 40 others at random, and those pairs stand for all.

    Args:
        exponent: c. In simulated rankings intervals are wider than necessary with ½: those of 90 %
            have the true weight in 92 to 99 %. With 1 it is 88 to 97 %, with 1.5 81 to 94 %, and
            with k / 2, as if pairs were independent, 47 to 80 %: docs/results/check-levels.txt.
        power: the weight of a comparison is also multiplied by ((gain_i − gain_j) / unit) ** power.
            With 0 only the order of the gains matters.
        unit: the difference in gain that has the weight 1. None is 1 edit, and for other gains
            their standard deviation within the lists.
        ties: how ties between the best candidates are broken, `canonical` or `shared`; see
            `bpa_ppl.models.likelihoods.likelihood.OfOracles`.

    >>> import numpy as np
    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.models.likelihoods.lists import tabulate
    >>> from bpa_ppl.weights import match
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> lists = tabulate(lists, match({"LM0": 1.0}, lists), [1], gains=[-2.0, 0.0])
    >>> prepared, observing = Pairs(exponent=1.0).prepare(lists)
    >>> import numpyro
    >>> site = numpyro.handlers.trace(observing.observe).get_trace(prepared, np.ones(1))["oracle"]
    >>> site["fn"].log_prob(site["value"]).round(3).tolist()  # log of e / (1 + e)
    [-0.313]
    """

    observes = "gains"
    exponent: Positive = 0.5
    power: NotNegative = 0.0
    unit: Positive | None = None

    def defaults(self, observed: Observations) -> Pairs:
        if observed.edit is None or self.unit or not self.power:
            return self
        return replace(self, unit=round_setting(observed.edit))

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Store gains in units, or their ranks, and weights of candidates.

        The weight of a pair is the product of the weights of its candidates.
        """
        from scipy.stats import rankdata

        buckets = []
        for bucket in map(_shuffle, buckets_with(lists, "gain", "pairs")):
            count = np.asarray(bucket["count"], np.float64)
            used = count > 0
            # Derivations of a row are candidates of their own, so they do not add to its score.
            base = np.where(
                used, bucket["base"] - np.log(np.where(used, count, 1.0)), bucket["base"]
            )
            total = np.maximum(count.sum(axis=-1, keepdims=True), 1.0)
            pairs = (total**2 - (count**2).sum(axis=-1, keepdims=True)) / 2
            compared = np.zeros_like(pairs)
            for step, factor in enumerate(_make_factors(count.shape[-1]), start=1):
                reached = factor * count * np.roll(count, -step, axis=-1)
                compared += reached.sum(axis=-1, keepdims=True)
            represented = pairs / np.where(compared > 0, compared, 1.0)
            share = count * np.sqrt(2 * self.exponent / total * represented)
            if not self.power:
                gain = rankdata(bucket["gain"], method="dense", axis=-1)
            else:
                differences = bucket["gain"] - bucket["gain"][..., :1]
                gain = np.where(used, differences, 0.0) / (self.unit or 1.0)
            tables = {"base": base, "gain": gain, "share": share}
            kind = bucket["base"].dtype
            tables = {name: table.astype(kind) for name, table in tables.items()}
            kept = {name: bucket[name] for name in bucket if name != "count"}
            buckets.append({**kept, **tables})
        observing = ScoreFactor(function=_LogP(self.power), columns=("gain", "share"))
        return lists._replace(buckets=tuple(buckets)), observing


def _shuffle(bucket: dict[str, Any]) -> dict[str, Any]:
    """Return a bucket of long lists with the rows of each list in random order.

    They come sorted by their content and the best one first, so that neighbours would not represent
    all pairs: in a bucket that is wider than the list, the first row has fewer of them.
    """
    width = bucket["base"].shape[-1]
    if width // 2 <= _WIDEST_STEP:
        return bucket
    key = np.random.default_rng(0).random(bucket["base"].shape)
    key[bucket["candidate"] < 0] = 2.0  # beyond the list
    order = np.argsort(key, axis=-1, kind="stable")
    return {
        name: np.take_along_axis(values, order[:, :, None] if name == "features" else order, -1)
        for name, values in bucket.items()
    }


class _LogP(NamedTuple):
    """The function of the scores with a power; equal ones are compiled once."""

    power: float

    def __call__(self, scores: jax.Array, extra: Any) -> tuple[jax.Array, jax.Array]:
        return _log_p_of_pairs(scores, extra, self.power)


def _log_p_of_pairs(
    scores: jax.Array, extra: tuple[jax.Array, jax.Array], power: float
) -> tuple[jax.Array, jax.Array]:
    """Return Σ w log σ(score of the better − score of the worse), and its derivative by scores.

    w also has the difference of the gains to a power as a factor.
    """
    import jax
    import jax.numpy as jnp

    gain, share = extra
    width = scores.shape[-1]
    factor = _make_factors(width)
    twice = [jnp.tile(values, 2) for values in (scores, gain, share)]

    def add_step(total: tuple[jax.Array, jax.Array], step: Any) -> tuple[Any, None]:
        """Add the comparisons of each row r with row r + d, modulo the width."""
        d, of_step = step
        other, other_gain, other_share = (_take_rows(values, d, width) for values in twice)
        better = jnp.sign(gain - other_gain)
        weight = of_step * share * other_share * better**2 * jnp.abs(gain - other_gain) ** power
        lead = better * (scores - other)
        # Not a sum, see choice.py.
        log_p = total[0] - jnp.einsum("sn,sn->s", weight, jax.nn.softplus(-lead))
        slope = weight * better * jax.nn.sigmoid(-lead)
        returned = _take_rows(jnp.tile(slope, 2), width - d, width)
        return (log_p, total[1] + slope - returned), None

    start = jnp.zeros_like(scores[:, 0]), jnp.zeros_like(scores)
    return jax.lax.scan(add_step, start, (jnp.arange(1, len(factor) + 1), factor))[0]


def _take_rows(values: jax.Array, first: jax.Array, count: int) -> jax.Array:
    import jax

    return jax.lax.dynamic_slice_in_dim(values, first, count, axis=1, allow_negative_indices=False)


@cache
def _make_factors(width: int) -> Float32:
    """Return the factor of the comparisons of all rows r and r + d, for the steps d from 1.

    Up to half of the width these are all pairs, and half of it reaches each pair twice.

    >>> _make_factors(4).tolist(), _make_factors(5).tolist()
    ([1.0, 0.5], [1.0, 1.0])
    """
    steps = np.arange(1, min(width // 2, _WIDEST_STEP) + 1)
    return np.where(2 * steps == width, 0.5, 1.0).astype(np.float32)
