"""The arguments of `adapt` in one object, checked; and as a posterior records them."""

from __future__ import annotations

import json
from collections.abc import Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from bpa_ppl._runtime.arguments import check_seed, require_one_of
from bpa_ppl.components import Component, Registry
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.recipe import with_tuples
from bpa_ppl.features.source import FEATURES
from bpa_ppl.metrics.metric import METRICS
from bpa_ppl.metrics.oracles import Oracles
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, NoLikelihood
from bpa_ppl.models.priors.prior import PRIORS, Prior
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.sampling.sampler import SAMPLERS
from bpa_ppl.weights import AnyStart, StartingWeights, Weights, split_arguments

if TYPE_CHECKING:
    from bpa_ppl._runtime.progress import Reporter
    from bpa_ppl.features.source import AnySource
    from bpa_ppl.metrics.gains import AnyGain
    from bpa_ppl.models.likelihoods.likelihood import Likelihood
    from bpa_ppl.models.priors.prior import PriorFamily
    from bpa_ppl.nbest import NBest
    from bpa_ppl.posterior.adapter import Posterior
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
#: Entries of the record that are not options.
_WEIGHTS, _NO_WEIGHTS, _SETTINGS = "weights", "none", "settings"
#: Options that the draws do not depend on, or that follow from others.
_NOT_RECORDED = ("jobs", "progress", "oracle")
#: The registries of options that may be components.
_REGISTRIES: Mapping[str, Registry[Any]] = {
    "sampler": SAMPLERS,
    "likelihood": LIKELIHOODS,
    "prior": PRIORS,
    "gain": METRICS,
    "add": FEATURES,
}


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


def record_arguments(options: Arguments) -> dict[str, Any]:
    """Return the arguments of `adapt` that are not at their defaults, and the weights, as data.

    `StartingWeights` are recorded by their own arguments. What only Python has, such as a function
    as the gain, is None.

    Args:
        options: as they were given.

    >>> record_arguments(Arguments(weights={"LM0": 0.5}, seed=3, gain=len))
    {'weights': {'LM0': 0.5}, 'gain': None, 'seed': 3}
    """
    start = options.start
    weights = start.weights
    if isinstance(weights, Weights) and weights.positional:
        weights = list(weights.values())
    record = {_WEIGHTS: _NO_WEIGHTS if weights is None else _plain_or_none(weights)}
    defaults: tuple[Any, ...] = (StartingWeights(), Arguments())
    for given, default in zip((start, options), defaults, strict=True):
        for field in fields(default):
            value, at_default = getattr(given, field.name), getattr(default, field.name)
            if field.name in (_WEIGHTS, *_NOT_RECORDED) or value is at_default:
                continue
            plain = _plain_or_none(value, _REGISTRIES.get(field.name))
            if plain != _plain_or_none(at_default) or plain is None:
                record[field.name] = plain
    return record


def recorded_options(posterior: Posterior, **changes: Any) -> tuple[AnyStart, dict[str, Any]]:
    """Return the weights and the other arguments that a posterior was adapted with.

    On the same lists, machine and versions they give the same draws.

    Args:
        posterior: of `adapt`.
        changes: arguments of `adapt`, or of `StartingWeights`, in place of the recorded ones. With
            another sampler or preset the recorded `draws` and `chains` are left out.

    Returns:
        the weights as `adapt` takes them, and its keyword arguments.

    Raises:
        DataError: if the posterior does not record its options, since another program wrote it.
        UsageError: if an option was an object of Python, which cannot be recorded, and `changes`
            has no other one; or a component of another package is unknown.

    >>> from bpa_ppl import adapt, from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> posterior = adapt(lists, {"LM0": 0.5}, sampler="map", seed=1)
    >>> weights, options = recorded_options(posterior, seed=2)
    >>> weights, options
    ({'LM0': 0.5}, {'sampler': 'map', 'seed': 2})
    >>> again = adapt(lists, weights, **options)
    """
    record = as_draws(posterior).record.options
    if record is None or _WEIGHTS not in record:
        raise DataError(
            "the posterior does not record how it was adapted: give one that `adapt` wrote",
            code="not-supported",
        )
    if isinstance(start := changes.get(_WEIGHTS), StartingWeights):
        changes = {**changes, **vars(start)}
    unused = () if changes.keys().isdisjoint(("sampler", "preset")) else ("draws", "chains")
    kept = {name: value for name, value in record.items() if name not in (*changes, *unused)}
    for name, value in kept.items():
        if value is None:
            problem = f"{name} was a Python object, which is not recorded: pass {name} again"
            raise UsageError(problem, parameter=name, code="not-supported")
    options = {**{name: _restore(name, value) for name, value in kept.items()}, **changes}
    if isinstance(weights := options[_WEIGHTS], str) and weights == _NO_WEIGHTS:
        options[_WEIGHTS] = None
    return split_arguments(options)


def _plain_or_none(value: Any, registry: Registry[Any] | None = None) -> Any:
    """Return a value as JSON holds it, components as name and settings; None if it cannot."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, Component) and registry is not None:
            name = registry.name_of(value)
            if name in registry:
                return {"name": name, _SETTINGS: value.settings()}
        if isinstance(value, set | frozenset):
            return sorted(value)
        if isinstance(value, Sequence | KeysView):
            return list(value)
        raise TypeError(f"{type(value).__name__} is an object of Python")

    if isinstance(value, Prior) and value.other is None:
        return value.as_dict()
    if hasattr(value, "_fields"):  # JSON would take it for a list
        return None
    try:
        return json.loads(json.dumps(value, default=plain))
    except TypeError:
        return None


def _restore(name: str, value: Any) -> Any:
    """Return an option from its record."""
    if isinstance(value, list) and name == "add":
        return [_restore(name, one) for one in value]
    if name in _REGISTRIES and isinstance(value, dict):
        if isinstance(settings := value.get(_SETTINGS), dict):
            restored = {key: with_tuples(one) for key, one in settings.items()}
            return _REGISTRIES[name].restore(str(value.get("name")), restored)
        if name == "prior":
            return Prior.from_dict(value)
    return value
