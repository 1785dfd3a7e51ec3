"""The methods of a study by name: what is adapted or tuned, and how translations are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from bpa_ppl.component import Component, CountOrNone, Positive
from bpa_ppl.decoding import DERIVATIONS
from bpa_ppl.errors import UsageError, one_of
from bpa_ppl.quality import counted_metrics
from bpa_ppl.registry import METRICS, RULES, SAMPLERS, TUNERS
from bpa_ppl.sampling.base import Sampler
from bpa_ppl.tuning.base import Tuner

Value = bool | int | float | str

CANONICAL: Final = "canonical"
SAMPLER: Final = "sampler"
TUNER: Final = "tuner"
#: What may be set of any method; the rest are settings of its sampler or tuner.
COMMON = ("derivations", "metric", "nbest_size", "prior_variance", "rule")


class Method(Component, frozen=True):
    """One way from adaptation sentences to translations.

    Attributes:
        name: what the results are filed under.
        kind: `canonical` (the weights as they are), `sampler` or `tuner`.
        engine: the name of the sampler or tuner.
        metric: what makes an oracle, or what a tuner optimises.
        rule, derivations: how `rerank` decides.
        prior_variance: σ_T.
        nbest_size: hypotheses that are left of each list, of both texts; 0 leaves them all.
        own: settings of the sampler or tuner, in order of their names; the others have defaults.
    """

    name: str
    kind: Literal["canonical", "sampler", "tuner"]
    engine: str = ""
    metric: str = "ter"
    rule: str = "predictive"
    derivations: str = "separate"
    prior_variance: Positive = 0.1
    nbest_size: CountOrNone = 0
    own: tuple[tuple[str, Value], ...] = msgspec.field(default=(), name="settings")

    @property
    def needs_development(self) -> bool:
        """Whether it learns from the text that λ_T was tuned on as well."""
        if self.kind == TUNER:
            return TUNERS[self.engine].takes_extra
        return self.kind == SAMPLER and "development" in SAMPLERS[self.engine].__struct_fields__

    def sampler(self, **more: Any) -> Sampler:
        """Return its sampler; `more` are settings that the study makes, not its file."""
        return SAMPLERS.resolve(self.engine, {**dict(self.own), **more})

    def tuner(self, **more: Any) -> Tuner:
        """Return its tuner, likewise."""
        return TUNERS.resolve(self.engine, {**dict(self.own), **more})

    def with_settings(self, values: Mapping[str, Any], name: str = "") -> Method:
        """Return the method with other settings, and with another name if one is given.

        Raises:
            UsageError: if a setting is unknown to the method, or makes no sense.

        >>> named_methods()["nuts"].with_settings({"prior_variance": 1, "draws": 500}).own
        (('draws', 500),)
        """
        for key, value in values.items():
            if not isinstance(value, Value):
                raise UsageError(f"{key} must be a number or a text, not {value!r}")
        common = {key: value for key, value in values.items() if key in COMMON}
        own = {**dict(self.own), **{k: v for k, v in values.items() if k not in COMMON}}
        changed = msgspec.structs.replace(
            self, **common, name=name or self.name, own=tuple(sorted(own.items()))
        )
        changed.check()
        return changed

    def check(self) -> None:
        """Raise a UsageError unless the settings make sense together."""
        one_of(self.rule, tuple(RULES), "rule")
        one_of(self.derivations, DERIVATIONS, "treatment of derivations")
        # What is not registered may be a column of the lists: the study knows.
        if self.kind == TUNER and self.metric in METRICS:
            one_of(self.metric, counted_metrics(unreported=True), "metric")
        if self.kind == SAMPLER:
            self.sampler()
        elif self.kind == TUNER:
            self.tuner()
        elif self.own:
            raise UsageError(
                f"the method {self.name} has no setting {self.own[0][0]}: it has none of its own"
            )


def named_methods() -> dict[str, Method]:
    """Return all samplers and tuners under their names, and what the papers call otherwise."""
    samplers = [Method(name=name, kind=SAMPLER, engine=name) for name in SAMPLERS]
    tuners = [Method(name=name, kind=TUNER, engine=name, metric="bleu") for name in TUNERS]
    walk = "rwm-isotropic"
    others = [
        Method(name="canonical", kind=CANONICAL),
        Method(name="heur-vit", kind=SAMPLER, engine="heuristic", rule="viterbi"),
        Method(name="mcmc", kind=SAMPLER, engine=walk),
        Method(name="mcmc-vit", kind=SAMPLER, engine=walk, rule="viterbi"),
    ]
    return {method.name: method for method in (*samplers, *tuners, *others)}
