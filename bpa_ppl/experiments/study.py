"""A study: which methods are compared, on which texts, with how many adaptation sentences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bpa_ppl.errors import DataError, UsageError, checked_seed, quoted
from bpa_ppl.experiments.methods import CANONICAL, Method, Value, named_methods
from bpa_ppl.formats.streams import read_text
from bpa_ppl.quality import by_name, counted_metrics
from bpa_ppl.registry import METRICS

T = TypeVar("T")
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a table",
}
# What goes into names of files.
_NAME = re.compile(r"[A-Za-z0-9+_-]+")
# Of sentences and of draws; larger ones are slips, and would fill the memory.
_MOST = 1_000_000
_LARGEST = 10**18  # whole numbers that fit 64 bits


@dataclass(frozen=True)
class ListFiles:
    """N-best lists of a text, and its references; `first_id` is the id of its first sentence."""

    nbest: Path
    references: tuple[Path, ...] = ()
    first_id: int = 0


@dataclass(frozen=True)
class Domain:
    """A domain to adapt to.

    Attributes:
        name: what the results are filed under.
        weights: the canonical weights λ_T; None if there are none.
        adapt: the lists from which A is drawn.
        test: what is translated; None takes sentences from `adapt`.
        held_out: how many of them; a shuffle that depends on the study's seed picks them.
    """

    name: str
    weights: Path | None
    adapt: ListFiles
    test: ListFiles | None = None
    held_out: int = 0


@dataclass(frozen=True)
class Sweep:
    """One setting of some methods, varied at some sizes of A."""

    setting: str
    values: tuple[Value, ...]
    methods: tuple[str, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Study:
    """Everything that the results depend on.

    Attributes:
        domains: the texts.
        methods: what is compared, at all sizes.
        sizes: of A, in sentences.
        draws: of A, at each size.
        seed: of the draws of A, of samplers and of tuners.
        replacement: whether a sentence may be drawn more than once, as published.
        development: the out-of-domain text that λ_T was tuned on, for methods that need it.
        sweeps: what else is run.
        columns: scores that the lists bring along: they are metrics, and no features.
        categorical: columns of texts that become features for samplers, such as `system`.
    """

    domains: tuple[Domain, ...]
    methods: tuple[Method, ...]
    sizes: tuple[int, ...]
    draws: int = 10
    seed: int = 0
    replacement: bool = True
    development: ListFiles | None = None
    sweeps: tuple[Sweep, ...] = ()
    columns: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """What translations are scored by: TER, BLEU, … where there are references; columns."""
        texts = [text for d in self.domains for text in (d.adapt, d.test) if text is not None]
        known = all(text.references for text in texts)
        return (*(counted_metrics() if known else ()), *self.columns)

    @property
    def every_size(self) -> tuple[int, ...]:
        """The sizes of A that occur, those of sweeps too, in order."""
        return tuple(sorted({*self.sizes, *(size for s in self.sweeps for size in s.sizes)}))


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
    metric = "ter"

    [variants.steep]                       # of the likelihood, too
    like = "imh"
    likelihood = "margin"
    gamma = 4

    [sweeps.prior]                         # one setting varied
    setting = "prior_variance"
    values = [0.01, 0.1, 1.0]
    methods = ["imh"]
    sizes = [100]

    [development]                          # what λ_T was tuned on, for mert+ and weight-trace
    nbest = "dev.nbest.gz"
    references = ["dev.ref"]
    ```

    `seed` and `replacement = false` may be set too, and `first_id = 1` for texts whose lists are
    numbered from one. `columns = ["mqm"]` names scores in the lists, of which more is better
    (`-NAME`: less): they are reported, and can be the `metric` of a method; where all methods have
    one, no references are needed. `categorical = ["system"]` makes features of a column of texts,
    for samplers. `weights = "none"` starts without canonical weights.

    Raises:
        DataError: at the first mistake: a key, method or setting that is unknown, a missing file,
            a value that makes no sense.

    >>> read_study("no.toml")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no.toml: no such file...
    """
    table = _read_toml(Path(path))
    known = named_methods()
    for part in table.take_tables("variants"):
        name = _name(part)
        if name in known:
            raise part.error(f"{name} is the name of a method already: choose another one")
        base = _method(part, part.take("like", str), known)
        known[name] = _changed(part, base, part.rest(), name)
    study = Study(
        domains=tuple(_domain(part) for part in table.take_tables("domains")),
        methods=tuple(_method(table, n, known) for n in table.take_list("methods", str)),
        sizes=tuple(sorted(table.take_list("sizes", int))),
        draws=table.take("draws", int, 10),
        seed=table.take("seed", int, 0),
        replacement=table.take("replacement", bool, True),
        development=_development(table),
        sweeps=tuple(_sweep(part, known) for part in table.take_tables("sweeps")),
        columns=_columns(table),
        categorical=table.take_list("categorical", str, []),
    )
    table.done()
    _check(study, table)
    return study


