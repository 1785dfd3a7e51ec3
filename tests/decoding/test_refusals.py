"""Rejected input of rerank: posteriors that fail the check, and features that do not match."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from external_posterior import autoregressive, external_posterior

from bpa_ppl import DataError, NBest, NotConverged, rerank
from bpa_ppl.decoding.reranking import rerank_stream
from bpa_ppl.errors import BpaWarning
from bpa_ppl.posterior.arviz_functions import InferenceData

NAMES = ("LM0", "TM0[0]", "TM0[1]")


def converged_posterior(names: tuple[str, ...] = NAMES) -> InferenceData:
    return external_posterior(autoregressive(0.0, 4, 500, len(names), seed=1), names)


def test_converged_posterior_is_accepted(toy: NBest) -> None:
    posterior = converged_posterior()
    assert len(rerank(toy, posterior).choice) == 3


def test_rejects_unconverged_posterior_with_its_check(toy: NBest) -> None:
    draws = autoregressive(0.0, 4, 500, 3, seed=1)
    draws[0, :, 1] += 3.0
    with pytest.raises(NotConverged) as refusal:
        rerank(toy, external_posterior(draws, NAMES))
    assert (refusal.value.parameter, refusal.value.code) == ("unchecked", "not-converged")
    assert "R-hat" in str(refusal.value)
    assert "TM0[0]" in str(refusal.value)
    assert refusal.value.exit_code == 3
    assert len(rerank(toy, external_posterior(draws, NAMES), unchecked=True).choice) == 3


def test_stream_is_rejected_before_it_is_read(toy: NBest) -> None:
    def stream() -> Iterator[NBest]:
        pytest.fail("the lists were read")
        yield toy

    with pytest.raises(NotConverged):
        rerank_stream(stream(), external_posterior(autoregressive(0.99, 4, 100, 3, seed=1), NAMES))


def test_features_without_weight_are_ignored(toy: NBest) -> None:
    posterior = converged_posterior(("LM0", "TM0[0]"))
    with pytest.warns(BpaWarning, match=r"TM0\[1\] not used: the posterior has no weight for it"):
        result = rerank(toy, posterior)
    assert result.texts == rerank(toy.without_features("TM0[1]"), posterior).texts


def test_rejects_renamed_features(toy: NBest) -> None:
    message = "no feature Distortion0"
    with pytest.raises(DataError, match=message):
        rerank(toy, converged_posterior(("LM0", "TM0[0]", "Distortion0")))


def test_rejects_features_missing_for_some_hypotheses(toy: NBest) -> None:
    partly = toy.without_features("LM0").with_extras(LM0=np.arange(len(toy.features)) + np.nan)
    with pytest.raises(DataError, match=r"LM0: missing for some candidates"):
        rerank(partly, converged_posterior())


def test_error_names_weight_without_feature(toy: NBest) -> None:
    with pytest.warns(UserWarning, match="Distortion0"):
        rerank(toy, converged_posterior((*NAMES, "Distortion0")))
