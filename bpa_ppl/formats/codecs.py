"""Kinds of compression: how each is recognised, unpacked and written."""

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
    """What the decompressors of isal, lzma and zstandard have in common."""

    @property
    def eof(self) -> bool: ...  # noqa: D102
    @property
    def unused_data(self) -> bytes: ...  # noqa: D102
    def decompress(self, data: bytes, /) -> bytes: ...  # noqa: D102


class Codec(NamedTuple):
    """One kind of compression.

    Attributes:
        name: for messages.
        suffix: of the names of files to be written so.
        magic: the first bytes of every file of this kind.
        decoder: returns a fresh decoder of one compressed stream.
        encoder: returns a file that compresses into the one given.
    """

    name: str
    suffix: str
    magic: bytes
    decoder: Callable[[], Decoder]
    encoder: Callable[[BinaryIO], IO[bytes]]


def _gzip_writer(file: BinaryIO) -> IO[bytes]:
    # No name and no time inside, so that equal content gives equal files.
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
#: What the decompressors raise where the data are not what was packed.
CORRUPT: tuple[type[Exception], ...] = (
    cast(type[Exception], isal_zlib.error),
    lzma.LZMAError,
    zstandard.ZstdError,
)


def file_suffix(path: str | PathLike[str]) -> str:
    """Return what the name of a file ends in, in small letters; of a packed one, what is packed.

    >>> file_suffix("dev.CSV"), file_suffix("dev.jsonl.gz"), file_suffix("dev.gz"), file_suffix("-")
    ('.csv', '.jsonl', '', '')
    """
    name = PurePath(path)
    packed = any(name.suffix == codec.suffix for codec in CODECS)
    return (name.with_suffix("") if packed else name).suffix.lower()
