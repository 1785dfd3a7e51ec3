"""Sessions: questions, answers, undo, journals and predictions."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm
from support.damage import damage_journal
from support.judged_pairs import NAMES, TRUE, compared_lists
from support.posteriors import name_weights
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import DataError, NotConverged, Prior, as_weight_draws, from_lists
from bpa_ppl.extending import StartingWeights
from bpa_ppl.extras.judging.answers import Alternatives, Gaussian
from bpa_ppl.extras.judging.app import advise
from bpa_ppl.extras.judging.juries import judges
from bpa_ppl.extras.judging.questions import Candidates, estimate_outlook
from bpa_ppl.extras.judging.session import Session

#: Files that version 1.0 wrote.
GOLDEN = Path(__file__).parents[2] / "golden"


def answered(session: Session, count: int, noise: float = 0.0) -> Session:
    """Answer as the true weights do, or with a probability at random."""
    rng = np.random.default_rng(len(session.judgements))
    for _ in range(count):
        question = session.next()
        rows = session.lists.offsets[question.sentence] + np.array(question.candidates)
        first, second = session.lists.features[rows] @ TRUE
        is_first = rng.random() < 0.5 if rng.random() < noise else first > second
        session.answer("first" if is_first else "second")
    return session


@pytest.fixture(scope="module")
def long_session() -> Session:
    """A session with 48 answers; tests do not change it."""
    return answered(Session(compared_lists(), seed=6), 48)


@pytest.mark.slow
def test_the_scale_of_the_weights_is_learned() -> None:
    """A rater who follows the features widens it, and one who does not keeps it narrow."""

    def length(noise: float) -> float:
        session = answered(Session(compared_lists(), seed=1), 40, noise)
        return float(np.sqrt(np.mean((session.weights.mean[:-1] * session.lists.spread) ** 2)))

    typical = float(f"{0.4 * np.sqrt(1 / 6):.3g}")
    new = Session(compared_lists())
    units = np.sqrt(np.diag(new.prior.full_covariance)) * new.lists.spread
    np.testing.assert_allclose(units, typical, rtol=1e-3)
    assert length(noise=0.0) > 4 * typical
    assert length(noise=1.0) < typical


def test_the_weights_start_from_the_prior() -> None:
    """Given as weights, a prior, a posterior or by name; a given prior keeps its scale."""
    lists, expected = compared_lists(), [3.0, 0.0, 0.0]
    covariance = np.eye(3) / 7
    given = Prior.gaussian(dict(zip(NAMES, expected, strict=True)), covariance)
    draws = np.random.default_rng(0).normal(expected, size=(4, 2000, 3))
    for start in (
        {"weights": {"quality": 3.0}},
        {"prior": given},
        {"prior": name_weights(draws, NAMES)},
    ):
        weights = Session(lists, **start).weights
        np.testing.assert_allclose(weights.mean[:-1], expected, atol=0.1)
    session = Session(lists, prior=given)
    np.testing.assert_allclose(session.weights.covariance[:-1, :-1], covariance)
    np.testing.assert_array_equal(answered(session, 5).prior.full_covariance, covariance)
    equal = bpa.weights.equal_weights(lists)
    starts: list[Any] = [("equal", [equal[name] for name in NAMES]), ({"quality": 1.0}, [1, 0, 0])]
    for start, mean in starts:
        session = Session(lists, start)
        # The typical scale is half of that of weights that start at 0.
        scale = Session(lists).prior.full_covariance / 4
        np.testing.assert_allclose(session.prior.full_covariance, scale, rtol=0.02)
        np.testing.assert_allclose(answered(session, 5).prior.mean, mean)
        np.testing.assert_array_equal(session.prior.scale.of_weights, 1.25)


@pytest.mark.slow
def test_the_posterior_of_adapt_agrees_with_the_approximation() -> None:
    """In the median and the central 68 % of its draws: Gaussians given scales lack their tail."""
    session = answered(Session(compared_lists()), 20)
    session.answer("tie")
    posterior = session.posterior
    draws = as_weight_draws(posterior)
    prior = session.prior
    expected_by_name = {
        "mean": prior.mean,
        "covariance": prior.covariance,
        "log_deviation": prior.scale.of_weights,
    }
    for name, expected in expected_by_name.items():
        np.testing.assert_allclose(draws.draws.constants[f"prior_{name}"], expected, rtol=1e-6)
    assert bpa.check(draws)
    assert draws.features == session.features == NAMES
    low, median, high = np.quantile(draws.flat, norm.cdf([-1, 0, 1]), axis=0)
    half = (high - low) / 2
    assert np.all(np.abs(median - session.weights.mean[:-1]) < 0.3 * half)
    deviation = np.sqrt(np.diag(session.weights.covariance)[:-1])
    np.testing.assert_allclose(deviation, half, rtol=0.15)


def test_weights_of_fixed_features_count_and_of_unknown_ones_do_not() -> None:
    """As those of a decoder, whose file has more weights than the lists have features."""
    lists, weights = compared_lists(), {"quality": 3.0, "noise": 0.5, "other": 1.0}
    with pytest.warns(bpa.BpaWarning, match="other left out"):
        session = Session(lists, StartingWeights(weights, fixed=["noise"]))
    assert session.features == ("quality", "length")
    np.testing.assert_allclose(session.weights.mean[:-1], [3, 0])
    scores = lists.features @ np.array([weights.get(name, 0.0) for name in NAMES])
    best = [int(part.argmax()) for part in np.split(scores, lists.offsets[1:-1])]
    assert session.choices().tolist() == best


def test_half_of_the_pairs_are_random_and_every_twelfth_is_repeated(long_session: Session) -> None:
    """A repeated pair has its sides exchanged."""
    asked = [judgement.asked for judgement in long_session.judgements]
    assert [asked.count(kind) for kind in ("information", "random", "repeat")] == [24, 20, 4]
    earlier = set()
    for judgement in long_session.judgements:
        if judgement.asked == "repeat":
            assert (judgement.id, judgement.candidates[::-1]) in earlier
        earlier.add((judgement.id, judgement.candidates))


def test_pairs_are_asked_once_before_any_comes_again() -> None:
    """Raters with names get the same random questions instead, independent of their answers."""
    session = answered(Session(compared_lists(count=20, size=2), seed=3), 22)
    asked = [judgement.id for judgement in session.judgements if judgement.asked != "repeat"]
    assert len(asked) == 21
    assert sorted(asked[:20]) == list(range(20))
    named = answered(Session(compared_lists(count=20, size=2), seed=3, rater="ann"), 22)
    asked = [judgement.id for judgement in named.judgements if judgement.asked != "repeat"]
    assert len(set(asked[:20])) < 20


def test_a_journal_restores_the_session(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also after a crash within a line; the next question and the scale are the same."""
    caplog.set_level("INFO", "bpa_ppl")
    path, lists = tmp_path / "answers.jsonl", compared_lists()
    session = answered(Session(lists, journal=path, rater="ann", seed=4), 13)
    session.undo()
    answered(session, 2)
    following = session.next()
    written = path.read_text().removesuffix("\n")
    for ending in ("\n", "", "\r", '\n{"id": 3, "candid'):
        caplog.clear()
        path.write_text(written + ending)
        again = Session(lists, journal=path, rater="ann", seed=4)
        assert (f"{path}:18: the line is incomplete" in caplog.text) is (len(ending) > 1)
        assert again.judgements == session.judgements
        assert len(again.judgements) == 14
        assert again.next() == following
        np.testing.assert_allclose(again.weights.mean, session.weights.mean, atol=1e-4)
        np.testing.assert_allclose(again.weights.covariance, session.weights.covariance, rtol=1e-6)
        again.answer("tie")
        again = Session(lists, journal=path, rater="ann", seed=4)
        assert [judgement.answer for judgement in again.judgements[14:]] == ["tie"]


