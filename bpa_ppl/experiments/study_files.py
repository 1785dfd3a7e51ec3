"""Studies as TOML files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.experiments.methods import NAMED, Method
from bpa_ppl.experiments.study import Domain, Study, Sweep, Text
from bpa_ppl.experiments.tables import Table, read_table

# What goes into names of files.
_NAME = re.compile(r"[A-Za-z0-9+_-]+")


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
    numbered from one.

    Raises:
        DataError: at the first mistake: a key, method or setting that is unknown, a missing file,
            a value that makes no sense.
    """
    table = read_table(Path(path))
    named = {**NAMED, **_variants(table)}
    study = Study(
        domains=tuple(_domain(part) for part in table.take_tables("domains")),
        methods=tuple(_method(table, n, named) for n in table.take_list("methods", str)),
        sizes=tuple(sorted(table.take_list("sizes", int))),
        draws=table.take("draws", int, 10),
        seed=table.take("seed", int, 0),
        replacement=table.take("replacement", bool, True),
        development=_development(table),
        sweeps=tuple(_sweep(part, named) for part in table.take_tables("sweeps")),
    )
    table.done()
    _check(study, table)
    return study


def _variants(table: Table) -> dict[str, Method]:
    """Return the methods that a study defines on its own."""
    variants: dict[str, Method] = {}
    for part in table.take_tables("variants"):
        name = _name(part)
        if name in NAMED:
            raise part.error(f"{name} is the name of a method already: choose another one")
        base = _method(part, part.take("like", str), {**NAMED, **variants})
        variants[name] = _changed(part, base, part.rest(), name)
    return variants


def _method(table: Table, name: str, named: Mapping[str, Method]) -> Method:
    if name not in named:
        raise table.error(f"unknown method {name!r}: choose among {', '.join(named)}")
    return named[name]


def _changed(table: Table, method: Method, settings: Mapping, name: str = "") -> Method:
    try:
        return method.with_settings(settings, name)
    except UsageError as error:
        raise table.error(str(error)) from error


def _domain(table: Table) -> Domain:
    first_id = table.take("first_id", int, 0)
    domain = Domain(
        name=_name(table),
        weights=_file(table, table.take("weights", str)),
        adapt=_text(table, "adapt", "adapt_references", first_id),
        held_out=(held_out := table.take("held_out", int, 0)),
        test=None if held_out else _text(table, "test", "test_references", first_id),
    )
    table.done()
    if held_out < 0:
        raise table.error(f"held_out must be positive, not {held_out}")
    return domain


def _development(table: Table) -> Text | None:
    given = table.take("development", dict, {})
    if not given:
        return None
    part = Table(given, "development", table.path)
    text = _text(part, "nbest", "references", part.take("first_id", int, 0))
    part.done()
    return text


def _text(table: Table, nbest: str, references: str, first_id: int) -> Text:
    return Text(
        _file(table, table.take(nbest, str)),
        tuple(_file(table, name) for name in table.take_list(references, str)),
        first_id,
    )


def _file(table: Table, name: str) -> Path:
    found = table.path.parent / name
    if not found.is_file():
        raise table.error(f"there is no file {found}: paths are relative to the study's folder")
    return found


def _sweep(table: Table, named: Mapping[str, Method]) -> Sweep:
    setting = table.take("setting", str)
    sweep = Sweep(
        setting=setting,
        values=tuple(_value(table, value) for value in table.take("values", list)),
        methods=table.take_list("methods", str),
        sizes=tuple(sorted(table.take_list("sizes", int))),
    )
    table.done()
    for name in sweep.methods:
        for value in sweep.values:
            _changed(table, _method(table, name, named), {setting: value})
    return sweep


def _value(table: Table, value: object) -> int | float | str:
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise table.error(f"values must be numbers or names, not {value!r}")


def _name(table: Table) -> str:
    """Return the last part of the name of a table."""
    name = table.name.split(".", 1)[1]
    if not _NAME.fullmatch(name):
        raise table.error("a name may have letters, digits, + - and _ only: change it")
    return name


def _check(study: Study, table: Table) -> None:
    """Raise a DataError if the parts of a study do not fit together."""
    if not study.domains:
        raise table.error("there is no domain: add a table [domains.NAME]")
    for what, least in (("draws", study.draws), ("sizes", min(study.sizes))):
        if least < 1:
            raise table.error(f"{what} must be 1 or more, not {least}")
    if study.seed < 0:
        raise table.error(f"seed must be 0 or more, not {study.seed}")
    known = {method.name for method in study.methods}
    for sweep in study.sweeps:
        if not known.issuperset(sweep.methods):
            missing = next(name for name in sweep.methods if name not in known)
            raise DataError(f"sweep of {missing}, which is not among the methods", table.path)
    for method in study.methods:
        if method.needs_development_set and study.development is None:
            raise table.error(
                f"the method {method.name} needs the text that λ_T was tuned on: add [development]"
            )
