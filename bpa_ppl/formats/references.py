"""References and sources of a text: read from files, and paired with lists by id or by line.

A file of either is plain text, one sentence a line. One of references may have ids: its lines are
`id<TAB>text`, or JSON objects with an `id` and a `reference` or `references`. Several lines of
an id are several references. A file has ids if at least half of its lines have a tab, or if a line
is such an object; then a line of another kind is refused, so that an id never becomes a part of a
reference.

`_File` reads lines and recognises what they are, `Pairing` finds the entry of each list, and
`ReferenceNotes` compares references with the candidates of their lists.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from bpa_ppl._runtime.arrays import to_members, to_texts
from bpa_ppl._runtime.messages import format_count, log_info, warn_user
from bpa_ppl.errors import DataError, UsageError, quote
from bpa_ppl.formats.block import ID, REFERENCE, REFERENCES, SOURCE
from bpa_ppl.formats.streams import STANDARD, AnyPath, origin_name, read_lines
from bpa_ppl.formats.values import parse_strictly
from bpa_ppl.names import (
    describe_equal_ids,
    explain_foreign_ids,
    find_other_form,
    group_references,
    id_key,
    natural_order,
    to_references,
)
from bpa_ppl.nbest import NBest

#: Files of references; or a tuple or list of references for each sentence, or by id for some.
AnyReferences = (
    AnyPath | Sequence[AnyPath] | Sequence[Sequence[str]] | Mapping[Any, str | Sequence[str]]
)
#: A file of source sentences, or the sentences themselves.
AnySources = AnyPath | Sequence[str]


class SentenceLines(NamedTuple):
    """One entry for each sentence of a whole text, or of some of it, such as its references.

    Attributes:
        lines: one entry per sentence; or entries by id, as `names.id_key` returns it.
        origin: where they are from, for messages.
    """

    lines: Sequence[Any] | Mapping[Any, Any]
    origin: str

    @classmethod
    def of_references(cls, value: Any) -> SentenceLines:
        """Return references: a text or several for each sentence, or by id for some.

        Raises:
            UsageError: if they are anything else.
        """
        if isinstance(value, Mapping):
            return cls(group_references(value), "the references")
        return cls(to_references(value), "the text")


def load_references(references: AnyReferences) -> SentenceLines:
    """Return references: those of files, or as they are.

    Raises:
        DataError: as `read_references`.
        UsageError: if they are neither files nor references.

    >>> load_references([("the cat",), ["a dog", "one dog"]]).lines
    (('the cat',), ('a dog', 'one dog'))
    >>> load_references({"7": "the cat"}).lines
    {7: ('the cat',)}
    """
    if isinstance(references, Mapping):
        return SentenceLines.of_references(references)
    single = isinstance(references, str | PurePath)
    files: list[Any] = [references] if single else to_members(references, "references")
    if not all(isinstance(path, str | PurePath) for path in files):
        return SentenceLines.of_references(files)
    texts = isinstance(references, list | tuple) and all(isinstance(path, str) for path in files)
    if texts and files and not any(path == STANDARD or os.path.exists(path) for path in files):
        problem = f"there is no file of references {files[0]}"
        advice = "check the name, or give the references as one tuple for each sentence"
        raise UsageError(f"{problem}: {advice}", parameter="references", code="missing-file")
    return SentenceLines(_read_entries(files), ", ".join(map(origin_name, files)))


def load_sources(sources: AnySources) -> SentenceLines:
    """Return source sentences: those of a file, or as they are.

    Raises:
        DataError: if the file cannot be read, or its lines have ids or markup.
        UsageError: if they are neither.

    >>> load_sources(["un chat"]).lines
    ('un chat',)
    """
    if not isinstance(sources, str | PurePath):
        return SentenceLines(to_texts(sources), "the text")
    file = _File(sources, SOURCE)
    file.check_sources()
    return SentenceLines([line.strip() for line in file.lines], file.origin)


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
    references = _read_entries(files)
    if isinstance(references, dict):
        problem = "its lines begin with ids: give the file itself as the references of lists"
        raise DataError(problem, origin_name(files[0]), code="mismatch")
    return references


def _read_entries(paths: Sequence[AnyPath]) -> list[tuple[str, ...]] | dict[Any, tuple[str, ...]]:
    """Return the references of each sentence, or by id if the files have ids."""
    if not paths:
        problem = "no file of references: give at least one"
        raise UsageError(problem, parameter="paths", code="no-data")
    files = [_File(path, REFERENCE) for path in paths]
    for file in files:
        if not file.lines:
            raise file.error("empty: give the references, one a line", code="no-data")
        if _OF_LISTS.match(file.lines[0]):
            problem = "a candidate of n-best lists, not a reference: give the references"
            raise file.error(problem, 1)
    entries = [file.entries() for file in files]
    if not any(entries):
        count = len(files[0].lines)
        for file in files:
            if len(file.lines) != count:
                problem = f"{len(file.lines)} lines, but {files[0].origin} has {count}: "
                problem += "references of the same text have one line for each sentence"
                raise file.error(problem, code="wrong-length")
        lines = zip(*(file.lines for file in files), strict=True)
        return [tuple(map(str.strip, texts)) for texts in lines]
    by_id: dict[Any, tuple[str, ...]] = {}
    forms: dict[Any, str] = {}
    for file, of_file in zip(files, entries, strict=True):
        if not of_file:
            raise file.error("lines without ids, unlike those of another file: give them ids, too")
        for number, identifier, texts, printed in of_file:
            key = id_key(identifier)
            if other := find_other_form(forms, key, printed):
                raise file.error(describe_equal_ids(printed, other), number, "duplicate")
            by_id[key] = (*by_id.get(key, ()), *texts)
    return by_id


# What the lines of a file are.

# How lines of n-best lists begin.
_OF_LISTS = re.compile(r"\d+ \|\|\| |[SH]-\d+\t")
# A JSON or Python object, which may be damaged.
_LIKE_OBJECT = re.compile(r"""\{.*["'](?:id|references?|source)["']\s*:""")
_FIELDS = {ID, REFERENCE, REFERENCES}
_OBJECT_OR_ARRAY = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[Any])
_HEADER = re.compile(r"""["']?\w+["']?(?:[,;\t]["']?\w+["']?)+""")
_MARKUP = re.compile(r"\s*<(?:seg|hl|doc|refset|srcset|tstset)\b", re.IGNORECASE)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.|"")*"')
_IF_PLAIN = "if the file is plain text, write its tabs as spaces (`tr '\\t' ' '`)"
_NEARLY_ALL = 0.9  # of the texts: if so many look like something else, all are meant to be


