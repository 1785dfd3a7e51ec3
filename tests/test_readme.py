"""Run the examples of the README and of the first page of the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from judged_lists import judged_lists, write_json_lines

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
SECTION = README.split("### Candidates of neural systems and of LLMs")[1].split("\n### ")[0]


@pytest.fixture
def example_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    write_json_lines(judged_lists(40), Path("judged.jsonl"))
    write_json_lines(judged_lists(30, seed=2).without_features("comet"), Path("new.jsonl"))
    return {}


def test_example_of_the_first_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "index.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, {})
    printed = capsys.readouterr().out
    assert "converged" in printed
    (ter,) = re.findall(r"TER (\d+\.\d+)", printed)
    assert float(ter) == pytest.approx(55.2, abs=0.3)


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_python_example_for_neural_systems(
    example_scope: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    assert len(code.strip().splitlines()) <= 6
    exec(code, example_scope)
    assert "converged" in capsys.readouterr().out
    chosen = [text.split()[1] for text in example_scope["chosen"]]
    assert len(chosen) == 30
    assert chosen.count("eve") > 20
    assert "comet" not in example_scope["posterior"]["posterior"]["feature"].values


def test_command_for_neural_systems(example_scope: dict[str, Any]) -> None:
    from bpa_ppl import read_posterior
    from bpa_ppl.cli.app import app

    (line,) = re.findall(r"`bpa (adapt judged\.jsonl .*?)`", SECTION)
    app([*line.split(), "-q"], standalone_mode=False)
    assert read_posterior("posterior.nc").attrs["oracle_metric"] == "comet"
