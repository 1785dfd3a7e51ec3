"""What becomes of the chosen translations: a file, a table of details, a score before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bpa_ppl.decoding.reranking import Reranked
from bpa_ppl.errors import DataError
from bpa_ppl.formats.codecs import file_suffix
from bpa_ppl.formats.streams import atomic_writer
from bpa_ppl.notes import warn_user
from bpa_ppl.quality import Scoreboard, corpus_score

#: The columns of a table of details.
DETAILS = (
    "sentence",
    "choice",
    "probability",
    "canonical_choice",
    "canonical_probability",
    "changed",
    "translation",
    "canonical_translation",
)
#: Their names in JSON lines where others are usual there.
_IN_JSON = {"sentence": "id", "translation": "text", "canonical_translation": "canonical_text"}
_JSON = (".jsonl", ".ndjson")


def details_columns(metric: str | None = "ter") -> tuple[str, ...]:
    """Return the columns of details where it was computed what is expected of the choices.

    Args:
        metric: of the expected scores, as in `Confidence`.

    >>> details_columns("chrf")[-4:], details_columns(None)[-2:]
    (('better', 'worse', 'expected_chrf', 'canonical_expected_chrf'), ('better', 'worse'))
    """
    scores = () if metric is None else (f"expected_{metric}", f"canonical_expected_{metric}")
    return (*DETAILS, "better", "worse", *scores)


def scoreboard(result: Reranked, metrics: tuple[str, ...] = ("ter", "bleu")) -> Scoreboard:
    """Score the choices against the references that the lists came with.

    Raises:
        DataError: if there are no references.

    >>> import numpy as np
    >>> from bpa_ppl import Draws, NBest, rerank
    >>> lists = NBest.from_lists(
    ...     [["a b", "a c"]], [[[0.0], [1.0]]], ["LM0"], references=[["a c"]]
    ... )
    >>> constants = {"canonical": -np.ones(1)}
    >>> draws = Draws({"weights": np.ones((1, 4, 1))}, ("LM0",), constants=constants)
    >>> result = rerank(lists, draws, unchecked=True)
    >>> print(scoreboard(result, ("ter",)))  # doctest: +NORMALIZE_WHITESPACE
               canonical    adapted     change
          TER      50.00       0.00     -50.00
    1 of 1 translations changed
    nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:...
    """
    if len(result.references) != len(result.texts):
        raise DataError("the reranked lists have no references to be scored against")
    return Scoreboard(
        before=tuple(corpus_score(result.canonical_texts, result.references, m) for m in metrics),
        after=tuple(corpus_score(result.texts, result.references, m) for m in metrics),
        changed=int(result.changed.sum()),
        sentences=len(result.texts),
    )


def write_texts(result: Reranked, path: str | Path) -> None:
    """Write the translations, one a line, in the order of the lists; `-` is standard output.

    >>> import numpy as np
    >>> from pathlib import Path
    >>> from bpa_ppl import Draws, NBest, rerank
    >>> lists = NBest.from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[0.0]]], ["LM0"])
    >>> draws = Draws({"weights": np.ones((1, 4, 1))}, ("LM0",))
    >>> result = rerank(lists, draws, unchecked=True)
    >>> write_texts(result, "out.txt")
    >>> Path("out.txt").read_text().split()
    ['b', 'c']
    >>> write_details(result, "out.tsv")
    >>> len(Path("out.tsv").read_text().splitlines())
    3
    """
    with atomic_writer(path) as file:
        file.writelines(text_rows(result))


def text_rows(result: Reranked) -> Iterator[str]:
    """Yield the translations as lines; a line break inside one becomes a space, which is told."""
    lines = [_one_line(text) for text in result.texts]
    if lines != list(result.texts):
        warn_user(
            "a translation with a line break is written as one line, so that lines stay those "
            "of the sentences"
        )
    for line in lines:
        yield f"{line}\n"


def write_details(result: Reranked, path: str | Path) -> None:
    """Write the choices, their probabilities and both translations of each sentence.

    Then, where it was computed, what is expected: the probability that the rule's choice is better
    than the canonical first-best, that it is worse, and the expected score of both in the criterion
    of the posterior, where texts of a list can be compared by it.

    Args:
        result: from `rerank`.
        path: JSON lines if it ends in .jsonl or .ndjson, compressed or not, with an object for each
            sentence; else a row for each, separated by tabs, below the names of the columns.
    """
    found = result.confidence
    titles = DETAILS if found is None else details_columns(found.metric)
    with atomic_writer(path) as file:
        file.writelines(details_header(titles, path))
        file.writelines(details_rows(result, path))


def details_header(titles: tuple[str, ...], path: str | Path) -> Iterator[str]:
    """Yield the first line of a table of details; JSON lines have none."""
    if not _is_json(path):
        yield "\t".join(titles) + "\n"


def details_rows(result: Reranked, path: str | Path = "") -> Iterator[str]:
    """Yield the lines of a table of details, without its header."""
    columns: dict[str, list[Any]] = {
        "sentence": result.ids or result.sentence_ids.tolist(),
        "choice": result.choice.tolist(),
        "probability": _rounded(result.probability),
        "canonical_choice": result.canonical.tolist(),
        "canonical_probability": _rounded(result.canonical_probability),
        "changed": result.changed.tolist(),
        "translation": result.texts,
        "canonical_translation": result.canonical_texts,
    }
    if (found := result.confidence) is not None:
        numbers = (found.better, found.worse, found.score, found.canonical_score)
        names = details_columns(found.metric)[len(DETAILS) :]
        columns |= {n: _rounded(v) for n, v in zip(names, numbers, strict=False)}
    for row in zip(*columns.values(), strict=True):
        if _is_json(path):
            fields = {_IN_JSON.get(n, n): v for n, v in zip(columns, row, strict=True)}
            yield json.dumps(fields, ensure_ascii=False) + "\n"
        else:
            yield "\t".join(map(_cell, row)) + "\n"


def _is_json(path: str | Path) -> bool:
    return file_suffix(path) in _JSON


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.6g}" if isinstance(value, float) else _one_cell(str(value))


def _one_cell(text: str) -> str:
    return _one_line(text).replace("\t", " ")


def _one_line(text: str) -> str:
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
