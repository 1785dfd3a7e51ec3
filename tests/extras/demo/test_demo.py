"""The demos converge, write their files and improve the translations and answers."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from support.command_line import refused, run, succeed
from support.raising import raises

from bpa_ppl import DataError, as_weight_draws, check, read_nbest, read_posterior
from bpa_ppl.extras.demo.demo import Demo, run_demo, write_demo_files

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "examples" / "demo_data"

pytestmark = pytest.mark.filterwarnings("ignore:no canonical weight:bpa_ppl.BpaWarning")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The results of `bpa demo`."""
    results: list[Demo] = []

    def run(*arguments: Any, **options: Any) -> Demo:
        results.append(run_demo(*arguments, **options))
        return results[0]

    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with patch("bpa_ppl.extras.demo.demo.run_demo", run):
        succeed("demo", "-o", folder, "-q")
    return results[0]


def test_posterior_converges_and_is_written(demo: Demo) -> None:
    assert demo.report
    posterior = read_posterior(demo.files[0])
    assert str(check(posterior)) == str(demo.report)
    draws = as_weight_draws(posterior)
    (source,) = draws.adaptation.recipe.sources
    assert (source.source, source.file_hashes) == ("lm", ())
    learned = json.loads(draws.draws.constants["feature_source_0"][0])
    assert len(learned["lines"]) == demo.lines


def test_adaptation_and_in_domain_text_improve_translations(demo: Demo) -> None:
    pairs = [(change.before, change.after) for change in demo.baseline.changes]
    before, adapted = zip(*pairs, strict=True)
    with_text = [change.after for change in demo.scores.changes]
    assert list(before) == [change.before for change in demo.scores.changes]
    assert adapted[0].value < before[0].value - 1
    # Oracles with the lowest TER are short, so the adapted weights prefer short translations.
    assert adapted[1].value > before[1].value - 0.5
    assert with_text[0].value < adapted[0].value - 0.5
    assert with_text[1].value > adapted[1].value + 0.5


def test_files_and_printed_summary(demo: Demo) -> None:
    _, translations = demo.files
    assert translations.read_text("utf-8").splitlines() == demo.result.texts
    assert len(demo.result.texts) == 190
    output = str(demo)
    parts = (demo.report, demo.baseline, demo.scores, *(f"wrote {path}" for path in demo.files))
    assert [str(part) for part in parts if str(part) not in output] == []
    assert output.count("\nsentence ") == 3


