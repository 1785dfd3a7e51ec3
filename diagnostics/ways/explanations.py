"""Two choices from each list: what each feature contributed, and shares of the systems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Int64
from bpa_ppl._runtime.messages import format_signed
from bpa_ppl.diagnostics.page import Block, Table
from bpa_ppl.diagnostics.ways.paired import INTERVAL, PROBABILITY, find_changed
from bpa_ppl.diagnostics.ways.simple_ways import find_system_column
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.features.recipe import Recipe
from bpa_ppl.lists.nbest import NBest, to_choice
from bpa_ppl.posterior.arviz_data import as_weight_draws
from bpa_ppl.posterior.draws import quantiles
from bpa_ppl.posterior.weight_draws import WeightDraws

if TYPE_CHECKING:
    from bpa_ppl.features.recipe import MovedFiles
    from bpa_ppl.posterior.arviz_data import Posterior

_TAILS = ((1 - PROBABILITY) / 2, (1 + PROBABILITY) / 2)
_MAX_TERMS = 6  # features in the table of one sentence
_SENTENCES_AT_ONCE = 256  # sentences whose differences are computed for all draws at once


class FeatureTerm(NamedTuple):
    """The contribution of one feature to the difference of two scores.

    Attributes:
        feature: its name.
        weight: the posterior mean of its weight, for one standard deviation within the lists.
        difference: of its value between the two candidates, in these standard deviations.
        contribution: weight × difference.
        low: lower end of the 95% interval of the contribution (equal-tailed); NaN for a point.
        high: upper end.

    >>> FeatureTerm("lm", 0.5, -2.0, -1.0, -1.5, -0.5).contribution
    -1.0
    """

    feature: str
    weight: float
    difference: float
    contribution: float
    low: float
    high: float


class ChoiceExplanation(NamedTuple):
    """Why a candidate was chosen rather than another one of its list.

    Scores are those of the posterior mean of the weights, and all differences are those of the
    chosen candidate from the other one.

    Attributes:
        sentence: the position of the list.
        chosen: the position of the chosen candidate in its list.
        other: the position of the other candidate.
        terms: one per feature, the largest contribution in absolute value first.
        difference: of the scores: the sum of the contributions.
        low: lower end of its 95% interval; NaN if the posterior is a single point.
        high: upper end.
        probability: the share of the draws in which the chosen candidate has the higher score.

    >>> lm = FeatureTerm("lm", 0.5, 2.0, 1.0, 0.5, 1.5)
    >>> tm = FeatureTerm("tm", 1.0, -0.5, -0.5, -1.0, 0.0)
    >>> explanation = ChoiceExplanation(0, 1, 0, (lm, tm), 0.5, -0.25, 1.25, 0.875)
    >>> explanation.deciding, explanation.summary
    (('lm',), 'lm decided: without it, the other candidate would have the higher score.')
    """

    sentence: int
    chosen: int
    other: int
    terms: tuple[FeatureTerm, ...]
    difference: float
    low: float
    high: float
    probability: float

    @property
    def deciding(self) -> tuple[str, ...]:
        """The features without any one of which the other candidate would score as high, or higher.

        None if the chosen candidate does not have the higher score by the mean of the weights.
        """
        if self.difference <= 0:
            return ()
        return tuple(t.feature for t in self.terms if t.contribution >= self.difference)

    @property
    def summary(self) -> str:
        """One sentence that names the deciding features, if there are some."""
        if not any(term.difference for term in self.terms):
            return "The features of both candidates are equal: the first in the list was chosen."
        if self.difference <= 0:
            return (
                "By the mean of the weights the other candidate scores at least as high: the "
                "choice follows from the decision rule, not from single features."
            )
        if not self.deciding:
            return (
                "No single feature decided: without any one of them, the chosen candidate keeps "
                "the higher score."
            )
        *others, last = self.deciding
        names = f"{', '.join(others)} and {last}" if others else last
        without = "any one of them" if others else "it"
        return (
            f"{names} decided: without {without}, the other candidate would have the higher score."
        )


def explain_choices(
    lists: NBest,
    posterior: Posterior,
    choice: npt.ArrayLike,
    other: npt.ArrayLike,
    *,
    moved_files: MovedFiles | None = None,
) -> list[ChoiceExplanation]:
    """Explain by the features why candidates were chosen, for each list where the texts differ.

    Args:
        lists: the lists, as for `rerank`.
        posterior: that the choices were made with.
        choice: (sentences,) the position of the chosen candidate in each list.
        other: (sentences,) the position of another one, such as `Choices.canonical`.
        moved_files: as for `rerank`.

    Raises:
        DataError: if lists and posterior do not have the same features.
        UsageError: if a choice is not a position in each list.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0, 0.0], [2.0, 0.5]]], ["lm", "tm"])
    >>> from bpa_ppl.posterior.weight_draws import name_weights
    >>> posterior = name_weights([[[1.0, -0.5], [3.0, -0.5]]], ("lm", "tm"))
    >>> explanation = explain_choices(lists, posterior, [1], [0])[0]
    >>> [(term.feature, round(term.contribution, 3)) for term in explanation.terms]
    [('lm', 2.0), ('tm', -0.25)]
    >>> explanation.difference, explanation.probability, explanation.deciding
    (1.75, 1.0, ('lm',))
    """
    draws = as_weight_draws(posterior)
    chosen, others = to_choice(lists, choice), to_choice(lists, other, "other")
    return explain_rows(Recipe.of(draws, moved_files).apply(lists), draws, chosen, others)


def explain_rows(
    lists: NBest, draws: WeightDraws, choice: Int64, other: Int64
) -> list[ChoiceExplanation]:
    """Explain choices from lists that have the features of the posterior: see `explain_choices`."""
    changed = np.flatnonzero(find_changed(lists, choice, other))
    rows = lists.offsets[:-1][changed]
    chosen, others = (lists.features[rows + c[changed]] for c in (choice, other))
    differences = chosen - others
    weights, importance = draws.aligned(lists), draws.importance
    scale = lists.spread
    scale = np.where(scale > 0, scale, 1.0)
    mean, ends = importance @ weights, quantiles(weights, _TAILS, importance)
    contributions = differences * mean
    low, high = np.sort([differences * end for end in ends], axis=0)
    result = []
    for start in range(0, len(changed), _SENTENCES_AT_ONCE):
        by_draw = weights @ differences[start : start + _SENTENCES_AT_ONCE].T
        totals = quantiles(by_draw, _TAILS, importance).T
        probability = np.minimum(importance @ (by_draw > 0), 1.0)
        for k, (interval, share) in enumerate(zip(totals, probability, strict=True), start):
            order = np.argsort(-np.abs(contributions[k]), kind="stable")
            columns = (mean * scale, differences[k] / scale, contributions[k], low[k], high[k])
            numbers = np.stack(columns, axis=1)[order]
            if draws.draws.kind == "point":
                numbers[:, 3:] = interval = np.full(2, math.nan)
            names = [lists.feature_names[i] for i in order]
            terms = [FeatureTerm(n, *v) for n, v in zip(names, numbers.tolist(), strict=True)]
            s = int(changed[k])
            positions = s, int(choice[s]), int(other[s])
            numbers_of_all = float(contributions[k].sum()), *map(float, interval), float(share)
            result.append(ChoiceExplanation(*positions, tuple(terms), *numbers_of_all))
    return result


def render_explanations(explanation: ChoiceExplanation) -> list[Block]:
    """Return a sentence on the deciding features and the table of the largest contributions."""
    if not any(term.difference for term in explanation.terms):
        return [explanation.summary]
    shown, others = explanation.terms[:_MAX_TERMS], explanation.terms[_MAX_TERMS:]
    rows = [
        [
            t.feature,
            format_signed(t.weight, 3),
            format_signed(t.difference, 2),
            *_describe_contribution(*t[3:]),
        ]
        for t in shown
        if t.difference
    ]
    if any(term.difference for term in others):
        rest = sum(term.contribution for term in others)
        rows.append([f"{len(others)} other features", "", "", format_signed(rest, 3), "–"])
    whole = explanation.difference, explanation.low, explanation.high
    rows.append(["together", "", "", *_describe_contribution(*whole)])
    header = ["feature", "weight", "difference", "contribution", INTERVAL]
    if math.isnan(explanation.low):
        return [explanation.summary, Table(header[:-1], [row[:-1] for row in rows])]
    share = f"{explanation.probability:.1%} of the draws"
    certainty = f" The chosen candidate scores higher in {share} of the weights."
    return [explanation.summary + certainty, Table(header, rows)]


def _describe_contribution(value: float, low: float, high: float) -> tuple[str, str]:
    return format_signed(value, 3), f"{format_signed(low, 3)} to {format_signed(high, 3)}"


class SystemShare(NamedTuple):
    """How often candidates of one system were chosen.

    Attributes:
        system: its name; empty for candidates without one.
        before: its share of the earlier choices, from 0 to 1.
        after: its share of the later choices.

    >>> share = SystemShare("X", before=0.25, after=0.5)
    >>> share.after - share.before
    0.25
    """

    system: str
    before: float
    after: float


def system_shares(
    lists: NBest, before: npt.ArrayLike, after: npt.ArrayLike, *, column: str | None = None
) -> list[SystemShare]:
    """Count how often candidates of each system were chosen, before and after.

    A text that several systems produced counts for each of them in equal parts.

    Args:
        lists: the lists.
        before: (sentences,) the positions of the earlier choices, such as `Choices.canonical`.
        after: (sentences,) the positions of the later ones.
        column: the extra that names the system of each candidate; None looks for `system` and
            `model`.

    Returns:
        one row for each system, by its share after; nothing if the lists do not name systems.

    Raises:
        DataError: if there is no such column.
        UsageError: if a choice is not a position in each list.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a", "b"], ["c", "d"]], [[[0.0]] * 2] * 2, ["lm"], extras={"system": [["X", "Y"]] * 2}
    ... )
    >>> for share in system_shares(lists, [0, 0], [1, 0]):
    ...     print(share.system, share.before, share.after)
    X 1.0 0.5
    Y 0.0 0.5
    """
    choices = to_choice(lists, before, "before"), to_choice(lists, after, "after")
    column = find_system_column(lists) if column is None else column
    if not column:
        return []
    if column not in lists.extras:
        message = f"no column {column}: the columns are {list_names(lists.extras) or 'none'}"
        raise DataError(message, lists.origin, parameter="column", code="missing-column")
    names = ["" if name is None else str(name) for name in lists.extras[column]]
    systems, system_of = np.unique(names, return_inverse=True)
    list_of = np.repeat(np.arange(len(lists)), lists.sizes)
    shares = []
    for choice in choices:
        text = lists.string_index[lists.offsets[:-1] + choice]
        same = np.flatnonzero(lists.string_index == text[list_of])
        # A system counts once for each list, even if it produced the text several times.
        pairs = np.unique(np.stack([list_of[same], system_of[same]]), axis=1)
        producers = np.bincount(pairs[0], minlength=len(lists))
        weighted = np.bincount(pairs[1], 1 / producers[pairs[0]], len(systems))
        shares.append((weighted / len(lists)).tolist())
    rows = map(SystemShare, systems.tolist(), *shares)
    return sorted(rows, key=lambda row: (-row.after, -row.before, row.system))
