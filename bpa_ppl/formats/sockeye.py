"""JSON lines of sockeye-translate, `--output-type json` or, with `--nbest-size`, `nbest`.

    {"sentence_id": 1, "translation": "a cat", "score": 0.5,
     "translations": ["a cat", "the cat"], "scores": [[0.5], [0.7]]}

Without `translations` (n = 1) the translation alone is the list. A score is a number, the feature
`score`, or a list of numbers, the features `score[0]`, `score[1]`, … where there are several. What
Sockeye passes through from its input, any other field, is kept as an extra of the sentence.

Sockeye prints costs: negative log-probabilities, divided by a power of the length. They are
negated, so that higher is better, and a note says so; `costs=false` leaves the sign as it is.
Sentence ids are counted from 1 by Sockeye (`first_id=1`); those of an input that brings ids of its
own may be texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any, TextIO

import msgspec
import numpy as np

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.numbers import finite
from bpa_ppl.formats.streams import decoded, line_count
from bpa_ppl.labels import expand
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.rows import Identifiers, Rows
from bpa_ppl.rows.base import TOO_LARGE

_NAME = "score"
_OWN = ("sentence_id", "translation", "score", "translations", "scores")
_SHAPE = (
    '{"sentence_id": 1, "translation": "…", "score": 0.5, "translations": ["…"], "scores": [0.5]}'
)
_Score = float | list[float]
_UNFIT = re.compile(r'["\\\x00-\x1f]')  # in names of fields, for msgspec


class Sockeye(NBestFormat, frozen=True):
    """The format of Sockeye.

    Attributes:
        costs: whether lower scores are better, as Sockeye prints them; they are then negated.
    """

    costs: bool = True

    def detect(self, first_line: bytes) -> bool:
        """Say whether a line is one of Sockeye's.

        >>> Sockeye().detect(b'{"sentence_id": 1, "translation": "a cat", "score": 0.5}')
        True
        >>> Sockeye().detect(b'{"id": 0, "candidates": []}')
        False
        """
        if not first_line.lstrip().startswith(b"{"):
            return False
        try:
            fields = json.loads(first_line)
        except (ValueError, RecursionError):
            return False
        result: bool = {"sentence_id", "translation"} <= fields.keys()
        return result

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file and line, if a line is not as the first one is, or not as it
                should be.

        >>> line = b'{"sentence_id": 1, "translation": "a cat", "score": 0.5}\n'
        >>> rows = next(Sockeye(costs=False).parse([line], ReadOptions("out.json")))
        >>> rows.names, rows.ids.tolist(), rows.strings, rows.features.tolist()
        (('score',), [1], ['a cat'], [[0.5]])
        """
        reader = _Reader(self.costs, options)
        for block in blocks:
            yield reader.rows(block)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists, with the extras of the sentences.

        Raises:
            DataError: if an extra of a sentence cannot be written as JSON.
            UsageError: if there are other features than scores, or totals.

        >>> import sys
        >>> lists = NBest.from_lists([["a", "b"]], [[[-0.5], [-2]]], ["score"])
        >>> Sockeye().write(lists, sys.stdout)  # doctest: +NORMALIZE_WHITESPACE
        {"sentence_id": 0, "translation": "a", "score": 0.5, "translations": ["a", "b"],
        "scores": [0.5, 2.0]}
        """
        _check_writable(nbest)
        table = -nbest.features if self.costs else nbest.features
        values = table[:, 0] if table.shape[1] == 1 else table
        printed = nbest.sentence_extras.get("id", nbest.sentence_ids.tolist())
        extras = {
            n: list(np.asarray(c).tolist() if isinstance(c, np.ndarray) else c)
            for n, c in nbest.sentence_extras.items()
            if n != "id"
        }
        for s in range(len(nbest)):
            texts, scores = nbest.texts(s), _exact(values[nbest.rows(s)])
            line = {"sentence_id": printed[s], "translation": texts[0], "score": scores[0]}
            if len(texts) > 1:
                line |= {"translations": texts, "scores": scores}
            line |= {name: column[s] for name, column in extras.items()}
            try:
                file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"an extra of sentence {printed[s]} cannot be written as JSON ({error}): "
                    "leave it out with without(…)",
                    nbest.origin,
                ) from error


def _check_writable(nbest: NBest) -> None:
    if nbest.feature_names != expand(_NAME, len(nbest.feature_names)):
        raise UsageError(
            f"Sockeye's lists have the features {_NAME}, or {_NAME}[0], {_NAME}[1], …, not "
            f"{', '.join(nbest.feature_names)}: choose another format, such as jsonl"
        )
    if nbest.totals is not None:
        raise UsageError(
            "Sockeye's lists have no totals: leave them out with without('totals'), or choose "
            "another format, such as jsonl"
        )
    taken = [name for name in nbest.sentence_extras if name in _OWN]
    if taken:
        raise UsageError(
            f"{taken[0]} is a field of Sockeye's own: rename the extra of the sentences"
        )


def _exact(values: np.ndarray) -> list[Any]:
    """Return 32-bit floats as the shortest decimals that read back as the same."""
    return [_exact(v) if np.ndim(v) else float(str(v)) for v in values]


class _Reader:
    """Reads the lines of one file, all of which have the fields of the first.

    Args:
        costs: whether to negate scores.
        options: how to read.
    """

    def __init__(self, costs: bool, options: ReadOptions):
        self._costs = costs
        self._options = options
        self._ids = Identifiers(options.origin, options.first_id)
        self._others: tuple[str, ...] = ()
        self._decoder: msgspec.json.Decoder[Any] | None = None
        self._width = 0
        self._last: int | None = None  # the sentence of the last line
        self._next = 1  # the number of the next line

    def rows(self, block: bytes) -> Rows:
        """Return the rows of a block of whole lines."""
        count = line_count(block)
        first, self._next = self._next, self._next + count
        if self._decoder is None:
            self._begin(block[: block.index(b"\n")])
        lines = self._decoded(block, first, count)
        lists = [line.translations or [line.translation] for line in lines]
        sizes = [len(texts) for texts in lists]
        ids = [self._ids.number(line.sentence_id, n) for n, line in enumerate(lines, first)]
        self._check_distinct(ids, first)
        values, good = self._values(lines, sizes, first)
        rows = np.repeat(np.arange(count), sizes)
        if first == 1 and self._costs:
            self._note(values[:, 0], np.array(sizes))
        texts = list(chain.from_iterable(lists))
        if not good.all():
            texts = [texts[i] for i in np.flatnonzero(good)]
        table = -values if self._costs else values
        kept, table = (rows, table) if good.all() else (rows[good], table[good])
        return Rows(
            names=expand(_NAME, self._width),
            ids=np.array(ids, dtype=np.int64)[kept],
            lines=first + kept,
            features=table.astype(np.float32),
            totals=None,
            strings=texts,  # some of them equal
            string_index=np.arange(len(texts), dtype=np.int32),
            dropped=tuple(ids[row] for row in rows[~good]),
            sentence_extras=self._extras(lines, kept.tolist()),
        )

    def _extras(self, lines: list[Any], rows: list[int]) -> dict[str, list[Any]]:
        """Return what belongs to sentences, one value a row."""
        names = {f"x{i}": name for i, name in enumerate(self._others)}
        if self._ids.texts:
            names["sentence_id"] = "id"
        columns = {name: [getattr(line, field) for line in lines] for field, name in names.items()}
        return {name: [column[row] for row in rows] for name, column in columns.items()}

    def _error(self, message: str, number: int) -> DataError:
        return DataError(message, self._options.origin, number)

    def _check_distinct(self, ids: list[int], first: int) -> None:
        """Refuse two lines of one sentence, whose rows could not be told from those of one list."""
        for number, (last, identifier) in enumerate(pairwise([self._last, *ids]), first):
            if identifier == last:
                raise self._error(f"a second list of sentence {identifier}: join the two", number)
        self._last = ids[-1]

    def _begin(self, line: bytes) -> None:
        """Take the fields of all lines from the first one."""
        fields = self._loaded(line, 1)
        self._others = tuple(name for name in fields if name not in _OWN)
        if "id" in fields and isinstance(fields.get("sentence_id"), str):
            raise self._error("id stands beside a sentence_id that is a text: rename it", 1)
        odd = [name for name in self._others if _UNFIT.search(name)]
        if odd:
            raise self._error(f"quotes or control characters in the name {odd[0]!r}: rename it", 1)
        scores = fields.get("scores")
        score = scores[0] if isinstance(scores, list) and scores else fields.get("score")
        self._width = len(score) if isinstance(score, list) else 1
        if not self._width:
            raise self._error("a hypothesis has no scores: give it one", 1)
        types: list[Any] = [
            ("sentence_id", int | str),
            ("translation", str),
            ("score", _Score),
            *((f"x{i}", Any) for i in range(len(self._others))),
            ("translations", list[str] | None, None),
            ("scores", list[_Score] | None, None),
        ]
        self._decoder = msgspec.json.Decoder(
            msgspec.defstruct(
                "Line",
                types,
                rename={f"x{i}": name for i, name in enumerate(self._others)},
                forbid_unknown_fields=True,
                gc=False,
            )
        )

    def _decoded(self, block: bytes, first: int, count: int) -> list[Any]:
        """Return the lines, each checked for its fields and their types."""
        assert self._decoder is not None
        try:
            lines = self._decoder.decode_lines(block)
        except (msgspec.DecodeError, UnicodeDecodeError):
            lines = []
        if len(lines) != count:  # one is bad, or blank, which is passed over without a number
            lines = [self._line(line, n) for n, line in enumerate(block[:-1].split(b"\n"), first)]
        for number, line in enumerate(lines, first):
            if (line.translations is None) is not (line.scores is None):
                raise self._error("translations and scores must both be there, or neither", number)
            if line.scores is not None and not 0 < len(line.scores) == len(line.translations):
                raise self._error(
                    f"{len(line.translations)} translations and {len(line.scores)} scores: give "
                    "one score for each",
                    number,
                )
        return lines

    def _line(self, line: bytes, number: int) -> Any:
        """Return one line; NaN and Infinity, which JSON does not have, are numbers here."""
        assert self._decoder is not None
        try:
            return msgspec.convert(self._loaded(line, number), self._decoder.type)
        except (msgspec.ValidationError, OverflowError) as error:
            what = " ".join(str(error).split())  # names of fields may have line breaks
            raise self._error(f"{what}: a line reads {_SHAPE}", number) from error

    def _loaded(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            fields = json.loads(decoded(line, self._options.origin, number))
            json.dumps(fields, ensure_ascii=False).encode()  # halves of surrogate pairs are no text
        except (ValueError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            known = isinstance(error, json.JSONDecodeError | UnicodeError)
            what = str(error) if known else "nested too deeply, or a number of 4,000 digits"
            raise self._error(f"no JSON ({what}): a line reads {_SHAPE}", number) from error
        if not isinstance(fields, dict):
            raise self._error(f"no JSON object: a line reads {_SHAPE}", number)
        return fields

    def _values(self, lines: list[Any], sizes: list[int], first: int) -> tuple[Float64, np.ndarray]:
        """Return the scores, (hypotheses, columns), and which hypotheses have good ones."""
        given = [[line.score] if line.scores is None else line.scores for line in lines]
        scores = list(chain.from_iterable(given))
        try:
            if isinstance(scores[0], float):
                values = np.fromiter(scores, np.float64, len(scores))[:, np.newaxis]
            else:
                values = np.array(scores, dtype=np.float64).reshape(len(scores), -1)
        except (TypeError, ValueError):  # numbers beside lists, or lists of different lengths
            scores = [score if isinstance(score, list) else [score] for score in scores]
            numbers = np.repeat(np.arange(first, first + len(lines)), sizes)
            self._check_widths(scores, numbers)
            values = np.array(scores, dtype=np.float64)
        if values.shape[1] != self._width:
            self._check_widths([row.tolist() for row in values], np.array([first]))
        good = np.all(np.abs(values) < TOO_LARGE, axis=1)
        if not good.all() and self._options.bad == "error":
            at = int(np.argmin(good))
            number = first + int(np.searchsorted(np.cumsum(sizes), at, side="right"))
            try:
                list(map(finite, map(repr, values[at].tolist())))
            except ValueError as error:
                raise self._error(
                    f"{error}: correct it, or leave such hypotheses out with bad='drop'", number
                ) from error
        return values, good

    def _check_widths(self, scores: list[list[float]], numbers: np.ndarray) -> None:
        for score, number in zip(scores, numbers.tolist(), strict=False):
            if len(score) != self._width:
                raise self._error(
                    f"a hypothesis has {len(score)} scores, the first one of the file "
                    f"{self._width}: give all of them the same number",
                    number,
                )

    def _note(self, scores: Float64, sizes: np.ndarray) -> None:
        """Say what was done about the sign, and whether the order of the lists is against it."""
        ends = np.cumsum(sizes)
        against = np.sum(scores[ends - sizes] > scores[ends - 1]) > np.sum(sizes > 1) / 2
        doubt = ", though most lists begin with their highest score" if against else ""
        warn_user(
            f"{self._options.origin}: scores are taken for costs{doubt}: they are negated, so that "
            "higher is better (costs=false leaves them as they are)"
        )
