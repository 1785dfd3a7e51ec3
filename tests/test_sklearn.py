"""BayesianRanker: conventions of scikit-learn, and the same results as `adapt` and `Reranker`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_estimators_pickle,
    check_fit_idempotent,
    check_n_features_in_after_fitting,
    parametrize_with_checks,
)
from support.raising import raises
from xarray import DataArray

import bpa_ppl as bpa
from bpa_ppl import BayesianRanker, DataError, Isotropic, UsageError

#: The names of the columns of an array of xarray.
NAMED = {"x": ["qe", "gpt", "claude"]}


def expected_failures(estimator: BaseEstimator) -> dict[str, str]:
    """Return the checks of scikit-learn that do not apply, and why."""
    reason = "the probability of a row depends on the other rows of its list"
    return {"check_methods_subset_invariance": reason}


class OneList(BayesianRanker):
    """All rows are one list, because the checks of scikit-learn do not name lists."""

    def fit(self, X: Any, y: Any, qid: Any = None, groups: Any = None) -> OneList:  # noqa: N803
        return super().fit(X, y, *one_list(X, qid, groups))

    def predict_proba(self, X: Any, qid: Any = None, groups: Any = None) -> Any:  # noqa: N803
        return super().predict_proba(X, *one_list(X, qid, groups))

    def score(self, X: Any, y: Any, qid: Any = None, groups: Any = None) -> float:  # noqa: N803
        return super().score(X, y, *one_list(X, qid, groups))


def one_list(rows: Any, qid: Any, groups: Any) -> tuple[Any, Any]:
    none = qid is None and groups is None and hasattr(rows, "__len__")
    return np.zeros(len(rows)) if none else qid, groups


#: Learning the scale of the prior, or the risk, whose start is a mode, would take most of the time.
QUICK = OneList(sampler="map", likelihood="margin", prior=Isotropic(scale=0.3, mean=0.0))


@pytest.mark.parametrize(
    "check", [check_fit_idempotent, check_estimators_pickle, check_n_features_in_after_fitting]
)
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_fit_keeps_nothing_of_other_data(check: Callable[..., None]) -> None:
    """Three of the conventions below."""
    check("OneList", clone(QUICK))


@pytest.mark.slow
@parametrize_with_checks([QUICK], expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_conventions_of_scikit_learn(estimator: BaseEstimator, check: Callable[..., None]) -> None:
    check(estimator)


def judged_rows(lists: int = 30, size: int = 4) -> tuple[Any, Any, Any]:
    """Return X, y and qid of lists whose gains follow the first two of three features."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(lists * size, 3)).astype(np.float32)
    gains = features @ [1.0, -0.5, 0.0] + 0.3 * rng.normal(size=lists * size)
    return features, gains, np.repeat(np.arange(lists), size)


X, Y, QID = judged_rows()
RANKER = BayesianRanker(sampler="map", prior=Isotropic(scale=0.3, mean=0.0))


