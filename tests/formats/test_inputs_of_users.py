"""Files as users of other tools bring them: right, or one error whose advice works.

For each file: the command as first typed and what comes; then the command after the advice, or a
converter or a recipe of the page about files of other tools; and the lists that it gives.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.command_line import refused, run, succeed

from bpa_ppl import DataError, NBest, describe, from_records, read_nbest
from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.lists.columns import read_column
from bpa_ppl.posterior.files import read_weight_draws

FIELD = Path(__file__).resolve().parent / "field"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "extras" / "other-tools.md"
pytestmark = pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
MODE = ("--weights=none", "--sampler=map", "--prior=isotropic:scale=0.3,mean=0", "-q", "-o", "p.nc")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def change(file: str, **words: str) -> str:
    """Write a file with other words in place of some, as the advice says; return its name."""
    path = FIELD / file
    text = path.read_text("utf-8")
    for old, new in words.items():
        text = text.replace(old, new)
    Path(path.name).write_text(text, "utf-8")
    return path.name


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# --- tables: `bpa adapt` shows the columns of numbers, and the option to type --------------------


class Adapted(NamedTuple):
    """A file to which is adapted.

    Attributes:
        file: its name.
        gain: the column that is the gain.
        numbers: the columns of numbers that the error proposes as features; none if it is right.
        chosen: those that the user chooses of these.
        values: of the chosen features of the first candidate.
    """

    file: str
    gain: str
    numbers: list[str]
    chosen: list[str]
    values: list[float]


COUNTS = ["score_rank", "timestamp", "seed", "system_id", "worker_id"]
ADAPTED = [
    Adapted("21/selfconsistency.jsonl", "correct", ["logprob"], ["logprob"], [-1.5]),
    Adapted("44/ratings.csv", "rating", ["judge_a"], ["judge_a"], [0.7]),
    Adapted("58/offset.csv", "s", ["row"], ["row"], [0]),
    Adapted("58/unnamed.csv", "human", ["Unnamed: 0", "judge_a"], ["judge_a"], [0.7]),
    Adapted("59/null.jsonl", "judge_b", ["judge_a"], ["judge_a"], [0.5]),
    Adapted("60/bool.jsonl", "correct", ["s"], ["s"], [0.1]),
    Adapted("61/identifiers.csv", "-rank", ["judge_a", *COUNTS], ["judge_a"], [0.7]),
]


@pytest.mark.parametrize(
    "case",
    [*ADAPTED[:2], *(pytest.param(of, marks=pytest.mark.slow) for of in ADAPTED[2:])],
    ids=lambda case: case.file,
)
def test_features_are_named_as_the_error_says(case: Adapted) -> None:
    path = FIELD / case.file
    first = ["adapt", path, f"--gain={case.gain}", *MODE]
    error = refused(*first, mention="no features are named: the columns of numbers are ")
    typed = shlex.split(re.findall(r"as in (--features .*), or features=", error)[0])
    assert typed == ["--features", *case.numbers]
    succeed(*first, *typed)  # word for word
    if case.chosen != case.numbers:
        succeed(*first, "--features", *case.chosen)
    assert list(read_weight_draws("p.nc").features) == case.chosen
    lists = read_nbest(path, features=case.chosen)
    assert lists.features[0].tolist() == case.values
    assert np.isfinite(read_column(lists, case.gain.removeprefix("-"))).any()


def test_a_table_of_one_column_of_numbers() -> None:
    """It is the gain, so that features can only be those of the texts."""
    path = FIELD / "51" / "table.csv"
    refused("adapt", path, "--gain", "s", *MODE, mention="(add: consensus, length)")
    done = run("adapt", path, "--gain", "s", "--add", "length", *MODE)
    assert (done.code, "no feature differs between" in done.err) == (2, True)
    assert read_column(read_nbest(path), "s").tolist()[:2] == [1, 0.5]


#: Words, percentages and commas in a column of the gain or a feature: the feature and the gain, the
#: line and the value that the error shows, and what the user then writes.
STRICT: list[tuple[str, str, str, int, str, dict[str, str]]] = [
    ("43/nan.tsv", "metric", "mqm", 3, "mqm is 'nan'", {"nan": ""}),
    ("43/none.tsv", "metric", "mqm", 3, "mqm is 'None'", {"None": ""}),
    ("43/null.tsv", "metric", "mqm", 3, "mqm is 'null'", {"null": ""}),
    ("43/nonefirst.tsv", "metric", "mqm", 2, "mqm is 'None'", {"None": ""}),
    ("60/bool.csv", "judge_a", "correct", 2, "correct is 'True'", {"True": "1", "False": "0"}),
    ("60/comma.tsv", "judge_a", "human", 2, "judge_a is '0,7'", {",": "."}),
    ("60/excel.csv", "judge_a", "human", 2, "judge_a is '0,7'", {",": "."}),
    ("60/percent.csv", "judge_a", "human", 2, "judge_a is '70%'", {"%": ""}),
]


@pytest.mark.parametrize(("file", "feature", "gain", "line", "shown", "words"), STRICT)
def test_values_are_numbers(
    file: str, feature: str, gain: str, line: int, shown: str, words: dict[str, str]
) -> None:
    options = ["--features", feature, "--gain", gain, *MODE]
    mention = f"{shown}, not a number: write numbers, and nothing where there is none"
    error = refused("adapt", FIELD / file, *options, mention=mention)
    assert error.startswith(f"error: {FIELD / file}:{line}: ")
    name = change(file, **words)
    lists = read_nbest(name, features=feature)
    expected = pd.read_csv(name, sep=None, engine="python")
    np.testing.assert_array_equal(lists.features[:, 0], expected[feature])
    np.testing.assert_array_equal(read_column(lists, gain), expected[gain])
    if file != "43/nonefirst.tsv":  # which has one judgement
        succeed("adapt", name, *options)


def test_utf16_is_converted_as_the_error_says() -> None:
    path = FIELD / "60" / "utf16.tsv"
    error = refused("lists", path, mention="text in UTF-16: convert it to UTF-8, `iconv -f UTF-16")
    assert f"{path}:1: " in error
    text = path.read_bytes().decode("utf-16").replace(",", ".")
    lists = read_nbest([text], features="judge_a", format="tsv")
    assert lists.features.ravel().tolist() == [0.7, 0.6, 0.2, 0.4]


def test_judgements_of_raters_become_means() -> None:
    path = FIELD / "44" / "ratings.csv"
    assert len(read_nbest(path, features="judge_a").features) == 10  # as in the file
    rows = pd.read_csv(path).groupby(["id", "text"], sort=False)
    lists = from_records(rows.mean(numeric_only=True).reset_index(), features="judge_a")
    assert read_column(lists, "rating") == pytest.approx([11 / 3, 3, 4.5, 1.5])


# --- files that are read at once, or with what the error names -----------------------------------


class Read(NamedTuple):
    """A file that is read.

    Attributes:
        file: its name.
        shown: what the error of `bpa lists FILE` shows; empty if there is none.
        options: of `read_nbest`, after the advice.
        texts: of the first list.
        values: of columns of the first candidate, by name.
        sources: of all lists, None if there are none.
    """

    file: str
    shown: str
    options: dict[str, Any]
    texts: list[str]
    values: dict[str, float]
    sources: tuple[str, ...] | None = None


OF_TOKENS = ["logprob.sum", "logprob.mean", "logprob.min", "length"]
EMPTY = ["", "Even clerks are affected .", "Clerks are affected too ."]
CAPITALS = ("Capital of Italy?", "Capital of Spain?")
READ = [
    Read("02/hub.txt", "", {}, ["a cat", "cat"], {"score": -0.15}, ("un chat", "bonjour")),
    Read("06/marian.nbest", "", {}, EMPTY, {"F0": -1.18324}),
    Read("37/token_lists.jsonl", "", {}, ["a cat", "the cat"], {}, ("q", "r")),
    Read(
        "51/nested_names.jsonl",
        "",
        {"format": "jsonl:id=meta.id,source=doc.q,reference=ref.a", "features": "s"},
        ["x", "y"],
        {"s": 0.1},
        ("what", "who"),
    ),
    Read(
        "51/nested_text.jsonl",
        "no column text (the columns are 'id, message.content, s'): name the text in the format",
        {"format": "jsonl:text=message.content", "features": "s"},
        ["x", "y"],
        {"s": 1},
    ),
    Read(
        "13/batch.jsonl",
        "or leave out such answers (--bad drop; in Python bad='drop')",
        {"bad": "drop"},
        ["a cat", "the cat"],
        {"count": 1},
    ),
    Read(
        "15/reasoning.jsonl",
        f"in Python exclude={OF_TOKENS})",
        {"exclude": OF_TOKENS},
        ["42", "41"],
        {"count": 1},
    ),
    Read(
        "46/sglang_null.jsonl",
        f"(--missing {' --missing '.join(f'{name}=VALUE' for name in OF_TOKENS)}; in Python ",
        {"missing": dict.fromkeys(OF_TOKENS, -9)},
        ["a cat", "the cat"],
        {"logprob.sum": -0.3, "logprob.mean": -0.15},
    ),
    Read(
        "90/vosk.jsonl",
        "(the fields are 'alternatives'): name them in the format, jsonl:candidates=NAME",
        {"format": "jsonl:candidates=alternatives", "features": "confidence"},
        ["i'm a guy", "im a guide", "i am a guy"],
        {"confidence": 297.04},
    ),
    Read("78/simpo.jsonl", "", {}, ["hello", "yo"], {}, ("Say hi", "Say bye")),
    Read("99/rag.jsonl", "", {}, ["Rome", "Milan"], {}, CAPITALS),
]


@pytest.mark.parametrize("case", READ, ids=lambda case: case.file)
def test_files_are_read_with_what_the_error_names(case: Read) -> None:
    path = FIELD / case.file
    done = run("lists", path)
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert (done.code, len(errors)) == ((2, 1) if case.shown else (0, 0))
    assert case.shown in done.err
    lists = read_nbest(path, **case.options)
    assert (lists.texts(0), lists.sources) == (case.texts, case.sources)
    for name, value in case.values.items():
        assert read_column(lists, name)[0] == pytest.approx(value)
    if "features" in case.options:
        assert lists.feature_names == (case.options["features"],)
    assert not {*lists.feature_names} & {*case.options.get("exclude", ())}


def test_contexts_of_a_question_are_no_columns_of_its_candidates() -> None:
    path = FIELD / "99" / "rag.jsonl"
    with pytest.raises(
        DataError, match=r"no column contexts\.score: there are no columns of number"
    ):
        read_nbest(path, features="contexts.score")
    lists = read_nbest(path, features="judge")
    assert lists.features.ravel().tolist() == [0.9, 0.1, 0.8, 0.2]


# --- files of other programs: a converter --------------------------------------------------------


class Converted(NamedTuple):
    """A file for a converter.

    Attributes:
        words: of `bpa convert`: the kind, the file, and options.
        shown: what the error of `bpa lists FILE` shows.
        texts: of all lists.
        columns: features and judgements, by name.
    """

    words: str
    shown: str
    texts: list[list[str]]
    columns: dict[str, list[float]]


FRUITS = [["apple", "a carrot"], ["yo", "hello"]]
DOCUMENTS = [["d11", "d12", "d13"], ["d21", "d22"]]
RANKED = [["Apple.", "Carrot.", "Stone.", "Potato."], ["Hi!", "No.", "Bye.", "Why?"]]
OF_RUN = [13.52, 12.01, 9.5, 8, 7.5]
NO_FORMAT, OF_ARRAY = "is of no known format", "write an object on each line, `jq -c '.[]'"
CONVERTED = [
    Converted("alpacaeval 10/annotations.json --bad drop", OF_ARRAY, FRUITS, {}),
    Converted("alpacaeval 10/annotations.jsonl --bad drop", "'instruction, output_1", FRUITS, {}),
    Converted(
        "responses 14/responses.jsonl --prompt-id (.*)-s",
        "no field choices",
        [["a cat", "the cat"]],
        {"count": [1, 1]},
    ),
    Converted("ollama 18/ollama.jsonl", "'model, created_at", [["a cat"], ["the cat"]], {}),
    Converted(
        "lmeval 20/samples.jsonl", "'doc_id, doc.", [["42", "41", "42"], ["2", "3", "2"]], {}
    ),
    Converted(
        "trec 32/run.txt --qrels 32/qrels.txt",
        NO_FORMAT,
        DOCUMENTS,
        {"score": OF_RUN, "relevance": [0, np.nan, 2, 1, 0]},
    ),
    Converted("trec 32/run.trec", NO_FORMAT, DOCUMENTS, {"score": OF_RUN}),
    Converted(
        "llamacpp 40/llamacpp.jsonl", "'index, content", [["a cat"]], {"logprob.sum": [-0.3]}
    ),
    Converted(
        "ranked 41/rewardbench2.jsonl",
        "chosen is a list of texts: convert such rows with `bpa convert ranked`",
        RANKED,
        {},
    ),
    Converted("labelstudio 42/export.json", OF_ARRAY, [["a", "b"], ["c", "d"]], {}),
    Converted(
        "wmt 82/full.seg.score",
        NO_FORMAT,
        [["sysA", "sysB"], ["sysA", "sysB"]],
        {"score": [0.81, 0.79, 0.44, 0.52]},
    ),
    Converted("icefall 93/recogs.txt", NO_FORMAT, [["A CAT SAD"], ["THE DOG"]], {}),
]


@pytest.mark.parametrize("case", CONVERTED, ids=lambda case: case.words)
def test_files_are_converted(case: Converted) -> None:
    kind, file, *options = case.words.split()
    error = refused("lists", FIELD / file, mention=case.shown)
    assert "`bpa convert " in error
    assert f"\n| `{kind}` |" in PAGE.read_text("utf-8")
    if "drop" in options:
        refused(
            "convert",
            kind,
            FIELD / file,
            "-o",
            "lists.jsonl",
            mention="(--bad drop; in Python bad='drop')",
        )
    words = [FIELD / word if (FIELD / word).is_file() else word for word in options]
    succeed("convert", kind, FIELD / file, *words, "-o", "lists.jsonl")
    lists = read_nbest("lists.jsonl")
    assert [lists.texts(place) for place in range(len(lists))] == case.texts
    for name, values in case.columns.items():
        np.testing.assert_allclose(read_column(lists, name), values)
    assert {*lists.feature_names} <= {"score", "count", *OF_TOKENS}
    succeed("lists", "lists.jsonl")


def test_an_export_without_ids_is_refused_by_the_converter() -> None:
    path = FIELD / "42" / "min.json"
    refused("lists", path, mention=OF_ARRAY)
    error = refused("convert", "labelstudio", path, "-o", "l.jsonl", mention="bpa convert")
    assert "not a task of Label Studio's JSON export" in error
    assert "JSON-MIN has no ids of lists: export JSON" in " ".join(PAGE.read_text("utf-8").split())


# --- others: a recipe ----------------------------------------------------------------------------


def run_recipe(title: str, **files: Path) -> NBest:
    """Return the lists of a recipe of the page, with files in place of its own."""
    page = PAGE.read_text("utf-8")
    first, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    section = page.partition(f"\n### {title}\n")[2].partition("\n### ")[0]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    for name, path in files.items():
        code = code.replace(f'"{name}.jsonl"', repr(str(path)))
    scope: dict[str, Any] = {}
    exec(first.rpartition("\n\n\n")[0], scope)
    exec(code, scope)
    lists = scope["lists"]
    assert isinstance(lists, NBest)
    return lists


def read_beams(path: Path) -> NBest:
    """Read texts and scores of a table without a header, as docs/lists.md cuts it."""
    table = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    Path("texts").write_text("".join(f"{text}\n" for text, _ in table), "utf-8")
    Path("score").write_text("".join(f"{score}\n" for _, score in table), "utf-8")
    return read_nbest("texts", format="plain:list_size=3,scores=score")


def read_summaries(path: Path) -> NBest:
    """Read summaries with the mean judgement of the experts."""
    rows = []
    for row in read_lines(path):
        mean = np.mean([of["coherence"] for of in row["expert_annotations"]])
        names = {"id": row["id"], "text": row["decoded"], "references": row["references"]}
        rows.append({**names, "coherence": mean})
    return from_records(rows)


def read_log(path: Path) -> NBest:
    """Read lines HYPO and TARGET of a log of training."""
    found = re.findall(r"\| HYPO:(.*)\n.*\| TARGET:(.*)", path.read_text("utf-8"))
    return from_records([{"candidates": [text], "reference": known} for text, known in found])


def read_scores(path: Path) -> NBest:
    """Read the scores of two answers without texts."""
    rows = [[{"text": n, "rm": row[n]} for n in ("chosen", "rejected")] for row in read_lines(path)]
    records = [{"candidates": row, "preferences": [[0, 1]]} for row in rows]
    return from_records(records, features="rm")


def read_generations(path: Path) -> NBest:
    """Read generations with their scores; more scores than generations are left out."""
    rows = []
    for row in read_lines(path):
        pairs = zip(row["generations"], row["rm_scores"], strict=False)
        candidates = [{"text": text, "score": score} for text, score in pairs]
        rows.append({"id": row["prompt_id"], "source": row["prompt"], "candidates": candidates})
    return from_records(rows, features="score")


class Recipe(NamedTuple):
    """A file for a recipe.

    Attributes:
        file: its name.
        shown: what the error of `bpa lists FILE` shows.
        read: the recipe.
        texts: of the first list.
        columns: features and judgements, by name.
    """

    file: str
    shown: str
    read: Callable[[Path], NBest]
    texts: list[str]
    columns: dict[str, list[float]]


RECIPES = [
    Recipe(
        "03/beams.tsv",
        "the first line of a table has the names of its columns",
        read_beams,
        ["good morning everyone", "good mourning everyone", "good morning every one"],
        {"score": [-3.25, -4.5, -5.125, -2.5, -2.75, -6]},
    ),
    Recipe(
        "07/arena140k.jsonl",
        "no field response_a (the fields are 'id, model_a, model_b, winner, ",
        lambda path: run_recipe("Chatbot Arena", arena=path),
        ["apple", "a carrot"],
        {},
    ),
    Recipe(
        "25/shp.jsonl",
        "(the fields are 'post_id, domain, upvote_ratio, history, ",
        lambda path: run_recipe("Stanford Human Preferences", shp=path),
        ["Use a timer", "Just guess"],
        {"score": [340, 166, 16, 3]},
    ),
    Recipe(
        "25/winner_labels.jsonl",
        "winner is 'A': write one of 'alpha', 'beta', model_a, model_b, response_a, respon",
        lambda path: read_nbest(change("25/winner_labels.jsonl", **{'"A"': '"model_a"'})),
        ["apple", "carrot"],
        {},
    ),
    Recipe(
        "45/summeval.jsonl",
        "(the fields are 'id, decoded, expert_annotations, ",
        read_summaries,
        ["a short summary", "another summary"],
        {"coherence": [4 / 3, 14 / 3]},
    ),
    Recipe(
        "74/langfuse_traces.jsonl",
        "(the fields are 'id, name, sessionId, input.question, output.role, ",
        lambda path: run_recipe("Langfuse", traces=path),
        ["house", "home"],
        {"helpfulness": [0.8, 0.3], "correct": [1, 0]},
    ),
    Recipe(
        "78/sppo.jsonl",
        "(the fields are 'prompt, prompt_id, generations, rm_scores'): name them",
        read_generations,
        ["hi", "hello", "yo"],
        {"score": [0.3, 0.9, -0.2, 0.1, 0.4, 0.2]},
    ),
    Recipe(
        "87/rewardbench_scores.jsonl",
        "chosen is 3.2: write a text, an object with a text, or turns with a role",
        read_scores,
        ["chosen", "rejected"],
        {"rm": [3.2, 1.1, 0.4, 0.9]},
    ),
    Recipe(
        "89/prodigy.jsonl",
        "(the fields are 'text, options, accept, answer, ",
        lambda path: run_recipe("Choices of Prodigy", prodigy=path),
        ["house", "home"],
        {},
    ),
    Recipe(
        "98/wav2vec.log",
        "the first line, '2021-12-21 05:08:22 | INFO | __main__ | HYPO:one two three', is of no",
        read_log,
        ["one two three"],
        {},
    ),
]


@pytest.mark.parametrize("case", RECIPES, ids=lambda case: case.file)
def test_other_files_become_records(case: Recipe) -> None:
    refused("lists", FIELD / case.file, mention=case.shown)
    lists = case.read(FIELD / case.file)
    assert lists.texts(0) == case.texts
    for name, values in case.columns.items():
        np.testing.assert_allclose(read_column(lists, name), values)


def test_scores_and_judgements_that_are_no_lists() -> None:
    """Files that a converter or a recipe joins with others."""
    refused("lists", FIELD / "32" / "qrels.txt", mention=f"'q1 0 d11 0', {NO_FORMAT}")
    path = FIELD / "74" / "langfuse_scores.csv"
    refused("lists", path, mention="no columns id and text (the columns are 'traceId, traceName")


#: Files that are refused: how they are read, and a part of the error.
REFUSED = [
    ("4/jq.jsonl", {}, "JSON on several lines: write an object on each line, `jq -c . "),
    ("4/xcomet.json", {}, "JSON on several lines: write an object on each line, `jq -c . "),
    ("4/pandas_index.json", {}, "a whole table in one object, as pandas writes it"),
    ("102/pandas_columns.json", {}, "a whole table in one object, as pandas writes it"),
    ("4/turns.csv", {}, "a list or an object as a text: read the column as values"),
    ("4/ultrafeedback.parquet", {"format": "jsonl"}, "pandas.read_parquet(PATH).to_json("),
]


@pytest.mark.parametrize(("file", "options", "shown"), REFUSED)
def test_files_that_are_refused_with_a_remedy(
    file: str, options: dict[str, Any], shown: str
) -> None:
    with pytest.raises(DataError, match=re.escape(shown)) as caught:
        read_nbest(FIELD / file, **options)
    assert len(str(caught.value)) < 500


def test_fields_of_other_tools_are_kept_or_named() -> None:
    succeed("convert", "ranked", FIELD / "4" / "rewardbench2.jsonl", "-o", "ranked.jsonl")
    kept = read_nbest("ranked.jsonl").sentence_extras
    assert (kept["subset"][0], kept["scores"][0]) == ("Factuality", [[-2.1], [-3.4], [-7.9]])
    task = FIELD / "4" / "labelstudio_ranker.json"
    refused("convert", "labelstudio", task, "-o", "x.jsonl", mention="no field first in its data")
    empty = read_nbest(FIELD / "4" / "metricx.jsonl", format="jsonl:id=source,text=hypothesis")
    assert empty.references is None


def test_what_is_said_of_lists_of_other_tools() -> None:
    table = read_nbest(FIELD / "4" / "weave.csv", format="csv:id=id,text=output.output.answer")
    (warning,) = describe(table).warnings
    assert "every list has one candidate" in warning
    assert "inputs.example.question (3 different)" in warning
    assert "judge.score" not in warning
    systems = read_nbest(FIELD / "4" / "wide.csv", format="csv:id=seg_id,text=hyp.A")
    (warning,) = describe(systems).warnings
    assert "pandas.wide_to_long(frame, ['hyp', 'esa'], i='ID', j='system', sep='.'" in warning
    with pytest.raises(DataError, match="every list has one candidate"):
        log_density(systems, gain="esa.A", add="length", prior="isotropic:scale=0.3")
    for name, shown in (("fluency", "'5/5'"), ("verdict", "'Score: 5'")):
        said = describe(read_nbest(FIELD / "4" / "rubric.jsonl")).left_out
        assert f"{name} has judgements as texts, such as {shown}: write numbers" in said
    form = "jsonl:id=uuid,candidates=generations"
    beams = describe(read_nbest(FIELD / "4" / "openr1.jsonl", format=form))
    assert beams.choices == (
        "correctness_math_verify",
        "correctness_llama",
        "is_reasoning_complete",
    )
