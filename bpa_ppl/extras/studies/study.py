"""A study: which methods are compared, on which texts, with how many adaptation sentences.

`read_study` reads one from a TOML file, `list_cells` lists its cells with their methods, and
`draw_sentences` draws A.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
from msgspec import Meta

from bpa_ppl._runtime.arguments import check_seed, require, require_one_of
from bpa_ppl._runtime.arrays import Int64
from bpa_ppl.adapting.settings import PRESETS
from bpa_ppl.components import Component, CountOrNone, Registry, read_name
from bpa_ppl.decoding.rules import RULES
from bpa_ppl.errors import DataError, UsageError, unknown_name, wrong_type
from bpa_ppl.extras.studies.tuning.redecoding import Decoder
from bpa_ppl.extras.studies.tuning.tuner import TUNERS
from bpa_ppl.extras.studies.tuning.weight_trace import WeightTrace
from bpa_ppl.formats.streams import read_text
from bpa_ppl.gains.gains import list_reported_metrics, resolve_without_lists, text_metrics
from bpa_ppl.gains.metric import GAINS
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.models.priors.prior import PRIORS
from bpa_ppl.samplers.sampler import SAMPLERS

if TYPE_CHECKING:
    from bpa_ppl.models.likelihoods.likelihood import Likelihood
    from bpa_ppl.models.priors.prior import PriorFamily

_NAME = r"[A-Za-z0-9+_-]+"  # names become parts of file names
# A larger number of sentences or draws is a mistake, and would fill the memory.
_Size = Annotated[int, Meta(ge=1, le=1_000_000)]
_Name = Annotated[str, Meta(pattern=f"^{_NAME}$")]
_Value = bool | int | float | str

CANONICAL: Final = "canonical"
SAMPLER: Final = "sampler"
TUNER: Final = "tuner"
#: Kind of a method -> its samplers or tuners.
_ENGINES: dict[str, Registry[Any]] = {SAMPLER: SAMPLERS, TUNER: TUNERS}
#: Setting -> the kinds of methods that have it.
_KINDS_BY_SETTING = {
    "likelihood": (SAMPLER,),
    "redecode": (TUNER,),
    "decode_test": (SAMPLER, TUNER),
    "development": (SAMPLER, TUNER),
}
#: Settings of all methods; others belong to the sampler, the tuner, the likelihood or the prior.
_COMMON = (
    *("decode_test", "development", "gain", "likelihood", "nbest_size", "prior", "redecode"),
    "rule",
)


class Method(Component, frozen=True):
    """One way from adaptation sentences to translations.

    Attributes:
        name: by which the results are filed.
        kind: `canonical` (unchanged weights), `sampler` or `tuner`.
        engine: the name of the sampler or tuner.
        gain: of the oracles, or of the tuner.
        likelihood: of a sampler, with settings after its name or without; empty uses the default
            of `adapt`: that of a published sampler, or of the gain.
        prior: of a sampler, with settings after its name or without.
        rule: the decision rule of `rerank`.
        nbest_size: the number of candidates to keep of each list; 0 keeps all.
        redecode: whether a tuner decodes A again with its weights and repeats, until nothing is
            new.
        decode_test: whether the test sentences are decoded again with the adapted weights, of a
            sampler the posterior mean, before the method chooses from their lists.
        development: whether the method learns from A and the lists of [development], D, together
            (A ∪ D); D is never decoded again.
        engine_settings: settings of the sampler or tuner, sorted by name.
        likelihood_settings: settings of the likelihood, sorted by name.
        prior_settings: settings of the prior, sorted by name.
    """

    name: str
    kind: Literal["canonical", "sampler", "tuner"]
    engine: str = ""
    gain: str = "ter"
    likelihood: str = ""
    prior: str = "isotropic:variance=0.1"
    rule: str = "predictive"
    nbest_size: CountOrNone = 0
    redecode: bool = False
    decode_test: bool = False
    development: bool = False
    engine_settings: tuple[tuple[str, _Value], ...] = msgspec.field(default=(), name="settings")
    likelihood_settings: tuple[tuple[str, _Value], ...] = ()
    prior_settings: tuple[tuple[str, _Value], ...] = ()

    @property
    def needs_development(self) -> bool:
        """Whether it also learns from the text that λ_T was tuned on."""
        return self.development or (self.kind == SAMPLER and SAMPLERS[self.engine] is WeightTrace)

    def component(self) -> Any:
        """Return its sampler or tuner with its settings."""
        return _ENGINES[self.kind].resolve(self.engine, dict(self.engine_settings))

    def resolve_likelihood(self) -> Likelihood | None:
        """Return its likelihood, or None for the default of `adapt`."""
        if not self.likelihood:
            return None
        return LIKELIHOODS.resolve(self.likelihood, dict(self.likelihood_settings))

    def resolve_prior(self) -> PriorFamily:
        """Return its prior."""
        return PRIORS.resolve(self.prior, dict(self.prior_settings))

    def with_settings(self, values: Mapping[str, Any], name: str = "") -> Method:
        """Return the method with other settings, and with another name if one is given.

        Raises:
            UsageError: if the method has no such setting, or a value is invalid.

        >>> wide = list_methods()["nuts"].with_settings({"variance": 1, "draws": 5})
        >>> wide.engine_settings, wide.prior_settings
        ((('draws', 5),), (('variance', 1),))
        >>> steep = list_methods()["nuts"].with_settings({"likelihood": "margin", "gamma": 4})
        >>> steep.resolve_likelihood().gamma
        4
        """
        for key, value in values.items():
            if not isinstance(value, _Value):
                raise wrong_type(f"{key} must be a number or a text", value, key)
        common = {key: value for key, value in values.items() if key in _COMMON}
        owners: dict[str, str] = {}  # the engine comes first, and reports what nobody has
        settings = {"engine": dict(self.engine_settings), "likelihood": {}, "prior": {}}
        for part, registry in (("prior", PRIORS), ("likelihood", LIKELIHOODS)):
            chosen = common.get(part, getattr(self, part))
            if chosen == getattr(self, part):
                settings[part] = dict(getattr(self, f"{part}_settings"))
            component = read_name(str(chosen))
            if self.kind == SAMPLER and component in registry:
                owners |= dict.fromkeys(registry[component].__struct_fields__, part)
        if self.kind == SAMPLER:
            owners |= dict.fromkeys(SAMPLERS[self.engine].__struct_fields__, "engine")
        for key, value in values.items():
            if key not in common:
                settings[owners.get(key, "engine")][key] = value
        changed = msgspec.structs.replace(
            self,
            **common,
            name=name or self.name,
            **{f"{part}_settings": tuple(sorted(of.items())) for part, of in settings.items()},
        )
        changed.check()
        return changed

    def check(self) -> None:
        """Raise a UsageError unless the settings are valid together."""
        RULES.resolve(self.rule)
        for key, kinds in _KINDS_BY_SETTING.items():
            if getattr(self, key) and self.kind not in kinds:
                message = f"the method {self.name} is not a {' or '.join(kinds)}: leave out {key}"
                raise UsageError(message, parameter=key, code="not-supported")
        if self.kind != CANONICAL:
            # Settings of a likelihood that does not exist went to the sampler.
            self.resolve_likelihood()
            self.resolve_prior()
            self.component()
        elif self.engine_settings:
            setting, owner = self.engine_settings[0][0], f"the method {self.name}"
            raise unknown_name("setting", setting, (), setting, owner=owner, code="unknown-name")


def list_methods() -> dict[str, Method]:
    """Return all samplers and tuners by name, and the methods that the papers name otherwise."""
    methods = {name: Method(name=name, kind=SAMPLER, engine=name) for name in SAMPLERS}
    methods |= {n: Method(name=n, kind=TUNER, engine=n, gain="bleu") for n in TUNERS}
    walk = methods["rwm-isotropic"]
    for name, preset in PRESETS.items():
        engine, settings = SAMPLERS.parse(preset["sampler"])
        others = {key: value for key, value in preset.items() if key != "sampler"}
        methods[name] = methods[engine].with_settings({**others, **settings}, name)
    return {
        **methods,
        "canonical": Method(name="canonical", kind=CANONICAL),
        "heur-vit": methods["heuristic"].with_settings({"rule": "viterbi"}, "heur-vit"),
        "mert+": methods["mert"].with_settings({"development": True}, "mert+"),
        "mcmc": walk.with_settings({}, "mcmc"),
        "mcmc-vit": walk.with_settings({"rule": "viterbi"}, "mcmc-vit"),
    }


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the TOML file, as it is written; lists have no repeated values."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            values = getattr(self, name)
            if isinstance(values, tuple) and len(set(map(str, values))) < len(values):
                raise ValueError(f"{name} contains a value twice: remove one")


class ListFiles(_Table, frozen=True):
    """The files of a text: lists, references, sources; the id of the first sentence; features."""

    nbest: Path
    references: tuple[Path, ...] = ()
    sources: Path | None = None
    first_id: int = 0
    features: tuple[str, ...] = ()


class StudyDomain(_Table, frozen=True):
    """A domain to adapt to.

    Attributes:
        name: by which results are filed.
        weights: the canonical weights λ_T; None starts without any.
        adapt: the lists from which A is drawn.
        adapt_references: their references.
        adapt_sources: their sources, for a decoder.
        test: the lists to translate; None takes sentences from `adapt`.
        test_references: their references.
        test_sources: their sources.
        held_out: how many sentences of `adapt` are translated instead; a shuffle with the seed of
            the study picks them.
        first_id: the id of the first sentence.
        features: columns that are features, as for `read_nbest`; empty keeps those that the files,
            or their formats, define.
    """

    name: str
    weights: Path | None
    adapt: Path
    adapt_references: tuple[Path, ...] = ()
    adapt_sources: Path | None = None
    test: Path | None = None
    test_references: tuple[Path, ...] = ()
    test_sources: Path | None = None
    held_out: CountOrNone = 0
    first_id: int = 0
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.held_out and not self.test:
            raise ValueError("test is missing: add test, or held_out")

    def files(self, text: Literal["adapt", "test"]) -> ListFiles:
        """Return the files of one of its texts."""
        names = (text, f"{text}_references", f"{text}_sources", "first_id", "features")
        return ListFiles(*(getattr(self, name) for name in names))


class Sweep(_Table, frozen=True):
    """One setting of some methods, varied at some sizes of A."""

    setting: str
    values: tuple[Any, ...]
    methods: tuple[str, ...]
    sizes: tuple[_Size, ...]


class Study(_Table, frozen=True):
    """Everything that the results of a study depend on.

    Attributes:
        domains: the domains.
        methods: the methods that are compared at all sizes.
        sizes: of A, in sentences.
        draws: of A, at each size.
        seed: of the draws of A, of samplers and of tuners.
        replacement: whether A is drawn with replacement, as published.
        development: the out-of-domain text that λ_T was tuned on, for methods that need it.
        sweeps: settings that are varied.
        decoder: decodes sentences again, for methods that need it.
        columns: scores in the lists that are metrics, not features; higher is better.
        categorical: columns whose values become features for samplers, such as `system`.
    """

    domains: Annotated[tuple[StudyDomain, ...], Meta(min_length=1)]
    methods: Annotated[tuple[Method, ...], Meta(min_length=1)]
    sizes: Annotated[tuple[_Size, ...], Meta(min_length=1)]
    draws: _Size = 10
    seed: int = 0
    replacement: bool = True
    development: ListFiles | None = None
    sweeps: tuple[Sweep, ...] = ()
    decoder: Decoder | None = None
    columns: tuple[_Name, ...] = ()
    categorical: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the results: with references gains such as WER, TER, BLEU; columns."""
        gains = [method.gain for method in self.every_method]
        return (*(list_reported_metrics(gains) if self.has_references else ()), *self.columns)

    @property
    def has_references(self) -> bool:
        """Whether all texts of the domains have references."""
        return all(d.adapt_references and (d.held_out or d.test_references) for d in self.domains)

    @property
    def every_size(self) -> tuple[int, ...]:
        """All sizes of A, including those of sweeps, ascending."""
        return tuple(sorted({*self.sizes, *(size for s in self.sweeps for size in s.sizes)}))

    @property
    def every_method(self) -> tuple[Method, ...]:
        """All methods with the settings that they run with, including those of sweeps."""
        variants = (method for size in self.every_size for _, method in _list_variants(self, size))
        return tuple(dict.fromkeys(variants))


