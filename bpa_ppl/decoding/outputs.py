"""Reranking from a stream into files: however many lists there are, few are held at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np

from bpa_ppl.decoding.confidence import Expected, expected
from bpa_ppl.decoding.deciding import Deciding, Options
from bpa_ppl.decoding.lines import Lines
from bpa_ppl.decoding.reranking import Decided, decisions, expected_metric
from bpa_ppl.decoding.results import (
    details_columns,
    details_header,
    details_rows,
    text_rows,
)
from bpa_ppl.diagnostics.baselines.comparing import BaselineTally, recorded_comparison
from bpa_ppl.diagnostics.baselines.table import BaselineComparison
from bpa_ppl.errors import UsageError
from bpa_ppl.formats.streams import AnyPath, atomic_writers
from bpa_ppl.models.preparing import criterion_of
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import Metric, Score, Scoreboard, resolve, statistics

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior


@dataclass(frozen=True)
class Summary:
    """What is known of a text once all of it has been reranked.

    Attributes:
        sentences: how many there were.
        changed: how many translations differ from the canonical first-best.
        scores: the corpus scores, that by the criterion of the posterior first; None
            where the lists had neither it nor references.
        expected: the TER that is expected of the choices, where it was computed and TER is the
            criterion of the posterior.
        baselines: the comparison with simple baselines, where the posterior records those of its
            adaptation sentences, and all lists have what a gain needs.
    """

    sentences: int
    changed: int
    scores: Scoreboard | None
    expected: Expected | None = None
    baselines: BaselineComparison | None = None


def rerank_to(
    nbest: NBest | Iterable[NBest],
    posterior: Posterior,
    output: AnyPath,
    details: AnyPath | None = None,
    *,
    lines: Lines | None = None,
    progress: bool | Reporter = False,
    **options: Unpack[Options],
) -> Summary:
    r"""Rerank lists as `rerank` does, and write the choices as they come.

    Memory does not grow with the number of lists. The files appear under their names when all is
    done; after an error neither of them is there.

    Args:
        nbest: as for `rerank`.
        posterior: as for `rerank`.
        output: the translations, one a line; `-` is the standard output.
        details: a table, see `write_details`, with what is expected of each choice.
        lines: keeps the translations beside the lines of the source; None writes one line a list,
            as they come.
        progress: as for `rerank`.
        options: the other arguments of `rerank`.

    Raises:
        DataError: as `rerank`, if a file cannot be written, or `lines` refuses a list.
        NotConverged: as `rerank`.
        UsageError: as `rerank`.

    >>> from pathlib import Path
    >>> from bpa_ppl import Draws
    >>> lists = NBest.from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[0.0]]], ["LM0"])
    >>> draws = Draws({"weights": np.ones((1, 4, 1))}, ("LM0",))
    >>> summary = rerank_to(lists, draws, "translations.txt", unchecked=True)
    >>> summary.sentences, Path("translations.txt").read_text()
    (2, 'b\nc\n')
    """
    deciding = Deciding(**options)
    deciding = replace(deciding, confidence=deciding.confidence or details is not None)
    stream = decisions(nbest, posterior, deciding)
    total = len(nbest) if isinstance(nbest, NBest) else 0
    draws = as_draws(posterior)
    goal, titles = criterion_of(draws.attrs), details_columns(expected_metric(draws.attrs))
    tally = Tally(("ter", "bleu") if goal is None else (goal, "ter", "bleu"), draws)
    paths = [output] if details is None else [output, details]
    with (
        atomic_writers(*paths) as (texts, *tables),
        reporter(progress, "rerank") as report,
    ):
        for table in tables:
            table.writelines(details_header(titles, paths[-1]))
        for decided in stream:
            known = text_rows(decided.choices) if lines is None else lines.of(decided.choices)
            texts.writelines(known)
            for table in tables:
                table.writelines(details_rows(decided.choices, paths[-1]))
            tally.add(decided)
            report(tally.sentences, max(total, tally.sentences), "sentences")
        if not tally.sentences:
            raise UsageError("there is no list to rerank")
        texts.writelines(() if lines is None else lines.rest())
    return tally.summary()


class Tally:
    """Running sums of what corpus scores are functions of, before and after reranking.

    Args:
        metrics: counted ones. Those that need references or columns are left out where a
            sentence has none.
        draws: the posterior; the choices are compared with the baselines that it records.
    """

    def __init__(
        self, metrics: Sequence[str | Metric] = ("ter", "bleu"), draws: Draws | None = None
    ):
        self.sentences = self.changed = 0
        self._sums = {resolve(m): _Sums() for m in metrics}
        self._numbers: set[int] = set()  # of references
        self._expected: Float64 | None = None
        self._baselines = None
        if draws is not None and recorded_comparison(draws) is not None:
            self._baselines = BaselineTally(draws)
        initial = draws is not None and "canonical_weights" in draws.attrs
        self._titles = "initial" if initial else "canonical", "adapted"

    def add(self, decided: Decided) -> None:
        """Count the choices from some more lists."""
        lists, choices = decided
        self.sentences += len(lists)
        self.changed += int(choices.changed.sum())
        self._numbers |= {len(refs) for refs in lists.references or ((),)}
        if choices.confidence is not None and choices.confidence.metric == "ter":
            known = 0.0 if self._expected is None else self._expected
            self._expected = np.asarray(known + choices.confidence.sums)
        if self._baselines is not None:
            self._baselines.add(lists, choices.choice)
        for metric, sums in self._sums.items():
            there = set(metric.columns) <= {*lists.feature_names, *lists.extras}
            known = lists.references is not None and all(lists.references)
            if there and (known or "references" not in metric.needs):
                sums.before = _added(sums.before, lists, choices.canonical, metric)
                sums.after = _added(sums.after, lists, choices.choice, metric)
                sums.sentences += len(lists)

    def summary(self) -> Summary:
        """Return what has been found."""
        whole = {m: s for m, s in self._sums.items() if s.sentences == self.sentences}
        board = Scoreboard(
            before=tuple(self._score(metric, sums.before) for metric, sums in whole.items()),
            after=tuple(self._score(metric, sums.after) for metric, sums in whole.items()),
            changed=self.changed,
            sentences=self.sentences,
            titles=self._titles,
        )
        scores = board if whole and self.sentences else None
        before = None if self._expected is None else expected(self._expected)
        baselines = None if self._baselines is None else self._baselines.comparison()
        return Summary(self.sentences, self.changed, scores, before, baselines)

    def _score(self, metric: Metric, sums: Float64) -> Score:
        # Of the references a signature tells the number only.
        signature = metric.signature([("",) * number for number in sorted(self._numbers)])
        value = float(metric.value(sums))
        details = metric.details_of(sums)
        return Score(value, metric.key, metric.title, signature, details, metric.decimals)


class _Sums:
    """Of one metric: the summed counts of the canonical and of the chosen translations."""

    def __init__(self) -> None:
        self.before: Float64 = np.zeros(())
        self.after: Float64 = np.zeros(())
        self.sentences = 0


def _added(sums: Float64, lists: NBest, choice: Int64, metric: Metric) -> Float64:
    """Return sums with the counts of one hypothesis a list added to them."""
    rows = lists.offsets[:-1] + choice
    one_each = lists.regroup(slice(None), rows, np.ones(len(lists), np.int64))
    counts = statistics(one_each, metric).counts
    counts[0] += sums
    # From left to right as sacreBLEU adds, so that it does not matter how the lists are cut.
    return np.asarray(np.cumsum(counts, axis=0)[-1])
