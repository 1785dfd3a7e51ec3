"""What a posterior file records is that of its schema version, as listed in `schema.txt`.

If a test here fails, files of the versions before and after the change differ. Raise
`SCHEMA_VERSION` in `bpa_ppl/posterior/arviz_data.py` if an entry has another name, type or meaning,
or a feature another name: files of before are then refused, or have to be converted as they are
read. New entries that may be absent need no new version. Then write the list again:

    PYTHONPATH=tests python tests/posterior/test_schema.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from inspect import get_annotations
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct, structs
from support.posteriors import AdaptationRecord, draws_of_all_kinds

from bpa_ppl import NBest, add_features, from_records, read_nbest
from bpa_ppl.posterior.arviz_data import SCHEMA, SCHEMA_VERSION, to_groups
from bpa_ppl.posterior.record import Record

LISTED = Path(__file__).parent / "schema.txt"
FILES = Path(__file__).parent.parent / "formats" / "golden"
_RECORDS = [
    {"id": 0, "text": "a cat", "features": {"lm": -1.5, "tm[0]": 2}, "count": 3, "by": "x"},
    {"id": 0, "text": "the cat", "features": {"lm": -0.5, "tm[0]": 1}, "count": 4, "by": "y"},
]


def describe_fields(cls: type[Any]) -> Iterator[str]:
    """Yield the fields of a record, and of the records in it."""
    written = {
        name: of for base in reversed(cls.__mro__) for name, of in get_annotations(base).items()
    }
    infos: Any = fields(cls) if is_dataclass(cls) else structs.fields(cls)
    for info in infos:
        yield f"{cls.__name__}.{getattr(info, 'encode_name', info.name)}: {written[info.name]}"
    for info in infos:
        for part in (info.type, *get_args(info.type)):
            if isinstance(part, type) and (issubclass(part, Struct) or is_dataclass(part)):
                yield from describe_fields(part)


def describe_groups() -> Iterator[str]:
    """Yield the arrays of a file, with their dimensions."""
    for title, group in to_groups(draws_of_all_kinds().draws)[0].items():
        yield from (f"{title}/{name}({', '.join(group.dims[name])})" for name in group.arrays)
        yield from (f"{title}/{name}: {values.dtype.kind}" for name, values in group.coords.items())


def name_features() -> Iterator[str]:
    """Yield the names of the features of each kind of files, and of those that are added."""

    def row(what: str, lists: NBest) -> str:
        return f"features of {what}: {', '.join(lists.feature_names)}"

    yield row("records", from_records(_RECORDS))
    for name in ("moses-positions.nbest", "marian-soft.nbest", "generate-test.txt"):
        yield row(name, read_nbest(FILES / name))
    yield row("openai", read_nbest(FILES / "openai-completions.jsonl", bad="drop", missing=0))
    sources: Any = ["length", "consensus", "indicators:column=by"]
    yield row("sources", add_features(from_records(_RECORDS, features="count"), sources))


def describe_schema() -> list[str]:
    """Return the lines of the list."""
    fields = dict.fromkeys([*describe_fields(Record), *describe_fields(AdaptationRecord)])
    return [f"{SCHEMA} {SCHEMA_VERSION}", *fields, *describe_groups(), *name_features()]


def test_the_schema_is_as_listed() -> None:
    assert describe_schema() == LISTED.read_text("utf-8").splitlines()


if __name__ == "__main__":
    LISTED.write_text("".join(f"{line}\n" for line in describe_schema()), "utf-8")
