"""Pearmut: campaigns of human evaluation, and what their annotators answered, as JSON.

    {"item_id": "doc-1 0", "src": "…", "ref": "…", "tgt": {"system A": "…", "system B": "…"}}

An item is a list, its models are the column `system`. Items are read from the `data` of a campaign,
from lines with one item each, and from annotations: lines with the `item`s of a document and their
`annotation`, or the file that the dashboard offers, which has them by campaign. Scores become the
column `score`, which is the gain and never a feature: of each annotator and item the last answer
counts, and a candidate has the mean over its annotators. A field `features` of an item, which
Pearmut copies into its annotations, has the features of each model by name. Other fields of an item
are extras.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from statistics import fmean
from typing import Any, ClassVar

from bpa_ppl.errors import quoted
from bpa_ppl.formats.base import NBestFormat, json_keys
from bpa_ppl.formats.jsonl import json_values, strict_values
from bpa_ppl.formats.streams import InputFile
from bpa_ppl.rows import Columns, ReadOptions
from bpa_ppl.rows.names import CANDIDATES, ID, REFERENCE, SOURCE, TEXT
from bpa_ppl.rows.readers import RecordReader
from bpa_ppl.rows.schema import NUMBER, kind_of, shown

SCORE, _SYSTEM, _DOCUMENT = "score", "system", "doc"
_TARGETS = re.compile(rb'"tgt"\s*:\s*\{')
#: Fields of an item that are not extras.
_FIELDS = ("item_id", "src", "ref", "tgt", "features", "validation", TEXT, CANDIDATES)
#: One of them is in every object: in an item, a campaign and an annotation.
_PARTS = {"tgt", "data", "item"}
#: Stands in place of an annotation, and voids the answers before it.
_RESET = "__RESET__"
#: Items for training and control, which are left out.
_SPECIAL = ("welcome_", "random_", "goodbye_")


class Pearmut(NBestFormat, frozen=True):
    """The format of Pearmut."""

    judgements: ClassVar[tuple[str, ...]] = (SCORE,)
    texts: ClassVar[tuple[str, ...]] = (_SYSTEM,)

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line has candidates by their models.

        >>> Pearmut().detect(b'{"src": "Un chat", "tgt": {"A": "a cat"}}')
        True
        >>> Pearmut().detect(b'{"src": "Un chat", "tgt": "a cat"}')
        False
        """
        return bool(json_keys(first_line)) and _TARGETS.search(first_line) is not None

    def detect_within(self, beginning: bytes) -> bool:
        """Return whether an object of several lines begins, with candidates by their models."""
        return beginning.lstrip()[:1] == b"{" and _TARGETS.search(beginning) is not None

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        r"""Yield the columns of all items, since several annotators may have had the same ones.

        Raises:
            DataError: with the file, and the line where there is one object in each, if it is not
                JSON, has no items, or an item is not valid.

        >>> file = InputFile(b'{"item_id": 7, "src": "Un chat", "tgt": {"A": "a cat", "B": "cat"}}')
        >>> columns = next(Pearmut().columns(file, ReadOptions("campaign.json")))
        >>> columns.hypotheses, columns.sentences
        ({'text': ['a cat', 'cat'], 'system': ['A', 'B']}, {'id': [7], 'source': ['Un chat']})
        """
        items: dict[str, list[tuple[Mapping[str, Any], Any, int]]] = {}
        for item in _latest(_values(b"".join(file.blocks()), options), options):
            unnamed = json.dumps({**item[0], "tgt": None}, sort_keys=True)
            items.setdefault(str(item[0].get("item_id", unnamed)), []).append(item)
        if not items:
            raise options.error("empty: there are no items with tgt in it", code="no-data")
        records = [_record(of_item, options) for of_item in items.values()]
        yield RecordReader(options).columns(records, [of[0][2] for of in items.values()])


