"""Samples of language models: `from_samples`, and the recipes of the page."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.raising import capture_notes, raises

from bpa_ppl import from_samples
from bpa_ppl.errors import DataError, UsageError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "llm-samples.md"
EOS, PAD = 1, 2
TWO = [["a", "b"]]
#: Tokens of four texts, and their log-probabilities.
TOKENS = [[5, 6, EOS], [7, EOS], [5, 5, 6, 7], [EOS]]
LOGPROBS = [[-1.0, -2.0, -0.5], [-0.25, -0.5], [-1.0, -1.0, -1.0, -3.0], [-4.0]]
EXPECTED = [
    [sum(values), sum(values) / len(values), min(values), len(values), 1] for values in LOGPROBS
]


def test_statistics_of_tokens_and_merged_texts() -> None:
    texts, logprobs = [[" a", "b"], ["c", "d"]], [LOGPROBS[:2], LOGPROBS[2:]]
    lists = from_samples(texts, logprobs, sources=["s", "t"], references=["x", "y"])
    names = ("logprob.sum", "logprob.mean", "logprob.min", "length", "count")
    assert (lists.feature_names, lists.features.tolist()) == (names, EXPECTED)
    assert (lists.texts(0), lists.texts(1), lists.sources) == (["a", "b"], ["c", "d"], ("s", "t"))
    with capture_notes() as notes:
        merged = from_samples([["a", "b", "a"], ["a"]], [LOGPROBS[:3], LOGPROBS[3:]])
        counts = from_samples([["a", "b", "a"], []])
    assert merged.features.tolist() == [[*EXPECTED[0][:4], 2], EXPECTED[1], EXPECTED[3]]
    assert (counts.feature_names, counts.features.tolist()) == (("count",), [[2], [1]])
    assert sum("1 of 4 answers" in note.message for note in notes) == 1
    assert sum("1 sentence without candidates" in note.message for note in notes) == 1


@pytest.mark.parametrize(
    ("texts", "logprobs", "code"),
    [
        *((texts, None, "wrong-type") for texts in ([["a"], [1]], ["ab"])),
        *((empty, None, "no-data") for empty in ([], [[]])),
        ([["a", "b"]], [[[-1.0]]], "wrong-length"),
        ([["a"]], [[[np.nan]]], "bad-number"),
        *((TWO, odd, "wrong-type") for odd in ([-1, -2], [[-1, -2]], [np.array([-1, -2])])),
        *((TWO, odd, "wrong-type") for odd in ([["-1", "-2"]], [[[[-1]], [-2]]])),
    ],
)
def test_arguments_that_do_not_fit(texts: Any, logprobs: Any, code: str) -> None:
    error = UsageError if code in ("wrong-type", "no-data") else DataError
    with raises(error, code, parameter="logprobs" if logprobs else "texts"):
        from_samples(texts, logprobs)
    with raises(DataError, "missing-feature", parameter="missing", line=1, match="logprob.sum is"):
        from_samples(TWO, [[None, [-2.0]]])


def padded(rows: list[list[Any]], value: float) -> np.ndarray:
    return np.array([[*row, *[value] * (4 - len(row))] for row in rows] * 4)


class Model:
    """What the page uses of a model of Transformers."""

    generation_config = SimpleNamespace(eos_token_id=EOS)

    @classmethod
    def from_pretrained(cls, name: str) -> Any:
        return cls()

    def generate(self, **options: Any) -> Any:
        assert {"output_scores", "return_dict_in_generate"} <= set(options)
        tokens = np.hstack([np.full((16, 1), EOS), padded(TOKENS, PAD)])
        return SimpleNamespace(sequences=tokens, scores=("steps",), get=lambda name: None)

    def compute_transition_scores(
        self, sequences: Any, scores: Any, beams: Any, normalize_logits: bool
    ) -> Any:
        assert (beams, normalize_logits) == (None, True)
        return padded(LOGPROBS, -7.0)


class Tokenizer:
    """What the page uses of a tokenizer of Transformers."""

    @classmethod
    def from_pretrained(cls, name: str) -> Any:
        return cls()

    def __call__(self, texts: list[str], **options: Any) -> dict[str, Any]:
        return {"input_ids": texts}

    def batch_decode(self, sequences: Any, skip_special_tokens: bool) -> list[str]:
        return [f"text {row}" for row in range(len(sequences))]


def output(text: str, *logprobs: float, reason: str = "stop") -> Any:
    """Return a CompletionOutput of vLLM."""
    tokens = list(range(10, 10 + len(logprobs)))
    logged = [
        {9: SimpleNamespace(logprob=-0.1), token: SimpleNamespace(logprob=value)}
        for token, value in zip(tokens, logprobs, strict=True)
    ]
    return SimpleNamespace(text=text, token_ids=tokens, finish_reason=reason, logprobs=logged)


@pytest.mark.parametrize("eos", [EOS, [128_009, EOS]])
def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eos: int | list[int]
) -> None:
    """On stand-ins of the two programs, with the documented attributes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Model, "generation_config", SimpleNamespace(eos_token_id=eos))
    message = {"role": "user", "content": "Translate into English: ein Haus"}
    asking = {"custom_id": "request-0", "body": {"messages": [message]}}
    choices = [{"message": {"content": "a house"}, "logprobs": {"content": [{"logprob": -1}]}}]
    answer = {"custom_id": "request-0", "response": {"body": {"choices": choices}}}
    Path("requests.jsonl").write_text(json.dumps(asking))
    Path("answers.jsonl").write_text(json.dumps(answer))
    transformers, vllm = ModuleType("transformers"), ModuleType("vllm")
    vars(transformers).update(AutoModelForSeq2SeqLM=Model, AutoTokenizer=Tokenizer)
    outputs = [output("a", -1, -2), output("b", -1, reason="length")]
    replies = [SimpleNamespace(outputs=outputs)] * 2
    llm = SimpleNamespace(generate=lambda prompts, parameters: replies)
    vars(vllm).update(LLM=lambda name: llm, SamplingParams=lambda **options: options)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    found = []
    scope: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        with capture_notes():
            exec(block, scope)
        found.append(scope["lists"])
    assert [lists.sizes.tolist() for lists in found] == [[1], [8, 8], [1, 1]]
    assert found[0].sources == ("ein Haus",)
    assert found[1].sources == found[2].sources == ("ein Haus", "eine Katze")
    assert found[1].features[:4].tolist() == EXPECTED
    assert found[2].features[0].tolist() == [-3, -1.5, -2, 2, 1]