def test_answers_about_other_lists_are_refused(tmp_path: Path) -> None:
    """By the hash of the texts, the rater, and candidates that do not exist."""
    path = tmp_path / "answers.jsonl"
    session = answered(Session(compared_lists(), journal=path), 1)
    with raises(DataError, "mismatch", match=str(path)):
        Session(compared_lists(count=39), journal=path)
    answered(Session(compared_lists(), journal=tmp_path / "ann.jsonl", rater="ann"), 1)
    with raises(DataError, "mismatch", match="ann"):
        Session(compared_lists(), journal=tmp_path / "ann.jsonl", rater="bob")
    with raises(DataError, "mismatch"):
        session.add(replace(*session.judgements, id="unknown"))


LINE = {"id": 0, "candidates": [0, 1], "answer": "first"}


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    """With its number."""
    path, header = tmp_path / "answers.jsonl", {"format": "judgements", "version": 1}
    changes: list[dict[str, object]] = [{"candidates": [1, 1]}, {"candidates": [0, -1]}]
    changes += [{"answer": "maybe"}, {"predicted": [1e999, 0]}, {"correction": 7}, {"undo": 3}]
    for change in changes:
        lines = (header, LINE, {**LINE, **change})
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with raises(DataError, "bad-line", line=3, match=str(path)):
            Session(compared_lists(), journal=path)


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_damaged_journal_is_used_or_refused(tmp_path: Path, count: int) -> None:
    """The error names the file."""
    path, lists, results = tmp_path / "answers.jsonl", compared_lists(), Counter[str]()
    whole = answered(Session(lists, journal=path), 2)
    whole.undo()
    whole.next()
    whole.answer("second", correction="better")
    content = path.read_bytes()
    for seed in range(count):
        path.write_bytes(damage_journal(content, random.Random(seed)))
        try:
            session = Session(lists, journal=path)
            session.next()
            session.answer("tie")
            assert session.judged.sentence_extras["ties"]
            results[str(path.read_bytes().endswith(b"}\n"))] += 1
        except DataError as error:
            results["refused" if str(path) in str(error) else str(error)] += 1
    fresh_errors = {name for name in results if "no candidates" in name}
    assert set(results) - fresh_errors == {"True", "refused"}
    assert min(results["True"], results["refused"]) > 5


