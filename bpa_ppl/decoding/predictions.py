"""Predictions: the posterior predictive distribution over the candidates of lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.building import concatenate
from bpa_ppl.decoding.rules import distinct_texts, likely_references
from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import NBest
from bpa_ppl.quality.pairs import PAIRED, pairs_of


class Candidate(NamedTuple):
    """A candidate of a list, and its probability.

    Attributes:
        position: in its list, from 0.
        text: the candidate.
        probability: of its derivation or, where equal strings are summed, of its string.

    >>> Candidate(1, "the cat", 0.75).text
    'the cat'
    """

    position: int
    text: str
    probability: float


@dataclass(frozen=True, eq=False)
class Predictions:
    """p(e | f; T, A) of every candidate of some lists (S lists with H candidates in all).

    Attributes:
        lists: the candidates; those of list `s` are the rows `lists.rows(s)`.
        ids: (S,) the ids of the user, as in `Reranked`.
        choice: (S,) the position of the chosen candidate in its list.
        canonical: (S,) the position of the first-best under the canonical weights.
        probability: (H,) of the derivation or, where equal strings are summed, of the string.
        derivation: (H,) the probability of each derivation; they sum to 1 over each list.
        metric: of expected gains, such as `ter`, or None where the posterior has another
            criterion.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a b", "a c"], ["d"]], [[[0.0], [1.0]], [[0.0]]], ["lm"])
    >>> p = np.array([0.25, 0.75, 1.0])
    >>> predictions = Predictions(lists, lists.ids, np.array([1, 0]), np.array([0, 0]), p, p)
    >>> len(predictions), predictions[0].tolist(), predictions.entropy.round(3).tolist()
    (2, [0.25, 0.75], [0.562, 0.0])
    >>> predictions.top(1)
    [[Candidate(position=1, text='a c', probability=0.75)], [Candidate(position=0, text='d', ...)]]
    >>> len(Predictions.concatenate([predictions, predictions]))
    4
    >>> predictions.logits.round(2).tolist(), predictions.expected_gain("ter").tolist()
    ([-1.39, -0.29, 0.0], [-37.5, -12.5, 0.0])
    """

    lists: NBest
    ids: list[int | str]
    choice: Int64
    canonical: Int64
    probability: Float64
    derivation: Float64
    metric: str | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[Predictions]) -> Predictions:
        """Return the predictions of several parts as one."""
        names = "choice", "canonical", "probability", "derivation"
        # Lists of several files may have the same ids.
        lists = concatenate([part.lists for part in parts], renumber=len(parts) > 1)
        ids = [identifier for part in parts for identifier in part.ids]
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(lists, ids, **arrays, metric=parts[0].metric)

    def __len__(self) -> int:
        return len(self.lists)

    def __getitem__(self, sentence: int) -> Float64:
        """Return the probabilities of the candidates of one list."""
        return self.probability[self.lists.rows(range(len(self))[sentence])]

    @property
    def logits(self) -> Float64:
        """(H,) log p of each derivation; −inf where it is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.derivation)

    @property
    def entropy(self) -> Float64:
        """(S,) the entropy of each distribution over derivations, in nats."""
        p = self.derivation
        terms = p * np.log(np.where(p > 0, p, 1.0))
        return 0.0 - np.add.reduceat(terms, self.lists.offsets[:-1])

    def top(self, k: int = 1) -> list[list[Candidate]]:
        """Return the k most probable candidates of each list, the most probable first.

        Of strings that are summed, only the best derivation is returned.

        Raises:
            UsageError: if k is less than 1.
        """
        if k < 1:
            raise UsageError(f"k must be at least 1, got {k}", parameter="k")
        result = []
        summed = not np.array_equal(self.probability, self.derivation)
        for s in range(len(self)):
            rows, texts = self.lists.rows(s), self.lists.texts(s)
            order = np.lexsort((-self.derivation[rows], -self.probability[rows])).tolist()
            if summed:
                order = list({texts[i]: i for i in reversed(order)}.values())[::-1]
            result.append([Candidate(i, texts[i], float(self[s][i])) for i in order[:k]])
        return result

    def expected_gain(self, metric: str | None = None) -> Float64:
        """Return the expected gain of each candidate, Σ_e' p(e'|f) gain(e, e'), (H,).

        The gain is the score of a sentence in percent, with e' as its reference; TER, WER and CER
        are negated: higher is better. Equal strings count as one.

        Args:
            metric: such as `ter`, `chrf` or `wer`; by default the criterion of the posterior.

        Raises:
            UsageError: if no metric is given and the criterion of the posterior is another one, or
                there is no such metric.
        """
        metric = metric or self.metric
        if metric is None:
            raise UsageError(
                "the criterion of the posterior cannot compare candidates: choose "
                f"{', '.join(PAIRED)}",
                parameter="metric",
            )
        return np.concatenate([self._gains(s, metric) for s in range(len(self))])

    def json_lines(self) -> Iterator[str]:
        r"""Yield a line of JSON for each list: `id`, `choice`, and the candidates.

        Each candidate has a `text`, a `probability` and, where the posterior has a metric of texts,
        an `expected_gain`.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a b", "a c"]], [[[0.0], [1.0]]], ["lm"])
        >>> p = np.array([0.25, 0.75])
        >>> list(Predictions(lists, lists.ids, np.array([1]), np.array([0]), p, p).json_lines())
        ['{"id":0,"choice":1,"candidates":[{"text":"a b","probability":0.25},...]}\n']
        """
        columns = {"probability": self.probability}
        if self.metric is not None:
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

    def _gains(self, sentence: int, metric: str) -> Float64:
        texts, group, p = distinct_texts(self.lists, sentence, self.derivation)
        references, share = likely_references(p)
        gains = pairs_of(texts, metric).scores(np.arange(len(texts)), references)
        return np.asarray((gains @ share)[group])
