"""N-best files of every format: detected, read at once or as a stream."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.streams import AnyInput, InputFile, file_suffix, require_text
from bpa_ppl._runtime.values import RECIPES, describe_table, json_object
from bpa_ppl.errors import COLUMN, DataError, Remedy, quote, wrong_value
from bpa_ppl.formats.advice import advise
from bpa_ppl.formats.block import CANDIDATES, ID, SOURCE, TEXT
from bpa_ppl.formats.build import build
from bpa_ppl.formats.format import AUTO, NAME_SERVER, NBEST_FORMATS, NBestFormat, resolve_format
from bpa_ppl.formats.preference_rows import CHOSEN, PROMPT, REJECTED
from bpa_ppl.formats.references import (
    AnyReferences,
    AnySources,
    SentenceLines,
    load_references,
    load_sources,
)
from bpa_ppl.formats.roles import AnyFeatures, Missing, make_roles
from bpa_ppl.formats.schema import Schema, iter_field_names, name_forms
from bpa_ppl.lists.nbest import NBest

#: Sentences of a table, where the beginning of a file is read again.
_AT_ONCE = 64


def read_nbest(
    path: AnyInput,
    *,
    references: AnyReferences | None = None,
    sources: AnySources | None = None,
    format: str | NBestFormat = AUTO,
    bad: str = "error",
    features: AnyFeatures = None,
    exclude: str | Iterable[str] | None = None,
    missing: Missing | None = None,
) -> NBest:
    """Read all lists of a file into one table.

    Args:
        path: the file, compressed or not; `-` is the standard input. Also an open file, the bytes
            of a file, or an iterable of its lines.
        references: instead of those in the file: text files with a line for each list in their
            order, a tuple of texts for each list; or by id, a dictionary, or a file `.tsv`, `.csv`
            or `.jsonl` with the fields `id` and `reference`. The list with the integer i as its id
            has line i + 1, or i with the setting `first_id=1` of the format.
        sources: a file of source sentences, one per line, or a list of the sentences.
        format: the name of a format, with settings as in "plain:list_size=50", or the format
            itself; "auto" detects it from the content.
        bad: "error", or "drop" to leave out, with a warning, candidates with a value that is not a
            finite number of at most 1e60, failed answers of an API and rows without a judgement.
        features: the columns that are features: names, labels and patterns such as `judge_*`; `*`
            is every column of numbers without another role. None takes those that the file or its
            format declares. All other columns are extras, kept as they are.
        exclude: columns that are not features: names, labels and patterns.
        missing: a number in place of missing values of features, or one for each name; None makes
            them an error.

    Raises:
        DataError: if the file cannot be read; the message names the line and the remedy.
        UsageError: if an option has an unknown value.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"0 ||| a cat ||| LM0= -1.5 WordPenalty0= -2 ||| -3.5"), file.flush()
    ...     lists = read_nbest(file.name, references=[("the cat",)])
    >>> lists.feature_names, lists.texts(0), lists.references
    (('LM0', 'WordPenalty0'), ['a cat'], (('the cat',),))
    """
    tables = iter_nbest(
        path,
        chunk=sys.maxsize,
        references=references,
        sources=sources,
        format=format,
        bad=bad,
        features=features,
        exclude=exclude,
        missing=missing,
    )
    return next(tables)


def iter_nbest(
    path: AnyInput,
    *,
    chunk: int = 64,
    references: AnyReferences | None = None,
    sources: AnySources | None = None,
    format: str | NBestFormat = AUTO,
    bad: str = "error",
    features: AnyFeatures = None,
    exclude: str | Iterable[str] | None = None,
    missing: Missing | None = None,
    empty: dict[int, str | None] | None = None,
) -> Iterator[NBest]:
    """Read a file as a stream of tables, so that memory does not grow with the file.

    The tables together have the columns of `read_nbest`: `concatenate(tables, fill_missing=True)`
    joins them. `rerank` gives the same choices, or the same error, as with `read_nbest`.

    Args:
        path: as for `read_nbest`, like all other arguments.
        chunk: the number of sentences in each table; the last one has the rest.
        references: as for `read_nbest`.
        sources: as for `read_nbest`.
        format: as for `read_nbest`.
        bad: as for `read_nbest`.
        features: as for `read_nbest`.
        exclude: as for `read_nbest`.
        missing: as for `read_nbest`.
        empty: where sentences without candidates, which no table has, are entered as they are
            read: by id, the source, or None if the file has none.

    Raises:
        DataError: as `read_nbest`, when the faulty line is reached.
        UsageError: at once, if an option has an unknown value.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = [print(i, "||| a cat ||| LM0= -1.5", file=file, flush=True) for i in range(3)]
    ...     print([lists.sentence_ids.tolist() for lists in iter_nbest(file.name, chunk=2)])
    [[0, 1], [2]]
    """
    if chunk < 1:
        raise wrong_value("chunk must be at least 1", chunk, "chunk")
    chosen = resolve_format(format)
    require_one_of(bad, ("error", "drop"), "policy", "bad")
    roles = make_roles(features, exclude, missing)
    without_candidates = {} if empty is None else empty
    entries = [] if references is None else [load_references(references)]
    entries += [] if sources is None else [load_sources(sources)]
    file = InputFile(path)
    schema = Schema(file.origin, bad, chosen.first_id, roles, empty=without_candidates)

    def tables() -> Iterator[NBest]:
        reader: NBestFormat = resolve_format("jsonl")
        try:
            reader = _find_format(file, chosen)
            yield from _read_tables(file, reader, schema, entries, chunk)
        except DataError as error:
            if all(isinstance(remedy, str) for remedy in error.remedies):
                raise
            beginning, whole = file.reread(error.line)

            def read_again(changes: Mapping[str, Any]) -> Iterator[NBest]:
                format = resolve_format(changes.get("format", reader))
                changed = roles.changed(changes.get("exclude", ()), changes.get("missing"))
                again = Schema(file.origin, changes.get("bad", bad), format.first_id, changed)
                size = chunk if whole else min(chunk, _AT_ONCE)
                return _read_tables(InputFile(beginning), format, again, entries, size)

            raise advise(error, read_again, whole=whole, reader=reader) from error.__cause__

    return tables()


def _read_tables(
    file: InputFile,
    reader: NBestFormat,
    schema: Schema,
    entries: Sequence[SentenceLines],
    sentences: int,
) -> Iterator[NBest]:
    """Yield the lists of a file of some format."""
    of_format = schema_of(reader, schema)
    return build(reader.blocks(file, of_format), of_format, entries, sentences=sentences)


def format_name(path: AnyInput, format: str | NBestFormat = AUTO) -> str:
    """Return the name of the format that a file is read as.

    Raises:
        DataError: if the file cannot be read, or is in no known format.

    >>> format_name([b"0 ||| a cat ||| LM0= -1.5 ||| -0.75"])
    'moses'
    """
    return NBEST_FORMATS.name_of(_find_format(InputFile(path), resolve_format(format)))


def schema_of(reader: NBestFormat, schema: Schema) -> Schema:
    """Return how a file of a format is read."""
    return replace(
        schema,
        names={usual: name for usual, name in reader.names if name != usual},
        format=NBEST_FORMATS.name_of(reader),
        roles=replace(schema.roles, all_numbers=not reader.usual_names),
        nan_is_missing=reader.nan_is_missing,
        typed=reader.typed,
        any_order=reader.any_order,
        divides_totals=reader.divides_totals(),
    )


class Auto(NBestFormat, frozen=True):
    """The format that the first line of a file shows.

    >>> lines = [b"1 ||| a cat ||| LM0= -1.5"]
    >>> read_nbest(lines, references=[("b",)], format="auto:first_id=1").references
    (('b',),)
    """


def _find_format(file: InputFile, reader: NBestFormat) -> NBestFormat:
    """Return the format of a file or folder, if it is not known."""
    is_unknown = isinstance(reader, Auto)
    if isinstance(file.path, str | Path) and os.path.isdir(file.path):
        kinds = [kind() for _, kind in NBEST_FORMATS.load()] if is_unknown else [reader]
        for of_folder in kinds:
            if of_folder.detect_folder(Path(file.path)):
                return of_folder
    line = file.first_line  # also raises if the file is empty, or a folder
    return _detect(file, line) if is_unknown else reader


def _detect(file: InputFile, line: bytes) -> NBestFormat:
    """Return the format of a file: by its first line, or a table or JSON lines by its ending."""
    for _, kind in NBEST_FORMATS.load():
        if (reader := kind()).detect(line):
            return reader
    require_text(line, file.origin)
    options: Any = {"line": 1, "parameter": "format", "code": "unknown-format"}
    if record := json_object(line):
        if table := describe_table(record):
            raise DataError(table, file.origin, line=1, code="bad-line")
        names = quote(", ".join(iter_field_names(record)), 400)
        problem = f"no {CANDIDATES}, no {ID} and {TEXT}, no {CHOSEN} and {REJECTED} (the fields "
        problem += f"are {names})"
        forms = name_forms(list(iter_field_names(record)))
        remedies: list[str | Remedy] = [
            *NAME_SERVER,
            *_name_candidates(record),
            *forms,
            RECIPES,
        ]
        raise DataError(problem, file.origin, remedies=remedies, **options)
    if re.match(rb"\s*(\{|\[\s*$|\[[\s{\[\d\"])", line):
        return resolve_format("jsonl")
    suffix = file_suffix(file.path) if isinstance(file.path, str | Path) else ""
    for name in ("csv", "tsv", "jsonl"):
        reader = resolve_format(name)
        if suffix in reader.suffixes:
            return reader
    formats = [name for name in NBEST_FORMATS if name != AUTO]
    kinds = ", ".join(formats).replace("jsonl", "jsonl: an object on each line")
    problem = f"the first line, {quote(line)}, is of no known format ({kinds})"
    advice = ["name the format if it is one of these (--format)", RECIPES]
    raise DataError(problem, file.origin, remedies=advice, **options)


def _name_candidates(record: Mapping[str, Any]) -> list[Remedy]:
    """Return the formats of an object of which a list of objects with texts has the candidates.

    Which one of lists of texts has them, the user says.

    >>> record = {"prompt": "a", "request_id": "r0", "outputs": [{"text": "b"}]}
    >>> dict(_name_candidates(record)[0].settings)
    {'candidates': 'outputs', 'source': 'prompt', 'id': 'request_id'}
    """
    lists = {name: of for name, of in record.items() if isinstance(of, list) and of}
    words = "name the candidates in the format"
    fields = [name for name, of in lists.items() if all(map(_is_candidate, of))]
    if len(fields) != 1:
        of_texts = [name for name, of in lists.items() if {str}.issuperset(map(type, of))]
        return [Remedy(words, settings={CANDIDATES: COLUMN}, columns=[*fields, *of_texts])]
    source = {SOURCE: PROMPT} if isinstance(record.get(PROMPT), str) else {}
    ids = [n for n, of in record.items() if n.lower().endswith(ID) and _is_id(of)]
    names = {ID: ids[0]} if len(ids) == 1 and ID not in ids else {}
    settings = {CANDIDATES: fields[0]}
    tried = settings | source | names, settings | source, settings | names, settings
    return [Remedy(words, settings=of) for of in tried]


def _is_candidate(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get(TEXT), str)


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
