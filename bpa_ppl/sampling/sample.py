"""sample: from any NumPyro program with its arguments to checked draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from bpa_ppl._runtime.messages import log_info
from bpa_ppl.densities.dimensions import label_sites
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.densities.target import MOST_KEPT, NUMPYRO_LOCK, draw_predictive, inspect_model
from bpa_ppl.errors import UsageError, list_names
from bpa_ppl.posterior.arviz_data import to_arviz
from bpa_ppl.posterior.arviz_functions import prepare_arviz
from bpa_ppl.sampling.finish import draw_posterior

if TYPE_CHECKING:
    from bpa_ppl._runtime.progress import Reporter
    from bpa_ppl.posterior.arviz_functions import InferenceData
    from bpa_ppl.samplers.sampler import Sampler


def sample(
    model: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    sampler: str | Sampler = "auto",
    seed: int = 0,
    coords: Mapping[str, Sequence[Any]] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    log_likelihood: bool | None = None,
    predict: bool = False,
    progress: bool | Reporter = False,
) -> InferenceData:
    """Draw from the posterior of any NumPyro program, and check the draws.

    Sites of few discrete values are summed out where the package funsor is installed (the extra
    `enumerate`); there is no `log_likelihood` then. With an improper prior there is no group
    `prior`, and no check can show that the posterior is proper.

    Args:
        model: the program.
        args: its positional arguments, as a tuple. Columns of a data frame become arrays.
        kwargs: its keyword arguments.
        sampler: a name, such as `numpyro:HMC`, with settings as in `nuts:draws=2000,chains=2`; or a
            `Sampler`. `auto` is `imh` if a pilot sample shows that proposals around the mode fit,
            else `nuts`.
        seed: the same seed gives the same draws, to the bit on the same machine.
        coords: dimension -> the labels of its cells, as ArviZ takes them.
        dims: site -> the names of its dimensions. By default, they are those of its plates.
        log_likelihood: whether to keep the log likelihood of each observation and draw; None keeps
            at most 100 million numbers, 0.4 GB.
        predict: whether each draw predicts the observed sites, as they would be observed again.
        progress: True draws a bar on standard error.

    Returns:
        InferenceData with the groups `posterior`, `sample_stats`, `log_prior`, `prior`,
            `observed_data` and, if they exist, `warmup_posterior`, `log_likelihood` and
            `posterior_predictive`.

    Raises:
        DataError: if the posterior cannot be sampled in this way.
        UsageError: if the program cannot be run or sampled; or there is no such sampler, setting,
            site of `dims` or dimension of `coords`; or their lengths are wrong.

    >>> import jax.numpy as jnp
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> def model(y):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
    ...     numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)
    >>> data = sample(model, (jnp.array([1.0, 2.0, 3.0]),), seed=1)
    >>> bool(abs(data["posterior"]["mean"].mean() - 2.0) < 0.1), data.attrs["chosen"]
    (True, 'imh')
    """
    most = MOST_KEPT if log_likelihood is None else np.inf if log_likelihood else -1.0
    target = label_sites(make_model_target(model, args, kwargs), coords, dims)
    target = replace(target, most_kept=most)
    if log_likelihood and (discrete := inspect_model(target).discrete):
        raise UsageError(
            f"{list_names(discrete)} of the model is summed out, so that observations have no log "
            "likelihood of their own: leave out log_likelihood",
            parameter="log_likelihood",
            code="not-supported",
        )
    if predict and not inspect_model(target).observed:
        message = f"predict needs data that {target.model.__name__} observes (obs=)"
        raise UsageError(message, parameter="predict", code="no-data")
    with NUMPYRO_LOCK:  # SciPy fails in a thread while xarray imports Dask in another
        prepare_arviz()
    draws = draw_posterior(target, sampler, seed=seed, progress=progress)
    count = inspect_model(target).observations
    if log_likelihood is None and count and not draws.log_likelihood:
        problem = f"the log likelihoods of {count:,} observations are not kept: they are more than"
        log_info(f"{problem} {MOST_KEPT:,} numbers; log_likelihood=True keeps them")
    if predict:
        with NUMPYRO_LOCK, jax.enable_x64(True):
            latent = {name: draws.values[name] for name in draws.sites}
            draws = replace(draws, predictive=draw_predictive(target, latent, seed))
    with NUMPYRO_LOCK:  # SciPy fails in a thread while xarray imports Dask in another
        return to_arviz(draws)
