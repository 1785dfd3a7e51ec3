"""Whether adapting improved the choices: the corpus scores, the verdict and its section."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from pages import Outline

from bpa_ppl import DataError, Draws, NBest, adapt, corpus_score
from bpa_ppl.decoding.improvement import evaluate_improvement
from bpa_ppl.decoding.report import report_page, texts_of
from bpa_ppl.diagnostics.comparison.comparison import changed_translations
from bpa_ppl.diagnostics.improvement import Improvement
from bpa_ppl.diagnostics.report_sections import improvement_section

WORDS = np.array([f"word{k}" for k in range(14)])
COUNT = "adaptation_sentences"
HOSTILE = "<script>alert(1)</script>"


def lists(count: int = 40) -> NBest:
    """Lists of two: the first has high LM0, the second is the reference, but for every fifth."""
    rng = np.random.default_rng(3)
    references = [" ".join(rng.permutation(WORDS)) for _ in range(count)]
    spoilt = [" ".join(["x", *text.split()[2:]]) for text in references]
    texts = [[bad, good] for bad, good in zip(spoilt, references, strict=True)]
    for sentence in range(0, count, 5):
        texts[sentence].reverse()
    features = [np.array([[1.0], [0.0]])] * count
    made = NBest.from_lists(texts, features, ["LM0"], references=[(text,) for text in references])
    return made.with_sources([f"source {k} {HOSTILE}" for k in range(count)])


def draws(sign: float, **known: object) -> Draws:
    """Draws that prefer low LM0 (−1) or high (1); the canonical weight is 1."""
    values = sign + 0.01 * np.random.default_rng(0).normal(size=(4, 300, 1))
    return Draws({"weights": values}, ("LM0",), constants={"canonical": np.ones(1)}, **known)


@pytest.fixture(scope="module")
def found() -> Improvement:
    return evaluate_improvement(lists(), draws(-1.0))


def test_the_scores_are_those_of_the_corpus(found: Improvement) -> None:
    pool = lists()
    before, after = pool.chosen(np.zeros(40, int)), pool.chosen(np.ones(40, int))
    for change in found.changes[:2]:
        scores = [
            corpus_score(texts, pool.references, change.name.lower()).value
            for texts in (before, after)
        ]
        assert change.score.score == pytest.approx(scores[1])
        assert change.score.difference == pytest.approx(scores[1] - scores[0])
    assert (
        tuple(c.score for c in found.changes)
        == changed_translations(after, before, pool.references).scores
    )
    assert [change.name for change in found.changes] == ["TER", "BLEU", "length"]


def test_the_verdict_is_yes_no_both_or_unknown(found: Improvement) -> None:
    assert found.verdict == "yes"
    assert re.match(r"Yes, it helped by TER and BLEU: TER \d+\.\d\d → \d+\.\d\d \(−", str(found))
    assert "40 of 40 translations changed" in str(found)
    ter, bleu, length = found.changes
    worse, unknown = bleu._replace(verdict="worse"), bleu._replace(verdict="unclear")

    def told(*changes: object) -> str:
        return str(replace(found, changes=(*changes, length)))

    assert told(ter, worse).startswith("Better by TER, worse by BLEU: TER ")
    assert told(ter, unknown).startswith(
        "Yes, it helped by TER, no significant difference in BLEU: "
    )
    assert told(worse).startswith("No, it got worse by BLEU: ")
    assert told(unknown).startswith("No significant difference: ")
    assert replace(found, changes=(ter, worse, length)).verdict == "both"


def test_nothing_changes_where_the_weights_stay() -> None:
    same = evaluate_improvement(lists(), draws(1.0))
    assert (same.verdict, same.changes[0].score.difference) == ("no", 0.0)
    assert str(same) == "No: none of 40 translations changed."
    verdict, section = improvement_section(same)
    assert verdict.passed is False
    assert "<del>" not in "".join(block.html() for block in section.blocks)


def test_it_got_worse_where_it_did(found: Improvement) -> None:
    turned = lists().regroup(slice(None), np.arange(80), np.full(40, 2))
    away = evaluate_improvement(turned[::5], draws(-1.0))
    assert away.verdict == "no"
    assert str(away).startswith("No, it got worse by TER and BLEU: ")
    assert found.verdict == "yes"


def test_scores_of_the_first_candidates_where_others_were_the_baseline(found: Improvement) -> None:
    sentence = "The first candidates of the lists, which most systems output"
    assert sentence not in repr(improvement_section(found)[1])
    pool = lists()
    by_others = replace(draws(-1.0), constants={"canonical": -np.ones(1)})
    section = repr(improvement_section(evaluate_improvement(pool, by_others))[1])
    ter = corpus_score(pool.chosen(np.zeros(40, int)), pool.references, "ter").value
    expected = f"{sentence}, differ from the baseline in 40 of 40 sentences, and have TER {ter:.2f}"
    assert expected in section


def test_without_canonical_weights_the_baseline_is_the_best_simple_choice() -> None:
    pool = lists()  # the second candidate, of low LM0, is right four times of five
    posterior = adapt(pool, None, sampler="map")
    found = evaluate_improvement(pool, posterior)
    assert found.baseline == "best single feature (low LM0)"
    assert found.before.tolist() == [1] * 40
    assert found.comparison is not None
    assert found.verdict == "no"
    assert str(found).endswith("changed compared with the best single feature (low LM0).")
    table = Outline(improvement_section(found)[1].blocks[1].html())
    gains = table.column(0, "mean ter gain")
    assert gains["adapted weights"] == gains["best single feature (low LM0)"]
    known = adapt(pool, {"LM0": 2.0}, sampler="map")
    with_canonical = evaluate_improvement(pool, known)
    assert with_canonical.before.tolist() == [0] * 40
    assert with_canonical.baseline == "canonical weights"
    assert with_canonical.comparison is None


def test_sentences_without_a_gain_are_left_out() -> None:
    gains = np.tile([0.25, 0.75], 40)
    gains[[1, 7, 8]] = np.nan  # after, after, before
    pool = lists().with_extras(comet=gains).without("references")
    found = evaluate_improvement(pool, draws(-1.0, attrs={"gain_column": {"column": "comet"}}))
    assert (found.left_out, len(found.lists)) == (3, 37)
    assert found.changes[0].score.difference == pytest.approx(0.5)
    assert "3 sentences without a gain left out." in str(found)
    with pytest.raises(DataError, match="none of the chosen candidates has a comet"):
        evaluate_improvement(
            pool.with_extras(comet=np.full(80, np.nan)),
            draws(-1.0, attrs={"gain_column": {"column": "comet"}}),
        )


def test_the_largest_changes_are_side_by_side_and_escaped(found: Improvement) -> None:
    verdict, section = improvement_section(found, ["mind"])
    assert (verdict.passed, list(verdict.advice)) == (True, ["mind"])
    html = "".join(block.html() for block in section.blocks)
    assert html.count("<article>") == 10
    assert "Of 40 translations that changed, 32 got better by TER, 8 worse and 0 neither." in html
    titles = re.findall(r"<h3>(\d+) edits? (fewer|more) \(sentence (\d+)\)</h3>", html)
    assert len(titles) == 10
    edits = [int(count) for count, *_ in titles]
    assert edits == sorted(edits, reverse=True)
    assert all((way == "more") == (int(s) % 5 == 0) for _, way, s in titles)
    assert HOSTILE not in html
    assert "&lt;script&gt;" in html
    # What is struck out is the word of the spoilt one alone, and its reference is underlined.
    first = re.search(r"before: TER .*?</h4><p>(.*?)</p>.*?after: TER 0.00</h4><p>(.*?)</p>", html)
    assert first
    assert first[1].startswith("<del>x</del> ")
    assert first[2].count("<ins>") == 2


def test_a_metric_comes_first_where_the_posterior_was_adapted_to_one() -> None:
    found = evaluate_improvement(lists(), draws(-1.0, attrs={"oracle_metric": "bleu"}))
    assert [change.name for change in found.changes] == ["BLEU", "TER", "length"]


def test_a_column_decides_where_the_posterior_was_adapted_to_one() -> None:
    pool = lists().with_extras(comet=np.tile([0.25, 0.75], 40))
    told = draws(-1.0, attrs={"gain_column": {"column": "comet"}})
    found = evaluate_improvement(pool, told)
    assert [change.name for change in found.changes] == ["comet", "TER", "BLEU", "length"]
    assert found.changes[0].score.difference == pytest.approx(0.5)
    worse = tuple(change._replace(verdict="worse") for change in found.changes[1:])
    alone = replace(found, changes=(found.changes[0], *worse))
    assert alone.verdict == "yes"
    assert "TER" not in str(alone)
    without = evaluate_improvement(lists(), told)
    assert [change.name for change in without.changes] == ["TER", "BLEU", "length"]
    with pytest.raises(DataError, match="neither references nor the column comet, which the post"):
        evaluate_improvement(lists().without("references"), told)
    alone = NBest.from_lists(
        [pool.texts(s) for s in range(40)], [[[1.0], [0.0]]] * 40, ["LM0"]
    ).with_extras(comet=np.tile([0.25, 0.75], 40))
    _, section = improvement_section(evaluate_improvement(alone, told))
    html = "".join(block.html() for block in section.blocks)
    assert "comet better by 0.5 (sentence 0)" in html
    assert "before: comet 0.2500" in html


def test_lists_without_references_are_told_so() -> None:
    bare = NBest.from_lists([["a", "b"]], [[[1.0], [0.0]]], ["LM0"])
    with pytest.raises(DataError, match="no references"):
        evaluate_improvement(bare, draws(-1.0))


def test_the_report_begins_with_the_answer() -> None:
    html = report_page(draws(-1.0), lists(), top=1)
    assert html.index("Yes, it helped") < html.index("onverged") < html.index("<nav")
    assert html.index("<h2>Did it help?") < html.index("<h2>What moved")
    apart = draws(-1.0)
    apart = replace(apart, values={"weights": apart.weights + np.arange(4)[:, None, None]})
    assert "reranking refuses them" in report_page(apart, lists(), top=1)


def test_the_lists_adapted_to_are_known_again() -> None:
    pool = lists()
    attrs = {"lists": pool.origin, "adaptation_sentences": 40}
    log_p = -np.abs(np.random.default_rng(1).normal(size=(4, 300, 40)))
    seen = draws(
        -1.0,
        attrs=attrs,
        log_likelihood={"oracle": log_p},
        sentence_sites=("oracle",),
        observed={"oracle": np.ones(40, int)},
    )
    html = report_page(seen, pool, top=1)
    assert "evaluate on new ones" in html
    shown = re.findall(r'<th scope="row">(\d+): (.*?)…?</th>', html)
    assert len(shown) == 8
    assert all(pool.text(2 * int(s) + 1).startswith(text) for s, text in shown)
    assert re.findall(r'<th scope="row">(\d+): ', report_page(seen, top=1)) == []
    assert report_page(seen, adaptation_lists=pool, top=1).count("evaluate on new ones") == 0


def test_texts_of_sentences() -> None:
    pool = lists(5)
    known = draws(1.0, observed={"oracle": np.array([1, 0, 1, 0, 1])})
    assert texts_of(known, pool) == pool.chosen([1, 0, 1, 0, 1])
    outside = draws(1.0, observed={"oracle": np.array([2, 0, 0, 0, 0])})
    for other in (draws(1.0), outside):
        assert texts_of(other, pool) == [texts[0] for texts in pool.references or ()]
    bare = NBest.from_lists([["a", "b"]], [[[1.0], [0.0]]], ["LM0"])
    assert texts_of(draws(1.0), bare) == ["a"]
    ids = np.arange(5)
    assert texts_of(replace(known, sentence_ids=ids), pool) == texts_of(known, pool)
    for other in (replace(known, sentence_ids=ids[::-1]), draws(1.0, attrs={COUNT: 4})):
        with pytest.raises(DataError, match="have other ids, or another number"):
            texts_of(other, pool)


def test_sentences_whose_choices_are_not_both_judged_are_left_out() -> None:
    """The differences are those of the lists whose two candidates both have a value."""
    pool = lists().without("references")
    rng = np.random.default_rng(5)
    mqm = rng.normal(size=len(pool.features))
    mqm[rng.uniform(size=len(mqm)) < 0.2] = np.nan
    pool = pool.with_extras(mqm=mqm)
    posterior = draws(-1.0, attrs={"gain_column": {"column": "mqm", "negative": False}})
    found = evaluate_improvement(pool, posterior)
    both = mqm.reshape(-1, 2)
    both = both[~np.isnan(both).any(axis=1)]
    assert 0 < len(both) < len(pool)
    (change,) = found.changes
    assert change.score.difference == pytest.approx(np.mean(both[:, 1] - both[:, 0]))
    assert "nan" not in repr(improvement_section(found)[1])
    nothing = pool.with_extras(mqm=np.where(np.arange(len(mqm)) % 2, np.nan, mqm))
    with pytest.raises(DataError):
        evaluate_improvement(nothing, posterior)
