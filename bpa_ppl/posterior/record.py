"""Record: how draws were made, as typed fields and as the attributes of ArviZ data and files.

Each field of `Record` is an attribute of a file, except `observed`, `sampler`, `figures` and
`recipe`, whose own fields are attributes. Fields that are not recorded are left out of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct, field, structs

from bpa_ppl._runtime.messages import format_count
from bpa_ppl.errors import DataError, list_names, quote
from bpa_ppl.weights import CANONICAL, Start

#: The settings of a component, as in JSON.
Settings = dict[str, Any]
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
#: The attribute of ArviZ's schema with the duration of the sampling in seconds.
_SECONDS = "sampling_time"
#: The version of an installed package; reading its metadata takes a millisecond.
read_version = cache(version)


class Agreement(Struct, frozen=True):
    """The agreement of raters on the pairs that several of them answered.

    Attributes:
        raters: the number of raters.
        pairs: the number of pairs that at least two raters answered.
        alike: the number of these pairs whose answers are all the same.
        alpha: Krippendorff's α of the ordered answers first, tie, second; None if all answers are
            the same.

    >>> print(Agreement(raters=2, pairs=30, alike=21, alpha=0.58))
    2 raters answered 30 pairs in common, and agreed on 21 (Krippendorff's α 0.58)
    >>> print(Agreement(raters=2, pairs=1, alike=1, alpha=None))
    2 raters answered 1 pair in common, and agreed on 1
    """

    raters: int
    pairs: int
    alike: int
    alpha: float | None

    def __str__(self) -> str:
        both = f"{self.raters} raters answered {format_count(self.pairs, 'pair')} in common"
        if not self.pairs:
            return both
        alpha = "" if self.alpha is None else f" (Krippendorff's α {self.alpha:.2f})"
        return f"{both}, and agreed on {self.alike}{alpha}"


class ObservedRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was observed of the adaptation sentences.

    Attributes:
        kind: `oracles`, `gains` of all candidates, `preferences` between candidates, or `nothing`
            if there is no sentence.
        sentences: the number of lists, or of the choices in preferences.
        gain: the name of the gain; None for preferences.
        ties: how ties between oracles were broken.
        signature: the signature of the gain.
        comparisons: the numbers of lists, preferences, ties and rankings.
        raters: the number of choices of each rater who has a name.
        agreement: the agreement of the raters; None if fewer than two have names.
    """

    kind: Literal["oracles", "gains", "preferences", "nothing"] | None = field(
        name="observed", default=None
    )
    sentences: int | None = field(name="adaptation_sentences", default=None)
    gain: str | None = field(name="oracle_metric", default=None)
    ties: str | None = field(name="oracle_ties", default=None)
    signature: str | None = field(name="oracle_signature", default=None)
    comparisons: dict[str, int] = {}
    raters: dict[str, int] = {}
    agreement: Agreement | None = None

    def __str__(self) -> str:
        if self.kind is None:
            return "not recorded"
        if self.kind == "nothing":
            return self.kind
        if self.kind == "preferences":
            return f"preferences, {format_count(self.sentences or 0, 'choice')}"
        return f"{self.kind} of {format_count(self.sentences or 0, 'list')} by {self.gain}"


class ComponentRecord(Struct, frozen=True, omit_defaults=True):
    """The name of a component, such as a likelihood, and its settings as they were resolved.

    >>> print(ComponentRecord("margin", {"gamma": 2.0}))
    name=margin, gamma=2.0
    """

    name: str
    settings: Settings = {}

    @property
    def plain(self) -> dict[str, Any]:
        """Name, settings and what else is recorded, as plain data."""
        plain: dict[str, Any] = _join(msgspec.to_builtins(self, enc_hook=_as_plain))
        return plain

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.plain.items())


class PriorRecord(ComponentRecord, frozen=True, omit_defaults=True):
    """The prior: the name of its family or the kind of distribution, settings, and its scale.

    Attributes:
        scale: τ of the features without a canonical weight, if there are any.
        scale_learned: whether τ was learned from the sentences.
        spread: the standard deviation within the lists of each feature that τ scales.
        log_deviation: the standard deviation of log τ, if the scale is unknown.
        isotropic: the features that a learned prior lacks, whose prior is isotropic.
    """

    scale: float | None = None
    scale_learned: bool | None = None
    spread: dict[str, float] = {}
    log_deviation: float | None = None
    isotropic: tuple[str, ...] = ()


class SamplerRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sampler.

    Attributes:
        name: the name of the sampler.
        settings: all its settings; None if they are unknown.
        seconds: the duration of the sampling, without compilation.
        compilation: the seconds that JAX took to trace and to compile, or to read compiled programs
            from its cache.
        library: the package of the sampler, as other packages record it.
    """

    name: str | None = field(name="sampler", default=None)
    settings: Settings | None = None
    seconds: Positive | None = field(name=_SECONDS, default=None)
    compilation: Positive | None = field(name="compilation_time", default=None)
    library: str | None = field(name="inference_library", default=None)


class Figures(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a sampler reports about its run.

    Attributes:
        pareto_k: Pareto k̂ of importance weights before they were smoothed.
        log_evidence: log p(A) by Laplace's approximation.
        newton_iterations: the number of iterations in the search for the mode.
        newton_decrement: the squared length of the last of its steps, in posterior standard
            deviations.
        student_share: the share of the Student t in the proposals.
        step_setting: the setting that determines the size of the steps of a random walk.
        metric: how the metric was found, if not at the mode.
        modes: the number of modes that a search found, if there are several.
        jumps: lines on which the density jumps, if chains took many steps, diverged or did not mix.
        jump_sites: the sites at whose values it jumps.
        chosen: the sampler that was chosen automatically.
        chosen_settings: all its settings.
        chosen_because: the reason of this choice.
        drawn_again_because: the diagnostics that earlier draws failed.
        tried: the samplers that were tried automatically, with the chosen one.
        likelihood_exponent: 1/δ, the power of the likelihood in the importance weights, as in
            Eq. 11 of Sanchis-Trilles & Casacuberta (2015).
    """

    pareto_k: float | None = None
    log_evidence: float | None = None
    newton_iterations: int | None = None
    newton_decrement: float | None = None
    student_share: float | None = None
    step_setting: str | None = None
    metric: str | None = None
    modes: int | None = None
    jumps: int = 0
    jump_sites: tuple[str, ...] = ()
    chosen: str | None = None
    chosen_settings: Settings | None = None
    chosen_because: str | None = None
    drawn_again_because: str | None = None
    tried: tuple[str, ...] = ()
    likelihood_exponent: Positive = 1.0


class GainColumn(Struct, frozen=True):
    """The column of the lists that is the gain, and whether less is better."""

    column: str
    negative: bool = False


class SourceRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source of features.

    Attributes:
        source: the name of the source in the registry.
        settings: its settings, without the learned ones.
        file_hashes: the hashes of the files that it reads.
        feature_names: the columns that it computes.
    """

    source: str
    settings: Settings = {}
    file_hashes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name in the settings, or in the registry."""
        return str(self.settings.get("name") or self.source)


class RecipeRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which columns of lists are features, and which are computed.

    Attributes:
        gain: the column that is the gain, and not a feature.
        chosen: names or labels of the columns that are features; None takes all.
        excluded: names or labels of columns that are not features.
        absent: names or labels of features that new lists lack.
        sources: the sources of computed features.
    """

    gain: GainColumn | None = field(name="gain_column", default=None)
    chosen: tuple[str, ...] | None = field(name="chosen_features", default=None)
    excluded: tuple[str, ...] = field(name="excluded_features", default=())
    absent: tuple[str, ...] = field(name="absent_features", default=())
    sources: tuple[SourceRecord, ...] = field(name="feature_sources", default=())


class IndicatorsRecord(Struct, frozen=True):
    """Whether indicators of categories explain the order of candidates.

    Attributes:
        log_bayes_factor: the log Bayes factor for including the indicators.
        left_out: the columns whose indicators were left out.

    >>> str(IndicatorsRecord(-4.1, ("system",)))[:43]
    'the indicators of system are left out: they'
    """

    log_bayes_factor: float
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.left_out:
            return ""
        return (
            f"the indicators of {list_names(self.left_out)} are left out: they do not explain the "
            "order of the candidates of the judged lists (log Bayes factor "
            f"{self.log_bayes_factor:.1f}); to keep them, choose a prior variance"
        )


class FromPrior(Struct, frozen=True, kw_only=True):
    """The variable that differs most from draws of the prior, weighted by the likelihood.

    Attributes:
        effective: the number of effective draws of the prior.
        p_value: of the difference, with Bonferroni correction for the number of variables.
        where: the component.
        mean: its mean by the draws of the prior.
        deviation: its standard deviation by them.
    """

    effective: float
    p_value: float
    where: str
    mean: float
    deviation: float


class FeatureScale(Struct, frozen=True):
    """How a feature varies within the adaptation lists.

    Attributes:
        spread: its standard deviation within the lists, as in `NBest.spread`.
        deviation: the median of its standard deviation in the lists where it varies; 0 if these are
            fewer than five or than half of the lists.
        sign: the sign of all values other than 0; 0 if they have both signs, or a few are not 0.
        mean: its mean over all candidates; None if it is not recorded.
        slope: the slope of its regression on the score by the other features, over all candidates.
    """

    spread: float
    deviation: float = 0.0
    sign: int = 0
    mean: float | None = None
    slope: float = 0.0


@dataclass(frozen=True)
class Finding:
    """One diagnostic compared with its threshold.

    Attributes:
        name: the name of the diagnostic.
        value: its worst value.
        where: the feature, the component of another site such as `raw[2]`, or the chain with this
            value; or empty.
        limit: the threshold in words, such as `≤ 1.01`.
        passed: whether the value is within the limit.
        advice: one sentence that says what to do if it is not.

    >>> Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, "raise draws").cells
    ('R-hat', '1.2', '≤ 1.01', 'FAILED', 'LM0')
    """

    name: str
    value: float
    where: str
    limit: str
    passed: bool
    advice: str

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table of findings: name, value, limit, verdict, where."""
        verdict = "ok" if self.passed else "FAILED"
        return self.name, f"{self.value:.4g}", self.limit, verdict, self.where


