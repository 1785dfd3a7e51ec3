"""Results of programs that evaluate LLMs: lm-evaluation-harness, inspect_ai and promptfoo."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from bpa_ppl._runtime.values import abbreviate, parse_finite
from bpa_ppl.errors import quote
from bpa_ppl.extras.convert.records import Failures, Lists, Turn, find_last_text, keep_others
from bpa_ppl.formats.located import LocatedRecord, iter_records

_SAMPLE: dict[str, Any] = {
    "doc_id": int | str,
    "target": Any,
    "resps": list[list[str | Annotated[list[Any], msgspec.Meta(min_length=1)]]],
    "arguments": dict[str, dict[str, Any]] | list[list[Any]],
}


def lmeval(records: Iterable[Any]) -> Lists:
    """Return the lists of samples of lm-evaluation-harness (`--log_samples`), one a document.

    Generated answers are the candidates, and the target is the reference. Of a task with choices
    these are the candidates, with the feature `loglikelihood`, and the field `correct`, true for
    the target. A document has a line for each filter, all with the same answers: one is used.

    Args:
        records: samples of one task.

    Raises:
        DataError: if a record is not a sample, or its target is not one of the choices.

    >>> sample = {"doc_id": 0, "target": "42", "resps": [["42", "41"]], "arguments": {}}
    >>> lmeval([sample])
    [{'id': 0, 'references': ['42'], 'candidates': [{'text': '42'}, {'text': '41'}]}]
    """
    what = "a sample of lm-evaluation-harness"
    lists: dict[int | str, dict[str, Any]] = {}
    answers: dict[int | str, Any] = {}
    for record in iter_records(records):
        document, target, several, arguments = record.read(what, _SAMPLE)
        if answers.setdefault(document, several) != several:
            record.refuse(what, f"document {document} has other answers in a line before")
        if document in lists:
            continue
        responses = [one for of in several for one in of]
        texts = [one for one in responses if isinstance(one, str)]
        of_list: dict[str, Any] = {"id": document}
        if len(texts) == len(responses) and len(several) == 1:
            of_list |= {"references": [str(target)]}
            of_list |= {"candidates": [{"text": text} for text in texts]}
        elif texts or any(len(of) != 1 for of in several):
            record.refuse(what, "its answers are neither texts nor log-likelihoods of choices")
        else:
            choices = _read_choices(record, arguments, str(target), responses, what)
            of_list |= {"candidates": choices}
        lists[document] = of_list | keep_others(record, *_SAMPLE)
    return list(lists.values())


def _read_choices(
    record: LocatedRecord, arguments: Any, target: str, responses: list[Any], what: str
) -> list[dict[str, Any]]:
    """Return the choices of a document as candidates."""
    if isinstance(arguments, dict):
        pairs = [list(of.values()) for of in arguments.values()]
    else:
        pairs = arguments
    if len(pairs) != len(responses) or not all(
        len(pair) == 2 and isinstance(pair[1], str) for pair in pairs
    ):
        record.refuse(what, "its arguments are not a context and a choice for each answer")
    texts = [pair[1].removeprefix(" ") for pair in pairs]
    right = [k for k, text in enumerate(texts) if target in (str(k), text)]
    if len(right) != 1:
        record.refuse(what, f"the target {quote(target)} is not one of the choices")
    numbers = []
    for value, *_ in responses:
        try:
            numbers.append(parse_finite(str(value)))
        except ValueError as error:
            record.refuse(what, f"a log-likelihood: {error}")
    return [
        {"text": text, "features": {"loglikelihood": number}, "correct": k == right[0]}
        for k, (text, number) in enumerate(zip(texts, numbers, strict=True))
    ]


_INSPECT_SAMPLE: dict[str, Any] = {
    "id": int | str,
    "epoch": int,
    "input": str | list[Turn],
    "target": str | list[str],
    "output.completion": str,
    "scores?": dict[str, dict[str, Any]],
}
_TRANSCRIPTS = ("messages", "events", "attachments", "store")
#: Grades of inspect_ai: correct, partially correct, incorrect and no answer.
_GRADES = {"C": 1, "P": 0.5, "I": 0, "N": 0}


def inspect(records: Iterable[Any]) -> Lists:
    """Return the lists of logs of inspect_ai, one a sample.

    The answers of all epochs and logs to a sample are the candidates, with the extra `system`, the
    model, and a field for each scorer. The grades C, P, I and N are the numbers 1, 0.5, 0 and 0;
    if a scorer has several values, its fields are called as `scorer.name`.

    Args:
        records: logs in JSON, as `inspect log dump FILE` prints them.

    Raises:
        DataError: if a record is not a log.

    >>> sample = {"id": 7, "epoch": 1, "input": "6 * 7?", "target": "42"}
    >>> sample |= {"output": {"completion": "42"}, "scores": {"match": {"value": "C"}}}
    >>> inspect([{"eval": {"model": "m"}, "samples": [sample]}])[0]["candidates"]
    [{'text': '42', 'system': 'm', 'match': 1}]
    """
    what = "a log of inspect_ai"
    lists: dict[int | str, dict[str, Any]] = {}
    for record in iter_records(records):
        model, samples = record.read(what, {"eval.model": str, "samples": list[Any]})
        for sample in samples:
            row = record._replace(value=sample).read(what, _INSPECT_SAMPLE)
            identifier, _, turns, target, answer, scores = row
            targets = [target] if isinstance(target, str) else target
            start = {"id": identifier, "source": find_last_text(turns), "references": targets}
            of_list = lists.setdefault(identifier, {**start, "candidates": []})
            if any(of_list[name] != value for name, value in start.items()):
                record.refuse(what, f"another log has another sample {quote(str(identifier))}")
            fields: dict[str, Any] = {}
            for name, score in (scores or {}).items():
                if "value" not in score:
                    record.refuse(what, f"the score {quote(name)} has no field `value`")
                several = isinstance(score["value"], dict)
                values = score["value"] if several else {"": score["value"]}
                for part, value in values.items():
                    if not isinstance(value, str | int | float | None):
                        problem = f"the score {quote(name)} is {abbreviate(value)}"
                        record.refuse(what, problem)
                    value = _GRADES.get(value, value) if isinstance(value, str) else value
                    fields[f"{name}.{part}" if several else name] = value
                others = keep_others(record._replace(value=score), "value")
                fields |= {f"{name}.{n}": v for n, v in others.items()}
            texts = {"text": answer, "system": model}
            others = keep_others(record._replace(value=sample), *_INSPECT_SAMPLE, *_TRANSCRIPTS)
            of_list["candidates"].append({**others, **texts, **fields})
    return list(lists.values())


_FOO_RESULT: dict[str, Any] = {
    "testIdx": int,
    "promptIdx": int,
    "vars": dict[str, Any],
    "provider.id": str,
    "score": float,
    "response?.output?": Any,
    "namedScores?": dict[str, float],
}


def promptfoo(records: Iterable[Any], *, bad: str = "error") -> Lists:
    """Return the lists of results of promptfoo, one a test.

    The outputs of all providers and prompts are the candidates, with the extras `system`, the
    provider, and `prompt`, the number of the prompt, and with the fields `score` and those of named
    scores. The source is the variables of the test, as JSON.

    Args:
        records: the content of an output file, or its lines if that is JSON lines.
        bad: what to do about a result without an output: "error", or "drop" to leave it out.

    Raises:
        DataError: if a record is not such a result.

    >>> row = {"testIdx": 0, "promptIdx": 0, "vars": {"q": "?"}, "provider": {"id": "m"}}
    >>> promptfoo([row | {"score": 1, "response": {"output": "a cat"}}])[0]["candidates"]
    [{'text': 'a cat', 'system': 'm', 'prompt': 0, 'score': 1.0}]
    """
    what, failures = "a result of promptfoo", Failures(bad, "result", "run the test again")
    lists: dict[str, dict[str, Any]] = {}
    for record in iter_records(records):
        rows = [record.value]
        if record.has("results"):
            (rows,) = record.read(what, {"results.results": list[Any]})
        for value in rows:
            row = record._replace(value=value).read(what, _FOO_RESULT)
            test, prompt, variables, provider, score, output, named = row
            source = json.dumps(variables, ensure_ascii=False)
            start = {"id": len(lists), "source": source, "candidates": []}
            of_list = lists.setdefault(f"{test} {source}", start)
            if output is None:
                failures.add(record, "a result without an output")
                continue
            text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
            fields = {"text": text, "system": provider, "prompt": prompt, "score": score}
            others = keep_others(record._replace(value=value), "prompt", *_FOO_RESULT)
            of_list["candidates"].append({**others, **fields, **(named or {})})
    failures.report()
    return list(lists.values())