def read_study(path: str | Path) -> Study:
    """Read a study from a TOML file; the files that it names are relative to its own folder.

    ```
    sizes = [10, 100]                      # |A|
    draws = 10                             # of A, at each size
    methods = ["canonical", "imh", "mert", "mert-ter"]

    [domains.captions]
    weights = "moses.ini"
    adapt = "adapt.nbest.gz"
    adapt_references = ["adapt.ref"]
    test = "test.nbest.gz"                 # or held_out = 100, sentences taken from `adapt`
    test_references = ["test.ref"]

    [variants.mert-ter]                    # a method under another name with other settings
    like = "mert"
    gain = "ter"

    [variants.barker]                      # a NumPyro kernel with its parameters
    like = "numpyro:BarkerMH"
    step_size = 0.5

    [variants.steep]                       # settings of the likelihood are possible, too
    like = "imh"
    likelihood = "margin"
    gamma = 4

    [sweeps.prior]                         # one setting varied
    setting = "variance"                   # of the prior, `isotropic` unless another is named
    values = [0.01, 0.1, 1.0]
    methods = ["imh"]
    sizes = [100]

    [development]                          # what λ_T was tuned on, for weight-trace and mert+
    nbest = "dev.nbest.gz"
    references = ["dev.ref"]

    [variants.map-both]                    # A and these lists together, as mert+ does with mert
    like = "map"
    development = true

    [decoder]                              # for redecode and decode_test
    command = "moses -f {weights} -n-best-list {nbest} 500 < {sources}"
    template = "moses.ini"

    [variants.mert-decoding]               # A is decoded with each new set of weights, then the
    like = "mert"                          # test sentences with the last
    redecode = true
    decode_test = true
    ```

    A decoder needs sources: `adapt_sources` and `test_sources` of each domain, or lists with
    sources. A shell runs its command in the folder of the study, as the user of this process, so
    run only studies that you trust. Its time is a part of that of a tuner.
    `published`, `published-2010` and `published-sspr` are methods, as the presets of `adapt`.

    `seed` and `replacement = false` can be set too, and `first_id = 1` for texts whose lists are
    numbered from one. Domains with tables or JSON lines name their features:
    `features = ["logprob", "judge_*"]`. `columns = ["mqm"]` names scores in the lists (`-NAME`:
    lower is better), which are reported and can be the `gain` of a method; if all methods have such
    a gain, no references are needed. `categorical = ["system"]` makes features of a column of
    texts.
    `weights = "none"` starts without canonical weights.

    Raises:
        DataError: at the first mistake: an unknown key, method or setting, a missing file, or an
            invalid value.

    >>> read_study("no.toml")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no.toml: no such file...
    """
    path = Path(path)
    text, folder = read_text(path), path.parent

    def existing(_: type, name: object) -> Path:
        """Return the path of a file that the study names."""
        file = folder / str(name)
        if not os.path.isfile(file):  # also of a name that no file can have
            message = f"file not found: {file}; paths are relative to the study"
            raise UsageError(message, code="missing-file")
        return file

    with _locate_errors(path):
        table: dict[str, Any] = msgspec.toml.decode(text)
    members = {}
    for key in ("variants", "domains", "sweeps"):
        with _locate_errors(path, key):
            members[key] = msgspec.convert(table.pop(key, {}), dict[_Name, dict[str, Any]])
    methods = list_methods()
    for name, settings in members["variants"].items():
        with _locate_errors(path, f"variants.{name}"):
            if name in methods:
                message = f"{name} is already the name of a method: choose another name"
                raise UsageError(message, code="duplicate")
            if "like" not in settings:
                raise UsageError("a method needs like: name the method that this is a variant of")
            like = settings.pop("like")
            require(like, str, "like is the name of a method")
            family = methods.get(read_name(like))
            if like in methods or family is None or family.kind == CANONICAL:
                base = _find_method(like, methods)
            else:  # the sampler or tuner has settings after its name
                registry, written = _ENGINES[family.kind], like[len(family.name) :]
                engine, options = registry.parse(family.engine + written)
                settings = {**options, **settings}
                base = msgspec.structs.replace(family, engine=engine)
            methods[name] = base.with_settings(settings, name)
    with _locate_errors(path):
        names = msgspec.convert(table.get("methods", []), list[str])
        chosen = {name: _find_method(name, methods) for name in names}
    domains, sweeps = [], []
    for name, settings in members["domains"].items():
        with _locate_errors(path, f"domains.{name}"):
            settings["name"] = name
            if settings.get("weights") == "none":
                settings["weights"] = None
            domains.append(msgspec.convert(settings, StudyDomain, dec_hook=existing))
    for name, settings in members["sweeps"].items():
        with _locate_errors(path, f"sweeps.{name}"):
            sweeps.append(msgspec.convert(settings, Sweep))
            _check_sweep(sweeps[-1], chosen)
    with _locate_errors(path):
        table |= {"methods": [methods[name] for name in names]}
        table |= {"domains": domains, "sweeps": sweeps}
        study = msgspec.convert(table, Study, dec_hook=existing)
        check_seed(study.seed)
        decoder = study.decoder
        if decoder is not None:
            decoder = msgspec.structs.replace(decoder, folder=folder.resolve())
        sizes = tuple(sorted(study.sizes))
        study = msgspec.structs.replace(study, sizes=sizes, decoder=decoder)
        _check(study)
    return study


