"""Predictions, LOO and power scaling: plain loops, quadrature and known truths."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import reference_model
from external_posterior import external_posterior
from html_outline import Outline
from raising import raises
from scipy.special import expit, log_expit
from scipy.stats import norm
from targets import SENTENCES, balanced, integrated

from bpa_ppl import DataError, Draws, NBest, adapt
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
from bpa_ppl.posterior import as_draws, import_arviz
from bpa_ppl.posterior.arviz_functions import InferenceData, generation
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
