"""N-best lists of Moses, `id ||| text ||| Name0= v v … ||| total`, and of Marian.

The options -n-best-list-include-segmentation and -print-alignment-info-in-n-best of Moses add the
fields `||| 0-2=0-2 3=3 ||| 0-0 1-2`, which become the extras `segmentation` and `alignment`, as
printed. The same reader accepts variants of the format: labels without a blank (`F0=-1.5`), no
total, the total before the features, alignments or word scores between text and features.

Marian prints a label for each scorer of an ensemble, `F0= v F1= v`, without the blank if there is
only one scorer (`F0=-1.2`). `--alignment` adds a field between text and features, which becomes the
extra `alignment`: hard (`0-0 1-2`) or soft (a vector of the source positions for each word,
`0.9,0.1 0.2,0.8`). `--word-scores` adds `WordScores=` with a value for each word, which is left out
with a warning.

PyArrow reads the blocks of long files, if all lines of a block have the columns of the first line
of the file, and sound numbers. `LineParser` reads all other lines, and says what is wrong with
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, takewhile
from typing import Any, ClassVar, NamedTuple, TextIO

import numpy as np

from bpa_ppl._runtime.arrays import LARGEST, Float64, Int64, are_finite
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.streams import InputFile, decode
from bpa_ppl._runtime.values import (
    format_numbers,
    from_arrow,
    looks_numeric,
    read_csv_columns,
    to_numpy,
)
from bpa_ppl.errors import DataError, UsageError, bad_value, list_names, locate, quote
from bpa_ppl.formats.block import ID, TEXT, TOTAL, Block
from bpa_ppl.formats.format import NBestFormat
from bpa_ppl.formats.schema import Schema
from bpa_ppl.formats.writing import require_plain_texts, warn_about_ids
from bpa_ppl.lists.labels import count_by_label, expand
from bpa_ppl.lists.nbest import NBest

_SCORE = re.compile(rb"F(\d{1,9})= ?[^\s=]+")
#: One line of the format, for messages.
SHAPE = "`id ||| text ||| Name0= value … ||| total`"
_SEPARATOR = re.compile(rb" \|\|\|(?= |$)")
# Labels do not begin with a digit, or `3=3` of a segmentation would be one.
_FEATURES = re.compile(rb" *[^\s\d=|][^\s=]*=")
_LABEL = re.compile(rb"(?:^|(?<=\s))(\S*)=")
_WORD_SCORES = "WordScores"
_POSITIONS = re.compile(rb" *\d+[-=:][\d=: -]*")
_SEGMENTATION, _ALIGNMENT = "segmentation", "alignment"
_EXAMPLES = {_SEGMENTATION: "0-2=0-2 3=3", _ALIGNMENT: "0-0 1-2"}
#: Patterns of the fields that are kept, for the engines of Python and of Arrow.
_HARD = {
    _SEGMENTATION: rb" *(?:\d+(?:-\d+)?=\d+(?:-\d+)?(?: +|$))*",
    _ALIGNMENT: rb" *(?:\d+-\d+(?: +|$))*",
}
#: The same with soft alignments, which have a vector for each word.
_SOFT = _HARD | {_ALIGNMENT: rb" *(?:[\d.eE+-]+(?:,[\d.eE+-]+)*(?: +|$))*"}
_LEFT_OUT = ""
_VALUE = b""  # among the tokens of a line, which are labels otherwise
_BETWEEN, _AFTER = "fields between the text and the features", "fields after the scores"
_ABSENT = ": print a feature that is absent with the value 0, or write JSON lines"
_LONGEST_ID = 18  # digits that fit 64 bits
# Up to this number of bytes in a first block, loading Arrow takes longer than it saves.
_ARROW_FROM = 1 << 20
_CELL = b"\x1f"  # in place of separators: the unit separator of ASCII
_NEWLINE, _SPACE, _BAR = b"\n |"
_BOM = b"\xef\xbb\xbf"


class Moses(NBestFormat, frozen=True):
    """The format of Moses and its variants; lists are written as Moses prints them."""

    any_order: ClassVar[bool] = False

    def detect(self, first_line: bytes) -> bool:
        """Return whether the first line of a file looks like this format.

        >>> Moses().detect(b"0 ||| a cat ||| LM0= -1 ||| -1"), Moses().detect(b'{"id": 0}')
        (True, False)
        """
        return _SEPARATOR.search(first_line) is not None

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        r"""Yield the columns of each block of lines.

        >>> file = InputFile(b"0 ||| a cat ||| TM0= -1 0.5 ||| -1")
        >>> columns = next(Moses().blocks(file, Schema("dev")))
        >>> columns.candidates["TM0[1]"].tolist(), columns.candidates["text"]
        ([0.5], ['a cat'])
        """
        return _read_lines(file, schema)

    def write(self, lists: NBest, file: TextIO) -> None:
        """Write the lists, with their totals and positions if they have any.

        Raises:
            DataError: if a name, a text or a position would be ambiguous in the format.
            UsageError: if an empty segmentation or alignment would be read as the total.

        >>> from bpa_ppl import from_lists
        >>> import sys
        >>> lists = from_lists([["a cat"]], [[[-1, 0.5]]], ["TM0[0]", "TM0[1]"])
        >>> Moses().write(lists, sys.stdout)
        0 ||| a cat ||| TM0= -1 0.5
        """
        after = _select_positions(lists, [_SEGMENTATION, _ALIGNMENT], _HARD)
        if lists.totals is None and any(column[:1] == ("",) for column in after[:1]):
            problem = (
                f"without totals an empty {_SEGMENTATION} or {_ALIGNMENT} would be read as one"
            )
            advice = "write the lists with weights, which adds totals"
            raise UsageError(f"{lists.origin}: {problem}: {advice}", parameter="weights")
        _write_lines(lists, file, _moses_labels(lists), after=after)


class Marian(NBestFormat, frozen=True):
    """The format of Marian, as `marian-decoder --n-best` prints it.

    The last field is the score by which Marian ranks: the weighted sum of the features, with
    `--normalize` divided by a power of the length. A file does not show which of the two it is.

    Attributes:
        normalised: whether the totals may be divided by a length. If not, λ·h is compared with the
            totals when weights are adapted.
    """

    any_order: ClassVar[bool] = False

    normalised: bool = True

    def divides_totals(self) -> bool:
        return self.normalised

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line has the labels F0, F1, … and no others, as only Marian prints.

        >>> Marian().detect(b"0 ||| a cat ||| F0= -1 F1= -2 ||| -0.75")
        True
        >>> Marian().detect(b"0 ||| a cat ||| LM0= -1 ||| -1")
        False
        """
        fields = _SEPARATOR.split(first_line.rstrip(b"\r"))
        scores = fields[-2].strip() if len(fields) > 3 else b""
        numbers = [int(number) for number in _SCORE.findall(scores)]
        rest = _SCORE.sub(b"", scores).strip()
        return not rest and bool(numbers) and numbers == list(range(len(numbers)))

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        r"""Yield the columns of each block of lines.

        >>> file = InputFile(b"0 ||| a cat ||| 0-0 1-1 ||| F0= -3 F1= -2 ||| -1.25")
        >>> columns = next(Marian().blocks(file, Schema("dev")))
        >>> columns.candidates["alignment"]
        ['0-0 1-1']
        """
        return _read_lines(file, schema, _SOFT)

    def write(self, lists: NBest, file: TextIO) -> None:
        """Write the lists as Marian does, with alignments and totals if they have any.

        >>> from bpa_ppl import from_lists
        >>> import sys
        >>> lists = from_lists([["a cat"]], [[[-3, -2]]], ["F0", "F1"], totals=[[-1.25]])
        >>> Marian().write(lists, sys.stdout)
        0 ||| a cat ||| F0= -3 F1= -2 ||| -1.25
        """
        alignments = _select_positions(lists, [_ALIGNMENT], _SOFT)
        _write_lines(lists, file, _plain_labels(lists), between=alignments)


