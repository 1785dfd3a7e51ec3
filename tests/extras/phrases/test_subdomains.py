"""Latent subdomains: EM against a NumPyro program, its language models, recovery, and files."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro
import pytest
from joblib import Parallel
from pyarrow import parquet
from sklearn.metrics import adjusted_rand_score
from support.language_models import model_of_part
from support.phrase_pairs import numbered, sentences_of
from support.planted import planted
from support.raising import raises
from support.subdomain_program import pad_text, subdomain_mixture

from bpa_ppl import BpaWarning, DataError, UsageError
from bpa_ppl.extras.phrases.induction import induce
from bpa_ppl.extras.phrases.subdomain_em import (
    EMSettings,
    Iteration,
    Lexicons,
    WeightedText,
    add_shorter_counts,
    estimate_counts,
    fit_em,
)
from bpa_ppl.extras.phrases.subdomains import Subdomains
from bpa_ppl.extras.phrases.tables import SIDES

EXACT = {"em": "soft", "smoothing": "none", "prior": 0.0}
SMALL = planted(3, 40, 0.3, words=9, length=4)[:2]
TEXTS = planted(3, 150, 0.4, words=40)[:2]


def run_em(texts: Any, jobs: int = 1, **settings: object) -> list:
    with Parallel(jobs, require="sharedmem") as team:
        return fit_em(*texts, EMSettings(**settings), team)  # type: ignore[arg-type]


def agreement(result: Subdomains, truth: np.ndarray) -> float:
    return float(adjusted_rand_score(truth, result.winners()))


def parameter_tables(
    result: list[Iteration], step: int, order: int, lm_iterations: int = 1
) -> dict[str, np.ndarray]:
    """Return the parameters after a step of EM, by counting with its posteriors."""
    first = lm_iterations  # the posteriors of the language models, which stay fixed
    k, created = len(result[0].weights), {"weights": result[step].weights}
    for name, text in zip(SIDES, SMALL, strict=True):
        padded = pad_text(text, order)
        counts = np.zeros((k, padded.sizes[0], padded.sizes[1] + 1))
        rows, places = np.nonzero(padded.history >= 0)
        events = padded.history[rows, places], padded.following[rows, places]
        for z in range(k):
            np.add.at(counts[z], events, result[first].pair_weights(z)[rows])
        created[f"{name}_next"] = counts / np.maximum(counts.sum(2, keepdims=True), 1e-300)
    lexicons, sizes = Lexicons(*SMALL, 0.0), [len(text.words) for text in SMALL]
    for (given, predicted), (n, m) in zip((SIDES, SIDES[::-1]), (sizes, sizes[::-1]), strict=True):
        dense = np.zeros((k, n + 1, m))
        starts, columns = lexicons.texts[given].rows
        # The empty word, the first row of a lexicon, is the last one of the program.
        words = np.repeat(np.arange(n + 1), np.diff(starts)) - 1
        for z in range(k):
            weight_history = [entry.pair_weights(z, given) for entry in result[first : step + 1]]
            dense[z][words, columns] = lexicons.learn(given, weight_history)
        created[f"{predicted}_given"] = dense
    return created


def program_log_likelihood(order: int, k: int) -> Callable:
    """Return a function of the NumPyro program's log-likelihood and gradient."""
    rectangles = [pad_text(text, order) for text in SMALL]

    def likelihood(values: dict) -> jax.Array:
        model = numpyro.handlers.substitute(subdomain_mixture, values)
        with numpyro.validation_enabled(False):
            trace = numpyro.handlers.trace(model).get_trace(*rectangles, k)
        return trace["pairs"]["fn"].log_factor.sum()

    return jax.jit(jax.value_and_grad(likelihood))


@pytest.mark.parametrize(("order", "lm_iterations"), [(1, 1), (3, 1), (3, 0)])
def test_em_likelihood_agrees_with_program(order: int, lm_iterations: int) -> None:
    result = run_em(SMALL, k=3, order=order, lm_iterations=lm_iterations, iterations=2, **EXACT)
    assert len(result) == lm_iterations + 3
    likelihood = program_log_likelihood(order, 3)
    for step in (lm_iterations, lm_iterations + 1):
        total, _ = likelihood(parameter_tables(result, step, order, lm_iterations))
        assert float(total) == pytest.approx(result[step + 1].log_likelihood, rel=1e-6)


def test_em_steps_agree_with_program_gradient() -> None:
    result = run_em(SMALL, k=2, order=1, iterations=3, start="random", **EXACT)
    slope_of = program_log_likelihood(1, 2)
    # The gradient at θ = 0 is not defined.
    assert all((entry.posteriors > 0).all() for entry in result)
    for step in (1, 2):
        values, after = parameter_tables(result, step, 1), parameter_tables(result, step + 1, 1)
        _, slope = slope_of(values)
        for name in ("weights", "target_given", "source_given"):
            # A step of EM: θ ∂L/∂θ, normalised.
            raw = values[name] * np.nan_to_num(np.asarray(slope[name]))
            expected = raw / np.maximum(raw.sum(axis=-1, keepdims=True), 1e-300)
            np.testing.assert_allclose(after[name], expected, atol=2e-6)
            assert abs(after[name] - values[name]).max() > 1e-4


