"""Options that several subcommands share, and how they are read.

An option is an annotated type; options that belong together are a dataclass of them, such as
`Reading`. A command takes the group as one argument, and `expanded` makes of each of its fields an
option of the command line.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from bpa_ppl.component import Component
from bpa_ppl.errors import UsageError
from bpa_ppl.registry import METRICS, NBEST_FORMATS, SAMPLERS, Registry

if TYPE_CHECKING:
    from bpa_ppl.nbest import NBest


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
PosteriorPath = Annotated[Path, typer.Argument(help="NetCDF file written by `bpa adapt`.")]
Weights = Annotated[Path, typer.Option("--weights", "-w", help="moses.ini, dense weights or JSON.")]
References = Annotated[
    list[Path] | None,
    typer.Option(
        "--references", "-r", help="Reference translations, one a line; repeat for several."
    ),
]
Sampler = Annotated[str, typer.Option(help=f"{names_in(SAMPLERS)}.")]
SamplerSettings = Annotated[
    list[str] | None, typer.Option("--set", help="SAMPLER.NAME=VALUE, such as rwm.draws=500.")
]
Unchecked = Annotated[
    bool, typer.Option("--unchecked", help="Use a posterior although it fails its check.")
]
Jobs = Annotated[int, typer.Option(help="Workers that score hypotheses; -1 takes every core.")]
Cache = Annotated[bool, typer.Option(help="Keep sentence scores on disk and reuse them.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
Metric = Annotated[str, typer.Option(help=f"What makes an oracle: {names_in(METRICS)}.")]
Ties = Annotated[str, typer.Option(help="How ties of oracles are broken: canonical or first.")]


@dataclass(frozen=True)
class Reading:
    """How n-best lists are read: the options of every command that reads some."""

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

    def read(self, path: str | Path, references: Sequence[Path] | None = None) -> NBest:
        """Return all lists of a file."""
        import bpa_ppl

        return bpa_ppl.read_nbest(path, references=references or None, **vars(self))

    def stream(self, path: str | Path, references: Sequence[Path] | None) -> Iterator[NBest]:
        """Yield the lists of a file in chunks."""
        import bpa_ppl

        return bpa_ppl.iter_nbest(path, references=references or None, **vars(self))


@dataclass(frozen=True)
class Matching:
    """How canonical weights are matched to the features of the lists."""

    fixed: Annotated[
        list[str] | None,
        typer.Option(help="Fix a feature at its canonical weight (`none` fixes none)."),
    ] = None
    default: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for a feature without a weight.")
    ] = None

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


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose groups of options are options of its own, after the others.

    >>> def run(reading: Reading, quiet: bool = False) -> None:
    ...     print(reading)
    >>> list(inspect.signature(expanded(run)).parameters)
    ['quiet', 'first_id', 'bad', 'format']
    >>> expanded(run)(quiet=True, first_id=1, bad="drop", format="auto")
    Reading(first_id=1, bad='drop', format='auto')
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


def required(references: list[Path] | None, command: str) -> list[Path]:
    """Return the references.

    Raises:
        UsageError: if there are none.
    """
    if not references:
        raise UsageError(f"{command} needs --references: the reference translations of the lists")
    return references


def say(message: object, quiet: bool = False) -> None:
    """Write a message to standard error: standard output is for results."""
    if not quiet:
        print(message, file=sys.stderr)


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
        values[name] = _value(text)
    return values


def component(registry: Registry[C], text: str, option: str) -> C:
    """Read `NAME` or `NAME:SETTING=VALUE,SETTING=VALUE`.

    >>> from bpa_ppl.registry import METRICS
    >>> component(METRICS, "chrf:word_order=2", "--metric")
    CHRF(char_order=6, word_order=2, beta=2)
    """
    name, _, settings = text.partition(":")
    pairs = [pair for pair in settings.split(",") if pair]
    return registry.resolve(name, assignments(pairs, option))


def numbers(pairs: Iterable[str] | None, option: str) -> dict[str, float]:
    """Read `NAME=NUMBER` options."""
    values = assignments(pairs, option)
    for name, value in values.items():
        if isinstance(value, str):
            raise UsageError(f"{option} {name} needs a number, not {value!r}")
    return {name: float(value) for name, value in values.items()}


def _value(text: str) -> float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
