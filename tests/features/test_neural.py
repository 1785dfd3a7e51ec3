"""Features of neural models, with a stub of the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from comet_environment import install
from raising import raises

from bpa_ppl import NBest, add_features
from bpa_ppl.errors import DataError
from bpa_ppl.features import QualityEstimate

LISTS = NBest.from_lists(
    [["a b", "b", "a b"], ["c"]], [[[0.0]] * 3, [[1.0]]], ["LM0"], sources=["a", "c"]
)


def test_scores_are_those_of_the_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = install(tmp_path, monkeypatch)
    model = str(environment.checkpoint("kiwi"))
    lists = add_features(LISTS, QualityEstimate(model=model, name="kiwi"))
    assert lists.feature_names == ("LM0", "kiwi")
    assert lists.features[:, 1] == pytest.approx([0.3, 0.1, 0.3, 0.1])
    ((scored, options),) = environment.called("predict")
    assert scored == [{"src": s, "mt": t} for s, t in [("a", "a b"), ("a", "b"), ("c", "c")]]
    assert options == [8, 0, False]


def test_lists_need_sources() -> None:
    with raises(DataError, "missing-sources", parameter="sources"):
        add_features(LISTS.without("sources"), "qe")