@contextmanager
def _locate_errors(path: Path, table: str = "") -> Iterator[None]:
    """Turn an error into a DataError that says in which table of the file it occurred."""
    where = f"in [{table}]: " if table else ""
    try:
        yield
    except msgspec.ValidationError as error:
        code = getattr(error.__cause__, "code", "wrong-type")
        raise DataError(f"{where}not a valid study: {error}", path, code=code) from error
    except msgspec.DecodeError as error:
        message = f"not a TOML file ({error}): write settings as NAME = VALUE, texts in quotes"
        raise DataError(message, path, code="unknown-format") from error
    except UsageError as error:
        code = None if error.code == UsageError.code else error.code
        raise DataError(f"{where}{error}", path, code=code) from error
    except (RecursionError, ValueError) as error:  # too deep a nesting, too long a number
        message = "a value is too large to read: correct it"
        raise DataError(message, path, code="bad-number") from error


def _find_method(name: str, methods: Mapping[str, Method]) -> Method:
    methods[require_one_of(name, methods, "method")].check()
    return methods[name]


def _check_sweep(sweep: Sweep, methods: Mapping[str, Method]) -> None:
    for value in sweep.values:
        # A text becomes a part of file names.
        is_name = not isinstance(value, str) or re.fullmatch(_NAME, value)
        if not (isinstance(value, _Value) and is_name):
            raise wrong_type("values must be numbers or names", value)
        for name in sweep.methods:
            _find_method(name, methods).with_settings({sweep.setting: value})