class TomlTable:
    """A table of a TOML file whose keys are taken one after the other.

    Every wrong, missing or unknown key is an error that says where it is.

    Args:
        values: the keys and values.
        name: of the table, for messages; empty for the whole file.
        path: of the file.
    """

    def __init__(self, values: dict[str, Any], name: str, path: Path):
        self._values, self.name, self.path = dict(values), name, path

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Return a value; without a default it must be there.

        Raises:
            DataError: if it is missing or of another kind.

        >>> TomlTable({"seed": 3}, "", Path("study.toml")).take("seed", int)
        3
        """
        if key not in self._values:
            if default is None:
                raise self.error(f"{key} is missing: add {key} = {_KINDS[kind]}")
            return default
        return self._checked(self._values.pop(key), kind, key)

    def take_list(self, key: str, kind: type[T], default: list[T] | None = None) -> tuple[T, ...]:
        """Return the values of a list that is not empty, each once.

        Raises:
            DataError: as `take`, and if a value is repeated.

        >>> TomlTable({"sizes": [10, 20]}, "", Path("study.toml")).take_list("sizes", int)
        (10, 20)
        """
        given = self.take(key, list, default)
        values = tuple(self._checked(value, kind, key) for value in given)
        if len(set(values)) != len(values):
            raise self.error(f"{key} names a value twice: leave one out")
        if not values and default is None:
            raise self.error(f"{key} is empty: name at least one value")
        return values

    def take_tables(self, key: str) -> list[TomlTable]:
        """Return the tables in a table, in the order of the file."""
        outer = self.take(key, dict, {})
        title = f"{self.name}.{key}" if self.name else key
        return [
            TomlTable(self._checked(inner, dict, name), f"{title}.{name}", self.path)
            for name, inner in outer.items()
        ]

    def rest(self) -> dict[str, Any]:
        """Return the keys not taken so far, and take them."""
        values, self._values = self._values, {}
        return values

    def done(self) -> None:
        """Raise a DataError if a key has not been taken."""
        if self._values:
            raise self.error(
                f"unknown key {quoted(next(iter(self._values)))}: correct or remove it"
            )

    def error(self, message: str) -> DataError:
        """Return an error that says where it is."""
        return DataError(f"in [{self.name}]: {message}" if self.name else message, self.path)

    def _checked(self, value: Any, kind: type[T], key: str) -> T:
        if kind is float and isinstance(value, int) and abs(value) < _LARGEST:
            value = float(value)
        if isinstance(value, int) and abs(value) >= _LARGEST:
            raise self.error(f"{key} must be a number of at most 18 digits")
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise self.error(f"{key} must be {_KINDS[kind]}, not {quoted(value)}")
        return value


def _read_toml(path: Path) -> TomlTable:
    text = read_text(path)
    try:
        return TomlTable(tomllib.loads(text), "", path)
    except tomllib.TOMLDecodeError as error:
        raise DataError(
            f"not a TOML file: {error}: write settings as NAME = VALUE, texts in quotes", path
        ) from error
    except RecursionError as error:
        raise DataError("lists or tables inside one another without an end", path) from error
    except ValueError as error:  # Python reads no numbers of thousands of digits
        raise DataError("a whole number has more than 4,000 digits: correct it", path) from error


def _method(table: TomlTable, name: str, known: Mapping[str, Method]) -> Method:
    if name not in known:
        raise table.error(f"unknown method {quoted(name)}: choose among {', '.join(known)}")
    return _changed(table, known[name], {})


def _changed(
    table: TomlTable, method: Method, settings: Mapping[str, Any], name: str = ""
) -> Method:
    try:
        return method.with_settings(settings, name)
    except UsageError as error:
        raise table.error(str(error)) from error


def _domain(table: TomlTable) -> Domain:
    first_id = table.take("first_id", int, 0)
    weights = table.take("weights", str)
    domain = Domain(
        name=_name(table),
        weights=None if weights == "none" else _file(table, weights),
        adapt=_list_files(table, "adapt", "adapt_references", first_id),
        held_out=(held_out := table.take("held_out", int, 0)),
        test=None if held_out else _list_files(table, "test", "test_references", first_id),
    )
    table.done()
    if held_out < 0:
        raise table.error(f"held_out must be positive, not {held_out}")
    return domain


def _development(table: TomlTable) -> ListFiles | None:
    given = table.take("development", dict, {})
    if not given:
        return None
    part = TomlTable(given, "development", table.path)
    files = _list_files(part, "nbest", "references", part.take("first_id", int, 0))
    part.done()
    return files


def _list_files(table: TomlTable, nbest: str, references: str, first_id: int) -> ListFiles:
    return ListFiles(
        _file(table, table.take(nbest, str)),
        tuple(_file(table, name) for name in table.take_list(references, str, [])),
        first_id,
    )


def _file(table: TomlTable, name: str) -> Path:
    found = table.path.parent / name
    if not found.is_file():
        raise table.error(f"there is no file {found}: paths are relative to the study's folder")
    return found


def _sweep(table: TomlTable, known: Mapping[str, Method]) -> Sweep:
    setting, values = table.take("setting", str), table.take("values", list)
    for value in values:
        if not isinstance(value, Value) or (isinstance(value, str) and not _NAME.fullmatch(value)):
            raise table.error(f"values must be numbers or names, not {quoted(value)}")
    sweep = Sweep(
        setting=setting,
        values=tuple(values),
        methods=table.take_list("methods", str),
        sizes=tuple(sorted(table.take_list("sizes", int))),
    )
    table.done()
    for name in sweep.methods:
        for value in sweep.values:
            _changed(table, _method(table, name, known), {setting: value})
    return sweep


def _columns(table: TomlTable) -> tuple[str, ...]:
    """Return the columns that are metrics."""
    names = table.take_list("columns", str, [])
    for name in names:
        if name in METRICS:
            raise table.error(f"columns: {name} is the name of a metric: rename the column")
        if not _NAME.fullmatch(name):
            raise table.error(f"columns: {name} may have letters, digits, + - and _ only")
    return names


def _name(table: TomlTable) -> str:
    """Return the last part of the name of a table."""
    name = table.name.split(".", 1)[1]
    if not _NAME.fullmatch(name):
        raise table.error("a name may have letters, digits, + - and _ only: change it")
    return name


def _check(study: Study, table: TomlTable) -> None:
    """Raise a DataError if the parts of a study do not fit together."""
    if not study.domains:
        raise table.error("there is no domain: add a table [domains.NAME]")
    sizes = [*study.sizes, *(size for sweep in study.sweeps for size in sweep.sizes)]
    for what, values in (("draws", [study.draws]), ("sizes", sizes)):
        odd = next((value for value in values if not 1 <= value <= _MOST), None)
        if odd is not None:
            raise table.error(f"{what} must be from 1 to {_MOST:,}, not {odd:,}")
    try:
        checked_seed(study.seed)
    except UsageError as error:
        raise table.error(str(error)) from error
    known = {method.name for method in study.methods}
    for sweep in study.sweeps:
        if not known.issuperset(sweep.methods):
            missing = next(name for name in sweep.methods if name not in known)
            raise DataError(f"sweep of {missing}, which is not among the methods", table.path)
    swept = [str(v) for sweep in study.sweeps if sweep.setting == "metric" for v in sweep.values]
    learning = [method.metric for method in study.methods if method.kind != CANONICAL]
    for metric in [*learning, *swept]:
        _check_metric(metric, study, table)
    for method in study.methods:
        if method.needs_development and study.development is None:
            raise table.error(
                f"the method {method.name} needs the text that λ_T was tuned on: add [development]"
            )


def _check_metric(metric: str, study: Study, table: TomlTable) -> None:
    """Raise a DataError if there is no such metric, or it needs references that are not there."""
    choices = [*(name for name in METRICS if name != "column"), *study.columns]
    if metric not in choices:
        known = ", ".join(choices)
        raise table.error(
            f"unknown metric {metric!r}: choose one of {known}, or name a column of the lists in "
            "columns"
        )
    texts = [text for d in study.domains for text in (d.adapt, d.test) if text is not None]
    if _needs_references(metric) and not all(text.references for text in texts):
        raise table.error(
            f"the metric {metric} needs references: add adapt_references (and test_references), "
            "or name a column of the lists in columns and make it the metric of each method"
        )


def _needs_references(metric: str) -> bool:
    return "references" in by_name(metric).needs
