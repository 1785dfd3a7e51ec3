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

Ids are kept, in the order of fairseq's batches, and index references and sources. Shards
(`generate-test_3_8.txt`) are read one by one and joined with `concatenate`. Hypotheses keep
their order. The lines of different sentences may be interleaved, as long as no more than ten
sentences are incomplete at a time; these are kept in memory.

The lines of a hypothesis follow its H- line. Where they do not, as in a file that was sorted, D-
lines belong to the H- lines of equal score, and P- lines to those whose score is their sum, divided
by a power of their length. If that does not decide, the file is refused, and so is one whose P-
lines follow the H- lines of others.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from operator import eq, lt
from typing import Any

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.formats.block import ID, REFERENCE, SOURCE, TEXT, Block, ReadOptions
from bpa_ppl.formats.format import NBestFormat
from bpa_ppl.formats.samples import STATISTICS, token_statistics
from bpa_ppl.formats.streams import InputFile, text_lines
from bpa_ppl.formats.values import TOO_LARGE, all_finite, lines_of_numbers
from bpa_ppl.names import one_number, other_form

_LINE = re.compile(r"([STHDPA])-([0-9]+)(?:\t|$)")
_INSIDE = re.compile(r"[STHDPA]-[0-9]+\t")
_FIRST = re.compile(rb"[STHDPA]-[0-9]+(?:\t|\r?$)|Namespace\(|[-0-9]+ [:0-9]+ \| [A-Z]+ \| fairseq")
_JOINTS = re.compile(r"@@(?:\s|$)|\s|\u2581")  # where tokens are joined to words
_SCORE = "score"
_INTERLEAVED = 10  # sentences that may be incomplete at a time
_AT_ONCE = 1000  # hypotheses that become columns together
_LONGEST_ID = 18  # digits that fit 64 bits
_ROUNDED = 6e-5  # tokens' scores have four decimals
_SINGLE = 1e-5  # relative, of scores that were computed in float32
_POWERS = (-1.0, 4.0)  # between which the exponent of the length is
_TOKENS = "tokens"  # field of a record: the token scores of each hypothesis, and its line

#: The lines of a sentence by their letter: their numbers, and what follows the id and its tab.
_Sentence = dict[str, list[tuple[int, str]]]


class Fairseq(NBestFormat, frozen=True):
    """The format of fairseq."""

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line is fairseq's, or one of the log that it prints before.

        >>> Fairseq().detect(b"S-17" + bytes([9]) + b"un chat"), Fairseq().detect(b"un chat")
        (True, False)
        >>> Fairseq().detect(b"2020-11-05 10:00:00 | INFO | fairseq_cli.generate | loading model")
        True
        """
        return _FIRST.match(first_line) is not None

    def blocks(self, file: InputFile, options: ReadOptions) -> Iterator[Block]:
        r"""Yield the columns of some sentences when they are complete.

        Raises:
            DataError: with file and line, if a line is not as it should be, a sentence has lines
                of some kind for some of its hypotheses alone, or lines come too late.

        >>> file = InputFile(b"S-7\tun chat\nH-7\t-0.5\ta c@@ at\nD-7\t-0.5\ta cat\nP-7\t-1 -0.5 0")
        >>> columns = next(Fairseq().blocks(file, ReadOptions("generate-test.txt")))
        >>> columns.candidates["text"], columns.candidates["logprob.sum"].tolist()
        (['a cat'], [-1.5])
        >>> columns.sentences
        {'id': [7], 'source': ['un chat']}
        """
        records: list[tuple[int, dict[str, Any]]] = []
        hypotheses = 0
        for line, record in _records(file.chunks(), options):
            records.append((line, record))
            hypotheses += len(record[TEXT])
            if hypotheses >= _AT_ONCE:
                yield _columns(records, options)
                records, hypotheses = [], 0
        if records:
            yield _columns(records, options)


def _records(blocks: Iterator[bytes], options: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the first line of each sentence, and its fields; those of hypotheses are lists."""
    incomplete: dict[int, _Sentence] = {}
    by_head: dict[str, list[tuple[int, str]]] = {}  # of these sentences
    begun = set[int]()
    forms: dict[int, str] = {}
    kinds: dict[str, bool] = {}
    for number, line in enumerate(text_lines(blocks, options.origin), 1):
        head, _, rest = line.partition("\t")
        of_kind = by_head.get(head)
        if of_kind is None:
            matched = _LINE.match(line)
            if matched is None:
                if hidden := _INSIDE.search(line):
                    problem = f"{hidden[0].strip()} is not at the start of its line"
                    advice = "run fairseq with --no-progress-bar"
                    raise options.error(f"{problem}: {advice}", number)
                continue
            letter, digits = matched.groups()
            if len(digits) > _LONGEST_ID:
                raise options.error(f"sentence id {digits} is too large", number)
            identifier = int(digits)
            if other := other_form(forms, identifier, digits):
                raise options.error(one_number(digits, other), number, "duplicate")
            if identifier in begun and identifier not in incomplete:
                others = f"{_INTERLEAVED} other sentences"
                problem = f"a line of sentence {identifier}, after {others}"
                advice = "put the lines of a sentence together"
                raise options.error(f"{problem}: {advice}", number, "duplicate")
            begun.add(identifier)
            sentence = incomplete.setdefault(identifier, defaultdict(list))
            if len(incomplete) > _INTERLEAVED:
                first = next(iter(incomplete))
                yield _record(first, incomplete.pop(first), kinds, options)
                by_head.clear()
            of_kind = by_head[head] = sentence[letter]
        of_kind.append((number, rest))
    if not begun:
        problem = "no line of fairseq in it (`H-0`, a score, a text)"
        raise options.error(f"{problem}: give the output, not a log", code="no-data")
    for identifier, sentence in incomplete.items():
        yield _record(identifier, sentence, kinds, options)


