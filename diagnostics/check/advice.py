"""Advice for failed diagnostics, in terms of the sampler that a posterior records."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bpa_ppl.components import read_name
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.statistics import bfmi

#: Times as many effective draws, where nothing says how many are needed.
MORE = 3
#: Times as many draws as the missing ESS needs: R-hat is mostly within its limit only from about a
#: thousand effective draws on, more than twice the limit of the ESS.
_RESERVE = 2.3
_MAX_FACTOR = (
    100.0  # times as many draws are advised at most; a sampler that needs more is the wrong one
)
#: What helps where a part of a posterior is much narrower than the rest, such as a funnel.
REPARAMETRISE = (
    "use a non-centred parametrisation (scale × standard normal), in NumPyro by "
    "numpyro.infer.reparam.LocScaleReparam"
)
#: What helps where the density jumps: steps of a Hamiltonian sampler follow its gradient.
OF_JUMPS = (
    "the density jumps, which its gradient does not show: sum over the change point, or the "
    "discrete choice, or put the bound into the support; or use rwm"
)
#: What helps where chains stay at different modes.
OF_MODES = (
    "the posterior seems to have several modes, between which chains rarely move; if labels can "
    "be exchanged, order the site, or use functions that do not depend on labels; of an angle at "
    "the cut of its range, use numpyro.infer.reparam.CircularReparam, or check its cos and sin; "
    "otherwise use tempering, or a mixture of the modes"
)
#: The least sound Bayesian fraction of missing information.
LEAST_BFMI = 0.3
_OTHER_SAMPLER = "use a sampler that mixes better (nuts)"
_MARKOV_CHAIN = "use a Markov-chain sampler (nuts, rwm)"
_LONGER = "raise warmup (burn-in), then draws"
_ACCEPT, _MAX_ACCEPT = 0.9, 0.99  # target acceptance of NUTS
_WARMUP = 1000  # draws that NUTS needs to adapt its metric and step size
#: The best step in √d standard deviations of a Gaussian posterior, and how often its proposals are
#: accepted (Roberts, Gelman & Gilks 1997).
BEST_STEP, _BEST_RATE = 2.38, 0.234


class Advice:
    """What helps if diagnostics of the draws of a sampler fail.

    Settings with values to try are named with their sampler, `imh:draws=4000`, as `adapt` and its
    command take them. For draws of other programs, whose settings are unknown, the advice names no
    values. A sampler that needs other advice has a subclass in `ADVICE`.

    Args:
        draws: with the record of the sampler, if it is known.

    Attributes:
        name: of the sampler; None if it is unknown.
        settings: those of the sampler; empty if they are unknown.
        known: whether they are known.
        count: the number of draws per chain.
        sound_acceptance: the least and the largest sound acceptance rate. Independent proposals are
            the better the more often they are accepted (Tierney 1994).

    >>> from bpa_ppl.posterior.record import Record, SamplerRecord
    >>> sampler = SamplerRecord(name="imh", settings={"draws": 1000, "warmup": 100})
    >>> from bpa_ppl.posterior.draws import name_array
    >>> draws = name_array([[[0.0]]], ("LM0",), record=Record(sampler=sampler))
    >>> Advice(draws).more_draws(3.0)
    'draw more (imh:draws=7), or use a sampler that mixes better (nuts)'
    """

    sound_acceptance: ClassVar[tuple[float, float]] = (0.1, 1.0)

    def __init__(self, draws: Draws):
        settings = draws.record.sampler.settings
        self.name = draws.record.sampler.name
        self.known = settings is not None
        self.settings: dict[str, Any] = settings or {}
        self.count = draws.shape[1]

    def more_draws(self, shortage: float = MORE) -> str:
        """Return how to get so many times as many effective draws (infinite if unknown)."""
        more = self._draw_more(shortage)
        return f"{more or 'raising draws is not enough'}{', or' if more else ';'} {_OTHER_SAMPLER}"

    def more_samples(self, shortage: float) -> str:
        """Return how to get so many times as many effective samples."""
        more = self._draw_more(shortage) if "draws" in self.settings or not self.known else ""
        return f"{more}, or {_MARKOV_CHAIN}" if more else _MARKOV_CHAIN

    def lighter_tails(self) -> str:
        """Return how to get importance weights without a heavy tail."""
        return _MARKOV_CHAIN

    def agreement(self, shortage: float, settled: bool) -> str:
        """Return how to make chains agree.

        Args:
            shortage: as for `more_draws`.
            settled: whether the second half of the draws agrees better than all of them. Only then
                a longer warm-up helps.
        """
        if not self.known:
            return _LONGER
        warmup = self.settings.get("warmup") if settled else None
        if warmup is None:
            return self.more_draws(shortage)
        return f"raise warmup{self.try_settings(warmup=round_up(int(warmup) + self.count))}"

    def movement(self) -> str:
        """Return how to keep chains from staying where they are."""
        if self.known:
            return self.other_steps(larger=False)
        return "take smaller steps, or start the chain elsewhere"

    def other_steps(self, larger: bool) -> str:
        """Return how to make steps larger, or else smaller."""
        return "use nuts"

    def fewer_divergences(self) -> str:
        """Return how to avoid divergent transitions."""
        return self._of_nuts(_MAX_ACCEPT, "raise target_accept")

    def shorter_steps(self) -> str:
        """Return how to make a Hamiltonian sampler take shorter steps."""
        return self._of_nuts(_MAX_ACCEPT, "take shorter steps")

    def _of_nuts(self, target: float, action: str) -> str:
        """Return an action, with the target acceptance of NUTS to try if its settings are known.

        Another parametrisation helps where these settings were tried.
        """
        if not self.known:
            return action
        tried = self.settings.get("target_accept"), self.settings.get("warmup")
        if (tried[0] or 0) >= target and (tried[1] or 0) >= _WARMUP:
            return REPARAMETRISE
        name = self.name if "target_accept" in self.settings else "nuts"
        return action + self.try_settings(name, target_accept=target, warmup=_WARMUP)

    def _draw_more(self, shortage: float) -> str:
        """Return the advice to draw more; empty if so many would be needed that it is useless."""
        if not shortage * _RESERVE <= _MAX_FACTOR:  # NaN if it is unknown
            return ""
        if "draws" not in self.settings:
            return "draw more"
        return f"draw more{self.try_settings(draws=round_up(self.count * shortage * _RESERVE))}"

    def try_settings(self, name: str | None = None, **settings: float) -> str:
        """Return settings of a sampler to try, in brackets after an advice.

        >>> from bpa_ppl.posterior.draws import name_array
        >>> Advice(name_array([[[0.0]]], ("LM0",))).try_settings("rwm", thinning=5)
        ' (rwm:thinning=5)'
        """
        name = name or self.name or ""
        values = ",".join(f"{setting}={value}" for setting, value in settings.items())
        return f" ({name}{',' if ':' in name else ':'}{values})"


class HamiltonianAdvice(Advice):
    """Advice for Hamiltonian samplers such as NUTS.

    They are best accepted near 0.65, and lose a sixth at 0.4; shorter steps only take longer
    (Beskos et al. 2013).
    """

    sound_acceptance = (0.4, 1.0)

    def __init__(self, draws: Draws):
        super().__init__(draws)
        energy = draws.statistics.get("energy")
        diverging = np.any(draws.statistics.get("diverging", False))
        # Divergences and energies show a part that no steps suit.
        is_narrow = bool(diverging and energy is not None and min(bfmi(energy)) < LEAST_BFMI)
        #: What helps where no steps and no number of draws do; empty elsewhere.
        self.remedy = REPARAMETRISE if is_narrow else ""
        if draws.record.figures.jumps:
            self.remedy = OF_JUMPS

    def agreement(self, shortage: float, settled: bool) -> str:
        return self.remedy or super().agreement(shortage, settled)

    def more_draws(self, shortage: float = MORE) -> str:
        if self.remedy:
            return self.remedy
        if more := self._draw_more(shortage):
            return more
        shorter = self.shorter_steps()
        return shorter if shorter == REPARAMETRISE else f"raising draws is not enough; {shorter}"

    def _of_nuts(self, target: float, action: str) -> str:
        return self.remedy or super()._of_nuts(target, action)

    def other_steps(self, larger: bool) -> str:
        return self._of_nuts(_ACCEPT, "let the warm-up find it")


class IndependenceAdvice(Advice):
    """Advice for independent proposals: no draw depends on their warm-up, which only tunes them."""

    def agreement(self, shortage: float, settled: bool) -> str:
        return super().agreement(shortage, settled=False)


class WalkAdvice(Advice):
    """Advice for random walks: steps of the right size come first.

    A random walk is best accepted near 0.23 in many dimensions and 0.44 in one, and has from 0.15
    to 0.5 at least two thirds of the best efficiency (Roberts, Gelman & Gilks 1997).

    Args:
        draws: with the acceptance rates of the walk.
    """

    sound_acceptance = (0.15, 0.5)

    def __init__(self, draws: Draws):
        super().__init__(draws)
        self.rate = float(np.mean(draws.statistics.get("acceptance_rate", _BEST_RATE)))
        low, high = self.sound_acceptance
        self.steps_are_sound = low <= self.rate <= high

    def more_draws(self, shortage: float = MORE) -> str:
        if self.steps_are_sound:
            return super().more_draws(shortage)
        return self.other_steps(larger=self.rate > _BEST_RATE)

    def agreement(self, shortage: float, settled: bool) -> str:
        return super().agreement(shortage, settled and self.steps_are_sound)

    def other_steps(self, larger: bool) -> str:
        is_best = np.isclose(self.settings.get("scale", BEST_STEP), BEST_STEP, rtol=0.05)
        value = "" if is_best else self.try_settings(scale=BEST_STEP)
        return f"{'raise' if larger else 'lower'} scale{value}, or use nuts"


class IsotropicAdvice(WalkAdvice):
    """Advice for isotropic steps, which suit few posteriors: another walk, if much is missing."""

    def more_draws(self, shortage: float = MORE) -> str:
        return self.other_steps(larger=False) if shortage > MORE else super().more_draws(shortage)

    def other_steps(self, larger: bool) -> str:
        """Return how to make steps larger, or else smaller."""
        return "use rwm, whose steps have the shape of the posterior"


#: The advice of samplers that have their own, by the name of the sampler.
ADVICE: dict[str, type[Advice]] = {
    "imh": IndependenceAdvice,
    "nuts": HamiltonianAdvice,
    "rwm": WalkAdvice,
    "rwm-isotropic": IsotropicAdvice,
}


def find_advice(draws: Draws) -> Advice:
    """Return the advice of the sampler that draws record, with its settings.

    Samplers without their own and other programs have the general one, or that for Hamiltonian
    samplers if divergences are recorded.

    >>> from bpa_ppl.posterior.draws import name_array
    >>> type(find_advice(name_array([[[0.0]]], ("LM0",)))).__name__
    'Advice'
    """
    kind = HamiltonianAdvice if "diverging" in draws.statistics else Advice
    sampler = draws.record.sampler
    if sampler.name is not None and sampler.settings is not None:
        kind = ADVICE.get(read_name(sampler.name), kind)
    return kind(draws)


def round_up(value: float) -> int:
    """Return a whole number rounded up to two digits.

    >>> round_up(1001), round_up(7.2)
    (1100, 8)
    """
    unit: int = max(10 ** int(np.log10(value)) // 10, 1)
    return -(-int(np.ceil(value)) // unit) * unit
