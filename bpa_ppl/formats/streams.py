"""Reading and writing of files: compressed or not, and written completely or not at all."""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import lzma
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import copy_context
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO, NamedTuple, TextIO, TypeAlias, TypeVar, cast

from isal import isal_zlib

from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.notes import Note, capture_notes, replay

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

T = TypeVar("T")

#: How a user names a file; `-` is the standard input or output.
AnyPath = str | Path
#: What can be read: the path of a file, an open file, the content of one, or lines.
AnyInput: TypeAlias = AnyPath | bytes | IO[bytes] | IO[str] | Iterable[str] | Iterable[bytes]
STANDARD = "-"

_CHUNK = 1 << 16  # bytes read at once; compressed text grows about tenfold
_BLOCK = 1 << 22  # bytes of text in a block
#: GiB that a compressed file may hold, if it is read in parts, or as a whole; the environment
#: variable replaces both.
_STREAM_GIB, _WHOLE_GIB, _LIMIT = 16.0, 1.0, "BPA_PPL_UNPACKED_LIMIT"
_BOM = b"\xef\xbb\xbf"
_MAGIC = 8  # bytes that identify compressed files
_MAX_LINKS = 40  # that are followed one after another, as Linux does
_PART = ".bpa-"  # begins the names of temporary files
_LONGEST_NAME = 200  # bytes of the name of an output in them; file systems take 255


class Codec(NamedTuple):
    """One kind of compression.

    Attributes:
        name: for messages.
        suffix: ending of the names of such files.
        magic: first bytes of such files.
        decoder: returns a new decompressor of one stream, as those of lzma.
        encoder: returns a binary file that compresses into another one.
        piece: how many bytes are decompressed at once, so that they hold 128 MiB at most.
    """

    name: str
    suffix: str
    magic: bytes
    decoder: Callable[[], Any]
    encoder: Callable[[BinaryIO], Any]
    piece: int


CODECS = (
    Codec(
        "gzip",
        ".gz",
        b"\x1f\x8b",
        lambda: isal_zlib.decompressobj(31),
        # Without name and time, so that equal content gives equal files.
        lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),
        _CHUNK,
    ),
    Codec(
        "xz",
        ".xz",
        b"\xfd7zXZ\0",
        lzma.LZMADecompressor,
        partial(lzma.LZMAFile, mode="wb"),
        _CHUNK >> 2,
    ),
    Codec(
        "zstd",
        ".zst",
        b"\x28\xb5\x2f\xfd",
        zstd.ZstdDecompressor,
        partial(zstd.ZstdFile, mode="wb"),
        _CHUNK >> 4,
    ),
)
#: The errors of the decompressors for corrupt data.
CORRUPT: tuple[type[Exception], ...] = (
    cast(type[Exception], isal_zlib.error),
    lzma.LZMAError,
    zstd.ZstdError,
)


def origin_name(source: AnyInput) -> str:
    """Return the name of an input for messages.

    >>> [origin_name(source) for source in ("-", "dev.nbest.gz", io.StringIO("a"), ["a"])]
    ['<standard input>', 'dev.nbest.gz', '<file object>', '<lines>']
    """
    if isinstance(source, str | Path):
        return "<standard input>" if str(source) == STANDARD else str(source)
    if isinstance(source, bytes):
        return "<bytes>"
    if not hasattr(source, "read"):
        return "<lines>"
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<file object>"


def file_suffix(path: AnyPath) -> str:
    """Return the ending of a file in lower case, without that of compression.

    >>> file_suffix("dev.CSV"), file_suffix("dev.jsonl.gz"), file_suffix("dev.gz"), file_suffix("-")
    ('.csv', '.jsonl', '', '')
    """
    return unpacked_name(path).suffix.lower()


def unpacked_name(path: AnyPath) -> PurePath:
    """Return the name of a file without the ending of compression.

    >>> str(unpacked_name("dev.txt.gz"))
    'dev.txt'
    """
    name = PurePath(path)
    return name.with_suffix("") if name.suffix in {codec.suffix for codec in CODECS} else name


