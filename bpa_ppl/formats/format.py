"""The base classes of formats: components that detect, read and write files.

See `bpa_ppl.components` for formats in other packages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TextIO

from msgspec import Meta

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.streams import AnyPath, InputFile, atomic_writer, text_lines
from bpa_ppl._runtime.values import json_object
from bpa_ppl.components import Component, Registry, read_name
from bpa_ppl.errors import BpaError, Remedy, UsageError, unknown_name, wrong_value
from bpa_ppl.formats.block import CANDIDATES, ID, REFERENCE, SOURCE, TEXT, Block
from bpa_ppl.formats.preference_rows import SETTINGS
from bpa_ppl.formats.records import read_rows
from bpa_ppl.formats.schema import Schema
from bpa_ppl.lists.nbest import NBest

#: Instead of the name of a format: detect it from the content, or from the name of the file.
AUTO = "auto"
#: The columns of tables that may have other names in a file.
COLUMNS = (ID, TEXT, SOURCE, REFERENCE, *SETTINGS)
_AT_ONCE = 1000  # candidates that become columns together


class NBestFormat(Component, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A format of n-best lists; its fields are its settings, which all have defaults.

    A format needs `records`. It has `detect` if files are recognised by their first line, and
    `write` if lists can be written in it. Where records are too slow, or a file does not consist of
    lines, it has `blocks` instead of `records`.

    Attributes:
        first_id: the id of the first sentence: that of the first line of references or sources, and
            of the first list of a file without ids that are integers.
        suffixes: endings of files that are written in this format by default.
        required: the fields by which a first line shows this format; several are alternatives.
        nan_is_missing: whether NaN is a missing number; otherwise it is a bad one.
        typed: whether the file distinguishes numbers from texts.
        any_order: whether the candidates of a sentence need not be adjacent.
        usual_names: the columns that may have other names in a file. A format with any is a table:
            the user, or the file itself, names its features. In all others columns of numbers are
            features.
        names: pairs of a usual name and that in the file, sorted; they are written as settings, as
            in `csv:id=segment`.

    >>> from bpa_ppl.formats.format import NBEST_FORMATS
    >>> line = b"0 ||| a cat ||| LM0= -1.5 ||| -0.75"
    >>> [name for name, kind in NBEST_FORMATS.items() if kind().detect(line)]
    ['moses']
    >>> from bpa_ppl import read_nbest
    >>> lines = ["segment,output,lm", "3,a cat,-1.5"]
    >>> lists = read_nbest(lines, format="csv:id=segment,text=output", features="lm")
    >>> lists.ids, lists.texts(0), lists.feature_names
    ((3,), ['a cat'], ('lm',))
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[tuple[tuple[str, ...], ...]] = ()
    nan_is_missing: ClassVar[bool] = False
    typed: ClassVar[bool] = True
    any_order: ClassVar[bool] = True
    usual_names: ClassVar[tuple[str, ...]] = ()

    first_id: Annotated[int, Meta(gt=-(10**18), lt=10**18)] = 0
    names: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, column in self.names:
            if name not in self.usual_names:
                settings = (field for field in self.__struct_fields__ if field != "names")
                owner = f"the {NBEST_FORMATS.kind} {NBEST_FORMATS.name_of(self)}"
                raise unknown_name(
                    "setting", name, [*self.usual_names, *settings], name, owner=owner
                )
            if not isinstance(column, str):
                raise wrong_value(f"{name} must be a text", column, name, code="invalid-setting")

    @classmethod
    def configured(cls, title: str, settings: Mapping[str, Any]) -> Self:
        """Return the format with some settings; all but its fields are names of columns."""
        fields = {n: of for n, of in settings.items() if n in cls.__struct_fields__}
        names = tuple(sorted((n, of) for n, of in settings.items() if n not in fields))
        return super().configured(title, fields | ({"names": names} if names else {}))

    def detect(self, first_line: bytes) -> bool:
        """Return whether the first line of a file, without its end, looks like this format.

        By default it must have the required fields.
        """
        names = set(self.field_names(first_line))
        return any(names.issuperset(fields) for fields in self.required)

    def field_names(self, first_line: bytes) -> list[str]:
        """Return the names of the fields of a first line: by default, of a JSON object.

        >>> NBestFormat().field_names(b'{"id": 0, "text": "a cat"}')
        ['id', 'text']
        """
        return list(json_object(first_line))

    def detect_folder(self, folder: Path) -> bool:
        """Return whether a folder, which may not exist, holds lists of this format."""
        return False

    def divides_totals(self) -> bool:
        """Return whether the totals may be divided by a length."""
        return False

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        """Yield the columns of the file in parts; by default, those of its records.

        Raises:
            DataError: with the file, and the line where there is one, if it cannot be read.
        """
        number = 0

        def lines() -> Iterator[str]:
            nonlocal number
            for number, line in enumerate(text_lines(file.chunks(), schema.origin), 1):  # noqa: B007
                yield line

        try:
            records = self.records(lines(), schema)
            yield from iter_record_blocks(((number, record) for record in records), schema)
        except BpaError:
            raise
        except (ValueError, LookupError) as error:
            problem = f"this line cannot be read ({error}): correct it"
            raise schema.error(problem, number) from error

    def records(self, lines: Iterator[str], schema: Schema) -> Iterator[dict[str, Any]]:
        """Yield a dictionary for each candidate, or each sentence: see `bpa_ppl.formats.schema`.

        An error in a record, a ValueError, LookupError or `schema.error`, names the last line
        that was read before it.
        """
        raise NotImplementedError

    def write_file(self, lists: NBest, path: AnyPath) -> None:
        """Write a file, which appears when it is complete.

        Raises:
            DataError: if it cannot be written, or the lists do not fit the format.
        """
        with atomic_writer(path) as file:
            self.write(lists, file)

    def write(self, lists: NBest, file: TextIO) -> None:
        """Write the lists as text, with their totals if they have any.

        Raises:
            DataError: if a name or a text does not fit the format.
            UsageError: if lists cannot be written in this format.
        """
        problem = f"lists cannot be written as {NBEST_FORMATS.name_of(self)}: choose jsonl or moses"
        raise UsageError(problem, parameter="format", code="not-supported")


def iter_record_blocks(
    records: Iterable[tuple[int, dict[str, Any]]], schema: Schema
) -> Iterator[Block]:
    """Yield the columns of records, of about a thousand candidates at a time.

    >>> records = [(1, {"id": 7, "candidates": [{"text": "a cat", "lm": -1.5}]})]
    >>> next(iter_record_blocks(records, Schema("dev"))).sentences
    {'id': [7]}
    """

    def parts() -> Iterator[tuple[list[Any], list[int]]]:
        rows, lines, candidates = list[Any](), list[int](), 0
        for line, record in records:
            rows.append(record)
            lines.append(line)
            candidates += len(record.get(CANDIDATES, ())) or 1
            if candidates >= _AT_ONCE:
                yield rows, lines
                rows, lines, candidates = [], [], 0
        if rows:
            yield rows, lines

    return read_rows(parts(), schema)


class WeightFormat(Component, frozen=True):
    """A format of weights.

    Attributes:
        suffixes: endings of files that are written in this format, such as `.json`.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()

    def detect(self, text: str) -> bool:
        """Return whether the content of a file looks like this format."""
        raise NotImplementedError

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        """Return the names and values in the content of a file; numbers alone have empty names.

        Raises:
            DataError: with file and line, if a line cannot be read.
        """
        raise NotImplementedError

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        """Write names and values, in full precision."""
        raise NotImplementedError


