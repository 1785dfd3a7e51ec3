"""Reading and writing of files: compressed or not, and written completely or not at all."""

from __future__ import annotations

import bz2
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
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import IO, Any, TextIO, TypeAlias

from bpa_ppl.errors import BpaError, DataError, list_names, quote, wrong_type

#: How a user names a file; `-` is the standard input or output.
AnyPath = str | Path
#: What can be read: the path of a file, an open file, the content of one, or lines.
AnyInput: TypeAlias = AnyPath | bytes | IO[bytes] | IO[str] | Iterable[str] | Iterable[bytes]
STANDARD = "-"

_CHUNK = 1 << 16  # bytes read at once
_HEAD = 6  # bytes that show how a file is compressed
_BLOCK = 1 << 22  # bytes of text in a block
#: GiB that a compressed file may hold, if it is read in parts, or as a whole.
_STREAM_GIB, _WHOLE_GIB = 16.0, 1.0
#: Bytes of the longest line that is read: thousands of times those of real lists, of 45,000 bytes.
LONGEST_LINE = 1 << 28
_BOM = b"\xef\xbb\xbf"
#: What files are that begin with some bytes, and what to do.
_BINARY = {
    codecs.BOM_UTF16_LE: "text in UTF-16: save it as UTF-8",
    codecs.BOM_UTF16_BE: "text in UTF-16: save it as UTF-8",
    b"PAR1": "a Parquet file, not a file of text: lists in it are read in the format parquet",
}
_ZIP = b"PK\x03\x04"  # begins workbooks and other archives
_OF_WORKBOOK = "xl/workbook.xml"  # the name of a file in every workbook
_BEGINNING = 1 << 22  # bytes of a text that are read again at most
_LINES_AFTER = 200  # that are read again, after one with an error
_MOST_LINKS = 40  # that lead to one file, as in Linux
_PART = ".bpa-"  # begins the names of temporary files


#: By the ending of names: the first bytes of compressed files, and their name in messages.
_COMPRESSED = {
    ".gz": (b"\x1f\x8b", "gzip"),
    ".bz2": (b"BZh", "bzip2"),
    ".xz": (b"\xfd7zXZ\0", "xz"),
    ".zst": (b"\x28\xb5\x2f\xfd", "zstd"),
}


def _decompress(file: Any, suffix: str) -> Any:
    """Return a compressed file, which may be several in a row, as one to read."""
    if suffix == ".zst":
        import pyarrow as pa

        # Arrow would close the file when the stream is deleted; it belongs to the caller.
        kept_open = SimpleNamespace(read=file.read, close=lambda: None, closed=False)
        return pa.CompressedInputStream(pa.PythonFile(kept_open, "r"), "zstd")
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=file)
    return (bz2.BZ2File if suffix == ".bz2" else lzma.LZMAFile)(file)


def _compress(file: Any, suffix: str) -> Any:
    """Return a file to write, which compresses into another one."""
    if suffix == ".gz":
        # Without name and time, so that equal content gives equal files.
        return gzip.GzipFile("", "wb", 6, file, mtime=0)
    if suffix in (".bz2", ".xz"):
        return (bz2.BZ2File if suffix == ".bz2" else lzma.LZMAFile)(file, "wb")
    if suffix == ".zst":
        import pyarrow as pa

        return pa.CompressedOutputStream(pa.PythonFile(file, "w"), "zstd")
    return file


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
    return strip_compression(path).suffix.lower()


def strip_compression(path: AnyPath) -> PurePath:
    """Return the name of a file without the ending of compression.

    >>> str(strip_compression("dev.txt.gz"))
    'dev.txt'
    """
    name = PurePath(path)
    return name.with_suffix("") if name.suffix in _COMPRESSED else name


