"""Columns of lists and functions as metrics."""

from __future__ import annotations

import numpy as np
import pytest
from support.judged_lists import judged_lists
from support.raising import raises

from bpa_ppl import DataError, UsageError, corpus_score, from_lists, gains, oracles
from bpa_ppl.experiments.tuning.reestimation import reestimate
from bpa_ppl.metrics.column import Column
from bpa_ppl.metrics.gains import resolve, resolve_without_lists
from bpa_ppl.metrics.oracles import headroom
from bpa_ppl.nbest import demote_to_extras

LISTS = from_lists(
    [["a", "b", "a"], ["c", "d"]],
    [[[1.0, 5.0], [2.0, 4.0], [3.0, 6.0]], [[4.0, 3.0], [4.0, 1.0]]],
    ["comet", "LM0"],
    extras={"mqm": [[-5, 0, -1], [-1, -1]], "system": [["x", "y", "z"], ["x", "y"]]},
)


class TestColumns:
    def test_features_and_extras_have_oracles(self) -> None:
        expected = {"comet": [2, 0], "-comet": [0, 0], "mqm": [1, 0], "-LM0": [1, 1]}
        results = {name: oracles(LISTS, name) for name in expected}
        assert {name: result.index.tolist() for name, result in results.items()} == expected
        assert [result.gain for result in results.values()] == [*expected]
        assert results["-comet"].score.tolist() == [1.0, 4.0]
        lines = str(headroom(LISTS, gain="mqm")).splitlines()
        assert [line.split() for line in lines[:2]] == [["mqm"], ["first-best", "-3.0000"]]
        assert lines[-1] == "column:mqm|better:higher"

    def test_metric_names_take_precedence_over_columns(self) -> None:
        lists = demote_to_extras(LISTS, ["LM0"]).with_features("ter", [1, 2, 3, 4, 5])
        assert resolve("TER", lists).key == resolve("ter", lists).key == "ter"
        assert (
            resolve("-ter", lists)
            == Column(column="ter", negative=True)
            == resolve_without_lists("-ter")
        )
        assert resolve_without_lists("ter").key == "ter"
        assert resolve(Column(column="ter"), lists).signature([]).startswith("column:ter")

    @pytest.mark.parametrize("name", ["Comet", "-", "", "--comet"])
    def test_unknown_name_lists_the_choices(self, name: str) -> None:
        with raises(UsageError, "unknown-name", parameter="gain", match="ter, .* comet, LM0, mqm"):
            oracles(LISTS, name)

    def test_invalid_values_are_located(self) -> None:
        with raises(DataError, "missing-column", match="bleurt: .* comet, LM0, mqm"):
            oracles(LISTS, Column(column="bleurt"))
        with raises(
            UsageError, "wrong-type", parameter="gain", match="system is a column of texts"
        ):
            oracles(LISTS, "system")
        with raises(UsageError, "wrong-type", parameter="gain", match="texts, such as '1'"):
            oracles(LISTS.with_extras(mqm=["1", "2", "3", "4", "5"]), "mqm")
        for values in ([1, 2, 3, True, 4], [None, 1, 2, "4", 4], np.array([1, 2, 3, np.inf, 5])):
            where = "mqm of candidate 0 of sentence 1 is ('4'|True|inf)"
            with raises(DataError, "bad-number", match=where):
                oracles(LISTS.with_extras(mqm=values), "mqm")
        with raises(DataError, "no-data", match="mqm"):
            oracles(LISTS.with_extras(mqm=[None, None, 1, None, 2]), "mqm")

    @pytest.mark.parametrize("tuner", ["mert", "pro"])
    def test_tuners_optimise_mean_of_column(self, tuner: str) -> None:
        lists = judged_lists(30).with_features("good", judged_lists(30).features[:, 1] ** 3)
        result = reestimate(lists, {"logprob": 1.0, "good": 0.0}, tuner=tuner, gain="comet")
        assert result.weights.names == ("logprob", "good")
        assert result.after > result.before + 0.3
        rows = lists.offsets[:-1] + lists.best(
            lists.scores([result.weights["logprob"], 0, result.weights["good"]])
        )
        assert result.after == pytest.approx(lists.features[rows, 1].mean(), rel=1e-6)
        assert str(result).startswith("comet of the lists: ")


class TestFunctions:
    def test_function_gets_one_entry_per_candidate(self) -> None:
        calls = []

        def overlap(candidates: list[str], references: list[tuple[str, ...]]) -> list[float]:
            calls.append((candidates, references))
            return [float(h in r) for h, r in zip(candidates, references, strict=True)]

        lists = LISTS.with_references([("a", "b"), ("d",)])
        result = oracles(lists, overlap)
        assert result.index.tolist() == [0, 1]
        assert (result.gain, result.signature) == ("overlap", "function:overlap")
        assert calls == [(["a", "b", "c", "d"], [("a", "b"), ("a", "b"), ("d",), ("d",)])]

    def test_function_of_texts_only(self) -> None:
        found = lambda candidates: [float(text == "b") for text in candidates]  # noqa: E731
        assert oracles(LISTS, found).index.tolist() == [1, 0]
        assert gains(LISTS, found).tolist() == [0, 1, 0, 0, 0]
        assert headroom(LISTS, gain=found).oracle.value == 0.5
        assert corpus_score(["b"], None, resolve(found)).value == 1.0

    def test_function_may_take_sources(self) -> None:
        by_source = lambda texts, refs, sources: [len(s) for s in sources]  # noqa: E731
        lists = LISTS.with_references(["a", "b"])
        result = oracles(lists.with_sources(["xx", "y"]), by_source)
        assert result.score.tolist() == [2.0, 1.0]
        metric = resolve(by_source)
        assert corpus_score(["a"], [("a",)], metric, sources=["xyz"]).value == 3.0
        for call in (
            lambda: oracles(lists, by_source),
            lambda: corpus_score(["a"], [("a",)], metric),
        ):
            with raises(DataError, "missing-sources", parameter="sources"):
                call()
        with raises(DataError, "missing-references", parameter="references"):
            oracles(LISTS, by_source)

    def test_other_results_and_objects_are_refused(self) -> None:
        for result in (None, 1.0, [1.0], ["x"] * 4, [np.nan] * 4):
            with raises(DataError, "bad-number"):
                oracles(LISTS, lambda candidates, result=result: result)
        for wrong in (lambda: 1, lambda a, b, c, d: 1, 5, None, [1.0]):
            with raises(UsageError, "wrong-type", parameter="gain" if callable(wrong) else None):
                oracles(LISTS, wrong)  # type: ignore[arg-type]
