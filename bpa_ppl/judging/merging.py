"""Lists with the judgements of one rater or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bpa_ppl.errors import DataError, quoted
from bpa_ppl.judging.answers import FIRST, TIE
from bpa_ppl.judging.journal import SKIP, Judgement
from bpa_ppl.nbest import NBest
from bpa_ppl.quality.preferences import PREFERENCES, TIES


def with_judgements(nbest: NBest, judgements: Iterable[Sequence[Judgement]]) -> NBest:
    """Return lists with the answers of some raters as `preferences` and `ties`.

    Preferences that the lists have already are kept. Skipped pairs are left out.

    Args:
        nbest: the lists that were judged.
        judgements: of each rater.

    Raises:
        DataError: if a judgement is about a list or a candidate that does not exist.

    >>> lists = NBest.from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> answers = [Judgement(0, (2, 0), "first"), Judgement(0, (0, 1), "tie")]
    >>> judged = with_judgements(lists, [answers])
    >>> judged.sentence_extras["preferences"], judged.sentence_extras["ties"]
    (([[2, 0]],), ([[0, 1]],))
    """
    position = {identifier: s for s, identifier in enumerate(nbest.ids)}
    columns: dict[str, list[list[list[int]]]] = {}
    for name in (PREFERENCES, TIES):
        given = nbest.sentence_extras.get(name, [None] * len(nbest))
        columns[name] = [list(entries or []) for entries in given]
    for judgement in (judgement for rater in judgements for judgement in rater):
        if judgement.answer == SKIP:
            continue
        pair, sentence = list(judgement.candidates), position.get(judgement.id)
        if sentence is None or max(pair) >= nbest.sizes[sentence]:
            problem = f"a judgement is about candidates {pair} of the list {quoted(judgement.id)}"
            problem += ", which are not there: give the lists that were judged"
            raise DataError(problem, nbest.origin, code="mismatch")
        if judgement.answer == TIE:
            columns[TIES][sentence].append(pair)
        else:
            winner = pair if judgement.answer == FIRST else pair[::-1]
            columns[PREFERENCES][sentence].append(winner)
    return nbest.with_sentence_extras(
        **{name: [entries or None for entries in column] for name, column in columns.items()}
    )
