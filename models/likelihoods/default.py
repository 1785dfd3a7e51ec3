"""The likelihood that `adapt` uses unless one is chosen."""

from __future__ import annotations

from collections.abc import Iterable

from bpa_ppl.features.base import AnySource, resolve_sources
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.likelihoods.margin import Margin
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.models.likelihoods.risk import Risk
from bpa_ppl.nbest import NBest
from bpa_ppl.quality import Metric
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
    expected gain asks for no more than one good system. If gains are unknown because the lists have
    no references: `preference` for lists that carry preferences, else `oracle`.

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
    sources = resolve_sources(() if add is None else add)
    with_indicators = categorical or any(isinstance(s, Indicators) for s in sources)
    return _WITH_INDICATORS if with_indicators else Risk()
