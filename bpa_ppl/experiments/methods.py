"""The methods of a study by name: samplers or tuners with their settings and decision rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from bpa_ppl.component import Component, CountOrNone, Positive
from bpa_ppl.errors import UsageError, one_of
from bpa_ppl.options import DERIVATIONS
from bpa_ppl.quality import counted_metrics
from bpa_ppl.registry import LIKELIHOODS, METRICS, RULES, SAMPLERS, TUNERS
from bpa_ppl.sampling.base import Sampler
from bpa_ppl.tuning.base import Tuner

if TYPE_CHECKING:
    from bpa_ppl.models import Likelihood

Value = bool | int | float | str

CANONICAL: Final = "canonical"
SAMPLER: Final = "sampler"
TUNER: Final = "tuner"
#: Settings of all methods; other settings belong to the sampler, the tuner or the likelihood.
_COMMON = ("derivations", "likelihood", "metric", "nbest_size", "prior_variance", "rule")
#: Samplers of the papers: in a study they use the published likelihood.
_PUBLISHED = ("heuristic", "rwm-isotropic", "weight-trace")


class Method(Component, frozen=True):
    """One way from adaptation sentences to translations.

    Attributes:
        name: by which the results are filed.
        kind: `canonical` (unchanged weights), `sampler` or `tuner`.
        engine: the name of the sampler or tuner.
        metric: the criterion of the oracles, or of the tuner.
        likelihood: of a sampler; empty uses the default of `adapt` for the metric.
        rule: the decision rule of `rerank`.
        derivations: how `rerank` treats derivations of the same text.
        prior_variance: σ_T.
        nbest_size: the number of hypotheses to keep of each list; 0 keeps all.
        engine_settings: settings of the sampler or tuner, sorted by name.
        likelihood_settings: settings of the likelihood, sorted by name.
    """

    name: str
    kind: Literal["canonical", "sampler", "tuner"]
    engine: str = ""
    metric: str = "ter"
    likelihood: str = ""
    rule: str = "predictive"
    derivations: str = "separate"
    prior_variance: Positive = 0.1
    nbest_size: CountOrNone = 0
    engine_settings: tuple[tuple[str, Value], ...] = msgspec.field(default=(), name="settings")
    likelihood_settings: tuple[tuple[str, Value], ...] = ()

    @property
    def needs_development(self) -> bool:
        """Whether it also learns from the text that λ_T was tuned on."""
        if self.kind == TUNER:
            return TUNERS[self.engine].takes_extra
        return self.kind == SAMPLER and SAMPLERS[self.engine].takes_extra

    def sampler(self) -> Sampler:
        """Return its sampler with its settings."""
        return SAMPLERS.resolve(self.engine, dict(self.engine_settings))

    def tuner(self) -> Tuner:
        """Return its tuner with its settings."""
        return TUNERS.resolve(self.engine, dict(self.engine_settings))

    def resolved_likelihood(self) -> Likelihood | None:
        """Return its likelihood, or None for the default of `adapt`."""
        if not self.likelihood:
            return None
        return LIKELIHOODS.resolve(self.likelihood, dict(self.likelihood_settings))

    def with_settings(self, values: Mapping[str, Any], name: str = "") -> Method:
        """Return the method with other settings, and with another name if one is given.

        Raises:
            UsageError: if the method has no such setting, or a value is invalid.

        >>> named_methods()["nuts"].with_settings({"prior_variance": 1, "draws": 5}).engine_settings
        (('draws', 5),)
        >>> steep = named_methods()["nuts"].with_settings({"likelihood": "margin", "gamma": 4})
        >>> steep.resolved_likelihood()
        Margin(gamma=4)
        """
        for key, value in values.items():
            if not isinstance(value, Value):
                message = f"{key} must be a number or a text, not {value!r}"
                raise UsageError(message, parameter=key, code="wrong-type")
        likelihood = values.get("likelihood", self.likelihood)
        of_likelihood: set[str] = set()  # settings of the likelihood that the sampler has not
        if self.kind == SAMPLER and likelihood in LIKELIHOODS:
            of_likelihood = {*LIKELIHOODS[likelihood].__struct_fields__}
            of_likelihood -= {*SAMPLERS[self.engine].__struct_fields__}
        common: dict[str, Any] = {}
        engine = dict(self.engine_settings)
        kept = self.likelihood_settings if likelihood == self.likelihood else ()
        likelihood_settings = dict(kept)
        for key, value in values.items():
            owner = likelihood_settings if key in of_likelihood else engine
            (common if key in _COMMON else owner)[key] = value
        changed = msgspec.structs.replace(
            self,
            **common,
            name=name or self.name,
            engine_settings=tuple(sorted(engine.items())),
            likelihood_settings=tuple(sorted(likelihood_settings.items())),
        )
        changed.check()
        return changed

    def check(self) -> None:
        """Raise a UsageError unless the settings are valid together."""
        one_of(self.rule, tuple(RULES), "rule")
        one_of(self.derivations, DERIVATIONS, "treatment of derivations", "derivations")
        # A metric that is not registered may be a column of the lists: the study checks that.
        if self.kind == TUNER and self.metric in METRICS:
            one_of(self.metric, counted_metrics(unreported=True), "metric")
        if self.likelihood and self.kind != SAMPLER:
            message = f"the method {self.name} has no likelihood: it is not a sampler"
            raise UsageError(message, parameter="likelihood", code="not-supported")
        if self.kind == SAMPLER:
            self.sampler()
            self.resolved_likelihood()
        elif self.kind == TUNER:
            self.tuner()
        elif self.engine_settings:
            setting = self.engine_settings[0][0]
            message = f"the method {self.name} has no setting {setting}"
            raise UsageError(message, parameter=setting, code="unknown-name")


def named_methods() -> dict[str, Method]:
    """Return all samplers and tuners by name, and the methods that the papers name otherwise."""
    methods = {name: Method(name=name, kind=SAMPLER, engine=name) for name in SAMPLERS}
    for name in _PUBLISHED:
        methods[name] = methods[name].with_settings({"likelihood": "oracle"})
    methods |= {n: Method(name=n, kind=TUNER, engine=n, metric="bleu") for n in TUNERS}
    walk = methods["rwm-isotropic"]
    return {
        **methods,
        "canonical": Method(name="canonical", kind=CANONICAL),
        "heur-vit": methods["heuristic"].with_settings({"rule": "viterbi"}, "heur-vit"),
        "mcmc": walk.with_settings({}, "mcmc"),
        "mcmc-vit": walk.with_settings({"rule": "viterbi"}, "mcmc-vit"),
    }
