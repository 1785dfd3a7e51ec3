"""The choices by several posteriors, compared with those by a reference posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bpa_ppl.decoding.reranker import rerank
from bpa_ppl.evaluation.paired import Scoreboard, compare_scores, find_changed
from bpa_ppl.gains.bleu import LengthRatio
from bpa_ppl.gains.gains import list_reported_metrics, resolve
from bpa_ppl.lists.nbest import NBest

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior


def compare_posterior_choices(
    posteriors: Mapping[str, Posterior], reference: Posterior, lists: NBest, *, seed: int = 0
) -> dict[str, Scoreboard]:
    """Rerank lists with several posteriors, and compare the choices with those of a reference.

    Choices of posteriors that have not converged are compared, too.

    Args:
        posteriors: by name, such as those of several samplers; each as for `rerank`.
        reference: the posterior whose choices the others are compared with.
        lists: the lists that are reranked. Without references there are no scores.
        seed: of the paired bootstrap over sentences, for the intervals of the differences.

    Returns:
        by name, how many choices change, with corpus scores, the ratio of lengths and their
            differences from those of the reference; printing one shows a table.

    Raises:
        DataError: as `rerank`.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.weight_draws import name_weights
    >>> texts, features = [["a cat", "the cat"]], [[[1.0], [0.0]]]
    >>> lists = from_lists(texts, features, ["LM0"], references=["a cat"])
    >>> right, wrong = (name_weights([[[value]] * 9], ("LM0",)) for value in (1.0, -1.0))
    >>> board = compare_posterior_choices({"walk": wrong}, right, lists)["walk"]
    >>> board.changed, board.changes[0].difference
    (1, 50.0)
    """
    metrics = (*map(resolve, list_reported_metrics()), LengthRatio())
    metrics = () if lists.references is None else metrics
    theirs = rerank(lists, reference, unchecked=True).choice
    boards = {}
    for name, posterior in posteriors.items():
        ours = rerank(lists, posterior, unchecked=True).choice
        changes = compare_scores(lists, theirs, ours, metrics, seed=seed)
        changed = int(find_changed(lists, theirs, ours).sum())
        boards[name] = Scoreboard(changes, changed, len(lists), ("reference", name))
    return boards