@pytest.fixture(scope="module")
def fitted() -> BayesianRanker:
    return BayesianRanker(sampler="laplace:draws=1000", random_state=5).fit(X, Y, qid=QID)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize(
    "label",
    [int, "l{}".format, str, lambda n: 7 * n + 3, lambda n: 90 - 3 * n, lambda n: n * 17 % 31],
    ids=["integers", "texts", "numerals", "gaps", "descending", "unsorted"],
)
def test_results_equal_those_of_adapt_and_reranker(label: Callable[[int], int | str]) -> None:
    """The rows of lists are not adjacent, and lists are in the order in which they appear."""
    order = np.random.default_rng(1).permutation(len(X))
    rows, gains, qid = X[order], Y[order], [label(number) for number in QID[order].tolist()]
    ranker = BayesianRanker(sampler="laplace:draws=1000", random_state=5).fit(rows, gains, qid=qid)
    frame = pd.DataFrame(rows, columns=["x0", "x1", "x2"]).assign(y=gains, id=qid, text="")
    with pytest.warns(bpa.BpaWarning, match="not adjacent"):
        lists = bpa.from_records(frame.assign(row=range(len(X))), features=["x0", "x1", "x2"])
    posterior = bpa.adapt(lists, None, gain="y", sampler="laplace:draws=1000", seed=5)
    for group, name in {"posterior": "weights", "sample_stats": "log_weight"}.items():
        ours, theirs = (p[group][name].values for p in (ranker.posterior_, posterior))
        assert np.array_equal(ours, theirs)
    assert ranker.coef_.tolist() == list(bpa.point_weights(posterior).values())
    assert np.allclose(ranker.predict(lists.features), lists.scores(ranker.coef_))
    deviation = np.sqrt(X.reshape(-1, 4, 3).var(axis=1).mean(axis=0))
    assert np.allclose(ranker.standardised_coef_, ranker.coef_ * deviation)
    expected = bpa.Reranker(posterior, rule="predictive")(lists).probabilities
    found = ranker.predict_proba(rows, qid=qid)[list(lists.extras["row"])]
    assert np.array_equal(found, expected)
    assert np.allclose(np.add.reduceat(found, lists.offsets[:-1]), 1)
    assert ranker.score(rows, gains, qid=qid) == pytest.approx(ranker.score(X, Y, qid=QID))


def test_groups_are_another_name_of_qid(fitted: BayesianRanker) -> None:
    by_groups = clone(fitted).fit(X, Y, groups=QID)
    assert np.array_equal(by_groups.coef_, fitted.coef_)
    assert by_groups.score(X, Y, groups=QID) == fitted.score(X, Y, qid=QID)
    both = fitted.predict_proba(X, qid=QID, groups=np.zeros(len(X)))  # such as documents
    assert np.array_equal(both, fitted.predict_proba(X, groups=QID))
    for named in ({"qid": QID}, {"groups": QID}):
        assert np.array_equal(fitted.predict(X, **named), fitted.predict(X))
    with raises(DataError, "wrong-length", parameter="qid"):
        fitted.predict(X, qid=QID[1:])


def test_score_is_the_share_of_the_headroom() -> None:
    ranker = clone(RANKER).fit(X, Y, qid=QID)
    ranker.coef_ = np.array([1.0, 0.0, 0.0])
    rows = np.array([[3.0, 0, 0], [2, 0, 0], [1, 0, 0], [9, 0, 0], [1, 0, 0]])
    # Chosen gains 1 and 4 of lists with means 2 and 3, and best ones 3 and 4
    gains = [1.0, 2.0, 3.0, 4.0, 2.0]
    assert ranker.score(rows, gains, qid=[0, 0, 0, 1, 1]) == pytest.approx((5 - 5) / (7 - 5))
    # The first row is not judged: the second one is chosen, of a mean of 2.5.
    gains[0] = np.nan
    assert ranker.score(rows, gains, qid=[0, 0, 0, 1, 1]) == pytest.approx((6 - 5.5) / (7 - 5.5))


@dataclass
class Plan:
    """A lazy frame, as polars has it: no array before it is collected."""

    frame: pd.DataFrame

    def collect(self) -> pd.DataFrame:
        return self.frame


@pytest.mark.parametrize("name", ["X", "y", "qid"])
def test_lazy_frames_are_to_be_collected(name: str) -> None:
    arguments: dict[str, Any] = {"X": pd.DataFrame(X), "y": pd.Series(Y), "qid": pd.Series(QID)}
    arguments[name] = Plan(arguments[name])
    with raises(DataError, "wrong-type", parameter=name, match=r"a Plan: call \.collect\(\)"):
        BayesianRanker().fit(**arguments)
    arguments[name] = arguments[name].collect()
    assert clone(RANKER).fit(**arguments).n_lists_ == 30


