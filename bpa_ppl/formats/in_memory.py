"""Lists from Python: from texts and features, records, data frames, samples, or other lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import flatten, intern, to_array, to_members, to_texts
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl._runtime.named_columns import select_columns
from bpa_ppl._runtime.names import find_positions, find_repeated
from bpa_ppl.errors import DataError, UsageError, list_names, locate, name_lists, quote, wrong_value
from bpa_ppl.formats.advice import advise
from bpa_ppl.formats.block import SOURCE
from bpa_ppl.formats.build import build, join_columns
from bpa_ppl.formats.records import parse_records
from bpa_ppl.formats.references import SentenceLines
from bpa_ppl.formats.roles import AnyFeatures, Missing, Roles, make_roles
from bpa_ppl.formats.samples import build_block
from bpa_ppl.formats.schema import Schema
from bpa_ppl.formats.writing import to_table
from bpa_ppl.lists.ids import AnyReferences
from bpa_ppl.lists.nbest import (
    CAN_LACK,
    COLUMNS,
    NBest,
    demote_to_extras,
    select_features,
    to_names,
    to_offsets,
)

if TYPE_CHECKING:
    import pyarrow as pa

_LARGEST_FIRST_ID = 10**18  # an id beyond it would not fit 64 bits with the number of a list added
#: Between the origins of lists that are joined.
JOINED = " + "


def from_lists(
    texts: Sequence[Sequence[str]],
    features: Sequence[npt.ArrayLike],
    feature_names: Sequence[str],
    *,
    references: AnyReferences | None = None,
    totals: Sequence[npt.ArrayLike] | None = None,
    sources: Iterable[str] | None = None,
    extras: Mapping[str, Sequence[Any]] | None = None,
    sentence_extras: Mapping[str, Iterable[Any]] | None = None,
    sentence_ids: npt.ArrayLike | None = None,
) -> NBest:
    """Build an NBest from a list of texts and a (candidates, features) array per sentence.

    Args:
        texts: the candidates of each sentence.
        features: their features, of which no number may be missing. Tables with names of columns,
            such as data frames, are read by name, arrays by position.
        feature_names: one name per column.
        references: for each sentence a tuple of references, or one text; or by the ids
            of all sentences.
        totals: the decoder's total scores, one sequence per sentence.
        sources: one source text per sentence.
        extras: by name, one sequence per sentence with one value per candidate.
        sentence_extras: by name, one value per sentence.
        sentence_ids: distinct integers; 0, 1, … by default.

    Raises:
        DataError: if numbers of candidates, features or sentences disagree, a feature is missing
            for some candidates or not finite, or two lists have the same id.
        UsageError: if texts, references or sources are not as described.

    >>> lists = from_lists([["a b", "a"]], [[[1.0, 0.0], [0.5, 2.0]]], ["LM0", "WP0"])
    >>> len(lists), lists.sizes.tolist(), lists.texts(0)
    (1, [2], ['a b', 'a'])
    """
    lists = [to_members(candidates, "texts") for candidates in to_members(texts, "texts")]
    sizes = list(map(len, lists))
    names = to_names(feature_names)
    tables = [select_columns(table, names) for table in to_members(features, "features")]
    columns: Any = extras
    if isinstance(extras, Mapping):
        columns = {name: flatten(column, sizes, name) for name, column in extras.items()}
    return from_arrays(
        tuple(chain.from_iterable(lists)),
        flatten(tables, sizes, "features"),
        names,
        sizes,
        references=references,
        totals=None if totals is None else flatten(totals, sizes, "totals"),
        sources=sources,
        extras=columns,
        sentence_extras=sentence_extras,
        sentence_ids=sentence_ids,
    )


def from_arrays(
    texts: Sequence[str],
    features: npt.ArrayLike,
    feature_names: Sequence[str],
    sizes: int | npt.ArrayLike,
    *,
    references: AnyReferences | None = None,
    totals: npt.ArrayLike | None = None,
    sources: Iterable[str] | None = None,
    extras: Mapping[str, Any] | None = None,
    sentence_extras: Mapping[str, Iterable[Any]] | None = None,
    sentence_ids: npt.ArrayLike | None = None,
) -> NBest:
    """Build an NBest from arrays of all candidates, sentence after sentence.

    Args:
        texts: (candidates,).
        features: (candidates, features), of which no number may be missing. A table with names of
            columns, such as a data frame, is read by name, an array by position.
        feature_names: one name per column.
        sizes: (sentences,) the number of candidates of each, or one number for all.
        references: for each sentence a tuple of references, or one text; or by the ids
            of all sentences.
        totals: (candidates,) the decoder's total scores.
        sources: one source text per sentence.
        extras: by name, (candidates,) each.
        sentence_extras: by name, one value per sentence.
        sentence_ids: distinct integers; 0, 1, … by default.

    Raises:
        DataError: if numbers of candidates, features or sentences disagree, a feature is missing
            for some candidates or not finite, or two lists have the same id.
        UsageError: if texts, references or sources are not as described.

    >>> lists = from_arrays(["a b", "a", "c", "d"], np.ones((4, 1)), ["LM0"], 2)
    >>> lists.texts(1), lists.sizes.tolist()
    (['c', 'd'], [2, 2])
    """
    strings, index = intern(to_texts(texts, "texts", "candidate"))
    names = to_names(feature_names)
    table = to_array(select_columns(features, names), np.float64, "features")
    table = table if table.size else table.reshape(len(index), -1 if len(index) else len(names))
    counts = to_array(sizes, np.int64, "sizes")
    if not counts.ndim:
        counts = np.full(len(index) // max(int(counts), 1), counts)
    # NBest converts its columns, and checks that they fit together.
    optional: dict[str, Any] = {
        "totals": totals,
        "sources": sources,
        "sentence_ids": np.arange(len(counts)) if sentence_ids is None else sentence_ids,
        "extras": {} if extras is None else extras,
        "sentence_extras": {} if sentence_extras is None else sentence_extras,
    }
    lists = NBest(to_offsets(counts), table, names, strings=strings, string_index=index, **optional)
    if twice := find_repeated(lists.ids):
        problem = f"two lists of sentence {quote(twice[0])}: give each list its own id"
        raise DataError(problem, code="duplicate")
    return lists if references is None else lists.with_references(references)


def from_records(
    records: Any,
    *,
    references: AnyReferences | None = None,
    sources: Iterable[str] | None = None,
    bad: str = "error",
    first_id: int = 0,
    features: AnyFeatures = None,
    exclude: str | Iterable[str] | None = None,
    missing: Missing | None = None,
) -> NBest:
    """Build an NBest from dictionaries as JSON lines would have them, or from a data frame.

    A record is a sentence, `{"id", "source", "references", "candidates": [{"text", …}]}`, a
    candidate, `{"id", "text", …}`, or a pair, `{"prompt", "chosen", "rejected"}`. A row of a data
    frame is a candidate; its columns `source`, `reference` and `sentence.NAME` belong to the
    sentence.

    Args:
        records: dictionaries, or columns by name, such as those of a Hugging Face data set; or a
            data frame from pandas, polars or another library that exports Arrow.
        references: instead of those in the records: for each sentence, in the order of the ids, a
            tuple of references, or one text; or by id.
        sources: used instead of those in the records, one text for each sentence.
        bad: as for `read_nbest`.
        first_id: the id of the first sentence; ids that are texts are counted from here.
        features: as for `read_nbest`.
        exclude: as for `read_nbest`.
        missing: as for `read_nbest`.

    Raises:
        DataError: naming the record, counted from 1, if one is not as described.
        UsageError: if these are not records.

    >>> records = [{"id": 0, "text": "a", "lm": -1, "system": "ours"}]
    >>> lists = from_records(records, features=["lm"])
    >>> lists.feature_names, lists.extras["system"]
    (('lm',), ('ours',))
    >>> import pyarrow as pa
    >>> frame = pa.table({"id": [0, 0], "text": ["a", "b"], "lm": [-1.0, -2.0]})
    >>> from_records(frame, features="*").features.tolist()
    [[-1.0], [-2.0]]
    """
    require_one_of(bad, ("error", "drop"), "policy", "bad")
    if not isinstance(first_id, int) or abs(first_id) >= _LARGEST_FIRST_ID:
        raise wrong_value("first_id must be an integer of at most 18 digits", first_id, "first_id")
    roles, entries = make_roles(features, exclude, missing), _to_entries(references, sources)

    def read(changes: Mapping[str, Any]) -> Iterator[NBest]:
        changed = roles.changed(changes.get("exclude", ()), changes.get("missing"))
        first = changes.get("first_id", first_id)
        schema = Schema(NBest.origin, changes.get("bad", bad), first, changed)
        return build([parse_records(records, schema)], schema, entries)

    try:
        return next(read({}))
    except DataError as error:
        raise advise(error, read) from error.__cause__


def from_samples(
    texts: Iterable[Sequence[str]],
    logprobs: Iterable[Sequence[npt.ArrayLike]] | None = None,
    *,
    references: AnyReferences | None = None,
    sources: Iterable[str] | None = None,
) -> NBest:
    """Build an NBest from texts that a language model sampled for each prompt.

    Features are `logprob.sum`, `logprob.mean` and `logprob.min` of the tokens, their number
    `length`, and the number `count` of equal texts, which are merged.

    Args:
        texts: for each prompt its texts.
        logprobs: for each prompt and text the log-probabilities of its tokens, or None.
        references: for each prompt a tuple of references, or one text.
        sources: one source text for each prompt.

    Raises:
        DataError: if numbers of texts and log-probabilities disagree, or one is not finite.
        UsageError: if an argument is not as described.

    >>> lists = from_samples([["a cat", "cat"]], [[[-1.0, -2.0, -0.5], [-0.5, -1.0]]])
    >>> lists.feature_names
    ('logprob.sum', 'logprob.mean', 'logprob.min', 'length', 'count')
    >>> lists.features[:, [0, 3]].tolist()
    [[-3.5, 3.0], [-1.5, 2.0]]
    """
    schema = Schema(roles=Roles(all_numbers=True))
    block = build_block(texts, logprobs)
    return next(build([block], schema, _to_entries(references, sources)))


def _to_entries(
    references: AnyReferences | None, sources: Iterable[str] | None
) -> list[SentenceLines]:
    """Return references and sources of each sentence, where they are given."""
    entries = [] if references is None else [SentenceLines.of_references(references)]
    if sources is not None:
        entries.append(SentenceLines(to_texts(sources), "the text", SOURCE))
    return entries


def concatenate(
    parts: Iterable[NBest], *, renumber: bool = False, fill_missing: bool = False
) -> NBest:
    """Return the lists of several tables as one table.

    Features are matched by name, and have the order of the first table. A feature of some
    tables that is an extra of others becomes an extra.

    Args:
        parts: the tables; each has the same features and other columns.
        renumber: number the sentences from 0.
        fill_missing: whether a table may lack a column that another one has, such as
            references or judgements: its values are missing, as in one file where only some
            lines have it, and a warning says for how many.

    Raises:
        DataError: if a feature or another column is not in each of them and `fill_missing` is
            false, if all of them have features and none in common, or if two tables have a sentence
            id in common and `renumber` is false.
        UsageError: if there is no table.

    >>> one = from_lists([["a"]], [[[1.0]]], ["LM0"])
    >>> concatenate([one, one], renumber=True).sentence_ids.tolist()
    [0, 1]
    """
    tables = list(parts)
    if not tables:
        message = "concatenating needs at least one table"
        raise UsageError(message, parameter="parts", code="no-data")
    if fill_missing:
        tables = _align_columns(tables)
    # A column that is missing for some candidates of one table is not a feature of the others.
    extras = {name for table in tables for name in table.extras}
    tables = [demote_to_extras(table, extras) for table in tables]
    first = tables[0]
    for table in tables:
        if names := sorted(set(table.feature_names) ^ set(first.feature_names)):
            problem = (
                f"{list_names(names)} is not in both {name_lists(first.origin)} and these lists"
            )
            raise DataError(f"{problem}: use without", table.origin, code="mismatch")
    tables = [
        select_features(t, find_positions(first.feature_names, t.feature_names)) for t in tables
    ]
    origins = [table.origin for table in tables]
    ids = [i for table in tables for i in np.unique(table.sentence_ids).tolist()]
    if len(set(ids)) < len(ids) and not renumber:
        together = list_names(dict.fromkeys(map(name_lists, origins)))
        problem = f"{together} have sentence ids in common"
        remedy = "concatenate them with renumber=True, which numbers the sentences from 0"
        raise DataError(f"{problem}: {remedy}", parameter="renumber", code="duplicate")
    joined: dict[str, Any] = {}
    for name, (kind, _) in COLUMNS.items():
        if kind == "table":
            continue
        sizes = [len(table if kind == "sentence" else table.features) for table in tables]
        columns = [getattr(table, name) for table in tables]
        joined[name] = join_columns(name, columns, origins, sizes if fill_missing else None)
    texts = (map(table.strings.__getitem__, table.string_index.tolist()) for table in tables)
    strings, joined["string_index"] = intern(chain.from_iterable(texts))
    if renumber:
        joined["sentence_ids"] = np.arange(len(joined["sentence_ids"]))
    return NBest(
        offsets=to_offsets(np.concatenate([table.sizes for table in tables])),
        feature_names=tables[0].feature_names,
        strings=strings,
        origin=JOINED.join(dict.fromkeys(origins)),
        totals_normalised=any(table.totals_normalised for table in tables),
        cells=frozenset().union(*(table.cells for table in tables)),
        **joined,
    )


def _align_columns(tables: Sequence[NBest]) -> list[NBest]:
    """Return tables whose features, totals and sources are extras if another table has none.

    A warning says how many values are missing when these tables are joined.

    Raises:
        DataError: if all tables have features, and none in common.
    """
    names = [set(table.feature_names) for table in tables]
    common = set.intersection(*names)
    if not common and all(names):
        origins = ", ".join(dict.fromkeys(name_lists(table.origin) for table in tables))
        message = f"no feature in common of {origins}: give files of the same features"
        raise DataError(message, code="mismatch")
    extended = []
    lacks = {name for name in CAN_LACK for one in tables if getattr(one, name) is None}
    for table in tables:
        one = demote_to_extras(table, set(table.feature_names) - common)
        if one.totals is not None and "totals" in lacks:
            one = one.with_extras(total=one.totals).without("totals")
        if one.sources is not None and "sources" in lacks:
            one = one.with_sentence_extras(source=one.sources).without("sources")
        extended.append(one)
    origin = JOINED.join(dict.fromkeys(table.origin for table in tables))
    present: dict[str, int] = {}
    for name in dict.fromkeys(chain.from_iterable(one.extras for one in extended)):
        with suppress(ValueError):  # lists that differ in length
            columns = [np.asarray(one.extras[name]) for one in extended if name in one.extras]
            if len(columns) < len(extended) and all(of.dtype.kind == "f" for of in columns):
                present[name] = sum(int(np.count_nonzero(~np.isnan(of))) for of in columns)
    notes = _describe_missing(present, sum(len(table.features) for table in tables))
    sentences = sum(map(len, tables))
    for name in ("references", "sources"):
        having = sum(len(table) for table in tables if getattr(table, name) is not None)
        if having and name in lacks:
            absent = f"no {name} for {sentences - having} of {format_count(sentences, 'sentence')}"
            notes.append(f"{absent}, those of files without any")
    for note in notes:
        warn_user(f"{locate(origin)}{note}")
    return extended


def _describe_missing(present: Mapping[str, int], count: int) -> list[str]:
    """Return notes on columns of numbers that lack some values.

    Args:
        present: the number of values of each, by name.
        count: the number of candidates.

    >>> _describe_missing({"lm": 300, "mqm": 180, "da": 180}, 300)
    ['mqm, da are missing for 120 of 300 candidates: not used as features']
    """
    groups: dict[int, list[str]] = {}
    for name, available in present.items():
        if available < count:
            groups.setdefault(available, []).append(name)
    notes = []
    for available, names in groups.items():
        are, features = ("is", "a feature") if len(names) == 1 else ("are", "features")
        share = f"{count - available} of {count}" if available else f"all {count}"
        missing = f"{list_names(names)} {are} missing for {share} candidates: "
        notes.append(f"{missing}not used" + (f" as {features}" if available else ""))
    return notes


def to_arrow(lists: NBest) -> pa.Table:
    """Return lists as an Arrow table with one row per candidate, which data frames read.

    `from_records(table, features=lists.feature_names)` reads it back.

    Raises:
        DataError: if a name has another meaning in the table.

    >>> table = to_arrow(from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"]))
    >>> table.column_names, table["LM0"].to_pylist()
    (['id', 'text', 'LM0'], [1.0, 2.0])
    """
    return to_table(lists)
