"""The decision rules, compared with loops over draws and candidates, and what `rerank` refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from support import reference_model
from support.posteriors import autoregressive, external_posterior, name_weights, record_of
from support.raising import raises
from support.random_lists import NAMES, random_lists, random_sizes

import bpa_ppl as bpa
from bpa_ppl import (
    BpaWarning,
    Choices,
    DataError,
    NBest,
    NotConverged,
    Reranker,
    UsageError,
    from_lists,
)
from bpa_ppl.decoding.rules import Mbr, Predictive
from bpa_ppl.extending import Rule

DRAWS = 600  # more than one batch
JUDGES: dict[str, Any] = {
    "ter": TER(),
    "bleu": BLEU(tokenize="none", effective_order=True, force=True),
    "chrf": CHRF(),
}


def rerank(lists: Any, posterior: Any, **options: Any) -> Choices:
    return bpa.rerank(lists, posterior, unchecked=True, **options)


@pytest.fixture(scope="module")
def lists() -> NBest:
    return random_lists([1, 2, 70, *random_sizes(17, 30)])


@pytest.fixture(scope="module")
def weights() -> reference_model.Array:
    return np.random.default_rng(6).normal([0.4, -0.2, 0.1], 0.8, size=(2, DRAWS // 2, 3))


@pytest.fixture(scope="module")
def posterior(weights: reference_model.Array) -> Any:
    return external_posterior(weights, NAMES)


LOG_JOINT = np.random.default_rng(8).normal(-300, 2, size=(2, DRAWS // 2))


def assert_chosen(result: Choices, expected: list[reference_model.Array]) -> None:
    """Assert that choices maximise p(e) of each list, except near ties, and their probabilities."""
    for sentence, p in enumerate(expected):
        assert p[result.choice[sentence]] == pytest.approx(p.max(), rel=1e-4)
        assert result.probability[sentence] == pytest.approx(p[result.choice[sentence]], rel=1e-4)


def test_markov_chains_use_eq_13(
    lists: NBest, weights: reference_model.Array, posterior: Any
) -> None:
    """Also with 40 times larger weights, where exp(score) overflows float32 for some draws."""
    expected = reference_model.predictive(lists, weights.reshape(-1, 3))
    assert_chosen(rerank(lists, posterior), expected)
    centre = weights.mean(axis=(0, 1))
    broad = centre + 40 * (weights - centre)
    longest = lists.features[lists.rows(2)].astype(float)
    above = (longest - longest[np.argmax(longest @ centre)]) @ broad.reshape(-1, 3).T
    assert above.max() > np.log(np.finfo(np.float32).max)
    result = rerank(lists, external_posterior(broad, NAMES))
    assert_chosen(result, reference_model.predictive(lists, broad.reshape(-1, 3)))


@pytest.mark.parametrize("exponent", [1 / 3, 2.0])
def test_weighted_samples_use_eq_11(
    lists: NBest, weights: reference_model.Array, exponent: float
) -> None:
    posterior = external_posterior(weights, NAMES, log_weight=LOG_JOINT)
    posterior.attrs["likelihood_exponent"] = exponent
    importance = np.exp(LOG_JOINT - LOG_JOINT.max()).reshape(-1)
    expected = reference_model.predictive(lists, weights.reshape(-1, 3), importance, exponent)
    assert_chosen(rerank(lists, posterior), expected)


@pytest.mark.parametrize("name", ["lp", "log_weight"])
def test_viterbi_uses_the_best_pair(
    lists: NBest, weights: reference_model.Array, name: str
) -> None:
    posterior = external_posterior(weights, NAMES, **{name: LOG_JOINT})
    result = rerank(lists, posterior, rule="viterbi")
    for sentence in range(len(lists)):
        features = lists.features[lists.rows(sentence)]
        pairs = [
            reference_model.log_choice(features, vector) + joint
            for vector, joint in zip(weights.reshape(-1, 3), LOG_JOINT.reshape(-1), strict=True)
        ]
        best = np.max(pairs, axis=0)
        assert best[result.choice[sentence]] == pytest.approx(best.max(), abs=1e-4)


def test_viterbi_finds_the_best_pair_among_many_draws() -> None:
    """One draw of 2000 has by far the highest density; it alone prefers the first candidate."""
    weights, log_joint = np.ones((1, 2000, 1)), np.zeros((1, 2000))
    weights[0, 777], log_joint[0, 777] = -1.0, 50.0
    pool = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    posterior = external_posterior(weights, ("LM0",), lp=log_joint)
    assert rerank(pool, posterior, rule="viterbi").texts == ["a"]
    assert rerank(pool, posterior).texts == ["b"]


@pytest.mark.parametrize("shift", [5000.0, -5000.0])
def test_importance_weights_may_have_any_constant(
    lists: NBest, weights: reference_model.Array, shift: float
) -> None:
    """exp(±5000) is infinite or 0."""
    result, moved = (
        rerank(lists, external_posterior(weights, NAMES, log_weight=log_weight))
        for log_weight in (LOG_JOINT, LOG_JOINT + shift)
    )
    np.testing.assert_array_equal(moved.choice, result.choice)
    np.testing.assert_allclose(moved.probabilities, result.probabilities, rtol=1e-9)


def test_the_rule_map_has_the_probabilities_of_the_mode(lists: NBest) -> None:
    mode = np.array([0.5, -0.3, 0.2])
    draws = name_weights(np.ones((1, 4, 3)), NAMES, constants={"mode": mode})
    assert_chosen(rerank(lists, draws, rule="map"), reference_model.predictive(lists, mode[None]))


RULES_OF_ONE = ("predictive", "viterbi", "mean")
#: log p(a|−0.1) + 0.45 = −0.19, and log p(b|3) = −log(1 + e⁻³) = −0.05.
OF_PAIRS = np.exp([-np.log1p(np.exp(-0.1)) + 0.45, -np.log1p(np.exp(-3))])


@pytest.mark.parametrize(
    ("scores", "drawn", "stats", "rule", "expected"),
    [
        # A common score changes nothing, also where its exponential is 0 or infinite.
        *(
            ([c, c + 2, c], [1], {"lp": [0]}, rule, np.exp([0, 2, 0]))
            for c in (-2048.0, 2048.0)
            for rule in RULES_OF_ONE
        ),
        # A score that is lower by more than the exponents of float64 can tell.
        *(([0, -2000, np.log(3)], [1], {"lp": [0]}, rule, [1, 0, 3]) for rule in RULES_OF_ONE),
        # exp(−1000) is 0: only the first draw is left.
        ([0, 1], [np.log(3), -5], {"log_weight": [0, -1000]}, "predictive", [1, 3]),
        # Each distribution is normalised, and a constant of the density changes nothing.
        *(
            ([0, 1], [3, -0.1], {"lp": [c, c + 0.45]}, "viterbi", OF_PAIRS)
            for c in (0.0, 5000.0, -5000.0)
        ),
    ],
)
def test_probabilities_of_one_list_are_those_by_hand(
    scores: Any, drawn: Any, stats: dict[str, Any], rule: str, expected: Any
) -> None:
    pool = from_lists([list("abc")[: len(scores)]], [np.transpose([scores])], ["LM0"])
    weights = np.reshape(drawn, (1, -1, 1)).astype(float)
    stats = {name: np.array([values], float) for name, values in stats.items()}
    result = rerank(pool, external_posterior(weights, ("LM0",), **stats), rule=rule)
    np.testing.assert_allclose(result.probabilities, expected / np.sum(expected), rtol=1e-6)
    assert (result.choice[0], result.canonical[0]) == (np.argmax(expected), 0)


def test_mean_rule_with_fewer_draws_has_the_same_mean(
    lists: NBest, weights: reference_model.Array, posterior: Any
) -> None:
    mean = weights.reshape(-1, 3).mean(axis=0)[None]
    result = rerank(lists, posterior, rule="mean", draws=50)
    for sentence, p in enumerate(reference_model.predictive(lists, mean)):
        if len(p) > 2:
            rows = lists.rows(sentence)
            np.testing.assert_allclose(result.probabilities[rows], p, rtol=1e-6, atol=1e-12)


def test_mean_rule_uses_only_the_mean_unless_there_are_two_candidates(
    lists: NBest, weights: reference_model.Array, posterior: Any
) -> None:
    every = weights.reshape(-1, 3)
    averaged = reference_model.predictive(lists, every)
    expected = reference_model.predictive(lists, every.mean(axis=0)[None])
    assert {2} < set(lists.sizes.tolist())
    for sentence in np.flatnonzero(lists.sizes == 2).tolist():
        expected[sentence] = averaged[sentence]
    assert_chosen(rerank(lists, posterior, rule="mean"), expected)


def test_summed_derivations_are_summed_over_equal_strings(
    lists: NBest, weights: reference_model.Array, posterior: Any
) -> None:
    result = rerank(lists, posterior, derivations="summed")
    separate = reference_model.predictive(lists, weights.reshape(-1, 3))
    for sentence, p in enumerate(separate):
        total: dict[str, float] = {}
        for text, share in zip(lists.texts(sentence), p, strict=True):
            total[text] = total.get(text, 0.0) + share
        chosen = result.texts[sentence]
        assert total[chosen] == pytest.approx(max(total.values()), rel=1e-4)
        assert result.probability[sentence] == pytest.approx(total[chosen], rel=1e-4)
        equals = [i for i, text in enumerate(lists.texts(sentence)) if text == chosen]
        assert p[result.choice[sentence]] == pytest.approx(p[equals].max(), rel=1e-4)


@pytest.mark.parametrize("rule", ["predictive", "viterbi", "mean"])
@pytest.mark.parametrize("derivations", ["separate", "summed"])
def test_first_candidate_wins_ties(rule: str, derivations: str) -> None:
    rows = [[0.0], [1.0], [1.0], [1.0]]
    pool = from_lists([["a", "b", "c", "b"], ["x", "y"]], [rows, [[2.0], [2.0]]], ["LM0"])
    posterior = external_posterior(np.ones((1, 4, 1)), ("LM0",), lp=np.zeros((1, 4)))
    result = rerank(pool, posterior, rule=rule, derivations=derivations)
    assert result.choice.tolist() == [1, 0]


@pytest.mark.parametrize("piece", [1, 7])
def test_stream_agrees_with_table(lists: NBest, posterior: Any, piece: int) -> None:
    whole, parts = rerank(lists, posterior), rerank(lists.chunks(piece), posterior)
    np.testing.assert_array_equal(parts.choice, whole.choice)
    np.testing.assert_allclose(parts.probability, whole.probability, rtol=1e-5)
    assert parts.texts == whole.texts
    np.testing.assert_array_equal(parts.lists.sentence_ids, lists.sentence_ids)


def test_features_are_matched_by_name(
    lists: NBest, weights: reference_model.Array, posterior: Any
) -> None:
    reordered = external_posterior(weights[..., [2, 0, 1]], ("WP0", "LM0", "TM0"))
    choice = rerank(lists, posterior).choice
    np.testing.assert_array_equal(rerank(lists, reordered).choice, choice)


@pytest.fixture(scope="module")
def word_lists() -> NBest:
    sizes = [1, 16, *random_sizes(13, 20)]
    return random_lists(sizes, words=True, scale=2.0, references=["the cat"] * len(sizes))


@pytest.fixture(scope="module")
def narrow() -> reference_model.Array:
    return np.random.default_rng(6).normal([0.4, -0.2, 0.1], 0.3, size=(1, 90, 3))


@pytest.mark.parametrize("gain", ["ter", "bleu", "chrf"])
def test_minimum_risk_agrees_with_all_pairs(
    word_lists: NBest, narrow: reference_model.Array, gain: str
) -> None:
    result = rerank(word_lists, external_posterior(narrow, NAMES), rule=Mbr(gain=gain))
    sign = -1 if gain == "ter" else 1
    differs = 0
    for s, predicted in enumerate(reference_model.predictive(word_lists, narrow[0])):
        texts, p = word_lists.texts(s), predicted
        score = {t: {r: JUDGES[gain].sentence_score(t, [r]).score for r in texts} for t in texts}
        risk = {
            t: sign * sum(q * score[t][r] for q, r in zip(p, texts, strict=True)) for t in texts
        }
        assert risk[result.texts[s]] == pytest.approx(max(risk.values()), abs=1e-4)
        own = [q for q, t in zip(p, texts, strict=True) if t == result.texts[s]]
        assert p[result.choice[s]] == pytest.approx(max(own))
        assert result.probability[s] == pytest.approx(p[result.choice[s]], rel=1e-4)
        differs += result.texts[s] != texts[int(np.argmax(p))]
    assert differs > 1


class Longest(Predictive, frozen=True):
    """A rule that prefers long texts."""

    needs_texts = True

    def decide(self, lists: NBest, probabilities: Any) -> Any:
        assert lists.references is None
        sums = np.add.reduceat(probabilities, lists.offsets[:-1])
        np.testing.assert_allclose(sums, 1.0)
        return lists.best([len(lists.text(row)) for row in range(len(lists.features))])


def test_custom_rule_gets_texts_and_probabilities(
    word_lists: NBest, narrow: reference_model.Array
) -> None:
    result = rerank(word_lists, external_posterior(narrow, NAMES), rule=Longest())
    longest = [max(map(len, word_lists.texts(s))) for s in range(len(word_lists))]
    assert [len(text) for text in result.texts] == longest
    assert result.lists.references == word_lists.references


@pytest.mark.parametrize("gain", ["ter", "chrf"])
def test_expected_gains_are_means_of_scores(
    word_lists: NBest, narrow: reference_model.Array, gain: str
) -> None:
    """Each candidate with each other one as its reference, scored by sacreBLEU."""
    found = rerank(word_lists, external_posterior(narrow, NAMES)).expected_gain(gain)
    sign = -1 if gain == "ter" else 1
    for s, p in enumerate(reference_model.predictive(word_lists, narrow[0])):
        texts = word_lists.texts(s)
        scores = [[JUDGES[gain].sentence_score(t, [r]).score for r in texts] for t in texts]
        expected = sign * np.array(scores) @ p
        np.testing.assert_allclose(found[word_lists.rows(s)], expected, atol=1e-3)


class DensityRule(Rule, frozen=True):
    """A rule that needs what the posterior does not record."""

    needs_density = True


def test_invalid_options_are_refused(lists: NBest, posterior: Any) -> None:
    with raises(UsageError, "invalid-setting", parameter="gain"):
        Mbr(gain="comet")  # type: ignore[arg-type]
    for parameter, value in (("rule", "majority"), ("derivations", "merged")):
        with raises(UsageError, "unknown-name", parameter=parameter, match=value):
            rerank(lists, posterior, **{parameter: value})
    for rule in (DensityRule(), "viterbi"):
        with raises(DataError, "not-supported", parameter="rule", match="density of each draw"):
            rerank(lists, posterior, rule=rule)
    with raises(UsageError, "no-data", parameter="lists"):
        rerank([], posterior)
    for wrong in ("dev.nbest", 7, [lists, "dev.nbest"]):
        with raises(UsageError, "wrong-type", parameter="lists", match="dev.nbest|7"):
            rerank(wrong, posterior)
    with raises(DataError, "duplicate", parameter="defaults", match="LM0"):
        rerank(lists, posterior, defaults={"LM0": 1.0})


def test_rejects_unconverged_posterior_with_its_check(toy: NBest) -> None:
    def stream() -> Iterator[NBest]:
        pytest.fail("the lists were read")
        yield toy

    draws = autoregressive(0.0, 4, 500, 3, seed=1)
    assert len(bpa.rerank(toy, external_posterior(draws, toy.feature_names)).choice) == 3
    draws[0, :, 1] += 3.0
    posterior = external_posterior(draws, toy.feature_names)
    with raises(NotConverged, parameter="unchecked", match=r"R-hat.*TM0\[0\]") as refusal:
        bpa.rerank(stream(), posterior)
    assert refusal.value.exit_code == 3
    assert len(rerank(toy, posterior).choice) == 3


def test_features_without_weights_and_weights_without_features(toy: NBest) -> None:
    draws = autoregressive(0.0, 4, 500, 3, seed=1)
    two = external_posterior(draws[..., :2], toy.feature_names[:2])
    with pytest.warns(BpaWarning, match=r"TM0\[1\] not used"):
        result = rerank(toy, two)
    assert result.texts == rerank(toy.without("TM0[1]"), two).texts
    with raises(DataError, "missing-feature", parameter="without", match="Distortion0"):
        rerank(toy, external_posterior(draws, ("LM0", "TM0[0]", "Distortion0")))


def compared(*rows: dict[str, Any]) -> Any:
    """Return draws of the weights x = 1 and y = 1 that record a comparison with simple ways."""
    adapted = {"name": "adapted weights", "kind": "adapted", "lists": 30, "gain": 1.0}
    comparison = {"rows": [adapted, *rows], "unit": "grade", "selected": rows[0]["name"]}
    record = record_of(comparison={**comparison, "evaluation": "leave-one-out"})
    return name_weights(np.ones((4, 300, 2)), ("x", "y"), record=record)


#: The adapted weights are worse by 0.5 to 1.5.
BETTER = {"lists": 30, "gain": 2.0, "difference": -1.0, "low": -1.5, "high": -0.5}
RIDGE = {**BETTER, "name": "ridge regression", "weights": {"x": 1.0, "y": -3.0}}
FIRST = {**BETTER, "name": "first candidate"}


@pytest.mark.parametrize(
    ("rows", "choice"),
    [
        ([RIDGE], 2),
        ([FIRST, RIDGE], 2),  # the first candidate is no weighting of features
        ([{**RIDGE, "low": -2.5, "high": 0.5}], 1),  # no clear difference
        ([{**RIDGE, "difference": 1.0, "low": 0.5, "high": 1.5}], 1),
        ([FIRST], 1),
        ([{**BETTER, "name": "best single system", "weights": {"A": 2.0}}], 1),
    ],
)
def test_best_takes_a_clearly_better_simple_way(rows: list[Any], choice: int) -> None:
    pool = from_lists([["a", "b", "c"]], [[[0.0, 0.0], [1.0, 2.0], [0.5, -1.0]]], ["x", "y"])
    draws = compared(*rows)
    assert rerank(pool, draws, rule="mean").choice.tolist() == [1]
    assert rerank(pool, draws, rule="best").choice.tolist() == [choice]


def test_best_has_probabilities_of_preferences_and_names_its_weights(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool = from_lists([["a", "b"]], [[[0.0, 0.0], [1.0, 2.0]]], ["x", "y"])
    draws = compared({**RIDGE, "name": "logistic regression", "slope": 0.5})
    with caplog.at_level("INFO"):
        reranker = Reranker(draws, rule="best", unchecked=True)
    assert "the weights of the logistic regression choose" in caplog.text
    assert ": mean grade 2.000 → 1.000 (−1.000, " in caplog.text
    probability = reranker(pool).probabilities[1]
    assert probability == pytest.approx(1 / (1 + np.exp(0.5 * 5)))
    with raises(UsageError, "not-supported", parameter="agree"):
        Reranker(draws, rule="best", agree=0.9, unchecked=True)
