"""How commands declare their options, and the options that several of them share.

A command is a function. Its parameters without a default are arguments, the others are options, and
the `Args` section of its docstring has their help. Options that several commands share are
annotated types, and groups of them are dataclasses, such as `Reading`. The fields of `AdaptOptions`
and `RerankOptions` become options too, by `SHELL`, which lists what differs from Python.
`as_command` makes from all that a function as Typer takes it.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from glob import glob
from itertools import chain
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    TextIO,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

import bpa_ppl as bpa
from bpa_ppl.columns import natural_order
from bpa_ppl.component import Component, number_or_text, settings_in
from bpa_ppl.errors import UsageError
from bpa_ppl.notes import log_info, warn_user
from bpa_ppl.options import AdaptOptions, RerankOptions, descriptions
from bpa_ppl.registry import (
    FEATURES,
    LIKELIHOODS,
    METRICS,
    NBEST_FORMATS,
    PRIORS,
    RULES,
    SAMPLERS,
    Registry,
)
from bpa_ppl.weights import EQUAL

if TYPE_CHECKING:
    from bpa_ppl.features import FeatureSource
    from bpa_ppl.models import Prior, PriorFamily
    from bpa_ppl.nbest import NBest
    from bpa_ppl.quality import Metric as AnyMetric
    from bpa_ppl.weights import Weights as Canonical

C = TypeVar("C", bound=Component)


class Option(NamedTuple):
    """An option whose text is parsed before the command sees it.

    Attributes:
        help: the help text; empty takes the description of the parameter.
        parse: makes the value; None takes what was given. Errors get the name of the parameter.
        several: whether the option is repeated.
        names: of the option; by default that of the parameter.
        choices: returns the names that the shell completes.
    """

    help: str = ""
    parse: Callable[[Any], Any] | None = None
    several: bool = False
    names: tuple[str, ...] = ()
    choices: Callable[[], list[str]] | None = None


def names_in(registry: Iterable[str], *more: str) -> str:
    """Return names as a phrase of help.

    >>> names_in(["ter", "bleu"], "auto")
    'auto, ter or bleu'
    """
    *others, last = [*more, *registry]
    return f"{', '.join(others)} or {last}" if others else last


def assignments(pairs: Iterable[str]) -> dict[str, float | str]:
    """Read `NAME=VALUE` options; values that look like numbers become numbers.

    >>> assignments(["draws=200", "delta=2.5", "start=mode"])
    {'draws': 200, 'delta': 2.5, 'start': 'mode'}
    """
    values: dict[str, float | str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals and text):
            raise UsageError(f"expected NAME=VALUE, not {pair!r}")
        values[name] = number_or_text(text)
    return values


def numbers(pairs: Iterable[str]) -> dict[str, float]:
    """Read `NAME=NUMBER` options; a name may contain `=`.

    >>> numbers(["system=A=0.5"])
    {'system=A': 0.5}
    """
    values: dict[str, float] = {}
    for pair in pairs:
        assignments([pair])
        name, _, text = pair.rpartition("=")
        value = number_or_text(text)
        if isinstance(value, str):
            raise UsageError(f"{name} needs a number, not {value!r}", code="wrong-type")
        values[name] = float(value)
    return values


def moved_files(pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Read `NAME=FILE` options; several files are separated by commas.

    >>> moved_files(["lm=domain.txt", "lexicon=memory.fr,memory.en"])
    {'lm': ('domain.txt',), 'lexicon': ('memory.fr', 'memory.en')}
    """
    return {name: tuple(str(files).split(",")) for name, files in assignments(pairs).items()}


def component(registry: Registry[C], text: str) -> C:
    """Read `NAME` or `NAME:SETTING=VALUE,SETTING=VALUE`.

    >>> component(METRICS, "chrf:word_order=2")
    CHRF(char_order=6, word_order=2, beta=2)
    """
    name, _, settings = text.partition(":")
    return registry.resolve(name, settings_in(settings, name))


def metric(text: str) -> str | AnyMetric:
    """Read a metric with settings, `chrf:word_order=2`, or a name.

    >>> metric("TER"), metric("column:column=ter,negative=true").key
    ('TER', '-ter')
    """
    name, colon, settings = text.partition(":")
    if not colon or name.lower() not in METRICS:
        return text
    return component(METRICS, f"{name.lower()}:{settings}")


