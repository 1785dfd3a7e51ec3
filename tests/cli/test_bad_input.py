"""What a user gets wrong: one clear message, the right exit code, and nothing half-written."""

from __future__ import annotations

import errno
import gzip
import os
import re
from pathlib import Path
from unittest.mock import patch

import pytest
from command_line import Outcome, run

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "new.nc", "--sampler", "map")
RERANK = ("rerank", "nbest", "-p", "good.nc", "-o", "new.txt")
WEIGHTS = ("weights", "good.nc", "-o", "new.ini")


def edit(name: str, line: int, pattern: str, replacement: str) -> None:
    """Change one line of a file."""
    lines = Path(name).read_text("utf-8").splitlines(keepends=True)
    lines[line - 1], count = re.subn(pattern, replacement, lines[line - 1], count=1)
    assert count == 1
    Path(name).write_text("".join(lines), "utf-8")


def refused(outcome: Outcome, message: str, code: int = 2) -> None:
    """Check that a command ended with one line that says what is wrong, and left nothing."""
    told = outcome.err.strip()
    assert outcome.code == code
    assert outcome.out == ""
    assert re.fullmatch(f"error: {message}", told), told
    assert [name for name in os.listdir() if "new" in name] == []


@pytest.mark.parametrize("command", [ADAPT, RERANK], ids=["adapt", "rerank"])
@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (r" \|\|\| ", " ", r"nbest:14: .* but a line must read `id .*"),
        (r"LM0= \S+", "LM0= much", r"nbest:14: 'much' is not a number.*"),
        (r"LM0= \S+", "LM0= nan", r"nbest:14: 'nan' is not a finite.*"),
        (r"LM0= \S+", "LM0= inf", r"nbest:14: 'inf' is not a finite.*"),
        (r"LM0=", "LM1=", r"nbest:14: .*LM.*"),
        (r"^1 ", "0x1 ", r"nbest:14: .*'0x1'.*"),
    ],
    ids=["fields", "number", "nan", "inf", "name", "id"],
)
def test_a_bad_line(
    folder: Path, command: tuple[str, ...], pattern: str, replacement: str, message: str
) -> None:
    edit("nbest", 14, pattern, replacement)
    refused(run(*command), message)


def test_an_id_beyond_the_references(folder: Path) -> None:
    edit("nbest", 120, r"^11 ", "99 ")
    refused(run(*ADAPT), r"nbest:120: no reference for sentence id 99: ref has 12 lines.*")


def test_lists_given_as_references(folder: Path) -> None:
    swapped = [name if name != "ref" else "nbest" for name in ADAPT]
    refused(run(*swapped), "nbest:1: a hypothesis of n-best lists, not a reference: give .*")


def test_a_table_without_a_header(folder: Path) -> None:
    Path("bare.csv").write_text("0,a cat,-1.5\n0,the cat,-2\n")
    adapt = ("adapt", "bare.csv", "-r", "ref", "-w", "none", "-o", "new.nc")
    refused(run(*adapt), r"bare.csv:1: .* names the columns \(id, text, …\); .*")
    refused(run(*adapt, "--format", "csv"), "bare.csv:1: no column id .* names the columns, as .*")


def test_errors_name_the_option(folder: Path) -> None:
    edit("nbest", 14, r"LM0= \S+", "LM0= nan")
    refused(run(*ADAPT), r"nbest:14: .*, or drop such hypotheses .* \(--bad\)")


def test_a_posterior_of_other_features(folder: Path) -> None:
    Path("nbest").write_text("0 ||| a ||| Other= 1 ||| 1\n0 ||| b ||| Other= 2 ||| 2\n")
    refused(
        run(*RERANK),
        "nbest: no feature LexicalReordering0.*: the lists have Other; give lists with .*",
    )


def test_a_folder_is_not_a_posterior(folder: Path) -> None:
    Path("results").mkdir()
    refused(run("check", "results"), "results: a folder: give the posterior in it .*")


def test_a_posterior_is_not_a_text(folder: Path) -> None:
    refused(run(*ADAPT, "-w", "good.nc"), "good.nc:1: .* give a file of text")


def test_an_unknown_sampler_leaves_no_folder(folder: Path) -> None:
    compare = ("compare", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "new")
    refused(run(*compare, "--samplers", "imh,foo"), "unknown sampler 'foo': choose one of .*")


def test_an_empty_file(folder: Path) -> None:
    Path("nbest").write_text("")
    refused(run(*ADAPT), "nbest: empty: .*")
    refused(run(*RERANK), "nbest: empty: .*")


