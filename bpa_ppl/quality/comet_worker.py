"""The program that runs COMET in the Python of unbabel-comet; it imports nothing of bpa_ppl.

Each line of standard input is a request in JSON, the name of a function and its arguments. Each is
answered by a line on standard output, `{"value": …}` or `{"error": …}`. It runs on Python 3.8.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from contextlib import redirect_stdout
from functools import lru_cache
from importlib import import_module
from traceback import format_exception_only
from typing import Any


def version() -> str:
    """Return the version of unbabel-comet."""
    return importlib.metadata.version("unbabel-comet")


@lru_cache(1)
def download(model: str) -> str:
    """Return the path of the checkpoint of a model, downloaded unless it has been before."""
    comet = import_module("comet")
    try:
        return str(comet.download_model(model))
    except Exception as error:
        # COMET then tries older ways, and reports the last error: that of the hub is the first.
        reason: BaseException = error
        while reason.__context__ is not None and reason.__cause__ is None:
            reason = reason.__context__
        raise reason from reason.__cause__


def load(path: str) -> None:
    """Load a checkpoint, unless it is the one that is loaded."""
    _model(path, os.stat(path).st_mtime_ns)


def predict(path: str, data: list[dict[str, str]], batch: int, gpus: int) -> list[float]:
    """Return the score of each hypothesis."""
    model = _model(path, os.stat(path).st_mtime_ns)
    scores = model.predict(data, batch_size=batch, gpus=gpus, progress_bar=False).scores
    return [float(score) for score in scores]


@lru_cache(1)
def _model(path: str, time: int) -> Any:
    """Return a model, loaded once: that takes seconds to minutes, and gigabytes."""
    return import_module("comet").load_from_checkpoint(path)


def main() -> None:
    """Answer requests until standard input is closed."""
    functions = {function.__name__: function for function in (version, download, load, predict)}
    with os.fdopen(os.dup(1), "w") as answers, redirect_stdout(sys.stderr):
        os.dup2(2, 1)  # what libraries print, in Python or in C, is no answer
        for line in sys.stdin:
            try:
                name, *arguments = json.loads(line)
                answer = {"value": functions[name](*arguments)}
            except Exception as error:  # torch, the hub and the network have no common error class
                message = "".join(format_exception_only(type(error), error))
                answer = {"error": " ".join(message.split())}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