def test_lists_with_nothing_to_compare_are_refused() -> None:
    """All candidates look equal."""
    lists = from_lists([["A cat.", "a cat"], ["dog"]], [[[0.0], [1.0]], [[0.0]]], ["x"])
    with raises(DataError, "no-data"):
        Session(lists)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_it_says_stop_to_a_clear_rater_alone(noise: float) -> None:
    """Not to one whose answers have nothing to do with the features, however often it looks."""
    session, codes = Session(compared_lists(100)), []
    while "stop" not in codes and len(codes) < 6:
        answered(session, 10, noise)
        codes.append(advise(session.outlook())[0])
    assert codes[0] == "continue"
    assert ("stop" in codes) is (noise == 0)


def test_the_outlook_counts_answers(long_session: Session) -> None:
    """And compares predictions of random pairs with the answers."""
    before = Session(compared_lists(), seed=6).outlook()
    result = long_session.outlook()
    for state in (before, result, Session(compared_lists(100, 2)).outlook()):
        assert 0 <= state.further <= 1 - state.headroom
    assert (result.answers, result.repeated, result.agreed) == (48, 4, 4)
    assert result.random == 20
    assert result.predicted > 14  # by true weights all of them, by chance 10
    assert result.predicted_before == 10  # the prior mean is 0
    assert result.headroom > 0.7
    assert result.further < before.further


@pytest.mark.slow
def test_shares_grow_as_expected_in_simulated_sessions() -> None:
    """Of raters with weights from the prior, before the first answer, after 5 and after 20."""
    lists, stages, differences = compared_lists(100, 2), (0, 5, 20), []
    for seed in range(60):
        session, rng = Session(lists, seed=seed), np.random.default_rng(seed)
        true = session.start.sample(rng, 1)
        truth = (lists.features @ true[0, :-1]).reshape(100, -1)
        shares, expected = [], []
        for number in range(31):
            best, mean = truth.max(axis=1).mean(), truth.mean()
            won = truth[np.arange(100), session.choices()].mean()
            shares.append((won - mean) / (best - mean))
            if number in stages:
                expected.append(session.outlook().further)
            question = session.next()
            rows = lists.offsets[question.sentence] + np.array(question.candidates)
            alternatives = Alternatives.of(lists.features[rows], np.zeros(2))
            p = alternatives.probabilities(true, session.slip)[:, 0]
            session.answer(("first", "second", "tie")[rng.choice(3, p=p)])
        growth = [shares[stage + 10] - shares[stage] for stage in stages]
        differences.append(np.subtract(growth, expected))
    errors = np.std(differences, axis=0) / np.sqrt(len(differences))
    assert (np.abs(np.mean(differences, axis=0)) < 3 * errors).all()