def _record(
    identifier: int, lines: _Sentence, kinds: dict[str, bool], options: ReadOptions
) -> tuple[int, dict[str, Any]]:
    """Return the line and the fields of a sentence that is complete.

    Args:
        identifier: of the sentence.
        lines: of the sentence.
        kinds: whether the first sentence has lines of some letter; entered here.
        options: how to read.
    """
    number = min(of_kind[0][0] for of_kind in lines.values())
    scored = lines.get("H") or lines.get("D")
    if not scored:
        problem = f"sentence {identifier} has no H- line: the file is truncated"
        advice = "or lines of too many other sentences are in between"
        raise options.error(f"{problem}, {advice}", number)
    for letter, count in {"S": 1, "T": 1, **dict.fromkeys("DPA", len(scored))}.items():
        found = len(lines.get(letter, ()))
        expected = count if kinds.setdefault(letter, found > 0) else 0
        if found != expected:
            problem = f"sentence {identifier} has {found} {letter}- lines, not {expected}, as its "
            advice = "H- lines and the first sentence show: give the whole output of one run"
            raise options.error(problem + advice, number, "wrong-length")
    numbers, scores, texts = _split(scored)
    if len(scored) > 1 and not _are_together(lines, scored):
        lines = {**lines, **_paired(identifier, lines, scored, options)}
    if "D" in lines:
        _, _, texts = _split(lines["D"])
    record: dict[str, Any] = {ID: identifier}
    for letter, name in (("S", SOURCE), ("T", REFERENCE)):
        if letter in lines:
            record[name] = lines[letter][0][1].strip(" ")
    values = all_finite(list(map(str.encode, scores)))
    checked = list(map(options.number, scores, numbers)) if values is None else values
    record |= {TEXT: texts, _SCORE: checked}
    if "P" in lines:
        scores_of_tokens = [rest for _, rest in lines["P"]]
        record[_TOKENS] = list(zip(scores_of_tokens, numbers, strict=True))
    if "A" in lines:
        record["alignment"] = [rest.strip(" ") for _, rest in lines["A"]]
    return numbers[0], record


def _are_together(lines: _Sentence, scored: list[tuple[int, str]]) -> bool:
    """Return whether each hypothesis has its lines behind that of its score, with equal scores."""
    begins = [number for number, _ in scored]
    ends = [*begins[1:], math.inf]
    for letter in "DPA":
        of_kind = lines.get(letter, scored)
        if of_kind is scored:
            continue
        numbers = [number for number, _ in of_kind]
        if not (all(map(lt, begins, numbers)) and all(map(lt, numbers, ends))):
            return False
        if letter == "D":
            printed = [[rest.partition("\t")[0] for _, rest in kind] for kind in (scored, of_kind)]
            if printed[0] != printed[1] and not all(map(eq, *(map(_key, p) for p in printed))):
                return False
    return True


