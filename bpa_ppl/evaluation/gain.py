"""The gain that lists are judged by."""

from __future__ import annotations

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.errors import DataError
from bpa_ppl.features.recipe import read_gain
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.gains import count_statistics, default_gain, resolve, select_choices
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.preferences import has_preferences
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weight_draws import WeightDraws

#: The name of the gain of preferences.
ACCURACY = "accuracy"
#: Metrics whose gains are numbers of words.
_IN_WORDS = ("bleu", "chrf", "ter+bleu")
#: Metrics whose corpus score is the sum of minus the gains over that of the lengths, in percent.
_ERROR_RATES = ("ter", "wer", "cer")


def choose_recorded_gain(lists: NBest, draws: WeightDraws) -> Metric | None:
    """Return the gain that a posterior records, or else the default of `adapt`.

    It is None if the lists lack what the gain needs.
    """
    gain = read_gain(draws.adaptation)
    if gain is None or not set(gain.columns) <= {*lists.feature_names, *lists.extras}:
        gain = resolve(default_gain(lists, canonical=draws.adaptation.canonical))
    return gain if has_inputs(lists, gain) else None


def choose_compared_gain(lists: NBest, draws: WeightDraws) -> Metric | None:
    """Return the gain, or None to compare choices by the preferences that lists have.

    These come first if the posterior was adapted to preferences.
    """
    first = uses_preferences(draws) and has_preferences(lists)
    return None if first else choose_recorded_gain(lists, draws)


def uses_preferences(draws: WeightDraws) -> bool:
    """Return whether a posterior was adapted to preferences."""
    return draws.adaptation.observed.kind == "preferences"


def has_inputs(lists: NBest, gain: Metric) -> bool:
    """Return whether lists have the columns, references and sources that a gain needs."""
    references = bool(lists.references) and all(lists.references or ())
    inputs = {"references": references, "sources": lists.sources is not None}
    has_columns = set(gain.columns) <= {*lists.feature_names, *lists.extras}
    return has_columns and all(inputs.get(name, True) for name in gain.needs)


def explain_missing_gains(lists: NBest, draws: WeightDraws) -> DataError:
    """Return the error for lists that cannot be evaluated: see `choose_recorded_gain`."""
    gain, judgements = read_gain(draws.adaptation), "a column of judgements"
    if uses_preferences(draws):
        judgements = "preferences or rankings"
    elif gain is not None and gain.columns:
        judgements = f"the column {', '.join(gain.columns)}"
    elif gain is not None and "sources" in gain.needs and lists.sources is None:
        message = f"no sources, which the gain {gain.key} needs: add them"
        return DataError(message, lists.origin, parameter="sources", code="missing-sources")
    message = f"the lists have neither references nor {judgements}: add one of them"
    return DataError(message, lists.origin, parameter="references", code="missing-references")


def name_gain(gain: Metric | None) -> str:
    """Return the name of a gain, as tables print it; None is that of preferences."""
    if gain is None:
        return ACCURACY
    if isinstance(gain, Column):
        return f"−{gain.title}" if gain.negative else gain.title
    if gain.key in _ERROR_RATES:
        return f"−{gain.title}"
    unit = " in words" if gain.key in _IN_WORDS else ""
    return f"{gain.key} gain{unit}"


def find_lengths(lists: NBest, gain: Metric | None) -> Float64:
    """Return by what the gains of lists are divided, so that their mean is an error rate, (S,).

    For other metrics, columns and preferences it is 1.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.gains.gains import resolve
    >>> lists = from_lists([["a cat"]], [[[1.0]]], ["lm"], references=["the cat sat"])
    >>> find_lengths(lists, resolve("ter")).tolist(), find_lengths(lists, None).tolist()
    ([0.03], [1.0])
    """
    if gain is None or gain.key not in _ERROR_RATES:
        return np.ones(len(lists))
    first = select_choices(lists, np.zeros(len(lists), np.int64))
    return count_statistics(first, gain)[:, 1] / 100
