"""COMET (Rei et al., 2020), computed by the package unbabel-comet in an environment of its own.

unbabel-comet needs NumPy 1, and JAX NumPy 2: no environment can have both.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Annotated, Any, ClassVar, cast
from weakref import finalize

import numpy as np
from msgspec import Meta

from bpa_ppl.arrays import Float64
from bpa_ppl.component import Count
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.quality.base import Averaged, Lists, References

#: With several GPUs, COMET would start the program that calls it once for each.
CpuOrGpu = Annotated[int, Meta(ge=0, le=1)]
_INSTALL = "install unbabel-comet in an environment of its own (`pipx install unbabel-comet`)"


class Comet(Averaged, frozen=True):
    """COMET of a hypothesis with its source and its first reference.

    Its name is `unbabel-comet`, so that `comet` can be a column of the lists. It needs sources;
    `CometKiwi`, `unbabel-cometkiwi`, is the model without references.

    Args:
        model: a name that unbabel-comet can download, or the path of a checkpoint (`….ckpt`).
        batch: the number of hypotheses scored together.
        gpus: 0 computes on the CPU, 1 on the GPU.

    Raises:
        UsageError: on use, if unbabel-comet is not installed.
    """

    key: ClassVar[str] = "unbabel-comet"
    needs: ClassVar[frozenset[str]] = frozenset({"sources", "references"})
    slow: ClassVar[bool] = True

    model: str = "Unbabel/wmt22-comet-da"
    batch: Count = 8
    gpus: CpuOrGpu = 0

    title = "COMET"

    @property
    def installed(self) -> bool:
        """Whether there is a program comet-score."""
        return _program() is not None

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return the model and the version of the package."""
        return f"{self.key}|model:{self.model}|version:{_ask('version', model=self.model)}"

    def cache_signature(self, references: References) -> str | None:
        """Return the signature with the path, size and time of the checkpoint.

        Raises:
            DataError: if the model cannot be downloaded.
            UsageError: if unbabel-comet is not installed.
        """
        path = _checkpoint(self.model)
        if not path.is_file():
            return None
        status = path.stat()
        return f"{self.signature(references)}|{path}|{status.st_size}|{status.st_mtime_ns}"

    def sentences(
        self,
        lists: Lists,
        references: References,
        *,
        sources: Sequence[str] = (),
        **more: Any,
    ) -> Float64:
        """Return the score of each hypothesis, one list after the other.

        Raises:
            DataError: if the model cannot be loaded, or does not return one number each.
        """
        data = [
            {"src": source, "mt": text, **({"ref": refs[0]} if refs else {})}
            for source, texts, refs in zip(sources, lists, references, strict=True)
            for text in texts
        ]
        path = str(_checkpoint(self.model))
        _ask("load", path, model=self.model)
        request = ("predict", path, data, self.batch, self.gpus)
        scores = np.array(_ask(*request, model=self.model), np.float64)
        if scores.shape != (len(data),) or not np.isfinite(scores).all():
            message = f"{self.model} did not return one finite score per hypothesis"
            raise DataError(message, code="bad-number")
        return scores


class CometKiwi(Comet, frozen=True):
    """COMETKiwi: COMET without references."""

    key: ClassVar[str] = "unbabel-cometkiwi"
    needs: ClassVar[frozenset[str]] = frozenset({"sources"})

    model: str = "Unbabel/wmt22-cometkiwi-da"

    title = "COMETKiwi"


def _checkpoint(model: str) -> Path:
    """Return the path of a checkpoint, downloaded if it is a name."""
    if Path(model).suffix != ".ckpt":
        return Path(_ask("download", model, model=model))
    if not Path(model).is_file():
        raise DataError("no such file: name a checkpoint of COMET", model, code="missing-file")
    return Path(model).absolute()


def _ask(function: str, *arguments: Any, model: str) -> Any:
    """Return what a function of `comet_worker` returns.

    Raises:
        DataError: if it fails, about the model, or the process ends.
        UsageError: if unbabel-comet is not installed.
    """
    python = _python()
    answer: dict[str, Any] = {}
    try:
        answer = _worker(python, os.getpid()).ask([function, *arguments])
    finally:
        if "value" not in answer:
            _worker.cache_clear()
    if "value" in answer:
        return answer["value"]
    error = answer["error"]
    if error.startswith(("ImportError", "ModuleNotFoundError", "importlib.metadata.")):
        problem = f"{python} cannot import COMET ({error}): correct its environment"
        raise UsageError(problem, parameter="metric", code="not-supported")
    problem = "the model cannot be loaded"
    remedy = "name one that you may download, such as Unbabel/wmt22-comet-da, or a .ckpt file"
    if function == "predict" or "ended" in answer:
        problem, remedy = "COMET failed", "see whether the program comet-score can use this model"
    raise DataError(f"{problem} ({error}): {remedy}", model, code="damaged")


def _python() -> Path:
    """Return the Python that has unbabel-comet: the one next to the program `comet-score`."""
    program = _program()
    if program is None:
        problem = f"there is no program comet-score: {_INSTALL}, or add scores as a column"
        raise UsageError(problem, parameter="metric", code="not-supported")
    return Path(program).resolve().with_name("python.exe" if os.name == "nt" else "python")


def _program() -> str | None:
    """Return the path of the program `comet-score`; None if there is none."""
    folders = [os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)]
    return shutil.which("comet-score", path=os.pathsep.join(folders))


class _Worker:
    """A process of the Python that has unbabel-comet; it keeps the model loaded.

    It ends when this object is deleted, at the latest with our process.
    """

    def __init__(self, python: Path) -> None:
        # Isolated: PYTHONPATH is meant for our Python, and this folder has a module `comet`, too.
        command = [str(python), "-I", str(Path(__file__).with_name("comet_worker.py"))]
        self._lock = Lock()
        self._log = TemporaryFile()  # noqa: SIM115  closed by `_end`
        try:
            self._process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=self._log, text=True)
        except OSError as error:
            self._log.close()
            problem = f"{python} cannot be started ({error.strerror}): {_INSTALL}"
            raise UsageError(problem, parameter="metric", code="not-supported") from error
        self._end = finalize(self, _end, self._process, self._log)

    def ask(self, request: list[Any]) -> dict[str, Any]:
        """Return the answer to a request, or why the process ended."""
        with self._lock:
            try:
                print(json.dumps(request), file=self._process.stdin, flush=True)
                line = cast(IO[str], self._process.stdout).readline()
            except OSError:  # it had ended before
                line = ""
            except BaseException:  # after Ctrl-C the answer would be taken for the next one
                self._end()
                raise
            if not line:
                return {"error": self._cause(), "ended": True}
            answer: dict[str, Any] = json.loads(line)
            return answer

    def _cause(self) -> str:
        """Return why the process ended."""
        status = self._process.wait()
        if status < 0:
            return f"killed by signal {-status}, as for lack of memory"
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), f"exit {status}")


def _end(process: Popen[str], log: IO[bytes]) -> None:
    """End a process, and close its files."""
    process.kill()
    process.wait()
    for file in (process.stdin, process.stdout, log):
        with suppress(OSError):  # a request that the process has not read
            cast(IO[Any], file).close()


@lru_cache(1)
def _worker(python: Path, parent: int) -> _Worker:
    """Return the process that works for this one, started once; forked processes start theirs."""
    return _Worker(python)
