"""AdaptationRecord: to which lists weights were adapted, and how, as attributes of a posterior.

Each field is an attribute of a file, except `observed` and `recipe`, whose own fields are
attributes. `bpa_ppl.posterior.record.Record` has the rest, and these among its `others`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from msgspec import Struct, field, structs

from bpa_ppl._runtime.messages import format_count
from bpa_ppl.errors import list_names
from bpa_ppl.posterior.record import Record, Settings, list_fields, read_fields, to_plain
from bpa_ppl.weights import CANONICAL, Start


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
        plain: dict[str, Any] = join_settings(to_plain(self))
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


class AdaptationRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """To which lists weights were adapted, and how. None and empty fields are unknown.

    Attributes:
        likelihood: the likelihood, if the model uses one.
        prior: the prior, if the model uses one.
        start: where the weights start: `canonical` weights, `equal` weights, or `none`.
        pretrained: features whose weights start at values learned from public judged lists.
        indicators: whether indicators explain the order of candidates.
        observed: what was observed.
        lists: the file name of the lists.
        reading: the options with which `bpa adapt` read this file: `format`, `bad` and `missing`.
        data: short hashes of the lists and of what was observed.
        recipe: which columns are features.
        feature_scales: how features vary within the lists.
        comparison: the comparison with simple baselines, as from `to_record`.
        options: the options that were passed to `adapt`, and the canonical weights.

    >>> adaptation = AdaptationRecord(
    ...     prior=PriorRecord("isotropic", {"variance": 0.1}), start="equal"
    ... )
    >>> record = adaptation.add_to(Record(seed=3))
    >>> record.others
    {'prior': {'name': 'isotropic', 'variance': 0.1}, 'canonical_weights': 'equal'}
    >>> AdaptationRecord.of(record) == adaptation
    True
    """

    likelihood: ComponentRecord | None = None
    prior: PriorRecord | None = None
    start: Start | None = field(name="canonical_weights", default=None)
    pretrained: tuple[str, ...] = ()
    indicators: IndicatorsRecord | None = None
    observed: ObservedRecord = ObservedRecord()
    lists: str | None = None
    reading: dict[str, Any] = {}
    data: dict[str, str] = {}
    recipe: RecipeRecord = RecipeRecord()
    feature_scales: dict[str, FeatureScale] = {}
    comparison: dict[str, Any] | None = field(name="baselines", default=None)
    options: dict[str, Any] | None = None

    @property
    def canonical(self) -> bool:
        """Whether the weights start at canonical weights; True if it is not recorded."""
        return self.start in (CANONICAL, None)

    @classmethod
    def of(cls, record: Record) -> AdaptationRecord:
        """Return what a posterior records of its adaptation.

        Another program may have attributes of the same names with another meaning: those of
        another type are left out, if the record does not name the version of this package.

        Raises:
            DataError: if an attribute has another type; the error names it.

        >>> AdaptationRecord.of(Record(others={"observed": "much"}, versions={"bpa_ppl": "1.0"}))
        Traceback (most recent call last):
        bpa_ppl.errors.DataError: the attribute observed of the posterior is 'much' (Invalid ...
        """
        foreign = "bpa_ppl" not in record.versions
        return read_fields(cls, record.others, _PARSERS, foreign=foreign)[0]

    def to_attributes(self) -> dict[str, Any]:
        """Return the attributes by name: plain values, texts and numbers."""
        plain = to_plain(self)
        return plain | {n: join_settings(plain[n]) for n in plain.keys() & _COMPONENTS.keys()}

    def add_to(self, record: Record | None = None) -> Record:
        """Return a record that has this one among its `others`, in place of another one.

        Args:
            record: by default an empty one.
        """
        record = Record() if record is None else record
        names = list_fields(AdaptationRecord)
        others = {name: value for name, value in record.others.items() if name not in names}
        return structs.replace(record, others=others | self.to_attributes())


def change_adaptation(record: Record, **changes: Any) -> Record:
    """Return a record with other values of some fields of its `AdaptationRecord`.

    >>> change_adaptation(Record(seed=3), lists="dev.jsonl").others
    {'lists': 'dev.jsonl'}
    """
    return structs.replace(AdaptationRecord.of(record), **changes).add_to(record)


def join_settings(value: Any) -> Any:
    """Merge the settings of components into their other entries.

    >>> join_settings({"name": "margin", "settings": {"gamma": 2.0}})
    {'name': 'margin', 'gamma': 2.0}
    """
    if isinstance(value, list):
        return [join_settings(one) for one in value]
    if not isinstance(value, dict):
        return value
    parts = (of if name == "settings" else {name: of} for name, of in value.items())
    return {name: join_settings(of) for part in parts for name, of in part.items()}


def _split(value: Any, cls: type[Struct]) -> Any:
    """Separate the settings of components from the entries that are fields of a class."""
    if isinstance(value, list) and not any(isinstance(one, list) for one in value):
        return [_split(one, cls) for one in value]
    if not isinstance(value, Mapping):
        return value
    names = {info.encode_name for info in structs.fields(cls)} - {"settings"}
    entries = {name: of for name, of in value.items() if name in names}
    return entries | {"settings": {name: of for name, of in value.items() if name not in names}}


#: Attributes that mix the settings of a component with its other entries.
_COMPONENTS: Mapping[str, type[Struct]] = {
    "likelihood": ComponentRecord,
    "prior": PriorRecord,
    "feature_sources": SourceRecord,
}
_PARSERS = {name: partial(_split, cls=cls) for name, cls in _COMPONENTS.items()}
