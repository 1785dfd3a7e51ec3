from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.raising import raises
from support.user_files import compress_zstd, read_references, stream_zstd

from bpa_ppl import read_nbest, read_weights
from bpa_ppl._runtime.streams import (
    atomic_path,
    atomic_writer,
    atomic_writers,
    read_chunks,
    read_lines,
    read_text,
    require_writable,
)
from bpa_ppl.errors import DataError

TEXT = "".join(f"ligne {i}: café au lait, numéro {i * i}\n" for i in range(20_000)).encode()


quick_xz = partial(lzma.compress, preset=0)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip, two members": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    "bzip2": bz2.compress,
    "xz, two streams": lambda data: quick_xz(data[:1000]) + quick_xz(data[1000:]),
    "zstd": compress_zstd,
    "zstd, streamed": stream_zstd,
    "zstd, two frames": lambda data: compress_zstd(data[:1000]) + stream_zstd(data[1000:]),
}


@pytest.mark.parametrize("kind", COMPRESS)
def test_packed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path, data = tmp_path / "misnamed.txt", COMPRESS[kind](TEXT)
    changed = bytearray(data)
    changed[len(data) // 2] ^= 0xFF
    bad = [data[: int(len(data) * 0.3)], data[:-9]]
    # The checksum of bzip2 is at the end of a block, and zstd has none here.
    for content in bad if kind.startswith(("zstd", "bzip2")) else [*bad, changed]:
        path.write_bytes(content)
        with raises(DataError, "damaged"):
            list(read_chunks(path))
    path.write_bytes(data)
    with path.open("rb") as file:
        assert (b"".join(read_chunks(file)), file.closed) == (TEXT, False)
    standard = io.TextIOWrapper(io.BytesIO(data))
    monkeypatch.setattr(sys, "stdin", standard)
    assert read_text("-") == TEXT.decode()
    assert not standard.buffer.closed


#: What these programs write of the text `a café`.
OF_PROGRAMS = {
    "gzip": "1f8b08087866096b0003742e747874004b54484e4c3bbc920b00a10b588e08000000",
    "xz": "fd377a585a000004e6d6b4460200210116000000742fe5a30100076120636166c3a90a00cef916d947e38c71"
    "00012008bb19d9bb1fb6f37d010000000004595a",
    "zstd": "28b52ffd24084100006120636166c3a90a5b4a5507",
    "zstd of a pipe": "28b52ffd04584100006120636166c3a90a5b4a5507",
}


@pytest.mark.parametrize("program", OF_PROGRAMS)
@pytest.mark.parametrize("times", [1, 3])
def test_files_of_the_usual_programs(program: str, times: int) -> None:
    data = bytes.fromhex(OF_PROGRAMS[program]) * times
    assert read_lines(data) == ["a café"] * times
    assert read_lines(io.BytesIO(data)) == ["a café"] * times
    with raises(DataError, "damaged", match=f"valid {program[:4].strip()} data"):
        read_lines(data[:-1])


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("read", [read_lines, read_nbest])
def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, kind: str, read: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b"0 ||| a cat ||| LM0= 1 ||| 1\n"
    (tmp_path / "bomb").write_bytes(COMPRESS[kind](line * (2**20 // len(line))))
    monkeypatch.setattr("bpa_ppl._runtime.streams._STREAM_GIB", 0.0005)
    monkeypatch.setattr("bpa_ppl._runtime.streams._WHOLE_GIB", 0.0005)
    with raises(DataError, "damaged", match="bomb"):
        read(tmp_path / "bomb")


@pytest.mark.parametrize("kind", ["", *COMPRESS])
@pytest.mark.parametrize("read", [read_lines, read_nbest, read_weights, read_references])
@pytest.mark.parametrize("lines", [0, 3])
def test_a_line_that_is_too_long_is_refused(
    tmp_path: Path, kind: str, read: Callable, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpa_ppl._runtime.streams.LONGEST_LINE", 1000)
    data = b"0 ||| a cat ||| LM0= 1 ||| 1\n" * lines + b"a" * 300_000
    (tmp_path / "file").write_bytes(COMPRESS[kind](data) if kind else data)
    with raises(DataError, "bad-line", line=lines + 1, match="file:.* 1000 bytes"):
        read(tmp_path / "file")


def test_long_lines_are_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpa_ppl._runtime.streams.LONGEST_LINE", 100_000)
    lines = ["a" * 99_000, "b", "c" * 99_999]
    assert read_lines("\n".join(lines).encode()) == lines
    assert read_lines(lines) == lines
    for line, longer in enumerate(([f"{lines[0]:100001}"], ["b", lines[2] + "cc", "d"])):
        with raises(DataError, "bad-line", line=line + 1):
            read_lines(longer)


@pytest.mark.parametrize(
    ("suffix", "tool"),
    [("", "cat"), (".gz", "gzip"), (".bz2", "bzip2"), (".xz", "xz"), (".zst", "zstd")],
)
def test_what_is_written_is_read_by_the_usual_tools(tmp_path: Path, suffix: str, tool: str) -> None:
    path, again = tmp_path / f"out.txt{suffix}", tmp_path / f"again{suffix}"
    for one in (path, again):
        with atomic_writer(one) as file:
            file.write(TEXT.decode())
    assert path.read_bytes() == again.read_bytes()
    assert read_text(path) == TEXT.decode()
    assert {*os.listdir(tmp_path)} == {path.name, again.name}
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    assert subprocess.check_output([tool, *["-dc"] * bool(suffix), path]) == TEXT


@pytest.mark.parametrize(
    ("failure", "suffix"),
    [(ValueError, ""), (KeyboardInterrupt, ".gz"), (SystemExit, ".xz"), (MemoryError, ".zst")],
)
def test_failures_keep_files(tmp_path: Path, failure: type[BaseException], suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_text("old")
    with pytest.raises(failure), atomic_writer(path) as file:  # noqa: PT012
        file.write("half")
        raise failure
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_text() == "old"


def test_unwritable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path, match in ((tmp_path / "missing" / "out", None), (tmp_path, None), ("", "empty")):
        with raises(DataError, "cannot-write", match=match):
            require_writable(path)
        with raises(DataError, "cannot-write", match=match), atomic_writer(path):
            pytest.fail("the file is open")
    for path in (tmp_path / "new", Path(os.devnull), Path("-")):
        require_writable(path)
    assert os.listdir(tmp_path) == []


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    path.write_text("old")

    def refuse(name: Path, flags: int, mode: int = 0o777) -> int:
        if Path(name) == path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(name, flags, mode)

    real = os.open
    monkeypatch.setattr(os, "open", refuse)  # the superuser may write anything
    with (
        raises(DataError, "cannot-write", match="change its permissions"),
        atomic_writer(path) as file,
    ):
        file.write("new")
    assert path.read_text() == "old"


def test_the_mode_of_a_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.touch(0o600)
    with atomic_path(path) as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600  # as soon as there is anything to read
        temporary.write_text("new")
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o600, "new")


def test_an_error_of_another_file_is_not_blamed_on_the_output(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "out"):
        open(tmp_path / "input")  # noqa: SIM115


def test_a_link_is_written_through_and_a_device_directly(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for path in (tmp_path / "link", Path(os.devnull)):
        with atomic_writer(path) as file:
            file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    assert Path(os.devnull).is_char_device()


def test_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with atomic_writer("-") as file:
        file.write("café\n")
    assert capsysbinary.readouterr().out == "café\n".encode()
    for path in ("-", "/dev/stdout"):
        with atomic_path(path) as temporary:
            temporary.write_bytes(b"\x00binary")
        assert capsysbinary.readouterr().out == b"\x00binary"


def test_lines_end_at_newlines_alone(tmp_path: Path) -> None:
    for content, lines in ((b"", []), (b"\n", [""]), (b"\xef\xbb\xbfa\r\nb", ["a", "b"])):
        (tmp_path / "text").write_bytes(content)
        assert read_lines(tmp_path / "text") == lines
    (tmp_path / "text").write_text("a\u2028b\x0bc\x85\n")
    assert read_lines(tmp_path / "text") == ["a\u2028b\x0bc\x85"]
    for content in ("a cat\n".encode("utf-16"), b"a\0cat\n"):
        (tmp_path / "text").write_bytes(content)
        with raises(DataError, "bad-encoding", line=1):
            read_lines(tmp_path / "text")


def test_two_files_are_replaced_together(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("first", "second")]
    for path in paths:
        path.write_text("old")
    with atomic_writers(*paths) as files:
        for file in files:
            file.write("new")
        assert paths[0].read_text() == "old"
    assert sorted(tmp_path.iterdir()) == paths
    assert [path.read_text() for path in paths] == ["new", "new"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_a_device_that_is_full_is_named(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"full{suffix}").symlink_to("/dev/full")
    path, match = tmp_path / f"full{suffix}", f"full{suffix}: .*No space left"
    with raises(DataError, "cannot-write", match=match), atomic_writer(path) as file:
        file.write("whole")


class Zeros(io.RawIOBase):
    """A device of zeros, of which little may be read."""

    reads = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.reads += 1
        assert self.reads < 20
        buffer[:] = bytes(len(buffer))
        return len(buffer)


def test_a_device_without_an_end_is_not_read_further_than_its_first_nul() -> None:
    for read in (read_text, lambda file: list(read_chunks(file)), read_nbest):
        with pytest.raises(DataError, match="<file object>") as caught:
            read(Zeros())
        assert caught.value.code in ("bad-encoding", "unknown-format")
