"""The page about files of other tools: each kind is in it with a record, and each recipe runs."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bpa_ppl.extras.convert as convert
from bpa_ppl import NBest, from_records
from bpa_ppl.extras.convert.servers import ANSWERS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "extras" / "other-tools.md").read_text(
    "utf-8"
)
EXAMPLES = [
    line.split(None, 1)
    for line in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()
]
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
IMPORTS = CODE[0].rpartition("\n\n\n")[0]

pytestmark = pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")


def test_every_kind_is_in_the_table_with_an_example() -> None:
    kinds = {*convert.__all__, *ANSWERS} - {"answers", "openai"}
    assert sorted(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == sorted(kinds)
    assert {kind for kind, _ in EXAMPLES} == kinds


@pytest.mark.parametrize(("kind", "shown"), EXAMPLES)
def test_examples_are_converted_and_read(kind: str, shown: str) -> None:
    record: Any = json.loads(shown) if shown.startswith("{") else shown
    records = [record, shown.replace("ref=", "hyp=")] if kind == "icefall" else [record]
    function = partial(convert.answers, server=kind) if kind in ANSWERS else getattr(convert, kind)
    converted = function(records)
    if isinstance(record, dict) and kind not in ANSWERS:
        with_field = json.loads(shown.replace("{", '{"own": 7, ', 1))
        if kind == "inspect":
            with_field["samples"][0]["own"] = 7
        (of_list,) = function([with_field])
        assert {of.get("own") for of in (of_list, *of_list["candidates"])} >= {7}
    lists = from_records(converted)
    candidates = converted[0]["candidates"]
    assert lists.texts(0) == [one["text"] for one in candidates]
    features = candidates[0].get("features", {})
    assert list(lists.feature_names) == list(features)
    row = re.findall(rf"^\| `{kind}` \|(.*)\|$", PAGE, re.MULTILINE)[0].split("|")
    for name in features:
        assert re.search(rf"`({name}|{name.partition('.')[0]}\.…)`", row[2])
    judgements = {*candidates[0], *converted[0]} - {"text", "features", "system", "prompt", "model"}
    judgements -= {"id", "id_number", "source", "candidates", "references"}
    for name in judgements - {"match"}:
        assert f"`{name}`" in row[3]


def test_the_first_code_of_the_page_reads_rows_of_kto(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": "q", "completion": t, "label": t == "a"} for t in "ab"]
    write("kto.jsonl", *rows)
    scope: dict[str, Any] = {}
    exec(CODE[0], scope)
    assert scope["lists"].texts(0) == ["a", "b"]
    assert scope["lists"].extras["label"] == (True, False)


# --- recipes -------------------------------------------------------------------------------------


def write(name: str, *rows: Any) -> None:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def run_recipe(title: str, number: int = 0) -> NBest:
    """Run a block of Python of a section of the page, and return its lists."""
    section = PAGE.partition(f"\n### {title}\n")[2].partition("\n### ")[0]
    scope: dict[str, Any] = {}
    exec(IMPORTS, scope)
    exec(re.findall(r"```python\n(.*?)```", section, re.DOTALL)[number], scope)
    assert isinstance(scope["lists"], NBest)
    return scope["lists"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def texts(lists: NBest) -> list[list[str]]:
    return [lists.texts(s) for s in range(len(lists))]


def judged(lists: NBest) -> list[Any]:
    """Return the preferences of each list, and its ties where there are any."""
    extras = lists.sentence_extras
    ties = extras.get("ties", [None] * len(lists))
    return [of or {"ties": tie} for of, tie in zip(extras["preferences"], ties, strict=True)]


def talk(*turns: str, parts: bool = False) -> list[dict[str, Any]]:
    content = [[{"type": "text", "text": turn}] if parts else turn for turn in turns]
    return [{"role": ("user", "assistant")[n % 2], "content": of} for n, of in enumerate(content)]


@pytest.mark.parametrize("parts", [True, False])
def test_chatbot_arena(parts: bool) -> None:
    rows = [
        {"model_a": "x", "model_b": "y", "winner": winner}
        | {f"conversation_{m}": talk("q", f"{m}1", parts=parts) for m in "ab"}
        for winner in ("model_b", "both_bad", "tie (bothbad)")
    ]
    write("arena.jsonl", *rows)
    lists = run_recipe("Chatbot Arena")
    assert (texts(lists), lists.sources) == ([["a1", "b1"]] * 3, ("q",) * 3)
    assert judged(lists) == [[[1, 0]], {"ties": [[0, 1]]}, {"ties": [[0, 1]]}]
    assert lists.extras["system"] == ("x", "y") * 3


def test_stanford_human_preferences() -> None:
    row = {"history": "q", "human_ref_A": "a", "human_ref_B": "b", "score_A": 3, "score_B": 16}
    write("shp.jsonl", row | {"labels": 1}, row | {"labels": 0})
    lists = run_recipe("Stanford Human Preferences")
    assert (texts(lists), judged(lists)) == ([["a", "b"], ["b", "a"]], [[[0, 1]]] * 2)
    assert lists.extras["score"] == (3, 16, 16, 3)


def test_helpsteer() -> None:
    row = {"context": talk("1?", "2", "q"), "response1": "a", "response2": "b"}
    write("helpsteer.jsonl", *(row | {"overall_preference": n} for n in (-3, 0, 1)))
    lists = run_recipe("HelpSteer")
    assert (texts(lists), lists.sources) == ([["a", "b"]] * 3, ("q",) * 3)
    assert judged(lists) == [[[0, 1]], {"ties": [[0, 1]]}, [[1, 0]]]


def test_preferences_of_openai() -> None:
    row = {"input": {"messages": talk("q"), "tools": []}}
    row |= {"preferred_output": talk("", "a")[1:], "non_preferred_output": talk("", "b")[1:]}
    write("finetuning.jsonl", row)
    lists = run_recipe("Preferences of OpenAI's fine-tuning")
    assert (texts(lists), lists.sources, judged(lists)) == ([["a", "b"]], ("q",), [[[0, 1]]])


def test_generations_with_scores() -> None:
    row = {"prompt_id": "x", "prompt": "q", "generations": ["a", "b"], "rm_scores": [0.5, -1]}
    write("generations.jsonl", row | {"chosen": talk("q", "a"), "rejected": talk("q", "b")})
    lists = run_recipe("Generations with scores")
    assert (lists.ids, texts(lists), lists.sources) == (("x",), [["a", "b"]], ("q",))
    assert (lists.feature_names, lists.features.tolist()) == (("score",), [[0.5], [-1]])


def test_trees_of_openassistant() -> None:
    def node(role: str, text: str, *replies: Any, rank: int | None = None) -> dict[str, Any]:
        return {"role": role, "text": text, "rank": rank, "replies": [*replies]}

    second = node("prompter", "r", *(node("assistant", t, rank=n) for n, t in enumerate("cd")))
    first = [node("assistant", "a", second, rank=1), node("assistant", "b", rank=0)]
    alone = node("prompter", "s", node("assistant", "e", rank=0))
    write(
        "trees.jsonl",
        *(
            {"message_tree_id": "t", "prompt": of}
            for of in (
                node("prompter", "q", *first),
                alone,
            )
        ),
    )
    lists = run_recipe("Trees of OpenAssistant")
    assert (texts(lists), lists.sources) == ([["a", "b"], ["c", "d"]], ("q", "r"))
    assert lists.sentence_extras["rankings"] == ([[1, 0]], [[0, 1]])


def test_choices_of_prodigy() -> None:
    options = [{"id": 5, "text": "house"}, {"id": 7, "text": "home"}, {"id": 9, "text": "hut"}]
    tasks = [{"text": "Haus?", "options": options, "accept": of} for of in ([7], [])]
    write("prodigy.jsonl", *tasks)
    lists = run_recipe("Choices of Prodigy")
    assert texts(lists) == [["house", "home", "hut"]] * 2
    assert lists.sentence_extras["rankings"] == ([[1, [0, 2]]], [])


def test_deepeval() -> None:
    def case(output: str, score: float) -> dict[str, Any]:
        metrics = [{"name": "Answer Relevancy", "score": score}]
        return {"input": "q", "actualOutput": output, "metricsData": metrics}

    write("deepeval.json", {"testCases": [case("a", 0.5), case("b", 1)]})
    lists = run_recipe("DeepEval")
    assert (texts(lists), lists.sources) == ([["a", "b"]], ("q",))
    assert list(lists.extras["Answer Relevancy"]) == [0.5, 1]


def test_langfuse() -> None:
    rows = [
        {
            "id": f"t-{n}",
            "sessionId": "q-1",
            "output": {"role": "assistant", "content": text},
            "scores": [{"name": "helpfulness", "value": n / 4}, {"name": "correct", "value": n}],
        }
        for n, text in enumerate(["home", "house"])
    ]
    write("traces.jsonl", *rows)
    lists = run_recipe("Langfuse")
    assert (lists.ids, texts(lists)) == (("q-1",), [["home", "house"]])
    assert (lists.feature_names, lists.features.tolist()) == (("helpfulness",), [[0], [0.25]])
    assert list(lists.extras["correct"]) == [0, 1]


def test_sglang() -> None:
    def row(prompt: str, text: str, *values: float) -> dict[str, Any]:
        logged = [[value, 7, None] for value in values]
        return {"prompt": prompt, "text": text, "meta_info": {"output_token_logprobs": logged}}

    write("sglang.jsonl", row("q", "a", -1, -2), row("r", "c", -4), row("q", "b", -3))
    lists = run_recipe("SGLang, TGI and vLLM in Python")
    assert (texts(lists), lists.sources) == ([["a", "b"], ["c"]], ("q", "r"))
    column = lists.features[:, lists.feature_names.index("logprob.sum")]
    assert column.tolist() == [-3, -3, -4]


def test_recognisers_of_speech() -> None:
    title = "Recognisers of speech"
    alternatives = [{"confidence": 297.5, "text": "a"}, {"confidence": 290.25, "text": "b"}]
    write("vosk.jsonl", {"alternatives": alternatives})
    lists = run_recipe(title)
    assert (texts(lists), lists.features.tolist()) == ([["a", "b"]], [[297.5], [290.25]])
    for name in ("u1", "u2"):
        write(f"nbest/{name}", "-12.5 -3.5 2 a house", "-13 -2.5 2 the house")
    lists = run_recipe(title, 1)
    assert (lists.ids, texts(lists)) == (("u1", "u2"), [["a house", "the house"]] * 2)
    assert lists.feature_names == ("acoustic", "lm", "words")
    assert lists.features.tolist() == [[-12.5, -3.5, 2], [-13, -2.5, 2]] * 2
    output = [{"rec_text": "a<eos>", "score": 0.5}, {"rec_text": "b", "score": -1}]
    write("espnet.json", {"utts": {"u1": {"output": output}}})
    lists = run_recipe(title, 2)
    assert (lists.ids, texts(lists), lists.features.tolist()) == (
        ("u1",),
        [["a", "b"]],
        [[0.5], [-1]],
    )


def test_texts_of_systems_of_wmt() -> None:
    for system in "AB":
        write(f"system-outputs/{system}.txt", f"{system} one", f"{system} two")
    write("comet.seg.score", "A\t0.5", "A\t0.25", "B\t1", "B\t2")
    write("mqm.seg.score", "A\t-5", "A\tNone", "B\t0", "B\t-1")
    lists = run_recipe("Texts of systems of WMT")
    assert texts(lists) == [["A one", "B one"], ["A two", "B two"]]
    assert (lists.feature_names, lists.features[:, 0].tolist()) == (("comet",), [0.5, 1, 0.25, 2])
    assert [value if value == value else None for value in lists.extras["mqm"]] == [-5, 0, None, -1]


def test_every_recipe_has_a_test() -> None:
    titles = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
    own = Path(__file__).read_text("utf-8")
    assert len(titles) == 12
    assert all(f'"{title}"' in own for title in titles)
