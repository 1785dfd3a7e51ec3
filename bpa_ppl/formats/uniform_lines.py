"""JSON lines that all have the fields of the first one, decoded straight into columns.

Objects with slots of fixed types take half the time of dictionaries. They need candidates whose
fields are numbers or texts, without missing ones; other lines are read record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from bpa_ppl.formats.block import CANDIDATES, TEXT, Block
from bpa_ppl.formats.records import is_of_sentence
from bpa_ppl.formats.values import key_count

_KINDS: Mapping[type, Any] = {str: str, int: float, float: float}  # of fields of hypotheses
_SENTENCE_KINDS: Mapping[type, Any] = {str: str, int: int, list: list[str]}


def uniform_columns(record: Any) -> Callable[[bytes, Sequence[int]], Block | None]:
    r"""Return a function that decodes lines with the fields of a record, and values of its types.

    It returns the columns of whole lines with some numbers; None if a line is blank, or has another
    field or type.

    Args:
        record: an object of JSON.

    Raises:
        TypeError: if it has fields of other types.
        ValueError: if it has fields of odd names.

    >>> columns_of = uniform_columns({"id": 3, "candidates": [{"text": "a cat", "lm": -1.5}]})
    >>> block = b'{"candidates": [{"lm": -2, "text": "b"}], "id": 4}\n'
    >>> columns = columns_of(block, range(1, 2))
    >>> columns.candidates, columns.sentences
    ({'text': ['b'], 'lm': array([-2.])}, {'id': [4]})
    """
    if not isinstance(record, dict) or (CANDIDATES in record) == (TEXT in record):
        raise TypeError("not a record with candidates or a text")
    nested = CANDIDATES in record
    of_hypothesis: dict[str, Any] = {}
    if nested:
        candidates = record[CANDIDATES]
        if not isinstance(candidates, list) or not candidates:
            raise TypeError("not a list of candidates")
        of_hypothesis = _types(candidates[0], _KINDS)
        if TEXT not in of_hypothesis or any(map(is_of_sentence, of_hypothesis)):
            raise TypeError("not a candidate with a text and numbers")
        candidate: Any = _struct("Candidate", of_hypothesis)
        others = {name: value for name, value in record.items() if name != CANDIDATES}
        fields = {CANDIDATES: list[candidate]} | _types(others, _SENTENCE_KINDS)
    else:
        of_sentence = {n: value for n, value in record.items() if is_of_sentence(n)}
        others = {n: value for n, value in record.items() if n not in of_sentence}
        kinds = _types(of_sentence, _SENTENCE_KINDS) | _types(others, _KINDS)
        fields = {name: kinds[name] for name in record}
    decoder = msgspec.json.Decoder(_struct("Record", fields))

    def columns(block: bytes, lines: Sequence[int]) -> Block | None:
        try:
            records = decoder.decode_lines(block)
        except (ValueError, RecursionError):
            return None
        if len(records) != len(lines):
            return None
        sentences = _columns(records, fields)
        keys = len(records) * len(fields)
        parents = np.arange(len(records))
        if nested:
            lists: list[list[Any]] = sentences.pop(CANDIDATES)
            parents = np.repeat(parents, list(map(len, lists)))
            keys += len(parents) * len(of_hypothesis)
            of_candidates = of_hypothesis if len(parents) else {TEXT: str}
            hypotheses = _columns(list(chain.from_iterable(lists)), of_candidates)
        else:
            hypotheses = {n: sentences.pop(n) for n in list(sentences) if not is_of_sentence(n)}
        if keys != key_count(block):  # msgspec keeps the last of equal keys
            return None
        return Block(hypotheses, sentences, parents, np.array(lines, np.int64), nested)

    return columns


def _types(fields: Any, kinds: Mapping[type, Any]) -> dict[str, Any]:
    """Return the type of each field of an object.

    Raises:
        TypeError: if it is no object, or the value of a field has another type.
    """
    if not isinstance(fields, dict) or not kinds.keys() >= set(map(type, fields.values())):
        raise TypeError("not an object whose fields have these types")
    return {name: kinds[type(value)] for name, value in fields.items()}


def _struct(name: str, types: Mapping[str, Any]) -> Any:
    """Return a class of objects that have exactly these fields, in slot0, slot1 and so on.

    Raises:
        ValueError: if objects with slots cannot have fields of such names.
    """
    slots = {f"slot{place}": field for place, field in enumerate(types)}
    pairs = list(zip(slots, types.values(), strict=True))
    return msgspec.defstruct(name, pairs, rename=slots, forbid_unknown_fields=True, gc=False)


def _columns(objects: Sequence[Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of each field; numbers of hypotheses as an array."""
    columns: dict[str, Any] = {}
    for place, (name, kind) in enumerate(types.items()):
        values: Iterable[Any] = map(attrgetter(f"slot{place}"), objects)
        is_number = kind is float
        columns[name] = np.fromiter(values, np.float64, len(objects)) if is_number else list(values)
    return columns
