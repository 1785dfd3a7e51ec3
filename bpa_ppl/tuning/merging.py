"""N-best lists of several decodings of one text, put together."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float32, NBest

#: What tells hypotheses apart: the text, and the features bit for bit.
_Key = tuple[str, bytes]


class Merged(NamedTuple):
    """Lists of several decodings.

    Attributes:
        nbest: each list: the old hypotheses, then the new ones; exact duplicates once.
        added: how many were new.
    """

    nbest: NBest
    added: int


def merge(old: NBest, new: NBest) -> Merged:
    """Add to lists what another decoding of the same sentences has found.

    A hypothesis is new unless one with the same text and the same features is there. The
    decoders' totals are left out, since they were made with different weights.

    Args:
        old: the lists so far; their references stay.
        new: lists of the same sentences, known by their ids; some may be missing.

    Raises:
        DataError: if the features differ, or a sentence is unknown.

    >>> old = NBest.from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"], references=[["a"]])
    >>> new = NBest.from_lists([["b", "a"]], [[[2.0], [3.0]]], ["LM0"])
    >>> both, added = merge(old, new)
    >>> both.texts(0), added
    (['a', 'b', 'a'], 1)
    """
    _check(old, new)
    places = {identifier: s for s, identifier in enumerate(new.sentence_ids.tolist())}
    unions, added = [], 0
    for sentence, identifier in enumerate(old.sentence_ids.tolist()):
        union = known = _hypotheses(old, sentence)
        if identifier in places:
            union = known | _hypotheses(new, places[identifier])
        unions.append(union)
        added += len(union) - len(known)
    return Merged(_rebuilt(old, unions), added)


def _hypotheses(nbest: NBest, sentence: int) -> dict[_Key, Float32]:
    """Return the features of each hypothesis of a list, in order."""
    table = nbest.features[nbest.rows(sentence)]
    texts = nbest.texts(sentence)
    return {(text, row.tobytes()): row for text, row in zip(texts, table, strict=True)}


def _rebuilt(old: NBest, lists: list[dict[_Key, Float32]]) -> NBest:
    """Return lists with other hypotheses of the same sentences."""
    rebuilt = NBest.from_lists(
        [[text for text, _ in hypotheses] for hypotheses in lists],
        [list(hypotheses.values()) for hypotheses in lists],
        old.feature_names,
        references=old.references,
    )
    return replace(rebuilt, sentence_ids=old.sentence_ids, source=old.source)


def _check(old: NBest, new: NBest) -> None:
    if new.feature_names != old.feature_names:
        raise DataError(
            f"the new lists have the features {', '.join(new.feature_names)}, those of "
            f"{old.source} have {', '.join(old.feature_names)}: decode with the same model",
            new.source,
        )
    unknown = set(new.sentence_ids.tolist()) - set(old.sentence_ids.tolist())
    if unknown:
        raise DataError(
            f"the new lists have sentence id {min(unknown)}, which {old.source} does not have: "
            "decode the same text",
            new.source,
        )