class InputFile:
    r"""A file that is read once, from its beginning, after a look at its first lines.

    Args:
        path: the file, compressed or not; `-` is the standard input; or an open file, the bytes of
            one, or its lines, with or without their ends.

    Raises:
        DataError: from its methods, as `read_chunks`.

    >>> import gzip
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(gzip.compress(b"one" + bytes([10]) + b"two")), file.flush()
    ...     opened = InputFile(file.name)
    ...     print(opened.first_line, b"".join(opened.chunks()))
    b'one' b'one\ntwo\n'
    """

    def __init__(self, path: AnyInput):
        self.path = path
        self.origin = origin_name(path)
        self._chunks = _plain_bytes(path)
        self._begun: list[bytes] = []
        self._read = bytearray()  # the beginning of what was read

    def reread(self, line: int | None = None) -> tuple[AnyInput, bool]:
        r"""Return what reads the beginning of the file again, and whether that is all of it.

        Of a text these are at most 4 MiB; else it is the file.

        Args:
            line: after which 200 lines are enough.

        >>> file = InputFile([b"a cat", b"a dog"])
        >>> list(file.chunks()), file.reread()
        ([b'a cat\na dog\n'], (b'a cat\na dog\n', True))
        """
        if not (self._begun or self._read):
            return self.path, True
        unread = self._all_chunks()
        while (whole := len(self._read) < _BEGINNING) and next(unread, None) is not None:
            pass
        lines = bytes(self._read).splitlines(keepends=True)
        if not whole:
            lines = lines[:-1]
        if line is not None and len(lines) > line + _LINES_AFTER:
            lines, whole = lines[: line + _LINES_AFTER], False
        return b"".join(lines), whole

    @property
    def first_line(self) -> bytes:
        """The first line without its end, or all bytes before the first newline or NUL.

        Raises:
            DataError: if the file is empty or cannot be read, or the line is too long.
        """
        length = 0
        while not self._begun or not any(mark in self._begun[-1] for mark in (b"\n", b"\0")):
            if length > LONGEST_LINE:
                raise _line_error(self.origin, 1)
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._begun.append(chunk)
            length += len(chunk)
        beginning = b"".join(self._begun)
        if not beginning:
            raise DataError("no line: create the file again", self.origin, code="no-data")
        return beginning.partition(b"\n")[0]

    def chunks(self, size: int | None = None) -> Iterator[bytes]:
        """Yield the text in blocks of whole lines of at least `size` bytes, 4 MiB by default.

        Raises:
            DataError: if there is a NUL byte in it, as of UTF-16 or a damaged disk, or a line is
                too long.
        """
        return _iter_text_chunks(self._all_chunks(), self.origin, size)

    @contextmanager
    def on_disk(self) -> Iterator[str]:
        """Provide the path of an uncompressed file: a copy if this one is compressed or a pipe."""
        if isinstance(self.path, str | Path) and os.path.isfile(self.path):
            with open(self.path, "rb") as file:
                head = file.read(_HEAD)
            if not head.startswith((_BOM, *(magic for magic, _ in _COMPRESSED.values()))):
                yield str(self.path)
                return
        with tempfile.NamedTemporaryFile() as copy:
            for chunk in self._all_chunks():
                copy.write(chunk)
            copy.flush()
            yield copy.name

    def _all_chunks(self) -> Iterator[bytes]:
        while (
            chunk := self._begun.pop(0) if self._begun else next(self._chunks, None)
        ) is not None:
            if len(self._read) < _BEGINNING:
                self._read += chunk
            yield chunk


def read_chunks(path: AnyInput) -> Iterator[bytes]:
    r"""Yield the text of a file in blocks of whole lines, each ended by a newline.

    gzip, bzip2, xz and zstd are detected by their first bytes.

    Raises:
        DataError: if the file cannot be read, its compressed data are damaged or too large when
            unpacked, it is not text, or a line is too long.

    >>> import gzip, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(gzip.compress(b"one" + bytes([10]) + b"two")), file.flush()
    ...     print(b"".join(read_chunks(file.name)))
    b'one\ntwo\n'
    """
    return _iter_text_chunks(_plain_bytes(path), origin_name(path))


