"""The README runs as it stands: all its blocks in their order, in one folder, and each alone."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from codeop import CommandCompiler
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sacrebleu.metrics import TER
from scipy.special import log_softmax
from scipy.stats import norm
from support.command_line import run
from support.pages import NUMBER, assert_prints

import bpa_ppl
from bpa_ppl import read_nbest
from bpa_ppl.extending import observe, prepare

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
#: The language and the lines of each block.
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
#: A line of a shell -> the reason why it is not run.
NOT_RUN = dict.fromkeys(
    ["python3 -m venv .venv && . .venv/bin/activate", "pip install --editable ."],
    "the tests run in an installation",
)
#: The blocks that are not what another one prints.
PASTED = [one for one in BLOCKS if one[0] or one[1].startswith(("bpa ", *NOT_RUN))]


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 900


def test_python_can_be_pasted_in_one_go() -> None:
    """Line by line, as in a terminal, where an empty line ends a function."""
    compile_command, waiting = CommandCompiler(), list[str]()
    for line in "".join(of for language, of in BLOCKS if language == "python").splitlines():
        waiting.append(line)
        if compile_command("\n".join(waiting)) is not None:
            waiting = []
    assert waiting == []


def run_line(line: str) -> str:
    """Run a line of a shell, and return what it prints."""
    words = shlex.split(line, comments=True)
    if words[0] == "cd":
        os.chdir(words[1])
        return ""
    assert words[0] == "bpa", f"say in NOT_RUN why this line is not run: {line}"
    if words[1] == "demo":  # imports little, so that the installed command may run it
        command = [Path(sys.executable).with_name("bpa"), *words[1:]]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    code, out, err = run(*words[1:])
    assert code == 0, err
    assert "note: " not in err
    return out + err


@pytest.mark.slow
@pytest.mark.usefixtures("optimised", "without_drawing")
@pytest.mark.needs_extras
def test_all_blocks_run_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "demo")  # as in `python`, in the folder of the files
    scope: dict[str, Any] = {}
    printed: list[str] = []
    for language, content in BLOCKS:
        if language == "python":
            exec(content, scope)
            printed.append(capsys.readouterr().out)
        elif (language, content) in PASTED:
            lines = [line for line in content.splitlines() if line not in NOT_RUN]
            printed.append("".join(map(run_line, lines)))
        else:
            last = printed[-1]
            assert_prints(last[last.index(content.split()[0] + "  ") :], content)
    _, sampled, compared, _, judged, reranked = printed
    assert "converged" in sampled
    new = read_nbest("test.nbest.gz", references="test.ref")
    assert sampled.splitlines()[-1] == bpa_ppl.rerank(new[0], scope["nuts"]).texts[0]
    assert "converged" in compared
    assert "converged" in judged
    answers, judges = scope["new"], scope["judges"]
    p = scope["ranker"].predict_proba(answers[judges], qid=answers["id"])
    right = answers["better"].to_numpy() == 1
    best = answers["text"].to_numpy()[p > 0.5]
    assert (best == np.array(scope["chosen"])).mean() > 0.95
    assert p[right].mean() > 0.75
    (falls,) = re.findall(rf"TER falls from ({NUMBER}) to ({NUMBER})", README)
    canonical = new.chosen(new.best(new.scores(bpa_ppl.read_weights("moses.ini"))))
    chosen = Path("test.out").read_text("utf-8").splitlines()
    for texts, stored in zip((canonical, chosen), map(float, falls), strict=True):
        score = TER().corpus_score(texts, [[one for (one,) in new.references or ()]]).score
        assert score == pytest.approx(stored, abs=0.05 if texts is canonical else 0.3)
    assert re.search(rf"TER +{falls[0]} ", reranked)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="runs lines of a shell")
@pytest.mark.needs_extras
@pytest.mark.parametrize(("language", "content"), PASTED, ids=range(len(PASTED)))
def test_each_block_runs_alone_on_a_new_machine(
    tmp_path: Path, language: str, content: str
) -> None:
    """In a process and an empty home folder of its own, with no warning."""
    pytest.importorskip("bpa_ppl.extras.demo.demo").write_demo_files(tmp_path)
    lines = [line for line in content.splitlines() if line not in NOT_RUN]
    done = subprocess.run(
        [sys.executable, "-"] if language == "python" else ["bash", "-e"],
        cwd=tmp_path,
        env={
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path / "home"),
            "XDG_CACHE_HOME": str(tmp_path / "caches"),
        },
        input="\n".join(lines),
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert not re.search("^note: |warning", done.stderr, re.IGNORECASE | re.MULTILINE), done.stderr


def test_the_model_is_the_published_one() -> None:
    """Its density is that of SciPy, up to a constant."""
    data = ROOT / "examples" / "demo_data"
    lists = read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
    weights = {"LM0": 0.5, "WordPenalty0": -0.2}
    others = [name for name in lists.feature_names if name not in weights]
    lists = lists[:20].truncate(10).without("totals", *others)
    scope: dict[str, Any] = {}
    block = next(content for language, content in BLOCKS if language == "python")
    exec(block.partition("\nlists = ")[0], scope)
    target = bpa_ppl.log_density(lists, weights, model=scope["model"], likelihood="oracle")
    oracle = observe(prepare(lists, weights, likelihood="oracle")).chosen
    canonical = np.array([weights[name] for name in lists.feature_names])
    features = lists.features.reshape(20, 10, 2).astype(np.float64)
    with jax.enable_x64(True):
        differences = [
            norm(canonical, 0.1**0.5).logpdf(z).sum()
            + log_softmax(features @ z, axis=1)[np.arange(20), oracle].sum()
            - float(target(jnp.array(z)))
            for z in np.random.default_rng(0).normal(size=(5, 2))
        ]
    np.testing.assert_allclose(differences, differences[0], atol=1e-4)
