"""The default likelihood: which one is best for a kind of gain, as measured on held-out lists."""

from __future__ import annotations

from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.preferences import has_preferences
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.likelihoods.oracle import Margin, Oracle
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.likelihoods.preference import Preference

#: Of lists with preferences, where another likelihood learns.
UNUSED = "the preferences are not used: only the likelihood preference observes them"
#: Metrics with a margin: it is the best of the likelihoods on held-out sentences of translations,
#: and was not compared with others by WER and CER.
_WITH_MARGIN = ("ter", "bleu", "chrf", "ter+bleu", "wer", "cer")
#: Of exponents of 0.06 to 0.5 and powers of 0 to 1.5, on held-out lists of 24 collections, with the
#: names of systems and without them: docs/results/choices.md.
_OF_JUDGEMENTS = Pairs(exponent=0.25, power=0.75)


def choose_likelihood(gain: Metric, lists: NBest, *, of_two: bool) -> Likelihood:
    """Return the likelihood with the best results for this kind of gain on held-out sentences.

    `margin` for TER, BLEU, chrF, `ter+bleu`, WER and CER; on translations it halves the spread over
    samples of sentences. `pairs` weighted by differences for any other gain, such as expert
    judgements or a neural metric: on average over collections its choices are nearer to those of
    the best simple way than the choices of `risk` and `margin`. `risk` says nothing about the good
    candidates of a list if a few others are far worse than they are. `oracle` if the gain says
    which of two candidates was chosen: on pairs it is the likelihood of Bradley and Terry, whose
    probabilities are calibrated. If gains are unknown because the lists have no references:
    `preference` for lists that carry preferences, else `oracle`.

    Args:
        gain: a metric or a column.
        lists: the adaptation sentences.
        of_two: whether the gain says which of two candidates was chosen, see `JudgedRows`.
    """
    if "references" in gain.needs and lists.references is None and len(lists):
        return Preference() if has_preferences(lists) else Oracle()
    if gain.key in _WITH_MARGIN:
        return Margin()
    if of_two:
        return Oracle()
    return _OF_JUDGEMENTS
