"""Options that several subcommands share, and how they are read.

An option is an annotated type; options that belong together are a dataclass of them, such as
`Reading`. A command takes the group as one argument, and `expanded` makes each of its fields an
option of the command line. The fields of `AdaptOptions` and `RerankOptions` become options by
`SHELL`, which lists only what differs from Python.
"""

from __future__ import annotations

import functools
import inspect
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer

from bpa_ppl.component import Component, number_or_text, settings_in
from bpa_ppl.errors import UsageError
from bpa_ppl.notes import log_info
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

if TYPE_CHECKING:
    from bpa_ppl.features import FeatureSource
    from bpa_ppl.models import Prior, PriorFamily
    from bpa_ppl.nbest import NBest
    from bpa_ppl.quality import Metric as AnyMetric
    from bpa_ppl.weights import Weights as Canonical


C = TypeVar("C", bound=Component)
#: Packages whose versions the results depend on.
VERSIONS = ("bpa_ppl", "numpyro", "jax", "arviz", "sacrebleu")


def names_in(registry: Iterable[str], *more: str) -> str:
    """Return names as a phrase of help.

    >>> names_in(["ter", "bleu"], "auto")
    'auto, ter or bleu'
    """
    *others, last = [*more, *registry]
    return f"{', '.join(others)} or {last}" if others else last


