"""What a message about a file suggests is done, and must then give the right lists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpa_ppl import BayesianRanker, BpaError, BpaWarning, NBest, read_nbest

Content = tuple[list[list[str]], dict[str, list[float]]]


def content(lists: NBest) -> Content:
    """Return the texts of each list, and the values of the columns of numbers."""
    texts = [lists.texts(s) for s in range(len(lists))]
    columns = {n: lists.features[:, k].tolist() for k, n in enumerate(lists.feature_names)}
    numbers = {n: of.tolist() for n, of in lists.extras.items() if isinstance(of, np.ndarray)}
    return texts, columns | numbers


def message_of(path: Path, **options: Any) -> str:
    with pytest.raises(BpaError) as caught:
        read_nbest(path, **options)
    return caught.value.message


def run_shell(command: str, folder: Path) -> None:
    """Run a command of a message, or skip the test where its program is missing."""
    program = command.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    subprocess.run(command, shell=True, check=True, cwd=folder)


def quoted_command(message: str) -> str:
    (command,) = re.findall(r"`(.*?)`", message)
    return command


# --- tables without a header ---------------------------------------------------------------------

BEAMS = "a cat\t-0.5\ncat\t-1.5\nhello\t-0.25\nhi\t-2\n"
LISTS: Content = (
    [["a cat", "cat"], ["hello", "hi"]],
    {"score": [-0.5, -1.5, -0.25, -2.0]},
)


@pytest.mark.parametrize("options", [{}, {"format": "tsv"}])
@pytest.mark.parametrize("name", ["beams.tsv", "beams.txt", "beams"])
def test_texts_and_scores_without_names_are_split(
    tmp_path: Path, name: str, options: dict[str, str]
) -> None:
    path = tmp_path / name
    path.write_text(BEAMS)
    message = message_of(path, **options)
    assert "has values, 'a cat, -0.5', not names" in message
    assert "plain:list_size=N,scores=FILE" in message
    run_shell(f"cut -f1 {name} > texts && cut -f2 {name} > score", tmp_path)
    lists = read_nbest(tmp_path / "texts", format=f"plain:list_size=2,scores={tmp_path}/score")
    assert content(lists) == LISTS


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ("0\ta cat\t-0.5\n0\tcat\t-1.5\n1\thello\t-0.25\n1\thi\t-2\n", "id\ttext\tscore"),
        ("-0.5\ts 1\ta cat\n-1.5\ts 1\tcat\n-0.25\ts2\thello\n-2\ts2\thi\n", "score\tid\ttext"),
        ("0,a cat,-0.5\n0,cat,-1.5\n1,hello,-0.25\n1,hi,-2\n", "id,text,score"),
        ("0;a cat;-0,5\n0;cat;-1,5\n1;hello;-0,25\n1;hi;-2\n", "id;text;score"),
        ("doc-1\ta cat\t-0.5\ndoc-1\tcat\t-1.5\nb\thello\t-0.25\nb\thi\t-2\n", "id\ttext\tscore"),
    ],
)
@pytest.mark.parametrize("name", ["rows", "rows.csv", "rows.tsv"])
@pytest.mark.filterwarnings("ignore:.*separated by ';'")
def test_a_line_with_names_is_put_before_values(
    tmp_path: Path, rows: str, header: str, name: str
) -> None:
    path = tmp_path / name
    path.write_text(rows)
    assert "put a line with their names before it, two of them id and text" in message_of(path)
    path.write_text(f"{header}\n{rows}")
    assert content(read_nbest(path)) == LISTS


def test_the_numbers_of_pandas_are_replaced_by_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = "0,a cat,-0.5\n0,cat,-1.5\n1,hello,-0.25\n1,hi,-2\n"
    path.write_text(f"0,1,2\n{rows}")
    assert "put a line with their names in its place" in message_of(path)
    path.write_text(f"id,text,score\n{rows}")
    assert content(read_nbest(path)) == LISTS


def test_names_that_are_numbers_are_names(tmp_path: Path) -> None:
    path = tmp_path / "years.csv"
    path.write_text("id,text,2023,2024\n0,a,1,2\n0,b,3,4\n")
    assert read_nbest(path).feature_names == ("2023", "2024")


def test_names_of_pairs_are_names() -> None:
    lists = read_nbest(["model_a,model_b,winner,7", "X,Y,model_a,1"])
    assert lists.texts(0) == ["X", "Y"]


def test_numbers_alone_are_for_the_estimator(tmp_path: Path) -> None:
    """As in the files of LightGBM: the gain first, without names."""
    path = tmp_path / "train.tsv"
    path.write_text("0\t0.5\t1.5\n1\t0.25\t3\n0\t1\t2\n1\t2\t0.5\n")
    assert "bpa_ppl.BayesianRanker" in message_of(path)
    table = np.loadtxt(path)
    ranker = BayesianRanker(sampler="map").fit(table[:, 1:], table[:, 0], qid=[0, 0, 1, 1])
    assert ranker.n_lists_ == 2


@pytest.mark.parametrize("name", ["rows.tsv", "rows"])
def test_texts_without_names_may_be_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("group\tdescription\tlm\n7\ta\t-1\n7\tb\t-2\n")
    assert "tsv:id=NAME,text=NAME" in message_of(path)
    lists = read_nbest(path, format="tsv:id=group,text=description")
    assert content(lists) == ([["a", "b"]], {"lm": [-1, -2]})


# --- files of other programs ---------------------------------------------------------------------

RUN = """q1 Q0 d11 1 13.5 bm25
q1 Q0 d12 2 12 bm25
q1 Q0 d13 3 9.5 bm25
q2 Q0 21 1 8 bm25
q2 Q0 22 2 7.5 bm25
"""
DOCUMENTS = [["d11", "d12", "d13"], ["21", "22"]]
SCORES = [13.5, 12.0, 9.5, 8.0, 7.5]


@pytest.mark.parametrize("name", ["RUN", "run.trec", "run.tsv"])
@pytest.mark.parametrize("separator", [" ", "\t"])
@pytest.mark.parametrize("column", ["Q0", "0"])
@pytest.mark.parametrize("tag", ["bm25", "run 1"])
def test_a_run_of_trec_becomes_a_table(
    tmp_path: Path, name: str, separator: str, column: str, tag: str
) -> None:
    path = tmp_path / name
    run = RUN.replace(" ", separator).replace("Q0", column).replace("bm25", tag)
    path.write_text(run)
    message = message_of(path)
    assert "run of TREC" in message
    run_shell(quoted_command(message).replace("RUN", name) + " > out.tsv", tmp_path)
    assert content(read_nbest(tmp_path / "out.tsv")) == (DOCUMENTS, {"score": SCORES})


NESTED = {"meta": {"id": 7}, "prompt": {"content": "?"}, "judge": 0.5}


@pytest.mark.parametrize("name", ["lists.jsonl", "lists.csv", "lists.tsv"])
def test_fields_of_objects_and_names_with_dots_are_proposed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "lists.jsonl":
        records = [{**NESTED, "message": {"content": text}} for text in "ab"]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        rows = ["meta.id,prompt.content,judge,message.content", "7,?,0.5,a", "7,?,0.5,b"]
        path.write_text("\n".join(rows).replace(",", "\t" if name == "lists.tsv" else ","))
    proposed = re.search(r"write them as (\S+):", message_of(path))
    assert proposed
    assert proposed[1].endswith(":id=meta.id,text=message.content")
    lists = content(read_nbest(path, format=proposed[1]))
    assert lists == ([["a", "b"]], {"judge": [0.5, 0.5]})


@pytest.mark.parametrize("name", ["lists.csv", "lists.txt"])
def test_cells_separated_by_bars(tmp_path: Path, name: str) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / name
    path.write_text("id|text|judge\n0|a, b|0.5\n0||0.25\n")
    message = message_of(path)
    assert quoted_command(message).startswith("pandas.read_csv(FILE, sep='|').to_csv(NEW, ")
    pandas.read_csv(path, sep="|").to_csv(tmp_path / "new.csv", index=False)
    assert content(read_nbest(tmp_path / "new.csv")) == ([["a, b", ""]], {"judge": [0.5, 0.25]})


@pytest.mark.parametrize("separator", [" ", "\t"])
@pytest.mark.filterwarnings("ignore:.*relevance is missing")
def test_judgements_of_trec_are_added_to_a_run(tmp_path: Path, separator: str) -> None:
    (tmp_path / "RUN").write_text(RUN)
    qrels = "q1 0 d11 0\nq1 0 d13 2\nq2 0 21 1\nq3 0 x 1\n"
    (tmp_path / "QRELS").write_text(qrels.replace(" ", separator))
    message = message_of(tmp_path / "QRELS")
    assert "judgements of TREC" in message
    run_shell(quoted_command(message) + " > out.tsv", tmp_path)
    texts, columns = content(read_nbest(tmp_path / "out.tsv"))
    assert (texts, columns["score"]) == (DOCUMENTS, SCORES)
    np.testing.assert_array_equal(columns["relevance"], [0, np.nan, 2, 1, np.nan])


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
    scope: dict[str, Any] = {"FILE": str(path), "load": load_svmlight_file}
    (reading,) = re.findall(r"X, y, qid = sklearn\.datasets\.(\w+\(.*?\))", message)
    (fitting,) = re.findall(r"bpa_ppl\.(BayesianRanker\(\)\.fit\(.*\))", message)
    exec(f"X, y, qid = {reading}", {"load_svmlight_file": load_svmlight_file} | scope, scope)
    assert scope["qid"].tolist() == [1, 1, 7, 7]
    ranker = eval(fitting, {"BayesianRanker": BayesianRanker}, scope)
    assert (ranker.n_lists_, ranker.n_features_in_) == (2, 2)


SAMPLE = (
    '{"doc_id":%d,"doc":{"question":"6*7?","answer":"42"},"target":"42","arguments":{"gen_args_0":'
    '{"arg_0":"Q: 6*7?","arg_1":{"until":["\\n"]}}},"resps":[["42","41","4 2"]],'
    '"filtered_resps":["42"],%s"doc_hash":"a","exact_match":1.0}\n'
)


@pytest.mark.parametrize("filters", [[""], ['"filter":"strict",', '"filter":"flexible",']])
def test_samples_of_the_harness_become_lists(tmp_path: Path, filters: list[str]) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(SAMPLE % (n, one) for one in filters for n in (0, 1)))
    message = message_of(path)
    assert "lm-evaluation-harness" in message
    assert "target" not in message
    run_shell(f"{quoted_command(message)} samples.jsonl > lists.jsonl", tmp_path)
    lists = read_nbest(tmp_path / "lists.jsonl")
    assert content(lists)[0] == [["42", "41", "4 2"]] * 2
    assert lists.ids == (0, 1)


@pytest.mark.parametrize(
    "export",
    [
        '[{"id":1,"data":{"first":"a"},"annotations":[{"id":10,"result":[]}]}]',
        '[\n  {\n    "id": 1,\n    "annotations": [\n      {"id": 10}]}]\n',
        '{"id":1,"data":{"first":"a"},"annotations":[]}\n{"id":2,"data":{},"annotations":[]}\n',
        '[{"id":1,"first":"a","better":"left","annotator":1,"annotation_id":10}]',
        "annotation_id,annotator,better,first,id,lead_time\n10,1,left,a,1,2.5\n",
    ],
)
def test_an_export_of_label_studio_is_named(tmp_path: Path, export: str) -> None:
    path = tmp_path / "export.json"
    path.write_text(export)
    assert "docs/how-to/judge.md" in message_of(path)


@pytest.mark.parametrize("suffix", ["", ".csv"])
def test_sizes_of_lists_are_repeated(tmp_path: Path, suffix: str) -> None:
    """As in the files .query of LightGBM and .group of XGBoost."""
    path = tmp_path / f"train.query{suffix}"
    path.write_text("2\n3\n")
    (call,) = re.findall(r"qid=(numpy\.\S+ \S+)", message := message_of(path))
    assert "BayesianRanker" in message
    qid = eval(call, {"numpy": np, "sizes": np.loadtxt(path, int)})
    assert qid.tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("header", ["qid,label,f1", "label,f1,f2", "y,a,b"])
def test_a_table_without_texts_is_for_the_estimator(tmp_path: Path, header: str) -> None:
    path = tmp_path / "train.csv"
    path.write_text(f"{header}\n0,0.5,1\n1,0.25,3\n")
    message = message_of(path)
    assert "it has no texts: use bpa_ppl.BayesianRanker" in message
    assert "put such a line before it" not in message


@pytest.mark.parametrize("indent", [None, 1])
def test_a_run_of_ranx_becomes_lists(tmp_path: Path, indent: int | None) -> None:
    run = {"q1": {"d1": 1.5, "d2": 0.5}, "q2": {"d2": 2, "d3": -1e-3}}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run, indent=indent))
    if indent:
        run_shell(f"{quoted_command(message_of(path))} run.json > new.json", tmp_path)
        path = tmp_path / "new.json"
    run_shell(f"{quoted_command(message_of(path))} {path.name} > lists.jsonl", tmp_path)
    lists = read_nbest(tmp_path / "lists.jsonl")
    expected = {"score": np.float32([1.5, 0.5, 2, -1e-3]).tolist()}
    assert content(lists) == ([["d1", "d2"], ["d2", "d3"]], expected)
    assert lists.ids == ("q1", "q2")


@pytest.mark.parametrize("orient", ["split", "index", "columns", "table"])
@pytest.mark.parametrize("ids", [[0, 0, 1, 1], list("xxyy")])
def test_a_table_that_pandas_wrote_as_one_object(
    tmp_path: Path, orient: Any, ids: list[Any]
) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "lists.json"
    table = pandas.DataFrame({"id": ids, "text": list("abcd"), "lm": [1.0, 2, 3, 4]})
    table.to_json(path, orient=orient)
    message = message_of(path)
    (arguments,) = re.findall(r"to_json\((.*?)\)", message)
    assert not re.search(r"jsonl:\w+=|rename", message)
    table.to_json(path, **eval(f"dict({arguments})"))
    assert content(read_nbest(path)) == ([["a", "b"], ["c", "d"]], {"lm": [1, 2, 3, 4]})


def test_records_of_objects_are_no_table(tmp_path: Path) -> None:
    path = tmp_path / "lists.jsonl"
    record = {"meta": {"id": 7}, "output": {"content": "a"}, "scores": {"lm": 1}}
    other = {**record, "output": {"content": "b"}}
    path.write_text(json.dumps(record) + "\n" + json.dumps(other))
    (setting,) = re.findall(r"write them as (.+?): correct", message_of(path))
    assert setting == "jsonl:id=meta.id,text=output.content"
    assert content(read_nbest(path, format=setting)) == ([["a", "b"]], {"scores.lm": [1, 1]})


def test_the_output_of_espnet_1_becomes_lists(tmp_path: Path) -> None:
    outputs = [{"name": f"target1[{n}]", "rec_text": t, "score": -n} for n, t in enumerate("ab")]
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"utts": {"u1": {"output": outputs}, "u2": {"output": outputs}}}))
    run_shell(f"{quoted_command(message_of(path))} data.json > lists.jsonl", tmp_path)
    lists = read_nbest(tmp_path / "lists.jsonl")
    assert content(lists) == ([["a", "b"]] * 2, {"score": [0, -1, 0, -1]})
    assert lists.ids == ("u1", "u2")


def test_tables_of_r(tmp_path: Path) -> None:
    """By write.table with its defaults, and separated by tabs."""
    path = tmp_path / "lists.txt"
    path.write_text('"id" "text" "lm"\n"1" 0 "a cat" 1\n"2" 0 "cat" 2\n')
    assert "write.csv(DATA, FILE, row.names=FALSE)" in message_of(path)
    path.write_text("id\ttext\tlm\n1\t0\ta\t1\n2\t0\tb\t2\n")
    assert "names of rows (R: row.names=FALSE)" in message_of(path)
    path.write_text('"id","text","lm"\n0,"a",1\n0,"b",2\n')
    assert content(read_nbest(path)) == TWO


@pytest.mark.parametrize("first", ["# exported in May", "Ratings of May,,", "a table"])
def test_a_title_before_the_header(tmp_path: Path, first: str) -> None:
    path = tmp_path / "lists.csv"
    path.write_text(f"{first}\nid,text,lm\n0,a,1\n0,b,2\n")
    assert "is in the second one: remove it" in message_of(path)
    path.write_text(path.read_text().partition("\n")[2])
    assert content(read_nbest(path)) == TWO


def test_ids_that_a_spreadsheet_rounded(tmp_path: Path) -> None:
    path = tmp_path / "lists.csv"
    path.write_text("id,text,lm\n1.23457E+12,a,1\n1.23457E+12,b,2\n")
    assert "rounded by a spreadsheet" in message_of(path)
    path.write_text("id,text,lm\n1234567890123,a,1\n1234567890124,b,2\n")
    assert len(read_nbest(path)) == 2


@pytest.mark.parametrize(
    "names", [("answer1", "answer2"), ("response_a", "response_b"), ("output_1", "output_2")]
)
@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.csv"])
def test_two_answers_with_a_judgement(tmp_path: Path, name: str, names: tuple[str, str]) -> None:
    path = tmp_path / name
    row = {"question": "?", names[0]: "a", names[1]: "b", "better_one": names[1]}
    text = (
        json.dumps(row) if name.endswith("jsonl") else f"{','.join(row)}\n{','.join(row.values())}"
    )
    path.write_text(text)
    (setting,) = re.findall(r"the winner: (\w+:\S+=NAME)", message_of(path))
    lists = read_nbest(path, format=setting.replace("NAME", "better_one"))
    assert lists.texts(0) == ["a", "b"]
    assert lists.sentence_extras["preferences"] == ([[1, 0]],)


def test_several_judgements_of_a_pair_with_an_id(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("id,response_a,response_b,winner\n7,x,y,A\n7,x,y,B\n")
    (setting,) = re.findall(r"exclude=\w+", message_of(path))
    lists = read_nbest(path, format=f"csv:{setting}")
    assert lists.sentence_extras["preferences"] == ([[0, 1]], [[1, 0]])


# --- the output of fairseq without ids -----------------------------------------------------------

HUB = """S\tun chat
H\t-0.15000000596046448\ta cat
P\t-0.1000 -0.2000
H\t-0.42\tcat
P\t-0.4000 -0.4400
S\tbonjour
H\t-0.2\thello
P\t-0.2000
H\t-0.3\thi
P\t-0.3000
"""


@pytest.mark.parametrize(
    "prefix", ["", "2026-05-05 10:00:00 | INFO | fairseq.hub_utils | ", "INFO:fairseq.hub_utils:"]
)
@pytest.mark.parametrize("first", [0, 1])
def test_the_hub_counts_sentences(tmp_path: Path, prefix: str, first: int) -> None:
    path = tmp_path / "hub.txt"
    path.write_text("".join(prefix + line for line in HUB.splitlines(keepends=True)))
    lists = read_nbest(path, first_id=first)
    assert (lists.ids, lists.sources) == ((first, first + 1), ("un chat", "bonjour"))
    texts, columns = content(lists)
    assert texts == [["a cat", "cat"], ["hello", "hi"]]
    np.testing.assert_allclose(columns["score"], [-0.15, -0.42, -0.2, -0.3])
    np.testing.assert_allclose(columns["logprob.sum"], [-0.3, -0.84, -0.2, -0.3])


def test_many_sentences_of_the_hub_are_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "hub.txt"
    path.write_text("".join(f"S\ts{n}\nH\t-{n}.5\tt{n}\nA\t0-0\n" for n in range(40)))
    lists = read_nbest(path)
    assert lists.sources == tuple(f"s{n}" for n in range(40))
    assert lists.features[:, 0].tolist() == [-n - 0.5 for n in range(40)]
    assert set(lists.extras["alignment"]) == {"0-0"}


def test_numbered_lines_are_no_lines_of_the_hub(tmp_path: Path) -> None:
    """A line of the log that begins with a letter and a tab is left out, as before."""
    path = tmp_path / "out.txt"
    path.write_text("S-0\tun chat\nH-0\t-0.5\ta cat\nS\tsomething\nH\t-1\telse\n")
    assert content(read_nbest(path))[0] == [["a cat"]]
    path.write_text("H\t-1\telse\nS-0\tun chat\nH-0\t-0.5\ta cat\n")
    assert content(read_nbest(path, format="fairseq"))[0] == [["a cat"]]


# --- columns under other names -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "texts"),
    [
        ("seg,hyp,lm\n0,a,1\n0,b,2\n", [["a", "b"]]),
        ("prompt_id,response_id,response,lm\n0,1,a,1\n0,2,b,2\n", [["a", "b"]]),
        ("question_id,model_id,output_text,lm\n0,1,a,1\n0,2,b,2\n", [["a", "b"]]),
        ("ID\tgenerated_text\tlm\n0\ta\t1\n0\tb\t2\n", [["a", "b"]]),
        ('{"idx": 3, "hyp": "a", "lm": 1}\n{"idx": 3, "hyp": "b", "lm": 2}\n', [["a", "b"]]),
        ('{"id": 0, "outputs": ["a", "b"], "lm": [1, 2]}\n', [["a", "b"]]),
        ("qid,docno,lm\n0,a,1\n0,b,2\n", [["a", "b"]]),
        ("src\tmt\tlm\nx\ta\t1\nx\tb\t2\n", [["a", "b"]]),
        (
            '{"prompt": "x", "response": "a", "lm": 1}\n'
            '{"prompt": "x", "response": "b", "lm": 2}\n',
            [["a", "b"]],
        ),
        ("Segment ID,MT output,lm\n0,a,1\n0,b,2\n", [["a", "b"]]),
        ("Sentence,Source text,Translation text,lm\n0,x,a,1\n0,x,b,2\n", [["a", "b"]]),
    ],
)
def test_other_names_are_set_as_the_message_says(
    tmp_path: Path, first: str, texts: list[list[str]]
) -> None:
    path = tmp_path / "lists"
    path.write_text(first)
    (setting,) = re.findall(r"write them as (.+?): correct", message_of(path))
    found, columns = content(read_nbest(path, format=setting))
    assert (found, columns["lm"]) == (texts, [1, 2])


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


# --- data sets of preferences and of judgements --------------------------------------------------

PROMPTED = {"source": "lmsys", "prompt": "un chat"}
#: Rows, the settings of the format, the texts of the first list, and its source or id.
NAMED: dict[str, tuple[list[dict[str, Any]], str, list[str], str]] = {
    "judgebench": (
        [
            {
                "pair_id": "u1",
                "source": "mmlu",
                "question": "un chat",
                "response_A": "a cat",
                "response_B": "cat",
                "label": label,
            }
            for label in ("A>B", "B>A")
        ],
        "jsonl:chosen=response_A,rejected=response_B,winner=label,source=question",
        ["a cat", "cat"],
        "un chat",
    ),
    "ultrafeedback": (
        [
            {
                "source": "evol",
                "instruction": "un chat",
                "models": ["x", "y"],
                "completions": [
                    {"model": "x", "response": "a cat", "overall_score": 8.5},
                    {"model": "y", "response": "cat", "overall_score": 3},
                ],
            }
        ],
        "jsonl:candidates=completions,source=instruction,text=response",
        ["a cat", "cat"],
        "un chat",
    ),
    "distilabel": (
        [{"instruction": "un chat", "generations": ["a cat", "cat"], "ratings": [5, 2]}],
        "jsonl:candidates=generations,source=instruction",
        ["a cat", "cat"],
        "un chat",
    ),
    "helpsteer": (
        [
            {"prompt": "un chat", "response": text, "helpfulness": n}
            for n, text in enumerate(("a cat", "cat"))
        ],
        "jsonl:id=prompt,text=response",
        ["a cat", "cat"],
        "un chat",
    ),
    "unpaired": (
        [
            {"prompt": "un chat", "completion": text, "label": text == "a cat"}
            for text in ("a cat", "cat")
        ],
        "jsonl:id=prompt,text=completion",
        ["a cat", "cat"],
        "un chat",
    ),
    "argilla": (
        [PROMPTED | {"chosen-response": "a cat", "rejected-response": "cat"}],
        "jsonl:chosen=chosen-response,rejected=rejected-response,source=prompt",
        ["a cat", "cat"],
        "un chat",
    ),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.filterwarnings("ignore:.*the column source is left out")
def test_columns_of_data_sets_are_proposed(tmp_path: Path, name: str) -> None:
    rows, settings, texts, prompt = NAMED[name]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert f"write them as {settings}: " in message_of(path)
    lists = read_nbest(path, format=settings)
    assert lists.texts(0) == texts
    assert prompt in (lists.ids[0], (lists.sources or ("",))[0])
    if name == "judgebench":
        assert lists.sentence_extras["preferences"] == ([[0, 1]], [[1, 0]])


def test_answers_of_unknown_preference_have_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"question": "q", "answer_0": "a", "score_0": 1, "answer_1": "b"}\n')
    message = message_of(path)
    assert "write them as" not in message
    settings = "jsonl:chosen=answer_0,rejected=answer_1,winner=NAME"
    assert f"if one of two answers is preferred, name them, and the winner: {settings}" in message


def test_ranked_answers_become_rankings(tmp_path: Path) -> None:
    """As in Nectar."""
    answers = [{"answer": t, "model": t.upper(), "rank": n} for t, n in (("b", 2.0), ("a", 1.0))]
    row = {"prompt": "q", "answers": answers, "turns": 1, "source": ["lmsys"]}
    path = tmp_path / "rows.jsonl"
    path.write_text(2 * (json.dumps(row) + "\n"))
    run_shell(f"{quoted_command(message_of(path))} rows.jsonl > lists.jsonl", tmp_path)
    lists = read_nbest(tmp_path / "lists.jsonl")
    assert (lists.texts(0), lists.sources) == (["b", "a"], ("q", "q"))
    assert lists.sentence_extras["rankings"] == ([[1, 0]], [[1, 0]])
    assert lists.extras["model"] == ("B", "A") * 2


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.filterwarnings("ignore:.*no log-probabilities")
def test_responses_with_annotations_are_no_export(tmp_path: Path, indent: int | None) -> None:
    message = {"role": "assistant", "content": "a", "annotations": []}
    response = {"id": "1", "choices": [{"message": message, "finish_reason": "stop"}]}
    path = tmp_path / "response.json"
    path.write_text(json.dumps([response, response], indent=indent))
    assert "`jq -c '.[]'`" in (shown := message_of(path))
    assert "Label Studio" not in shown
    run_shell("jq -c '.[]' response.json > lists.jsonl", tmp_path)
    assert read_nbest(tmp_path / "lists.jsonl").texts(1) == ["a"]


# --- all other commands of the readers -----------------------------------------------------------

ONE = '{"id": 0, "candidates": [{"text": "a", "lm": 1}, {"text": "b", "lm": 2}]}'
TWO: Content = ([["a", "b"]], {"lm": [1, 2]})


@pytest.mark.parametrize(
    ("data", "command"),
    [
        (b"id,text,lm\r0,a,1\r0,b,2\r", "tr '\\r' '\\n'"),
        (f"[{ONE}]".encode(), "jq -c '.[]'"),
        (f"[\n{ONE}\n]\n".encode(), "jq -c '.[]'"),
        (ONE.replace("{", "{\n").encode(), "jq -c ."),
    ],
)
def test_a_command_converts_the_file(tmp_path: Path, data: bytes, command: str) -> None:
    (tmp_path / "lists").write_bytes(data)
    assert quoted_command(message_of(tmp_path / "lists")) == command
    run_shell(f"{command} < lists > out", tmp_path)
    assert content(read_nbest(tmp_path / "out")) == TWO


@pytest.mark.parametrize(
    ("data", "settings", "expected"),
    [
        ("utt-1 a cat\nutt-2 cat\n", "kaldi:score=false", ([["a cat", "cat"]], {})),
        (
            "utt-1 3 a cat\nutt-2 4 cat\n",
            "kaldi:score=true",
            ([["a cat", "cat"]], {"score": [3, 4]}),
        ),
        ("a cat\ncat\n", "plain:list_size=2", ([["a cat", "cat"]], {})),
    ],
)
def test_settings_of_a_format(tmp_path: Path, data: str, settings: str, expected: Content) -> None:
    path = tmp_path / "lists"
    path.write_text(data)
    assert settings.partition("=")[0] in message_of(path)
    assert content(read_nbest(path, format=settings)) == expected


@pytest.mark.parametrize(
    ("first", "change"),
    [
        ('"sep=,"\nid,text,lm\n', lambda text: text.partition("\n")[2]),
        ("\nid,text,lm\n", lambda text: text.removeprefix("\n")),
    ],
)
def test_a_line_is_removed(tmp_path: Path, first: str, change: Callable[[str], str]) -> None:
    path, rows = tmp_path / "rows.csv", "0,a,1\n0,b,2\n"
    path.write_text(first + rows)
    assert "remove it" in message_of(path)
    path.write_text(change(first + rows))
    assert content(read_nbest(path)) == TWO


def test_cells_that_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text('id\ttext\tlm\n0\ta\t1\n0\t"b\tc"\t2\n')
    (setting,) = re.findall(r"as (tsv:\S+)", message_of(path))
    assert content(read_nbest(path, format=setting)) == ([["a", "b\tc"]], {"lm": [1, 2]})


def test_lines_that_are_not_adjacent_are_sorted(tmp_path: Path) -> None:
    path = tmp_path / "lists"
    path.write_text(
        "1 ||| c ||| LM0= 1 ||| 1\n0 ||| a ||| LM0= 2 ||| 1\n1 ||| d ||| LM0= 3 ||| 1\n"
    )
    message = message_of(path)
    run_shell(f"{quoted_command(message)} lists > out", tmp_path)
    lists = read_nbest(tmp_path / "out")
    assert content(lists) == ([["a"], ["c", "d"]], {"LM0": [2, 1, 3]})


@pytest.mark.parametrize(
    "data", [b"PK\x03\x04x", b"{'id': 0}\n", b"data: {}\n", "id\n".encode("utf-16")]
)
def test_no_command_where_none_is_known(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "lists"
    path.write_bytes(data)
    assert "`" not in message_of(path)


# --- recipes of the documentation ----------------------------------------------------------------

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_reads_samples_of_the_harness(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "llm-samples.md").read_text("utf-8")
    (command,) = re.findall(r"^(jq -sc .*\n.*)$", page, re.MULTILINE)
    lines = [SAMPLE % (n, one) for one in ('"filter":"a",', '"filter":"b",') for n in (0, 1)]
    (tmp_path / "samples_gsm8k.jsonl").write_text("".join(lines))
    run_shell(command, tmp_path)
    lists = read_nbest(tmp_path / "samples.jsonl")
    assert content(lists)[0] == [["42", "41", "4 2"]] * 2
    assert lists.references == (("42",), ("42",))


@pytest.mark.filterwarnings("ignore:.*relevance is missing")
def test_the_page_joins_runs_and_judgements_of_trec(tmp_path: Path) -> None:
    page = (DOCS / "lists.md").read_text("utf-8")
    (command,) = re.findall(r"^  (awk [^`]*run.tsv)$", page, re.MULTILINE)
    (tmp_path / "run.txt").write_text(RUN)
    (tmp_path / "qrels.txt").write_text("q1 0 d11 0\nq1 0 d13 2\nq2 0 21 1\n")
    run_shell(command, tmp_path)
    columns = content(read_nbest(tmp_path / "run.tsv"))[1]
    np.testing.assert_array_equal(columns["relevance"], [0, np.nan, 2, 1, np.nan])


def test_the_page_splits_a_table_without_a_header(tmp_path: Path) -> None:
    page = (DOCS / "lists.md").read_text("utf-8")
    (command,) = re.findall(r"`(cut [^`]*)`", page)
    (tmp_path / "beams.tsv").write_text(BEAMS)
    run_shell(command, tmp_path)
    lists = read_nbest(tmp_path / "texts", format=f"plain:list_size=2,scores={tmp_path}/score")
    assert content(lists) == LISTS


# --- references, ids and other settings ----------------------------------------------------------

LINES = [f"{n} ||| t{n} ||| LM0= 1 ||| 1" for n in range(2)]


def references_error(path: Path) -> str:
    with pytest.raises(BpaError) as caught:
        read_nbest(LINES, references=path)
    return caught.value.message


@pytest.mark.parametrize(
    ("before", "command", "expected"),
    [
        ("0\ta\tnews\n1\tb\tnews\n", "cut -f1,2", (("a",), ("b",))),
        ("a\tb\tc\nd\te\tf\n", "tr '\\t' ' '", (("a b c",), ("d e f",))),
        ('"a, b"\n"c \\"d\\""\n', "jq -r .", (("a, b",), ('c "d"',))),
    ],
)
def test_a_command_converts_references(
    tmp_path: Path, before: str, command: str, expected: tuple[Any, ...]
) -> None:
    (tmp_path / "ref").write_text(before)
    assert f"`{command}`" in references_error(tmp_path / "ref")
    run_shell(f"{command} < ref > out", tmp_path)
    assert read_nbest(LINES, references=tmp_path / "out").references == expected


def test_quoted_references_that_are_meant(tmp_path: Path) -> None:
    path = tmp_path / "ref"
    path.write_text('"Yes."\n"No."\n')
    (line,) = re.findall(r'write lines like (\{.*"\})', references_error(path))
    path.write_text(line + "\n" + line.replace("0", "1").replace("Yes", "No"))
    assert read_nbest(LINES, references=path).references == (('"Yes."',), ('"No."',))


def test_ids_without_a_tab_get_one(tmp_path: Path) -> None:
    path = tmp_path / "ref"
    path.write_text("0 the cat\n1 a dog\n")
    assert "(lines `id<TAB>text`)" in references_error(path)
    path.write_text("0\tthe cat\n1\ta dog\n")
    assert read_nbest(LINES, references=path).references == (("the cat",), ("a dog",))


def test_the_first_id_is_set_as_the_message_says() -> None:
    with pytest.raises(BpaError) as caught:
        read_nbest(LINES, first_id=1)
    (first,) = re.findall(r"set the first id to (\d+)", caught.value.message)
    assert read_nbest(LINES, first_id=int(first)).ids == (0, 1)


@pytest.mark.parametrize(
    ("format", "data"),
    [("csv", "id,hyp,lm\n0,a,1\n0,b,2\n"), ("jsonl", '{"seg": 0, "text": "a", "lm": 1}\n')],
)
def test_a_column_is_named_in_a_format_that_is_set(tmp_path: Path, format: str, data: str) -> None:
    path = tmp_path / "lists"
    path.write_text(data)
    (setting,) = re.findall(r"name it in the format: (\S+)$", message_of(path, format=format))
    assert read_nbest(path, format=f"{format}:{setting}").texts(0)[0] == "a"


@pytest.mark.filterwarnings("ignore:.*if these are words, set")
def test_numbers_that_may_be_words_or_scores() -> None:
    lines = ["u-1 -1 ONE", "u-2 -2 TWO", "u-3 -3 FOUR"]
    assert read_nbest(lines, format="kaldi:score=false").texts(0)[0] == "-1 ONE"
    assert read_nbest(lines, format="kaldi:score=true").texts(0)[0] == "ONE"


def test_bad_numbers_are_dropped_as_the_message_says() -> None:
    lines = ["id,text,lm", "0,a,1", "0,b,x"]
    with pytest.raises(BpaError, match=r"\(bad: drop\)"):
        read_nbest(lines)
    with pytest.warns(BpaWarning, match="1 candidate dropped"):
        assert read_nbest(lines, bad="drop").texts(0) == ["a"]


def test_the_page_puts_a_tab_after_the_utterance(tmp_path: Path) -> None:
    page = (DOCS / "lists.md").read_text("utf-8")
    (command,) = re.findall(r"`(sed [^`]*text.tsv)`", page)
    (tmp_path / "text").write_text("u1 THE CAT\nu2 A DOG\n")
    run_shell(command, tmp_path)
    lists = read_nbest(["u2-1 -1.5 DOG", "u1-1 -2.5 CAT"], references=tmp_path / "text.tsv")
    assert lists.references == (("A DOG",), ("THE CAT",))