@pytest.mark.parametrize("settings", [{}, {"em": "soft", "order": 1}, {"em": "soft", "folds": 4}])
def test_planted_subdomains_are_recovered(settings: dict) -> None:
    source, target, truth = planted(4, 600, 0.5)
    result = induce(source, target, 4, **settings)
    assert agreement(result, truth) >= 0.9
    shares = np.bincount(truth) / len(truth)
    np.testing.assert_allclose(np.sort(result.weights), np.sort(shares), atol=0.02)


@pytest.mark.parametrize("side", ["target", "both"])
def test_planted_topics_are_recovered(side: Any) -> None:
    source, target, truth = planted(3, 150, 0.9, words=100, length=15)
    result = induce(source, target, 3, induction="lda", side=side)
    assert agreement(result, truth) >= 0.9
    assert not result.hard
    recorded = [result.settings[name] for name in ("induction", "side", "alpha", "beta")]
    assert recorded == ["lda", side, 0.01, 0.01]
    np.testing.assert_allclose(result.weights, result.posteriors().mean(axis=0), rtol=1e-5)


def test_cross_fitting_improves_recovery() -> None:
    source, target, truth = planted(6, 800, 0.4)
    results = [induce(source, target, 6, order=1, folds=folds) for folds in (1, 5)]
    in_sample, cross_fitted = (agreement(result, truth) for result in results)
    assert cross_fitted > in_sample + 0.02


@pytest.mark.parametrize("settings", [{}, {"em": "soft", "folds": 2}])
def test_result_depends_on_seed_but_not_on_jobs(settings: dict) -> None:
    texts = planted(3, 150, 0.1, words=40)[:2]
    one_job, three_jobs = (induce(*texts, 3, seed=1, jobs=n, **settings) for n in (1, 3))
    assert one_job.assignment.tobytes() == three_jobs.assignment.tobytes()
    assert one_job.settings == three_jobs.settings
    other = induce(*texts, 3, seed=2, **settings)
    assert one_job.assignment.tobytes() != other.assignment.tobytes()


def test_empty_sentences_and_empty_subdomains() -> None:
    source, target = [["a", "b"], [], ["c"]] * 4, [["x"], ["y"], []] * 4
    with pytest.warns(BpaWarning, match="no sentence pair"):
        result = induce(source, target, 6)
    assert set(result.winners()[::3].tolist()) == {int(result.winners()[0])}


def test_a_side_of_em_is_refused() -> None:
    with raises(UsageError, "conflict", parameter="side"):
        induce([["a"]] * 4, [["b"]] * 4, 2, side="source")


def test_rejects_texts_that_are_not_parallel(tmp_path: Path) -> None:
    source, target = [["a"]] * 5, [["b"]] * 5
    with raises(DataError, "wrong-length", match="the target text: 4 "):
        induce(source, target[:4], 2)
    with raises(DataError, "no-data", match="the target text: 1 "):
        induce(source, [["b"], [], [], [], []], 2)
    (tmp_path / "fr").write_text("a\nb\n")
    with raises(DataError, "wrong-length", match="fr has 2"):
        induce(tmp_path / "fr", target, 2)


# --- language models on expected counts: Kneser–Ney of whole sentences, and enumeration ----------


