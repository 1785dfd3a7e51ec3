"""N-best lists of ESPnet: a folder with the hypotheses of each rank.

    1best_recog/text    utterance and words, likewise in 2best_recog, …
    1best_recog/score   utterance and score, as `-4.06` or `tensor(-4.06)`
    1best_recog/token   utterance and tokens, which are counted

The folders of ranks are in the folder that is read, or in its folders `output.1`, `output.2`, …,
one for each job of `asr_inference`. ESPnet's recipes join the results of the jobs for the best
hypotheses alone, so the others are in the folder of the logs. The utterance is the id of the
sentence. The score, and the number of tokens, are the features; a file that the first rank does not
have is not read for the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from bpa_ppl.columns import no_common_id
from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.kaldi import SCORE, keyed_lines, references_by_key
from bpa_ppl.formats.streams import InputFile, decoded
from bpa_ppl.rows import Columns, ReadOptions
from bpa_ppl.rows.names import CANDIDATES, ID, REFERENCE, TEXT
from bpa_ppl.rows.readers import RecordReader

_RANK, _TOKEN, _TOKENS = "{}best_recog", "token", "tokens"
_FOLDER = re.compile(r"(\d{1,9})best_recog")
_JOB = re.compile(r"output\.(\d{1,9})")
_TENSOR = re.compile(rb"tensor\(([^,()]*)(?:,[^()]*)?\)")

_Table = dict[bytes, tuple[bytes, int]]


class Espnet(NBestFormat, frozen=True):
    """The format of ESPnet, whose lists are folders.

    Attributes:
        references: a file with an utterance and its words in each line, as `text` of Kaldi's and
            ESPnet's data folders; other utterances may be in it.
    """

    references: str = ""

    def detect(self, first_line: bytes) -> bool:
        """Return False: lists are folders."""
        return False

    def detect_folder(self, folder: Path) -> bool:
        """Return whether a folder has hypotheses of the first rank."""
        return bool(_parts(folder))

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        """Yield the columns of each job.

        Raises:
            DataError: with the file and, where there is one, the line, if it cannot be read, or
                the files do not fit together.
        """
        parts = _parts(Path(file.path)) if isinstance(file.path, str | Path) else []
        if not parts:
            problem = "not a folder of ESPnet's results: name the one that has 1best_recog or"
            raise options.error(f"{problem} output.1/1best_recog", code="unknown-format")
        references, has_reference = references_by_key(self.references), False
        reader = RecordReader(options)
        for part in parts:
            records = _records(part, options)
            for _, record in records if self.references else ():
                record[REFERENCE] = references.get(record[ID])
                has_reference = has_reference or record[REFERENCE] is not None
            if records:
                yield reader.columns([of for _, of in records], [line for line, _ in records])
        if self.references and not has_reference:
            raise no_common_id(options.origin, self.references, references)


def _parts(folder: Path) -> list[Path]:
    """Return the folders that have those of ranks: the folder itself, or the ones of its jobs."""
    try:
        if (folder / _RANK.format(1)).is_dir():
            return [folder]
        jobs = {path: _JOB.fullmatch(path.name) for path in folder.iterdir()}
    except (OSError, ValueError):  # no such folder, or one that may not be read
        return []
    numbers = {path: int(job[1]) for path, job in jobs.items() if job is not None}
    folders = [path for path in numbers if (path / _RANK.format(1)).is_dir()]
    return sorted(folders, key=lambda path: (numbers[path], path.name))


def _records(part: Path, options: ReadOptions) -> list[tuple[int, dict[str, Any]]]:
    """Return the line and the hypotheses of each utterance of one job."""
    folders = map(part.joinpath, map(_RANK.format, count(1)))
    ranks = list(takewhile(Path.is_dir, folders))
    for folder in part.iterdir():
        rank = _FOLDER.fullmatch(folder.name)
        if rank is not None and int(rank[1]) > len(ranks):
            problem = f"there is {folder.name}, but no {_RANK.format(len(ranks) + 1)}"
            raise DataError(f"{problem}: give whole results", str(part), code="mismatch")
    texts = [keyed_lines(str(folder / TEXT)) for folder in ranks]
    records: dict[bytes, tuple[int, dict[str, Any]]] = {}
    for key, (_, line) in texts[0].items():
        identifier = decoded(key, str(ranks[0] / TEXT), line)
        records[key] = line, {ID: identifier, CANDIDATES: []}
    present = [name for name in (SCORE, _TOKEN) if any((of / name).is_file() for of in ranks)]
    for folder, table in zip(ranks, texts, strict=True):
        _require_keys(table, texts[0], folder / TEXT, ranks[0] / TEXT)
        others = {name: keyed_lines(str(folder / name)) for name in present}
        for key, (text, line) in table.items():
            candidate: dict[str, Any] = {TEXT: decoded(text, str(folder / TEXT), line)}
            for name, values in others.items():
                if key not in values:
                    problem = f"{quoted(key)} is not in {folder / name}: give whole results"
                    raise DataError(problem, str(folder / TEXT), line, code="mismatch")
                of_file = options._replace(origin=str(folder / name))
                if name == SCORE:
                    printed, number = values[key]
                    tensor = _TENSOR.fullmatch(printed)
                    candidate[SCORE] = of_file.number(tensor[1] if tensor else printed, number)
                else:
                    candidate[_TOKENS] = float(len(values[key][0].split()))
            records[key][1][CANDIDATES].append(candidate)
    return list(records.values())


def _require_keys(table: _Table, first: _Table, path: Path, other: Path) -> None:
    """Raise an error if a rank has an utterance that the first one lacks."""
    for key, (_, number) in table.items():
        if key not in first:
            problem = f"{quoted(key)} is not in {other}: give the results of one run"
            raise DataError(problem, str(path), number, code="mismatch")