def _check(study: Study) -> None:
    """Raise a UsageError if the parts of a study do not fit together."""
    if study.decoder is not None and "{sources}" not in study.decoder.command:
        message = "the decoder command needs {sources}: write it for the name of that file"
        raise UsageError(message, code="missing-argument")
    if clash := [column for column in study.columns if column in GAINS]:
        message = f"columns: {clash[0]} is the name of a metric: rename the column"
        raise UsageError(message, code="duplicate")
    for method in study.every_method:
        metrics = text_metrics() if method.kind == TUNER else [m for m in GAINS if m != "column"]
        if method.kind != CANONICAL:
            require_one_of(method.gain, [*metrics, *study.columns], "metric")
            needed = resolve_without_lists(method.gain).needs
            if "references" in needed and not study.has_references:
                raise UsageError(
                    f"the gain {method.gain} of {method.name} needs adapt_references and "
                    "test_references: add them, or name a column of the lists as its gain",
                    code="missing-references",
                )
        if method.needs_development and study.development and not study.development.references:
            message = f"{method.name} needs development lists with references: add them"
            raise UsageError(message, code="missing-references")
        if method.needs_development and study.development is None:
            message = f"{method.name} needs the text that λ_T was tuned on: add [development]"
            raise UsageError(message, code="no-data")
        if (method.redecode or method.decode_test) and study.decoder is None:
            message = f"{method.name} needs a decoder: add [decoder] with a command"
            raise UsageError(message, code="no-data")


