"""`bpa convert`: files of other tools become JSON lines that are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command_line import refused, succeed

import bpa_ppl.extras.convert as convert
from bpa_ppl import read_nbest
from bpa_ppl.extras.convert.servers import ANSWERS

RUN = "q1 Q0 d11 1 13.5 bm25\nq1 Q0 d12 2 12 bm25\nq2 Q0 d21 1 8 bm25\n"
QRELS = "q1 0 d11 0\nq1 0 d12 2\nq2 0 d21 1\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def write(path: str, *records: Any) -> None:
    Path(path).write_text("\n".join(map(json.dumps, records)), "utf-8")


def test_a_run_with_judgements() -> None:
    Path("run.txt").write_text(RUN)
    Path("qrels.txt").write_text(QRELS)
    outcome = succeed("convert", "trec", "run.txt", "--qrels", "qrels.txt", "-o", "lists.jsonl")
    assert outcome.err.strip() == "lists.jsonl: 2 lists of 3 candidates"
    expected = convert.trec(RUN.splitlines(), qrels=QRELS.splitlines())
    assert read("lists.jsonl") == expected
    lists = read_nbest("lists.jsonl")
    assert (lists.ids, lists.texts(0)) == (("q1", "q2"), ["d11", "d12"])
    assert (lists.feature_names, lists.features[:, 0].tolist()) == (("score",), [13.5, 12, 8])
    printed = succeed("convert", "trec", "run.txt", "--qrels", "qrels.txt", "-o", "-").out
    assert printed == Path("lists.jsonl").read_text()


def test_several_files_and_patterns() -> None:
    for number, text in enumerate(["A", "B"]):
        lines = f"u-1:\tref=['A']\nu-1:\thyp=['{text}']\n"
        Path(f"recogs-{number}.txt").write_text(lines)
    succeed("convert", "icefall", "recogs-*.txt", "-o", "all.jsonl.gz")
    lists = read_nbest("all.jsonl.gz")
    assert (lists.texts(0), lists.references) == (["A", "B"], (("A",),))


def test_settings_of_a_kind() -> None:
    answers = [
        {
            "custom_id": f"q-{n}",
            "response": {"model": "m", "done": True, "done_reason": reason, "response": f"x {n}"},
        }
        for n, reason in enumerate(["stop", "length", "stop"])
    ]
    write("answers.jsonl", *answers)
    command = ("convert", "ollama", "answers.jsonl", "-o", "lists.jsonl")
    error = refused(*command, mention="answers.jsonl:2: ")
    assert "'length'" in error
    assert "(--bad drop; in Python bad='drop')" in error
    succeed(*command, "--bad", "drop", "--prompt-id", "(.)-", "--extract", "x (.*)")
    lists = read_nbest("lists.jsonl")
    assert (lists.ids, lists.texts(0)) == (("q",), ["0", "2"])


def test_answers_of_several_files_are_lists_of_their_prompts() -> None:
    for number, logprob in enumerate((-1, None)):
        logged = {"content": [{"logprob": logprob}]}
        choice = {"message": {"content": f"a {number}"}, "logprobs": logged}
        write(f"part-{number}", {"custom_id": "q-7", "response": {"body": {"choices": [choice]}}})
    kind = "openai:source=(.*)"
    succeed("convert", kind, "part-?", "--extract", "[0-9]", "-o", "lists.jsonl")
    (of_list,) = read("lists.jsonl")
    assert (of_list["id"], of_list["id_number"]) == ("q-7", 7)
    known, unknown = of_list["candidates"]
    assert (known["text"], known["features"]["logprob.sum"]) == ("0", -1)
    assert unknown == {"text": "1", "features": {"count": 1}}


def test_fields_of_annotation_tools_and_the_baseline() -> None:
    write("a.json", [{"data": {"x": "a", "y": "b"}, "annotations": []}])
    texts = ("--first", "x", "--second", "y")
    succeed("convert", "labelstudio", "a.json", "-o", "lists.jsonl", *texts)
    assert read_nbest("lists.jsonl").texts(0) == ["a", "b"]
    responses = {"which": [{"value": "y", "user_id": "ann"}]}
    write("b.json", [{"fields": {"x": "a", "y": "b"}, "responses": responses}])
    succeed("convert", "argilla", "b.json", "-o", "lists.jsonl", *texts, "--question", "which")
    assert read("lists.jsonl")[0]["preferences"] == [{"candidates": [1, 0], "rater": "ann"}]
    write("c.jsonl", {"uid": "q", "model": "m", "games": [{"score": "A>B"}]})
    succeed("convert", "arenahard", "c.jsonl", "-o", "lists.jsonl", "--baseline", "gpt")
    assert read_nbest("lists.jsonl").texts(0) == ["gpt", "m"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("antropic", "run.txt"), "anthropic"),
        (("kto:bad=drop", "run.txt"), "unknown kind of file 'kto:bad=drop': choose "),
        (("kto", "run.txt"), "run.txt:1: not JSON"),
        (("kto", "rows.jsonl"), "rows.jsonl:2: not a row of KTO: "),
        (("kto", "rows.jsonl", "--qrels", "run.txt"), "setting 'qrels' of kto"),
        (("letor", "run.txt"), "run.txt:1: not a line of LETOR: "),
        (("trec", "run.txt", "--qrels", "rows.jsonl"), "rows.jsonl:1: not a judgement of TREC"),
        (("trec", "missing.txt"), "missing.txt: no such file"),
        (("trec", "empty.txt"), "empty.txt: no record"),
        (("kto", "rows.jsonl", "empty.txt"), "rows.jsonl:2"),
        (("kto", "empty.txt"), "empty.txt: no record"),
        (("kto", "none.json"), "none.json: no record"),
        (("trec", "run.txt", "-o", "run.txt"), "choose another name"),
        (("trec", "run.txt", "--qrels", "lists.jsonl"), "choose another name"),
    ],
)
def test_what_is_wrong_is_one_error_and_nothing_is_written(
    words: tuple[str, ...], shown: str
) -> None:
    Path("run.txt").write_text(RUN)
    Path("empty.txt").write_text("")
    Path("none.json").write_text("[]")
    good = {"prompt": "q", "completion": "a", "label": True}
    write("rows.jsonl", good, good | {"label": "yes"})
    Path("lists.jsonl").write_text("as before")
    output = () if "-o" in words else ("-o", "lists.jsonl")
    refused("convert", *words, *output, mention=shown)


def test_formats_are_converted_by_their_readers() -> None:
    Path("kaldi").write_text("utt-1 -35.5 the words\nutt-2 -36.25 the word\n")
    succeed("convert", "kaldi", "kaldi", "-o", "lists.jsonl")
    lists, expected = read_nbest("lists.jsonl"), read_nbest("kaldi")
    assert (lists.texts(0), lists.feature_names) == (["the words", "the word"], ("score",))
    assert lists.features.tolist() == expected.features.tolist()
    Path("texts").write_text("a cat\ncat\ndog\na dog\n")
    succeed("convert", "plain:list_size=2", "texts", "-o", "lists.jsonl")
    assert read_nbest("lists.jsonl").texts(1) == ["dog", "a dog"]
    refused("convert", "kaldi", "texts", "-o", "other.jsonl", mention="texts:1: ")
    refused("convert", "kaldi", "kaldi", "--extract", "x", "-o", "o.jsonl", mention="'extract'")


def test_lines_that_failed_are_left_out_of_every_kind_of_format() -> None:
    Path("fairseq.txt").write_text("S-0\tun chat\nH-0\tnan\tcat\nH-0\t-0.5\ta cat\n")
    succeed("convert", "fairseq", "fairseq.txt", "--bad", "drop", "-o", "fairseq.jsonl")
    assert read_nbest("fairseq.jsonl").texts(0) == ["a cat"]
    answer = '{"custom_id": "q", "response": {"message": {"content": "%s"}, "done": true, %s}}'
    lines = [
        answer % ("cat", '"done_reason": "length"'),
        answer % ("a cat", '"done_reason": "stop", "x": NaN'),
    ]
    Path("ollama.jsonl").write_text("\n".join(lines))
    succeed("convert", "ollama", "ollama.jsonl", "--bad", "drop", "-o", "ollama_lists.jsonl")
    assert read_nbest("ollama_lists.jsonl").texts(0) == ["a cat"]


def test_the_help_names_every_function_of_the_package_and_every_server() -> None:
    shown = succeed("convert", "--help").out
    for name in (*convert.__all__, *ANSWERS):
        assert name in shown
        assert name in ANSWERS or callable(getattr(convert, name))
