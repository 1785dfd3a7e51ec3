"""Names of columns with a meaning, and other names for them: `segment` for `id`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping

from bpa_ppl.errors import DataError, location_of, quoted
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import warn_user

#: Names of fields that are not features: of a hypothesis, and of its sentence.
TEXT, TOTAL, CANDIDATES = "text", "total", "candidates"
ID, SOURCE, REFERENCE, REFERENCES = "id", "source", "reference", "references"
#: The integer of a sentence whose id is a text, where it is not its place among the ids.
ID_NUMBER = "id_number"
#: Prefix of the names of sentence extras where each record is a hypothesis.
OF_SENTENCE = "sentence."

#: What other programs call columns.
_ALIASES = {
    ID: ("segment", "sentence", "seg", "line", "index", "idx", "key"),
    TEXT: (
        *("hypothesis", "hyp", "hypo", "translation", "target", "tgt", "mt", "system_output"),
        *("output", "candidate", "prediction", "response", "answer", "completion", "sample"),
    ),
    CANDIDATES: ("hypotheses", "nbest", "outputs", "predictions", "samples", "translations"),
}

#: Words in the names of other columns: `source_text`, `custom_id` of responses.
_OTHERS = ("source", "src", "reference", "ref", "custom")


class ColumnNames:
    """The names that columns have in one file.

    Args:
        names: of columns that have another name than usual, by the usual one.
        origin: the name of the file, for messages.

    >>> names = ColumnNames({"id": "segment", "text": "output"}, "dev.csv")
    >>> names.usual(["segment", "output", "lm"])
    {'segment': 'id', 'output': 'text', 'lm': 'lm'}
    """

    def __init__(self, names: Mapping[str, str], origin: str):
        self.names, self._origin = names, origin
        self._usual = {name: usual for usual, name in names.items()}
        self._replaced: set[str] = set()

    def usual(self, names: Collection[str]) -> dict[str, str]:
        """Return the usual name of each column of a file, or of each field of an object.

        A column is left out, with a warning, if another one takes its place.
        """
        replaced = {usual for name, usual in self._usual.items() if name in names}
        for name in replaced.intersection(names).difference(self._usual, self._replaced):
            self._replaced.add(name)
            problem = f"the column {name} is left out: {quoted(self.names[name])} takes its place"
            warn_user(f"{location_of(self._origin)}{problem}")
        kept = (name for name in names if name in self._usual or name not in replaced)
        return {name: self._usual.get(name, name) for name in kept}

    def require(self, required: Iterable[str], columns: Iterable[str], line: int | None) -> None:
        """Check that a file has some columns.

        Args:
            required: usual names.
            columns: the usual names of those that it has.
            line: where they are named, for the message.

        Raises:
            DataError: with the column that may be meant, if one is missing.

        >>> ColumnNames({}, "dev.csv").require(["id", "text"], ["id", "hyp", "lm"], 1)
        Traceback (most recent call last):
        bpa_ppl.errors.DataError: dev.csv:1: no column text (the columns are 'id, hyp, lm'): ...
        """
        names = [self.names.get(column, column) for column in columns]
        for usual in required:
            name = self.names.get(usual, usual)
            if name not in names:
                problem = f"no column {name} (the columns are {quoted(', '.join(names))})"
                near = nearest(usual, names)
                remedy = f"rename {near or f'that of the {usual}'} to {usual}"
                parameter = None
                if self._origin != NBest.origin:  # a file
                    remedy += f", or name it in the format: {usual}={near or 'NAME'}"
                    parameter = "format"
                message = f"{problem}: {remedy}"
                code = "missing-column"
                raise DataError(message, self._origin, line, parameter=parameter, code=code)


def nearest(usual: str, names: Iterable[str]) -> str | None:
    """Return the column that may be meant by a usual name; None if there is none.

    >>> nearest("text", ["segment", "output"]), nearest("id", ["Sentence_ID"]), nearest("id", ["a"])
    ('output', 'Sentence_ID', None)
    """
    folded = {name.lower(): name for name in names}
    aliases = [name for name in _ALIASES.get(usual, ()) if name in folded]
    words = {name: set(name.replace("-", "_").split("_")) for name in folded}
    parts = [name for name, of in words.items() if usual in of and of.isdisjoint(_OTHERS)]
    close = difflib.get_close_matches(usual, folded, 1)
    return next((folded[name] for name in (*aliases, *parts, *close)), None)
