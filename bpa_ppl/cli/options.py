"""Options that several subcommands share, and how they are read.

An option is an annotated type; options that belong together are a dataclass of them, such as
`Reading`. A command takes the group as one argument, and `expanded` makes of each of its fields an
option of the command line.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_type_hints

import typer

from bpa_ppl.cli.wording import in_options
from bpa_ppl.component import Component, number_or_text, settings_in
from bpa_ppl.errors import UsageError
from bpa_ppl.notes import log_info
from bpa_ppl.registry import (
    FEATURES,
    LIKELIHOODS,
    METRICS,
    NBEST_FORMATS,
    SAMPLERS,
    Registry,
)

if TYPE_CHECKING:
    from bpa_ppl.features import FeatureSource
    from bpa_ppl.models import Likelihood as AnyLikelihood
    from bpa_ppl.nbest import NBest
    from bpa_ppl.quality import Metric as AnyMetric
    from bpa_ppl.weights import Weights as Canonical


C = TypeVar("C", bound=Component)


def names_in(registry: Iterable[str], *more: str) -> str:
    """Return names as a phrase of help.

    >>> names_in(["ter", "bleu"], "auto")
    'auto, ter or bleu'
    """
    *others, last = [*more, *registry]
    return f"{', '.join(others)} or {last}" if others else last


NBestPath = Annotated[
    str, typer.Argument(metavar="NBEST", help="n-best lists; plain, gzip, xz or zstd; - is stdin.")
]
Pools = Annotated[
    list[str],
    typer.Argument(
        metavar="NBEST",
        help="n-best lists; several files are taken together, and their references and sources are "
        "then given as -r A,B and -s A,B; plain, gzip, xz or zstd; - is stdin.",
    ),
]
PosteriorPath = Annotated[Path, typer.Argument(help="NetCDF file written by `bpa adapt`.")]
Weights = Annotated[
    str,
    typer.Option(
        "--weights",
        "-w",
        help="moses.ini, dense weights, JSON, YAML, numbers in the order of the columns; or none; "
        "or equal, which starts at the mean of the standardised features.",
    ),
]
References = Annotated[
    list[Path] | None,
    typer.Option(
        "--references", "-r", help="Reference translations, one a line; repeat for several."
    ),
]
Sources = Annotated[
    Path | None,
    typer.Option("--sources", "-s", help="Source sentences, one a line, for features or metrics."),
]
Places = Annotated[
    list[str] | None,
    typer.Option(
        "--where", help="NAME=FILE: where a file lies now that features are computed from."
    ),
]
Add = Annotated[
    list[str] | None,
    typer.Option(
        "--add",
        help=f"More features: {names_in(FEATURES)}; lm=domain.txt, lexicon=memory.fr,memory.en, "
        "phrases=table.parquet, with settings as in lm=domain.txt,order=5; or learned from the "
        "adaptation sentences, lm=self. Repeat for several.",
    ),
]
Sampler = Annotated[
    str | None,
    typer.Option(
        help=f"{names_in(SAMPLERS)}; auto unless given.", autocompletion=lambda: list(SAMPLERS)
    ),
]
Likelihood = Annotated[
    str | None,
    typer.Option(
        help=f"{names_in(LIKELIHOODS)}, with settings: margin:gamma=4. Unless given, margin where "
        "--metric is ter, bleu, chrf or ter+bleu, else risk; preference for lists that carry "
        "preferences and no references."
    ),
]
SamplerSettings = Annotated[
    list[str] | None, typer.Option("--set", help="SAMPLER.NAME=VALUE, such as rwm.draws=500.")
]
Unchecked = Annotated[
    bool, typer.Option("--unchecked", help="Use a posterior although it fails its check.")
]
Jobs = Annotated[int, typer.Option(help="Workers that score hypotheses; -1 takes every core.")]
Cache = Annotated[bool, typer.Option(help="Keep sentence scores on disk and reuse them.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
Metric = Annotated[
    str,
    typer.Option(
        "--metric",
        "--gain",
        help=f"What makes an oracle: {names_in(METRICS)}; or a column of numbers of the lists: "
        "comet, or -ter where less is better.",
        autocompletion=lambda: list(METRICS),
    ),
]
Default = Annotated[
    list[str] | None, typer.Option(help="NAME=VALUE for a feature without a weight.")
]
Ties = Annotated[
    str | None,
    typer.Option(
        help="How ties of oracles are broken: by canonical scores (canonical), or not at all "
        "(shared). Unless given, canonical where there are canonical weights or totals."
    ),
]


@dataclass(frozen=True)
class Reading:
    """How n-best lists are read: the options of every command that reads some."""

    size_option: ClassVar[str] = "--nbest"
    first_id: Annotated[
        int, typer.Option(help="Id of the first sentence: 0, or 1 for some tools.")
    ] = 0
    bad: Annotated[
        str, typer.Option(help="A value that is no finite number: error, or drop the hypothesis.")
    ] = "error"
    format: Annotated[
        str,
        typer.Option(help=f"Of the lists: {names_in(NBEST_FORMATS, 'auto')}; auto is by content."),
    ] = "auto"
    list_size: Annotated[
        int | None,
        typer.Option(
            "--nbest",
            "--list-size",
            help="Plain text with so many hypotheses a sentence, a line each.",
        ),
    ] = None
    score_files: Annotated[
        list[str] | None,
        typer.Option("--scores", help="With --nbest: scores of its lines, .npy or text; repeat."),
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
        """Return the lists of several files as those of one text.

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

        refs = [of_each(str(files), paths, "references -r") for files in references or ()]
        texts = of_each(str(sources), paths, "sources -s") if sources else [None] * len(paths)
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
        Plain(nbest=2, scores=('lm.npy',))
        """
        format: Any = self.format
        if self.list_size is None and self.score_files:
            raise UsageError(f"--scores goes with {self.size_option}, for lists in plain text")
        if self.list_size is not None:
            if self.format not in ("auto", "plain"):
                raise UsageError(
                    f"{self.size_option} is for plain text, and --format is {self.format}"
                )
            settings = {"nbest": self.list_size, "scores": tuple(self.score_files or ())}
            format = NBEST_FORMATS.resolve("plain", settings)
        return {"first_id": self.first_id, "bad": self.bad, "format": format}


@dataclass(frozen=True)
class ReadingNew(Reading):
    """The same, where `--nbest` names the file of the lists."""

    size_option: ClassVar[str] = "--list-size"
    list_size: Annotated[
        int | None,
        typer.Option(
            "--list-size", help="Plain text with so many hypotheses a sentence, a line each."
        ),
    ] = None
    score_files: Annotated[
        list[str] | None,
        typer.Option("--scores", help="With --list-size: scores of its lines, .npy or text."),
    ] = None


@dataclass(frozen=True)
class Matching:
    """How canonical weights are matched to the features of the lists."""

    fixed: Annotated[
        list[str] | None,
        typer.Option(help="Fix a feature at its canonical weight (`none` fixes none)."),
    ] = None
    default: Default = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `bpa_ppl.weights.match`.

        >>> Matching(fixed=["none"], default=["LM0=0.5"]).arguments()
        {'fixed': [], 'defaults': {'LM0': 0.5}}
        """
        fixed = [] if self.fixed == ["none"] else self.fixed
        return {"fixed": fixed, "defaults": numbers(self.default, "--default")}


