"""References that belong to other lists."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.command_line import refused, succeed
from support.posteriors import ObservedRecord, name_weights, record_of
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import DataError, NBest, from_lists
from bpa_ppl.extending import Metric
from bpa_ppl.gains.gains import resolve
from bpa_ppl.gains.misplaced import check_references, describe_misplaced

TER = resolve("ter")


def misplace(lists: NBest, how: str) -> NBest:
    """Return the lists with the references of other ones."""
    references = lists.references or ()
    count = len(references)
    order = {
        "next": np.roll(np.arange(count), -1),
        "previous": np.roll(np.arange(count), 1),
        "later": np.roll(np.arange(count), -count // 2),
        "reversed": np.arange(count)[::-1],
        "second half": np.r_[: count // 2, count // 2 + 1 : count, 0],
    }
    return lists.with_references([references[place] for place in order[how]])


@pytest.mark.slow
def test_real_references_belong_to_their_lists_and_others_do_not(leaflet: NBest) -> None:
    lists = leaflet
    rng = np.random.default_rng(1)
    assert describe_misplaced(lists, TER) == ""
    for count in (10, 20, 50, 100):
        start = int(rng.integers(0, len(lists) - count + 1))
        part = lists[start : start + count]
        assert describe_misplaced(part, TER) == ""
        found = [bool(describe_misplaced(misplace(part, how), TER)) for how in ("next", "later")]
        assert all(found) or count == 10
        if count >= 50:
            assert describe_misplaced(misplace(part, "reversed"), TER)
            assert describe_misplaced(misplace(part, "second half"), TER)


@pytest.mark.parametrize("how", ["next", "previous"])
def test_a_missing_line_is_recognised(how: str, leaflet: NBest) -> None:
    """Given the references of the next list, those of the previous one fit."""
    fitting = {"next": "previous", "previous": "next"}[how]
    message = describe_misplaced(misplace(leaflet[:50], how), TER)
    assert message.startswith("the references seem to be those of other lists: in 0% of 50 lists")
    assert f"than to that of the {fitting} list" in message


def test_several_references_and_lists_without_one(leaflet: NBest) -> None:
    lists = leaflet[:30]
    own = [of_list[0] for of_list in lists.references or ()]
    others = [*own[1:], own[0]]
    several = lists.with_references(list(zip(others, own, strict=True)))
    assert describe_misplaced(several, TER) == ""
    few = lists.with_references([text if k < 9 else () for k, text in enumerate(others)])
    assert describe_misplaced(few, TER) == ""  # too few to say anything
    most = lists.with_references([() if k < 9 else text for k, text in enumerate(others)])
    assert "of 21 lists" in describe_misplaced(most, TER)


def test_one_reference_for_all_lists_is_a_mistake(leaflet: NBest) -> None:
    """Lists of one sentence share their reference; one reference for all is a mistake."""
    lists = leaflet[:30]
    own = [of_list[0] for of_list in lists.references or ()]
    twice = lists.select(np.repeat(np.arange(15), 2))
    assert describe_misplaced(twice, TER) == ""
    same = describe_misplaced(lists.with_references(own[:1] * 30), TER)
    assert same == "all 30 lists have the same reference: give each list its own"
    assert describe_misplaced(lists.select(np.zeros(30, int)), TER) == ""
    padded = lists.with_references([*own[:12], *own[11:12] * 18])  # the last line, repeated
    assert describe_misplaced(padded, TER)


@pytest.mark.parametrize("gain", [resolve(lambda texts, references: [0.0] * len(texts)), None])
def test_other_gains_need_no_similar_texts(gain: Metric | None) -> None:
    words = [f"answer {k}" for k in range(20)]
    lists = from_lists([[word] for word in words], [[[1.0]]] * 20, ["lm"], references=words)
    wrong = misplace(lists, "reversed")
    assert describe_misplaced(wrong, TER)
    assert describe_misplaced(wrong, resolve("lm", lists) if gain is None else gain) == ""


def words_of(count: int) -> list[str]:
    """Return words with one letter in common, and three of their own."""
    return [chr(0x4E00 + k) * 3 + "a" for k in range(count)]


def lists_of(references: list[str]) -> NBest:
    """Return lists of two candidates, in any order, which are like the right references."""
    words = words_of(len(references))
    pairs = [([f"{word}!", f"{word[:2]}?"], [[1.0], [k % 5 / 2.5]]) for k, word in enumerate(words)]
    pairs = [(t[::-1], f[::-1]) if k % 2 else (t, f) for k, (t, f) in enumerate(pairs)]
    texts, features = zip(*pairs, strict=True)
    return from_lists(texts, features, ["lm"], references=references)


def posterior_of_lm() -> bpa.WeightDraws:
    """Return draws of the weight of the lists."""
    record = record_of(observed=ObservedRecord(kind="gains", sentences=20, gain="chrf"))
    drawn = np.random.default_rng(1).normal(0.7, 0.1, (2, 1000, 1))
    return name_weights(drawn, ["lm"], constants={"canonical": [0.5]}, record=record)


def test_references_of_neighbours_are_refused_in_python() -> None:
    words = words_of(20)
    for shifted in (lists_of([*words[1:], words[0]]), lists_of([words[-1], *words[:-1]])):
        with raises(DataError, "mismatch", parameter="references", match="in 0% of 20 lists"):
            bpa.adapt(shifted, sampler="map")
    with pytest.warns(bpa.BpaWarning, match="seem to be those of other lists"):
        bpa.log_density(shifted, unchecked=True)


@pytest.mark.needs_extras
def test_references_of_neighbours_are_refused_by_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_drawing: None
) -> None:
    monkeypatch.chdir(tmp_path)
    words = words_of(20)
    bpa.write_nbest(lists_of(words), "dev.nbest", format="moses")
    bpa.write_posterior(posterior_of_lm(), "p.nc")
    Path("weights.json").write_text(json.dumps({"lm": 0.5}), "utf-8")
    Path("ref").write_text("\n".join([*words[1:], words[0], ""]), "utf-8")
    lines = (
        "adapt dev.nbest -w none --gain chrf --sampler map -o new.nc",
        "oracle dev.nbest",
        "lists dev.nbest",
        "rerank dev.nbest -p p.nc -o new",
        "report p.nc --lists dev.nbest -o new.html",
        "tune dev.nbest -w weights.json -o new.json",
    )
    for line in lines:
        refusal = refused(*line.split(), "-r", "ref", mention="(--unchecked; in Python unchecked")
        assert "dev.nbest: the references seem to be those of other lists" in refusal
        succeed(*line.split(), "-r", "ref", "--unchecked")


def test_only_many_different_references_are_refused() -> None:
    """What a few answers share, or lists whose candidates resemble no reference, is no proof."""
    words = words_of(20)
    with pytest.warns(bpa.BpaWarning, match="of 19 lists"):
        check_references(lists_of([*words[1:19], words[0]]), TER)
    yes_or_no = ["yes", "no"] * 10
    answers = from_lists([[w] for w in yes_or_no], [[[0.0]]] * 20, ["lm"], references=yes_or_no)
    with pytest.warns(bpa.BpaWarning, match="in 0% of 20 lists"):
        check_references(misplace(answers, "next"), TER)
    half = lists_of([*words[:10], *words[11:], words[10]])
    with pytest.warns(bpa.BpaWarning, match="in 52% of 20 lists"):
        check_references(half, TER)
