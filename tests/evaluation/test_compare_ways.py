"""Baselines: plain loops, scikit-learn, exact refits, and simulated coverage."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import PredefinedSplit
from support.gained_lists import JUDGED, MQM, NAMES, SIMPLE, GainLoops, lists, posterior, recorded
from support.html_outline import Outline
from support.posteriors import name_weights, with_parts
from support.raising import capture_notes

import bpa_ppl as bpa
from bpa_ppl.evaluation.compare_ways import BaselineComparison, NewChoices, read_comparison
from bpa_ppl.evaluation.paired import estimate_interval
from bpa_ppl.evaluation.report import draw_ways, posterior_page
from bpa_ppl.evaluation.simple_ways import BaselineRow, Way, find_system_column
from bpa_ppl.extending import StartingWeights


@pytest.mark.parametrize(
    ("count", "difference", "verdict"),
    [(5, 0.5, "unclear"), (6, 0.5, "better"), (9, -0.5, "worse")],
)
def test_equal_differences_have_no_interval(count: int, difference: float, verdict: str) -> None:
    """A sign test decides, which five lists do not satisfy."""
    interval = estimate_interval(np.full(count, difference) + 0.1 - 0.1, np.ones(count))
    row = BaselineRow(Way.FIRST, "baseline", count, 1.0, 0.5, *interval)
    assert row.cells[-3:] == [f"{difference:+.3f}".replace("-", "−"), "–", verdict]
    comparison = BaselineComparison((row,), "mqm", Way.FIRST)
    assert "interval" not in str(comparison.messages)


@pytest.mark.parametrize(
    "features", [*(pytest.param(n, marks=pytest.mark.slow) for n in (3, 20)), 60]
)
def test_the_ridge_regression_is_that_of_scikit_learn(features: int) -> None:
    """With fewer or more features than candidates."""
    rng = np.random.default_rng(features)
    table = rng.normal(size=(8, 4, features))
    gains = table[..., 0] + 0.5 * rng.normal(size=(8, 4))
    names, texts = [f"f{k}" for k in range(features)], [["a", "b", "c", "d"]] * 8
    pool = bpa.from_lists(texts, table, names, extras={"mqm": gains.tolist()})
    found, loops = bpa.compare_baselines(pool, gain="mqm").row(Way.RIDGE), GainLoops(pool)
    assert found.gain == pytest.approx(np.mean(loops.ridge()))
    centred = np.concatenate([x - x.mean(axis=0) for x, *_ in loops.lists])
    spread = centred.std(axis=0)
    target = np.concatenate([np.subtract(g, np.mean(g)) for _, g, _ in loops.lists])
    split = PredefinedSplit(np.repeat(np.arange(8), 4)).split()
    model = RidgeCV(np.logspace(5, -1, 13), fit_intercept=False, cv=list(split))
    model.fit(centred / spread, target / target.std())
    np.testing.assert_allclose(list(found.weights.values()), model.coef_ / spread, rtol=1e-6)


class OnGrid:
    """The posterior of two weights from eight judged lists, by its values on a grid.

    Attributes:
        gains: (lists, candidates) the judgements.
        pool: the lists.
        grid: (points, 2) weights.
        log_p: (points, lists, candidates) log p(e|f).
        of_oracle: (points, lists) that of the best candidates.
        joint: (points,) the log density but for a constant.
    """

    def __init__(self, points: int) -> None:
        rng = np.random.default_rng(76)
        features = rng.normal(size=(8, 5, 2)).astype(np.float32)
        self.gains = rng.normal(size=(8, 5))
        pool = bpa.from_lists([list("abcde")] * 8, list(features), NAMES[:2])
        self.pool = pool.with_extras(mqm=self.gains.ravel())
        side = np.linspace(-6, 6, points)
        self.grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
        scores = np.einsum("snk,dk->dsn", features.astype(float), self.grid)
        self.log_p = scores - logsumexp(scores, axis=2, keepdims=True)
        self.of_oracle = self.log_p[:, np.arange(8), self.gains.argmax(axis=1)]
        self.joint = self.of_oracle.sum(axis=1) - np.sum(self.grid**2, axis=1) / (2 * 1.5)

    def choose(self, *, left_out: bool) -> list[int]:
        """Return the choices by the posterior of all lists, or of all others."""
        chosen = []
        for s in range(8):
            log_density = self.joint - self.of_oracle[:, s] if left_out else self.joint
            weight = np.exp(log_density - log_density.max())
            chosen.append(int(np.argmax(weight @ np.exp(self.log_p[:, s]))))
        return chosen

    def mean_gain(self, choices: list[int]) -> float:
        """Return the mean gain of the chosen candidates."""
        return float(self.gains[np.arange(8), choices].mean())


def test_leaving_out_equals_refitting_without_the_list() -> None:
    """On a grid of weights the posterior without a list is exact."""
    exact = OnGrid(61)
    assert exact.choose(left_out=True) != exact.choose(left_out=False)  # else nothing is tested
    density = np.exp(exact.joint - logsumexp(exact.joint))
    drawn = np.random.default_rng(77).choice(len(exact.grid), size=(4, 5000), p=density)
    sites = {"log_likelihood": {"oracle": exact.of_oracle[drawn]}}
    draws = name_weights(exact.grid[drawn], NAMES[:2], record=JUDGED, **sites)
    adapted = bpa.compare_baselines(exact.pool, draws).row(Way.ADAPTED)
    assert adapted.gain == pytest.approx(exact.mean_gain(exact.choose(left_out=True)))
    first = {"oracle": exact.of_oracle[drawn[:1, :1]]}
    one = with_parts(draws, values={"weights": exact.grid[drawn[:1, :1]]}, log_likelihood=first)
    point = bpa.compare_baselines(exact.pool, with_parts(one, kind="point"))
    adapted = point.row(Way.ADAPTED)
    choices = exact.log_p[drawn[0, 0]].argmax(axis=1).tolist()
    assert adapted.gain == pytest.approx(exact.mean_gain(choices))
    assert point.evaluation == "in-sample"
    assert point.best is None
    assert any("use the judgements" in note for note in point.notes)


@pytest.mark.parametrize("log_weight", [-20_000.0, -np.inf])
def test_weighted_draws_far_away_do_not_change_what_is_left_out(log_weight: float) -> None:
    """Their weights underflow to 0, and leaving out a list raises them only by e^900."""
    exact = OnGrid(31)
    weights = np.append(exact.grid, [[-5000.0, 4000.0]], axis=0)[None]
    of_oracle = np.append(exact.of_oracle, np.full((1, 8), -900.0), axis=0)[None]
    draws = name_weights(
        weights,
        NAMES[:2],
        kind="weighted",
        log_weight=np.append(exact.joint, log_weight)[None],
        log_likelihood={"oracle": of_oracle},
        record=JUDGED,
    )
    adapted = bpa.compare_baselines(exact.pool, draws).row(Way.ADAPTED)
    assert adapted.gain == pytest.approx(exact.mean_gain(exact.choose(left_out=True)))


@pytest.mark.parametrize("missing", [False, True])
def test_new_lists_are_compared_with_the_recorded_baseline(missing: bool) -> None:
    pool, new = lists(1), lists(2, 30, missing=missing)
    draws = recorded(pool)
    comparison = read_comparison(draws.adaptation)
    selected = {row.name: row.weights for row in comparison.rows if row.kind == "baseline"}
    choice = bpa.rerank(new, draws, unchecked=True).choice
    found = bpa.compare_baselines(new, draws, choice=choice)
    gains, rows = np.asarray(new.extras["mqm"]), new.offsets[:-1]
    adapted = gains[rows + choice]
    ((feature, sign),) = selected[Way.FEATURE].items()
    rank = {name: place for place, name in enumerate(selected[Way.SYSTEM])}
    system = np.array([-rank.get(name, len(rank)) for name in new.extras["system"]])
    judged = [part[np.isfinite(part)] for part in np.split(gains, new.offsets[1:-1])]
    expected = {
        Way.BEST: np.array([part.max() if len(part) else np.nan for part in judged]),
        Way.RANDOM: np.array([part.mean() if len(part) else np.nan for part in judged]),
        Way.ADAPTED: adapted,
        Way.FIRST: gains[rows],
        Way.FEATURE: _best(new, sign * new.features[:, NAMES.index(feature)]),
        Way.SYSTEM: _best(new, system),
        Way.RIDGE: _best(new, new.features @ [selected[Way.RIDGE][name] for name in NAMES]),
        Way.CANONICAL: _best(new, new.scores([1.0, -1.0, 0.0])),
        Way.TOTAL: _best(new, np.asarray(new.totals)),
    }
    for name, values in expected.items():
        row = found.row(name)
        assert row.lists == np.isfinite(values).sum()
        assert row.gain == pytest.approx(np.nanmean(values))
        if name != Way.ADAPTED:
            assert row.difference == pytest.approx(np.nanmean(adapted - values), abs=1e-12)
    assert {row.name: row.weights for row in found.rows if row.kind == "baseline"} == selected
    assert found.selected == comparison.selected
    assert found.best == comparison.best
    assert found.evaluation == "new lists"


def test_lists_that_lack_a_column_do_not_count_for_its_way() -> None:
    """Neither in the order in which they come."""
    draws, new = recorded(lists(1)), lists(2, 30)
    choice, parts = np.zeros(30, int), [slice(0, 10), slice(10, 30)]
    bare = [new[parts[0]].without("system"), new[parts[1]]]
    both = NewChoices(draws, MQM)
    for part, rows in zip(bare, parts, strict=True):
        both.add(part, choice[rows])
    alone = NewChoices(draws, MQM).add(bare[1], choice[parts[1]]).comparison.row(Way.SYSTEM)
    whole = bpa.compare_baselines(new, draws, choice=choice).row(Way.FIRST)
    found = both.comparison
    assert (alone.lists, whole.lists) == (20, 30)
    assert repr(replace(found.row(Way.SYSTEM), share=0.0)) == repr(replace(alone, share=0.0))
    assert repr(found.row(Way.FIRST)) == repr(whole)


def _best(pool: bpa.NBest, scores: np.ndarray) -> np.ndarray:
    gains = np.asarray(pool.extras["mqm"])
    return gains[pool.offsets[:-1] + pool.best(scores)]


def test_without_a_record_the_better_of_two_simple_ways_is_the_baseline() -> None:
    new = lists(2, 30)
    found = bpa.compare_baselines(new, posterior(new), choice=np.zeros(30, int))
    rows = {name: found.row(name) for name in (Way.FIRST, Way.MEAN)}
    best = max(rows, key=lambda name: rows[name].gain)
    assert found.selected == best


def test_ridge_regression_where_nothing_varies() -> None:
    pool = lists(3, 12)
    equal = pool.with_extras(mqm=np.ones(len(pool.features)))
    assert bpa.compare_baselines(equal, gain="mqm").row(Way.RIDGE) is None
    bare = pool.without(*NAMES)
    assert bpa.compare_baselines(bare, gain="mqm").row(Way.RIDGE) is None
    assert bpa.compare_baselines(pool[:2], gain="mqm").row(Way.RIDGE).lists == 2


@pytest.mark.parametrize(
    ("name", "difference", "reach", "verdict"),
    [
        *((name, -1.0, 0.5, "worse") for name in SIMPLE),
        (Way.FEATURE, -1.0, 2.0, "unclear"),
        (Way.FEATURE, 1.0, 2.0, "unclear"),
        (Way.FEATURE, 1.0, 0.5, "better"),
        (Way.FEATURE, 0.0, 0.0, "unclear"),
    ],
)
def test_each_verdict_has_its_sentence_and_advice(
    name: str, difference: float, reach: float, verdict: str
) -> None:
    adapted = BaselineRow(Way.ADAPTED, "adapted", 9, 1.0, 0.5)
    ends = difference - reach, difference + reach
    numbers = 9, 1.0, 0.5, difference, *ends
    weights = {"B": 2.0, "A": 1.0} if name == Way.SYSTEM else {"TER": -1.0}
    other = BaselineRow(name, "baseline", *numbers, weights=weights)
    found = BaselineComparison((adapted, other), "mqm", name)
    assert found.block().rows[1][-1] == other.verdict == verdict
    assert not replace(other, name=Way.BEST).verdict  # no choice beats the best candidate
    ends = {"worse": f"; {other.advice}", "unclear": f"; {other.advice}, if more lists confirm it"}
    advice = ends.get(verdict, "") if difference <= 0 else ""
    words = "not clearly better" if verdict == "unclear" else verdict
    ((level, sentence),) = found.messages
    assert (level == logging.WARNING) == (verdict == "worse")
    assert sentence.startswith(f"the adapted weights are {words} than the {name}")
    assert sentence.endswith(f" on 9 new lists{advice}")


def judged(count: int, seed: int, noise: float = 1.0) -> bpa.NBest:
    """Lists whose gain is LM0 alone, with as much noise; TM0 and Length are noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 6, 3)).astype(np.float32)
    gains = features[..., 0] + noise * rng.normal(size=(count, 6))
    texts = [[f"{s} {k}" for k in range(6)] for s in range(count)]
    return bpa.from_lists(texts, list(features), NAMES).with_extras(mqm=gains.ravel())


