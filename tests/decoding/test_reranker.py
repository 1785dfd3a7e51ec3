"""Reranker: one posterior, checked once, for many calls."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from support import gained_lists as gained
from support import reference_model
from support.posteriors import (
    ObservedRecord,
    RecipeRecord,
    SourceRecord,
    name_weights,
    record_of,
    with_parts,
    with_record,
)
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import DataError, Draws, NBest, Reranker, UsageError, from_lists, rerank
from bpa_ppl.decoding.reranker import with_defaults, without_features
from bpa_ppl.decoding.rules import AlignedDraws, Decider, Mbr, Predictive
from bpa_ppl.decoding.scales import feature_scales

#: The mode alone, with a prior that is not learned: fast, where the weights do not matter.
MODE: dict[str, Any] = {"sampler": "map", "prior": "isotropic:variance=1.0,mean=0"}
NAMES = ("LM0", "TM0", "WordPenalty0")
RULES = ["predictive", "viterbi", "map", "mean", "mbr", "best"]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def draws(rng: np.random.Generator) -> Draws:
    weights = rng.normal([0.5, 0.3, -0.2], 0.1, size=(4, 500, 3))
    return name_weights(
        weights,
        NAMES,
        log_density=rng.normal(size=(4, 500)),
        constants={"canonical": np.array([0.4, 0.3, -0.2]), "mode": weights.mean(axis=(0, 1))},
    )


@pytest.fixture
def lists(rng: np.random.Generator) -> NBest:
    """Lists of 1 to 90 candidates, some of which are the same string."""
    sizes = [1, 2, 16, 17, 90, *rng.integers(3, 40, 20).tolist()]
    texts = [[f"a{rng.integers(max(size // 2, 1))} b c" for _ in range(size)] for size in sizes]
    features = [rng.normal(size=(size, 3)) * 3 for size in sizes]
    return from_lists(texts, features, NAMES)


@pytest.mark.parametrize(
    ("rule", "derivations"), [*((r, "separate") for r in RULES), ("predictive", "summed")]
)
def test_choices_are_those_of_rerank(
    lists: NBest, draws: Draws, rule: str, derivations: str
) -> None:
    reranker = Reranker(draws, rule=rule, derivations=derivations)
    result = reranker(lists)
    expected = rerank(lists, draws, rule=rule, derivations=derivations)
    assert result.texts == expected.texts
    np.testing.assert_array_equal(result.probabilities, expected.probabilities)
    for s in range(len(lists)):
        assert result[s][result.choice[s]] == result.probability[s]
        columns = lists[s].features.astype(float).T
        one = reranker.choose(lists.texts(s), dict(zip(NAMES, columns, strict=True)))
        assert (one.position, one.text) == (result.choice[s], result.texts[s])
        assert one.probability == result.probability[s]


def test_probabilities_are_the_predictive_distribution(lists: NBest, draws: Draws) -> None:
    choices = Reranker(draws, draws="all")(lists)
    expected = reference_model.predictive(lists, draws.flat)
    for s, p in enumerate(expected):
        np.testing.assert_allclose(choices[s], p, atol=1e-12)
        entropy = -np.sum(p * np.log(p))
        assert choices.entropy[s] == pytest.approx(entropy, abs=1e-4)
        best = choices.top(2)[s]
        assert [c.position for c in best] == np.argsort(-p, kind="stable")[:2].tolist()
    np.testing.assert_allclose(np.exp(choices.logits), choices.derivation_probabilities)


def test_top_of_summed_strings_has_each_string_once(lists: NBest, draws: Draws) -> None:
    choices = Reranker(draws, derivations="summed")(lists)
    for s, best in enumerate(choices.top(100)):
        assert sorted(c.text for c in best) == sorted(set(lists.texts(s)))
        assert sum(c.probability for c in best) == pytest.approx(1)


def test_expected_gains_are_the_utilities_of_mbr(lists: NBest, draws: Draws) -> None:
    gains = Reranker(draws)(lists).expected_gain("chrf")
    chosen = Reranker(draws, rule=Mbr(gain="chrf"))(lists)
    for s in range(len(lists)):
        in_list = gains[lists.rows(s)]
        assert in_list[chosen.choice[s]] == pytest.approx(in_list.max(), abs=1e-4)


def test_expected_gain_needs_a_metric_of_texts(lists: NBest, draws: Draws) -> None:
    choices = Reranker(with_record(draws, observed=ObservedRecord(gain="mqm")))(lists)
    with raises(UsageError, parameter="gain"):
        choices.expected_gain()


def test_a_posterior_without_a_gain_writes_no_expected_gains(lists: NBest, draws: Draws) -> None:
    by_gain = Reranker(with_record(draws, observed=ObservedRecord(gain="ter")))(lists)
    assert "expected_gain" in next(by_gain.json_lines())
    for observed in (ObservedRecord(), ObservedRecord(kind="preferences")):
        choices = Reranker(with_record(draws, observed=observed, start="none"))(lists)
        assert choices.gain is None
        assert not any("expected_gain" in line for line in choices.json_lines())


def test_sixteen_threads_give_the_same_bits(lists: NBest, draws: Draws) -> None:
    reranker = Reranker(draws)

    def predicted(i: int) -> np.ndarray:
        chosen = [reranker.choose(lists.texts(s), lists[s].features) for s in range(len(lists))]
        predicted = reranker(lists).probabilities
        return np.array([*(one.probability for one in chosen), *predicted])

    expected = predicted(0)
    with ThreadPoolExecutor(16) as threads:
        for probability in threads.map(predicted, range(16)):
            np.testing.assert_array_equal(probability, expected)


def test_pickled_rerankers_give_the_same_bits(lists: NBest, draws: Draws) -> None:
    reranker = Reranker(draws, draws=500)
    expected = reranker(lists).probabilities
    copy = pickle.loads(pickle.dumps(reranker))
    assert repr(copy) == "Reranker(2000 draws of 3 weights, predictive)"
    np.testing.assert_array_equal(copy(lists).probabilities, expected)


@pytest.mark.parametrize(
    ("wrong", "code", "shown"),
    [
        (
            {"LM0": [1.0]},
            "wrong-length",
            "the feature 'LM0' has 1 score, but there are 2 texts: give",
        ),
        (
            {"LM0": np.ones(3)},
            "wrong-length",
            "the feature 'LM0' has 3 scores, but there are 2 texts",
        ),
        ({"LM0": []}, "wrong-length", "the feature 'LM0' has 0 scores, but there are 2 texts"),
        ({"LM0": [1, "x"]}, "wrong-type", r"'LM0' must be a list of numbers, .* not \[1, 'x'\]"),
        ({"LM0": "ab"}, "wrong-type", "'LM0' must be a list of numbers, .* not 'ab'"),
        ({"LM0": 1.0}, "wrong-type", "'LM0' must be a list of numbers, .* not 1.0"),
        ({"LM0": [[1], [2]]}, "wrong-type", r"'LM0' must be a list of numbers, .* not \[\[1\]"),
        ({"LM0": [[1], [2, 3]]}, "wrong-type", "'LM0' must be a list of numbers"),
        ({"LM0": [1, np.nan]}, "bad-number", r"LM0 of candidate 1 is nan, not a finite number"),
        ({"LM0": [1, 10**400]}, "bad-number", r"LM0 of candidate 1 is inf, not a finite number"),
        ({"LM0": [None, 1]}, "bad-number", r"LM0 of candidate 0 is nan, not a finite number"),
        ({"LM0": [1, 1e61]}, "bad-number", r"LM0 of candidate 1 is 1e\+61, not a finite number"),
        ({"LM0": ...}, "missing-feature", "no LM0, which the posterior needs"),
        ({"Other": [0, 1]}, "unknown-name", "the posterior does not use Other: its features are"),
        ({7: [0, 1]}, "unknown-name", "the posterior does not use 7: its features are"),
        (np.zeros((2, 2)), "wrong-length", r"features must have the shape \(2, 3\), for each text"),
        (np.zeros((3, 2)), "wrong-length", r"features must have the shape \(2, 3\), for each text"),
    ],
)
def test_bad_features_are_errors(draws: Draws, wrong: Any, code: str, shown: str) -> None:
    if isinstance(wrong, dict):
        every = {**dict.fromkeys(NAMES, (0, 1)), **wrong}
        wrong = {name: of for name, of in every.items() if of is not ...}
    with raises(DataError, code, parameter="features", match=shown):
        Reranker(draws).choose(["a", "b"], wrong)


def test_rejects_other_numbers_of_draws_and_no_texts(draws: Draws) -> None:
    with raises(UsageError, parameter="texts"):
        Reranker(draws).choose([], {name: [] for name in NAMES})
    for wrong in (0, "every", 1.5, "-1", np.ones(2)):
        with raises(UsageError, parameter="draws"):
            Reranker(draws, draws=wrong)
    with pytest.raises(UsageError):
        Reranker(draws, defaults=np.ones(2))  # type: ignore[arg-type]


def test_all_draws_decide_between_candidates_of_nearly_equal_probability(
    rng: np.random.Generator,
) -> None:
    draws = name_weights(rng.normal(1.0, 1.0, size=(4, 1000, 2)), ("lm", "tm"))
    clear = np.array([[3.0, 0.0], [0.0, 0.0], [-2.0, 1.0]])
    tied = np.array([[2.0, 0.0], [2.0, 0.01], [-2.0, 1.0]])
    lists = from_lists([["a", "b", "c"]] * 2, [clear, tied], draws.features)
    default, every, few = (
        Reranker(draws, unchecked=True, **{"draws": n} if n else {})(lists).probabilities
        for n in (None, "all", 800)
    )
    np.testing.assert_array_equal(default[:3], few[:3])
    np.testing.assert_array_equal(default[3:], every[3:])
    assert not np.isclose(few, every, rtol=1e-9, atol=0).any()


@pytest.mark.filterwarnings("ignore:all choices from")
def test_one_list_with_categories_and_sources(rng: np.random.Generator) -> None:
    """A posterior of indicators, consensus and length chooses from one list as from a file."""
    texts = [["a cat", "a black cat", "the black cat"]] * 30
    systems = [["online", "local", "online"]] * 30
    table = rng.normal(size=(30, 3, 1))
    gains = 2 * table[..., 0] + [1.0, 0.0, 1.0] + 0.3 * rng.normal(size=(30, 3))
    lists = from_lists(texts, table, ["lm"], extras={"system": systems, "human": gains.tolist()})
    added = {"categorical": "system", "add": ["consensus", "length"]}
    posterior = bpa.adapt(lists, None, gain="human", **MODE, **added)
    reranker = Reranker(posterior, unchecked=True)
    assert reranker.needs == ("system",)
    whole = reranker(lists)
    one = reranker.choose(texts[0], {"lm": table[0, :, 0]}, system=systems[0])
    assert (one.position, one.probability) == (whole.choice[0], whole.probability[0])
    for columns, code, parameter in (
        ({}, "missing-feature", "columns"),
        ({"system": systems[0], "place": systems[0]}, "unknown-name", "columns"),
        ({"system": ["online"]}, "wrong-length", "system"),
    ):
        with raises(DataError, code, parameter=parameter):
            reranker.choose(texts[0], {"lm": [1, 1, 1]}, **columns)


@pytest.mark.parametrize("as_extra", [False, True])
@pytest.mark.filterwarnings("ignore:all choices from")
def test_a_column_of_integers_is_a_category(rng: np.random.Generator, as_extra: bool) -> None:
    """A version as a category gives the posterior of the same column as texts."""
    versions = np.array([[0, 7, 10]] * 30)
    table = rng.normal(size=(30, 3, 1))
    gains = (versions == 7) + 0.5 * table[..., 0] + 0.3 * rng.normal(size=(30, 3))
    texts = [["a", "b", "c"]] * 30
    bare = from_lists(texts, table, ["lm"], extras={"human": gains.tolist()})
    column = versions.ravel()
    lists = bare.with_features("version", column)
    if as_extra:
        lists = bare.with_extras(version=column)
    named = bare.with_extras(version=["0", "7", "10"] * 30)
    options = {"gain": "human", "categorical": ["version"], **MODE}
    posterior, expected = bpa.adapt(lists, None, **options), bpa.adapt(named, None, **options)
    weights = bpa.point_weights(posterior)
    assert dict(weights) == dict(bpa.point_weights(expected))
    assert list(weights)[1:] == ["version=0", "version=10", "version=7"]
    assert weights["version=7"] > max(weights["version=0"], weights["version=10"])
    reranker = Reranker(posterior, unchecked=True)
    one = reranker.choose(texts[0], {"lm": table[0, :, 0]}, version=versions[0])
    assert one.position == reranker(lists).choice[0]


@pytest.mark.parametrize("draws", [1, 700])
@pytest.mark.parametrize("size", [1, 400, 6000])
def test_blocks_of_draws_cover_all_of_them(size: int, draws: int) -> None:
    """Blocks of any size give the sums of a plain loop."""
    rng = np.random.default_rng(size)
    features, weights = rng.normal(size=(size, 30)), rng.normal(size=(draws, 30))
    aligned = AlignedDraws(weights, np.full(draws, -np.log(draws)), np.zeros(draws), 1.0)
    expected = np.mean([softmax(features @ vector) for vector in weights], axis=0)
    np.testing.assert_allclose(np.exp(Predictive().log_scores(features, aligned)), expected)


def test_unregistered_components_are_named(draws: Draws) -> None:
    recipe = RecipeRecord(sources=(SourceRecord(source="mine"),))
    with raises(UsageError, "unknown-name", match="mine"):
        Reranker(with_record(draws, recipe=recipe))


FORKED = """
import multiprocessing, warnings
import jax
import numpy as np
from bpa_ppl import Reranker, UsageError, adapt, from_lists
from bpa_ppl._runtime.cache import prepare_jax
from bpa_ppl.weight_draws import name_weights
warnings.simplefilter("ignore", RuntimeWarning)  # of JAX, about forks
rng = np.random.default_rng(0)
draws = name_weights(
    rng.normal(1, 0.1, size=(4, 500, 3)), ("a", "b", "c"),
    log_density=rng.normal(size=(4, 500)), constants={"mode": np.ones(3)},
)
lists = from_lists([["a b", "a c", "b"]] * 5, rng.normal(size=(5, 3, 3)), draws.features)
prepare_jax()
jax.devices()  # starts the threads of JAX
rules = ("predictive", "viterbi", "mbr")
rerankers = [Reranker(draws, rule=rule, unchecked=True) for rule in rules]