#: Servers of LLMs whose answers are read: `bpa_ppl.formats.answers`; the first one is detected.
OPENAI = "openai"
SERVERS = ("anthropic", "bedrock", "cohere", "gemini", "llamacpp", "ollama", "responses")
#: The formats of the servers, where an error may be about an answer of one.
NAME_SERVER = tuple(Remedy("name the server in the format", {"format": name}) for name in SERVERS)
#: In the order in which they are tried; `moses` accepts any line with its separator.
NBEST_FORMATS: Registry[NBestFormat] = Registry(
    "format of n-best lists",
    "bpa_ppl.nbest_formats",
    NBestFormat,
    {
        AUTO: "bpa_ppl.formats.reading:Auto",
        "fairseq": "bpa_ppl.formats.fairseq:Fairseq",
        OPENAI: "bpa_ppl.formats.answers:Answers",
        "jsonl": "bpa_ppl.formats.jsonl:Jsonl",
        "tsv": "bpa_ppl.formats.separated:Tsv",
        "csv": "bpa_ppl.formats.separated:Csv",
        "parquet": "bpa_ppl.formats.parquet:Parquet",
        "plain": "bpa_ppl.formats.plain:Plain",
        "kaldi": "bpa_ppl.formats.speech:Kaldi",
        "espnet": "bpa_ppl.formats.speech:Espnet",
        "marian": "bpa_ppl.formats.moses:Marian",
        "moses": "bpa_ppl.formats.moses:Moses",
        **dict.fromkeys(SERVERS, "bpa_ppl.formats.answers:Answers"),
    },
    {name: {"server": name} for name in (OPENAI, *SERVERS)},
)


def resolve_format(format: str | NBestFormat) -> NBestFormat:
    """Return a format of lists; a name may have settings, `plain:list_size=50`.

    Raises:
        UsageError: if there is no format of this name, or a setting has a wrong value.

    >>> resolve_format("plain:list_size=50").list_size
    50
    """
    if isinstance(format, str) and format not in NBEST_FORMATS:
        require_one_of(read_name(format), NBEST_FORMATS, NBEST_FORMATS.kind, "format")
    return NBEST_FORMATS.resolve(format)


#: In the order in which they are tried; `dense` accepts any text and comes last.
WEIGHT_FORMATS: Registry[WeightFormat] = Registry(
    "format of weights",
    "bpa_ppl.weight_formats",
    WeightFormat,
    {
        "json": "bpa_ppl.formats.weight_files:JsonWeights",
        "moses.ini": "bpa_ppl.formats.weight_files:MosesIni",
        "dense": "bpa_ppl.formats.weight_files:DenseWeights",
    },
)