def test_adapt_warns_only_if_a_baseline_is_better() -> None:
    pool = judged(60, 4, noise=0.0)
    wide = {"prior": "isotropic:variance=1.0", "sampler": "laplace:draws=1000", "gain": "mqm"}
    strong = {**wide, "prior": "isotropic:variance=3e-3"}  # LM0 is of little weight
    with pytest.warns(bpa.BpaWarning, match="choose by LM0 alone"):
        stuck = bpa.as_weight_draws(bpa.adapt(pool, [0.1, 3.0, -3.0], **strong))
    baseline = read_comparison(stuck.adaptation).baseline
    assert (baseline.verdict, baseline.weights) == ("worse", {"LM0": 1.0})
    noisy = judged(60, 5)
    more = noisy.features[:, 1] - noisy.features[:, 2]
    noisy = noisy.with_extras(mqm=np.asarray(noisy.extras["mqm"]) + more)
    fine = read_comparison(
        bpa.as_weight_draws(bpa.adapt(noisy, [0.0, 0.0, 0.0], **wide)).adaptation
    )
    assert (fine.row(Way.FEATURE).verdict, fine.row(Way.RIDGE).verdict) == ("better", "unclear")
    assert {note.level for note in fine.messages} == {logging.INFO}


def test_canonical_weights_and_references_need_no_comparison() -> None:
    pool = judged(60, 6).with_references([f"{s} 0" for s in range(60)])
    draws = bpa.as_weight_draws(bpa.adapt(pool, [1.0, 0.0, 0.0], sampler="map", gain="ter"))
    assert read_comparison(draws.adaptation) is None


