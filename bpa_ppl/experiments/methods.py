"""The methods of a study by name: what is adapted or tuned, and how translations are decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bpa_ppl.decoding import DERIVATIONS, RULES
from bpa_ppl.errors import UsageError, one_of
from bpa_ppl.quality.registry import METRICS
from bpa_ppl.quality.statistics import COUNTED
from bpa_ppl.sampling import SAMPLERS
from bpa_ppl.sampling.registry import configure as configure_sampler
from bpa_ppl.tuning import TUNERS
from bpa_ppl.tuning.registry import configure as configure_tuner

Value = int | float | str

CANONICAL, SAMPLER, TUNER, TRACE = "canonical", "sampler", "tuner", "trace"
#: Settings of the kinds that are neither sampler nor tuner, with their defaults.
_OWN: dict[str, dict[str, Value]] = {CANONICAL: {}, TRACE: {"delta": 1.0, "restarts": 20}}
#: What may be set of any method; the rest are settings of its sampler or tuner.
COMMON = ("derivations", "metric", "nbest_size", "prior_variance", "rule")


@dataclass(frozen=True)
class Method:
    """One way from adaptation sentences to translations.

    Attributes:
        name: what the results are filed under.
        kind: `canonical` (the weights as they are), `sampler`, `tuner` or `trace`.
        engine: the name of the sampler or tuner.
        metric: what makes an oracle, or what a tuner optimises.
        rule, derivations: how `rerank` decides.
        prior_variance: σ_T.
        nbest_size: hypotheses that are left of each list, of both texts; 0 leaves them all.
        settings: of the sampler or tuner, in order of their names.
    """

    name: str
    kind: str
    engine: str = ""
    metric: str = "ter"
    rule: str = "predictive"
    derivations: str = "separate"
    prior_variance: float = 0.1
    nbest_size: int = 0
    settings: tuple[tuple[str, Value], ...] = ()

    @property
    def own(self) -> dict[str, Any]:
        """The settings of its sampler or tuner, by name."""
        return dict(self.settings)

    @property
    def needs_development_set(self) -> bool:
        """Whether it uses the out-of-domain development set that λ_T was tuned on."""
        return self.kind == TRACE or self.engine == "mert+"

    def with_settings(self, values: Mapping[str, Any], name: str = "") -> Method:
        """Return the method with other settings, and with another name if one is given.

        Raises:
            UsageError: if a setting is unknown to the method, or makes no sense.

        >>> NAMED["nuts"].with_settings({"prior_variance": 1, "draws": 500}).settings
        (('draws', 500),)
        """
        for key, value in values.items():
            if not isinstance(value, int | float | str):
                raise UsageError(f"{key} must be a number or a text, not {value!r}")
        common = {key: value for key, value in values.items() if key in COMMON}
        own = self.own | {k: v for k, v in values.items() if k not in COMMON}
        changed = replace(
            self, **common, name=name or self.name, settings=tuple(sorted(own.items()))
        )
        _check(changed)
        return changed


def _named() -> dict[str, Method]:
    samplers = [Method(name, SAMPLER, name) for name in SAMPLERS]
    tuners = [Method(name, TUNER, name, metric="bleu") for name in TUNERS]
    others = [
        Method("canonical", CANONICAL),
        Method("heur-vit", SAMPLER, "heuristic", rule="viterbi"),
        Method("mcmc", SAMPLER, "rwm-isotropic"),
        Method("mcmc-vit", SAMPLER, "rwm-isotropic", rule="viterbi"),
        Method("weight-trace", TRACE, settings=tuple(_OWN[TRACE].items())),
    ]
    return {method.name: method for method in (*samplers, *tuners, *others)}


#: Every sampler and tuner under its own name, and what the papers call by names of their own.
NAMED = _named()


def _check(method: Method) -> None:
    """Raise a UsageError unless the settings of a method make sense."""
    one_of(method.rule, RULES, "rule")
    one_of(method.derivations, DERIVATIONS, "treatment of derivations")
    one_of(method.metric, COUNTED if method.kind == TUNER else METRICS, "metric")
    _check_number(method.name, "prior_variance", method.prior_variance, 1e-300)
    _check_number(method.name, "nbest_size", method.nbest_size, 0)
    settings = method.own
    if method.kind == SAMPLER:
        _check_kinds(method.name, settings, configure_sampler(method.engine, settings))
    elif method.kind == TUNER:
        configure_tuner(method.engine, settings)
    else:
        _check_own(method.name, settings, _OWN[method.kind])


def _check_kinds(name: str, settings: Mapping[str, Value], configured: Any) -> None:
    """Raise a UsageError unless each setting is of the kind of its default."""
    for key, value in settings.items():
        default = getattr(type(configured), key)
        if isinstance(default, int | float):
            _check_number(name, key, value, 0)
        if isinstance(default, int) and not isinstance(value, int):
            raise UsageError(f"{key} of the method {name} must be a whole number, not {value!r}")


def _check_own(name: str, settings: Mapping[str, Value], allowed: Mapping[str, Value]) -> None:
    for key, value in settings.items():
        if key not in allowed:
            known = f"it has {', '.join(allowed)}" if allowed else "it has none"
            raise UsageError(f"the method {name} has no setting {key}: {known}")
        _check_number(name, key, value, 1e-300)


def _check_number(name: str, key: str, value: Any, least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise UsageError(
            f"{key} of the method {name} must be a number, "
            f"{'positive' if least else '0 or more'}, not {value!r}"
        )
