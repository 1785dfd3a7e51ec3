"""What becomes of the chosen translations: a file, a table of details, a score before and after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bpa_ppl.decoding.reranking import Reranked
from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import atomic_writer
from bpa_ppl.notes import tell
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
#: Those that follow where it was computed what is expected of the choices; see `Confidence`.
CONFIDENCE = ("better", "worse", "expected_ter", "canonical_expected_ter")


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
        tell(
            "a translation with a line break is written as one line, so that lines stay those "
            "of the sentences"
        )
    for line in lines:
        yield f"{line}\n"


def write_details(result: Reranked, path: str | Path) -> None:
    """Write one tab-separated row a sentence: choices, probabilities and both translations.

    Then, where it was computed, what is expected: the probability that the rule's choice is better
    than the canonical first-best, that it is worse, and the expected TER of both.
    """
    titles = DETAILS if result.confidence is None else (*DETAILS, *CONFIDENCE)
    with atomic_writer(path) as file:
        file.write("\t".join(titles) + "\n")
        file.writelines(details_rows(result))


def details_rows(result: Reranked) -> Iterator[str]:
    """Yield the lines of a table of details, without its header."""
    columns: tuple[list, ...] = (
        result.sentence_ids.tolist(),
        result.choice.tolist(),
        [f"{p:.6g}" for p in result.probability],
        result.canonical.tolist(),
        [f"{p:.6g}" for p in result.canonical_probability],
        result.changed.astype(int).tolist(),
        [_one_cell(text) for text in result.texts],
        [_one_cell(text) for text in result.canonical_texts],
    )
    if (found := result.confidence) is not None:
        numbers = (found.better, found.worse, found.ter, found.canonical_ter)
        columns += tuple([f"{value:.6g}" for value in column] for column in numbers)
    for row in zip(*columns, strict=True):
        yield "\t".join(map(str, row)) + "\n"


def _one_cell(text: str) -> str:
    return _one_line(text).replace("\t", " ")


def _one_line(text: str) -> str:
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