NUMBERED = [f"s{k}" for k in range(6)] * 4


@pytest.mark.parametrize(
    ("extra", "names", "column"),
    [
        ("model", NUMBERED, "model"),
        ("origin", NUMBERED, ""),
        ("system", [str(k) for k in range(24)], ""),
        ("system", ["same"] * 24, ""),
        ("system", [None, *NUMBERED[1:]], "system"),
        ("system", list(range(6)) * 4, ""),
    ],
)
def test_a_column_of_systems_is_found(extra: str, names: list, column: str) -> None:
    pool = judged(4, 6).with_extras(**{extra: names})
    assert find_system_column(pool) == column
    assert find_system_column(pool, ["origin"]) == (extra if extra == "origin" else column)


def test_indicators_of_a_categorical_column_are_not_baselines() -> None:
    pool = judged(12, 6).with_extras(engine=NUMBERED * 3)
    options = {"prior": "isotropic:variance=0.1", "sampler": "map", "categorical": "engine"}
    draws = bpa.as_weight_draws(bpa.adapt(pool, None, gain="mqm", **options))
    comparison = read_comparison(draws.adaptation)
    system, ridge = (comparison.row(name) for name in (Way.SYSTEM, Way.RIDGE))
    assert (system.column, set(system.weights)) == ("engine", set(NUMBERED))
    assert {r.name for r in comparison.rows if r.kind == "feature"} == set(NAMES)
    # Only the ridge regression, which has the same data as the adapted weights, uses them.
    assert set(ridge.weights) == {*NAMES, *(f"engine={name}" for name in NUMBERED)}
    new = judged(4, 7).with_extras(engine=NUMBERED)
    found = bpa.compare_baselines(new, draws, choice=bpa.rerank(new, draws).choice)
    assert found.row(Way.RIDGE).lists == 4


