"""Simulated raters: a session answered by a column of judgements, and the headroom that it wins."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.errors import UsageError
from bpa_ppl.judging.journal import PLACES, TIE
from bpa_ppl.judging.session import Session
from bpa_ppl.nbest import NBest
from bpa_ppl.quality.column import column_of, headroom_won


def learning_curve(
    session: Session, test: NBest, column: str, clicks: Iterable[int], noise: float = 0.0
) -> Float64:
    """Return the headroom that a session wins on other lists after some numbers of answers.

    The rater prefers the candidate with the largest number in a column of the session's lists, and
    of two that are equal says that there is no difference.

    Args:
        session: without answers, whose lists have the column as an extra.
        test: other lists, with the column.
        column: of the judgements.
        clicks: ascending numbers of answers, from 0.
        noise: the probability that an answer names one of the candidates at random.

    Returns:
        (numbers,) the share of the headroom.

    Raises:
        DataError: if a candidate has no number in the column.
        UsageError: if the noise is not a probability.

    >>> texts, features = [["a", "b"]] * 30, np.random.default_rng(0).normal(size=(30, 2, 1))
    >>> lists = NBest.from_lists(texts, features, ["LM0"]).with_extras(score=features.ravel())
    >>> learning_curve(Session(lists[:20]), lists[20:], "score", [10]).tolist()
    [1.0]
    """
    if not 0 <= noise <= 1:
        raise UsageError(f"noise is a probability, not {noise:g}", parameter="noise")
    lists = session.lists
    values = np.asarray(column_of(lists, column), np.float64)
    rng, result = np.random.default_rng([session.seed, 1]), []
    for count in clicks:
        while len(session.judgements) < count:
            question = session.next()
            shown = values[lists.offsets[question.sentence] + np.array(question.candidates)]
            if rng.random() < noise:
                shown = rng.permutation(2)
            session.answer(TIE if shown[0] == shown[1] else PLACES[int(np.argmax(shown))])
        result.append(headroom_won(test, session.choices(test), column))
    return np.array(result)
