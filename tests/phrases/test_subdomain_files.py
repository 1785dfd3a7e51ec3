"""Files of subdomains: round trip, and detection of other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from support.phrase_pairs import sentences_of
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.phrases.subdomains import Subdomains
from bpa_ppl.text.words import NumberedText

SOURCE = [["la", "maison"], [], ["une", "maison", "Zoé"], ["la"]]
TARGET = [["the", "house"], ["."], ["a", "house"], []]
SETTINGS = {"em": "hard", "seed": 3, "log_likelihoods": [-10.5, -9.25]}
HARD = np.array([0, 2, 2, 1])
SOFT = np.array([[0.25, 0.5, 0.25], [1, 0, 0], [0, 0.1, 0.9], [0.3, 0.3, 0.4]])


def example(assignment: Any = HARD, weights: Any = (0.25, 0.25, 0.5)) -> Subdomains:
    texts = NumberedText.of(SOURCE), NumberedText.of(TARGET)
    return Subdomains(*texts, assignment, np.asarray(weights), SETTINGS)


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
    text = NumberedText.of([["once", *sentences[0]], *sentences[1:]])
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
    (tmp_path / "cut.parquet").write_bytes(content[: len(content) // 2])
    (tmp_path / "text").write_text("la maison\n")
    parquet.write_table(table.replace_schema_metadata(None), tmp_path / "bare.parquet")
    parquet.write_table(table.drop_columns(["subdomain"]), tmp_path / "texts.parquet")
    key = next(iter(table.schema.metadata))
    for number, facts in enumerate(
        (
            '{"weights": [1]}',
            "[]",
            "7",
            '{"weights": {}, "settings": 1}',
            f'{{"weights": [1{"0" * 400}], "settings": {{}}}}',
        )
    ):
        changed = table.replace_schema_metadata({key: facts})
        parquet.write_table(changed, tmp_path / f"facts{number}.parquet")
    for name, code in {
        "cut.parquet": "damaged",
        "text": "damaged",
        "bare.parquet": "unknown-format",
        "texts.parquet": "missing-column",
        **{f"facts{number}.parquet": "damaged" for number in range(5)},
    }.items():
        with raises(DataError, code, match=name):
            Subdomains.load(tmp_path / name)
