"""The options that several commands share, and how texts become their values.

A command is a function that Cyclopts calls: its positional parameters are arguments, its keywords
options, and the `Args` section of its docstring has their help. An option that several commands
share is an annotated type, and a group of them a dataclass, such as `Reading`. A command with many
options shows them in boxes: those that everybody needs first, the others by what they are about.

Every option that takes several names reads them by `split_names`: `--x a b`, `--x a,b` and
`--x a --x b` are the same.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO, TypedDict, cast, get_args

from cyclopts import UNSET, Group, Parameter, Token
from docstring_parser import parse

from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.streams import STANDARD, file_suffix
from bpa_ppl.adaptation_record import AdaptationRecord
from bpa_ppl.adapting.settings import SETTINGS
from bpa_ppl.adapting.settings import Settings as AdaptSettings
from bpa_ppl.components import Setting, read_name, read_value
from bpa_ppl.decoding.options import OPTIONS as RERANKING
from bpa_ppl.decoding.options import RerankOptions
from bpa_ppl.errors import UsageError, wrong_type, wrong_value
from bpa_ppl.features.recipe import choose_roles, warn_of_gain
from bpa_ppl.formats.format import AUTO, NBEST_FORMATS, resolve_format
from bpa_ppl.formats.in_memory import JOINED
from bpa_ppl.formats.roles import Roles
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.priors.prior import PRIORS, Prior
from bpa_ppl.weights import EQUAL, NONE, AnyStart, StartingWeights

if TYPE_CHECKING:
    from bpa_ppl.models.priors.prior import PriorFamily
    from bpa_ppl.weights import Weights as Canonical

#: Boxes of help, in their order, below those options that everybody needs first. Those of settings
#: of `adapt` and of `rerank` have the titles of their declarations.
OBSERVED = Group("What is observed", sort_key=1)
FEATURES_USED = Group("Features", sort_key=2)
PRIOR = Group("Weights and prior", sort_key=3)
SAMPLING = Group("Sampling", sort_key=4)
CHOICE = Group("How candidates are chosen", sort_key=5)
_READING = Group("Reading files", sort_key=6)
OTHERS = Group("Other options", sort_key=7)
_BOXES = {group.name: group for group in (OBSERVED, FEATURES_USED, PRIOR, SAMPLING, CHOICE, OTHERS)}


def make_parameter(
    parse: Callable[[Any], Any], help: str = "", *, several: bool = False, **others: Any
) -> Parameter:
    """Return a parameter whose text is parsed.

    Args:
        parse: makes the value of the text, or of all texts of a parameter that can be repeated.
        help: the help text; empty takes the description of the parameter.
        several: whether the parameter can be repeated.
        others: as of `Parameter`.
    """

    def convert(_: object, tokens: Sequence[Token]) -> Any:
        refuse_empty(tokens)
        texts = [token.value for token in tokens]
        return parse(texts if several else texts[-1])

    if help:
        others["help"] = help
    if several:
        others = {"n_tokens": -1, "show_default": False, "metavar": "STR...", **others}
    return Parameter(converter=convert, accepts_keys=False, **others)


def make_names_parameter(
    help: str = "",
    registry: Container[str] = (),
    convert: Callable[[list[str]], Any] = list,
    **others: Any,
) -> Parameter:
    """Return a parameter of several names, as `split_names` reads them.

    Args:
        help: as of `make_parameter`, like `others`.
        registry: as of `split_names`.
        convert: makes the value of the names.
        others: as of `Parameter`.
    """
    others = {"metavar": "NAME...", "consume_multiple": 1, **others}
    return make_parameter(
        lambda texts: convert(split_names(texts, registry)), help, several=True, **others
    )


def given_options(**options: Any) -> dict[str, Any]:
    """Return the options that were given, also those in groups, by name.

    Left out are None and False, and the values of a group that equal their defaults.

    >>> given_options(seed=0, output=None, formats=FormatFlags(bad="drop"))
    {'seed': 0, 'bad': 'drop'}
    """
    values: dict[str, Any] = {}
    for name, value in options.items():
        if is_dataclass(value):
            defaults = vars(cast("Any", type(value))())
            values |= given_options(**{n: v for n, v in vars(value).items() if v != defaults[n]})
        elif value is not None and value is not False:
            values[name] = value
    return values


def require_with(other: str, is_given: object, **options: Any) -> None:
    """Refuse options, also in groups, that have no meaning without another one.

    Args:
        other: the other option, as it is written on the command line.
        is_given: whether it is given.
        options: those that need it.

    >>> require_with("--prior", None, unchecked=True)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: this option needs --prior: give both, or leave it out
    """
    name = next(iter(given_options(**options)), None)
    if name is not None and not is_given:
        message = f"this option needs {other}: give both, or leave it out"
        raise UsageError(message, parameter=name, code="conflict")


def _natural_order(text: str) -> list[Any]:
    """Return a key that sorts texts by the numbers in them.

    >>> sorted(["d10", "d2", "d1"], key=_natural_order)
    ['d1', 'd2', 'd10']
    """
    parts = re.split(r"0*([0-9]+)", text)
    # Longer numbers are larger. Python does not convert thousands of digits.
    return [(len(part), part) if place % 2 else part for place, part in enumerate(parts)]


def expand_patterns(paths: Iterable[str]) -> list[str]:
    """Return the files that patterns with `*`, `?` or `[…]` match, where no shell has done so.

    >>> expand_patterns(["-", "none-of-these-*.jsonl"])
    ['-', 'none-of-these-*.jsonl']
    """
    files: list[str] = []
    for path in paths:
        is_file = os.path.exists(path)
        files += [path] if is_file else sorted(glob(path), key=_natural_order) or [path]
    return files


def refuse_empty(tokens: Iterable[Token]) -> None:
    """Refuse values that are empty, as those of variables of a shell that are not set.

    >>> refuse_empty([Token(value="")])
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: a value on the command line is empty: give one
    """
    if any(token.implicit_value is UNSET and not token.value for token in tokens):
        raise UsageError("a value on the command line is empty: give one")


def split_names(texts: Iterable[str], registry: Container[str] = ()) -> list[str]:
    """Return the names in the values of an option, where commas separate them, too.

    A comma within brackets or double quotes is a part of a name, as in `theta[0,1]`, and a name in
    double quotes may have any characters; a double quote in it is doubled. After a component with
    settings, `nuts:draws=500` or `lm=in.txt`, a comma begins a setting, or one more value of it,
    unless the name of a component follows.

    Args:
        texts: the values.
        registry: the names of components, where the option takes components with settings.

    Raises:
        UsageError: if there is no name.

    >>> split_names(["a,b", "TM0[0,1], judge_*"]), split_names(['"loss, log",lm'])
    (['a', 'b', 'TM0[0,1]', 'judge_*'], ['loss, log', 'lm'])
    >>> from bpa_ppl.samplers.sampler import SAMPLERS
    >>> split_names(["rwm,nuts:warmup=500,draws=100,imh"], SAMPLERS)
    ['rwm', 'nuts:warmup=500,draws=100', 'imh']
    """
    names: list[str] = []
    for text in texts:
        parts: list[str] = []
        for part in filter(str.strip, _split_at_commas(text)):
            with_settings = registry and parts and not {":", "="}.isdisjoint(parts[-1])
            if with_settings and read_name(part.strip()) not in registry:
                parts[-1] += f",{part}"
            else:
                parts.append(part.strip())
        names += map(_unquote, parts)
    if not names:
        raise UsageError("give one or more names, separated by spaces or commas")
    return names


def _split_at_commas(text: str) -> list[str]:
    """Return the parts of a text between commas that are in no brackets and no quotes.

    >>> _split_at_commas('a,b[0,1],"c,d"'), _split_at_commas("a(,b")
    (['a', 'b[0,1]', '"c,d"'], ['a(,b'])
    """
    parts, depth, quoted, before = [""], 0, False, ","
    for character in text:
        if character == '"' and (quoted or before in ',:= "'):
            quoted = not quoted
        elif not quoted:
            depth = max(0, depth + (character in "[({") - (character in "])}"))
        if character == "," and not (quoted or depth):
            parts.append("")
        else:
            parts[-1] += character
        before = character
    return [text] if quoted or depth else parts  # brackets or quotes that are not closed


def _unquote(name: str) -> str:
    """Return a name without double quotes around it.

    >>> _unquote('"a, b"'), _unquote('"a, b"=0.5'), _unquote('5" disk')
    ('a, b', 'a, b=0.5', '5" disk')
    """
    if quoted := re.match(r'"((?:[^"]|"")+)"', name):
        return quoted[1].replace('""', '"') + name[quoted.end() :]
    return name


def format_names(registry: Iterable[str], *more: str) -> str:
    """Return names as a phrase of help.

    >>> format_names(["ter", "bleu"], "auto")
    'auto, ter or bleu'
    """
    *others, last = [*more, *registry]
    return f"{', '.join(others)} or {last}" if others else last


def parse_assignments(pairs: Iterable[str]) -> dict[str, float | str]:
    """Read `NAME=VALUE` options; values that look like numbers become numbers.

    >>> parse_assignments(["draws=200", "delta=2.5", "start=mode"])
    {'draws': 200, 'delta': 2.5, 'start': 'mode'}
    """
    values: dict[str, float | str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals and text):
            raise wrong_value("expected NAME=VALUE", pair)
        values[name] = read_value(text)
    return values


def parse_numbers(pairs: Iterable[str]) -> dict[str, float]:
    """Read `NAME=NUMBER` options; a name may contain `=`.

    >>> parse_numbers(["system=A=0.5"])
    {'system=A': 0.5}
    """
    values: dict[str, float] = {}
    for pair in pairs:
        name, _, text = pair.rpartition("=")
        value = read_value(text)
        if not name or isinstance(value, str):
            raise wrong_type(f"{name or 'NAME='} needs a number", text)
        values[name] = float(value)
    return values


def parse_moved_files(pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Read `NAME=FILE` options; several files are separated by commas.

    >>> parse_moved_files(["lm=domain.txt", "lexicon=memory.fr,memory.en"])
    {'lm': ('domain.txt',), 'lexicon': ('memory.fr', 'memory.en')}
    """
    return {name: tuple(str(files).split(",")) for name, files in parse_assignments(pairs).items()}