class InputFile:
    r"""A file that is read once, from its beginning, after a look at its first lines.

    Args:
        path: the file, compressed or not; `-` is the standard input; or an open file, the bytes of
            one, or its lines, with or without their ends.

    Raises:
        DataError: from its methods, as `read_blocks`.

    >>> import gzip
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(gzip.compress(b"one" + bytes([10]) + b"two")), file.flush()
    ...     opened = InputFile(file.name)
    ...     print(opened.first_line, b"".join(opened.blocks()))
    b'one' b'one\ntwo\n'
    """

    def __init__(self, path: AnyInput):
        self.path = path
        self.origin = origin_name(path)
        self._chunks = _plain_bytes(path)
        self._begun: list[bytes] = []

    @property
    def first_line(self) -> bytes:
        """The first line without its end, or all bytes before the first newline.

        Raises:
            DataError: if the file is empty or cannot be read.
        """
        while not self._begun or b"\n" not in self._begun[-1]:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._begun.append(chunk)
        if not self.beginning:
            raise DataError("the file is empty", self.origin, code="no-data")
        return self.beginning.partition(b"\n")[0]

    @property
    def beginning(self) -> bytes:
        """The bytes that were read to find the first line."""
        return b"".join(self._begun)

    def blocks(self) -> Iterator[bytes]:
        """Yield the text in blocks of whole lines, each ended by a newline.

        Raises:
            DataError: if there is a NUL byte in it, as of UTF-16 or a damaged disk.
        """
        return _blocks_of_text(self._all_chunks(), self.origin)

    def close(self) -> None:
        """Stop reading, which ends the thread that unpacks the file."""
        self._chunks.close()

    @contextmanager
    def on_disk(self) -> Iterator[str]:
        """Provide the path of an uncompressed file: a copy if this one is compressed or a pipe."""
        if self._is_plain():
            self._chunks.close()
            yield str(self.path)
            return
        with tempfile.NamedTemporaryFile() as copy:
            for chunk in self._all_chunks():
                copy.write(chunk)
            copy.flush()
            yield copy.name

    def _all_chunks(self) -> Iterator[bytes]:
        begun, self._begun = self._begun, []
        yield from begun
        yield from self._chunks

    def _is_plain(self) -> bool:
        """Return whether the file is neither compressed nor a pipe."""
        if not isinstance(self.path, str | Path) or str(self.path) == STANDARD:
            return False
        path = Path(self.path)
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(_MAGIC)
        return not head.startswith((_BOM, *(codec.magic for codec in CODECS)))


def read_blocks(path: AnyInput) -> Iterator[bytes]:
    r"""Yield the text of a file in blocks of whole lines, each ended by a newline.

    gzip, xz and zstd are detected by their first bytes, not by the name of the file, and unpacked
    in a thread. A byte-order mark is removed, and a newline is added if the last line has none.

    Args:
        path: the file; `-` is the standard input.

    Raises:
        DataError: if the file cannot be read, its compressed data are cut short, corrupt or too
            large when unpacked, or it is not text.

    >>> import gzip, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(gzip.compress(b"one" + bytes([10]) + b"two")), file.flush()
    ...     print(b"".join(read_blocks(file.name)))
    b'one\ntwo\n'
    """
    return _blocks_of_text(_plain_bytes(path), origin_name(path))


def beginning_of(path: AnyInput) -> bytes:
    r"""Return the first bytes of a file, unpacked as by `read_blocks`, text or not.

    >>> beginning_of([b"a cat"])
    b'a cat\n'
    """
    return next(_plain_bytes(path), b"")


def line_count(block: bytes) -> int:
    r"""Return the number of newlines, five times as fast as `bytes.count`.

    >>> line_count(b"a cat\na dog\n")
    2
    """
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))


def _blocks_of_text(chunks: Iterator[bytes], origin: str) -> Iterator[bytes]:
    before = 0
    for block in _whole_lines(chunks):
        _check_text(block, origin, before)
        yield block
        before += line_count(block)


