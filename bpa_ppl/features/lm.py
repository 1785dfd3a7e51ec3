"""Language model: the log-probability of a candidate as text of the domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from msgspec import Meta

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.streams import read_lines
from bpa_ppl.errors import DataError, UsageError, wrong_value
from bpa_ppl.features.source import SELF, TextSource, make_unknown_check
from bpa_ppl.lists.nbest import NBest

if TYPE_CHECKING:
    from bpa_ppl.text.language_model import TextModel


class LanguageModel(TextSource, frozen=True):
    """An n-gram language model of the domain: log-probability and unknown words.

    The columns are `lm`, the natural log of the probability of a candidate (with the end of the
    sentence), and `lm.oov`, the number of its words that the model does not know. Words are
    separated by spaces and taken as they are: tokenise and case the text like the lists.

    Several sources can be used together under different names. With a model of the domain and a
    general one, the two weights include the difference of both (Moore and Lewis, 2010). With `dev`
    the models become a single one, their linear mixture.

    Attributes:
        text: a text file with one sentence a line, or several, which are read as one text; or an
            ARPA file, detected by content; or `self`: the references of the adaptation sentences.
            The features of those sentences then come from models of the others
            (cross-fitting). A reference that occurs several times counts once.
        order: the length of the longest n-grams, 1 to 5; a finished model has its own.
        name: the beginning of the names of the columns.
        dev: a text file of the domain: each file of `text`, two or more, then has a model of its
            own, and the column is of their linear mixture, whose weights maximise the likelihood of
            this text (Foster, Goutte & Kuhn 2010, Eq. 1). Empty: several files are one text.
        lines: the text that it was fitted to, or carries.

    Raises:
        UsageError: if no text is named, or a mixture has a single text, is of several orders or is
            to be carried.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a b", "b a"]], [[[0.0]] * 2], ["LM0"])
    >>> columns = LanguageModel(text="self", order=2, lines=("a b", "a c")).columns(lists)
    >>> {name: column.round(2).tolist() for name, column in columns.items()}
    {'lm': [-1.99, -6.5], 'lm.oov': [0.0, 0.0]}
    """

    main: ClassVar[str | None] = "text"
    paths: ClassVar[tuple[str, ...]] = ("text", "dev")
    learned: ClassVar[tuple[str, ...]] = ("lines",)
    text: tuple[str, ...] | str
    order: Annotated[int, Meta(ge=1, le=5)] = 3
    name: str = "lm"
    dev: str = ""
    lines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.text or not all(self._texts) or (SELF in self._texts and self.text != SELF):
            rule = f"{self.name} needs a text, an ARPA file, or self alone"
            raise wrong_value(rule, self.text, "text")
        if self.dev and len(self._texts) < 2:
            message = f"the mixture {self.name} needs two texts or more: text=in.txt,out.txt"
            raise UsageError(message, parameter="dev")
        if self.dev and self.carry:
            message = f"{self.name} is a mixture of models: leave out carry"
            raise UsageError(message, parameter="carry", code="not-supported")

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"references"} if self.unlearned else set())

    def texts_of(self, lists: NBest) -> Sequence[tuple[str, ...]]:
        if lists.references is None:
            need = "references"
            message = f"no references, which {self.name}=self needs: add them"
            raise DataError(message, lists.origin, parameter=need, code=f"missing-{need}")
        return lists.references

    def read(self) -> tuple[str, ...]:
        from bpa_ppl.text.model_files import is_model

        for path in self._texts:
            if is_model(path):
                message = f"{path} is a model, and a posterior carries text only: leave out carry"
                raise UsageError(message, parameter="carry", code="not-supported")
        return tuple(line for path in self._texts for line in read_lines(path))

    def scorer(
        self, texts: Sequence[str], *, check: bool = False
    ) -> Callable[[NBest], dict[str, Float64]]:
        from bpa_ppl.text.words import split_words

        model = self._model(texts)
        check_unknown = make_unknown_check("words of the candidates", " and ".join(self._texts))

        def score(lists: NBest) -> dict[str, Float64]:
            words = [split_words(text) for text in lists.strings]
            logs, unknown = model.score(words)
            columns = {self.name: logs, f"{self.name}.oov": unknown.astype(np.float64)}
            if check:
                check_unknown(lists, int(unknown.sum()), sum(map(len, words)))
            return {name: column[lists.string_index] for name, column in columns.items()}

        return score

    def _model(self, lines: Sequence[str]) -> TextModel:
        """Return the model of some lines of text, or of the files."""
        from bpa_ppl.text.language_model import MixtureModel, NgramModel
        from bpa_ppl.text.model_files import read_or_train
        from bpa_ppl.text.words import join_texts, split_words

        if self.dev:
            models = [read_or_train([path], self.order) for path in self._texts]
            return MixtureModel.fit_files(models, [self.dev])
        if not lines:
            return read_or_train(self._texts, self.order)
        references = "the references of the adaptation sentences"
        origin = references if self.text == SELF else self._texts[0]
        corpus = join_texts([(origin, [[split_words(line) for line in lines]])])
        return NgramModel.of_corpus(corpus, self.order)

    @property
    def _texts(self) -> tuple[str, ...]:
        return (self.text,) if isinstance(self.text, str) else self.text
