"""The methods of a study by name: what is adapted or tuned, and how translations are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from bpa_ppl.component import Component, CountOrNone, Positive
from bpa_ppl.decoding import DERIVATIONS
from bpa_ppl.errors import UsageError, one_of
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
#: What may be set of any method; the rest are settings of its sampler or tuner.
COMMON = ("derivations", "likelihood", "metric", "nbest_size", "prior_variance", "rule")
#: Samplers that the papers describe: in a study they keep to the published likelihood.
PUBLISHED = ("heuristic", "rwm-isotropic", "weight-trace")


class Method(Component, frozen=True):
    """One way from adaptation sentences to translations.

    Attributes:
        name: what the results are filed under.
        kind: `canonical` (the weights as they are), `sampler` or `tuner`.
        engine: the name of the sampler or tuner.
        metric: what makes an oracle, or what a tuner optimises.
        likelihood: of a sampler; empty means the one that `adapt` takes for the metric.
        rule: the decision rule of `rerank`.
        derivations: as for `rerank`.
        prior_variance: σ_T.
        nbest_size: hypotheses that are left of each list, of both texts; 0 leaves them all.
        own: settings of the sampler or tuner, in order of their names; the others have defaults.
        of_likelihood: settings of the likelihood, likewise.
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
    own: tuple[tuple[str, Value], ...] = msgspec.field(default=(), name="settings")
    of_likelihood: tuple[tuple[str, Value], ...] = ()

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

    def likely(self) -> Likelihood | None:
        """Return its likelihood, or None where `adapt` decides."""
        if not self.likelihood:
            return None
        return LIKELIHOODS.resolve(self.likelihood, dict(self.of_likelihood))

    def with_settings(self, values: Mapping[str, Any], name: str = "") -> Method:
        """Return the method with other settings, and with another name if one is given.

        Raises:
            UsageError: if a setting is unknown to the method, or makes no sense.

        >>> named_methods()["nuts"].with_settings({"prior_variance": 1, "draws": 500}).own
        (('draws', 500),)
        >>> named_methods()["nuts"].with_settings({"likelihood": "margin", "gamma": 4}).likely()
        Margin(gamma=4)
        """
        for key, value in values.items():
            if not isinstance(value, Value):
                raise UsageError(f"{key} must be a number or a text, not {value!r}")
        common = {key: value for key, value in values.items() if key in COMMON}
        likelihood = common.get("likelihood", self.likelihood)
        theirs = self._settings_of(likelihood)
        kept = self.of_likelihood if likelihood == self.likelihood else ()
        changed = msgspec.structs.replace(
            self,
            **common,
            name=name or self.name,
            own=_merged(self.own, values, lambda key: key not in COMMON and key not in theirs),
            of_likelihood=_merged(kept, values, lambda key: key in theirs),
        )
        changed.check()
        return changed

    def _settings_of(self, likelihood: Any) -> tuple[str, ...]:
        """Return the settings that a likelihood has, and the sampler has not."""
        if self.kind != SAMPLER or likelihood not in LIKELIHOODS:
            return ()
        sampler = SAMPLERS[self.engine].__struct_fields__
        return tuple(n for n in LIKELIHOODS[likelihood].__struct_fields__ if n not in sampler)

    def check(self) -> None:
        """Raise a UsageError unless the settings make sense together."""
        one_of(self.rule, tuple(RULES), "rule")
        one_of(self.derivations, DERIVATIONS, "treatment of derivations")
        # What is not registered may be a column of the lists: the study knows.
        if self.kind == TUNER and self.metric in METRICS:
            one_of(self.metric, counted_metrics(unreported=True), "metric")
        if self.likelihood and self.kind != SAMPLER:
            raise UsageError(f"the method {self.name} has no likelihood: it is no sampler")
        if self.kind == SAMPLER:
            self.sampler()
            self.likely()
        elif self.kind == TUNER:
            self.tuner()
        elif self.own:
            raise UsageError(
                f"the method {self.name} has no setting {self.own[0][0]}: it has none of its own"
            )


def named_methods() -> dict[str, Method]:
    """Return all samplers and tuners under their names, and what the papers call otherwise."""
    samplers = [
        Method(
            name=name,
            kind=SAMPLER,
            engine=name,
            likelihood="oracle" if name in PUBLISHED else "",
        )
        for name in SAMPLERS
    ]
    tuners = [Method(name=name, kind=TUNER, engine=name, metric="bleu") for name in TUNERS]
    known = {method.name: method for method in (*samplers, *tuners)}
    walk = known["rwm-isotropic"]
    others = [
        Method(name="canonical", kind=CANONICAL),
        known["heuristic"].with_settings({"rule": "viterbi"}, "heur-vit"),
        walk.with_settings({}, "mcmc"),
        walk.with_settings({"rule": "viterbi"}, "mcmc-vit"),
    ]
    return {**known, **{method.name: method for method in others}}


def _merged(
    old: tuple[tuple[str, Value], ...], new: Mapping[str, Value], taken: Callable[[str], bool]
) -> tuple[tuple[str, Value], ...]:
    """Return settings in order of their names: the old ones, and those new ones that are taken."""
    return tuple(sorted({**dict(old), **{k: v for k, v in new.items() if taken(k)}}.items()))
