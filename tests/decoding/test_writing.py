"""Results of reranking and their files: scores, details, streams, lines aligned with the source.

Several processes give the same bytes as one process.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, TER
from support import gained_lists as gained
from support.posteriors import external_posterior
from support.raising import raises
from support.random_lists import NAMES, random_lists, random_sizes

from bpa_ppl import (
    Choices,
    DataError,
    NBest,
    Reranker,
    UsageError,
    compare_baselines,
    from_lists,
    rerank,
)
from bpa_ppl.decoding.writing import AlignedTexts, format_texts, rerank_to, write_texts
from bpa_ppl.extending import Rule

#: Candidates and references are random, which is noticed.
pytestmark = [
    pytest.mark.filterwarnings("ignore:(?s).*the references seem to be those of other lists"),
    pytest.mark.filterwarnings("ignore:(?s).*have the same reference"),
]
SOURCES = ("null", "eins", "zwei", "drei", "vier", "fünf")


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Ninety lists with one reference, every third with two."""
    references = [("the cat", "a dog") if s % 3 == 0 else ("a cat sat",) for s in range(90)]
    return random_lists(random_sizes(90, 9), words=True, references=references)


@pytest.fixture(scope="module")
def posterior() -> Any:
    return external_posterior(np.random.default_rng(6).normal(0, 0.5, size=(2, 40, 3)), NAMES)


@pytest.fixture(scope="module")
def reranker(posterior: Any) -> Reranker:
    return Reranker(posterior, unchecked=True)


ODD = "a\r\nb\n\tc"


def test_texts_with_line_breaks_are_written_unchanged_or_refused(tmp_path: Path) -> None:
    lists = from_lists([[ODD], ["c"]], [[[1, 2, 3]], [[1, 2, 3]]], NAMES)
    ones = external_posterior(np.ones((1, 2, 3)), NAMES)
    reranker = Reranker(ones, unchecked=True)
    out, table = tmp_path / "out.jsonl", tmp_path / "out.tsv"
    with raises(DataError, "not-supported", parameter="output", match="jsonl"):
        rerank_to(lists, reranker, tmp_path / "out.txt")
    with raises(DataError, "not-supported", parameter="details", match="jsonl"):
        rerank_to(lists, reranker, out, table)
    assert list(tmp_path.iterdir()) == []
    details = tmp_path / "details.jsonl"
    rerank_to(lists, reranker, out, details)
    for path in (out, details):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert [(row["id"], row["text"]) for row in rows] == [(0, ODD), (1, "c")]
    write_texts(rerank(lists, ones, unchecked=True), tmp_path / "texts.jsonl")
    assert (tmp_path / "texts.jsonl").read_bytes() == out.read_bytes()


def test_missing_sentences_in_json_lines() -> None:
    def rows(aligned: AlignedTexts) -> list[tuple[int, str]]:
        texts = [*aligned.add(choices(1)), *aligned.rest()]
        lines = format_texts(texts, "out.jsonl")
        return [tuple(json.loads(line).values()) for line in lines]

    sources = ["un\nchat", "x", ODD]
    filled = [(0, "un\nchat"), (1, "text 1"), (2, ODD)]
    assert rows(AlignedTexts("source", sources)) == filled
    assert rows(AlignedTexts("empty", sources)) == [(0, ""), filled[1], (2, "")]
    with raises(DataError, "not-supported", parameter="output"):
        written_lines(AlignedTexts("source", sources), choices(1))


@pytest.mark.parametrize("piece", [1, 64])
def test_files_and_scores_agree_with_rerank(
    lists: NBest, posterior: Any, reranker: Reranker, piece: int, tmp_path: Path
) -> None:
    # Other chunks have other padding, which may change the last bits.
    reranked = rerank(lists.chunks(piece), posterior, unchecked=True)
    write_texts(reranked, tmp_path / "texts")
    paths = tmp_path / "ours", tmp_path / "details"
    summary = rerank_to(lists.chunks(piece), reranker, *paths)
    assert paths[0].read_bytes() == (tmp_path / "texts").read_bytes()
    assert paths[0].read_text().splitlines() == reranked.texts
    header, *rows = [line.split("\t") for line in paths[1].read_text().splitlines()]
    table = dict(zip(header, zip(*rows, strict=True), strict=True))
    assert list(table["text"]) == reranked.texts
    for name, expected in {
        "choice": reranked.choice,
        "changed": reranked.changed,
        "probability": reranked.probability,
        "canonical_choice": reranked.canonical,
        "canonical_probability": reranked.canonical_probability,
    }.items():
        np.testing.assert_allclose(np.float64(table[name]), expected, rtol=1e-5)
    changed = int(reranked.changed.sum())
    assert (summary.sentences, summary.changed) == (90, changed)
    scores = summary.scores
    assert str(summary) == str(scores)
    # The posterior records no canonical weights.
    assert scores.titles == ("first candidate", "adapted weights")
    both = [(refs[0], refs[-1]) for refs in lists.references or ()]
    references = list(map(list, zip(*both, strict=True)))
    for texts, name in ((reranked.canonical_texts, "before"), (reranked.texts, "after")):
        ours = [getattr(change, name) for change in scores.changes]
        assert [score.metric for score in ours] == ["ter", "bleu", "length"]
        assert ours[0].value == TER().corpus_score(texts, references).score
        bleu = BLEU(tokenize="none", force=True).corpus_score(texts, references).score
        assert ours[1].value == pytest.approx(bleu, rel=1e-12)


