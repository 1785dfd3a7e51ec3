"""Compiled code that was damaged on disk is noticed, dropped and made again."""

from __future__ import annotations

import errno
import importlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpa_ppl.errors import BpaWarning
from bpa_ppl.jax_cache import Sealed

MODULE = """
from bpa_ppl.compiled import compiled

@compiled
def twice(x):
    return 2 * x
"""
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "flipped at the beginning": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "flipped in the middle": lambda data: (
        data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 8]) + data[len(data) // 2 + 1 :]
    ),
    "cut": lambda data: data[: len(data) // 3],
    "emptied": lambda data: b"",
    "foreign": lambda data: b"something else",
}


def fresh() -> Any:
    """The compiled function as a new process imports it."""
    sys.modules.pop("damaged_module", None)
    importlib.invalidate_caches()
    return importlib.import_module("damaged_module").twice


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_machine_code_is_compiled_again(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "damaged_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    assert fresh()(21) == 42
    again = fresh()
    assert again(21) == 42
    assert sum(again.stats.cache_hits.values()) == 1
    (path,) = tmp_path.rglob(f"*{suffix}")
    for damage in DAMAGE.values():
        path.write_bytes(damage(path.read_bytes()))
        made = fresh()
        assert made(21) == 42
        assert sum(made.stats.cache_misses.values()) == 1
        loaded = fresh()
        assert loaded(21) == 42
        assert sum(loaded.stats.cache_hits.values()) == 1


def test_a_full_disk_stops_no_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "damaged_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    twice = fresh()

    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("builtins.open", lambda path, mode="r", **more: Full(path, mode[0]))
    with pytest.warns(BpaWarning, match=r"compiled code is not kept \(No space left on device\)"):
        found = twice(21)
    monkeypatch.undo()
    assert found == 42
    assert [path.name for path in tmp_path.rglob("*.nb*")] == [], "nothing half-written"


class Files:
    """A cache as JAX's: whatever is there is not written again."""

    def __init__(self, folder: Path):
        self.folder = folder

    def get(self, key: str) -> bytes | None:
        path = self.folder / f"{key}-cache"
        return path.read_bytes() if path.exists() else None

    def put(self, key: str, value: bytes) -> None:
        path = self.folder / f"{key}-cache"
        if not path.exists():
            path.write_bytes(value)


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_program_is_dropped(what: str, tmp_path: Path) -> None:
    cache = Sealed(Files(tmp_path), str(tmp_path))
    cache.put("key", b"a compiled program")
    assert cache.get("key") == b"a compiled program"
    path = tmp_path / "key-cache"
    path.write_bytes(DAMAGE[what](path.read_bytes()))
    assert cache.get("key") is None
    cache.put("key", b"the same, compiled again")
    assert cache.get("key") == b"the same, compiled again"


JAX = """
import warnings
warnings.simplefilter("error")
import jax
from bpa_ppl.jax_cache import keep_compiled
keep_compiled()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
print(float(jax.jit(lambda x: (x @ x.T).sum())(jax.numpy.ones((3, 3)))))
"""


def test_jax_uses_sealed_entries_and_survives_damaged_ones(tmp_path: Path) -> None:
    unset = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment["BPA_PPL_CACHE"] = str(tmp_path)
    for _ in range(2):
        command = [sys.executable, "-c", JAX]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert (done.stdout, done.returncode) == (b"27.0\n", 0), done.stderr
        entries = {path: path.read_bytes() for path in (tmp_path / "jax").glob("*-cache")}
        assert entries
        for path, data in entries.items():
            cache = Sealed(Files(path.parent), str(path.parent))
            assert cache.get(path.name.removesuffix("-cache")) is not None
            path.write_bytes(DAMAGE["flipped in the middle"](data))
