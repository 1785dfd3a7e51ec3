"""The commands in the documentation run, in the order of their page."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from cyclopts import CycloptsError, MissingArgumentError
from support.command_line import parse_words
from support.command_line import run_command as run_words
from support.pages import INLINE_CODE, PAGES
from support.posteriors import name_weights

import bpa_ppl
from bpa_ppl import BpaWarning, DataError, concatenate, from_arrays, read_nbest, write_nbest

ROOT = Path(__file__).resolve().parent.parent
#: Part of a command -> the reason why the tests do not run it.
NOT_RUN = {
    "invariance=": "needs segmentations: tests/extras/phrases/test_segmented_features.py has them",
    "bpa compare": "takes minutes: tests/cli has a shorter run",
    "bpa demo": "as tests/extras/demo/test_demo.py does",
    "marian": "needs weights of Marian",
    "bpa judge lists.jsonl": "runs until it is stopped: tests/extras/judging has it",
    "judgements.jsonl": "needs answers: tests/cli/test_adapt_command.py has them",
    "--model hierarchical": "needs domains: tests/models/test_hierarchical.py has them",
    "pairs.jsonl": "needs answers: tests/cli/test_asking.py has them",
    "--agree 0.9": "needs pairs: tests/cli/test_asking.py has them",
    "bpa judge unsure.jsonl": "runs until it is stopped: tests/extras/judging has it",
    "wmt.csv": "needs such rows: tests/formats/test_preference_rows.py has them",
}


def commands(page: Path) -> Iterator[str]:
    """Yield the `bpa` commands in the code blocks of a page, one line each."""
    for block in re.findall(r"^```.*?\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
        lines = block.replace("\\\n", " ").splitlines()
        yield from (line.strip() for line in lines if line.startswith("bpa "))


SHOWN = [(page.name, line) for page in PAGES for line in commands(page)]


def parse(line: str) -> None:
    """Parse a command and its options without running it.

    Raises:
        CycloptsError: if the command or an option does not exist.
    """
    words = ["./-" if word == "-" else word for word in shlex.split(line, comments=True)[1:]]
    try:
        parse_words(words)
    except CycloptsError as error:
        if not isinstance(error.__cause__, DataError):  # a file that another command writes
            raise


@pytest.mark.needs_extras
def test_command_options_exist() -> None:
    assert len(SHOWN) > 25
    for line, page in {line: page for page, line in SHOWN}.items():
        try:
            parse(line)
        except CycloptsError as error:
            pytest.fail(f"{page}: {line}: {error}")
    with pytest.raises(CycloptsError, match="Unknown option"):
        parse("bpa adapt lists --no-such-option")


@pytest.mark.needs_extras
def test_commands_in_sentences_exist() -> None:
    """With their options; the sentence may leave out the rest."""
    shown = {code: page for page, code in INLINE_CODE if code.startswith("bpa ")}
    assert len(shown) > 50
    for code, page in shown.items():
        try:
            parse(code.replace("…", ""))
        except MissingArgumentError:
            continue
        except CycloptsError as error:
            pytest.fail(f"{page}: {code}: {error}")
    with pytest.raises(CycloptsError, match="Unknown option"):
        parse("bpa rerank --no-such-option")


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a folder with small files under all names that the pages use."""
    monkeypatch.chdir(tmp_path)
    data = ROOT / "examples" / "demo_data"
    lists = read_nbest(data / "leaflet.nbest100.gz")
    source, references = (
        (data / f"leaflet.{kind}").read_text("utf-8").splitlines() for kind in ("src", "ref")
    )
    both = [*data.glob("recipes.*"), *data.glob("answers.*")]
    for path in [*both, data / "moses.ini", data / "leaflet.domain.txt"]:
        Path(path.name).write_bytes(path.read_bytes())
    Path("domain.txt").write_bytes(Path("leaflet.domain.txt").read_bytes())
    for number, name in enumerate(["adapt", "test", "new", "dev", "lists"]):
        part = slice(30 * number, 30 * number + 30)
        write_nbest(concatenate([lists[part].truncate(20)], renumber=True), f"{name}.nbest")
        write_lines(f"{name}.ref", references[part])
    write_lines("adapt.fr", source[:30])
    for name, table in {"large": "test", "adapt": "adapt", "test": "test"}.items():
        content = gzip.compress(Path(f"{table}.nbest").read_bytes())
        Path(f"{name}.nbest.gz").write_bytes(content)
    for name, part in (("memory", slice(120)), ("general", slice(60, 240))):
        write_lines(f"{name}.fr", source[part])
        write_lines(f"{name}.en", references[part])
        write_lines(f"{name}.align", ["0-0 1-1"] * len(source[part]))
    write_lines("general.txt", references[60:])
    write_lines("dev.txt", references[:30])
    for name, count in (("judged", 40), ("new", 30)):
        write_lines(f"{name}.jsonl", [candidate_line(s) for s in range(count)])
    again = {"logprob": "lm", "comet": "judge_a", "mqm": "human"}  # under names of other pages
    judged = [json.loads(line) for line in Path("judged.jsonl").read_text("utf-8").splitlines()]
    for candidate in (one for line in judged for one in line["candidates"]):
        candidate |= {new: candidate[old] for old, new in again.items() if old in candidate}
    write_lines("judged.jsonl", list(map(json.dumps, judged)))
    sentences = [json.loads(line) for line in Path("new.jsonl").read_text("utf-8").splitlines()]
    preferences = {"preferences": [[0, 3], [4, 8]]}
    for name in ("compared", "lists"):
        write_lines(f"{name}.jsonl", [json.dumps(line | preferences) for line in sentences])
    samples = [{"id": n, "reference": f"{n}", "candidates": ["1", f"{n}"]} for n in range(2, 12)]
    write_lines("samples.jsonl", list(map(json.dumps, samples)))
    write_responses(["ein Haus", "eine Katze"] * 5, "answers.jsonl", "requests.jsonl")
    write_responses(["ein Hund"] * 5, "new-answers.jsonl", "new-requests.jsonl")
    write_lines("adapt.en", ["a house", "a cat"] * 5)
    for path in (ROOT / "tests" / "posterior" / "files").glob("*.*"):
        Path(path.name).write_bytes(path.read_bytes())
    write_lines("run.txt", [f"q1 Q0 d{n} {n} {9 - n} bm25" for n in range(4)])
    write_lines("qrels.txt", ["q1 0 d1 2", "q1 0 d3 0"])


