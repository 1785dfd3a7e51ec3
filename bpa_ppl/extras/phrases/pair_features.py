"""Features of phrase pairs for instance weighting (Foster et al. 2010, Section 3.3).

G. Foster, C. Goutte and R. Kuhn, "Discriminative instance weighting for domain adaptation in
statistical machine translation", EMNLP 2010. OUT is the large corpus that a table was extracted
from, IN a small one of the domain. Fourteen features are general, of OUT alone, and eight say how
similar a pair is to IN. A pair is of one or more words on each side.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpa_ppl._runtime.arguments import check_seed, require_one_of
from bpa_ppl._runtime.arrays import Float32, Float64, Int32, Int64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl._runtime.streams import AnyPath, origin_name, require_parallel
from bpa_ppl.errors import DataError
from bpa_ppl.extras.phrases.ibm1 import IBM1
from bpa_ppl.extras.phrases.tables import SIDES, PhraseCounts, Side, find_index, sum_by_number
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.words import NumberedText, iter_sentences

#: Features of OUT: how general a pair is.
GENERAL = (
    *("tokens", "out.count", "out.rarest.source", "out.rarest.target"),
    *("out.ibm1.direct", "out.ibm1.inverse"),
    *(
        f"out.{statistic}.{summary}.{side}"
        for statistic in ("documents", "burstiness")
        for side in SIDES
        for summary in ("mean", "least")
    ),
)
#: Features of similarity to IN.
SIMILARITY = (
    *(f"in.{order}gram.{side}" for side in SIDES for order in (1, 2)),
    *("in.unknown.source", "in.unknown.target", "in.ibm1.direct", "in.ibm1.inverse"),
)
#: All of them, in the order of the columns.
PAIR_FEATURES = GENERAL + SIMILARITY
#: Lines of a pseudo-document.
DOCUMENT = 100
#: Counts and perplexities, whose logarithms have shorter tails.
_SCALES = ("count", "rarest", "ibm1", "documents", "1gram", "2gram")
_EPSILON = 1e-9


#: Sentences, given as lists of words, and their translations.
ParallelCorpus = tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]


def read_corpus(source: AnyPath, target: AnyPath) -> ParallelCorpus:
    """Read two text files, where line n of one is the translation of line n of the other.

    Equal words share memory, so that a corpus needs about ten bytes a word.

    Raises:
        DataError: if a file cannot be read, one is empty, or they differ in length.
    """
    sides = []
    for path in (source, target):
        sides.append(
            [list(map(sys.intern, line)) for part in iter_sentences(path) for line in part]
        )
        if not any(sides[-1]):
            raise DataError("no line: give one sentence a line", path, code="no-data")
    require_parallel(list(map(len, sides)), [origin_name(source), origin_name(target)])
    return sides[0], sides[1]


def _word_statistics(sentences: Sequence[Sequence[str]]) -> tuple[pa.Array, dict[str, Float64]]:
    """Return the distinct words of a text of L sentences, and statistics of their distribution.

    * `frequency`: the number of occurrences.
    * `documents`: the number of pseudo-documents of `DOCUMENT` lines with the word.
    * `burstiness`: g / (L − L/(l + 1) + ε), where l sentences have the word and g is the sum of
      their distances to the nearest other one: about 1 for an evenly distributed word, near 0 for
      one that occurs in bursts. For a word of a single sentence g is L/2, so that the value is 1.

    >>> words, result = _word_statistics([["a", "b"], ["a"], ["c", "c"], ["b"]])
    >>> words.to_pylist(), result["frequency"].tolist(), result["burstiness"].round(3).tolist()
    (['a', 'b', 'c'], [2.0, 2.0, 2.0], [0.75, 2.25, 1.0])
    """
    text = NumberedText.of(sentences)
    length, size = len(text), len(text.words)
    # The distinct pairs of a word and a sentence, sorted.
    keys = text.numbers * np.int64(length) + np.repeat(np.arange(length), np.diff(text.starts))
    word, sentence = np.divmod(np.unique(keys), max(length, 1))
    gaps = np.where(np.diff(word) == 0, np.diff(sentence), np.inf)
    nearest = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf))
    nearest[np.isinf(nearest)] = length / 2
    distance, holding = sum_by_number(word, nearest, size), np.bincount(word, minlength=size)
    documents = np.flatnonzero(np.diff(word * length + sentence // DOCUMENT, prepend=-1))
    return pa.array(text.words, pa.large_string()), {
        "frequency": np.bincount(text.numbers, minlength=size).astype(np.float64),
        "documents": np.bincount(word[documents], minlength=size).astype(np.float64),
        "burstiness": distance / (length - length / (holding + 1) + _EPSILON),
    }


def pair_features(
    table: PhraseCounts,
    outside: ParallelCorpus,
    inside: ParallelCorpus,
    *,
    iterations: int = 5,
    scale: Literal["plain", "log"] = "plain",
    progress: bool | Reporter = False,
) -> tuple[tuple[str, ...], Float32]:
    """Return the names and values, (pairs, 22), of the features, with mean 0 and variance 1.

    Args:
        table: the counts of phrase pairs of OUT.
        outside: the corpus that the table was extracted from, tokenised and cased in the same way.
        inside: IN, a corpus of the domain.
        iterations: of EM, of IBM Model 1.
        scale: `plain`, as published, or `log`: logarithms of counts and perplexities.
        progress: True draws a bar on standard error; or a callback.

    Raises:
        DataError: if the table has no pairs, no word of one side of it is in its corpus, or the
            sides of a corpus are swapped.
        UsageError: if the scale is unknown.

    >>> table = PhraseCounts.of(["le", "le chat"], ["the", "the cat"], [2, 1])
    >>> source, target = [["le", "chat"], ["le", "chien"]], [["the", "cat"], ["the", "dog"]]
    >>> general = domain = source, target
    >>> names, features = pair_features(table, general, domain)
    >>> features.shape, features[:, names.index("tokens")].tolist()
    ((2, 22), [-1.0, 1.0])
    """
    require_one_of(scale, ("plain", "log"), "scale")
    if not len(table):
        raise DataError("no phrase pair in the table: give another one", code="no-data")
    _check_corpora(table, outside, inside)
    features = np.empty((len(table), len(PAIR_FEATURES)), np.float32)
    with reporter(progress, "features of phrase pairs") as report:
        values_by_name = _compute_features(table, outside, inside, iterations)
        for done, (name, values) in enumerate(values_by_name, start=1):
            if scale == "log" and any(part in _SCALES for part in name.split(".")):
                values = np.log1p(values)
            features[:, PAIR_FEATURES.index(name)] = standardise_values(values)
            report(done, len(PAIR_FEATURES), name)
    return PAIR_FEATURES, features


def _check_corpora(table: PhraseCounts, outside: ParallelCorpus, inside: ParallelCorpus) -> None:
    """Refuse corpora in other languages than the table, and warn if IN and OUT seem swapped.

    Args:
        table: the counts of phrase pairs of OUT.
        outside: the corpus that the table was extracted from.
        inside: the corpus of the domain.

    Raises:
        DataError: if no word of one side of the table is in OUT, or more of its words are in the
            other side of a corpus.

    >>> table = PhraseCounts.of(["le chat"], ["the cat"], [1])
    >>> _check_corpora(table, ([["the"]], [["le"]]), ([[]], [[]]))
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: the sides of the corpus OUT are swapped: the source comes first
    """
    words = [
        set(pc.unique(pc.list_flatten(pc.split_pattern(table.phrases(side), " "))).to_pylist())
        for side in SIDES
    ]
    for name, corpus in (("OUT", outside), ("IN", inside)):
        texts = [set().union(*map(set, sentences)) for sentences in corpus]
        overlaps = [[len(phrases & text) for text in texts] for phrases in words]
        if overlaps[0][1] + overlaps[1][0] > overlaps[0][0] + overlaps[1][1]:
            message = f"the sides of the corpus {name} are swapped: the source comes first"
            raise DataError(message, code="mismatch")
        for side, count in zip(SIDES, (overlaps[0][0], overlaps[1][1]), strict=True):
            if name == "OUT" and not count:
                message = f"no word of the {side} phrases in OUT: check languages and tokenisation"
                raise DataError(message, code="mismatch")
    if len(inside[0]) > len(outside[0]):
        warn_user(
            f"the corpus IN has {len(inside[0]):,} lines, and OUT only "
            f"{len(outside[0]):,}: IN is the small corpus of the domain"
        )


def standardise_values(values: Float64) -> Float64:
    """Return values with mean 0 and variance 1; zeros if they are constant.

    >>> [standardise_values(np.array(x)).tolist() for x in ([1.0, 3.0], [2.0, 2.0])]
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    deviation = values.std()
    centred = values - values.mean()
    return np.asarray(
        centred / deviation if deviation > 1e-12 * (1 + np.abs(values).max()) else centred * 0
    )


