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
from itertools import chain, product
from operator import lt
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, are_finite
from bpa_ppl.formats.block import ID, REFERENCE, SOURCE, TEXT, Block, ReadOptions
from bpa_ppl.formats.format import NBestFormat, iter_batches
from bpa_ppl.formats.samples import STATISTICS, token_statistics
from bpa_ppl.formats.streams import InputFile, text_lines
from bpa_ppl.formats.values import parse_all_finite, read_number_lines
from bpa_ppl.lists.ids import describe_equal_ids, find_other_form

_LINE = re.compile(r"([STHDPA])-([0-9]+)(?:\t|$)")
_INSIDE = re.compile(r"[STHDPA]-[0-9]+\t")
# The beginning of a line without an id, as the hub logs it.
_WITHOUT_ID = re.compile(r"(?:[-0-9]+ [:0-9]+ \| [A-Z]+ \| fairseq.* \| |INFO:fairseq.*:)?([SHPA])")
_FIRST = re.compile(
    rb"[STHDPA]-[0-9]+(?:\t|\r?$)|Namespace\(|[-0-9]+ [:0-9]+ \| [A-Z]+ \| fairseq|INFO:fairseq"
    rb"|S\t[^\t]*$"
)
_JOINTS = re.compile(r"@@(?:\s|$)|\s|\u2581")  # where tokens are joined to words
_NAMES = {"S": SOURCE, "T": REFERENCE}
_INTERLEAVED = 10  # sentences that may be incomplete at a time
_LONGEST_ID = 18  # digits that fit 64 bits
_ROUNDED = 6e-5  # token scores have four decimals
_SINGLE = 1e-5  # relative, of scores that were computed in float32
_POWERS = (-1.0, 4.0)  # between which the exponent of the length is

#: The lines of a sentence by their letter: their numbers, and what follows the id and its tab.
_Lines = dict[str, list[tuple[int, str]]]
#: Values by the name of the field.
_Fields = dict[str, Sequence[Any]]


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

    def blocks(self, file: InputFile, options: ReadOptions) -> Iterator[Block]:
        r"""Yield the columns of some sentences when they are complete.

        >>> file = InputFile(b"S-7\tun chat\nH-7\t-0.5\ta c@@ at\nD-7\t-0.5\ta cat\nP-7\t-1 -0.5 0")
        >>> columns = next(Fairseq().blocks(file, ReadOptions("generate-test.txt")))
        >>> columns.candidates["text"], columns.candidates["logprob.sum"].tolist()
        (['a cat'], [-1.5])
        >>> columns.sentences
        {'id': [7], 'source': ['un chat']}
        """
        for part in iter_batches(
            _sentences(file, options), lambda sentence: len(sentence[2][TEXT])
        ):
            lines, fields, hypotheses = zip(*part, strict=True)
            columns, sizes = _join(hypotheses), [len(of[TEXT]) for of in hypotheses]
            numbers = columns.pop("H")
            columns |= {n: np.array(of) for n, of in columns.items() if not isinstance(of[0], str)}
            if "P" in columns:
                columns |= _measure_tokens(columns.pop("P"), numbers, options)
                _check_order(columns["score"], columns[STATISTICS[1]], numbers, sizes, options)
            parents = np.repeat(np.arange(len(part)), sizes)
            yield Block(columns, _join(fields), parents, np.array(lines))


def _join(records: Sequence[_Fields]) -> dict[str, Any]:
    """Return the values of all records by name."""
    return {name: list(chain.from_iterable(of[name] for of in records)) for name in records[0]}


