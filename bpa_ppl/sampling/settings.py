"""The settings of `adapt`: declared once, resolved to objects, and as a posterior records them."""

from __future__ import annotations

import json
from collections.abc import Iterable, KeysView, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import msgspec
import numpy as np

from bpa_ppl._runtime.arguments import check_seed, require_one_of, suggest_name
from bpa_ppl.components import Component, Registry
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.recipe import with_tuples
from bpa_ppl.features.source import FEATURES
from bpa_ppl.metrics.metric import GAINS
from bpa_ppl.metrics.oracles import Oracles
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
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
#: Settings that the draws do not depend on.
_NOT_RECORDED = ("jobs", "progress")
#: The defaults of settings that are not None by default.
_DEFAULTS: Mapping[str, Any] = {"categorical": (), "add": (), "seed": 0}
#: The registries of options that may be components.
_REGISTRIES: Mapping[str, Registry[Any]] = {
    "sampler": SAMPLERS,
    "likelihood": LIKELIHOODS,
    "prior": PRIORS,
    "gain": GAINS,
    "add": FEATURES,
}


class Settings(TypedDict, total=False):
    """The keyword arguments of `adapt`, which describes them; those left out have their defaults.

    `log_density`, studies and the command line take the same ones.

    >>> settings: Settings = {"sampler": "nuts", "draws": 500}
    >>> resolve_sampler(settings).draws
    500
    """

    gain: AnyGain | Oracles | None
    likelihood: str | Likelihood | None
    prior: str | PriorFamily | Prior | None
    model: str | Model | None
    sampler: str | Sampler | None
    draws: int | None
    chains: int | None
    features: Iterable[str] | None
    exclude: Iterable[str] | None
    categorical: str | Iterable[str]
    add: AnySource | Iterable[AnySource]
    preset: str | None
    seed: int
    jobs: int
    progress: bool | Reporter


def check_settings(**settings: Unpack[Settings]) -> None:
    """Find mistakes in settings, before files are read.

    Raises:
        TypeError: if `adapt` has no such argument.
        UsageError: if a seed, sampler or preset does not exist or makes no sense.

    >>> check_settings(sampel="nuts")
    Traceback (most recent call last):
    TypeError: adapt() got an unexpected keyword argument 'sampel': did you mean sampler?
    """
    known = Settings.__annotations__
    for name in settings:
        if name not in known:
            problem = f"adapt() got an unexpected keyword argument {name!r}"
            raise TypeError(problem + suggest_name(name, known))
    check_seed(settings.get("seed", 0))
    if any(settings.get(name) is not None for name in ("sampler", "draws", "chains")):
        resolve_sampler(settings)  # the default loads JAX


def resolve_sampler(settings: Settings) -> Sampler:
    """Return the sampler with its settings, by default that of the preset, else `auto`.

    Raises:
        UsageError: if the sampler has no draws or chains, or names another number of them.

    >>> resolve_sampler({"sampler": "imh", "draws": 500}).draws
    500
    >>> resolve_sampler({"preset": "published-2010", "draws": 50})
    Heuristic(draws=50, delta=8.0)
    """
    chosen = settings.get("sampler")
    engine = SAMPLERS.resolve(
        _preset(settings).get("sampler", "auto") if chosen is None else chosen
    )
    numbers = {"draws": settings.get("draws"), "chains": settings.get("chains")}
    numbers = {name: number for name, number in numbers.items() if number is not None}
    if not numbers:
        return engine
    title = f"sampler {SAMPLERS.name_of(engine)}"
    for field in msgspec.structs.fields(engine) if chosen is not None else ():
        own, number = getattr(engine, field.name), numbers.get(field.name)
        if number is not None and own not in (field.default, number):
            problem = f"the {title} has {field.name} {own} already: leave one of them out"
            raise UsageError(problem, parameter=field.name, code="conflict")
    return engine.configured(title, {**msgspec.structs.asdict(engine), **numbers})


def resolve_likelihood(settings: Settings) -> Likelihood | None:
    """Return the likelihood with its settings, by default that of the preset, else None.

    >>> resolve_likelihood({"preset": "published"})
    Oracle(ties=None)
    """
    chosen = settings.get("likelihood")
    chosen = _preset(settings).get("likelihood") if chosen is None else chosen
    return None if chosen is None else LIKELIHOODS.resolve(chosen)


def resolve_prior(settings: Settings) -> PriorFamily | Prior:
    """Return the prior, or the family of priors, by default that of the preset, else `isotropic`.

    >>> resolve_prior({"preset": "published-2010"}).variance
    1.0
    """
    prior = settings.get("prior")
    prior = _preset(settings).get("prior", "isotropic") if prior is None else prior
    return prior if isinstance(prior, Prior) else PRIORS.resolve(prior)


def _preset(settings: Settings) -> Mapping[str, str]:
    name = settings.get("preset")
    return {} if name is None else PRESETS[require_one_of(name, PRESETS, "preset")]


def record_settings(weights: AnyStart, settings: Settings) -> dict[str, Any]:
    """Return the weights, and the settings that are not at their defaults, as data.

    `StartingWeights` are recorded by their own arguments. What only Python has, such as a function
    as the gain, is None.

    Args:
        weights: as `adapt` takes them.
        settings: as they were given.

    >>> record_settings({"LM0": 0.5}, {"seed": 3, "gain": len, "jobs": 2})
    {'weights': {'LM0': 0.5}, 'gain': None, 'seed': 3}
    """
    start = StartingWeights.of(weights)
    named = start.weights
    if isinstance(named, Weights) and named.positional:
        named = list(named.values())
    record = {_WEIGHTS: _NO_WEIGHTS if named is None else _plain_or_none(named)}
    given: Mapping[str, Any] = settings
    options = {**vars(start), **{n: given[n] for n in Settings.__annotations__ if n in given}}
    defaults = {**vars(StartingWeights()), **_DEFAULTS}
    for name, value in options.items():
        at_default = defaults.get(name)
        if name in (_WEIGHTS, *_NOT_RECORDED) or value is at_default:
            continue
        plain = _plain_or_none(value, _REGISTRIES.get(name))
        if plain != _plain_or_none(at_default) or plain is None:
            record[name] = plain
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
        changes = {**vars(start), **{n: v for n, v in changes.items() if n != _WEIGHTS}}
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
