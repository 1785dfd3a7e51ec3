"""N-best files of every format: detected, read at once or as a stream."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from operator import itemgetter
from pathlib import Path

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.errors import BpaError, DataError, UsageError, quote
from bpa_ppl.formats.block import (
    ID,
    TEXT,
    ColumnNames,
    ReadOptions,
    find_nearest,
    is_name,
    iter_field_names,
)
from bpa_ppl.formats.builder import Builder
from bpa_ppl.formats.format import AUTO, NBEST_FORMATS, NBestFormat, TableFormat, resolve_format
from bpa_ppl.formats.moses import SHAPE
from bpa_ppl.formats.preference_rows import find_named_answers, find_third, propose_names
from bpa_ppl.formats.references import AnyReferences, AnySources, load_references, load_sources
from bpa_ppl.formats.roles import Missing, Roles, make_roles
from bpa_ppl.formats.schema import Schema, check_first_id
from bpa_ppl.formats.separated import ROWS, Csv, Tsv, has_numbers_below, missing_names
from bpa_ppl.formats.streams import AnyInput, InputFile, file_suffix, origin_name
from bpa_ppl.formats.values import json_keys, looks_numeric
from bpa_ppl.nbest import NBest

_WITHOUT_NAMES = (
    "its first line does not name the columns (id, text, …): put such a line before it, or, if "
    "they have other names, set {}:id=NAME,text=NAME"
)
# Files that no format detects, by their first line.
_SHAPES = (
    (
        rb"\s*\[\s*(\{|$)",
        "jsonl",
        "it is an array: write one object per line, as `jq -c '.[]'` does",
    ),
    (
        rb'\s*\[\s*(\[\s*)?"',
        "jsonl",
        'it has lists without ids: `jq -c \'{candidates: (if (.[0] | type) == "array" then .[] '
        "else . end)}'` makes objects of them",
    ),
    (rb"\s*\{", "jsonl", "its first line is not a whole object: `jq -c .` writes one per line"),
    (
        rb"data: ?[{\[]|event: ",
        "openai",
        "it is a stream of events: join them as docs/how-to/llm-samples.md shows",
    ),
    (
        rb"\S+-1[ \t]",
        "kaldi",
        "it has no scores with a decimal point: kaldi:score=false if the words follow the key, "
        "kaldi:score=true if a score does; or kaldi:scores=FILE",
    ),
    (rb"[^\t]*\t", "tsv", _WITHOUT_NAMES.format("tsv")),
    (rb"\S+ .*= ?[-+.\d]", "moses", f"no ` ||| ` separates its fields: a line reads {SHAPE}"),
    (
        rb"",
        "plain",
        "the size of its lists is not given: if N lines are the candidates of each sentence, set "
        "plain:list_size=N",
    ),
)


def read_nbest(
    path: AnyInput,
    *,
    references: AnyReferences | None = None,
    sources: AnySources | None = None,
    format: str | NBestFormat = AUTO,
    first_id: int = 0,
    bad: str = "error",
    features: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    missing: Missing | None = None,
) -> NBest:
    """Read all lists of a file into one table.

    Args:
        path: the file, compressed or not; `-` is the standard input. Also an open file, such as
            `io.StringIO`, the bytes of a file, or an iterable of its lines.
        references: one text file or several, with a line for each list in their order, or the
            references themselves as one tuple for each list; texts in a list are names of files.
            The list with the integer i as its id has line number i − `first_id`. A dictionary, or a
            file `.tsv`, `.csv` or `.jsonl` with the fields `id` and `reference`, has them by the
            ids of the lists. They are used instead of references in the file itself.
        sources: a file of source sentences, one per line, or a list of the sentences.
        format: the name of a format, with settings as in "plain:list_size=50", or the format
            itself; "auto" detects it from the content.
        first_id: the id of the first sentence of the text, usually 0 or 1. Ids that are texts are
            counted from here, and kept as the sentence extra `id`; those that are integers are
            numbers of lines of the references or sources.
        bad: what to do about a value that is not a finite number, or is above 1e60, about errors,
            refusals and unfinished answers in responses of an API, or about a row of preferences
            without a judgement or an answer: "error", or "drop" to leave it out, with a warning.
        features: the columns that are features: names, labels and patterns such as `judge_*`; `*`
            is every column of numbers without another role. None takes those that the file itself
            declares, in an object `features` or columns `features.NAME`, and those that a format
            of decoders defines. All other columns are extras, kept as they are.
        exclude: columns that are no features: names, labels and patterns.
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
        first_id=first_id,
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
    first_id: int = 0,
    bad: str = "error",
    features: str | Iterable[str] | None = None,
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
        first_id: as for `read_nbest`.
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
    roles = make_roles(features, exclude, missing)
    return iter_tables(
        path,
        roles,
        chunk=chunk,
        references=references,
        sources=sources,
        format=format,
        first_id=first_id,
        bad=bad,
        empty=empty,
    )


