"""The page about a posterior: its numbers are ArviZ's and NumPy's, whoever made the posterior."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import reference_model
from support.html_outline import Outline
from support.posteriors import autoregressive, external_posterior, import_arviz, to_arviz_data
from support.raising import raises
from xarray import DataArray

import bpa_ppl
from bpa_ppl import DataError, Draws, NBest, UsageError, adapt, as_weight_draws, check, from_lists
from bpa_ppl.evaluation.report import posterior_page
from bpa_ppl.extending import StartingWeights

if TYPE_CHECKING:
    from support.posteriors import InferenceData

#: Only the page of chains has figures: it is made before.
pytestmark = pytest.mark.usefixtures("page_of_chains", "without_drawing")
NAMES = ("LM0", "TM0", "WP0")
CANONICAL = {"LM0": 0.2, "TM0": 0.2, "WP0": -0.1, "UnknownWordPenalty0": 1.0}
TITLES = ["What moved", "Diagnostics", "How it was made"]
# The tables of a page about chains.
WEIGHTS, DIAGNOSTICS, ORIGIN = range(3)


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists of two, whose better candidates have much of TM0 and nothing else in common."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(60, 4))
    features[::2, 1] += 3
    texts = [["right", "wrong"]] * 30
    return from_lists(texts, np.split(features, 30), (*NAMES, "UnknownWordPenalty0"))


def adapted(lists: NBest, sampler: str, oracle: int = 0, **settings: Any) -> InferenceData:
    oracles = reference_model.given(*[oracle] * 30)
    canonical = CANONICAL | settings.pop("canonical", {})
    return adapt(lists, canonical, sampler=sampler, gain=oracles, **settings)


def external(draws: int = 100, **parts: Any) -> InferenceData:
    """Chains of another program."""
    return external_posterior(autoregressive(0.1, 4, draws, 3, seed=1), NAMES, **parts)


@pytest.fixture(scope="module")
def chains(lists: NBest) -> InferenceData:
    return adapted(lists, "imh:draws=500")


@pytest.fixture(scope="module")
def page_of_chains(chains: InferenceData) -> Outline:
    return Outline(posterior_page(chains))


def bare(draws: np.ndarray) -> InferenceData:
    """Draws with the coordinates that xarray gives by itself, which ArviZ may warn of."""
    dims = ["chain", "draw", "row", "column"][: draws.ndim]
    coords = {dim: np.arange(size) for dim, size in zip(dims, draws.shape, strict=True)}
    weights = DataArray(draws, coords, dims, name="weights")
    return to_arviz_data({"posterior": weights.to_dataset()}, {})


def titles(outline: Outline) -> list[str]:
    start = outline.texts.index(TITLES[0])  # of the contents
    return outline.texts[start : start + len(outline.values("section", "id"))]


def test_sections_and_figures(page_of_chains: Outline) -> None:
    assert titles(page_of_chains) == TITLES
    alternatives = page_of_chains.values("img", "alt")
    assert len(alternatives) == page_of_chains.tags.count("figure") == 4
    assert all(alternatives)
    assert "TM0" in " ".join(alternatives)


def test_the_weight_that_the_data_change_is_reported(lists: NBest, page_of_chains: Outline) -> None:
    moved = {"LM0": "", "TM0": "▲ up", "WP0": "", "UnknownWordPenalty0": "fixed"}
    assert page_of_chains.column(WEIGHTS, "moved") == moved
    assert any(text.startswith("1 of 3 weights clearly moved") for text in page_of_chains.texts)
    down = adapted(lists, "imh:draws=500", oracle=1, canonical={"TM0": 4.0})
    assert Outline(posterior_page(down, top=1)).column(WEIGHTS, "moved")["TM0"] == "▼ down"


def test_weights_are_per_standard_deviation_within_the_lists(
    lists: NBest, chains: InferenceData, page_of_chains: Outline
) -> None:
    pairs = lists.features.astype(float).reshape(30, 2, 4)
    deviation = np.sqrt(pairs.var(axis=1).mean(axis=0))[:3]
    means = page_of_chains.column(WEIGHTS, "mean")
    draws = chains["posterior"]["weights"].values.reshape(-1, 3) * deviation
    assert [float(means[n]) for n in NAMES] == pytest.approx(draws.mean(axis=0), abs=6e-4)
    assert " ".join(page_of_chains.texts).count("eight × standard deviation within lists") >= 2
    shares = page_of_chains.column(WEIGHTS, "share")
    before, after = zip(*(shares[name].split(" → ") for name in NAMES), strict=True)
    canonical = np.array([0.2, 0.2, 0.1]) * deviation
    expected = 100 * canonical / canonical.sum()
    assert [float(share[:-1]) for share in before] == pytest.approx(expected, abs=0.06)
    absolute = np.abs([float(means[name]) for name in NAMES])
    expected = 100 * absolute / absolute.sum()
    assert [float(share[:-1]) for share in after] == pytest.approx(expected, abs=0.3)


def test_the_diagnostics_are_those_of_the_check(
    chains: InferenceData, page_of_chains: Outline
) -> None:
    expected = [
        [f.name, f"{f.value:.4g}", f.limit, "ok" if f.passed else "FAILED", f.where]
        for f in check(chains).rows
    ]
    assert page_of_chains.tables[DIAGNOSTICS][1:] == expected


def test_the_call_on_the_page_repeats_the_adaptation(
    lists: NBest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lists = lists.with_references([lists.text(0)] * len(lists))
    start = StartingWeights(CANONICAL, fixed=["WP0"])
    posterior = adapt(lists, start, sampler="heuristic:draws=40")
    bpa_ppl.write_posterior(posterior, "POSTERIOR")
    texts = Outline(posterior_page(posterior)).texts
    call = next(text for text in texts if "recorded_options" in text)
    names: dict[str, Any] = {"bpa": bpa_ppl, "lists": lists}
    exec("\n".join(call.splitlines()[1:]), names)
    again = names["again"]["posterior"]["weights"].values
    np.testing.assert_array_equal(again, posterior["posterior"]["weights"].values)


def test_settings_versions_seed_and_signature_are_stated(page_of_chains: Outline) -> None:
    origin = page_of_chains.column(ORIGIN, "value")
    assert (origin["seed"], origin["oracle metric"]) == ("0", "ter")
    assert origin["prior"] == "isotropic, variance 0.1"
    assert "draws 500" in origin["settings"]
    assert f"bpa_ppl {bpa_ppl.__version__}" in origin["versions"]
    signature = " ".join(page_of_chains.texts[-5:])
    assert re.search(r"sampler:imh.*\|chains:4\|draws:500\|seed:0\|numpyro:", signature)


def test_a_failed_check_is_reported_first() -> None:
    assert "NOT converged" not in posterior_page(external(1000), top=1)
    posterior = external(40)
    html = posterior_page(posterior, top=1)
    assert html.index("NOT converged") < html.index("<nav")
    assert "do not rely on these numbers" in html
    advice = {f.advice for f in check(posterior).failures}
    assert set() < advice <= set(Outline(html).texts)


@pytest.mark.parametrize("sampler", ["heuristic", "laplace"])
def test_weighted_samples_have_weighted_numbers_and_no_chains(lists: NBest, sampler: str) -> None:
    posterior = adapted(lists, f"{sampler}:draws=300")
    outline = Outline(posterior_page(posterior))
    assert any("heaviest sample" in text for text in outline.texts)
    assert not any("Traces" in text for text in outline.values("img", "alt"))
    log_weight = posterior["sample_stats"]["log_weight"].values.reshape(-1)
    rng = np.random.default_rng(1)
    p = np.exp(log_weight - log_weight.max())
    chosen = rng.choice(len(p), size=200_000, p=p / p.sum())
    resampled = posterior["posterior"]["weights"].values.reshape(-1, 3)[chosen]
    resampled = resampled * lists.spread[:3]
    deviation = as_weight_draws(posterior).deviation * lists.spread[:3]
    np.testing.assert_allclose(deviation, resampled.std(axis=0), rtol=0.02)
    shown, intervals = outline.column(0, "mean"), outline.column(0, "95% interval")
    for i, name in enumerate(NAMES):
        error = 5 * resampled[:, i].std() / np.sqrt(len(resampled)) + 6e-4
        assert float(shown[name]) == pytest.approx(resampled[:, i].mean(), abs=error)
        low, high = map(float, intervals[name].split(" to "))
        assert np.mean(resampled[:, i] < low - 1e-3) < 0.03
        assert np.mean(resampled[:, i] > high + 1e-3) < 0.03
        assert np.mean((low - 1e-3 < resampled[:, i]) & (resampled[:, i] < high + 1e-3)) > 0.94


def test_a_mode_has_no_intervals_and_no_chains(lists: NBest) -> None:
    outline = Outline(posterior_page(adapted(lists, "map")))
    assert not any("Traces" in text for text in outline.values("img", "alt"))
    assert set(outline.column(0, "95% interval").values()) == {""}
    assert set(outline.column(0, "moved").values()) == {"", "fixed"}


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ((4, 100), ["weights"]),
        ((4, 100, 2, 2), [f"weights[{j}, {k}]" for j in range(2) for k in range(2)]),
        ((1, 100, 1), ["weights"]),
        ((2, 3, 2), ["weights[0]", "weights[1]"]),
    ],
)
def test_draws_of_any_shape(shape: tuple[int, ...], names: list[str]) -> None:
    draws = np.random.default_rng(2).normal(size=shape)
    outline = Outline(posterior_page(bare(draws), top=1))
    shown = outline.column(WEIGHTS, "mean")
    assert list(shown) == names
    means = draws.reshape(*shape[:2], -1).mean(axis=(0, 1))
    assert [float(mean) for mean in shown.values()] == pytest.approx(means, abs=6e-4)


@pytest.mark.usefixtures("without_drawing")
def test_main_sites_of_other_programs_are_variables() -> None:
    parts: dict[str, Any] = {"dims": {"theta": ("school",)}, "coords": {"school": ("a", "b")}}
    values = {"theta": np.random.default_rng(0).normal(size=(4, 50, 2))}
    page = posterior_page(Draws(values, main=("theta",), **parts))
    assert "Hyperparameters" not in page
    assert "Weights" not in page
    assert re.search(r"Variables</h2>.*<td>a</td>", page, re.DOTALL)


def test_hyperparameters_have_a_table_and_their_traces() -> None:
    sites = {
        "scale": np.exp(autoregressive(0.1, 4, 400, 1, seed=3)[..., 0]),
        "raw": autoregressive(0.98, 4, 400, 2, seed=2),
        "total": np.full((4, 400), 3.0),
    }
    posterior = external(400, sites=sites)
    outline = Outline(posterior_page(posterior, top=2))
    assert titles(outline)[1] == "Hyperparameters and other variables"
    summary = import_arviz().summary(posterior, var_names=["scale", "raw"], round_to="none")
    table = outline.tables[1]
    assert [row[0] for row in table] == ["variable", "scale", "total", "raw[0]", "raw[1]"]
    same = {"mean": "mean", "sd": "sd", "R-hat": "r_hat", "bulk ESS": "ess_bulk"}
    for column, theirs in same.items():
        shown = outline.column(1, column)
        for name in ("scale", "raw[0]", "raw[1]"):
            error = 0.51 if "ESS" in column else 5.1e-4 + (column == "sd") * 1e-3
            assert float(shown[name]) == pytest.approx(summary.loc[name, theirs], abs=error)
    tail = import_arviz().ess(posterior, var_names=["scale"], method="tail", prob=(0.05, 0.95))[
        "scale"
    ]
    assert float(outline.column(1, "tail ESS")["scale"]) == pytest.approx(float(tail), abs=0.51)
    ends = list(map(float, outline.column(1, "95% interval")["scale"].split(" to ")))
    assert ends == pytest.approx(np.quantile(sites["scale"], [0.025, 0.975]), abs=0.02)
    assert outline.column(1, "R-hat")["total"] == "–"
    assert "Traces of raw[0], raw[1]" in outline.values("img", "alt")
    assert any("the 2 of 6 weights and other parameters" in text for text in outline.texts)


def test_names_are_escaped_on_the_page_and_literal_in_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()  # drawn, because matplotlib parses texts then
    names = ("</td><script>alert(1)</script>", "$\\frac{$", "&lt;" + "long" * 40)
    html = posterior_page(external_posterior(autoregressive(0.1, 4, 100, 3, seed=1), names), top=2)
    outline = Outline(html)
    assert "script" not in outline.tags
    assert list(outline.column(WEIGHTS, "mean")) == list(names)


@pytest.mark.slow
def test_many_weights_make_no_endless_page() -> None:
    names = [f"sparse{i}" for i in range(60)]
    draws = autoregressive(0.1, 12, 100, 60, seed=1)
    html = posterior_page(external_posterior(draws, names))
    assert len(html) < 6_000_000
    assert len(Outline(html).tables[WEIGHTS]) == 61
    assert "the 8 of 60 weights that mix worst, the first 8 of 12 chains" in html
    assert "The 40 that moved most" in html


def test_posteriors_without_usable_draws_and_empty_pages_are_refused() -> None:
    draws = autoregressive(0.1, 4, 100, 3, seed=1)
    draws[2, 17, 1] = np.inf
    with pytest.raises(DataError, match=r"TM0 .* draw 17 of chain 2 \(1"):
        posterior_page(external_posterior(draws, NAMES))
    with raises(UsageError, parameter="top"):
        posterior_page(external(), top=0)