class Cell(NamedTuple):
    """One run of one method.

    Attributes:
        domain: the name of the domain.
        size: |A|.
        draw: the number of the draw of A, from 0.
        method: the name of the method.
        setting: `name=value` if it is swept, else empty.
    """

    domain: str
    size: int
    draw: int
    method: str
    setting: str

    @property
    def name(self) -> str:
        """The name of the files of the cell.

        >>> Cell("captions", 10, 0, "imh", "draws=500").name
        'captions.10.0.imh.draws=500'
        """
        return ".".join(map(str, self))


def list_cells(study: Study) -> dict[Cell, Method]:
    """Return the method of each cell, with the settings that it runs with.

    Cells are in the order of the results: domain, size, draw, method.

    >>> from pathlib import Path
    >>> files = Path("moses.ini"), Path("nbest"), (Path("ref"),)
    >>> domain = StudyDomain("d", *files, held_out=10)
    >>> methods = list_methods()
    >>> study = Study((domain,), (methods["imh"], methods["mert"]), sizes=(10, 20), draws=1)
    >>> [cell.name for cell in list_cells(study)]
    ['d.10.0.imh.', 'd.10.0.mert.', 'd.20.0.imh.', 'd.20.0.mert.']
    """
    # A value may occur in two sweeps: its cells run once.
    return {
        Cell(domain.name, size, draw, method.name, setting): method
        for domain in study.domains
        for size in study.every_size
        for draw in range(study.draws)
        for setting, method in _list_variants(study, size)
    }


