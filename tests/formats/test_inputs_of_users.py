"""Files as users of other tools bring them: right, or one error whose advice works.

For each file: the command as first typed and what comes; then the command after the advice, or a
converter or a recipe of the page about files of other tools; and the lists that it gives.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.command_line import refused, run, succeed
from support.user_files import run_shell

from bpa_ppl import DataError, describe, read_nbest
from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.posterior.files import read_weight_draws

FIELD = Path(__file__).resolve().parent / "field"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "extras" / "other-tools.md"
LISTS_PAGE = (PAGE.parents[1] / "lists.md").read_text("utf-8")
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
    Adapted("61/identifiers.csv", "-rank", ["judge_a", *COUNTS], ["judge_a"], [0.7]),
]


@pytest.mark.parametrize("case", ADAPTED, ids=lambda case: case.file)
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
    refused(
        "adapt", path, "--gain", "s", *MODE, mention="(--add consensus --add length; in Python add="
    )
    done = run("adapt", path, "--gain", "s", "--add", "length", *MODE)
    assert (done.code, "no feature differs between" in done.err) == (2, True)
    assert read_column(read_nbest(path), "s").tolist()[:2] == [1, 0.5]


#: Words, percentages and commas in a column of the gain or a feature: the feature and the gain, the
#: line and the value that the error shows, and what the user then writes.
STRICT: list[tuple[str, str, str, int, str, dict[str, str]]] = [
    ("43/nan.tsv", "metric", "mqm", 3, "mqm is 'nan'", {"nan": ""}),
    ("60/bool.csv", "judge_a", "correct", 2, "correct is 'True'", {"True": "1", "False": "0"}),
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
    succeed("adapt", name, *options)


def test_utf16_is_converted_as_the_error_says() -> None:
    path = FIELD / "60" / "utf16.tsv"
    error = refused("lists", path, mention="text in UTF-16: convert it to UTF-8, `iconv -f UTF-16")
    assert f"{path}:1: " in error
    text = path.read_bytes().decode("utf-16").replace(",", ".")
    lists = read_nbest([text], features="judge_a", format="tsv")
    assert lists.features.ravel().tolist() == [0.7, 0.6, 0.2, 0.4]


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
READ = [
    Read("37/token_lists.jsonl", "", {}, ["a cat", "the cat"], {}, ("q", "r")),
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
    Converted(
        "trec 32/run.txt --qrels 32/qrels.txt",
        NO_FORMAT,
        DOCUMENTS,
        {"score": OF_RUN, "relevance": [0, np.nan, 2, 1, 0]},
    ),
    Converted(
        "ranked 41/rewardbench2.jsonl",
        "chosen is a list of texts: convert such rows with `bpa convert ranked`",
        RANKED,
        {},
    ),
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


#: Files that are refused: how they are read, and a part of the error.
REFUSED = [
    ("4/jq.jsonl", {}, "JSON on several lines: write an object on each line, `jq -c . "),
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
    singles = read_nbest([f'{{"id": {k}, "candidates": ["t{k}"]}}' for k in range(2)])
    assert "give the candidates of one sentence the same id" in str(describe(singles).warnings)
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


# --- messages ------------------------------------------------------------------------------------


def test_lists_are_sorted_as_the_message_says(tmp_path: Path) -> None:
    path = tmp_path / "lists"
    path.write_text("1 ||| c ||| LM0= 1\n0 ||| a ||| LM0= 2\n1 ||| d ||| LM0= 3\n")
    with pytest.raises(DataError) as caught:
        read_nbest(path)
    (command,) = re.findall(r"`(sort .*?)`", caught.value.message)
    run_shell(f"{command} < lists > sorted", tmp_path)
    lists = read_nbest(tmp_path / "sorted")
    assert (lists.texts(1), lists.features[:, 0].tolist()) == (["c", "d"], [2, 1, 3])


def test_the_first_id_is_set_as_the_message_says() -> None:
    lines = [f"{n} ||| t{n} ||| LM0= 1 ||| 1" for n in range(2)]
    with pytest.raises(DataError) as caught:
        read_nbest(lines, format="auto:first_id=1")
    (first,) = re.findall(r"with its format, (\S+)\)", caught.value.message)
    assert read_nbest(lines, format=first).ids == (0, 1)


# --- recipes of the documentation ----------------------------------------------------------------


def test_the_page_splits_a_table_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "beams.tsv").write_text("a cat\t-0.5\ncat\t-1.5\nhello\t-0.25\nhi\t-2\n")
    run_shell(re.findall(r"`(cut [^`]*)`", LISTS_PAGE)[0], tmp_path)
    lists = read_nbest(tmp_path / "texts", format=f"plain:list_size=2,scores={tmp_path}/score")
    assert (lists.texts(1), lists.feature_names) == (["hello", "hi"], ("score",))
    assert lists.features[:, 0].tolist() == [-0.5, -1.5, -0.25, -2]


def test_the_page_puts_a_tab_after_the_utterance(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("u1 THE CAT\nu2 A DOG\n")
    run_shell(re.findall(r"`(sed [^`]*text.tsv)`", LISTS_PAGE)[0], tmp_path)
    lists = read_nbest(["u2-1 -1.5 DOG", "u1-1 -2.5 CAT"], references=tmp_path / "text.tsv")
    assert lists.references == (("A DOG",), ("THE CAT",))


def test_recipe_of_means() -> None:
    change("44/ratings.csv", judge_a="judge")
    (recipe,) = re.findall(r"```python\n(.*?groupby.*?)```", LISTS_PAGE, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(textwrap.dedent(recipe), scope)
    assert read_column(scope["lists"], "rating") == pytest.approx([11 / 3, 3, 4.5, 1.5])
