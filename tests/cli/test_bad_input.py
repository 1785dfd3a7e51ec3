"""What a user gets wrong: one clear message, the right exit code, and nothing half-written."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from unittest.mock import patch

import pytest
from command_line import refused, run

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "new.nc", "--sampler", "map")
RERANK = ("rerank", "nbest", "-p", "good.nc", "-o", "new.txt")
WEIGHTS = ("weights", "good.nc", "-o", "new.ini")


def edit(name: str, line: int, pattern: str, replacement: str) -> None:
    """Change one line of a file."""
    lines = Path(name).read_text("utf-8").splitlines(keepends=True)
    lines[line - 1], count = re.subn(pattern, replacement, lines[line - 1], count=1)
    assert count == 1
    Path(name).write_text("".join(lines), "utf-8")


@pytest.mark.parametrize(
    ("command", "value", "mention"), [(ADAPT, "much", "'much'"), (RERANK, "nan", "(--bad)")]
)
def test_a_bad_line(folder: Path, command: tuple[str, ...], value: str, mention: str) -> None:
    edit("nbest", 14, r"LM0= \S+", f"LM0= {value}")
    assert "nbest:14: " in refused(*command, mention=mention)


def test_an_id_beyond_the_references(folder: Path) -> None:
    edit("nbest", 120, r"^11 ", "99 ")
    refused(*ADAPT, mention="nbest:120: no reference for sentence id 99: ref has 12 lines")


@pytest.mark.parametrize(
    ("arguments", "mention"),
    [
        (("-r", "nbest"), "nbest:1: "),
        (("-w", "few.ini"), "few.ini: no weight for LexicalReordering0"),
        (("-w", "none.ini"), "none.ini: no such file"),
    ],
    ids=" ".join,
)
def test_files_in_the_wrong_place(folder: Path, arguments: tuple[str, ...], mention: str) -> None:
    Path("few.ini").write_text("LM0= 0.5\n")
    replaced = dict(zip(ADAPT[2:8:2], ADAPT[3:8:2], strict=True)) | dict([arguments])
    options = [word for option in replaced.items() for word in option]
    refused("adapt", "nbest", *options, "--sampler", "map", mention=mention)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("rerank nbest -p good.nc -o", "nbest"),
        ("rerank nbest -p good.nc -o", "hard-link"),
        ("rerank nbest -p good.nc -o a --details", "./a"),
        ("adapt nbest -w moses.ini -r other,ref -o", "ref"),
        ("adapt nb*t -w moses.ini -r ref -o", "nbest"),
        ("features nbest --add lm=ref,order=2 -o", "ref"),
        ("weights good.nc --template moses.ini -o", "moses.ini"),
        ("judge nbest -o", "nbest"),
        ("lm ref -o", "ref"),
        ("learn-prior good.nc -o prior.json --report", "good.nc"),
    ],
)
def test_an_output_that_is_an_input_or_another_output(
    folder: Path, command: str, name: str
) -> None:
    os.link("nbest", "hard-link")
    Path("soft-link").symlink_to("nbest")
    content = {path: path.read_bytes() for path in Path().iterdir()}
    refused(*command.split(), name, mention=f"{Path(name)} is also another file")
    assert {path: path.read_bytes() for path in Path().iterdir()} == content


def test_outputs_that_only_look_like_an_input(folder: Path) -> None:
    os.mkdir("out")
    assert run(*RERANK[:4], "-o", "out/nbest", "-q", "--details", os.devnull).code == 0
    assert run(*RERANK[:4], "-o", os.devnull, "-q", "--details", os.devnull).code == 0
    assert run(*RERANK[:4], "-o", "/dev/stdout", "-q") == run(*RERANK[:4], "-q")
    assert run("update", "good.nc", "nbest", "-r", "ref", "-o", "good.nc", "--unchecked").code != 1


def test_a_table_without_a_header(folder: Path) -> None:
    Path("bare.csv").write_text("0,a cat,-1.5\n0,the cat,-2\n")
    adapt = ("adapt", "bare.csv", "-r", "ref", "-w", "none", "-o", "new.nc")
    refused(*adapt, mention="bare.csv:1: ")
    refused(*adapt, "--format", "csv", mention="bare.csv:1: no column id")


def test_a_posterior_of_other_features(folder: Path) -> None:
    Path("nbest").write_text("0 ||| a ||| Other= 1 ||| 1\n0 ||| b ||| Other= 2 ||| 2\n")
    error = refused(*RERANK, mention="nbest: no feature LexicalReordering0")
    assert "Other" in error


def test_inputs_that_are_missing_or_empty(folder: Path) -> None:
    refused("oracle", "nbest", mention="(--references)")
    refused(*ADAPT[:2], *ADAPT[4:], mention="(--references)")
    Path("nbest").write_text("")
    for command in (ADAPT, RERANK):
        refused(*command, mention="nbest: the file is empty")
    Path("nbest").unlink()
    refused(*RERANK, mention="nbest: no such file")
    refused("check", "none.nc", mention="none.nc: no such file")
    Path("results").mkdir()
    refused("check", "results", mention="results: a folder")


@pytest.mark.parametrize("command", [ADAPT, RERANK, WEIGHTS], ids=["adapt", "rerank", "weights"])
def test_an_output_that_cannot_be_written(folder: Path, command: tuple[str, ...]) -> None:
    for output in ("none/x", "."):
        refused(*command, "-o", output, mention=f"{output}: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_that_is_read_only(folder: Path) -> None:
    Path("closed").mkdir(mode=0o500)
    refused(*RERANK, "-o", "closed/x", mention="closed/x: permission denied")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(folder: Path) -> None:
    refused(*RERANK, "-o", "/dev/full", mention="No space left on device")


def test_no_space_for_temporary_files(folder: Path) -> None:
    none = f"No usable temporary directory found in ['/tmp', '{folder}']"
    with patch("bpa_ppl.posterior.read_draws", side_effect=FileNotFoundError(errno.ENOENT, none)):
        refused("check", "good.nc", mention=f"{none}: free some space, or name a folder in TMPDIR")


def test_names_that_are_not_utf_8_are_refused_before_any_work(folder: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.nc")
    for command in ((*ADAPT, "-o", odd), (*RERANK, "--details", odd), ("check", odd)):
        refused(*command, mention="'caf\\udce9.nc'")


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J\rb"])
def test_messages_are_one_line_whatever_names_contain(folder: Path, name: str) -> None:
    for command in (("rerank", name, "-p", "good.nc"), ("weights", "good.nc", "-o", f"{name}/x")):
        assert not {"\x1b", "\r"} & set(refused(*command, mention=""))