class _Phrases(NamedTuple):
    """The distinct phrases of one side: lists of words, and all words in an Arrow array."""

    words: list[list[str]]
    flat: pa.Array
    lengths: Int64
    number: Int32  # of the phrase of each pair


def _compute_features(
    table: PhraseCounts, outside: ParallelCorpus, inside: ParallelCorpus, iterations: int
) -> Iterator[tuple[str, Float64]]:
    """Yield the features of all pairs one by one, before they are normalised."""
    sides: dict[Side, _Phrases] = {}
    for side in SIDES:
        parts = pc.split_pattern(table.phrases(side), " ")
        lengths = pc.list_value_length(parts).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = pc.list_flatten(parts)
        sides[side] = _Phrases(parts.to_pylist(), flat, lengths, table.number(side))
    token_counts = [phrases.lengths[phrases.number] for phrases in sides.values()]
    yield "tokens", np.asarray(sum(token_counts), np.float64)
    yield "out.count", table.count
    for (side, phrases), sentences in zip(sides.items(), outside, strict=True):
        vocabulary, statistics = _word_statistics(sentences)
        words = find_index(phrases.flat, vocabulary)
        starts = np.cumsum(phrases.lengths) - phrases.lengths
        # 0 for an unknown word
        values = {name: np.append(column, 0.0)[words] for name, column in statistics.items()}
        least = {n: np.minimum.reduceat(v, starts)[phrases.number] for n, v in values.items()}
        yield f"out.rarest.{side}", least["frequency"]
        for name in ("documents", "burstiness"):
            mean = np.add.reduceat(values[name], starts) / phrases.lengths
            yield f"out.{name}.mean.{side}", mean[phrases.number]
            yield f"out.{name}.least.{side}", least[name]
    yield from _measure_perplexity("out", sides, outside, iterations)
    for (side, phrases), sentences in zip(sides.items(), inside, strict=True):
        for order in (1, 2):
            model = NgramModel.estimate(sentences, order)
            logs, unknown = model.score(phrases.words)
            yield f"in.{order}gram.{side}", np.exp(-logs / (phrases.lengths + 1))[phrases.number]
        yield f"in.unknown.{side}", unknown[phrases.number].astype(np.float64)
    yield from _measure_perplexity("in", sides, inside, iterations)


