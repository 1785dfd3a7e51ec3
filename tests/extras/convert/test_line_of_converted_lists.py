"""The line that `bpa lists` prints for files of ten kinds of `bpa convert`, with columns."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import succeed
from support.posteriors import read_weight_draws

RNG = np.random.default_rng(0)
#: (lists, candidates): scores, and judgements from 1 to 5.
SCORES = RNG.normal(size=(6, 3)).round(3).tolist()
MARKS = np.argsort(RNG.normal(size=(6, 3)), axis=1) + 1
TEXTS = [[f"a {'very ' * k}good cat {q}" for k in range(3)] for q in range(6)]
CELLS = [(q, k) for q in range(6) for k in range(3)]


def trec() -> list[str]:
    marks = [f"q{q} 0 d{q}{k} {MARKS[q, k]}" for q, k in CELLS]
    Path("qrels").write_text("\n".join(marks))
    return [f"q{q} Q0 d{q}{k} {k + 1} {SCORES[q][k]} bm25" for q, k in CELLS]


def letor() -> list[str]:
    return [f"{MARKS[q, k]} qid:{q} 1:{SCORES[q][k]} 2:{k * k}" for q, k in CELLS]


def wmt() -> list[str]:
    return [f"sys{k}\t{SCORES[q][k]}" for k in range(3) for q in range(6)]


def icefall() -> list[str]:
    lines = []
    for k in range(3):
        for q in range(6):
            lines.append(f"u{q}:\tref={TEXTS[q][0].split()}")
            lines.append(f"u{q}:\thyp={TEXTS[q][k].split()}")
    return lines


def inspect() -> list[Any]:
    def log(k: int) -> dict[str, Any]:
        samples = [
            {
                "id": q,
                "epoch": 1,
                "input": "?",
                "target": TEXTS[q][0],
                "output": {"completion": TEXTS[q][k]},
                "scores": {
                    "match": {"value": "CI"[min(int(MARKS[q, k]) - 1, 1)]},
                    "judge": {"value": SCORES[q][k]},
                },
            }
            for q in range(6)
        ]
        return {"eval": {"model": f"m{k}"}, "samples": samples}

    return [log(k) for k in range(3)]


def promptfoo() -> list[Any]:
    return [
        {
            "testIdx": q,
            "promptIdx": 0,
            "vars": {"q": "?"},
            "provider": {"id": f"m{k}"},
            "score": int(MARKS[q, k]),
            "response": {"output": TEXTS[q][k]},
            "namedScores": {"style": SCORES[q][k]},
        }
        for q, k in CELLS
    ]


def ultrafeedback() -> list[Any]:
    return [
        {
            "instruction": f"{q}?",
            "completions": [
                {
                    "model": f"m{k}",
                    "response": TEXTS[q][k],
                    "annotations": {"honesty": {"Rating": str(1 + (q + k * k) % 5)}},
                    "overall_score": int(MARKS[q, k]),
                }
                for k in range(3)
            ],
        }
        for q in range(6)
    ]


def kto() -> list[Any]:
    return [
        {"prompt": f"{q}?", "completion": TEXTS[q][k], "label": bool(MARKS[q, k] > 1)}
        for q, k in CELLS
    ]


def ranked() -> list[Any]:
    return [{"prompt": f"{q}?", "chosen": of[:1], "rejected": of[1:]} for q, of in enumerate(TEXTS)]


def mtbench() -> list[Any]:
    return [
        {"question_id": q, "turn": 1, "model": f"m{k}", "score": int(MARKS[q, k])} for q, k in CELLS
    ]


def lmeval() -> list[Any]:
    return [
        {
            "doc_id": q,
            "target": int(np.argmax(MARKS[q])),
            "resps": [[[score, False]] for score in SCORES[q]],
            "arguments": [["?", text] for text in TEXTS[q]],
        }
        for q in range(6)
    ]


OF_TEXTS = "--add consensus --add length"
#: Of the kinds of features and judgements, one each; the options of the features, and their names.
CASES: list[Any] = [
    (trec, "--gain relevance", "relevance", "--features score", {"score"}),
    (wmt, "--gain score", "score", "--categorical system", {"system=sys1", "system=sys2"}),
    (inspect, "", "chrf", "--features judge", {"judge"}),  # match is a judgement
    (ranked, "", None, OF_TEXTS, {"consensus.words", "LengthWords"}),
]
MORE: list[Any] = [
    (letor, "--gain relevance", "relevance", "--features f1 f2", {"f1", "f2"}),
    (icefall, "--gain wer", "wer", OF_TEXTS, {"consensus.words", "LengthWords"}),
    (inspect, "--gain match", "match", "--features judge", {"judge"}),
    (promptfoo, "--gain score", "score", "--features style", {"style"}),
    (ultrafeedback, "--gain overall_score", "overall_score", "--features honesty", {"honesty"}),
    (kto, "--gain label", "label", OF_TEXTS, {"consensus.words", "LengthWords"}),
    (mtbench, "--gain score", "score", "--categorical system", {"system=m1", "system=m2"}),
    (lmeval, "--gain correct", "correct", "--features loglikelihood", {"loglikelihood"}),
]


@pytest.mark.parametrize(
    ("kind", "options", "gain", "chosen", "features"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)],
)
def test_the_line_adapts_to_the_gain(
    kind: Callable[[], list[Any]],
    options: str,
    gain: str | None,
    chosen: str,
    features: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line if isinstance(line, str) else json.dumps(line) for line in kind()]
    Path("file").write_text("\n".join(lines), "utf-8")
    judged = ["--qrels", "qrels"] if kind is trec else []
    succeed("convert", kind.__name__, "file", *judged, "-o", "lists.jsonl")
    described = json.loads(succeed("lists", "lists.jsonl", *options.split(), "--json").out)
    command = described["command"].replace("--features COLUMNS", chosen)
    fast = ("--sampler", "map", "--prior", "isotropic:variance=0.5,mean=0")
    succeed(*shlex.split(command)[1:], *fast)
    draws = read_weight_draws("posterior.nc")
    assert draws.adaptation.observed is not None
    assert draws.adaptation.observed.gain == gain
    assert features <= set(draws.features)