def _write_lines(
    lists: NBest,
    file: TextIO,
    labels: list[str],
    between: Sequence[Sequence[str]] = (),
    after: Sequence[Sequence[str]] = (),
) -> None:
    """Write one line per candidate.

    Args:
        lists: the lists.
        file: where to write.
        labels: the text before the value of each feature.
        between: columns of fields to write before the features.
        after: columns of fields to write after the total.

    Raises:
        DataError: if there is no feature, or a text would not read back.
    """
    if not labels:
        message = "no feature, which this format needs: write jsonl"
        raise DataError(message, lists.origin, code="not-supported")
    require_plain_texts(lists, blanks=False)
    warn_about_ids(lists)
    for sentence, identifier in enumerate(lists.sentence_ids):
        rows = lists.rows(sentence)
        values = [format_numbers(column, json=False) for column in lists.features[rows].T]
        scores = [" ".join(map(str.__add__, labels, of)) for of in zip(*values, strict=True)]
        totals = [] if lists.totals is None else [format_numbers(lists.totals[rows], json=False)]
        first_columns = [lists.texts(sentence), *(column[rows] for column in between)]
        columns = [*first_columns, scores, *totals, *(column[rows] for column in after)]
        for fields in zip(*columns, strict=True):
            file.write(f"{identifier} ||| {' ||| '.join(fields)}\n")


