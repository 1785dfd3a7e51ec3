"""Lists written to files of every format, and as the columns of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import as_numbers
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.streams import AnyPath, file_suffix
from bpa_ppl._runtime.values import format_shortest
from bpa_ppl.errors import DataError, list_names, locate, quote, unknown_name
from bpa_ppl.formats.block import (
    CANDIDATES,
    ID,
    ID_NUMBER,
    OF_SENTENCE,
    REFERENCE,
    REFERENCES,
    SOURCE,
    TEXT,
    TOTAL,
)
from bpa_ppl.formats.format import AUTO, NBEST_FORMATS, NBestFormat, resolve_format
from bpa_ppl.formats.roles import OF_FEATURES
from bpa_ppl.lists.ids import id_key
from bpa_ppl.lists.labels import expand
from bpa_ppl.lists.nbest import Column, NBest, describe_candidate
from bpa_ppl.weights import match

if TYPE_CHECKING:
    import pyarrow as pa

#: Returns whether a column of extras reads back unchanged once it is written.
_Fits = Callable[[Any], bool]
# The format without a named one.
_USUAL = "moses"
# Endings that do not name a format: `dev.nbest`, `dev.100best`, `dev.txt`.
_LIST_ENDINGS = re.compile(r"\.txt|\.out|\..*best.*")


def write_nbest(
    lists: NBest,
    path: AnyPath,
    weights: Mapping[str, float] | None = None,
    *,
    format: str | NBestFormat = AUTO,
) -> None:
    """Write lists; features read back with the same bits.

    Args:
        lists: the lists.
        path: the file; .gz, .xz and .zst are compressed, `-` is the standard output. It appears
            when it is complete.
        weights: write λ·h as the totals; None writes those of the table, if it has any.
        format: the name of a format, or the format itself; "auto" is that of `_format_for`.

    Raises:
        DataError: if the file cannot be written, a feature has no weight, two lists have one id,
            or a text or name does not fit the format.
        UsageError: if the format is unknown, or no format has the ending of the file.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a cat"]], [[[-1.5, 2]]], ["LM0", "W0"])
    >>> write_nbest(lists, "-", {"LM0": 2, "W0": 1})
    0 ||| a cat ||| LM0= -1.5 W0= 2 ||| -1
    """
    writer = _format_for(path) if format == AUTO else resolve_format(format)
    if twice := find_repeated(lists.ids):
        raise DataError(
            f"two lists of sentence {quote(twice[0])}: give them other ids, as "
            "concatenate([lists], renumber=True) does",
            lists.origin,
            code="duplicate",
        )
    if weights is not None:
        scores = lists.scores(match(weights, lists).values)
        lists = replace(lists, totals=scores, totals_normalised=False)
    writer.write_file(lists, path)


def _format_for(path: AnyPath) -> NBestFormat:
    """Return the format in which lists are written to a file of some name, compressed or not.

    It follows from the ending (`.jsonl`, `.csv`, …), and is Moses' without any ending, or with
    .lists (.nbest100, .100best), .txt or .out.

    Raises:
        UsageError: if the name has another ending.

    >>> _format_for("dev.jsonl.gz"), _format_for("dev.nbest100.gz")
    (Jsonl(), Moses())
    >>> _format_for("dev.tab")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: unknown ending '.tab' of dev.tab: choose one of ...
    """
    suffix = file_suffix(path)
    if not suffix:
        return resolve_format(_USUAL)
    suffixes: list[str] = []
    for _, kind in NBEST_FORMATS.load():
        if suffix in kind.suffixes:
            return kind()
        suffixes += kind.suffixes
    if _LIST_ENDINGS.fullmatch(suffix):
        return resolve_format(_USUAL)
    endings = [".lists", ".txt", ".out", *suffixes]
    raise unknown_name("ending", suffix, endings, "format", owner=path)


class Writable(NamedTuple):
    """The columns of a table that can be written.

    Attributes:
        sentence_extras: (sentences,) each.
        features: (candidates,) each.
        totals: (candidates,), or None.
        extras: (candidates,) each.
    """

    sentence_extras: Mapping[str, Any]
    features: Mapping[str, Any]
    totals: Any
    extras: Mapping[str, Any]


def select_writable(
    lists: NBest, long: bool, fits: _Fits, fits_sentence: _Fits, *, typed: bool = True
) -> Writable:
    """Return the columns of lists that can be written; warn about those that are left out.

    Args:
        lists: the lists.
        long: whether each record is a candidate.
        fits: for columns of candidates.
        fits_sentence: for columns of sentences.
        typed: whether the file distinguishes numbers from texts.

    Raises:
        DataError: if a name has another meaning in the format, or an id is an empty text.
    """
    names = [] if long or not fits_sentence(lists.extras.get(ID, ())) else [ID]  # of candidates
    columns = lists.extras if not typed else _convert_cells(lists)
    extras = {n: v for n, v in columns.items() if n in names or fits(v)}
    printed = isinstance(lists.ids[0] if len(lists) else 0, str)
    of_sentences = {
        name: values
        for name, values in lists.sentence_extras.items()
        if fits_sentence(values) and not (name == ID and printed)
    }
    if "" in lists.ids:
        message = "the id of a list is an empty text, which no file has: give it another one"
        raise DataError(message, lists.origin, code="not-supported")
    if printed and (numbers_of_ids := _find_numbers(lists, typed)) is not None:
        of_sentences[ID_NUMBER] = tuple(numbers_of_ids)
    features = {n: lists.features[:, k] for k, n in enumerate(lists.feature_names)}
    scored = lists.totals is not None and not lists.totals_normalised
    _check_names(lists, list(extras), of_sentences, long)
    lost = [n for n in lists.extras if n not in extras]
    lost += [n for n in lists.sentence_extras if n not in of_sentences and n != ID]
    lost += [ID] if ID in lists.sentence_extras and not printed else []
    lost += ["totals that are divided by lengths"] if lists.totals_normalised else []
    if lost:
        note = f"{list_names(lost)} left out, which would not read back unchanged"
        warn_user(locate(lists.origin) + note)
    return Writable(of_sentences, features, lists.totals if scored else None, extras)


def _convert_cells(lists: NBest) -> Mapping[str, Any]:
    """Return extras in which cells of text files are numbers, if all of a column print as such.

    They print as these numbers again, so that `07` and `1.50` remain texts.
    """
    columns = dict(lists.extras)
    for name in lists.cells:
        numbers = as_numbers(columns[name], cells=True)
        if numbers is None:
            continue
        printed = [None if n != n else format_shortest(n) for n in numbers.tolist()]
        if printed == list(columns[name]):
            whole = [n != n or n.is_integer() for n in numbers.tolist()]
            columns[name] = tuple(
                None if n != n else int(n) if all(whole) else n for n in numbers.tolist()
            )
    return columns


def _find_numbers(lists: NBest, typed: bool) -> list[int] | None:
    """Return the integers of ids that are texts; None if they are counted where they are read.

    In a file that does not distinguish numbers from texts, ids of digits would be integers.
    """
    numbers: list[int] = lists.sentence_ids.tolist()
    if numbers != list(range(len(lists))):
        return numbers
    values = [] if typed else [key for name in lists.ids if isinstance(key := id_key(name), int)]
    if not values:
        return None
    # References by line are paired with such ids by their values.
    return values if len(set(values)) == len(lists) and min(values) >= 0 else numbers


def require_plain_texts(lists: NBest, *, blanks: bool = True, tabs: bool = True) -> None:
    """Refuse texts that are not one line of text without an end.

    Args:
        lists: the lists.
        blanks: whether texts may begin or end with blanks.
        tabs: whether texts may have tabs.

    Raises:
        DataError: with the first candidate whose text does not read back.
    """
    problems = {"\n": "a line break", "\r": "a line break", "\0": "a NUL byte"}
    problems |= {} if tabs else {"\t": "a tab"}
    for place, text in enumerate(lists.strings):
        problem = next((problem for mark, problem in problems.items() if mark in text), None)
        if not (blanks or problem) and text != text.strip(" "):
            problem = "a blank at its beginning or end"
        rows = np.flatnonzero(lists.string_index == place if problem else [])
        if len(rows):
            raise DataError(
                f"the text of {describe_candidate(lists, int(rows[0]))} has {problem}: write jsonl",
                lists.origin,
                code="not-supported",
            )


def warn_about_ids(lists: NBest) -> None:
    """Warn that a format of lines has no ids that are texts."""
    if len(lists) and isinstance(lists.ids[0], str):
        problem = f"the ids are texts, such as {quote(lists.ids[0])}, and are left out: the lists "
        warn_user(f"{locate(lists.origin)}{problem}are numbered")


def are_texts(values: Sequence[Any]) -> bool:
    """Return whether all values are texts.

    >>> are_texts(("a", "b")), are_texts((1, "b"))
    (True, False)
    """
    return not isinstance(values, np.ndarray) and all(isinstance(value, str) for value in values)


def to_table(lists: NBest, prefix: str = "") -> pa.Table:
    """Return lists as an Arrow table with one row per candidate.

    Args:
        lists: the lists.
        prefix: of the names of features.

    Raises:
        DataError: if a name has another meaning in the table.
    """
    import pyarrow as pa

    columns = select_writable(lists, True, _fits, _fits)
    parents = np.repeat(np.arange(len(lists)), lists.sizes)
    texts = pa.DictionaryArray.from_arrays(lists.string_index, pa.array(lists.strings, pa.string()))
    named: dict[str, Any] = {ID: pa.array(lists.ids).take(pa.array(parents))}
    named[TEXT] = texts.cast(pa.string())
    for name, values in expand_sentence_columns(lists, columns).items():
        named[name] = pa.array(values).take(pa.array(parents))
    others = {prefix + name: values for name, values in columns.features.items()}
    others |= {} if columns.totals is None else {TOTAL: columns.totals}
    others |= columns.extras
    if twice := find_repeated([*named, *others]):
        problem = f"a column {twice[0]}, which has another meaning in a table: rename it"
        raise DataError(problem, lists.origin, code="bad-name")
    return pa.table(named | {name: pa.array(values) for name, values in others.items()})


def expand_sentence_columns(
    lists: NBest, columns: Writable, as_lists: bool = True
) -> dict[str, Any]:
    """Return what belongs to the sentences as columns of a table: (sentences,) each.

    There is a column for each reference if all sentences have the same number of them.

    Args:
        lists: the lists.
        columns: those that can be written.
        as_lists: whether to use a column of lists if the numbers of references differ; otherwise an
            empty text is a missing reference.

    Raises:
        DataError: if a reference is an empty text, which would read back as a missing one.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"]], [[[1.0]]], ["lm"], references=[("b", "c")])
    >>> expand_sentence_columns(lists, Writable({"doc": ("d",)}, {}, None, {}))
    {'reference[0]': ('b',), 'reference[1]': ('c',), 'sentence.doc': ('d',)}
    """
    named: dict[str, Any] = {} if lists.sources is None else {SOURCE: lists.sources}
    counts = {len(texts) for texts in lists.references or ()}
    if lists.references is not None and as_lists and (len(counts) > 1 or counts == {0}):
        named[REFERENCES] = [list(texts) for texts in lists.references]
    elif lists.references is not None:
        if not as_lists and "" in chain.from_iterable(lists.references):
            message = "a reference is empty, which reads back as no reference: write jsonl"
            raise DataError(message, lists.origin, code="not-supported")
        names = expand(REFERENCE, max(counts, default=0))
        named |= zip(names, zip_longest(*lists.references, fillvalue=""), strict=True)
    return named | {OF_SENTENCE + name: of for name, of in columns.sentence_extras.items()}


def _check_names(
    lists: NBest, names: Sequence[str], of_sentences: Mapping[str, Any], long: bool
) -> None:
    fields = {ID, SOURCE, REFERENCE, REFERENCES}
    reserved = {TEXT, OF_FEATURES[:-1], *((*fields, CANDIDATES) if long else ())}
    # Totals of which some are missing are an extra; so are such sources.
    if lists.totals is not None:
        reserved.add(TOTAL)
    if lists.sources is None:
        fields.discard(SOURCE)
    prefixes = (OF_FEATURES, *((OF_SENTENCE, f"{REFERENCE}[") if long else ()))
    bad = [name for name in names if name in reserved or name.startswith(prefixes)]
    bad += [name for name in of_sentences if name in {*fields, CANDIDATES, TEXT} and not long]
    bad += [name for name in lists.feature_names if name in (TEXT, TOTAL)]
    if bad:
        problem = f"a column {bad[0]}, which has another meaning in this format: rename it"
        raise DataError(problem, lists.origin, code="bad-name")


def _fits(values: Column) -> bool:
    """Return whether a column can be an Arrow column that reads back unchanged."""
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
    return all(type(cell) is type(other) or isinstance(cell, tuple) for cell, other in pairs)
