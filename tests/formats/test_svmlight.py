"""Lines of SVMlight with a qid, as learning to rank keeps them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from raising import raises
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from table_content import table_content

from bpa_ppl import NBest, adapt, describe, point_weights, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError

GOLDEN = Path(__file__).parent / "golden" / "letor.svmlight"
Write = Callable[..., Path]


def graded_lists(names: tuple[str, ...] = ("f1", "f2", "f3", "f7"), seed: int = 0) -> NBest:
    """Lists of three candidates with sparse features and a grade from 0 to 2."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(12, 3, 4)) * (rng.random((12, 3, 4)) < 0.6)
    grades = np.digitize(features[..., 0] + 0.1 * rng.normal(size=(12, 3)), [-0.5, 0.5])
    texts = [[f"document {s} {i}" for i in range(3)] for s in range(12)]
    lists = NBest.from_lists(texts, features, names)
    return lists.with_extras(label=grades.reshape(-1).astype(np.float32))


def test_the_golden_file() -> None:
    lists = read_nbest(GOLDEN, strict=True)
    assert lists.ids == (10, 18032)
    assert lists.texts(0) == ["docid = GX029-35-5894638 inc = 0.0119", "docid = GX030-77-6315042"]
    assert lists.texts(1) == ["1", "2"]
    assert lists.feature_names == ("f1", "f2", "f3", "f4")
    first = [[0.03131, 0.666667, 0, -1.5], [0.078682, 0, 1, 0]]
    expected = [*first, [0, 0.25, 0, 0], [0.3, 0.5, 0, 0]]
    assert lists.features.tolist() == np.float32(expected).tolist()
    assert lists.extras["label"].tolist() == [2, 0, 1, 0]


def test_the_same_numbers_as_scikit_learn_in_both_directions(tmp_path: Path) -> None:
    lists = graded_lists()
    write_nbest(lists, tmp_path / "lists.svmlight")
    assert table_content(read_nbest(tmp_path / "lists.svmlight")) == table_content(lists)
    table, label, qid = load_svmlight_file(str(tmp_path / "lists.svmlight"), query_id=True)
    assert table.toarray()[:, [0, 1, 2, 6]].astype(np.float32).tolist() == lists.features.tolist()
    assert label.tolist() == lists.extras["label"].tolist()
    assert qid.tolist() == np.repeat(lists.sentence_ids, 3).tolist()
    path = tmp_path / "again"
    dump_svmlight_file(table, label, str(path), query_id=qid, zero_based=False, comment="by them")
    again = read_nbest(path)
    assert again.feature_names == lists.feature_names
    assert again.features.tolist() == lists.features.tolist()
    assert again.texts(3) == ["1", "2", "3"]


def test_the_label_is_the_gain_and_no_feature(tmp_path: Path) -> None:
    write_nbest(graded_lists(), tmp_path / "lists.letor")
    lists = read_nbest(tmp_path / "lists.letor")
    assert "label" not in lists.feature_names
    assert "label" in str(describe(lists, "label"))
    posterior = adapt(lists, None, metric="label", sampler="map")
    assert tuple(point_weights(posterior)) == ("f1", "f2", "f3", "f7")


def test_other_names_are_numbered_and_another_column_is_the_label(tmp_path: Path) -> None:
    lists = graded_lists(("a", "b", "c", "d"))
    with pytest.warns(BpaWarning, match="a is f1"):
        write_nbest(lists, tmp_path / "out", format="svmlight")
    assert read_nbest(tmp_path / "out").feature_names == ("f1", "f2", "f3", "f4")
    with pytest.warns(BpaWarning, match="b is f1"):
        write_nbest(lists, tmp_path / "out", format="svmlight:label=a")
    assert read_nbest(tmp_path / "out").extras["label"].tolist() == lists.features[:, 0].tolist()


def test_lists_that_do_not_fit_are_not_written() -> None:
    lists = graded_lists()
    with raises(UsageError, "missing-column", parameter="format", match="label=COLUMN"):
        write_nbest(lists.without("label"), "-", format="svmlight")
    missing = lists.with_extras(label=[1.0] * 35 + [None])
    with raises(DataError, "not-supported", match="label"):
        write_nbest(missing, "-", format="svmlight")
    with raises(DataError, "not-supported", match="a blank or #"):
        write_nbest(lists.with_sentence_extras(id=["a b"] * 12), "-", format="svmlight")