def _sentences(file: InputFile, options: ReadOptions) -> Iterator[tuple[int, _Fields, _Fields]]:
    """Yield the line of the first hypothesis of each sentence, its fields, and theirs."""
    incomplete: dict[int, _Lines] = {}
    by_head: dict[str, list[tuple[int, str]]] = {}  # of these sentences
    forms: dict[int, str] = {}  # of all ids so far
    kinds: dict[str, bool] = {}
    counted = 0  # sentences without an id
    for number, line in enumerate(text_lines(file.chunks(), options.origin), 1):
        head, _, rest = line.partition("\t")
        of_kind = by_head.get(head)
        if of_kind is None:
            matched = _LINE.match(line)
            without = None if matched or len(forms) > counted else _WITHOUT_ID.fullmatch(head)
            if without and (counted or without[1] == "S"):
                counted += without[1] == "S"
                letter, digits = without[1], str(options.first_id + counted - 1)
            elif matched:
                letter, digits = matched.groups()
            elif hidden := _INSIDE.search(line):
                problem = f"{hidden[0].strip()} is not at the start of its line"
                raise options.error(f"{problem}: run fairseq with --no-progress-bar", number)
            else:
                continue
            if len(digits) > _LONGEST_ID:
                raise options.error(f"sentence id {digits} is too large", number)
            identifier = int(digits)
            late = identifier in forms and identifier not in incomplete
            if other := find_other_form(forms, identifier, digits):
                raise options.error(describe_equal_ids(digits, other), number, "duplicate")
            if late:
                problem = f"a line of sentence {identifier}, after {_INTERLEAVED} other sentences"
                advice = "put the lines of a sentence together"
                raise options.error(f"{problem}: {advice}", number, "duplicate")
            sentence = incomplete.setdefault(identifier, defaultdict(list))
            if len(incomplete) > _INTERLEAVED:
                first = next(iter(incomplete))
                yield _fields(first, incomplete.pop(first), kinds, options)
                by_head.clear()
            of_kind = sentence[letter]
            if matched:
                by_head[head] = of_kind
        of_kind.append((number, rest))
    if not forms:
        problem = "no line of fairseq in it (`H-0`, a score, a text)"
        raise options.error(f"{problem}: give the output, not a log", code="no-data")
    for identifier, sentence in incomplete.items():
        yield _fields(identifier, sentence, kinds, options)


def _fields(
    identifier: int, lines: _Lines, kinds: dict[str, bool], options: ReadOptions
) -> tuple[int, _Fields, _Fields]:
    """Return the line of the first hypothesis of a sentence, its fields, and theirs.

    Args:
        identifier: of the sentence.
        lines: of the sentence.
        kinds: whether the first sentence has lines of some letter; entered here.
        options: how to read.
    """
    first = min(of_kind[0][0] for of_kind in lines.values())
    scored = lines.get("H") or lines.get("D")
    if not scored:
        problem = f"sentence {identifier} has no H- line: the file is truncated"
        advice = "or lines of too many other sentences are in between"
        raise options.error(f"{problem}, {advice}", first)
    for letter, count in {"S": 1, "T": 1, **dict.fromkeys("DPA", len(scored))}.items():
        found = len(lines.get(letter, ()))
        expected = count if kinds.setdefault(letter, found > 0) else 0
        if found != expected:
            problem = f"sentence {identifier} has {found} {letter}- lines, not {expected}, as its "
            advice = "H- lines and the first sentence show: give the whole output of one run"
            raise options.error(problem + advice, first, "wrong-length")
    if len(scored) > 1:
        lines = _pair_lines(identifier, lines, scored, options)
    numbers = [number for number, _ in scored]
    printed = _scores(scored)
    values = parse_all_finite(list(map(str.encode, printed)))
    scores = list(map(options.number, printed, numbers)) if values is None else values.tolist()
    fields: _Fields = {ID: [identifier]}
    fields |= {name: [lines[k][0][1].strip(" ")] for k, name in _NAMES.items() if k in lines}
    texts = [rest.partition("\t")[2].strip(" ") for _, rest in lines.get("D", scored)]
    columns: _Fields = {"H": numbers, TEXT: texts, "score": scores}
    if "P" in lines:
        columns["P"] = [rest for _, rest in lines["P"]]
    if "A" in lines:
        columns["alignment"] = [rest.strip(" ") for _, rest in lines["A"]]
    return numbers[0], fields, columns


