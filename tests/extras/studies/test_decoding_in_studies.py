"""Studies with an outside decoder: tuners in a loop with it, and test sentences decoded again."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import raises
from support.small_demo import write_small_demo
from support.studies import DEVELOPMENT, draw_lists, edit_study

import bpa_ppl
from bpa_ppl import DataError, NBest, UsageError, Weights, concatenate, corpus_score
from bpa_ppl.extras.studies.results import read_results
from bpa_ppl.extras.studies.running import run_study
from bpa_ppl.extras.studies.study import Study, read_study
from bpa_ppl.extras.studies.tuning.redecoding import redecode

SCRIPT = Path(__file__).parents[2] / "support" / "source_decoder.py"
SENTENCES, CANDIDATES = 16, 5
STUDY = """
sizes = [4]
draws = 1
methods = ["canonical", "mert-loop", "map-again"]

[domains.leaflet]
weights = "moses.ini"
adapt = "nbest"
adapt_references = ["ref"]
adapt_sources = "src"
held_out = 6

[decoder]
command = "COMMAND"
template = "moses.ini"
iterations = 3

[variants.mert-loop]
like = "mert"
gain = "ter"
restarts = 2
redecode = true
decode_test = true

[variants.map-again]
like = "map"
variance = 0.5
decode_test = true
"""
# The loop may reach its limit.
pytestmark = pytest.mark.filterwarnings("ignore:stopped after:bpa_ppl.errors.BpaWarning")


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    """A study whose decoder chooses from a table with longer lists."""
    folder = tmp_path / "study"
    folder.mkdir()
    write_small_demo(folder, SENTENCES, candidates=30)
    shutil.copy(folder / "nbest", folder / "table")
    write_small_demo(folder, SENTENCES, CANDIDATES)
    sources = files("bpa_ppl.demo_data").joinpath("leaflet.src").read_text("utf-8")
    (folder / "src").write_text("".join(sources.splitlines(keepends=True)[:SENTENCES]), "utf-8")
    start = shlex.join([sys.executable, str(SCRIPT), "table", "src"])
    command = f"{start} {{weights}} {{sources}} {{nbest}} {CANDIDATES} && cp {{sources}} decoded"
    (folder / "study.toml").write_text(STUDY.replace("COMMAND", command), "utf-8")
    return folder / "study.toml"


def tune_again(study: Study, lists: NBest, sources: Any, weights: Any, seed: int) -> Weights:
    """Return the weights of `mert-loop` by the library, of lists of which some are decoded."""
    assert study.decoder is not None
    options: dict[str, Any] = {"tuner": "mert", "restarts": 2, "gain": "ter", "iterations": 3}
    decode = study.decoder.function(sources)
    return redecode(lists, weights, decode, seed=seed, **options).weights


def test_a_tuner_decodes_in_a_loop_and_the_test_sentences_are_decoded(study_file: Path) -> None:
    study, folder = read_study(study_file), study_file.parent
    results, seconds = read_results(run_study(study, folder / "results").parent)
    rows = {row["method"]: row for row in results.to_pylist()}
    data, drawn, seed = draw_lists(study)
    numbered = replace(drawn, sentence_ids=np.arange(4))
    tuned = tune_again(study, numbered, drawn.sources, data.weights, seed)
    assert tuned != data.weights
    options = {"sampler": "map", "prior": "isotropic:variance=0.5"}
    adapted = bpa_ppl.point_weights(bpa_ppl.adapt(drawn, data.weights, **options))
    assert study.decoder is not None
    for name, weights in {"mert-loop": tuned, "map-again": adapted}.items():
        again = study.decoder.function(data.test.sources)(weights)
        texts = again.chosen(np.zeros(len(again), int))  # the decoder's first-best
        for metric in ("ter", "bleu"):
            expected = corpus_score(texts, data.test.references or (), metric).value
            assert rows[name][metric] == pytest.approx(expected), (name, metric)
    spent = {(row["method"], row["stage"]): row["seconds"] for row in seconds.to_pylist()}
    stages = {stage for method, stage in spent if method == "mert-loop"}
    assert stages == {"tune", "decode", "decode test", "rerank"}
    assert min(spent["mert-loop", "decode"], spent["mert-loop", "tune"]) > 0
    assert not {("map-again", "decode"), ("canonical", "decode test")} & spent.keys()


def test_the_development_lists_are_kept_and_never_decoded(study_file: Path) -> None:
    study = edit_study(
        study_file,
        ("[variants.mert-loop]", f"{DEVELOPMENT}[variants.mert-loop]"),
        ('like = "mert"', 'like = "mert+"'),
        (', "map-again"', ""),
        ("decode_test = true", "decode_test = false"),
    )
    folder = study_file.parent
    results, _ = read_results(run_study(study, folder / "results").parent)
    rows = {row["method"]: row for row in results.to_pylist()}
    data, drawn, seed = draw_lists(study)
    decoded = (folder / "decoded").read_text("utf-8").splitlines()
    assert sorted(decoded) == sorted(set(drawn.sources or ()))
    other = bpa_ppl.read_nbest(folder / "nbest", references=[folder / "ref"])
    both = concatenate([replace(drawn, sources=None), other], renumber=True)
    tuned = tune_again(study, both, drawn.sources, data.weights, seed)
    chosen = data.test.best(data.test.scores(tuned))
    expected = corpus_score(data.test.chosen(chosen), data.test.references or (), "ter").value
    assert rows["mert-loop"]["ter"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("{nbest}", "nbest", "missing-argument"),
        ('like = "map"', 'like = "map"\nredecode = true', "not-supported"),
        ('like = "map"', 'like = "canonical"', "not-supported"),
    ],
)
def test_mistakes_in_the_file(study_file: Path, old: str, new: str, code: str) -> None:
    with raises(DataError, code):
        edit_study(study_file, (old, new))


def test_a_sentence_to_be_decoded_needs_a_source(study_file: Path) -> None:
    study = edit_study(study_file, ('adapt_sources = "src"\n', ""))
    with raises(UsageError, "missing-argument", parameter="sources"):
        run_study(study, study_file.parent / "results")
