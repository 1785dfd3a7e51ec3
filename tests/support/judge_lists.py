"""Lists to judge, and the page of a session that runs in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bpa_ppl import NBest, from_lists
from bpa_ppl.extras.judging.session import Session

TOKEN = "a-token_of-the-tests"


def judge_lists(count: int = 8) -> NBest:
    """Lists of three candidates, with a source and a document, of which `quality` is the truth."""
    rng = np.random.default_rng(3)
    texts = [
        [f"the {word} cat sat on mat {s}" for word in ("red", "blue", "old")] for s in range(count)
    ]
    return from_lists(
        texts,
        rng.normal(size=(count, 3, 2)),
        ["quality", "noise"],
        sources=[f"die Katze {s}" for s in range(count)],
        sentence_extras={"doc": [s // 4 for s in range(count)]},
    )


def answer_questions(lists: NBest, answers: Iterable[str], **options: Any) -> Session:
    """Return a session with answers to its first questions."""
    session = Session(lists, **options)
    for answer in answers:
        session.next()
        session.answer(answer)
    return session


def write_journal(path: Path, lists: NBest) -> list[tuple[int | str, list[int], str]]:
    """Write and return the answers of a rater who prefers shorter texts, a tie, a skip, an undo."""
    path.unlink(missing_ok=True)
    session = Session(lists, journal=path, rater="ann", seed=3)
    for number in range(12):
        first, second = map(len, session.next().texts)
        answer = "tie" if first == second else "first" if first < second else "second"
        session.answer("skip" if number == 4 else answer)
        if number == 6:
            session.undo()
    return [(one.id, list(one.candidates), one.answer) for one in session.judgements]


@contextmanager
def running(session: Session) -> Iterator[str]:
    """Run the page of a session in a thread, and yield its address."""
    import uvicorn

    from bpa_ppl.extras.judging.app import judging_application
    from bpa_ppl.extras.judging.web import listen

    with listen("127.0.0.1", 0) as listening:
        app = judging_application(session, TOKEN)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/{TOKEN}/"
        finally:
            server.should_exit = True
            thread.join()
