"""Stress tests of the commands: kills and full disks.

    python tests/soak/endure.py kills [--times 200]    kill commands at random, then run them again
    python tests/soak/endure.py disk                   each output on a full disk

`kills`: a killed command leaves each output complete or unchanged, and running it again gives the
same output as an uninterrupted run. `disk`: exit code 2, an error that names the file, and existing
files are unchanged, with and without space for caches. Exits with 1 on any failure.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.small_demo import write_small_demo

PROGRAM = str(Path(sys.executable).parent / "bpa")
LIMITS = 0, 8  # KiB that a command may write before the disk is full
TIMEOUT = 3600.0  # seconds, enough for a busy machine

#: Commands by name; the words after -o and --details are their outputs.
COMMANDS = {
    "adapt": "adapt nbest -r ref -w moses.ini -q -o out.nc",
    "rerank": "rerank nbest -p good.nc -q -o out.txt --details out.tsv",
    "weights": "weights good.nc -o out.json",
    "report": "report good.nc -q -o out.html",
    "tune": "tune first -q -r ref -w moses.ini -o tuned.json --tuner mira --set epochs=20",
    "lm": "lm ref -q -o out.arpa",
    "learn-prior": "learn-prior drawn.nc other.nc --unchecked -q -o prior.json",
    "oracle": "oracle nbest -r ref -q -o best.txt",
    "features": "features nbest --add length -q -o out.jsonl",
    "phrases": "phrases extract ref ref aligned -q -o table.gz",
}
_INPUTS = {"nbest", "first", "ref", "aligned", "moses.ini"}
_POSTERIORS = {"good.nc": "map", "drawn.nc": "imh", "other.nc": "laplace"}


def prepare(folder: Path, sentences: int = 40, candidates: int = 20) -> None:
    """Write lists, references, weights and posteriors."""
    for name, size in (("first", candidates // 2), ("nbest", candidates)):
        write_small_demo(folder, sentences, size)
        (folder / "nbest").rename(folder / name)
    # Each word is aligned with itself.
    lines = (folder / "ref").read_text("utf-8").splitlines()
    points = [" ".join(f"{n}-{n}" for n in range(len(line.split()))) for line in lines]
    (folder / "aligned").write_text("".join(f"{line}\n" for line in points), "utf-8")
    adapt = ["adapt", "first", "-r", "ref", "-w", "moses.ini", "-q"]
    for name, sampler in _POSTERIORS.items():
        run(folder, [*adapt, "--sampler", sampler, "-o", name], check=True)


def run(folder: Path, command: list[str], check: bool = False) -> subprocess.CompletedProcess:
    """Run a command and wait for it."""
    return subprocess.run(
        [PROGRAM, *command], cwd=folder, capture_output=True, timeout=TIMEOUT, check=check
    )


def command_of(name: str) -> tuple[list[str], list[str]]:
    """Return the words of a command, and its outputs."""
    words = shlex.split(COMMANDS[name])
    return words, [words[n + 1] for n, word in enumerate(words) if word in ("-o", "--details")]


def outputs(folder: Path, names: list[str]) -> dict[str, bytes]:
    """Return the content of each output that exists."""
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def leftovers(folder: Path, names: list[str]) -> list[str]:
    """Return the files in a folder that are neither input nor output."""
    return sorted(set(os.listdir(folder)) - _INPUTS - set(_POSTERIORS) - set(names))


def kills(times: int, seed: int, chosen: list[str]) -> Iterator[str]:
    """Kill commands at random times, run them again, and yield the failures."""
    rng = random.Random(seed)
    for name, (command, written) in ((name, command_of(name)) for name in chosen):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            prepare(folder)
            start = perf_counter()
            done = run(folder, command)
            seconds = perf_counter() - start
            whole = outputs(folder, written)
            if done.returncode or len(whole) < len(written):
                yield f"{name}: exit code {done.returncode}: {done.stderr.decode()[-300:]}"
                continue
            killed = 0
            for turn in range(times // len(chosen)):
                for output in written:
                    (folder / output).unlink(missing_ok=True)
                killed += _killed(folder, command, rng.uniform(0.2, 1.0) * seconds)
                after = outputs(folder, written)
                if not after.items() <= whole.items():
                    yield f"{name}, turn {turn}: an output was cut"
                if 0 < len(after) < len(written):
                    yield f"{name}, turn {turn}: only {list(after)} of {written}"
                run(folder, command)
                if outputs(folder, written) != whole:
                    yield f"{name}, turn {turn}: run again, it writes something else"
            print(f"{name:<10}{killed:>5} kills, each run again", flush=True)


def _killed(folder: Path, command: list[str], after: float) -> bool:
    """Kill a command after some seconds; return False if it had finished."""
    process = subprocess.Popen(
        [PROGRAM, *command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def disk(chosen: list[str]) -> Iterator[str]:
    """Write each output to a full disk, and yield the failures."""
    for name, (command, written) in ((name, command_of(name)) for name in chosen):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "work"
            folder.mkdir()
            prepare(folder, 240, 8)
            empty = {n: str(folder.with_name(n)) for n in ("BPA_PPL_CACHE", "NUMBA_CACHE_DIR")}
            for room, caches in (("full", {}), ("no room for caches", empty)):
                if not caches:
                    run(folder, command, check=True)
                for limit in LIMITS:
                    for output in written:
                        (folder / output).write_text("what stood there")
                    completed = _on_full_disk(folder, command, limit, caches)
                    stands = [n for n in written if (folder / n).read_bytes()[:4] == b"what"]
                    fault = _error_fault(completed, written)
                    if completed.returncode == 0 and limit:
                        print(f"{name:<12}{room:<20}{limit} KiB are enough", flush=True)
                    elif fault or stands != written or leftovers(folder, written):
                        yield (
                            f"{name}, {room}: {fault}, exit code {completed.returncode}, "
                            f"{completed.stderr[-300:]}, still there: {stands}, "
                            f"left: {leftovers(folder, written)}"
                        )
                    else:
                        shown = completed.stderr.splitlines()[-1][:90]
                        print(f"{name:<12}{room:<20}{shown}", flush=True)


def _on_full_disk(
    folder: Path, command: list[str], limit: int, caches: dict[str, str]
) -> subprocess.CompletedProcess:
    # Programs that ignore the signal get a write error, as on a full disk.
    line = f"ulimit -f {limit}; trap '' XFSZ; {shlex.join([PROGRAM, *command])}"
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, **caches},
    )


def _error_fault(done: subprocess.CompletedProcess, written: list[str]) -> str:
    """Return a description of a wrong error message, or an empty text."""
    *notes, error = done.stderr.splitlines() or [""]
    if done.returncode != 2:
        return "another exit code"
    if error.startswith("error: output: ") and "TMPDIR" in error:  # an imported library failed
        return ""
    if not error.startswith("error: ") or not any(name in error for name in written):
        return "no error that names the file"
    return "" if all(line.startswith("note: ") for line in notes) else "more than notes"


def main() -> int:
    """Run the selected tests and print the failures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["kills", "disk"])
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--times", type=int, default=200, help="kills, over all commands")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if options.what == "kills":
        result = kills(options.times, options.seed, options.commands)
    else:
        result = disk(options.commands)
    failed = 0
    for message in result:
        failed += 1
        print(f"FAILED {message}", file=sys.stderr, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
