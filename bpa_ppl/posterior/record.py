"""Record: how draws were made, as typed fields and as the attributes of ArviZ data and files.

Each field of `Record` is an attribute of a file, except `sampler` and `figures`, whose own fields
are attributes, and `others`, which has the attributes of whoever knows more about the posterior: it
is read by those who wrote it. Fields that are not recorded are left out of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct, field, structs

from bpa_ppl.errors import DataError, quote

S = TypeVar("S", bound=Struct)

#: The settings of a component, as in JSON.
Settings = dict[str, Any]
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
#: The attribute of ArviZ's schema with the duration of the sampling in seconds.
_SECONDS = "sampling_time"
#: The version of an installed package; reading its metadata takes a millisecond.
read_version = cache(version)


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
        seed: the seed of the sampler.
        model: the name of the model function.
        versions: the versions of Python and of the packages.
        machine: system, processor and device.
        figures: what the sampler reports about its run.
        from_prior: the comparison with draws of the prior; None if few of them have weight.
        verdict: the result of the check.
        flat: site -> the number of its cells that the density does not depend on.
        improper: the sites whose priors have no draws: improper, masked and scaled ones.
        reparametrisations: site -> the call of `numpyro.infer.reparam` that suits it.
        others: further attributes by name, as plain data: what those who made the posterior record
            of it, as `adapt` of its lists, and those of other programs.

    >>> record = Record(seed=3, sampler=SamplerRecord(name="imh", settings={"draws": 10}))
    >>> to_attributes(record)
    {'sampler': 'imh', 'settings': {'draws': 10}, 'seed': 3}
    >>> from_attributes(to_attributes(record)) == record
    True
    """

    sampler: SamplerRecord = SamplerRecord()
    seed: int | None = None
    model: str | None = None
    versions: dict[str, str] = {}
    machine: str | None = None
    figures: Figures = Figures()
    from_prior: FromPrior | None = None
    verdict: Verdict | None = field(name="check", default=None)
    flat: dict[str, int] = field(name="cells_without_density", default={})
    improper: tuple[str, ...] = field(name="improper_priors", default=())
    reparametrisations: dict[str, str] = {}
    others: dict[str, Any] = {}


def to_attributes(record: Record) -> dict[str, Any]:
    """Return a record as attributes by name: plain values, texts and numbers.

    >>> to_attributes(Record(seed=3, model="schools", others={"lists": "dev.jsonl"}))
    {'seed': 3, 'model': 'schools', 'lists': 'dev.jsonl'}
    """
    own = to_plain(structs.replace(record, others={}))
    names = list_fields(Record)
    return own | {name: value for name, value in record.others.items() if name not in names}


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
    record, others = read_fields(Record, attrs, foreign=foreign)
    return structs.replace(record, others=others)


@cache
def list_fields(cls: type[Struct]) -> Mapping[str, tuple[str, structs.FieldInfo]]:
    """Return the attributes of a structure by name: the group and the field of each.

    A field that is a structure itself is a group, whose own fields are attributes; attributes
    outside groups have the group "". `others` is no attribute.
    """
    result: dict[str, tuple[str, structs.FieldInfo]] = {}
    for info in structs.fields(cls):
        if isinstance(info.type, type) and issubclass(info.type, Struct):
            result |= {of.encode_name: (info.name, of) for of in structs.fields(info.type)}
        elif info.name != "others":
            result[info.encode_name] = "", info
    return result


def to_plain(record: Struct) -> dict[str, Any]:
    """Return the attributes of a structure as plain data by name, see `list_fields`.

    >>> to_plain(Record(sampler=SamplerRecord(name="imh"), seed=3))
    {'sampler': 'imh', 'seed': 3}
    """
    groups = {group for group, _ in list_fields(type(record)).values()}
    result: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(record, enc_hook=_as_plain).items():
        result |= value if name in groups else {name: value}
    plain: dict[str, Any] = _with_lists(result)
    return plain


def read_fields(
    cls: type[S],
    attrs: Mapping[str, Any],
    parse: Mapping[str, Callable[[Any], Any]] | None = None,
    *,
    foreign: bool = False,
) -> tuple[S, dict[str, Any]]:
    """Return the structure in attributes, and the attributes that are not of it.

    Args:
        cls: the structure, see `list_fields`.
        attrs: the attributes by name, as `to_plain` returns them.
        parse: name -> a function that brings the attribute into the form of its field.
        foreign: as for `from_attributes`.

    Raises:
        DataError: if an attribute has another type; the error names it.
    """
    fields = list_fields(cls)
    parts: dict[str, dict[str, Any]] = {group: {} for group, _ in fields.values()}
    others = dict(attrs)
    for name in [name for name in attrs if name in fields]:
        group, info = fields[name]
        value = parse[name](attrs[name]) if parse and name in parse else attrs[name]
        try:
            parts[group][info.name] = msgspec.convert(value, info.type)
            del others[name]
        except (msgspec.ValidationError, UnicodeError) as error:
            if foreign and name != _SECONDS:
                continue
            problem = f"the attribute {name} of the posterior is {quote(attrs[name])} ({error}): "
            problem += "correct it, or adapt again"
            raise DataError(problem, parameter="attrs", code="damaged") from error
    types = {info.name: info.type for info in structs.fields(cls)}
    groups = {group: types[group](**of) for group, of in parts.items() if group}
    return cls(**parts.get("", {}), **groups), others


def _as_plain(value: Any) -> Any:
    """Return a NumPy value, or a mapping other than a dictionary, as plain data."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, str):  # of a class of its own
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is an object of Python")


def _with_lists(value: Any) -> Any:
    """Return plain data with lists in place of tuples, as it is read from a file."""
    if isinstance(value, dict):
        return {name: _with_lists(of) for name, of in value.items()}
    return [_with_lists(one) for one in value] if isinstance(value, list | tuple) else value
