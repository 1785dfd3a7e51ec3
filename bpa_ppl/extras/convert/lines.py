"""Lines of text: runs of TREC, LETOR, scores of the metrics shared task, and icefall's results.

    trec     q1 Q0 d11 1 13.52 bm25, with judgements q1 0 d11 2
    letor    2 qid:1 1:0.3 2:0.1 # GX001
    wmt      system<TAB>0.81
    icefall  utt-1:<TAB>hyp=['A', 'CAT']

Fields are separated by blanks or tabs, as their programs write them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from bpa_ppl._runtime.values import parse_finite
from bpa_ppl.extras.convert.records import Lists
from bpa_ppl.formats.located import LocatedRecord, iter_records

_LETOR = re.compile(r"(\S+)\s+qid:(\S+)((?:\s+[0-9]+:\S+)*)\s*(?:#(.*))?")
_ICEFALL = re.compile(r"(\S+):\t(ref|hyp)=(\[.*\])")


def _split(record: LocatedRecord, what: str, *sizes: int) -> list[str]:
    """Return the fields of a line, which must be as many as one of some sizes."""
    fields = record.value.split() if isinstance(record.value, str) else []
    if len(fields) not in sizes:
        count = " or ".join(map(str, sizes))
        record.refuse(what, f"it needs {count} fields that are separated by blanks")
    return fields


def _number(record: LocatedRecord, what: str, text: str) -> float:
    """Return the number that a field prints."""
    try:
        return parse_finite(text)
    except ValueError as error:
        record.refuse(what, str(error))


def trec(records: Iterable[Any], *, qrels: Iterable[Any] | None = None) -> Lists:
    """Return the lists of a run of TREC, one a topic; the texts are the names of the documents.

    Args:
        records: lines `topic Q0 document rank score run`; the score is a feature.
        qrels: lines `topic 0 document relevance`; the field `relevance` of a document without a
            judgement is null.

    Raises:
        DataError: if a line is not such a line, or a document occurs twice.

    >>> trec(["q1 Q0 d11 1 13.5 bm25"], qrels=["q1 0 d11 2"])
    [{'id': 'q1', 'candidates': [{'text': 'd11', 'features': {'score': 13.5}, 'relevance': 2}]}]
    """
    judged: dict[tuple[str, str], int] = {}
    what = "a judgement of TREC"
    for record in iter_records(qrels) if qrels is not None else ():
        topic, _, document, relevance = _split(record, what, 4)
        if not re.fullmatch("-?[0-9]+", relevance) or (topic, document) in judged:
            record.refuse(what, "its relevance is not an integer, or the document occurs twice")
        judged[topic, document] = int(relevance)
    lists: dict[str, dict[str, Any]] = {}
    what, seen = "a run of TREC", set[tuple[str, str]]()
    for record in iter_records(records):
        topic, _, document, _, score, *_ = _split(record, what, 6)
        if (topic, document) in seen:
            record.refuse(what, f"the document {document} occurs twice")
        seen.add((topic, document))
        one: dict[str, Any] = {"text": document}
        one["features"] = {"score": _number(record, what, score)}
        if qrels is not None:
            one["relevance"] = judged.get((topic, document))
        lists.setdefault(topic, {"id": topic, "candidates": []})["candidates"].append(one)
    return list(lists.values())


def letor(records: Iterable[Any]) -> Lists:
    """Return the lists of a file of LETOR or SVMlight with query ids, one a query.

    The features are `f1`, `f2`, …, by their numbers; one that a line leaves out is 0, as SVMlight
    defines. The field `relevance` is the label. A text is the comment of the line, or its number.

    Args:
        records: lines `relevance qid:query 1:value 2:value … # comment`.

    Raises:
        DataError: if a line is not such a line.

    >>> letor(["2 qid:1 1:0.5 3:1 # GX1"])[0]["candidates"]
    [{'text': 'GX1', 'features': {'f1': 0.5, 'f3': 1.0}, 'relevance': 2.0}]
    """
    what, rows = "a line of LETOR", []
    for record in iter_records(records):
        if isinstance(record.value, str) and record.value.startswith("#"):
            continue  # a comment of SVMlight
        match = _LETOR.fullmatch(record.value) if isinstance(record.value, str) else None
        if match is None:
            record.refuse(what, "it needs a label, qid: and features such as 1:0.5")
        pairs = [pair.split(":", 1) for pair in match[3].split()]
        features = {int(name): _number(record, what, value) for name, value in pairs}
        if len(features) < len(pairs):
            record.refuse(what, "a feature occurs twice")
        text = (match[4] or "").strip() or f"line {record.line}"
        rows.append((match[2], text, features, _number(record, what, match[1])))
    names = sorted({name for _, _, features, _ in rows for name in features})
    lists: dict[str, dict[str, Any]] = {}
    for query, text, features, relevance in rows:
        of_list = lists.setdefault(query, {"id": query, "candidates": []})
        values = {f"f{name}": features.get(name, 0.0) for name in names}
        of_list["candidates"].append({"text": text, "features": values, "relevance": relevance})
    return list(lists.values())


def wmt(records: Iterable[Any]) -> Lists:
    """Return the lists of segment scores of the metrics shared task, one a segment.

    The candidates are the systems, whose names are their texts and the extra `system`. Lines of a
    system are its segments, in their order, from 0; all systems have the same number of them.

    Args:
        records: lines `system<TAB>score`, as in files `….seg.score`; None is no score.

    Raises:
        DataError: if a line is not such a line, or the numbers of segments differ.

    >>> wmt(["sysA 0.5", "sysA None", "sysB 0.25", "sysB 1"])[0]["candidates"]
    [{'text': 'sysA', 'system': 'sysA', 'score': 0.5}, {'text': 'sysB', ..., 'score': 0.25}]
    """
    what, lists, counts = "a score of a segment", Lists(), Counter[str]()
    record = LocatedRecord(None)
    for record in iter_records(records):
        system, score = _split(record, what, 2)
        segment = counts[system]
        counts[system] += 1
        if segment == len(lists):
            lists.append({"id": segment, "candidates": []})
        value = None if score == "None" else _number(record, what, score)
        lists[segment]["candidates"].append({"text": system, "system": system, "score": value})
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{name} {count}" for name, count in sorted(counts.items())[:5])
        record.refuse(what, f"the systems have different numbers of segments ({shown})")
    return lists


def icefall(records: Iterable[Any]) -> Lists:
    """Return the lists of results of icefall (`recogs-….txt`), one an utterance.

    Lines with `hyp` are the candidates: one of each file, without features. Those with `ref` are
    the reference, which must be the same in all files.

    Args:
        records: lines such as `utt-1:<TAB>ref=['A', 'CAT']`, of several files one after another.

    Raises:
        DataError: if a line is not such a line, or an utterance has no reference or two of them.

    >>> icefall(["u:" + chr(9) + "ref=['A', 'CAT']", "u:" + chr(9) + "hyp=['A']"])
    [{'id': 'u', 'references': ['A CAT'], 'candidates': [{'text': 'A'}]}]
    """
    what, record = "a result of icefall", LocatedRecord(None)
    lists: dict[str, dict[str, Any]] = {}
    for record in iter_records(records):
        match = _ICEFALL.fullmatch(record.value) if isinstance(record.value, str) else None
        words = _parse_words(match[3]) if match else None
        if match is None or words is None:
            record.refuse(what, "a line reads NAME:<TAB>ref=['A', 'CAT'], or hyp")
        text = " ".join(words)
        of_list = lists.setdefault(match[1], {"id": match[1], "references": [], "candidates": []})
        if match[2] == "hyp":
            of_list["candidates"].append({"text": text})
        elif of_list["references"] not in ([], [text]):
            record.refuse(what, f"a second reference of {match[1]}")
        else:
            of_list["references"] = [text]
    without = next((name for name, of in lists.items() if not of["references"]), None)
    if without is not None:
        record.refuse(what, f"no reference of {without}")
    return list(lists.values())


def _parse_words(text: str) -> list[str] | None:
    """Return the words in a list that Python printed; None for anything else."""
    try:
        words = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    is_list = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return words if is_list else None
