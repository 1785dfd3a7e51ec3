"""The settings of `adapt`: declared once, resolved to objects, and as a posterior records them."""

import json
from collections.abc import Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, Unpack

import numpy as np

from bpa_ppl._runtime.arguments import check_seed, require_one_of
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Component, Registry, Setting, complete_settings, declared_settings
from bpa_ppl.errors import UsageError, not_supported
from bpa_ppl.features.recipe import with_tuples
from bpa_ppl.features.source import FEATURES, AnySource, FeatureSource, resolve_sources
from bpa_ppl.gains.gains import AnyGain
from bpa_ppl.gains.metric import GAINS
from bpa_ppl.gains.oracles import Oracles
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood
from bpa_ppl.models.priors.prior import PRIORS, Prior, PriorFamily
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.weights import AnyStart, StartingWeights, Weights, split_arguments

if TYPE_CHECKING:  # they load ArviZ and JAX
    from bpa_ppl.densities.weights_target import Model
    from bpa_ppl.posterior.adapter import Posterior

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
#: Components that do not depend on the lists, without a preset.
_DEFAULTS = {"sampler": "auto", "prior": "isotropic"}
#: Entries of the record that are not options.
_WEIGHTS, _NO_WEIGHTS, _SETTINGS = "weights", "none", "settings"


class Settings(TypedDict, total=False):
    """The keyword arguments of `adapt`, which describes them; those left out have their defaults.

    `log_density`, `bpa adapt` and studies take the same ones.

    >>> settings: Settings = {"sampler": "nuts:draws=500", "seed": 1}
    >>> resolve_settings(**settings).sampler.settings()["draws"]
    500
    """

    gain: Annotated[
        AnyGain | Oracles | None,
        Setting(
            "Metric of the oracle: {names}, with settings as in chrf:word_order=2; or a numeric "
            "column of the lists, such as comet, or -ter if lower is better (default: ter if there "
            "are canonical weights or totals, else chrf).",
            registry=GAINS,
        ),
    ]
    sampler: Annotated[
        str | Sampler | None,
        Setting(
            "{names}, with settings as in nuts:draws=2000,chains=2 (default: auto).",
            registry=SAMPLERS,
        ),
    ]
    likelihood: Annotated[
        str | Likelihood | None,
        Setting(
            "{names}, with settings as in margin:gamma=4 or oracle:ties=shared (default: margin if "
            "--gain is ter, bleu, chrf, ter+bleu, wer or cer, else "
            "pairs:exponent=0.25,power=0.75; preference for lists with preferences and no "
            "references). With none the posterior equals the prior, and no references are needed: "
            "for a --prior learned from other domains, or --weights equal.",
            "What is observed",
            registry=LIKELIHOODS,
        ),
    ]
    features: Annotated[
        Iterable[str] | None,
        Setting(
            "Columns that are features, by name, label or pattern such as `'judge_*'`; `'*'` is "
            "every column of numbers without another role (default: those that the file or its "
            "format defines).",
            "Features",
            several=True,
        ),
    ]
    exclude: Annotated[
        Iterable[str] | None,
        Setting(
            "Columns that are not features, by name, label or pattern.", "Features", several=True
        ),
    ]
    categorical: Annotated[
        str | Iterable[str],
        Setting(
            "Columns whose values, such as names of systems, become features of 0 and 1.",
            "Features",
            several=True,
            default=(),
        ),
    ]
    add: Annotated[
        AnySource | Iterable[AnySource],
        Setting(
            "Add features: {names}. Examples: lm=domain.txt, lexicon=memory.fr,memory.en, "
            "phrases=table.parquet; with settings lm=domain.txt,order=5; learned from the "
            "adaptation sentences lm=self.",
            "Features",
            registry=FEATURES,
            several=True,
            default=(),
        ),
    ]
    prior: Annotated[
        str | PriorFamily | Prior | None,
        Setting(
            "{names}, with settings as in isotropic:variance=0.5,single.LM0=2; a file of bpa "
            "learn-prior; or a posterior of other lists, whose mean and covariance are then the "
            "prior (default: isotropic, with a variance of 0.1, and a learned one for features "
            "without a canonical weight).",
            "Weights and prior",
            registry=PRIORS,
        ),
    ]
    model: Annotated[
        "str | Model | None",
        Setting(
            "log_linear, or hierarchical, with weights for each domain of the lists, such as a "
            "customer or a language (default: log_linear).",
            "Weights and prior",
        ),
    ]
    preset: Annotated[
        str | None,
        Setting(
            "Sampler, likelihood and prior of a paper: published (2015), published-2010, or "
            "published-sspr (needs --sampler weight-trace:lists=FILE). Other options have "
            "precedence.",
            "Sampling",
        ),
    ]
    seed: Annotated[
        int, Setting("The same seed gives the same draws (default: 0).", "Sampling", default=0)
    ]
    jobs: Annotated[
        int,
        Setting(
            "Processes that score candidates; -1 uses every core (default: 1).",
            "Other options",
            default=1,
            recorded=False,
        ),
    ]
    progress: Annotated[bool | Reporter, Setting(default=False, recorded=False)]