def iter_tables(
    path: AnyInput,
    roles: Roles,
    *,
    chunk: int = 64,
    references: AnyReferences | None = None,
    sources: AnySources | None = None,
    format: str | NBestFormat = AUTO,
    first_id: int = 0,
    bad: str = "error",
    empty: dict[int, str | None] | None = None,
) -> Iterator[NBest]:
    """Read a file as a stream of tables, as `iter_nbest` does, with given roles of columns.

    Args:
        path: as for `read_nbest`.
        roles: of the columns.
        chunk: the number of sentences in each table.
        references: as for `read_nbest`.
        sources: as for `read_nbest`.
        format: as for `read_nbest`.
        first_id: as for `read_nbest`.
        bad: as for `read_nbest`.
        empty: as for `iter_nbest`.

    >>> lines = ["id,text,lm", "0,a cat,-1.5"]
    >>> next(iter_tables(lines, Roles(("lm",)), format="csv")).feature_names
    ('lm',)
    """
    if chunk < 1:
        raise UsageError(f"chunk must be at least 1, got {chunk}", parameter="chunk")
    chosen = None if format == AUTO else resolve_format(format)
    require_one_of(bad, ("error", "drop"), "policy", "bad")
    options = ReadOptions(origin_name(path), bad, check_first_id(first_id), roles=roles)
    lines = {} if references is None else {"reference": load_references(references)}
    if sources is not None:
        lines["source"] = load_sources(sources)
    file = InputFile(path)

    def tables() -> Iterator[NBest]:
        reader = _find_format(file, chosen)
        schema = make_schema(reader, options)
        blocks = reader.blocks(file, schema.options)
        yield from Builder(schema, lines, empty).lists(blocks, chunk)

    return tables()


def format_name(path: AnyInput, format: str | NBestFormat = AUTO) -> str:
    """Return the name of the format that a file is read as.

    Args:
        path: as for `read_nbest`.
        format: as for `read_nbest`.

    Raises:
        DataError: if the file cannot be read, or is in no known format.

    >>> format_name([b"0 ||| a cat ||| LM0= -1.5 ||| -0.75"])
    'moses'
    """
    chosen = None if format == AUTO else resolve_format(format)
    return NBEST_FORMATS.name_of(_find_format(InputFile(path), chosen))


def make_schema(reader: NBestFormat, options: ReadOptions) -> Schema:
    """Return what checks the columns of one file of a format."""
    exclude = getattr(reader, "exclude", None)
    exclude = (exclude,) if isinstance(exclude, str) else exclude
    names = ColumnNames(reader.column_names(), options.origin, exclude)
    roles = options.roles._replace(all_numbers=reader.defines_features)
    return Schema(
        options._replace(names=names, roles=roles),
        nan_is_missing=reader.nan_is_missing,
        typed=reader.typed,
    )


