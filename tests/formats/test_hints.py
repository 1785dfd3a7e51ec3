"""What a message about a file suggests is done, and must then give the right lists."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.user_files import run_shell

from bpa_ppl import BayesianRanker, BpaError, DataError, NBest, read_nbest

Content = tuple[list[list[str]], dict[str, list[float]]]
DOCS = Path(__file__).resolve().parents[2] / "docs"


def content(lists: NBest) -> Content:
    """Return the texts of each list, and the values of the columns of numbers."""
    texts = [lists.texts(s) for s in range(len(lists))]
    columns = {n: lists.features[:, k].tolist() for k, n in enumerate(lists.feature_names)}
    numbers = {n: of.tolist() for n, of in lists.extras.items() if isinstance(of, np.ndarray)}
    return texts, columns | numbers


def message_of(path: Any, **options: Any) -> str:
    with pytest.raises(BpaError) as caught:
        read_nbest(path, **options)
    return caught.value.message


def convert(path: Path) -> NBest:
    """Run the command that the message about a file quotes, and read what it prints."""
    (command,) = re.findall(r"`(.*?)`", message_of(path))
    run_shell(f"{command} < {path.name} > new-{path.name}", path.parent)
    return read_nbest(path.with_name(f"new-{path.name}"))


def find_on_page(pattern: str, *page: str) -> str:
    """Return the only command of a page of the documentation that matches a pattern."""
    (command,) = re.findall(pattern, DOCS.joinpath(*page).read_text("utf-8"), re.MULTILINE)
    return command


def json_lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


# --- changes by hand -----------------------------------------------------------------------------

LISTS: Content = ([["a cat", "cat"], ["hello", "hi"]], {"score": [-0.5, -1.5, -0.25, -2.0]})
BEFORE = "put a line with their names before it, two of them id and text"
ROWS = "0,a cat,-0.5\n0,cat,-1.5\n1,hello,-0.25\n1,hi,-2\n"


@pytest.mark.parametrize("name", ["rows", "rows.csv", "rows.tsv"])
@pytest.mark.parametrize(
    ("rows", "header"),
    [
        (ROWS.replace(",", "\t"), "id\ttext\tscore"),
        ("-0.5\ts 1\ta cat\n-1.5\ts 1\tcat\n-0.25\ts2\thello\n-2\ts2\thi\n", "score\tid\ttext"),
        (ROWS, "id,text,score"),
        (ROWS.replace(",", ";").replace(".", ","), "id;text;score"),
        ("doc-1\ta cat\t-0.5\ndoc-1\tcat\t-1.5\nb\thello\t-0.25\nb\thi\t-2\n", "id\ttext\tscore"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*separated by ';'")
def test_names_are_put_before_values(tmp_path: Path, rows: str, header: str, name: str) -> None:
    path = tmp_path / name
    path.write_text(rows)
    assert BEFORE in message_of(path)
    path.write_text(f"{header}\n{rows}")
    assert content(read_nbest(path)) == LISTS


# --- messages without a command ------------------------------------------------------------------

ESTIMATOR = "it has no texts: use bpa_ppl.BayesianRanker"
LABEL_STUDIO = "docs/how-to/judge.md"
SECOND = "is in the second one: remove it"
TABLE = b"id,text,lm\n0,a,1\n"
QUALTRICS = """id,text,rating
Item,Answer,"How good
is it?"
"{""ImportId"":""QID1""}","{""ImportId"":""QID2""}","{""ImportId"":""QID3""}"
7,a,4
7,b,2
"""


@pytest.mark.parametrize(
    ("name", "data", "part"),
    [
        ("lists", b"PK\x03\x04\x14\x06[Content_Types].xml", "Excel"),
        ("lists", "id\ttext\n".encode("utf-16"), "UTF-16"),
        ("lists", b"{'id': 0, 'candidates': [{'text': 'a'}]}\n", "json.dumps"),
        ("lists", b"data: {}\n", "stream"),
        ("a.csv", f"0,1,2\n{ROWS}".encode(), "a line with their names in its place"),  # by pandas
        ("a.csv", b'"sep=,"\n' + TABLE, "remove it"),
        ("a.csv", b"\n" + TABLE, "remove it"),
        ("a.csv", b"# exported in May\n" + TABLE, SECOND),
        ("a.csv", b"Ratings of May,,\n" + TABLE, SECOND),
        ("a.csv", b"a table\n" + TABLE, SECOND),
        ("a.txt", b'"id" "text" "lm"\n"1" 0 "a" 1\n', "write.csv(DATA, FILE, row.names=FALSE)"),
        ("train.tsv", b"0\t0.5\t1.5\n1\t0.25\t3\n", "bpa_ppl.BayesianRanker"),  # as LightGBM's
        ("train.csv", b"qid,label,f1\n0,0.5,1\n", ESTIMATOR),
        ("train.csv", b"label,f1,f2\n0,0.5,1\n", ESTIMATOR),
        ("train.csv", b"y,a,b\n0,0.5,1\n", ESTIMATOR),
        ("a", b'[{"id":1,"data":{"b":"a"},"annotations":[{"id":10,"result":[]}]}]', LABEL_STUDIO),
        ("a", b'[\n  {\n    "id": 1,\n    "annotations": [\n      {"id": 10}]}]\n', LABEL_STUDIO),
        ("a", 2 * b'{"id":1,"data":{"first":"a"},"annotations":[]}\n', LABEL_STUDIO),
        ("a", b'[{"id":1,"first":"a","better":"left","annotation_id":10}]', LABEL_STUDIO),
        ("a", b"annotation_id,annotator,better,first,id\n10,1,left,a,1\n", LABEL_STUDIO),
        ("a.csv", QUALTRICS.replace("id,text,", "Date,Q1,").encode(), "an export of Qualtrics"),
        ("a.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        ("a.jsonl", b"<!DOCTYPE html>\n<html><body>404", "a web page"),
        ("a", b'<?xml version="1.0"?>\n<dataset><seg id="1">a</seg></dataset>\n', "XML"),
        ("a.slf", b"VERSION=1.0\nUTTERANCE=u\n", "these are lattices"),
        ("lat", b"utt-1 \n0\t1\tthe\t3.5,2.25,1_2\n1\t0,0,\n", "these are lattices"),
        ("train", b"1 1:0.5 2:1\n0 1:0.25\n", "qid = numpy.repeat(range(len(sizes)), sizes)"),
    ],
)
def test_a_file_without_a_command(tmp_path: Path, name: str, data: bytes, part: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=re.escape(part)) as caught:
        read_nbest(tmp_path / name)
    assert (caught.value.code, caught.value.line) == ("unknown-format", 1)
    assert not re.search(rf"jsonl:\w+=|`|{BEFORE}", caught.value.message)


def test_ids_of_a_spreadsheet_and_rows_of_r() -> None:
    with raises(DataError, "bad-data", line=2, match="rounded by a spreadsheet"):
        read_nbest(["id,text,lm", "1.23457E+12,a,1"])
    with raises(DataError, "wrong-length", line=2, match="names of rows .R: row.names=FALSE"):
        read_nbest(["id\ttext\tlm", "1\t0\ta\t1"])


@pytest.mark.parametrize("options", [{}, {"format": "tsv"}])
@pytest.mark.parametrize("name", ["beams.tsv", "beams.txt", "beams"])
def test_texts_and_scores_to_be_split(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    (tmp_path / name).write_text("a cat\t-0.5\ncat\t-1.5\n")
    message = message_of(tmp_path / name, **options)
    assert "has values, 'a cat, -0.5', not names" in message
    assert "plain:list_size=N,scores=FILE" in message


@pytest.mark.parametrize(
    "line",
    [
        "{y} qid:{q} 1:{a} 2:{b} #docid = GX001",
        "{y} qid:{q} 1:{a} 2:{b}",
        "{y}  qid:{q}\t1:{a} 2:{b} ",
        "# query {q}\n#\n{y} qid:{q} 1:{a} 2:{b}",
    ],
)
def test_svmlight_and_letor_are_read_by_scikit_learn(tmp_path: Path, line: str) -> None:
    from sklearn.datasets import load_svmlight_file

    rows = [(2, 1, 0.3, 1), (0, 1, 0.1, 2), (1, 7, 0.5, 3), (0, 7, -0.5, 4)]
    path = tmp_path / "train.txt"
    path.write_text("".join(line.format(y=y, q=q, a=a, b=b) + "\n" for y, q, a, b in rows))
    message = message_of(path)
    assert "SVMlight or LETOR" in message
    (reading,) = re.findall(r"X, y, qid = sklearn\.datasets\.(\w+\(.*?\))", message)
    (fitting,) = re.findall(r"bpa_ppl\.(BayesianRanker\(\)\.fit\(.*\))", message)
    by_mode = partial(BayesianRanker, sampler="map")
    scope: dict[str, Any] = {"BayesianRanker": by_mode, "FILE": str(path)}
    scope["load_svmlight_file"] = load_svmlight_file
    exec(f"X, y, qid = {reading}", scope)
    assert scope["qid"].tolist() == [1, 1, 7, 7]
    ranker = eval(fitting, scope)
    assert (ranker.n_lists_, ranker.n_features_in_) == (2, 2)


@pytest.mark.parametrize("suffix", ["", ".csv"])
def test_sizes_of_lists_are_repeated(tmp_path: Path, suffix: str) -> None:
    """As in the files .query of LightGBM and .group of XGBoost."""
    path = tmp_path / f"train.query{suffix}"
    path.write_text("2\n3\n")
    (call,) = re.findall(r"qid=(numpy\.\S+ \S+)", message := message_of(path))
    assert "BayesianRanker" in message
    qid = eval(call, {"numpy": np, "sizes": np.loadtxt(path, int)})
    assert qid.tolist() == [0, 0, 1, 1, 1]


# --- commands ------------------------------------------------------------------------------------

TWO: Content = ([["a", "b"]], {"lm": [1, 2]})
ONE = '{"id": 0, "candidates": [{"text": "a", "lm": 1}, {"text": "b", "lm": 2}]}'
RUN = """q1 Q0 d11 1 13.5 bm25
q1 Q0 d12 2 12 bm25
q1 Q0 d13 3 9.5 bm25
q2 Q0 21 1 8 bm25
q2 Q0 22 2 7.5 bm25
"""
DOCUMENTS = [["d11", "d12", "d13"], ["21", "22"]]
SCORES = [13.5, 12.0, 9.5, 8.0, 7.5]
UNSORTED = "1 ||| c ||| LM0= 1\n0 ||| a ||| LM0= 2\n1 ||| d ||| LM0= 3\n"
OF_U: Content = ([["a", "b"]] * 2, {"score": [0, -1, 0, -1]})
OUTPUT = '{"output": [{"rec_text": "a<eos>", "score": 0}, {"rec_text": "b", "score": -1}]}'
SAMPLE = (
    '{"doc_id":%d,"doc":{"question":"6*7?","answer":"42"},"target":"42","arguments":{"gen_args_0":'
    '{"arg_0":"Q: 6*7?","arg_1":{"until":["\\n"]}}},"resps":[["42","41","4 2"]],'
    '"filtered_resps":["42"],%s"doc_hash":"a","exact_match":1.0}\n'
)
FILTERS = ['"filter":"strict",', '"filter":"flexible",']
FILTERED = "".join(SAMPLE % (n, one) for one in FILTERS for n in (0, 1))
SAMPLES = ([["42", "41", "4 2"]] * 2, {})


@pytest.mark.parametrize(
    ("data", "part", "ids", "expected"),
    [
        ("id,text,lm\r0,a,1\r0,b,2\r", "tr", (0,), TWO),
        (f"[{ONE}]", "jq", (0,), TWO),
        (f"[\n{ONE}\n]\n", "jq", (0,), TWO),
        (ONE.replace("{", "{\n"), "jq", (0,), TWO),
        ("".join(SAMPLE % (n, "") for n in (0, 1)), "lm-evaluation-harness", (0, 1), SAMPLES),
        (FILTERED, "lm-evaluation-harness", (0, 1), SAMPLES),
        ('{"u1": {"a": 0, "b": -1}, "u2": {"a": 0, "b": -1}}', "jq", ("u1", "u2"), OF_U),  # of ranx
        (f'{{"utts": {{"u1": {OUTPUT}, "u2": {OUTPUT}}}}}', "ESPnet 1", ("u1", "u2"), OF_U),
        (UNSORTED, "sort", (0, 1), ([["a"], ["c", "d"]], {"LM0": [2, 1, 3]})),
    ],
)
def test_converted_files(tmp_path: Path, data: str, part: str, ids: Any, expected: Content) -> None:
    path = tmp_path / "lists"
    path.write_text(data)
    assert part in message_of(path)
    assert "target" not in message_of(path)  # the reference answer, not a text
    lists = convert(path)
    assert (lists.ids, content(lists)) == (ids, expected)


def test_an_object_on_several_lines_is_converted_twice(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"q1": {"d1": 1.5, "d2": 0.5}}, indent=1))
    with pytest.raises(BpaError, match="jq"):
        convert(path)
    lists = convert(path.with_name("new-run.json"))
    assert content(lists) == ([["d1", "d2"]], {"score": [1.5, 0.5]})


@pytest.mark.parametrize("name", ["RUN", "run.trec", "run.tsv"])
@pytest.mark.parametrize("separator", [" ", "\t"])
@pytest.mark.parametrize("rest", ["bm25", "run 1"])
def test_a_run_of_trec(tmp_path: Path, name: str, separator: str, rest: str) -> None:
    run = RUN.replace(" ", separator).replace("bm25", rest)
    for path in (tmp_path / name, tmp_path / "RUN"):
        path.write_text(run if rest == "bm25" else run.replace("Q0", "0"))
    assert "run of TREC" in message_of(tmp_path / name)
    assert content(convert(tmp_path / name)) == (DOCUMENTS, {"score": SCORES})


@pytest.mark.parametrize("separator", [" ", "\t"])
@pytest.mark.filterwarnings("ignore:.*relevance is missing")
def test_judgements_of_trec_are_added_to_a_run(tmp_path: Path, separator: str) -> None:
    (tmp_path / "RUN").write_text(RUN)
    qrels = "q1 0 d11 0\nq1 0 d13 2\nq2 0 21 1\nq3 0 x 1\n"
    (tmp_path / "QRELS").write_text(qrels.replace(" ", separator))
    assert "judgements of TREC" in message_of(tmp_path / "QRELS")
    texts, columns = content(convert(tmp_path / "QRELS"))
    assert (texts, columns["score"]) == (DOCUMENTS, SCORES)
    np.testing.assert_array_equal(columns["relevance"], [0, np.nan, 2, 1, np.nan])


def test_ranked_answers_become_rankings(tmp_path: Path) -> None:
    """As in Nectar; of answers of equal rank one is ranked."""
    ranks = ((2.0, 1.0, 2.0), (2.0, 2.0, 1.0), (1.0, 1.0, 1.0))
    rows = []
    for of_row in (zip("bac", ns, strict=True) for ns in ranks):
        answers = [{"answer": t, "model": t.upper(), "rank": n} for t, n in of_row]
        rows.append({"prompt": "q", "answers": answers, "turns": 1, "source": ["lmsys"]})
    path = tmp_path / "rows.jsonl"
    path.write_text(json_lines(*rows))
    lists = convert(path)
    assert (lists.texts(0), lists.sources) == (["b", "a", "c"], ("q", "q", "q"))
    assert lists.sentence_extras["rankings"] == ([[1, 0]], [[2, 0]], [])
    assert lists.extras["model"] == ("B", "A", "C") * 3


def turn(text: str) -> dict[str, Any]:
    return {"role": "model", "parts": [{"text": text}]}


PREFERRED: dict[str, Any] = {"preferences": ([[0, 1]],)}
GAMES = [{"judgment": "so [[A>B]]", "score": "A>B"}, {"judgment": "so [[B>>A]]", "score": "B>>A"}]
MT_BENCH = {"question_id": 81, "judge": ["gpt-4", "pair-v2"], "turn": 1, "tstamp": 1.5}
OPENAI = {
    "input": {"messages": [{"role": "user", "content": "?"}], "tools": []},
    "preferred_output": [{"role": "assistant", "content": "a"}],
    "non_preferred_output": [{"role": "assistant", "content": "b"}],
}
COMPLETIONS = [{"score": 1.0 - n, "completion": turn(text)} for n, text in enumerate("ab")]
WEBGPT = {"question": {"full_text": "?"}, "answer_0": "a", "tokens_0": {}, "answer_1": "b"}
JUDGELM = {"question_id": 7, "question_body": "?", "answer1_body": "a", "answer2_body": "b"}
MODELS = {"answer1_model_id": "m", "answer2_model_id": "n"}
PAIR_OF_MODELS = {"model_1": "a", "model_2": "b", "g1_winner": "model_1", "g2_winner": "error"}
REPLICATE = {"id": "x", "model": "m", "input": {"prompt": "?"}, "status": "succeeded"}
GENERATIONS = [{"text": text, "likelihood": -1.5} for text in "ab"]
#: Records of other programs, the texts of their lists, and the judgements or scores.
JUDGED: dict[str, tuple[list[dict[str, Any]], list[str], dict[str, Any]]] = {
    "openai": ([OPENAI], ["a b"], PREFERRED),
    "vertex": ([{"contents": [turn("?")], "completions": COMPLETIONS}], ["a b"], PREFERRED),
    "webgpt": ([WEBGPT | {"score_0": 0.5, "score_1": -0.5}], ["a b"], PREFERRED),
    "webgpt, a tie": ([WEBGPT | {"score_0": 0, "score_1": 0}], ["a b"], {"ties": ([[0, 1]],)}),
    "judgelm": ([JUDGELM | MODELS | {"score": [8.0, 1.0]}], ["a b"], {"judge": [8.0, 1.0]}),
    "arena-hard": (
        [{"question_id": "q", "model": "b", "judge": "gpt-4", "games": GAMES}],
        ["baseline b", "b baseline"],
        {"preferences": ([[0, 1]], [[1, 0]])},
    ),
    "mt-bench, pairs": ([MT_BENCH | PAIR_OF_MODELS], ["a b"], PREFERRED),
    "mt-bench, scores": (
        [MT_BENCH | {"model": m, "judgment": "[[9]]", "score": s} for m, s in (("a", 9), ("b", 7))],
        ["a b"],
        {"judge": [9.0, 7.0]},
    ),
    "replicate": ([REPLICATE | {"output": of} for of in (["a"], "b")], ["a b"], {}),
    "cohere": (
        [{"id": "x", "generations": GENERATIONS, "prompt": "?"}],
        ["a b"],
        {"likelihood": [-1.5, -1.5]},
    ),
}


@pytest.mark.parametrize("name", JUDGED)
def test_judgements_and_answers_of_other_programs(tmp_path: Path, name: str) -> None:
    records, texts, expected = JUDGED[name]
    path = tmp_path / "rows.jsonl"
    path.write_text(json_lines(*records))
    lists = convert(path)
    assert [" ".join(lists.texts(s)) for s in range(len(lists))] == texts
    assert lists.sources == (("?",) if "?" in path.read_text() else None)
    found = content(lists)[1] | lists.sentence_extras
    assert expected.items() <= found.items()


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.filterwarnings("ignore:.*no log-probabilities")
def test_responses_with_annotations_are_no_export(tmp_path: Path, indent: int | None) -> None:
    answer = {"role": "assistant", "content": "a", "annotations": []}
    response = {"id": "1", "choices": [{"message": answer, "finish_reason": "stop"}]}
    path = tmp_path / "response.json"
    path.write_text(json.dumps([response, response], indent=indent))
    message = message_of(path)
    assert "`jq -c '.[]'`" in message
    assert "Label Studio" not in message
    run_shell("jq -c '.[]' response.json > lists.jsonl", tmp_path)
    assert read_nbest(tmp_path / "lists.jsonl").texts(1) == ["a"]


@pytest.mark.parametrize("name", ["lists.csv", "lists.txt"])
def test_cells_separated_by_bars(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("id|text|judge\n0|a, b|0.5\n0||0.25\n")
    assert "`pandas.read_csv(FILE, sep='|').to_csv(NEW, index=False)`" in message_of(path)
    pd.read_csv(path, sep="|").to_csv(path, index=False)
    assert content(read_nbest(path)) == ([["a, b", ""]], {"judge": [0.5, 0.25]})


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_blanks_after_commas(tmp_path: Path, ending: str) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "lists.csv"
    lines = ["id, text, lm score", '0, "a, b", 0.5', "0, cat, 0.25", ""]
    path.write_text(ending.join(lines), newline="")
    call = "`pandas.read_csv(FILE, skipinitialspace=True).to_csv(NEW, index=False)`"
    assert call in message_of(path)
    eval(call.strip("`"), {"pandas": pandas, "FILE": path, "NEW": path})
    assert content(read_nbest(path)) == ([["a, b", "cat"]], {"lm score": [0.5, 0.25]})


def test_headers_of_qualtrics(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "ratings.csv"
    path.write_text(QUALTRICS)
    with raises(DataError, "bad-line", line=2, match="Qualtrics") as caught:
        read_nbest(path)
    (call,) = re.findall(r"pandas\..*\)", caught.value.message)
    eval(call, {"pandas": pandas, "FILE": path, "NEW": path})
    assert content(read_nbest(path)) == ([["a", "b"]], {"rating": [4, 2]})


def test_scores_of_comet_are_read_with_their_texts(tmp_path: Path) -> None:
    lines = [f"hyp.txt\tSegment {n}\tscore: {score}\n" for n, score in enumerate([0.5, 0.25])]
    path, texts = tmp_path / "comet.txt", tmp_path / "hyp.txt"
    path.write_text("".join([*lines, "hyp.txt\tscore: 0.375\n"]))
    texts.write_text("a cat\ncat\n")
    message = message_of(path)
    (command,) = re.findall("`(.*?)`", message)
    run_shell(f"{command} {path.name} > numbers", tmp_path)
    (setting,) = re.findall(r"plain:\S+", message)
    setting = setting.replace("=N,", "=2,").replace("NAME", str(tmp_path / "numbers"))
    lists = read_nbest(texts, format=setting)
    assert content(lists) == ([["a cat", "cat"]], {"numbers": [0.5, 0.25]})


@pytest.mark.parametrize("orient", ["split", "index", "columns", "table"])
@pytest.mark.parametrize("ids", [[0, 0, 1, 1], list("xxyy")])
def test_a_table_in_one_object_of_pandas(tmp_path: Path, orient: Any, ids: list[Any]) -> None:
    path = tmp_path / "lists.json"
    table = pd.DataFrame({"id": ids, "text": list("abcd"), "lm": [1.0, 2, 3, 4]})
    table.to_json(path, orient=orient)
    message = message_of(path)
    (arguments,) = re.findall(r"to_json\((.*?)\)", message)
    assert not re.search(r"jsonl:\w+=|rename", message)
    table.to_json(path, **eval(f"dict({arguments})"))
    assert content(read_nbest(path)) == ([["a", "b"], ["c", "d"]], {"lm": [1, 2, 3, 4]})


# --- columns under other names -------------------------------------------------------------------

#: Files with other names, of a list with the texts a and b whose `lm` is 1 and 2.
TABLES = {
    "hypotheses": "seg,hyp,lm\n0,a,1\n0,b,2\n",
    "responses": "prompt_id,response_id,response,lm\n0,1,a,1\n0,2,b,2\n",
    "outputs": "question_id,model_id,output_text,lm\n0,1,a,1\n0,2,b,2\n",
    "tabs": "ID\tgenerated_text\tlm\n0\ta\t1\n0\tb\t2\n",
    "objects": '{"idx": 3, "hyp": "a", "lm": 1}\n{"idx": 3, "hyp": "b", "lm": 2}\n',
    "an object": '{"id": 0, "outputs": ["a", "b"], "lm": [1, 2]}\n',
    "sequences": '{"id": 0, "sequences": ["a", "b"], "lm": [1, 2]}\n',
    "documents": "qid,docno,lm\n0,a,1\n0,b,2\n",
    "sources": "src\tmt\tlm\nx\ta\t1\nx\tb\t2\n",
    "prompts": '{"prompt":"x","response":"a","lm":1}\n{"prompt":"x","response":"b","lm":2}\n',
    "segments": "Segment ID,MT output,lm\n0,a,1\n0,b,2\n",
    "sentences": "Sentence,Source text,Translation text,lm\n0,x,a,1\n0,x,b,2\n",
    "dots.csv": "meta.id,prompt.content,lm,message.content\n7,?,1,a\n7,?,2,b\n",
    "dots.tsv": "meta.id\tprompt.content\tlm\tmessage.content\n7\t?\t1\ta\n7\t?\t2\tb\n",
    "nested.jsonl": '{"meta":{"id":7},"of":{"content":"a"},"lm":1}\n'
    '{"meta":{"id":7},"of":{"content":"b"},"lm":2}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_other_names_are_set_as_the_message_says(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(TABLES[name])
    (setting,) = re.findall(r"write them as (.+?): correct", message_of(path))
    texts, columns = content(read_nbest(path, format=setting))
    assert (texts, columns["lm"]) == ([["a", "b"]], [1, 2])


PAIR = {"source": "mmlu", "question": "un chat", "response_A": "a", "response_B": "b"}
#: Records of data sets, of a list with the texts a and b.
DATA_SETS = {
    "judgebench": [PAIR | {"label": label} for label in ("A>B", "B>A")],
    "verdicts": [PAIR | {"judgment": f"It is [[{winner}]]."} for winner in "AB"],
    "ultrafeedback": [
        {"source": "evol", "instruction": "un chat", "models": ["x", "y"]}
        | {"completions": [{"response": text, "overall_score": 3} for text in "ab"]}
    ],
    "distilabel": [{"instruction": "un chat", "generations": ["a", "b"], "ratings": [5, 2]}],
    "helpsteer": [{"prompt": "un chat", "response": t, "helpfulness": 3} for t in "ab"],
    "unpaired": [{"prompt": "un chat", "completion": t, "label": t == "a"} for t in "ab"],
    "argilla": [{"prompt": "un chat", "chosen-response": "a", "rejected-response": "b"}],
    "other names": [{"prompt": "un chat", "better": "a", "worse": "b"}],
    "rows": [{"id": n, "prompt": "un chat", "response": t, "lm": 1} for n, t in enumerate("ab")],
}


@pytest.mark.parametrize("name", DATA_SETS)
@pytest.mark.filterwarnings("ignore:.*the column (source|id) is left out")
def test_columns_of_data_sets_are_proposed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json_lines(*DATA_SETS[name]))
    (setting,) = re.findall(r"write them as (.+?): ", message_of(path))
    lists = read_nbest(path, format=setting)
    assert lists.texts(0) == ["a", "b"]
    assert "un chat" in (lists.ids[0], (lists.sources or ("",))[0])
    if name in ("judgebench", "verdicts"):
        assert lists.sentence_extras["preferences"] == ([[0, 1]], [[1, 0]])


@pytest.mark.parametrize(
    "names", ["answer1 answer2", "answer_0 answer_1", "response_a response_b", "output_1 output_2"]
)
@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.csv"])
def test_two_answers_with_a_judgement(tmp_path: Path, name: str, names: str) -> None:
    path, (first, second) = tmp_path / name, names.split()
    row = {"question": "?", first: "a", second: "b", "better_one": second}
    table = f"{','.join(row)}\n{','.join(row.values())}\n"
    path.write_text(table if name.endswith("csv") else json_lines(row))
    message = message_of(path)
    assert "write them as" not in message
    (setting,) = re.findall(r"the winner: (\w+:\S+=NAME)", message)
    lists = read_nbest(path, format=setting.replace("NAME", "better_one"))
    assert lists.texts(0) == ["a", "b"]
    assert lists.sentence_extras["preferences"] == ([[1, 0]],)


def test_several_judgements_of_a_pair_with_an_id(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("id,response_a,response_b,winner\n7,x,y,A\n7,x,y,B\n")
    (setting,) = re.findall(r"exclude=\w+", message_of(path))
    lists = read_nbest(path, format=f"csv:{setting}")
    assert lists.sentence_extras["preferences"] == ([[0, 1]], [[1, 0]])


@pytest.mark.parametrize(
    "first",
    [
        "id,source,target,lm\n0,x,a,1\n0,x,b,2\n",  # the reference, or a translation
        "id,question,answer,lm\n0,x,a,1\n0,x,b,2\n",
        "index,translation,lm\n0,a,1\n1,b,2\n2,c,3\n",  # the number of a row
        "response_id,response,lm\n0,a,1\n1,b,2\n",
        "id,prompt_text,lm\n0,a,1\n0,a,2\n",
        "prompt,response,lm\nx,a,1\ny,b,2\n",
        "Segment ID,Translation quality,lm\n0,3,1\n0,4,2\n",
        "id,text_length,lm\n0,3,1\n0,4,2\n",
        "id,test,lm\n0,1,1\n0,0,2\n",
        '{"id": 0, "samples": 3, "lm": 1}\n',
        '{"id": 0, "outputs": [{"body": "a"}]}\n',
        '{"id": 0, "response": {"status": 200}}\n',
        '{"id": 0, "text_a,b": "a"}\n',  # no name in a setting
    ],
)
def test_what_would_not_make_lists_is_not_suggested(tmp_path: Path, first: str) -> None:
    path = tmp_path / "lists"
    path.write_text(first)
    assert not re.search(r"write them as|\w+:\w+=", message_of(path))


# --- settings ------------------------------------------------------------------------------------

NAMED = "group\tdescription\tlm\n7\ta\t1\n7\tb\t2\n"


@pytest.mark.parametrize(
    ("data", "part", "settings", "expected"),
    [
        ("utt-1 a cat\nutt-2 cat\n", "kaldi:score", "kaldi:score=false", [["a cat", "cat"]]),
        ("utt-1 3 a\nutt-2 4 b\n", "kaldi:score", "kaldi:score=true", [["a", "b"]]),
        ("a cat\ncat\n", "plain:list_size", "plain:list_size=2", [["a cat", "cat"]]),
        (NAMED, "tsv:id=NAME,text=NAME", "tsv:id=group,text=description", [["a", "b"]]),
        ('id\ttext\n0\ta\n0\t"b\tc"\n', "as tsv:quoted=true", "tsv:quoted=true", [["a", "b\tc"]]),
    ],
)
def test_settings(tmp_path: Path, data: str, part: str, settings: str, expected: Any) -> None:
    path = tmp_path / "lists"
    path.write_text(data)
    assert part in message_of(path)
    assert content(read_nbest(path, format=settings))[0] == expected


@pytest.mark.parametrize(
    ("format", "data"),
    [("csv", "id,hyp,lm\n0,a,1\n0,b,2\n"), ("jsonl", '{"seg": 0, "text": "a", "lm": 1}\n')],
)
def test_a_column_is_named_in_a_format_that_is_set(format: str, data: str) -> None:
    lines = data.splitlines()
    (setting,) = re.findall(r"name it in the format: (\S+)$", message_of(lines, format=format))
    assert read_nbest(lines, format=f"{format}:{setting}").texts(0)[0] == "a"


LINES = [f"{n} ||| t{n} ||| LM0= 1 ||| 1" for n in range(2)]


def test_the_first_id_is_set_as_the_message_says() -> None:
    (first,) = re.findall(r"set the first id to (\d+)", message_of(LINES, first_id=1))
    assert read_nbest(LINES, first_id=int(first)).ids == (0, 1)


# --- recipes of the documentation ----------------------------------------------------------------


def test_the_page_reads_samples_of_the_harness(tmp_path: Path) -> None:
    command = find_on_page(r"^(jq -sc .*\n.*)$", "how-to", "llm-samples.md")
    (tmp_path / "samples_gsm8k.jsonl").write_text(FILTERED)
    run_shell(command, tmp_path)
    lists = read_nbest(tmp_path / "samples.jsonl")
    assert content(lists) == SAMPLES
    assert lists.references == (("42",), ("42",))


@pytest.mark.filterwarnings("ignore:.*relevance is missing")
def test_the_page_joins_runs_and_judgements_of_trec(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text(RUN)
    (tmp_path / "qrels.txt").write_text("q1 0 d11 0\nq1 0 d13 2\nq2 0 21 1\n")
    run_shell(find_on_page(r"^  (awk [^`]*run.tsv)$", "lists.md"), tmp_path)
    columns = content(read_nbest(tmp_path / "run.tsv"))[1]
    np.testing.assert_array_equal(columns["relevance"], [0, np.nan, 2, 1, np.nan])


def test_the_page_splits_a_table_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "beams.tsv").write_text("a cat\t-0.5\ncat\t-1.5\nhello\t-0.25\nhi\t-2\n")
    run_shell(find_on_page(r"`(cut [^`]*)`", "lists.md"), tmp_path)
    lists = read_nbest(tmp_path / "texts", format=f"plain:list_size=2,scores={tmp_path}/score")
    assert content(lists) == LISTS


def test_the_page_puts_a_tab_after_the_utterance(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("u1 THE CAT\nu2 A DOG\n")
    run_shell(find_on_page(r"`(sed [^`]*text.tsv)`", "lists.md"), tmp_path)
    lists = read_nbest(["u2-1 -1.5 DOG", "u1-1 -2.5 CAT"], references=tmp_path / "text.tsv")
    assert lists.references == (("A DOG",), ("THE CAT",))
