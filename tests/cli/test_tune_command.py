"""`bpa tune`: weights in every format, the second set, the loop, and bad input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import run

import bpa_ppl
from bpa_ppl.component import Count
from bpa_ppl.registry import TUNERS
from bpa_ppl.tuning import Tuned, Tuner, TuningProblem

TUNE = ("tune", "nbest", "-r", "ref", "-w", "moses.ini")
FAST = ("--tuner", "mira", "--set", "epochs=3")
EXTRA = ("--extra", "nbest", "--extra-references", "ref")


def library(**wanted: object) -> bpa_ppl.Weights:
    """What the library finds on the same files."""
    lists = bpa_ppl.read_nbest("nbest", references="ref")
    canonical = bpa_ppl.read_weights("moses.ini")
    found = bpa_ppl.reestimate(lists, canonical, **wanted)  # type: ignore[arg-type]
    return found.weights


def test_weights_are_those_of_the_library(folder: Path) -> None:
    done = run(*TUNE, *FAST, "--metric", "ter", "--seed", "2", "-o", "new.json")
    assert done.code == 0
    assert done.out == ""
    number = r"\d+\.\d+"
    assert re.search(
        f"TER of the lists: {number} → {number}, BLEU {number} → {number}, "
        f"length {number} → {number}$",
        done.err,
        re.MULTILINE,
    )
    assert bpa_ppl.read_weights("new.json") == library(tuner="mira", epochs=3, metric="ter", seed=2)


class Doubled(Tuner, frozen=True):
    """A tuner from outside the package."""

    factor: Count = 2

    def tune(self, problem: TuningProblem) -> Tuned:
        """Return a multiple of the weights."""
        weights = self.factor * problem.start
        return Tuned(weights, weights[None])


def test_a_custom_tuner(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TUNERS, "_members", dict(TUNERS._members))
    TUNERS.register("mine", Doubled)
    mine = ("--tuner", "mine", "--set", "factor=3", "--fixed", "none", "-o", "new.json")
    assert run(*TUNE, *mine).code == 0
    old, new = (bpa_ppl.read_weights(name) for name in ("moses.ini", "new.json"))
    assert dict(new) == {name: 3 * value for name, value in old.items()}


def test_a_template_keeps_everything_but_its_weights(folder: Path) -> None:
    assert run(*TUNE, *FAST, "-q", "-o", "new.ini", "--template", "moses.ini").err == ""
    old, new = (Path(name).read_text().splitlines() for name in ("moses.ini", "new.ini"))
    changed = [b for a, b in zip(old, new, strict=True) if a != b]
    assert changed
    assert all(line.split("=")[0].endswith("0") for line in changed)
    assert bpa_ppl.read_weights("new.ini") == library(tuner="mira", epochs=3)


def test_fixed_features_and_the_second_set(folder: Path) -> None:
    mert = ("--tuner", "mert+", "--set", "restarts=1", "--fixed", "LM0", *EXTRA)
    assert run(*TUNE, *mert, "-o", "new.json").code == 0
    assert bpa_ppl.read_weights("new.json")["LM0"] == bpa_ppl.read_weights("moses.ini")["LM0"]


def test_the_loop_runs_the_command_until_nothing_is_new(folder: Path) -> None:
    lines = Path("nbest").read_text().splitlines(keepends=True)
    Path("first").write_text("".join(line for i, line in enumerate(lines) if i % 10 < 5))
    command = "grep -q LM0= {weights} && echo run >> calls && cp nbest {nbest}"
    done = run("tune", "first", *TUNE[2:], *FAST, "--decoder", command, "-o", "new.json")
    assert done.code == 0
    assert Path("calls").read_text() == "run\nrun\n"
    assert f"{len(lines) // 2} new hypotheses" in done.err
    assert ", 0 new hypotheses" in done.err
    assert re.search(
        r"BLEU of the whole loop: \S+ → \S+, TER \S+ → \S+, length \S+ → \S+, with the weights of "
        r"iteration \d of 2",
        done.err,
    )
    assert not Path("new.json.rounds").exists()


def test_a_failed_loop_resumes(folder: Path) -> None:
    lines = Path("nbest").read_text().splitlines(keepends=True)
    Path("first").write_text("".join(line for i, line in enumerate(lines) if i % 10 < 5))
    command = "echo run >> calls && test -e ready {weights} && cp nbest {nbest}".replace(
        "-e ready {weights}", "-e ready -a -e {weights}"
    )
    tune = ("tune", "first", *TUNE[2:], *FAST, "--decoder", command, "-o", "new.json")
    failed = run(*tune)
    assert failed.code == 2
    assert "run it manually" in failed.err
    kept = bpa_ppl.read_weights("new.json.rounds/weights.1.json")
    assert list(Path("new.json.rounds").glob("nbest.*")) == []
    Path("ready").touch()
    done = run(*tune, "--return", "last")
    assert done.code == 0
    assert Path("calls").read_text().count("run") == 3
    assert "iteration 1:" not in done.err  # its weights were there
    whole = run(*tune, "--return", "last", "--rounds", "kept")
    assert bpa_ppl.read_weights("kept/weights.1.json") == kept
    assert bpa_ppl.read_weights("kept/weights.2.json") == bpa_ppl.read_weights("new.json")
    assert whole.err.splitlines()[-1] == done.err.splitlines()[-1]
    other = run(*tune, "--rounds", "kept", "--seed", "1")
    assert (other.code, other.out) == (2, "")
    assert "kept: this folder was created with other settings" in other.err
    assert "(--rounds)" in other.err


def test_the_limit_of_iterations_and_an_unwritable_output(
    folder: Path,
) -> None:
    command = "echo run >> calls; sed s/^/0/ {weights} > /dev/null; cp nbest {nbest}"
    loop = (*TUNE, *FAST, "--decoder", command, "--iterations", "1")
    Path("nbest").write_text(Path("nbest").read_text())
    done = run("tune", "first", *loop[2:], "-o", "none/new.json")
    assert (done.code, Path("calls").exists()) == (2, False)
    lines = Path("nbest").read_text().splitlines(keepends=True)
    Path("first").write_text("".join(line for i, line in enumerate(lines) if i % 10 < 5))
    cut = run("tune", "first", *loop[2:], "-o", "new.json")
    assert cut.code == 0
    assert "note: stopped after 1 iterations" in cut.err
    assert "allow more iterations" in cut.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tuner", "powell"), "unknown tuner 'powell': choose one of mert, mert+, mira, pro"),
        (("--metric", "chrf"), "no tuner can optimise chrf"),
        (("--set", "epochs=3"), "the tuner mert has no setting epochs: it has restarts"),
        (("--set", "restarts=few"), "restarts must be an integer ≥ 1, not 'few'"),
        (("--tuner", "mert+"), "mert+ also needs"),
        (EXTRA, "remove them"),
        (("--tuner", "mert+", "--extra", "nbest"), "--extra and --extra-references go together"),
        (("--decoder", "moses -f {weights}"), "the decoder command has no {nbest}"),
        ((*FAST, "--decoder", "false {weights} {nbest}"), "failed with exit code 1"),
    ],
)
def test_bad_input_is_one_line(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(*TUNE, *arguments, "-q", "-o", "new.json")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert message in done.err
    assert not Path("new.json").exists()


def test_references_are_needed(folder: Path) -> None:
    done = run("tune", "nbest", "-w", "moses.ini", "-o", "new.json")
    assert (done.code, done.out) == (2, "")
    assert "(--references)" in done.err