def _measure_perplexity(
    origin: str, sides: dict[Side, _Phrases], corpus: ParallelCorpus, iterations: int
) -> Iterator[tuple[str, Float64]]:
    """Yield the perplexity of one side of each pair given the other, in both directions."""
    for name, step in (("direct", 1), ("inverse", -1)):
        condition, predicted = list(sides.values())[::step]
        texts = corpus[::step]
        model = IBM1.estimate(texts[0], texts[1], iterations)
        numbers = condition.number, predicted.number
        logs = model.log_probabilities(condition.words, predicted.words, *numbers)
        yield f"{origin}.ibm1.{name}", np.exp(-logs / predicted.lengths[predicted.number])


#: The name of the column.
SVM = "svm"
_MOST_EXAMPLES = 100_000
#: The published definitions of negative examples, the second one first, which is the default.
_NEGATIVES = ("no-common", "source")


def svm_feature(
    outside: PhraseCounts,
    inside: PhraseCounts,
    features: Float32,
    *,
    negatives: Literal["no-common", "source"] = "no-common",
    seed: int = 0,
) -> Float32:
    """Return the decision values of a linear SVM, (pairs of OUT, 1) float32.

    It separates pairs in both tables from others. The values have mean 0 and variance 1; at most
    100,000 examples are drawn. `negatives` is `no-common` for definition 2 of Foster et al. (2010),
    Section 3.4, and `source` for definition 1.

    Raises:
        DataError: if a class has no examples.
        UsageError: if the kind of negative examples is unknown.

    >>> outside = PhraseCounts.of(["s", "t", "t"], ["a", "b", "c"], [1, 1, 1])
    >>> inside = PhraseCounts.of(["s", "t"], ["a", "d"], [1, 1])
    >>> features = np.array([[1.0], [-1.0], [0.0]], np.float32)
    >>> feature = svm_feature(outside, inside, features)
    >>> feature.shape, int(feature.argmax()), int(feature.argmin())
    ((3, 1), 0, 1)
    """
    from sklearn.svm import LinearSVC

    rows, common = choose_examples(outside, inside, negatives=negatives, seed=seed)
    machine = LinearSVC(class_weight="balanced", dual=False, random_state=check_seed(seed))
    machine.fit(features[rows], common)
    decision = np.asarray(machine.decision_function(features), np.float64)
    return standardise_values(decision)[:, None].astype(np.float32)


def choose_examples(
    outside: PhraseCounts,
    inside: PhraseCounts,
    *,
    negatives: Literal["no-common", "source"] = "no-common",
    seed: int = 0,
) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Return the rows of OUT that are examples of `svm_feature`, and whether each is positive.

    Args:
        outside: as for `svm_feature`, like the other arguments.
        inside: as above.
        negatives: as above.
        seed: as above.

    Raises:
        DataError: if a class has no examples.
        UsageError: if the kind of negative examples is unknown.

    >>> outside = PhraseCounts.of(["s", "t", "t"], ["a", "b", "c"], [1, 1, 1])
    >>> inside = PhraseCounts.of(["s", "t"], ["a", "d"], [1, 1])
    >>> rows, positive = choose_examples(outside, inside)
    >>> rows.tolist(), positive.tolist()
    ([0, 1, 2], [True, False, False])
    """
    require_one_of(negatives, _NEGATIVES, "kind of negative examples", "negatives")
    common = inside.find_rows(outside) >= 0
    in_source = inside.find_marginals("source", outside.sources) > 0
    negative = in_source[outside.source] & ~common
    if negatives == "no-common":
        shared = np.bincount(outside.source, common, len(outside.sources)) > 0
        negative &= ~shared[outside.source]
    if not common.any() or not negative.any():
        place = "in both tables" if not common.any() else "only in OUT, with a source of IN"
        message = f"no phrase pair is {place}, which an SVM of two classes needs: give other tables"
        raise DataError(message, code="no-data")
    seed = check_seed(seed)
    rows = np.flatnonzero(common | negative)
    if len(rows) > _MOST_EXAMPLES:
        rows = np.sort(np.random.default_rng(seed).choice(rows, _MOST_EXAMPLES, replace=False))
    return rows, common[rows]