def test_rows_that_are_not_judged_count_in_the_unit_of_the_prior_alone() -> None:
    """Under a prior without a unit, the weights are those of the judged rows."""
    gains, wide = Y.copy(), X * np.where(np.arange(len(X)) % 4 == 0, 3.0, 1.0)[:, None]
    gains[::4] = np.nan
    judged = np.isfinite(gains)

    def both(prior: Any) -> list[bpa.WeightDraws]:
        ranker = BayesianRanker(sampler="map", likelihood="pairs", prior=prior)
        rows = ((wide, gains, QID), (wide[judged], gains[judged], QID[judged]))
        return [bpa.as_weight_draws(clone(ranker).fit(*one).posterior_) for one in rows]

    fixed = bpa.Prior.isotropic(dict.fromkeys(["x0", "x1", "x2"], 0.0), 0.5)
    with_others, alone = both(fixed)
    np.testing.assert_allclose(with_others.mean, alone.mean, rtol=1e-6)
    with_others, alone = both(Isotropic(scale=0.3, mean=0.0))
    spreads = [
        np.sqrt(np.mean([part.var(axis=0) for part in np.split(rows, 30)], axis=0))
        for rows in (wide, wide[judged])
    ]
    variances = [weights.draws.constants["prior_variance"] for weights in (with_others, alone)]
    weighted = [(0.3 / spread) ** 2 for spread in spreads]
    np.testing.assert_allclose(variances, weighted, rtol=1e-5)


def test_data_frames_pipelines_and_missing_values() -> None:
    frame = pd.DataFrame(X, columns=["gpt", "claude", "qe"])
    ranker = clone(RANKER).fit(frame, Y, qid=pd.Series(QID))
    assert ranker.feature_names_in_.tolist() == ["gpt", "claude", "qe"]
    assert ranker.n_features_in_ == 3
    assert ranker.posterior_["posterior"]["feature"].values.tolist() == ["gpt", "claude", "qe"]
    for other in (frame[["qe", "gpt", "claude"]], DataArray(frame.to_numpy(), NAMED, ("row", "x"))):
        with pytest.raises(ValueError, match="must be in the same order"):
            ranker.predict(other)
    frame.iloc[::5, 1] = np.nan
    imputer = SimpleImputer(add_indicator=True).set_output(transform="pandas")
    pipeline = make_pipeline(imputer, StandardScaler(), clone(RANKER))
    pipeline.fit(frame, Y, bayesianranker__qid=QID)
    assert pipeline[-1].coef_.shape == (4,)
    assert np.allclose(np.bincount(QID, pipeline.predict_proba(frame, qid=QID)), 1)
    assert np.array_equal(pipeline.predict(frame, qid=QID), pipeline.predict(frame))
    message = r"X contains NaN in the column claude: .*, (make_pipeline\(.*\))$"
    with raises(DataError, "bad-number", parameter="X", match=message) as error:
        ranker.predict(frame)
    with raises(DataError, "bad-number", parameter="X", match=re.escape(error.value.message)):
        BayesianRanker().fit(frame, Y, qid=QID)
    remedy = eval(re.search(message, error.value.message)[1])
    quick = {f"bayesianranker__{name}": getattr(RANKER, name) for name in ("sampler", "prior")}
    remedy.set_params(**quick).fit(frame, Y, bayesianranker__qid=QID)


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_a_search_splits_by_groups() -> None:
    steps = [SimpleImputer(), clone(RANKER)]
    grid = {"bayesianranker__likelihood": ["margin", "risk"]}
    search = GridSearchCV(make_pipeline(*steps), grid, cv=GroupKFold(3), error_score="raise")
    search.fit(X, Y, groups=QID)
    assert (search.cv_results_["mean_test_score"] > 0.7).all()
    train = QID % 3 > 0
    by_qid = make_pipeline(*steps).fit(X[train], Y[train], qid=QID[train])
    assert by_qid.score(X[~train], Y[~train], groups=QID[~train]) > 0.7
    assert by_qid.predict(X[~train], qid=QID[~train]).shape == Y[~train].shape
    assert search.score(X, Y, groups=QID) > 0.7