def parse_prior(text: str, *, unchecked: bool = False) -> str | Prior | PriorFamily:
    """Read a prior from a file, or a family of priors by name with its settings.

    A file is a prior (JSON), or a posterior (NetCDF), whose Gaussian is the prior.

    Args:
        text: the file, or the name.
        unchecked: whether to use a posterior that fails its check.

    >>> parse_prior("isotropic")
    'isotropic'
    """
    path = Path(text)
    if text in PRIORS:
        return text
    if path.suffix == ".json":
        return Prior.read(path)
    if path.suffix == ".nc" or (path.exists() and not path.is_dir()):
        from bpa_ppl.diagnostics.check.report import refuse_unconverged
        from bpa_ppl.weight_draws import read_weight_draws

        draws = read_weight_draws(path)
        if not unchecked:
            refuse_unconverged(draws, path)
        return Prior.of(draws, unchecked=True)
    return PRIORS.resolve(text)


def _parse_missing(texts: Sequence[str]) -> float | dict[str, float]:
    """Read `VALUE`, or `NAME=VALUE` several times.

    >>> _parse_missing(["0"]), _parse_missing(["judge_b=3,judge_c=1"])
    (0.0, {'judge_b': 3.0, 'judge_c': 1.0})
    """
    texts = split_names(texts)
    named = [text for text in texts if "=" in text]
    if named and len(named) == len(texts):
        return parse_numbers(texts)
    value = read_value(texts[0])
    if len(texts) > 1 or isinstance(value, str):
        raise wrong_type("expected one number, or NAME=NUMBER for single features", texts)
    return float(value)