def _select_positions(
    lists: NBest, names: Sequence[str], patterns: Mapping[str, bytes]
) -> list[tuple[str, ...]]:
    """Return the segmentations or alignments of all candidates, if there are any.

    Args:
        lists: the lists.
        names: the names of the extras, "segmentation" or "alignment".
        patterns: the regular expression that each extra must match, by name.

    Raises:
        DataError: if a segmentation or alignment does not match.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"]], [[[-1]]], ["LM0"], extras={"alignment": [["0-0"]]})
    >>> _select_positions(lists, ["segmentation", "alignment"], _HARD)
    [('0-0',)]
    """
    columns = {name: tuple(lists.extras[name]) for name in names if name in lists.extras}
    for name, column in columns.items():
        for row, field in enumerate(column):
            text = field if isinstance(field, str) else "?"
            if text != text.strip(" ") or not re.fullmatch(patterns[name], text.encode()):
                sentence = int(np.searchsorted(lists.offsets, row, side="right")) - 1
                identifier = lists.sentence_ids[sentence]
                where, example = f"the {name} of sentence {identifier}", f"like `{_EXAMPLES[name]}`"
                remedy = f"correct it, or leave it out with without({name!r})"
                about = (where, field, example, lists.origin)
                raise bad_value(*about, remedy=remedy, code="not-supported")
    return list(columns.values())


def _moses_labels(lists: NBest) -> list[str]:
    """Return the text before the value of each column, with `.` for `_` in names, as Moses needs.

    Raises:
        DataError: as `_plain_labels`, or if two names become the same.

    >>> from bpa_ppl import from_lists
    >>> _moses_labels(from_lists([["a cat"]], [[[-1, 0.5]]], ["TM0[0]", "TM0[1]"]))
    ['TM0= ', '']
    """
    labels = _plain_labels(lists)
    renamed = [label.replace("_", ".") for label in labels]
    if renamed == labels:
        return labels
    if find_repeated(filter(None, renamed)):
        message = "two features of one name if `_` becomes `.`, as Moses needs: rename one"
        raise DataError(message, lists.origin, code="duplicate")
    names = list_names(sorted({label.strip("= ") for label in labels if "_" in label}))
    warn_user(
        f"{locate(lists.origin)}`_` written as `.` in {names}, because Moses takes a name "
        "with `_` for a sparse feature and leaves it out"
    )
    return renamed


def _plain_labels(lists: NBest) -> list[str]:
    """Return the text before the value of each column: a label, or nothing inside a group.

    Raises:
        DataError: if a name would be ambiguous in the format.

    >>> from bpa_ppl import from_lists
    >>> _plain_labels(from_lists([["a cat"]], [[[-1]]], ["my_lm"]))
    ['my_lm= ']
    """
    shape = count_by_label(lists.feature_names)
    labels = [text for label, count in shape for text in (f"{label}= ", *[""] * (count - 1))]
    names = [label.removesuffix("= ") for label in labels if label]
    bad = [n for n in names if not _FEATURES.fullmatch(f"{n}=".encode())]
    if bad:
        problem = f"{quote(bad[0])} cannot be a Moses label: rename the feature"
        raise DataError(problem, lists.origin, code="bad-name")
    return labels


