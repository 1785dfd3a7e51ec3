"""Language models from files: text to learn from, ARPA files, or binary files of KenLM."""

from __future__ import annotations

from collections.abc import Sequence

from bpa_ppl.errors import UsageError
from bpa_ppl.formats.streams import STANDARD, AnyPath, read_blocks
from bpa_ppl.progress import Reporter
from bpa_ppl.text.arpa import TITLE, read_arpa
from bpa_ppl.text.kenlm_binary import MAGIC, KenlmModel
from bpa_ppl.text.language_model import NgramModel, TextModel


def is_model(path: AnyPath) -> bool:
    """Say whether a file holds a finished model; the standard input is always text.

    Raises:
        DataError: if it cannot be read.
    """
    return str(path) != STANDARD and _begins(path).startswith((TITLE.encode(), MAGIC))


def model_of(
    paths: Sequence[AnyPath], order: int = 3, progress: bool | Reporter = False
) -> TextModel:
    """Return the language model of some files, by their content.

    Args:
        paths: text files, which are read as one, or a finished model alone.
        order: of the model of a text; a finished one has its own.
        progress: show a bar, or call back.

    Raises:
        DataError: if a file cannot be read, is damaged, or has no text.
        UsageError: if a finished model is not alone, or its reader is not installed.
    """
    finished = [path for path in paths if is_model(path)]
    if not finished:
        return NgramModel.train(paths, order, progress)
    if len(paths) > 1:
        raise UsageError(f"{finished[0]} is a finished language model: name it alone")
    binary = _begins(finished[0]).startswith(MAGIC)
    return KenlmModel(finished[0]) if binary else read_arpa(finished[0])


def _begins(path: AnyPath) -> bytes:
    return next(read_blocks(path), b"").lstrip()
