"""compare: right samplers agree, wrong ones are caught, and every number is somebody else's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from external_posterior import autoregressive, external_posterior
from raising import raises
from scipy.stats import wasserstein_distance

from bpa_ppl import DataError, Draws, NotConverged, corpus_score
from bpa_ppl.diagnostics.comparison.comparison import (
    AGREES,
    DIFFERS,
    NOT_CONVERGED,
    Comparison,
    changed_translations,
    compare,
)
from bpa_ppl.diagnostics.comparison.statistics import discrepancies, sliced_wasserstein
from bpa_ppl.diagnostics.estimates import holm, runs_together
from bpa_ppl.posterior import as_draws
from bpa_ppl.posterior.arviz_functions import InferenceData

NAMES = ("LM0", "TM0", "WP0")
Change = Callable[[np.ndarray], np.ndarray]


def runs(
    change: Change = lambda x: x, count: int = 4, draws: int = 500, correlation: float = 0.3
) -> list[InferenceData]:
    """Standard normal chains with correlation 0.7 between the first two weights, changed."""
    chains = (autoregressive(correlation, 4, draws, 3, seed=seed) for seed in range(count))
    return [external_posterior(change(tied(values)), NAMES) for values in chains]


def tied(draws: np.ndarray) -> np.ndarray:
    out = draws.copy()
    out[..., 1] = 0.7 * draws[..., 0] + np.sqrt(1 - 0.7**2) * draws[..., 1]
    return out


@pytest.fixture(scope="module")
def reference() -> list[InferenceData]:
    return [external_posterior(tied(autoregressive(0.2, 4, 1500, 3, seed=999)), NAMES)]


def test_holm_is_that_of_r() -> None:
    # p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") of R 4.3
    np.testing.assert_allclose(holm([0.05, 0.02, 0.03, 0.04, 0.01]), [0.09, 0.08, 0.09, 0.09, 0.05])


def shuffled(draws: np.ndarray) -> np.ndarray:
    """Right in each weight, but the weights know nothing of each other."""
    rng = np.random.default_rng(0)
    out = draws.copy()
    out[..., 1] = rng.permutation(out[..., 1].reshape(-1)).reshape(out.shape[:2])
    return out


def skewed(draws: np.ndarray) -> np.ndarray:
    """Mean 0 and standard deviation 1, but asymmetric."""
    out, sd = draws.copy(), np.sqrt(np.exp(0.18) - np.exp(0.09))
    out[..., 2] = (np.exp(0.3 * draws[..., 2]) - np.exp(0.045)) / sd
    return out


WRONG: dict[str, tuple[Change, str]] = {
    "shifted": (lambda x: x + np.array([0, 0.2, 0]), "the mean of TM0"),
    "too wide": (lambda x: x * np.array([1, 1, 1.2]), "of WP0"),
    "skewed": (skewed, "of WP0"),
    "shuffled": (shuffled, "the joint distribution"),
}


@pytest.fixture(scope="module")
def judged(reference: list[InferenceData]) -> Comparison:
    """Right and wrong samplers beside each other: each is judged by itself."""
    wrong = {name: runs(change) for name, (change, _) in WRONG.items()}
    return compare({"right": runs(), **wrong}, reference)


@pytest.mark.parametrize("sampler", WRONG)
def test_a_wrong_sampler_is_caught(judged: Comparison, sampler: str) -> None:
    assert not judged
    assert judged["right"].verdict == AGREES
    assert judged[sampler].verdict == DIFFERS
    assert WRONG[sampler][1] in judged[sampler].reason


def test_right_samplers_are_hardly_ever_accused(reference: list[InferenceData]) -> None:
    truth = runs_together(reference)
    accused = 0
    for seed in range(60):
        # Against fresh draws each time, so that one odd reference does not decide them all.
        draws = tied(autoregressive(0.8, 4, 600, 3, seed=2000 + seed))
        ours = runs_together([external_posterior(draws, NAMES)])
        accused += min(gap.p_value for gap in discrepancies(ours, truth)) < 0.05
    # A level of 5% gives 3 of 60; 10 or more have mean oracle probability 0.1%.
    assert accused < 10


def test_the_distance_is_the_mean_of_wasserstein_distances_along_directions() -> None:
    # In one dimension there is one direction, and SciPy knows the distance.
    one = [external_posterior(autoregressive(0.0, 4, 2000, 1, seed=5), NAMES[:1])]
    other = [external_posterior(1 + autoregressive(0.0, 4, 500, 1, seed=6), NAMES[:1])]
    truth, ours = runs_together(one), runs_together(other)
    found = sliced_wasserstein(ours, truth)
    expected = wasserstein_distance(ours.flat[:, 0], truth.flat[:, 0]) / truth.flat.std()
    assert found.value == pytest.approx(expected, abs=0.06)
    assert found.p_value == pytest.approx(1 / (len(found.null) + 1))


def test_too_few_draws_and_chains_that_disagree_leave_it_undecided(
    reference: list[InferenceData],
) -> None:
    short = runs(count=1, draws=20, correlation=0.8)
    apart = runs(lambda x: x + np.arange(4)[:, None, None])
    found = compare({"short": short, "apart": apart}, reference)
    assert not found
    assert (found["short"].verdict, found["apart"].verdict) == (NOT_CONVERGED, NOT_CONVERGED)
    assert "raise" in found["short"].reason
    assert "chains disagree" in found["apart"].reason


def test_weights_are_matched_by_name(reference: list[InferenceData]) -> None:
    order = [2, 0, 1]
    names = [NAMES[i] for i in order]
    values = (run["posterior"]["weights"].values[..., order] for run in runs())
    assert compare({"turned": [external_posterior(x, names) for x in values]}, reference)
    other = [external_posterior(autoregressive(0.0, 4, 500, 3, seed=1), ("LM0", "TM0", "XX"))]
    with raises(DataError, "mismatch", match="WP0, XX;"):
        compare({"other": other}, reference)


def test_a_poor_reference_is_refused() -> None:
    with raises(NotConverged, match="reference has 42 effective draws"):
        compare({"right": runs()}, runs(count=1, draws=50))


def test_runs_that_cannot_be_compared_are_refused(reference: list[InferenceData]) -> None:
    with raises(DataError, "no-data", match="no run of none"):
        compare({"none": []}, reference)
    with raises(DataError, "wrong-length", match="5 draws per chain"):
        runs_together(runs(count=1, draws=5))
    with raises(DataError, "mismatch"):
        runs_together([*runs(count=1), *runs(count=1, draws=60)])
    with pytest.raises(DataError, match=r"WP0 .* draw 6 of chain 0"):
        runs_together(runs(lambda x: np.where(x < 2, x, np.nan), count=1))


@pytest.mark.slow
def test_weighted_draws_are_compared_by_their_weights(reference: list[InferenceData]) -> None:
    draws = tied(1.3 * autoregressive(0.0, 1, 20_000, 3, seed=8))
    covariance = np.array([[1, 0.7, 0], [0.7, 1, 0], [0, 0, 1]])
    inverse = np.linalg.inv(covariance)
    square = np.einsum("cdi,ij,cdj->cd", draws, inverse, draws)
    weighted = external_posterior(draws, NAMES, log_weight=-0.5 * square * (1 - 1 / 1.3**2))
    found = compare(
        {"weighted": [weighted], "unweighted": [external_posterior(draws, NAMES)]}, reference
    )
    assert found["weighted"].verdict == AGREES
    assert found["unweighted"].verdict == DIFFERS
    assert found["weighted"].efficiency.r_hat is None


def test_draws_are_compared_as_inference_data_are(reference: list[InferenceData]) -> None:
    data = runs(count=2)
    for run in data:
        run["posterior"].attrs["sampling_time"] = 2.0
    draws = [as_draws(run) for run in data]
    plain = [replace(one, attrs={"sampling_time": 2.0}) for one in draws]
    theirs, ours = compare({"x": data}, reference), compare({"x": plain}, [as_draws(reference[0])])
    assert ours["x"].efficiency.seconds == 2.0
    assert ours.as_dict() == theirs.as_dict()


def test_differences_of_scores_are_those_of_the_corpus() -> None:
    ours = ["the cat sat on a mat", "hello", "one three two four", "a b"] * 5
    theirs = ["the cat sat", "hello world", "one two three four", "a b"] * 5
    references = [("the cat sat on it",), ("hello world",), ("one two three four",), ("a b",)] * 5
    found = changed_translations(ours, theirs, references)
    assert (found.changed, found.sentences) == (15, 20)
    assert [one.metric for one in found.scores] == ["ter", "bleu", "length"]
    for one in found.scores:
        if one.metric == "length":
            scores = [sum(len(text.split()) for text in texts) / 65 for texts in (ours, theirs)]
        else:
            scores = [corpus_score(texts, references, one.metric).value for texts in (ours, theirs)]
        assert one.score == pytest.approx(scores[0])
        assert one.difference == pytest.approx(scores[0] - scores[1])
        assert one.low <= one.difference <= one.high
        assert one.low < one.high


def test_the_bootstrap_interval_is_that_of_the_normal_approximation() -> None:
    # Every sentence has one word: TER is the share of wrong ones, whose error is known.
    rng = np.random.default_rng(4)
    wrong = rng.uniform(size=400) < 0.3
    ours = ["x" if w else "a" for w in wrong]
    (ter, *_) = changed_translations(ours, ["a"] * 400, [("a",)] * 400).scores
    half = 1.96 * 100 * wrong.std() / np.sqrt(400)
    assert ter.high - ter.low == pytest.approx(2 * half, rel=0.15)


def test_equal_translations_do_not_differ(reference: list[InferenceData]) -> None:
    texts = ["a b c", "d e"]
    references = [("a b",), ("d e",)]
    result = compare({"right": runs()}, reference, decode=lambda _: texts, references=references)
    found = result["right"].downstream
    assert found is not None
    assert found.changed == 0
    assert all((s.difference, s.low, s.high) == (0, 0, 0) for s in found.scores)
    with raises(DataError, "wrong-length"):
        changed_translations(["a"], texts)


def recorded(**changes: object) -> Draws:
    """Draws with what `adapt` records of its data and of its model."""
    known = {
        "attrs": {
            "adaptation_sentences": 3,
            "likelihood": {"name": "margin", "gamma": 2.0},
            "prior": {"name": "isotropic", "variance": 0.1},
            "oracle_metric": "ter",
        },
        "observed": {"oracle": np.array([4, 0, 2])},
        "sentence_ids": np.array([0, 1, 2]),
        "constants": {"prior_mean": np.arange(3.0), "prior_variance": np.full(3, 0.1)},
    }
    draws = tied(autoregressive(0.3, 4, 300, 3, seed=5))
    return replace(Draws({"weights": draws}, NAMES), **{**known, **changes})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"attrs": {"adaptation_sentences": 4}}, "data: .* 4 sentences, not"),
        ({"sentence_ids": np.array([0, 2, 1])}, "data: .* ids"),
        ({"observed": {"oracle": np.array([4, 1, 2])}}, "data: 1 of its 3 oracles, by ter,"),
        ({"observed": {"oracle": np.array([4, 1])}}, r"data: oracle .* \(2,\), not \(3,\)"),
        ({"attrs": {"likelihood": {"name": "oracle"}}}, r"model: .* margin \(gamma 2.0\)"),
        ({"attrs": {"prior": {"name": "horseshoe"}}}, r"model: .* isotropic \(variance 0.1\)"),
        ({"constants": {"prior_mean": np.ones(3)}}, "model: the mean of its prior"),
        ({"constants": {"prior_variance": np.full(3, 0.2)}}, "model: the variance of its prior"),
        ({"features": ("LM0", "TM0", "X")}, "data: .* WP0, X"),
    ],
)
def test_posteriors_of_other_data_or_models_are_refused(changes: dict, named: str) -> None:
    with raises(DataError, "mismatch", match=f"mine is a posterior of (other|another) {named}"):
        compare({"right": [recorded()], "mine": [recorded(**changes)]})
    with raises(DataError, "mismatch"):
        compare({"mine": [recorded(**changes)]}, [recorded()])


def test_posteriors_that_do_not_record_it_and_turned_ones_are_compared() -> None:
    bare = Draws({"weights": recorded().weights}, NAMES)
    turned = recorded(
        values={"weights": recorded().weights[..., ::-1]},
        features=NAMES[::-1],
        constants={"prior_mean": np.arange(3.0)[::-1], "prior_variance": np.full(3, 0.1)},
    )
    assert compare({"right": [recorded()], "bare": [bare], "turned": [turned]})
