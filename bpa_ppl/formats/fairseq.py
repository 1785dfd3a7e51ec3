"""The output of fairseq-generate and fairseq-interactive: S-, T-, H-, D-, P- and A- lines.

Each line is a letter, the sentence id, and fields separated by tabs:

    S-3    source                  sources
    T-3    reference               references
    H-3    score  hypothesis       `score`: the log-probability, divided by a power of the length
    D-3    score  the same, detokenised
    P-3    a score a token         `logprob.sum`, `logprob.mean`, `logprob.min`, `length`
    A-3    0-0 1-2                 the extra `alignment`

Scores are taken as printed: logarithms of base 2 since fairseq 0.10 ("hypothesis and token scores
are output in base 2"), natural ones before. Tokens are those of the model, end of sentence
included. Other lines are the log of the program and are skipped.

`generate(…, verbose=True)` of a model from the hub logs the same lines without ids, `S<TAB>source`:
a sentence begins with its S line, and ids count the sentences.

Ids are kept, in the order of fairseq's batches, and index references and sources. Shards
(`generate-test_3_8.txt`) are read one by one and joined with `concatenate`. The lines of a sentence
are together, except for those of the log.

The lines of a hypothesis follow its H- line; a file in another order is refused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import lt
from typing import Any

from bpa_ppl._runtime.arrays import LARGEST
from bpa_ppl._runtime.streams import InputFile, text_lines
from bpa_ppl.formats.block import CANDIDATES, ID, REFERENCE, SOURCE, TEXT, Block
from bpa_ppl.formats.format import NBestFormat, iter_record_blocks
from bpa_ppl.formats.samples import STATISTICS, token_statistics
from bpa_ppl.formats.schema import Schema

_LINE = re.compile(r"([STHDPA])-([0-9]+)(?:\t|$)")
_INSIDE = re.compile(r"[STHDPA]-[0-9]+\t")
# The beginning of a line without an id, as the hub logs it.
_WITHOUT_ID = re.compile(r"(?:[-0-9]+ [:0-9]+ \| [A-Z]+ \| fairseq.* \| |INFO:fairseq.*:)?([SHPA])")
_FIRST = re.compile(
    rb"[STHDPA]-[0-9]+(?:\t|\r?$)|Namespace\(|[-0-9]+ [:0-9]+ \| [A-Z]+ \| fairseq|INFO:fairseq"
    rb"|S\t[^\t]*$"
)
_USUAL = re.compile(r"-?\d{1,9}\.\d{4}(?: -?\d{1,9}\.\d{4})*", re.ASCII)  # scores of tokens
_LONGEST_ID = 18  # digits that fit 64 bits

#: The lines of a sentence by their letter: their numbers, and what follows the id and its tab.
_Lines = dict[str, list[tuple[int, str]]]


class Fairseq(NBestFormat, frozen=True):
    """The format of fairseq."""

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line is output of fairseq, or part of the log before it.

        >>> Fairseq().detect(b"S-17" + bytes([9]) + b"un chat"), Fairseq().detect(b"un chat")
        (True, False)
        >>> Fairseq().detect(b"2020-11-05 10:00:00 | INFO | fairseq_cli.generate | loading model")
        True
        """
        return _FIRST.match(first_line) is not None

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        r"""Yield the columns of some sentences when they are complete.

        >>> file = InputFile(b"S-7\tun chat\nH-7\t-0.5\ta c@@ at\nD-7\t-0.5\ta cat\nP-7\t-1 -0.5 0")
        >>> columns = next(Fairseq().blocks(file, Schema("generate-test.txt")))
        >>> columns.candidates["text"], columns.candidates["logprob.sum"]
        (['a cat'], [-1.5])
        >>> columns.sentences
        {'id': [7], 'source': ['un chat']}
        """
        kinds: dict[str, bool] = {}
        sentences = _sentences(file, schema)
        records = (_record(number, lines, kinds, schema) for number, lines in sentences)
        return iter_record_blocks(records, schema)


def _sentences(file: InputFile, schema: Schema) -> Iterator[tuple[int, _Lines]]:
    """Yield the id of each sentence, and its lines."""
    sentence: _Lines = {}
    heads: dict[str, list[tuple[int, str]]] = {}  # its lines by how they begin
    current = ""  # its id, as it is printed
    ids: set[int] = set()  # so far
    counted = 0  # sentences without an id
    for number, line in enumerate(text_lines(file.chunks(), schema.origin), 1):
        head, _, rest = line.partition("\t")
        if (of_head := heads.get(head)) is not None:
            of_head.append((number, rest))
            continue
        matched = _LINE.match(line)
        without = None if matched or len(ids) > counted else _WITHOUT_ID.fullmatch(head)
        if matched:
            letter, digits = matched.groups()
        elif without and (counted or without[1] == "S"):
            counted += without[1] == "S"
            letter, digits = without[1], str(schema.first_id + counted - 1)
        elif hidden := _INSIDE.search(line):
            problem = f"{hidden[0].strip()} is not at the start of its line"
            raise schema.error(f"{problem}: run fairseq with --no-progress-bar", number)
        else:
            continue
        if digits != current:
            if len(digits) > _LONGEST_ID:
                raise schema.error(f"sentence id {digits} is too large", number)
            if int(digits) in ids:
                problem = f"a line of sentence {digits}, after other sentences"
                advice = "put the lines of a sentence together"
                raise schema.error(f"{problem}: {advice}", number, "duplicate")
            ids.add(int(digits))
            if current:
                yield int(current), sentence
            current, sentence, heads = digits, defaultdict(list), {}
        sentence[letter].append((number, rest))
        if matched:
            heads[head] = sentence[letter]
    if not current:
        problem = "no line of fairseq in it (`H-0`, a score, a text)"
        raise schema.error(f"{problem}: give the output, not a log", code="no-data")
    yield int(current), sentence