#: How the texts of an option become its value, by the form in which they are written.
_FORMS: Final[dict[str, Callable[[Any], Any]]] = {
    "INT|all": read_value,
    "NAME=NUMBER": lambda texts: parse_numbers(split_names(texts)),
    "NAME=FILE": parse_moved_files,
}


def _read_descriptions(structure: type) -> dict[str, str]:
    """Return the descriptions of arguments in the docstring of a class, by name."""
    parameters = parse(structure.__doc__ or "").params
    return {one.arg_name: " ".join((one.description or "").split()) for one in parameters}


#: The descriptions of the options of `rerank` and of the settings of `adapt`.
_DESCRIPTIONS = tuple(map(_read_descriptions, (RerankOptions, AdaptSettings)))


def describe_setting(name: str, declared: Mapping[str, Setting] = SETTINGS) -> Parameter:
    """Return the parameter of a setting of `adapt` or another function, as it is declared.

    >>> describe_setting("seed").help
    'The same seed gives the same draws, to the bit on the same machine. By default 0.'
    """
    setting = declared[name]
    # `python -OO` has no docstrings.
    registry, text = setting.registry, _DESCRIPTIONS[declared is SETTINGS].get(name, "")
    if registry is not None:
        text = f"{text} Choose {format_names(registry.titles)}.".strip()
    others: dict[str, Any] = {"group": _BOXES[setting.box]} if setting.box else {}
    if setting.option:
        others["name"] = setting.option
    if setting.form:
        if not setting.several:
            others["metavar"] = setting.form
        return make_parameter(_FORMS[setting.form], text, several=setting.several, **others)
    if setting.several and registry is not None:
        return make_names_parameter(
            text, registry, lambda names: list(map(registry.resolve, names)), **others
        )
    if registry is not None and not setting.recorded:  # else it is recorded as it was written
        return make_parameter(registry.resolve, text, metavar="STR", **others)
    if setting.several:
        return make_names_parameter(text, **others)
    # A gain may be `-ter`, as no option is called.
    return Parameter(help=text, allow_leading_hyphen=name == "gain", **others)


