"""Judgements of pairs of answers, by judges of benchmarks and by people with annotation tools.

    alpacaeval   {"instruction": "…", "output_1": "…", "output_2": "…", "preference": 1.93}
    arenahard    {"uid": "…", "model": "…", "games": [{"score": "A>B"}, {"score": "B>>A"}]}
    mtbench      {"question_id": 81, "turn": 1, "model_1": "…", "model_2": "…", "g1_winner": "tie"}
                 {"question_id": 81, "turn": 1, "model": "…", "score": 9}
    labelstudio  {"data": {"first": "…", "second": "…"}, "annotations": [{"result": […]}]}
    argilla      {"fields": {"first": "…", "second": "…"}, "responses": {"better": […]}}

Files of Arena-Hard and MT-Bench have no answers: the names of the models are the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bpa_ppl._runtime.values import abbreviate
from bpa_ppl.errors import list_names, quote
from bpa_ppl.extras.convert.records import (
    Failures,
    Lists,
    drop_missing,
    keep_others,
    make_judgement,
)
from bpa_ppl.formats.located import LocatedRecord, iter_records

_ALPACA_EVAL: dict[str, Any] = {
    "instruction": str,
    "output_1": str,
    "output_2": str,
    "preference": float | None,
    "generator_1?": str,
    "generator_2?": str,
}


def alpacaeval(records: Iterable[Any], *, bad: str = "error") -> Lists:
    """Return the lists of annotations of AlpacaEval.

    A preference is between 1, for the first answer, and 2, for the second one; 1.5 and 0 are ties.

    Args:
        records: the annotations.
        bad: what to do about a preference that is null: "error", or "drop" to leave it out.

    Raises:
        DataError: if a record is not an annotation.

    >>> row = {"instruction": "Un chat", "output_1": "cat", "output_2": "a cat", "preference": 1.9}
    >>> alpacaeval([row])[0]["preferences"]
    [[1, 0]]
    """
    what, lists, failures = "an annotation of AlpacaEval", Lists(), Failures(bad)
    for record in iter_records(records):
        instruction, first, second, preference, *systems = record.read(what, _ALPACA_EVAL)
        if preference is None:
            failures.add(record, "preference is null")
            continue
        if preference != 0 and not 1 <= preference <= 2:
            record.refuse(what, f"preference is {preference:g}, not between 1 and 2")
        pairs = zip((first, second), systems, strict=True)
        place = None if preference in (0, 1.5) else int(preference > 1.5)
        of_list = {
            "id": len(lists),
            "source": instruction,
            "candidates": [drop_missing({"text": text, "system": of}) for text, of in pairs],
        }
        others = keep_others(record, *_ALPACA_EVAL)
        lists.append({**of_list, **make_judgement(place), **others})
    failures.report()
    return lists


_ARENA_HARD: dict[str, Any] = {
    "model": str,
    "games": list[dict[str, Any] | None],
    "question_id?": str,
    "uid?": str,
    "baseline?": str,
}
#: Verdicts of Arena-Hard, and the place of the better answer in the first game; None is a tie.
_VERDICTS = {"A>>B": 0, "A>B": 0, "A=B": None, "B>A": 1, "B>>A": 1}


def arenahard(records: Iterable[Any], *, baseline: str | None = None, bad: str = "error") -> Lists:
    """Return the lists of judgements of Arena-Hard: the baseline and a model, once a question.

    In the first game A is the baseline, in the second one B. Strong verdicts (`A>>B`) count as
    others.

    Args:
        records: the judgements.
        baseline: the name of the baseline of files without the field `baseline`, which has several;
            "baseline" by default.
        bad: what to do about a game without a verdict: "error", or "drop" to leave it out.

    Raises:
        DataError: if a record is not such a judgement, or is of another baseline.

    >>> arenahard([{"uid": "q", "model": "m", "games": [{"score": "B>A"}, {"score": "A=B"}]}])
    [{'id': 'q m', 'candidates': [{'text': 'baseline', 'system': 'baseline'}, ...
    """
    what, lists, failures = "a judgement of Arena-Hard", Lists(), Failures(bad)
    for record in iter_records(records):
        model, games, question, identifier, named = record.read(what, _ARENA_HARD)
        question = question or identifier
        if None not in (baseline, named) and baseline != named:
            problem = f"its baseline is {quote(named)}, not {quote(baseline)}: leave out the option"
            raise record.error(f"{problem} baseline", parameter="baseline")
        if question is None or len(games) > 2:
            record.refuse(what, "it needs a question_id or uid, and at most two games")
        preferences, ties = [], []
        for number, game in enumerate(games):
            game = record._replace(value={"score": None} if game is None else game)
            (score,) = game.read(what, {"score": str | None})
            if score is None:
                failures.add(record, f"game {number + 1} has no score")
            elif score not in _VERDICTS:
                record.refuse(what, f"a score is {quote(score)}")
            elif (place := _VERDICTS[score]) is None:
                ties.append([0, 1])
            else:
                place = 1 - place if number else place
                preferences.append([place, 1 - place])
        systems = named or baseline or "baseline", model
        models = [{"text": name, "system": name} for name in systems]
        of_list = {"id": " ".join([question, *systems[named is None :]]), "candidates": models}
        others = keep_others(record, "model", "question_id", "uid", "baseline")
        lists.append({**of_list, "preferences": preferences, "ties": ties, **others})
    failures.report()
    return lists


_TURN: dict[str, Any] = {"question_id": str | int, "turn": int}
_PAIR = _TURN | {"model_1": str, "model_2": str, "g1_winner": str, "g2_winner?": str}
_SCORE = _TURN | {"model": str, "score": float}


def mtbench(records: Iterable[Any], *, bad: str = "error") -> Lists:
    """Return the lists of judgements of MT-Bench: of pairs of models, or scores of single ones.

    Scores of one question and turn are the field `score` of the candidates of a list.

    Args:
        records: the judgements, all of pairs or all of single models.
        bad: what to do about a judgement that failed (`error`, or −1): "error", or "drop" to leave
            it out.

    Raises:
        DataError: if a record is not such a judgement.

    >>> scores = [{"question_id": 81, "turn": 1, "model": m, "score": 9} for m in "xy"]
    >>> mtbench(scores)[0]["candidates"][0]
    {'text': 'x', 'system': 'x', 'score': 9.0}
    """
    what, failures = "a judgement of MT-Bench", Failures(bad)
    lists: dict[str, dict[str, Any]] = {}
    for record in iter_records(records):
        if record.has("g1_winner"):
            question, turn, *models, first, second = record.read(what, _PAIR)
            name = f"{question} turn {turn} {' '.join(models)}"
            of_list = lists.setdefault(
                name,
                {
                    "id": name,
                    "candidates": [{"text": of, "system": of} for of in models],
                    "preferences": [],
                    "ties": [],
                    **keep_others(record, *_PAIR),
                },
            )
            for winner in (first, *([second] if second else [])):
                if winner == "error":
                    failures.add(record, "a winner is 'error'")
                elif winner == "tie":
                    of_list["ties"].append([0, 1])
                elif winner in ("model_1", "model_2"):
                    place = int(winner == "model_2")
                    of_list["preferences"].append([place, 1 - place])
                else:
                    record.refuse(what, f"a winner is {quote(winner)}")
        else:
            question, turn, model, score = record.read(what, _SCORE)
            if score == -1:
                failures.add(record, "a score is -1")
                continue
            name = f"{question} turn {turn}"
            of_list = lists.setdefault(name, {"id": name, "candidates": []})
            candidate = {"text": model, "system": model, "score": score}
            of_list["candidates"].append(candidate | keep_others(record, *_SCORE))
    failures.report()
    return list(lists.values())


_ANNOTATION: dict[str, Any] = {
    "result": list[dict[str, Any]],
    "completed_by?": int | dict[str, Any],
    "was_cancelled?": bool,
}


def _read_texts(
    record: LocatedRecord, what: str, where: str, fields: Mapping[str, Any], names: tuple[str, str]
) -> list[Any]:
    """Return the two texts that are compared, from fields of a record."""
    for option, name in zip(("first", "second"), names, strict=True):
        if name not in fields:
            problem = f"no field {name} in its {where} (there are {list_names(fields)}): name the "
            record.refuse(what, f"{problem}one of the {option} text, --{option} NAME")
        if not isinstance(fields[name], str):
            problem = f"{name} in its {where} is {abbreviate(fields[name])}, not a text: name the "
            record.refuse(what, f"{problem}field of the {option} text, --{option} NAME")
    return [fields[name] for name in names]


def labelstudio(records: Iterable[Any], *, first: str = "first", second: str = "second") -> Lists:
    """Return the lists of tasks of Label Studio with the control `Pairwise`, from its JSON export.

    A list has the two texts of a task, and a preference for each annotation, with its rater; other
    controls and cancelled annotations do not count. Of the fields of the task, `source` and `list`
    are used, the latter as the id.

    Args:
        records: the tasks.
        first: the field of the task with the first text.
        second: that with the second text.

    Raises:
        DataError: if a record is not such a task.

    >>> result = [{"type": "pairwise", "value": {"selected": "left"}}]
    >>> task = {"data": {"first": "a cat", "second": "cat"}}
    >>> labelstudio([task | {"annotations": [{"result": result, "completed_by": 1}]}])
    [{'id': 0, ..., 'preferences': [{'candidates': [0, 1], 'rater': '1'}]}]
    """
    what, lists = "a task of Label Studio's JSON export", Lists()
    for record in iter_records(records):
        data, annotations = record.read(what, {"data": dict[str, Any], "annotations": list[Any]})
        texts = _read_texts(record, what, "data", data, (first, second))
        preferences = []
        for annotation in annotations:
            result, rater, cancelled = record._replace(value=annotation).read(what, _ANNOTATION)
            parts = [record._replace(value=of) for of in result]
            kinds = [part.read(what, {"type": str, "value": Any})[0] for part in parts]
            chosen = [part for part, kind in zip(parts, kinds, strict=True) if kind == "pairwise"]
            if cancelled or not chosen:
                continue
            sides = [part.read(what, {"value.selected?": str})[0] for part in chosen]
            if len(sides) > 1 or sides[0] not in ("left", "right", None):
                record.refuse(what, f"the selected sides are {abbreviate(sides)}")
            rater = rater.get("email") if isinstance(rater, dict) else rater
            if sides[0] is not None:
                pair = [0, 1] if sides[0] == "left" else [1, 0]
                name = None if rater is None else str(rater)
                preferences.append(drop_missing({"candidates": pair, "rater": name}))
        of_list = {
            "id": data.get("list", len(lists)),
            "source": data.get("source"),
            "candidates": [{"text": text} for text in texts],
            "preferences": preferences,
        }
        others = keep_others(record._replace(value=data), "list", "source", first, second)
        others |= keep_others(record, "data", "annotations")
        lists.append(drop_missing(of_list) | others)
    return lists


_ARGILLA_RECORD: dict[str, Any] = {
    "fields": dict[str, Any],
    "responses": dict[str, list[dict[str, Any]]],
    "id?": str | int,
}


def argilla(
    records: Iterable[Any],
    *,
    question: str = "better",
    first: str = "first",
    second: str = "second",
) -> Lists:
    """Return the lists of records of Argilla with a question about two texts.

    A list has the two texts of a record, and an entry for each response to the question, with its
    rater. The labels are the names of the two fields, and `tie`.

    Args:
        records: as `dataset.records.to_json` exports them.
        question: the name of the question.
        first: the field of the first text.
        second: that of the second text.

    Raises:
        DataError: if a record is not such a record.

    >>> record = {"fields": {"first": "a cat", "second": "cat"}, "responses": {"better": []}}
    >>> record["responses"]["better"].append({"value": "second", "user_id": "ann"})
    >>> argilla([record])[0]["preferences"]
    [{'candidates': [1, 0], 'rater': 'ann'}]
    """
    what, lists = "a record of Argilla", Lists()
    for record in iter_records(records):
        fields, responses, identifier = record.read(what, _ARGILLA_RECORD)
        texts = _read_texts(record, what, "fields", fields, (first, second))
        judgements: dict[str, list[Any]] = {"preferences": [], "ties": []}
        for response in responses.get(question, ()):
            answer = record._replace(value=response)
            label, rater = answer.read(what, {"value": Any, "user_id?": str})
            if label not in (first, second, "tie"):
                labels = f"{first}, {second} or tie"
                record.refuse(what, f"a label is {abbreviate(label)}, not {labels}")
            pair = [1, 0] if label == second else [0, 1]
            kind = "ties" if label == "tie" else "preferences"
            entry = drop_missing({"candidates": pair, "rater": rater})
            judgements[kind].append(entry)
        of_list = {
            "id": len(lists) if identifier is None else identifier,
            "source": fields.get("source"),
            "candidates": [{"text": text} for text in texts],
        }
        others = keep_others(record, *_ARGILLA_RECORD)
        others |= keep_others(record._replace(value=responses), question)
        others |= keep_others(record._replace(value=fields), "source", first, second)
        lists.append({**drop_missing(of_list), **judgements, **others})
    return lists