class _Layout(NamedTuple):
    """The columns of a file, as its first lines show them.

    Attributes:
        labels: the number of values of each label, in order.
        has_total: whether the total score follows the features.
        between: the fields between the text and the features: the names under which they are
            kept, or "" for one that is left out.
        after: the same for the fields after the scores.
    """

    labels: dict[str, int]
    has_total: bool
    between: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def features(self) -> list[str]:
        """The names of the features."""
        return list(chain.from_iterable(expand(*label) for label in self.labels.items()))

    @property
    def kept(self) -> list[str]:
        """The names of the fields that are kept."""
        return [name for name in (*self.between, *self.after) if name]

    def block(self, first: int, ids: Int64, texts: Sequence[str], columns: Iterable[Any]) -> Block:
        """Return the columns of some lines: features, the total if any, and kept fields."""
        names = (*self.features, *([TOTAL] if self.has_total else []), *self.kept)
        candidates = {TEXT: texts, **dict(zip(names, columns, strict=True))}
        return Block(candidates, {ID: ids}, None, first + np.arange(len(ids)))


def _read_lines(
    file: InputFile, schema: Schema, patterns: Mapping[str, bytes] = _HARD
) -> Iterator[Block]:
    """Yield the columns of each block of whole lines.

    Args:
        file: the file.
        schema: of the file.
        patterns: as for `LineParser`.

    Raises:
        DataError: as `LineParser`.
    """
    parser, first, compiled = None, 1, False
    for block in file.chunks():
        parser = parser or LineParser(schema, block, patterns)
        compiled = compiled or len(block) >= _ARROW_FROM
        columns = None
        with suppress(ValueError, ImportError):  # PyArrow only makes it faster
            columns = parse_block(block, first, parser) if compiled else None
        columns = columns or parser.block(block, first)
        yield columns
        first += len(columns.line)