def _pair_lines(
    identifier: int, lines: _Lines, scored: list[tuple[int, str]], options: ReadOptions
) -> _Lines:
    """Return the lines with D-, P- and A- lines in the order of the hypotheses.

    Raises:
        DataError: if neither the places of lines nor their scores show it.
    """
    others = {letter: lines[letter] for letter in "DPA" if lines.get(letter, scored) is not scored}
    begins, *places = ([number for number, _ in of] for of in (scored, *others.values()))
    printed, again = _scores(scored), _scores(others.get("D", scored))
    are_together = all(all(map(lt, begins, of)) and all(map(lt, of, begins[1:])) for of in places)
    if are_together and printed == again:
        return lines
    keys = list(map(_key, printed))
    if are_together and list(map(_key, again)) == keys:
        return lines
    for letter, of_kind in others.items():
        rests, order = [rest for _, rest in of_kind], None
        reason = "it is not known which hypothesis each belongs to"
        if letter == "D":
            order = _find_order(keys, map(_key, again))
            if order is None:
                reason = "have other scores than these"
            elif len(others) > 1 and len(set(keys)) < len(set(rests)):
                order = _find_order([_squeeze(rest) for _, rest in scored], map(_squeeze, rests))
        elif len({" ".join(rest.split()) for rest in rests}) == 1:
            order = list(range(len(rests)))
        elif letter == "P":
            lengths = [len(rest.partition("\t")[2].split()) + 1 for _, rest in scored]
            order = _find_token_order(keys, rests, lengths)
        if order is None:
            problem = f"the {letter}- lines of sentence {identifier} are not behind its H- lines"
            advice = f"give the output as fairseq printed it, or leave the {letter}- lines out"
            message = f"{problem}, and {reason}: {advice}"
            raise options.error(message, of_kind[0][0], "mismatch")
        lines = {**lines, letter: [of_kind[place] for place in order]}
    return lines


def _scores(lines: Iterable[tuple[int, str]]) -> list[str]:
    """Return the scores of H- or D- lines as they are printed."""
    return [rest.partition("\t")[0] for _, rest in lines]


def _key(printed: str) -> float | str:
    """Return a score, or its text if it is not a number."""
    printed = printed.strip()
    try:
        score = float(printed)
    except ValueError:
        return printed
    return printed if math.isnan(score) else score


def _squeeze(rest: str) -> tuple[float | str, str]:
    """Return the score of a hypothesis, and its letters as they are before and after joining."""
    score, _, text = rest.partition("\t")
    return _key(score), _JOINTS.sub("", text).casefold()


def _find_order(keys: Iterable[Any], others: Iterable[Any]) -> list[int] | None:
    """Return the places of equal keys; None if there are others."""
    places = defaultdict[Any, list[int]](list)
    for place, key in enumerate(others):
        places[key].append(place)
    try:
        return [places[key].pop(0) for key in keys]
    except IndexError:
        return None


