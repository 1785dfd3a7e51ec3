"""The lines of Moses n-best lists, read one by one: exact, and the source of every message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from bpa_ppl.columns import intern
from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.base import ReadOptions
from bpa_ppl.formats.numbers import finite
from bpa_ppl.formats.streams import decoded
from bpa_ppl.labels import expand
from bpa_ppl.nbest import Float32
from bpa_ppl.notes import warn_user
from bpa_ppl.rows import Rows

#: One line of the format, for messages.
SHAPE = "`id ||| text ||| Name0= value … ||| total`"
SEPARATOR = re.compile(rb" \|\|\|(?= |$)")
# Labels do not begin with a digit, or `3=3` of a segmentation would be one.
FEATURES = re.compile(rb" *[^\s\d=|][^\s=]*=")
_WORD_SCORES = re.compile(rb" *WordScores=")
_POSITIONS = re.compile(rb" *\d+[-=:][\d=: -]*")
#: Fields of positions that are kept, by name; each is a run of these, with spaces between them.
#: Soft alignments have a vector for each word.
SEGMENTATION, ALIGNMENT = "segmentation", "alignment"
TOKENS = {
    SEGMENTATION: re.compile(rb"\d+(-\d+)?=\d+(-\d+)?"),
    ALIGNMENT: re.compile(rb"\d+-\d+"),
}
EXAMPLES = {SEGMENTATION: "0-2=0-2 3=3", ALIGNMENT: "0-0 1-2"}
_SOFT = re.compile(rb"[\d.eE+-]+(,[\d.eE+-]+)*")
_LEFT_OUT, _UNKNOWN = "", "?"
_SPARSE = ": where features that are absent are zero, read the file as cdec or travatar"
_LONGEST_ID = 18  # digits that surely fit 64 bits


@dataclass(frozen=True)
class Layout:
    """The columns of a file, as its first line shows them.

    Attributes:
        shape: (label, number of values) of each label, in order.
        glued: for each label whether its value follows without a space.
        total: where the total stands: "after" or "before" the features, or "none".
        between: the fields between the text and the features: the names under which they are
            kept, or "" for one that is left out.
        after: the same of the fields after the scores.
    """

    shape: tuple[tuple[str, int], ...]
    glued: tuple[bool, ...]
    total: str
    between: tuple[str, ...]
    after: tuple[str, ...]

    @cached_property
    def printed(self) -> list[tuple[bytes, int]]:
        """The shape with labels as bytes, as lines are compared with it."""
        return [(label.encode(), count) for label, count in self.shape]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, one a column."""
        return tuple(name for label, count in self.shape for name in expand(label, count))

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the extras, in the order of their fields."""
        return tuple(name for name in (*self.between, *self.after) if name)


_Group = tuple[bytes, list[bytes]]  # a label, and the values printed after it


class _Fields(NamedTuple):
    """One line cut at its separators: id, text and asides, features, and what follows."""

    id: bytes
    middle: list[bytes]
    features: bytes
    after: list[bytes]


class LineParser:
    """Reads lines one by one; every message about a bad line comes from here.

    Args:
        options: how to read.
        soft: whether a field between text and features may be a soft alignment, as of Marian.

    Attributes:
        layout: the columns that the first line showed; None before it.
    """

    def __init__(self, options: ReadOptions, soft: bool = False):
        self.options = options
        self.layout: Layout | None = None
        self._soft = soft
        self._warned: set[str] = set()

    def columns(self, block: bytes, first: int = 1) -> Layout:
        """Return the columns that the first line of a block shows, and read on by them."""
        self.layout = self._layout(block[:-1].split(b"\n"), first)
        return self.layout

    def rows(self, block: bytes, first: int) -> Rows:
        """Return the rows of a block of whole lines; its first line has the number `first`."""
        ids, lines, texts, values, kept, dropped = [], [], [], [], [], []
        printed = block[:-1].split(b"\n")
        layout = self.layout or self.columns(block, first)
        for number, line in enumerate(printed, first):
            fields = self._fields(line, number)
            identifier = self._identifier(fields.id, number)
            text = self._text(layout, fields, number)
            numbers = self._numbers(self._tokens(layout, fields, number), number)
            extras = self._extras(layout, fields, number)
            if numbers is None:
                dropped.append(identifier)
                continue
            ids.append(identifier)
            lines.append(number)
            texts.append(text)
            values.append(numbers)
            kept.append(extras)
        strings, index = intern(texts)
        scored = layout.total != "none"
        width = len(layout.names) + scored
        table = np.array(values, dtype=np.float32).reshape(-1, width)
        return Rows(
            layout.names,
            np.array(ids, dtype=np.int64),
            np.array(lines, dtype=np.int64),
            *split(table, scored),
            strings,
            index,
            tuple(dropped),
            {name: [row[i] for row in kept] for i, name in enumerate(layout.kept)},
        )

    def error(self, message: str, number: int) -> DataError:
        """Return the error that blames one line of the file."""
        return DataError(message, self.options.origin, number)

    def _fields(self, line: bytes, number: int) -> _Fields:
        """Cut a line: the id from the left, the features by content, from the right."""
        fields = SEPARATOR.split(line.rstrip(b"\r"))
        at = max((i for i, f in enumerate(fields) if i > 1 and FEATURES.match(f)), default=0)
        if not at:
            found = f"only {len(fields)} fields" if len(fields) < 3 else "no feature field"
            raise self.error(f"{found} where a line must read {SHAPE}", number)
        return _Fields(fields[0], fields[1:at], fields[at], fields[at + 1 :])

    def _layout(self, lines: list[bytes], number: int) -> Layout:
        """Return the columns that the first line shows; later lines tell what empty fields are."""
        fields = self._fields(lines[0], number)
        groups = self._groups(fields, number)
        shape = self._checked_shape(groups, number)
        if not shape:
            raise self.error(f"no features but word scores: a line must read {SHAPE}", number)
        middle = list(fields.middle)
        total = "after" if fields.after and not _POSITIONS.fullmatch(fields.after[0]) else "none"
        if not fields.after and len(middle) > 1 and _is_number(middle[-1]):
            total = "before"
            middle.pop()
        asides = 0
        while asides + 1 < len(middle) and self._is_aside(middle[-1 - asides]):
            asides += 1
        tokens = set(fields.features.split())
        glued = tuple(label + b"=" not in tokens for label, _ in groups)
        kinds = [self._kind(field) for field in middle[len(middle) - asides :]]
        kinds += self._kinds_after(int(total == "after"), lines, number)
        once = tuple(k if k in TOKENS and kinds.index(k) == i else "" for i, k in enumerate(kinds))
        layout = Layout(shape, glued, total, once[:asides], once[asides:])
        if len(set(layout.names)) != len(layout.names):
            raise self.error("two features have the same name: rename one", number)
        return layout

    def _kinds_after(self, start: int, lines: list[bytes], number: int) -> list[str]:
        """Return the kind of each field after the scores; of an empty one, what later lines say."""
        kinds = [self._kind(field) for field in self._fields(lines[0], number).after[start:]]
        for later, line in enumerate(lines if _UNKNOWN in kinds else (), number):
            found = map(self._kind, self._fields(line, later).after[start:])
            pairs = zip_longest(kinds, list(found)[: len(kinds)], fillvalue=_UNKNOWN)
            kinds = [new if kind == _UNKNOWN else kind for kind, new in pairs]
        return kinds

    def _kind(self, field: bytes) -> str:
        """Return the name under which a field is kept, "?" if it is empty, "" to leave it out."""
        tokens = field.split(b" ")
        if not any(tokens):
            return _UNKNOWN
        return next((name for name in TOKENS if fits(field, name, self._soft)), _LEFT_OUT)

    def _is_aside(self, field: bytes) -> bool:
        """Say whether a field between text and features is none of the text."""
        known = _POSITIONS.fullmatch(field) or _WORD_SCORES.match(field)
        return bool(known) or (self._soft and self._kind(field) == ALIGNMENT)

    def _extras(self, layout: Layout, fields: _Fields, number: int) -> list[str]:
        """Return the fields that are kept, as printed, without spaces around them."""
        asides = fields.middle[: len(fields.middle) - (layout.total == "before")]
        between = asides[len(asides) - len(layout.between) :]
        after = fields.after[int(layout.total == "after") :]
        if any(layout.after) and len(after) != len(layout.after):
            raise self.error(
                f"{len(after)} fields after the scores, in the first line {len(layout.after)}",
                number,
            )
        named = list(zip((*layout.between, *layout.after), (*between, *after), strict=False))
        for name, field in named:
            if name and not fits(field, name, self._soft):
                raise self.error(
                    f"{quoted(field.strip())} where the first line has the "
                    f"{name}: it must read `{EXAMPLES[name]}`",
                    number,
                )
        if len(after) > sum(map(bool, layout.after)):
            self._leave_out("fields after the scores", number)
        return [field.strip(b" ").decode("ascii") for name, field in named if name]

    def _identifier(self, field: bytes, number: int) -> int:
        digits = field.strip()
        if not digits.isdigit() or len(digits) > _LONGEST_ID:
            raise self.error(
                f"sentence id {quoted(field)} is not a whole number: a line must read {SHAPE}",
                number,
            )
        return int(digits)

    def _text(self, layout: Layout, fields: _Fields, number: int) -> str:
        """Return the text, which may have stray separators inside."""
        asides = len(layout.between) + (layout.total == "before")
        end = len(fields.middle) - asides
        between = fields.middle[end : end + len(layout.between)]
        if end < 1 or not all(self._is_aside(field) or not field.strip() for field in between):
            raise self.error(
                f"expected {len(layout.between)} alignment or word-score fields between text and "
                "features, as in the first line",
                number,
            )
        if end > 1 and self._is_aside(fields.middle[end - 1]):
            raise self.error(
                "an alignment or word-score field, though the first line has none there", number
            )
        if not all(layout.between):
            self._leave_out("fields between the text and the features", number)
        text = b" |||".join(fields.middle[:end]).strip(b" ")
        return decoded(text, self.options.origin, number)

    def _tokens(self, layout: Layout, fields: _Fields, number: int) -> list[bytes]:
        """Return the printed values of one line: the features, then the total."""
        groups = self._groups(fields, number)
        if [(label, len(values)) for label, values in groups] != layout.printed:
            shape = self._checked_shape(groups, number)
            raise self.error(_difference(dict(shape), dict(layout.shape)), number)
        tokens = [token for _, values in groups for token in values]
        if layout.total == "after":
            if not fields.after:
                raise self.error("no total score, though the first line has one", number)
            tokens.append(fields.after[0].strip())
        elif layout.total == "before":
            tokens.append(fields.middle[-1].strip())
        elif fields.after and _is_number(fields.after[0]):
            raise self.error("a total score, though the first line has none", number)
        return tokens

    def _groups(self, fields: _Fields, number: int) -> list[_Group]:
        """Return each label of the feature field with its printed values."""
        groups: list[_Group] = []
        for token in fields.features.split():
            if b"=" in token:
                label, _, value = token.rpartition(b"=")
                groups.append((label, [value] if value else []))
            else:
                groups[-1][1].append(token)
        if any(label == b"WordScores" for label, _ in groups):
            self._leave_out("WordScores, which has a value for each word,", number)
            groups = [group for group in groups if group[0] != b"WordScores"]
        return groups

    def _checked_shape(self, groups: list[_Group], number: int) -> tuple[tuple[str, int], ...]:
        """Return (label, number of values) of each group, if each has a label and values."""
        labels = [decoded(label, self.options.origin, number) for label, _ in groups]
        seen: set[str] = set()
        for label, (_, values) in zip(labels, groups, strict=True):
            if not label:
                raise self.error("a feature has no name before its `=`", number)
            if not values:
                raise self.error(f"{label}= has no value after it", number)
            if label in seen:
                raise self.error(f"{label}= stands twice in the line: rename one", number)
            seen.add(label)
        return tuple((label, len(vs)) for label, (_, vs) in zip(labels, groups, strict=True))

    def _numbers(self, tokens: list[bytes], number: int) -> list[float] | None:
        """Return the values, or None where one is bad and such hypotheses are to be dropped."""
        try:
            return [finite(token) for token in tokens]
        except ValueError as error:
            if self.options.bad == "drop":
                return None
            raise self.error(
                f"{error}: correct it, or leave such hypotheses out with bad='drop'", number
            ) from error

    def _leave_out(self, what: str, number: int) -> None:
        """Tell once a file what is not read, or refuse it."""
        if self.options.strict:
            raise self.error(f"{what} cannot be kept, and reading is strict", number)
        if what not in self._warned:
            self._warned.add(what)
            warn_user(f"{self.options.origin}: {what} left out")


def fits(field: bytes, name: str, soft: bool = False) -> bool:
    """Say whether a field reads as the positions of some kind do; an empty one always does.

    Args:
        field: as printed.
        name: the kind: "segmentation" or "alignment".
        soft: whether an alignment may have a vector for each word.

    >>> fits(b"0-2=0-2 3=3", "segmentation"), fits(b"0-2=0-2", "alignment")
    (True, False)
    """
    tokens = [token for token in field.split(b" ") if token]
    if all(map(TOKENS[name].fullmatch, tokens)):
        return True
    return soft and name == ALIGNMENT and all(map(_SOFT.fullmatch, tokens))


def split(values: Float32, total: bool) -> tuple[Float32, Float32 | None]:
    """Return features and totals; a total is the last value of its row, where there is one.

    >>> split(np.array([[1, 2, 3]], np.float32), True)
    (array([[1., 2.]], dtype=float32), array([3.], dtype=float32))
    """
    return (values[:, :-1], values[:, -1]) if total else (values, None)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _difference(found: dict[str, int], expected: dict[str, int]) -> str:
    """Say how the labels of a line differ from those of the first line."""
    for label in expected:
        if label not in found:
            return f"{label}= is missing, though the first line has it{_SPARSE}"
        if found[label] != expected[label]:
            return f"{label}= has {found[label]} values, in the first line {expected[label]}"
    new = [label for label in found if label not in expected]
    if new:
        return f"{new[0]}= is not in the first line{_SPARSE}"
    return "the features change their order"
