"""References and sources: plain text, one sentence per line; references also with ids.

With ids a file of references has lines `id<TAB>text`, or of JSON, with an `id` and a `reference`
or `references`. Several lines of an id are several references. A file has ids if at least half of
its lines have a tab, or if a line is an object of JSON with such fields; then a line of another
kind is refused, so that an id never becomes a part of a reference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any, TypeAlias

import msgspec

from bpa_ppl._runtime.arrays import members, to_texts
from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.formats.block import ID, REFERENCE, REFERENCES, SOURCE, SentenceLines
from bpa_ppl.formats.streams import STANDARD, AnyPath, origin_name, read_lines
from bpa_ppl.formats.values import json_keys, strict_values
from bpa_ppl.names import id_key, one_number, other_form
from bpa_ppl.notes import warn_user

#: Files of references; or a tuple or list of references for each sentence, or by id for some.
AnyReferences = (
    AnyPath | Sequence[AnyPath] | Sequence[Sequence[str]] | Mapping[Any, str | Sequence[str]]
)
#: A file of source sentences, or the sentences themselves.
AnySources = AnyPath | Sequence[str]
#: How lines of n-best lists begin.
_OF_LISTS = re.compile(r"\d+ \|\|\| |[SH]-\d+\t")
#: A line with an id: its number, and the id and the references as written.
_WithId: TypeAlias = tuple[int, Any, tuple[str, ...]]
_IF_PLAIN = "if the file is plain text, write its tabs as spaces (`tr '\\t' ' '`)"
_HEADER = re.compile(r"""["']?\w+["']?(?:[,;\t]["']?\w+["']?)+""")
#: What looks like an id that a comma or a blank follows: a prefix and a number.
_NUMBERED = re.compile(r"""["']?((?:[^\s,;|"']*[^\s,;|"'0-9])?)([0-9]{1,18})["']?[\s,;|]""")
_LABEL = re.compile(r"[0-9]")
_IN_PARENTHESES = re.compile(r"\(\S+\)$")
# What texts begin with, too: numbers, times, prices, items of a list.
_MEASURE = re.compile(r"\W*[0-9]+(?:[.,:/][0-9]+)*\W*")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.|"")*"')
# An object of JSON, or of Python, which may be damaged.
_LIKE_OBJECT = re.compile(r"""\{.*["'](?:id|references?|source)["']\s*:""")
_MARKUP = re.compile(r"\s*<(?:seg|hl|doc|refset|srcset|tstset)\b", re.IGNORECASE)
_FIELDS = {ID, REFERENCE, REFERENCES}
_MOST = 0.9  # of the lines: if so many are of one kind, the file is meant to be


def read_references(paths: AnyPath | Sequence[AnyPath]) -> list[tuple[str, ...]]:
    """Return for each sentence the tuple of its references.

    Args:
        paths: one file, or several with one line each for the same sentences.

    Raises:
        DataError: if a file cannot be read or is empty, or two differ in their number of lines.
        UsageError: if no file is given.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"a cat sat"), file.flush()
    ...     print(read_references([file.name, file.name]))
    [('a cat sat', 'a cat sat')]
    """
    files = [paths] if isinstance(paths, str) or not isinstance(paths, Sequence) else list(paths)
    lines = _lines_of(files)
    if isinstance(lines, dict):
        problem = "its lines begin with ids: give the file itself as the references of lists"
        raise DataError(problem, origin_name(files[0]), code="mismatch")
    return lines


