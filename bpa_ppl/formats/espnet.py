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
from itertools import chain
from pathlib import Path
from typing import Any

from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.block import CANDIDATES, ID, TEXT, Block, ReadOptions
from bpa_ppl.formats.format import NBestFormat, blocks_of_records
from bpa_ppl.formats.kaldi import SCORE, keyed_lines
from bpa_ppl.formats.streams import InputFile

_RANK, _TOKEN = "{}best_recog", "token"
_FOLDER = re.compile(r"([1-9][0-9]{0,8})best_recog")
_JOB = re.compile(r"output\.(\d{1,9})")
_TENSOR = re.compile(r"tensor\(([^,()]*)(?:,[^()]*)?\)")


class Espnet(NBestFormat, frozen=True):
    """The format of ESPnet, whose lists are folders; they are only read."""

    def detect(self, first_line: bytes) -> bool:
        """Return False: lists are folders."""
        return False

    def detect_folder(self, folder: Path) -> bool:
        """Return whether a folder has hypotheses of the first rank."""
        return bool(_parts(folder))

    def blocks(self, file: InputFile, options: ReadOptions) -> Iterator[Block]:
        """Yield the columns of all jobs.

        Raises:
            DataError: with the file and, where there is one, the line, if it cannot be read, or
                the files do not fit together.
        """
        parts = _parts(Path(file.path)) if isinstance(file.path, str | Path) else []
        if not parts:
            problem = "not a folder of ESPnet's results: name the one that has 1best_recog or"
            raise options.error(f"{problem} output.1/1best_recog", code="unknown-format")
        return blocks_of_records(
            chain.from_iterable(_records(part, options) for part in parts), options
        )


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
    ranks = sorted(int(of[1]) for path in part.iterdir() if (of := _FOLDER.fullmatch(path.name)))
    absent = min(set(range(1, len(ranks) + 2)).difference(ranks))
    if absent < ranks[-1]:
        problem = f"there is {_RANK.format(ranks[-1])}, but no {_RANK.format(absent)}"
        raise DataError(f"{problem}: give whole results", str(part), code="mismatch")
    folders = [part / _RANK.format(rank) for rank in ranks]
    present = [name for name in (SCORE, _TOKEN) if any((of / name).is_file() for of in folders)]
    records: dict[str, tuple[int, dict[str, Any]]] = {}
    for folder in folders:
        origin = str(folder / TEXT)
        others = {name: keyed_lines(str(folder / name)) for name in present}
        of_scores = options._replace(origin=str(folder / SCORE))
        for key, (text, line) in keyed_lines(origin).items():
            if folder == folders[0]:
                records[key] = line, {ID: key, CANDIDATES: []}
            lacking = [folder / name for name, table in others.items() if key not in table]
            if key not in records or lacking:
                path = lacking[0] if lacking else folders[0] / TEXT
                problem = f"{quoted(key)} is not in {path}: give whole results of one run"
                raise DataError(problem, origin, line, code="mismatch")
            candidate: dict[str, Any] = {TEXT: text}
            if SCORE in others:
                printed, number = others[SCORE][key]
                tensor = _TENSOR.fullmatch(printed)
                candidate[SCORE] = of_scores.number(tensor[1] if tensor else printed, number)
            if _TOKEN in others:
                candidate["tokens"] = float(len(others[_TOKEN][key][0].split()))
            records[key][1][CANDIDATES].append(candidate)
    return list(records.values())
