"""Predictions, LOO and power scaling: plain loops, quadrature and known truths."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_model
from external_posterior import external_posterior
from html_outline import Outline
from raising import raises
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import kstest, multivariate_t, norm
from targets import SENTENCES, balanced, integrated

from bpa_ppl import DataError, Draws, NBest, adapt, write_posterior
from bpa_ppl.diagnostics import with_predictions
from bpa_ppl.diagnostics.leave_one_out import (
    Sensitivity,
    compare_loo,
    leave_one_out,
    loo,
    power_sensitivity,
)
from bpa_ppl.diagnostics.pages.page import Section, Verdict, page
from bpa_ppl.diagnostics.raters import Raters
from bpa_ppl.diagnostics.report_page import model_sections
from bpa_ppl.posterior import as_draws, import_arviz, read_draws
from bpa_ppl.posterior.arviz_functions import InferenceData, generation
from bpa_ppl.posterior.draws import importance_weights
from bpa_ppl.quality.rater_agreement import Agreement

NAMES = ("LM0", "WP0")
TRUTH = np.array([1.0, -0.5])


@cache
def adapted(sampler: str, variance: float = 1.0) -> InferenceData:
    """The posterior of one weight that a grid integrates."""
    known = balanced()
    oracle = reference_model.given(*[0] * SENTENCES)
    options = {"sampler": sampler, "prior_variance": variance, "oracle": oracle, "draws": 4000}
    return adapt(known.pool, known.canonical, **options)


def test_missing_data_are_reported() -> None:
    posterior = external_posterior(np.zeros((1, 200, 2)), NAMES)
    with raises(DataError, "no-data"):
        loo(posterior)
    with raises(DataError, "no-data"):
        power_sensitivity(posterior)


def exact_loo(variance: float) -> np.ndarray:
    """Leave-one-out predictive densities of the one-weight target, each by quadrature."""
    known = balanced()
    rows = known.pool.features.reshape(SENTENCES, 2, 1)[:, 1].astype(np.float64)
    mean = np.array(list(known.canonical.values()))
    out = []
    for left in range(SENTENCES):
        others = np.delete(rows, left, axis=0)

        def log_density(w: np.ndarray, others: np.ndarray = others) -> np.ndarray:
            prior = norm.logpdf(w, mean, np.sqrt(variance)).sum(axis=1)
            return np.asarray(log_expit(-w @ others.T).sum(axis=1) + prior)

        grid, p = integrated(log_density, mean, 8.0)
        out.append(np.log(p @ expit(-grid @ rows[left])))
    return np.array(out)


@pytest.mark.parametrize("sampler", ["imh", "laplace"])
def test_loo_is_that_of_leaving_one_out(sampler: str) -> None:
    found = loo(adapted(sampler))
    np.testing.assert_allclose(found.pointwise, exact_loo(1.0), atol=0.03)
    assert found.elpd == pytest.approx(exact_loo(1.0).sum(), abs=0.1)
    assert found.doubtful == 0
    assert "12 sentences" in str(found)


def test_prior_variances_are_ranked_by_their_predictions() -> None:
    variances = (0.001, 1.0, 9.0)
    ranked = compare_loo({str(v): adapted("imh", v) for v in variances})
    exact = {str(v): exact_loo(v).sum() for v in variances}
    assert [one.name for one in ranked] == sorted(exact, key=lambda name: -exact[name])
    assert ranked[0].behind == 0
    assert sum(one.stacking for one in ranked) == pytest.approx(1, abs=1e-3)
    for one in ranked:
        assert one.elpd == pytest.approx(exact[one.name], abs=0.15)


def test_only_posteriors_of_the_same_oracles_are_ranked() -> None:
    known = balanced()
    oracle = reference_model.given(*[1] * SENTENCES)
    other = adapt(known.pool, known.canonical, sampler="imh", oracle=oracle, draws=100)
    with raises(DataError, "mismatch"):
        compare_loo({"one": adapted("imh"), "other": other})
    with raises(DataError, "no-data"):
        compare_loo({"one": adapted("imh")})
    with raises(DataError, "mismatch"):
        compare_loo({"six": observing(oracle=log_p(6)), "seven": observing(oracle=log_p(7))})


def test_a_narrow_prior_holds_the_posterior_and_a_wide_one_does_not() -> None:
    (narrow,), (wide,) = (power_sensitivity(adapted("imh", v)) for v in (0.01, 9.0))
    assert narrow.prior > 0.05 > wide.prior
    assert narrow.prior > narrow.likelihood
    assert wide.likelihood > 0.05
    assert narrow.finding
    assert not wide.finding


def html_of(sections: list[Section]) -> str:
    return page("", Verdict(""), sections)


def observing(**log_likelihood: np.ndarray) -> InferenceData:
    """Four chains of a program of somebody's own with several observed sites."""
    rng = np.random.default_rng(11)
    weights = TRUTH + 0.1 * rng.normal(size=(4, 250, 2))
    lp = -50 * ((weights - TRUTH) ** 2).sum(axis=2)
    return external_posterior(weights, NAMES, log_likelihood=log_likelihood, lp=lp)


