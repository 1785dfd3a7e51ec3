"""The page of `bpa judge`: times of answers and of the side panel, and memory.

    python benchmarks/bench_judge_page.py [--answers 2000] [--lists 10000] [--features 17]

Answers as many questions as asked for through the application, as the page does, with a journal on
the disk. The rater prefers the candidate with the higher sum of random features, with noise. Times
are in milliseconds, of the answer with the next question, and of the panel, which is requested
after every twentieth answer; the memory is that of the process after each part.
"""

from __future__ import annotations

import asyncio
import tempfile
from argparse import Namespace
from pathlib import Path
from time import perf_counter

import httpx
import numpy as np
import psutil
from measuring import Table, run_tables

from bpa_ppl import NBest, from_lists
from bpa_ppl.extras.judging.app import judging_application
from bpa_ppl.extras.judging.session import Session

PARTS, CANDIDATES, PANEL = 4, 20, 20
WORDS = np.array([f"word{number}" for number in range(2000)])


def random_lists(count: int, features: int) -> NBest:
    """Return lists of twenty candidates of twenty words."""
    rng = np.random.default_rng(0)
    words = WORDS[rng.integers(len(WORDS), size=(count, CANDIDATES, 20))]
    texts = [[" ".join(row) for row in rows] for rows in words]
    table = rng.normal(size=(count, CANDIDATES, features))
    return from_lists(texts, table, [f"feature{k}" for k in range(features)])


async def answer_all(options: Namespace, session: Session) -> None:
    """Answer questions, and print a row for each part of them."""
    table = Table("answers", "median", "p99", "panel", "panel p99", "MiB")
    rng, process = np.random.default_rng(1), psutil.Process()
    utility = session.lists.features.sum(axis=1)
    transport = httpx.ASGITransport(judging_application(session, "token"))

    async def ask(client: httpx.AsyncClient, method: str, path: str, **body: object) -> float:
        start = perf_counter()
        response = await client.request(method, path, json=body or None)
        seconds = perf_counter() - start
        assert response.status_code == 200, response.text
        return 1000 * seconds

    async with httpx.AsyncClient(transport=transport, base_url="http://localhost/token") as client:
        await ask(client, "GET", "question")
        for part in range(PARTS):
            times, panels = [], []
            for number in range(options.answers // PARTS):
                question = session.next()
                rows = session.lists.offsets[question.sentence] + question.candidates
                difference = utility[rows[0]] - utility[rows[1]] + rng.logistic()
                answer = "first" if difference > 0 else "second"
                times.append(
                    await ask(client, "POST", "answer", number=question.number, answer=answer)
                )
                if number % PANEL == 0:
                    panels.append(await ask(client, "GET", "state"))
            quantiles = [float(q) for x in (times, panels) for q in np.quantile(x, [0.5, 0.99])]
            memory = process.memory_info().rss / 2**20
            table.row(f"{(part + 1) * options.answers // PARTS:,}", *quantiles, memory)


def answers(options: Namespace) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        lists = random_lists(options.lists, options.features)
        session = Session(lists, journal=Path(folder) / "judgements.jsonl")
        asyncio.run(answer_all(options, session))


if __name__ == "__main__":
    run_tables(__doc__, (answers,), needs_data=False, answers=2000, lists=10_000, features=17)
