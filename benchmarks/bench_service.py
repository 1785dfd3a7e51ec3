"""Latency of `bpa serve` for one client, with one connection that is kept and with one a request.

    python benchmarks/bench_service.py [--requests 300] [--candidates 20] [--features 14]

The requests of both kinds alternate. Printed are the median and the 99th percentile in
milliseconds, as the client sees them, and the ratio of the medians. A kept connection is slower
than new ones if the server delays the body of an answer until its head is acknowledged (40 ms).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
import numpy as np
from measuring import Table, run_tables

import bpa_ppl as bpa
from bpa_ppl.posterior.weight_draws import name_weights

DRAWS = 4000


@contextmanager
def served(features: int) -> Iterator[str]:
    """Serve random draws of some weights, and return the address."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "posterior.nc"
        weights = np.random.default_rng(0).normal(0.3, 0.1, size=(4, DRAWS // 4, features))
        draws = name_weights(weights, tuple(f"feature{k}" for k in range(features)))
        bpa.write_posterior(draws, path)
        command = [sys.executable, "-m", "bpa_ppl", "serve", str(path), "--port", "0"]
        log = Path(folder) / "log"
        with log.open("w") as file, subprocess.Popen(command, stderr=file) as process:
            try:
                while " at http://" not in (text := log.read_text()):
                    assert process.poll() is None, text
                yield text.split(" at ")[1].split()[0]
            finally:
                process.terminate()


def requests(options: Any) -> None:
    """Print the milliseconds of each request."""
    values = np.random.default_rng(1).normal(size=(options.candidates, options.features)).tolist()
    names = [f"feature{k}" for k in range(options.features)]
    candidates = [
        {"text": f"candidate {i}", **dict(zip(names, row, strict=True))}
        for i, row in enumerate(values)
    ]
    calls = {
        "`GET /health`": ("GET", "/health", None),
        f"`POST /rerank`, {options.candidates} candidates": (
            *("POST", "/rerank"),
            {"candidates": candidates},
        ),
    }
    table = Table("request", "kept", "p99", "new", "p99", "kept / new")
    single = httpx.Limits(max_keepalive_connections=0)
    with (
        served(options.features) as url,
        httpx.Client(base_url=url) as kept,
        httpx.Client(base_url=url, limits=single) as new,
    ):
        for title, (method, path, body) in calls.items():
            times: dict[httpx.Client, list[float]] = {kept: [], new: []}
            for _ in range(options.requests):
                for client, of in times.items():
                    start = perf_counter()
                    client.request(method, path, json=body).raise_for_status()
                    of.append(1000 * (perf_counter() - start))
            (a, b), (c, d) = (np.quantile(of, [0.5, 0.99]).tolist() for of in times.values())
            table.row(title, a, b, c, d, a / c)


if __name__ == "__main__":
    run_tables(__doc__, (requests,), needs_data=False, requests=300, candidates=20, features=14)
