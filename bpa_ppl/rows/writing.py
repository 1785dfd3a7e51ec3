"""Lists taken apart again: the columns that a structured format or a data frame is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.columns import as_numbers
from bpa_ppl.errors import DataError
from bpa_ppl.labels import expand, repeated
from bpa_ppl.notes import warn_user
from bpa_ppl.rows.base import (
    CANDIDATES,
    ID,
    OF_SENTENCE,
    REFERENCE,
    REFERENCES,
    SOURCE,
    TEXT,
    TOO_LARGE,
    TOTAL,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: Says whether a column of extras can be written such that it reads back as it is.
Fits = Callable[[Sequence[Any]], bool]


class Written(NamedTuple):
    """What can be written of a table.

    Attributes:
        ids: (sentences,) as they were printed: whole numbers, or texts.
        sources: (sentences,), or None.
        references: (sentences,), or None.
        sentence_extras: (sentences,) each.
        numbers: (hypotheses,) each: features, then perhaps the total, then the extras that are
            numbers of which some are missing, NaN.
        extras: (hypotheses,) each.
    """

    ids: Sequence[Any]
    sources: Sequence[str] | None
    references: Sequence[Sequence[str]] | None
    sentence_extras: dict[str, Sequence[Any]]
    numbers: dict[str, npt.NDArray[Any]]
    extras: dict[str, Sequence[Any]]


def written(nbest: Any, long: bool, fits: Fits, fits_sentence: Fits) -> Written:
    """Return what can be written of an NBest; tell what is left out.

    Args:
        nbest: the lists.
        long: whether each record is a hypothesis.
        fits: of columns of hypotheses.
        fits_sentence: of columns of sentences.

    Raises:
        DataError: if a name is that of a field with another meaning.
    """
    judged = {n: v for n, of in nbest.extras.items() if (v := _some_missing(of)) is not None}
    extras = {n: v for n, v in nbest.extras.items() if n not in judged and fits(v)}
    printed = isinstance(nbest.ids[0] if len(nbest) else 0, str)
    of_sentences = {
        name: values
        for name, values in nbest.sentence_extras.items()
        if fits_sentence(values) and not (name == ID and printed)
    }
    numbers = {n: nbest.features[:, k] for k, n in enumerate(nbest.feature_names)}
    scored = nbest.totals is not None and not nbest.totals_normalised
    _check_names(nbest, [*numbers, *judged, *extras], of_sentences, long)
    lost = [n for n in nbest.extras if n not in extras and n not in judged]
    lost += [n for n in nbest.sentence_extras if n not in of_sentences and n != ID]
    lost += [ID] if ID in nbest.sentence_extras and not printed else []
    lost += ["totals that are divided by lengths"] if nbest.totals_normalised else []
    if lost:
        numeric = any(isinstance(nbest.extras.get(name), np.ndarray) for name in lost)
        remedy = "; numbers of hypotheses are written as features (with_features)"
        warn_user(
            f"{nbest.origin}: {', '.join(lost)} left out, which would not read back as it is"
            + (remedy if numeric else "")
        )
    return Written(
        nbest.ids,
        nbest.sources,
        nbest.references,
        of_sentences,
        {**numbers, **({TOTAL: nbest.totals} if scored else {}), **judged},
        extras,
    )


def _some_missing(values: Sequence[Any]) -> npt.NDArray[Any] | None:
    """Return a column of numbers that reads back as one, because some are missing; or None."""
    found = as_numbers(values if isinstance(values, np.ndarray) else tuple(values))
    if found is None or not np.isnan(found).any() or np.any(np.abs(found) >= TOO_LARGE):
        return None
    return values if isinstance(values, np.ndarray) else found


def all_texts(values: Sequence[Any]) -> bool:
    """Say whether all values are texts.

    >>> all_texts(("a", "b")), all_texts((1, "b"))
    (True, False)
    """
    return not isinstance(values, np.ndarray) and all(isinstance(value, str) for value in values)


def table_of(nbest: Any, everything: bool = False) -> pa.Table:
    """Return an NBest as a table of Arrow, a row a hypothesis.

    Args:
        nbest: the lists.
        everything: whether extras that are numbers come along; read back they are features.

    Raises:
        DataError: if a name is that of a column with another meaning.
    """
    import pyarrow as pa

    def fits(values: Sequence[Any]) -> bool:
        return _fits(values) and (everything or not _numeric(values))

    columns = written(nbest, True, fits, _fits)
    parents = np.repeat(np.arange(len(nbest)), nbest.sizes)
    texts = pa.DictionaryArray.from_arrays(nbest.string_index, pa.array(nbest.strings, pa.string()))
    made: dict[str, Any] = {ID: pa.array(columns.ids).take(pa.array(parents))}
    made[TEXT] = texts.cast(pa.string())
    of_sentences: dict[str, Any] = {} if columns.sources is None else {SOURCE: columns.sources}
    of_sentences |= references_by_column(columns.references)
    of_sentences |= {OF_SENTENCE + name: v for name, v in columns.sentence_extras.items()}
    for name, values in of_sentences.items():
        made[name] = pa.array(values).take(pa.array(parents))
    made |= {name: pa.array(values) for name, values in columns.numbers.items()}
    made |= {name: pa.array(values) for name, values in columns.extras.items()}
    return pa.table(made)


def references_by_column(
    references: Sequence[Sequence[str]] | None, lists: bool = True
) -> dict[str, Sequence[Any]]:
    """Return references as columns of a table: one each where all sentences have as many.

    Args:
        references: of each sentence.
        lists: whether those of different numbers go into a column of lists; if not, an empty text
            stands for a reference that a sentence does not have.

    Raises:
        ValueError: if a reference is an empty text and cannot be told from none.

    >>> references_by_column([("a", "b"), ("c", "d")])
    {'reference[0]': ('a', 'c'), 'reference[1]': ('b', 'd')}
    >>> references_by_column([("a", "b"), ()], lists=False)
    {'reference[0]': ('a', ''), 'reference[1]': ('b', '')}
    """
    if references is None:
        return {}
    counts = {len(known) for known in references}
    if lists and (len(counts) > 1 or counts == {0}):
        return {REFERENCES: [list(known) for known in references]}
    if not lists and "" in chain.from_iterable(references):
        raise ValueError("a reference is empty, which reads back as no reference")
    names = expand(REFERENCE, max(counts, default=0))
    return dict(zip(names, zip_longest(*references, fillvalue=""), strict=True))


def _check_names(
    nbest: Any, names: Sequence[str], of_sentences: Mapping[str, Any], long: bool
) -> None:
    known = {ID, SOURCE, REFERENCE, REFERENCES}
    taken = {TEXT} | (known | {CANDIDATES} if long else set())
    # Totals of which some are missing are an extra; so are such sources.
    if TOTAL in nbest.feature_names or nbest.totals is not None:
        taken.add(TOTAL)
    if nbest.sources is None:
        known.discard(SOURCE)
    taken.update(repeated(names))
    for name in names:
        labelled = long and name.startswith((OF_SENTENCE, f"{REFERENCE}["))
        if name in taken or labelled:
            raise DataError(
                f"a column {name}, which has another meaning in this format: rename it",
                nbest.origin,
            )
    for name in of_sentences:
        if name in known | {CANDIDATES, TEXT} and not long:
            raise DataError(
                f"a column {name} of sentences, which has another meaning in this format: rename "
                "it",
                nbest.origin,
            )


def _numeric(values: Sequence[Any]) -> bool:
    return isinstance(values, np.ndarray) or as_numbers(tuple(values)) is not None


def _fits(values: Sequence[Any]) -> bool:
    """Say whether a column is a column of Arrow that reads back."""
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return values.ndim == 1 and values.dtype.kind in "fiub"
    if not len(values) or any(isinstance(value, dict) for value in values):
        return False
    try:
        back = pa.array(values).to_pylist()
    except (pa.ArrowException, OverflowError):
        return False
    pairs = zip(values, back, strict=True)
    return all(type(own) is type(other) or isinstance(own, tuple) for own, other in pairs)
