"""Python in pages, notebooks and examples/ runs and prints what it should."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from support.command_line import run_command
from support.pages import NUMBER, assert_prints
from support.posteriors import name_weights

import bpa_ppl
from bpa_ppl import Reranker, check, read_posterior, write_posterior

ROOT = Path(__file__).resolve().parent.parent
#: Each has a how-to page of the same name, with the same code.
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
HOOK = runpy.run_path(str(ROOT / "docs" / "hooks" / "notebooks.py"))

pytestmark = pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
write_demo_files = pytest.importorskip("bpa_ppl.extras.demo.demo").write_demo_files


@pytest.fixture(autouse=True)
def empty_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty folder with a new cache."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("BPA_PPL_CACHE", str(tmp_path / "cache"))


def code_of(page: str) -> list[str]:
    """Return the blocks of Python in a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def ter_in(printed: str) -> list[float]:
    return [float(number) for number in re.findall(r"TER\D*?(\d+\.\d+)", printed)]


def test_first_page(capsys: pytest.CaptureFixture[str]) -> None:
    write_demo_files(Path())
    (code,) = code_of("docs/index.md")
    exec(code, {})
    printed = capsys.readouterr().out
    assert "converged" in printed
    assert ter_in(printed) == pytest.approx([55.2], abs=0.3)


