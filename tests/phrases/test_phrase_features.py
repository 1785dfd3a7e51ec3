"""Sums over segmentations, against sums over dictionaries; and lists that have none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl import DataError, NBest, add_features, from_lists, iter_nbest
from bpa_ppl.features.source import FeatureSource
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.phrases.invariance import Invariance
from bpa_ppl.phrases.mixtures import mix
from bpa_ppl.phrases.phrase_mixture import PhraseMixture
from bpa_ppl.phrases.table_files import read_counts, write_table
from bpa_ppl.phrases.tables import PhraseCounts, PhraseTable

PAIRS = PhraseCounts.of(
    ["le", "chat", "le chat", "noir"], ["the", "cat", "the cat", "black"], [4, 2, 1, 1]
)
DIRECT, INVERSE = np.array([0.5, 0.25, 0.125, 0.8]), np.array([0.1, 0.2, 0.3, 0.4])
TEXTS = [["the black cat", "the cat Zoé", "the cat the cat", ""], ["black zut"]]
SEGMENTATIONS = [["0=0 2=1 1=2", "0-1=0-1 3=2", "0-1=0-1 0-1=2-3", ""], ["0=0 1=1"]]
SOURCES = ["le chat noir Zoé", "noir zut"]


@pytest.fixture
def lists() -> NBest:
    """Lists with segmentations; the words that were copied are in no table."""
    features = [np.zeros((len(texts), 1)) for texts in TEXTS]
    added = from_lists(TEXTS, features, ["LM0"], sources=SOURCES)
    return added.with_extras(segmentation=[text for part in SEGMENTATIONS for text in part])


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file with the probabilities of `PAIRS`."""
    by_text = {t: n for n, t in enumerate(["le", "chat", "le chat", "noir"])}
    order = [by_text[t] for t in PAIRS.texts("source").to_pylist()]
    columns = {"direct": DIRECT[order], "inverse": INVERSE[order]}
    write_table(PhraseTable.from_pairs(PAIRS, columns), tmp_path / "t.parquet")
    return str(tmp_path / "t.parquet")


def sums_by_hand(
    lists: NBest, probabilities: dict[tuple[str, str], float], floor: float
) -> list[float]:
    """Return the sums of logarithms, one candidate at a time."""
    sums = []
    for s in range(len(lists)):
        words = (lists.sources or ())[s].split()
        rows = range(*lists.rows(s).indices(len(lists.features)))
        for row in rows:
            result, target = [], lists.text(row).split()
            for pair in lists.extras["segmentation"][row].split():
                spans = [[int(n) for n in span.split("-")] for span in pair.split("=")]
                sides = [
                    " ".join(side[span[0] : span[-1] + 1])
                    for side, span in zip((words, target), spans, strict=True)
                ]
                result.append(probabilities.get((sides[0], sides[1]), 0.0))
            sums.append(float(np.log(np.maximum(result, floor)).sum()))
    return sums


def test_columns_are_sums_over_the_segmentation(lists: NBest, path: str) -> None:
    added = add_features(lists, PhraseMixture(table=path, floor=1e-3, unseen=True))
    assert added.feature_names[1:] == ("phrases.direct", "phrases.inverse", "phrases.unseen")
    assert added.features[:, 3].tolist() == [0, 1, 0, 0, 1]
    for column, values in ((1, DIRECT), (2, INVERSE)):
        pairs = [("le", "the"), ("chat", "cat"), ("le chat", "the cat"), ("noir", "black")]
        probabilities = dict(zip(pairs, values.tolist(), strict=True))
        sums = sums_by_hand(lists, probabilities, 1e-3)
        np.testing.assert_allclose(added.features[:, column], sums, rtol=1e-6)


def test_a_log_linear_table_has_columns_for_each_of_its_tables(
    lists: NBest, tmp_path: Path
) -> None:
    table, _ = mix(PAIRS, PhraseCounts.of(["noir"], ["black"], [9]), method="log-linear")
    write_table(table, tmp_path / "t.parquet")
    added = add_features(lists, PhraseMixture(table=str(tmp_path / "t.parquet")))
    names = [f"phrases.{side}.{part}" for side in ("direct", "inverse") for part in ("in", "out")]
    assert added.feature_names[1:] == tuple(names)


def test_a_table_of_the_decoder(lists: NBest, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("le ||| the ||| 0.25 0.1 0.5 0.1 ||| 0-0 ||| 4 2 1 ||| |||\n")
    lists = lists[0]
    added = add_features(lists, PhraseMixture(table=str(tmp_path / "t"), floor=0.01))
    assert added.feature_names[1:] == ("phrases.direct", "phrases.inverse")
    np.testing.assert_allclose(added.features[0, 1:], np.log([0.5e-4, 0.25e-4]), rtol=1e-6)


@pytest.mark.parametrize(
    ("segmentation", "code"),
    [
        ("0=0 2=1 1", "bad-line"),
        ("0=0 4=1 1=2", "mismatch"),
        ("0=0 2=1 1=2-3", "mismatch"),
        ("0=0 2=1", "mismatch"),
        ("", "mismatch"),
    ],
)
def test_bad_segmentations(lists: NBest, path: str, segmentation: str, code: str) -> None:
    others = list(lists.extras["segmentation"])[1:]
    with raises(DataError, code, match="candidate 1 of sentence 0: "):
        bad = lists.with_extras(segmentation=[segmentation, *others])
        add_features(bad, PhraseMixture(table=path))
    with raises(DataError, "wrong-type"):
        bad = lists.with_extras(segmentation=np.array([0.0, *others], object))
        add_features(bad, PhraseMixture(table=path))


@pytest.mark.parametrize("source", [PhraseMixture(table="t"), Invariance(subdomains="t")])
def test_missing_inputs(lists: NBest, source: FeatureSource) -> None:
    for need in ("segmentation", "sources"):
        with raises(DataError, f"missing-{need}", parameter=need):
            add_features(lists.without(need), source)
    with raises(DataError, "missing-file", match="t: "):
        add_features(lists, source)


def test_real_segmentations(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "phrases"
    read = iter_nbest(folder / "nbest-seg" / "captions.adapt.nbest.xz")
    lists = next(iter(read))[:2]
    read.close()
    lists = lists.with_sources(read_lines(folder / "corpora/captions.dev.fr.xz")[: len(lists)])
    dev = read_counts(folder / "phrases" / "captions.dev.extract.xz")
    table, _ = mix(dev, dev, method="concatenate")
    write_table(table, tmp_path / "t.parquet")
    pairs = zip(*(table.texts(s).to_pylist() for s in ("source", "target")), strict=True)
    direct = dict(zip(pairs, table.columns["direct"].tolist(), strict=True))
    source = PhraseMixture(table=str(tmp_path / "t.parquet"), direction="direct")
    added = add_features(lists, source)
    sums = sums_by_hand(lists, direct, source.floor)
    np.testing.assert_allclose(added.features[:, -1], sums, rtol=1e-5)


def test_a_table_without_the_columns(lists: NBest, tmp_path: Path) -> None:
    write_table(PhraseTable.from_pairs(PAIRS, {"score": DIRECT}), tmp_path / "t.parquet")
    with raises(DataError, "missing-column", parameter="table"):
        add_features(lists, PhraseMixture(table=str(tmp_path / "t.parquet")))
