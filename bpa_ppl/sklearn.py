"""BayesianRanker: adapting and choosing as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    check_random_state,
    column_or_1d,
    validate_data,
)

from bpa_ppl._runtime.arrays import Float64, Int64, as_array, as_numbers, to_floats
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.named_columns import name_columns
from bpa_ppl.adapting.adapt import adapt
from bpa_ppl.decoding.reranker import Reranker
from bpa_ppl.errors import BpaWarning, DataError, UsageError, quote
from bpa_ppl.evaluation.headroom import headroom_won
from bpa_ppl.formats.in_memory import from_arrays
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.judged import select_judged
from bpa_ppl.lists.nbest import NBest, score_differences
from bpa_ppl.weight_draws import as_weight_draws
from bpa_ppl.weights import AnyStart

if TYPE_CHECKING:
    from bpa_ppl.models.likelihoods.likelihood import Likelihood
    from bpa_ppl.models.priors.prior import Prior, PriorFamily
    from bpa_ppl.posterior.arviz_functions import InferenceData
    from bpa_ppl.samplers.sampler import Sampler

__all__ = ["BayesianRanker"]

#: The column of the gains.
_Y = "y"
#: Who passes `qid` on, and who does not.
_ROUTING = (
    "pipelines, searches and cross-validation pass qid and groups on after "
    "sklearn.set_config(enable_metadata_routing=True)"
)
#: What evaluates without passing on more than X and y.
_SCORER = "give others, such as permutation_importance, a scorer that passes it: " + (
    "scoring=lambda ranker, X, y: ranker.score(X, y, qid=qid)"
)
_NOT_ROUTED = "cross_val_predict passes it to fit only: call predict_proba for each fold instead"


class BayesianRanker(BaseEstimator):  # type: ignore[misc]
    """Rank the candidates of lists by weights with a posterior, as an estimator of scikit-learn.

    It adapts as `bpa_ppl.adapt` does, with `y` as the gain, and chooses as `bpa_ppl.Reranker` does.
    A row of `X` is a candidate, and its list is named by `qid`, as for the rankers of XGBoost, but
    the rows of a list need not be adjacent. The sizes of lists, which LightGBM takes, become
    `qid=np.repeat(np.arange(len(sizes)), sizes)`. `groups` is the same under scikit-learn's
    name, and is used where `qid` is None. One of the two is required, except by `predict`.

    Searches, cross-validation and pipelines pass `qid` and `groups` on with
    `sklearn.set_config(enable_metadata_routing=True)`: then
    `GridSearchCV(BayesianRanker(), grid, cv=GroupKFold()).fit(X, y, groups=qid)` and
    `cross_validate(BayesianRanker(), X, y, params={"groups": qid}, cv=GroupKFold())` need no more.

    Args:
        weights: the canonical weights, by name or one per column; None, `equal`, or
            `StartingWeights`: see `bpa_ppl.adapt`, as for the next three.
        likelihood: a name, with settings as in `margin:gamma=1`, or a `Likelihood`; None is the
            default for this gain.
        prior: a name, a family of priors, or a `Prior`; None is `isotropic`.
        sampler: a name, with settings as in `laplace:draws=500`, or a `Sampler`; None is `auto`.
        random_state: an integer is the seed of `adapt`.

    Attributes:
        posterior_: the posterior, ArviZ data.
        coef_: (features,) the posterior mean of the weights.
        standardised_coef_: (features,) the same times the standard deviation of the column within
            the lists of the fit, to compare columns of different units.
        n_lists_: the number of lists of the fit.
        n_features_in_: the number of columns of `X`.
        feature_names_in_: their names, if the columns of `X` have names, as those of a data frame.
            Other `X` with names must have the same ones in the same order.

    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 2)), np.repeat(np.arange(20), 3)
    >>> y = X @ [1.0, 0.0] + 0.1 * rng.normal(size=60)
    >>> ranker = BayesianRanker(sampler="laplace", random_state=0).fit(X, y, qid=qid)
    >>> round(ranker.score(X, y, qid=qid), 1), int(ranker.predict(X[:3]).argmax() - y[:3].argmax())
    (1.0, 0)
    >>> ranker.predict_proba(X, qid=qid).reshape(20, 3).sum(axis=1).round(6).tolist() == [1.0] * 20
    True
    """

    # scikit-learn passes these on by default, if metadata routing is enabled.
    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012
    __metadata_request__predict = {"qid": True, "groups": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"qid": True, "groups": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "groups": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        weights: AnyStart = None,
        likelihood: str | Likelihood | None = None,
        prior: str | PriorFamily | Prior | None = None,
        sampler: str | Sampler | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.weights = weights
        self.likelihood = likelihood
        self.prior = prior
        self.sampler = sampler
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(
        self,
        X: Any,  # noqa: N803
        y: npt.ArrayLike,
        qid: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> BayesianRanker:
        """Adapt the weights to judged candidates.

        Args:
            X: (candidates, features) an array or a data frame of finite numbers. For missing values
                put an imputer before it: `SimpleImputer(add_indicator=True)`.
            y: (candidates,) how good each is, higher is better: graded gains, or 1 for chosen ones
                and 0 for others, also as True and False; NaN for those that are not judged. They
                count in the standard deviation of each column within the lists, which is the unit
                of the prior, but not in the likelihood.
            qid: (candidates,) the list of each, any labels. As in `from_records`, lists are in the
                order in which they first appear.
            groups: used where `qid` is None.

        Raises:
            ValueError: if arrays do not fit together, or values are not numbers.
            DataError: if no list has two judged candidates, or the judged ones are all equally
                good; or `qid` is not one label for each row.
            UsageError: if `qid` and `groups` are None.
            NotConverged: if the posterior fails its check.
        """
        lists, _ = self._lists(X, qid, groups, y, reset=True)
        if lists.sizes.max() < 2:
            message = "no list of two rows: give the rows of a list the same qid"
            raise DataError(message, parameter="qid", code="no-data")
        if not lists.spread.any():
            message = "no column of X varies within a list: give features of candidates"
            raise DataError(message, parameter="X", code="no-data")
        random_state: Any = self.random_state
        if not isinstance(random_state, Integral):
            random_state = check_random_state(random_state).randint(2**31)
        self.posterior_: InferenceData = adapt(
            lists,
            self.weights,
            gain=Column(column=_Y),
            likelihood=self.likelihood,
            prior=self.prior,
            sampler=self.sampler,
            seed=int(random_state),
        )
        draws = as_weight_draws(self.posterior_)
        self._reranker = Reranker(draws, rule="predictive")
        self.coef_: Float64 = draws.aligned(lists, draws.mean[None])[0]
        self.standardised_coef_: Float64 = self.coef_ * lists.spread
        self.n_lists_ = len(lists)
        return self

    def predict(
        self,
        X: Any,  # noqa: N803
        qid: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> Float64:
        """Return the scores of candidates, (candidates,): λ·h with the posterior mean of λ.

        Args:
            X: (candidates, features), as for `fit`.
            qid: as for `predict_proba`; scores are the same with and without it.
            groups: used where `qid` is None.
        """
        check_is_fitted(self)
        features = self._features(X)
        if qid is not None or groups is not None:
            _number_labels(qid, groups, len(features))
        return np.asarray(features @ self.coef_)

    def predict_proba(
        self,
        X: Any,  # noqa: N803
        qid: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> Float64:
        """Return the posterior predictive distribution p(e | f) over the candidates, (N,).

        In a list of two, after a fit to pairs with two values of `y`, it is the probability that
        this one is preferred. In longer lists it is not the probability of being the best.

        Raises:
            UsageError: if `qid` and `groups` are None. `cross_val_predict` does not pass them on.
        """
        check_is_fitted(self)
        if qid is None and groups is None:
            raise _missing_qid(_NOT_ROUTED)
        lists, rows = self._lists(X, qid, groups)
        result = np.empty(len(rows))
        result[rows] = self._reranker(lists).probabilities
        return result

    def score(
        self,
        X: Any,  # noqa: N803
        y: npt.ArrayLike,
        qid: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        sample_weight: None = None,
    ) -> float:
        """Return the share of the headroom that choosing by `predict` wins: 0 random, 1 the best.

        Candidates whose `y` is missing do not compete.

        Raises:
            DataError: if no list has two judged candidates that differ.
            UsageError: if `qid` and `groups` are None, or there is a `sample_weight`.
        """
        check_is_fitted(self)
        if sample_weight is not None:
            message = "score weights all lists equally: leave out sample_weight"
            raise UsageError(message, parameter="sample_weight", code="not-supported")
        if qid is None and groups is None:
            raise _not_routed(f"; {_SCORER}")
        judged = select_judged(self._lists(X, qid, groups, y)[0], Column(column=_Y)).lists
        return headroom_won(judged, judged.best(score_differences(judged, self.coef_)), _Y)

    def _features(self, X: Any, reset: bool = False) -> Float64:  # noqa: N803
        options = {"reset": reset, "dtype": np.float64, "ensure_min_samples": 2 if reset else 1}
        options["ensure_all_finite"] = "allow-nan"  # our message names the imputer of our docs
        _require_in_memory(X, "X")
        is_plain = issparse(X) or hasattr(X, "columns")
        if not is_plain and isinstance(named := name_columns(X, "X"), Mapping):
            import pyarrow as pa

            # Scikit-learn compares the names of an Arrow table, and of data frames.
            X = pa.table({name: np.asarray(column) for name, column in named.items()})  # noqa: N806
        with np.errstate(over="ignore"):  # infinite values are an error anyway
            masked = isinstance(X, np.ma.MaskedArray)
            try:
                table = validate_data(self, as_array(X) if masked else X, **options)
            except ValueError as error:
                if "convert string" not in str(error):
                    raise
                problem = f"X must be numbers, but scikit-learn {error}: leave out or encode texts"
                raise DataError(problem, parameter="X", code="wrong-type") from error
        if (missing := np.isnan(table).any(axis=0)).any():
            message = (
                f"X contains NaN in the column {self._names(table)[int(missing.argmax())]}: "
                "put an imputer before the ranker, "
                "make_pipeline(SimpleImputer(add_indicator=True), BayesianRanker())"
            )
            raise DataError(message, parameter="X", code="bad-number")
        return np.asarray(table)

    def _names(self, table: Float64) -> list[str]:
        """Return the names of the columns of `X`."""
        numbered = [f"x{k}" for k in range(table.shape[1])]
        return [str(name) for name in getattr(self, "feature_names_in_", numbered)]

    def _lists(
        self,
        X: Any,  # noqa: N803
        qid: npt.ArrayLike | None,
        groups: npt.ArrayLike | None,
        *gains: npt.ArrayLike,
        reset: bool = False,
    ) -> tuple[NBest, Int64]:
        """Return the rows as lists, and (candidates,) the positions of their candidates in `X`."""
        features = self._features(X, reset)
        names = self._names(features)
        if "qid" in names:
            problem = 'qid is a column of X, so that it is a feature: take it out, qid=X.pop("qid")'
            raise DataError(problem, parameter="X", code="bad-name")
        if qid is None and groups is None:
            raise _not_routed()
        number = _number_labels(qid, groups, len(features))
        extras = dict(zip([_Y], map(_read_gains, gains), strict=False))
        check_consistent_length(features, *extras.values())
        rows = np.argsort(number, kind="stable")
        if _Y in names:
            message = f"two columns {_Y}, in X and of the gain: rename one"
            raise DataError(message, parameter="X", code="duplicate")
        lists = from_arrays(
            [""] * len(rows),
            features[rows],
            names,
            np.bincount(number),
            extras={name: values[rows] for name, values in extras.items()},
        )
        return lists, rows


def _read_gains(y: npt.ArrayLike | None) -> Float64:
    """Return the gain of each candidate, NaN for those that are not judged."""
    if y is None:
        problem = "BayesianRanker requires y to be passed, but the target y is None"
        raise UsageError(problem, parameter="y", code="missing-setting")
    _require_in_memory(y, "y")
    values = column_or_1d(as_array(y), warn=True)
    numbers = as_numbers(values.tolist(), truths=True)
    try:
        values = to_floats(values, "y") if numbers is None else numbers
    except UsageError as error:
        texts = [quote(value) for value in values.tolist() if isinstance(value, str)]
        message = (
            "y must be numbers, higher for better candidates, or True and False, or NaN, not "
            f"{[*texts, error][0]}"
        )
        raise DataError(message, parameter="y", code="bad-number") from error
    assert_all_finite(values, allow_nan=True, input_name="y")
    return values


def _require_in_memory(values: Any, name: str) -> None:
    """Raise a DataError for what is no array, such as the plan of one."""
    if not any(hasattr(values, one) for one in ("__len__", "shape", "__array__")):
        message = (
            f"{name} must be an array or a data frame in memory, not a {type(values).__name__}: "
            "call .collect() of a lazy frame"
        )
        raise DataError(message, parameter=name, code="wrong-type")


def _not_routed(more: str = "") -> UsageError:
    """Return the error for rows whose lists are not named, and may not have been passed on.

    Scikit-learn shows errors within cross-validation with their traces, once for each part, so that
    a warning says it before.
    """
    if not get_config()["enable_metadata_routing"]:
        with suppress(BpaWarning):  # where warnings are errors, this one is the error itself
            warn_user(f"qid is missing: {_ROUTING}")
    return _missing_qid(f"{_ROUTING}{more}")


def _missing_qid(remedy: str) -> UsageError:
    """Return the error for rows whose lists are not named."""
    problem = (
        "qid is missing: name the list of each row, qid=…, or qid=np.zeros(len(X)) if all rows"
    )
    return UsageError(f"{problem} are one list; {remedy}", parameter="qid", code="missing-setting")


def _number_labels(qid: npt.ArrayLike | None, groups: npt.ArrayLike | None, count: int) -> Int64:
    """Return the number of the list of each candidate, from 0 in order of first appearance.

    Args:
        qid: (count,) of lists.
        groups: used where `qid` is None.
        count: of candidates.

    Raises:
        DataError: if they are not one label for each candidate.
    """
    reason, code = "", "wrong-type"
    name, labels = ("groups", groups) if qid is None else ("qid", qid)
    _require_in_memory(labels, name)
    try:
        # As objects, because an array of 1 and "1" would have two equal texts.
        values = as_array(labels) if hasattr(labels, "dtype") else np.asarray(labels, object)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            reason = f"it has the shape {values.shape}"
        elif len(values) != count:
            reason, code = f"it has {len(values)} for {count} rows of X", "wrong-length"
            if sum(value for value in values.tolist() if isinstance(value, int | float)) == count:
                repeated = f"numpy.repeat(range({len(values)}), {name})"
                reason += f"; if these are sizes of lists, give {name}={repeated}"
        elif any(value is None or value != value for value in set(values.tolist())):
            reason = "a label is missing"
        else:
            _, first, numbers = np.unique(values, return_index=True, return_inverse=True)
            return np.asarray(first.argsort().argsort()[numbers])
    except (TypeError, ValueError) as error:  # of several types, or of several lengths
        reason = str(error)
    problem = f"{name} must be one label of a list for each row, all numbers or all texts: {reason}"
    raise DataError(problem, parameter=name, code=code)