def feature_source(text: str) -> FeatureSource:
    """Read what `--add` names: `NAME`, `NAME=FILE` with settings after it, or `NAME:SETTING=VALUE`.

    >>> feature_source("length:ratio=true")
    Length(words=True, characters=False, ratio=True)
    >>> feature_source("indicators=system")
    Indicators(column='system', values=())
    """
    name, mark, settings = re.fullmatch(r"([^=:]*)([=:]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    main = FEATURES[name].main
    if mark == "=" and main is None:
        raise UsageError(f"{name} takes no file: settings are written {name}:NAME=VALUE")
    written = f"{main}={settings}" if mark == "=" else settings
    return FEATURES.resolve(name, settings_in(written, name))


def prior(text: str) -> str | Prior | PriorFamily:
    """Read a prior from a JSON file, or a family of priors by name with its settings.

    >>> prior("isotropic")
    'isotropic'
    """
    if text in PRIORS:
        return text
    if text.partition(":")[0] not in PRIORS and Path(text).suffix == ".json":
        return bpa.Prior.read(text)
    return component(PRIORS, text)


def prior_variance(texts: Sequence[str]) -> float | dict[str, float] | PriorFamily:
    """Read `VALUE` and `NAME=VALUE`, in any combination.

    >>> prior_variance(["0.5"]), prior_variance(["LM0=2"])
    (0.5, {'LM0': 2.0})
    >>> prior_variance(["0.5", "LM0=2"]).single
    {'LM0': 2.0}
    """
    single = numbers([text for text in texts if "=" in text])
    plain = [number_or_text(text) for text in texts if "=" not in text]
    if not plain:
        return single
    if isinstance(plain[0], str) or len(plain) > 1:
        raise UsageError("give one number, and NAME=VALUE for single features", code="wrong-type")
    if not single:
        return float(plain[0])
    from bpa_ppl.models.priors.isotropic import variances

    return bpa.models.Isotropic(**variances(float(plain[0])), single=single)


likelihood = functools.partial(component, LIKELIHOODS)


NBestPath = Annotated[
    str,
    typer.Argument(metavar="NBEST", help="N-best lists; plain, gzip, xz or zstd; - for stdin."),
]
NBestPaths = Annotated[
    list[str],
    typer.Argument(
        metavar="NBEST",
        help="N-best lists; plain, gzip, xz or zstd; - for stdin. Several files are "
        "concatenated, with their references and sources given as -r A,B and -s A,B.",
    ),
]
PosteriorPath = Annotated[Path, typer.Argument(help="Posterior (NetCDF) written by `bpa adapt`.")]
Output = Annotated[str, typer.Option("--output", "-o")]
OutputPath = Annotated[Path, typer.Option("--output", "-o")]
OptionalOutput = Annotated[str | None, typer.Option("--output", "-o")]
Weights = Annotated[
    str,
    typer.Option(
        "--weights",
        "-w",
        help="Canonical weights: moses.ini, dense weights, JSON, YAML, or numbers in the order of "
        "the columns; none, to start without; or equal, to start at the mean of the standardised "
        "features.",
    ),
]
References = Annotated[
    list[Path] | None,
    typer.Option(
        "--references",
        "-r",
        help="Reference translations, one per line; or of some sentences, as id<TAB>text.",
    ),
]
Sources = Annotated[
    Path | None, typer.Option("--sources", "-s", help="Source sentences, one per line.")
]
Unchecked = Annotated[
    bool, typer.Option("--unchecked", help="Use the posterior although it fails its check.")
]
Jobs = Annotated[int, typer.Option(help="Processes that score hypotheses; -1 uses every core.")]
Cache = Annotated[bool, typer.Option(help="Keep sentence scores on disk and reuse them.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
Backend = Annotated[str, typer.Option(help="local, or dask for an existing cluster.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of the Dask scheduler, such as tcp://host:8786.")
]
Settings = Annotated[
    dict[str, Any] | None, Option(parse=assignments, several=True, names=("--set",))
]
MovedFiles = Annotated[
    dict[str, tuple[str, ...]] | None,
    Option(
        "New path of a moved feature file, as NAME=FILE.",
        moved_files,
        several=True,
        names=("--moved-file",),
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    Option("Name that requests may use besides the host; * stands for any.", several=True),
]
Defaults = Annotated[
    dict[str, float] | None,
    Option(
        "Weight of a feature that has none, as NAME=VALUE.",
        numbers,
        several=True,
        names=("--default",),
    ),
]
Without = Annotated[
    list[str] | None,
    Option(
        "A feature of the posterior, or the label of several, that the lists lack (by default an "
        "error).",
        several=True,
    ),
]
Add = Annotated[
    list[Any] | None,
    Option(
        f"Add features: {names_in(FEATURES)}. Examples: lm=domain.txt, "
        "lexicon=memory.fr,memory.en, phrases=table.parquet; with settings lm=domain.txt,order=5; "
        "learned from the adaptation sentences lm=self.",
        lambda texts: [feature_source(text) for text in texts],
        several=True,
    ),
]
Fixed = Annotated[
    list[str] | None,
    Option(
        "Fix a feature at its canonical weight; `none` fixes none.",
        lambda names: [] if names == ["none"] else names,
        several=True,
    ),
]
Likelihood = Annotated[
    Any,
    Option(
        f"{names_in(LIKELIHOODS)}, with settings as in margin:gamma=4 or risk:gain_scale=half "
        "(default: margin if --metric is ter, bleu, chrf, ter+bleu, wer or cer, else risk; "
        "preference for lists with preferences and no references).",
        likelihood,
    ),
]
#: The names of an option that `metric` parses.
METRIC = ("--metric", "--gain")
Metric = Annotated[
    Any,
    Option(
        f"Metric of the oracle: {names_in(METRICS)}; or a numeric column of the lists, such as "
        "comet, or -ter if lower is better (default: ter if there are canonical weights or totals, "
        "else chrf).",
        metric,
        names=METRIC,
        choices=lambda: list(METRICS),
    ),
]
Ties = Annotated[
    str | None,
    Option(
        "Ties between oracles: canonical (broken by canonical scores) or shared (default: "
        "canonical if there are canonical weights or totals)."
    ),
]


@dataclass(frozen=True)
class Reading:
    """How n-best lists are read: the options of every command that reads lists.

    Args:
        first_id: Id of the first sentence: 0, or 1 for some tools.
        bad: Values that are not finite numbers, and failed responses of LLMs: error, or drop the
            hypothesis.
        format: N-best format; auto detects it from the content.
        list_size: For plain text, one hypothesis per line: hypotheses per sentence.
        score_files: With --list-size: feature scores of the lines, .npy or text.
        extract: For responses of LLMs: regular expression that finds the candidate in an answer,
            its first group or the whole match.
        requests: For responses of LLMs: the file of their requests, for sources and order.
    """

    first_id: int = 0
    bad: str = "error"
    format: Annotated[
        str,
        Option(
            f"N-best format: {names_in(NBEST_FORMATS, 'auto')}; auto detects it from the content."
        ),
    ] = "auto"
    list_size: int | None = None
    score_files: Annotated[list[str] | None, Option(several=True, names=("--scores",))] = None
    extract: str | None = None
    requests: str | None = None

    def read(
        self,
        path: str | Path,
        references: Sequence[Path] | None = None,
        sources: Path | None = None,
    ) -> NBest:
        """Return all lists of a file."""
        return bpa.read_nbest(path, **self.arguments(references, sources))

    def read_together(
        self,
        paths: Sequence[str],
        references: Sequence[Path] | None = None,
        sources: Path | None = None,
    ) -> NBest:
        """Return the lists of several files as one table.

        Args:
            paths: the files, of which some may lack columns such as references or judgements;
                `dev/*.jsonl` names several.
            references: of all files, separated by commas, in their order; several of such.
            sources: likewise.

        Raises:
            UsageError: if there are not as many files of references or of sources.
        """
        paths = expanded(paths)
        for path in dict.fromkeys(paths):
            if paths.count(path) > 1:
                warn_user(f"{path}: given {paths.count(path)} times, and its lists count as often")
        if len(paths) == 1:
            return self.read(paths[0], references, sources)
        refs = [one_per_list(str(names), paths, "references") for names in references or ()]
        texts = one_per_list(str(sources), paths, "sources") if sources else [None] * len(paths)
        parts = [
            self.read(path, [files[place] for files in refs], texts[place])
            for place, path in enumerate(paths)
        ]
        return bpa.NBest.concatenate(parts, renumber=True, fill_missing=True)

    def stream(
        self,
        path: str | Path,
        references: Sequence[Path] | None,
        sources: Path | None = None,
        empty: dict[int, str | None] | None = None,
    ) -> Iterator[NBest]:
        """Yield the lists of a file in chunks; `empty` gets the sentences without candidates."""
        return bpa.iter_nbest(path, **self.arguments(references, sources), empty=empty)

    def arguments(
        self, references: Sequence[Path] | None = None, sources: Path | None = None
    ) -> dict[str, Any]:
        """Return the keyword arguments of `bpa_ppl.read_nbest`.

        Raises:
            UsageError: if options contradict one another.

        >>> Reading(list_size=2, score_files=["lm.npy"]).arguments()["format"]
        Plain(list_size=2, scores=('lm.npy',))
        """
        format: Any = self.format
        if self.list_size is None and self.score_files:
            raise UsageError(
                "scores of plain text need --list-size", parameter="score_files", code="conflict"
            )
        if self.list_size is not None:
            if self.format not in ("auto", "plain"):
                raise UsageError(
                    f"lists in the format {self.format} have no fixed size: leave out one option",
                    parameter="list_size",
                    code="conflict",
                )
            settings = {"list_size": self.list_size, "scores": tuple(self.score_files or ())}
            format = NBEST_FORMATS.resolve("plain", settings)
        settings = {"extract": self.extract, "requests": self.requests}
        given = {name: value for name, value in settings.items() if value is not None}
        if given:
            name, _, others = self.format.partition(":")
            if name not in ("auto", "openai") or self.list_size is not None:
                raise UsageError(
                    f"only responses of LLMs (--format openai) have {next(iter(given))}",
                    parameter=next(iter(given)),
                    code="conflict",
                )
            format = NBEST_FORMATS.resolve("openai", settings_in(others, "the format") | given)
        texts = {"references": references or None, "sources": sources}
        return {"first_id": self.first_id, "bad": self.bad, "format": format, **texts}


@dataclass(frozen=True)
class Extra:
    """The lists of the out-of-domain set that the canonical weights were tuned on.

    Args:
        extra: N-best lists of the out-of-domain development set, for the tuner mert+ and the
            sampler weight-trace.
        extra_references: References of the --extra lists.
    """

    extra: Path | None = None
    extra_references: list[Path] | None = None

    def read(self, reading: Reading) -> NBest | None:
        """Return the lists, or None if no file is given.

        Raises:
            UsageError: if references are given without lists, or lists without references.
        """
        if (self.extra is None) != (not self.extra_references):
            raise UsageError(
                "give lists and --extra-references, or neither", parameter="extra", code="conflict"
            )
        return None if self.extra is None else reading.read(self.extra, self.extra_references)


def expanded(paths: Sequence[str]) -> list[str]:
    """Return the files that patterns with `*`, `?` or `[…]` match, where no shell has done so.

    >>> expanded(["-", "none-of-these-*.jsonl"])
    ['-', 'none-of-these-*.jsonl']
    """
    files = [
        [path] if Path(path).exists() else sorted(glob(path), key=natural_order) or [path]
        for path in paths
    ]
    return list(chain.from_iterable(files))


def one_per_list(files: str, lists: Sequence[str], what: str) -> list[Path]:
    """Read file names that are separated by commas, one for each file of lists.

    >>> [str(path) for path in one_per_list("in.ref,out.ref", ["in.nb", "out.nb"], "references")]
    ['in.ref', 'out.ref']
    """
    paths = [Path(name) for name in files.split(",")]
    if len(paths) != len(lists):
        raise UsageError(
            f"{len(lists)} files of n-best lists need as many files of {what}, separated by commas "
            f"in the same order, not {files}",
            parameter=what,
            code="mismatch",
        )
    return paths


def canonical(text: str) -> Canonical | str | None:
    """Read the weights that `--weights` names; None for `none`.

    >>> canonical("none"), canonical("equal")
    (None, 'equal')
    """
    if text == EQUAL:
        return EQUAL
    return None if text == "none" else bpa.read_weights(text)


def echo_status(message: object, quiet: bool = False) -> None:
    """Log a status message; it is printed to standard error."""
    if not quiet:
        log_info(str(message))


def outputs_of(values: Mapping[str, Any], replaced: Iterable[str] = ()) -> dict[str, Any]:
    """Return the files that a command writes, where `/dev/stdout` is `-`.

    Args:
        values: of the parameters of the command, as they were given.
        replaced: parameters with inputs that an output may replace.

    Raises:
        UsageError: if one is also an input or another output, under any name.

    >>> outputs_of({"output": "new.nc", "details": Path("./new.nc")})
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: new.nc is also the file of details: choose another name
    """
    from bpa_ppl.formats.streams import open_descriptor

    outputs = {name: values[name] for name in _OUTPUTS if values.get(name) is not None}
    for name, path in outputs.items():
        if open_descriptor(path) == 1:
            outputs[name] = type(path)("-")
        ours = _file_identity(path, sys.__stdout__)
        for other, value in values.items():
            if ours is None or other in (name, *_NO_FILES, *replaced):
                continue
            texts = map(str, value if isinstance(value, list | tuple) else [value])
            words = chain.from_iterable([text, *re.split("[,=:]", text)] for text in texts)
            stream = sys.__stdout__ if other in outputs else sys.__stdin__
            if any(_file_identity(word, stream) == ours for word in expanded(list(words))):
                problem = f"{path} is also the file of {other}: choose another name"
                raise UsageError(problem, parameter=name, code="conflict")
    return outputs


def _file_identity(path: str | Path, standard: TextIO | None) -> object:
    """Return what all names of a regular file have in common; None for devices, pipes, folders."""
    is_standard = str(path) == "-"
    try:
        status = os.stat(standard.fileno() if is_standard and standard else path)
    except (OSError, ValueError):
        return os.path.realpath(path) if "\0" not in str(path) else None
    if not stat.S_ISREG(status.st_mode):
        return standard if is_standard else None
    return status.st_dev, status.st_ino


def command_line() -> str:
    """Return the command that is running, as one would type it again."""
    return shlex.join(["bpa", *sys.argv[1:]])


#: The parameters of all commands that name files to be written.
_OUTPUTS = ("output", "details", "probabilities", "report")
#: Free texts, which may be the names of files by chance.
_NO_FILES = ("rater",)
#: Types of fields that are options as they are; others are Python's alone, unless in `SHELL`.
_SIMPLE: dict[str, Any] = {
    "str": str,
    "int": int,
    "int | None": int | None,
    "int | str | None": str | None,
    "float": float,
    "bool": bool,
    "str | None": str | None,
    "float | None": float | None,
}


#: Options class -> field -> an option or a shared type; None leaves the field to Python.
SHELL: dict[type, dict[str, Any]] = {
    AdaptOptions: {
        "sampler": Option(
            f"{names_in(SAMPLERS.titles)} (default: auto).", choices=lambda: list(SAMPLERS)
        ),
        "likelihood": Likelihood,
        "prior": Option(f"{names_in(PRIORS)}, or a JSON file with a Gaussian prior.", prior),
        "prior_variance": Option(
            "Variance σ_T of the prior, or NAME=VALUE for a single feature (default: 0.1, and "
            "learned for features without a canonical weight).",
            prior_variance,
            several=True,
        ),
        "metric": Metric,
        "ties": Ties,
        "lower_is_better": Option(several=True),
        "prior_only": Option(
            "Skip adaptation; the posterior equals the prior. Needs no references; for a --prior "
            "learned from other domains, or --weights equal.",
            names=("--no-sentences",),
        ),
        "fixed": Fixed,
        "defaults": Defaults,
        "features": Option(several=True),
        "exclude": Option(several=True),
        "categorical": Option(several=True),
        "add": Add,
        "settings": Option(
            "Setting of the sampler, as NAME=VALUE: draws, warmup, chains, delta, …",
            assignments,
            several=True,
            names=("--set",),
        ),
    },
    RerankOptions: {
        "rule": Option(
            f"Decision rule: {names_in(RULES)}; with settings as in mbr:gain=bleu (default: what "
            "the posterior records: mean without canonical weights, else predictive).",
            functools.partial(component, RULES),
        ),
        "confidence": None,
        "defaults": Defaults,
        "moved_files": MovedFiles,
        "without": Without,
    },
}


class _Parameter(NamedTuple):
    """A parameter of a command: as Typer takes it, and how its value is parsed."""

    typed: inspect.Parameter
    parse: Callable[[Any], Any] | None

    def value(self, values: dict[str, Any]) -> Any:
        """Return the parsed value; errors are about this parameter."""
        value = values[self.typed.name]
        if self.parse is None or value is None:
            return value
        try:
            return self.parse(value)
        except UsageError as error:
            error.parameter = error.parameter or self.typed.name
            raise


def as_command(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as Typer takes it; options of groups follow its own options.

    >>> def run(reading: Reading, quiet: bool = False) -> None:
    ...     print(reading)
    >>> list(inspect.signature(as_command(run)).parameters)
    ['quiet', 'first_id', 'bad', 'format', 'list_size', 'score_files', 'extract', 'requests']
    >>> values = {"bad": "drop", "format": "openai"}
    >>> values |= dict.fromkeys(["list_size", "score_files", "extract", "requests"])
    >>> as_command(run)(quiet=True, first_id=1, **values)
    Reading(first_id=1, bad='drop', format='openai', list_size=None, ...)
    """
    hints = get_type_hints(command, include_extras=True)
    documented = inspect.getdoc(command) or ""
    texts = descriptions(command) if "Args:" in documented else {}
    own, groups = [], {}
    for one in inspect.signature(command).parameters.values():
        if is_dataclass(hints[one.name]):
            groups[one.name] = list(_parameters(hints[one.name]))
        else:
            text = texts.get(one.name, "")
            own.append(_parameter(one.name, one.default, hints[one.name], text))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        arguments = {one.typed.name: one.value(values) for one in own}
        for name, group in groups.items():
            parsed = {one.typed.name: one.value(values) for one in group}
            # What was not given keeps the default of Python.
            arguments[name] = hints[name](**{n: v for n, v in parsed.items() if v is not None})
        command(**arguments)

    parameters = [one.typed for one in chain(own, *groups.values())]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = documented.partition("\n\nArgs:")[0]
    return run


def _parameters(group: type) -> Iterator[_Parameter]:
    """Yield the parameters of the fields of a group."""
    texts, shell = descriptions(group), SHELL.get(group)
    hints = get_type_hints(group, include_extras=True) if shell is None else {}
    for one in fields(group):
        text, hint = texts[one.name], hints.get(one.name)
        if shell is not None:
            text = text.partition(". ")[0].rstrip(".").replace("`", "") + "."
            hint = shell.get(one.name, _SIMPLE.get(str(one.type)))
        if isinstance(hint, Option):
            hint = Annotated[_SIMPLE.get(str(one.type), Any), hint]
        if hint is not None:
            default = None if one.default is MISSING else one.default
            yield _parameter(one.name, default, hint, text)


def _parameter(name: str, default: Any, hint: Any, text: str) -> _Parameter:
    """Return a parameter with its help, by default a text."""
    kind, info = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, None)
    option = info if isinstance(info, Option) else Option()
    if option.several:
        kind = list[str] | None
    elif kind is Any:
        kind = str if isinstance(default, str) else str | None
    if info is None and default is inspect.Parameter.empty:
        info = typer.Argument()
    elif info is None or isinstance(info, Option):
        flag = (f"--{name.replace('_', '-')}",) if default is False else ()
        info = typer.Option(*(option.names or flag), autocompletion=option.choices)
    info = copy(info)
    info.help = info.help or option.help or text
    is_list = list in (get_origin(kind), *map(get_origin, get_args(kind)))
    if is_list and default is not inspect.Parameter.empty:
        info.help += " Repeat for several."
    typed = inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )
    return _Parameter(typed, option.parse)
