"""What rerank does not accept: posteriors that fail their check, and features that do not fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from foreign import autoregressive, foreign

from bpa_ppl import DataError, NBest, NotConverged, rerank
from bpa_ppl.decoding.reranking import rerank_stream
from bpa_ppl.errors import BpaWarning
from bpa_ppl.posterior.arviz_functions import InferenceData

NAMES = ("LM0", "TM0[0]", "TM0[1]")


def good(names: tuple[str, ...] = NAMES) -> InferenceData:
    return foreign(autoregressive(0.0, 4, 500, len(names), seed=1), names)


def test_a_posterior_that_passes_is_used(toy: NBest) -> None:
    posterior = good()
    assert len(rerank(toy, posterior).choice) == 3


def test_a_posterior_that_fails_is_refused_with_the_table_of_its_check(toy: NBest) -> None:
    draws = autoregressive(0.0, 4, 500, 3, seed=1)
    draws[0, :, 1] += 3.0
    with pytest.raises(NotConverged) as refusal:
        rerank(toy, foreign(draws, NAMES))
    assert (refusal.value.parameter, refusal.value.code) == ("unchecked", "not-converged")
    assert "R-hat" in str(refusal.value)
    assert "TM0[0]" in str(refusal.value)
    assert refusal.value.exit_code == 3
    assert len(rerank(toy, foreign(draws, NAMES), unchecked=True).choice) == 3


def test_a_stream_is_refused_before_it_is_read(toy: NBest) -> None:
    def stream() -> Iterator[NBest]:
        pytest.fail("the lists were read")
        yield toy

    with pytest.raises(NotConverged):
        rerank_stream(stream(), foreign(autoregressive(0.99, 4, 100, 3, seed=1), NAMES))


def test_a_feature_without_a_weight_is_not_used(toy: NBest) -> None:
    posterior = good(("LM0", "TM0[0]"))
    with pytest.warns(BpaWarning, match=r"TM0\[1\] not used: the posterior has no weight for it"):
        found = rerank(toy, posterior)
    assert found.texts == rerank(toy.without_features("TM0[1]"), posterior).texts


def test_a_feature_of_another_name_is_an_error(toy: NBest) -> None:
    message = "no feature Distortion0"
    with pytest.raises(DataError, match=message):
        rerank(toy, good(("LM0", "TM0[0]", "Distortion0")))


def test_a_feature_that_is_missing_for_some_is_an_error(toy: NBest) -> None:
    partly = toy.without_features("LM0").with_extras(LM0=np.arange(len(toy.features)) + np.nan)
    with pytest.raises(DataError, match=r"LM0: missing for some candidates"):
        rerank(partly, good())


def test_a_weight_without_a_feature_is_named(toy: NBest) -> None:
    with pytest.warns(UserWarning, match="Distortion0"):
        rerank(toy, good((*NAMES, "Distortion0")))