class _Entry(NamedTuple):
    """A line with an id."""

    line: int
    id: Any
    references: tuple[str, ...]
    printed: Any  # the id with the blanks around it


class _File:
    """The lines of a file, and what they are.

    Args:
        path: the file.
        what: "reference" or "source".
    """

    def __init__(self, path: AnyPath, what: str):
        self.what, self.lines, self.origin = what, read_lines(path), origin_name(path)
        stripped = list(map(str.strip, self.lines))
        self.numbers = [number for number, text in enumerate(stripped, 1) if text]
        self.texts = list(filter(None, stripped))

    def error(self, problem: str, line: int | None = None, code: str = "mismatch") -> DataError:
        """Return the error that names the file, and one of its lines."""
        return DataError(problem, self.origin, line, code=code)

    def check_sources(self) -> None:
        """Refuse lines that are not plain text.

        Raises:
            DataError: if lines have ids, or markup.
        """
        tabs = [number for number in self.numbers if "\t" in self.lines[number - 1].strip()]
        of_json = _LIKE_OBJECT.match(self.texts[0]) if self.texts else None
        if of_json or 2 * len(tabs) > len(self.texts):
            problem = "lines with ids, but sources are given one per line: leave the ids out, or "
            problem += f"give each list its {SOURCE} in the file of lists"
            problem += "" if of_json else f"; {_IF_PLAIN}"
            raise self.error(problem, self.numbers[0] if of_json else tabs[0])
        self._check_plain()

    def entries(self) -> list[_Entry]:
        """Return the references of a file with ids; none of plain text.

        Raises:
            DataError: if lines are not references, or not all of one kind.
        """
        if not self.texts:
            return []
        keys = list(map(_json_keys, self.texts))
        objects = len(keys) - keys.count(None)
        like = len(list(filter(_LIKE_OBJECT.match, self.texts)))
        if self.texts[0] in ("{", "[") or 2 * max(objects, like) >= len(self.texts):
            block = "\n".join([*self.lines, ""]).encode()
            records, numbers = parse_strictly(block, self.origin, 1, REFERENCES)
            return list(map(self._of_record, records, numbers))
        for number, of_line in zip(self.numbers, keys, strict=True):
            if not _FIELDS.isdisjoint(of_line or ()):
                problem = "a JSON object, unlike other lines: write all lines in one form"
                raise self.error(problem, number, "bad-line")
        if 2 * sum("\t" in text for text in self.texts) >= len(self.texts):
            return self._of_table()
        self._check_plain()
        return []

    def _of_record(self, record: Any, line: int) -> _Entry:
        """Return the id and the references of a JSON object."""
        fields = record if isinstance(record, dict) else {}
        values = [fields[name] for name in (REFERENCE, REFERENCES) if name in fields]
        texts = [value for value in values if value is not None]
        if len(texts) > 1:
            problem = f"both {REFERENCE} and {REFERENCES}: leave one out"
            raise DataError(problem, self.origin, line)
        several: Any = texts if not texts or isinstance(texts[0], str) else texts[0]
        is_valid = isinstance(several, list) and all(isinstance(text, str) for text in several)
        identifier = fields.get(ID)
        is_id = isinstance(id_key(identifier), int | str) and not isinstance(identifier, bool)
        if not (is_id and values and is_valid):
            problem = f"no {ID} with a {REFERENCE}, a text, or {REFERENCES}, a list of texts: add "
            problem += f"them; an object that is itself a {REFERENCE} is written as a text"
            raise DataError(problem, self.origin, line)
        return _Entry(line, identifier, tuple(several), identifier)

    def _of_table(self) -> list[_Entry]:
        """Return the ids and texts of lines `id<TAB>text`, without a header."""
        entries = []
        for number in self.numbers:
            printed = self.lines[number - 1].split("\t")
            identifier, *cells = map(str.strip, printed)
            problem = ""
            if not cells:
                problem = "no tab, but other lines read `id<TAB>text`: put a tab behind the id"
            elif not identifier:
                problem = "no id before the tab, but other lines read `id<TAB>text`: add it"
            elif any(cells[1:]):
                problem = f"{len(cells) + 1} cells, but a line with an id reads `id<TAB>text`: "
                problem += "write the tabs of a text as spaces, or keep two columns with "
                problem += "`cut -f1,2`"
            if problem:
                raise self.error(f"{problem}; {_IF_PLAIN}", number, "bad-line")
            entries.append(_Entry(number, identifier, (cells[0],), printed[0]))
        if entries[0].id.lower() == ID:
            del entries[0]
        if not entries:
            raise self.error("a header without references: add them", code="no-data")
        self._check_quotes([entry.id for entry in entries], entries[0].line)
        self._check_quotes([entry.references[0] for entry in entries], entries[0].line)
        return entries

    def _check_plain(self) -> None:
        """Refuse or note lines that have ids in another form, are quoted or have markup."""
        if not self.texts:
            return
        texts, first, is_reference = self.texts, self.numbers[0], self.what == REFERENCE
        if _HEADER.fullmatch(texts[0]) and ID in re.findall(r"\w+", texts[0].lower()):
            problem = "the header of a table, but sources are given one per line: give the texts"
            if is_reference:
                problem = "the header of a table: give lines `id<TAB>text`, or JSON lines with an "
                problem += f"{ID} and a {REFERENCE}"
            raise self.error(problem, first)
        if 2 * len(list(filter(_MARKUP.match, texts))) > len(texts):
            problem = "segments of SGML or XML: give the texts without the markup, one a line"
            raise self.error(problem, first)
        if is_reference and (tabs := sum("\t" in text.strip() for text in texts)) > 1:
            what = f"{tabs} of {len(texts)} lines have tabs, which are read as part of the texts"
            warn_user(f"{self.origin}: {what}: if they end ids, write all lines as `id<TAB>text`")
        if (note := _find_numbers(texts)) and is_reference:
            advice = "put a tab behind each id (`id<TAB>text`), or remove the ids; if they belong "
            advice += f"to the texts, put other ids and a tab before them (`0<TAB>{texts[0][:20]}`)"
            raise self.error(f"{note}: {advice}", first)
        if note := note or _find_labels(texts):
            advice = "write `id<TAB>text`" if is_reference else "remove them"
            warn_user(f"{self.origin}: {note}: if these are ids, {advice}")
        self._check_quotes(texts, first)

    def _check_quotes(self, texts: Sequence[str], line: int) -> None:
        """Refuse references that are quoted as in CSV or JSON; warn if more than half are."""
        count = len(list(filter(_QUOTED.fullmatch, texts)))
        if 2 * count <= len(texts):
            return
        share = f"{count} of {len(texts)} texts are in quotation marks"
        if count < _NEARLY_ALL * len(texts) or self.what != REFERENCE:
            warn_user(f"{self.origin}: {share}, which are read as part of the texts")
            return
        advice = "remove them (`jq -r .` removes those of JSON), or, if they belong to the texts, "
        advice += """write lines like {"id": 0, "reference": "\\"Yes.\\""}"""
        raise self.error(f"{share}, as in CSV or JSON: {advice}", line)


