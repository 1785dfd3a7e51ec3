"""Results of reranking: scores before and after, texts and details."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from external_posterior import external_posterior
from sacrebleu.metrics import TER

from bpa_ppl import DataError, NBest, Reranked, rerank
from bpa_ppl.decoding.outputs import scoreboard, write_details, write_texts
from bpa_ppl.errors import BpaWarning

NAMES = ("LM0", "TM0[0]", "TM0[1]")


@pytest.fixture
def reranked(toy: NBest) -> Reranked:
    return rerank(
        toy, external_posterior(np.full((1, 2, 3), [1.0, -2.0, 0.5]), NAMES), unchecked=True
    )


def test_scores_agree_with_sacrebleu(reranked: Reranked) -> None:
    board = scoreboard(reranked, ("ter",))
    references = [[r[0] for r in reranked.references]]
    assert board.after[0].value == TER().corpus_score(reranked.texts, references).score
    assert board.before[0].value == TER().corpus_score(reranked.canonical_texts, references).score
    assert board.changed == int(reranked.changed.sum())
    assert f"{board.changed} of 3 translations changed" in str(board)


def test_length_is_reported_with_bleu(reranked: Reranked) -> None:
    board = scoreboard(reranked, ("ter", "bleu"))
    written, wanted = (
        sum(len(text.split()) for text in texts)
        for texts in (reranked.texts, [r[0] for r in reranked.references])
    )
    (row,) = (line.split() for line in str(board).splitlines() if "length" in line.split()[:1])
    assert row[2] == f"{written / wanted:.3f}"
    assert "length" not in str(scoreboard(reranked, ("ter",)))


def test_no_scores_without_references(toy: NBest) -> None:
    bare = NBest.from_lists(
        [toy.texts(s) for s in range(3)], [toy.features[toy.rows(s)] for s in range(3)], NAMES
    )
    result = rerank(bare, external_posterior(np.ones((1, 2, 3)), NAMES), unchecked=True)
    with pytest.raises(DataError, match="no references"):
        scoreboard(result)


def test_texts_are_written_one_per_line(reranked: Reranked, tmp_path: Path) -> None:
    write_texts(reranked, tmp_path / "out")
    assert (tmp_path / "out").read_text().splitlines() == reranked.texts


def test_line_breaks_in_texts_are_replaced(tmp_path: Path) -> None:
    lists = NBest.from_lists([["a\r\nb\n"], ["c"]], [[[1, 2, 3]], [[1, 2, 3]]], NAMES)
    result = rerank(lists, external_posterior(np.ones((1, 2, 3)), NAMES), unchecked=True)
    with pytest.warns(BpaWarning, match="a translation with a line break is written as one line"):
        write_texts(result, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "a b \nc\n"
    write_details(result, tmp_path / "out.tsv")
    assert len((tmp_path / "out.tsv").read_text().splitlines()) == 3


def test_details_have_one_row_per_sentence(reranked: Reranked, tmp_path: Path) -> None:
    write_details(reranked, tmp_path / "out.tsv")
    header, *rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    table = [dict(zip(header, row, strict=True)) for row in rows]
    assert [row["translation"] for row in table] == reranked.texts
    assert [int(row["choice"]) for row in table] == reranked.choice.tolist()
    assert [float(row["probability"]) for row in table] == pytest.approx(
        reranked.probability, rel=1e-5
    )
    assert [int(row["changed"]) for row in table] == reranked.changed.tolist()


def test_notebook_shows_escaped_changes() -> None:
    texts = [["<b>a</b>", "b & c"]] * 40
    pool = NBest.from_lists(texts, [[[1.0], [0.0]]] * 40, ["LM0"])
    result = rerank(pool, external_posterior(np.full((1, 2, 1), -1.0), ["LM0"]), unchecked=True)
    turned = Reranked(**{**vars(result), "canonical_texts": ["<b>a</b>"] * 40})
    html = turned._repr_html_()
    assert repr(turned) == "Reranked(40 sentences, 40 changed)"
    assert html.count("<tr>") == 6
    assert "<b>" not in html
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert "b &amp; c" in html
    assert "<table>" not in Reranked(**{**vars(turned), "texts": ["<b>a</b>"] * 40})._repr_html_()
