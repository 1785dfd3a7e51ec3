"""The settings of `adapt`: declared once, resolved to objects, and as a posterior records them."""

import json
from collections.abc import Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, Unpack

import numpy as np

from bpa_ppl._runtime.arguments import check_seed, require_one_of
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.adaptation_record import AdaptationRecord
from bpa_ppl.components import Component, Registry, Setting, complete_settings, declared_settings
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.recipe import with_tuples
from bpa_ppl.features.source import FEATURES, AnySource, FeatureSource, resolve_sources
from bpa_ppl.gains.gains import AnyGain
from bpa_ppl.gains.metric import GAINS
from bpa_ppl.gains.oracles import Oracles
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood
from bpa_ppl.models.priors.prior import PRIORS, Prior, PriorFamily
from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.weights import AnyStart, StartingWeights, Weights, split_arguments

if TYPE_CHECKING:  # they load ArviZ and JAX
    from bpa_ppl.adapting.weights_target import Model
    from bpa_ppl.posterior.arviz_data import Posterior

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
    """The keyword arguments of `adapt`; those left out have their defaults.

    `log_density` and `bpa adapt` take the same ones.

    Attributes:
        gain: How good a candidate is, which says what an oracle is: a metric with settings as in
            `chrf:word_order=2`; a column of numbers of the lists, which is then not a feature, such
            as `comet`, or `-ter` if lower is better; in Python a function, too, or `Oracles` that
            were found before, which need no references. By default `ter` where there are canonical
            weights or totals, else `chrf`.
        sampler: What draws from the posterior, with settings as in `nuts:draws=2000,chains=2`: the
            number of draws of each chain, and of chains. The published 100 samples of `heuristic`
            with delta=8 cannot pass `check`, which needs 100 effective ones:
            `heuristic:draws=1000,delta=50` passes. By default `auto`.
        likelihood: What is observed, with settings as in `margin:gamma=4`; those left open are
            derived from the gain. With `none` the posterior equals the prior, and no references are
            needed. By default `oracle` for a published sampler, `margin` where the gain is `ter`,
            `bleu`, `chrf`, `ter+bleu`, `wer` or `cer`, `pairs:exponent=0.25,power=0.75` for any
            other gain, and `preference` for lists with preferences and no references.
        features: Columns that are features, by name, label or pattern such as `'judge_*'`; `'*'` is
            every column of numbers without another role. The others become extras, here and in
            `rerank`. By default those that the file or its format defines.
        exclude: Columns that are not features, by name, label or pattern.
        categorical: Columns of texts, integers, or true and false, such as `system`, whose values
            become features of 0 and 1 with mean 0, here and in `rerank`. With other features and a
            learned scale of the prior they are left out if they do not explain the order of the
            candidates, which is warned about.
        add: Sources of further features with mean 0, such as `lm=domain.txt`,
            `lexicon=memory.fr,memory.en`, `lm=domain.txt,order=5`, or `lm=self`, learned from the
            adaptation sentences. The posterior records their recipe, with the hashes of their
            files, and `rerank` computes the same features of new lists.
        prior: A family of priors, with settings as in `isotropic:variance=0.5,single.LM0=2`; a
            prior of `learn_prior`; or the Gaussian of a posterior of other lists. By default
            `isotropic` with the variance 0.1, and for features without a canonical weight with a
            scale that is learned from these sentences.
        model: `log_linear`; `hierarchical`, with weights for each domain of the lists, such as a
            customer or a language; or in Python a NumPyro program of (lists, prior, likelihood)
            with a site `weights`. By default `log_linear`.
        preset: Sampler, likelihood and prior of a paper: `published` is the random walk of 2015, in
            four chains (`rwm-isotropic:chains=1` is the one of the paper), `published-2010` the
            heuristic sample of COLING 2010 with 100 draws, delta=8 and σ_T = 1, and
            `published-sspr` the weight trace of S+SSPR 2010, which needs the lists that the
            canonical weights were tuned on, `weight-trace:lists=FILE`. What is named explicitly
            replaces it.
        seed: The same seed gives the same draws, to the bit on the same machine. By default 0.
        jobs: Processes that score candidates; -1 uses every core. By default 1.
        unchecked: Use references that seem to be those of other lists; on the command line, also a
            posterior as the prior that fails its check.
        progress: True draws a bar on standard error.

    >>> settings: Settings = {"sampler": "nuts:draws=500", "seed": 1}
    >>> resolve_settings(**settings).sampler.settings()["draws"]
    500
    """

    gain: Annotated[AnyGain | Oracles | None, Setting(registry=GAINS)]
    sampler: Annotated[str | Sampler | None, Setting(registry=SAMPLERS)]
    likelihood: Annotated[
        str | Likelihood | None, Setting("What is observed", registry=LIKELIHOODS)
    ]
    features: Annotated[Iterable[str] | None, Setting("Features", several=True)]
    exclude: Annotated[Iterable[str] | None, Setting("Features", several=True)]
    categorical: Annotated[str | Iterable[str], Setting("Features", several=True, default=())]
    add: Annotated[
        AnySource | Iterable[AnySource],
        Setting("Features", registry=FEATURES, several=True, default=()),
    ]
    prior: Annotated[
        str | PriorFamily | Prior | None, Setting("Weights and prior", registry=PRIORS)
    ]
    model: Annotated["str | Model | None", Setting("Weights and prior")]
    preset: Annotated[str | None, Setting("Sampling")]
    seed: Annotated[int, Setting("Sampling", default=0)]
    jobs: Annotated[int, Setting("Other options", default=1, recorded=False)]
    unchecked: Annotated[bool, Setting("Other options", default=False, recorded=False)]
    progress: Annotated[bool | Reporter, Setting(default=False, recorded=False, option=None)]


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
        unchecked: whether references that seem to be those of other lists are used.
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
    unchecked: bool
    progress: bool | Reporter


def resolve_settings(*, answered: bool = False, **settings: Unpack[Settings]) -> ResolvedSettings:
    """Return settings with components as objects; mistakes are found before files are read.

    Args:
        answered: whether there are answers about the lists: they alone are observed, unless a
            likelihood, a gain or a preset is given.
        settings: of `adapt`.

    Raises:
        TypeError: if `adapt` has no such argument.
        UsageError: if a seed, or a component that is named, does not exist or makes no sense.

    >>> resolve_settings(sampel="nuts")
    Traceback (most recent call last):
    TypeError: adapt() got an unexpected keyword argument 'sampel' (did you mean sampler?)
    """
    if answered and settings.keys().isdisjoint(("likelihood", "gain", "preset")):
        settings["likelihood"] = "preference"
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
    values: Mapping[str, Any] = settings
    recorded = {name: setting.default for name, setting in SETTINGS.items() if setting.recorded}
    options = {**vars(start), **{name: values[name] for name in recorded if name in values}}
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
    >>> lists = from_lists([["a", "b"]] * 2, [[[0.0], [1.0]]] * 2, ["LM0"], references=["b"] * 2)
    >>> posterior = adapt(lists, {"LM0": 0.5}, sampler="map", seed=1)
    >>> weights, options = recorded_options(posterior, seed=2)
    >>> weights, options
    ({'LM0': 0.5}, {'sampler': 'map', 'seed': 2})
    >>> again = adapt(lists, weights, **options)
    """
    record = AdaptationRecord.of(as_draws(posterior).record).options
    if record is None or _WEIGHTS not in record:
        message = "the posterior does not record how it was adapted: give one that `adapt` wrote"
        raise DataError(message, code="not-supported")
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
