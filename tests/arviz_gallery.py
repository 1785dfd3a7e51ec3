"""The plots of ArviZ 0.23's gallery that apply to a posterior of the weights.

`python tests/arviz_gallery.py FOLDER` draws all of them for the demo data. Those that do not apply:
`plot_hdi`, `plot_lm`, `plot_ts` (regression on a covariate, time series), `plot_separation` (an
observation is a choice among many), `plot_dot` and `plot_kde` (arrays; `plot_posterior` and
`plot_density` call them).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

import bpa_ppl as bpa
from bpa_ppl.diagnostics import with_predictions
from bpa_ppl.experiments import target
from bpa_ppl.posterior import import_arviz

Plot = Callable[[Any, Any], Any]

_W = {"var_names": ["weights"]}
#: For draws that count equally: chains, or importance samples after `resampled()`.
ANY_DRAWS: dict[str, Plot] = {
    "plot_posterior": lambda az, data: az.plot_posterior(data, **_W),
    "plot_forest": lambda az, data: az.plot_forest(data, **_W, combined=True),
    "plot_forest (ridge)": lambda az, data: az.plot_forest(data, **_W, kind="ridgeplot"),
    "plot_pair": lambda az, data: az.plot_pair(data, **_W, kind="kde", marginals=True),
    "plot_density": lambda az, data: az.plot_density(data, **_W),
    "plot_violin": lambda az, data: az.plot_violin(data, **_W),
    "plot_dist": lambda az, data: az.plot_dist(data["posterior"]["weights"][..., 0].values),
    "plot_dist_comparison": lambda az, data: az.plot_dist_comparison(data, **_W),
    "plot_ppc": lambda az, data: az.plot_ppc(data, num_pp_samples=50, random_seed=1),
    "plot_ppc (cumulative)": lambda az, data: az.plot_ppc(
        data, kind="cumulative", num_pp_samples=50, random_seed=1
    ),
    "plot_bpv": lambda az, data: az.plot_bpv(data, kind="t_stat", t_stat="mean"),
}
#: Compiles for half a minute.
SLOW: dict[str, Plot] = {
    "plot_bf": lambda az, data: az.plot_bf(_one_weight(az, data), "weight", ref_val=0.0)
}
#: For chains.
CHAINS: dict[str, Plot] = {
    "plot_trace": lambda az, data: az.plot_trace(data, **_W, compact=False),
    "plot_trace (rank bars)": lambda az, data: az.plot_trace(
        data, **_W, compact=False, kind="rank_bars"
    ),
    "plot_rank": lambda az, data: az.plot_rank(data, **_W),
    "plot_autocorr": lambda az, data: az.plot_autocorr(data, **_W, combined=True),
    "plot_ess": lambda az, data: az.plot_ess(data, **_W, kind="evolution"),
    "plot_mcse": lambda az, data: az.plot_mcse(data, **_W),
    "plot_loo_pit": lambda az, data: az.plot_loo_pit(data, y="oracle", ecdf=True),
    "plot_khat": lambda az, data: az.plot_khat(az.loo(data, var_name="oracle", pointwise=True)),
    "plot_ecdf": lambda az, data: az.plot_ecdf(data["posterior"]["weights"][..., 0].values.ravel()),
}
#: For draws of NUTS or HMC.
HMC: dict[str, Plot] = {
    "plot_energy": lambda az, data: az.plot_energy(data),
    "plot_parallel": lambda az, data: az.plot_parallel(data, **_W),
    "plot_pair (divergences)": lambda az, data: az.plot_pair(data, **_W, divergences=True),
}
#: For two posteriors, by name.
SEVERAL: dict[str, Plot] = {
    "plot_compare": lambda az, data: az.plot_compare(
        az.compare({name: az.loo(one, var_name="oracle", pointwise=True) for name, one in data})
    ),
    "plot_elpd": lambda az, data: az.plot_elpd(
        {name: az.loo(one, var_name="oracle", pointwise=True) for name, one in data}
    ),
    "plot_density (two)": lambda az, data: az.plot_density(
        [one for _, one in data], data_labels=[name for name, _ in data], **_W
    ),
    "plot_forest (two)": lambda az, data: az.plot_forest(
        [one for _, one in data], model_names=[name for name, _ in data], combined=True, **_W
    ),
}


def _one_weight(az: Any, data: Any) -> Any:
    """Return posterior and prior of the first weight as ArviZ data with a scalar variable."""
    groups = {
        group: {"weight": data[group]["weights"][..., 0].values} for group in ("posterior", "prior")
    }
    return az.from_dict(**groups)


def draw(plots: dict[str, Plot], data: Any, folder: Path | None, prefix: str = "") -> None:
    """Draw plots, and write them to a folder if there is one."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    arviz = import_arviz()
    for name, plot in plots.items():
        plot(arviz, data)
        figure = pyplot.gcf()
        assert figure.axes, name
        if folder is not None:
            figure.savefig(folder / f"{prefix}{name.replace(' ', '-')}.png", dpi=45)
        pyplot.close("all")


def main(folder: Path) -> None:
    """Draw all plots for posteriors of the demo data."""
    folder.mkdir(exist_ok=True)
    with as_file(files("bpa_ppl.demo_data")) as data:
        pool = bpa.read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
        canonical = bpa.read_weights(data / "moses.ini")
    lists = pool.select(np.random.default_rng(0).permutation(len(pool))[:30])
    gains = bpa.gains(lists)

    def data_of(sampler: str, variance: float = 0.1) -> Any:
        """Return the posterior of four of the weights, with predictions."""
        options = {"likelihood": "oracle", "prior_variance": variance, "draws": 500, "seed": 1}
        posterior = bpa.adapt(lists, canonical, sampler=sampler, **options)
        complete = with_predictions(posterior, lists, gains=gains)
        return complete.sel(feature=complete["posterior"]["feature"].values[:4])

    chains, nuts = data_of("imh"), data_of("nuts")
    draw(ANY_DRAWS | CHAINS | SLOW, chains, folder, "imh-")
    draw(CHAINS | HMC, nuts, folder, "nuts-")
    draw(ANY_DRAWS, data_of("laplace"), folder, "laplace-")
    draw(SEVERAL, [("0.1", chains), ("0.01", data_of("imh", 0.01))], folder)
    known = target("hierarchical")
    options = {"sampler": "nuts", "draws": 500, **known.options}
    hierarchical = bpa.adapt(known.lists, known.weights, **options)
    names = {"var_names": ["shared", "scale", "weights"]}
    draw(
        {
            "plot_trace": lambda az, data: az.plot_trace(data, **names),
            "plot_forest": lambda az, data: az.plot_forest(
                data, var_names=["by_domain", "weights"]
            ),
            "plot_pair": lambda az, data: az.plot_pair(data, **names, divergences=True),
            "plot_energy": HMC["plot_energy"],
        },
        hierarchical,
        folder,
        "hierarchical-",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
