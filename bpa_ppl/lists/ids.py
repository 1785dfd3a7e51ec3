"""Ids of sentences, and references by id."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from bpa_ppl._runtime.arrays import is_number, refuse_nul, to_members
from bpa_ppl.errors import DataError, UsageError, quote, wrong_type

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


def id_keys(values: Iterable[Any]) -> list[Any]:
    """Return the ids of sentences, each as `id_key` does."""
    return [id_key(value) for value in values]


def visible_form(text: str) -> str:
    r"""Return a name or an id in the form that texts which print alike have in common.

    Blanks of any kind are single spaces inside the text, and letters with marks are composed (NFC).

    >>> [visible_form(text) for text in ("doc\t 7", "doc\xa0 7", "cafe\u0301")]
    ['doc 7', 'doc 7', 'café']
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def has_unseen(text: str) -> bool:
    r"""Return whether a text has blanks other than single ones inside it.

    >>> has_unseen("my lm"), has_unseen("lm "), has_unseen("\xa0lm"), has_unseen("cafe\u0301")
    (False, True, True, False)
    """
    return visible_form(text) != unicodedata.normalize("NFC", text)


def find_other_form(forms: dict[Any, str], key: Any, value: Any) -> str | None:
    """Return another id before that has the same key or looks the same; and enter this one.

    Such ids are those of two sentences, or a mistake, and are never joined.

    >>> forms = {}
    >>> values = ("7", 7, "doc-7", "doc-7 ")
    >>> [find_other_form(forms, id_key(value), value) for value in values]
    [None, None, None, 'doc-7']
    >>> find_other_form(forms, 7, "07")  # where ids are integers
    '7'
    """
    text = value if isinstance(value, str) else str(key)
    before = forms.setdefault(visible_form(key) if isinstance(key, str) else key, text)
    return None if before == text else before


def describe_equal_ids(value: Any, other: str) -> str:
    r"""Return the end of a message about two ids that `find_other_form` has found.

    >>> describe_equal_ids("07", "7")
    "the ids '07' and '7' are the same number: write an id in one way, or rename one of two"
    >>> describe_equal_ids("café", "cafe\u0301").partition(":")[0]
    "the ids 'caf\\xe9' and 'cafe\\u0301' look the same"
    """
    alike = visible_form(str(value)) == visible_form(other)
    are = "look the same" if alike else "are the same number"
    # Escaped, since they may differ only by blanks or the form of letters.
    ids = (quote(str(one)).encode("ascii", "backslashreplace").decode() for one in (value, other))
    return f"the ids {' and '.join(ids)} {are}: write an id in one way, or rename one of two"


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
        UsageError: if a key is not an id, two are one number written in two ways, or a value is
            neither a text nor several.

    >>> group_references({"7": "the cat", "doc-1": ["a dog", "one dog"]})
    {7: ('the cat',), 'doc-1': ('a dog', 'one dog')}
    """
    found: dict[int | str, tuple[str, ...]] = {}
    forms: dict[Any, str] = {}
    for identifier, entry in values.items():
        key = id_key(identifier)
        if isinstance(key, bool) or not isinstance(key, int | str):
            rule = "the id of a reference must be an integer or a text"
            raise wrong_type(rule, identifier, "references")
        if other := find_other_form(forms, key, identifier):
            problem = f"two references: {describe_equal_ids(identifier, other)}"
            raise UsageError(problem, parameter="references", code="duplicate")
        found[key] = (*found.get(key, ()), *to_references([entry])[0])
    return found


def find_references(
    references: Mapping[Any, Any], ids: Sequence[int | str], origin: str
) -> list[tuple[str, ...]]:
    """Return the references of each of some ids; an empty tuple for an id without any.

    Args:
        references: by id.
        ids: of all lists.
        origin: where the lists are from, for messages.

    Raises:
        DataError: if the ids are not those of the lists, or two of them are one number written in
            two ways.

    >>> find_references({"1": "B", "0": ()}, [0, 1], "dev.jsonl")
    [(), ('B',)]
    """
    by_id, forms = group_references(references), dict[Any, str]()
    keys = id_keys(ids)
    for key, identifier in zip(keys, ids, strict=True):
        if key in by_id and (other := find_other_form(forms, key, identifier)):
            problem = describe_equal_ids(identifier, other)
            raise DataError(problem, origin, parameter="references", code="duplicate")
    if differ := describe_other_ids(keys, by_id, "the references"):
        raise DataError(differ, origin, parameter="references", code="mismatch")
    return [by_id[key] for key in keys]
