"""Lists with the judgements of one rater or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bpa_ppl.errors import DataError, name_lists, quote
from bpa_ppl.judging.journal import Journal
from bpa_ppl.metrics.preferences import PREFERENCES, TIES
from bpa_ppl.nbest import NBest, content_hash


def with_judgements(nbest: NBest, journals: Iterable[Journal]) -> NBest:
    """Return lists with the answers of some raters as `preferences` and `ties`.

    Entries that the lists have already are kept, and skipped questions are left out. Corrections
    become references.

    Args:
        nbest: the lists that were judged.
        journals: of the raters. Those without a name are numbered, if there are several.

    Raises:
        DataError: if the answers are about other lists.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.judging.journal import Judgement
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> answers = Judgement(0, (2, 0), "first"), Judgement(0, (0, 1), "tie", correction="A")
    >>> judged = with_judgements(lists, [Journal({}, dict(enumerate(answers)))])
    >>> judged.sentence_extras["preferences"], judged.sentence_extras["ties"], judged.references
    (([[2, 0]],), ([[0, 1]],), (('A',),))
    """
    position = {identifier: s for s, identifier in enumerate(nbest.ids)}
    columns: dict[str, list[list[Any]]] = {}
    for name in (PREFERENCES, TIES):
        given = nbest.sentence_extras.get(name, [None] * len(nbest))
        columns[name] = [list(entries or []) for entries in given]
    references, several = list(nbest.references or [()] * len(nbest)), list(journals)
    ours, remedy = content_hash(nbest), "give the lists that were judged"
    for number, journal in enumerate(several, 1):
        if journal.header.get("sha256", ours) != ours:
            others = quote(journal.header.get("lists", "without a name"))
            problem = (
                f"the judgements are about other lists ({others}) than {name_lists(nbest.origin)}"
            )
            raise DataError(f"{problem}: {remedy}", journal.path)
        rater = journal.header.get("rater", f"rater {number}" if len(several) > 1 else None)
        for line, judgement in journal.judgements.items():
            shown, sentence = list(judgement.candidates), position.get(judgement.id)
            if sentence is None or max(shown) >= nbest.sizes[sentence]:
                lists = name_lists(nbest.origin)
                problem = f"the list {quote(judgement.id)} of {lists} has no candidates "
                where = (journal.path, line) if journal.path else ()
                raise DataError(f"{problem}{shown}: {remedy}", *where)
            if judgement.chosen is not None:
                name = TIES if judgement.chosen == 2 else PREFERENCES
                pair = shown[::-1] if judgement.chosen == 1 else shown
                entry = pair if rater is None else {"candidates": pair, "rater": rater}
                columns[name][sentence].append(entry)
            if judgement.correction:
                references[sentence] = (*references[sentence], judgement.correction)
    filled = {name: [entries or None for entries in column] for name, column in columns.items()}
    judged = nbest.with_sentence_extras(**{n: c for n, c in filled.items() if any(c)})
    return judged.with_references(references) if any(references) else judged