def _record(
    identifier: int, lines: _Lines, kinds: dict[str, bool], schema: Schema
) -> tuple[int, dict[str, Any]]:
    """Return the line of the first hypothesis of a sentence, and the sentence as a record.

    Args:
        identifier: of the sentence.
        lines: of the sentence.
        kinds: whether the first sentence has lines of some letter; entered here.
        schema: of the file.
    """
    first = min(of_kind[0][0] for of_kind in lines.values())
    scored = lines.get("H") or lines.get("D")
    if not scored:
        problem = f"sentence {identifier} has no H- line: the file is truncated"
        raise schema.error(f"{problem}, or lines of other sentences are in between", first)
    for letter, count in {"S": 1, "T": 1, **dict.fromkeys("DPA", len(scored))}.items():
        received = len(lines.get(letter, ()))
        expected = count if kinds.setdefault(letter, received > 0) else 0
        if received != expected:
            problem = (
                f"sentence {identifier} has {received} {letter}- lines, not {expected}, as its "
            )
            advice = "H- lines and the first sentence show: give the whole output of one run"
            raise schema.error(problem + advice, first, "wrong-length")
    lines = {**lines, "H": scored}
    pairs = {k: _pair_lines(identifier, k, lines, schema) for k in "DPA" if k in lines}
    numbers = [number for number, _ in scored]
    printed, texts = zip(*(rest.partition("\t")[::2] for _, rest in scored), strict=True)
    if "D" in pairs:
        texts = tuple(rest.partition("\t")[2] for rest in pairs["D"])
    scores = list(map(schema.number, printed, numbers))
    columns: dict[str, Iterable[Any]] = {TEXT: [text.strip(" ") for text in texts], "score": scores}
    if "P" in pairs:
        measured = [_measure(*of, schema) for of in zip(pairs["P"], numbers, strict=True)]
        columns |= zip(STATISTICS, zip(*measured, strict=True), strict=True)
    if "A" in pairs:
        columns["alignment"] = [rest.strip(" ") for rest in pairs["A"]]
    named = ((name, lines[k]) for k, name in (("S", SOURCE), ("T", REFERENCE)) if k in lines)
    fields = {name: of_kind[0][1].strip(" ") for name, of_kind in named}
    rows = zip(*columns.values(), strict=True)
    candidates = [dict(zip(columns, row, strict=True)) for row in rows]
    return numbers[0], {ID: identifier, **fields, CANDIDATES: candidates}


def _pair_lines(identifier: int, letter: str, lines: _Lines, schema: Schema) -> list[str]:
    """Return what D-, P- or A- lines say, in the order of the hypotheses.

    Raises:
        DataError: if one does not follow its hypothesis, or a D- line has another score.
    """
    scored, of_kind = lines["H"], lines[letter]
    rests = [rest for _, rest in of_kind]
    if of_kind is scored:
        return rests
    begins, places = ([number for number, _ in of] for of in (scored, of_kind))
    follow = all(map(lt, begins, places)) and all(map(lt, places, begins[1:]))
    scores = [[rest.partition("\t")[0] for _, rest in of] for of in (scored, of_kind)]
    if not follow or (letter == "D" and scores[0] != scores[1]):
        problem = f"the {letter}- lines of sentence {identifier} do not follow its H- lines, or "
        problem += "have other scores: give the output as fairseq printed it, or leave the "
        raise schema.error(f"{problem}{letter}- lines out", places[0], "mismatch")
    return rests


def _measure(printed: str, number: int, schema: Schema) -> tuple[float, ...]:
    """Return the features of a P- line; infinity for a number that is not finite."""
    tokens, what = printed.split(), "in the lines of this hypothesis, "
    if _USUAL.fullmatch(printed):
        scores = list(map(float, tokens))
    else:
        scores = [schema.number(token, number, what) for token in tokens]
    statistics = token_statistics(scores)
    if statistics is None:
        raise schema.error("no token scores in the P- line of this hypothesis", number)
    if abs(statistics[0]) <= LARGEST:
        return statistics
    return (schema.number(repr(statistics[0]), number, what),) * len(STATISTICS)
