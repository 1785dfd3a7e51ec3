"""CSV files as CmdStan writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

_STATISTICS = "lp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__"
_HEAD = """# stan_version_major = 2
# stan_version_minor = 35
# model = schools_model
# method = sample (Default)
#   sample
#     num_samples = {count}
#     num_warmup = 1000 (Default)
#     save_warmup = false (Default)
#     thin = 1 (Default)
#     algorithm = hmc (Default)
# id = {chain}
"""
_END = """#
#  Elapsed Time: 0.1 seconds (Warm-up)
#                0.2 seconds (Sampling)
#                0.3 seconds (Total)
#
"""


def write_cmdstan(folder: Path, columns: Sequence[str], draws: npt.ArrayLike) -> None:
    """Write `output_1.csv` … with one chain each, and seven leapfrog steps of each draw.

    Args:
        folder: exists.
        columns: such as `theta.1`.
        draws: (chains, draws, columns).
    """
    for chain, values in enumerate(np.asarray(draws), 1):
        lines = [",".join([_STATISTICS, *columns]), "# Adaptation terminated", "# Step size = 0.5"]
        lines += ["# Diagonal elements of inverse mass matrix:", "# 1, 1"]
        energies = np.random.default_rng(chain).normal(size=len(values)).tolist()
        rows = zip(energies, values.tolist(), strict=True)
        lines += [",".join(map(repr, [-3.5, 0.9, 0.5, 3, 7, 0, e, *row])) for e, row in rows]
        text = _HEAD.format(count=len(values), chain=chain) + "\n".join(lines) + "\n" + _END
        (folder / f"output_{chain}.csv").write_text(text, "utf-8")
