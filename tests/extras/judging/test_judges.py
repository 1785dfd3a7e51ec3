"""What judges are worth, compared with brute force and with simulations of known weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom
from support.command_line import refused, succeed
from support.posteriors import with_record

import bpa_ppl as bpa
from bpa_ppl import NBest, as_weight_draws, from_lists
from bpa_ppl.extending import observe, prepare
from bpa_ppl.extras.judging.juries import (
    JudgeRow,
    Judges,
    bound_independent,
    count_independent,
    judges,
)
from bpa_ppl.extras.judging.session import Session

TAU = 0.8
PRIOR = f"isotropic:scale={TAU}"
TRUE = np.array([1.5, 0.8, 0.0])
NAMES = ("dear", "cheap", "noise")


def pairs(x: np.ndarray, first: Sequence[bool], names: Sequence[str] = NAMES) -> NBest:
    """Return pairs of candidates with the differences x of their features, and preferences."""
    features = np.stack([x / 2, -x / 2], axis=1)
    lists = from_lists([["a", "b"]] * len(x), features, names)
    answers = [[[0, 1]] if chosen else [[1, 0]] for chosen in first]
    return lists.with_sentence_extras(preferences=answers)


def simulated(count: int, seed: int, weights: np.ndarray = TRUE) -> tuple[np.ndarray, NBest]:
    """Return differences of independent features, and pairs with answers by given weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, len(weights)))
    return x, pairs(x, (rng.random(count) < expit(x @ weights)).tolist(), NAMES[: len(weights)])


@pytest.fixture(scope="module")
def lists() -> NBest:
    return simulated(60, 3)[1]


@pytest.fixture(scope="module")
def posterior(lists: NBest) -> bpa.Draws:
    return as_weight_draws(bpa.adapt(lists, prior=PRIOR, sampler="laplace"))


@pytest.fixture(scope="module")
def result(lists: NBest, posterior: bpa.Draws) -> Judges:
    return judges(posterior, lists)


def oriented(lists: NBest) -> np.ndarray:
    """Return the differences of the preferred candidate from the other one, (pairs, features)."""
    features = lists.features.astype(np.float64).reshape(len(lists), 2, -1)
    better = np.array([answer[0][0] for answer in lists.sentence_extras["preferences"]])
    rows = np.arange(len(lists))
    return features[rows, better] - features[rows, 1 - better]


