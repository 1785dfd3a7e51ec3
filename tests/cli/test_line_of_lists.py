"""The line that `bpa lists` prints, pasted into the command line."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import refused, succeed
from support.posteriors import read_weight_draws

#: What makes a line fast: neither the scale nor the sign of the prior is learned.
FAST = ("--sampler", "map", "--prior", "isotropic:variance=0.5,mean=0")


def make_rows(*names: str, start: int = 0) -> list[dict[str, Any]]:
    """Return rows of six lists of three candidates, with random numbers."""
    rng = np.random.default_rng(start)
    return [
        {"id": start + k // 3, "text": f"text {'x' * (k % 3)} {k}"}
        | {name: round(float(rng.normal()), 3) for name in names}
        for k in range(18)
    ]


def write_jsonl(path: str, rows: Sequence[dict[str, Any]]) -> None:
    Path(path).write_text("\n".join(map(json.dumps, rows)), "utf-8")


def write_csv(path: str, rows: Sequence[dict[str, Any]]) -> None:
    lines = [",".join(map(str, row.values())) for row in rows]
    Path(path).write_text("\n".join([",".join(rows[0]), *lines]), "utf-8")


def judged_csv() -> None:
    rows = make_rows("logprob", "judge_a", "judge_b")
    values = ("" if k % 5 == 0 else k % 7 for k in range(len(rows)))
    write_csv("judged.csv", [row | {"human": next(values), "system": "A"} for row in rows])


def renamed_csv() -> None:
    rows = [{"segment": row.pop("id"), **row} for row in make_rows("lm", "qe")]
    write_csv("renamed.csv", [row | {"human": k % 4 or ""} for k, row in enumerate(rows)])


def declared() -> None:
    rows = make_rows("lm", start=2)
    features = [{"features": {"lm": row.pop("lm")}, "year": 2000 + k} for k, row in enumerate(rows)]
    rows = [
        row | more | {"ok": k % 4 < 2}
        for k, (row, more) in enumerate(zip(rows, features, strict=True))
    ]
    write_jsonl("declared.jsonl", rows)


def preferences() -> None:
    scores = np.random.default_rng(3).normal(size=(6, 2)).tolist()
    rows = [
        {
            "prompt": f"p{k}",
            "chosen": {"text": f"good {k}", "score": good},
            "rejected": {"text": f"bad {k}", "score": bad},
        }
        for k, (good, bad) in enumerate(scores)
    ]
    write_jsonl("pairs.jsonl", rows)


def two_files() -> None:
    write_jsonl("d1.jsonl", make_rows("lm", "qe"))
    write_jsonl("d2.jsonl", make_rows("lm", "qe"))
    Path("d.ref").write_text("text x 1\n" * 6, "utf-8")


def moses() -> None:
    pass  # in the folder


def demo_of_answers() -> None:
    demo = files("bpa_ppl.demo_data")
    for name in ("answers.jsonl", "requests.jsonl", "ref"):
        Path(name).write_bytes(demo.joinpath(f"recipes.adapt.{name}").read_bytes())


def answers_of_ollama() -> None:
    rows = [
        {
            "custom_id": f"q-{k // 3}",
            "response": {
                "model": "m",
                "response": row["text"],
                "done": True,
                "done_reason": "stop",
                "logprobs": [{"logprob": -abs(row["lm"])}, {"logprob": -1 - k % 3}],
            },
        }
        for k, row in enumerate(make_rows("lm"))
    ]
    write_jsonl("answers.jsonl", rows)
    Path("d.ref").write_text("text x 1\n" * 6, "utf-8")


#: A file, the arguments of `bpa lists`, the options that it prints, and the columns.
CASES: list[Any] = [
    (
        judged_csv,
        "judged.csv --gain human",
        "--weights none --features COLUMNS -o posterior.nc",
        "logprob judge_a judge_b",
    ),
    (
        judged_csv,
        "--gain=-human judged.csv --features 'judge_*'",
        "--weights none -o posterior.nc",
        "judge_a judge_b",
    ),
    (
        renamed_csv,
        "renamed.csv --format csv:id=segment,first_id=0 --gain human",
        "--weights none --features COLUMNS -o posterior.nc",
        "lm qe",
    ),
    (declared, "declared.jsonl --gain ok", "--weights none -o posterior.nc", "lm"),
    (preferences, "pairs.jsonl", "--weights none --features COLUMNS -o posterior.nc", "score"),
    (
        two_files,
        "'d*.jsonl' -r d.ref,d.ref",
        "--weights none --features COLUMNS -o posterior.nc",
        "lm qe",
    ),
    (moses, "nbest -r ref", "--weights moses.ini -o posterior.nc", ""),
    (
        demo_of_answers,
        "answers.jsonl --format openai:requests=requests.jsonl -r ref",
        "--weights none -o posterior.nc",
        "",
    ),
    (
        answers_of_ollama,
        "answers.jsonl --format ollama -r d.ref",
        "--weights none -o posterior.nc",
        "",
    ),
]


@pytest.mark.parametrize(
    ("write", "arguments", "options", "columns"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] if place % 2 else [])
        for place, case in enumerate(CASES)
    ],
)
def test_the_line_runs_with_the_columns_of_the_user(
    write: Callable[[], None], arguments: str, options: str, columns: str, folder: Path
) -> None:
    write()
    words = shlex.split(arguments)
    printed = json.loads(succeed("lists", *words, "--json").out)
    command = f"bpa adapt {shlex.join(words)} {options}"
    assert printed["command"] == command
    assert f"in capital letters: {command}\n" in succeed("lists", *words).out
    succeed(*shlex.split(command.replace("COLUMNS", columns))[1:], *FAST)
    draws = read_weight_draws("posterior.nc")
    if columns:
        assert draws.features == tuple(columns.split())
    assert draws.adaptation.observed is not None


def test_canonical_weights_are_explained_where_no_file_has_them(folder: Path) -> None:
    explanation = "- canonical weights are those that the decoder used for these lists"
    assert explanation not in succeed("lists", "nbest", "-r", "ref").out
    for content in ("[weight]\nLM0= 1\n", "no weights"):  # of other features, and damaged
        Path("moses.ini").write_text(content, "utf-8")
        assert explanation in succeed("lists", "nbest", "-r", "ref").out
    Path("moses.ini").unlink()
    shown = succeed("lists", "nbest", "-r", "ref").out
    assert ": bpa adapt nbest -r ref --weights none -o posterior.nc\n" in shown
    assert explanation in shown
    judged_csv()  # no decoder made it
    assert explanation not in succeed("lists", "judged.csv").out


def test_no_column_is_proposed(folder: Path) -> None:
    judged_csv()
    shown = succeed("lists", "judged.csv").out
    options = "--weights none --features COLUMNS --gain COLUMN -o posterior.nc"
    command = f"bpa adapt judged.csv {options}"
    assert f": {command}\n" in shown
    refused(*shlex.split(command)[1:], mention="COLUMN")
    command = command.replace("COLUMNS", "logprob judge_a").replace("COLUMN", "human")
    succeed(*shlex.split(command)[1:], *FAST)
    assert read_weight_draws("posterior.nc").features == ("logprob", "judge_a")


def test_standard_input_and_the_end_of_options(folder: Path) -> None:
    write_jsonl("-lists", make_rows("lm"))
    shutil.copy("-lists", "ok.jsonl")
    Path("d.ref").write_text("text x 1\n" * 6, "utf-8")
    after = "--weights none --features COLUMNS -o posterior.nc"
    done = succeed("lists", "-", "-r", "d.ref", stdin=Path("ok.jsonl").read_text("utf-8"))
    assert f"bpa adapt - -r d.ref {after}\n" in done.out
    done = succeed("lists", "-r", "d.ref", "--", "-lists")
    command = f"bpa adapt -r d.ref {after} -- -lists"
    assert f"{command}\n" in done.out
    name, *words = shlex.split(command.replace("COLUMNS", "lm"))[1:]
    succeed(name, *FAST, *words)