def test_a_truncated_gzip_file(folder: Path) -> None:
    packed = gzip.compress(Path("nbest").read_bytes())
    Path("nbest").write_bytes(packed[: len(packed) // 2])
    refused(run(*ADAPT), "nbest: the gzip data end too early: .*")
    refused(run(*RERANK), "nbest: the gzip data end too early: .*")


def test_weights_that_do_not_match(folder: Path) -> None:
    Path("moses.ini").write_text("LM0= 0.5\n")
    refused(run(*ADAPT), "moses.ini: no weight for LexicalReordering0.*, which nbest prints: .*")


def test_a_weight_that_is_not_a_number(folder: Path) -> None:
    Path("moses.ini").write_text("LM0= 0.5\nWordPenalty0= big\n")
    refused(run(*ADAPT), "moses.ini:2: .*'big'.*")


def test_lists_of_another_system(folder: Path) -> None:
    Path("nbest").write_text("0 ||| a cat ||| LM9= -1 ||| -1\n")
    refused(run(*RERANK), ".*LM9.*")


@pytest.mark.parametrize("name", ["nbest", "ref", "moses.ini"])
def test_a_missing_input_of_adapt(folder: Path, name: str) -> None:
    Path(name).unlink()
    refused(run(*ADAPT), f"{name}: no such file: .*")


@pytest.mark.parametrize("name", ["nbest", "good.nc"])
def test_a_missing_input_of_rerank(folder: Path, name: str) -> None:
    Path(name).unlink()
    refused(run(*RERANK), f"{name}: no such file: .*")


def test_a_missing_template(folder: Path) -> None:
    refused(run(*WEIGHTS, "--template", "other.ini"), "other.ini: no such file: .*")


@pytest.mark.parametrize("command", [ADAPT, RERANK, WEIGHTS], ids=["adapt", "rerank", "weights"])
@pytest.mark.parametrize(
    ("output", "message"),
    [("none/x", "none/x: no such folder: .*"), (".", r"\.: this is a folder.*")],
    ids=["missing folder", "folder"],
)
def test_an_output_that_cannot_be_written(
    folder: Path, command: tuple[str, ...], output: str, message: str
) -> None:
    position = command.index("-o") + 1
    refused(run(*command[:position], output, *command[position + 1 :]), message)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_that_is_read_only(folder: Path) -> None:
    Path("closed").mkdir(mode=0o500)
    refused(run(*RERANK, "-o", "closed/x"), "closed/x: permission denied: .*")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(folder: Path) -> None:
    refused(run(*RERANK, "-o", "/dev/full"), ".*No space left on device")


def test_no_space_for_temporary_files(folder: Path) -> None:
    none = f"No usable temporary directory found in ['/tmp', '{folder}']"
    with patch("bpa_ppl.posterior.read_draws", side_effect=FileNotFoundError(errno.ENOENT, none)):
        done = run("check", "good.nc")
    assert done.code == 2
    assert done.err == f"error: {none}: free some space, or name a folder in TMPDIR\n"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (("--sampler", "gibbs"), "unknown sampler 'gibbs': choose one of .*nuts.*"),
        (("--metric", "meteor"), "unknown metric 'meteor': choose one of ter, .* the lists: Lex.*"),
        (("--ties", "random"), "unknown tie policy 'random': .*"),
        (("--bad", "zero"), "unknown policy 'zero': .*"),
        (("--set", "temperature=2"), "the sampler map has no setting temperature: .*"),
        (("--set", "draws"), "--set takes NAME=VALUE, not 'draws'"),
        (("--sampler", "rwm", "--set", "draws=0"), "draws must be .*0"),
        (("--sampler", "rwm", "--set", "draws=many"), "draws must be .*many.*"),
        (("--sampler", "rwm", "--set", "draws=1.5"), "draws must be .*1.5"),
        (("--prior-variance", "-1"), "the prior variance must be positive .*-1.*"),
        (("--prior-variance", "nan"), "the prior variance must be positive .*nan"),
        (("--default", "LM0=big"), "--default LM0 needs a number, not 'big'"),
        (("--fixed", "LM7"), "nbest: LM7 is not a feature: .*"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_unknown_names(folder: Path, choice: tuple[str, ...], message: str) -> None:
    refused(run(*ADAPT, *choice), message)


def test_no_references(folder: Path) -> None:
    refused(run("oracle", "nbest"), "nbest: the lists have no references: .* .--references.")
    adapt = [word for word in ADAPT if word not in ("-r", "ref")]
    refused(run(*adapt), "nbest: the lists have no references: .* .--references.")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((*RERANK, "--rule", "oracle"), "unknown rule 'oracle': choose one of predictive, .*"),
        ((*RERANK, "--derivations", "all"), "unknown treatment of derivations 'all': .*"),
        ((*WEIGHTS, "--point", "median"), "unknown point 'median': .*"),
        ((*WEIGHTS, "--point", "draw", "--draw", "9"), "there is no draw 9: .*"),
        ((*WEIGHTS, "--format", "xml"), "unknown format of weights 'xml': .*"),
    ],
    ids=["rule", "derivations", "point", "draw", "format"],
)
def test_unknown_names_about_a_posterior(
    folder: Path, command: tuple[str, ...], message: str
) -> None:
    refused(run(*command), message)


@pytest.mark.parametrize("command", [RERANK, WEIGHTS, ("check", "good.nc")])
@pytest.mark.parametrize("kept", [0, 100, 0.5])
def test_a_truncated_posterior(folder: Path, command: tuple[str, ...], kept: float) -> None:
    content = Path("good.nc").read_bytes()
    Path("good.nc").write_bytes(content[: int(kept * len(content)) if kept < 1 else int(kept)])
    refused(run(*command), "good.nc: not a readable NetCDF posterior .*")


def test_a_posterior_that_is_not_netcdf(folder: Path) -> None:
    Path("good.nc").write_text("LM0= 0.5\n")
    refused(run(*RERANK), "good.nc: not a readable NetCDF posterior .*")


def test_a_posterior_that_failed_its_check(folder: Path) -> None:
    for command in (("rerank", "nbest", "-p", "poor.nc"), ("weights", "poor.nc")):
        done = run(*command, "-o", "new.txt")
        assert done.code == 3
        assert done.out == ""
        assert done.err.strip().startswith("error: the posterior failed its check")
        assert not Path("new.txt").exists()
        assert run(*command, "-o", "new.txt", "--unchecked").code == 0
        Path("new.txt").unlink()


@pytest.mark.parametrize("arguments", [("adapt",), ("adapted",), ("check", "good.nc", "--all")])
def test_usage(folder: Path, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage: bpa" in done.err
