"""Latent subdomains of a parallel corpus (Cuong, Sima'an & Titov 2016), with their text.

Each sentence pair of a general corpus belongs to one of K subdomains, or to each with some
probability. The text that they were induced from is stored, so that any phrase can be counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import AnyPath, InputFile, atomic_path
from bpa_ppl.nbest import Float32, Float64, Int32, Int64
from bpa_ppl.phrases.pairs import Side
from bpa_ppl.phrases.table_files import as_data_errors, is_parquet
from bpa_ppl.text.words import Ragged, Vocabulary, sentences_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Int16 = npt.NDArray[np.int16]

_METADATA = b"bpa_subdomains"
_HARD, _SOFT = "subdomain", "posteriors"
_GROUP = 1 << 17  # pairs per row group


class NumberedText(NamedTuple):
    """The sentences of one language, their words as numbers.

    Attributes:
        words: the vocabulary, in the order of numbers, which is the order of occurrence.
        numbers: (tokens,) int32, the words of all sentences.
        starts: (sentences + 1,) int64, the start of each sentence, and the number of tokens.
    """

    words: list[str]
    numbers: Int32
    starts: Int64

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]]) -> Self:
        """Return some sentences, given as lists of words.

        >>> NumberedText.of([["a", "b"], [], ["a"]]).numbers.tolist()
        [0, 1, 0]
        """
        return cls._joined([sentences])

    @classmethod
    def read(cls, path: AnyPath) -> Self:
        """Return the lines of a text file (plain, gzip, xz or zstd), words separated by spaces.

        Raises:
            DataError: if the file cannot be read, or is not UTF-8.
        """
        return cls._joined(sentences_of(path))

    @classmethod
    def _joined(cls, parts: Iterable[Sequence[Sequence[str]]]) -> Self:
        vocabulary = Vocabulary()
        words, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        for sentences in parts:
            numbers, starts = vocabulary.number(sentences)
            words.append(numbers)
            lengths.append(np.diff(starts))
        starts = np.cumsum(np.concatenate(lengths), dtype=np.int64)
        return cls(vocabulary.words(), np.concatenate(words), starts)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.starts) - 1

    def word_counts(self) -> csr_matrix:
        """Return (sentences, words) float32, the counts of words in sentences.

        >>> NumberedText.of([["a", "b", "a"], ["b"]]).word_counts().toarray().tolist()
        [[2.0, 1.0], [0.0, 1.0]]
        """
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.numbers), np.float32)
        shape = (len(self), len(self.words))
        # A copy, because SciPy sorts the numbers in place.
        counts = csr_matrix((ones, self.numbers, self.starts), shape, copy=True)
        counts.sum_duplicates()
        return counts

    @property
    def sentences(self) -> Ragged:
        """The numbers of the words, and the start of each sentence, for compiled code."""
        return self.numbers, self.starts


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
        DataError: if shapes disagree, or values are not probabilities.

    >>> text = NumberedText.of([["a"], ["b"]])
    >>> result = Subdomains(text, text, np.array([1, 0]), np.array([0.5, 0.5]))
    >>> result.k, result.hard, result.posteriors().tolist()
    (2, True, [[0.0, 1.0], [1.0, 0.0]])
    """

    source: NumberedText
    target: NumberedText
    assignment: npt.NDArray[Any]
    weights: Float64
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = np.asarray(self.assignment)
        kind: Any = np.float32 if values.ndim == 2 else np.int16
        object.__setattr__(self, "assignment", values.astype(kind, copy=False))
        object.__setattr__(self, "weights", np.asarray(self.weights, np.float64))
        _check(self)

    def __len__(self) -> int:
        """Return the number of sentence pairs."""
        return len(self.assignment)

    def __repr__(self) -> str:
        kind = "hard" if self.hard else "soft"
        return f"Subdomains({counted(len(self), 'sentence pair')}, K={self.k}, {kind})"

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

    def winners(self) -> Int16:
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
            "source": _lines(self.source),
            "target": _lines(self.target),
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
        message = "not a file of subdomains: give one from `bpa subdomains`"
        if not is_parquet(file):
            raise DataError(message, file.origin)
        with as_data_errors(file.origin), file.on_disk() as local:
            table = parquet.ParquetFile(local, pre_buffer=False).read()
            table.validate(full=True)
        try:
            facts = json.loads((table.schema.metadata or {})[_METADATA])
            column = table.column(_HARD if _HARD in table.column_names else _SOFT)
            source, target = (_numbered(table.column(side)) for side in ("source", "target"))
            return cls(source, target, _assigned(column), facts["weights"], facts["settings"])
        except DataError as error:
            raise DataError(str(error), file.origin) from error
        except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
            raise DataError(message, file.origin) from error


def _check(subdomains: Subdomains) -> None:
    pairs, k, assignment = len(subdomains), subdomains.k, subdomains.assignment
    if not pairs == len(subdomains.source) == len(subdomains.target):
        raise DataError(
            f"{pairs} assignments for {len(subdomains.source)} source and "
            f"{len(subdomains.target)} target sentences: there must be one for each pair"
        )
    _check_probabilities(subdomains.weights[None], "the weights P(z)")
    if subdomains.hard:
        if pairs and not 0 <= int(assignment.min()) <= int(assignment.max()) < k:
            raise DataError(f"subdomains must be numbered from 0 to {k - 1}")
    elif assignment.shape[1] != k:
        raise DataError(f"{assignment.shape[1]} posteriors of each pair for {k} subdomains")
    else:
        _check_probabilities(subdomains.assignment, "the posteriors P(z | e, f)")


def _check_probabilities(rows: np.ndarray, name: str) -> None:
    sums = rows.sum(axis=1, dtype=np.float64)
    if not ((rows >= 0).all() and (np.abs(sums - 1) < 1e-4).all()):
        raise DataError(f"{name} are not probabilities that sum to 1: induce the subdomains again")


def _lines(text: NumberedText) -> pa.Array:
    """Return the sentences as texts, words separated by single spaces."""
    words = pa.array(text.words, pa.large_string()).take(pa.array(text.numbers))
    lists = pa.LargeListArray.from_arrays(pa.array(text.starts), words)
    return pc.binary_join(lists, pa.scalar(" ", pa.large_string()))


def _numbered(lines: pa.ChunkedArray) -> NumberedText:
    """Return numbered texts: the inverse of `_lines`."""
    array = lines.cast(pa.large_string()).combine_chunks()
    if array.null_count:
        raise ValueError("empty rows")
    lists = pc.split_pattern(array, " ")
    empty = pc.equal(array, "").to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    tokens = pc.list_flatten(lists)
    if empty.any():
        tokens = tokens.filter(pc.not_equal(tokens, ""))
    encoded = pc.dictionary_encode(tokens)
    starts = np.append(0, np.cumsum(np.where(empty, 0, lengths), dtype=np.int64))
    return NumberedText(encoded.dictionary.to_pylist(), encoded.indices.to_numpy(), starts)


def _assigned(column: pa.ChunkedArray) -> np.ndarray:
    array = column.combine_chunks()
    if array.null_count:
        raise ValueError("empty rows")
    if pa.types.is_fixed_size_list(array.type):
        values: np.ndarray = array.flatten().to_numpy().reshape(len(array), array.type.list_size)
    else:
        values = array.to_numpy()
    return values
