"""Columns of lists, functions and metrics of others as gains; lists with missing judgements."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import pearsonr, rankdata
from support.raising import raises

from bpa_ppl import DataError, NBest, UsageError, adapt, corpus_score, from_arrays, from_lists
from bpa_ppl.extending import Metric, gains, oracles
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.gains import (
    count_statistics,
    list_reported_metrics,
    resolve,
    resolve_without_lists,
    score_choice,
)
from bpa_ppl.gains.judged import Judged
from bpa_ppl.gains.metric import GAINS, Averaged

LISTS = from_lists(
    [["a", "b", "a"], ["c", "d"]],
    [[[1.0, 5.0], [2.0, 4.0], [3.0, 6.0]], [[4.0, 3.0], [4.0, 1.0]]],
    ["comet", "LM0"],
    extras={"mqm": [[-5, 0, -1], [-1, -1]], "system": [["x", "y", "z"], ["x", "y"]]},
)


# --- columns -------------------------------------------------------------------------------------


def test_features_and_extras_have_oracles() -> None:
    expected = {"comet": [2, 0], "-comet": [0, 0], "mqm": [1, 0], "-LM0": [1, 1]}
    results = {name: oracles(LISTS, name) for name in expected}
    assert {name: result.index.tolist() for name, result in results.items()} == expected
    assert [result.gain for result in results.values()] == [*expected]
    assert results["-comet"].score.tolist() == [1.0, 4.0]


def test_metric_names_take_precedence_over_columns() -> None:
    lists = (
        LISTS.without("LM0").with_extras(LM0=[5, 4, 6, 3, 1]).with_features("ter", [1, 2, 3, 4, 5])
    )
    negative = Column(column="ter", negative=True)
    assert resolve("TER", lists).key == resolve("ter", lists).key == "ter"
    assert resolve("-ter", lists) == resolve_without_lists("-ter") == negative
    assert resolve_without_lists("ter").key == "ter"
    assert resolve(Column(column="ter"), lists).signature([]).startswith("column:ter")


@pytest.mark.parametrize("name", ["Comet", "-", "", "--comet"])
def test_unknown_name_lists_the_choices(name: str) -> None:
    with raises(UsageError, "unknown-name", parameter="gain", match="ter, bleu, .* wer"):
        oracles(LISTS, name)


@pytest.mark.parametrize(
    ("typed", "columns", "suggested"),
    [
        ("human", ["lm", "human_rating"], "human_rating"),
        ("rating", ["lm", "human_rating"], "human_rating"),
        ("Human", ["humanity", "Rating-human"], "Rating-human"),
        ("hum", ["lm", "human_rating"], "human_rating"),
        ("-human", ["lm", "human_rating"], "human_rating"),
        ("human", ["human_a", "human_b"], None),
        ("hum", ["human", "humid"], None),
        ("comte", ["comet", "lm"], "comet"),
    ],
)
def test_the_only_column_with_the_name_as_a_word_is_suggested(
    typed: str, columns: list[str], suggested: str | None
) -> None:
    lists = from_lists([["a", "b"]], [np.zeros((2, len(columns)))], columns)
    with raises(UsageError, "unknown-name", parameter="gain") as caught:
        resolve(typed, lists)
    shown = str(caught.value).partition("did you mean ")[2]
    assert shown.partition("?")[0] == (suggested or "")


def test_invalid_values_are_located() -> None:
    with raises(DataError, "missing-column", match=r"bleurt: .* comet \(1 to 4\), LM0"):
        oracles(LISTS, Column(column="bleurt"))
    with raises(DataError, "bad-number", match="system of .* of list 0 is 'x', not a number"):
        oracles(LISTS, "system")
    with raises(DataError, "bad-number", match="mqm of .* of list 0 is '1', not a number"):
        oracles(LISTS.with_extras(mqm=["1", "2", "3", "4", "5"]), "mqm")
    for values in ([None, 1, 2, "4", 4], np.array([1, 2, 3, np.inf, 5]), [1, 2, 3, 1e61, 4]):
        where = r"mqm of candidates\[0\] of list 1 is ('4'|inf|1e\+61)"
        with raises(DataError, "bad-number", match=where):
            oracles(LISTS.with_extras(mqm=values), "mqm")
    with raises(DataError, "no-data", match="mqm"):
        oracles(LISTS.with_extras(mqm=[None, None, 1, None, 2]), "mqm")


# --- columns with missing judgements -------------------------------------------------------------

SENTENCES = 60


@pytest.fixture(scope="module")
def partial_lists() -> NBest:
    """Lists of one to six candidates, half of them judged with integers, so that many tie."""
    rng = np.random.default_rng(8)
    sizes = rng.integers(1, 7, SENTENCES)
    count = int(sizes.sum())
    mqm = np.where(rng.uniform(size=count) < 0.5, -rng.integers(0, 4, count), np.nan)
    texts = [f"candidate {k}" for k in range(count)]
    lists = from_arrays(texts, rng.normal(size=(count, 2)), ["lm", "length"], sizes)
    return lists.with_extras(mqm=mqm).with_references(texts[:SENTENCES])


def judged_values(lists: NBest) -> list[list[tuple[int, float]]]:
    """Return position and judgement of the judged candidates of each list."""
    column = np.asarray(lists.extras["mqm"])
    rows = (column[lists.rows(s)] for s in range(len(lists)))
    return [[(k, v) for k, v in enumerate(row.tolist()) if not np.isnan(v)] for row in rows]


@pytest.mark.parametrize("sign", [1, -1])
def test_oracles_agree_with_loops(partial_lists: NBest, sign: int) -> None:
    scores = np.random.default_rng(1).normal(size=len(partial_lists.features))
    result = oracles(partial_lists, "mqm" if sign == 1 else "-mqm", preference=scores)
    for s, entries in enumerate(judged_values(partial_lists)):
        preference = scores[partial_lists.rows(s)]
        if len(entries) < 2:
            assert np.isnan(result.score[s])
            assert (result.tied[s], result.index[s]) == (0, np.argmax(preference))
            continue
        best = max(sign * value for _, value in entries)
        ties = [k for k, value in entries if sign * value == best]
        assert (result.score[s], result.tied[s]) == (sign * best, len(ties))
        assert result.index[s] == max(ties, key=lambda k: preference[k])
    assert result.skipped == sum(len(v) < 2 for v in judged_values(partial_lists)) > 0


def test_mean_is_over_judged_choices(partial_lists: NBest) -> None:
    rng = np.random.default_rng(3)
    choice = rng.integers(0, partial_lists.sizes)
    rows = partial_lists.offsets[:-1] + choice
    chosen = np.asarray(partial_lists.extras["mqm"])[rows]
    score = score_choice(partial_lists, choice, "mqm")
    assert score.value == pytest.approx(np.nanmean(chosen))
    assert score.details == {"mqm.judged": np.isfinite(chosen).sum()}
    total, judged = count_statistics(partial_lists, "mqm")[rows].sum(axis=0)
    assert total / judged == score.value


def test_missing_values_and_gains(partial_lists: NBest) -> None:
    column = np.asarray(partial_lists.extras["mqm"])
    np.testing.assert_array_equal(gains(partial_lists, "-mqm"), -column)
    missing = (None if k % 2 else np.nan for k in range(len(column)))
    mixed = [m if np.isnan(v) else v for v, m in zip(column, missing, strict=True)]
    np.testing.assert_array_equal(gains(partial_lists.with_extras(mqm=mixed), "mqm"), column)
    bare = partial_lists.with_extras(mqm=np.full(len(column), np.nan))
    assert np.isnan(score_choice(bare, np.zeros(len(bare), int), "mqm").value)


# --- functions -----------------------------------------------------------------------------------


def test_function_gets_one_entry_per_candidate() -> None:
    calls = []

    def overlap(candidates: list[str], references: list[tuple[str, ...]]) -> list[float]:
        calls.append((candidates, references))
        return [float(h in r) for h, r in zip(candidates, references, strict=True)]

    result = oracles(LISTS.with_references([("a", "b"), ("d",)]), overlap)
    assert result.index.tolist() == [0, 1]
    assert (result.gain, result.signature) == ("overlap", "function:overlap")
    assert calls == [(["a", "b", "c", "d"], [("a", "b"), ("a", "b"), ("d",), ("d",)])]


def test_function_of_texts_only() -> None:
    found = lambda candidates: [float(text == "b") for text in candidates]  # noqa: E731
    assert oracles(LISTS, found).index.tolist() == [1, 0]
    assert gains(LISTS, found).tolist() == [0, 1, 0, 0, 0]
    assert corpus_score(["b"], None, resolve(found)).value == 1.0


def test_function_may_take_sources() -> None:
    by_source = lambda texts, refs, sources: [len(s) for s in sources]  # noqa: E731
    lists, metric = LISTS.with_references(["a", "b"]), resolve(by_source)
    assert oracles(lists.with_sources(["xx", "y"]), by_source).score.tolist() == [2.0, 1.0]
    assert corpus_score(["a"], [("a",)], metric, sources=["xyz"]).value == 3.0
    with raises(DataError, "missing-sources", parameter="sources"):
        oracles(lists, by_source)
    with raises(DataError, "missing-sources", parameter="sources"):
        corpus_score(["a"], [("a",)], metric)


def test_other_results_and_objects_are_refused() -> None:
    for result in (None, 1.0, [1.0], ["x"] * 4, [np.nan] * 4):
        with raises(DataError, "bad-number"):
            oracles(LISTS, lambda candidates, result=result: result)
    for wrong in (lambda: 1, lambda a, b, c, d: 1, 5, None, [1.0]):
        with raises(UsageError, "wrong-type", parameter="gain" if callable(wrong) else None):
            oracles(LISTS, wrong)  # type: ignore[arg-type]


# --- metrics of others: what they must define ----------------------------------------------------


class Overlap(Averaged, frozen=True):
    """The share of the words of the first reference that are in a candidate, in percent."""

    key: ClassVar[str] = "overlap"

    def sentences(self, lists: Any, references: Any) -> np.ndarray:
        """Return one score per candidate."""
        pairs = zip(lists, ({*refs[0].split()} for refs in references), strict=True)
        shares = [len({*text.split()} & words) / len(words) for own, words in pairs for text in own]
        return 100 * np.array(shares)


class Lengths(Metric, frozen=True):
    """The relative length difference to the first reference, from summed counts."""

    key: ClassVar[str] = "lengths"
    lower_is_better: ClassVar[bool] = True
    weight: int = 1

    def counts(self, lists: Any, references: Any) -> np.ndarray:
        """Return length differences and reference lengths in words (candidates, 2)."""
        pairs = zip(lists, (len(refs[0].split()) for refs in references), strict=True)
        counts = [(abs(len(text.split()) - n), n) for own, n in pairs for text in own]
        return np.array(counts, float)

    def value(self, sums: np.ndarray) -> np.ndarray:
        """Return the rate in percent."""
        return 100 * self.weight * sums[..., 0] / sums[..., 1]


def with_references(texts: list[list[str]]) -> NBest:
    tables = [np.arange(len(row), dtype=float)[:, None] for row in texts]
    return from_lists(texts, tables, ["LM0"], references=["a b c", "a"])


LENGTHS = with_references([["a b", "a b c d", "x"], ["a", "b c"]])


def test_sentence_scores_are_enough_for_oracles_and_gains() -> None:
    metric = Overlap()
    result = oracles(LENGTHS, metric)
    assert (result.index.tolist(), result.gain) == ([1, 0], "overlap")
    assert result.signature == "overlap|nrefs:1"
    assert corpus_score(["a b", "a"], [["a b c"], ["a"]], metric).value == pytest.approx(250 / 3)
    np.testing.assert_allclose(gains(LENGTHS, metric), [200 / 3, 100, 0, 100, 0])
    mean = count_statistics(LENGTHS, metric)[[0, 3]].mean(axis=0)
    assert mean == pytest.approx([(200 / 3 + 100) / 2, 1])
    posterior = adapt(LENGTHS, {"LM0": 1.0}, gain=metric, sampler="map")
    assert posterior.attrs["oracle_metric"] == "overlap"
    # The second of three, then the first of two: λ is too large.
    assert float(posterior["posterior"]["weights"].mean()) < 1


@pytest.mark.parametrize(
    ("tuner", "settings"),
    [
        ("mert", {"restarts": 2}),
        ("mira", {"step": 1.0}),
        ("pro", {"interpolation": 1.0, "iterations": 2}),
    ],
)
def test_counts_and_value_are_enough_to_tune(
    tuner: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    reestimate = pytest.importorskip("bpa_ppl.extras.tuning.reestimation").reestimate
    monkeypatch.setattr(GAINS, "registered", {})
    GAINS.register("lengths", Lengths)
    worse = with_references([["a b c", "a b", "x"], ["a", "b c"]])
    result = reestimate(worse, {"LM0": 1.0}, gain="lengths", tuner=tuner, **settings)
    assert (result.before, result.after) == (75.0, 0.0)
    assert list_reported_metrics() == ("ter", "bleu", "lengths")
    assert count_statistics(LENGTHS, Lengths()).tolist() == [[1, 3], [1, 3], [2, 3], [0, 1], [1, 1]]
    twice = Lengths(weight=2)
    assert corpus_score(LENGTHS.chosen([0, 1]), LENGTHS.references, twice).value == 100.0
    assert twice.signature([("a",)]) == "lengths|nrefs:1|weight:2"


def unjudged(sizes: list[int]) -> NBest:
    return from_arrays([""] * sum(sizes), np.zeros((sum(sizes), 1)), ["LM0"], sizes)


@pytest.mark.slow
def test_the_association_is_standard_normal_if_gains_are_permuted() -> None:
    """Also with ties, lists of two, and lists whose gains are equal; of one list it is SciPy's."""
    rng = np.random.default_rng(3)
    sizes = [2, 9, 4, 6, 5] * 4
    pool, offsets = unjudged(sizes), np.cumsum([0, *sizes])
    scores, gains = rng.normal(size=offsets[-1]) ** 3, rng.integers(0, 3, size=offsets[-1])
    gains[: sizes[0]] = 1
    permuted = [
        np.concatenate([rng.permutation(part) for part in np.split(gains, offsets[1:-1])])
        for _ in range(800)
    ]
    values = [Judged.by_gains(pool, one).association(scores) for one in permuted]
    assert np.mean(values) == pytest.approx(0, abs=5 / np.sqrt(800))
    assert np.std(values) == pytest.approx(1, abs=5 / np.sqrt(1600))
    one = slice(offsets[1], offsets[2])
    expected = pearsonr(scores[one], rankdata(gains[one])).statistic * np.sqrt(sizes[1] - 1)
    assert Judged.by_gains(unjudged([9]), gains[one]).association(scores[one]) == pytest.approx(
        expected
    )
