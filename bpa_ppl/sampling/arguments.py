"""The arguments of `adapt` in one object, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bpa_ppl._runtime.arguments import check_seed, require_one_of
from bpa_ppl.errors import UsageError
from bpa_ppl.metrics.oracles import Oracles
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, NoLikelihood
from bpa_ppl.sampling.sampler import SAMPLERS
from bpa_ppl.weights import AnyStart, StartingWeights

if TYPE_CHECKING:
    from bpa_ppl._runtime.progress import Reporter
    from bpa_ppl.features.source import AnySource
    from bpa_ppl.metrics.gains import AnyGain
    from bpa_ppl.models.likelihoods.likelihood import Likelihood
    from bpa_ppl.models.priors.prior import Prior, PriorFamily
    from bpa_ppl.nbest import NBest
    from bpa_ppl.sampling.sampler import Sampler
    from bpa_ppl.sampling.target import Model


#: The arguments of `adapt` that a preset chooses, as the papers of Sanchis-Trilles and Casacuberta
#: describe the method. `published` is that of 2015: an isotropic random walk with σ_o = 0.01,
#: burn-in 500, 1000 kept, run four times, so that the check can compare the chains. That of COLING
#: 2010 has a heuristic sample of 100 vectors, δ = 8 and σ_T = 1; the earliest one, of S+SSPR 2010,
#: the weights that MERT visited.
PRESETS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "published": {"sampler": "rwm-isotropic", "likelihood": "oracle"},
        "published-2010": {
            "sampler": "heuristic:draws=100,delta=8.0",
            "likelihood": "oracle",
            "prior": "isotropic:variance=1.0",
        },
        "published-sspr": {"sampler": "weight-trace", "likelihood": "oracle"},
    }
)


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The arguments of `adapt`, except for the lists.

    >>> Arguments(preset="published").resolve_names()
    ('rwm-isotropic', 'oracle')
    """

    weights: AnyStart = None
    gain: AnyGain | Oracles | None = None
    likelihood: str | Likelihood | None = None
    prior: str | PriorFamily | Prior | None = None
    model: str | Model | None = None
    sampler: str | Sampler | None = None
    draws: int | None = None
    chains: int | None = None
    features: Iterable[str] | None = None
    exclude: Iterable[str] | None = None
    categorical: str | Iterable[str] = ()
    add: AnySource | Iterable[AnySource] = ()
    extra: NBest | None = None
    preset: str | None = None
    seed: int = 0
    jobs: int = 1
    progress: bool | Reporter = False
    #: Oracles that were found before; those that are given as the gain, if there are no others.
    oracle: Oracles | None = None

    def __post_init__(self) -> None:
        if isinstance(self.gain, Oracles):
            object.__setattr__(self, "oracle", self.gain)
        check_seed(self.seed)
        if (self.sampler, self.draws, self.chains) != (None, None, None):  # the default loads JAX
            self.resolve_sampler()

    @property
    def start(self) -> StartingWeights:
        """Where the weights start."""
        return StartingWeights.of(self.weights)

    @property
    def prior_only(self) -> bool:
        """Whether nothing is observed, so that the posterior equals the prior."""
        chosen = self.resolve_names()[1]
        return chosen == "none" or isinstance(chosen, NoLikelihood)

    @property
    def chosen_gain(self) -> AnyGain | None:
        """The gain that is chosen, unless it is in the oracles."""
        return None if isinstance(self.gain, Oracles) else self.gain

    def resolve_names(self) -> tuple[Any, str | Likelihood | None]:
        """Return the sampler and the likelihood, by default the names in the preset.

        Raises:
            UsageError: if there is no such preset.
        """
        preset, sampler, likelihood = self._preset(), self.sampler, self.likelihood
        return (
            preset.get("sampler", "auto") if sampler is None else sampler,
            preset.get("likelihood") if likelihood is None else likelihood,
        )

    def resolve_likelihood(self) -> Likelihood | None:
        """Return the likelihood with its settings; None for the default, or for `none`."""
        chosen = self.resolve_names()[1]
        likelihood = None if chosen is None else LIKELIHOODS.resolve(chosen)
        return None if isinstance(likelihood, NoLikelihood) else likelihood

    def resolve_prior(self) -> Any:
        """Return the prior, by default that of the preset.

        >>> Arguments(preset="published-2010").resolve_prior()
        'isotropic:variance=1.0'
        """
        return self._preset().get("prior", "isotropic") if self.prior is None else self.prior

    def resolve_sampler(self) -> Sampler:
        """Return the sampler with its settings, by default those of the preset.

        Raises:
            UsageError: if the sampler has no draws or chains, or names another number of them.

        >>> Arguments(sampler="imh", draws=500).resolve_sampler().draws
        500
        >>> Arguments(preset="published-2010", draws=50).resolve_sampler()
        Heuristic(draws=50, delta=8.0)
        """
        engine = SAMPLERS.resolve(self.resolve_names()[0])
        numbers = {"draws": self.draws, "chains": self.chains}
        numbers = {name: number for name, number in numbers.items() if number is not None}
        if not numbers:
            return engine
        title = f"sampler {SAMPLERS.name_of(engine)}"
        for field in msgspec.structs.fields(engine) if self.sampler is not None else ():
            own, number = getattr(engine, field.name), numbers.get(field.name)
            if number is not None and own not in (field.default, number):
                problem = f"the {title} has {field.name} {own} already: leave one of them out"
                raise UsageError(problem, parameter=field.name, code="conflict")
        return engine.configured(title, {**msgspec.structs.asdict(engine), **numbers})

    def _preset(self) -> Mapping[str, str]:
        return (
            {} if self.preset is None else PRESETS[require_one_of(self.preset, PRESETS, "preset")]
        )
