"""The command, in this process or in one of its own."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from bpa_ppl.cli.app import app, main, run_command  # noqa: F401
from bpa_ppl.errors import BpaWarning
from support.extras import COMMANDS, require_extras

# The program starts as from a terminal, even where Ctrl-C is ignored for background jobs.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from bpa_ppl.__main__ import main; main()"
)


class Outcome(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


def run(*arguments: object, stdin: str = "") -> Outcome:
    """Run `bpa` in this process, which spares the import of JAX."""
    if arguments and arguments[0] in COMMANDS:
        require_extras()
    out, err, given = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(3))
    given.buffer.write(stdin.encode())
    given.seek(0)
    argv = ["bpa", *map(str, arguments)]
    with (
        patch.object(sys, "argv", argv),
        patch.object(sys, "stdin", given),
        patch.object(sys, "warnoptions", ["error"]),  # as pytest has it: warnings are errors
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", BpaWarning)  # shown as notes
        with pytest.raises(SystemExit) as ending:
            main()
    return Outcome(int(ending.value.code or 0), _written(out), _written(err))


def refused(*arguments: object, mention: str, status: int = 2) -> str:
    """Check that a command fails with one line that mentions something, and writes nothing.

    Returns:
        the line.
    """
    before = _content()
    done = run(*arguments)
    assert (done.code, done.out) == (status, ""), done
    error, *details = (line for line in done.err.splitlines() if not line.startswith("note: "))
    assert error.startswith("error: ")
    assert status == 3 or not details, done.err
    assert mention in done.err
    assert _content() == before
    return error


def parse_words(words: Sequence[str]) -> None:
    """Check that a command takes these words, without running it."""
    app.parse_args(words, print_error=False, exit_on_error=False)


def use_or_refuse(command: str, folder: Path, content: bytes) -> None:
    """Check that a command uses a file, or ends with one line that says where, and no output.

    Args:
        command: reads `FILE` with any ending, and may write `out`.
        folder: with the other files of the command.
        content: of the file.
    """
    words, output = shlex.split(command), folder / "out"
    (name,) = (word for word in words if word.startswith("FILE"))
    (folder / name).write_bytes(content)
    output.unlink(missing_ok=True)
    before = set(folder.iterdir())
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        done = run(*words)
    if done.code == 0:
        assert "error" not in done.err
        assert output.exists() == ("-o" in words)
    else:
        lines = done.err.splitlines()
        assert (done.code, done.out) == (2, ""), done
        assert [line.startswith("error: ") for line in lines] == [False] * (len(lines) - 1) + [True]
        assert "--" in lines[-1] or any(file.name in lines[-1] for file in before)
        assert set(folder.iterdir()) == before


def _content() -> dict[Path, bytes]:
    """Return what is in the files of the current folder."""
    return {path: path.read_bytes() if path.is_file() else b"" for path in Path().rglob("*")}


def succeed(*arguments: object, stdin: str = "") -> Outcome:
    """Run a command and check that it succeeds."""
    done = run(*arguments, stdin=stdin)
    assert done.code == 0, done.err
    return done


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode(errors="replace")


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start `bpa` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