def _list_variants(study: Study, size: int) -> Iterator[tuple[str, Method]]:
    """Yield the methods that run at a size, then the swept settings."""
    if size in study.sizes:
        yield from (("", method) for method in study.methods)
    methods = {method.name: method for method in study.methods}
    for sweep in study.sweeps:
        for name in sweep.methods if size in sweep.sizes else ():
            for value in sweep.values:
                changed = methods[name].with_settings({sweep.setting: value})
                yield f"{sweep.setting}={value}", changed


def make_generator(study: Study, *key: str | int) -> np.random.Generator:
    """Return a random generator that depends only on the seed of a study and on `key`.

    >>> study = Study((), (), (10,), seed=1)
    >>> first, other, again = (make_generator(study, "A", n).random() for n in (0, 1, 0))
    >>> first == again, first == other
    (True, False)
    """
    words = [crc32(word.encode()) if isinstance(word, str) else word for word in key]
    return np.random.default_rng([study.seed, *words])


def draw_sentences(study: Study, cell: Cell, sentences: int) -> Int64:
    """Return the positions of A, (|A|,), among some sentences: the same for every method.

    >>> study = Study((), (), (10,), replacement=False)
    >>> sorted(draw_sentences(study, Cell("d", 4, 0, "imh", ""), sentences=4).tolist())
    [0, 1, 2, 3]
    """
    source = make_generator(study, "A", cell.domain, cell.size, cell.draw)
    return source.choice(sentences, size=cell.size, replace=study.replacement)


def choose_seed(study: Study, cell: Cell) -> int:
    """Return the seed of the sampler or tuner of a cell: it differs between draws of A.

    >>> study, cell = Study((), (), (10,)), Cell("d", 10, 0, "imh", "")
    >>> choose_seed(study, cell) == choose_seed(study, cell._replace(method="mert"))
    True
    >>> choose_seed(study, cell) == choose_seed(study, cell._replace(draw=1))
    False
    """
    source = make_generator(study, "method", cell.domain, cell.size, cell.draw)
    return int(source.integers(2**31))
