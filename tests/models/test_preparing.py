"""Preparation: which columns of lists become features, before and after the adaptation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bpa_ppl import NBest
from bpa_ppl.features.base import FeatureSource
from bpa_ppl.models.preparing import Preparation


class Learned(FeatureSource, frozen=True):
    """A source whose features are 1, and 0 for sentences that it has learned from."""

    name: str = "learned"

    def columns(self, nbest: NBest) -> dict[str, npt.ArrayLike]:
        return {"learned": np.ones(len(nbest.features))}

    def cross_fitted_columns(self, nbest: NBest) -> dict[str, npt.ArrayLike]:
        return {"learned": np.zeros(len(nbest.features))}


def test_features_of_adaptation_lists_are_cross_fitted() -> None:
    lists = NBest.from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"])
    prepare = Preparation(sources=(Learned(),))
    assert prepare.for_training(lists).nbest.features.tolist() == [[1.0, 0.0], [2.0, 0.0]]
    assert prepare(lists).features.tolist() == [[1.0, 1.0], [2.0, 1.0]]
