"""The loop with a decoder: merged lists, commands as decoders, and resuming."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl import (
    BpaWarning,
    DataError,
    NBest,
    UsageError,
    Weights,
    corpus_score,
    from_lists,
    read_nbest,
    write_nbest,
)
from bpa_ppl.extras.studies.tuning.redecoding import Decoder, Redecoded, merge, redecode
from bpa_ppl.extras.studies.tuning.reestimation import Reestimation
from bpa_ppl.extras.studies.tuning.tuner import Tuned, Tuner, TuningProblem

DECODER = Path(__file__).parents[2] / "support" / "source_decoder.py"
CANONICAL = Weights({"LM0": 1.0, "TM0[0]": 0.1, "TM0[1]": -0.2})
SIZE = 4
WORDS = ["the", "cat", "sat", "on", "a", "mat"]


@pytest.fixture
def everything() -> NBest:
    """All candidates of the decoder, which returns the best of them."""
    rng = np.random.default_rng(11)
    texts = [
        [" ".join(rng.permutation(WORDS)[: rng.integers(2, 7)]) for _ in range(60)]
        for _ in range(6)
    ]
    features = [rng.normal(size=(60, 3)).round(3) for _ in texts]
    references = [(" ".join(WORDS),)] * len(texts)
    return from_lists(texts, features, CANONICAL.names, references=references)


@pytest.fixture
def command(everything: NBest, tmp_path: Path) -> str:
    """A command that decodes from a file."""
    table, sources = tmp_path / "table", tmp_path / "src"
    write_nbest(everything, table)
    sources.write_text("".join(f"{s}\n" for s in range(len(everything))))
    program = shlex.join([sys.executable, "-S", str(DECODER), str(table), str(sources)])
    return f"{program} {{weights}} {sources} {{nbest}} {SIZE}"


Decode = Callable[[Weights], NBest]


@pytest.fixture
def decode(everything: NBest, command: str) -> Decode:
    """The command as a function."""
    return Decoder(command).function(read=partial(read_nbest, references=everything.references))


def test_the_loop_ends_when_nothing_is_new(everything: NBest, decode: Decode) -> None:
    reports: list[tuple[int, Reestimation, int]] = []
    result = redecode(
        decode(CANONICAL),
        CANONICAL,
        decode,
        report=lambda *report: reports.append(report),
        gain="ter",
        returned="last",
    )
    assert [iteration for iteration, _, _ in reports] == list(range(1, len(reports) + 1))
    *added, last = (added for _, _, added in reports)
    assert min(added) > last == 0
    # The best of everything is in the lists by now: they can mislead no longer.
    best = everything.chosen(everything.best(everything.scores(result.weights.values_array)))
    expected = [corpus_score(best, everything.references or (), m).value for m in ("ter", "bleu")]
    assert result.after == reports[-1][1].after
    assert result.scores is not None
    assert [change.after.value for change in result.scores.changes][:2] == pytest.approx(expected)


def test_a_command_reads_its_files_in_its_folder(command: str, tmp_path: Path) -> None:
    """The weights in the template, the sources, and no temporary files afterwards."""
    template = tmp_path / "moses.ini"
    template.write_text("[threads]\n2\n[weight]\nLM0= 9\nTM0= 9 9\nOther0= 3\n")
    line = f"cp {{weights}} weights; cp {{sources}} texts; echo {{weights}} > name; {command}"
    decoder = Decoder(line, template, folder=tmp_path)
    decoder.function(["a b", "c"])(CANONICAL)
    written = (tmp_path / "weights").read_text()
    assert written == "[threads]\n2\n[weight]\nLM0= 1\nTM0= 0.1 -0.2\nOther0= 3\n"
    assert (tmp_path / "texts").read_text() == "a b\nc\n"
    assert not Path((tmp_path / "name").read_text().strip()).parent.exists()
    with raises(UsageError, "missing-argument", parameter="sources"):
        decoder.function()
    with raises(DataError, "not-supported", parameter="sources"):
        decoder.function(["a b", "c\nd"])


@pytest.mark.filterwarnings("ignore:.*lists for 1 sentence, but:bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize(
    ("line", "code", "match"),
    [
        ("echo no memory >&2; exit 3 # {weights} {nbest}", None, "exit code 3: no memory; run"),
        ("true {weights} {nbest}", "missing-file", "run it manually: "),
        ("true {weights} > {nbest}", "no-data", "nbest"),
        ("echo '0 ||| a ||| LM0= 1' > {nbest} # {weights}", "mismatch", "LM0"),
    ],
)
def test_a_command_that_fails_is_an_error(
    decode: Decode, line: str, code: str | None, match: str
) -> None:
    failing = Decoder(line).function()
    with raises(DataError, code, match=match):
        redecode(decode(CANONICAL), CANONICAL, failing, tuner="mira", epochs=1)


class Turning(Tuner, frozen=True):
    """A tuner that finds the best weights in the first iteration only."""

    def tune(self, problem: TuningProblem) -> Tuned:
        """Return weights that depend on the number of candidates alone."""
        first = problem.lists.offsets[1] == 4
        weights = np.array([-1.0 if first else 1.0, 0.0, 0.0])
        return Tuned(weights, weights[None])


def test_best_iteration_is_returned_and_the_limit_of_iterations_warned_about() -> None:
    texts = [["the cat sat down", "a", "b c", "d"]]
    features = [[[-1.0, 0, 0], [0.5, 0, 0], [0.6, 0, 0], [0.7, 0, 0]]]
    start = {"LM0": 1.0, "TM0[0]": 0.1, "TM0[1]": 0.1}
    first = from_lists(texts, features, list(start), references=["the cat sat down"])

    def loop(returned: str = "best") -> Redecoded:
        count = iter(range(9))

        def decode(weights: Weights) -> NBest:
            # The new text has the best score under all weights but those of the first iteration.
            n = next(count)
            features = [[[0.0, 0, 0], [1.0 * n, 0, 0]]]
            return from_lists([["the cat sat down", f"worse {n}"]], features, list(start))

        options: dict = {"tuner": Turning(), "gain": "ter", "iterations": 4}
        with pytest.warns(BpaWarning, match="stopped after 4 iterations"):
            result = redecode(first, start, decode, returned=returned, **options)
        assert next(count) == 4
        return result

    best, last = loop(), loop(returned="last")
    assert (best.iteration, best.iterations, last.iteration) == (1, 4, 4)
    assert (best.weights["LM0"], last.weights["LM0"]) == (-1, 1)
    assert (best.before, best.after, last.before, last.after) == (100.0, 0.0, 100.0, 100.0)
    assert best.visited[:, 0].tolist() == [1.0, -1.0, 1.0, 1.0, 1.0]
    assert str(best) == (
        "scores of the whole loop: TER 100.00 → 0.00 (−100.00); BLEU 0.00 → 100.00 (+100.00); "
        "length 0.500 → 1.000 (+0.500), with the weights of iteration 1 of 4"
    )
    for name, value, code in (("returned", "first", "unknown-name"), ("iterations", 0, None)):
        with raises(UsageError, code, parameter=name):
            redecode(first, start, lambda weights: first, **{name: value})


def test_merging_keeps_the_old_and_adds_the_new(toy: NBest) -> None:
    old = from_lists(
        [["a", "b", "a"], ["c"]], [[[1.0], [2.0], [1.0]], [[0.0]]], ["LM0"], references=["x", "y"]
    )
    new = from_lists([["b", "a", "d"]], [[[2.0], [1.5], [9.0]]], ["LM0"])
    both, added = merge(old, new)
    assert added == 2
    assert (both.texts(0), both.texts(1)) == (["a", "b", "a", "d"], ["c"])
    assert both.features[both.rows(0)].ravel().tolist() == [1.0, 2.0, 1.5, 9.0]
    assert both.references == old.references
    assert merge(toy, toy.select([2, 0]))[1] == 0  # by id
    with raises(DataError, "mismatch", match="id 0 "):
        merge(toy.select([1, 2]), toy)


@pytest.mark.parametrize("when", ["decoding", "reporting"])
def test_interrupted_loop_is_resumed(decode: Decode, tmp_path: Path, when: str) -> None:
    options: dict = {"gain": "ter", "restarts": 3}
    begin = decode(CANONICAL)
    whole = redecode(begin, CANONICAL, decode, folder=tmp_path / "whole", **options)
    assert whole.iterations > 2
    calls: list[Weights] = []

    def counted(weights: Weights) -> NBest:
        calls.append(weights)
        if when == "decoding" and len(calls) == 3:
            raise KeyboardInterrupt
        return decode(weights)

    def report(iteration: int, result: Reestimation, added: int) -> None:
        if when == "reporting" and iteration == 2:
            raise KeyboardInterrupt

    options |= {"folder": tmp_path / "rounds"}
    with pytest.raises(KeyboardInterrupt):
        redecode(begin, CANONICAL, counted, report=report, **options)
    before = len(calls)
    for _ in range(2):  # complete iterations are not repeated
        again = redecode(begin, CANONICAL, counted, **options)
        assert again.weights == whole.weights
        assert again.visited.tolist() == whole.visited.tolist()
        assert (again.after, again.iterations) == (whole.after, whole.iterations)
        assert len(calls) - before == whole.iterations - 2


def test_a_folder_with_other_files_is_left_alone(decode: Decode, tmp_path: Path) -> None:
    folder = tmp_path / "rounds"
    folder.mkdir()
    mine = folder / "mine.txt"
    mine.write_text("mine", "utf-8")
    with raises(DataError, "cannot-write", parameter="folder", match="contains files"):
        redecode(decode(CANONICAL), CANONICAL, decode, gain="ter", folder=folder)
    assert [*folder.iterdir()] == [mine]
