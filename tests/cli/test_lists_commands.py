"""`bpa lists`, `oracle`, `features` and `lm`, and features of text in other commands."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from support.command_line import refused, succeed
from support.posteriors import read_weight_draws

import bpa_ppl as bpa

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "--sampler", "map", "-o", "p.nc")
RERANK = ("rerank", "nbest", "-p", "p.nc", "-o", "out")


def test_oracle_scores_and_texts(folder: Path) -> None:
    oracle = ("oracle", "nbest", "-r", "ref", "-w", "moses.ini")
    shown, mixed = succeed(*oracle), succeed(*oracle, "-o", "-", "-q")
    assert shown.out.split()[:4] == ["choice", "TER", "BLEU", "length"]
    values = [float(row.split()[1]) for row in shown.out.splitlines()[1:4]]
    assert values[1] < values[0] < values[2]
    assert mixed.out.count("\n") == 12
    assert "anti-oracle" in mixed.err
    own = bpa.corpus_score(
        mixed.out.splitlines(), Path("ref").read_text("utf-8").splitlines(), "ter"
    )
    assert own.value == pytest.approx(values[1], abs=0.01)


def test_texts_with_line_breaks_are_written_as_json_lines_alone(folder: Path) -> None:
    rows = [(0, "a dog"), (1, "a\ncat"), (1, "a")]
    lines = [json.dumps({"id": id, "text": text, "lm": 1.0}) for id, text in rows]
    Path("lists.jsonl").write_text("\n".join(lines), "utf-8")
    Path("two").write_text("a dog\na cat\n", "utf-8")
    oracle = ("oracle", "lists.jsonl", "--features", "lm", "-r", "two", "-w", "none", "-q")
    for output in ("new.txt", "new.tsv", "-", "/dev/stdout"):
        refused(*oracle, "-o", output, mention="(--output)")
    succeed(*oracle, "-o", "new.jsonl")
    chosen = '{"id": 0, "text": "a dog"}\n{"id": 1, "text": "a\\ncat"}\n'
    assert Path("new.jsonl").read_text("utf-8") == chosen


def test_lists_are_described(folder: Path) -> None:
    sizes = bpa.read_nbest("nbest").sizes.tolist()
    shown = succeed("lists", "nbest", "-r", "ref")
    assert "12 lists, 120 candidates, 10 per list" in shown.out
    plain = json.loads(succeed("lists", "nbest", "-r", "ref", "--json", "--gain", "bleu").out)
    assert plain["sizes"] == [min(sizes), 10, max(sizes)]
    assert any(fact.startswith("a reference for 12 of 12 lists") for fact in plain["facts"])
    assert plain["facts"][-1].startswith("bleu is known in 12 of 12 lists")
    assert (shown.out.startswith("read as moses\n"), plain["formats"]) == (True, ["moses"])
    shutil.copy("nbest", "nbest2")
    both = json.loads(succeed("lists", "nbes*", "-r", "ref,ref", "--json").out)
    assert both["sentences"] == 24
    assert any(fact.startswith("a reference for 24 of 24 lists") for fact in both["facts"])


@pytest.mark.parametrize("command", ["lists", "oracle"])
def test_a_gain_that_is_named_as_a_feature_is_noted_once(tmp_path: Path, command: str) -> None:
    path = tmp_path / "judged.csv"
    path.write_text("id,text,lm,comet\n0,a,1,2\n0,b,2,1\n1,a,1,2\n1,b,2,1\n", "utf-8")
    note = "note: comet is the gain, and so not a feature: it is left out of the features\n"
    done = succeed(command, path, "--gain", "comet", "--features", "lm", "comet")
    assert done.err.count(note) == 1
    done = succeed(command, path, "--gain", "comet", "--features", "*")
    assert note not in done.err


def test_features_are_recorded_computed_again_and_reported(folder: Path) -> None:
    Path("domain.txt").write_text("read this leaflet .\ntake the tablet with water .\n" * 5)
    done = succeed(*ADAPT, "--add", "lm=domain.txt,order=2")
    assert "no canonical weight for lm, lm.oov" in done.err
    draws = read_weight_draws("p.nc")
    assert draws.features[-2:] == ("lm", "lm.oov")
    (source,) = draws.adaptation.recipe.sources
    assert source.settings["text"] == str(folder / "domain.txt")
    assert (source.settings["order"], source.feature_names) == (2, ("lm", "lm.oov"))
    Path("domain.txt").rename("moved.txt")
    assert "(--moved-file)" in refused(*RERANK, mention="domain.txt: ")
    refused(*RERANK, "--moved-file", "tm=moved.txt", mention="(--moved-file)")
    succeed(*RERANK, "--moved-file", "lm=moved.txt")
    assert len(Path("out").read_text().splitlines()) == 12


#: Lists of whose columns nothing says which one is the gain.
NO_GAIN = {
    "rank": {"lm": [-2.1, -7.9, -3.4], "rank": [1, 3, 2]},
    "cum_logprob": {"cum_logprob": [-2.1, -7.9, -3.4]},
    "chrf": {"lm": [-2.1, -7.9, -3.4], "chrf": [55.0, 20.0, 31.0]},
}


@pytest.mark.parametrize("column", NO_GAIN)
def test_no_column_is_proposed_as_the_gain(
    column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts, columns = ("a house by the lake", "house lake", "one house"), NO_GAIN[column].items()
    rows = [
        {"id": s, "text": f"{text} {s}", **{name: values[k] for name, values in columns}}
        for s in range(3)
        for k, text in enumerate(texts)
    ]
    Path("dev.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    shown = succeed("lists", "dev.jsonl").out
    assert re.search(rf"^{column} +number +extra", shown, re.MULTILINE)
    assert shown.endswith("--features COLUMNS --gain COLUMN -o posterior.nc\n")
    adapt = ("adapt", "dev.jsonl", "-w", "none", "-o", "p.nc")
    for words in (adapt, ("oracle", "dev.jsonl"), ("lists", "dev.jsonl", "--gain", "ter")):
        error = refused(*words, mention="says how good each candidate is (--gain ")
        assert re.search(
            r"\(--gain (column:column=)?COLUMN; in Python gain='(column:column=)?COL", error
        )
        assert column not in error.replace("the gain chrf", "")
    assert column not in refused(
        *adapt, "--gain", "quality", mention="unknown gain 'quality'"
    ).replace("ter, bleu, chrf", "")


def test_columns_that_are_partly_missing_are_not_proposed_as_the_gain() -> None:
    one = bpa.from_lists([["a", "b"]], [[[1.0, 2.0], [3.0, 4.0]]], ["lm", "mqm"])
    with pytest.warns(bpa.BpaWarning, match="mqm is missing for 2 of 4 .*: not used as a feature$"):
        bpa.concatenate([one, one.without("mqm")], renumber=True, fill_missing=True)