def exact(x: np.ndarray, deviation: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum over a grid, without this package.

    Returns:
        the log evidence; (points,) the log posterior; and (points, features) the points.
    """
    axes = [np.linspace(-6, 6, 241) * s for s in deviation]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(deviation))
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    log_p = -np.logaddexp(0, -points @ x.T).sum(axis=1)
    log_p -= 0.5 * np.sum((points / deviation) ** 2 + np.log(2 * np.pi * deviation**2), axis=1)
    return float(np.logaddexp.reduce(log_p) + np.log(cell)), log_p, points


def left_out_accuracy(x: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return the accuracy on each pair by the posterior mean given the other pairs, (pairs,)."""
    _, log_p, points = exact(x, deviation)
    right = []
    for row in x:
        without = log_p + np.logaddexp(0, -points @ row)
        share = np.exp(without - without.max())
        margin = (share @ points) @ row / share.sum()
        right.append(float(margin > 0))
    return np.array(right)


@pytest.mark.slow
def test_evidence_and_losses_are_those_of_brute_force() -> None:
    _, lists = simulated(60, 5, TRUE[:2])
    found = judges(bpa.adapt(lists, prior=PRIOR, sampler="laplace"), lists)
    x, deviation = oriented(lists), TAU / lists.spread
    of_both, both = exact(x, deviation)[0], left_out_accuracy(x, deviation)
    assert found.curve[-1] == (60, pytest.approx(both.mean()))
    for k, row in enumerate(found.rows):
        kept = np.array([1 - k])
        difference = both - left_out_accuracy(x[:, kept], deviation[kept])
        assert row.lost == pytest.approx(difference.mean())
        # Half a list more for each of the two, and one that both have right.
        assert row.error == pytest.approx(np.sqrt(60 * difference.var() + 1) / 62)
        # Laplace's approximation of each evidence is good to a few hundredths.
        expected = of_both - exact(x[:, kept], deviation[kept])[0]
        assert row.evidence == pytest.approx(expected, abs=0.05)


@pytest.mark.slow
def test_evidence_without_a_judge_is_that_of_lists_without_it(
    lists: NBest, posterior: bpa.Draws, result: Judges
) -> None:
    of_all = posterior.record.figures.log_evidence
    assert of_all is not None
    for row in result.rows:
        alone = bpa.adapt(lists.without(row.name), prior=PRIOR, sampler="laplace:draws=100")
        without = as_weight_draws(alone).record.figures.log_evidence
        assert row.evidence == pytest.approx(of_all - without, abs=1e-4)


def test_rows_show_the_draws_in_standard_deviations(
    lists: NBest, posterior: bpa.Draws, result: Judges
) -> None:
    scaled = posterior.flat * lists.spread
    for k, row in enumerate(result.rows):
        assert row.name == NAMES[k]
        assert row.weight == pytest.approx(float(posterior.importance @ scaled[:, k]))
        above = float(posterior.importance @ (scaled[:, k] > 0))
        assert row.sign == pytest.approx(max(above, 1 - above))
        inside = (scaled[:, k] >= row.low) & (scaled[:, k] <= row.high)
        assert posterior.importance @ inside == pytest.approx(0.95, abs=0.002)
    expected = np.corrcoef(lists.features[::2] - lists.features[1::2], rowvar=False)
    assert np.array(result.correlation) == pytest.approx(expected, abs=0.05)  # not centred


def test_so_many_further_lists_win_the_aim(result: Judges) -> None:
    expected, low, high = result.remaining
    for left, further in zip((expected, high, low), result.further, strict=True):
        if further is None:
            assert left <= 0.01
        else:
            assert left * further / (60 + further) >= 0.01 > left * (further - 1) / (59 + further)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_independent_judges_count_and_copies_do_not(count: int) -> None:
    errors = (np.random.default_rng(count).random((20_000, count)) < 0.3).astype(np.float64)
    assert count_independent(errors) == pytest.approx(count, rel=0.05)
    assert count_independent(np.repeat(errors, 3, axis=1)) == pytest.approx(count, rel=0.05)


def test_the_mean_of_judges_varies_as_that_of_so_many_independent_ones() -> None:
    rng = np.random.default_rng(0)
    shared, own = rng.random((50_000, 1)) < 0.2, rng.random((50_000, 5)) < 0.2
    errors = np.where(rng.random((50_000, 5)) < 0.5, shared, own).astype(np.float64)
    expected = errors.var(axis=0).mean() / errors.mean(axis=1).var()
    assert 1.5 < expected < 4
    assert count_independent(errors) == pytest.approx(expected, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "count", "error"), [(20, 3, 0.1), (50, 3, 0.1), (50, 9, 0.2)])
@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_intervals_of_independent_judges_contain_their_number(
    size: int, count: int, error: float, shared: float
) -> None:
    rng = np.random.default_rng(size + count)

    def errors(lists: int) -> np.ndarray:
        common, own = rng.random((lists, 1)) < error, rng.random((lists, count)) < error
        return np.where(rng.random((lists, count)) < shared, common, own).astype(np.float64)

    # Two judges have the correlation shared².
    number, runs = count / (1 + (count - 1) * shared**2), 60
    ends = [bound_independent(errors(size)) for _ in range(runs)]
    covered = sum(low - 1e-9 <= number <= high + 1e-9 for low, high in ends)
    assert covered >= binom(runs, 0.9).ppf(0.001)


@pytest.mark.slow
def test_a_constant_judge_has_no_sign() -> None:
    x, lists = simulated(60, 4, TRUE[:1])
    first = [answer[0][0] == 0 for answer in lists.sentence_extras["preferences"]]
    flat = pairs(np.column_stack([x, np.zeros(60)]), first, ["judge", "flat"])
    found = judges(bpa.adapt(flat, sampler="laplace"), flat)
    judge, flat_row = found.rows
    assert judge.sign > 0.95
    assert (flat_row.low, flat_row.weight, flat_row.high) == (0, 0, 0)
    assert flat_row.sign < 0.6
    assert "+0.00      +0.00 to +0.00" in str(found)