def test_texts_on_standard_output_and_no_scores_without_references(
    lists: NBest, posterior: Any, reranker: Reranker, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    summary = rerank_to(lists.without("references"), reranker, "-")
    assert (summary.scores.changes, summary.sentences) == ((), 90)
    assert str(summary).endswith("of 90 choices changed from first candidate to adapted weights")
    texts = rerank(lists, posterior, unchecked=True).texts
    ranked = replace(lists.without("references"), totals=np.cos(np.arange(len(lists.features))))
    changed = sum(np.not_equal(ranked.chosen(ranked.best(ranked.totals)), texts))
    words = f"{changed} of 90 choices changed from total of the decoder to adapted weights"
    assert str(rerank_to(ranked, reranker, "-")) == words
    assert capfdbinary.readouterr().out == 2 * ("\n".join(texts) + "\n").encode()


def test_error_keeps_existing_files(
    lists: NBest, reranker: Reranker, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def broken() -> Iterator[NBest]:
        yield lists
        raise DataError("the rest is unreadable", "dev.nbest", 7)

    (tmp_path / "out").write_text("old")
    for output in (tmp_path / "out", "-"):
        with raises(DataError, line=7):
            rerank_to(broken(), reranker, output, tmp_path / "details")
    with raises(UsageError, "no-data", parameter="lists"):
        rerank_to([], reranker, tmp_path / "out")
    with pytest.raises(DataError, match="nowhere"):
        rerank_to(lists, reranker, tmp_path / "out", tmp_path / "nowhere/details")
    assert (tmp_path / "out").read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]
    assert capfdbinary.readouterr().out == b""


def test_stream_is_not_kept_in_memory(lists: NBest, reranker: Reranker, tmp_path: Path) -> None:
    """A table is released before the third table after it is read."""
    alive: list[weakref.ref[NBest]] = []
    most = 0

    def stream() -> Iterator[NBest]:
        nonlocal most
        for _ in range(20):
            table = lists[:10]
            alive.append(weakref.ref(table))
            yield table
            del table
            most = max(most, sum(ref() is not None for ref in alive))

    rerank_to(stream(), reranker, tmp_path / "out")
    assert most <= 2


def custom_rule() -> Rule:
    """Return a rule that workers cannot import and receive by pickling."""

    class CustomRule(Rule, frozen=True):
        def log_scores(self, features: Any, draws: Any) -> Any:
            return features[:, 0]

    return CustomRule()


@pytest.mark.parametrize(
    "rule",
    [
        custom_rule(),
        *(pytest.param(rule, marks=pytest.mark.slow) for rule in ("predictive", "mbr")),
    ],
)
def test_result_does_not_depend_on_processes(tmp_path: Path, rule: str | Rule) -> None:
    """Files, choices and progress are equal, also with a custom rule."""
    lists = random_lists(random_sizes(1050, 200), references=["t1 t2"] * 1050)
    assert len(lists.features) > 100_000  # fewer are not worth the start of processes
    draws = np.random.default_rng(6).normal(0, 0.5, size=(2, 100, 3))
    result, shown = {}, {1: list[int](), 2: list[int]()}
    for jobs in (1, 2):
        names = tmp_path / f"out{jobs}", tmp_path / f"details{jobs}.gz"
        reranker = Reranker(
            external_posterior(draws, NAMES),
            rule=rule,
            derivations="summed",
            unchecked=True,
            jobs=jobs,
            progress=lambda done, *_, jobs=jobs: shown[jobs].append(done),
        )
        summary = rerank_to(lists.chunks(250), reranker, *names)
        result[jobs] = [name.read_bytes() for name in names], str(summary)
    assert result[1] == result[2]
    assert result[1][0][0].count(b"\n") == 1050
    assert shown[1] == shown[2] == sorted(shown[2])
    assert shown[2][-1] == 1050


def test_small_input_starts_no_process(
    lists: NBest, posterior: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("bpa_ppl.decoding.reranker.parallel_workers")
    assert len(rerank(lists, posterior, unchecked=True, jobs=2).texts) == 90


def choices(*ids: int) -> Choices:
    texts = [[f"text {identifier}"] for identifier in ids]
    lists = from_lists(texts, [[[0.0]]] * len(ids), ["lm"], sentence_ids=ids)
    first, one = np.zeros(len(ids), np.int64), np.ones(len(ids))
    return Choices(lists, ids, first, first, one, one)


def written_lines(aligned: AlignedTexts, *parts: Choices) -> list[str]:
    texts = [pair for part in parts for pair in aligned.add(part)]
    return [line.removesuffix("\n") for line in format_texts([*texts, *aligned.rest()])]


@pytest.mark.parametrize("first_id", [0, 1])
def test_one_line_per_sentence(first_id: int) -> None:
    ids = [number + first_id for number in (1, 2, 4)]
    parts = choices(*ids[:2]), choices(ids[2])
    one, two, four = (f"text {identifier}" for identifier in ids)
    filled = AlignedTexts("source", SOURCES, first_id)
    assert written_lines(filled, *parts) == ["null", one, two, "drei", four, "fünf"]
    assert filled.filled == 3
    empty = ["", one, two, "", four]
    assert written_lines(AlignedTexts("empty", SOURCES, first_id), *parts) == [*empty, ""]
    assert written_lines(AlignedTexts("empty", None, first_id), *parts) == empty


@pytest.mark.parametrize("gaps", ["error", "empty", "source"])
def test_lines_are_in_the_order_of_ids(gaps: str) -> None:
    lines = AlignedTexts(gaps, SOURCES)
    parts = choices(4, 0, 2), choices(1, 5), choices(3)
    counts = [len(list(lines.add(part))) for part in parts]
    assert counts == [1, 2, 3]  # lines are written as soon as possible
    lines = AlignedTexts(gaps, SOURCES)
    assert written_lines(lines, *parts) == [f"text {n}" for n in range(6)]
    assert lines.filled == 0
    filled = written_lines(AlignedTexts("source", SOURCES), choices(4, 1), choices(2))
    assert filled == ["null", "text 1", "text 2", "drei", "text 4", "fünf"]


@pytest.mark.parametrize(
    ("aligned", "parts", "code", "parameter", "mention"),
    [
        (("error", SOURCES), [(1, 2)], None, "gaps", "sentence 0"),
        (("error", SOURCES), [(0, 2)], None, "gaps", "sentence 1"),
        (("error", SOURCES), [(0, 1, 2, 3, 4)], None, "gaps", "sentence 5"),
        (("error",), [(40, 41)], None, "gaps", "or write JSON lines with the ids"),
        (("empty", SOURCES), [(0, 1), (1,)], "duplicate", None, "sentence 1"),
        (("empty", SOURCES), [(0, 2), (3, 2)], "duplicate", None, "sentence 2"),
        (("source", ["null"]), [(0, 2)], None, "sources", "sentence 1"),
        (("empty", None, 1), [(0,)], None, "format", "below the first id, 1: correct it"),
        (("empty",), [(2**62,)], "wrong-length", None, "4611686018427387903"),
    ],
)
def test_lists_that_have_no_line_are_named(
    aligned: tuple[Any, ...], parts: Any, code: str | None, parameter: str | None, mention: str
) -> None:
    with raises(DataError, code, parameter=parameter, match=mention):
        written_lines(AlignedTexts(*aligned), *(choices(*ids) for ids in parts))


def test_messages_name_original_ids() -> None:
    result = replace(choices(0, 1), ids=["doc:0", "doc:1"])
    with raises(DataError, parameter="gaps", match="line 3 of the sources, after sentence doc:1"):
        written_lines(AlignedTexts("error", SOURCES), result)
    with raises(DataError, "duplicate", match="doc:0"):
        written_lines(AlignedTexts("empty"), result, result)


def test_rejects_invalid_ways_to_fill_gaps() -> None:
    with raises(UsageError, "unknown-name", parameter="gaps"):
        AlignedTexts("skip")
    with raises(UsageError, "missing-sources", parameter="sources"):
        AlignedTexts("source")


def test_parts_of_lists_are_compared_together(tmp_path: Path) -> None:
    """A later part without the column, but with references, leaves no comparison and no scores."""
    draws = gained.recorded(gained.lists(1))
    new, reranker = gained.lists(2, 30, missing=True), Reranker(draws, unchecked=True)
    choice = rerank(new, draws, unchecked=True).choice
    parts = rerank_to(new.chunks(7), reranker, tmp_path / "out.txt")
    assert str(parts.baselines) == str(compare_baselines(new, draws, choice=choice))
    later = new[:5].without("mqm").with_references(["0 0"] * 5)
    mixed = rerank_to(iter([new, later]), reranker, tmp_path / "out.txt")
    assert (mixed.sentences, mixed.scores.changes, mixed.baselines) == (35, (), None)
