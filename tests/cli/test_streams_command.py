"""Standard input and output of the shell: closed, cut short, of another encoding; odd names."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest
from command_line import run

from bpa_ppl.cli import main

PROGRAM = str(Path(sys.executable).parent / "bpa")
CLOSED = 141


def code_with(out: object, *arguments: str, stdin: object = None) -> tuple[int, str]:
    """Run `bpa` with a standard output of one's own; return its code and what it told."""
    told = io.StringIO()
    with (
        patch.object(sys, "argv", ["bpa", *arguments]),
        patch.object(sys, "stdin", stdin),
        redirect_stdout(out),  # type: ignore[type-var]
        redirect_stderr(told),
        pytest.raises(SystemExit) as ending,
    ):
        main()
    return int(ending.value.code or 0), told.getvalue()


RERANK = ("rerank", "nbest", "-p", "good.nc", "-q")


@pytest.mark.parametrize(
    "command", [RERANK, ("check", "good.nc"), ("weights", "good.nc", "-o", "-")]
)
def test_a_reader_that_has_enough_ends_a_command_quietly(
    folder: Path, command: tuple[str, ...]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as out:
        assert code_with(out, *command) == (CLOSED, "")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_pipes_and_closed_streams_in_a_shell(folder: Path) -> None:
    """One process each of what cannot be had in this one."""
    script = f"""
        '{PROGRAM}' rerank nbest -p good.nc -q | true; echo "pipe ${{PIPESTATUS[0]}}"
        '{PROGRAM}' rerank - -p good.nc -q -o new.txt <&-; echo "stdin $?"
        '{PROGRAM}' weights good.nc -o - >&-; echo "stdout $?"
        PYTHONIOENCODING=ascii '{PROGRAM}' check good.nc > check.txt; echo "check $?"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert done.stdout.decode().splitlines() == [f"pipe {CLOSED}", "stdin 2", "stdout 2", "check 0"]
    assert done.stderr.decode().splitlines() == [
        "error: <standard input>: it is closed: open it, or name a file",
        "error: <standard output>: it is closed: open it, or name a file",
    ]
    assert Path("check.txt").read_bytes().isascii()
    assert not Path("new.txt").exists()


def test_data_are_utf_8_and_reports_escaped_where_the_terminal_is_not(folder: Path) -> None:
    text = Path("nbest").read_text("utf-8")
    Path("nbest").write_text(text.replace(" ||| ", " ||| é ", 1), "utf-8")
    Path("nbest").write_text(
        "".join(
            f"{n} ||| é ||| {line.split(' ||| ', 2)[2]}\n"
            for n, line in enumerate(text.splitlines()[:3])
        ),
        "utf-8",
    )
    raw = io.BytesIO()
    code, told = code_with(io.TextIOWrapper(raw, encoding="ascii", write_through=True), *RERANK)
    assert (code, told) == (0, "")
    assert raw.getvalue().decode("utf-8") == "é\n" * 3
    with pytest.raises(UnicodeEncodeError):
        run("check", "good.nc").out.encode("ascii")  # or the test below could not fail
    raw = io.BytesIO()
    code, _ = code_with(
        io.TextIOWrapper(raw, encoding="ascii", write_through=True), "check", "good.nc"
    )
    assert code == 0
    assert raw.getvalue().isascii()


def test_names_that_are_not_utf_8_are_refused_before_any_work(folder: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.nc")
    adapt = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "--sampler", "map")
    for command in ((*adapt, "-o", odd), (*RERANK, "--details", odd), ("check", odd)):
        done = run(*command)
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            "error: 'caf\\udce9.nc' is not text in the encoding of this system: rename the file "
            "to one with a name in UTF-8\n"
        )
    assert not Path(odd).exists()


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\rb"])
def test_messages_are_one_line_whatever_names_contain(folder: Path, name: str) -> None:
    for command in (("rerank", name, "-p", "good.nc"), ("weights", "good.nc", "-o", f"{name}/x")):
        done = run(*command)
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert not {"\x1b", "\r"} & set(done.err)


def test_control_bytes_of_a_decoder_do_not_reach_the_terminal(folder: Path) -> None:
    decoder = r"printf 'bad\033[2J\a weather\n' >&2; false {weights} {nbest}"
    tune = ("tune", "nbest", "-r", "ref", "-w", "moses.ini", "--tuner", "mira", "-o", "new.json")
    done = run(*tune, "--set", "epochs=1", "-q", "--decoder", decoder)
    assert done.code == 2
    assert "bad\\x1b[2J\\x07 weather" in done.err
    assert "\x1b" not in done.err