def _check_text(block: bytes, origin: str, before: int = 0) -> None:
    """Refuse text with a NUL byte, or without the line ends of Unix or Windows.

    Args:
        block: the text.
        origin: of the text.
        before: the number of lines before it.
    """
    at = block.find(b"\0")
    if at >= 0:
        raise DataError(
            "a NUL byte, which is not text: create the file again, convert it from UTF-16 "
            "with iconv, or remove such bytes with `tr -d '\\000'`",
            origin,
            before + block.count(b"\n", 0, at) + 1,
            code="bad-encoding",
        )
    text = b"" if before else block.rstrip(b"\r\n")
    if b"\r" in text and b"\n" not in text:
        raise DataError(
            "its lines end with carriage returns alone: convert it with `tr '\\r' '\\n'`",
            origin,
            1,
            code="bad-encoding",
        )


def _whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Join chunks into blocks that end with a line; each byte is copied once."""
    waiting: list[bytes] = []
    length = 0
    for chunk in chunks:
        waiting.append(chunk)
        length += len(chunk)
        cut = chunk.rfind(b"\n") + 1 if length >= _BLOCK else 0
        if cut:
            waiting[-1] = chunk[:cut]
            yield b"".join(waiting)
            waiting, length = [chunk[cut:]], len(chunk) - cut
    rest = b"".join(waiting)
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def read_text(path: AnyInput) -> str:
    """Return the content of a UTF-8 text file, unpacked as by `read_blocks`.

    Raises:
        DataError: if the file cannot be read, or a line is not UTF-8.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write("café".encode()), file.flush()
    ...     print(read_text(file.name))
    café
    """
    data = b"".join(_plain_bytes(path, _WHOLE_GIB))
    text = decoded(data, path, 1)
    _check_text(data, origin_name(path))
    return text


def read_lines(path: AnyInput) -> list[str]:
    r"""Return the lines of a UTF-8 text file, without their ends (`\n` or `\r\n`).

    Raises:
        DataError: as `read_text`.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write("un café".encode()), file.flush()
    ...     print(read_lines(file.name))
    ['un café']
    """
    # Not splitlines, which also splits at other separators, such as U+2028.
    lines = read_text(path).split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def decoded(data: bytes, path: AnyInput, line: int) -> str:
    r"""Return bytes as text; they begin in the given line of the file.

    Raises:
        DataError: naming the line, if they are not UTF-8.

    >>> decoded(b"caf\xc3\xa9", "dev.ref", 1)
    'café'
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        remedy = "give a file of text" if data[:4] == b"\x89HDF" else "convert the file with iconv"
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8 text: {remedy}"
        number = line + data.count(b"\n", 0, error.start)
        raise DataError(problem, origin_name(path), number, code="bad-encoding") from error


def text_lines(blocks: Iterable[bytes], path: AnyInput) -> Iterator[str]:
    r"""Yield the lines of blocks of whole lines, without their ends (`\n` or `\r\n`).

    Raises:
        DataError: as `decoded`.

    >>> list(text_lines([b"a cat\r\na dog\n"], "dev"))
    ['a cat', 'a dog']
    """
    first = 1
    for block in blocks:
        lines = decoded(block, path, first).replace("\r\n", "\n")[:-1].split("\n")
        yield from lines
        first += len(lines)


def arrow_file(data: bytes) -> Any:
    """Return bytes as a file of Arrow, in memory of Arrow.

    A thread of Arrow that holds a Python object when the program ends aborts it. Arrow removes a
    byte-order mark; one inside a file is a part of its text, and is doubled here.

    >>> arrow_file(b"id").read()
    b'id'
    """
    import numpy as np
    import pyarrow as pa

    data = _BOM + data if data.startswith(_BOM) else data
    copy = pa.allocate_buffer(len(data))
    np.frombuffer(copy, np.uint8)[:] = np.frombuffer(data, np.uint8)
    return pa.BufferReader(copy)