def _paired(
    identifier: int, lines: _Sentence, scored: list[tuple[int, str]], options: ReadOptions
) -> _Sentence:
    """Return D-, P- and A- lines in the order of the hypotheses, which their scores show.

    Raises:
        DataError: if they do not show it.
    """
    paired: _Sentence = {}
    keys = [_key(rest) for _, rest in scored]
    for letter in "DPA":
        of_kind = lines.get(letter, scored)
        if of_kind is scored:
            continue
        rests, order = [rest for _, rest in of_kind], None
        reason = "it is not known which hypothesis each belongs to"
        if letter == "D":
            order = _order_of(keys, list(map(_key, rests)))
            if order is None:
                reason = "have other scores than these"
            elif lines.keys() & {"P", "A"} and _are_tied(rests):
                order = _order_of([_squeezed(rest) for _, rest in scored], map(_squeezed, rests))
        elif len({" ".join(rest.split()) for rest in rests}) == 1:
            order = list(range(len(rests)))
        elif letter == "P":
            lengths = [len(rest.partition("\t")[2].split()) + 1 for _, rest in scored]
            order = _order_of_tokens(keys, rests, lengths) or _order_of_tokens(keys, rests)
        if order is None:
            problem = f"the {letter}- lines of sentence {identifier} are not behind its H- lines"
            advice = f"give the output as fairseq printed it, or leave the {letter}- lines out"
            message = f"{problem}, and {reason}: {advice}"
            raise options.error(message, of_kind[0][0], "mismatch")
        paired[letter] = [of_kind[place] for place in order]
    return paired


def _key(rest: str) -> float | str:
    """Return the score at the beginning of what follows an id, or its text if it is no number."""
    printed = rest.partition("\t")[0].strip()
    try:
        score = float(printed)
    except ValueError:
        return printed
    return printed if math.isnan(score) else score


def _are_tied(rests: Sequence[str]) -> bool:
    """Return whether hypotheses of one score have different texts."""
    return len(set(map(_key, rests))) < len({(_key(rest), rest) for rest in rests})


def _squeezed(rest: str) -> tuple[float | str, str]:
    """Return the score of a hypothesis, and its letters as they are before and after joining."""
    return _key(rest), _JOINTS.sub("", rest.partition("\t")[2]).casefold()


def _order_of(keys: Sequence[Any], others: Iterable[Any]) -> list[int] | None:
    """Return the places of equal scores; None if there are others."""
    places = defaultdict[Any, list[int]](list)
    for place, key in enumerate(others):
        places[key].append(place)
    try:
        return [places[key].pop(0) for key in keys]
    except IndexError:
        return None


def _order_of_tokens(
    scores: Sequence[Any], printed: Sequence[str], lengths: Sequence[int] | None = None
) -> list[int] | None:
    """Return for each hypothesis the place of its P- line; None if scores do not show it.

    A score is the sum of those of the tokens, divided by a power of their number, which is 1 unless
    `--lenpen` says otherwise.

    Args:
        scores: of the hypotheses.
        printed: the scores of tokens in each P- line.
        lengths: the numbers of tokens of the hypotheses, if they have not been joined to words.
    """
    try:
        tokens = [list(map(float, line.split())) for line in printed]
        target = np.array(scores, np.float64)
    except ValueError:
        return None
    sums, counts = np.array(list(map(sum, tokens))), np.array(list(map(len, tokens)), np.float64)
    expected = np.zeros(len(counts)) if lengths is None else np.array(lengths)
    found = np.zeros(len(counts)) if lengths is None else counts
    finite = counts.all() and np.isfinite(sums).all() and np.isfinite(target).all()
    if not finite or sorted(expected) != sorted(found):
        return None
    same = [tuple(sorted(of_line)) for of_line in tokens]
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.log(sums / target[0]) / np.log(counts)
    fitting = powers[(powers > _POWERS[0]) & (powers < _POWERS[1])].tolist()
    for candidates, slack in (([1.0], 1.0), (fitting, 3.0)):
        orders: dict[Any, list[int]] = {}
        for power in candidates:
            values = sums / counts**power
            error = slack * (_ROUNDED * counts ** (1 - power) + _SINGLE * np.abs(values))
            fits = np.abs(target[:, np.newaxis] - values) <= error
            fits &= expected[:, np.newaxis] == found
            order = np.empty(len(target), np.int64)
            order[np.lexsort((target, expected))] = np.lexsort((values, found))
            if not fits[np.arange(len(order)), order].all():
                continue
            places = order.tolist()
            orders[tuple(same[place] for place in places)] = places
            # Another P- line that fits a hypothesis, and is not the same, could be its own.
            if any(same[other] != same[places[row]] for row, other in np.argwhere(fits).tolist()):
                return None
        if orders:
            return next(iter(orders.values())) if len(orders) == 1 else None
    return None


