"""adapt: from n-best lists and canonical weights to a posterior over weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import jax
import numpy.typing as npt

from bpa_ppl.compilation import keep_compiled
from bpa_ppl.models import log_linear, tabulate
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import build
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import Oracles, oracles
from bpa_ppl.sampling.density import (
    Model,
    constrained,
    constrained_draws,
    evaluate,
    prior_draws,
    starting_point,
    unraveller,
)
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.placement import place
from bpa_ppl.sampling.registry import configure, load
from bpa_ppl.weights import Match, check_totals, match

if TYPE_CHECKING:
    from arviz import InferenceData

_PRIOR_DRAWS = 1000


def adapt(
    nbest: NBest,
    prior: Mapping[str, float],
    *,
    sampler: str = "auto",
    prior_variance: npt.ArrayLike = 0.1,
    seed: int = 0,
    metric: str = "ter",
    ties: str = "canonical",
    oracle: Oracles | None = None,
    jobs: int = 1,
    cache: bool = True,
    fixed: Iterable[str] | None = None,
    defaults: Mapping[str, float] | None = None,
    model: Model = log_linear,
    progress: bool | Reporter = False,
    **settings: Any,
) -> InferenceData:
    """Condition the weights on the oracles of a few sentences (Eq. 7).

    Args:
        nbest: n-best lists of the adaptation sentences, with references; no sentence at all
            gives the prior back.
        prior: the canonical weights λ_T, by feature name.
        sampler: `auto`, `imh`, `nuts`, `rwm`, `laplace`, `map`, or as published `heuristic` and
            `rwm-isotropic`.
        prior_variance: σ_T, a variance; one number, or one a free feature.
        seed: the same seed gives the same draws to the bit on the same machine.
        metric: what makes an oracle: `ter`, `bleu` or `chrf`.
        ties: how ties between oracles are broken.
        oracle: oracles found before; then no references are needed.
        jobs, cache: of the search for oracles, see `oracles`.
        fixed: features held at their canonical weight; None holds `UnknownWordPenalty0`.
        defaults: weights of features that `prior` does not name.
        model: a NumPyro model over `Adaptation` with a site `weights`.
        progress: True draws a bar on standard error.
        settings: of the sampler: `draws`, `warmup`, `chains`, `proposal_variance`, `delta`, …

    Returns:
        InferenceData with the groups named in `bpa_ppl.posterior`.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if a sampler, metric or setting does not exist or makes no sense.
    """
    configuration = configure(sampler, settings)
    matched = match(prior, nbest, fixed=fixed, defaults=defaults)
    check_totals(nbest, matched.values)
    chosen = oracle
    if chosen is None:
        with reporter(progress, "oracles") as report:
            chosen = oracles(
                nbest,
                metric,
                ties=ties,
                scores=nbest.scores(matched.values),
                jobs=jobs,
                cache=cache,
                progress=report,
            )
    keep_compiled()
    with jax.enable_x64(True):
        devices = len(jax.devices())
        data = place(tabulate(nbest, matched, chosen.index, prior_variance, multiple=devices))
        start = starting_point(model, data)
        with reporter(progress, f"adapt {sampler}") as report:
            problem = Problem(model, data, start, seed, report)
            draws = load(sampler).sample(problem, configuration)
        groups = _groups(problem, draws, matched, chosen)
    coords = {
        "feature": list(matched.free_names),
        "sentence": nbest.sentence_ids,
        "held_feature": [n for n in matched.names if n not in matched.free_names],
    }
    attrs = _attributes(sampler, configuration, seed, chosen, model, nbest)
    return build(groups, coords, attrs | draws.attrs)


def _groups(problem: Problem, draws: Draws, matched: Match, chosen: Oracles) -> dict[str, dict]:
    model, data = problem.model, problem.data
    likelihood = draws.log_likelihood
    if likelihood is None:
        likelihood = evaluate(model, data, draws.z)[1]
    constants = {
        "canonical": data.prior_mean,
        "prior_variance": data.prior_variance,
        "held": matched.values[~matched.free],
        "oracle_score": chosen.score,
    }
    if draws.mode is not None:
        at_mode = unraveller(problem.start)(draws.mode)
        constants["mode"] = constrained(model, data, at_mode)["weights"]
    key = jax.random.key(problem.seed)
    return jax.device_get(
        {
            "posterior": constrained_draws(model, data, draws.z),
            "warmup_posterior": constrained_draws(model, data, draws.warmup)
            if draws.warmup
            else {},
            "prior": {"weights": prior_draws(model, data, _PRIOR_DRAWS, key)[None]},
            "sample_stats": draws.stats,
            "log_likelihood": {"oracle": likelihood},
            "observed_data": {"oracle": chosen.index},
            "constant_data": constants,
        }
    )


def _attributes(
    sampler: str, settings: Any, seed: int, chosen: Oracles, model: Model, nbest: NBest
) -> dict[str, Any]:
    packages = ("bpa_ppl", "numpyro", "jax", "arviz", "sacrebleu")
    return {
        "sampler": sampler,
        "settings": asdict(settings),
        "seed": seed,
        "model": getattr(model, "__name__", str(model)),
        "oracle_metric": chosen.metric,
        "oracle_ties": chosen.ties,
        "oracle_signature": chosen.signature,
        "adaptation_sentences": len(nbest),
        "source": nbest.source,
        "versions": {name: version(name) for name in packages},
    }