_LISTS = "N-best lists; plain, gzip, xz or zstd; - for stdin."
NBestPath = Annotated[str, Parameter(help=_LISTS)]
NBestPaths = Annotated[
    str,
    Parameter(
        required=True,
        help=f"{_LISTS} Several files are concatenated, with their references and sources given "
        "as -r A,B and -s A,B.",
    ),
]
PosteriorPath = Annotated[Path, Parameter(help="Posterior (NetCDF) written by `bpa adapt`.")]
AnyPosterior = Annotated[
    str,
    Parameter(
        help="Posterior of any program: NetCDF, a CSV file with the columns chain and draw, "
        "or a quoted pattern of Stan's CSV files."
    ),
]
VarNames = Annotated[
    list[str] | None,
    make_names_parameter(
        "Features, variables with all their cells, or single cells: one or more names, after "
        "POSTERIOR."
    ),
]
LogWeights = Annotated[
    str | None,
    Parameter(help="Variable with the importance weights of the draws."),
]
Output = Annotated[str, Parameter(alias="-o")]
OutputPath = Annotated[Path, Parameter(alias="-o")]
Weights = Annotated[
    str,
    Parameter(
        alias="-w",
        metavar="FILE|none|equal",
        help="Canonical weights: moses.ini, dense weights, or JSON, also a list in the order of "
        "the columns; none, to start without; or equal, to start at the mean of the standardised "
        "features. With settings: none:lower_is_better=cost, and the same for equal; with "
        "none:pretrained=false, added consensus and length features do not start at values learned "
        "from public judged lists.",
    ),
]
References = Annotated[
    list[Path] | None,
    Parameter(
        alias="-r",
        help="References, one per line, or a .tsv, .csv or .jsonl of `id` and `reference`.",
    ),
]
Sources = Annotated[
    Path | None, Parameter(alias="-s", group=_READING, help="Source sentences, one per line.")
]
Scheduler = Annotated[
    str | None,
    Parameter(
        help="Address of a Dask scheduler, such as tcp://host:8786: all its workers do the work, "
        "in place of those of --jobs.",
    ),
]
Unchecked = Annotated[bool, Parameter(help="Use a posterior even if it fails its check.")]
UncheckedReferences = Annotated[
    bool,
    Parameter(name="--unchecked", help="Use references that seem to be those of other lists."),
]
AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, Parameter(alias="-q", help="Show no progress and no summary.")]
Settings = Annotated[
    dict[str, Any] | None,
    make_parameter(lambda pairs: parse_assignments(split_names(pairs)), several=True, name="--set"),
]
MovedFiles = Annotated[
    dict[str, tuple[str, ...]] | None, describe_setting("moved_files", RERANKING)
]
Without = Annotated[list[str] | None, describe_setting("without", RERANKING)]
Defaults = Annotated[dict[str, float] | None, describe_setting("defaults", RERANKING)]
Add = Annotated[list[Any] | None, describe_setting("add")]
Fixed = Annotated[
    list[str] | None,
    make_names_parameter(
        "Fix features at their canonical weights; `none` fixes no feature (default: "
        "UnknownWordPenalty0).",
        convert=lambda names: [] if names == ["none"] else names,
    ),
]
Likelihood = Annotated[str | None, describe_setting("likelihood")]
Gain = Annotated[str | None, describe_setting("gain")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ColumnFlags:
    """Which columns of lists are features: options of commands that learn or describe."""

    features: Annotated[list[str] | None, describe_setting("features")] = None
    exclude: Annotated[list[str] | None, describe_setting("exclude")] = None

    def roles(self, gain: str | None = None) -> Roles:
        """Return the roles of columns."""
        roles = choose_roles(self.features, self.exclude, gain=gain)
        warn_of_gain(self.features or (), roles.numbers)
        return roles


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FeatureFlags(ColumnFlags):
    """What the features of lists are: options of which None is one that is not given."""

    categorical: Annotated[list[str] | None, describe_setting("categorical")] = None
    add: Add = None


def _make_options(structure: type, declared: Mapping[str, Setting]) -> Iterator[tuple[str, Any]]:
    """Yield the settings that are options, with their types on the command line."""
    for name, annotation in structure.__annotations__.items():
        setting = declared[name]
        if setting.option is None:
            continue
        parameter = describe_setting(name, declared)
        if setting.form:
            yield name, Annotated[Any, parameter]
        elif setting.several:
            yield name, Annotated[list[str], parameter]
        else:  # what may be an object in Python is a text here
            kind = get_args(annotation)[0]
            kinds = get_args(kind) or (kind,)
            plain = next((one for one in (bool, int, float) if one in kinds), str)
            yield name, Annotated[plain, parameter]


if TYPE_CHECKING:
    AdaptOptions = AdaptSettings
    ChoiceOptions = RerankOptions
else:  # as Cyclopts reads them
    _OPTIONS = dict(_make_options(AdaptSettings, SETTINGS))
    AdaptOptions = TypedDict("AdaptOptions", _OPTIONS, total=False)
    _OF_CHOICES = dict(_make_options(RerankOptions, RERANKING))
    ChoiceOptions = TypedDict("ChoiceOptions", _OF_CHOICES, total=False)


@Parameter(name="*", group=_READING)
@dataclass(frozen=True)
class FormatFlags:
    """How the files of n-best lists are read: options of every command that reads lists.

    Args:
        bad: For values that are not finite numbers, failed responses of LLMs, and preferences
            without a winner: error, or drop, which leaves the candidate or the row out.
        missing: A number in place of missing values of features, or NAME=NUMBER for one feature
            (default: an error).
    """

    bad: str = "error"
    format: Annotated[
        str,
        Parameter(
            help=f"N-best format: {format_names(NBEST_FORMATS)}, with settings as in "
            "plain:list_size=50,scores=lm.npy, openai:requests=FILE or moses:first_id=1; auto "
            "detects it from the content."
        ),
    ] = AUTO
    missing: Annotated[Any, make_parameter(_parse_missing, several=True)] = None

    def read(
        self,
        path: str | Path,
        references: Sequence[Path] | None = None,
        sources: Path | None = None,
        *,
        roles: Roles | None = None,
    ) -> NBest:
        """Return all lists of a file, with given roles of columns."""
        tables = self.tables(path, roles, references or None, sources, chunk=sys.maxsize)
        return next(tables)

    def tables(
        self,
        path: str | Path,
        roles: Roles | None = None,
        references: Sequence[Path] | None = None,
        sources: Path | None = None,
        **options: Any,
    ) -> Iterator[NBest]:
        """Return a stream of the lists of a file, as `iter_nbest` does."""
        from bpa_ppl.formats.reading import iter_nbest

        arguments = {"references": references, "sources": sources, **self.arguments(), **options}
        return iter_nbest(path, features=roles, missing=self.missing, **arguments)

    def arguments(self) -> dict[str, Any]:
        """Return the options as keyword arguments of `bpa_ppl.read_nbest`.

        Raises:
            UsageError: if there is no such format.

        >>> FormatFlags(format="plain:list_size=2,scores=lm.npy").arguments()["format"]
        Plain(list_size=2, scores='lm.npy')
        """
        return {"bad": self.bad, "format": resolve_format(self.format)}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """References and sources of n-best lists, and how the lists are read."""

    references: References = None
    sources: Sources = None
    formats: FormatFlags = FormatFlags()

    def of_recorded(self, record: AdaptationRecord, paths: Iterable[str]) -> Reading:
        """Return the same with the options that a posterior records of its lists, if not given.

        Args:
            record: of the posterior.
            paths: the files that are read: those of other endings than the recorded ones have their
                own format, and other files their own scores and requests.
        """
        recorded, files = record.reading, recorded_lists(record)
        read = {*expand_patterns(paths)} - {*files, STANDARD}
        if not {*map(file_suffix, read)} <= {*map(file_suffix, files)}:
            return self
        flags = {name: of for name, of in recorded.items() if name in vars(self.formats)}
        settings = resolve_format(flags.get("format", AUTO)).settings()
        if read and (settings.get("scores") or settings.get("requests")):
            return self
        flags |= given_options(formats=self.formats)
        return replace(self, formats=replace(self.formats, **flags))

    def read(self, path: str | Path, roles: Roles | None = None) -> NBest:
        """Return all lists of a file, with given roles of columns."""
        return self.formats.read(path, self.references, self.sources, roles=roles)

    def read_together(
        self,
        paths: Sequence[str],
        judgements: Sequence[Path] = (),
        *,
        roles: Roles | None = None,
    ) -> NBest:
        """Return the lists of several files as one table.

        References and sources are those of all files, separated by commas, in their order.

        Args:
            paths: the files, of which some may lack columns such as references or judgements;
                `dev/*.jsonl` names several.
            judgements: files of `bpa judge`, each about one of the files.
            roles: of the columns.

        Raises:
            DataError: if the judgements are about other lists.
            UsageError: if there are not as many files of references or of sources.
        """
        from bpa_ppl.formats.in_memory import concatenate
        from bpa_ppl.formats.journal import read_journal, with_judgements
        from bpa_ppl.lists.nbest import content_hash

        paths, journals = expand_patterns(paths), [read_journal(path) for path in judgements]
        if len(paths) == 1:
            lists = self.read(paths[0], roles)
            return with_judgements(lists, journals) if journals else lists
        refs = [_one_per_list(names, paths, "references") for names in self.references or ()]
        texts = (
            _one_per_list(self.sources, paths, "sources") if self.sources else [None] * len(paths)
        )
        parts = []
        for place, path in enumerate(paths):
            of_path = [files[place] for files in refs]
            part = self.formats.read(path, of_path, texts[place], roles=roles)
            about = [j for j in journals if j.header.get("sha256") == content_hash(part)]
            journals = [journal for journal in journals if journal not in about]
            parts.append(with_judgements(part, about) if about else part)
        lists = concatenate(parts, renumber=True, fill_missing=True)
        return with_judgements(lists, journals) if journals else lists


def recorded_lists(record: AdaptationRecord) -> list[str]:
    """Return the files of the lists that a posterior was adapted to, as it records them.

    >>> recorded_lists(AdaptationRecord(lists="a + b.jsonl"))
    ['a', 'b.jsonl']
    """
    recorded = record.lists
    if recorded is None:
        return []
    return [recorded] if os.path.exists(recorded) else recorded.split(JOINED)


def _one_per_list(files: str | Path, lists: Sequence[str], what: str) -> list[Path]:
    """Read file names that are separated by commas, one for each file of lists.

    >>> [str(path) for path in _one_per_list("in.ref,out.ref", ["in.nb", "out.nb"], "references")]
    ['in.ref', 'out.ref']
    """
    paths = [Path(name) for name in str(files).split(",")]
    if len(paths) != len(lists):
        rule = f"{len(lists)} files of n-best lists need as many of {what}, separated by commas"
        raise wrong_value(rule, files, what, code="mismatch")
    return paths


def parse_weights(text: str) -> Canonical | str | None:
    """Read the weights that `--weights` names; None for `none`.

    >>> parse_weights("none"), parse_weights("equal")
    (None, 'equal')
    """
    if text == EQUAL:
        return EQUAL
    from bpa_ppl.formats.weight_files import read_weights

    return None if text == NONE else read_weights(text)


def parse_start(text: str) -> AnyStart:
    """Read the weights to start at, where `none` and `equal` may have settings.

    >>> parse_start("none"), parse_start("equal:lower_is_better=cost").lower_is_better
    (None, ('cost',))
    """
    name, has_settings, _ = text.partition(":")
    if has_settings and name in (NONE, EQUAL):
        return StartingWeights.of(text)
    return parse_weights(text)


def echo_status(message: object, quiet: bool = False) -> None:
    """Log a status message; it is printed to standard error."""
    if not quiet:
        log_info(str(message))


def print_message(text: object) -> None:
    """Print a line to standard error; where that is closed or full, do without."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        discard(sys.stderr)


def print_result(text: object, output: str | Path | None) -> None:
    """Print a result to standard output, or to standard error if the output of the command is `-`.

    Args:
        text: the result.
        output: where the command writes its output.
    """
    if str(output) == "-":
        print_message(text)
    else:
        print(text)


def discard(stream: TextIO) -> None:
    """Send the rest of a standard stream to the null device.

    Python flushes it again at exit: https://docs.python.org/3/library/signal.html#note-on-sigpipe
    """
    with suppress(OSError, ValueError):  # it is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def command_line() -> str:
    """Return the command that is running, as one would type it again."""
    return shlex.join(["bpa", *sys.argv[1:]])
