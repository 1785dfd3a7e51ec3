"""The outside decoder of a study, which decodes sentences again with other weights."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bpa_ppl.columns import intern
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.experiments.redecoding import DecoderCommand
from bpa_ppl.formats import read_nbest
from bpa_ppl.nbest import NBest
from bpa_ppl.weights import Weights


@dataclass(frozen=True)
class Decoder:
    """A command that decodes sentences.

    Attributes:
        command: a shell command with `{weights}`, `{sources}` and `{nbest}` for the names of files.
        folder: where it runs: that of the study.
        template: a moses.ini file to copy, with the new weights filled in.
        iterations: the maximum number of decodings in the loop of a tuner.

    Raises:
        UsageError: if the command lacks the name of a file.
    """

    command: str
    folder: Path
    template: Path | None = None
    iterations: int = 25

    def __post_init__(self) -> None:
        for placeholder in ("{weights}", "{sources}", "{nbest}"):
            if placeholder not in self.command:
                problem = f"the command has no {placeholder}: write it for that file's name"
                raise UsageError(problem, code="missing")


class Decoding:
    """Decodes the sentences of some lists again, each distinct source once.

    Args:
        decoder: the command.
        lists: the sentences, with sources and different ids.
        first_id: the number that the decoder gives to the first sentence.
        prepare: applied to the new lists.

    Attributes:
        iterations: the maximum number of decodings in the loop of a tuner.
        seconds: that all decodings took.
    """

    def __init__(
        self,
        decoder: Decoder,
        lists: NBest,
        first_id: int = 0,
        prepare: Callable[[NBest], NBest] = lambda lists: lists,
    ):
        self.lists, self.first_id, self.prepare = lists, first_id, prepare
        self.iterations, self.seconds = decoder.iterations, 0.0
        self.sources, self.index = intern(lists.sources or ())
        self.command = DecoderCommand(
            decoder.command,
            read_nbest,
            decoder.template,
            sources=tuple(self.sources),
            folder=decoder.folder,
        )

    def __call__(self, weights: Weights) -> NBest:
        """Return the new lists, with the ids and the references of the sentences.

        Raises:
            DataError: if the decoder fails, or its lists do not match the sentences.
        """
        start = time.perf_counter()
        decoded = self.command(weights)
        self.seconds += time.perf_counter() - start
        decoded = self.prepare(decoded)
        if set(decoded.feature_names) != set(self.lists.feature_names):
            names = f"{', '.join(decoded.feature_names)}, not {', '.join(self.lists.feature_names)}"
            problem = f"the decoder's lists have the features {names}: decode with the same model"
            raise DataError(problem, code="mismatch")
        numbers = decoded.sentence_ids - self.first_id
        if sorted(numbers.tolist()) != list(range(len(self.sources))):
            problem = (
                f"the decoder returned lists for {len(numbers)} sentences, not for the "
                f"{len(self.sources)} of its sources with ids from {self.first_id}"
            )
            raise DataError(problem, code="mismatch")
        decoded = decoded.select(np.argsort(numbers)[self.index])
        decoded = replace(decoded, sentence_ids=self.lists.sentence_ids)
        return decoded.with_sentences_of(self.lists)
