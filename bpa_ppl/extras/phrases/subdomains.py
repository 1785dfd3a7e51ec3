"""Latent subdomains of a parallel corpus (Cuong, Sima'an & Titov 2016), with their text.

Each sentence pair of a general corpus belongs to one of K subdomains, or to each with some
probability. The text that they were induced from is stored, so that any phrase can be counted.

A phrase that is equally frequent in all subdomains is safe for any text; a phrase of a few
subdomains is specific. A pair of phrases with similar distributions is coherent (Section 3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bpa_ppl._runtime.arrays import Float32, Float64
from bpa_ppl._runtime.streams import AnyPath, InputFile, atomic_path
from bpa_ppl.errors import DataError
from bpa_ppl.extras.phrases.table_files import read_parquet
from bpa_ppl.extras.phrases.tables import SIDES, Side
from bpa_ppl.formats.parquet import parquet_errors
from bpa_ppl.text.words import NumberedText

_METADATA = b"bpa_subdomains"
_HARD, _SOFT = "subdomain", "posteriors"
_GROUP = 1 << 17  # pairs per row group
_PRIOR = 1000.0  # tokens that the prior of typical words is equivalent to
_MIN_Z = 2.0  # minimum z-score of a typical word
_NEAR_SHANNON = 1e-6  # for orders this close to 1, the Rényi entropy is the Shannon entropy


@dataclass(frozen=True, eq=False, repr=False)
class Subdomains:
    """The subdomains of a parallel corpus: P(z), P(z | e, f) of each sentence pair, and the text.

    Attributes:
        source: the source sentences.
        target: their translations.
        assignment: (pairs,) int16, the subdomain of each pair (hard), or (pairs, K) float32,
            P(z | e, f) (soft).
        weights: (K,) float64, P(z).
        settings: of the induction, and its log: em, seed, iterations, log-likelihoods, ….

    Raises:
        DataError: if shapes disagree, or a subdomain is not among the K.

    >>> text = NumberedText.of([["a"], ["b"]])
    >>> result = Subdomains(text, text, np.array([1, 0]), np.array([0.5, 0.5]))
    >>> result.k, result.hard, result.posteriors().tolist()
    (2, True, [[0.0, 1.0], [1.0, 0.0]])
    >>> result.save("subdomains.parquet")
    >>> Subdomains.load("subdomains.parquet").text("source").words
    ['a', 'b']
    """

    source: NumberedText
    target: NumberedText
    assignment: npt.NDArray[Any]
    weights: Float64
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values, weights = np.asarray(self.assignment), np.asarray(self.weights, np.float64)
        hard, k = values.ndim == 1, len(weights)
        assigned, sources, targets = len(values), len(self.source), len(self.target)
        if not assigned == sources == targets:
            message = f"{assigned} assignments, but {sources} source and {targets} target sentences"
            raise DataError(message, code="wrong-length")
        if not (np.isin(values, np.arange(k)).all() if hard else values.shape[1] == k):
            message = f"the assignments are not those of {k} subdomains: induce them again"
            raise DataError(message, code="bad-number")
        object.__setattr__(self, "weights", weights)
        kind = np.int16 if hard else np.float32
        object.__setattr__(self, "assignment", values.astype(kind, copy=False))

    def __len__(self) -> int:
        """Return the number of sentence pairs."""
        return len(self.assignment)

    @property
    def k(self) -> int:
        """K, the number of subdomains."""
        return len(self.weights)

    @property
    def hard(self) -> bool:
        """Whether each pair belongs to exactly one subdomain."""
        return self.assignment.ndim == 1

    def text(self, side: Side) -> NumberedText:
        """Return the sentences of one side."""
        return self.source if side == "source" else self.target

    def winners(self) -> npt.NDArray[np.int16]:
        """Return (pairs,) int16, the most probable subdomain of each pair; of equal ones the first.

        >>> text = NumberedText.of([["a"]])
        >>> Subdomains(text, text, [[0.3, 0.7]], [0.5, 0.5]).winners().tolist()
        [1]
        """
        return self.assignment if self.hard else self.assignment.argmax(1).astype(np.int16)

    def posteriors(self) -> Float32:
        """Return (pairs, K) float32, P(z | e, f); of hard subdomains 0 and 1."""
        if not self.hard:
            return self.assignment
        result: Float32 = np.eye(self.k, dtype=np.float32)[self.assignment]
        return result

    def typical_words(self, side: Side, top: int = 8) -> list[list[str]]:
        """Return the words that are most typical of each subdomain, the most typical one first.

        They have the largest z-scores, at least 2, of the log-odds of the subdomain against all
        others, with the frequencies in the whole corpus as prior (Monroe, Colaresi & Quinn 2008,
        Eq. 16, 20 and 22).

        >>> text = NumberedText.of([["a", "x"]] * 40 + [["b", "x"]] * 40)
        >>> Subdomains(text, text, [0] * 40 + [1] * 40, [0.5, 0.5]).typical_words("source", 2)
        [['a'], ['b']]
        """
        text = self.text(side)
        inside = text.word_counts().T @ self.posteriors().astype(np.float64)
        everywhere = inside.sum(axis=1, keepdims=True)
        prior = _PRIOR * everywhere / max(everywhere.sum(), 1.0)
        log_odds, variance = [], 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            for counts in (inside, everywhere - inside):
                total = counts.sum(axis=0) + _PRIOR
                log_odds.append(np.log(counts + prior) - np.log(total - counts - prior))
                variance += 1 / (counts + prior)
            scores = np.nan_to_num((log_odds[0] - log_odds[1]) / np.sqrt(variance))
        order = np.argsort(-scores, axis=0, kind="stable")[:top]
        return [
            [text.words[word] for word in words if scores[word, z] > _MIN_Z]
            for z, words in enumerate(order.T)
        ]

    def save(self, path: AnyPath) -> None:
        """Write a Parquet file with one row per sentence pair: its texts and its subdomain.

        The column `subdomain` has hard assignments, `posteriors` soft ones; P(z) and the settings
        are in the metadata.

        Raises:
            DataError: if the file cannot be written.
        """
        facts = {"weights": self.weights.tolist(), "settings": dict(self.settings)}
        column = pa.array(self.assignment.ravel())
        if not self.hard:
            column = pa.FixedSizeListArray.from_arrays(column, self.k)
        columns = {
            "source": _join_words(self.source),
            "target": _join_words(self.target),
            _HARD if self.hard else _SOFT: column,
        }
        table = pa.table(columns).replace_schema_metadata({_METADATA: json.dumps(facts)})
        with atomic_path(path) as temporary:
            parquet.write_table(table, temporary, row_group_size=_GROUP, compression="zstd")

    @classmethod
    def load(cls, path: AnyPath) -> Subdomains:
        """Read a file from `save`.

        Raises:
            DataError: if it is not a valid Parquet file, or not one of subdomains.
        """
        file = InputFile(path)
        with parquet_errors(file.origin):
            table = read_parquet(file)
            metadata = (table.schema.metadata or {}).get(_METADATA)
            if metadata is None:
                message = "not a file of subdomains: give one from `bpa subdomains`"
                raise DataError(message, code="unknown-format")
            name = _HARD if _HARD in table.column_names else _SOFT
            if table.column_names.count(name) != 1:
                message = f"no column {_HARD} or {_SOFT}: induce the subdomains again"
                raise DataError(message, code="missing-column")
            column = table[name].combine_chunks()
            values = column.to_numpy(zero_copy_only=False)
            if pa.types.is_fixed_size_list(column.type):
                values = column.flatten().to_numpy().reshape(-1, column.type.list_size)
            source, target = (_number(table[side]) for side in SIDES)
            try:
                facts = json.loads(metadata)
                return cls(source, target, values, facts["weights"], dict(facts["settings"]))
            except (LookupError, TypeError, OverflowError, RecursionError) as error:
                message = (
                    f"not the metadata and columns of subdomains ({error!r}): induce them again"
                )
                raise DataError(message, code="damaged") from error


def _join_words(text: NumberedText) -> pa.Array:
    """Return the sentences as texts, words separated by single spaces."""
    words = pa.array(text.words, pa.large_string()).take(pa.array(text.numbers))
    lists = pa.LargeListArray.from_arrays(pa.array(text.starts), words)
    return pc.binary_join(lists, pa.scalar(" ", pa.large_string()))


def _number(lines: pa.ChunkedArray) -> NumberedText:
    """Return numbered texts: the inverse of `_join_words`."""
    array = lines.cast(pa.large_string()).combine_chunks()
    lists = pc.split_pattern(array, " ")
    encoded = pc.dictionary_encode(pc.list_flatten(lists.filter(pc.not_equal(array, ""))))
    empty = pc.equal(array, "").to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    starts = np.append(0, np.cumsum(np.where(empty, 0, lengths), dtype=np.int64))
    return NumberedText(encoded.dictionary.to_pylist(), encoded.indices.to_numpy(), starts)


def phrase_posteriors(counts: Float64, weights: Float64) -> Float64:
    """Return (phrases, K) float64, P(z | phrase) = c(phrase, z) / c(phrase), of such counts.

    A phrase that is not in the corpus gets the weights, (K,) P(z).

    >>> phrase_posteriors(np.array([[3.0, 1.0], [0.0, 0.0]]), np.array([0.4, 0.6])).tolist()
    [[0.75, 0.25], [0.4, 0.6]]
    """
    total = counts.sum(axis=1, keepdims=True)
    unknown = total == 0
    return np.where(unknown, weights, counts / np.where(unknown, 1.0, total))


def renyi_entropy(probabilities: Float64, order: float = 2.0) -> Float64:
    """Return (n,) float64, Rényi entropies in nats: 1/(1−α) log Σ p^α.

    From 0, all in one subdomain, to log K. For α = 1 it is the Shannon entropy, the limit.

    Args:
        probabilities: (n, K), rows that sum to 1.
        order: α, above 0.

    >>> renyi_entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(4).tolist()
    [0.0, 0.6931]
    """
    if abs(order - 1) < _NEAR_SHANNON:
        logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
        return np.asarray(np.maximum(-(probabilities * logs).sum(axis=1), 0.0))
    # Divide by the largest, because powers of small numbers underflow for large α.
    largest = probabilities.max(axis=1)
    powers = ((probabilities / largest[:, None]) ** order).sum(axis=1)
    return np.asarray(np.maximum((np.log(powers) + order * np.log(largest)) / (1 - order), 0.0))


def chebyshev(first: Float64, second: Float64) -> Float64:
    """Return (n,) max |p − q| over the subdomains, from 0 to 1.

    >>> chebyshev(np.array([[0.75, 0.25]]), np.array([[0.5, 0.5]])).tolist()
    [0.25]
    """
    return np.asarray(np.abs(first - second).max(axis=1))


def hellinger(first: Float64, second: Float64) -> Float64:
    """Return (n,) Hellinger distances, from 0 to 1.

    >>> hellinger(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).round(4).tolist()
    [1.0]
    """
    return np.asarray(np.linalg.norm(np.sqrt(first) - np.sqrt(second), axis=1) / np.sqrt(2))


def kullback_leibler(first: Float64, second: Float64) -> Float64:
    """Return (n,) Kullback–Leibler divergences D(first ‖ second) in nats of (n, K) above 0.

    >>> kullback_leibler(np.array([[0.5, 0.5]]), np.array([[0.75, 0.25]])).round(4).tolist()
    [0.1438]
    """
    return np.asarray((first * np.log(first / second)).sum(axis=1))