class LineParser:
    r"""Reads lines that all have the columns of the first one.

    Args:
        schema: of the file.
        first: the first lines of the file, which show the columns.
        patterns: of the fields that are kept, by name: `_HARD` or `_SOFT`.

    Attributes:
        layout: the columns.

    Raises:
        DataError: with file and line, if the first line is not as it should be.

    >>> lines = b"3 ||| a cat ||| LM0= -1 ||| -2\n"
    >>> columns = LineParser(Schema("dev"), lines).block(lines, 1)
    >>> columns.sentences, columns.candidates["LM0"].tolist(), columns.candidates["text"]
    ({'id': array([3])}, [-1.0], ['a cat'])
    """

    def __init__(self, schema: Schema, first: bytes, patterns: Mapping[str, bytes] = _HARD):
        self.schema, self.error, self.patterns = schema, schema.error, patterns
        self._warned: set[str] = set()
        self.layout = self._layout(_split_lines(first))
        features = self.layout.features
        if len(set(features)) < len(features):
            raise self.error("two features have the same name: rename one", 1, "duplicate")
        if taken := {TEXT, TOTAL, *self.layout.kept}.intersection(features):
            problem = f"a feature is called {min(taken)}, which has another meaning: rename it"
            raise self.error(problem, 1, "bad-name")

    def block(self, block: bytes, first: int) -> Block:
        """Return the columns of some lines.

        Args:
            block: lines, each ended by a newline.
            first: the number of the first one in the file.

        Raises:
            DataError: with file and line, if a line does not have the columns of the first one, or
                a value is not a finite number.
        """
        rows = [self._row(line, number) for number, line in enumerate(_split_lines(block), first)]
        ids, texts, printed, kept = zip(*rows, strict=True)
        number = self.schema.number
        labels = [f"{name}: " for name in (*self.layout.features, TOTAL)]
        values = [
            [number(v, line, label) for v, label in zip(of, labels, strict=False)]
            for line, of in enumerate(printed, first)
        ]
        columns = [*np.array(values).T, *map(list, zip(*kept, strict=True))]
        lines = enumerate(texts, first)
        strings = [decode(text, self.schema.origin, line).strip(" ") for line, text in lines]
        return self.layout.block(first, np.array(ids), strings, columns)

    def parse_id(self, field: bytes, number: int) -> int:
        """Return the id of a sentence.

        Raises:
            DataError: if it is not an integer.
        """
        digits = field.strip()
        if not digits.isdigit() or len(digits) > _LONGEST_ID:
            problem = f"{quote(digits)} is not an integer of up to {_LONGEST_ID} digits"
            raise self.error(f"sentence id {problem}: a line must read {SHAPE}", number)
        return int(digits)

    def is_aside(self, field: bytes) -> bool:
        """Return whether a field between text and features is not a part of the text."""
        is_positions = _POSITIONS.fullmatch(field) or self._kind([field]) == _ALIGNMENT
        return bool(is_positions) or field.lstrip(b" ").startswith(f"{_WORD_SCORES}=".encode())

    def _row(self, line: bytes, number: int) -> tuple[int, bytes, list[bytes], list[str]]:
        """Return the id, the text, the tokens of numbers, and the fields that are kept."""
        layout = self.layout
        field, middle, scores, after = self._fields(line, number)
        identifier = self.parse_id(field, number)
        end = len(middle) - len(layout.between)
        between = middle[end:]
        if end < 1 or not all(self.is_aside(field) or not field.strip() for field in between):
            problem = f"no {len(layout.between)} alignment or word-score fields before the features"
            raise self.error(f"{problem}, but the first line has them", number)
        if end > 1 and self.is_aside(middle[end - 1]):
            problem = "an alignment or word-score field, but the first line has none there"
            raise self.error(problem, number)
        groups = self._features(scores, number)
        counts = {label: len(values) for label, values in groups.items()}
        if [*counts.items()] != [*layout.labels.items()]:
            raise self.error(_difference(counts, layout.labels), number, "mismatch")
        printed = list(chain.from_iterable(groups.values()))
        if layout.has_total:
            if not after:
                raise self.error("no total score, but the first line has one", number)
            printed.append(after.pop(0).strip())
        elif after and looks_numeric(after[0]):
            raise self.error("a total score, but the first line has none", number)
        text = b" |||".join(middle[:end])
        return identifier, text, printed, self._select_kept(between, after, number)

    def _fields(self, line: bytes, number: int) -> tuple[bytes, list[bytes], bytes, list[bytes]]:
        """Return the id, text and others, the features, and what follows.

        The id is the first field, the features are the last one that looks like them.
        """
        fields = _SEPARATOR.split(line)
        at = max((i for i, f in enumerate(fields) if i > 1 and _FEATURES.match(f)), default=0)
        if not at:
            few = len(fields) < 3
            problem = f"only {format_count(len(fields), 'field')}" if few else "no feature field"
            problem += f", but a line must read {SHAPE}"
            if len(fields) == 2 and looks_numeric(fields[0]) and not fields[0].isdigit():
                problem += "; lines of a score and a text are read as the format plain, with the "
                problem += "number of candidates of each sentence (list_size)"
            raise self.error(problem, number)
        return fields[0], fields[1:at], fields[at], fields[at + 1 :]

    def _layout(self, lines: list[bytes]) -> _Layout:
        """Return the columns that the first line shows; later lines show what empty fields are."""
        _, middle, scores, after = self._fields(lines[0], 1)
        counts = {label: len(values) for label, values in self._features(scores, 1).items()}
        if not counts:
            raise self.error(f"no features but word scores: a line must read {SHAPE}", 1)
        if not after and len(middle) > 1 and looks_numeric(middle[-1]):
            raise self.error(f"a number before the features: a line must read {SHAPE}", 1)
        has_total = bool(after) and not _POSITIONS.fullmatch(after[0])
        asides = len(list(takewhile(self.is_aside, middle[:0:-1])))
        kinds = [self._kind([field]) for field in middle[len(middle) - asides :]]
        for place in range(int(has_total), len(after)):
            of_lines = (self._fields(line, number)[3] for number, line in enumerate(lines, 1))
            kinds.append(self._kind(fields[place] for fields in of_lines if len(fields) > place))
        kinds = [kind if kinds.index(kind) == i else _LEFT_OUT for i, kind in enumerate(kinds)]
        layout = _Layout(counts, has_total, tuple(kinds[:asides]), tuple(kinds[asides:]))
        for what, names in ((_BETWEEN, layout.between), (_AFTER, layout.after)):
            if _LEFT_OUT in names:
                self._leave_out(what)
        return layout

    def _kind(self, fields: Iterable[bytes]) -> str:
        """Return the name under which a field is kept, "" to leave it out."""
        field = next((field for field in fields if field.strip(b" ")), b"?")
        fitting = (name for name, of in self.patterns.items() if re.fullmatch(of, field))
        return next(fitting, _LEFT_OUT)

    def _select_kept(self, between: list[bytes], after: list[bytes], number: int) -> list[str]:
        """Return the fields that are kept, as printed, without spaces around them."""
        layout = self.layout
        if any(layout.after) and len(after) != len(layout.after):
            problem = f"{len(after)} {_AFTER}, but the first line has {len(layout.after)}"
            raise self.error(problem, number)
        named = zip((*layout.between, *layout.after), (*between, *after), strict=False)
        kept = {name: field.strip(b" ") for name, field in named if name}
        for name, field in kept.items():
            if not re.fullmatch(self.patterns[name], field):
                problem = f"{quote(field.strip())} is not the {name} that the first line has there"
                raise self.error(f"{problem}, such as `{_EXAMPLES[name]}`", number)
        if len(after) > sum(map(bool, layout.after)):
            self._leave_out(_AFTER)
        return [field.decode() for field in kept.values()]

    def _features(self, field: bytes, number: int) -> dict[str, list[bytes]]:
        """Return the values of each label as printed."""
        parts = _LABEL.split(field)[1:]
        groups: dict[str, list[bytes]] = {}
        for printed, values in zip(parts[::2], parts[1::2], strict=True):
            label = decode(printed, self.schema.origin, number)
            if label == _WORD_SCORES:
                self._leave_out(f"{_WORD_SCORES}, which has a value for each word,")
                continue
            if not label:
                raise self.error("a feature has no name before its `=`", number)
            if label in groups:
                problem = f"{label}= occurs twice in the line: rename one"
                raise self.error(problem, number, "duplicate")
            groups[label] = values.split()
        for label, tokens in groups.items():
            if not tokens:
                raise self.error(f"{label}= has no value: write one after it", number)
        return groups

    def _leave_out(self, what: str) -> None:
        """Warn once per file about content that is skipped."""
        if what not in self._warned:
            self._warned.add(what)
            warn_user(f"{self.schema.origin}: {what} left out")


