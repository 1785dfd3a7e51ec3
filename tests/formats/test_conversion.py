"""Real lists converted to each format and back: the same table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from table_content import table_content

from bpa_ppl import NBest, iter_nbest, read_nbest, write_nbest
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.formats.plain import Plain

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/demo_data"
WHOLE = {
    "jsonl": Jsonl(),
    "long": Jsonl(long=True),
    "tsv": "tsv",
    "csv": "csv",
    "parquet": "parquet",
}


@pytest.fixture(scope="module")
def leaflet() -> NBest:
    """Lists that are in the repository, with all that is known of them."""
    whole = read_nbest(
        EXAMPLES / "leaflet.nbest100.gz",
        references=EXAMPLES / "leaflet.ref",
        sources=EXAMPLES / "leaflet.src",
    )
    nbest = whole[:80]
    systems = tuple(f"by {h % 3}" for h in range(len(nbest.features)))
    topics = tuple(f"topic {s // 10}" for s in range(len(nbest)))
    return nbest.with_extras(system=systems).with_sentence_extras(topic=topics)


def converted(name: str, nbest: NBest, folder: Path) -> tuple[Path, str | NBestFormat]:
    """Write lists in a format, and return how they are read."""
    path = folder / f"lists.{name}"
    if name == "plain":
        plain = Plain(list_size=100, scores=(str(folder / "scores.txt"),))
        write_nbest(nbest, path, format=plain)
        return path, plain
    write_nbest(nbest, path, format=WHOLE.get(name, "moses"))
    return path, "auto"


@pytest.mark.parametrize("name", WHOLE)
def test_the_table_is_the_same_to_the_bit(leaflet: NBest, tmp_path: Path, name: str) -> None:
    path, _ = converted(name, leaflet, tmp_path)
    assert table_content(read_nbest(path)) == table_content(leaflet)
    streamed = NBest.concatenate(iter_nbest(path, chunk=7))
    assert table_content(streamed) == table_content(leaflet)


def test_plain_text_keeps_texts_and_scores(leaflet: NBest, tmp_path: Path) -> None:
    path, plain = converted("plain", leaflet, tmp_path)
    again = read_nbest(path, format=plain, references=leaflet.references, sources=leaflet.sources)
    assert table_content(again) == table_content(leaflet.without("totals", "system", "topic"))


def test_a_data_frame_and_records(leaflet: NBest) -> None:
    frame = leaflet.to_dataframe()
    assert table_content(NBest.from_dataframe(frame)) == table_content(leaflet)
    some = leaflet[:20]
    records = some.to_dataframe().rename(columns={"reference": "references"}).to_dict("records")
    assert table_content(NBest.from_records(records)) == table_content(some)


@pytest.mark.parametrize("name", ["authored/office", "medical/adapt"])
@pytest.mark.slow
def test_all_the_real_lists(shared_data: Path, tmp_path: Path, name: str) -> None:
    file = f"{name}.nbest{'500' if 'office' in name else ''}.gz"
    nbest = read_nbest(shared_data / file, references=shared_data / f"{name}.ref")
    for kind in WHOLE:
        path, _ = converted(kind, nbest, tmp_path)
        assert table_content(read_nbest(path)) == table_content(nbest), kind
        path.unlink()
    assert np.unique(nbest.sizes).tolist() == [500]