def log_p(*shape: int) -> np.ndarray:
    return np.log(0.5) + 0.1 * np.random.default_rng(12).normal(size=(4, 250, *shape))


def test_loo_is_of_sentences_only() -> None:
    alone = loo(observing(oracle=log_p(6)))
    both = loo(observing(oracle=log_p(6), total=log_p(), table=log_p(3, 2), other=log_p(9)))
    np.testing.assert_array_equal(both.pointwise, alone.pointwise)
    assert both.elpd == alone.elpd


def test_several_observations_of_a_sentence_are_left_out_together() -> None:
    one = as_draws(observing(oracle=2 * log_p(6)))
    halves = as_draws(observing(oracle=log_p(6), length=log_p(6)))
    halves = replace(halves, sentence_sites=("oracle", "length"))
    np.testing.assert_allclose(loo(halves).pointwise, loo(one).pointwise)


@pytest.mark.parametrize("sites", [{"total": log_p()}, {"table": log_p(3, 2)}])
def test_loo_needs_observed_sentences(sites: dict) -> None:
    posterior = observing(**sites)
    with raises(DataError, "no-data"):
        loo(posterior)
    assert [section.title for section in model_sections(posterior)] == ["Prior and data"]


def test_power_scaling_is_of_all_that_was_observed() -> None:
    table = log_p(3, 2)
    parts = power_sensitivity(observing(oracle=log_p(6), table=table, total=log_p()))
    whole = np.concatenate([log_p(6), table.reshape(4, 250, 6), log_p()[..., None]], axis=-1)
    together = power_sensitivity(observing(oracle=whole))
    for part, one in zip(parts, together, strict=True):
        assert (part.prior, part.likelihood) == pytest.approx((one.prior, one.likelihood))
    alone = power_sensitivity(observing(oracle=log_p(6)))
    assert parts[0].likelihood != pytest.approx(alone[0].likelihood, rel=1e-3)


def of_likelihood(name: str, **settings: Any) -> Draws:
    draws = as_draws(observing(oracle=log_p(6)))
    return replace(draws, attrs={**draws.attrs, "likelihood": {"name": name, **settings}})


def test_values_of_a_margin_are_not_called_probabilities() -> None:
    proper, margin = of_likelihood("oracle"), of_likelihood("margin", gamma=2.0)
    assert "mean oracle probability 0." in str(loo(proper))
    assert "of the likelihood margin, which is not a probability" in str(loo(margin))
    html = [html_of(model_sections(draws)) for draws in (proper, margin)]
    assert ["probability of the oracle" in one for one in html] == [True, False]
    assert "log-margin" in html[1]
    # They rank only posteriors with the same margin.
    for other in (proper, of_likelihood("margin", gamma=1.0)):
        with raises(DataError, "mismatch", match="likelihood margin"):
            compare_loo({"one": margin, "other": other})
    assert len(compare_loo({"one": margin, "other": margin})) == 2


def test_leave_one_out_ranks_features_and_no_other_data() -> None:
    draws = of_likelihood("margin", gamma=2.0)
    one, other, third = (
        draws.with_attrs(data={"features": name, "gains": gains})
        for name, gains in (("a", "x"), ("b", "x"), ("a", "y"))
    )
    assert len(compare_loo({"one": one, "other": other, "unrecorded": draws})) == 3
    with raises(DataError, "mismatch", match="gains"):
        compare_loo({"one": one, "third": third})