@dataclass(frozen=True)
class Development:
    """The lists of the out-of-domain set that the canonical weights were tuned on."""

    extra: Annotated[
        Path | None,
        typer.Option(help="N-best lists of the out-of-domain set, for mert+ and weight-trace."),
    ] = None
    extra_references: Annotated[
        list[Path] | None, typer.Option(help="Their references; repeat for several.")
    ] = None

    def read(self, reading: Reading) -> NBest | None:
        """Return the lists, or None where there are none.

        Raises:
            UsageError: if references are given without lists, or lists without references.
        """
        if (self.extra is None) != (not self.extra_references):
            raise UsageError("--extra and --extra-references go together: give both or neither")
        return None if self.extra is None else reading.read(self.extra, self.extra_references)


def of_each(files: str, lists: Sequence[str], what: str) -> list[Path]:
    """Read file names that are separated by commas, one for each file of lists.

    >>> [str(path) for path in of_each("in.ref,out.ref", ["in.nbest", "out.nbest"], "references")]
    ['in.ref', 'out.ref']
    """
    paths = [Path(name) for name in files.split(",")]
    if len(paths) != len(lists):
        raise UsageError(
            f"{len(lists)} files of n-best lists need as many of {what}, separated by commas in "
            f"the same order, not {files}"
        )
    return paths


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

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **made)

    parameters = [p.replace(annotation=hints[n]) for n, p in given.items() if n not in groups]
    parameters += [
        inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=field.default,
            annotation=get_type_hints(group, include_extras=True)[field.name],
        )
        for group in groups.values()
        for field in fields(group)
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def metric(text: str) -> str | AnyMetric:
    """Read what `--metric` names: a metric with settings, `chrf:word_order=2`, or a name.

    >>> metric("TER"), metric("column:column=ter,negative=true").key
    ('TER', '-ter')
    """
    name, colon, settings = text.partition(":")
    if not colon or name.lower() not in METRICS:
        return text
    return component(METRICS, f"{name.lower()}:{settings}", "--metric")