def predict(i):
    return rerankers[i](lists).probabilities.tolist()

def refuse(i):
    try:
        adapt(lists.with_references(["a b"] * 5), None)
    except UsageError as error:
        return error.code

expected = list(map(predict, range(3)))
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map_async(predict, range(3)).get(60) == expected
    assert pool.map_async(refuse, range(1)).get(60) == ["forked"]
"""


@pytest.mark.slow
def test_forked_processes_predict_and_refuse_to_adapt() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("features", [1, 3, 6])
def test_few_draws_have_the_moments_of_all(features: int, weighted: bool) -> None:
    rng = np.random.default_rng(features)
    mix = rng.normal(size=(4, features)) * np.logspace(-4, 3, features)  # of rank 4 at most
    many = rng.gamma(2.0, size=(2000, 4)) @ mix
    log_weight = 0.3 * rng.normal(size=2000) if weighted else np.zeros(2000)
    every = AlignedDraws(many, log_weight, np.zeros(2000), 1.0)
    for count in (20, 100, 2000):
        few = every.thin(count).with_moments_of(every).weights
        mean = np.average(many, axis=0, weights=np.exp(log_weight))
        np.testing.assert_allclose(few.mean(axis=0), mean, rtol=1e-9)
        covariance = np.atleast_2d(np.cov(many.T, aweights=np.exp(log_weight), ddof=0))
        unit = np.sqrt(np.diag(covariance))
        own = np.atleast_2d(np.cov(few.T, ddof=0))
        scaled = np.outer(unit, unit)
        np.testing.assert_allclose(own / scaled, covariance / scaled, atol=1e-7)


@pytest.mark.parametrize("step", [1, 5])
def test_draws_of_equal_weight_are_thinned_regularly(step: int) -> None:
    every = AlignedDraws(np.arange(1000.0)[:, None], np.zeros(1000), np.zeros(1000), 1.0)
    few = every.thin(1000 // step).weights[:, 0]
    np.testing.assert_array_equal(few, np.arange(step // 2, 1000, step))


def test_fewer_draws_than_twice_the_features_only_move(rng: np.random.Generator) -> None:
    """Nine draws do not determine a covariance of five features well enough."""
    every = AlignedDraws(rng.gamma(2.0, size=(2000, 5)), np.zeros(2000), np.zeros(2000), 1.0)
    for count in (2, 9, 10):
        few = every.thin(count)
        moved = few.with_moments_of(every).weights - few.weights
        shift = every.weights.mean(axis=0) - few.weights.mean(axis=0)
        assert np.allclose(moved, shift, rtol=1e-9) == (count < 10)


def test_all_draws_decide_between_strings_of_nearly_equal_probability() -> None:
    """By the sums of their derivations; no derivation is nearly as probable as the best."""
    features, strings = np.log([[0.2505], [0.2505], [0.499]]), np.array([0, 0, 1])
    few = AlignedDraws(np.array([[1.0]]), np.zeros(1), np.zeros(1), 1.0)
    every = AlignedDraws(np.array([[1.1]]), np.zeros(1), np.zeros(1), 1.0)
    decider = Decider(Predictive(), few, every, derivations="summed")
    choice, summed, p = decider.decide(features.astype(np.float32), strings)
    expected = softmax(1.1 * features[:, 0])
    np.testing.assert_allclose(p, expected, rtol=1e-6)
    np.testing.assert_allclose(summed, [2 * expected[0], 2 * expected[0], expected[2]], rtol=1e-6)
    assert choice == 2


@pytest.mark.parametrize("value", [0.5, 0.0])
def test_a_weight_that_never_moves_stays_where_it_is(value: float) -> None:
    many = np.column_stack([np.random.default_rng(0).gamma(2.0, size=2000), np.full(2000, value)])
    every = AlignedDraws(many, np.zeros(2000), np.zeros(2000), 1.0)
    few = every.thin(100).with_moments_of(every).weights
    np.testing.assert_allclose(few[:, 1], value, rtol=1e-12)
    np.testing.assert_allclose(few[:, 0].std(), many[:, 0].std(), rtol=1e-9)


def test_few_draws_choose_as_all_do(lists: NBest, draws: Draws) -> None:
    every = Reranker(draws, draws="all")(lists).probabilities
    for few in (100, 400):
        probability = Reranker(draws, draws=few)(lists).probabilities
        np.testing.assert_allclose(probability, every, atol=1.5 / few)


@pytest.mark.parametrize("names", [["LM0"], ["TM0[1]"], ["TM0[0]", "TM0[1]"]])
def test_a_feature_that_new_lists_lack_is_an_error_unless_named(
    lists: NBest, names: list[str]
) -> None:
    features = ("TM0[0]", "TM0[1]", "LM0")
    weights = np.random.default_rng(1).normal(1, 0.1, (4, 500, 3))
    posterior = name_weights(weights, features, record=record_of(start="none"))
    whole = replace(lists, feature_names=features)
    lacking = whole.without(*names)
    with raises(DataError, "missing-feature", parameter="without", match=names[0][:3]):
        rerank(lacking, posterior)
    label = names[0].partition("[")[0]
    reranker = Reranker(posterior, without=[label])
    kept = [k for k, name in enumerate(features) if name.partition("[")[0] != label]
    scores = whole.features[:, kept] @ weights.mean(axis=(0, 1))[kept]
    with pytest.warns(bpa.BpaWarning, match="left out"):
        result = pickle.loads(pickle.dumps(reranker))(lacking)
    assert result.choice.tolist() == lacking.best(scores).tolist()
    assert label not in {name.partition("[")[0] for name in reranker.required_features}
    with pytest.warns(bpa.BpaWarning, match="left out"):  # also where the lists have it
        assert reranker(whole).choice.tolist() == result.choice.tolist()
    some = lacking.with_extras(**{names[0]: np.r_[np.nan, np.ones(len(lists.features) - 1)]})
    with raises(DataError, "missing-feature", parameter="without"):
        rerank(some, posterior)
    with pytest.warns(bpa.BpaWarning, match="left out"):
        assert rerank(some, posterior, without=label).choice.tolist() == result.choice.tolist()
    with raises(DataError, "missing-feature", parameter="without"):
        Reranker(posterior, without=["LM1"])


def test_rewards_order_candidates_as_the_rule_mean(lists: NBest, draws: Draws) -> None:
    reranker = Reranker(draws, rule="mean")
    columns = [2, 0, 1]
    functions = [
        make([NAMES[k] for k in columns]) for make in (reranker.reward, reranker.aggregate)
    ]
    expected = lists.scores(bpa.point_weights(draws))
    rows = lists.features[:, columns]
    rewards, verdicts = ([function(row) for row in rows.tolist()] for function in functions)
    assert np.allclose(rewards, expected)
    assert np.ptp(np.array(verdicts) * np.abs(draws.mean).sum() - rewards) < 1e-9
    assert lists.best(rewards).tolist() == reranker(lists).choice.tolist()
    copies = [pickle.loads(pickle.dumps(function)) for function in functions]
    assert [copy(rows[0]) for copy in copies] == [rewards[0], verdicts[0]]
    assert Reranker(draws).reward()(rows[0, [1, 2, 0]]) == pytest.approx(rewards[0])


def test_verdicts_of_a_jury_are_from_0_to_1(draws: Draws) -> None:
    aggregate = Reranker(draws).aggregate()
    best = (draws.mean > 0).astype(float)
    assert aggregate(best) == pytest.approx(1)
    assert aggregate(1 - best) == pytest.approx(0)
    assert aggregate([0.5] * 3) == pytest.approx(0.5)
    fixed = with_defaults(draws, {"qe": 2.0})
    shares = np.abs([*draws.mean, 2.0])
    extended = Reranker(fixed).aggregate()([*(1 - best), 1.0])
    assert extended == pytest.approx(shares[3] / shares.sum())


def test_a_missing_score_is_the_mean_given_the_others(draws: Draws) -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) + [3.0, -2.0, 0.5]
    lists = bpa.from_arrays(["a"] * 60, table, NAMES, 3)
    scales = feature_scales(lists, draws.mean)
    recorded = with_parts(draws, record=record_of(feature_scales=scales))
    table = np.float64(lists.features)
    columns = [2, 0, 1]
    reward = Reranker(recorded).reward([NAMES[k] for k in columns], missing="mean")
    assert reward(table[0, columns].tolist()) == pytest.approx(table[0] @ draws.mean)
    for k in range(3):
        others = [j for j in range(3) if j != k]
        score = table[:, others] @ draws.mean[others]
        (slope, mean), *_ = np.linalg.lstsq(np.stack([score, np.ones(60)], 1), table[:, k])
        expected = score[7] + draws.mean[k] * (mean + slope * score[7])
        for gap in (None, np.nan):
            row: list[float | None] = table[7].tolist()
            row[k] = gap
            assert reward([row[j] for j in columns]) == pytest.approx(expected)
    assert reward([None] * 3) == pytest.approx(table.mean(axis=0) @ draws.mean)
    assert pickle.loads(pickle.dumps(reward))([None, 1.0, 2.0]) == reward([None, 1.0, 2.0])


def test_all_features_may_be_computed() -> None:
    """Then no numbers are given."""
    names = ("system=X", "system=Y")
    settings = {"column": "system", "values": ["X", "Y"]}
    source = SourceRecord(source="indicators", settings=settings, feature_names=names)
    record = record_of(recipe=RecipeRecord(sources=(source,)))
    draws = name_weights(np.tile([1.0, -1.0], (1, 4, 1)), names, record=record)
    reranker = Reranker(draws, unchecked=True)
    assert reranker.choose(["a", "b"], {}, system=["Y", "X"]).text == "b"


def test_a_missing_score_is_named(draws: Draws) -> None:
    reranker = Reranker(draws)
    for function in (reranker.reward(), reranker.aggregate(), reranker.reward(missing="none")):
        with raises(DataError, "bad-number", parameter="scores", match=": correct TM0$"):
            function([0.5, np.inf, 0.5])
    for function in (reranker.reward(), reranker.aggregate()):
        with raises(DataError, "bad-number", parameter="scores", match=": correct TM0$"):
            function([0.5, None, 0.5])
    assert reranker.reward(missing="none")([0.5, None, 0.5]) is None
    assert reranker.reward(missing="none")([1, 1, 1]) == pytest.approx(draws.mean.sum())
    with raises(DataError, "no-data", parameter="missing", match=r"mean of LM0 .*: adapt again"):
        reranker.reward(missing="mean")
    with raises(UsageError, "unknown-name", parameter="missing"):
        reranker.reward(missing="zero")


def test_rewards_refuse_what_they_cannot_compute(draws: Draws) -> None:
    reranker = Reranker(draws)
    with raises(DataError, "missing-feature", parameter="features", match="TM0"):
        reranker.reward(["LM0", "WordPenalty0"])
    with raises(DataError, "unknown-name", parameter="features", match="gpt"):
        reranker.aggregate([*NAMES, "gpt"])
    wrong: list[Any] = [[0.5, 0.5], [0.5, 0.5, np.nan], ["a", "b", "c"], 0.5]
    for scores in wrong:
        with raises(DataError, "bad-number", parameter="scores", match="LM0, TM0, WordPenalty0"):
            reranker.reward()(scores)
    still = name_weights(np.zeros((4, 500, 3)), NAMES)
    with raises(DataError, "no-data"):
        Reranker(still, unchecked=True).aggregate()
    names = (*NAMES[:2], "LengthWords")
    recipe = RecipeRecord(sources=(SourceRecord(source="length", feature_names=names[2:]),))
    added = name_weights(draws.weights, names, record=record_of(recipe=recipe))
    with raises(UsageError, "not-supported", parameter="names", match="LengthWords"):
        Reranker(added).reward()


@pytest.mark.filterwarnings("ignore:the posterior. Length left out")
def test_new_lists_may_lack_a_feature() -> None:
    draws, new = gained.recorded(gained.lists(1)), gained.lists(2, 30)
    choice = np.zeros(30, int)
    less = new.without("Length")
    zero = less.with_features("Length", np.zeros(len(new.features)))
    with raises(bpa.DataError, "missing-feature", parameter="without"):
        bpa.compare_baselines(less, draws, choice=choice)
    found = bpa.compare_baselines(less, without_features(draws, "Length"), choice=choice)
    assert str(found) == str(bpa.compare_baselines(zero, draws, choice=choice))
