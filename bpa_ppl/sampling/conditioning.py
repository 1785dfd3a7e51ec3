"""update: condition a posterior on sentences more, without starting over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpa_ppl.diagnostics import refuse_unconverged
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import as_draws, to_arviz
from bpa_ppl.progress import Reporter
from bpa_ppl.sampling.base import Sampler
from bpa_ppl.sampling.updating import Sequential

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import MovedFiles
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData
    from bpa_ppl.quality import Metric, Oracles


def update(
    posterior: Posterior,
    nbest: NBest,
    *,
    adaptation_lists: NBest | None = None,
    metric: str | Metric | None = None,
    oracle: Oracles | None = None,
    moved_files: MovedFiles | None = None,
    sampler: str | Sampler = "imh",
    seed: int = 0,
    jobs: int = 1,
    cache: bool = True,
    unchecked: bool = False,
    progress: bool | Reporter = False,
) -> InferenceData:
    """Condition a posterior on sentences more: p(λ | A, a) ∝ p(λ | A) p(a | λ).

    With the likelihood, the metric, the gains and the features that the posterior was adapted
    with. Its draws are weighed by the likelihood of the new sentences, Pareto-smoothed. Where k̂
    exceeds 0.7, or the weights leave fewer than a tenth of the draws or 100, draws are made
    afresh: from the exact density, if `adaptation_lists` is given or the posterior was adapted to
    no sentence; else a Gaussian of its mean and covariance, as `adapt` left them, stands for the
    sentences that it was adapted to, and a warning says so. What the model sees of the sentences
    that are added here is kept in the posterior, about 32 kB for 500 hypotheses of 14 features, so
    that those enter exactly in any case. What features have learned from the adaptation sentences
    themselves (`lm=self`) stays as it was.

    For a stream of sentences `bpa_ppl.sampling.Sequential` does the same step by step, without the
    way to ArviZ and back.

    Args:
        posterior: from `adapt` by a sampler that draws, or from an update.
        nbest: lists of the new sentences, with references if the metric needs them.
        adaptation_lists: the lists that `adapt` was given, in the same order, with references.
        metric: the criterion, where it is none by name or has settings of its own.
        oracle: oracles of the new sentences, found before.
        moved_files: as for `rerank`.
        sampler: of fresh draws: `imh`, `laplace`, another one by name, or one with its settings.
        seed: of fresh draws.
        jobs: processes of the search for oracles.
        cache: whether the gains of its sentences are kept on the disk.
        unchecked: use the posterior although it fails its check.
        progress: True draws a bar on standard error.

    Returns:
        a posterior as `adapt` returns one, whose attribute `updates` says how each step went;
        draws with importance weights, or fresh ones.

    Raises:
        NotConverged: if the posterior fails `check` and `unchecked` is false.
        DataError: if lists and posterior do not fit one another, or the posterior does not say how
            its sentences were observed.
        UsageError: if the posterior holds no draws of it, or the metric is another one.

    >>> import numpy as np
    >>> from bpa_ppl import Draws, NBest, Oracles
    >>> attrs = {"likelihood": {"name": "oracle"}, "adaptation_sentences": 3}
    >>> drawn = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> constants = {"canonical": np.zeros(1)}
    >>> before = Draws({"weights": drawn}, ("LM0",), constants=constants, attrs=attrs)
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> second = Oracles(np.array([1]), np.zeros(1), np.array([1]), "first", "ter", "")
    >>> after = as_draws(update(before, lists, oracle=second))
    >>> after.attrs["adaptation_sentences"], bool(after.mean[0] > before.mean[0])
    (4, True)
    """
    draws = as_draws(posterior)
    if not unchecked and draws.kind != "point":
        refuse_unconverged(draws)
    growing = Sequential(
        draws,
        adaptation_lists=adaptation_lists,
        metric=metric,
        moved_files=moved_files,
        sampler=sampler,
        seed=seed,
        jobs=jobs,
        cache=cache,
    )
    growing.add(nbest, oracle=oracle, progress=progress)
    return to_arviz(growing.draws())