def test_sums_over_plain_arrays_are_those_of_arviz() -> None:
    rng = np.random.default_rng(6)
    weights = rng.normal(size=(4, 500, 2))
    log_p = -np.logaddexp(0, -(0.4 * weights @ rng.normal(size=(2, 6)) + 0.5))
    density = log_p.sum(axis=-1) - 0.5 * (weights**2).sum(axis=-1)
    posterior = external_posterior(weights, NAMES, log_likelihood={"oracle": log_p}, lp=density)
    ours, theirs = loo(posterior), import_arviz().loo(posterior, pointwise=True)
    pointwise = theirs.elpd_i if hasattr(theirs, "elpd_i") else theirs.loo_i
    np.testing.assert_allclose(ours.pointwise, pointwise, atol=2e-3)
    still = np.concatenate([log_p, np.full((4, 500, 1), -0.7)], axis=-1)  # a list of one
    one_more = loo(external_posterior(weights, NAMES, log_likelihood={"oracle": still}))
    assert one_more.pointwise[-1] == pytest.approx(-0.7)
    assert one_more.doubtful == ours.doubtful
    divided = np.sqrt(6 / 5) if generation() < 1 else 1.0  # ArviZ 0 divides by n, not by n − 1
    assert ours.se == pytest.approx(theirs.se * divided, rel=1e-3)
    theirs_p = theirs.p if hasattr(theirs, "p") else theirs.p_loo
    assert ours.p_effective == pytest.approx(float(theirs_p), abs=0.01)


def test_what_weights_depend_on_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"both": (0.05, 0.2), "prior": (0.1, 0.0), "data": (0.0, 0.05), "neither": (0.04, 0.0)}
    found = [Sensitivity(kind, *pair, "") for kind, pair in kinds.items()]
    monkeypatch.setattr("bpa_ppl.diagnostics.report_page.power_sensitivity", lambda _: found)
    outline = Outline(html_of(model_sections(observing(total=log_p()))[:1]))
    assert "2 of 4 weights depend on the prior." in outline.texts
    assert outline.column(0, "depends on") == {kind: kind for kind in kinds}


def test_sentences_are_shown_by_their_texts_if_there_are_any() -> None:
    posterior = observing(oracle=log_p(6))
    worst = int(np.argmin(loo(posterior).pointwise))
    texts = [f"sentence {'abcdef'[k]} " + "word " * 30 for k in range(6)]

    def shown(texts: list[str] | None) -> str:
        return model_sections(posterior, texts)[-1].blocks[-1].html()

    assert f'<th scope="row" class="number">{worst}</th>' in shown(None)
    first = f'<th scope="row">{worst}: sentence {"abcdef"[worst]} word'
    assert first in shown(texts)
    assert "…</th>" in shown(texts)
    with raises(DataError, "wrong-length", parameter="texts"):
        shown(texts[:5])


def with_oracles(weights: np.ndarray, log_likelihood: np.ndarray, oracle: np.ndarray) -> Draws:
    return Draws(
        {"weights": weights},
        NAMES,
        log_likelihood={"oracle": log_likelihood},
        sentence_sites=("oracle",),
        observed={"oracle": oracle},
    )


def test_a_sentence_is_predicted_without_itself() -> None:
    """Two values of the weights, and one sentence that prefers one of them: it is left out."""
    pool = NBest.from_lists([list("abcde")], np.random.default_rng(7).normal(size=(1, 5, 2)), NAMES)
    weights = np.where(np.arange(400) < 200, 1.0, -1.0)[None, :, None] * TRUTH
    likelihood = reference_model.log_likelihood
    table = np.array([[likelihood(pool, [0], w) for w in weights[0]]])
    share = np.exp(table[0, :, 0])
    chosen = np.random.default_rng(1).choice(400, 4000, p=share / share.sum())
    draws = with_oracles(weights[:, chosen], table[:, chosen], np.array([0]))
    ((p,), _) = leave_one_out(draws, pool)
    (even,) = reference_model.predictive(pool, np.array([TRUTH, -TRUTH]))
    np.testing.assert_allclose(p, even, atol=0.02)


def test_a_notebook_shows_the_table_of_a_terminal() -> None:
    result = Raters({"<b>": 3}, Agreement(2, 5, 4, 0.6), {"<b>": (0.1, 0.0, 0.2)})
    outline = Outline(result._repr_html_())
    (table,) = outline.tables
    assert len(table) == 2
    assert all(cell in str(result) for row in table for cell in row)
    assert "b" not in outline.tags


VARIANCE = 0.1
MEAN, SPREAD = np.array([1.0, -0.5]), 0.5


def differences() -> np.ndarray:
    """h(other) − h(oracle) of each sentence."""
    return balanced().pool.features[1::2, 0].astype(np.float64)


def log_prior(w: np.ndarray, variance: float = VARIANCE) -> np.ndarray:
    return np.asarray(norm.logpdf(w, balanced().canonical["LM0"], np.sqrt(variance)))