def read_beginning(path: AnyInput) -> bytes:
    r"""Return the first bytes of a file, unpacked as by `read_chunks`, text or not.

    >>> read_beginning([b"a cat"])
    b'a cat\n'
    """
    return next(_plain_bytes(path), b"")


def count_lines(block: bytes) -> int:
    r"""Return the number of newlines, five times as fast as `bytes.count`.

    >>> count_lines(b"a cat\na dog\n")
    2
    """
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))


def _iter_text_chunks(
    chunks: Iterator[bytes], origin: str, size: int | None = None
) -> Iterator[bytes]:
    lines_above = 0
    for block in _whole_lines(_limit_lines(_until_nul(chunks), origin), size or _BLOCK):
        require_text(block, origin, lines_above)
        yield block
        lines_above += count_lines(block)


def _until_nul(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield chunks of text up to a NUL byte, after which a device or a damaged file may go on."""
    for chunk in chunks:
        at = chunk.find(b"\0")
        if at >= 0:
            yield chunk[: at + 1]
            return
        yield chunk


def _limit_lines(chunks: Iterator[bytes], origin: str) -> Iterator[bytes]:
    """Yield chunks of text as long as no line is too long.

    Raises:
        DataError: naming the line, if one is longer than `LONGEST_LINE`.
    """
    line, length = 1, 0  # of the line that goes on
    for chunk in chunks:
        lines, end = count_lines(chunk), chunk.rfind(b"\n") + 1
        if length + len(chunk) > LONGEST_LINE:
            # A chunk is a line of the caller, or shorter.
            first = chunk.find(b"\n") + 1 or len(chunk)
            if length + first > LONGEST_LINE or len(chunk) - end > LONGEST_LINE:
                raise _line_error(origin, line if length + first > LONGEST_LINE else line + lines)
        yield chunk
        line, length = line + lines, len(chunk) - end + (0 if lines else length)


def _line_error(origin: str, line: int) -> DataError:
    """Return the error of a line that is too long."""
    limit = f"{LONGEST_LINE >> 20} MiB" if LONGEST_LINE >> 20 else f"{LONGEST_LINE} bytes"
    problem = f"a line of more than {limit}, the longest that is read: check what this file is"
    return DataError(problem, origin, line, code="bad-line")


def require_text(block: bytes, origin: str, lines_above: int = 0) -> None:
    """Refuse text with a NUL byte.

    Args:
        block: the text.
        origin: of the text.
        lines_above: the number of lines before it.

    Raises:
        DataError: with the line, or with what kind of file this is.
    """
    at = block.find(b"\0")
    if at >= 0:
        kinds = (of for magic, of in _BINARY.items() if not lines_above and block.startswith(magic))
        kind = next(kinds, None)
        if block.startswith(_ZIP) and not lines_above:
            kind = _describe_archive(origin)
        if kind:
            raise DataError(kind, origin, 1, code="bad-encoding")
        problem = "a NUL byte, which is not text: give a file of text"
        line = lines_above + block.count(b"\n", 0, at) + 1
        raise DataError(problem, origin, line, code="bad-encoding")


def _describe_archive(path: str) -> str:
    """Return what a zip archive is, by the files in it, which are not known of one in a pipe."""
    names: list[str] = []
    unreadable = OSError, ValueError, NotImplementedError, zipfile.BadZipFile
    with suppress(*unreadable), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if _OF_WORKBOOK in names:
        return "a workbook, not a file of text: save the table as CSV"
    of_files = f" of the files {quote(list_names(names), 400)}" if names else ", perhaps a workbook"
    return f"a zip archive{of_files}, not a file of text: unpack it, or convert it to JSON lines"


def _whole_lines(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Join chunks into blocks that end with a line; each byte is copied once."""
    waiting: list[bytes] = []
    length = 0
    for chunk in chunks:
        waiting.append(chunk)
        length += len(chunk)
        cut = chunk.rfind(b"\n") + 1 if length >= size else 0
        if cut:
            waiting[-1] = chunk[:cut]
            yield b"".join(waiting)
            waiting, length = [chunk[cut:]], len(chunk) - cut
    rest = b"".join(waiting)
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def read_text(path: AnyInput) -> str:
    """Return the content of a UTF-8 text file, unpacked as by `read_chunks`.

    Raises:
        DataError: if the file cannot be read, or a line is not UTF-8 or too long.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write("café".encode()), file.flush()
    ...     print(read_text(file.name))
    café
    """
    origin = origin_name(path)
    data = b"".join(_limit_lines(_until_nul(_plain_bytes(path, _WHOLE_GIB)), origin))
    text = decode(data, path, 1)
    require_text(data, origin)
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


def decode(data: bytes, path: AnyInput, line: int) -> str:
    r"""Return bytes as text; they begin in the given line of the file.

    Raises:
        DataError: naming the line, if they are not UTF-8.

    >>> decode(b"caf\xc3\xa9", "dev.ref", 1)
    'café'
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        remedy = "give a file of text" if data[:4] == b"\x89HDF" else "save it as UTF-8"
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8 text: {remedy}"
        number = line + data.count(b"\n", 0, error.start)
        raise DataError(problem, origin_name(path), number, code="bad-encoding") from error


def text_lines(blocks: Iterable[bytes], path: AnyInput) -> Iterator[str]:
    r"""Yield the lines of blocks of whole lines, without their ends (`\n` or `\r\n`).

    Raises:
        DataError: as `decode`.

    >>> list(text_lines([b"a cat\r\na dog\n"], "dev"))
    ['a cat', 'a dog']
    """
    first = 1
    for block in blocks:
        lines = decode(block, path, first).replace("\r\n", "\n")[:-1].split("\n")
        yield from lines
        first += len(lines)


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Create a folder for results, and its parents; after an error, remove those that are empty.

    A folder that existed before is kept.

    Raises:
        DataError: if it cannot be created.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     with suppress(ValueError), output_folder(Path(place) / "a" / "b"):
    ...         raise ValueError
    ...     print(os.listdir(place))
    []
    """
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"cannot create this folder ({error.strerror})"
            raise DataError(problem, folder, code="cannot-write") from error
        yield
    except BaseException:
        for path in created:
            with suppress(OSError):  # it has files, or was not created
                path.rmdir()
        raise


def is_standard(path: AnyPath) -> bool:
    """Return whether an output is the standard output.

    >>> is_standard("-"), is_standard("/dev/stdout"), is_standard("a.txt")
    (True, True, False)
    """
    return str(path) in (STANDARD, "/dev/stdout")


def resolve_output(path: AnyPath) -> Path:
    """Return the file that is created or replaced by writing to a path, without links.

    The path is followed as the system does: there is nothing behind a folder that does not exist.

    Raises:
        OSError: if there is no such folder.
        ValueError: if no file can have this name.

    >>> resolve_output("no-such-folder/../a.txt")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no-such-folder/..'
    """
    target = os.fspath(path)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(target)
        if not stat.S_ISDIR(os.stat(folder or os.curdir).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        folder = os.path.realpath(folder)
        target = os.path.join(folder, name)
        try:
            link = os.readlink(target)
        except OSError:  # it is no link, or does not exist yet
            return Path(target)
        target = os.path.join(folder, link)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))


