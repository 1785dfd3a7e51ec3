"""CPU seconds of commands in new processes, in units of `import jax` in the same run.

    python benchmarks/bench_start.py [--repeats 5]

All commands run in turn, with filled caches, on lists of 500 sentences × 500 candidates. Prints the
medians of their CPU seconds and of the ratios to `python -c "import jax"` in the same turn, with
the least and the largest ratio, and the peak memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from measuring import DATA, Table, few, run_tables, scratch_folder

CHOOSE = """
import bpa_ppl as bpa
reranker = bpa.Reranker("posterior.nc")
print(reranker.choose(["a", "b"], [[0.0] * len(reranker.feature_names)] * 2).text)
"""


def usage(command: Sequence[str]) -> tuple[float, float]:
    """Run a command, and return its CPU seconds and peak memory in MiB."""
    process = subprocess.Popen(command, cwd=scratch_folder(), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def commands(options: Any) -> None:
    """Print the CPU seconds of each command."""
    bpa, lists = [sys.executable, "-m", "bpa_ppl"], str(DATA / "medical/test.nbest.gz")
    reference, weights = str(DATA / "medical/test.ref"), str(DATA / "moses.ini")
    adapt = ["adapt", lists, "-w", weights, "--references", reference, "-q", "-o", "posterior.nc"]
    commands = {
        'python -c "import jax"': [sys.executable, "-c", "import jax"],
        "bpa --help": [*bpa, "--help"],
        "bpa adapt, 500 × 500-best, TER": [*bpa, *adapt],
        "bpa check": [*bpa, "check", "posterior.nc"],
        "bpa lists, 500 × 500-best": [*bpa, "lists", lists],
        "bpa rerank, 500 × 500-best": [*bpa, "rerank", lists, "-p", "posterior.nc", "-o", "out"],
        "import, Reranker(file), choose": [sys.executable, "-c", CHOOSE],
    }
    for command in few([*commands.values()], 0):  # fills the caches
        usage(command)
    runs = [
        {name: usage(command) for name, command in commands.items()} for _ in range(options.repeats)
    ]
    table = Table("CPU seconds", "seconds", "units", "from … to", "MiB")
    units = [run['python -c "import jax"'][0] for run in runs]
    for name in commands:
        seconds, memory = np.array([run[name] for run in runs]).T
        ratios = seconds / units
        spread = f"{ratios.min():.1f} … {ratios.max():.1f}"
        cells = np.median(seconds), np.median(ratios), spread, f"{memory.max():.0f}"
        table.row(name, *cells)


if __name__ == "__main__":
    run_tables(__doc__, (commands,), repeats=5)
