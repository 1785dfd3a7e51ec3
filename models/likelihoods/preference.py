"""Preferences between candidates: pairs, ties, choices and rankings."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from bpa_ppl.components import CountOrNone, Positive
from bpa_ppl.errors import UsageError
from bpa_ppl.models.likelihoods.likelihood import Likelihood, Observations, buckets_with
from bpa_ppl.models.likelihoods.lists import Lists
from bpa_ppl.weight_draws import RATER, SLIP

if TYPE_CHECKING:
    import jax

#: The site of the logarithm of Davidson's ν.
_LOG_NU = "log_nu"
#: The sites of which the slip rates of raters are a function: m and the offsets z.
SLIP_LOCATION, SLIP_OFFSET = "slip_location", "slip_offset"
#: The value of `slip` for a rate of each rater.
RATERS: Literal["raters"] = "raters"
#: A typical rater slips in 10 % of the answers: 0.6 % to 68 % with a probability of 95 %.
_LOCATION, _LOCATION_SCALE = float(np.log(0.1 / 0.9)), 1.5
#: s, the standard deviation of raters around m. Two or three raters, as judgements usually have,
#: say nothing about it, so it is fixed: 95 % of the odds of a slip are within a factor of 19. With
#: less, 60 answers at random do not move a rate (`docs/results/judging.md`, "Slip rates").
_SPREAD = 1.5
#: Below 1: answers that are always random carry no information.
Slip = Annotated[float, Meta(ge=0, lt=1)]


class Preference(Likelihood, frozen=True):
    """Preferences: Bradley–Terry pairs, Plackett–Luce rankings, Davidson's ties.

    With s = λ·h, p(i preferred to j) = e^{s_i} / (e^{s_i} + e^{s_j}), and a ranking is a sequence
    of choices of the best among the remaining candidates. If "no difference" is a possible answer
    to a pair, p(i) : p(j) : p(tie) = e^{s_i} : e^{s_j} : ν √(e^{s_i} e^{s_j}) (Davidson 1970). With
    probability ε the judge slips and gives one of the n possible answers at random: p is then
    (1 − ε) p + ε / n. Log-concave in λ and log ν if ε is 0.

    With `slip="raters"` each rater r has their own rate, logit ε_r = m + 1.5 z_r, with
    m ~ N(logit 0.1, 1.5²) and z_r ~ N(0, 1). The sites are `slip_location` (m), `slip_offset` (z)
    and `slip` (ε); all answers without the name of a rater have one rate.

    An answer of weight w contributes w log p. With other weights than 1 the posterior is a power
    posterior, as if answers were repeated w times: they cannot be simulated.

    Lists come from `bpa_ppl.gains.preferences.choice_sets`: the column `tie` of a row
    is 1 if it stands for "no difference", else 0.

    Args:
        slip: ε, from 0 to below 1; or `raters`. None is `raters` in `adapt` if the answers name two
            raters or more, else 0.
        nu: ν; twice the odds of a tie between equals. None infers it from the ties, with a standard
            normal prior of its logarithm, the site `log_nu`; without any tie in the data "no
            difference" then is not a possible answer.

    >>> Preference(slip=0.1).log_concave_start(), Preference(nu=0.5).log_concave_start()
    (Preference(slip=0.0, nu=None), None)
    """

    observes = "preferences"
    generative = True
    dims = MappingProxyType({SLIP_OFFSET: (RATER,), SLIP: (RATER,)})
    slip: Slip | Literal["raters"] | None = None
    nu: Positive | None = None

    def defaults(self, observed: Observations) -> Preference:
        """Return the likelihood with a `slip`: `raters` if two or more raters have names."""
        if self.slip is not None:
            return self
        return Preference(slip=RATERS if len(observed.named_raters) > 1 else 0.0, nu=self.nu)

    def evidence(self, *, canonical: bool) -> Preference:
        return self

    @property
    def asks_ties(self) -> bool:
        """Whether "no difference" is a possible answer: if ν is given."""
        return self.nu is not None

    def log_concave_start(self) -> Likelihood | None:
        return Preference(slip=0.0, nu=self.nu) if self.slip else None

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Add log ν to the scores of ties, or store the coefficient of log ν."""
        by_rater = self.slip == RATERS
        if by_rater and lists.rater is None:
            message = "a slip rate of each rater needs raters: give raters to tabulate"
            raise UsageError(message, parameter="rater", code="missing-setting")
        # 1 for ties if row 0 is not one, −1 for the others if it is one, else 0.
        ties = [
            bucket["tie"].astype(np.float64) - bucket["tie"][..., :1]
            for bucket in buckets_with(lists, "tie", "preference")
        ]
        infer_nu = self.nu is None and any(tie.any() for tie in ties)
        buckets = []
        for bucket, tie in zip(lists.buckets, ties, strict=True):
            base = bucket["base"] if infer_nu else bucket["base"] + np.log(self.nu or 1.0) * tie
            count = np.array(bucket["count"])
            count[..., 0] += ~(count > 0).any(axis=-1)  # a padding sentence has one outcome
            tables = {name: bucket[name] for name in bucket if name not in ("tie", "count")}
            kind = bucket["base"].dtype
            tables["base"] = base.astype(kind)
            tables |= {"tie": tie.astype(kind)} if infer_nu else {}
            buckets.append(tables | ({"count": count} if self.slip else {}))
        prepared = lists._replace(buckets=tuple(buckets), rater=lists.rater if by_rater else None)
        raters = len(lists.rater) if by_rater else 0
        slip = None if by_rater else self.slip or 0.0
        return prepared, _Observed(slip=slip, raters=raters, ties=infer_nu)