def make_folder(folder: Path) -> None:
    """Create a folder for results, and its parents, if it does not exist.

    Raises:
        DataError: if it cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot create this folder ({error.strerror})"
        raise DataError(problem, folder, code="cannot-write") from error


@contextmanager
def atomic_path(path: AnyPath) -> Iterator[Path]:
    """Provide a temporary path in the same folder, and rename it to `path` at the end.

    After an error, or Ctrl-C, the temporary file is removed and `path` is as before. The temporary
    name ends as `path` does, and the mode of an existing file is kept. Pipes and devices are
    written to directly. `-` copies the file to the standard output, and a name such as
    `/dev/stdout` or `/dev/fd/3` to a file that is open already, at its present position.

    Raises:
        DataError: at the start if `path` cannot be written, or later if the disk is full.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("done")
    ...     print((Path(folder) / "a.txt").read_text(), len(os.listdir(folder)))
    done 1
    """
    with _atomic_paths(path) as (temporary,):
        yield temporary


def require_writable(path: AnyPath) -> None:
    """Raise the error of `atomic_path` before long work, if a file cannot be written.

    Raises:
        DataError: if the file cannot be written.

    >>> require_writable("/no/such/folder/posterior.nc")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: /no/such/folder/posterior.nc: no such folder: check the path
    """
    with ExitStack() as stack, _named_errors(path):
        stack.enter_context(_part(path))


@contextmanager
def _atomic_paths(*paths: AnyPath) -> Iterator[tuple[Path, ...]]:
    """Do what `atomic_path` does for several files, which appear when all are complete."""
    with ExitStack() as stack, _named_errors(*paths):
        parts = [stack.enter_context(_part(path)) for path in paths]
        yield tuple(temporary for temporary, _ in parts)
        for _, finish in parts:
            finish()


@contextmanager
def _part(path: AnyPath) -> Iterator[tuple[Path, Callable[[], object]]]:
    """Provide the path to write to, and what puts its content in place when all is written."""
    try:
        target, descriptor = Path(os.path.realpath(path)), open_descriptor(path)
        status = os.stat(path) if os.path.exists(path) else None
    except ValueError as error:  # no file can have this name
        raise OSError(errno.EINVAL, str(error)) from error
    is_file = status is not None and stat.S_ISREG(status.st_mode)
    if str(path) == STANDARD or (descriptor is not None and is_file):
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder) / "output"
            yield temporary, partial(_copy, temporary, descriptor)
        return
    if target.is_dir():
        raise IsADirectoryError
    if status is not None and not is_file:
        yield Path(path), lambda: None
        return
    if is_file:
        os.close(os.open(target, os.O_WRONLY))  # renaming would replace a file set read-only
    ending = os.fsencode(target.name)[-_LONGEST_NAME:].decode(errors="ignore")
    temporary = target.with_name(f"{_PART}{secrets.token_hex(4)}.part.{ending}")
    temporary.touch(exist_ok=False)
    try:
        if is_file:
            with suppress(OSError):  # some drives have no modes
                shutil.copymode(target, temporary)
        yield temporary, partial(temporary.replace, target)
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            temporary.unlink()


def open_descriptor(path: AnyPath) -> int | None:
    """Return the number of the open file that a name such as `/dev/stdout` or `/dev/fd/3` means.

    >>> open_descriptor("/dev/fd/1"), open_descriptor("posterior.nc")
    (1, None)
    """
    for _ in range(_MAX_LINKS):
        folder, name = os.path.split(os.path.abspath(path))
        if os.path.realpath(folder) in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
            return int(name) if name.isdecimal() else None
        if not os.path.islink(path):
            return None
        path = os.path.join(folder, os.readlink(path))
    return None


def _copy(file: Path, descriptor: int | None) -> None:
    """Write a file to an open one; None is the standard output."""
    if descriptor is None:
        with standard_output() as text:
            text.buffer.write(file.read_bytes())
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    with open(descriptor, "wb", closefd=False) as target:
        target.write(file.read_bytes())


@contextmanager
def _named_errors(*paths: AnyPath) -> Iterator[None]:
    """Convert errors of the system about outputs into ours, which name them."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the pipe needs no more
    except OSError as error:
        named = error.filename
        ours = () if named is None else {*map(str, paths), *map(os.path.realpath, paths)}
        if named is not None and not Path(named).name.startswith(_PART) and str(named) not in ours:
            raise  # the error is about another file
        names = ("<standard output>" if str(path) == STANDARD else str(path) for path in paths)
        raise denied(", ".join(names), error, "written") from error


