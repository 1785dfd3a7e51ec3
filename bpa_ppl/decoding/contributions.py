"""What each added feature contributed: scores of the choices with it, and without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.decoding.reranking import with_defaults
from bpa_ppl.diagnostics.improvement import Contribution
from bpa_ppl.errors import DataError
from bpa_ppl.features.recipes import columns_of
from bpa_ppl.models import Preparation
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.quality import Metric, choice_score

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import MovedFiles
    from bpa_ppl.posterior.adapter import Posterior


def contributions(
    nbest: NBest,
    posterior: Posterior,
    *,
    metrics: Sequence[str | Metric] = ("ter", "bleu"),
    defaults: Mapping[str, float] | None = None,
    moved_files: MovedFiles | None = None,
) -> list[Contribution]:
    """Compare the choices with those that would be made without each added feature.

    One weight vector decides: the posterior mean. Without a feature it is the mean given that the
    weight of the feature is 0, as if the posterior were Gaussian: others may take its place, as
    they would if the weights were adapted without it. (On real lists within 0.05 TER of what
    adapting again without a source gives, and within 0.5 where all sources are left out.)

    Args:
        nbest: lists with references, best ones that the posterior has not seen.
        posterior: from `adapt(add=…)`.
        metrics: in which the choices are scored.
        defaults: as for `rerank`.
        moved_files: as for `rerank`.

    Returns:
        the canonical choices, those with all features, those without any of the added ones, and
        those without each source, and each feature of a source that has several.

    Raises:
        DataError: if no feature was added, or the lists lack references or what features need.
    """
    draws = with_defaults(as_draws(posterior), defaults)
    sources = columns_of(draws.attrs)
    if not sources:
        raise DataError("the posterior has no added features: adapt with some (add)")
    prepared = Preparation.recorded(
        draws.attrs, draws.constants, moved_files, draws.features, draws.fixed
    )
    lists = prepared(nbest)
    complete = lists.best(lists.scores(draws.aligned(lists, draws.mean[None])[0]))

    def of(label: str, features: tuple[str, ...], weights: Float64) -> Contribution:
        choice = lists.best(lists.scores(draws.aligned(lists, weights[None])[0]))
        scores = tuple(choice_score(lists, choice, metric) for metric in metrics)
        pairs = zip(lists.chosen(choice), lists.chosen(complete), strict=True)
        return Contribution(label, features, scores, sum(a != b for a, b in pairs))

    rows = [] if draws.canonical is None else [of("canonical", (), draws.canonical)]
    rows.append(of("adapted", (), draws.mean))
    for label, features in _left_out(sources):
        rows.append(of(label, features, mean_without(draws, features)))
    return rows


def mean_without(draws: Draws, features: Sequence[str]) -> Float64:
    """Return the posterior mean of the weights given that some are 0, (Q,), if it is Gaussian.

    Where a feature never moves, such as in a single draw, the others stay where they are.

    >>> rng = np.random.default_rng(1)
    >>> both = rng.multivariate_normal([1, 2], [[1, 0.5], [0.5, 1]], (1, 50000))
    >>> mean_without(Draws({"weights": both}, ("a", "b")), ["b"]).round(1).tolist()
    [0.0, 0.0]
    """
    out = np.isin(draws.features, list(features))
    mean = draws.mean
    if len(draws.flat) > 1:
        covariance = np.atleast_2d(np.cov(draws.flat.T, aweights=draws.importance))
        shift = np.linalg.pinv(covariance[np.ix_(out, out)]) @ mean[out]
        mean = mean - covariance[:, out] @ shift
    return np.asarray(np.where(out, 0.0, mean))


def _left_out(sources: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if len(sources) > 1:
        yield "without any of them", tuple(name for names in sources.values() for name in names)
    for label, names in sources.items():
        yield f"without {label}", names
        if len(names) > 1:
            yield from ((f"without the column {name}", (name,)) for name in names)