def with_needs(lists: NBest, chosen: str | AnyMetric, command: str) -> NBest:
    """Return the lists, if they have what a metric compares with.

    Raises:
        UsageError: if they do not; the message names the option that gives it.
    """
    from bpa_ppl.quality import resolve

    found = resolve(chosen, lists)
    if "references" in found.needs and lists.references is None:
        raise UsageError(f"{command} needs --references: the reference translations of the lists")
    return lists


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


def say(message: object, quiet: bool = False) -> None:
    """Say how the work went, on standard error: standard output is for results."""
    if not quiet:
        log_info(in_options(str(message)))


def variances(given: Iterable[str] | None) -> tuple[float | None, dict[str, float]]:
    """Read `--prior-variance VALUE` and `--prior-variance NAME=VALUE`, any of which may be there.

    >>> variances(["0.5", "LM0=2"]), variances(None)
    ((0.5, {'LM0': 2.0}), (None, {}))
    """
    single = [text for text in given or () if "=" in text]
    plain = [text for text in given or () if "=" not in text]
    if len(plain) > 1:
        raise UsageError("--prior-variance takes one number, and NAME=VALUE for single features")
    value = number_or_text(plain[0]) if plain else None
    if isinstance(value, str):
        raise UsageError(f"--prior-variance takes a number or NAME=VALUE, not {value!r}")
    return None if value is None else float(value), numbers(single, "--prior-variance")


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


def component(registry: Registry[C], text: str, option: str) -> C:
    """Read `NAME` or `NAME:SETTING=VALUE,SETTING=VALUE`.

    >>> from bpa_ppl.registry import METRICS
    >>> component(METRICS, "chrf:word_order=2", "--metric")
    CHRF(char_order=6, word_order=2, beta=2)
    """
    name, _, settings = text.partition(":")
    return registry.resolve(name, settings_in(settings, f"{option} {name}"))


def likelihood(text: str | None) -> AnyLikelihood | None:
    """Read what `--likelihood` names, with its settings; None where it is left open."""
    return None if text is None else component(LIKELIHOODS, text, "--likelihood")


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


def places(pairs: Iterable[str] | None) -> dict[str, tuple[str, ...]]:
    """Read `--where NAME=FILE` options; several files are separated by commas.

    >>> places(["lm=domain.txt", "lexicon=memory.fr,memory.en"])
    {'lm': ('domain.txt',), 'lexicon': ('memory.fr', 'memory.en')}
    """
    found = assignments(pairs, "--where")
    return {name: tuple(str(files).split(",")) for name, files in found.items()}


def numbers(pairs: Iterable[str] | None, option: str) -> dict[str, float]:
    """Read `NAME=NUMBER` options; a name may have a `=` of its own.

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
