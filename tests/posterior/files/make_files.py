r"""Write draws as CmdStan and PyMC write them, by the documentation of their formats.

The posterior is known: of the mean of five normal observations of standard deviation 1, with a
normal prior of standard deviation 10.

    .venv/bin/python tests/posterior/files/make_files.py

`thinned_*.csv` is output of CmdStan 2.37 itself, of the model that the package prophet 1.5 has
compiled:

    prophet_model.bin sample num_samples=20 num_warmup=25 save_warmup=1 thin=3 num_chains=2 \
        data file=d.json random seed=7 output file=thinned.csv sig_figs=6
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from xarray import Dataset, DataTree

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parents[1]))
from support.cmdstan import write_cmdstan  # noqa: E402

Y = np.array([1.2, 0.3, 0.9, 2.1, 0.5])
PRECISION = len(Y) + 0.01
SHAPE = 4, 500


def main() -> None:
    """Write the files."""
    rng = np.random.default_rng(5)
    stan, pymc = rng.normal(Y.sum() / PRECISION, PRECISION**-0.5, (2, *SHAPE)).round(5)
    write_cmdstan(FOLDER, ["mu"], stan[..., None])
    numbers = {"chain": np.arange(SHAPE[0]), "draw": np.arange(SHAPE[1])}
    attrs = {"inference_library": "pymc", "inference_library_version": "5.0", "sampling_time": 1.5}
    posterior = Dataset({"mu": (("chain", "draw"), pymc)}, numbers, attrs)
    lp = -PRECISION / 2 * (pymc - pymc.mean()) ** 2
    statistics = {"lp": lp, "diverging": np.zeros(SHAPE, bool), "n_steps": np.full(SHAPE, 3)}
    stats = Dataset({n: (("chain", "draw"), x) for n, x in statistics.items()}, numbers, attrs)
    data = Dataset({"y": ("y_dim_0", Y)}, attrs={"inference_library": "pymc"})
    groups = {"posterior": posterior, "sample_stats": stats, "observed_data": data}
    DataTree.from_dict(groups).to_netcdf(FOLDER / "pymc.nc", engine="h5netcdf")


if __name__ == "__main__":
    main()
