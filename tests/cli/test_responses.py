"""Responses of LLMs on the command line: --extract, --requests, --bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import refused, succeed

import bpa_ppl as bpa


def response(name: str, text: str, **more: Any) -> str:
    answer = {"message": {"content": text}, "logprobs": {"content": [{"logprob": -1}]}, **more}
    return json.dumps({"custom_id": name, "response": {"body": {"choices": [answer]}}})


@pytest.fixture
def responses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two requests and their responses, of which one is unfinished."""
    monkeypatch.chdir(tmp_path)
    lines = [response("b", "<t>a cat</t>"), response("a", "<t>a dog</t>")]
    cut = response("a", "<t>a", finish_reason="length")
    Path("answers").write_text("\n".join([*lines, cut]))
    requests = [{"custom_id": name, "body": {"prompt": f"source of {name}"}} for name in "ab"]
    Path("requests").write_text("\n".join(map(json.dumps, requests)))


def test_the_options_of_responses(responses: None) -> None:
    written = ("--add", "length", "-o", "lists.jsonl")
    options = ("--extract", "<t>(.*)</t>", "--requests", "requests")
    succeed("features", "answers", *options, "--bad", "drop", *written)
    lists = bpa.read_nbest("lists.jsonl")
    assert (lists.texts(0), lists.texts(1)) == (["a dog"], ["a cat"])
    assert lists.sources == ("source of a", "source of b")
    refused("features", "answers", *options, *written, mention="--bad")
    refused("features", "answers", "--extract", "(", *written, mention="--extract")