#: What is declared of each setting, by name.
SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(declared_settings(Settings))


@dataclass(frozen=True, eq=False, kw_only=True)
class ResolvedSettings:
    """The settings of `adapt` with their defaults, and with components as objects.

    Attributes:
        given: the settings as they were given.
        gain: as given: the default depends on the lists.
        sampler: by default that of the preset, else `auto`.
        likelihood: by default that of the preset, else None: the default depends on the lists.
        features: columns that are features; None takes the features of the lists.
        exclude: columns that are not features.
        categorical: columns whose values become features.
        add: sources of further features.
        prior: the prior, or the family of priors; by default that of the preset, else `isotropic`.
        model: as given: the default depends on the prior.
        seed: of the draws.
        jobs: processes that score candidates.
        progress: True draws a bar on standard error.

    >>> resolve_settings(preset="published-2010").sampler
    Heuristic(draws=100, delta=8.0)
    >>> resolve_settings(preset="published-2010").prior.variance
    1.0
    >>> resolve_settings(preset="published").likelihood
    Oracle(ties=None)
    """

    given: Settings
    gain: AnyGain | Oracles | None
    sampler: Sampler
    likelihood: Likelihood | None
    features: Iterable[str] | None
    exclude: Iterable[str] | None
    categorical: str | Iterable[str]
    add: tuple[FeatureSource, ...]
    prior: PriorFamily | Prior
    model: "str | Model | None"
    seed: int
    jobs: int
    progress: bool | Reporter


def resolve_settings(**settings: Unpack[Settings]) -> ResolvedSettings:
    """Return settings with components as objects; mistakes are found before files are read.

    Raises:
        TypeError: if `adapt` has no such argument.
        UsageError: if a seed, or a component that is named, does not exist or makes no sense.

    >>> resolve_settings(sampel="nuts")
    Traceback (most recent call last):
    TypeError: adapt() got an unexpected keyword argument 'sampel' (did you mean sampler?)
    """
    values = complete_settings("adapt", SETTINGS, settings)
    preset = values.pop("preset")
    chosen = {} if preset is None else PRESETS[require_one_of(preset, PRESETS, "preset")]
    for name in ("sampler", "likelihood", "prior"):
        if values[name] is None:
            values[name] = chosen.get(name, _DEFAULTS.get(name))
    likelihood, prior = values["likelihood"], values["prior"]
    check_seed(values["seed"])
    values |= {
        "sampler": SAMPLERS.resolve(values["sampler"]),
        "likelihood": None if likelihood is None else LIKELIHOODS.resolve(likelihood),
        "prior": prior if isinstance(prior, Prior) else PRIORS.resolve(prior),
        "add": resolve_sources(() if values["add"] is None else values["add"]),
    }
    return ResolvedSettings(given=settings, **values)


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
    recorded = {name: setting.default for name, setting in SETTINGS.items() if setting.recorded}
    options = {**vars(start), **{name: given[name] for name in recorded if name in given}}
    defaults = {**vars(StartingWeights()), **recorded}
    for name, value in options.items():
        at_default = defaults[name]
        if name == _WEIGHTS or value is at_default:
            continue
        plain = _plain_or_none(value, SETTINGS[name].registry if name in SETTINGS else None)
        if plain != _plain_or_none(at_default) or plain is None:
            record[name] = plain
    return record


def recorded_options(posterior: "Posterior", **changes: Any) -> tuple[AnyStart, dict[str, Any]]:
    """Return the weights and the other arguments that a posterior was adapted with.

    On the same lists, machine and versions they give the same draws.

    Args:
        posterior: of `adapt`.
        changes: arguments of `adapt`, or of `StartingWeights`, in place of the recorded ones.

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
        reason = "the posterior does not record how it was adapted"
        raise not_supported(reason, "give one that `adapt` wrote")
    if isinstance(start := changes.get(_WEIGHTS), StartingWeights):
        changes = {**vars(start), **{n: v for n, v in changes.items() if n != _WEIGHTS}}
    kept = {name: value for name, value in record.items() if name not in changes}
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
    registry = SETTINGS[name].registry if name in SETTINGS else None
    if registry is not None and isinstance(value, dict):
        if isinstance(settings := value.get(_SETTINGS), dict):
            restored = {key: with_tuples(one) for key, one in settings.items()}
            return registry.restore(str(value.get("name")), restored)
        if name == "prior":
            return Prior.from_dict(value)
    return value
