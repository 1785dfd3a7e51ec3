"""The likelihood that `adapt` uses unless one is chosen."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bpa_ppl.features.base import AnySource, resolve_sources
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.likelihoods.margin import Margin
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.models.likelihoods.risk import Risk
from bpa_ppl.nbest import NBest
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.column import Column, column_of, with_judged
from bpa_ppl.quality.preferences import has_preferences

#: Metrics with a margin: it is the best of the likelihoods on held-out sentences of translations,
#: and was not compared with others by WER and CER.
_WITH_MARGIN = ("ter", "bleu", "chrf", "ter+bleu", "wer", "cer")
#: On held-out lists of four kinds of collections with systems its choices win as much as those of
#: `risk`, or more: for summaries 0.05 and 0.1 of the headroom with 20 and 50 lists. Exponents of
#: 0.12 to 0.5 do the same, within 0.01.
_WITH_INDICATORS = Pairs(exponent=0.25, gain_scale="raw")


def default_likelihood(
    metric: Metric,
    nbest: NBest,
    categorical: str | Iterable[str] | None = None,
    add: AnySource | Iterable[AnySource] | None = None,
) -> Likelihood:
    """Return the likelihood with the best results for this kind of gain on held-out sentences.

    `margin` for TER, BLEU, chrF, `ter+bleu`, WER and CER; on translations it halves the spread over
    samples of sentences. `risk` for any other gain, such as expert judgements or a neural metric:
    on held-out parts of the pools of WMT 2023, with 10 judged lists, it wins 0.58 of the headroom
    with all metrics and 0.38 with six features; `margin` wins 0.53 and 0.30. For these gains
    `pairs` with differences, if there are indicators such as those of systems: with many lists the
    expected gain asks for no more than one good system. `oracle` if the gain says which of two
    candidates was chosen: on pairs it is the likelihood of Bradley and Terry, whose probabilities
    are calibrated, and it chooses as well as `risk`, whose probabilities are not. If gains are
    unknown because the lists have no references: `preference` for lists that carry preferences,
    else `oracle`.

    Args:
        metric: the gain.
        nbest: the adaptation sentences.
        categorical: as for `adapt`.
        add: as for `adapt`.
    """
    if "references" in metric.needs and nbest.references is None and len(nbest):
        return Preference() if has_preferences(nbest) else Oracle()
    if metric.key in _WITH_MARGIN:
        return Margin()
    if is_choice_of_two(metric, nbest):
        return Oracle()
    sources = resolve_sources(() if add is None else add)
    with_indicators = categorical or any(isinstance(s, Indicators) for s in sources)
    return _WITH_INDICATORS if with_indicators else Risk()


def is_choice_of_two(metric: Metric, nbest: NBest) -> bool:
    """Return whether a gain says which of two candidates was chosen, such as 1 and 0.

    There are two lists or more, each with two judged candidates, and two values in all of them; in
    a tie both candidates have the same one.

    Args:
        metric: the gain.
        nbest: the adaptation sentences.

    >>> lists = NBest.from_lists([["a", "b"], ["c", "d"]], [[[0.0], [1.0]]] * 2, ["judge"])
    >>> chosen, graded = [[1, 0], [0, 1]], [[1, 0], [0, 2]]
    >>> lists = lists.with_extras(chosen=np.ravel(chosen), graded=np.ravel(graded))
    >>> [is_choice_of_two(Column(column=name), lists) for name in ("chosen", "graded")]
    [True, False]
    """
    columns = {*nbest.feature_names, *nbest.extras}
    if not isinstance(metric, Column) or metric.column not in columns:
        return False
    gains = column_of(nbest, metric.column)
    judged, rows = with_judged(nbest, np.isfinite(gains))
    return len(judged) > 1 and int(judged.sizes.max()) == 2 and len(np.unique(gains[rows])) == 2