@contextmanager
def atomic_path(path: AnyPath) -> Iterator[Path]:
    """Provide a temporary path in the same folder, and rename it to `path` at the end.

    After an error, or Ctrl-C, the temporary file is removed and `path` is as before. The mode of an
    existing file is kept. Pipes, devices and `-`, the standard output, are written to.

    Raises:
        DataError: at the start if `path` cannot be written, or later if the disk is full.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("done")
    ...     print((Path(folder) / "a.txt").read_text(), len(os.listdir(folder)))
    done 1
    """
    with _name_errors(path), _part(path) as (temporary, finish):
        yield temporary
        finish()


def require_writable(path: AnyPath) -> None:
    """Raise the error of `atomic_path` before long work, if a file cannot be written.

    Raises:
        DataError: if the file cannot be written.

    >>> require_writable("/no/such/folder/posterior.nc")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: /no/such/folder/posterior.nc: no such folder: check the path
    """
    with _name_errors(path), _part(path):
        pass


@contextmanager
def _part(path: AnyPath) -> Iterator[tuple[Path, Callable[[], object]]]:
    """Provide the path to write to, and what puts its content in place when all is written."""
    if is_standard(path):
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder) / "output"
            yield temporary, partial(_print_file, temporary)
        return
    if not str(path):
        raise DataError("the name of a file to write is empty: give one", code="cannot-write")
    if os.path.isdir(path):
        raise IsADirectoryError
    try:
        target = resolve_output(path)
    except ValueError as error:  # no file can have this name
        raise OSError(errno.EINVAL, str(error)) from error
    except OSError as error:  # about a part of the path
        raise OSError(error.errno, error.strerror) from error
    if os.path.exists(path):
        # A pipe, a device, or an open file that has no name any more.
        if not os.path.isfile(path) or not target.exists():
            yield Path(path), lambda: None
            return
        os.close(os.open(path, os.O_WRONLY))  # renaming would replace a file set read-only
    temporary = target.with_name(f"{_PART}{secrets.token_hex(8)}{target.suffix}")
    try:
        temporary.touch(exist_ok=False)
        with suppress(OSError):  # there is no such file, or the drive has no modes
            shutil.copymode(target, temporary)
        yield temporary, partial(temporary.replace, target)
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            temporary.unlink()