def random_sentences(count: int, seed: int = 0) -> list[list[str]]:
    """Return sentences with Zipf-distributed words, some of them empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, count)
    return [[f"w{n}" for n in rng.zipf(1.5, length).clip(0, 40)] for length in lengths]


def weighted_text(sentences: list[list[str]], order: int) -> WeightedText:
    (text,) = numbered(sentences)
    return WeightedText.of((text.numbers, text.starts), len(text.words), order)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_zero_one_weights_equal_kneser_ney_of_selection(order: int) -> None:
    text = random_sentences(300)
    kept = np.random.default_rng(1).random(len(text)) < 0.4
    plain = model_of_part(text, kept, order)
    result = weighted_text(text, order).log_probabilities(kept.astype(float))
    np.testing.assert_allclose(result, plain.log_probabilities(text), rtol=1e-6)


def test_expected_counts_agree_with_enumeration() -> None:
    text = [["a", "b"], ["b", "a", "b"], ["a"], ["b", "a"]]
    weights = np.array([0.3, 0.9, 0.5, 0.05])
    grams = weighted_text(text, 2)
    counts = estimate_counts(grams.longest, grams.starts, weights, int(grams.firsts[-1]))
    add_shorter_counts(counts, grams.suffix, grams.firsts)
    coins = np.repeat(weights, np.diff(grams.starts))
    expected = np.zeros_like(counts)
    for outcome in product((0, 1), repeat=len(coins)):
        heads = np.array(outcome)
        p = np.prod(np.where(heads == 1, coins, 1 - coins))
        pairs = np.bincount(grams.longest, heads, len(counts)).astype(int)
        present = (pairs > 0) & (np.arange(len(counts)) >= grams.firsts[1])
        words = np.bincount(grams.suffix[present], minlength=len(counts))
        for gram, count in enumerate(pairs + words):
            if count < 5:
                expected[gram, count] += p
            expected[gram, 5] += p * count
    np.testing.assert_allclose(counts, expected, atol=1e-12)


@pytest.mark.parametrize("smoothing", ["kneser-ney", "none"])
def test_probabilities_sum_to_one(smoothing: str) -> None:
    text = [[], *([f"w{n}"] for n in range(8))]
    grams = weighted_text(text, 1)
    weights = np.random.default_rng(2).random(len(text))
    weights[-1] = 0.0  # the last word has the probability of an unknown word
    result = np.exp(grams.log_probabilities(weights, smoothing))  # type: ignore[arg-type]
    end, words = result[0], result[1:] / result[0]
    assert words.sum() + end + words[-1] == pytest.approx(1.0)
    assert (words[-1] == 0) == (smoothing == "none")


def test_left_out_sentence_is_scored_by_the_others() -> None:
    text = random_sentences(60, seed=3)
    grams = weighted_text(text, 3)
    weights = np.ones(len(text))
    weights[7] = 0.0
    left_out = grams.log_probabilities(weights, chosen=np.arange(len(text)) == 7)
    assert left_out[7] == grams.log_probabilities(weights)[7]
    assert left_out[7] < grams.log_probabilities(np.ones(len(text)))[7]
    assert not left_out[np.arange(len(text)) != 7].any()


# --- files ---------------------------------------------------------------------------------------

SOURCE = [["la", "maison"], [], ["une", "maison", "Zoé"], ["la"]]
TARGET = [["the", "house"], ["."], ["a", "house"], []]
SETTINGS = {"em": "hard", "seed": 3, "log_likelihoods": [-10.5, -9.25]}
HARD = np.array([0, 2, 2, 1])
SOFT = np.array([[0.25, 0.5, 0.25], [1, 0, 0], [0, 0.1, 0.9], [0.3, 0.3, 0.4]])


def example(assignment: Any = HARD, weights: Any = (0.25, 0.25, 0.5)) -> Subdomains:
    return Subdomains(*numbered(SOURCE, TARGET), assignment, np.asarray(weights), SETTINGS)


@pytest.mark.parametrize("assignment", [HARD, SOFT])
def test_round_trip(assignment: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "subdomains.parquet"
    result = example(assignment)
    result.save(path)
    read = Subdomains.load(path)
    assert (sentences_of(read.source), sentences_of(read.target)) == (SOURCE, TARGET)
    assert read.source.words == result.source.words
    np.testing.assert_array_equal(read.assignment, result.assignment)
    assert read.assignment.dtype == result.assignment.dtype
    assert read.weights.tolist() == [0.25, 0.25, 0.5]
    assert (read.settings, read.k, len(read)) == (SETTINGS, 3, 4)
    read.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()


def test_typical_words_are_those_that_were_planted() -> None:
    """Half of the words of each sentence are those of its subdomain, of which one is rare."""
    rng, own = np.random.default_rng(4), [["loi", "article"], ["député", "question"]]
    groups = np.repeat([0, 1], 80)
    sentences = [
        [str(rng.choice(own[z] if rng.random() < 0.4 else ["le", "de", ","])) for _ in range(8)]
        for z in groups
    ]
    (text,) = numbered([["once", *sentences[0]], *sentences[1:]])
    hard = Subdomains(text, text, groups, np.array([0.5, 0.5]))
    assert list(map(set, hard.typical_words("source", 5))) == list(map(set, own))
    soft = Subdomains(text, text, hard.posteriors(), hard.weights)
    assert soft.typical_words("target", 5) == hard.typical_words("target", 5)


@pytest.mark.parametrize(
    ("assignment", "weights", "code"),
    [
        (HARD[:3], (0.25, 0.25, 0.5), "wrong-length"),
        ([0, 1, 3, 0], (0.25, 0.25, 0.5), "bad-number"),
        (SOFT, (0.5, 0.5), "bad-number"),
    ],
)
def test_rejects_invalid_subdomains(assignment: Any, weights: Any, code: str) -> None:
    with raises(DataError, code):
        example(assignment, weights)


def test_rejects_other_files(tmp_path: Path) -> None:
    path = tmp_path / "subdomains.parquet"
    example().save(path)
    content, table = path.read_bytes(), parquet.read_table(path)
    (key,) = table.schema.metadata
    long = f'{{"weights": [1{"0" * 400}], "settings": {{}}}}'
    facts = '{"weights": [1]}', "[]", "7", '{"weights": {}, "settings": 1}', long
    others = [
        (table.replace_schema_metadata(None), "unknown-format"),
        (table.drop_columns(["subdomain"]), "missing-column"),
        *((table.replace_schema_metadata({key: text}), "damaged") for text in facts),
        (content[: len(content) // 2], "damaged"),
        (b"la maison\n", "damaged"),
    ]
    for other, code in others:
        if isinstance(other, bytes):
            path.write_bytes(other)
        else:
            parquet.write_table(other, path)
        with raises(DataError, code, match=path.name):
            Subdomains.load(path)
