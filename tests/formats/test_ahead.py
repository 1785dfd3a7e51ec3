"""Reading ahead: nothing differs from reading in turn, but that the next item is being made."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from raising import raises

from bpa_ppl import BpaWarning, DataError, iter_nbest, read_nbest
from bpa_ppl.formats.streams import ahead
from bpa_ppl.notes import capture_notes, warn_user

WAIT = 10  # seconds after which something that should happen has not


def test_one_item_is_made_meanwhile_and_no_more() -> None:
    made = [threading.Event() for _ in range(4)]

    def items() -> Iterator[int]:
        for number, event in enumerate(made):
            event.set()
            yield number

    stream = ahead(items())
    assert not made[0].wait(0.02), "nothing is read before somebody asks"
    for number in range(3):
        assert next(stream) == number
        assert made[number + 1].wait(WAIT)
        assert not any(event.wait(0.02) for event in made[number + 2 :])
    assert list(stream) == [3]


def test_notes_and_errors_come_with_their_item_in_the_thread_of_the_caller() -> None:
    def items() -> Iterator[int]:
        for number in range(2):
            warn_user(f"of item {number}")
            yield number
        warn_user("of the end")
        raise DataError("it is bad", "dev", 7)

    stream = ahead(items())
    for number in range(2):
        with capture_notes() as notes:
            assert next(stream) == number
        assert [note.message for note in notes] == [f"of item {number}"]
    with (
        pytest.warns(BpaWarning, match="of the end") as warned,
        raises(DataError, line=7),
    ):
        next(stream)
    assert [record.filename for record in warned] == [__file__]
    assert list(stream) == []


def test_an_unfinished_stream_ends_its_thread_and_the_reader() -> None:
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            while True:
                yield 0
        finally:
            closed.set()

    before = threading.active_count()
    stream = ahead(items())
    assert next(stream) == 0
    assert threading.active_count() == before + 1
    del stream
    assert closed.wait(WAIT)
    assert threading.active_count() == before


@pytest.mark.parametrize("name", ["lists.csv", "lists.csv.gz"])
@pytest.mark.parametrize("last", ["-1,b,2", "1,b,x"])
def test_an_error_ends_all_threads_while_it_is_kept(tmp_path: Path, name: str, last: str) -> None:
    """An id below the first one is found after the reader, a bad number by the reader."""
    path = tmp_path / name
    filler = [f"1,{'word ' * 40}{n},1" for n in range(20_000)]
    content = "\n".join(["id,text,lm", "0,a,1", *filler, last, *filler, ""]).encode()
    path.write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    before = threading.active_count()
    with pytest.raises(DataError) as caught:
        read_nbest(path)
    assert threading.active_count() == before
    assert caught.value.line is not None


def test_of_a_pipe_no_more_is_read_than_was_asked_for(tmp_path: Path) -> None:
    """A thread that waits for a pipe could be stopped by nobody."""
    pipe = tmp_path / "lists"
    os.mkfifo(pipe)
    written = threading.Event()

    def write() -> None:
        with pipe.open("w") as file:
            for sentence in range(3):
                text = "".join(f"{sentence} ||| t ||| LM0= {n}\n" for n in range(60_000))
                file.write(text)
        written.set()

    writer = threading.Thread(target=write)
    writer.start()
    stream = iter_nbest(pipe, chunk=1)
    assert len(next(stream)) == 1
    assert not any(thread.name.startswith("ThreadPool") for thread in threading.enumerate())
    assert len(list(stream)) == 2
    writer.join(WAIT)
    assert written.is_set()