@pytest.mark.slow
def test_copies_of_one_judge_are_worth_one() -> None:
    x, lists = simulated(60, 2, TRUE[:1] * 2)
    names = ["a", "b", "c"]
    first = [answer[0][0] == 0 for answer in lists.sentence_extras["preferences"]]
    copies = pairs(np.repeat(x, 3, axis=1), first, names)
    found = judges(bpa.adapt(copies, sampler="laplace"), copies)
    assert found.effective == pytest.approx((1, 1, 1, 3))
    assert [row.lost for row in found.rows] == pytest.approx([0, 0, 0])
    # That no choice differs in 60 lists is no proof that none ever does.
    assert [row.error for row in found.rows] == pytest.approx([1 / 62] * 3)
    assert np.array(found.correlation) == pytest.approx(np.ones((3, 3)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")  # of few answers
def test_the_forecast_of_labels_is_calibrated() -> None:
    """Weights from the prior, 40 answers: 90 % intervals contain what exact weights win."""
    covered, forecast, actual, later = 0, [], [], []
    runs, count, size = 60, 3, 40
    for seed in range(runs):
        rng = np.random.default_rng([seed, 7])
        true = TAU * rng.normal(size=count)
        _, judged = simulated(3 * size, seed, true)
        part = judged.select(np.arange(size))
        prior = f"isotropic:scale={TAU * part.spread.mean()}"
        posterior = bpa.adapt(part, prior=prior, sampler="laplace")
        mean, low, high = judges(posterior, part, unchecked=True).remaining
        of_part = as_weight_draws(posterior).mean
        new = rng.normal(size=(4000, count))
        p = expit(new @ true)

        def accuracy(weights: np.ndarray, new: np.ndarray = new, p: np.ndarray = p) -> float:
            return float(np.where(new @ weights > 0, p, 1 - p).mean())

        won = accuracy(true) - accuracy(of_part)
        prior = f"isotropic:scale={TAU * judged.spread.mean()}"
        of_all = as_weight_draws(bpa.adapt(judged, prior=prior, sampler="laplace")).mean
        covered += low <= won <= high
        forecast.append(mean)
        actual.append(won)
        later.append(accuracy(of_all) - accuracy(of_part))
    assert covered >= binom(runs, 0.9).ppf(0.001)
    difference = np.array(forecast) - actual
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(runs)
    # Three times the answers win two thirds of what is left.
    difference = np.array(forecast) * 2 / 3 - later
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(runs)


def test_the_sentence_on_labels(result: Judges) -> None:
    def shown(further: tuple[int | None, ...]) -> str:
        return str(replace(result, remaining=(0.02, 0.01, 0.04), further=further))

    exact = "exact weights would win 0.020 (90% interval 0.010 to 0.040)"
    assert f"- 1,200 more labels would win 0.01 (30 to never): {exact}" in shown((1200, 30, None))
    assert f"- more labels will help little: {exact}" in shown((None, 30, None))
    assert f"- more labels will not help: {exact}" in shown((None, None, None))
    assert f"- 1 more label would win 0.01 (1 to never): {exact}" in shown((1, 1, None))
    small = str(replace(result, curve=((1, 1.0),)))
    assert small.startswith("1 judged list, accuracy 1.000 by leave-one-out")
    assert "accuracy 1.000 with 1 list\n" in small


@pytest.mark.slow
def test_graded_lists_have_shares_of_the_headroom() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(40, 4, 2))
    gains = x[..., 0] + 0.5 * rng.normal(size=(40, 4))
    lists = from_lists([list("abcd")] * 40, x, ["good", "noise"]).with_extras(human=gains.ravel())
    posterior = bpa.adapt(lists, gain="human", prior=PRIOR, sampler="laplace")
    found = judges(posterior, lists)
    best, mean = gains.max(axis=1).mean(), gains.mean(axis=1).mean()
    of_good = gains[np.arange(40), x[..., 0].argmax(axis=1)].mean()
    assert found.unit == "headroom"
    assert found.curve[-1][1] == pytest.approx((of_good - mean) / (best - mean), abs=0.05)
    assert found.rows[0].lost > 0.5 > abs(found.rows[1].lost)
    assert found.effective[3] == 1


@pytest.mark.slow
def test_rankings_are_valued_where_jax_has_no_float64() -> None:
    """As in programs of users, which do not enable it; warnings are errors here."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(20, 3, 2))
    lists = from_lists([list("abc")] * 20, x, ["good", "noise"])
    order = np.argsort(-x[..., 0], axis=1).tolist()
    lists = lists.with_sentence_extras(rankings=[[one] for one in order])
    with jax.enable_x64(False):
        found = judges(bpa.adapt(lists, sampler="laplace"), lists)
    assert found.rows[0].lost > 0.2 > abs(found.rows[1].lost)


def test_requests_that_make_no_sense_are_refused(lists: NBest, posterior: bpa.Draws) -> None:
    with pytest.raises(bpa.DataError, match="not the lists that the posterior was adapted to"):
        judges(posterior, lists[:50])
    adapted = {
        "only the default model with a Gaussian prior": {"prior": "horseshoe"},
        "was adapted to no lists: adapt to judgements": {"likelihood": "none"},
    }
    for message, changed in adapted.items():
        parts = {part: {"name": name, "settings": {}} for part, name in changed.items()}
        other = with_record(posterior, options={**(posterior.adaptation.options or {}), **parts})
        with pytest.raises(bpa.DataError, match=message):
            judges(other, lists)
    tied = lists.without("preferences").with_sentence_extras(ties=[[[0, 1]]] * len(lists))
    observed = observe(prepare(tied, None, prior=PRIOR))
    of_ties = with_record(posterior, data=observed.hashes())
    with pytest.raises(bpa.DataError, match=r"all answers are ties, which show nothing about"):
        judges(of_ties, tied)


@pytest.mark.slow
def test_a_point_and_a_single_judge_are_valued(lists: NBest) -> None:
    alone = lists.without("cheap", "noise")
    (row,) = judges(bpa.adapt(alone, prior=PRIOR, sampler="map"), alone).rows
    assert row.low < row.weight < row.high
    right = oriented(alone)[:, 0] > 0
    assert row.lost == pytest.approx(right.mean() - 0.5, abs=0.02)


@pytest.mark.slow
def test_the_command_prints_and_draws(
    lists: NBest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bpa.write_nbest(lists, "judged.jsonl")
    succeed("adapt", "judged.jsonl", "-w", "none", "--sampler", "laplace", "-o", "p.nc")
    shown = succeed("judges", "p.nc", "-o", "judges.png")
    assert Path("judges.png").read_bytes()[:4] == b"\x89PNG"
    assert "60 judged lists, accuracy" in shown.out
    refused(
        "judges",
        "p.nc",
        "-o",
        "judges.txt",
        mention="unknown ending '.txt' of judges.txt: choose one of .png, .svg, .pdf",
    )
    session = Session(lists.without("preferences"), journal="answers.jsonl")
    for _ in range(12):
        session.next()
        session.answer("first")
    bpa.write_nbest(simulated(20, 9)[1], "more.jsonl")
    several = "more.jsonl", "judged.jsonl", "--judgements", "answers.jsonl"
    succeed("adapt", *several, "-w", "none", "--sampler", "laplace", "-o", "q.nc")
    data = json.loads(succeed("judges", "q.nc", *several, "--json").out)
    assert [row["name"] for row in data["rows"]] == list(NAMES)
    assert data["curve"][-1][0] == 80
    Path("judged.jsonl").unlink()
    refused("judges", "p.nc", mention="judged.jsonl")


def worth(rows: tuple[JudgeRow, ...]) -> Judges:
    one, nothing = (1.0, 1.0, 1.0, 1), (0.0, 0.0, 0.0)
    related = tuple(map(tuple, np.eye(len(rows)).tolist()))
    return Judges(rows, "accuracy", ((50, 0.9),), one, related, nothing, (None,) * 3)


def test_rows_of_tables_are_records_for_data_frames() -> None:
    result = worth((JudgeRow("gpt", 1.06, 0.4, 1.7, 0.99, 0.03, 0.02, 4.1),))
    assert pd.DataFrame(result.rows)["evidence"].tolist() == [4.1]