def test_rejects_file_as_output_folder(tmp_path: Path) -> None:
    existing = tmp_path / "taken"
    existing.touch()
    with raises(DataError, "cannot-write", match="taken"):
        run_demo(existing)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What `bpa demo --judges` prints, and its folder."""
    folder = tmp_path_factory.mktemp("demo") / "judges"
    return succeed("demo", "--judges", "-o", folder, "-q").out, folder


@pytest.mark.slow
def test_demo_of_judges_prints_what_it_writes(answers: tuple[str, Path]) -> None:
    output, folder = answers
    assert str(check(read_posterior(folder / "posterior.nc"))) in output
    assert f"wrote {folder / 'answers.txt'}" in output
    chosen = (folder / "answers.txt").read_text("utf-8").splitlines()
    lines = list(map(json.loads, (DATA / "answers.new.jsonl").read_text("utf-8").splitlines()))
    texts = [[one["text"] for one in line["candidates"]] for line in lines]
    better = [pair[line["preferences"][0][0]] for pair, line in zip(texts, lines, strict=True)]
    right = sum(text == best for text, best in zip(chosen, better, strict=True))
    by_mean, adapted = map(float, re.findall(r"(?:judges|adapted) ([0-9.]+)%", output))
    assert len(chosen) == 200
    assert right == 2 * adapted
    assert adapted > by_mean + 4
    shown = re.findall(r"^(.*\?)\n  mean of the judges  (.*)\n  adapted  +(.*)$", output, re.M)
    assert len(shown) == 3
    for source, before, after in shown:
        (place,) = (k for k, line in enumerate(lines) if {before, after} == set(texts[k]))
        assert (lines[place]["source"], chosen[place]) == (source, after)


@pytest.mark.slow
def test_demo_trusts_the_judges_that_see_errors(answers: tuple[str, Path]) -> None:
    weights = dict(re.findall(r"^(\w+) +([+-][0-9.]+)  ", answers[0], re.M))
    large, medium, small, friendly, hasty = map(float, weights.values())
    assert list(weights) == ["large", "medium", "small", "friendly", "hasty"]
    assert large > max(medium, small) > abs(hasty)
    assert friendly < -0.2


def rows_of_judges(text: str) -> dict[str, list[float]]:
    """Return the weights and the ends of their intervals in a table of judges."""
    number = r"([+-][0-9.]+)"
    found = re.findall(rf"^(\w+) +{number} +{number} to {number} ", text, re.M)
    return {name: list(map(float, numbers)) for name, *numbers in found}


@pytest.mark.slow
def test_page_shows_what_the_demo_prints(
    answers: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "extras" / "judges.md").read_text("utf-8")
    printed, shown = map(rows_of_judges, (answers[0], page))
    assert len(shown) == 5
    assert printed.keys() == shown.keys()
    for name, numbers in printed.items():  # other processors draw other samples
        np.testing.assert_allclose(numbers, shown[name], atol=0.1)
    monkeypatch.chdir(answers[1])
    code, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code, scope)
    chosen = scope["chosen"]
    assert (chosen.text, chosen.sure) == ("35 days.", True)
    assert chosen.probability == pytest.approx(0.99, abs=0.02)
    new = read_nbest(DATA / "answers.new.jsonl")
    sure = scope["reranker"](new).sure
    better = [entries[0][0] for entries in new.sentence_extras["preferences"]]
    right = scope["reranker"](new).choice == better
    (counts,) = re.findall(r"with (\d+) of the (\d+)\.", " ".join(page.split()))
    assert (right[sure].sum(), sure.sum()) == pytest.approx(list(map(int, counts)), abs=5)


def test_data_of_judges_are_those_of_the_script(tmp_path: Path) -> None:
    script = ROOT / "tools" / "simulate_judges.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["answers.judged.jsonl", "answers.new.jsonl"]
    for name in written:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of the demos, by the command, in a new folder."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "files"
    done = run("demo", "--files", "-o", folder)
    assert done.code == 0
    return [Path(line.removeprefix("wrote ")) for line in done.out.splitlines()]


def test_files_of_the_demos(written: list[Path]) -> None:
    """They have the data, of which the first 50 sentences are to adapt to."""
    folder = written[0].parent
    assert set(written) == set(folder.iterdir())
    pool = read_nbest(DATA / "leaflet.nbest100.gz")
    for name, part in (("adapt", slice(50)), ("test", slice(50, None))):
        lists = read_nbest(folder / f"{name}.nbest.gz")
        np.testing.assert_array_equal(lists.features, pool[part].features)
        assert lists.sentence_ids.tolist() == list(range(len(lists)))
        for kind in ("src", "ref"):
            lines = (DATA / f"leaflet.{kind}").read_text("utf-8").splitlines()
            assert (folder / f"{name}.{kind}").read_text("utf-8").splitlines() == lines[part]
    copies = {name: name for name in ("moses.ini", "schools.py", "schools.json")}
    for name, copied in (copies | {"domain.txt": "leaflet.domain.txt"}).items():
        assert (folder / name).read_bytes() == (DATA / copied).read_bytes()


@pytest.mark.parametrize("name", ["judged", "new"])
def test_table_of_answers(name: str, written: list[Path]) -> None:
    """It has the grades, and 1 for the answers that were preferred."""
    judges = ["large", "medium", "small", "friendly", "hasty"]
    expected = []
    for text in (DATA / f"answers.{name}.jsonl").read_text("utf-8").splitlines():
        line = json.loads(text)
        ((winner, _),) = line["preferences"]
        for place, one in enumerate(line["candidates"]):
            grades = [float(one["features"][judge]) for judge in judges]
            expected.append([str(line["id"]), one["text"], *grades, float(place == winner)])
    with (written[0].parent / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [*judges, "better"]
    assert [[r["id"], r["text"], *(float(r[n]) for n in names)] for r in rows] == expected


def test_files_of_the_demos_replace_no_file(tmp_path: Path) -> None:
    (tmp_path / "moses.ini").write_text("mine")
    with raises(DataError, "cannot-write", match="moses.ini: this file exists"):
        write_demo_files(tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_options_of_both_demos_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused("demo", "--files", "--judges", mention="leave out --judges")