def _json_keys(text: str) -> list[str] | None:
    """Return the keys of a JSON object, none of an array; None of any other text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value = _OBJECT_OR_ARRAY.decode(text)
    except (ValueError, RecursionError):
        return None
    return [] if isinstance(value, list) else list(value) or None


# Ids in texts.

# What looks like an id that a comma or a blank follows: a prefix and a number.
_NUMBERED = re.compile(r"""["']?((?:[^\s,;|"']*[^\s,;|"'0-9])?)([0-9]{1,18})["']?[\s,;|]""")
# What texts begin with, too: numbers, times, prices, items of a list.
_MEASURE = re.compile(r"\W*[0-9]+(?:[.,:/][0-9]+)*\W*")
_ITEM = re.compile(r"([0-9]{1,18})\.(?:\s|$)")
_AFTER_ID = re.compile(r"[\s,;|]+")


def _find_numbers(texts: Sequence[str]) -> str:
    """Return which lines begin with what looks like ids; an empty text if they do not."""
    matches = [match for text in texts if (match := _NUMBERED.match(text))]
    numbers, prefixes = [int(match[2]) for match in matches], {match[1] for match in matches}
    many = max(2, _NEARLY_ALL * len(texts)) <= len(numbers) == len(set(numbers))
    if many and len(prefixes) == 1:
        consecutive = range(numbers[0], numbers[0] + len(numbers))
        if (len(numbers) > 2 and numbers == list(consecutive)) or any(map(str.isalpha, *prefixes)):
            first, last = (quote(match[1] + match[2]) for match in (matches[0], matches[-1]))
            return f"lines begin with {first} to {last}, which look like ids"
    return ""


