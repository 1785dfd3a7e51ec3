"""References and sources of a text, paired with the lists of its sentences by their ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.block import REFERENCE, SentenceLines
from bpa_ppl.names import id_key, natural_order, no_common_id, one_number, other_form
from bpa_ppl.notes import counted, log_info

_COMPARED = 1000  # lists whose ids are compared with the first words of their lines
_MOST = 0.75  # of the lines: if so many begin with ids of different lists, these are their ids
_ITEM = re.compile(r"([0-9]{1,18})\.(?:\s|$)")
_AFTER_ID = re.compile(r"[\s,;|]+")


class Pairing:
    """Pairs references, or sources, with lists.

    Those with ids are paired by id. Of those without, an id that is an integer, perhaps as a text,
    names the line. If that is not possible because the ids are other texts, the lines are in the
    order in which these appear, which is logged, or refused where it cannot be their order.

    Args:
        what: "reference" or "source".
        given: the references or sources.
        origin: the name of the n-best file, for messages.
        first_id: the id of the first line.

    >>> pairing = Pairing("reference", SentenceLines(["a", "b", "c"], "dev.ref"), "dev.jsonl", 0)
    >>> pairing.entries([0, 1], ["2", "0"], [1, 2], by_text=True, whole=True)
    (('c', 'a'), [2, 0])
    """

    def __init__(self, what: str, given: SentenceLines, origin: str, first_id: int):
        self.what, self.given, self.origin, self.first_id = what, given, origin, first_id
        self._used: set[Any] = set()  # ids with an entry
        self._forms: dict[Any, str] = {}  # of ids that are joined
        self._by_value: bool | None = None  # whether ids that are texts are integers
        self._names: list[str] = []  # ids that are texts, where lines are in their order
        self._least: int | None = None  # the first id that names a line
        self._joined: list[tuple[Any, str]] = []  # ids with their lines, of the first lists

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
            DataError: if there is none for a list, or it is not known which one is.
        """
        entries, keys, places = self.given.lines, list(map(id_key, names)), ids
        if isinstance(entries, Mapping):
            keys = [k if by_text or k in entries else i for k, i in zip(keys, ids, strict=True)]
            self._used.update(entries.keys() & set(keys))
            self._check_forms(keys, names, lines)
            return tuple(entries.get(key, ()) for key in keys), ids
        if not ids:
            return (), ids
        first = self.first_id
        if by_text:
            numeric = [isinstance(key, int) for key in keys]
            if self._by_value is None:
                self._by_value = numeric[0]
            if not self._by_value:
                self._names += names
            elif not all(numeric):
                place = numeric.index(False)
                odd = f"the id {quoted(names[place])} is not an integer, as others are"
                raise self._unknown(odd, lines[place])
            else:
                self._check_forms(keys, names, lines)
                places = keys
                every = range(min(keys), min(keys) + len(entries))
                first = every[0] if whole and sorted(keys) == list(every) else first
        places = [place - first + self.first_id for place in places]
        self._least = min(places) if self._least is None else min(*places, self._least)
        end = self.first_id + len(entries)
        for place, line in zip(places, lines, strict=True):
            if not self.first_id <= place < end:
                raise self._no_entry(place, line)
        found = tuple(entries[place - self.first_id] for place in places)
        room = max(0, _COMPARED - len(self._joined))
        texts = (entry if isinstance(entry, str) else "".join(entry[:1]) for entry in found[:room])
        self._joined += zip(keys, texts, strict=False)
        return found, places

    def notes(self, count: int, *, scattered: bool) -> Iterator[str]:
        """Yield one sentence for each thing that looks wrong.

        Args:
            count: the number of sentences.
            scattered: whether the rows of a sentence are not adjacent.

        Raises:
            DataError: if no list has an entry, or the ids do not show which list it belongs to.
        """
        entries, origin = self.given.lines, self.given.origin
        if isinstance(entries, Mapping):
            if not self._used:
                raise no_common_id(self.origin, origin, entries)
            if others := [key for key in entries if key not in self._used]:
                absent = f"no list for {len(others)} of {len(entries)} ids in {origin}"
                yield f"{absent}, the first of them {quoted(others[0])}"
            return
        self._check_texts()
        if words := self._ids_of_lists(_item_before)[0]:
            items = f"the {self.what}s in {origin} begin with items of a list, such as "
            yield f"{items}'{words[0]}.', which belong to the texts: if they are ids, remove them"
        one = self.first_id + 1
        if self._least == one:
            absent = f"no list for the first {self.what}, id {self.first_id}"
            yield f"{absent}: if ids are counted from {one}, set the first id to {one}"
        elif not self._names and len(entries) > count > 0:
            lists = f"lists for {counted(count, 'sentence')}, but {origin} has {len(entries)}"
            yield f"{lists} {self.what}s: the others are not used"
        if not self._names:
            return
        in_order = self._names == sorted(self._names, key=natural_order)
        if len(entries) != count:
            raise self._unknown(
                f"the ids are texts, {count}, and {origin} has {len(entries)} lines"
            )
        if scattered and not in_order:
            raise self._unknown("the ids are texts, not in order, and their rows are not adjacent")
        order = f"the {self.what}s in {origin} are paired in the order in which ids appear, "
        ends = quoted(self._names[0]), quoted(self._names[-1])
        order += f"{ends[0]} with line 1, …, {ends[1]} with line {count}"
        if in_order:
            log_info(f"{self.origin}: {order}")
        else:
            yield f"{order}: check this, or {self._remedy}"

    def _check_texts(self) -> None:
        """Refuse lines most of which have ids of lists in them: `utt-1 the cat`, `the cat (utt-1)`.

        Texts may begin with numbers, but not most of them with their own, or with different ones.
        """
        for where, id_in in {"begin with": _id_before, "end with": _id_after}.items():
            words, count = self._ids_of_lists(id_in)
            if words:
                problem = f"{len(words)} of {count} {self.what}s {where} ids of lists, such as "
                problem += f"{quoted(str(words[0]))}: remove the ids, or {self._remedy}"
                parameter = f"{self.what}s"
                raise DataError(problem, self.given.origin, parameter=parameter, code="mismatch")

    def _ids_of_lists(self, id_in: Callable[[str], Any]) -> tuple[list[Any], int]:
        """Return the ids of lists in the first lines if most have one, and the number of lines."""
        lines = [line if isinstance(line, str) else "".join(line[:1]) for line in self.given.lines]
        present = [line for line in map(str.strip, lines[:_COMPARED]) if line]
        ids, count = {key for key, _ in self._joined}, len(present)
        words = [word for line in present if (word := id_in(line)) in ids]
        own = sum(id_in(line) == key for key, line in self._joined)
        distinct, texts = len(set(words)), [word for word in words if isinstance(word, str)]
        likely = count > 2 and distinct >= _MOST * count
        likely |= 2 * own >= count and (own > 1 or any(map(str.isdigit, "".join(texts))))
        likely |= len(texts) > 1 and 2 * distinct >= count
        return words if likely else [], count

    def _check_forms(self, keys: Sequence[Any], names: Sequence[Any], lines: Sequence[int]) -> None:
        """Refuse lists whose ids are one number written in two ways, and would have one entry."""
        entries = self.given.lines
        for key, name, line in zip(keys, names, lines, strict=True):
            joined = key in entries if isinstance(entries, Mapping) else True
            if joined and (other := other_form(self._forms, key, name)):
                problem = one_number(name, other)
                parameter = f"{self.what}s"
                raise DataError(problem, self.origin, line, parameter=parameter, code="duplicate")

    @property
    def _remedy(self) -> str:
        if self.what == REFERENCE:
            return "give references with ids (lines `id<TAB>text`)"
        return f"give each list its {self.what} in the file"

    def _no_entry(self, place: int, line: int) -> DataError:
        """Return the error of an id beyond the lines."""
        first, count, one = self.first_id, len(self.given.lines), self.first_id + 1
        parameter, remedy = f"{self.what}s", f"give the {self.what}s of the same text"
        if self._by_value:
            remedy += f", or {self._remedy}"
        if place == first + count and self._least != first:
            parameter, remedy = (
                "first_id",
                f"if ids are counted from {one}, set the first id to {one}",
            )
        problem = f"no {self.what} for sentence id {place}: {self.given.origin} has {count} lines, "
        problem += f"for ids {first} to {first + count - 1}; {remedy}"
        return DataError(problem, self.origin, line, parameter=parameter)

    def _unknown(self, reason: str, line: int | None = None) -> DataError:
        """Return the error of ids that do not show which line belongs to which list."""
        problem = f"{reason}, so it is not known which {self.what} belongs to which list"
        parameter = f"{self.what}s"
        return DataError(f"{problem}: {self._remedy}", self.origin, line, parameter=parameter)


def _id_before(line: str) -> Any:
    """Return the first word of a line as an id, without quotation marks; None if it is the last."""
    word, *rest = _AFTER_ID.split(line.strip(), 1)
    if not any(rest):
        return None
    bare = word.strip("\"'").rstrip(":")
    inside = bare.strip("()[]<>")
    if _ITEM.match(bare):
        return None
    return id_key(bare if inside.isdigit() else inside)  # `(1)` is an item of a list, too


def _item_before(line: str) -> Any:
    """Return the number that a line begins with as an item of a list, `1.`."""
    item = _ITEM.match(line.strip())
    return int(item[1]) if item and line.split()[1:] else None


def _id_after(line: str) -> Any:
    """Return the last word of a line as an id, if it is in parentheses, as in files of sclite."""
    word = line.split()[-1] if line.strip() else ""
    return word[1:-1] if word.startswith("(") and word.endswith(")") else None