def _find_format(file: InputFile, reader: NBestFormat | None) -> NBestFormat:
    """Return the format of a file or folder, if it is not known."""
    if isinstance(file.path, str | Path) and os.path.isdir(file.path):
        kinds = [kind() for _, kind in NBEST_FORMATS.load()] if reader is None else [reader]
        for of_folder in kinds:
            if of_folder.detect_folder(Path(file.path)):
                return of_folder
    line = file.first_line  # also raises if the file is empty, or a folder
    return reader or _detect(file, line)


def _detect(file: InputFile, line: bytes) -> NBestFormat:
    """Return the first format that detects the first line of a file."""
    for _, kind in NBEST_FORMATS.load():
        if kind().detect(line):
            return kind()
    # How files begin that no format reads, and what to do about them.
    others = tomllib.loads(files("bpa_ppl.formats").joinpath("other_files.toml").read_text("utf-8"))
    for other in others["files"]:
        if re.match(other["begin"].encode(), file.head, re.MULTILINE):
            raise DataError(other["problem"], file.origin, 1, code="unknown-format")
    second = b"".join(file.head.split(b"\n", 2)[1:2])
    if any(kind().detect(second) for kind in (Csv, Tsv)):
        problem = "the first line is not the header, which is in the second one: remove it"
        raise DataError(problem, file.origin, 1, code="unknown-format")
    suffix = file_suffix(file.path) if isinstance(file.path, str | Path) else ""
    nearest, problem = find_nearest_format(line, suffix, file.head)
    raise DataError(
        f"not an n-best list in a known format ({', '.join(NBEST_FORMATS)}); the nearest is "
        f"{nearest}, but {problem}: correct this, or build the lists in Python with "
        "bpa_ppl.from_lists or from_records",
        file.origin,
        1,
        parameter="format",
        code="unknown-format",
    )


def _makes_lists(head: bytes, format: str) -> int:
    """Return 2 if some lines are lists of several candidates in a format, 1 if they are too few."""
    try:
        with capture_notes():
            lists = read_nbest(head, format=format)
    except BpaError as error:
        return error.code == "no-data" and not json_keys(head)  # a header alone
    return 2 if lists.sizes.max() > 1 else int(len(lists) == 1)


def _table_problem(line: bytes) -> str:
    """Return what to do about the only line, if it is a whole table; or an empty text."""
    record = json.loads(line) if json_keys(line) else {}
    objects = [of for of in record.values() if isinstance(of, dict) and of]
    scores = [score for of in objects for score in of.values()]
    is_whole = 0 < len(objects) == len(record)
    if is_whole and all(isinstance(score, int | float) for score in scores):
        problem = "it has all lists in one object: `jq -c 'to_entries[] | {id: .key, candidates: "
        return f"{problem}[.value | to_entries[] | {{text: .key, score: .value}}]}}'` writes lines"
    if (is_whole and len(record) > 1) or ("data" in record and {"columns", "schema"} & {*record}):
        problem = "it has a whole table in one object: to_json(orient='records', lines=True) of "
        return f"{problem}pandas writes a line for each row"
    return ""


