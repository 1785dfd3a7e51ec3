"""Running studies: results compared with the library, resuming, workers, errors, commands."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, TER
from support.command_line import succeed
from support.judged_lists import judged_lists, write_json_lines
from support.raising import raises
from support.registries import RULES, SAMPLERS, Registry
from support.studies import DEVELOPMENT, draw_lists, edit_study, run_rows

import bpa_ppl
from bpa_ppl import DataError, NBest, concatenate
from bpa_ppl.extras.studies import running
from bpa_ppl.extras.studies.page import write_figures
from bpa_ppl.extras.studies.results import read_results
from bpa_ppl.extras.studies.running import read_material, run_study
from bpa_ppl.extras.studies.study import list_cells, read_study
from bpa_ppl.extras.studies.tuning.mira import Mira
from bpa_ppl.extras.studies.tuning.reestimation import reestimate
from bpa_ppl.extras.studies.tuning.tuner import TUNERS


def deterministic_files(folder: Path) -> dict[str, bytes]:
    """Return all result files except those with clock times."""
    kept = [*folder.glob("cells/*"), folder / "results.parquet", folder / "study.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def sacrebleu_scores(lists: NBest, choice: np.ndarray) -> tuple[float, float]:
    """Return TER and BLEU by sacreBLEU."""
    assert lists.references is not None
    texts, references = lists.chosen(choice), [[refs[0] for refs in lists.references]]
    bleu = BLEU(tokenize="none", force=True).corpus_score(texts, references)
    return TER().corpus_score(texts, references).score, bleu.score


def test_scores_agree_with_library_and_sacrebleu(study_file: Path, finished: Path) -> None:
    study = read_study(study_file)
    results, seconds = read_results(finished)
    rows = {(r["method"], r["setting"], r["size"], r["draw"]): r for r in results.to_pylist()}
    assert len(rows) == len(list_cells(study))
    verdicts = {(row["method"], row["verdict"]) for row in rows.values()}
    assert {("canonical", ""), ("mira", ""), ("map", "passed")} < verdicts
    assert all((row["verdict"] == "failed") == bool(row["failed"]) for row in rows.values())
    stages = {(row["method"], row["stage"]) for row in seconds.to_pylist()}
    assert {("map", "adapt"), ("map", "rerank"), ("mira", "tune")} < stages
    lists, drawn, seed = draw_lists(study, draw=1)
    options = {"sampler": "map", "prior": "isotropic:variance=1", "seed": seed}
    tuned = reestimate(drawn, lists.weights, tuner="mira", seed=seed).weights
    chosen = {
        ("canonical", ""): lists.test.best(lists.test.scores(lists.weights.values_array)),
        ("map", "variance=1"): bpa_ppl.rerank(
            lists.test, bpa_ppl.adapt(drawn, lists.weights, **options)
        ).choice,
        ("mira", ""): lists.test.best(lists.test.scores(tuned.values_array)),
    }
    for (method, setting), choice in chosen.items():
        row, scores = rows[method, setting, 4, 1], sacrebleu_scores(lists.test, choice)
        assert (row["ter"], row["bleu"]) == pytest.approx(scores), method


def test_methods_that_learn_from_the_development_lists(quick_study: Path) -> None:
    """Of A ∪ D, against the library on the concatenated lists, and of D alone."""
    both = f'[variants.both]\nlike = "map"\ndevelopment = true\n{DEVELOPMENT}'
    study = edit_study(
        quick_study,
        ('"mira"', '"mira", "mert+", "both", "weight-trace"'),
        ("draws = 3", "draws = 1"),
        ("[4, 8]", "[4]"),
        ("[variants", f"{both}[variants"),
    )
    folder = quick_study.parent
    rows = {row["method"]: row for row in run_rows(study, folder / "results")}
    assert rows["weight-trace"]["verdict"] in ("passed", "failed")
    assert rows["weight-trace"]["ter"] != rows["canonical"]["ter"]
    lists, drawn, seed = draw_lists(study)
    other = bpa_ppl.read_nbest(folder / "nbest", references=[folder / "ref"])
    joined = concatenate([drawn, other], renumber=True)
    tuned = reestimate(joined, lists.weights, seed=seed).weights
    posterior = bpa_ppl.adapt(joined, lists.weights, sampler="map", seed=seed)
    chosen = {
        "mert+": lists.test.best(lists.test.scores(tuned)),
        "both": bpa_ppl.rerank(lists.test, posterior).choice,
    }
    for method, choice in chosen.items():
        scores = rows[method]["ter"], rows[method]["bleu"]
        assert scores == pytest.approx(sacrebleu_scores(lists.test, choice)), method


def test_development_lists_that_do_not_fit(quick_study: Path) -> None:
    with raises(DataError, "no-data", match=r"add \[development\]"):
        edit_study(quick_study, ('"mira"', '"mira", "mert+"'))
    lines = (quick_study.parent / "nbest").read_text("utf-8")
    (quick_study.parent / "others").write_text(lines.replace("Distortion0", "Other0"), "utf-8")
    others = DEVELOPMENT.replace('nbest"', 'others"')
    study = edit_study(quick_study, ("[variants", f"{others}[variants"))
    with raises(DataError, "mismatch", match="Distortion0"):
        run_study(study, quick_study.parent / "results")


def test_finished_cells_are_not_repeated(study_file: Path, finished: Path) -> None:
    before = deterministic_files(finished)
    removed = sorted((finished / "cells").iterdir())[::3]
    for path in removed:
        path.unlink()
    kept = {path: path.stat().st_mtime_ns for path in (finished / "cells").iterdir()}
    steps: list[tuple[int, int]] = []
    leftover = finished / "cells" / ".bpa-0123456789abcdef.json"  # of a killed process
    leftover.write_text('{"half')
    study = read_study(study_file)
    run_study(study, finished, progress=lambda done, total, note: steps.append((done, total)))
    total = len(before) - 2
    assert steps == [(n, total) for n in range(total - len(removed), total + 1)]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    leftover.unlink()
    assert deterministic_files(finished) == before


class OwnMode(SAMPLERS["map"], frozen=True):
    """A sampler of another package."""


class OwnMira(Mira, frozen=True):
    """A tuner of another package."""


class OwnViterbi(RULES["viterbi"], frozen=True):
    """A decision rule of another package."""


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_registered_methods_run(quick_study: Path, registries: list[Registry], jobs: int) -> None:
    SAMPLERS.register("own-mode", OwnMode)
    TUNERS.register("own-mira", OwnMira)
    RULES.register("own-rule", OwnViterbi)
    rule = '[variants.{}]\nlike = "{}"\nrule = "{}"\n'
    rules = rule.format("by-rule", "map", "viterbi") + rule.format("by-own", "own-mode", "own-rule")
    methods = ('"mira"', '"mira", "own-mira", "map", "own-mode", "by-rule", "by-own"')
    study = edit_study(quick_study, methods, ("= 3", "= 1"), ("[variants", f"{rules}[variants"))
    folder = quick_study.parent / "results"
    rows = read_results(run_study(study, folder, jobs=jobs).parent)[0].to_pylist()
    counts = {(row["method"], row["size"], row["draw"]): row["ter_counts"] for row in rows}
    pairs = {"mira": "own-mira", "map": "own-mode", "by-rule": "by-own"}
    assert counts["map", 4, 0] != counts["canonical", 4, 0]
    for (method, size, draw), values in counts.items():
        assert values == counts[pairs.get(method, method), size, draw]


@pytest.mark.slow
def test_result_does_not_depend_on_workers(quick_study: Path) -> None:
    study, folder = read_study(quick_study), quick_study.parent
    run_study(study, folder / "one")
    run_study(study, folder / "two", jobs=2)
    assert deterministic_files(folder / "one") == deterministic_files(folder / "two")


def test_rejects_folder_of_another_study(study_file: Path, finished: Path) -> None:
    before, text = deterministic_files(finished), study_file.read_text("utf-8")
    for old, new in (("seed = 5", "seed = 6"), ("draws = 3", "draws = 4")):
        study_file.write_text(text.replace(old, new), "utf-8")
        with raises(DataError, "mismatch", match=f"with other {old.split()[0]}:"):
            run_study(read_study(study_file), finished)
    assert deterministic_files(finished) == before
    study_file.write_text(text, "utf-8")
    references = study_file.parent / "ref"
    references.write_text(references.read_text("utf-8").replace("the", "a", 1), "utf-8")
    with raises(DataError, "mismatch", match="with other domains:"):
        run_study(read_study(study_file), finished)


@pytest.mark.parametrize("error", [DataError("a list is empty"), KeyboardInterrupt()])
def test_a_study_that_fails_before_its_first_result_leaves_nothing(
    quick_study: Path, error: BaseException
) -> None:
    study, folder = read_study(quick_study), quick_study.parent / "new" / "results"
    with patch.object(running, "run_cell", side_effect=error):
        with pytest.raises(type(error)):
            run_study(study, folder)
        assert not folder.parent.exists()
        folder.mkdir(parents=True)
        with pytest.raises(type(error)):
            run_study(study, folder)
    assert list(folder.iterdir()) == []


def test_rejects_damaged_and_missing_results(study_file: Path, finished: Path) -> None:
    damaged = next(iter(sorted((finished / "cells").iterdir())))
    damaged.write_bytes(damaged.read_bytes()[:20])
    study = read_study(study_file)
    with raises(DataError, "damaged"):
        run_study(study, finished)
    with raises(DataError, "cannot-write"):
        run_study(study, study_file.parent)
    with raises(DataError, "missing-file"):
        read_results(study_file.parent)
    (study_file.parent / "results.parquet").write_bytes(b"PAR1")
    with raises(DataError, "damaged"):
        read_results(study_file.parent)


@pytest.mark.usefixtures("without_drawing")
def test_study_figures_and_page(quick_study: Path) -> None:
    folder = quick_study.parent / "results"
    done = succeed("experiment", quick_study, "-o", folder)
    assert f"wrote {folder / 'results.parquet'}: run `bpa figures " in done.err
    assert succeed("figures", folder, "--kind", "none", "-q") == (0, "", "")
    assert (folder / "index.html").is_file()


#: Lists with a column as metric, categories, no references and no weights.
COLUMNS = """
sizes = [10]
draws = 1
methods = ["canonical", "judged", "mert-judged"]
columns = ["comet"]
categorical = ["system"]