class Verdict(Struct, frozen=True):
    """The result of the check of draws, with a checksum of the checked data.

    >>> print(Verdict(False, "", (Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, ""),)))
    failed: R-hat
    """

    passed: bool
    checksum: str
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        failed = ", ".join(finding.name for finding in self.findings if not finding.passed)
        return "passed" if self.passed else f"failed: {failed}"


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How draws were made. None and empty fields are unknown, as in draws of other programs.

    Attributes:
        sampler: the sampler of the draws.
        likelihood: the likelihood, if the model uses one.
        prior: the prior, if the model uses one.
        start: where the weights start: `canonical` weights, `equal` weights, or `none`.
        pretrained: features whose weights start at values learned from public judged lists.
        indicators: whether indicators explain the order of candidates.
        seed: the seed of the sampler.
        model: the name of the model function.
        observed: what was observed.
        lists: the file name of the lists.
        reading: the options with which `bpa adapt` read this file: `format`, `bad` and `missing`.
        data: short hashes of the lists and of what was observed.
        versions: the versions of Python and of the packages.
        machine: system, processor and device.
        recipe: which columns are features.
        figures: what the sampler reports about its run.
        from_prior: the comparison with draws of the prior; None if few of them have weight.
        feature_scales: how features vary within the lists.
        comparison: the comparison with simple baselines, as from `to_record`.
        options: the options that were passed to `adapt`, and the canonical weights.
        verdict: the result of the check.
        flat: site -> the number of its cells that the density does not depend on.
        improper: the sites whose priors have no draws: improper, masked and scaled ones.
        reparametrisations: site -> the call of `numpyro.infer.reparam` that suits it.
        others: further attributes of ArviZ data, from other programs.

    >>> record = Record(seed=3, sampler=SamplerRecord(name="imh", settings={"draws": 10}))
    >>> to_attributes(record)
    {'sampler': 'imh', 'settings': {'draws': 10}, 'seed': 3}
    >>> from_attributes(to_attributes(record)) == record
    True
    """

    sampler: SamplerRecord = SamplerRecord()
    likelihood: ComponentRecord | None = None
    prior: PriorRecord | None = None
    start: Start | None = field(name="canonical_weights", default=None)
    pretrained: tuple[str, ...] = ()
    indicators: IndicatorsRecord | None = None
    seed: int | None = None
    model: str | None = None
    observed: ObservedRecord = ObservedRecord()
    lists: str | None = None
    reading: dict[str, Any] = {}
    data: dict[str, str] = {}
    versions: dict[str, str] = {}
    machine: str | None = None
    recipe: RecipeRecord = RecipeRecord()
    figures: Figures = Figures()
    from_prior: FromPrior | None = None
    feature_scales: dict[str, FeatureScale] = {}
    comparison: dict[str, Any] | None = field(name="baselines", default=None)
    options: dict[str, Any] | None = None
    verdict: Verdict | None = field(name="check", default=None)
    flat: dict[str, int] = field(name="cells_without_density", default={})
    improper: tuple[str, ...] = field(name="improper_priors", default=())
    reparametrisations: dict[str, str] = {}
    others: dict[str, Any] = {}

    @property
    def canonical(self) -> bool:
        """Whether the weights start at canonical weights; True if it is not recorded."""
        return self.start in (CANONICAL, None)


#: Fields of a record whose own fields are attributes.
_GROUPS: Mapping[str, type[Struct]] = {
    "sampler": SamplerRecord,
    "observed": ObservedRecord,
    "recipe": RecipeRecord,
    "figures": Figures,
}
#: Attributes that mix the settings of a component with its other entries.
_COMPONENTS: Mapping[str, type[Struct]] = {
    "likelihood": ComponentRecord,
    "prior": PriorRecord,
    "feature_sources": SourceRecord,
}
#: The attributes that have a meaning here: the group and the field of each.
_ALL: Mapping[str, type[Struct]] = {"": Record, **_GROUPS}
_FIELDS = {
    info.encode_name: (group, info)
    for group, cls in _ALL.items()
    for info in structs.fields(cls)
    if group or info.name not in (*_GROUPS, "others")
}


def to_attributes(record: Record) -> dict[str, Any]:
    """Return a record as attributes by name: plain values, texts and numbers.

    >>> to_attributes(Record(prior=PriorRecord("isotropic", {"variance": 0.1}), start="equal"))
    {'prior': {'name': 'isotropic', 'variance': 0.1}, 'canonical_weights': 'equal'}
    """
    plain = msgspec.to_builtins(structs.replace(record, others={}), enc_hook=_as_plain)
    result: dict[str, Any] = {}
    for name, value in plain.items():
        if name in _GROUPS:
            result |= value
        else:
            result[name] = value
    for name in _COMPONENTS.keys() & result.keys():
        result[name] = _join(result[name])
    others = {name: value for name, value in record.others.items() if name not in _FIELDS}
    return {**others, **result}


def from_attributes(attrs: Mapping[str, Any], *, foreign: bool = False) -> Record:
    """Return the record in attributes; attributes with other names become `others`.

    Args:
        attrs: the attributes by name, as `to_attributes` returns them.
        foreign: whether another program wrote them. Then an attribute of another type has another
            meaning and becomes one of `others`, except `sampling_time`, which is in ArviZ's schema.

    Raises:
        DataError: if an attribute has another type; the error names it.

    >>> from_attributes({"seed": "three"})
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: the attribute seed of the posterior is 'three' (Expected ...
    >>> from_attributes({"seed": "three"}, foreign=True).others
    {'seed': 'three'}
    """
    parts: dict[str, dict[str, Any]] = {group: {} for group in _ALL}
    others = dict(attrs)
    for name in [name for name in attrs if name in _FIELDS]:
        group, info = _FIELDS[name]
        value = _split(attrs[name], _COMPONENTS[name]) if name in _COMPONENTS else attrs[name]
        try:
            parts[group][info.name] = msgspec.convert(value, info.type)
            del others[name]
        except (msgspec.ValidationError, UnicodeError) as error:
            if foreign and name != _SECONDS:
                continue
            problem = f"the attribute {name} of the posterior is {quote(attrs[name])} ({error}): "
            problem += "correct it, or adapt again"
            raise DataError(problem, parameter="attrs", code="damaged") from error
    groups: dict[str, Any] = {group: cls(**parts[group]) for group, cls in _GROUPS.items()}
    return Record(**parts[""], **groups, others=others)


def _as_plain(value: Any) -> Any:
    """Return a NumPy value, or a mapping other than a dictionary, as plain data."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is an object of Python")


def _join(value: Any) -> Any:
    """Merge the settings of components into their other entries, and turn tuples into lists."""
    if isinstance(value, list | tuple):
        return [_join(one) for one in value]
    if not isinstance(value, dict):
        return value
    parts = (of if name == "settings" else {name: of} for name, of in value.items())
    return {name: _join(of) for part in parts for name, of in part.items()}


def _split(value: Any, cls: type[Struct]) -> Any:
    """Separate the settings of components from the entries that are fields of a class."""
    if isinstance(value, list) and not any(isinstance(one, list) for one in value):
        return [_split(one, cls) for one in value]
    if not isinstance(value, Mapping):
        return value
    names = {info.encode_name for info in structs.fields(cls)} - {"settings"}
    entries = {name: of for name, of in value.items() if name in names}
    return entries | {"settings": {name: of for name, of in value.items() if name not in names}}
