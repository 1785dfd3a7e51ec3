"""The contribution of added features, compared with adapting without them."""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest
from raising import raises

import bpa_ppl as bpa
from bpa_ppl import DataError, Draws, NBest, adapt, as_draws, corpus_score
from bpa_ppl.decoding.improvement import contributions, contributions_section, mean_without
from bpa_ppl.features import LanguageModel, Length

pytestmark = pytest.mark.filterwarnings("ignore:no canonical weight:bpa_ppl.BpaWarning")
WORDS = ("the", "cat", "sat", "on", "a", "mat")


def lists_of(seed: int, sentences: int = 60) -> NBest:
    """Return lists whose hypotheses are shuffled or correct sentences."""
    rng = np.random.default_rng(seed)
    right, texts, features = " ".join(WORDS), [], []
    for _ in range(sentences):
        texts.append([*(" ".join(rng.permutation(WORDS)) for _ in range(5)), right])
        features.append(rng.normal(size=(6, 1)))
    return NBest.from_lists(texts, features, ["LM0"], references=[[right]] * sentences)


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("domain") / "text"
    path.write_text("the cat sat on a mat\nthe cat sat\na mat\n")
    return path


@pytest.fixture(scope="module")
def posterior(domain: Path) -> Draws:
    sources = [LanguageModel(text=str(domain)), Length(characters=True)]
    data = adapt(lists_of(1), {"LM0": 1.0}, add=sources, sampler="laplace", seed=1)
    return as_draws(data)


def test_rows_name_omitted_features(posterior: Draws) -> None:
    rows = contributions(lists_of(2), posterior)
    assert [row.what for row in rows] == [
        "canonical",
        "adapted",
        "without any of them",
        "without lm",
        "without the column lm",
        "without the column lm.oov",
        "without length",
        "without the column LengthWords",
        "without the column LengthCharacters",
    ]
    assert rows[2].features == ("lm", "lm.oov", "LengthWords", "LengthCharacters")
    canonical, adapted, without = (row.scores[0].value for row in rows[:3])
    assert adapted == 0
    assert min(canonical, without) > 20
    assert rows[1].changed == 0
    assert rows[3].changed > 20


def test_scores_agree_with_reported_weights(posterior: Draws) -> None:
    new = lists_of(2)
    row = next(r for r in contributions(new, posterior) if r.what == "without any of them")
    weight = mean_without(posterior, row.features)[0]
    texts = new.chosen(new.best(weight * new.features[:, 0]))
    assert row.scores[0].value == corpus_score(texts, new.references).value


def test_mean_without_feature_is_conditional_gaussian_mean() -> None:
    rng = np.random.default_rng(4)
    factor = rng.normal(size=(3, 3))
    covariance, mean = factor @ factor.T, np.array([1.0, -2.0, 0.5])
    values = rng.multivariate_normal(mean, covariance, (2, 100_000))
    result = mean_without(Draws({"weights": values}, ("a", "b", "c")), ["b", "c"])
    expected = mean[0] - covariance[0, 1:] @ np.linalg.solve(covariance[1:, 1:], mean[1:])
    assert result[0] == pytest.approx(expected, abs=0.05)
    assert result[1:].tolist() == [0, 0]


@pytest.mark.slow
def test_result_is_close_to_refitting_on_real_lists() -> None:
    with as_file(files("bpa_ppl.demo_data")) as data:
        lists = bpa.read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
        weights = bpa.read_weights(data / "moses.ini")
        source = LanguageModel(text=str(data / "leaflet.domain.txt"), carry=True)
    adaptation, new = lists[:80], lists[80:]
    with_text = adapt(adaptation, weights, add=source, sampler="laplace")
    result = {row.what: row.scores[0].value for row in contributions(new, with_text)}
    anew = as_draws(adapt(adaptation, weights, sampler="laplace"))
    texts = new.chosen(new.best(new.scores(anew.aligned(new, anew.mean[None])[0])))
    ter = corpus_score(texts, new.references).value
    assert result["without lm"] == pytest.approx(ter, abs=0.6)
    assert result["adapted"] < ter - 0.2


def test_single_draw_keeps_the_other_weights(domain: Path) -> None:
    source = LanguageModel(text=str(domain))
    draws = as_draws(adapt(lists_of(1), {"LM0": 1.0}, add=source, sampler="map"))
    assert mean_without(draws, ["lm"]).tolist() == [draws.mean[0], 0, draws.mean[2]]


def test_posterior_without_added_features() -> None:
    plain = adapt(lists_of(1), {"LM0": 1.0}, sampler="map")
    with raises(DataError, "missing-feature"):
        contributions(lists_of(2), plain)


def test_section_shows_each_row(posterior: Draws) -> None:
    rows = contributions(lists_of(2), posterior)
    (table,) = contributions_section(rows, 60).blocks
    text = re.sub(r"<[^>]+>", " ", table.html())
    assert "Corpus scores of 60 sentences" in text
    assert all(row.what in text for row in rows)
    assert f"{rows[0].scores[1].value:.2f}" in text