# Of ArviZ 0.23 with matplotlib 3.11.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Passing a dict or None as alias_mapping")
@pytest.mark.parametrize("sampler", ["laplace", "auto"])
def test_tutorial(
    sampler: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_demo_files(Path())
    monkeypatch.setattr(bpa_ppl, "adapt", partial(bpa_ppl.adapt, sampler=sampler))
    exec("".join(code_of("docs/tutorial.md")), {})
    printed = capsys.readouterr().out
    assert "keep this package insert to reach of the person" in printed
    before, *_, with_text = ter_in(printed)
    assert before == pytest.approx(57.55, abs=0.005)
    assert with_text == pytest.approx(54.2, abs=0.3 if sampler == "auto" else 0.8)
    assert Path("adapted.json").exists()


def run_example(name: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Run an example, in this process because importing JAX is slow, and return what it writes."""
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    return {path.name for path in Path().iterdir()}


# Of ArviZ 0.23 with matplotlib 3.11.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Passing a dict or None as alias_mapping")
def test_draws_of_other_programs(capsys: pytest.CaptureFixture[str]) -> None:
    for path in (ROOT / "tests" / "posterior" / "files").iterdir():
        Path(path.name).write_bytes(path.read_bytes())
    scope: dict[str, Any] = {}
    exec("".join(code_of("docs/how-to/other-programs.md")), scope)
    printed = capsys.readouterr().out
    verdicts = re.findall(r"^(\S+) +(agrees|DIFFERS|inconclusive)", printed, re.MULTILINE)
    assert verdicts == [(name, "agrees") for name in ("output_*.csv", "pymc", "stan")]
    assert printed.count(": converged") == 2
    assert Path("trace.png").exists()
    assert printed.endswith("('judge_a', 'judge_b')\n")
    weights = scope["weights"]["weights"].transpose("chain", "draw", "feature")
    np.testing.assert_array_equal(weights, scope["draws"])


@pytest.mark.slow
def test_any_program_is_sampled(capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = {}
    exec("".join(code_of("docs/how-to/sample.md")), scope)
    printed = capsys.readouterr().out
    assert printed.count(": converged") == 2
    assert "theta[C]" in printed
    assert "(4, 1000, 8)" in printed
    assert "3 values of y_unobserved" in printed
    assert re.findall(r"^a +(\w+)", printed, re.MULTILINE) in (["agrees"], ["inconclusive"])
    source = "".join(code_of("docs/how-to/sample.md"))
    body = source.partition("class Walk")[2].partition("walk = ")[0]
    assert len([line for line in body.splitlines() if line.strip()]) <= 15
    exec(f"class Walk{body}".replace("100_000", "1_000"), scope)
    runs: list[Any] = []

    def counted(*arguments: Any) -> None:
        runs.append(arguments)
        scope["schools"](*arguments)

    def count_runs(replications: int) -> int:
        runs.clear()
        data, samplers = (scope["error"], scope["effect"]), [scope["Walk"]()]
        bpa_ppl.calibrate(counted, data, samplers=samplers, replications=replications)
        return len(runs)

    # Further data sets compile nothing.
    assert count_runs(20) == count_runs(25)


@pytest.mark.slow
def test_is_my_sampler_right(capsys: pytest.CaptureFixture[str]) -> None:
    page = "docs/how-to/is-my-sampler-right.md"
    text = (ROOT / page).read_text("utf-8")
    scope: dict[str, Any] = {}
    with jax.numpy_rank_promotion("allow"):  # guides of NumPyro promote ranks
        exec("".join(code_of(page)), scope)
    (of_model, of_draws) = re.findall(r"^bpa (.*)$", text, re.MULTILINE)
    run_command(of_draws.split())
    printed = capsys.readouterr().out
    assert_prints(printed, re.findall(r"```\n(sampler .*?)```", text, re.DOTALL)[0])
    verdicts = re.findall(r"^(\S+) +(agrees|DIFFERS)", printed, re.MULTILINE)
    expected = [("rwm", "agrees"), ("nuts:target_accept=0.99", "agrees"), ("nuts", "agrees")]
    expected += [("variational", "DIFFERS"), ("nuts.nc", "agrees")]
    assert verdicts == expected
    assert "--model schools:model --data schools.json" in of_model
    assert Path("comparison/index.html").is_file()


@pytest.mark.slow
def test_compare_samplers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = run_example("compare_samplers.py", monkeypatch)
    output = capsys.readouterr().out
    verdicts = re.findall(r"^(imh|rwm|heuristic) +(\w+)", output, flags=re.MULTILINE)
    assert verdicts == [("imh", "agrees"), ("rwm", "agrees"), ("heuristic", "DIFFERS")]
    assert {f"wrote {name}" for name in written} <= set(output.splitlines())
    assert {"index.html", "comparison.json"} <= written


@pytest.mark.slow
@pytest.mark.usefixtures("without_drawing")
def test_inspect_posterior(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_example("inspect_posterior.py", monkeypatch) == {"posterior.nc", "report.html"}
    assert capsys.readouterr().out.startswith(str(check(read_posterior("posterior.nc"))))
    assert "Converged" in Path("report.html").read_text("utf-8")


@pytest.mark.slow
def test_predictive_decoding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_example("predictive_decoding.py", monkeypatch) == set()
    output = capsys.readouterr().out
    assert len(re.findall(r"^TER .* −[\d.]+$", output, re.MULTILINE)) == 3
    assert output.splitlines()[-1].startswith("  reference  ")


#: Bodies that the service refuses, with a part of its sentence.
GOOD = '"texts": ["a", "b"], "features": {"lm": [0, 2], "tm": [1, 0]}'
REFUSED = {
    "{": "not valid JSON",
    "[" * 10_000: "not valid JSON",
    "9" * 5_000: "not valid JSON",
    "[]": "an object with texts and features",
    '{"texts": ["a", "b"]}': "an object with texts and features",
    f'{{{GOOD}, "rule": "mbr"}}': "'rule' is none of the fields texts, features, source, domain",
    f'{{{GOOD}, "self": 1}}': "'self' is none of the fields",
    f"{{{GOOD}}}".replace('"a", "b"', ""): "at least one text",
    f"{{{GOOD}}}".replace('"b"', "3"): "texts must be one text",
    f"{{{GOOD}}}".replace('"tm"', '"TM"'): "no tm, which the posterior needs",
    f"{{{GOOD}}}".replace("[0, 2]", "[0]"): "'lm' has 1 score, but there are 2 texts",
    f"{{{GOOD}}}".replace("[0, 2]", '["x", "y"]'): "'lm' must be a list of numbers",
    f"{{{GOOD}}}".replace("[0, 2]", "[0, NaN]"): "lm of candidate 1 is nan",
    f"{{{GOOD}}}".replace("[0, 2]", "[0, 1e99]"): "lm of candidate 1 is 1e+99",
}


def test_serve(tmp_path: Path) -> None:
    """The page shows its code, and it refuses bad requests by one sentence."""
    source = (ROOT / "examples" / "serve.py").read_text("utf-8")
    assert source.rpartition('"""\n\nimport')[2] in "".join(code_of("docs/how-to/embed.md"))
    assert len(source.splitlines()) <= 60
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    pytest.importorskip("uvicorn", reason="the extra `judge` is not installed")
    weights = np.random.default_rng(0).normal([1.0, -0.5], 0.1, size=(4, 500, 2))
    posterior = name_weights(weights, ("lm", "tm"))
    write_posterior(posterior, tmp_path / "p.nc")
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(ROOT / "examples"), "serve:app"]
    with subprocess.Popen(
        [*command, "--port", "0"],
        env={**os.environ, "POSTERIOR": str(tmp_path / "p.nc")},
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            assert process.stderr is not None
            started = next(line for line in process.stderr if "running on" in line)
            with httpx.Client(base_url=started.partition(" on ")[2].split()[0]) as client:
                assert client.get("/model").json() == {"features": ["lm", "tm"], "needs": []}
                answer = client.post("/choose", content=f"{{{GOOD}}}")
                chosen = Reranker(posterior).choose(["a", "b"], {"lm": [0, 2], "tm": [1, 0]})
                assert (answer.status_code, answer.json()) == (200, chosen._asdict())
                for body, part in REFUSED.items():
                    answer = client.post("/choose", content=body)
                    assert answer.status_code in (400, 422)
                    assert part in answer.json()["error"]
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter", "ignore::DeprecationWarning")
@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("name", ["llm-tutorial", "neural-lists", "own-model"])
def test_notebook_reproduces_its_outputs(name: str) -> None:
    path = ROOT / "docs" / "notebooks" / f"{name}.ipynb"
    cells = [cell for cell in HOOK["cells_of"](path) if cell["cell_type"] == "code"]
    with jax.numpy_rank_promotion("allow"):  # az.from_numpyro traces models as NumPyro does
        outputs = HOOK["run"](cells)
    for cell, output in zip(cells, outputs, strict=True):
        expected = HOOK["printed"](cell)
        if HOOK["VARIES"] in cell["metadata"].get("tags", ()):
            assert bool(output) == bool(expected)
            assert ("NOT converged" in output, "FAILED" in output) == (False, False)
        else:
            assert re.sub(NUMBER, "#", output) == re.sub(NUMBER, "#", expected)
            numbers, stored = (
                [float(number) for number in re.findall(NUMBER, text)]
                for text in (output, expected)
            )
            assert numbers == pytest.approx(stored, rel=0.02, abs=0.3)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook_has_the_code_of_its_how_to(path: Path) -> None:
    snippets = [code.strip() for code in code_of(f"docs/how-to/{path.stem}.md")]
    assert snippets
    cells = ["".join(cell["source"]) for cell in HOOK["cells_of"](path)]
    assert [code for code in snippets if code not in cells] == []
