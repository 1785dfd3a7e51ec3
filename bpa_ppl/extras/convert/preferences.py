"""Preference data: conversations, completions with ratings, labels or ranks.

    sharegpt       {"conversations": […], "chosen": {"from": "gpt", "value": "…"}, "rejected": {…}}
    ultrafeedback  {"instruction": "…", "completions": [{"response": "…", "annotations": {…}}]}
    kto            {"prompt": "…", "completion": "…", "label": true}
    ranked         {"prompt": "…", "chosen": ["…"], "rejected": ["…", "…"]}
                   {"prompt": "…", "answers": [{"answer": "…", "rank": 1}, …]}

Each row is read as the data set or the program writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import msgspec

from bpa_ppl.errors import quote
from bpa_ppl.extras.convert.records import Lists, Turn, drop_missing, find_last_text
from bpa_ppl.formats.located import iter_records

Id = str | int | None


class _Said(msgspec.Struct, rename={"speaker": "from"}):
    """A turn of a conversation in ShareGPT's form."""

    speaker: str
    value: str


class _ShareGpt(msgspec.Struct):
    chosen: _Said | list[_Said]
    rejected: _Said | list[_Said]
    conversations: list[_Said] = []
    id: Id = None


def sharegpt(records: Iterable[Any]) -> Lists:
    """Return the lists of pairs of answers in the form of ShareGPT.

    Args:
        records: with `conversations`, and the answers `chosen` and `rejected`, each a turn of gpt
            or a whole conversation, of which the last turn is the answer. The turns before it are
            the same for both. The source is the last of them.

    Raises:
        DataError: if a record is not such a pair.

    >>> said = [{"from": "human", "value": "Un chat"}]
    >>> a, b = ({"from": "gpt", "value": text} for text in ("a cat", "cat"))
    >>> sharegpt([{"conversations": said, "chosen": a, "rejected": b}])[0]["preferences"]
    [[0, 1]]
    """
    what, lists = "a pair of ShareGPT", Lists()
    for record in iter_records(records):
        row = record.parse(_ShareGpt, what)
        better, worse = (
            [*row.conversations, *([of] if isinstance(of, _Said) else of)]
            for of in (row.chosen, row.rejected)
        )
        if not better or not worse or better[:-1] != worse[:-1]:
            record.refuse(what, "the turns before the answers differ")
        if {better[-1].speaker, worse[-1].speaker} != {"gpt"}:
            record.refuse(what, f"an answer is of {quote(better[-1].speaker)}, not of 'gpt'")
        of_list = {
            "id": len(lists) if row.id is None else row.id,
            "source": better[-2].value if len(better) > 1 else None,
            "candidates": [{"text": better[-1].value}, {"text": worse[-1].value}],
            "preferences": [[0, 1]],
        }
        lists.append(drop_missing(of_list))
    return lists


class _Rating(msgspec.Struct, rename="pascal"):
    rating: str


class _Rated(msgspec.Struct, rename={"fine_grained_score": "fine-grained_score"}):
    model: str
    response: str
    annotations: dict[str, _Rating | list[_Rating]] = {}
    overall_score: float | None = None
    fine_grained_score: float | None = None


class _UltraFeedback(msgspec.Struct):
    instruction: str
    completions: list[_Rated]


def ultrafeedback(records: Iterable[Any]) -> Lists:
    """Return the lists of UltraFeedback: several rated answers to an instruction.

    The ratings, which are numbers from 1 to 5 or N/A, are fields of the candidates, such as
    `helpfulness`; so are `overall_score` and `fine-grained_score`. The extra `system` is the model.

    Args:
        records: rows with `instruction` and `completions`.

    Raises:
        DataError: if a record is not such a row.

    >>> rated = {"model": "m", "response": "a cat", "annotations": {"honesty": {"Rating": "4"}}}
    >>> ultrafeedback([{"instruction": "Un chat", "completions": [rated]}])[0]["candidates"]
    [{'text': 'a cat', 'system': 'm', 'honesty': 4}]
    """
    what, lists = "a row of UltraFeedback", Lists()
    for record in iter_records(records):
        row = record.parse(_UltraFeedback, what)
        candidates = []
        for one in row.completions:
            ratings = {n: of for n, of in one.annotations.items() if isinstance(of, _Rating)}
            for name, of in ratings.items():
                if of.rating not in ("N/A", *"12345"):
                    record.refuse(what, f"the rating of {quote(name)} is {quote(of.rating)}")
            numbers = {
                n: None if of.rating == "N/A" else int(of.rating) for n, of in ratings.items()
            }
            scores = {
                "overall_score": one.overall_score,
                "fine-grained_score": one.fine_grained_score,
            }
            texts = {"text": one.response, "system": one.model}
            candidates.append({**texts, **numbers, **drop_missing(scores)})
        lists.append({"id": len(lists), "source": row.instruction, "candidates": candidates})
    return lists


