"""Lines of fields separated by ` ||| `: their columns, and messages about them.

PyArrow reads long blocks. All their lines must have the columns of the first line of the file, and
sound numbers; `LineParser` reads all other blocks line by line, and says what is wrong with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float32, Int64
from bpa_ppl.errors import quoted
from bpa_ppl.formats.block import ID, TEXT, TOTAL, Block, ReadOptions
from bpa_ppl.formats.streams import decoded, line_count
from bpa_ppl.formats.values import all_finite, csv_columns, looks_numeric, values_of
from bpa_ppl.names import expand, one_number, other_form
from bpa_ppl.notes import counted, warn_user

#: One line of the format, for messages.
SHAPE = "`id ||| text ||| Name0= value … ||| total`"
SEPARATOR = re.compile(rb" \|\|\|(?= |$)")
# Labels do not begin with a digit, or `3=3` of a segmentation would be one.
FEATURES = re.compile(rb" *[^\s\d=|][^\s=]*=")
WORD_SCORES = b"WordScores="
_POSITIONS = re.compile(rb" *\d+[-=:][\d=: -]*")
SEGMENTATION, ALIGNMENT = "segmentation", "alignment"
EXAMPLES = {SEGMENTATION: "0-2=0-2 3=3", ALIGNMENT: "0-0 1-2"}
#: Patterns of fields, for the engines of Python and of Arrow. Soft alignments have a vector for
#: each word.
_FIELDS = {
    SEGMENTATION: r" *(?:\d+(?:-\d+)?=\d+(?:-\d+)?(?: +|$))*",
    ALIGNMENT: r" *(?:\d+-\d+(?: +|$))*",
}
_SOFT = r" *(?:[\d.eE+-]+(?:,[\d.eE+-]+)*(?: +|$))*"
_LEFT_OUT, _UNKNOWN = "", "?"
_AFTER = "fields after the scores"
_SCORES_OF_WORDS = "WordScores, which has a value for each word,"
_ABSENT = ": print a feature that is absent with the value 0, or write JSON lines"
_LONGEST_ID = 18  # digits that fit 64 bits
# Up to this number of bytes in a first block, loading Arrow takes longer than it saves.
_ARROW_FROM = 1 << 20
_HALVED_ABOVE = 1 << 16  # bytes of a block in which Arrow cannot read a line
_NEWLINE, _SPACE, _BAR = b"\n |"
_LARGEST = 2**31 - 1  # bytes that Arrow addresses in an array of texts


@dataclass(frozen=True)
class Layout:
    """The columns of a file, as its first lines show them.

    Attributes:
        shape: (label, number of values) of each label, in order.
        has_total: whether the total score follows the features.
        between: the fields between the text and the features: the names under which they are
            kept, or "" for one that is left out.
        after: the same for the fields after the scores.
    """

    shape: tuple[tuple[str, int], ...]
    has_total: bool
    between: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, one per column."""
        return tuple(name for label, count in self.shape for name in expand(label, count))

    def hypotheses(
        self, texts: npt.NDArray[Any], values: Iterable[Float32], extras: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return columns by name.

        Args:
            texts: (lines,) the numbers of the texts.
            values: columns of numbers, the total last.
            extras: the fields that are kept, by name.
        """
        numbers = zip((*self.names, TOTAL), values, strict=False)
        return {TEXT: np.asarray(texts, np.int32), **dict(numbers), **extras}

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the extras, in the order of their fields."""
        return tuple(name for name in (*self.between, *self.after) if name)


class Fields(NamedTuple):
    """One line cut at its separators: id, text and others, features, and what follows."""

    id: bytes
    middle: list[bytes]
    features: bytes
    after: list[bytes]


class LineParser:
    """Reads lines that all have the columns of the first one.

    Args:
        options: how to read.
        first: the first lines of the file, which show the columns.
        soft: whether a field between text and features may be a soft alignment, as of Marian.

    Attributes:
        layout: the columns.

    Raises:
        DataError: with file and line, if the first line is not as it should be.
    """

    def __init__(self, options: ReadOptions, first: bytes, soft: bool = False):
        self.options = options
        self.error = options.error
        self.soft = soft
        self._read_by_arrow = False
        self._warned: set[str] = set()
        self._ids: dict[int, str] = {}  # as they are printed
        self.layout = self._layout(split_lines(first))
        names, reserved = self.layout.names, {TEXT, TOTAL, *self.layout.kept}
        if len(set(names)) < len(names):
            raise self.error("two features have the same name: rename one", 1, "duplicate")
        if odd := reserved.intersection(names):
            problem = f"a feature is called {min(odd)}, which has another meaning: rename it"
            raise self.error(problem, 1, "bad-name")

    def columns(self, block: bytes, first: int) -> Iterator[Block]:
        """Yield the columns of a block, in parts.

        Long blocks are read by Arrow; one with a line that is not as the first line is halved.

        Args:
            block: lines, each ended by a newline.
            first: the number of its first line in the file.

        Raises:
            DataError: with file and line, if a line does not have the columns of the first one, or
                a value is not a finite number.
        """
        self._read_by_arrow |= len(block) >= _ARROW_FROM
        if self._read_by_arrow and len(block) > _HALVED_ABOVE:
            columns = regular_columns(block, first, self.layout, self.soft, self._ids)
            middle = block.find(b"\n", len(block) // 2) + 1
            if columns is not None:
                yield columns
                return
            if middle < len(block):
                yield from self.columns(block[:middle], first)
                yield from self.columns(block[middle:], first + line_count(block[:middle]))
                return
        yield self._columns_of(split_lines(block), first)

    def _columns_of(self, lines: list[bytes], first: int) -> Block:
        numbers = range(first, first + len(lines))
        pairs = zip(lines, numbers, strict=True)
        ids, texts, tokens, kept = zip(*(self._row(*pair) for pair in pairs), strict=True)
        values = all_finite(list(chain.from_iterable(tokens)))
        if values is None:
            rows = zip(tokens, numbers, strict=True)
            values = np.array([self.options.number(v, n) for of_line, n in rows for v in of_line])
        with np.errstate(over="ignore"):
            table = values.astype(np.float32).reshape(len(lines), -1)
        extras = dict(zip(self.layout.kept, map(list, zip(*kept, strict=True)), strict=True))
        places = np.arange(len(lines))
        hypotheses = self.layout.hypotheses(places, table.T, extras)
        origin, pairs = self.options.origin, zip(texts, numbers, strict=True)
        strings = [decoded(text, origin, number).strip(" ") for text, number in pairs]
        return Block(
            hypotheses,
            {ID: np.array(ids)},
            places,
            first + places,
            any_order=False,
            strings=strings,
        )

    def _row(self, line: bytes, number: int) -> tuple[int, bytes, list[bytes], list[str]]:
        """Return the id, the text, the tokens of numbers, and the extras."""
        fields = self._fields(line, number)
        identifier = id_of(fields.id)
        if identifier is None:
            digits = quoted(fields.id.strip())
            problem = f"sentence id {digits} is not an integer of up to {_LONGEST_ID} digits"
            raise self.error(f"{problem}: a line must read {SHAPE}", number)
        digits = fields.id.strip().decode()
        if other := other_form(self._ids, identifier, digits):
            raise self.error(one_number(digits, other), number, "duplicate")
        text = self._text(fields, number)
        counts, values = self._features(fields.features, number)
        if tuple(counts.items()) != self.layout.shape:
            raise self.error(_difference(counts, dict(self.layout.shape)), number, "mismatch")
        values += self._total(fields, number)
        return identifier, text, values, self._extras(fields, number)

    def _fields(self, line: bytes, number: int) -> Fields:
        """Cut a line: the id from the left, the features by content, from the right."""
        fields = SEPARATOR.split(line)
        at = max((i for i, f in enumerate(fields) if i > 1 and FEATURES.match(f)), default=0)
        if not at:
            few = len(fields) < 3
            problem = f"only {counted(len(fields), 'field')}" if few else "no feature field"
            raise self.error(f"{problem}, but a line must read {SHAPE}", number)
        return Fields(fields[0], fields[1:at], fields[at], fields[at + 1 :])

    def _layout(self, lines: list[bytes]) -> Layout:
        """Return the columns that the first line shows; later lines show what empty fields are."""
        fields = self._fields(lines[0], 1)
        shape = tuple(self._features(fields.features, 1)[0].items())
        if not shape:
            raise self.error(f"no features but word scores: a line must read {SHAPE}", 1)
        middle = fields.middle
        has_total = bool(fields.after) and not _POSITIONS.fullmatch(fields.after[0])
        if not fields.after and len(middle) > 1 and looks_numeric(middle[-1]):
            raise self.error(f"a number before the features: a line must read {SHAPE}", 1)
        asides = 0
        while asides + 1 < len(middle) and self._is_aside(middle[-1 - asides]):
            asides += 1
        kinds = [self._kind(field) for field in middle[len(middle) - asides :]]
        kinds += self._kinds_after(int(has_total), lines)
        once = tuple(k if k in _FIELDS and kinds.index(k) == i else "" for i, k in enumerate(kinds))
        layout = Layout(shape, has_total, once[:asides], once[asides:])
        for what, left_out in (
            ("fields between the text and the features", not all(layout.between)),
            (_AFTER, not all(layout.after)),
        ):
            if left_out:
                self._leave_out(what)
        return layout

    def _kinds_after(self, start: int, lines: list[bytes]) -> list[str]:
        """Return the kind of each field after the scores; of an empty one, what later lines say."""
        kinds = [self._kind(field) for field in self._fields(lines[0], 1).after[start:]]
        for number, line in enumerate(lines if _UNKNOWN in kinds else (), 1):
            found = map(self._kind, self._fields(line, number).after[start:])
            pairs = zip_longest(kinds, list(found)[: len(kinds)], fillvalue=_UNKNOWN)
            kinds = [new if kind == _UNKNOWN else kind for kind, new in pairs]
        return kinds

    def _kind(self, field: bytes) -> str:
        """Return the name under which a field is kept, "?" if it is empty, "" to leave it out."""
        if not field.strip(b" "):
            return _UNKNOWN
        return next((name for name in _FIELDS if fits(field, name, self.soft)), _LEFT_OUT)

    def _is_aside(self, field: bytes) -> bool:
        """Return whether a field between text and features is not a part of the text."""
        is_alignment = _POSITIONS.fullmatch(field) or field.lstrip(b" ").startswith(WORD_SCORES)
        return bool(is_alignment) or (self.soft and self._kind(field) == ALIGNMENT)

    def _extras(self, fields: Fields, number: int) -> list[str]:
        """Return the fields that are kept, as printed, without spaces around them."""
        layout = self.layout
        between = fields.middle[len(fields.middle) - len(layout.between) :]
        after = fields.after[int(layout.has_total) :]
        if any(layout.after) and len(after) != len(layout.after):
            problem = f"{len(after)} {_AFTER}, but the first line has {len(layout.after)}"
            raise self.error(problem, number)
        named = list(zip((*layout.between, *layout.after), (*between, *after), strict=False))
        for name, field in named:
            if name and not fits(field, name, self.soft):
                problem = f"{quoted(field.strip())} is not the {name} that the first line has there"
                raise self.error(f"{problem}, such as `{EXAMPLES[name]}`", number)
        if len(after) > sum(map(bool, layout.after)):
            self._leave_out(_AFTER)
        return [field.strip(b" ").decode("ascii") for name, field in named if name]

    def _text(self, fields: Fields, number: int) -> bytes:
        """Return the text, which may have separators inside."""
        expected = len(self.layout.between)
        end = len(fields.middle) - expected
        between = fields.middle[end:]
        if end < 1 or not all(self._is_aside(field) or not field.strip() for field in between):
            problem = f"no {expected} alignment or word-score fields before the features"
            raise self.error(f"{problem}, but the first line has them", number)
        if end > 1 and self._is_aside(fields.middle[end - 1]):
            problem = "an alignment or word-score field, but the first line has none there"
            raise self.error(problem, number)
        return b" |||".join(fields.middle[:end])

    def _total(self, fields: Fields, number: int) -> list[bytes]:
        """Return the total score as printed, if there is one."""
        if self.layout.has_total:
            if not fields.after:
                raise self.error("no total score, but the first line has one", number)
            return [fields.after[0].strip()]
        if fields.after and looks_numeric(fields.after[0]):
            raise self.error("a total score, but the first line has none", number)
        return []

    def _features(self, field: bytes, number: int) -> tuple[dict[str, int], list[bytes]]:
        """Return the number of values of each label, and all values as printed."""
        counts: dict[str, int] = {}
        values: list[bytes] = []
        label, left_out = "", False
        for token in field.split():
            printed, equals, value = token.rpartition(b"=")
            if equals:
                left_out = printed + equals == WORD_SCORES
            if left_out:
                self._leave_out(_SCORES_OF_WORDS)
                continue
            if equals:
                label = decoded(printed, self.options.origin, number)
                if not label:
                    raise self.error("a feature has no name before its `=`", number)
                if label in counts:
                    problem = f"{label}= occurs twice in the line: rename one"
                    raise self.error(problem, number, "duplicate")
                counts[label] = 0
            if not label:
                problem = f"{quoted(field.strip())} is not a list of features"
                raise self.error(f"{problem}: a line must read {SHAPE}", number)
            if value:
                counts[label] += 1
                values.append(value)
        for label, count in counts.items():
            if not count:
                raise self.error(f"{label}= has no value after it", number)
        return counts, values

    def _leave_out(self, what: str) -> None:
        """Warn once per file about what is not read."""
        if what not in self._warned:
            self._warned.add(what)
            warn_user(f"{self.options.origin}: {what} left out")


def regular_columns(
    block: bytes, first: int, layout: Layout, soft: bool, forms: dict[int, str] | None = None
) -> Block | None:
    r"""Return the columns of a block; None if a line is not as the first line of the file.

    Args:
        block: lines, each ended by a newline.
        first: the number of its first line.
        layout: the columns that the first line of the file shows.
        soft: whether an alignment before the features may have a vector for each word.
        forms: the ids before, as they are printed; entered here.

    >>> layout = Layout((("LM0", 1),), True)
    >>> columns = regular_columns(b"3 ||| a cat ||| LM0= -1 ||| -2\n", 1, layout, False)
    >>> columns.sentences, columns.candidates["LM0"].tolist(), columns.strings
    ({'id': array([3])}, [-1.0], ['a cat'])
    """
    import pyarrow as pa

    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if b"\r" in block or len(block) > _LARGEST:
        return None
    try:
        return _columns(block, first, layout, soft, {} if forms is None else forms)
    except (pa.ArrowException, ValueError):
        return None


def _columns(block: bytes, first: int, layout: Layout, soft: bool, forms: dict[int, str]) -> Block:
    """Return the columns of a block, or raise a ValueError or an error of Arrow."""
    import pyarrow.compute as pc

    scores = 2 + len(layout.between)
    after = scores + 1 + layout.has_total
    starts, ends = _field_bounds(block, after + len(layout.after))

    def cells(field: int) -> Any:
        return _texts(block, starts[field], ends[field])

    ids, texts = cells(0).dictionary_encode(), cells(1).dictionary_encode()
    numbers = [id_of(text.encode()) for text in ids.dictionary.to_pylist()]
    if None in numbers:
        raise ValueError("not an id")
    printed = zip(numbers, ids.dictionary.to_pylist(), strict=True)
    if any(other_form(forms, number, text.strip()) for number, text in printed):
        raise ValueError("an id in another form")
    codes: Any = block
    if layout.after:
        codes = np.frombuffer(block, np.uint8).copy()
        codes[ends[after - 1]] = _NEWLINE
    lines = _texts(codes, starts[scores], ends[after - 1] + 1).buffers()[2]
    columns = _values(lines, layout)
    values = np.empty((len(columns), len(texts)), np.float32)
    with np.errstate(over="ignore"):
        for row, column in zip(values, columns, strict=True):
            row[:] = column
    if not np.all(np.isfinite(values)):
        raise ValueError("not a finite number")
    # The first field after the scores is not a total where the first line has none.
    rest = r"[^\s=]*(?:\s.*)?|[\d=|].*" if layout.has_total else r"[^=.\d]*"
    extras = {}
    for place, name in chain(enumerate(layout.between, 2), enumerate(layout.after, after)):
        is_before = place < scores
        other = f"{WORD_SCORES.decode()}.*" if is_before else rest
        pattern = pattern_of(name, soft and is_before) if name else other
        column = pc.utf8_trim(cells(place), " ")
        if not pc.all(pc.match_substring_regex(column, f"^(?:{pattern})$")).as_py():
            raise ValueError("another field")
        if name:
            extras[name] = column.to_pylist()
    strings = [text.strip(" ") for text in texts.dictionary.to_pylist()]
    of_lines = np.array(numbers, np.int64)[values_of(ids.indices)]
    places = np.arange(len(of_lines))
    hypotheses = layout.hypotheses(values_of(texts.indices), values, extras)
    return Block(
        hypotheses, {ID: of_lines}, places, first + places, any_order=False, strings=strings
    )


def _field_bounds(block: bytes, width: int) -> tuple[Int64, Int64]:
    """Return (fields, lines) where the fields begin, and where they end."""
    codes = np.frombuffer(block, np.uint8)
    newlines = np.flatnonzero(codes == _NEWLINE)
    bars = np.flatnonzero(codes == _BAR)
    first = bars[::3]
    if len(bars) % 3 or np.any(bars[2::3] - first != 2):  # some are in texts
        first = bars[codes[bars + 1] == _BAR]
        first = first[codes[first + 2] == _BAR]
    before, after = codes[first - 1], codes[first + 3]
    first = first[(before == _SPACE) & ((after == _SPACE) | (after == _NEWLINE))]
    separators = first.reshape(len(newlines), width - 1).T
    begin = np.append(0, newlines[:-1] + 1)
    if np.any(separators[0] < begin) or np.any(separators[-1] > newlines):
        raise ValueError("other fields")
    ends = np.vstack([separators - 1, newlines])
    return np.vstack([begin, np.minimum(separators + 4, ends[1:])]), ends


def _texts(block: Any, starts: Int64, ends: Int64) -> Any:
    """Return an array of Arrow with parts of a block."""
    import pyarrow as pa

    bounds = np.append(np.column_stack([starts, ends]), len(block)).astype(np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(block)]
    every = pa.Array.from_buffers(pa.string(), len(bounds) - 1, buffers)
    places = pa.py_buffer(np.arange(0, len(every), 2))
    return every.take(pa.Array.from_buffers(pa.int64(), len(starts), [None, places]))


def _values(data: Any, layout: Layout) -> list[npt.NDArray[np.float64]]:
    """Return the columns of values, the total last, if all lines have the same labels."""
    import pyarrow as pa

    tokens: list[bytes | None] = []
    for label, count in layout.shape:
        tokens += [f"{label}=".encode(), *[None] * count]
    tokens += [b"|||", None] if layout.has_total else []
    try:
        return _numbers(data, tokens)
    except (pa.ArrowException, ValueError):  # values glued to labels, or several spaces
        lines = data.to_pybytes().replace(b"=", b"= ").split(b"\n")
        return _numbers(b"\n".join(b" ".join(line.split()) for line in lines), tokens)


def _numbers(data: Any, tokens: Sequence[bytes | None]) -> list[npt.NDArray[np.float64]]:
    """Return the columns of numbers in lines of tokens; of all others the text is given."""
    import pyarrow as pa

    types = [pa.float64() if token is None else pa.binary(len(token)) for token in tokens]
    columns = []
    for token, column in zip(tokens, csv_columns(data, types), strict=True):
        if token is None:
            columns.append(values_of(column))
        elif not column.buffers()[1].equals(pa.py_buffer(token * len(column))):
            raise ValueError("other labels")
    return columns


def id_of(field: bytes) -> int | None:
    """Return the id of a sentence as an integer, or None if it is no such number.

    >>> id_of(b" 007 "), id_of(b"-1")
    (7, None)
    """
    digits = field.strip()
    return int(digits) if digits.isdigit() and len(digits) <= _LONGEST_ID else None


def split_lines(block: bytes) -> list[bytes]:
    r"""Return the lines of a block, without their ends (`\n` or `\r\n`).

    >>> split_lines(b"0 ||| a\r\n0 ||| b\n")
    [b'0 ||| a', b'0 ||| b']
    """
    lines = block[:-1].split(b"\n")
    return [line.rstrip(b"\r") for line in lines] if b"\r" in block else lines


def fits(field: bytes, name: str, soft: bool = False) -> bool:
    """Return whether a field is a segmentation or an alignment; an empty one is both.

    Args:
        field: as printed.
        name: "segmentation" or "alignment".
        soft: whether an alignment may have a vector for each word.

    >>> fits(b"0-2=0-2 3=3", "segmentation"), fits(b"0-2=0-2", "alignment")
    (True, False)
    """
    return re.fullmatch(pattern_of(name, soft), field.decode("latin-1"), re.ASCII) is not None


def pattern_of(name: str, soft: bool = False) -> str:
    """Return a pattern of the fields that are a segmentation or an alignment, as `fits`."""
    return _SOFT if soft and name == ALIGNMENT else _FIELDS[name]


def _difference(found: dict[str, int], expected: dict[str, int]) -> str:
    """Return how the labels of a line differ from those of the first line."""
    for label in {**expected, **found}:
        count, usual = found.get(label, 0), expected.get(label, 0)
        if count != usual:
            advice = "" if count and usual else _ABSENT
            return f"{label}= has {count} values, but in the first line {usual}{advice}"
    return "the features are in another order than in the first line"
