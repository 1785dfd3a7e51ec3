"""What becomes of the chosen translations: a file, a table of details, a score before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bpa_ppl.decoding.reranking import Reranked
from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import atomic_writer
from bpa_ppl.notes import tell
from bpa_ppl.quality import Score, corpus_score
from bpa_ppl.registry import METRICS
from bpa_ppl.tables import text_table

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


@dataclass(frozen=True)
class Scoreboard:
    """Corpus scores of the canonical first-best and of the chosen translations.

    With BLEU comes the length, words of the translations over those of the references: a choice
    by TER may shorten them, and BLEU then falls where TER does not show it.

    Attributes:
        before, after: one score a metric.
        changed, sentences: how many translations differ, and of how many.
    """

    before: tuple[Score, ...]
    after: tuple[Score, ...]
    changed: int
    sentences: int

    def __str__(self) -> str:
        rows = [
            (title_of(old), _shown(old.value, old), _shown(new.value, new), _change(old, new))
            for old, new in zip(self.before, self.after, strict=True)
        ]
        rows += [
            ("length", f"{old:.3f}", f"{new:.3f}", f"{new - old:+.3f}")
            for old, new in zip(
                map(length_of, self.before), map(length_of, self.after), strict=True
            )
            if old is not None and new is not None
        ]
        table = text_table(rows, ("", "canonical", "adapted", "change"), align="rrrr", least=9)
        signatures = [score.signature for score in self.after]
        changed = f"{self.changed} of {self.sentences} translations changed"
        return "\n".join([table, changed, *signatures])


def title_of(score: Score) -> str:
    """Return the name of a metric as tables print it."""
    return score.metric.upper() if score.metric in METRICS else score.name


def length_of(score: Score) -> float | None:
    """Return words of the translations over those of the references, where a score says it."""
    ratio = score.details.get("length_ratio")
    return ratio if isinstance(ratio, float) else None


def _shown(value: float, score: Score) -> str:
    return f"{value:.{score.decimals}f}"


def _change(old: Score, new: Score) -> str:
    return f"{new.value - old.value:+.{new.decimals}f}"


def scoreboard(result: Reranked, metrics: tuple[str, ...] = ("ter", "bleu")) -> Scoreboard:
    """Score the choices against the references that the lists came with.

    Raises:
        DataError: if there are no references.
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
    """Write the translations, one a line, in the order of the lists; `-` is standard output."""
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
