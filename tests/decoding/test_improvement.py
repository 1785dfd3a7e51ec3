"""The effect of adaptation on the choices: corpus scores, verdict and section of the report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from support.html_outline import Outline, render
from support.posteriors import (
    GainColumn,
    ObservedRecord,
    RecipeRecord,
    name_weights,
    record_of,
    recorded_comparison,
    with_parts,
)
from support.preferred_lists import TRUE, AnswerLoops, tables_of
from support.preferred_lists import judged as answered
from support.raising import raises
from support.registries import GAINS

import bpa_ppl as bpa
from bpa_ppl import (
    DataError,
    Draws,
    NBest,
    Reranker,
    UsageError,
    adapt,
    corpus_score,
    from_lists,
    rerank,
)
from bpa_ppl.decoding.improvement import (
    Improvement,
    describe_changes,
    describe_improvement,
    evaluate_improvement,
    report_page,
)
from bpa_ppl.decoding.writing import rerank_to

WORDS = np.array([f"word{k}" for k in range(14)])
HOSTILE = "<script>alert(1)</script>"
#: The record of a posterior whose gain is a column, by its name.
GAIN = {name: record_of(recipe=RecipeRecord(gain=GainColumn(name))) for name in ("comet", "mqm")}


def lists(count: int = 40) -> NBest:
    """Return lists of two; the first has a high LM0, the second is usually the reference."""
    rng = np.random.default_rng(3)
    references = [" ".join(rng.permutation(WORDS)) for _ in range(count)]
    spoilt = [" ".join(["x", *text.split()[2:]]) for text in references]
    texts = [[bad, good] for bad, good in zip(spoilt, references, strict=True)]
    for sentence in range(0, count, 5):
        texts[sentence].reverse()
    features = [np.array([[1.0], [0.0]])] * count
    result = from_lists(texts, features, ["LM0"], references=[(text,) for text in references])
    return result.with_sources([f"source {k} {HOSTILE}" for k in range(count)])


def draws(sign: float, **known: object) -> Draws:
    """Return draws that prefer low (−1) or high (1) LM0; the canonical weight is 1."""
    values = sign + 0.01 * np.random.default_rng(int(sign > 0)).normal(size=(4, 300, 1))
    return name_weights(values, ("LM0",), constants={"canonical": np.ones(1)}, **known)


@pytest.fixture(scope="module")
def improvement() -> Improvement:
    return evaluate_improvement(lists(), draws(-1.0))


def test_scores_are_corpus_scores(improvement: Improvement) -> None:
    pool = lists()
    before, after = pool.chosen(np.zeros(40, int)), pool.chosen(np.ones(40, int))
    for change in improvement.changes[:2]:
        metric = change.after.metric
        scores = [corpus_score(texts, pool.references, metric).value for texts in (before, after)]
        assert change.after.value == pytest.approx(scores[1])
        assert change.difference == pytest.approx(scores[1] - scores[0])
    assert [change.cells[0] for change in improvement.changes] == ["TER", "BLEU", "length"]


def test_the_verdict_follows_the_changes(improvement: Improvement) -> None:
    assert improvement.verdict == "yes"
    against = "compared with the canonical weights"
    pattern = (
        rf"Yes, it helped {against}: TER \d+\.\d\d → \d+\.\d\d \(−.*\), better; BLEU .*, better\."
    )
    assert re.match(pattern, str(improvement))
    assert str(improvement).endswith(". 40 of 40 choices changed.")
    ter, bleu, length = improvement.changes
    worse, unknown = replace(bleu, verdict="worse"), replace(bleu, verdict="unclear")

    def verdict_text(*changes: object) -> str:
        return str(replace(improvement, changes=(*changes, length)))

    both = rf"Better by one metric, worse by another, {against}: TER .*, better; BLEU .*, worse\."
    assert re.match(both, verdict_text(ter, worse))
    one = rf"Yes, it helped {against}: TER .*, better; BLEU .*, unclear\."
    assert re.match(one, verdict_text(ter, unknown))
    assert verdict_text(worse).startswith(f"No, it got worse {against}: BLEU ")
    assert verdict_text(unknown).startswith(f"It is not clear whether it helped {against}: BLEU ")
    assert replace(improvement, changes=(ter, worse, length)).verdict == "both"


def test_canonical_weights_change_nothing() -> None:
    same = evaluate_improvement(lists(), draws(1.0))
    assert (same.verdict, same.changes[0].difference) == ("no", 0.0)
    assert str(same) == "No: none of 40 choices changed compared with the canonical weights."
    verdict, _ = describe_improvement(same)
    assert verdict.passed is False
    assert describe_changes(same) == []


@pytest.mark.slow
def test_baseline_without_canonical_weights() -> None:
    pool = lists()  # the second candidate, with low LM0, is correct in four of five lists
    posterior = adapt(pool, None, sampler="map")
    improvement = evaluate_improvement(pool, posterior)
    assert improvement.baseline == "best single feature (low LM0)"
    assert improvement.before.tolist() == [1] * 40
    assert (improvement.comparison is None, improvement.verdict) == (False, "no")
    assert str(improvement).endswith("compared with the best single feature (low LM0).")
    _, _, table = describe_improvement(improvement)[1][0].blocks[:3]
    gains = Outline(table.html()).column(0, "mean chrf gain in words")
    assert gains["adapted weights"] == gains["best single feature (low LM0)"]
    known = adapt(pool, {"LM0": 2.0}, sampler="map")
    with_canonical = evaluate_improvement(pool, known)
    assert with_canonical.before.tolist() == [0] * 40
    assert with_canonical.baseline == "canonical weights"
    assert with_canonical.comparison is not None
    others = {"first candidate", "canonical weights", "mean of the standardised features"}
    assert others < {row.name for row in with_canonical.comparison.rows}
    picture, *_ = describe_improvement(with_canonical)[1][0].blocks
    assert "Simple ways to choose, compared with ours" in str(picture)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("ter", "comet") else [pytest.mark.slow])
        for name in [*(name for name in GAINS if name != "column"), "comet"]
    ],
)
@pytest.mark.usefixtures("without_drawing")
def test_recorded_criterion_comes_first(name: str, tmp_path: Path) -> None:
    pool = lists(10).with_extras(comet=np.tile([0.25, 0.75], 10))
    options = {"prior": "isotropic:variance=0.1,mean=0", "sampler": "map"}
    for likelihood in ("oracle", "margin", "risk", "pairs") if name == "ter" else ("risk",):
        posterior = adapt(pool, gain=name, likelihood=likelihood, **options)
        improvement = evaluate_improvement(pool, posterior)
        title = improvement.changes[0].cells[0]
        assert title == (name if name == "comet" else name.upper())
        # The first metric that the verdict names, if it names one.
        named = re.search(r"\b(TER\+BLEU|TER|BLEU|CHRF|WER|CER|comet)\b", str(improvement))
        assert named is None or named[1] == title
        words = " in words" if name in ("bleu", "chrf", "ter+bleu") else ""
        unit = name if name == "comet" else f"{name} gain{words}"
        unit = f"−{title}" if name in ("ter", "wer", "cer") else unit
        assert improvement.comparison.unit == unit
        if unit == "−TER":
            adapted = improvement.comparison.row("adapted weights")
            assert adapted.gain == pytest.approx(-improvement.changes[0].after.value)
        reranker = Reranker(posterior, unchecked=True)
        summary = rerank_to(pool, reranker, tmp_path / "out", tmp_path / "details")
        keys = [change.after.metric for change in summary.scores.changes]
        related = {"ter", "bleu"} if name in ("ter", "bleu", "ter+bleu") else set()
        related |= {"length"} if name != "comet" else set()
        assert (keys[0], set(keys[1:])) == (name, related - {name})
        if likelihood != "oracle":
            assert summary.baselines is not None
            assert summary.baselines.unit == unit
        verdict, (section,) = describe_improvement(improvement)
        assert str(improvement) == verdict.text
        assert Outline(section.blocks[1].html()).tables[0][1][0] == title


def test_choices_that_are_not_better_than_random_have_not_helped() -> None:
    found = evaluate_improvement(lists(), with_parts(draws(-1.0), constants={}))
    assert found.comparison is not None
    better = replace(found, changes=tuple(replace(c, verdict="better") for c in found.changes))
    better = replace(better, changed=1)
    assert better.verdict == "yes"
    for low, high, words in ((-1.0, 1.0, "not clearly better"), (-2.0, -1.0, "worse")):
        rows = tuple(
            replace(row, low=low, high=high) if row.name == "random candidate" else row
            for row in found.comparison.rows
        )
        other = replace(better, comparison=replace(found.comparison, rows=rows))
        assert other.verdict == "unknown"
        assert f"The adapted weights are {words} than a random candidate" in str(other)
        interval = f"95% interval {low:+.3f} to {high:+.3f}) ".replace("-", "−")
        assert interval in str(other)
        assert not str(other).startswith("Yes")


def test_largest_changes_are_shown_and_escaped(improvement: Improvement) -> None:
    verdict, _ = describe_improvement(improvement, ["mind"])
    assert (verdict.passed, list(verdict.advice)) == (True, ["mind"])
    (section,) = describe_changes(improvement)
    html = render([section])
    assert html.count("<article>") == 10
    assert "Of 40 choices that changed, 32 got better by TER, 8 worse and 0 neither." in html
    titles = re.findall(r"<h3>(\d+) edits? (fewer|more) \(list (\d+)\)</h3>", html)
    assert len(titles) == 10
    edits = [int(count) for count, *_ in titles]
    assert edits == sorted(edits, reverse=True)
    assert all((way == "more") == (int(s) % 5 == 0) for _, way, s in titles)
    assert HOSTILE not in html
    assert "&lt;script&gt;" in html
    # Only the word of the wrong candidate is struck out, and its reference is underlined.
    text = '</h4><p dir="auto">(.*?)</p>'
    articles = (
        re.search(f"before, .*?{text}.*?after, TER 0.00{text}", a) for a in html.split("<h3>")
    )
    first = next(filter(None, articles))
    assert first[1].startswith("<del>x</del> ")
    (inserted,) = re.findall("<ins>(.*?)</ins>", first[2])
    assert len(inserted.split()) == 2


def test_column_of_the_posterior_determines_the_verdict() -> None:
    pool = lists().with_extras(comet=np.tile([0.25, 0.75], 40))
    posterior = draws(-1.0, record=GAIN["comet"])
    improvement = evaluate_improvement(pool, posterior)
    assert [change.cells[0] for change in improvement.changes] == ["comet"]
    assert improvement.changes[0].difference == pytest.approx(0.5)
    assert improvement.verdict == "yes"
    assert "TER" not in str(improvement)
    without = evaluate_improvement(lists(), posterior)
    assert [change.cells[0] for change in without.changes] == ["TER", "BLEU", "length"]
    for draws_of_any in (posterior, draws(-1.0)):
        unknown = evaluate_improvement(lists().without("references"), draws_of_any)
        assert (unknown.verdict, unknown.changes) == ("unknown", ())
        assert str(unknown).startswith("It is unknown whether it helped: the lists have n")
    alone = pool.without("references", "sources")
    improvement = evaluate_improvement(alone, posterior)
    (section,) = describe_changes(improvement)
    html = render([section])
    assert "comet better by 0.5 (list 0)" in html
    assert "before, comet 0.25<" in html


@pytest.mark.usefixtures("without_drawing")
def test_report_begins_with_the_answer() -> None:
    html = report_page(draws(-1.0), lists(), top=1)
    assert html.index("Yes, it helped") < html.index("onverged") < html.index("<nav")
    assert html.index("<h2>Did it help?") < html.index("<h2>What moved")
    apart = draws(-1.0)
    apart = with_parts(apart, values={"weights": apart.weights + np.arange(4)[:, None, None]})
    assert "reranking refuses them" in report_page(apart, lists(), top=1)


def test_lists_need_weights_of_features() -> None:
    other = xarray.Dataset({"mu": (("chain", "draw"), np.ones((4, 100)))})
    with raises(DataError, "no-data", match="no variable weights"):
        report_page(other, lists())


@pytest.mark.parametrize("name", ["moved_files", "without"])
def test_what_is_about_new_lists_needs_them(name: str) -> None:
    value: Any = {"moved_files": {"lm": "domain.txt"}, "without": ["LM0"]}[name]
    with raises(UsageError, "conflict", parameter=name):
        report_page(draws(1.0), **{name: value})


@pytest.mark.usefixtures("without_drawing")
def test_adaptation_lists_are_recognised() -> None:
    pool = lists()
    posterior = draws(
        -1.0, record=record_of(lists=pool.origin, observed=ObservedRecord(sentences=40))
    )
    few = posterior.weights[:, :5]  # which are not drawn
    posterior = with_parts(posterior, values={"weights": few})
    assert "evaluate on new ones" in report_page(posterior, pool, top=1)
    assert "evaluate on new ones" not in report_page(posterior, pool[:39], top=1)
    other = with_parts(posterior, coords={"sentence": np.arange(40)[::-1]})
    assert "evaluate on new ones" not in report_page(other, pool, top=1)


def test_sentences_without_both_judgements_are_excluded() -> None:
    """Differences are over lists where both candidates have a value."""
    pool = lists().without("references")
    rng = np.random.default_rng(5)
    mqm = rng.normal(size=len(pool.features))
    mqm[rng.uniform(size=len(mqm)) < 0.2] = np.nan
    pool = pool.with_extras(mqm=mqm)
    posterior = draws(-1.0, record=GAIN["mqm"])
    improvement = evaluate_improvement(pool, posterior)
    both = mqm.reshape(-1, 2)
    both = both[~np.isnan(both).any(axis=1)]
    left_out = len(pool) - len(both)
    assert 0 < left_out == len(pool) - improvement.sentences
    assert f"{left_out} sentences without a gain left out." in str(improvement)
    (change,) = improvement.changes
    assert change.difference == pytest.approx(np.mean(both[:, 1] - both[:, 0]))
    assert "nan" not in repr(describe_improvement(improvement)[1])
    nothing = pool.with_extras(mqm=np.where(np.arange(len(mqm)) % 2, np.nan, mqm))
    with raises(DataError, "no-data", match="mqm"):
        evaluate_improvement(nothing, posterior)


@pytest.mark.parametrize(("count", "verdict"), [(5, "unclear"), (6, "better")])
def test_equal_changes_of_few_lists_are_unclear(count: int, verdict: str) -> None:
    texts = [["a b c d", "a b c e"]] * count
    pool = from_lists(texts, [[[0.0], [1.0]]] * count, ["LM0"], references=["a b c d"] * count)
    result = evaluate_improvement(pool, draws(-1.0))
    (ter,) = (change for change in result.changes if change.cells[0] == "TER")
    assert (ter.verdict, ter.cells[-2], "interval" in str(ter)) == (verdict, "–", False)


def test_choices_that_are_better_than_random_by_the_same_in_all_lists_have_helped() -> None:
    pool = from_lists([["a", "b"]] * 9, [[[1.0], [0.0]]] * 9, ["LM0"])
    posterior = with_parts(draws(-1.0, record=GAIN["mqm"]), constants={})
    result = evaluate_improvement(pool.with_extras(mqm=[0.0, 1.0] * 9), posterior)
    assert result.verdict == "yes"
    random = result.comparison.sentence(result.comparison.row("random candidate"))
    assert random.endswith("random candidate: mean mqm 0.500 → 1.000 (+0.500) on 9 new lists")


def judged(**extras: Sequence[object]) -> NBest:
    """Return eight lists of three; the canonical weight chooses the first, the draws the second."""
    texts = [[f"a b {s}", f"a c {s} {HOSTILE}", f"a c d {s}"] for s in range(8)]
    features = [[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]] * 8
    lists = from_lists(texts, features, ["lm", "qe"], sources=[f"{s} {HOSTILE}" for s in range(8)])
    return lists.with_extras(**{name: [*values] * 8 for name, values in extras.items()})


def adapted() -> Draws:
    weights = np.random.default_rng(0).normal([0.5, 1.0], 0.01, (4, 300, 2))
    return name_weights(
        weights,
        ("lm", "qe"),
        constants={"canonical": np.array([1.0, 0.0])},
        record=record_of(recipe=RecipeRecord(gain=GainColumn("mqm"))),
    )


@pytest.mark.usefixtures("without_drawing")
def test_page_of_judged_lists() -> None:
    lists = judged(system=["X", HOSTILE, "Z"], mqm=[-4.0, -2.5, 0.0])
    html = report_page(adapted(), lists, top=1)
    assert HOSTILE not in html
    assert "Of 8 choices that changed, 8 got better by mqm, 0 worse and 0 neither." in html
    assert html.count("<article>") == 8
    assert html.count("mqm better by 1.5") == 8
    assert html.count("before: X, mqm −4<") == 8
    scores = evaluate_improvement(lists, adapted()).scores
    np.testing.assert_allclose(scores, np.repeat([[0.5], [1.0]], 8, axis=1), atol=0.01)


@pytest.mark.usefixtures("without_drawing")
def test_pages_without_systems_and_without_judgements() -> None:
    html = report_page(adapted(), judged(mqm=[-4.0, -2.5, 0.0]), top=1)
    assert "Which choices changed" in html
    html = report_page(adapted(), judged(system=["X", "Y", "Z"]), top=1)
    assert "It is unknown whether it helped: the lists have neither references nor" in html
    assert "8 of 8 choices changed compared with the canonical weights." in html
    assert "Did it help?" not in html
    assert "mqm" not in Outline(html).tables[0][0]
    assert len(re.findall(r"<h4>before: X, score 0\.(50|49)\d</h4>", html)) == 8
    assert len(re.findall(r"<h4>after: Y, score (1\.00|0\.99)\d</h4>", html)) == 8


def test_choices_that_are_partly_judged() -> None:
    mqm = np.array([[-4.0, -2.5, 0.0]] * 8)
    mqm[:3, 1] = np.nan
    lists = judged().with_extras(mqm=mqm.ravel())
    improvement = evaluate_improvement(lists, adapted())
    assert (improvement.sentences, improvement.scores.shape[1]) == (5, 8)
    html = render(describe_changes(improvement))
    assert "5 got better by mqm, 0 worse and 0 neither; 3 are not judged." in html
    assert html.count("after, mqm unknown") == 3
    assert html.index("better by") < html.index("mqm unknown")


def test_choices_are_those_of_rerank() -> None:
    lists, draws = judged(), adapted()
    result = rerank(lists, draws)
    changes = evaluate_improvement(lists, draws)
    np.testing.assert_array_equal(changes.after, result.choice)
    np.testing.assert_array_equal(changes.before, result.canonical)
    bare = with_parts(draws, constants={})
    assert evaluate_improvement(lists, bare).baseline == "first candidate"


@pytest.mark.slow
def test_a_hidden_truth_is_found(tmp_path: Path) -> None:
    """`adapt`, files, `rerank`, its summary and the report agree, and the intervals contain it."""
    result = bpa.adapt(answered(4, 60, size=3, answers=2), None, sampler="laplace")
    recorded = recorded_comparison(result)
    new = answered(5, 2000, size=3, answers=2)
    comparison = bpa.compare_baselines(new, result, choice=bpa.rerank(new, result).choice)
    inside, outside = recorded.row("adapted weights"), comparison.row("adapted weights")
    assert inside.gain_low <= outside.gain <= inside.gain_high
    plain = AnswerLoops(new.with_sentence_extras(rankings=[None] * 2000))
    tables, draws = tables_of(new), bpa.as_weight_draws(result)
    accuracy = plain.accuracy([table @ draws.mean for table in tables])
    assert outside.gain == pytest.approx(accuracy.mean())
    best = plain.accuracy([table @ TRUE for table in tables]).mean()
    assert best - 0.03 < outside.gain <= best + 0.02
    single = next(row for row in comparison.rows if row.name == "noise")
    assert single.verdict == "better"
    assert abs(single.gain - 0.5) < 0.05
    # Files, JSON, the summary of `rerank_to`, and the report.
    bpa.write_posterior(result, tmp_path / "p.nc")
    again = bpa.read_posterior(tmp_path / "p.nc")
    assert str(recorded_comparison(again)) == str(recorded)
    summary = rerank_to(new, bpa.Reranker(again), tmp_path / "out")
    assert str(summary.baselines) == str(comparison)
    improvement = evaluate_improvement(new, again)
    assert str(improvement.comparison) == str(comparison)
    (change,) = improvement.changes
    baseline = comparison.baseline
    assert (change.difference, change.after.value) == (baseline.difference, outside.gain)
    assert improvement.sentences == 2000
    assert f"accuracy {baseline.gain:.4f} → {outside.gain:.4f}" in str(improvement)
    (section,) = describe_improvement(improvement)[1]
    assert section.title == "Did it help?"
    assert improvement.notes == []


def test_references_are_scored_as_well(tmp_path: Path) -> None:
    """The corpus scores remain if lists have references and answers."""
    result = bpa.adapt(answered(9, 30), None, sampler="map")
    new = answered(10, 20).with_references([f"{s} 0" for s in range(20)])
    summary = rerank_to(new, bpa.Reranker(result), tmp_path / "out")
    assert summary.scores.changes
    assert summary.baselines.unit == "accuracy"
    bare = rerank_to(new.without("preferences"), bpa.Reranker(result), tmp_path / "out")
    assert bare.scores.changes
    assert bare.baselines is None
    ties = new.without("preferences", "references").with_sentence_extras(ties=[[[0, 1]]] * 20)
    assert evaluate_improvement(ties, result).verdict == "unknown"


def test_references_are_checked_where_they_are_used(leaflet: NBest, tmp_path: Path) -> None:
    lists, names = leaflet[:20], leaflet.feature_names
    lists = lists.with_references([*lists.references[1:], lists.references[0]])
    draws = name_weights(np.ones((1, 4, len(names))), names)
    with raises(DataError, "mismatch", parameter="references"):
        evaluate_improvement(lists, draws)
    with pytest.warns(bpa.BpaWarning, match="are nearer to their own reference"):
        evaluate_improvement(lists, draws, unchecked=True)
    with pytest.warns(bpa.BpaWarning, match="are nearer to their own reference"):
        rerank_to(lists, Reranker(draws, unchecked=True), tmp_path / "chosen.txt")
    bpa.log_density(lists, likelihood="none")  # they are not used