def _find_labels(texts: Sequence[str]) -> str:
    """Return which words of the lines may be ids, since they have digits and are different."""
    before = [text.split(None, 1)[0] for text in texts if " " in text]
    after = [f"({word})" for text in texts if (word := _id_after(text))]
    for where, words in {"begin": before, "end": after}.items():
        labels = [w for w in words if re.search("[0-9]", w) and not _MEASURE.fullmatch(w)]
        if max(3, _NEARLY_ALL * len(texts)) <= len(labels) == len(set(labels)):
            found = f"lines {where} with different words with digits, such as {quote(labels[0])}"
            return f"{found}, which are read as part of the texts"
    return ""


def _id_before(text: str) -> Any:
    """Return the first word of a text as an id, without quotation marks; None if it is the last."""
    word, *rest = _AFTER_ID.split(text, maxsplit=1)
    bare = word.strip("\"'").rstrip(":")
    if not any(rest) or _ITEM.match(bare):
        return None
    inside = bare.strip("()[]<>")
    return id_key(bare if inside.isdigit() else inside)  # `(1)` is an item of a list, too


def _id_after(text: str) -> Any:
    """Return the last word of a text as an id, if it is in parentheses, as in files of sclite."""
    word = text.rsplit(None, 1)[-1] if text.endswith(")") else ""
    return word[1:-1] or None if word.startswith("(") else None