def _lines_of(files: Sequence[AnyPath]) -> list[tuple[str, ...]] | dict[Any, tuple[str, ...]]:
    """Return the references of each sentence, or by id if the files have ids."""
    if not files:
        problem = "no file of references: give at least one"
        raise UsageError(problem, parameter="paths", code="no-data")
    columns = [read_lines(path) for path in files]
    origins = list(map(origin_name, files))
    for origin, column in zip(origins, columns, strict=True):
        if not column:
            raise DataError("empty: give the references, one a line", origin, code="no-data")
        if _OF_LISTS.match(column[0]):
            problem = "a hypothesis of n-best lists, not a reference: give the references"
            raise DataError(problem, origin, 1, code="mismatch")
    entries = list(map(_with_ids, columns, origins))
    if any(entries):
        by_id: dict[Any, tuple[str, ...]] = {}
        forms: dict[Any, str] = {}
        for origin, of_file in zip(origins, entries, strict=True):
            if not of_file:
                problem = "lines without ids, unlike those of another file: give them ids, too"
                raise DataError(problem, origin, code="mismatch")
            for number, identifier, texts in of_file:
                key = id_key(identifier)
                if other := other_form(forms, key, identifier):
                    problem = one_number(identifier, other)
                    raise DataError(problem, origin, number, code="duplicate")
                by_id[key] = (*by_id.get(key, ()), *texts)
        return by_id
    for origin, column in zip(origins, columns, strict=True):
        if len(column) != len(columns[0]):
            problem = f"{len(column)} lines, but {origins[0]} has {len(columns[0])}"
            advice = "references of the same text have one line for each sentence"
            raise DataError(f"{problem}: {advice}", origin, code="wrong-length")
    return [tuple(map(str.strip, texts)) for texts in zip(*columns, strict=True)]


def _with_ids(lines: Sequence[str], origin: str) -> list[_WithId]:
    """Return the line, the id and the references of each line with an id; none of plain text.

    Raises:
        DataError: if most lines have ids, or are quoted, and one is not as the others.
    """
    present = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    texts = [line.strip() for _, line in present]
    objects = _json_lines(present)
    like = max(len(objects), sum(_LIKE_OBJECT.match(text) is not None for text in texts))
    if texts and (texts[0] in ("{", "[") or 2 * like >= len(texts)):
        block = "\n".join([*lines, ""]).encode()
        records, numbers = strict_values(block, origin, 1, REFERENCES)
        return [_of_record(of, origin, n) for of, n in zip(records, numbers, strict=True)]
    if ids := [number for number, keys in objects if not _FIELDS.isdisjoint(keys)]:
        problem = "an object of JSON, but other lines are none: write all lines in one form"
        raise DataError(problem, origin, ids[0], code="bad-line")
    if not texts or 2 * sum("\t" in text for text in texts) < len(texts):
        _check_plain(texts, present, origin)
        return []
    entries: list[_WithId] = []
    for number, line in present:
        identifier, *cells = map(str.strip, line.split("\t"))
        problem = ""
        if not cells:
            problem = "no tab, but other lines read `id<TAB>text`: put a tab behind the id"
        elif not identifier:
            problem = "no id before the tab, but other lines read `id<TAB>text`: add it"
        elif any(cells[1:]):
            problem = f"{len(cells) + 1} cells, but a line with an id reads `id<TAB>text`: write "
            problem += "the tabs of a text as spaces, or keep two columns with `cut -f1,2`"
        if problem:
            raise DataError(f"{problem}; {_IF_PLAIN}", origin, number, code="bad-line")
        entries.append((number, identifier, (cells[0],)))
    header = entries[:1] if entries[0][1].lower() == ID else []
    entries = entries[len(header) :]
    if not entries:
        raise DataError("a header without references: add them", origin, code="no-data")
    for column in ([of for _, of, _ in entries], [of for _, _, (of,) in entries]):
        _check_quotes(column, entries[0][0], origin)
    return entries


