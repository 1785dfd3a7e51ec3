"""A decoder that is a command of the user's own."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats import write_weights
from bpa_ppl.nbest import NBest
from bpa_ppl.weights import Weights


@dataclass(frozen=True)
class Command:
    """A shell command that reads weights from a file and writes n-best lists to another.

    Args:
        line: the command; `{weights}` and `{nbest}` stand for the two files.
        read: reads the lists.
        template: a moses.ini: the weights are then written as a copy of it with new weights,
            and else one label a line, `Name0= value …`.

    Raises:
        UsageError: if the command does not say where the two files go.
    """

    line: str
    read: Callable[[Path], NBest]
    template: Path | None = None

    def __post_init__(self) -> None:
        for place in ("{weights}", "{nbest}"):
            if place not in self.line:
                raise UsageError(
                    f"the decoder command has no {place}: write it where the command takes the "
                    "name of that file"
                )

    def __call__(self, weights: Weights) -> NBest:
        """Run the command in a shell, with files in a folder that is removed afterwards.

        Raises:
            DataError: if it fails, or writes no lists that can be read.
        """
        with tempfile.TemporaryDirectory(prefix="bpa-") as folder:
            given, made = Path(folder) / "weights", Path(folder) / "nbest"
            write_weights(weights, given, template=self.template, format=self._format)
            places = {"{weights}": given, "{nbest}": made}
            line = self.line
            for place, path in places.items():
                line = line.replace(place, shlex.quote(str(path)))
            _run(line)
            if not made.is_file():
                raise DataError(f"the decoder command wrote no n-best lists: {self.line}")
            return self.read(made)

    @property
    def _format(self) -> str:
        return "dense" if self.template is None else "moses.ini"


def _run(line: str) -> None:
    done = subprocess.run(
        line, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise DataError(
            f"the decoder command failed with exit code {done.returncode}: "
            f"{said[-1] if said else 'it said nothing'}; try it by hand: {line}"
        )