@pytest.mark.slow
@pytest.mark.parametrize(("null", "least", "most"), [(True, 4, 8), (False, 0, 1)])
def test_adapt_warns_where_judgements_do_not_separate_the_features(
    null: bool, least: int, most: int
) -> None:
    """On most of 8 simulations without any signal, and on few with one."""
    warned = 0
    for seed in range(8):
        pool = judged(20, seed)
        if null:
            noise = np.random.default_rng(seed + 50).normal(size=len(pool.features))
            pool = pool.with_extras(mqm=noise)
        with capture_notes() as notes:
            bpa.adapt(pool, None, gain="mqm", sampler="laplace")
        messages = [n.message for n in notes if n.level == logging.WARNING]
        warned += any("do not separate the features" in message for message in messages)
    assert least <= warned <= most


@pytest.mark.slow
def test_draws_that_have_not_converged_give_no_advice() -> None:
    """Neither in a log, on the page, nor in favour of a system; the numbers are recorded."""
    pool = judged(20, 3).with_extras(system=["s0", "s1", "s2", "s3", "s4", "s5"] * 20)
    pool = pool.with_extras(mqm=np.tile([5.0, 4, 3, 2, 1, 0], 20))
    pool = pool.with_features("best", np.tile([1.0, 0, 0, 0, 0, 0], 20))
    options = {"gain": "mqm", "prior": "isotropic:variance=1e-3"}
    start = StartingWeights([0.1, 3.0, -3.0, 30.0])
    pages, warned = [], []
    for draws in (10, 4000):
        with capture_notes() as notes:
            found = bpa.adapt(pool, start, sampler=f"rwm:draws={draws}", **options)
        assert bool(bpa.check(found)) == (draws == 4000)
        assert read_comparison(bpa.as_weight_draws(found).adaptation) is not None
        warned.append([note.message for note in notes if "adapted weights" in note.message])
        warned[-1] += [note.message for note in notes if "choices from" in note.message]
        pages.append(posterior_page(found, top=1))
    assert (len(warned[0]), len(warned[1])) == (0, 2)
    sentence = "The adapted weights are"
    assert [sentence in page for page in pages] == [False, True]
    assert ["do not rely on these numbers" in page for page in pages] == [True, False]