def _json_lines(present: Sequence[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """Return the numbers of lines that are objects of JSON, with their keys, or arrays."""
    found = []
    for number, line in present:
        text = line.strip()
        if text.startswith("{") and (keys := json_keys(text.encode())):
            found.append((number, keys))
        elif text.startswith("["):
            with suppress(ValueError, RecursionError):
                msgspec.json.decode(text, type=list)
                found.append((number, []))
    return found


def _check_plain(texts: Sequence[str], present: Sequence[tuple[int, str]], origin: str) -> None:
    """Refuse lines without tabs that begin with ids, or are quoted.

    Args:
        texts: of lines that are not blank.
        present: the numbers of these lines.
        origin: of the file.
    """
    if not texts:
        return
    if _is_header(texts[0]):
        problem = "the header of a table: give lines `id<TAB>text`, or of JSON with an "
        raise DataError(f"{problem}{ID} and a {REFERENCE}", origin, present[0][0], code="mismatch")
    _check_markup(texts, present[0][0], origin)
    if problem := _ids_before(texts):
        advice = "put a tab behind each id (`id<TAB>text`), or remove the ids; if they belong "
        advice += f"to the texts, put other ids and a tab before them (`0<TAB>{texts[0][:20]}`)"
        raise DataError(f"{problem}: {advice}", origin, present[0][0], code="mismatch")
    if labels := _labels_of(texts):
        warn_user(f"{origin}: {labels}: if these are ids, write `id<TAB>text`")
    _check_quotes(texts, present[0][0], origin)


def _check_markup(texts: Sequence[str], number: int, origin: str) -> None:
    """Refuse segments of SGML or XML."""
    if texts and 2 * sum(_MARKUP.match(text) is not None for text in texts) > len(texts):
        problem = "segments of SGML or XML: give the texts without the markup, one a line"
        raise DataError(problem, origin, number, code="mismatch")


def _is_header(line: str) -> bool:
    return bool(_HEADER.fullmatch(line)) and ID in re.findall(r"\w+", line.lower())


def _ids_before(texts: Sequence[str]) -> str:
    """Return which lines begin with what looks like ids; an empty text if they do not."""
    matches = [match for text in texts if (match := _NUMBERED.match(text))]
    numbers, prefixes = [int(match[2]) for match in matches], {match[1] for match in matches}
    if len(prefixes) == 1 and max(2, _MOST * len(texts)) <= len(numbers) == len(set(numbers)):
        counted = numbers[2:] and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        if counted or any(map(str.isalpha, *prefixes)):
            first, last = (quoted(match[1] + match[2]) for match in (matches[0], matches[-1]))
            return f"lines begin with {first} to {last}, which look like ids"
    return ""


def _labels_of(texts: Sequence[str]) -> str:
    """Return which words of the lines may be ids, since they have digits and are different."""
    for where, words in (
        ("begin", [text.split(None, 1)[0] for text in texts if " " in text]),
        ("end", [word for text in texts if _IN_PARENTHESES.match(word := text.split()[-1])]),
    ):
        labels = [word for word in words if _LABEL.search(word) and not _MEASURE.fullmatch(word)]
        if max(3, _MOST * len(texts)) <= len(labels) == len(set(labels)):
            found = f"lines {where} with different words with digits, such as {quoted(labels[0])}"
            return f"{found}, which are read as part of the texts"
    return ""


def _check_quotes(texts: Sequence[str], number: int, origin: str) -> None:
    """Refuse texts that are quoted as in CSV or JSON; warn if more than half are.

    Args:
        texts: of all lines.
        number: of the first line.
        origin: of the file.
    """
    count = _count_quoted(texts)
    if not texts or 2 * count <= len(texts):
        return
    share = f"{count} of {len(texts)} texts are in quotation marks"
    if count < _MOST * len(texts):
        warn_user(f"{origin}: {share}, which are read as part of the texts")
        return
    advice = "remove them (`jq -r .` removes those of JSON)"
    example = '{"id": 0, "reference": "\\"Yes.\\""}'
    advice += f", or, if they belong to the texts, write lines like {example}"
    raise DataError(f"{share}, as in CSV or JSON: {advice}", origin, number, code="mismatch")


def _count_quoted(texts: Sequence[str]) -> int:
    return sum(_QUOTED.fullmatch(text) is not None for text in texts)


def _of_record(record: Any, origin: str, line: int) -> _WithId:
    """Return the line, the id and the references of an object of JSON."""
    fields = record if isinstance(record, dict) else {}
    identifier, given = fields.get(ID), [fields[n] for n in (REFERENCE, REFERENCES) if n in fields]
    texts = [of for of in given if of is not None]
    if len(texts) > 1:
        problem = f"both {REFERENCE} and {REFERENCES}: leave one out"
        raise DataError(problem, origin, line)
    several: Any = texts if not texts or isinstance(texts[0], str) else texts[0]
    is_valid = isinstance(several, list) and all(isinstance(text, str) for text in several)
    is_id = isinstance(id_key(identifier), int | str) and not isinstance(identifier, bool)
    if not (is_id and given and is_valid):
        problem = f"no {ID} with a {REFERENCE}, a text, or {REFERENCES}, a list of texts: add them"
        problem += f"; an object that is itself a {REFERENCE} is written as a text"
        raise DataError(problem, origin, line)
    return line, identifier, tuple(several)


def references_of(given: AnyReferences) -> SentenceLines:
    """Return references, read from files if these are given.

    Raises:
        DataError: as `read_references`.
        UsageError: if they are neither files nor references.

    >>> references_of([("the cat",), ["a dog", "one dog"]]).lines
    (('the cat',), ('a dog', 'one dog'))
    >>> references_of({"7": "the cat"}).lines
    {7: ('the cat',)}
    """
    if isinstance(given, Mapping):
        return SentenceLines.of_references(given)
    single = isinstance(given, str | PurePath)
    files: list[Any] = [given] if single else members(given, "references")
    if not all(isinstance(path, str | PurePath) for path in files):
        return SentenceLines.of_references(files)
    texts = isinstance(given, list | tuple) and all(isinstance(path, str) for path in files)
    if texts and files and not any(path == STANDARD or os.path.exists(path) for path in files):
        problem = f"there is no file of references {files[0]}"
        advice = "check the name, or give the references as one tuple for each sentence"
        raise UsageError(f"{problem}: {advice}", parameter="references", code="missing-file")
    return SentenceLines(_lines_of(files), ", ".join(map(origin_name, files)))


def sources_of(given: AnySources) -> SentenceLines:
    """Return source sentences, read from a file if one is given.

    Raises:
        DataError: if the file cannot be read.
        UsageError: if they are neither.

    >>> sources_of(["un chat"]).lines
    ('un chat',)
    """
    if isinstance(given, str | PurePath):
        lines, origin = read_lines(given), origin_name(given)
        tabs = [number for number, line in enumerate(lines, 1) if "\t" in line.strip()]
        of_json = lines and _LIKE_OBJECT.match(lines[0].strip()) is not None
        if of_json or 2 * len(tabs) > sum(bool(line.strip()) for line in lines):
            problem = "lines with ids, but sources are given one per line: leave the ids out, or "
            problem += f"give each list its {SOURCE} in the file of lists"
            problem += "" if of_json else f"; {_IF_PLAIN}"
            raise DataError(problem, origin, 1 if of_json else tabs[0], code="mismatch")
        texts = [line.strip() for line in lines]
        present = [text for text in texts if text]
        if present and _is_header(present[0]):
            problem = "the header of a table, but sources are given one per line: give the texts"
            raise DataError(problem, origin, 1, code="mismatch")
        _check_markup(present, 1, origin)
        if problem := _ids_before(present) or _labels_of(present):
            warn_user(f"{origin}: {problem}: if these are ids, remove them")
        if 2 * (count := _count_quoted(present)) > len(present):
            share = f"{count} of {len(present)} texts are in quotation marks"
            warn_user(f"{origin}: {share}, which are read as part of the texts")
        return SentenceLines(texts, origin)
    return SentenceLines(to_texts(given), "the text")
