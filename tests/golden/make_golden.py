"""Make the files that later versions must read; only until 1.0 is released.

    PYTHONPATH=tests python tests/golden/make_golden.py

From the data of the demo: lists with a posterior, a learned prior, a journal of judgements and
weights; and `expected.json`, with what this version makes of them.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from support.command_line import succeed

import bpa_ppl as bpa
from bpa_ppl import as_weight_draws, write_posterior

FOLDER = Path(__file__).resolve().parent
#: Version 1.0 wrote them as fields of the candidates.
FEATURES = ["logprob.*", "length", "count"]
ROOT = FOLDER.parent.parent
DEMO = ROOT / "examples" / "demo_data"


def recipes(part: str) -> bpa.NBest:
    """Return answers of an LLM, with references."""
    return bpa.read_nbest(
        f"recipes.{part}.answers.jsonl",
        references=f"recipes.{part}.ref",
        format=f"openai:requests=recipes.{part}.requests.jsonl,source=Translate: (.*)",
    )


def make_posterior() -> None:
    """Write a posterior with added features, and the lists that it is used on."""
    options = {"gain": "chrf", "add": ["consensus", "length"], "seed": 1}
    posterior = bpa.adapt(recipes("adapt"), None, sampler="laplace:draws=200", **options)
    assert bpa.check(posterior)
    small = replace(
        as_weight_draws(posterior), prior={}
    )  # draws of the prior take most of the file
    with tempfile.TemporaryDirectory() as folder:
        write_posterior(small, f"{folder}/posterior.nc")
        content = Path(f"{folder}/posterior.nc").read_bytes()
    (FOLDER / "posterior.nc.gz").write_bytes(gzip.compress(content, mtime=0))
    bpa.write_nbest(recipes("new")[:8], FOLDER / "lists.jsonl")
    bpa.write_weights(bpa.point_weights(posterior), FOLDER / "weights.json")


def make_prior() -> None:
    """Write a prior learned from two parts of the leaflet."""
    lists = bpa.read_nbest("leaflet.nbest100.gz", references="leaflet.ref")
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for part, chosen in (("dosage", lists[:20]), ("effects", lists[20:40])):
            paths.append(f"{folder}/{part}.nc")
            weights = bpa.read_weights("moses.ini")
            write_posterior(bpa.adapt(chosen, weights, sampler="laplace"), paths[-1])
        succeed("learn-prior", *paths, "-q", "-o", FOLDER / "prior.json")


def expected(posterior: Path) -> dict[str, Any]:
    """Return what this version makes of the files, as plain data.

    Args:
        posterior: the unpacked file.
    """
    lists = bpa.read_nbest(FOLDER / "lists.jsonl", features=FEATURES)
    result = bpa.Reranker(posterior)(lists)
    prior = bpa.Prior.read(FOLDER / "prior.json")
    return {
        "features": list(lists.feature_names),
        "choice": result.choice.tolist(),
        "texts": list(result.texts),
        "probability": result.probability.tolist(),
        "mean": dict(bpa.point_weights(bpa.read_posterior(posterior))),
        "weights": dict(bpa.read_weights(FOLDER / "weights.json")),
        "prior": {
            "names": list(prior.names or ()),
            "mean": np.asarray(prior.mean).tolist(),
            "covariance": np.asarray(prior.full_covariance).tolist(),
        },
    }


def unpacked(folder: Path) -> Path:
    """Return the posterior in a folder."""
    path = folder / "posterior.nc"
    path.write_bytes(gzip.decompress((FOLDER / "posterior.nc.gz").read_bytes()))
    return path


def main() -> None:
    """Make all files."""
    from support.judge_lists import write_journal

    os.chdir(DEMO)  # names of files without folders are recorded
    make_posterior()
    make_prior()
    answers = write_journal(
        FOLDER / "journal.jsonl", bpa.read_nbest(FOLDER / "lists.jsonl", features=FEATURES)
    )
    with tempfile.TemporaryDirectory() as folder:
        content = {
            "version": bpa.__version__,
            **expected(unpacked(Path(folder))),
            "answers": answers,
        }
    text = json.dumps(content, indent=1, ensure_ascii=False)
    (FOLDER / "expected.json").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main()
