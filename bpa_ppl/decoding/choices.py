"""Choices: what was chosen from lists, and the probability of every candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import capture_notes, format_count
from bpa_ppl.decoding.rules import choose_references, find_distinct_texts
from bpa_ppl.errors import UsageError, wrong_value
from bpa_ppl.formats.in_memory import concatenate
from bpa_ppl.gains.pairwise import PAIRED, make_pairs
from bpa_ppl.lists.nbest import NBest


class Candidate(NamedTuple):
    """A candidate of a list, and its probability.

    Attributes:
        position: in its list, from 0.
        text: the candidate.
        probability: of its derivation or, where equal strings are summed, of its string.
        sure: whether a choice needs no person, because its probability is high enough for the
            `ask_below` or `agree` of the `Reranker`; None if it has neither.

    >>> Candidate(1, "the cat", 0.75).text
    'the cat'
    """

    position: int
    text: str
    probability: float
    sure: bool | None = None


@dataclass(frozen=True, eq=False)
class Choices:
    """The choice from each list, and p(e | f; T, A) of every candidate (S lists, H candidates).

    The probabilities are not those of being right, except of preferences between two candidates.

    Attributes:
        lists: the candidates, with the features of the posterior; those of list `s` are the rows
            `lists.rows(s)`.
        ids: (S,) the ids of the lists as in their file: texts, or else integers.
        choice: (S,) the position of the chosen candidate in its list.
        canonical: (S,) the position of the first-best under the canonical weights; 0, the decoder's
            first candidate, if the posterior records none.
        probabilities: (H,) of the derivation or, where equal strings are summed, of the string.
        derivation_probabilities: (H,) of each derivation; they sum to 1 over each list.
        gain: the metric of expected gains, such as `ter`, or None where the posterior has another
            gain.
        ask_below: the probability of a choice below which a person is asked, or None.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a b", "a c"], ["d"]], [[[0.0], [1.0]], [[0.0]]], ["lm"])
    >>> p = np.array([0.25, 0.75, 1.0])
    >>> choices = Choices(lists, lists.ids, np.array([1, 0]), np.array([0, 0]), p, p)
    >>> choices
    Choices(2 sentences, 1 changed)
    >>> choices.texts, choices.canonical_texts, choices.changed.tolist()
    (['a c', 'd'], ['a b', 'd'], [True, False])
    >>> choices.probability.tolist(), choices[0].tolist(), choices.entropy.round(3).tolist()
    ([0.75, 1.0], [0.25, 0.75], [0.562, 0.0])
    >>> choices.top(1)
    [[Candidate(position=1, text='a c', probability=0.75, ...)], [Candidate(position=0, ...)]]
    >>> choices.logits.round(2).tolist(), choices.expected_gain("ter").tolist()
    ([-1.39, -0.29, 0.0], [-37.5, -12.5, 0.0])
    """

    lists: NBest
    ids: Sequence[int | str]
    choice: Int64
    canonical: Int64
    probabilities: Float64
    derivation_probabilities: Float64
    gain: str | None = None
    ask_below: float | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[Choices]) -> Choices:
        """Return the choices of several parts as one; their lists get new ids if some are equal.

        What some of the lists lack, such as references, is missing there.

        >>> from bpa_ppl import from_lists
        >>> lists, one = from_lists([["a"]], [[[0.0]]], ["lm"]), np.ones(1)
        >>> part = Choices(lists, ["doc-1"], np.zeros(1, int), np.zeros(1, int), one, one)
        >>> both = Choices.concatenate([part, part])
        >>> both.ids, both.lists.ids
        (('doc-1', 'doc-1'), (0, 1))
        """
        if len(parts) == 1:
            return parts[0]
        tables = [part.lists for part in parts]
        numbers = np.concatenate([table.sentence_ids for table in tables])
        repeated = len(np.unique(numbers)) < len(numbers)
        with capture_notes():  # the reader of the lists has warned of what they lack
            lists = concatenate(tables, renumber=repeated, fill_missing=True)
        return cls(
            lists,
            tuple(identifier for part in parts for identifier in part.ids),
            np.concatenate([part.choice for part in parts]),
            np.concatenate([part.canonical for part in parts]),
            np.concatenate([part.probabilities for part in parts]),
            np.concatenate([part.derivation_probabilities for part in parts]),
            parts[0].gain,
            parts[0].ask_below,
        )

    def __len__(self) -> int:
        return len(self.lists)

    def __getitem__(self, sentence: int) -> Float64:
        """Return the probabilities of the candidates of one list."""
        return self.probabilities[self.lists.rows(range(len(self))[sentence])]

    def __repr__(self) -> str:
        return f"Choices({format_count(len(self), 'sentence')}, {int(self.changed.sum())} changed)"

    @cached_property
    def texts(self) -> list[str]:
        """The chosen texts."""
        return self.lists.chosen(self.choice)

    @cached_property
    def canonical_texts(self) -> list[str]:
        """The texts of the first-best under the canonical weights."""
        return self.lists.chosen(self.canonical)

    @cached_property
    def changed(self) -> npt.NDArray[np.bool_]:
        """(S,) bool: whether the chosen text differs from the canonical one."""
        pairs = zip(self.texts, self.canonical_texts, strict=True)
        return np.array([chosen != canonical for chosen, canonical in pairs], dtype=bool)

    @property
    def probability(self) -> Float64:
        """(S,) the probability of each chosen candidate."""
        return np.asarray(self.probabilities[self.lists.offsets[:-1] + self.choice])

    @property
    def sure(self) -> npt.NDArray[np.bool_] | None:
        """(S,) bool: whether each choice needs no person; None without a probability to ask below.

        >>> from bpa_ppl import from_lists
        >>> lists, p = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["lm"]), np.array([0.25, 0.75])
        >>> Choices(lists, [0], np.array([1]), np.array([0]), p, p, ask_below=0.7).sure.tolist()
        [True]
        """
        return None if self.ask_below is None else self.probability >= self.ask_below

    @property
    def canonical_probability(self) -> Float64:
        """(S,) the probability of the first-best under the canonical weights."""
        return np.asarray(self.probabilities[self.lists.offsets[:-1] + self.canonical])

    @property
    def logits(self) -> Float64:
        """(H,) log p of each derivation; −inf where it is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.derivation_probabilities)

    @property
    def entropy(self) -> Float64:
        """(S,) the entropy of each distribution over derivations, in nats."""
        p = self.derivation_probabilities
        terms = p * np.log(np.where(p > 0, p, 1.0))
        return 0.0 - np.add.reduceat(terms, self.lists.offsets[:-1])

    def top(self, k: int = 1) -> list[list[Candidate]]:
        """Return the k most probable candidates of each list, the most probable first.

        Of strings that are summed, only the best derivation is returned.

        Raises:
            UsageError: if k is less than 1.
        """
        if k < 1:
            raise wrong_value("k must be at least 1", k, "k")
        result = []
        summed = not np.array_equal(self.probabilities, self.derivation_probabilities)
        for s in range(len(self)):
            rows, texts = self.lists.rows(s), self.lists.texts(s)
            keys = -self.derivation_probabilities[rows], -self.probabilities[rows]
            order = np.lexsort(keys).tolist()
            if summed:
                order = list({texts[i]: i for i in reversed(order)}.values())[::-1]
            result.append([Candidate(i, texts[i], float(self[s][i])) for i in order[:k]])
        return result

    def expected_gain(self, gain: str | None = None) -> Float64:
        """Return the expected gain of each candidate, Σ_e' p(e'|f) gain(e, e'), (H,), in percent.

        TER, WER and CER are negated. Equal strings count as one. The default is the posterior's
        gain.

        Raises:
            UsageError: if the gain cannot compare candidates, or there is no such metric.
        """
        chosen = gain or self.gain
        if chosen is None:
            raise UsageError(
                f"the gain of the posterior cannot compare candidates: choose {', '.join(PAIRED)}",
                parameter="gain",
            )
        return np.concatenate([self._gains(s, chosen) for s in range(len(self))])

    def _gains(self, sentence: int, gain: str) -> Float64:
        texts, group, p = find_distinct_texts(self.lists, sentence, self.derivation_probabilities)
        references, share = choose_references(p)
        gains = make_pairs(texts, gain).scores(np.arange(len(texts)), references)
        return np.asarray((gains @ share)[group])

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row of plain data for each list, for data frames and files.

        >>> from bpa_ppl import from_lists
        >>> lists, p = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["lm"]), np.array([0.25, 0.75])
        >>> for row in Choices(lists, lists.ids, np.array([1]), np.array([0]), p, p).rows():
        ...     print(row)
        {'id': 0, 'choice': 1, 'probability': 0.75, 'canonical_choice': 0, ... 'text': 'b', ...}
        """
        columns: dict[str, Sequence[Any]] = {
            "id": self.ids,
            "choice": self.choice.tolist(),
            "probability": self.probability.tolist(),
            "canonical_choice": self.canonical.tolist(),
            "canonical_probability": self.canonical_probability.tolist(),
            "changed": self.changed.tolist(),
            "text": self.texts,
            "canonical_text": self.canonical_texts,
            **({} if self.sure is None else {"sure": self.sure.tolist()}),
        }
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(columns, row, strict=True))

    def json_lines(self) -> Iterator[str]:
        r"""Yield a line of JSON for each list: `id`, `choice`, and the candidates.

        Each candidate has a `text`, a `probability` and, where the posterior has a metric of texts,
        an `expected_gain`.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a b", "a c"]], [[[0.0], [1.0]]], ["lm"])
        >>> p = np.array([0.25, 0.75])
        >>> list(Choices(lists, lists.ids, np.array([1]), np.array([0]), p, p).json_lines())
        ['{"id":0,"choice":1,"candidates":[{"text":"a b","probability":0.25},...]}\n']
        """
        columns = {"probability": self.probabilities}
        if self.gain is not None:
            columns["expected_gain"] = self.expected_gain()
        for s, identifier in enumerate(self.ids):
            rows = self.lists.rows(s)
            numbers = [column[rows].tolist() for column in columns.values()]
            candidates = [
                {"text": text, **dict(zip(columns, values, strict=True))}
                for text, *values in zip(self.lists.texts(s), *numbers, strict=True)
            ]
            line = {"id": identifier, "choice": int(self.choice[s]), "candidates": candidates}
            yield msgspec.json.encode(line).decode() + "\n"