def _item_before(text: str) -> Any:
    """Return the number that a text begins with as an item of a list, `1.`."""
    item = _ITEM.match(text)
    return int(item[1]) if item and text.split()[1:] else None


# Which entry belongs to which list.

_CHECKED = 1000  # lists whose ids are compared with the first words of their lines
_MOST = 0.75  # of the lines: if so many begin with ids of different lists, these are their ids


class Pairing:
    """Pairs references, or sources, with lists.

    Those with ids are paired by id. Of those without, an id that is an integer, perhaps as a text,
    names the line. If that is not possible because the ids are other texts, the lines are in the
    order in which these appear, which is logged, or refused where it cannot be their order.

    Args:
        what: "reference" or "source".
        sentences: the references or sources.
        origin: the name of the n-best file, for messages.
        first_id: the id of the first line.

    >>> pairing = Pairing("reference", SentenceLines(["a", "b", "c"], "dev.ref"), "dev.jsonl", 0)
    >>> pairing.entries([0, 1], ["2", "0"], [1, 2], by_text=True, whole=True)
    (('c', 'a'), [2, 0])
    """

    def __init__(self, what: str, sentences: SentenceLines, origin: str, first_id: int):
        self.what, self.sentences, self.origin, self.first_id = what, sentences, origin, first_id
        self._forms: dict[Any, str] = {}  # of ids that are joined
        self._used: set[Any] = set()  # ids with an entry
        self._by_value: bool | None = None  # whether ids that are texts are integers
        self._names: list[str] = []  # ids that are texts, where lines are in their order
        self._least = math.inf  # the first id that names a line
        self._joined: list[tuple[Any, str]] = []  # ids with their lines, of the first lists
        self._remedy = f"give each list its {what} in the file"
        if what == REFERENCE:
            self._remedy = "give references with ids (lines `id<TAB>text`)"
        one = first_id + 1
        self._if_counted = f"if ids are counted from {one}, set the first id to {one}"

    def entries(
        self,
        ids: Sequence[int],
        names: Sequence[Any],
        lines: Sequence[int],
        *,
        by_text: bool,
        whole: bool,
    ) -> tuple[tuple[Any, ...], Sequence[int]]:
        """Return the entries of some lists, and the ids that name the lines.

        Args:
            ids: of the lists.
            names: the ids as in the file, texts or integers.
            lines: where the lists begin.
            by_text: whether `ids` number the texts in `names`, as these appear.
            whole: whether there are no other lists.

        Raises:
            DataError: if a list has none, or it is ambiguous which one it has.
        """
        entries, first, keys = self.sentences.lines, self.first_id, list(map(id_key, names))
        if isinstance(entries, Mapping):
            keys = [k if by_text or k in entries else i for k, i in zip(keys, ids, strict=True)]
            self._used.update(entries.keys() & set(keys))
            self._check_forms(of for of in zip(keys, names, lines, strict=True) if of[0] in entries)
            return tuple(entries.get(key, ()) for key in keys), ids
        if by_text and ids:
            ids = self._find_lines(names, lines, whole) or ids
        self._least = min([self._least, *ids])
        for number, line in zip(ids, lines, strict=True):
            if not first <= number < first + len(entries):
                raise self._no_entry(number, line)
        paired = tuple(entries[number - first] for number in ids)
        room = max(0, _CHECKED - len(self._joined))
        self._joined += zip(keys, map(_first_text, paired[:room]), strict=False)
        return paired, ids

    def _find_lines(self, names: Sequence[str], lines: Sequence[int], whole: bool) -> list[int]:
        """Return the numbers of lines that ids are, as texts; none if they are other texts."""
        keys = list(map(id_key, names))
        numeric = [isinstance(key, int) for key in keys]
        if self._by_value is None:
            self._by_value = numeric[0]
        if not self._by_value:
            self._names += names
            return []
        if not all(numeric):
            place = numeric.index(False)
            odd = f"the id {quote(names[place])} is not an integer, as others are"
            raise self._ambiguity_error(odd, lines[place])
        self._check_forms(zip(keys, names, lines, strict=True))
        least = min(keys)
        if whole and sorted(keys) == list(range(least, least + len(self.sentences.lines))):
            return [key - least + self.first_id for key in keys]
        return keys

    def notes(self, count: int, *, scattered: bool) -> Iterator[str]:
        """Yield one sentence for each thing that looks wrong.

        Args:
            count: the number of sentences.
            scattered: whether the rows of a sentence are not adjacent.

        Raises:
            DataError: if no list has an entry, or the ids do not show which list it belongs to.
        """
        entries, origin = self.sentences.lines, self.sentences.origin
        if isinstance(entries, Mapping):
            if not self._used:
                raise explain_foreign_ids(self.origin, origin, entries)
            if others := [key for key in entries if key not in self._used]:
                absent = f"no list for {len(others)} of {len(entries)} ids in {origin}"
                yield f"{absent}, the first of them {quote(others[0])}"
            return
        yield from self._notes_on_texts()
        if self._least == self.first_id + 1:
            yield f"no list for the first {self.what}, id {self.first_id}: {self._if_counted}"
        elif not self._names and len(entries) > count > 0:
            lists = f"lists for {format_count(count, 'sentence')}, but {origin} has {len(entries)}"
            yield f"{lists} {self.what}s: the others are not used"
        if not self._names:
            return
        in_order = self._names == sorted(self._names, key=natural_order)
        if len(entries) != count:
            reason = f"the ids are texts, {count}, and {origin} has {len(entries)} lines"
            raise self._ambiguity_error(reason)
        if scattered and not in_order:
            raise self._ambiguity_error(
                "the ids are texts, not in order, and their rows are not adjacent"
            )
        ends = quote(self._names[0]), quote(self._names[-1])
        order = f"the {self.what}s in {origin} are paired in the order in which ids appear, "
        order += f"{ends[0]} with line 1, …, {ends[1]} with line {count}"
        if in_order:
            log_info(f"{self.origin}: {order}")
        else:
            yield f"{order}: check this, or {self._remedy}"

    def _notes_on_texts(self) -> Iterator[str]:
        """Refuse texts most of which have ids of lists in them; note items of a list.

        Texts may begin with numbers, but not most of them with their own, or with different ones.
        """
        for where, id_in in {"begin with": _id_before, "end with": _id_after}.items():
            words, count = self._ids_in_texts(id_in)
            if words:
                problem = f"{len(words)} of {count} {self.what}s {where} ids of lists, such as "
                problem += f"{quote(str(words[0]))}: remove the ids, or {self._remedy}"
                raise self._error(problem, path=self.sentences.origin, code="mismatch")
        if words := self._ids_in_texts(_item_before)[0]:
            items = f"the {self.what}s in {self.sentences.origin} begin with items of a list, such "
            items += f"as '{words[0]}.', which belong to the texts: if they are ids, remove them"
            yield items

    def _ids_in_texts(self, id_in: Callable[[str], Any]) -> tuple[list[Any], int]:
        """Return the ids of lists in the first texts if most have one, and the number of texts."""
        texts = list(filter(None, map(_first_text, islice(self.sentences.lines, _CHECKED))))
        ids, count = {key for key, _ in self._joined}, len(texts)
        words = [word for text in texts if (word := id_in(text)) in ids]
        own = sum(id_in(text) == key for key, text in self._joined)
        distinct, names = len(set(words)), [word for word in words if isinstance(word, str)]
        likely = count > 2 and distinct >= _MOST * count
        likely |= 2 * own >= count and (own > 1 or any(map(str.isdigit, "".join(names))))
        likely |= len(names) > 1 and 2 * distinct >= count
        return words if likely else [], count

    def _check_forms(self, lists: Iterable[tuple[Any, Any, int]]) -> None:
        """Refuse lists whose ids are one number written in two ways, and would have one entry."""
        for key, name, line in lists:
            if other := find_other_form(self._forms, key, name):
                raise self._error(describe_equal_ids(name, other), line, code="duplicate")

    def _no_entry(self, number: int, line: int) -> DataError:
        """Return the error of an id beyond the lines."""
        first, end = self.first_id, self.first_id + len(self.sentences.lines)
        problem = f"no {self.what} for sentence id {number}: {self.sentences.origin} has "
        problem += f"{end - first} lines, for ids {first} to {end - 1}; "
        if number == end and self._least != first:
            return self._error(problem + self._if_counted, line, parameter="first_id")
        problem += f"give the {self.what}s of the same text"
        problem += f", or {self._remedy}" if self._by_value else ""
        return self._error(problem, line)

    def _ambiguity_error(self, reason: str, line: int | None = None) -> DataError:
        """Return the error of ids that do not show which line belongs to which list."""
        problem = f"{reason}, so it is not known which {self.what} belongs to which list"
        return self._error(f"{problem}: {self._remedy}", line)

    def _error(self, problem: str, line: int | None = None, **options: Any) -> DataError:
        """Return an error about the parameter, and the n-best file, unless others are named."""
        names = {"path": self.origin, "parameter": f"{self.what}s", **options}
        return DataError(problem, line=line, **names)