[domains.neural]
weights = "none"
adapt = "lists.jsonl"
features = ["logprob"]
held_out = 20

[variants.judged]
like = "map"
gain = "comet"

[variants.mert-judged]
like = "mert"
gain = "comet"
restarts = 1
"""


@pytest.fixture
def study_of_columns(tmp_path: Path) -> Path:
    write_json_lines(judged_lists(40), tmp_path / "lists.jsonl")
    (tmp_path / "study.toml").write_text(COLUMNS)
    return tmp_path / "study.toml"


@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
def test_study_reports_and_plots_the_column(study_of_columns: Path) -> None:
    folder = study_of_columns.parent / "results"
    rows = run_rows(read_study(study_of_columns), folder)
    assert [name for name in rows[0] if name.endswith("_counts")] == ["comet_counts"]
    means = {row["method"]: row["comet"] for row in rows}
    assert means["judged"] > means["canonical"] + 0.3
    page = next(path for path in write_figures(folder, kind="none") if path.suffix == ".html")
    assert "COMET against" in page.read_text("utf-8")


def test_features_of_a_domain_are_named(study_of_columns: Path) -> None:
    study = read_study(study_of_columns)
    assert read_material(study, study.domains[0]).test.feature_names == ("logprob",)
    study_of_columns.write_text(COLUMNS.replace('["logprob"]', '["logprop"]'))
    with raises(
        DataError,
        "missing-column",
        parameter="features",
        match="no column logprop .did you mean logprob",
    ):
        run_study(read_study(study_of_columns), study_of_columns.parent / "results")


@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('gain = "comet"', 'gain = "bleurt"', "unknown-name"),
        ('"judged"', '"map"', "missing-references"),
        ('columns = ["comet"]', 'columns = ["ter"]', "duplicate"),
        ('columns = ["comet"]', 'columns = ["a.b"]', "wrong-type"),
    ],
)
def test_rejects_invalid_settings(study_of_columns: Path, old: str, new: str, code: str) -> None:
    study_of_columns.write_text(COLUMNS.replace(old, new, 1))
    with raises(DataError, code):
        read_study(study_of_columns)