class _Kto(msgspec.Struct):
    prompt: str | list[Turn]
    completion: str | list[Turn]
    label: bool


def kto(records: Iterable[Any]) -> Lists:
    """Return the lists of single answers with labels, as KTO trains with them.

    Answers to one prompt are the candidates of a list; `label` is a field of each.

    Args:
        records: rows with `prompt` and `completion`, texts or turns, and a `label`, true or false.

    Raises:
        DataError: if a record is not such a row.

    >>> rows = [{"prompt": "Un chat", "completion": t, "label": t != "cat"} for t in ("a", "cat")]
    >>> kto(rows)[0]["candidates"]
    [{'text': 'a', 'label': True}, {'text': 'cat', 'label': False}]
    """
    what = "a row of KTO"
    lists: dict[bytes, dict[str, Any]] = {}
    for record in iter_records(records):
        row = record.parse(_Kto, what)
        source, text = find_last_text(row.prompt), find_last_text(row.completion)
        if source is None or text is None:
            record.refuse(what, "a prompt or a completion has no turns")
        start = {"id": len(lists), "source": source, "candidates": []}
        of_list = lists.setdefault(msgspec.json.encode(row.prompt), start)
        of_list["candidates"].append({"text": text, "label": row.label})
    return list(lists.values())


class _Ranked(msgspec.Struct):
    answer: str
    rank: float
    model: str | None = None


class _Ranking(msgspec.Struct):
    prompt: str
    answers: list[_Ranked]
    id: Id = None


class _BestOf(msgspec.Struct):
    prompt: str
    chosen: list[str]
    rejected: list[str]
    id: Id = None


def ranked(
    records: Iterable[Any],
    *,
    question: str = "prompt",
    first: str = "chosen",
    second: str = "rejected",
) -> Lists:
    """Return the lists of ranked answers to a prompt.

    With `chosen` and `rejected`, lists of texts as in RewardBench 2, each chosen answer is the best
    in a ranking with all rejected ones. With `answers` as in Nectar, each of an `answer`, its
    `rank`, 1 for the best one, and maybe its `model`, they are a ranking; if ranks are equal, all
    pairs are compared, and pairs of equal rank are ties.

    Args:
        records: rows of one of the two forms.
        question: the field of the prompt.
        first: the field of the chosen answers.
        second: the field of the rejected answers.

    Raises:
        DataError: if a record is not such a row.

    >>> row = {"prompt": "Un chat", "chosen": ["a cat"], "rejected": ["cat", "dog"]}
    >>> ranked([row])[0]["rankings"]
    [[0, [1, 2]]]
    """
    what, lists = "a row of ranked answers", Lists()
    names = {question: "prompt", first: "chosen", second: "rejected"}
    for record in iter_records(records):
        row: _Ranking | _BestOf
        if record.has(*names):
            fields = {n: v for n, v in record.value.items() if n not in names.values()}
            record = record._replace(
                value=fields | {of: record.value[name] for name, of in names.items()}
            )
        if record.has("answers"):
            row = record.parse(_Ranking, what)
            candidates = [drop_missing({"text": o.answer, "system": o.model}) for o in row.answers]
            judgement = _judge([one.rank for one in row.answers])
        else:
            row = record.parse(_BestOf, what)
            candidates = [{"text": text} for text in (*row.chosen, *row.rejected)]
            worse = list(range(len(row.chosen), len(candidates)))
            judgement = {"rankings": [[best, worse] for best in range(len(row.chosen))]}
            if not (row.chosen and row.rejected):
                record.refuse(what, "chosen or rejected has no answer")
        identifier = len(lists) if row.id is None else row.id
        of_list = {"id": identifier, "source": row.prompt, "candidates": candidates}
        lists.append({**of_list, **judgement})
    return lists


def _judge(ranks: Sequence[float]) -> dict[str, Any]:
    """Return the judgement of answers with ranks, 1 for the best."""
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    if len(set(ranks)) == len(ranks):
        return {"rankings": [order]} if len(ranks) > 1 else {}
    pairs = [[one, other] for one, other in combinations(order, 2)]
    return {
        "preferences": [pair for pair in pairs if ranks[pair[0]] < ranks[pair[1]]],
        "ties": [pair for pair in pairs if ranks[pair[0]] == ranks[pair[1]]],
    }
