"""Kinds of compression."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from os import PathLike
from pathlib import PurePath
from typing import IO, BinaryIO, NamedTuple, Protocol, cast

import zstandard
from isal import isal_zlib


class Decoder(Protocol):
    """The common methods of the decompressors of isal, lzma and zstandard."""

    @property
    def eof(self) -> bool: ...  # noqa: D102
    @property
    def unused_data(self) -> bytes: ...  # noqa: D102
    def decompress(self, data: bytes, /) -> bytes: ...  # noqa: D102


class Codec(NamedTuple):
    """One kind of compression.

    Attributes:
        name: for messages.
        suffix: ending of the names of such files.
        magic: first bytes of such files.
        decoder: returns a new decoder of one compressed stream.
        encoder: returns a file that compresses into another one.
    """

    name: str
    suffix: str
    magic: bytes
    decoder: Callable[[], Decoder]
    encoder: Callable[[BinaryIO], IO[bytes]]


def _gzip_writer(file: BinaryIO) -> IO[bytes]:
    # Without name and time, so that equal content gives equal files.
    return cast(IO[bytes], gzip.GzipFile("", "wb", 6, file, mtime=0))


def _xz_writer(file: BinaryIO) -> IO[bytes]:
    return cast(IO[bytes], lzma.LZMAFile(file, "wb"))


def _zstd_writer(file: BinaryIO) -> IO[bytes]:
    return cast(IO[bytes], zstandard.ZstdCompressor().stream_writer(file, closefd=False))


CODECS = (
    Codec("gzip", ".gz", b"\x1f\x8b", lambda: isal_zlib.decompressobj(31), _gzip_writer),
    Codec("xz", ".xz", b"\xfd7zXZ\0", lzma.LZMADecompressor, _xz_writer),
    Codec(
        "zstd",
        ".zst",
        b"\x28\xb5\x2f\xfd",
        lambda: zstandard.ZstdDecompressor().decompressobj(),
        _zstd_writer,
    ),
)
#: The errors of the decompressors for corrupt data.
CORRUPT: tuple[type[Exception], ...] = (
    cast(type[Exception], isal_zlib.error),
    lzma.LZMAError,
    zstandard.ZstdError,
)


def file_suffix(path: str | PathLike[str]) -> str:
    """Return the ending of a file in lower case, without that of compression.

    >>> file_suffix("dev.CSV"), file_suffix("dev.jsonl.gz"), file_suffix("dev.gz"), file_suffix("-")
    ('.csv', '.jsonl', '', '')
    """
    name = PurePath(path)
    packed = any(name.suffix == codec.suffix for codec in CODECS)
    return (name.with_suffix("") if packed else name).suffix.lower()