def write_responses(sources: list[str], answers: str, requests: str) -> None:
    """Write a batch of chats and its responses."""
    rng = np.random.default_rng(1)
    lines: dict[str, list[str]] = {answers: [], requests: []}
    for number, source in enumerate(sources):
        name = f"request-{number}"
        message = {"role": "user", "content": f"Translate into English: {source}"}
        body: dict[str, Any] = {"model": "m", "n": 4, "logprobs": True, "messages": [message]}
        lines[requests].append(json.dumps({"custom_id": name, "method": "POST", "body": body}))
        choices = []
        for text in ("a house", "the cat", "a dog", "a house"):
            tokens = [{"token": word, "logprob": -rng.exponential()} for word in text.split()]
            answer = {"message": {"content": text}, "logprobs": {"content": tokens}}
            choices.append({"finish_reason": "stop", **answer})
        response = {"status_code": 200, "body": {"model": "m", "choices": choices}}
        lines[answers].append(json.dumps({"custom_id": name, "response": response}))
    for path, content in lines.items():
        write_lines(path, content)


def write_lines(path: str, lines: list[str]) -> None:
    Path(path).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def candidate_line(sentence: int) -> str:
    """Return nine candidates of three systems as a line of JSON."""
    rng = np.random.default_rng(sentence)
    rows: list[dict[str, Any]] = []
    for system, rank in product("ABC", range(3)):
        names = "logprob", "length_gap", "judgement", "comet", "mqm"
        numbers = dict(zip(names, rng.normal(size=len(names)).tolist(), strict=True))
        rows.append({"text": f"{sentence} {system} {rank}", "system": system, **numbers})
    return json.dumps({"id": sentence, "source": f"quelle {sentence}", "candidates": rows})


def run_command(line: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BpaWarning)
        run_words(shlex.split(line, comments=True)[1:])


MEMORY, GENERAL = (f"{name}.fr {name}.en {name}.align" for name in ("memory", "general"))
DEV = f"phrases extract {MEMORY} --max-length 1 -o dev.parquet"
OUT = f"phrases extract {GENERAL} -o out.parquet"
JUDGED = "adapt judged.jsonl --features logprob length_gap -w none --sampler map -o posterior.nc"
#: Page -> commands that are run before those of the page.
BEFORE = {
    "clusters.md": "adapt adapt.nbest -r adapt.ref -w moses.ini --sampler laplace -o posterior.nc",
    "decode-once.md": "adapt adapt.nbest -r adapt.ref -w moses.ini --sampler map -o posterior.nc",
    "groups.md": f"{JUDGED} --gain comet",
    "judge.md": f"{JUDGED} --gain mqm",
    "learned-prior.md": """adapt adapt.nbest -r adapt.ref -w moses.ini -o medical.nc
        adapt dev.nbest -r dev.ref -w moses.ini --sampler laplace -o conversation.nc""",
    "pages.md": "adapt adapt.nbest -r adapt.ref -w moses.ini -o posterior.nc",
    "update.md": "adapt adapt.nbest -r adapt.ref -w moses.ini -o posterior.nc",
    "text.md": f"{DEV}\n{OUT}",
    "phrases.md": f"{DEV}\n{OUT}\nphrases extract {MEMORY} -o in.parquet",
}
#: The Python code of a page.
OWN_MODEL = "\n".join(
    re.findall(
        r"```python\n(.*?)```",
        (ROOT / "docs" / "how-to" / "own-model.md").read_text("utf-8"),
        re.DOTALL,
    )
)
#: Pages that are tried each time; their posteriors are Laplace approximations.
QUICK = ("llm-tutorial.md",)
RUN = {page for page, _ in SHOWN} - {*QUICK, "README.md"}  # tests/test_readme.py runs the README