def find_nearest_format(line: bytes, suffix: str = "", head: bytes = b"") -> tuple[str, str]:
    """Return the format that a first line fits best, and the first thing that does not fit.

    A table that has the required columns under other names comes first, if the first lines are
    lists of several candidates then. Formats with named fields are ranked by the share of their
    required fields that the line has, then by the ending of the file. Other lines are recognised
    by their shape.

    Args:
        line: a first line that no format detects.
        suffix: the ending of the name of the file, such as `.csv`.
        head: the first lines, if there are more.

    >>> find_nearest_format(b'{"chosen": "a cat"}')
    ('jsonl', "it has no field rejected (its fields are 'chosen')")
    >>> find_nearest_format(b"id,lm"), find_nearest_format(b"a cat")[0]
    (('csv', "it has no field text (its fields are 'id, lm')"), 'plain')
    """
    lines = head.split(b"\n", ROWS)
    if whole := "" if any(map(bytes.strip, lines[1:2])) else _table_problem(line):
        return "jsonl", whole
    usual = next((name for name, kind in NBEST_FORMATS.load() if suffix in kind.suffixes), "")
    shape = next((name, problem) for regex, name, problem in _SHAPES if re.match(regex, line))
    if line.lstrip()[:1] == b"[" and shape[0] == "jsonl":
        return shape
    if shape[0] == "plain" and usual in ("csv", "tsv"):
        shape = usual, _WITHOUT_NAMES.format(usual)
    fits = []  # how well each format fits, its name, and the first thing that does not fit
    for name, kind in NBEST_FORMATS.load():
        reader = kind()
        is_table, names = isinstance(reader, Csv), reader.field_names(line)
        if is_table and names:
            rows = list(filter(None, map(reader.field_names, lines[1:ROWS])))
            if problem := _header_problem(names, rows):
                return name, problem
            if not (any(map(is_name, set(names))) or _are_usual(names)):
                if has_numbers_below(names, rows):
                    shape = name, _WITHOUT_NAMES.format(name)
                continue
        for fields in kind.required if names else ():
            if set(fields) <= set(names):
                continue  # it has them, but with other values
            is_read, problem = _missing_field(name, names, fields, line, head)
            share = len({n.lower() for n in names}.intersection(fields)) / len(fields)
            fit = (is_read, share, suffix in kind.suffixes, is_table or name == shape[0])
            fits.append((fit, name, problem))
    best = max(fits, default=None, key=itemgetter(0))
    return shape if best is None or not any(best[0]) else best[1:]


def _are_usual(names: Sequence[str]) -> bool:
    """Return whether columns may be an id and a text, or two answers."""
    both = [find_nearest(field, names, shared=True) for field in (ID, TEXT)]
    return all(both) or find_named_answers(names) is not None


def _header_problem(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return what is wrong with the first line of a table, or an empty text.

    Args:
        names: the cells of the line.
        rows: those of the lines after it.
    """
    if problem := missing_names(names, rows):
        return problem if rows or not _are_usual(names) else ""
    if rows and all(map(looks_numeric, rows[0])) and not find_nearest(TEXT, names, shared=True):
        return "it has no texts: use bpa_ppl.BayesianRanker or from_arrays in Python"
    return ""


def _missing_field(
    name: str, names: Sequence[str], fields: Sequence[str], line: bytes, head: bytes
) -> tuple[int, str]:
    """Return how well a format reads the file under other names, and the first missing field.

    Args:
        name: of the format.
        names: of the fields in the first line.
        fields: that the format requires.
        line: the first line.
        head: the first lines.
    """
    record, reader = json.loads(line) if json_keys(line) else {}, NBEST_FORMATS.resolve(name)
    inside = [field for field in iter_field_names(record) if "." in field]
    plain = [n for n in names if not any(of.startswith(f"{n}.") for of in inside)]
    missing = [field for field in fields if field not in names]
    problem = f"it has no field {missing[0]} (its fields are {quote(', '.join(names))})"
    columns = [*plain, *inside]
    for of, among in ((missing, columns), ([*missing, ID], [n for n in columns if n != ID])):
        near = propose_names(of, among, record)  # an id may be that of a row
        other = f"{name}:" + ",".join(f"{field}={column}" for field, column in near.items())
        may_fit = all(column and hasattr(reader, field) for field, column in near.items())
        may_fit = may_fit and isinstance(reader, TableFormat)
        if may_fit and (fit := _makes_lists(head or line, other)):
            return fit, f"{problem}; if it has other names, write them as {other}"
    answers = find_named_answers(names)
    if answers and find_third(answers[1]) in names:
        of_all = f'test("^{answers[0][:-1]}[^_]{{1,2}}$")'
        problem += "; more than two answers become candidates by `jq -c '.candidates = ["
        problem += f"to_entries[] | select(.key | {of_all}).value]'`"
    elif answers:
        problem += "; if one of two answers is preferred, name them, and the winner: "
        problem += f"{name}:chosen={answers[0]},rejected={answers[1]},winner=NAME"
        problem += f",source={TEXT}" if TEXT in names else ""
    return 0, problem
