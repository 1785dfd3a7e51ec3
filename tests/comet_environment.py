"""An environment with the program `comet-score` and a stub of unbabel-comet."""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from bpa_ppl.quality import comet

STUB = '''
"""A stub of unbabel-comet whose models score lengths; it writes its calls into a file."""
import json, os, signal, sys, time
from pathlib import Path

CALLS = Path(__file__).with_name("calls.jsonl")

def record(*call):
    print("a library prints", call)
    os.write(1, b"so does one in C\\n")
    with CALLS.open("a") as file:
        file.write(json.dumps([os.getpid(), *call]) + "\\n")

def download_model(name):
    record("download", name)
    if name == "offline":
        try:
            raise OSError("no connection") from ValueError("no such host")
        except OSError:
            try:
                raise LookupError("not an older model")
            except LookupError:
                raise KeyError(f"Model {name} not supported by COMET.")
    return str(CALLS.with_name(f"{name.replace('/', '-')}.ckpt"))

def load_from_checkpoint(path):
    record("load", path)
    if "broken" in path:
        raise RuntimeError("Error in loading:\\n\\tsize mismatch")
    return Model(path)

class Model:
    def __init__(self, path):
        self.path = path

    def predict(self, data, batch_size, gpus, progress_bar):
        record("predict", data, [batch_size, gpus, progress_bar])
        self.scores = [len(one["mt"]) / 10 for one in data]
        if "interrupts" in self.path:
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(60)
        if "killed" in self.path:
            os.kill(os.getpid(), signal.SIGKILL)
        if "exits" in self.path:
            print("the last words", file=sys.stderr)
            sys.exit(7)
        if "nan" in self.path:
            self.scores[0] = float("nan")
        return self
'''


class CometEnvironment:
    """An environment with the stub; see `install`."""

    def __init__(self, folder: Path) -> None:
        paths = sysconfig.get_paths("venv", {"base": str(folder), "platbase": str(folder)})
        self.scripts, self.packages = Path(paths["scripts"]), Path(paths["purelib"])
        self.scripts.mkdir(parents=True)
        self.packages.mkdir(parents=True)
        base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\n", "utf-8")
        (self.scripts / "python").symlink_to(base)
        (self.scripts / "comet-score").touch(0o755)
        (self.packages / "comet.py").write_text(STUB, "utf-8")
        metadata = self.packages / "unbabel_comet-2.9.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text("Name: unbabel-comet\nVersion: 2.9\n", "utf-8")

    def checkpoint(self, name: str) -> Path:
        """Return the file of a model; its name decides how it fails."""
        path = self.packages / f"{name}.ckpt"
        path.touch()
        return path

    def calls(self) -> list[list[Any]]:
        """Return the calls of the stub so far: the process, the function and its arguments."""
        path = self.packages / "calls.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def called(self, function: str) -> list[list[Any]]:
        """Return the arguments of the calls of a function."""
        return [arguments for _, name, *arguments in self.calls() if name == function]


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> CometEnvironment:
    """Make an environment with the stub, and a folder on PATH that links to its program."""
    environment = CometEnvironment(folder / "comet")
    linked = folder / "linked"
    linked.mkdir()
    (linked / "comet-score").symlink_to(environment.scripts / "comet-score")
    monkeypatch.setenv("PATH", str(linked))
    comet._worker.cache_clear()
    return environment