def exact(prior: float = 1.0, likelihood: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """A grid of weights and the posterior there, its prior and likelihood raised to a power."""

    def log_density(w: np.ndarray) -> np.ndarray:
        log_likelihood = log_expit(-w * differences()).sum(axis=1)
        return likelihood * log_likelihood + log_prior(w[:, 0], VARIANCE / prior)

    grid, p = integrated(log_density, [balanced().canonical["LM0"]], 3.0, 6001)
    return grid[:, 0], p


@cache
def predicting(count: int = 4000) -> InferenceData:
    """Independent draws of the posterior of one weight, and what they predict of its lists."""
    grid, p = exact()
    drawn = np.random.default_rng(3).choice(grid, size=(4, count), p=p)
    log_likelihood = log_expit(-drawn[..., None] * differences())
    draws = Draws(
        {"weights": drawn[..., None]},
        ("LM0",),
        log_density=log_prior(drawn) + log_likelihood.sum(axis=-1),
        log_likelihood={"oracle": log_likelihood.astype(np.float32)},
        sentence_sites=("oracle",),
        observed={"oracle": np.zeros(SENTENCES, np.int64)},
    )
    gains = np.random.default_rng(4).normal(size=2 * SENTENCES)
    return with_predictions(draws, balanced().pool, gains=gains, seed=1)


def pit(data: InferenceData) -> np.ndarray:
    """ArviZ's LOO-PIT of the oracles."""
    if generation() < 1:
        return np.asarray(import_arviz().loo_pit(data, y="oracle"))
    return np.asarray(import_arviz().loo_pit(data, var_names="oracle")["oracle"])


def distance(grid: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """The cumulative Jensen–Shannon distance of two distributions on a grid (Nguyen & Vreeken)."""
    step = grid[1] - grid[0]
    p, q = np.cumsum(one)[:-1], np.cumsum(other)[:-1]
    middle = (p + q) / 2
    p_q, q_p = p.sum() * step, q.sum() * step
    both = [
        np.sum(f * np.log2(f / middle)) * step + (g_total - f_total) / (2 * np.log(2))
        for f, f_total, g_total in ((p, p_q, q_p), (q, q_p, p_q))
    ]
    return float(np.sqrt(sum(both) / (p_q + q_p)))


@pytest.mark.parametrize("component", ["prior", "likelihood"])
def test_power_scaling_is_that_of_scaling_the_power(component: str) -> None:
    """Posteriors whose prior has another variance, or whose data count otherwise, by quadrature."""
    grid, base = exact()
    # The distance depends on where the axis ends: at the furthest draws.
    drawn = predicting()["posterior"]["weights"].values
    inside = (grid >= drawn.min()) & (grid <= drawn.max())
    far = []
    for power in (1 / 1.01, 1.01):
        both = [p[inside] for p in (base, exact(**{component: power})[1])]
        flipped = [p[::-1] for p in both]
        far.append(max(distance(grid, *both), distance(grid, *flipped)))
    expected = sum(far) / (2 * np.log2(1.01))
    (found,) = power_sensitivity(predicting())
    assert getattr(found, component) == pytest.approx(expected, rel=0.1)


def test_the_pit_is_that_of_leaving_one_out() -> None:
    data = predicting()
    shares = data["observed_data"]["oracle"].values
    assert np.all((shares >= 0) & (shares < 1))  # the first of each list
    grid, p = exact()
    probability = expit(-grid[:, None] * differences())
    left_out = [importance_weights(np.log(p) - np.log(own)) @ own for own in probability.T]
    np.testing.assert_allclose(pit(data), shares * left_out, atol=0.015)


def planted(count: int, seed: int) -> tuple[NBest, np.ndarray]:
    """Lists of four whose oracles are drawn from the model at weights drawn from the prior."""
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(4, 2)) for _ in range(count)]
    pool = NBest.from_lists([["a", "b", "c", "d"]] * count, features, NAMES)
    truth = rng.normal(MEAN, SPREAD)
    chosen = [rng.choice(4, p=importance_weights(own @ truth)) for own in features]
    return pool, np.array(chosen)


def adapted_to(pool: NBest, oracle: np.ndarray) -> InferenceData:
    """The posterior by importance sampling around its mode."""
    features = pool.features.reshape(len(pool), 4, 2).astype(np.float64)

    def log_likelihood(w: np.ndarray) -> np.ndarray:
        scores = features @ w.T
        chosen = np.take_along_axis(scores, oracle[:, None, None], axis=1)[:, 0]
        return np.asarray((chosen - logsumexp(scores, axis=1)).T)

    def log_density(w: np.ndarray) -> np.ndarray:
        return log_likelihood(w).sum(axis=1) + norm.logpdf(w, MEAN, SPREAD).sum(axis=1)

    found = minimize(lambda w: -log_density(w[None])[0], MEAN)
    proposal = multivariate_t(found.x, found.hess_inv, df=5)
    drawn = proposal.rvs(2000, random_state=np.random.default_rng(1))
    draws = Draws(
        {"weights": drawn[None]},
        NAMES,
        kind="weighted",
        log_weight=(log_density(drawn) - proposal.logpdf(drawn))[None],
        log_likelihood={"oracle": log_likelihood(drawn)[None]},
        sentence_sites=("oracle",),
        observed={"oracle": oracle},
    )
    return with_predictions(draws, pool)