@pytest.mark.usefixtures("without_drawing")
def test_the_report_page_has_the_table_and_names_the_baseline() -> None:
    pool = lists(1)
    draws = recorded(pool, draws=1000)
    html = posterior_page(draws, top=1)
    section = html[html.index("<h2>Compared with simple baselines") : html.index("<h2>What moved")]
    table = Outline(section[section.index("<table") : section.index("</table>") + 8])
    comparison = read_comparison(draws.adaptation)
    block = comparison.block()
    expected = [[block.header, *block.rows]]
    assert table.tables == Outline(comparison._repr_html_()).tables == expected
    assert comparison.baseline.label in section
    assert comparison.share_of_best[1:] in section
    assert "Leave-one-out" in section
    assert "baselines" not in html[html.index("<h2>How it was made") :]
    assert "Compared with simple baselines" not in posterior_page(posterior(pool), top=1)


def test_equal_candidates_share_the_choice_of_the_best() -> None:
    """Two systems have the same text and scores, and only one of them has the best rating."""
    pool = bpa.from_lists([["a", "a", "b"]] * 6, [[[1.0], [1.0], [0.0]]] * 6, ["LM0"])
    pool = pool.with_extras(mqm=[0.0, -1.0, -2.0] * 6)
    sites = {"log_likelihood": {"oracle": np.zeros((1, 50, 6))}}
    draws = name_weights(np.ones((1, 50, 1)), ("LM0",), record=JUDGED, **sites)
    assert bpa.compare_baselines(pool, draws).best == (3.0, 6)


def test_the_figure_has_the_difference_of_each_way_with_its_interval() -> None:
    rows = [
        BaselineRow(Way.ADAPTED, "adapted", 9, 1.0, 0.5),
        BaselineRow("first candidate", "baseline", 9, 0.5, 0.2, 0.5, 0.2, 0.8),
        BaselineRow("ridge regression", "baseline", 9, 1.2, 0.7, -0.2, -0.3, -0.1),
        BaselineRow("random candidate", "bound", 9, 0.0, 0.0, 1.0, 0.5, 1.5),
        *(BaselineRow(f"f{k}", "feature", 9, 1.0, 0.5, 0.1 * k, -0.1, 0.3) for k in range(5)),
    ]
    (axes,) = draw_ways(BaselineComparison(tuple(rows), "mqm", "ridge regression")).axes
    names = [text.get_text().replace("\n", " ") for text in axes.get_yticklabels()]
    assert names == ["first candidate", "f2", "f1", "f0", "ridge regression"]
    intervals, points = axes.collections
    ends = [sorted(path.vertices[:, 0]) for path in intervals.get_paths()]
    np.testing.assert_allclose(ends[0], [-0.8, -0.2])
    np.testing.assert_allclose(ends[-1], [0.1, 0.3])
    np.testing.assert_allclose(points.get_offsets()[:, 0], [-0.5, -0.2, -0.1, 0.0, 0.2])