NBestPath = Annotated[
    str,
    typer.Argument(metavar="NBEST", help="N-best lists; plain, gzip, xz or zstd; - for stdin."),
]
SeveralNBest = Annotated[
    list[str],
    typer.Argument(
        metavar="NBEST",
        help="N-best lists; plain, gzip, xz or zstd; - for stdin. Several files are concatenated, "
        "with their references and sources given as -r A,B and -s A,B.",
    ),
]
PosteriorPath = Annotated[Path, typer.Argument(help="Posterior (NetCDF) written by `bpa adapt`.")]
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
        "--references", "-r", help="Reference translations, one per line; repeat for several."
    ),
]
Sources = Annotated[
    Path | None,
    typer.Option("--sources", "-s", help="Source sentences, one per line."),
]
_MOVED_FILE = "New path of a moved feature file, as NAME=FILE; repeat for several."
MovedFile = Annotated[list[str] | None, typer.Option("--moved-file", help=_MOVED_FILE)]
_ADD = (
    f"Add features: {names_in(FEATURES)}. Examples: lm=domain.txt, lexicon=memory.fr,memory.en, "
    "phrases=table.parquet; with settings lm=domain.txt,order=5; learned from the adaptation "
    "sentences lm=self. Repeat for several."
)
Add = Annotated[list[str] | None, typer.Option("--add", help=_ADD)]
_LIKELIHOOD = (
    f"{names_in(LIKELIHOODS)}, with settings as in margin:gamma=4 (default: margin if --metric is "
    "ter, bleu, chrf or ter+bleu, else risk; preference for lists with preferences and no "
    "references)."
)
Likelihood = Annotated[str | None, typer.Option(help=_LIKELIHOOD)]
SamplerSettings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Setting of a sampler, as SAMPLER.NAME=VALUE: rwm.draws=500."),
]
Unchecked = Annotated[
    bool, typer.Option("--unchecked", help="Use the posterior although it fails its check.")
]
Jobs = Annotated[int, typer.Option(help="Processes that score hypotheses; -1 uses every core.")]
Cache = Annotated[bool, typer.Option(help="Keep sentence scores on disk and reuse them.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
_METRIC = (
    f"Metric of the oracle: {names_in(METRICS)}; or a numeric column of the lists, such as comet, "
    "or -ter if lower is better."
)
Metric = Annotated[
    str,
    typer.Option("--metric", "--gain", help=_METRIC, autocompletion=lambda: list(METRICS)),
]
_DEFAULT = "Weight of a feature that has none, as NAME=VALUE; repeat for several."
Defaults = Annotated[list[str] | None, typer.Option("--default", help=_DEFAULT)]
_TIES = (
    "Ties between oracles: canonical (broken by canonical scores) or shared (default: canonical if "
    "there are canonical weights or totals)."
)
Ties = Annotated[str | None, typer.Option(help=_TIES)]
FIXED = "Fix a feature at its canonical weight; `none` fixes none. Repeat for several."
Backend = Annotated[str, typer.Option(help="local, or dask for an existing cluster.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of the Dask scheduler, such as tcp://host:8786.")
]


@dataclass(frozen=True)
class Reading:
    """How n-best lists are read: the options of every command that reads lists."""

    first_id: Annotated[
        int, typer.Option(help="Id of the first sentence: 0, or 1 for some tools.")
    ] = 0
    bad: Annotated[
        str, typer.Option(help="Values that are not finite numbers: error, or drop the hypothesis.")
    ] = "error"
    format: Annotated[
        str,
        typer.Option(
            help=f"N-best format: {names_in(NBEST_FORMATS, 'auto')}; auto detects it from the "
            "content."
        ),
    ] = "auto"
    list_size: Annotated[
        int | None,
        typer.Option(help="For plain text, one hypothesis per line: hypotheses per sentence."),
    ] = None
    score_files: Annotated[
        list[str] | None,
        typer.Option(
            "--scores",
            help="With --list-size: feature scores of the lines, .npy or text; repeat for several.",
        ),
    ] = None

    def read(
        self,
        path: str | Path,
        references: Sequence[Path] | None = None,
        sources: Path | None = None,
    ) -> NBest:
        """Return all lists of a file."""
        import bpa_ppl

        texts: dict[str, Any] = {"references": references or None, "sources": sources}
        return bpa_ppl.read_nbest(path, **texts, **self.arguments())

    def read_together(
        self,
        paths: Sequence[str],
        references: Sequence[Path] | None = None,
        sources: Path | None = None,
    ) -> NBest:
        """Return the lists of several files as one table.

        Args:
            paths: the files, with the same features.
            references: of all files, separated by commas, in their order; several of such.
            sources: likewise.

        Raises:
            UsageError: if there are not as many files of references or of sources.
        """
        if len(paths) == 1:
            return self.read(paths[0], references, sources)
        from bpa_ppl.nbest import NBest

        refs = [one_per_list(str(names), paths, "references") for names in references or ()]
        texts = one_per_list(str(sources), paths, "sources") if sources else [None] * len(paths)
        parts = [
            self.read(path, [files[place] for files in refs], texts[place])
            for place, path in enumerate(paths)
        ]
        return NBest.concatenate(parts, renumber=True)

    def stream(
        self, path: str | Path, references: Sequence[Path] | None, sources: Path | None = None
    ) -> Iterator[NBest]:
        """Yield the lists of a file in chunks."""
        import bpa_ppl

        texts: dict[str, Any] = {"references": references or None, "sources": sources}
        return bpa_ppl.iter_nbest(path, **texts, **self.arguments())

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `bpa_ppl.read_nbest`.

        Raises:
            UsageError: if options contradict one another.

        >>> Reading(list_size=2, score_files=["lm.npy"]).arguments()["format"]
        Plain(list_size=2, scores=('lm.npy',))
        """
        format: Any = self.format
        if self.list_size is None and self.score_files:
            raise UsageError("--scores goes with --list-size, for lists in plain text")
        if self.list_size is not None:
            if self.format not in ("auto", "plain"):
                raise UsageError(f"--list-size is for plain text, and --format is {self.format}")
            settings = {"list_size": self.list_size, "scores": tuple(self.score_files or ())}
            format = NBEST_FORMATS.resolve("plain", settings)
        return {"first_id": self.first_id, "bad": self.bad, "format": format}


@dataclass(frozen=True)
class Extra:
    """The lists of the out-of-domain set that the canonical weights were tuned on."""

    extra: Annotated[
        Path | None,
        typer.Option(
            help="N-best lists of the out-of-domain development set, for the tuner mert+ and the "
            "sampler weight-trace."
        ),
    ] = None
    extra_references: Annotated[
        list[Path] | None,
        typer.Option(help="References of the --extra lists; repeat for several."),
    ] = None

    def read(self, reading: Reading) -> NBest | None:
        """Return the lists, or None if no file is given.

        Raises:
            UsageError: if references are given without lists, or lists without references.
        """
        if (self.extra is None) != (not self.extra_references):
            raise UsageError("--extra and --extra-references go together: give both or neither")
        return None if self.extra is None else reading.read(self.extra, self.extra_references)


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
        )
    return paths


def metric(text: str) -> str | AnyMetric:
    """Read what `--metric` names: a metric with settings, `chrf:word_order=2`, or a name.

    >>> metric("TER"), metric("column:column=ter,negative=true").key
    ('TER', '-ter')
    """
    name, colon, settings = text.partition(":")
    if not colon or name.lower() not in METRICS:
        return text
    return component(METRICS, f"{name.lower()}:{settings}", "--metric")


def canonical(text: str) -> Canonical | str | None:
    """Read the weights that `--weights` names; None for `none`.

    >>> canonical("none"), canonical("equal")
    (None, 'equal')
    """
    import bpa_ppl
    from bpa_ppl.weights import EQUAL

    if text == EQUAL:
        return EQUAL
    return None if text == "none" else bpa_ppl.read_weights(text)


def echo_status(message: object, quiet: bool = False) -> None:
    """Log a status message; it is printed to standard error."""
    if not quiet:
        log_info(str(message))


def command_line() -> str:
    """Return the command that is running, as one would type it again."""
    return shlex.join(["bpa", *sys.argv[1:]])


def assignments(pairs: Iterable[str] | None, option: str) -> dict[str, float | str]:
    """Read `NAME=VALUE` options; values that look like numbers become numbers.

    >>> assignments(["draws=200", "delta=2.5", "start=mode"], "--set")
    {'draws': 200, 'delta': 2.5, 'start': 'mode'}
    """
    values: dict[str, float | str] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not (name and equals and text):
            raise UsageError(f"{option} takes NAME=VALUE, not {pair!r}")
        values[name] = number_or_text(text)
    return values


def numbers(pairs: Iterable[str] | None, option: str) -> dict[str, float]:
    """Read `NAME=NUMBER` options; a name may contain `=`.

    >>> numbers(["system=A=0.5"], "--default")
    {'system=A': 0.5}
    """
    values: dict[str, float] = {}
    for pair in pairs or ():
        assignments([pair], option)
        name, _, text = pair.rpartition("=")
        value = number_or_text(text)
        if isinstance(value, str):
            raise UsageError(f"{option} {name} needs a number, not {value!r}")
        values[name] = float(value)
    return values


def moved_files(pairs: Iterable[str] | None) -> dict[str, tuple[str, ...]]:
    """Read `--moved-file NAME=FILE` options; several files are separated by commas.

    >>> moved_files(["lm=domain.txt", "lexicon=memory.fr,memory.en"])
    {'lm': ('domain.txt',), 'lexicon': ('memory.fr', 'memory.en')}
    """
    found = assignments(pairs, "--moved-file")
    return {name: tuple(str(files).split(",")) for name, files in found.items()}


def component(registry: Registry[C], text: str, option: str) -> C:
    """Read `NAME` or `NAME:SETTING=VALUE,SETTING=VALUE`.

    >>> from bpa_ppl.registry import METRICS
    >>> component(METRICS, "chrf:word_order=2", "--metric")
    CHRF(char_order=6, word_order=2, beta=2)
    """
    name, _, settings = text.partition(":")
    return registry.resolve(name, settings_in(settings, f"{option} {name}"))


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
        raise UsageError(f"--add {name} takes no file: settings are written {name}:NAME=VALUE")
    written = f"{main}={settings}" if mark == "=" else settings
    return FEATURES.resolve(name, settings_in(written, f"--add {name}"))


def prior(text: str) -> str | Prior | PriorFamily:
    """Read a prior from a JSON file, or a family of priors by name with its settings.

    >>> prior("isotropic")
    'isotropic'
    """
    from bpa_ppl.models import Prior

    if text in PRIORS:
        return text
    if text.partition(":")[0] not in PRIORS and Path(text).suffix == ".json":
        return Prior.read(text)
    return component(PRIORS, text, "--prior")


def prior_variance(texts: Sequence[str]) -> float | dict[str, float] | PriorFamily:
    """Read `--prior-variance VALUE` and `--prior-variance NAME=VALUE`, in any combination.

    >>> prior_variance(["0.5"]), prior_variance(["LM0=2"])
    (0.5, {'LM0': 2.0})
    >>> prior_variance(["0.5", "LM0=2"]).single
    {'LM0': 2.0}
    """
    single = numbers([text for text in texts if "=" in text], "--prior-variance")
    plain = [text for text in texts if "=" not in text]
    if not plain:
        return single
    value = number_or_text(plain[0])
    if isinstance(value, str) or len(plain) > 1:
        raise UsageError("--prior-variance takes one number, and NAME=VALUE for single features")
    if not single:
        return float(value)
    from bpa_ppl.models import Isotropic
    from bpa_ppl.models.priors.isotropic import variances

    return Isotropic(**variances(float(value)), single=single)


def names_of(samplers: str) -> list[str]:
    """Read names that are separated by commas.

    >>> names_of("imh, nuts")
    ['imh', 'nuts']

    Raises:
        UsageError: if there is none.
    """
    names = [name.strip() for name in samplers.split(",") if name.strip()]
    if not names:
        raise UsageError("--samplers names no sampler: give one or more, separated by commas")
    return names


def settings_of(samplers: Iterable[str], pairs: Iterable[str] | None) -> dict[str, dict[str, Any]]:
    """Read `SAMPLER.NAME=VALUE` options into the settings of each sampler.

    >>> settings_of(["imh", "rwm"], ["rwm.draws=500"])
    {'imh': {}, 'rwm': {'draws': 500}}

    Raises:
        UsageError: if an option is not of this form, or its sampler is not among those that run.
    """
    settings: dict[str, dict[str, Any]] = {name: {} for name in samplers}
    for key, value in assignments(pairs, "--set").items():
        sampler, dot, name = key.partition(".")
        if not dot or sampler not in settings:
            raise UsageError(
                f"--set takes SAMPLER.NAME=VALUE, with SAMPLER one of {', '.join(settings)}, "
                f"not {key!r}"
            )
        settings[sampler][name] = value
    return settings


class Shell(NamedTuple):
    """How the command line gives a field of an options class, where it differs from Python.

    Attributes:
        help: the help text; empty takes the first sentence of the description of the field.
        parse: makes the value of the field; None takes what was given.
        several: whether the option is repeated.
        names: of the option; by default that of the field.
        choices: returns the names that the shell completes.
    """

    help: str = ""
    parse: Callable[[Any], Any] | None = None
    several: bool = False
    names: tuple[str, ...] = ()
    choices: Callable[[], list[str]] | None = None


#: Fields of other types than these are Python's alone, unless `SHELL` lists them.
_SIMPLE: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "str | None": str | None,
    "float | None": float | None,
}
#: Options class -> field -> how the command line gives it; None leaves it to Python.
SHELL: dict[type, dict[str, Shell | None]] = {
    AdaptOptions: {
        "preset": Shell(
            "published: take the sampler and the likelihood of the paper, unless you name others."
        ),
        "sampler": Shell(f"{names_in(SAMPLERS)} (default: auto).", choices=lambda: list(SAMPLERS)),
        "likelihood": Shell(
            _LIKELIHOOD, functools.partial(component, LIKELIHOODS, option="--likelihood")
        ),
        "prior": Shell(f"{names_in(PRIORS)}, or a JSON file with a Gaussian prior.", prior),
        "prior_variance": Shell(
            "Variance σ_T of the prior, or NAME=VALUE for a single feature; repeat for several "
            "(default: 0.1, and learned for features without a canonical weight).",
            prior_variance,
            several=True,
        ),
        "metric": Shell(
            _METRIC, metric, names=("--metric", "--gain"), choices=lambda: list(METRICS)
        ),
        "ties": Shell(_TIES),
        "lower_is_better": Shell(
            "With --weights equal: a feature of which lower is better; repeat for several.",
            several=True,
        ),
        "prior_only": Shell(
            "Skip adaptation; the posterior equals the prior. Needs no references; for a --prior "
            "learned from other domains, or --weights equal.",
            names=("--no-sentences",),
        ),
        "fixed": Shell(FIXED, lambda names: [] if names == ["none"] else names, several=True),
        "defaults": Shell(
            _DEFAULT,
            functools.partial(numbers, option="--default"),
            several=True,
            names=("--default",),
        ),
        "features": Shell(
            "Use only these columns of the lists as features; repeat for several.", several=True
        ),
        "exclude": Shell("Do not use this column as a feature; repeat for several.", several=True),
        "categorical": Shell(
            "A text column, such as system, whose values become features; repeat for several.",
            several=True,
        ),
        "add": Shell(_ADD, lambda texts: [feature_source(text) for text in texts], several=True),
        "settings": Shell(
            "Setting of the sampler, as NAME=VALUE: draws, warmup, chains, delta, …; repeat for "
            "several.",
            functools.partial(assignments, option="--set"),
            several=True,
            names=("--set",),
        ),
    },
    RerankOptions: {
        "rule": Shell(
            f"Decision rule: {names_in(RULES)}; with settings as in mbr:gain=bleu (default: what "
            "the posterior records: mean without canonical weights, else predictive).",
            functools.partial(component, RULES, option="--rule"),
        ),
        "confidence": None,
        "defaults": Shell(
            _DEFAULT,
            functools.partial(numbers, option="--default"),
            several=True,
            names=("--default",),
        ),
        "moved_files": Shell(_MOVED_FILE, moved_files, several=True, names=("--moved-file",)),
        "derivations": Shell("Equal strings: separate (as published) or summed."),
    },
}


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose groups of options are options of its own, after the others.

    >>> def run(reading: Reading, quiet: bool = False) -> None:
    ...     print(reading)
    >>> list(inspect.signature(expanded(run)).parameters)
    ['quiet', 'first_id', 'bad', 'format', 'list_size', 'score_files']
    >>> expanded(run)(first_id=1, bad="drop", format="auto", list_size=None, score_files=None)
    Reading(first_id=1, bad='drop', format='auto', list_size=None, score_files=None)
    """
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters
    groups = {name: hints[name] for name in given if is_dataclass(hints[name])}
    options = {name: _options(group) for name, group in groups.items()}

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {}
        for name, group in groups.items():
            own = {option.name: values.pop(option.name) for option in options[name]}
            made[name] = group(**_parsed(group, own))
        command(**values, **made)

    parameters = [p.replace(annotation=hints[n]) for n, p in given.items() if n not in groups]
    parameters += [option for group in options.values() for option in group]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _options(group: type) -> list[inspect.Parameter]:
    """Return the fields of a group as options of the command line."""
    if group not in SHELL:
        hints = get_type_hints(group, include_extras=True)
        return [_parameter(one.name, one.default, hints[one.name]) for one in fields(group)]
    texts, found = descriptions(group), []
    for one in fields(group):
        shell = SHELL[group].get(one.name, Shell() if one.type in _SIMPLE else None)
        if shell is None:
            continue
        kind = list[str] | None if shell.several else _SIMPLE.get(str(one.type), str | None)
        default = one.default if not shell.several and one.name != "settings" else None
        flag = f"--{one.name.replace('_', '-')}"
        names = shell.names or ((flag,) if default is False else ())
        help_text = (
            shell.help or texts[one.name].partition(". ")[0].rstrip(".").replace("`", "") + "."
        )
        option = typer.Option(*names, help=help_text, autocompletion=shell.choices)
        if isinstance(default, str) and kind == str | None:
            kind = str
        found.append(_parameter(one.name, default, Annotated[kind, option]))
    return found


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _parsed(group: type, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the fields of a group; what was not given keeps its default."""
    if group not in SHELL:
        return values
    parsers = {name: shell.parse for name, shell in SHELL[group].items() if shell is not None}
    return {
        name: value if (parse := parsers.get(name)) is None else parse(value)
        for name, value in values.items()
        if value is not None
    }
