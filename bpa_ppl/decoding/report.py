"""The report about a posterior: improvement, learned weights, and convergence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.report_page import posterior_page
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.quality.preferences import choice_sets, has_preferences

if TYPE_CHECKING:
    from bpa_ppl.features.recipe import MovedFiles
    from bpa_ppl.posterior.adapter import Posterior

_FAILED = "The draws failed their check: reranking refuses them unless it is run unchecked."
_SAME_LISTS = "These are the lists that the weights were adapted to: evaluate on new ones."


def report_page(
    posterior: Posterior,
    lists: NBest | None = None,
    *,
    moved_files: MovedFiles | None = None,
    without: Iterable[str] | None = None,
    title: str = "Posterior of the weights",
    top: int = 8,
) -> str:
    """Return a self-contained HTML page about a posterior, which `bpa report` writes.

    Args:
        posterior: from `adapt`, or anybody's with a variable `weights`.
        lists: new lists: the page shows which choices changed compared with the canonical weights
            or, where none were given, with the best simple baseline; what each feature contributed;
            and the shares of the systems. With what its criterion needs, references or the column
            that it was adapted to, or with preferences, it begins with whether it helped by that
            criterion.
        moved_files: as for `rerank`.
        without: as for `rerank`.
        title: of the page.
        top: draw the chains of at most this many weights or other variables, those that mix worst.

    Raises:
        DataError: if lists and posterior do not fit together.
        UsageError: if no weight is to be shown.

    >>> from bpa_ppl import from_lists
    >>> data = Draws({"weights": np.zeros((2, 5, 1))}, ("LM0",), constants={"canonical": [1.0]})
    >>> new = from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"], references=[("a",)])
    >>> "Did it help?" in report_page(data, new), "Did it help?" in report_page(data)
    (True, False)
    """
    from bpa_ppl.decoding.improvement import evaluate_improvement, improvement_section
    from bpa_ppl.decoding.reranking import without_features
    from bpa_ppl.diagnostics.check import checked
    from bpa_ppl.diagnostics.choices import changes_section, systems_section

    draws, answer = without_features(as_draws(posterior), without), None
    if lists is not None:
        caveats = [] if checked(draws)[1] else [_FAILED]
        caveats += [_SAME_LISTS] if _same_lists(draws, lists) else []
        result = evaluate_improvement(lists, draws, moved_files=moved_files)
        verdict, sections = improvement_section(result, caveats)
        sections += systems_section(result.choices)
        answer = verdict, [*sections, *changes_section(result.choices, result.criterion)]
    return posterior_page(draws, title=title, top=top, answer=answer)


def _same_lists(draws: Draws, lists: NBest) -> bool:
    """Say whether a posterior records that it was adapted to these lists: the file and the ids."""
    if draws.record.lists != lists.origin:
        return False
    observed, ids = draws.record.observed, draws.sentence_ids
    compared = observed.kind == "preferences" and has_preferences(lists)
    lists = choice_sets(lists).nbest if compared else lists
    if ids is not None:
        return np.array_equal(np.asarray(ids), lists.sentence_ids)
    return observed.sentences in (None, len(lists))
