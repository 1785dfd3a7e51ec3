"""The scripts in examples/ run in any folder and print the documented results."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from bpa_ppl import check, read_posterior
from bpa_ppl.posterior import import_arviz

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(autouse=True)
def empty_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty folder with a new cache."""
    import_arviz()  # ArviZ may issue a notice on import
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("BPA_PPL_CACHE", str(tmp_path / "cache"))


def run_example(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run an example as a program, in this process because importing JAX is slow."""
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def written_files() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def test_every_example_has_a_test() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in EXAMPLES.glob("*.py")} < tested


@pytest.mark.slow
def test_compare_samplers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_example("compare_samplers.py", monkeypatch)
    output = capsys.readouterr().out
    verdicts = re.findall(r"^(imh|rwm|heuristic) +(\w+)", output, flags=re.MULTILINE)
    assert verdicts == [("imh", "agrees"), ("rwm", "agrees"), ("heuristic", "DIFFERS")]
    assert {f"wrote {name}" for name in written_files()} <= set(output.splitlines())
    assert {"index.html", "comparison.json"} <= set(written_files())


@pytest.mark.usefixtures("without_drawing")
def test_inspect_posterior(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_example("inspect_posterior.py", monkeypatch)
    assert written_files() == ["posterior.nc", "report.html"]
    assert capsys.readouterr().out.startswith(str(check(read_posterior("posterior.nc"))))
    assert "Converged" in Path("report.html").read_text("utf-8")


def test_predictive_decoding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_example("predictive_decoding.py", monkeypatch)
    output = capsys.readouterr().out
    changes = re.findall(r"TER .* ([+-][\d.]+)$", output, re.MULTILINE)
    assert [float(change) < 0 for change in changes] == [True] * 3
    assert output.splitlines()[-1].startswith("  reference  ")
    assert written_files() == []
