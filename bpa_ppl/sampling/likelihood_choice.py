"""The default likelihood: which one is best for a kind of gain, as measured on held-out lists."""

from __future__ import annotations

from bpa_ppl.metrics.column import is_choice_of_two
from bpa_ppl.metrics.metric import Metric
from bpa_ppl.metrics.preferences import has_preferences
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.likelihoods.oracle import Margin, Oracle, Risk
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.nbest import NBest

#: Of lists with preferences, where another likelihood learns.
UNUSED = "the preferences are not used: only the likelihood preference observes them"
#: Metrics with a margin: it is the best of the likelihoods on held-out sentences of translations,
#: and was not compared with others by WER and CER.
_WITH_MARGIN = ("ter", "bleu", "chrf", "ter+bleu", "wer", "cer")
#: On held-out lists of four kinds of collections with systems its choices win as much as those of
#: `risk`, or more: for summaries 0.05 and 0.1 of the headroom with 20 and 50 lists. Exponents of
#: 0.12 to 0.5 do the same, within 0.01.
_WITH_INDICATORS = Pairs(exponent=0.25, gain_scale="raw")


def choose_likelihood(gain: Metric, lists: NBest, *, indicators: bool = False) -> Likelihood:
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
        gain: a metric or a column.
        lists: the adaptation sentences.
        indicators: whether categories, such as systems, are features.
    """
    if "references" in gain.needs and lists.references is None and len(lists):
        return Preference() if has_preferences(lists) else Oracle()
    if gain.key in _WITH_MARGIN:
        return Margin()
    if is_choice_of_two(gain, lists):
        return Oracle()
    return _WITH_INDICATORS if indicators else Risk()