def _first_text(entry: str | Sequence[str]) -> str:
    """Return a source, or the first reference of a sentence, without blanks around it."""
    return (entry if isinstance(entry, str) else "".join(entry[:1])).strip()


# References that look wrong.

# Lists needed before references that do not fit them are reported, and those that are compared with
# the references of their neighbours.
_MIN_LISTS, _COMPARED = 10, 200
# By this factor the first candidates fit their references better than those of neighbours: in all
# collections of translations, summaries and transcripts, and in each 10 consecutive lists of them.
_FIT = 1.5
_BETTER = 0.8  # of the lists: if so many fit their own references better, these may all be alike


class ReferenceNotes:
    """Counts references that look wrong.

    Args:
        origin: the name of the file of references.
    """

    def __init__(self, origin: str):
        self.origin = origin
        self._lists = self._strange = 0
        self._words = False  # whether a reference is not blank
        self._blank: list[int | str] = []  # ids of sentences
        self._without: list[int | str] = []
        #: How well candidates fit the references before theirs, their own, and those after.
        self._fits: list[list[float]] = []
        #: Unicode forms of the candidates, and of the references.
        self._forms: list[set[Literal["NFC", "NFD"]]] = [{"NFC", "NFD"}, {"NFC", "NFD"}]

    def add(self, lists: NBest, references: Sequence[tuple[str, ...]]) -> None:
        """Count sentences without references, blank ones, and those unlike their lists."""
        self._compare_first(lists, references)
        for place, (identifier, texts) in enumerate(zip(lists.ids, references, strict=True)):
            if not texts:
                self._without.append(identifier)
                continue
            self._lists += 1
            self._words = self._words or any(map(str.strip, texts))
            if not all(map(str.strip, texts)):
                self._blank.append(identifier)
                continue
            index = lists.string_index[lists.offsets[place] : lists.offsets[place + 1]]
            related = {word for text in texts for word in _words(text)}
            self._strange += all(related.isdisjoint(_words(lists.strings[i])) for i in index)

    def _compare_first(self, lists: NBest, references: Sequence[tuple[str, ...]]) -> None:
        """Compare first candidates with the references of their neighbours, and Unicode forms."""
        count = min(len(references), max(0, _COMPARED - len(self._fits)))
        first = [lists.strings[lists.string_index[start]] for start in lists.offsets[:count]]
        for forms, texts in zip(self._forms, (first, chain(*references[:count])), strict=True):
            whole = "\n".join(texts)
            forms -= {form for form in forms if not unicodedata.is_normalized(form, whole)}
        words = [set(_words(text)) for text in first]
        of_references = [[set(_words(text)) for text in texts] for texts in references[:count]]
        for place in range(1, count - 1):
            three = slice(place - 1, place + 2)
            if all(references[three]) and len(set(references[three])) == 3:
                own = words[place]
                fits = [
                    max(_measure_overlap(own, ref) for ref in refs) for refs in of_references[three]
                ]
                self._fits += [fits] if len(set(fits)) > 1 else []

    def notes(self) -> Iterator[str]:
        """Yield one sentence for each thing that looks wrong.

        Raises:
            DataError: if there is no reference with a word.
        """
        if self._blank and not self._words:
            problem = "every reference is blank: give those of this text"
            raise DataError(problem, self.origin, parameter="references", code="missing-references")
        if self._without and self._lists:
            absent = f"no reference for {format_count(len(self._without), 'sentence')}"
            yield f"{absent}, the first of id {self._without[0]}: `adapt` leaves such lists out"
        if self._blank:
            blank = f"{format_count(len(self._blank), 'sentence')} with a blank reference"
            yield f"{blank}, the first of id {self._blank[0]}: a translation without words"
        if self._lists >= _MIN_LISTS and self._strange > self._lists / 2:
            strange = f"{self._strange} of {self._lists} lists have no word in common with their "
            strange += f"references in {self.origin}"
            yield f"{strange}: are they of another text, or of another language?"
        elif self._lists >= _MIN_LISTS and len(self._fits) >= _MIN_LISTS / 2:
            before, own, after = np.mean(self._fits, axis=0)
            better = np.mean([2 * fit > one + other for one, fit, other in self._fits])
            if max(before, after) > _FIT * own:
                side = "before" if before > after else "after"
                fit = f"candidates fit the references of the sentence {side} theirs better than "
                yield f"{fit}their own in {self.origin}: is a line missing, or one too many?"
            elif 2 * own < _FIT * (before + after) and better < _BETTER:
                fit = "candidates fit their own references barely better than those of "
                fit += f"neighbouring sentences in {self.origin}"
                yield f"{fit}: are they in the same order as the lists?"
        if all(self._forms) and self._forms[0].isdisjoint(self._forms[1]):
            (of_candidates,), (of_references,) = self._forms
            differ = f"the references in {self.origin} are {of_references} (Unicode), and the "
            differ += f"candidates {of_candidates}, so their accented letters differ"
            yield f"{differ}: convert both to NFC"


def _measure_overlap(words: set[str], other: set[str]) -> float:
    """Return the share of words in common."""
    return 2 * len(words & other) / max(len(words) + len(other), 1)


def _words(text: str) -> Iterable[str]:
    """Return words in lower case; characters where words are not separated, as in Chinese."""
    folded = text.lower()
    return folded.split() if folded.isascii() or " " in folded.strip() else folded