def _record(
    annotated: Sequence[tuple[Mapping[str, Any], Any, int]], options: ReadOptions
) -> dict[str, Any]:
    """Return an item as a sentence with its candidates.

    Args:
        annotated: the item as each of its annotators had it, the annotation, and the line.
        options: how to read.
    """
    texts: dict[str, str] = {}
    features: dict[str, Any] = {}
    scores: dict[str, list[float]] = {}
    for fields, annotation, line in annotated:
        item = f"item {quoted(fields['item_id'])}: " if "item_id" in fields else ""
        if not isinstance(fields["tgt"], dict):
            problem = f"{item}tgt is {shown(fields['tgt'])}, not an object of models and texts"
            raise options.error(problem, line)
        for model, text in fields["tgt"].items():
            if texts.setdefault(model, text) != text:
                problem = f"{item}{quoted(model)} had another text before: give each text its own "
                raise options.error(f"{problem}item_id", line, "duplicate")
        printed = fields.get("features")
        features |= printed if isinstance(printed, dict) else {}
        for model, answer in (annotation if isinstance(annotation, dict) else {}).items():
            score = answer.get(SCORE) if isinstance(answer, dict) else None
            if score is not None and kind_of(score) != NUMBER:
                problem = f"{item}the score of {quoted(model)} is {shown(score)}, not a number"
                raise options.error(problem, line, "bad-number")
            if score is not None:
                scores.setdefault(model, []).append(float(score))
    first = annotated[0][0]
    record = {name: value for name, value in first.items() if name not in _FIELDS}
    usual = {ID: "item_id", SOURCE: "src", REFERENCE: "ref"}
    record |= {name: first[field] for name, field in usual.items() if field in first}
    record[CANDIDATES] = []
    for model, text in texts.items():
        numbers = features.get(model)
        candidate = dict(numbers) if isinstance(numbers, dict) else {}
        if model in scores:
            candidate[SCORE] = fmean(scores[model])
        record[CANDIDATES].append({**candidate, TEXT: text, _SYSTEM: model})
    return record


def _values(data: bytes, options: ReadOptions) -> Iterator[tuple[Any, int]]:
    """Yield the objects of a file and their lines: one in each line, or one in all lines."""
    if json_keys(data.partition(b"\n")[0]):
        for values, lines in json_values([data], options.origin):
            yield from zip(values, lines, strict=True)
        return
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg} (column {error.colno}): correct the line"
        raise options.error(problem, error.lineno, parameter="format") from error
    except (ValueError, RecursionError):
        pass  # strict_values reports the error
    values, _ = strict_values(data.replace(b"\n", b" ") + b"\n", options.origin, 1)
    yield values[0], 1


def _latest(
    values: Iterable[tuple[Any, int]], options: ReadOptions
) -> Iterator[tuple[Mapping[str, Any], Any, int]]:
    """Yield the items of a file with their annotations, if they are not replaced further on."""
    parts: dict[Any, tuple[list[Any], Any, int]] = {}
    new = count()
    for value, line in values:
        logs = {"": [value]}
        by_campaign = isinstance(value, dict) and not _PARTS & value.keys() and value
        if by_campaign and all(isinstance(log, list) for log in value.values()):
            logs = value
        for campaign, entry in ((name, entry) for name, log in logs.items() for entry in log):
            if not isinstance(entry, dict) or not _PARTS & entry.keys():
                problem = f"{shown(entry)} is neither an item with tgt, nor a campaign with data, "
                raise options.error(f"{problem}nor an annotation with item: correct it", line)
            place = entry.get("item_i")
            if isinstance(place, str) and place.startswith(_SPECIAL):
                continue
            annotator = json.dumps([campaign, entry.get("user_id"), place])
            key: Any = annotator if "user_id" in entry and place is not None else next(new)
            parts.pop(key, None)
            if entry.get("annotation") == _RESET:
                continue
            if "item" in entry:
                parts[key] = (entry["item"], entry.get("annotation"), line)
                continue
            documents = _documents(entry["data"]) if "data" in entry else [[entry]]
            for number, items in enumerate(documents):
                of = [{_DOCUMENT: number, **item} for item in items] if "data" in entry else items
                parts[next(new)] = (of, None, line)
    for items, annotation, line in parts.values():
        answers = annotation if isinstance(annotation, list) else []
        for place, item in enumerate(items if isinstance(items, list) else []):
            if isinstance(item, dict) and "tgt" in item:  # others are forms about the annotator
                yield item, answers[place] if place < len(answers) else None, line


def _documents(data: Any) -> Iterator[list[Any]]:
    """Yield the documents of a campaign, which may be in tasks: lists of objects."""
    if isinstance(data, list) and any(isinstance(part, dict) for part in data):
        yield [part for part in data if isinstance(part, dict)]
    elif isinstance(data, list):
        for part in data:
            yield from _documents(part)
