"""Advice for failed diagnostics, in terms of the sampler that a posterior records."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.components import read_name
from bpa_ppl.errors import list_names
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
#: Draws per chain that are advised at most, and of a chain that already has more than the usual
#: number, how many times as many.
_MOST_DRAWS, _USUAL_DRAWS, _AGAIN = 20_000, 1000, 4.0
_NOT_ENOUGH = "raising draws is not enough"
#: Modes are so many standard deviations apart, and exchanged labels are searched among so many.
_FAR, _MOST_LABELS = 3.0, 100
#: The least sound Bayesian fraction of missing information.
LEAST_BFMI = 0.3
_OTHER_SAMPLER = "use a sampler that mixes better (nuts)"
_MARKOV_CHAIN = "use a Markov-chain sampler (nuts, rwm)"
_LONGER = "raise warmup (burn-in), then draws"
#: Target acceptance of NUTS, and a last one where fewer steps diverge with that of before.
_ACCEPT, _MAX_ACCEPT, _LAST_ACCEPT = 0.9, 0.99, 0.999
_WARMUP = 1000  # draws that NUTS needs to adapt its metric and step size
#: The best step in √d standard deviations of a Gaussian posterior, and how often its proposals are
#: accepted (Roberts, Gelman & Gilks 1997).
BEST_STEP, _BEST_RATE = 2.38, 0.234


class Advice:
    """What helps if diagnostics of the draws of a sampler fail.

    Settings with values to try are named with their sampler, `imh:draws=4000`, as `adapt` and its
    command take them, with those of the run that are not its defaults. For draws of other programs,
    whose settings are unknown, the advice names no values. What depends on the program, such as
    another parametrisation of a site, is only said where the draws record it, with the name of the
    site. An empty text says that nothing is known to help. A sampler that needs other advice has a
    subclass in `ADVICE`.

    Args:
        draws: with the record of the sampler, if it is known.

    Attributes:
        name: of the sampler; None if it is unknown.
        settings: those of the sampler; empty if they are unknown.
        known: whether they are known.
        count: the number of draws per chain.
        sound_acceptance: the least and the largest sound acceptance rate. Independent proposals are
            the better the more often they are accepted (Tierney 1994).
        defaults: values of settings that an advice on other settings does not repeat.

    >>> from bpa_ppl.posterior.record import Record, SamplerRecord
    >>> sampler = SamplerRecord(name="imh", settings={"draws": 1000})
    >>> from bpa_ppl.posterior.draws import name_array
    >>> draws = name_array([[[0.0]]], ("LM0",), record=Record(sampler=sampler))
    >>> Advice(draws).more_draws(3.0)
    'draw more (imh:draws=7), or use a sampler that mixes better (nuts)'
    """

    sound_acceptance: ClassVar[tuple[float, float]] = (0.1, 1.0)
    defaults: ClassVar[dict[str, Any]] = {"degrees_of_freedom": 20.0}

    def __init__(self, draws: Draws):
        settings = draws.record.sampler.settings
        self.name = draws.record.sampler.name
        self.known = settings is not None
        self.settings: dict[str, Any] = settings or {}
        self.count = draws.shape[1]
        self._draws = draws
        figures = draws.record.figures
        #: The samplers that `auto` has tried, with this one.
        self._tried = {*map(read_name, filter(None, (*figures.tried, self.name)))}
        #: What helps where the density jumps; empty elsewhere.
        self._of_jumps = ""
        if figures.jumps:
            at = f" at {list_names(figures.jump_sites)}" if figures.jump_sites else ""
            self._of_jumps = (
                f"the density jumps{at}, which its gradient does not show: sum over the values "
                "between which it jumps, as of a discrete site, or put the bound into the support"
            )
            self._of_jumps += "" if figures.tried else "; or use auto"

    def more_draws(self, shortage: float = MORE) -> str:
        """Return how to get so many times as many effective draws (infinite if unknown)."""
        if self._of_jumps:
            return self._of_jumps
        other = "" if "nuts" in self._tried else _OTHER_SAMPLER
        if more := self._draw_more(shortage):
            return f"{more}, or {other}" if other else more
        return f"{_NOT_ENOUGH}; {other}" if other else _NOT_ENOUGH

    def other_modes(self) -> str:
        """Return what helps where chains stay at different modes."""
        problem = "the posterior seems to have several modes, between which chains rarely move"
        if exchanged := find_exchanged(self._draws):
            return (
                f"{problem}; the chains exchange the labels of {list_names(exchanged)}: order them "
                "(numpyro.distributions.transforms.OrderedTransform), or use functions that do "
                "not depend on labels"
            )
        if mirrored := find_mirrored(self._draws):
            names = list_names(mirrored)
            return f"{problem}; the sign of {names} differs between chains: let the prior keep one"
        if apart := find_apart(self._draws):
            return (
                f"{problem}; the chains differ in {list_names(apart)}: if only one mode makes "
                "sense, let the prior exclude the others"
            )
        return problem

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
        if self._of_jumps:
            return self._of_jumps
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
        return "" if "nuts" in self._tried else "use nuts"

    def fewer_divergences(self) -> str:
        """Return how to avoid divergent transitions."""
        return self._of_nuts("raise target_accept", _MAX_ACCEPT, _LAST_ACCEPT)

    def shorter_steps(self) -> str:
        """Return how to make a Hamiltonian sampler take shorter steps."""
        return self._of_nuts("take shorter steps", _MAX_ACCEPT)

    def mixing_energy(self) -> str:
        """Return how to make the energy mix, which steps of any length change as slowly."""
        return ""

    def _of_nuts(self, action: str, *targets: float) -> str:
        """Return an action, with the settings of NUTS to try if those of the run are known.

        Args:
            action: what to do.
            targets: target acceptances, of which the first one that was not tried is advised; the
                advice is empty if all were.
        """
        if not self.known:
            return action
        accept, warmup = (self.settings.get(name) or 0 for name in ("target_accept", "warmup"))
        for target in targets:
            if accept < target or warmup < _WARMUP:
                name = None if "target_accept" in self.settings else "nuts"
                return action + self.try_settings(name, target_accept=target, warmup=_WARMUP)
        return ""

    def _draw_more(self, shortage: float) -> str:
        """Return the advice to draw more; empty if so many would be needed that it is useless.

        A chain that was made longer before, and still has far too few effective draws, does not
        need to be made longer again and again.
        """
        factor, is_long = shortage * _RESERVE, self.count > _USUAL_DRAWS
        if not factor <= _MAX_FACTOR or (is_long and shortage > _AGAIN):  # NaN if it is unknown
            return ""
        count = round_up(self.count * factor)
        if "draws" not in self.settings:
            return "draw more"
        return f"draw more{self.try_settings(draws=count)}" if count <= _MOST_DRAWS else ""

    def try_settings(self, name: str | None = None, **settings: float) -> str:
        """Return settings of a sampler to try, in brackets after an advice.

        Other numbers among the settings of the run are repeated, unless they are defaults.

        Args:
            name: of another sampler; None for that of the run.
            settings: to try.

        >>> from bpa_ppl.posterior.draws import name_array
        >>> Advice(name_array([[[0.0]]], ("LM0",))).try_settings("rwm", thinning=5)
        ' (rwm:thinning=5)'
        """
        if name is None:
            usual = {"draws": 1000, "chains": 4, "thinning": 1, **self.defaults}
            for setting, value in self.settings.items():
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if is_number and value != usual.get(setting):
                    settings.setdefault(setting, value)
        name = name or self.name or ""
        values = ",".join(f"{setting}={value}" for setting, value in settings.items())
        return f" ({name}{',' if ':' in name else ':'}{values})"


class HamiltonianAdvice(Advice):
    """Advice for Hamiltonian samplers such as NUTS.

    They are best accepted near 0.65, and lose a sixth at 0.4; shorter steps only take longer
    (Beskos et al. 2013).
    """

    sound_acceptance = (0.4, 1.0)
    defaults: ClassVar[dict[str, Any]] = {"warmup": 100, "step_size": 1.1, "target_accept": None}

    def __init__(self, draws: Draws):
        super().__init__(draws)
        energy = draws.statistics.get("energy")
        diverging = np.any(draws.statistics.get("diverging", False))
        # Divergences and energies show a part that no steps suit, such as the neck of a funnel.
        is_narrow = bool(diverging and energy is not None and min(bfmi(energy)) < LEAST_BFMI)
        #: How to write centred sites, which make funnels; empty if there are none.
        self._non_centred = ""
        if centred := draws.record.reparametrisations:
            call = " or ".join(dict.fromkeys(centred.values()))
            self._non_centred = (
                f"write {list_names(centred)} non-centred (numpyro.infer.reparam.{call})"
            )
        self._is_narrow = is_narrow
        #: What helps where no steps and no number of draws do; empty elsewhere.
        self._remedy = self._of_jumps or (self._non_centred if is_narrow else "")

    def agreement(self, shortage: float, settled: bool) -> str:
        return self._remedy or super().agreement(shortage, settled)

    def more_draws(self, shortage: float = MORE) -> str:
        if self._remedy:
            return self._remedy
        if self._is_narrow:
            return _NOT_ENOUGH
        if more := self._draw_more(shortage):
            return more
        others = self._non_centred or self.shorter_steps()
        return f"{_NOT_ENOUGH}; {others}" if others else _NOT_ENOUGH

    def fewer_divergences(self) -> str:
        return self._or_non_centred(super().fewer_divergences())

    def shorter_steps(self) -> str:
        return self._or_non_centred(super().shorter_steps())

    def mixing_energy(self) -> str:
        return self._remedy or self._non_centred

    def _or_non_centred(self, advice: str) -> str:
        """Return an advice about steps, with that about centred sites if there are any."""
        return self._remedy or "; or ".join(filter(None, (advice, self._non_centred)))

    def other_steps(self, larger: bool) -> str:
        return self._remedy or self._of_nuts("let the warm-up find it", _ACCEPT)


class IndependenceAdvice(Advice):
    """Advice for independent proposals: no draw depends on their warm-up, which only tunes them."""

    defaults: ClassVar[dict[str, Any]] = {"warmup": 100, "degrees_of_freedom": 20.0}

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
    defaults: ClassVar[dict[str, Any]] = {"warmup": 50, "scale": BEST_STEP, "thinning": None}

    def __init__(self, draws: Draws):
        super().__init__(draws)
        self.rate = float(np.mean(draws.statistics.get("acceptance_rate", _BEST_RATE)))
        low, high = self.sound_acceptance
        self.steps_are_sound = low <= self.rate <= high

    def more_draws(self, shortage: float = MORE) -> str:
        if self.steps_are_sound or self._of_jumps:
            return super().more_draws(shortage)
        return self.other_steps(larger=self.rate > _BEST_RATE)

    def agreement(self, shortage: float, settled: bool) -> str:
        return super().agreement(shortage, settled and self.steps_are_sound)

    def other_steps(self, larger: bool) -> str:
        if self._of_jumps:
            return self._of_jumps
        is_best = np.isclose(self.settings.get("scale", BEST_STEP), BEST_STEP, rtol=0.05)
        value = "" if is_best else self.try_settings(scale=BEST_STEP)
        other = "" if "nuts" in self._tried else ", or use nuts"
        return f"{'raise' if larger else 'lower'} scale{value}{other}"


class IsotropicAdvice(WalkAdvice):
    """Advice for isotropic steps, which suit few posteriors: another walk, if much is missing."""

    defaults: ClassVar[dict[str, Any]] = {"warmup": 500, "proposal_variance": 0.01}

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


def find_exchanged(draws: Draws) -> list[str]:
    """Return the sites whose cells have changed places in some chains, as labels of a mixture do.

    The means of a chain are then those of the first one in another order, within a standard
    deviation, and at least one cell is three of them away. Sites of one value are the cells of one
    vector. Shares, whose sum is a constant, are left out if other sites are exchanged.

    >>> from bpa_ppl.posterior.draws import Draws
    >>> means = np.array([[-2.0, 2.0], [2.0, -2.0]])[:, None]
    >>> values = means + np.random.default_rng(0).normal(size=(2, 100, 2)) / 10
    >>> find_exchanged(Draws({"means": values}, sampled=("means",)))
    ['means']
    """
    arrays = {name: np.asarray(draws.values[name], np.float64) for name in draws.sites}
    scalars = [name for name, values in arrays.items() if values.ndim == 2]
    found = []
    for name, values in arrays.items():
        for axis in range(2, values.ndim):
            cells = np.moveaxis(values, axis, 2)
            if _find_moved(cells.reshape(*cells.shape[:3], -1)).any():
                found.append(name)
                break
    if len(scalars) > 1:
        together = np.stack([arrays[name] for name in scalars], axis=2)[..., None]
        found += np.array(scalars)[_find_moved(together)].tolist()
    shares = [name for name in found if np.allclose(np.ptp(arrays[name].sum(axis=-1)), 0)]
    return [name for name in found if name not in shares] or found


def find_mirrored(draws: Draws) -> list[str]:
    """Return the sites whose sign differs between chains.

    >>> from bpa_ppl.posterior.draws import Draws
    >>> values = np.array([[5.0], [-5.0]]) + np.random.default_rng(0).normal(size=(2, 100))
    >>> find_mirrored(Draws({"x": values}, sampled=("x",)))
    ['x']
    """
    found = []
    for name in draws.sites:
        values = np.asarray(draws.values[name], np.float64)
        means, scale = values.mean(axis=1), _measure_within(values)
        far = np.abs(means) > _FAR * scale
        same = np.abs(np.abs(means) - np.abs(means[0])) < scale
        if (far & same & (np.sign(means) != np.sign(means[0]))).any():
            found.append(name)
    return found


def find_apart(draws: Draws) -> list[str]:
    """Return the sites at whose values chains stay that are far from those of others.

    >>> from bpa_ppl.posterior.draws import Draws
    >>> values = np.array([[5.0], [9.0]]) + np.random.default_rng(0).normal(size=(2, 100)) / 10
    >>> find_apart(Draws({"x": values}, sampled=("x",)))
    ['x']
    """
    found = []
    for name in draws.sites:
        values = np.asarray(draws.values[name], np.float64)
        if (np.ptp(values.mean(axis=1), axis=0) > _FAR * _measure_within(values)).any():
            found.append(name)
    return found


def _find_moved(values: Float64) -> npt.NDArray[np.bool_]:
    """Return which rows have the means of others in some chains, (C, D, K, M) ↦ (K,)."""
    from scipy.optimize import linear_sum_assignment

    count = values.shape[2]
    moved = np.zeros(count, bool)
    if count > _MOST_LABELS:
        return moved
    means, scale = values.mean(axis=1), _measure_within(values)
    for chain in means[1:]:
        shifts = np.abs(chain[:, None] - means[0][None]) / scale[None]
        costs = np.sqrt((shifts**2).mean(axis=2))  # (row of the chain, row of the first one)
        _, order = linear_sum_assignment(costs)
        rows = np.arange(count)
        far = (shifts[rows, rows].max(axis=1) > _FAR) & (order != rows)
        if far.any() and costs[rows, order].max() < 1:
            moved |= far
    return moved


def _measure_within(values: Float64) -> Float64:
    """Return the standard deviation within chains, (C, D, …) ↦ (…)."""
    return np.asarray(np.fmax(np.sqrt(values.var(axis=1).mean(axis=0)), np.finfo(float).tiny))


def round_up(value: float) -> int:
    """Return a whole number rounded up to two digits.

    >>> round_up(1001), round_up(7.2)
    (1100, 8)
    """
    unit: int = max(10 ** int(np.log10(value)) // 10, 1)
    return -(-int(np.ceil(value)) // unit) * unit
