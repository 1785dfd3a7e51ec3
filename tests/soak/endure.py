"""Kills, full disks and long streams: what must hold of every command, tried for long.

    python tests/soak/endure.py kills [--times 200]    kill commands at random, then run them again
    python tests/soak/endure.py disk                   each output on a full disk
    python tests/soak/endure.py streams [--lists 20000] [--size 100]   time and peak memory

`kills`: a command that was killed leaves each output whole or as it was, and the same command, run
again, writes what it writes undisturbed. `disk`: exit code 2, one line that names the file, and
what stood there still stands. `streams`: the memory of commands that stream does not grow with
the lists; compare two sizes. Exits with 1 if anything did not hold.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from time import perf_counter

PROGRAM = str(Path(sys.executable).parent / "bpa")
SENTENCES, HYPOTHESES = 40, 20
LIMIT = 8  # KiB that a command may write on a "full disk"
QUIET = 600.0  # seconds after which a command is taken to hang

#: Name -> the command, and the outputs that it writes.
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "adapt": (
        ["adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-q", "-o", "out.nc"],
        ["out.nc"],
    ),
    "rerank": (
        ["rerank", "nbest", "-p", "good.nc", "-q", "-o", "out.txt", "--details", "out.tsv"],
        ["out.txt", "out.tsv"],
    ),
    "weights": (["weights", "good.nc", "-o", "out.json"], ["out.json"]),
    "report": (["report", "good.nc", "-q", "-o", "out.html"], ["out.html"]),
    "tune": (
        [
            *("tune", "first", "-q", "-r", "ref", "-w", "moses.ini", "-o", "tuned.json"),
            *("--tuner", "mira", "--set", "epochs=20"),
            *("--decoder", "test -e {weights} && cp decoded {nbest}"),
        ],
        ["tuned.json"],
    ),
    "lm": (["lm", "ref", "-q", "-o", "out.arpa"], ["out.arpa"]),
}


def prepare(folder: Path, sentences: int = SENTENCES, hypotheses: int = HYPOTHESES) -> None:
    """Write lists, references, weights and a posterior."""
    demo = files("bpa_ppl.demo_data")
    lists: dict[str, list[str]] = {}
    for line in gzip.decompress(demo.joinpath("leaflet.nbest100.gz").read_bytes()).splitlines():
        identifier, rest = line.decode().split(" ||| ", 1)
        lists.setdefault(identifier, []).append(rest)
    known = [rows[:hypotheses] for rows in lists.values()]
    few = min(sentences, SENTENCES)
    for name, count, size in (
        ("nbest", sentences, hypotheses),
        ("decoded", few, hypotheses),
        ("first", few, hypotheses // 2),
    ):
        with (folder / name).open("w", encoding="utf-8") as file:
            for sentence in range(count):
                rows = known[sentence % len(known)][:size]
                file.writelines(f"{sentence} ||| {row}\n" for row in rows)
    references = demo.joinpath("leaflet.ref").read_text("utf-8").splitlines()
    text = "".join(f"{references[n % len(known)]}\n" for n in range(sentences))
    (folder / "ref").write_text(text, "utf-8")
    (folder / "moses.ini").write_text(demo.joinpath("moses.ini").read_text("utf-8"), "utf-8")
    adapt = ["adapt", "first", "-r", "ref", "-w", "moses.ini", "--sampler", "map", "-o", "good.nc"]
    run(folder, adapt, check=True)


def run(folder: Path, command: list[str], check: bool = False) -> subprocess.CompletedProcess:
    """Run a command to its end."""
    return subprocess.run(
        [PROGRAM, *command], cwd=folder, capture_output=True, timeout=QUIET, check=check
    )


def outputs(folder: Path, names: list[str]) -> dict[str, bytes | None]:
    """Return the content of each output; None where it is not there."""
    paths = {name: folder / name for name in names}
    return {name: path.read_bytes() if path.exists() else None for name, path in paths.items()}


def leftovers(folder: Path, names: list[str]) -> list[str]:
    """Return what lies in a folder that is neither input nor output."""
    inputs = {"nbest", "decoded", "first", "ref", "moses.ini", "good.nc", *names}
    return sorted(set(os.listdir(folder)) - inputs)


def kills(times: int, seed: int, chosen: list[str]) -> Iterator[str]:
    """Kill commands at random times, run them again, and yield what did not hold."""
    rng = random.Random(seed)
    for name, (command, written) in ((name, COMMANDS[name]) for name in chosen):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            prepare(folder)
            start = perf_counter()
            done = run(folder, command)
            seconds = perf_counter() - start
            whole = outputs(folder, written)
            if done.returncode or None in whole.values():
                yield f"{name}: exit code {done.returncode}: {done.stderr.decode()[-300:]}"
                continue
            killed = 0
            for turn in range(times // len(chosen)):
                for output in written:
                    (folder / output).unlink(missing_ok=True)
                killed += _killed(folder, command, rng.uniform(0.2, 1.0) * seconds)
                odd = [n for n, found in outputs(folder, written).items() if found is not None]
                if any(outputs(folder, [n])[n] != whole[n] for n in odd):
                    yield f"{name}, turn {turn}: an output was cut"
                if 0 < len(odd) < len(written):
                    yield f"{name}, turn {turn}: only {odd} of {written}"
                run(folder, command)
                if outputs(folder, written) != whole:
                    yield f"{name}, turn {turn}: run again, it writes something else"
                if leftovers(folder, written):
                    yield f"{name}, turn {turn}: left {leftovers(folder, written)}"
            print(f"{name:<10}{killed:>5} kills, each run again", flush=True)


def _killed(folder: Path, command: list[str], after: float) -> bool:
    """Kill a command after some seconds; False if it had ended."""
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
    """Write each output to a full disk, and yield what did not hold."""
    for name, (command, written) in ((name, COMMANDS[name]) for name in chosen):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            prepare(folder, 4000, 4)
            for output in written:
                (folder / output).write_text("what stood there")
            # Programs that ignore the signal are told as by a full disk that they cannot write.
            line = f"ulimit -f {LIMIT}; trap '' XFSZ; {shlex.join([PROGRAM, *command])}"
            done = subprocess.run(
                ["bash", "-c", line], cwd=folder, capture_output=True, timeout=QUIET
            )
            told = done.stderr.decode().splitlines()
            stands = [output for output in written if (folder / output).read_bytes()[:4] == b"what"]
            sound = done.returncode == 2 and len(told) == 1 and told[0].startswith("error: ")
            if done.returncode == 0:
                print(f"{name:<10}wrote less than the limit")
            elif not sound or stands != written or leftovers(folder, written):
                yield (
                    f"{name}: exit code {done.returncode}, {told[-3:]}, still there: {stands}, "
                    f"left: {leftovers(folder, written)}"
                )
            else:
                print(f"{name:<10}{told[0][:90]}", flush=True)


def streams(lists: int, size: int) -> Iterator[str]:
    """Time commands on long files, and yield those that fail."""
    commands = {
        "rerank": ["rerank", "nbest", "-p", "good.nc", "-o", "out.txt"],
        "rerank, details": COMMANDS["rerank"][0],
        "rerank, references": ["rerank", "nbest", "-p", "good.nc", "-r", "ref", "-o", "out.txt"],
        "rerank, two jobs": [*COMMANDS["rerank"][0], "--jobs", "2"],
        "features, at once": ["features", "nbest", "--add", "length", "-o", "out.jsonl"],
    }
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder, lists, size)
        megabytes = (folder / "nbest").stat().st_size / 1e6
        print(f"{lists} lists of {size}: {megabytes:.0f} MB")
        for name, command in commands.items():
            start = perf_counter()
            pid = os.fork()
            if not pid:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.chdir(folder)
                os.execv(PROGRAM, [PROGRAM, *command])
            _, status, used = os.wait4(pid, 0)
            seconds, peak = perf_counter() - start, used.ru_maxrss / 1024
            print(f"{name:<22}{seconds:>8.1f} s{peak:>8.0f} MiB at most", flush=True)
            if status:
                yield f"{name}: exit status {status}"


def main() -> int:
    """Do what is asked for, and print what did not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["kills", "disk", "streams"])
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--times", type=int, default=200, help="kills, over all commands")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lists", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=100)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    found = {
        "kills": lambda: kills(options.times, options.seed, options.commands),
        "disk": lambda: disk(options.commands),
        "streams": lambda: streams(options.lists, options.size),
    }[options.what]()
    failed = 0
    for message in found:
        failed += 1
        print(f"FAILED {message}", file=sys.stderr, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
