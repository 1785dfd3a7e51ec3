"""Ids of sentences, and references by id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from bpa_ppl._runtime.arrays import is_number, refuse_nul, to_members
from bpa_ppl.errors import DataError, quote, wrong_type

#: References: a text, or several, for each sentence, or by id.
AnyReferences: TypeAlias = Iterable[str | Sequence[str]] | Mapping[Any, str | Sequence[str]]
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,3999}")  # Python reads no more digits


def id_key(value: Any) -> Any:
    """Return the id of a sentence, so that ids are equal if their texts are.

    A text that prints an integer of any size, without leading zeros, is that integer.

    >>> id_key("7"), id_key(7), id_key("07"), id_key("2.0"), id_key("doc-7")
    (7, 7, '07', '2.0', 'doc-7')
    """
    if isinstance(value, str):
        return int(value) if _INTEGER.fullmatch(value) else value
    return int(value) if is_number(value) and isinstance(value, Integral) else value


def describe_other_ids(ids: Iterable[Any], references: Mapping[Any, Any], origin: str) -> str:
    """Return how ids of lists and of references differ, with the first three; or an empty text.

    Args:
        ids: of all lists, as `id_key` returns them.
        references: by id.
        origin: where the references are from.

    >>> describe_other_ids([0, 1, 2], {1: ("a",), "doc-1": ("b",)}, "dev.tsv")
    "the ids of dev.tsv are not those of the lists: no list for 'doc-1'; no reference for 0, 2: ..."
    >>> describe_other_ids([0, 1], {1: ("a",), 0: ()}, "dev.tsv")
    ''
    """
    of_lists = set(ids)
    parts = []
    for what, first, others in (
        ("list", references, of_lists),
        ("reference", ids, references.keys()),
    ):
        if absent := [key for key in first if key not in others]:
            shown = ", ".join(
                str(key) if isinstance(key, int) else quote(key) for key in absent[:3]
            )
            more = f" and {len(absent) - 3:,} more" if len(absent) > 3 else ""
            parts.append(f"no {what} for {shown}{more}")
    if not parts:
        return ""
    problem = f"the ids of {origin} are not those of the lists: {'; '.join(parts)}: give each list "
    return f"{problem}its references, null or () where there is none"


def to_references(values: Any) -> tuple[tuple[str, ...], ...]:
    """Return a tuple of references for each sentence; a single text is one reference.

    Raises:
        DataError: if a reference has a NUL character.
        UsageError: if the values are anything else.

    >>> to_references(["the cat", ["a dog", "one dog"]])
    (('the cat',), ('a dog', 'one dog'))
    """
    rule = "references must be one text, or a tuple of texts, for each sentence"
    entries = to_members(values, "references", rule)
    tuples = [(entry,) if isinstance(entry, str) else entry for entry in entries]
    kept = []
    for entry in tuples:
        several = entry.tolist() if isinstance(entry, np.ndarray) else entry
        if not isinstance(several, tuple | list) or not all(isinstance(t, str) for t in several):
            raise wrong_type(rule, entry, "references")
        refuse_nul(several, "references")
        kept.append(tuple(map(str, several)))
    return tuple(kept)


def group_references(values: Mapping[Any, Any]) -> dict[int | str, tuple[str, ...]]:
    """Return references by the keys of the ids of their sentences.

    Raises:
        UsageError: if a key is not an id, or a value is neither a text nor several.

    >>> group_references({"7": "the cat", "doc-1": ["a dog", "one dog"]})
    {7: ('the cat',), 'doc-1': ('a dog', 'one dog')}
    """
    references: dict[int | str, tuple[str, ...]] = {}
    for identifier, entry in values.items():
        key = id_key(identifier)
        if isinstance(key, bool) or not isinstance(key, int | str):
            rule = "the id of a reference must be an integer or a text"
            raise wrong_type(rule, identifier, "references")
        references[key] = (*references.get(key, ()), *to_references([entry])[0])
    return references


def find_references(
    references: Mapping[Any, Any], ids: Sequence[int | str], origin: str
) -> list[tuple[str, ...]]:
    """Return the references of each of some ids; an empty tuple for an id without any.

    Raises:
        DataError: if the ids are not those of the lists.

    >>> find_references({"1": "B", "0": ()}, [0, 1], "dev.jsonl")
    [(), ('B',)]
    """
    by_id, keys = group_references(references), list(map(id_key, ids))
    if differ := describe_other_ids(keys, by_id, "the references"):
        raise DataError(differ, origin, parameter="references", code="mismatch")
    return [by_id[key] for key in keys]
