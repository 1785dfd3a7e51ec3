"""Language model: how probable a hypothesis is as text of the domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
import numpy as np
from msgspec import Meta

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.base import SELF, Features, FeatureSource
from bpa_ppl.features.folds import cross_fitted, fold_of
from bpa_ppl.features.recipes import check_carried
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.notes import warn_user

if TYPE_CHECKING:
    from bpa_ppl.text.language_model import TextModel
    from bpa_ppl.text.words import Corpus

_FOREIGN = 0.5  # share of unknown words from which a text is taken for one of another language


class LanguageModel(FeatureSource, frozen=True):
    """An n-gram language model of the domain: log-probability and unknown words.

    The columns are `lm`, the natural log of the probability of a hypothesis (with the end of the
    sentence), and `lm.oov`, the number of its words that the model does not know. Words stand
    between spaces and are taken as they are: the text must be tokenised and cased like the lists.

    Several sources with different names stand side by side. A model of the domain and a general one
    give, with their two weights, also the difference of both (Moore and Lewis, 2010).

    Attributes:
        text: a text file with one sentence a line, or several, which are read as one text; or an
            ARPA file or a binary file of KenLM, told by content; or `self`: the references of the
            adaptation sentences. The features of those sentences then come from models that have
            not seen them (cross-fitting). A reference that occurs several times counts once.
        order: the length of the longest n-grams, 1 to 5; a finished model has its own.
        name: the beginning of the names of the columns.
        oov: give the number of unknown words.
        per_word: give the log-probability divided by the number of words and the end of the
            sentence, too, as `lm.perword`.
        per_order: give the log-probabilities under models of the same text with shorter n-grams,
            too, as `lm.o1`, `lm.o2` …
        folds: of the cross-fitting; with fewer different sentences each is left out alone.
        carry: store the text of the files in the posterior, which then does not need the files.
        lines: the text that it was fitted to, or carries.

    Raises:
        UsageError: if no text is named.
    """

    main: ClassVar[str | None] = "text"
    paths: ClassVar[tuple[str, ...]] = ("text",)
    learned: ClassVar[tuple[str, ...]] = ("lines",)
    text: tuple[str, ...] | str
    order: Annotated[int, Meta(ge=1, le=5)] = 3
    name: str = "lm"
    oov: bool = True
    per_word: bool = False
    per_order: bool = False
    folds: Annotated[int, Meta(ge=2)] = 5
    carry: bool = False
    lines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.text or not all(self._texts) or (SELF in self._texts and self.text != SELF):
            raise UsageError(
                f"{self.name} needs a text, an ARPA file, or self alone, as in lm=domain.txt; "
                f"not {self.text!r}"
            )

    @property
    def needs(self) -> frozenset[str]:
        """The references, where it learns from them."""
        return frozenset({"references"} if self.unlearned else set())

    def fitted(self, nbest: NBest) -> LanguageModel:
        """Return the model with the references of the adaptation lists, or the text to be carried.

        Raises:
            DataError: if lists to learn from have no references, or a file cannot be read.
            UsageError: if there is too much text to carry, or no text.
        """
        if self.unlearned:
            return msgspec.structs.replace(self, lines=_distinct(self._references(nbest)))
        if self.carry and not self.holds:
            return msgspec.structs.replace(self, lines=self._carried())
        return self

    def opened(self) -> Callable[[NBest], Features]:
        """Estimate or read the model, and return what computes the columns of one table.

        Raises:
            DataError: if a file cannot be read, or there is no text in it.
            UsageError: if it learns from adaptation lists, and has not been fitted to any; or if
                models of shorter n-grams are asked for, and the file is a finished model.
        """
        if self.unlearned:
            raise UsageError(f"{self.name}=self has not learned yet: use fitted(adaptation lists)")
        models = self._estimated(self.lines) if self.holds else self._read()
        return _Scorer(self, models, tells=self.text != SELF)

    def columns(self, nbest: NBest) -> Features:
        """Return the columns, as `opened` computes them.

        >>> lists = NBest.from_lists([["a b", "b a"]], [[[0.0]] * 2], ["LM0"])
        >>> model = LanguageModel(text="self", order=2, lines=("a b", "a c"))
        >>> found = model.columns(lists)
        >>> {name: column.round(2).tolist() for name, column in found.items()}
        {'lm': [-1.99, -6.5], 'lm.oov': [0.0, 0.0]}
        """
        return self.opened()(nbest)

    def cross_fitted_columns(self, nbest: NBest) -> Features:
        """Return the columns of adaptation lists; with `self` each fold is judged by the others.

        A model for some sentences learns from no reference of theirs, wherever it stands.

        Raises:
            DataError: as `opened`; or if there are no two different sentences to learn from.
        """
        if self.text != SELF:
            return self.opened()(nbest)
        references = self._references(nbest)
        return cross_fitted(
            nbest, fold_of(references, self.folds), partial(self._without, nbest, references)
        )

    def _without(
        self, nbest: NBest, references: Sequence[tuple[str, ...]], left_out: Int64
    ) -> _Scorer:
        """Learn from the references of all sentences but some."""
        own = {text for s in left_out.tolist() for text in references[s]}
        others = tuple(text for text in _distinct(references) if text not in own)
        if not any(map(str.strip, others)):
            raise DataError(
                f"{self.name}=self learns from one sentence to judge another, and these "
                "adaptation sentences have not two different references: give more of them, "
                "or a text of the domain",
                nbest.origin,
            )
        return _Scorer(self, self._estimated(others))

    @property
    def _texts(self) -> tuple[str, ...]:
        return (self.text,) if isinstance(self.text, str) else self.text

    def _references(self, nbest: NBest) -> Sequence[tuple[str, ...]]:
        """Return the references of each sentence."""
        if nbest.references is None:
            raise DataError(
                f"{self.name}=self learns from the references of the adaptation sentences, and "
                "these lists have none: add them, or give a text of the domain",
                nbest.origin,
            )
        return nbest.references

    def _carried(self) -> tuple[str, ...]:
        """Return the lines of the text files."""
        from bpa_ppl.text.model_files import is_model

        if finished := [path for path in self._texts if is_model(path)]:
            raise UsageError(
                f"{finished[0]} is a finished model, and a posterior carries text alone: leave "
                "carry out and keep the file, or give the text"
            )
        lines = tuple(line for path in self._texts for line in read_lines(path))
        check_carried(lines, self._texts)
        return lines

    def _read(self) -> dict[str, TextModel]:
        """Return the models of the files by the names of their columns."""
        from bpa_ppl.text.model_files import is_model, model_of
        from bpa_ppl.text.words import Corpus

        if not self.per_order:
            return {self.name: model_of(self._texts, self.order)}
        if finished := [path for path in self._texts if is_model(path)]:
            raise UsageError(
                f"{finished[0]} is a finished model, which has no models of shorter n-grams: "
                "leave per_order out, or give the text"
            )
        return self._of_orders(Corpus.read(self._texts))

    def _estimated(self, lines: Sequence[str]) -> dict[str, TextModel]:
        """Return the models of some lines of text by the names of their columns."""
        from bpa_ppl.text.words import Corpus, words_of

        told = "the references of the adaptation sentences" if self.text == SELF else self._texts[0]
        return self._of_orders(Corpus.of([words_of(line) for line in lines], told))

    def _of_orders(self, corpus: Corpus) -> dict[str, TextModel]:
        from bpa_ppl.text.language_model import NgramModel

        shorter = range(1, self.order if self.per_order else 1)
        orders = {self.name: self.order, **{f"{self.name}.o{n}": n for n in shorter}}
        return {name: NgramModel.of_corpus(corpus, n) for name, n in orders.items()}


@dataclass
class _Scorer:
    """Computes the columns of one table after the other; tells once of a foreign text."""

    source: LanguageModel
    models: dict[str, TextModel]
    tells: bool = False

    def __call__(self, nbest: NBest) -> dict[str, Float64]:
        from bpa_ppl.text.words import words_of

        name = self.source.name
        texts = [words_of(text) for text in nbest.strings]
        scored = {own: model.scored(texts) for own, model in self.models.items()}
        columns = {own: logs for own, (logs, _) in scored.items()}
        unknown = scored[name][1].astype(np.float64)
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        if self.source.oov:
            columns[f"{name}.oov"] = unknown
        if self.source.per_word:
            columns[f"{name}.perword"] = columns[name] / (sizes + 1)
        self._check_known(nbest, int(unknown.sum()) / max(int(sizes.sum()), 1))
        return {own: column[nbest.string_index] for own, column in columns.items()}

    def _check_known(self, nbest: NBest, unknown: float) -> None:
        if self.tells and unknown > _FOREIGN:
            self.tells = False
            warn_user(
                f"{nbest.origin}: {unknown:.0%} of the words of the hypotheses are not in "
                f"{' and '.join(self.source._texts)}: is it in their language, and tokenised and "
                "cased like them?"
            )


def _distinct(references: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the different references, in the order in which they come."""
    return tuple(dict.fromkeys(text for several in references for text in several))