class _Observed(Likelihood, frozen=True):
    """Observes prepared lists.

    Args:
        slip: ε; if raters have separate rates, (R,) within a run of the model, else None.
        raters: R, the number of raters with separate rates; 0 if all have the same.
        ties: whether log ν is a parameter; `tie` then has its coefficients in the scores.
        log_nu: its value, within a run of the model.
    """

    generative = True
    dims = Preference.dims
    slip: Any
    raters: CountOrNone
    ties: bool
    log_nu: Any = None

    def sample_parameters(self) -> Likelihood:
        import jax
        import numpyro
        import numpyro.distributions as dist

        slip, log_nu = self.slip, self.log_nu
        if self.ties:
            log_nu = numpyro.sample(_LOG_NU, dist.Normal(0.0, 1.0))
        if self.raters:
            location = numpyro.sample(SLIP_LOCATION, dist.Normal(_LOCATION, _LOCATION_SCALE))
            standard = dist.Normal(0.0, 1.0).expand((self.raters,)).to_event(1)
            offset = numpyro.sample(SLIP_OFFSET, standard)
            slip = numpyro.deterministic(SLIP, jax.nn.sigmoid(location + _SPREAD * offset))
        return _Observed(slip=slip, raters=self.raters, ties=self.ties, log_nu=log_nu)

    def observe(self, lists: Lists, weights: Any) -> None:
        import numpyro

        from bpa_ppl.models.likelihoods.choice import OracleChoice, SlippingChoice

        if (self.ties and self.log_nu is None) or (self.raters and self.slip is None):
            site, setting = (_LOG_NU, "nu") if self.ties else (SLIP_LOCATION, "slip")
            raise UsageError(
                f"the likelihood preference has the parameter {site}: call likelihood = "
                f"likelihood.sample_parameters() in the model before its plate, or set {setting}",
                parameter="model",
                code="not-supported",
            )
        if self.ties:
            lists, weights = self._with_log_nu(lists, weights)
        choice = OracleChoice(lists, weights)
        if self.raters:
            choice = SlippingChoice(lists, weights, self.slip @ lists.rater)
        elif self.slip:
            choice = SlippingChoice(lists, weights, self.slip)
        if lists.weight is None:
            numpyro.sample("oracle", choice, obs=lists.oracle)
        else:  # not a distribution
            numpyro.factor("oracle", lists.weight * choice.log_prob(lists.oracle))

    def _with_log_nu(self, lists: Lists, weights: Any) -> tuple[Lists, jax.Array]:
        """Return lists with one more feature, the coefficient of log ν, and its weight log ν."""
        import jax.numpy as jnp

        from bpa_ppl.models.likelihoods.choice import require_weights

        require_weights(lists, weights)
        buckets = []
        for bucket in lists.buckets:
            features = jnp.concatenate([bucket["features"], bucket["tie"][:, :, None]], axis=2)
            kept = {name: bucket[name] for name in bucket if name != "tie"}
            buckets.append({**kept, "features": features})
        weights = jnp.asarray(weights)
        log_nu = jnp.broadcast_to(self.log_nu, (*weights.shape[:-1], 1)).astype(weights.dtype)
        return lists._replace(buckets=tuple(buckets)), jnp.concatenate([weights, log_nu], axis=-1)