def _find_token_order(
    scores: Sequence[Any], printed: Sequence[str], lengths: Sequence[int]
) -> list[int] | None:
    """Return for each hypothesis the place of its P- line; None if scores do not show it.

    A score is the sum of those of the tokens, divided by a power of their number, which is 1 unless
    `--lenpen` says otherwise.

    Args:
        scores: of the hypotheses.
        printed: the scores of tokens in each P- line.
        lengths: the numbers of tokens of the hypotheses, unless they have been joined to words.
    """
    try:
        tokens = [list(map(float, line.split())) for line in printed]
        target = np.array(scores, np.float64)[:, np.newaxis]
    except ValueError:
        return None
    sums, counts = np.array(list(map(sum, tokens))), np.array(list(map(len, tokens)), np.float64)
    if not (counts.all() and np.isfinite(sums).all() and np.isfinite(target).all()):
        return None
    same = [tuple(sorted(of_line)) for of_line in tokens]
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.log(sums / target[0]) / np.log(counts)
    fitting = powers[(powers > _POWERS[0]) & (powers < _POWERS[1])].tolist()
    alike = np.equal.outer(lengths, counts)
    trials = product((alike, True), (([1.0], 1.0), (fitting, 3.0)))
    for allowed, (candidates, slack) in trials:
        orders: dict[Any, list[int]] = {}
        for power in candidates:
            values = sums / counts**power
            error = slack * (_ROUNDED * counts ** (1 - power) + _SINGLE * np.abs(values))
            fits = (np.abs(target - values) <= error) & allowed
            if not fits.any(axis=1).all():
                continue
            found = [{same[place] for place in np.flatnonzero(row)} for row in fits]
            if max(map(len, found)) > 1:  # a hypothesis could have this line or another one
                return None
            if order := _find_order([of.pop() for of in found], same):
                orders[tuple(same[place] for place in order)] = order
        if orders:
            return next(iter(orders.values())) if len(orders) == 1 else None
    return None


def _measure_tokens(
    printed: Sequence[str], numbers: Sequence[int], options: ReadOptions
) -> dict[str, Float64]:
    """Return the features of P- lines by name; infinity for numbers that are not finite.

    Args:
        printed: the scores of tokens in each line.
        numbers: of the lines of the hypotheses.
        options: how to read.
    """
    counts = np.array([line.count(" ") + 1 for line in printed])
    values = read_number_lines(("\n".join(printed).replace(" ", "\n") + "\n").encode(), 1)
    if values is not None:
        starts = np.cumsum(counts) - counts
        sums, least = (of.reduceat(values[:, 0], starts) for of in (np.add, np.minimum))
        if are_finite(sums):
            return dict(zip(STATISTICS, (sums, sums / counts, least, counts * 1.0), strict=True))
    rows = [_measure_line(*line, options) for line in zip(printed, numbers, strict=True)]
    return dict(zip(STATISTICS, np.array(rows, np.float64).T, strict=True))


def _measure_line(printed: str, number: int, options: ReadOptions) -> tuple[float, ...]:
    """Return the features of a P- line; infinity for a number that is not finite."""
    what = "in the lines of this hypothesis, "
    scores = [options.number(token, number, what) for token in printed.split()]
    statistics = token_statistics(scores)
    if statistics is None:
        raise options.error("no token scores in the P- line of this hypothesis", number)
    total = options.number(repr(statistics[0]), number, what)
    return statistics if math.isfinite(total) else (total,) * len(STATISTICS)


def _check_order(
    scores: Float64,
    means: Float64,
    numbers: Sequence[int],
    sizes: Sequence[int],
    options: ReadOptions,
) -> None:
    """Refuse P- lines in another order than the H- lines, as if each kind had been sorted.

    Args:
        scores: of the hypotheses.
        means: of the scores of their tokens.
        numbers: of their lines.
        sizes: of the lists.
        options: how to read.
    """
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~_are_means(scores, means))
        begins = np.cumsum(sizes) - sizes
        for place in np.unique(np.searchsorted(begins, wrong, side="right") - 1).tolist():
            part = slice(begins[place], begins[place] + sizes[place])
            alike = _are_means(np.sort(scores[part]), np.sort(means[part])).all()
            if alike and sizes[place] > 1:
                problem = "the P- line of this hypothesis is that of another one, as its score "
                problem += "shows: give the output as fairseq printed it, or leave the P- lines out"
                first = wrong[np.searchsorted(wrong, begins[place])]
                raise options.error(problem, numbers[first], "mismatch")


def _are_means(scores: Float64, means: Float64) -> npt.NDArray[np.bool_]:
    """Return which scores are means of rounded token scores, as they are without `--lenpen`."""
    return np.abs(scores - means) <= 2 * (_ROUNDED + _SINGLE * np.abs(means))
