"""The rows of a file, or of data in memory, as lists."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64, as_numbers, intern
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl.errors import DataError, locate, suggest_name
from bpa_ppl.formats.block import ID, ID_NUMBER, REFERENCE, SOURCE, TEXT, TOTAL, Block
from bpa_ppl.formats.references import SentenceLines
from bpa_ppl.formats.roles import require_columns
from bpa_ppl.formats.samples import name_prompts
from bpa_ppl.formats.schema import Schema
from bpa_ppl.lists.candidate_columns import describe_columns
from bpa_ppl.lists.ids import id_key
from bpa_ppl.lists.nbest import (
    Column,
    NBest,
    fill_or_exclude,
    missing_values,
    name_candidate,
    take,
    to_offsets,
)


def build(
    blocks: Iterable[Block],
    schema: Schema,
    entries: Iterable[SentenceLines] = (),
    *,
    sentences: int = sys.maxsize,
) -> Iterator[NBest]:
    """Yield tables of lists of the consecutive rows of one file.

    If all sentences make one table, rows of a sentence that are not adjacent are put together,
    where the format allows any order. A feature is complete, or `missing` has a value in place of
    the missing ones; otherwise that is an error, which counts them. All tables have the features of
    the first one.

    Args:
        blocks: the rows.
        schema: of the file, with the roles of columns.
        entries: references and sources of the whole text, used instead of those of the columns.
        sentences: in each table; the last one has the rest.

    Raises:
        DataError: if a column is not as the schema says, an id occurs in two lists, references are
            not those of the lists, all candidates of a list were dropped, the rows of a sentence
            disagree about it, or there are no rows.

    >>> from bpa_ppl.formats.roles import Roles
    >>> texts, ids, lines = {"text": ["a", "b"], "lm": np.ones(2)}, {"id": [4, 4]}, np.array([1, 2])
    >>> schema = Schema("dev.nbest", roles=Roles(all_numbers=True))
    >>> list(build([Block(texts, ids, None, lines)], schema))
    [NBest(1 sentence, 2 candidates, 1 feature, from dev.nbest)]
    """
    tables = _Tables(schema, tuple(entries))
    parts: list[Block] = []
    last: int | None = None
    count = 0  # lists so far
    for block in map(schema.check, blocks):
        ids = block.sentences[ID_NUMBER]
        starts = filled = np.flatnonzero(block.sizes)
        if block.parent is None:
            starts = filled[_find_starts(ids[filled], last)]
        numbers = count + np.arange(len(starts))
        count += len(starts)
        schema.enter(block, starts, whole=sentences == sys.maxsize)
        done = 0
        for start in starts[(numbers > 0) & (numbers % sentences == 0)].tolist():
            parts.append(block.slice(done, start))
            yield tables.make(parts)
            done = start
        parts.append(block.slice(done) if done else block)
        last = int(ids[filled[-1]]) if len(filled) else last
    table = tables.make(parts) if parts else None
    tables.finish()
    if table is None or not schema.lines:
        remedy = "the file is empty"
        if schema.dropped_rows:
            remedy = f"no row in it can be used: {schema.dropped_rows[0]}"
        elif schema.empty:
            remedy = "no sentence in it has candidates: create the lists again"
        raise DataError(f"no n-best list: {remedy}", schema.origin, code="no-data")
    yield table


class _Tables:
    """Makes tables of the consecutive blocks of one file, and checks the columns of sentences.

    Args:
        schema: has checked the columns.
        entries: references and sources of the whole text.
    """

    def __init__(self, schema: Schema, entries: Sequence[SentenceLines]):
        self.schema, self._entries = schema, entries
        self._without_reference: list[int | str] = []  # ids of sentences, of which others have one
        self._with_references = False
        self._features: tuple[str, ...] | None = None  # of the first table
        self._has_tables = False
        self._without_source = 0  # sentences

    def finish(self) -> None:
        """Check what only the end of the file shows."""
        schema, dropped = self.schema, self.schema.dropped
        schema.require(schema.names if schema.seen else (), schema.names, None)
        lost = [number for number in dropped if number not in schema.lines]
        if lost:
            problem = f"every candidate of sentence {schema.name(lost[0])} has a value that is not "
            raise schema.error(f"{problem}finite: correct the file", code="bad-number")
        lists = format_count(len(schema.lines), "sentence")
        notes: list[str] = []
        if schema.scattered:
            lines = "lines {} and {}".format(*schema.scattered)
            notes.append(f"the rows of a sentence are not adjacent ({lines}): grouped by id")
        if dropped:
            candidates = format_count(len(dropped), "candidate")
            notes.append(f"{candidates} dropped for values that are not finite")
        without = []
        if schema.empty:
            absent = f"{format_count(len(schema.empty), 'sentence')} without candidates"
            without.append(f"{absent}, the first of id {schema.name(min(schema.empty))}: left out")
        if schema.dropped_rows:
            rows = name_prompts(schema.dropped_rows)
            without.append(f"rows without a judgement or an answer: {rows}")
        notes += ["; ".join(without)] if without else []
        if self._without_source:
            absent = f"no source for {self._without_source} of {lists}"
            notes.append(f"{absent}: the sources are kept as an extra of the sentences")
        if self._with_references and self._without_reference:
            absent = f"no reference for {format_count(len(self._without_reference), 'sentence')}"
            first = self._without_reference[0]
            notes.append(f"{absent}, the first of id {first}: `adapt` leaves such lists out")
        if schema.lines:
            notes += chain.from_iterable(entries.check(schema) for entries in self._entries)
        for note in notes:
            warn_user(f"{locate(schema.origin)}{note}")

    def make(self, parts: list[Block]) -> NBest:
        """Return the lists of some blocks with their references and sources; empties `parts`."""
        schema = self.schema
        # An extra of one part without any value may be a feature of another.
        columns = [
            {
                name: values
                for name, values in part.candidates.items()
                if name not in schema.numbers or isinstance(values, np.ndarray)
            }
            for part in parts
        ]
        counts = [len(part.line) for part in parts]
        begins = zip(to_offsets(counts), parts, strict=False)
        extras = join_columns("", columns, (), [len(part.candidates[TEXT]) for part in parts])
        block = Block(
            extras,
            join_columns("", [part.sentences for part in parts], (), counts),
            np.concatenate([first + part.parents for first, part in begins]),
            np.concatenate([part.line for part in parts]),
        )
        parts.clear()  # the numbers are in memory once more than they have to be
        strings, index = intern(extras.pop(TEXT))
        numbers = {name: extras.pop(name) for name in [*extras] if name in schema.numbers}
        records = np.flatnonzero(block.sizes)
        ids = block.sentences[ID_NUMBER][records]
        starts = _find_starts(ids, None)
        lines = block.line[block.parents]
        if self.schema.scattered:  # each record is a candidate
            _, first, sentence = np.unique(ids, return_index=True, return_inverse=True)
            records = np.argsort(first[sentence], kind="stable")
            numbers, extras = take(numbers, records), take(extras, records)
            index, lines = index[records], lines[records]
            ids = ids[records]
            starts = _find_starts(ids, None)
        ids = ids[starts]
        bounds = np.append(starts, len(records))
        extras_of = {
            name: self._sentence_column(name, values, block, records, bounds)
            for name, values in block.sentences.items()
            if name != ID_NUMBER
        }
        sources, references = extras_of.pop(SOURCE, None), extras_of.pop(REFERENCE, None)
        identifiers = ids.tolist()
        pairs = zip(extras_of.get(ID, identifiers), identifiers, strict=True)
        names = [number if name is None else name for name, number in pairs]
        lists_lines = block.line[records[starts]].tolist()
        self.schema.keys += map(id_key, names) if self._entries else ()
        paired: dict[str, Any] = {}
        for entries in self._entries:
            paired[entries.what], numbered = entries.find(self.schema, identifiers, lists_lines)
            ids = ids if numbered is identifiers else np.array(numbered, np.int64)
        references, sources = paired.get(REFERENCE, references), paired.get(SOURCE, sources)
        if references is not None:
            references = tuple(refs or () for refs in references)
        if sources is not None and None in sources:
            self._without_source += sources.count(None)
            extras_of[SOURCE], sources = sources, None
        offsets = to_offsets(np.add.reduceat(block.sizes[records], starts) if len(ids) else [])
        candidates = self._columns(numbers, extras, lines, partial(name_candidate, offsets, names))
        if SOURCE in extras_of and SOURCE in candidates["extras"]:
            place = extras_of[SOURCE].index(None)
            problem = f"no {SOURCE} of sentence {names[place]}, and candidates have a field of "
            problem += f"this name: give each sentence its {SOURCE}, or rename that field"
            raise DataError(problem, self.schema.origin, lists_lines[place], code="duplicate")
        table = NBest(
            offsets=offsets,
            sentence_ids=ids,
            strings=strings,
            string_index=index,
            origin=self.schema.origin,
            sources=sources,
            references=references if references and any(references) else None,
            # A field of the candidates may be null as a field of the list.
            sentence_extras={
                name: values
                for name, values in extras_of.items()
                if name not in candidates["extras"] or values.count(None) < len(values)
            },
            totals_normalised=schema.divides_totals,
            **candidates,
        )
        if references is not None:
            self._with_references |= any(references)
            pairs = zip(table.ids, references, strict=True)
            self._without_reference += [name for name, texts in pairs if not texts]
        return table

    def _sentence_column(
        self, name: str, values: Sequence[Any], block: Block, records: Int64, bounds: Int64
    ) -> tuple[Any, ...]:
        """Return one value per sentence; the rows of a sentence may leave it out, or repeat it.

        Args:
            name: of the column.
            values: of the records of the block.
            block: the records.
            records: those that have candidates, in the order of the lists.
            bounds: where the lists begin among these, and their number.
        """
        if len(records) < len(values) or self.schema.scattered:
            values = take(tuple(values), records)
        if len(bounds) > len(values):
            return tuple(values)
        kept = []
        for start, end in pairwise(bounds.tolist()):
            of_list = values[start:end]
            value = of_list[0]
            if of_list.count(value) < len(of_list):  # identical objects are equal at once
                stated = [i for i, one in enumerate(of_list) if one is not None and one != ()]
                value = of_list[stated[0]] if stated else value
                for i in stated:
                    if of_list[i] is not value and of_list[i] != value:
                        record = records[start + i]
                        sentence = self.schema.name(int(block.sentences[ID_NUMBER][record]))
                        problem = f"another {name} than before for sentence {sentence}: write "
                        problem += "the same one in all its rows, or give it another id"
                        raise DataError(problem, self.schema.origin, int(block.line[record]))
            kept.append(value)
        return tuple(kept)

    def _columns(
        self,
        numbers: dict[str, Float64],
        extras: dict[str, Any],
        lines: Int64,
        candidate: Callable[[int], str],
    ) -> dict[str, Any]:
        """Return features, totals and extras.

        Args:
            numbers: features and the total by name; NaN is missing.
            extras: the other columns.
            lines: of the candidates.
            candidate: names the candidate in a row.

        Raises:
            DataError: if a feature is missing for some candidates, or a name has no column.
        """
        count, roles, origin = len(lines), self.schema.roles, self.schema.origin
        totals = numbers.pop(TOTAL, None)
        if isinstance(roles.missing, Mapping) and not self._has_tables:
            present, features = {**numbers, **extras}, roles.features or ()
            for name in roles.missing:  # by their own names, not by labels
                if name not in (*present, *features):
                    there = self._describe(present)
                    message = f"no column {name}{suggest_name(name, present)}: {there}"
                    raise DataError(message, origin, parameter="missing", code="missing-column")
        self._has_tables = True
        if totals is not None and np.isnan(totals).any():
            extras[TOTAL], totals = totals, None
        for name in self._features or ():
            numbers.setdefault(name, np.full(count, np.nan))
            extras.pop(name, None)
        for name, values in numbers.items():
            filled = roles.missing
            value = filled.get(name) if isinstance(filled, Mapping) else filled
            if value is not None:
                numbers[name] = np.where(np.isnan(values), value, values)
        lacking = {n: of for n, of in numbers.items() if np.isnan(of).any()}
        if roles.optional:
            extras |= lacking
            numbers = {n: of for n, of in numbers.items() if n not in lacking}
        elif new := [n for n in numbers if self._features is not None and n not in self._features]:
            problem = f"{new[0]} is missing for all candidates before"
            remedies = fill_or_exclude(new[:1])
            raise self.schema.error(problem, lines[0], "missing-feature", "missing", remedies)
        elif lacking:
            raise missing_values(lacking, candidate, origin, lines, parameter="missing")
        elif self._features is None:
            present = {**numbers, **extras}
            for parameter, patterns in (("features", roles.features), ("exclude", roles.exclude)):
                require_columns(patterns or (), present, self._describe, origin, parameter)
            self._features = tuple(numbers)
        table = np.empty((count, len(numbers)))
        for place, values in enumerate(numbers.values()):
            table[:, place] = values
        return {
            "features": table,
            "feature_names": tuple(numbers),
            "totals": totals,
            "extras": extras,
            "cells": frozenset() if self.schema.typed else frozenset(extras),
        }

    def _describe(self, present: Mapping[str, Any]) -> str:
        """Return the columns of numbers among some columns, for messages."""
        cells = not self.schema.typed
        return describe_columns({n: as_numbers(of, cells=cells) for n, of in present.items()})


def _find_starts(ids: Int64, last: int | None) -> Int64:
    """Return the rows at which the id differs from the one before; `last` precedes the first."""
    previous = np.concatenate([ids[:1] - 1 if last is None else [last], ids[:-1]])
    return np.flatnonzero(ids != previous[: len(ids)])


def join_columns(
    name: str,
    parts: Sequence[Any],
    origins: Sequence[str],
    sizes: Sequence[int] | None = None,
) -> Any:
    """Return columns of several tables, one after the other.

    Args:
        name: of the column, for messages.
        parts: one per table: a column, several of them by name, or None.
        origins: where each table is from, for messages.
        sizes: the number of values of each table, where a column that it lacks is missing: NaN
            among numbers, an empty tuple among tuples, else None. By default that is an error.

    Raises:
        DataError: if a table lacks a column that another one has, or shapes differ.

    >>> join_columns("domain", [("news",), ("web", "web")], ["a", "b"])
    ('news', 'web', 'web')
    >>> join_columns("lm", [np.array([0.5]), None], ["a", "b"], [1, 2])
    array([0.5, nan, nan])
    """
    if isinstance(parts[0], Mapping):
        names = dict.fromkeys(chain.from_iterable(parts))
        columns = {n: [group.get(n) for group in parts] for n in names}
        return {n: join_columns(n, column, origins, sizes) for n, column in columns.items()}
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) < len(parts) and sizes is not None:
        missing = _missing_like(present[0])
        parts = [
            missing(size) if part is None else part for part, size in zip(parts, sizes, strict=True)
        ]
    elif len(present) < len(parts):
        lacking, having = (
            next(o for o, part in zip(origins, parts, strict=True) if (part is None) is absent)
            for absent in (True, False)
        )
        raise DataError(
            f"no column {name}: add it, as {having} has it, use without({name!r}), or concatenate "
            "with fill_missing=True",
            lacking,
            code="missing-column",
        )
    if any(isinstance(column, tuple) for column in parts):
        parts = [_without_numbers(column) for column in parts]
    arrays = [column for column in parts if isinstance(column, np.ndarray)]
    if not arrays:
        return tuple(chain.from_iterable(parts))
    if len(arrays) < len(parts) or len({array.shape[1:] for array in arrays}) > 1:
        problem = f"the columns {name} differ in shape: give each table the same"
        raise DataError(problem, origins[1], code="mismatch")
    return np.concatenate(arrays)


def _missing_like(column: Column) -> Callable[[int], Column]:
    """Return a function that makes columns of missing values like those of another column."""
    if isinstance(column, np.ndarray):
        kind = column.dtype if column.dtype.kind == "f" else np.float64
        return lambda size: np.full((size, *column.shape[1:]), np.nan, kind)
    value = () if column and all(isinstance(one, tuple) for one in column) else None
    return lambda size: (value,) * size


def _without_numbers(column: Column) -> Column:
    """Return a column of missing numbers alone as a column of missing values of any kind."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f" and np.isnan(column).all():
        return (None,) * len(column)
    return column
