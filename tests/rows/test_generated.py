"""Lists from the objects of Hugging Face Transformers and of vLLM."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from raising import raises

from bpa_ppl import BpaWarning, NBest
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.notes import capture_notes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "llm-samples.md"
EOS, PAD = 1, 2


class Tensor:
    """What is used of a tensor of PyTorch on a device, which NumPy cannot convert."""

    def __init__(self, values: Any):
        self._values = np.asarray(values)

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def double(self) -> Tensor:
        return Tensor(self._values.astype(np.float64))

    def numpy(self) -> np.ndarray:
        return self._values


#: Two prompts with two texts each: (tokens of a text, their log-probabilities).
TOKENS = [[5, 6, EOS], [7, EOS], [5, 5, 6, 7], [EOS]]
LOGPROBS = [[-1.0, -2.0, -0.5], [-0.25, -0.5], [-1.0, -1.0, -1.0, -3.0], [-4.0]]
EXPECTED = np.float32(
    [[sum(values), sum(values) / len(values), min(values), len(values), 1] for values in LOGPROBS]
).tolist()


def padded(rows: list[list[Any]], value: float) -> np.ndarray:
    return np.array([[*row, *[value] * (4 - len(row))] for row in rows])


def sampled(wrap: Any = np.asarray, prompt: int = 3, pad: int = PAD) -> SimpleNamespace:
    """Return the outputs of sampling, with the prompt first as of a decoder alone."""
    tokens = np.hstack([np.full((4, prompt), EOS), padded(TOKENS, pad)])
    return SimpleNamespace(sequences=wrap(tokens))


@pytest.mark.parametrize(
    ("wrap", "pad", "end"),
    [
        (np.asarray, PAD, EOS),
        (np.ndarray.tolist, EOS, [9, EOS]),
        (Tensor, PAD, Tensor([9, EOS])),
        (np.float16, EOS, EOS),
    ],
)
def test_samples_end_at_the_end_of_a_text(wrap: Any, pad: int, end: Any) -> None:
    scores = wrap(padded(LOGPROBS, -7.0))
    outputs = sampled(wrap, pad=pad)
    arguments: dict[str, Any] = {"transition_scores": scores, "eos_token_id": end}
    lists = NBest.from_generate([" a", "b", "c", "d"], outputs, 2, **arguments, sources=["s", "t"])
    names = ("logprob.sum", "logprob.mean", "logprob.min", "length", "count")
    assert (lists.feature_names, lists.features.tolist()) == (names, EXPECTED)
    assert (lists.texts(0), lists.texts(1), lists.sources) == (["a", "b"], ["c", "d"], ("s", "t"))


def test_a_beam_search_says_where_texts_end_and_equal_texts_are_merged() -> None:
    indices = padded([[0] * len(row) for row in TOKENS], -1)
    outputs = {"beam_indices": Tensor(indices), "sequences_scores": Tensor([-1.0, -2, -3, -4])}
    arguments: dict[str, Any] = {"transition_scores": padded(LOGPROBS, 0.0)}
    with capture_notes() as notes:
        lists = NBest.from_generate(
            ["a", "b", "c", "c "], outputs, 2, **arguments, references=["x", "y"]
        )
    assert lists.feature_names[4:] == ("score", "count")
    assert lists.features[:, :4].tolist() == [EXPECTED[row][:4] for row in (0, 1, 3)]
    assert lists.features[:, 4:].tolist() == [[-1, 1], [-2, 1], [-4, 2]]
    assert lists.references == (("x",), ("y",))
    assert ["1 of 4 answers" in note.message for note in notes] == [True]


@pytest.mark.parametrize(
    ("changes", "error", "code", "parameter"),
    [
        ({"texts": [1, 2, 3, 4]}, UsageError, "wrong-type", "texts"),
        ({"texts": ["a", "b"]}, DataError, "wrong-length", "transition_scores"),
        ({"n": 3}, UsageError, "bad-usage", "n"),
        ({"n": True}, UsageError, "bad-usage", "n"),
        ({"n": 0}, UsageError, "bad-usage", "n"),
        ({"transition_scores": [1.0]}, DataError, "wrong-length", "transition_scores"),
        ({"transition_scores": np.ones((4, 4))}, DataError, "bad-number", "transition_scores"),
        ({"transition_scores": [[np.nan]] * 4}, DataError, "bad-number", "transition_scores"),
        ({"transition_scores": -np.ones((4, 9))}, DataError, "wrong-length", "outputs"),
        ({"outputs": [[1]]}, UsageError, "wrong-type", "outputs"),
        ({"outputs": {"sequences": [[1]]}}, DataError, "wrong-length", "outputs"),
        ({"outputs": {"beam_indices": [[1]]}}, DataError, "wrong-length", "outputs"),
        ({"eos_token_id": None}, UsageError, "missing-setting", "eos_token_id"),
        ({"outputs": {"beam_indices": padded(LOGPROBS, -1), "sequences_scores": [1.0]}},
         DataError, "wrong-length", "outputs"),
    ],
)  # fmt: skip
def test_outputs_that_do_not_fit(
    changes: dict[str, Any], error: Any, code: str, parameter: str
) -> None:
    arguments = {
        "texts": list("abcd"),
        "outputs": sampled(),
        "n": 2,
        "transition_scores": padded(LOGPROBS, -1.0),
        "eos_token_id": EOS,
    }
    with raises(error, code, parameter=parameter):
        NBest.from_generate(**{**arguments, **changes})


def output(text: Any, *logprobs: float, reason: str | None = "stop", **more: Any) -> Any:
    """Return a CompletionOutput of vLLM."""
    tokens = list(range(10, 10 + len(logprobs)))
    logged = [
        {9: SimpleNamespace(logprob=-0.1, rank=1), token: SimpleNamespace(logprob=value, rank=2)}
        for token, value in zip(tokens, logprobs, strict=True)
    ]
    fields = {"text": text, "token_ids": tuple(tokens), "finish_reason": reason, "logprobs": logged}
    return SimpleNamespace(**{**fields, "cumulative_logprob": sum(logprobs), **more})


def asked(name: str, prompt: Any, *outputs: Any) -> Any:
    """Return a RequestOutput of vLLM."""
    return SimpleNamespace(request_id=name, prompt=prompt, outputs=list(outputs))


def test_requests_of_vllm() -> None:
    requests = [
        asked("0", "un", output(" a", -1, -2), output("b", -3), output("b", -2.5, -0.25)),
        asked("1-x", "deux", output("c", -1)),
    ]
    lists = NBest.from_requests(requests)
    table = [[-3, -1.5, -2, 2, 1], [-2.75, -1.375, -2.5, 2, 2], [-1, -1, -1, 1, 1]]
    assert lists.features.tolist() == table
    assert (lists.sources, lists.ids) == (("un", "deux"), ("0", "1-x"))
    sums = NBest.from_requests([asked("0", None, output("a", -1, -2, logprobs=None))])
    names = ("logprob.sum", "logprob.mean", "length", "count")
    assert (sums.feature_names, sums.features.tolist()) == (names, [[-3, -1.5, 2, 1]])
    bare = output("a", -1, -2, logprobs=None, cumulative_logprob=None)
    with pytest.warns(BpaWarning, match="only length and count"):
        lengths = NBest.from_requests([asked("0", None, bare)], sources=["s"], references=["x"])
    assert (lengths.feature_names, lengths.sources) == (("length", "count"), ("s",))


@pytest.mark.parametrize(
    "bad",
    [
        output("<a>", -1, reason="length"),
        output("a", -1),
        output("<a>", float("nan")),
        output("<a>", -1, float("-inf")),
        None,
    ],
)
def test_what_cannot_be_a_candidate_is_dropped_or_listed(bad: Any) -> None:
    requests = [asked("0", "s", output("<a>", -1)), asked("1", "t", *([bad] if bad else []))]
    with raises(DataError, "bad-response", parameter="bad", line=2, match=r"1 \(1\)"):
        NBest.from_requests(requests, extract="<(.*)>")
    with pytest.warns(BpaWarning) as caught:
        lists = NBest.from_requests(requests, extract="<(.*)>", bad="drop")
    assert lists.sentence_ids.tolist() == [0]
    assert len(caught) == 2  # what is left out, and the prompt without a candidate


def test_other_objects_are_refused() -> None:
    for requests in ("a", ["a"], [asked("0", "s", output(None, -1))]):
        with raises(UsageError, "wrong-type", parameter="requests"):
            NBest.from_requests(requests)


class Model:
    """What the page uses of a model of Transformers."""

    generation_config = SimpleNamespace(eos_token_id=EOS)

    @classmethod
    def from_pretrained(cls, name: str) -> Any:
        return cls()

    def generate(self, n: int = 0, **options: Any) -> dict[str, Any]:
        assert {"output_scores", "return_dict_in_generate"} <= set(options)
        tokens = np.tile(padded(TOKENS, PAD).astype(int), (4, 1))
        return Outputs(sequences=tokens, scores=("steps",))

    def compute_transition_scores(
        self, sequences: Any, scores: Any, beams: Any, normalize_logits: bool
    ) -> Tensor:
        assert (beams, normalize_logits) == (None, True)
        return Tensor(np.tile(padded(LOGPROBS, -7.0), (4, 1)))


class Outputs(dict[str, Any]):
    """A ModelOutput: its fields are keys and attributes."""

    __getattr__ = dict.__getitem__


class Tokenizer:
    """What the page uses of a tokenizer of Transformers."""

    @classmethod
    def from_pretrained(cls, name: str) -> Any:
        return cls()

    def __call__(self, texts: list[str], **options: Any) -> dict[str, Any]:
        return {"input_ids": texts}

    def batch_decode(self, sequences: Any, skip_special_tokens: bool) -> list[str]:
        return [f"text {row}" for row in range(len(sequences))]


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On stand-ins of the two programs, with the documented attributes."""
    monkeypatch.chdir(tmp_path)
    message = {"role": "user", "content": "Translate into English: ein Haus"}
    asking = {"custom_id": "request-0", "body": {"messages": [message]}}
    choices = [{"message": {"content": "a house"}, "logprobs": {"content": [{"logprob": -1}]}}]
    answer = {"custom_id": "request-0", "response": {"body": {"choices": choices}}}
    Path("requests.jsonl").write_text(json.dumps(asking))
    Path("answers.jsonl").write_text(json.dumps(answer))
    transformers, vllm = ModuleType("transformers"), ModuleType("vllm")
    vars(transformers).update(AutoModelForSeq2SeqLM=Model, AutoTokenizer=Tokenizer)
    replies = [asked(f"{n}", "", output("a", -1), output("b", -1, reason="length")) for n in "01"]
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


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"do_sample": True}, {"num_beams": 3}])
def test_a_random_model_of_transformers(options: dict[str, Any]) -> None:
    """Log-probabilities are those that the model itself gives to the generated tokens."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    transformers = pytest.importorskip("transformers", reason="needs Transformers")
    torch.manual_seed(1)
    sizes = {"vocab_size": 11, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
    ids = {"bos_token_id": 0, "eos_token_id": EOS, "pad_token_id": PAD}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ids)).eval()
    prompts = torch.tensor([[0, 5, 6], [0, 7, 8]])
    outputs = model.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        num_return_sequences=3,
        max_new_tokens=8,
        top_k=0,
        output_scores=True,
        return_dict_in_generate=True,
        **options,
    )
    scores = model.compute_transition_scores(
        outputs.sequences,
        outputs.scores,
        outputs.get("beam_indices"),
        normalize_logits="do_sample" in options,
    )
    texts = [f"text {row}" for row in range(6)]
    lists = NBest.from_generate(texts, outputs, 3, transition_scores=scores, eos_token_id=EOS)
    for row, sequence in enumerate(outputs.sequences):
        generated = sequence[3:].tolist()
        length = generated.index(EOS) + 1 if EOS in generated else len(generated)
        with torch.no_grad():
            logits = model(sequence[None, : 3 + length]).logits[0].log_softmax(-1)
        exact = [float(logits[2 + k, generated[k]]) for k in range(length)]
        statistics = [sum(exact), sum(exact) / length, min(exact), length]
        assert lists.features[row, :4] == pytest.approx(statistics, rel=1e-4)