@contextmanager
def atomic_writer(path: AnyPath) -> Iterator[TextIO]:
    """Open a UTF-8 text file that appears under its name only when it is complete.

    Args:
        path: the file; .gz, .xz and .zst are compressed, `-` is the standard output.

    Raises:
        DataError: as `atomic_path`.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_writer(Path(folder) / "a.txt.gz") as file:
    ...         _ = file.write("done")
    ...     print(read_lines(Path(folder) / "a.txt.gz"))
    ['done']
    """
    if str(path) == STANDARD:
        with standard_output() as text:
            yield text
        return
    with atomic_path(path) as temporary, _text_file(temporary, path) as text:
        yield text


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Provide the standard output as UTF-8, whatever the encoding of the terminal.

    Raises:
        DataError: if it is closed.

    >>> with standard_output() as text:
    ...     print("done", file=text)
    done
    """
    original = sys.stdout
    if original is None:
        problem = "it is closed: open it, or name a file"
        raise DataError(problem, "<standard output>", code="cannot-write")
    if not hasattr(original, "buffer"):  # a replacement, as in a notebook
        yield original
        original.flush()
        return
    original.flush()
    # Not a TextIOWrapper, which closes the standard output when it is deleted after an error.
    text: Any = codecs.getwriter("utf-8")(original.buffer)
    text.buffer = original.buffer  # for callers that write bytes
    try:
        yield text
    finally:
        original.flush()


@contextmanager
def atomic_writers(*paths: AnyPath) -> Iterator[tuple[TextIO, ...]]:
    """Open several such files, which appear when all are complete.

    `-` is copied to the standard output at the end.

    Raises:
        DataError: as `atomic_path`.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_writers(Path(folder) / "a", Path(folder) / "b") as (a, b):
    ...         _ = a.write("one"), b.write("two")
    ...     print(sorted(os.listdir(folder)))
    ['a', 'b']
    """
    with _atomic_paths(*paths) as temporaries, ExitStack() as closing:
        parts = zip(temporaries, paths, strict=True)
        yield tuple(closing.enter_context(_text_file(*part)) for part in parts)


@contextmanager
def _text_file(temporary: Path, path: AnyPath) -> Iterator[TextIO]:
    """Open a file to write text, compressed as the suffix of `path` says."""
    with temporary.open("wb") as raw:
        codec = next((c for c in CODECS if Path(path).suffix == c.suffix), None)
        binary: IO[bytes] = raw if codec is None else codec.encoder(raw)
        with io.TextIOWrapper(binary, encoding="utf-8", newline="\n") as text:
            yield text


def _plain_bytes(path: AnyInput, gib: float | None = None) -> Generator[bytes, None, None]:
    """Yield the decompressed content in chunks of any length, without a byte-order mark.

    Args:
        path: what is read.
        gib: the most that a compressed file may hold, in GiB; None for files read in parts.
    """
    chunks = _raw_chunks(path)
    first = next(chunks, b"")
    codec = next((c for c in CODECS if first.startswith(c.magic)), None)
    whole = chain([first], chunks)
    texts = whole if codec is None else ahead(_unpacked(whole, codec, path, gib or _STREAM_GIB))
    yield next(texts, b"").removeprefix(_BOM)
    yield from texts


def _raw_chunks(path: AnyInput) -> Iterator[bytes]:
    if not isinstance(path, str | Path):
        yield from _chunks_in_memory(path)
        return
    standard = str(path) == STANDARD
    if standard and sys.stdin is None:
        problem = "it is closed: open it, or name a file"
        raise DataError(problem, origin_name(path), code="cannot-read")
    try:
        with nullcontext(sys.stdin.buffer) if standard else open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        raise denied(path, error, "read") from error


def _chunks_in_memory(source: Any) -> Iterator[bytes]:
    """Yield the content of an open file, of bytes, or of lines, which get an end each."""
    chunks: Iterable[bytes | str]
    if isinstance(source, bytes):
        chunks = [source]
    elif hasattr(source, "read"):
        chunks = iter(lambda: source.read(_CHUNK), type(source.read(0))())
    elif isinstance(source, Iterable):
        chunks = map(_ended, source)
    else:
        raise UsageError(
            f"lists are read from a path, an open file, bytes or lines, not {quoted(source)}",
            parameter="path",
            code="wrong-type",
        )
    for chunk in chunks:
        yield chunk if isinstance(chunk, bytes) else chunk.encode(errors="surrogatepass")


def _ended(line: Any) -> bytes | str:
    if isinstance(line, bytes):
        return line if line.endswith(b"\n") else line + b"\n"
    if isinstance(line, str):
        return line if line.endswith("\n") else line + "\n"
    raise UsageError(
        f"a line is a text or bytes, not {quoted(line)}", parameter="path", code="wrong-type"
    )


def _unpacked(chunks: Iterator[bytes], codec: Codec, path: AnyInput, gib: float) -> Iterator[bytes]:
    """Decompress one or several concatenated streams, up to a number of GiB."""
    gib = _unpacked_limit(gib)
    decoder, left = codec.decoder(), gib * 2**30
    try:
        size = codec.piece
        for piece in (c[start : start + size] for c in chunks for start in range(0, len(c), size)):
            while piece:
                if decoder.eof:
                    decoder = codec.decoder()
                text = decoder.decompress(piece)
                piece = decoder.unused_data if decoder.eof else b""
                left -= len(text)
                if left < 0:
                    raise DataError(
                        f"unpacks to more than {gib:g} GiB: if that is right, set {_LIMIT} to a "
                        "larger number of GiB, or unpack the file",
                        origin_name(path),
                        code="damaged",
                    )
                yield text
    except CORRUPT as error:
        raise _damaged(path, f"the {codec.name} data are corrupt ({error})") from error
    if not decoder.eof:
        raise _damaged(path, f"the {codec.name} data end too early")


def _unpacked_limit(default: float) -> float:
    """Return how many GiB a compressed file may hold."""
    text = os.environ.get(_LIMIT, str(default))
    try:
        gib = float(text)
    except ValueError:
        gib = 0.0
    if not gib > 0:
        problem = f"{_LIMIT} must be a number > 0 (GiB), not {quoted(text)}"
        raise UsageError(problem, parameter=_LIMIT)
    return gib


def _damaged(path: AnyInput, problem: str) -> DataError:
    message = f"{problem}: download or create the file again"
    return DataError(message, origin_name(path), code="damaged")


def denied(path: AnyInput, error: OSError | ValueError, done: str) -> DataError:
    """Return the error for a file that the system refuses; `done` is read or written."""
    reading = done == "read"
    code = "cannot-read" if reading else "cannot-write"
    if isinstance(error, FileNotFoundError):
        reason = f"no such {'file' if reading else 'folder'}: check the path"
        code = "missing-file" if reading else code
    elif isinstance(error, IsADirectoryError):
        reason = f"this is a folder and cannot be {done}: add the name of a file"
    elif isinstance(error, PermissionError):
        reason = f"permission denied: it cannot be {done} by this user, change its mode with chmod"
    else:
        reason = f"it could not be {done}: {getattr(error, 'strerror', None) or error}"
    return DataError(reason, origin_name(path) if reading else str(path), code=code)


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items while a thread prepares the next one, and no more than one.

    All items are prepared in that thread. Notes and errors are logged and raised in the thread of
    the caller, when it asks for the item.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """

    def prepare(notes: list[Note]) -> list[T]:
        with capture_notes() as captured:
            try:
                return list(islice(items, 1))
            finally:
                notes += captured

    with ThreadPoolExecutor(1) as thread:

        def submit() -> tuple[Future[list[T]], list[Note]]:
            notes: list[Note] = []
            return thread.submit(copy_context().run, prepare, notes), notes

        pending, notes = submit()
        while True:
            pending.exception()  # waits
            replay(notes)
            item = pending.result()
            if not item:
                return
            pending, notes = submit()
            yield item.pop()  # which frees its memory as soon as the caller does