def _print_file(file: Path) -> None:
    text = _standard_output()
    text.flush()
    with file.open("rb") as content:
        shutil.copyfileobj(content, text.buffer)
    text.buffer.flush()


@contextmanager
def _name_errors(*paths: AnyPath) -> Iterator[None]:
    """Convert errors of the system about outputs into ours, which name them."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the pipe needs no more
    except OSError as error:
        name = error.filename
        if name is not None and _PART not in str(name) and str(name) not in map(str, paths):
            raise  # the error is about another file
        names = ("<standard output>" if is_standard(path) else str(path) for path in paths)
        raise access_error(", ".join(names), error, "written") from error


@contextmanager
def atomic_writer(path: AnyPath) -> Iterator[TextIO]:
    """Open a UTF-8 text file that appears under its name only when it is complete.

    Args:
        path: the file; .gz, .bz2, .xz and .zst are compressed, `-` is the standard output.

    Raises:
        DataError: as `atomic_path`.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_writer(Path(folder) / "a.txt.gz") as file:
    ...         _ = file.write("done")
    ...     print(read_lines(Path(folder) / "a.txt.gz"))
    ['done']
    """
    if not is_standard(path):
        with atomic_writers(path) as (text,):
            yield text
        return
    text = _standard_output()
    yield text
    text.flush()


def _standard_output() -> TextIO:
    """Return the standard output as UTF-8, in a terminal of any encoding."""
    if sys.stdout is None:
        problem = "it is closed: open it, or name a file"
        raise DataError(problem, "<standard output>", code="cannot-write")
    if isinstance(sys.stdout, io.TextIOWrapper):  # not a replacement, as in a notebook
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


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
    with _name_errors(*paths), ExitStack() as parts:
        temporaries = [parts.enter_context(_part(path)) for path in paths]
        with ExitStack() as files:
            pairs = zip(temporaries, paths, strict=True)
            yield tuple(files.enter_context(_text_file(part, path)) for (part, _), path in pairs)
        for _, finish in temporaries:
            finish()


@contextmanager
def _text_file(temporary: Path, path: AnyPath) -> Iterator[TextIO]:
    """Open a file to write text, compressed as the suffix of `path` says."""
    with temporary.open("wb") as raw:
        binary: IO[bytes] = _compress(raw, Path(path).suffix)
        with io.TextIOWrapper(binary, encoding="utf-8", newline="\n") as text:
            yield text


def _plain_bytes(path: AnyInput, gib: float | None = None) -> Iterator[bytes]:
    """Yield the decompressed content, of at most `gib` if compressed, without a byte-order mark."""
    chunks = _read(path, gib or _STREAM_GIB)
    yield next(chunks, b"").removeprefix(_BOM)
    yield from chunks


def _read(source: Any, gib: float) -> Iterator[bytes]:
    if not (isinstance(source, str | Path | bytes) or hasattr(source, "read")):
        for line in map(_encode, source if isinstance(source, Iterable) else [source]):
            yield line if line.endswith(b"\n") else line + b"\n"
        return
    try:
        with _open(source) as file:
            head = file.peek(_HEAD) if hasattr(file, "peek") else b""
            kinds = (of for of, (magic, _) in _COMPRESSED.items() if head.startswith(magic))
            suffix = next(kinds, None)
            if suffix is None:
                while chunk := file.read(_CHUNK):
                    yield _encode(chunk)
                return
            try:
                unpacked, left = _decompress(file, suffix), gib * 2**30
                while chunk := unpacked.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        problem = f"unpacks to more than {gib:g} GiB: if that is right, unpack it"
                        raise DataError(problem, origin_name(source), code="damaged")
                    yield chunk
            except (zlib.error, lzma.LZMAError, EOFError, OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # of the system
                kind, origin = _COMPRESSED[suffix][1], origin_name(source)
                message = f"not valid {kind} data ({error}): download or create the file again"
                raise DataError(message, origin, code="damaged") from error
    except BpaError:
        raise
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        raise access_error(source, error, "read") from error


@contextmanager
def _open(source: Any) -> Iterator[Any]:
    """Open what has bytes, as a file that can be looked into before it is read if possible."""
    if isinstance(source, str | Path) and str(source) != STANDARD:
        with open(source, "rb") as file:
            yield file
        return
    if isinstance(source, str | Path):
        if sys.stdin is None:
            raise OSError("it is closed: open it, or name a file")
        source = sys.stdin.buffer
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    if hasattr(source, "peek") or not hasattr(source, "readinto"):
        yield source
        return
    buffered = io.BufferedReader(source)
    try:
        yield buffered
    finally:
        with suppress(ValueError):  # it is closed
            buffered.detach()  # else it would close the file


def _encode(text: Any) -> bytes:
    if isinstance(text, str):
        return text.encode(errors="surrogatepass")
    if isinstance(text, bytes):
        return text
    raise wrong_type("files are paths, open files, bytes or lines of text", text, "path")


def require_parallel(counts: Sequence[int], origins: Sequence[str]) -> None:
    """Raise a DataError unless all files have as many lines as the first one.

    >>> require_parallel([4, 3], ["dev.src", "dev.ref"])
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: dev.ref: 3 lines, but dev.src has 4: give parallel files
    """
    for count, origin in zip(counts, origins, strict=True):
        if count != counts[0]:
            message = f"{count:,} lines, but {origins[0]} has {counts[0]:,}: give parallel files"
            raise DataError(message, origin, code="wrong-length")


def access_error(path: AnyInput, error: OSError | ValueError, done: str) -> DataError:
    """Return the error for a file that the system refuses; `done` is read or written."""
    reading = done == "read"
    code = "cannot-read" if reading else "cannot-write"
    if isinstance(error, FileNotFoundError):
        reason = f"no such {'file' if reading else 'folder'}: check the path"
        code = "missing-file" if reading else code
    elif isinstance(error, IsADirectoryError):
        reason = f"this is a folder and cannot be {done}: add the name of a file"
    elif isinstance(error, PermissionError):
        reason = f"permission denied: it cannot be {done} by this user, change its permissions"
    else:
        reason = f"it could not be {done}: {getattr(error, 'strerror', None) or error}"
    return DataError(reason, origin_name(path) if reading else str(path), code=code)
