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
from bpa_ppl.extras.convert.records import Lists, Turn, drop_missing, find_last_text, keep_others
from bpa_ppl.formats.located import iter_records

Id = str | int | None


class _Said(msgspec.Struct, rename={"speaker": "from"}):
    """A turn of a conversation in ShareGPT's form."""

    speaker: str
    value: str


_SHARE_GPT: dict[str, Any] = {
    "chosen": _Said | list[_Said],
    "rejected": _Said | list[_Said],
    "conversations?": list[_Said],
    "id?": Id,
}


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
        *answers, turns, identifier = record.read(what, _SHARE_GPT)
        better, worse = (
            [*(turns or ()), *([of] if isinstance(of, _Said) else of)] for of in answers
        )
        if not better or not worse or better[:-1] != worse[:-1]:
            record.refuse(what, "the turns before the answers differ")
        if {better[-1].speaker, worse[-1].speaker} != {"gpt"}:
            record.refuse(what, f"an answer is of {quote(better[-1].speaker)}, not of 'gpt'")
        of_list = {
            "id": len(lists) if identifier is None else identifier,
            "source": better[-2].value if len(better) > 1 else None,
            "candidates": [{"text": better[-1].value}, {"text": worse[-1].value}],
            "preferences": [[0, 1]],
        }
        lists.append(drop_missing(of_list) | keep_others(record, *_SHARE_GPT))
    return lists


_RATED: dict[str, Any] = {
    "model": str,
    "response": str,
    "annotations?": dict[str, dict[str, Any] | list[dict[str, Any]]],
    "overall_score?": float,
    "fine-grained_score?": float,
}


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
        kinds = {"instruction": str, "completions": list[Any]}
        instruction, completions = record.read(what, kinds)
        candidates = []
        for completion in completions:
            one = record._replace(value=completion)
            model, text, annotations, *scores = one.read(what, _RATED)
            candidate = {"text": text, "system": model}
            for name, of in (annotations or {}).items():
                if isinstance(of, list):
                    candidate[name] = of
                    continue
                of_aspect = one._replace(value=of)
                (rating,) = of_aspect.read(what, {"Rating": str})
                if rating not in ("N/A", *"12345"):
                    record.refuse(what, f"the rating of {quote(name)} is {quote(rating)}")
                candidate[name] = None if rating == "N/A" else int(rating)
                others = keep_others(of_aspect, "Rating")
                candidate |= {f"{name}.{field}": value for field, value in others.items()}
            named = zip(("overall_score", "fine-grained_score"), scores, strict=True)
            candidate |= drop_missing(dict(named))
            candidates.append(keep_others(one, *_RATED) | candidate)
        of_list = {"id": len(lists), "source": instruction, "candidates": candidates}
        lists.append(of_list | keep_others(record, *kinds))
    return lists


_KTO: dict[str, Any] = {
    "prompt": str | list[Turn],
    "completion": str | list[Turn],
    "label": bool,
}


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
        prompt, completion, label = record.read(what, _KTO)
        source, text = find_last_text(prompt), find_last_text(completion)
        if source is None or text is None:
            record.refuse(what, "a prompt or a completion has no turns")
        start = {"id": len(lists), "source": source, "candidates": []}
        of_list = lists.setdefault(msgspec.json.encode(prompt), start)
        others = keep_others(record, "id", *_KTO)
        others |= {"id": record.value["id"]} if record.has("id") else {}
        of_list["candidates"].append({**others, "text": text, "label": label})
    return list(lists.values())


_RANKING: dict[str, Any] = {"prompt": str, "id?": Id, "answers": list[Any]}
_RANKED: dict[str, Any] = {"answer": str, "rank": float, "model?": str}
_BEST_OF: dict[str, Any] = {
    "prompt": str,
    "id?": Id,
    "chosen": list[str],
    "rejected": list[str],
}


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
        if record.has(*names):
            fields = {n: v for n, v in record.value.items() if n not in names.values()}
            named = {of: record.value[name] for name, of in names.items()}
            record = record._replace(value=fields | named)
        if record.has("answers"):
            prompt, identifier, answers = record.read(what, _RANKING)
            candidates, ranks = [], []
            for answer in answers:
                row = record._replace(value=answer)
                text, rank, system = row.read(what, _RANKED)
                fields = drop_missing({"text": text, "system": system})
                candidates.append(fields | keep_others(row, *_RANKED))
                ranks.append(rank)
            judgement = _judge(ranks)
        else:
            prompt, identifier, chosen, rejected = record.read(what, _BEST_OF)
            candidates = [{"text": text} for text in (*chosen, *rejected)]
            worse = list(range(len(chosen), len(candidates)))
            judgement = {"rankings": [[best, worse] for best in range(len(chosen))]}
            if not (chosen and rejected):
                record.refuse(what, "chosen or rejected has no answer")
        identifier = len(lists) if identifier is None else identifier
        of_list = {"id": identifier, "source": prompt, "candidates": candidates}
        others = keep_others(record, "id", "answers", *names, *names.values())
        lists.append({**of_list, **judgement, **others})
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