@pytest.mark.parametrize(("mean", "scale"), [(0.3, 1.0), (0.0, 8.0)])
def test_the_gain_of_further_answers_by_quadrature(mean: float, scale: float) -> None:
    """One feature and pairs: the share is 1 or −1, as the sign of the weight is right or wrong."""
    rng, slip = np.random.default_rng(0), 0.05
    features = rng.normal(size=(400, 1)).astype(np.float32)
    table = Candidates(features, np.zeros(400), np.arange(201) * 2, np.arange(400))
    weights = Gaussian.prior(np.array([mean]), scale**2 * np.eye(1))
    results = [
        estimate_outlook(table, weights, np.random.default_rng(seed), slip) for seed in range(40)
    ]
    best, share, _, further = np.mean(results, axis=0)
    right = norm.cdf(mean / scale)
    assert best == pytest.approx(right, abs=0.02)
    assert share == pytest.approx(2 * right - 1, abs=0.03)
    # Ten answers by each of 1,000 draws of the prior, and the posterior on a grid of λ and log ν.
    z = norm.ppf((np.arange(40) + 0.5) / 40)
    grid = np.array([(mean + scale * a, b) for a in z for b in z[::4]]).T
    drawn = rng.normal([mean, 0], [scale, 1], size=(1000, 2)).T
    asked = (features[::2] - features[1::2])[rng.integers(200, size=(10, 1000)), 0]

    def probabilities(weight: Any, log_tie: Any, difference: Any) -> Any:
        half = weight * difference / 2
        return (1 - slip) * softmax([half, -half, log_tie + 0 * half], axis=0) + slip / 3

    likelihood = np.ones((1000, grid.shape[1]))
    for question in asked:
        p = probabilities(*drawn, question)
        answers = (rng.random(1000) > p.cumsum(axis=0)[:2]).sum(axis=0)
        likelihood *= probabilities(*grid, question[:, None])[answers, np.arange(1000)]
    chosen = np.sign(likelihood @ grid[0])
    shares = chosen * (likelihood @ np.sign(grid[0])) / likelihood.sum(axis=1)
    assert further == pytest.approx(shares.mean() - (2 * right - 1), abs=0.05)


def test_a_session_goes_on_from_the_journal(tmp_path: Path) -> None:
    journal = shutil.copy(GOLDEN / "journal.jsonl", tmp_path)
    lists = bpa.read_nbest(GOLDEN / "lists.jsonl", features=["logprob.*", "length", "count"])
    session = Session(lists, journal=journal, rater="ann", seed=3)
    answers = [[one.id, list(one.candidates), one.answer] for one in session.judgements]
    recorded = json.loads((GOLDEN / "expected.json").read_text("utf-8"))["answers"]
    assert answers == [answer[-3:] for answer in recorded]
    with raises(DataError, "mismatch"):
        Session(lists[:7], journal=journal)


@pytest.mark.parametrize("use", [Session, judges])
def test_a_posterior_that_fails_its_check_is_refused(use: Any) -> None:
    drawn = np.random.default_rng(0).normal(size=(4, 1000, 3)) + np.arange(4)[:, None, None]
    constants = {"prior_mean": np.zeros(3), "prior_variance": np.ones(3)}
    posterior, lists = name_weights(drawn, NAMES, constants=constants), compared_lists()
    arguments: Any = {"lists": lists, "prior" if use is Session else "posterior": posterior}
    with raises(NotConverged, parameter="unchecked"):
        use(**arguments)
    assert Session(lists, prior=posterior, unchecked=True).next()
