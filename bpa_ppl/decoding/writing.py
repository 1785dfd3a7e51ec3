"""Files of choices: texts, details and probabilities, and a summary of what was written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.streams import AnyPath, atomic_writer, atomic_writers, file_suffix
from bpa_ppl.decoding.choices import Choices
from bpa_ppl.decoding.reranker import Reranker
from bpa_ppl.errors import DataError, Remedy, UsageError, quote
from bpa_ppl.evaluation.compare_ways import BaselineComparison, NewChoices, read_comparison
from bpa_ppl.evaluation.gain import choose_recorded_gain, has_inputs, uses_preferences
from bpa_ppl.evaluation.paired import Scoreboard, ScoreChange, choose_metrics, find_changed
from bpa_ppl.evaluation.simple_ways import BaselineRow, Way
from bpa_ppl.formats.block import JUDGEMENTS
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.formats.schema import count_from
from bpa_ppl.gains.gains import count_statistics, select_choices
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.misplaced import check_references
from bpa_ppl.lists.nbest import NBest

#: Policies for a sentence without a list: fail, write an empty line, or copy the source.
GAPS = ("error", "empty", "source")
_MOST_MISSING = 1_000_000  # consecutive sentences without a list: more means wrong ids
_JSON = (".jsonl", ".ndjson")
_WRITE_JSON = "write JSON lines, to a file whose name ends in .jsonl"


def write_texts(choices: Choices, path: str | Path) -> None:
    """Write the chosen texts in the order of the lists; `-` is standard output.

    Raises:
        DataError: if the file cannot be written, or it has one text a line and a text has a line
            break.

    >>> import numpy as np
    >>> from pathlib import Path
    >>> from bpa_ppl import Draws, from_lists, rerank
    >>> lists = from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[0.0]]], ["LM0"])
    >>> from bpa_ppl.weight_draws import name_weights
    >>> draws = name_weights(np.ones((1, 4, 1)), ("LM0",))
    >>> write_texts(rerank(lists, draws, unchecked=True), "out.txt")
    >>> Path("out.txt").read_text().split()
    ['b', 'c']
    """
    with atomic_writer(path) as file:
        file.writelines(format_texts(zip(choices.ids, choices.texts, strict=True), path))


def has_ids(path: AnyPath) -> bool:
    """Return whether a file of texts has JSON lines, with the id of each list.

    >>> has_ids("out.jsonl.gz"), has_ids("out.txt")
    (True, False)
    """
    return file_suffix(path) in _JSON


def format_texts(texts: Iterable[tuple[int | str, str]], path: AnyPath = "") -> Iterator[str]:
    r"""Yield texts as lines: JSON if the path ends in .jsonl or .ndjson, else the texts themselves.

    Args:
        texts: the id of a sentence and its text.
        path: of the file.

    Raises:
        DataError: if a text has a line break where the texts themselves are the lines.

    >>> next(format_texts([(7, "one\ntwo")], "out.jsonl"))
    '{"id": 7, "text": "one\\ntwo"}\n'
    """
    as_json = has_ids(path)
    for name, text in texts:
        if as_json:
            yield json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n"
        elif "\n" in text or "\r" in text:
            message = f"the text of sentence {name} has a line break: {_WRITE_JSON}"
            raise DataError(message, parameter="output", code="not-supported")
        else:
            yield f"{text}\n"


def _details_lines(choices: Choices, path: AnyPath = "", *, header: bool = False) -> Iterator[str]:
    r"""Yield the lines of a table of details: see `rerank_to`.

    Args:
        choices: from `rerank`.
        path: whose suffix names the format.
        header: whether the names of the columns come first; JSON lines have no header.

    Raises:
        DataError: if a cell of another format has a tab or a line break.

    >>> from bpa_ppl import from_lists
    >>> lists, one, p = from_lists([["a"]], [[[0.0]]], ["lm"]), np.zeros(1, int), np.ones(1)
    >>> next(_details_lines(Choices(lists, ["doc-1"], one, one, p, p))).split("\t")[0]
    'doc-1'
    """
    as_json = has_ids(path)
    for row in choices.rows():
        values = {name: _round(value) for name, value in row.items()}
        if as_json:
            yield json.dumps(values, ensure_ascii=False) + "\n"
            continue
        if header:
            yield "\t".join(values) + "\n"
            header = False
        yield "\t".join(map(_cell, values.values())) + "\n"


def _round(value: Any) -> Any:
    """Return a value of a row, a float with six digits, or None where it is NaN."""
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else float(f"{value:.6g}")


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "" if value is None else str(value)
    if any(mark in text for mark in "\t\n\r"):
        message = f"{quote(text)} has a tab or a line break, which end a cell: {_WRITE_JSON}"
        raise DataError(message, parameter="details", code="not-supported")
    return text


class AlignedTexts:
    """Puts one text for each sentence of a document in the order of the ids.

    Lists may come in another order, as fairseq prints them: texts wait for those before them.
    Memory grows with the texts that wait, so behind a missing sentence with all texts to the end.

    Args:
        gaps: what stands for a sentence without a list: `error`, to raise one; `empty`, an empty
            text; or `source`, the source.
        sources: the source of each sentence, where known; else lists that are missing at the end
            of the document are not noticed.
        first_id: the id of the first sentence.
        empty: sentences without candidates, as `iter_nbest` enters them: by id, the source.

    Attributes:
        filled: how many sentences without a list there were.

    Raises:
        UsageError: if there is no such policy, or sources are needed.

    >>> from bpa_ppl import from_lists
    >>> ids = [2_000_000, 2_000_002]
    >>> lists = from_lists([["a"], ["b"]], [[[0.0]]] * 2, ["lm"], sentence_ids=ids)
    >>> first, p = np.zeros(2, int), np.ones(2)
    >>> aligned = AlignedTexts("empty", first_id=2_000_000)
    >>> [*aligned.add(Choices(lists, ids, first, first, p, p)), *aligned.rest()]
    [(2000000, 'a'), (2000001, ''), (2000002, 'b')]
    """

    def __init__(
        self,
        gaps: str = "error",
        sources: Sequence[str] | None = None,
        first_id: int = 0,
        empty: Mapping[int, str | None] | None = None,
    ):
        require_one_of(gaps, GAPS, "policy for gaps", "gaps")
        if gaps == "source" and sources is None and empty is None:
            message = "writing missing sentences as their sources needs the sources"
            raise UsageError(message, parameter="sources", code="missing-sources")
        self.filled = 0
        self._gaps, self._first_id, self._empty = gaps, first_id, {} if empty is None else empty
        self._sources, self._end = sources or (), first_id + len(sources or ())
        self._next = first_id
        self._after: int | str | None = None  # the user's id of the sentence before the next one
        self._waiting: dict[int, tuple[int | str, str]] = {}

    def add(self, choices: Choices) -> Iterator[tuple[int | str, str]]:
        """Yield id and text of the sentences that have no missing sentence before them.

        Args:
            choices: from `rerank`.

        Raises:
            DataError: if a sentence has two lists or an id below the first one.
        """
        numbers = choices.lists.sentence_ids.tolist()
        for number, name, text in zip(numbers, choices.ids, choices.texts, strict=True):
            if number < self._first_id:
                message = f"sentence id {name} is below the first id, {self._first_id}"
                remedies: list[str | Remedy] = ["correct it", count_from(number)]
                raise DataError(message, parameter="format", remedies=remedies)
            if number < self._next or number in self._waiting:
                message = f"two lists of sentence {name}: give each sentence one list"
                raise DataError(message, code="duplicate")
            self._waiting[number] = name, text
            while self._next in self._waiting:
                yield self._take(self._next)

    def rest(self) -> Iterator[tuple[int | str, str]]:
        """Yield the texts that wait, and those of missing sentences up to the end of the document.

        Raises:
            DataError: if a list is missing and the policy is `error`, or if so many are missing
                that the ids must be wrong.
        """
        for number in sorted(self._waiting):
            yield from self._fill(number)
            yield self._take(number)
        yield from self._fill(max([self._end, *(number + 1 for number in self._empty)]))

    def _take(self, number: int) -> tuple[int | str, str]:
        self._next = number + 1
        self._after = self._waiting[number][0]
        return self._waiting.pop(number)

    def _fill(self, end: int) -> Iterator[tuple[int | str, str]]:
        if end - self._next > _MOST_MISSING:
            message = f"no list for sentences {self._next} to {end - 1}: correct the ids"
            raise DataError(message, code="wrong-length")
        for number in range(self._next, end):
            index, sentence = number - self._first_id, f"sentence {number}"
            if isinstance(self._after, str):  # numbered by us: the line in the text says more
                sentence = f"line {index + 1} of the sources, after sentence {self._after}"
            if self._gaps == "error":
                remedies: list[str | Remedy] = [
                    "write its source or an empty line (--gaps)",
                    "write JSON lines with the ids, to a name that ends in .jsonl",
                ]
                if not index and self._waiting:
                    remedies.append(count_from(min(self._waiting)))
                raise DataError(
                    f"no list for {sentence}, so the lines of the output would not match those of "
                    "the source",
                    parameter="gaps",
                    remedies=remedies,
                )
            source = self._sources[index] if number < self._end else self._empty.get(number)
            if self._gaps == "source" and source is None:
                message = f"no source for {sentence}: give the sources of this text"
                raise DataError(message, parameter="sources")
            self.filled += 1
            yield number, (source or "") if self._gaps == "source" else ""


def rerank_to(
    lists: NBest | Iterable[NBest],
    reranker: Reranker,
    output: AnyPath,
    details: AnyPath | None = None,
    *,
    probabilities: AnyPath | None = None,
    ask: AnyPath | None = None,
    aligned: AlignedTexts | None = None,
) -> Summary:
    r"""Rerank lists, and write the choices as they come.

    Memory does not grow with the number of lists, except for a few numbers of each judged list. The
    files appear under their names when all is done; after an error none of them is there.

    Args:
        lists: as for `rerank`.
        reranker: chooses from each list.
        output: the chosen texts, one per line; or JSON lines with `id` and `text`, which texts with
            line breaks need, if the path ends in .jsonl or .ndjson. `-` is the standard output.
        details: a table of the choices, their probabilities and both texts of each list: JSON lines
            if the path ends in .jsonl or .ndjson, compressed or not, with an object for each
            sentence; else a row for each, separated by tabs, below the names of the columns, which
            texts with tabs or line breaks do not fit.
        probabilities: JSON lines with the probability of every candidate: see
            `Choices.json_lines`.
        ask: JSON lines of the lists whose choice is not sure, without answers, for `bpa judge`; the
            reranker needs a probability below which to ask.
        aligned: aligns the choices with the lines of the source; None writes one line a list,
            as they come.

    Raises:
        DataError: if lists and posterior do not have the same features, a file cannot be written,
            a text does not fit its format, or `aligned` refuses a list.
        UsageError: if there is no list, or lists are to be asked about and the reranker has no
            probability below which to ask, or the path does not end in .jsonl or .ndjson.

    >>> from pathlib import Path
    >>> from bpa_ppl import Draws, from_lists
    >>> lists = from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[0.0]]], ["LM0"])
    >>> from bpa_ppl.weight_draws import name_weights
    >>> reranker = Reranker(name_weights(np.ones((1, 4, 1)), ("LM0",)), unchecked=True)
    >>> summary = rerank_to(lists, reranker, "chosen.txt")
    >>> summary.sentences, Path("chosen.txt").read_text()
    (2, 'b\nc\n')
    """
    if ask is not None and reranker.ask_below is None:
        message = "asking needs a probability below which to ask: give ask_below or agree"
        raise UsageError(message, parameter="ask", code="conflict")
    if ask is not None and not has_ids(ask):
        problem = f"the lists to ask about are JSON lines, so {ask} must end in .jsonl"
        raise UsageError(problem, parameter="ask")
    summary = Summary(reranker)
    named = {"details": details, "probabilities": probabilities, "ask": ask}
    paths = {name: path for name, path in named.items() if path is not None}
    with atomic_writers(output, *paths.values()) as (texts, *files):
        others = dict(zip(paths, files, strict=True))
        for part in reranker.parts(lists):
            pairs = aligned.add(part) if aligned else zip(part.ids, part.texts, strict=True)
            texts.writelines(format_texts(pairs, output))
            if details is not None:
                header = not summary.sentences
                others["details"].writelines(_details_lines(part, details, header=header))
            if probabilities is not None:
                others["probabilities"].writelines(part.json_lines())
            if ask is not None and part.sure is not None:
                # Without columns that are not used, and answers, which would count twice.
                names = {*part.lists.feature_names} - {*reranker.feature_names}
                names |= {*part.lists.sentence_extras} & {*JUDGEMENTS}
                Jsonl().write(part.lists.select(~part.sure).without(*names), others["ask"])
            summary.add(part)
        texts.writelines(format_texts(aligned.rest() if aligned else (), output))
    return summary


class Summary:
    """Summary of a text that is reranked part by part; `str` returns what is printed.

    Scores are those by the gain of the posterior. The choices before are the first-best ones of the
    decoder: by the canonical weights or, if these are not known, by its totals, or else the first
    candidates.

    Args:
        reranker: of the choices; they are compared with the baselines that its posterior records.

    Attributes:
        sentences: how many there were.
        changed: how many choices differ from those before.
        unsure: how many lists a person is to be asked about.
    """

    def __init__(self, reranker: Reranker):
        self.sentences = self.changed = self.unsure = 0
        self._reranker, self._baseline = reranker, BaselineRow(Way.FIRST)
        #: By which choices are compared with baselines; None for preferences.
        self._gain: Metric | None = None
        #: The summed counts of the choices before, and of the new ones.
        self._sums: dict[Metric, tuple[Float64, ...]] = {}
        self._numbers: set[int] = set()  # of references
        self._compared: NewChoices | None = None
        self._recorded = read_comparison(reranker.draws.adaptation)

    def add(self, choices: Choices) -> None:
        """Count some more choices."""
        lists, draws = choices.lists, self._reranker.draws
        if not self.sentences:
            if not draws.lacks_canonical:
                self._baseline = BaselineRow(Way.CANONICAL)
            elif lists.totals is not None:
                self._baseline = BaselineRow(Way.TOTAL)
            gain = choose_recorded_gain(lists, draws)
            self._gain = None if uses_preferences(draws) else gain
            if self._gain is not None:
                check_references(lists, self._gain, unchecked=self._reranker.unchecked)
            metrics = () if gain is None else choose_metrics(gain)
            self._sums = {metric: (np.zeros(()), np.zeros(())) for metric in metrics}
            self._compared = NewChoices(draws, self._gain) if self._recorded else None
        way, canonical = self._baseline, choices.canonical
        both = (canonical if way.name == Way.CANONICAL else way.choose(lists)), choices.choice
        self.sentences += len(lists)
        self.changed += int(find_changed(lists, *both).sum())
        self.unsure += 0 if choices.sure is None else int(np.sum(~choices.sure))
        self._numbers |= {len(refs) for refs in lists.references or ((),)}
        self._sums = {
            metric: tuple(_add_counts(*one, lists, metric) for one in zip(sums, both, strict=True))
            for metric, sums in self._sums.items()
            if has_inputs(lists, metric)
        }
        if self._gain is not None and self._gain not in self._sums:
            self._compared = None
        if self._compared is not None:
            self._compared.add(lists, choices.choice)

    @property
    def scores(self) -> Scoreboard:
        """The corpus scores, that by the gain of the posterior first.

        There are none where a sentence lacked what they need.
        """
        # A signature contains only the number of references.
        references = [("",) * number for number in sorted(self._numbers)]
        changes = list[ScoreChange]()
        for metric, sums in self._sums.items():
            before, after = (metric.score(of, references) for of in sums)
            changes.append(ScoreChange(before, after, after.value - before.value))
        titles = self._baseline.label, str(Way.ADAPTED)
        return Scoreboard(tuple(changes), self.changed, self.sentences, titles)

    @property
    def baselines(self) -> BaselineComparison | None:
        """The comparison with simple baselines, of which the choices before are the selected one.

        None unless the posterior records those of its adaptation sentences, and all lists have what
        a gain needs, or some have preferences.
        """
        result = None if self._compared is None else self._compared.comparison
        if result is None or result.row(self._baseline.name) is None:
            return result
        return replace(result, selected=self._baseline.name)

    def __str__(self) -> str:
        threshold, promise = self._reranker.ask_below, self._reranker.promise
        lines, comparison = [str(self.scores)], self.baselines
        if threshold is not None:
            sure = f"{self.sentences - self.unsure} of {self.sentences} choices are sure"
            sure += f" (probability at least {threshold:.3f}){promise}" if threshold <= 1 else ""
            lines = [sure, *lines]
        if comparison is not None:
            messages = (note.message for note in comparison.messages)
            lines += ["", str(comparison), *messages]
        elif self._recorded is not None and self._recorded.best:
            lines.append(self._recorded.share_of_best)
        return "\n".join(lines)


def _add_counts(sums: Float64, choice: Int64, lists: NBest, metric: Metric) -> Float64:
    """Return sums with the counts of one candidate a list added to them."""
    counts = count_statistics(select_choices(lists, choice), metric)
    counts[0] += sums
    # From left to right as sacreBLEU adds, so that it does not matter how the lists are cut.
    return np.asarray(np.cumsum(counts, axis=0)[-1])