def parse_block(block: bytes, first: int, parser: LineParser) -> Block:
    r"""Return the columns of a block, read by Arrow.

    Args:
        block: lines, each ended by a newline.
        first: the number of the first one in the file.
        parser: has the columns of the file and the ids before.

    Raises:
        ValueError: if `parser` has to read one of the lines.

    >>> lines = b"3 ||| a cat ||| LM0= -1 ||| -2\n"
    >>> parse_block(lines, 1, LineParser(Schema("dev"), lines)).candidates["text"]
    ['a cat']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if _CELL in block:
        raise ValueError("a separator of cells in a line")
    codes = np.frombuffer(block.replace(b"\r\n", b"\n") if b"\r" in block else block, np.uint8)
    bars = np.flatnonzero(codes == _BAR)
    begins = bars[:-2][bars[2:] - bars[:-2] == 2]
    rest = codes[begins + 3]
    begins = begins[(codes[begins - 1] == _SPACE) & ((rest == _SPACE) | (rest == _NEWLINE))]
    data = codes.copy()
    data[begins], data[begins + 1], data[begins + 2] = _SPACE, ord(_CELL), _SPACE
    layout = parser.layout
    scores = 2 + len(layout.between)
    after = scores + 1 + layout.has_total
    types = dict.fromkeys(map(str, range(after + len(layout.after))), pa.string())
    types |= {str(scores + 1): pa.float64()} if layout.has_total else {}
    cells = read_csv_columns(data.tobytes(), types, _CELL.decode())
    ids, texts = cells[0].dictionary_encode(), from_arrow(pc.utf8_trim(cells[1], " "))
    numbers = np.array(
        [parser.parse_id(text.encode(), first) for text in ids.dictionary.to_pylist()]
    )
    columns: list[Any] = _values(cells[scores:after], parser)
    # The first field after the scores is not a total where the first line has none.
    rest = rb"[^\s=]*(?:\s.*)?|[\d=|].*" if layout.has_total else rb"[^=.\d]*"
    usual = {**_HARD, _LEFT_OUT: rest}
    before_scores = {**parser.patterns, _LEFT_OUT: f"{_WORD_SCORES}=.*".encode()}
    for place, name in chain(enumerate(layout.between, 2), enumerate(layout.after, after)):
        pattern = (before_scores if place < scores else usual)[name].decode()
        column = pc.utf8_trim(cells[place], " ")
        if not pc.all(pc.match_substring_regex(column, f"^(?:{pattern})$")).as_py():
            raise ValueError("another field")
        if name:
            columns.append(column.to_pylist())
    return layout.block(first, numbers[to_numpy(ids.indices)], texts, columns)


def _values(cells: Sequence[Any], parser: LineParser) -> list[Float64]:
    """Return the columns of values, the total last, if all lines have the same labels."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    tokens: list[bytes] = []
    for label, count in parser.layout.labels.items():
        tokens += [f"{label}=".encode(), *[_VALUE] * count]
    kinds = [pa.binary(len(token)) if token else pa.float64() for token in tokens]
    types = {str(place): kind for place, kind in enumerate(kinds)}
    file, cell = pa.BufferOutputStream(), _CELL.decode()
    as_lines = csv.WriteOptions(include_header=False, delimiter=cell, quoting_style="none")
    csv.write_csv(pa.Table.from_arrays([pc.utf8_trim(cells[0], " ")], [""]), file, as_lines)
    lines = file.getvalue()
    if bytes(memoryview(lines)[: len(_BOM)]) == _BOM:
        raise ValueError("a byte-order mark, which Arrow would remove")
    try:
        values = read_csv_columns(lines, types)
    except ValueError:  # values glued to labels, or several spaces
        split = lines.to_pybytes().replace(b"=", b"= ").split(b"\n")
        joined = (b" ".join(filter(None, line.split(b" "))) for line in split)
        values = read_csv_columns(b"\n".join(joined), types)
    tokens += [_VALUE] * (len(cells) - 1)
    columns = []
    for token, column in zip(tokens, [*values, *cells[1:]], strict=True):
        if token and column.unique().to_pylist() != [token]:
            raise ValueError("other labels, or a line break in a line")
        if not token:
            numbers = to_numpy(column).copy()  # Arrow keeps the memory of a block
            if not are_finite(numbers):
                if parser.schema.bad != "drop":
                    raise ValueError("not finite, or too large")
                numbers[~(np.abs(numbers) <= LARGEST)] = np.inf
            columns.append(numbers)
    return columns


def _split_lines(block: bytes) -> list[bytes]:
    r"""Return the lines of a block, without their ends (`\n` or `\r\n`).

    >>> _split_lines(b"0 ||| a\r\n0 ||| b\n")
    [b'0 ||| a', b'0 ||| b']
    """
    lines = block[:-1].split(b"\n")
    return [line.rstrip(b"\r") for line in lines] if b"\r" in block else lines


def _difference(counts: dict[str, int], expected: dict[str, int]) -> str:
    """Return how the labels of a line differ from those of the first line."""
    for label in {**expected, **counts}:
        count, usual = counts.get(label, 0), expected.get(label, 0)
        if count != usual:
            advice = ": print the same number in each line" if count and usual else _ABSENT
            values = format_count(count, "value")
            return f"{label}= has {values}, but in the first line {usual}{advice}"
    return "the features are in another order than in the first line"
