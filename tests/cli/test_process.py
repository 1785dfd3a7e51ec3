"""The command as a process: standard streams, messages, Ctrl-C, and the same bytes again."""

from __future__ import annotations

import io
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest
from support.command_line import PROGRAM, run, start, succeed
from support.registries import SAMPLERS

from bpa_ppl import concatenate, read_nbest, write_nbest
from bpa_ppl.cli import options
from bpa_ppl.cli.app import main, show_messages
from bpa_ppl.cli.signals import Ended, ending_signals
from bpa_ppl.extending import warn_user

INSTALLED = str(Path(sys.executable).parent / "bpa")
SENTENCES = 12  # in the lists of the fixture
CLOSED = 141
ADAPT = ("adapt", "nbest", "-w", "moses.ini", "--sampler", "map", "-o", "new.nc")
NORMAL = """
import numpyro
import numpyro.distributions as dist


def model():
    numpyro.sample("x", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
"""
MAP_ALONE = ("--samplers", "map", "--reference-sampler", "imh", "--reference-draws", "600", "-q")
RERANK = ("rerank", "nbest", "-p", "good.nc", "-q")


def test_the_installed_program(folder: Path) -> None:
    assert shutil.which(INSTALLED), "the package is not installed: no program bpa next to Python"
    lists = Path("nbest").read_text("utf-8")
    done = subprocess.run(
        [INSTALLED, "rerank", "-", "-p", "good.nc"],
        input=lists,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert (done.stdout, done.stderr) == succeed("rerank", "nbest", "-p", "good.nc")[1:]
    assert done.stdout.count("\n") == SENTENCES


@pytest.mark.slow
def test_ctrl_c_leaves_nothing(folder: Path) -> None:
    os.mkfifo("lists")
    before = sorted(os.listdir())
    many = ("--sampler", "rwm:thinning=200,draws=1000000")
    process = start("adapt", "lists", "-r", "ref", "-w", "moses.ini", "-o", "new.nc", *many)
    with open("lists", "wb", opener=_when_read) as lists:
        lists.write(Path("nbest").read_bytes())
    time.sleep(0.5)  # into the work
    assert sorted(os.listdir()) == before  # nothing is made before there is something to write
    out, err = _interrupt(process)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err
    assert sorted(os.listdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("option", ["-O", "-OO"])
def test_help_without_assertions_and_docstrings(option: str) -> None:
    """Descriptions of options are missing then, and nothing else."""
    script = """
import sys
from bpa_ppl.cli.app import app, run_command
from bpa_ppl import *
for name in app:
    if not name.startswith("-"):
        try:
            run_command([name, "--help"])
        except SystemExit as end:
            assert not end.code
        sys.stdout.flush()
"""
    done = subprocess.run(
        [sys.executable, option, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--references" in done.stdout
    assert "--scheduler" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("option", ["-O", "-OO"])
def test_commands_without_assertions_and_docstrings(folder: Path, option: str) -> None:
    """ArviZ fails without docstrings, so that what computes diagnostics is refused."""

    def run_with(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, option, "-m", "bpa_ppl", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for words in (
        ("lists", "nbest"),
        ("check", "good.nc"),
        ("rerank", "nbest", "-p", "good.nc", "-o", "out"),
        ("weights", "good.nc", "-o", "weights.json"),
        ("features", "nbest", "--add", "length", "-o", "with-length"),
        ("oracle", "nbest", "-r", "ref"),
        ("lm", "ref", "-o", "lm.arpa"),
    ):
        done = run_with(*words)
        assert done.returncode == 0, (words, done.stderr)
    done = run_with(*ADAPT, "-r", "ref")
    if option == "-O":
        assert done.returncode == 0, done.stderr
    else:
        *_, error = done.stderr.splitlines()
        assert (done.returncode, error.startswith("error: ")) == (2, True)
        assert "use python -O" in error
        assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs groups of processes")
def test_ctrl_c_ends_worker_processes_quietly(folder: Path) -> None:
    """A terminal sends Ctrl-C to all processes, also while they start."""
    repeated = concatenate([read_nbest("nbest")] * 4000, renumber=True)
    write_nbest(repeated, "large")
    before = sorted(os.listdir())
    for seconds in (0.0, 0.2, 1.0, 3.0):
        process = start("rerank", "large", "-p", "good.nc", "-o", "out", "-q", "--jobs", "2")
        main = psutil.Process(process.pid)
        for _ in range(1200):
            if len(main.children()) >= 2:
                break
            time.sleep(0.05)
        time.sleep(seconds)
        children = main.children(recursive=True)
        for one in (*children, main):
            one.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, "interrupted\n"), seconds
        assert psutil.wait_procs(children, timeout=10)[1] == []
        assert sorted(os.listdir()) == before


def _interrupt(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Press Ctrl-C until the process ends, as a person does.

    Once in a hundred times the exception comes while compiled code of a library calls Python, and
    that code discards it.
    """
    for _ in range(12):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=5)
    raise TimeoutError("Ctrl-C does not end the process")


def waiting_process(output: str) -> subprocess.Popen[str]:
    """Start a command that has opened its output, and waits for lists."""
    before = set(os.listdir())
    process = start("rerank", "-", "-p", "good.nc", "-o", output, "-q")
    assert process.stdin is not None
    process.stdin.write(Path("nbest").read_text("utf-8"))
    process.stdin.flush()
    for _ in range(1200):
        if set(os.listdir()) - before:
            return process
        time.sleep(0.05)
    raise TimeoutError(output)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs the signals of POSIX")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_signals_that_end_a_command(name: str, code: int) -> None:
    one = getattr(signal, name)
    before = signal.signal(one, signal.SIG_DFL)  # background jobs may ignore it
    try:
        with pytest.raises(Ended) as ending, ending_signals():
            signal.raise_signal(one)
        assert signal.getsignal(one) is signal.SIG_DFL
    finally:
        signal.signal(one, before)
    assert (ending.value.exit_code, str(ending.value)) == (code, f"ended by {name}")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs the signals and process ids of POSIX")
def test_temporary_files_of_processes_that_are_ended_or_killed(folder: Path) -> None:
    """A process removes its own if a signal ends it; one that is killed cannot."""
    before = sorted(os.listdir())
    killed, ended = waiting_process("killed.txt"), waiting_process("ended.txt")
    killed.kill()
    killed.communicate()
    assert succeed("rerank", "nbest", "-p", "good.nc", "-o", "killed.txt", "-q")
    assert len({*os.listdir()} - {*before}) == 3  # the output, and both temporary files
    ended.terminate()
    # Before the end of its input: `communicate` would close it.
    assert ended.wait(60) == 143
    assert ended.communicate() == ("", "ended by SIGTERM\n")
    (left,) = {*os.listdir()} - {*before, "killed.txt"}
    assert left.startswith(".bpa-")


INTERRUPTED = SystemError("<dispatcher> returned a result with an exception set")
INTERRUPTED.__cause__ = KeyboardInterrupt()  # Ctrl-C in compiled code
OUT_OF_MEMORY = MemoryError("Unable to allocate 1 TiB"), RuntimeError("RESOURCE_EXHAUSTED: Out of")
TOO_MANY_FILES = OSError(24, "Too many open files")
NO_ROOM = FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")


@pytest.mark.parametrize(
    ("error", "code", "last"),
    [
        (INTERRUPTED, 130, "interrupted"),
        *((error, 2, "error: out of memory") for error in OUT_OF_MEMORY),
        (NO_ROOM, 2, f"error: output: {NO_ROOM.strerror}: make room, or set TMPDIR and"),
        (TOO_MANY_FILES, 2, f"error: output: {TOO_MANY_FILES.strerror}"),
    ],
)
def test_ctrl_c_and_a_lack_of_memory_have_no_traceback(
    folder: Path, error: Exception, code: int, last: str
) -> None:
    Path("normal.py").write_text(NORMAL, "utf-8")
    compare = ("compare", "--model", "normal.py:model", "-o", "new", *MAP_ALONE)
    with patch.object(SAMPLERS["map"], "sample", side_effect=error):
        results = [run(*ADAPT, "-r", "ref")]
        if code == 130:  # samplers that fail do not stop a comparison; Ctrl-C does
            results.append(run(*compare))
    for done in results:
        assert (done.code, done.out) == (code, "")
        assert done.err.splitlines()[-1].startswith(last)
        assert ("make room" in done.err) == (error is NO_ROOM)
    assert not {"new", "new.nc"} & set(os.listdir())


#: `bpa` with code that runs while its modules are imported.
PROGRAM_WITH_IMPORT = """
import signal, sys, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it

class Callback:
    def __del__(self):
        raise KeyboardInterrupt

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "bpa_ppl.cli":
            {code}

sys.meta_path.insert(0, Finder())
from bpa_ppl.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("code", "status", "shown"),
    [
        ("raise KeyboardInterrupt", 130, "interrupted"),
        # Threads that work on, as those of JAX do, are not waited for.
        (
            "from threading import Thread; Thread(target=time.sleep, args=(99,)).start(); "
            "raise KeyboardInterrupt",
            130,
            "interrupted",
        ),
        ("raise ImportError('libx.so: failed to map')", 2, "error: .*libx.*"),
        # As during JAX's callback of the garbage collector, where Python ignores exceptions.
        ("Callback(); time.sleep(99)", 130, "interrupted"),
    ],
)
def test_what_ends_the_imports_has_no_traceback(code: str, status: int, shown: str) -> None:
    program = [sys.executable, "-c", PROGRAM_WITH_IMPORT.replace("{code}", code)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (status, "")
    assert re.fullmatch(f"{shown}\n", done.stderr)


def _when_read(path: str, flags: int) -> int:
    """Open a pipe as soon as somebody reads it; without a reader it cannot be opened."""
    for _ in range(1200):
        with suppress(OSError):
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.05)
    raise TimeoutError(path)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs to choose a core")
def test_on_one_core_and_on_all_the_same_files_are_made(originals: Path, tmp_path: Path) -> None:
    one_core = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {PROGRAM}"
    for name, program in (("one", one_core), ("all", PROGRAM)):
        shutil.copytree(originals, tmp_path / name)
        environment = {**os.environ, "PYTHONHASHSEED": str(len(program))}
        for command in (
            ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "new.nc", "-q"),
            ("report", "new.nc", "-o", "page.html", "-q"),
            ("rerank", "nbest", "-p", "new.nc", "-o", "out", "--details", "new.tsv", "--unchecked"),
        ):
            line = [sys.executable, "-c", program, *command]
            subprocess.run(line, cwd=tmp_path / name, env=environment, check=True)
    for made in ("new.nc", "page.html", "out", "new.tsv"):
        one, every = ((tmp_path / name / made).read_bytes() for name in ("one", "all"))
        assert one == every, made


def code_with(out: object, *arguments: str) -> tuple[int, str]:
    """Run `bpa` with a given standard output; return its code and its standard error."""
    err = io.StringIO()
    with (
        patch.object(sys, "argv", ["bpa", *arguments]),
        redirect_stdout(out),  # type: ignore[type-var]
        redirect_stderr(err),
        pytest.raises(SystemExit) as ending,
    ):
        main()
    return int(ending.value.code or 0), err.getvalue()


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


@pytest.mark.skipif(os.name != "posix", reason="only there can a current folder be deleted")
def test_a_deleted_current_folder_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = run("check", folder / "good.nc")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: the current folder cannot be used")
    assert done.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_pipes_and_closed_streams_in_a_shell(folder: Path) -> None:
    """What cannot be tested within this process."""
    script = f"""
        '{INSTALLED}' rerank nbest -p good.nc -q | true; echo "pipe ${{PIPESTATUS[0]}}"
        '{INSTALLED}' rerank nbest -p good.nc -q | head -n 1 | wc -l
        '{INSTALLED}' rerank - -p good.nc -q -o new.txt <&-; echo "stdin $?"
        '{INSTALLED}' weights good.nc -o - >&-; echo "stdout $?"
        '{INSTALLED}' --help | true; echo "help ${{PIPESTATUS[0]}}"
        PYTHONIOENCODING=ascii '{INSTALLED}' check good.nc > check.txt; echo "check $?"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    codes = [f"pipe {CLOSED}", "1", "stdin 2", "stdout 2", f"help {CLOSED}", "check 0"]
    assert done.stdout.decode().splitlines() == codes
    assert done.stderr.decode().splitlines() == [
        "error: <standard input>: it could not be read: it is closed: open it, or name a file",
        "error: <standard output>: it is closed: open it, or name a file",
    ]
    assert Path("check.txt").read_bytes().isascii()
    assert not Path("new.txt").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("errors", ["2>&-", "2>/dev/full"])
def test_without_a_standard_error_the_work_is_done(folder: Path, errors: str) -> None:
    script = f"""
        '{INSTALLED}' rerank nbest -p good.nc -o new.txt {errors}; echo "$?" "$(wc -l <new.txt)"
        '{INSTALLED}' rerank missing -p good.nc -o new.txt {errors}; echo "$?"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert done.stdout.decode().splitlines() == ["0 12", "2"]


def test_data_are_utf_8_where_the_terminal_is_not(folder: Path) -> None:
    rows = [line.split(" ||| ", 2)[2] for line in Path("nbest").read_text("utf-8").splitlines()]
    text = "".join(f"{n} ||| é ||| {row}\n" for n, row in enumerate(rows[:3]))
    Path("nbest").write_text(text, "utf-8")
    raw = io.BytesIO()
    ascii_only = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    assert code_with(ascii_only, *RERANK) == (0, "")
    assert raw.getvalue().decode("utf-8") == "é\n" * 3


NOTE = "nbest: lists for 11 sentences, but ref has 12 references: the others are not used"


def test_warnings_are_notes_and_messages_are_shown_as_they_are(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = (folder / "nbest").read_text().splitlines(keepends=True)
    (folder / "nbest").write_text("".join(line for line in lines if not line.startswith("1 ")))
    oracle = ("oracle", "nbest", "-r", "ref", "-o", "new.txt", "-q")
    assert run(*oracle).err == f"note: {NOTE}\n"  # also with --quiet
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "bpa_ppl"):
        done = run(*ADAPT, "-r", "ref")
    first, *report = done.err.splitlines()
    assert first == f"note: {NOTE}"
    assert report[-1].startswith("map, 1 chain × 1 draws: converged (bpa check ")
    records = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert records == [("WARNING", NOTE), *(("INFO", line) for line in report)]


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_a_warning_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("bpa_ppl")
    before = (logger.level, list(logger.handlers), list(warnings.filters))
    with show_messages():
        for _ in range(3):
            warn_user("a list\nis short")
        options.echo_status("read")
        warnings.warn("from a library", FutureWarning, stacklevel=1)
    logger.info("hidden")
    assert (logger.level, logger.handlers, warnings.filters) == before
    assert capsys.readouterr() == ("", "note: a list\\nis short\nread\n")