@pytest.mark.usefixtures("working_folder", "without_drawing")
@pytest.mark.parametrize(
    "page", [*QUICK, *(pytest.param(page, marks=pytest.mark.slow) for page in sorted(RUN))]
)
def test_page_commands_run(page: str) -> None:
    for line in BEFORE.get(page, "").splitlines():
        run_command(f"bpa {line}")
    for line in (line for name, line in SHOWN if name == page):
        if not any(word in line for word in NOT_RUN):
            sampler = "--sampler laplace " if page in QUICK else ""
            run_command(line.replace("bpa adapt ", f"bpa adapt {sampler}"))
            for written in re.findall(r" -o (\S+)", line):
                assert Path(written).stat().st_size > 0


@pytest.mark.slow
@pytest.mark.usefixtures("working_folder")
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_scores_of_comet_are_joined_as_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "how-to" / "own-criterion.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page.split("## COMET")[1], re.DOTALL)
    before, after = re.split(r"# comet-score.*--to_json.*\n", code)
    monkeypatch.setattr(bpa_ppl, "adapt", partial(bpa_ppl.adapt, sampler="map"))
    scope: dict[str, Any] = {"bpa": bpa_ppl}
    exec(before, scope)
    texts = [Path(f"all.{name}").read_text("utf-8").splitlines() for name in ("src", "mt", "ref")]
    assert set(map(len, texts)) == {len(scope["lists"].features)}
    scores = [{"COMET": len(text) / 100} for text in texts[1]]
    Path("scores.json").write_text(json.dumps({"all.mt": scores}), "utf-8")
    exec(after, scope)
    assert scope["posterior"].attrs["oracle_metric"] == "comet"
    assert "comet" not in scope["posterior"]["posterior"]["feature"].values


@pytest.mark.usefixtures("working_folder")
def test_weights_for_other_programs_choose_as_the_mean() -> None:
    rng, names = np.random.default_rng(3), ["am", "lm", "length"]
    draws = name_weights(rng.normal([1.0, 1.9, 0.15], 0.1, (4, 500, 3)), names)
    bpa_ppl.write_posterior(draws, "posterior.nc")
    lists = from_arrays(["text"] * 1800, rng.normal(size=(1800, 3)), names, 9)
    page = (ROOT / "docs" / "how-to" / "decode-once.md").read_text("utf-8")
    scope: dict[str, Any] = {}
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, scope)
    script = scope["rescore"]["rescore"]["query"]["rescore_query"]["script_score"]["script"]
    linear = json.loads(scope["model"]["model"]["model"]["definition"])
    mean = bpa_ppl.rerank(lists, draws, rule="mean", unchecked=True).choice
    for weights in (scope["scales"], linear, script["params"]["weights"]):
        assert (lists.best(lists.scores(weights)) == mean).all()
    assert scope["reward_weights"] == [linear[name] for name in names]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_draws_of_numpyro_are_compared_with_those_of_adapt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a kernel that is compiled faster than NUTS, and does not converge so fast."""
    data = ROOT / "examples" / "demo_data"
    lists = read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
    code = OWN_MODEL.split("import jax\n")[1]
    quick = {"NUTS": "BarkerMH", "vectorized": "sequential", "=500": "=50", "=1000": "=50"}
    for old, new in quick.items():
        assert old in code
        code = code.replace(old, new)
    canonical = bpa_ppl.read_weights(data / "moses.ini")
    scope: dict[str, Any] = {"bpa": bpa_ppl, "lists": lists[:12], "canonical": canonical}
    with jax.numpy_rank_promotion("allow"):  # of NumPyro's log likelihoods
        exec(f"import jax\n{code}", scope)
    assert re.search(r"^a +not converged ", capsys.readouterr().out, re.MULTILINE)
