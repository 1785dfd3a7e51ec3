"""Lines of output that stay beside those of the source, whatever lists there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bpa_ppl.decoding.reranking import Reranked
from bpa_ppl.decoding.results import text_rows
from bpa_ppl.errors import DataError, UsageError, one_of

#: What stands for a sentence without a list: its source, an empty line, or nothing at all.
GAPS = ("error", "empty", "source")
_MOST = 1_000_000  # lists that may be missing one after the other


class Lines:
    """Writes one line for each sentence of a text, in the order of the ids.

    Lists may come in another order, as fairseq prints them: lines wait for those before them.
    Memory grows with the lines that wait, so behind a gap with all lines to the end.

    Args:
        gaps: what to do about a sentence without a list: `error`; `empty`, to write an empty line;
            or `source`, to write the source.
        sources: the source of each sentence, where known; else lists that are missing at the end
            of the text are not noticed.
        first_id: the id of the first sentence.

    Raises:
        UsageError: if there is no such policy, or sources are needed.
    """

    def __init__(
        self, gaps: str = "error", sources: Sequence[str] | None = None, first_id: int = 0
    ):
        one_of(gaps, GAPS, "policy for gaps")
        if gaps == "source" and sources is None:
            raise UsageError("gaps that are filled with the source need the sources: give them")
        self.filled = 0
        self._gaps, self._sources, self._first_id = gaps, sources, first_id
        self._next = first_id
        self._waiting: dict[int, str] = {}

    def of(self, choices: Reranked) -> Iterator[str]:
        """Yield the lines of some sentences, as far as all before them are there.

        Raises:
            DataError: if a sentence has two lists, or its id is below the first one.
        """
        for identifier, line in zip(choices.sentence_ids.tolist(), text_rows(choices), strict=True):
            if identifier < self._first_id:
                raise DataError(
                    f"sentence id {identifier} is below the first id, {self._first_id}: say with "
                    "which id the text begins (first_id)"
                )
            if identifier < self._next or identifier in self._waiting:
                raise DataError(f"a second list of sentence {identifier}: give each sentence one")
            self._waiting[identifier] = line
            while self._next in self._waiting:
                yield self._waiting.pop(self._next)
                self._next += 1

    def rest(self) -> Iterator[str]:
        """Yield the lines that wait, with those for gaps before them and at the end of the text.

        Raises:
            DataError: if a list is missing and the policy is `error`, or so many are that the ids
                must be wrong.
        """
        for identifier in sorted(self._waiting):
            yield from self._filling(identifier)
            yield self._waiting.pop(identifier)
            self._next = identifier + 1
        if self._sources is not None:
            yield from self._filling(self._first_id + len(self._sources))

    def _filling(self, end: int) -> Iterator[str]:
        if end - self._next > _MOST:
            raise DataError(f"no list for sentences {self._next} to {end - 1}: correct the ids")
        for identifier in range(self._next, end):
            if self._gaps == "error":
                raise DataError(
                    f"no list for sentence {identifier}, so lines of output would not be those of "
                    "the source: write its source or an empty line instead (gaps), or say with "
                    "which id the text begins (first_id)"
                )
            self.filled += 1
            yield f"{self._source(identifier)}\n" if self._gaps == "source" else "\n"

    def _source(self, identifier: int) -> str:
        place = identifier - self._first_id
        if self._sources is None or place >= len(self._sources):
            raise DataError(f"no source for sentence {identifier}: give the sources of this text")
        return self._sources[place]