def test_the_pit_is_uniform_where_the_model_is_right_and_only_there() -> None:
    pool, oracle = planted(400, seed=5)
    assert kstest(pit(adapted_to(pool, oracle)), "uniform").pvalue > 0.01
    last = np.where(np.random.default_rng(0).random(len(oracle)) < 0.5, 3, oracle)
    assert kstest(pit(adapted_to(pool, last)), "uniform").pvalue < 1e-6


def test_predictive_draws_agree_with_plain_loops() -> None:
    pool, oracle = planted(5, seed=2)
    draws = Draws({"weights": np.ones((2, 2000, 2))}, NAMES, observed={"oracle": oracle})
    data = as_draws(with_predictions(draws, pool, gains=np.arange(20.0)))
    drawn = np.floor(data.predictive["oracle"]).astype(int).reshape(-1, 5)
    for s, p in enumerate(reference_model.predictive(pool, np.ones((1, 2)))):
        share = np.bincount(drawn[:, s], minlength=4) / 4000
        assert np.all(np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 4000))
    assert np.array_equal(data.predictive["gain"].reshape(-1, 5) - 4 * np.arange(5), drawn)
    assert data.observed["gain"].tolist() == (oracle + 4 * np.arange(5)).tolist()
    assert data.observed["oracle"].tolist() == oracle.tolist()
    again = as_draws(with_predictions(draws, pool))
    assert np.array_equal(again.predictive["oracle"], data.predictive["oracle"])


def test_weighted_draws_are_resampled_first() -> None:
    pool, oracle = planted(1, seed=2)
    both = np.array([[[0.0, 0.0], [9.0, 9.0]]])
    draws = Draws(
        {"weights": np.repeat(both, 500, axis=1)},
        NAMES,
        kind="weighted",
        log_weight=np.repeat([[0.0, -50.0]], 500, axis=1),
        observed={"oracle": oracle},
    )
    found = as_draws(with_predictions(draws, pool))
    assert found.kind == "chains"
    assert np.all(found.weights == 0)


def test_lists_and_gains_of_others_are_refused() -> None:
    pool, oracle = planted(3, seed=2)
    draws = Draws({"weights": np.ones((2, 10, 2))}, NAMES, observed={"oracle": oracle})
    with raises(DataError, "mismatch"):
        with_predictions(draws, pool.select([0, 1]))
    with raises(DataError, "wrong-length", parameter="gains"):
        with_predictions(draws, pool, gains=[1.0])


def test_draws_of_the_prior_predict_as_a_plain_loop(tmp_path: Path) -> None:
    """Shares of choices, against the mean of p(e|f,λ) over the draws of the prior."""
    rng = np.random.default_rng(3)
    pool = NBest.from_lists([["a", "b", "c"]] * 2, rng.normal(size=(2, 3, 1)), ["LM0"])
    prior = rng.normal(0.5, 1.0, size=(1, 4000, 1))
    draws = Draws(
        {"weights": np.full((2, 50, 1), 9.0)},
        ("LM0",),
        observed={"oracle": [0, 1]},
        prior={"weights": prior},
    )
    data = with_predictions(draws, pool, gains=np.arange(6.0))
    write_posterior(data, tmp_path / "p.nc")
    found = read_draws(tmp_path / "p.nc").prior_predictive
    assert {name: values.shape for name, values in found.items()} == dict.fromkeys(
        ("oracle", "gain"), (1, 4000, 2)
    )
    for s in range(2):
        scores = prior[0] * pool.features[pool.rows(s), 0]
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        expected = (p / p.sum(axis=1, keepdims=True)).mean(axis=0)
        shares = np.bincount(found["oracle"][0, :, s].astype(int), minlength=3) / 4000
        np.testing.assert_allclose(shares, expected, atol=4 * 0.5 / np.sqrt(4000))
        np.testing.assert_array_equal(found["gain"][..., s], found["oracle"][..., s] // 1 + 3 * s)