FOLDS = 2
BY_LIST = {"cv": GroupKFold(FOLDS)}
ESTIMATORS = [RANKER, make_pipeline(SimpleImputer(), RANKER)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_nothing_is_evaluated_on_one_list_unless_it_is_named(estimator: BaseEstimator) -> None:
    message = r"(?s)qid is missing: name the list.*routing=True"
    for evaluate in (cross_validate, cross_val_score, cross_val_predict):
        with pytest.raises(ValueError, match=message):
            evaluate(estimator, X, Y, groups=QID, **BY_LIST)
    with pytest.raises(ValueError, match=message):
        GridSearchCV(estimator, {}, **BY_LIST).fit(X, Y, groups=QID)


def test_cross_validation_without_routing_says_so_before_all_traces() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        scores = cross_val_score(RANKER, X, Y, params={"qid": QID}, groups=QID, **BY_LIST)
    assert np.isnan(scores).all()
    first, *others = (str(one.message) for one in caught)
    assert first.startswith("qid is missing: pipelines, searches and cross-validation pass qid")
    assert "\n" not in first
    assert sum(message.startswith("Scoring failed") for message in others) == FOLDS


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_cross_validation_with_routing(estimator: BaseEstimator) -> None:
    by_list = {"params": {"groups": QID}, **BY_LIST}
    scores = [
        clone(estimator)
        .fit(X[train], Y[train], qid=QID[train])
        .score(X[test], Y[test], qid=QID[test])
        for train, test in GroupKFold(FOLDS).split(X, Y, QID)
    ]
    assert cross_validate(estimator, X, Y, **by_list)["test_score"].tolist() == scores
    assert cross_val_score(estimator, X, Y, **by_list).tolist() == scores
    predicted = cross_val_predict(estimator, X, Y, **by_list)
    assert np.corrcoef(predicted, Y)[0, 1] > 0.9
    with pytest.raises(UsageError, match="cross_val_predict passes it to fit only: call"):
        cross_val_predict(estimator, X, Y, method="predict_proba", **by_list)


def test_a_random_state_determines_the_seed() -> None:
    def seed(random_state: Any) -> int:
        ranker = clone(RANKER).set_params(random_state=random_state)
        return int(ranker.fit(X, Y, qid=QID).posterior_.attrs["seed"])

    assert seed(np.int64(7)) == 7
    assert seed(np.random.RandomState(1)) == seed(np.random.RandomState(1))
    assert seed(None) != seed(None)


ONES, TWO = np.ones((4, 2)), [0, 0, 1, 1]
VARIED = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("rows", "gains", "qid", "message"),
    [
        (VARIED, None, TWO, "requires y to be passed, but the target y is None"),
        (VARIED, ["A", "B", "A", "C"], TWO, "y must be numbers, higher for better .*, not 'A'$"),
        (VARIED, ["1", "0", "1", "0"], TWO, "y must be numbers, higher for better .*, not '1'$"),
        (VARIED, [1, 0, "?", 0], TWO, "y must be numbers, higher for better .*NaN"),
        ([["a", "1"]] * 4, [1, 0, 1, 0], TWO, "X must be numbers, .*'a'.*: leave out or encode"),
        (
            VARIED,
            [np.nan] * 4,
            TWO,
            "no list has two candidates with a value of y",
        ),
        (VARIED, [1, 1, 0, 0], TWO, "all candidates have the same y in each of 2 lists"),
        (VARIED, [1, np.inf, 0, 0], TWO, "Input y contains infinity"),
        (VARIED, [1, 2, 3, 4], [0, 1, 2, 3], "no list of two rows: give"),
        (ONES, [1, 0, 1, 0], TWO, "no column of X varies within a list"),
        (VARIED, [1, 0, 1], TWO, "inconsistent numbers of samples: .4, 3."),
        (VARIED, [1, 0, 1, 0], None, "qid is missing: .* or qid=np.zeros.len.X.. if all rows are"),
        (VARIED + np.inf, [1, 0, 1, 0], TWO, "X contains infinity"),
        (
            VARIED * 1e300,
            [1, 0, 1, 0],
            TWO,
            "x1 of candidates.0. of list 0 is 1e.300, not a finite number of at most",
        ),
    ],
)
def test_bad_input_is_one_sentence(rows: Any, gains: Any, qid: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        BayesianRanker().fit(rows, gains, qid=qid)
    assert "\n" not in str(error.value) or "Input" in str(error.value)  # scikit-learn's own


def test_verdicts_are_1_and_0() -> None:
    ranker, numbers = clone(RANKER), [1, 0, 0, 1]
    coefficients = ranker.fit(VARIED, numbers, qid=TWO).coef_
    frame = pd.Series([True, False, False, True], dtype="boolean")
    for verdicts in ([True, False, False, True], np.array(numbers, bool), frame):
        assert ranker.score(VARIED, verdicts, qid=TWO) == ranker.score(VARIED, numbers, qid=TWO)
        assert ranker.fit(VARIED, verdicts, qid=TWO).coef_.tolist() == coefficients.tolist()
    for texts in (["True", "False", "False", "True"], np.array(["1", "0", "0", "1"])):
        with raises(DataError, "bad-number", parameter="y", match="y must be numbers"):
            ranker.fit(VARIED, texts, qid=TWO)


@pytest.mark.parametrize("name", ["qid", "groups"])
@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (TWO[:3], "it has 3 for 4 rows of X"),
        ([1, 3], r"it has 2 .* sizes of lists, give {name}=numpy.repeat\(range\(2\), {name}\)"),
        (np.array([2, 1, 1]), r"it has 3 .* give {name}=numpy.repeat\(range\(3\), {name}\)"),
        ([TWO, TWO], r"it has the shape \(2, 4\)"),
        (np.zeros((4, 2)), r"it has the shape \(4, 2\)"),
        ([[0], [0, 1], [1], [1]], "unhashable type"),
        ("question", r"it has the shape \(\)"),
        ([0, 0, 1, np.nan], "a label is missing"),
        ([0, 0, 1, None], "a label is missing"),
        (["a", "a", "b", None], "a label is missing"),
        (pd.Series([0, 0, 1, None], dtype="Int64"), "a label is missing"),
        ([1, 1, "1", "1"], "not supported between instances of"),
        (pd.Series(["a", "a", 0, 0]), "not supported between instances of"),
    ],
)
def test_errors_about_lists_name_them(labels: Any, reason: str, name: str) -> None:
    reason = reason.replace("{name}", name)
    expected = f"^{name} must be one label of a list for each row, .*{reason}"
    with pytest.raises(DataError, match=expected) as error:
        BayesianRanker().fit(VARIED, [1, 0, 1, 0], **{name: labels})
    assert error.value.parameter == name


def test_lists_are_needed_to_score_and_to_predict_probabilities(fitted: BayesianRanker) -> None:
    with pytest.raises(UsageError, match="qid is missing: name the list of each row"):
        fitted.predict_proba(X)
    with pytest.raises(UsageError, match="qid is missing"):
        fitted.score(X, Y)
    with pytest.raises(UsageError, match="lists equally: leave out sample_weight"):
        fitted.score(X, Y, qid=QID, sample_weight=Y)
    with pytest.raises(DataError, match="all candidates have the same y"):
        fitted.score(X[:4], np.ones(4), qid=QID[:4])
    one_list = np.zeros(8)
    with pytest.warns(bpa.BpaWarning, match="one judged list teaches little"):
        single = clone(RANKER).set_params(likelihood="margin").fit(X[:8], Y[:8], qid=one_list)
    assert single.n_lists_ == 1
    assert single.predict_proba(X[:8], qid=one_list).sum() == pytest.approx(1)
    with pytest.raises(UsageError, match="qid is missing"):
        single.predict_proba(X[:8])
