"""Run the examples of the README and of the first page of the site."""

from __future__ import annotations

import json
import re
import warnings
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpa_ppl import BpaWarning

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
SECTION = README.split("### Candidates of neural systems and of LLMs")[1].split("\n### ")[0]
SYSTEMS = {"A": 0.8, "B": 0.7, "C": 0.6}


def candidate_line(number: int, *, judged: bool) -> str:
    """Return nine candidates of three systems; A is best, and its log-probability is noisy."""
    rng = np.random.default_rng(number)
    candidates = []
    for system, mean in SYSTEMS.items():
        for rank in range(3):
            gain = float(rng.normal(mean, 0.05))
            candidate = {"text": f"{number} {system} {rank}", "system": system}
            scores = {"logprob": 20 * gain + float(rng.normal()), "comet": gain}
            candidates.append(candidate | (scores if judged else {"logprob": scores["logprob"]}))
    return json.dumps({"id": number, "source": f"quelle {number}", "candidates": candidates})


@pytest.fixture
def example_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    Path("judged.jsonl").write_text(
        "".join(f"{candidate_line(i, judged=True)}\n" for i in range(40))
    )
    Path("new.jsonl").write_text(
        "".join(f"{candidate_line(i, judged=False)}\n" for i in range(40, 70))
    )
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
    assert chosen.count("A") > 20
    assert "comet" not in example_scope["posterior"]["posterior"]["feature"].values


def test_command_for_neural_systems(example_scope: dict[str, Any]) -> None:
    from bpa_ppl import read_posterior
    from bpa_ppl.cli.app import app

    (line,) = re.findall(r"`bpa (adapt judged\.jsonl .*?)`", SECTION)
    app([*line.split(), "-q"], standalone_mode=False)
    assert read_posterior("posterior.nc").attrs["oracle_metric"] == "comet"


def test_commands_for_in_domain_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bpa_ppl import NBest, read_nbest, write_nbest
    from bpa_ppl.cli.app import app

    monkeypatch.chdir(tmp_path)
    with as_file(files("bpa_ppl.demo_data")) as data:
        lists = read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
        for name in ("moses.ini", "leaflet.domain.txt"):
            Path(name.removeprefix("leaflet.")).write_text((data / name).read_text("utf-8"))
    write_nbest(lists[:30].truncate(20), "adapt.nbest")
    rest = NBest.concatenate([lists[30:60].truncate(20)], renumber=True)
    write_nbest(rest, "test.nbest")
    Path("adapt.ref").write_text("".join(f"{refs[0]}\n" for refs in lists[:30].references))
    section = README.split("### Text of the new domain")[1].split("\n### ")[0]
    commands = re.findall(r"^bpa (.*)$", section.split("```bash")[1].split("```")[0], re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BpaWarning)
            app(command.split(), standalone_mode=False)
    assert "converged" in capsys.readouterr().out
    assert len(Path("test.out").read_text("utf-8").splitlines()) == 30