def _columns(records: list[tuple[int, dict[str, Any]]], options: ReadOptions) -> Block:
    """Return the columns of some sentences."""
    first = records[0][1]
    columns: dict[str, Any] = {name: [of[name] for _, of in records] for name in first}
    tokens: list[tuple[str, int]] = list(chain.from_iterable(columns.pop(_TOKENS, ())))
    sentences = {name: columns.pop(name) for name in (ID, SOURCE, REFERENCE) if name in columns}
    parents = np.repeat(np.arange(len(records)), list(map(len, columns[TEXT])))
    hypotheses = {
        name: np.concatenate(lists) if name == _SCORE else list(chain.from_iterable(lists))
        for name, lists in columns.items()
    }
    if tokens:
        statistics = _regular_statistics([one for one, _ in tokens])
        if statistics is not None:
            _check_places(np.asarray(hypotheses[_SCORE]), statistics[1], parents, tokens, options)
        else:
            statistics = tuple(zip(*(_statistics(of, n, options) for of, n in tokens), strict=True))
        hypotheses |= dict(zip(STATISTICS, map(np.array, statistics), strict=True))
    lines = np.array([line for line, _ in records])
    return Block(hypotheses, sentences, parents, lines, nested=True)


def _check_places(
    scores: Float64,
    means: Float64,
    parents: Int64,
    tokens: Sequence[tuple[str, int]],
    options: ReadOptions,
) -> None:
    """Refuse sentences whose P- lines are those of other hypotheses, without `--lenpen`.

    The lines may be in the order of fairseq though each kind of them was sorted on its own.

    Args:
        scores: (hypotheses,) of the H- lines.
        means: (hypotheses,) of the P- lines: the scores without `--lenpen`.
        parents: (hypotheses,) the sentence of each.
        tokens: the P- line of each, and the line of its score.
        options: how to read.
    """
    error = 2 * (_ROUNDED + _SINGLE * np.abs(means))
    wrong = np.abs(scores - means) > error
    for sentence in np.unique(parents[wrong]).tolist():
        rows = np.flatnonzero(parents == sentence)
        differences = np.abs(np.sort(scores[rows]) - np.sort(means[rows]))
        if len(rows) > 1 and np.all(differences <= error[rows].max()):
            place = int(rows[wrong[rows]][0])
            problem = "the P- line of this hypothesis is that of another one, as its score shows"
            advice = "give the output as fairseq printed it, or leave the P- lines out"
            raise options.error(f"{problem}: {advice}", tokens[place][1], "mismatch")


def _split(lines: list[tuple[int, str]]) -> tuple[Sequence[int], Sequence[str], list[str]]:
    """Return the numbers, the scores and the texts of H- or D- lines."""
    numbers, rests = zip(*lines, strict=True)
    scores, _, texts = zip(*map(str.partition, rests, repeat("\t")), strict=True)
    return numbers, scores, [text.strip(" ") for text in texts]


def _regular_statistics(printed: Sequence[str]) -> tuple[Any, ...] | None:
    """Return the features of P- lines by PyArrow; None if one is not as fairseq prints them."""
    counts = np.array([line.count(" ") + 1 for line in printed])
    numbers = lines_of_numbers("\n".join([*printed, ""]).replace(" ", "\n").encode(), 1)
    if numbers is None or len(numbers) != counts.sum():
        return None
    starts = np.cumsum(counts) - counts
    sums = np.add.reduceat(numbers[:, 0], starts)
    minima = np.minimum.reduceat(numbers[:, 0], starts)
    sound = np.all(np.abs(sums) < TOO_LARGE)
    return (sums, sums / counts, minima, counts) if sound else None


def _statistics(printed: str, line: int, options: ReadOptions) -> tuple[float, ...]:
    """Return the features of a P- line; infinity for a number that is not finite."""
    try:
        statistics = token_statistics(list(map(float, printed.split())))
    except ValueError:
        statistics = ()
    if statistics is None:
        raise options.error("no token scores in the P- line of this hypothesis", line)
    if statistics and abs(statistics[0]) < TOO_LARGE and "_" not in printed:
        return statistics
    what = "in the lines of this hypothesis, "
    numbers = [options.number(token, line, what) for token in printed.split()]
    return (options.number(repr(sum(numbers)), line, what),) * len(STATISTICS)
