"""Tables whose columns have names are read by name, whatever their order, wherever one is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
from support.posteriors import external_posterior

from bpa_ppl import DataError, Reranker, UsageError, add_features, from_arrays, from_lists
from bpa_ppl._runtime.named_columns import select_columns
from bpa_ppl.extending import FeatureSource, match

NAMES = ["a", "b", "c"]
TEXTS = ["x", "y"]
TABLE = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]])
FRAME = pd.DataFrame(TABLE, columns=NAMES)
#: The same columns in another order, in every form that has names.
SHUFFLED = FRAME[["c", "a", "b"]]


class _Exporter:
    """A table of another library, which exports Arrow and cannot do more."""

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return pa.table(SHUFFLED).__arrow_c_stream__(requested)


FORMS: dict[str, Any] = {
    "pandas": SHUFFLED,
    "pandas with an index": SHUFFLED.set_index(pd.Index([5, 7], name="row")),
    "dask": dask.dataframe.from_pandas(SHUFFLED, npartitions=1),
    "table of Arrow": pa.table(SHUFFLED),
    "batch of Arrow": pa.table(SHUFFLED).to_batches()[0],
    "exported": _Exporter(),
    "structured array": SHUFFLED.to_records(index=False),
    "array of xarray": xr.DataArray(SHUFFLED, dims=("row", "feature")),
    "dataset of xarray": xr.Dataset.from_dataframe(SHUFFLED),
    "mapping": SHUFFLED.to_dict("list"),
    "records": SHUFFLED.to_dict("records"),
    "rows": [row for _, row in SHUFFLED.iterrows()],
}
#: Without names, or with the names of positions.
BY_POSITION: dict[str, Any] = {
    "array": TABLE,
    "lists": TABLE.tolist(),
    "pandas": pd.DataFrame(TABLE),
    "array of xarray": xr.DataArray(TABLE),
}


def _add(table: Any) -> Any:
    class Source(FeatureSource, frozen=True):
        def columns(self, lists: Any) -> Any:
            return NAMES, table

    empty = from_lists([TEXTS], [np.empty((2, 0))], [])
    return add_features(empty, Source()).features


#: What takes a table of features, and returns it in the order a, b, c.
TAKERS: dict[str, Callable[[Any], Any]] = {
    "from_lists": lambda table: from_lists([TEXTS], [table], NAMES).features,
    "from_arrays": lambda table: from_arrays(TEXTS, table, NAMES, 2).features,
    "with_features": lambda table: (
        from_lists([TEXTS], [[[0.0], [0.0]]], ["d"]).with_features(NAMES, table).features[:, 1:]
    ),
    "source": _add,
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("form", FORMS)
def test_features_are_read_by_name(form: str, taker: str) -> None:
    np.testing.assert_array_equal(TAKERS[taker](FORMS[form]), TABLE)


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("form", BY_POSITION)
def test_features_without_names_are_read_by_position(form: str, taker: str) -> None:
    np.testing.assert_array_equal(TAKERS[taker](BY_POSITION[form]), TABLE)


@pytest.fixture(scope="module")
def reranker() -> Reranker:
    drawn = np.random.default_rng(0).normal([3.0, 0.0, 0.5], 0.1, size=(4, 500, 3))
    return Reranker(external_posterior(drawn, tuple(NAMES)))


@pytest.mark.parametrize("form", FORMS)
def test_a_reranker_chooses_from_columns_by_name(reranker: Reranker, form: str) -> None:
    assert reranker.choose(TEXTS, FORMS[form]) == reranker.choose(TEXTS, TABLE)


@pytest.mark.parametrize("scores", [SHUFFLED.iloc[0], dict(SHUFFLED.iloc[0])])
@pytest.mark.parametrize("kind", ["reward", "aggregate"])
def test_scores_of_a_candidate_are_read_by_name(reranker: Reranker, kind: str, scores: Any) -> None:
    function = getattr(reranker, kind)()
    assert function(scores) == function(TABLE[0])
    with pytest.raises(DataError, match="of a, b, c"):
        function({"a": 1.0, "b": 1.0, "d": 1.0})


def test_weights_are_read_by_name() -> None:
    lists = from_lists([TEXTS], [TABLE], NAMES)
    weights = pd.Series({"c": 3.0, "a": 1.0, "b": 2.0})
    by_name = dict(weights)
    np.testing.assert_array_equal(lists.scores(weights), lists.scores(by_name))
    assert match(weights, lists).values.tolist() == [1.0, 2.0, 3.0]
    assert match(pd.Series([1.0, 2.0, 3.0]), lists).values.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (FRAME[["a", "b"]], "lack c"),
        (FRAME.assign(d=1.0), "have the unknown d"),
        (FRAME.rename(columns={"b": "d"}), "lack b and have the unknown d"),
        (FRAME.rename(columns={"a": 1, "b": 0, "c": 2}), "lack a, b, c and have the unknown 1"),
        (pd.concat([FRAME, FRAME[["a"]]], axis=1), "two columns a"),
        ([{"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "d": 3}], "rows of features have different"),
        ({"a": [1], "b": [1], "c": [1, 2]}, "differ in length"),
    ],
)
def test_other_names_are_an_error(table: Any, message: str) -> None:
    for take in (TAKERS["from_lists"], TAKERS["from_arrays"]):
        with pytest.raises(DataError, match=message) as caught:
            take(table)
        assert caught.value.parameter == "features"


def test_values_of_columns_are_numbers_in_memory() -> None:
    class Plan:
        columns = ("a",)

    with pytest.raises(UsageError, match="features must be a table in memory"):
        select_columns(Plan(), ["a"])
    with pytest.raises(UsageError, match="the column a of features must be numbers"):
        select_columns({"a": ["x"]}, ["a"])
