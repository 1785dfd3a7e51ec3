"""Feature sources: components that compute columns of n-best lists, which become features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl._runtime.named_columns import select_columns
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.progress import Reporter, inherit_progress
from bpa_ppl.components import Component, Registry
from bpa_ppl.errors import DataError, UsageError, list_names, locate, wrong_shape, wrong_value
from bpa_ppl.lists.nbest import NBest, describe_candidate

#: In place of a file: the source learns from the adaptation sentences.
SELF = "self"
#: Columns by name, each (candidates,), or k names and a (candidates, k) array.
Features = Mapping[str, npt.ArrayLike] | tuple[Sequence[str], npt.ArrayLike]
_CARRIED = 5_000_000  # bytes of text that a posterior can carry
_FOLD_SEED = 0  # fixed: the same sentences always get the same folds


class FeatureSource(Component, frozen=True):
    """Computes features of candidates; its fields are its settings.

    A source is a subclass in a separate module and a line in `FEATURES`. It
    defines `columns`, or `opened` if it reads or trains something first.

    Attributes:
        paths: the settings that name files; a posterior records the hashes of these files.
        learned: the settings that hold what was learned, or texts that are carried along: `fitted`
            sets them, a posterior stores them, and the source then reads no file.
        needs: the columns of the lists that it reads: `sources`, `references`, or names of extras.

    >>> source = FEATURES.resolve("lm", {"text": "domain.txt", "order": 5})
    >>> source.label, source.files(), source.moved(["texts/domain.txt"]).files()
    ('lm', ('domain.txt',), ('texts/domain.txt',))
    """

    paths: ClassVar[tuple[str, ...]] = ()
    learned: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset()

    def columns(self, lists: NBest) -> Features:
        """Return the features of all candidates of lists that have the required data.

        Features that depend on the text alone are best computed with `compute_by_text`.
        """
        if type(self).opened is FeatureSource.opened:
            raise NotImplementedError(f"{type(self).__name__} defines neither columns nor opened")
        return self.opened()(lists)

    def opened(self) -> Callable[[NBest], Features]:
        """Read or train once, and return the function that computes columns of lists."""
        return self.columns

    def fitted(self, lists: NBest) -> FeatureSource:
        """Return the source fitted to adaptation lists, for use with new lists."""
        return self

    def cross_fitted_columns(self, lists: NBest) -> Features:
        """Return the features of the lists that the source was `fitted` to.

        A source that learns leaves each sentence out of what computes its features.
        """
        return self.columns(lists)

    @property
    def label(self) -> str:
        """The setting `name`, with which the names of its columns start, or its own name."""
        return str(getattr(self, "name", "")) or FEATURES.name_of(self)

    @property
    def holds(self) -> bool:
        """Whether it contains its fitted data, so that it reads no file."""
        return any(getattr(self, name) for name in self.learned)

    @property
    def unlearned(self) -> bool:
        """Whether it learns from the adaptation sentences and has not been fitted yet."""
        return self.main is not None and getattr(self, self.main) == SELF and not self.holds

    def files(self) -> tuple[str, ...]:
        """Return the paths of the files that it reads, in the order of its settings."""
        values = [] if self.holds else [getattr(self, name) or () for name in self.paths]
        paths = chain.from_iterable([v] if isinstance(v, str) else v for v in values)
        return tuple(path for path in paths if path != SELF)

    def moved(self, paths: Sequence[str]) -> FeatureSource:
        """Return the same source with other paths of its files.

        Raises:
            UsageError: if there are not as many as it reads.
        """
        files = self.files()
        if len(paths) != len(files):
            names, count = list_names(files) or "no file", format_count(len(files), "file")
            rule = f"{self.label} was made from {names}: give the path of {count}"
            raise wrong_value(rule, list_names(paths), "moved_files")
        remaining, settings = iter(paths), {}
        for name in () if self.holds else self.paths:
            value = getattr(self, name)
            if value and value != SELF:
                single = isinstance(value, str)
                settings[name] = next(remaining) if single else tuple(islice(remaining, len(value)))
        return msgspec.structs.replace(self, **settings)


class TextSource(FeatureSource, frozen=True, kw_only=True):
    """A source that learns from text: from files, or from the adaptation sentences (`self`).

    A subclass has one setting in `learned`, a tuple of texts, and defines `texts_of`, `read` and
    `scorer`.

    Attributes:
        folds: of the cross-fitting; with fewer distinct sentences each is left out alone.
        carry: store the text of the files in the posterior, which then does not need the files.
    """

    folds: Annotated[int, Meta(ge=2)] = 5
    carry: bool = False

    def texts_of(self, lists: NBest) -> Sequence[tuple[Any, ...]]:
        """Return the texts of each sentence to learn from.

        Raises:
            DataError: if the lists have none.
        """
        raise NotImplementedError

    def read(self) -> tuple[Any, ...]:
        """Return the texts of the files."""
        raise NotImplementedError

    def scorer(
        self, texts: Sequence[Any], *, check: bool = False
    ) -> Callable[[NBest], dict[str, Float64]]:
        """Return the function that computes columns by a model of some texts, or of the files.

        With `check` it warns if most words of the lists are unknown.
        """
        raise NotImplementedError

    def fitted(self, lists: NBest) -> Self:
        """Return the source with the texts of the adaptation lists, or with those to be carried."""
        if self.unlearned:
            texts = tuple(dict.fromkeys(chain.from_iterable(self.texts_of(lists))))
        elif self.carry and not self.holds:
            texts = self.read()
            whole = "".join(chain.from_iterable(texts))  # of texts, or of pairs of texts
            if (size := len(whole.encode())) > _CARRIED:
                raise UsageError(
                    f"{' and '.join(self.files())} have {size / 1e6:.1f} MB of text, and a "
                    f"posterior can carry {_CARRIED / 1e6:.0f} MB at most: leave out carry",
                    parameter="carry",
                )
        else:
            return self
        return msgspec.structs.replace(self, **{self.learned[0]: texts})

    def opened(self) -> Callable[[NBest], Features]:
        if self.unlearned:
            message = f"{self.label}=self needs to be fitted first: use fitted(adaptation lists)"
            raise UsageError(message, parameter=self.main, code="no-data")
        return self.scorer(getattr(self, self.learned[0]), check=self._setting != SELF)

    def cross_fitted_columns(self, lists: NBest) -> Features:
        """Return the columns of adaptation lists; with `self` each fold is scored by the others.

        The model for a fold learns from none of its texts, even where others have them too.
        """
        if self._setting != SELF:
            return self.columns(lists)
        texts = self.texts_of(lists)
        folds = assign_folds(texts, self.folds)
        different = dict.fromkeys(chain.from_iterable(texts))
        columns: dict[str, Float64] = {}
        for fold in range(folds.max(initial=-1) + 1):
            inside = folds == fold
            fold_texts = {text for s in np.flatnonzero(inside).tolist() for text in texts[s]}
            others = [text for text in different if text not in fold_texts]
            if not "".join(chain.from_iterable(others)).strip():
                message = (
                    f"no other sentence than the one to be scored, which {self.label}=self needs: "
                    "give more adaptation sentences, or a text of the domain"
                )
                raise DataError(message, lists.origin, code="no-data")
            rows = np.repeat(inside, lists.sizes)
            for name, values in self.scorer(others)(lists.select(inside)).items():
                columns.setdefault(name, np.empty(len(rows)))[rows] = values
        return columns

    @property
    def _setting(self) -> Any:
        return getattr(self, str(self.main))


def make_unknown_check(
    units: str, text: str, limit: float = 0.5
) -> Callable[[NBest, float, float], None]:
    """Return a function that warns once if too many words or phrases of lists are unknown.

    Args:
        units: what is counted, in words: "words of the candidates".
        text: the files of the source.
        limit: the share of unknown ones from which lists and text do not seem to match.

    Returns:
        a function of lists, the number of their unknown units, and that of all.
    """
    warned = False

    def check(lists: NBest, unknown: float, total: float) -> None:
        nonlocal warned
        if not warned and unknown > limit * total:
            warned = True
            note = f"{unknown / total:.0%} of the {units} are not in {text}: check that its "
            note += "languages, tokenisation and case are the same"
            warn_user(locate(lists.origin) + note)

    return check


def assign_folds(keys: Sequence[Hashable], folds: int) -> Int64:
    """Return the fold of each key; equal keys are in the same fold.

    The distinct keys, in order of appearance, are shuffled with a fixed seed and dealt to the folds
    in turn: their numbers of distinct keys differ by at most one. There are as many folds as
    distinct keys where these are fewer (leave one out).

    Returns:
        (n,) int64, from 0 to min(folds, distinct keys) - 1.

    >>> assign_folds(["a", "b", "a", "c"], 2).tolist()
    [1, 0, 1, 0]
    """
    numbers: dict[Hashable, int] = {}
    which = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    dealt = np.empty(len(numbers), dtype=np.int64)
    shuffled = np.random.default_rng(_FOLD_SEED).permutation(len(numbers))
    dealt[shuffled] = np.arange(len(numbers)) % folds
    return dealt[which]


def compute_by_text(lists: NBest, function: Callable[[str], float]) -> Float64:
    """Return a function of each text, (candidates,), computed once for equal ones.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a b", "a", "a b"]], [[[0.0]] * 3], ["LM0"])
    >>> compute_by_text(lists, len).tolist()
    [3.0, 1.0, 3.0]
    """
    values = np.fromiter(map(function, lists.strings), dtype=np.float64, count=len(lists.strings))
    return values[lists.string_index]


#: The name of a source, the source with its settings, or several of either.
AnySource = str | FeatureSource


def add_features(
    lists: NBest,
    sources: AnySource | Iterable[AnySource],
    *,
    progress: bool | Reporter = False,
) -> NBest:
    """Return the lists with more features, after the existing ones.

    A source that learns from sentences leaves out the sentence whose features it computes;
    `source.fitted(lists)` suits new lists.

    Raises:
        DataError: if the lists lack what a source needs, or have a feature of that name already.
        UsageError: if there is no such source.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a b", "a"]], [[[0.5], [1.0]]], ["LM0"])
    >>> add_features(lists, "length").feature_names
    ('LM0', 'LengthWords')
    """
    with inherit_progress(progress):
        return make_adder(resolve_sources(sources))(lists).lists


def missing_need(lists: NBest, source: FeatureSource, need: str, row: int = 0) -> DataError:
    """Return the error of lists, or of a candidate, without a column that a source needs."""
    name = FEATURES.name_of(source)
    problem = f"the features {name} need {need}: add it to the lists"
    if need not in ("sources", "references") and len(lists.features):
        problem = f"{describe_candidate(lists, row)} has no {need}, which the features {name} need"
        problem += ": give each candidate one"
    return DataError(problem, lists.origin, parameter=need, code=f"missing-{need}")


def resolve_sources(sources: AnySource | Iterable[AnySource]) -> tuple[FeatureSource, ...]:
    """Return sources with their settings, from any argument that `add_features` takes.

    Raises:
        UsageError: if there is no such source.

    >>> resolve_sources("length")
    (Length(words=True, characters=False, ratio=False),)
    """
    sources = sources.tolist() if isinstance(sources, np.ndarray) else sources
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        sources = [sources]
    return tuple(map(FEATURES.resolve, sources))


class Added(NamedTuple):
    """Lists with more features.

    Attributes:
        lists: the lists.
        columns: the names of the columns of each source.
    """

    lists: NBest
    columns: tuple[tuple[str, ...], ...]


def make_adder(
    sources: Iterable[FeatureSource], cross_fit: bool = False
) -> Callable[[NBest], Added]:
    """Return a function that adds features to one table of lists after another.

    Sources are opened once, for the first table.

    Args:
        sources: with their settings.
        cross_fit: whether the lists are the adaptation sentences that the sources are fitted to.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a b", "a"]], [[[0.5], [1.0]]], ["LM0"])
    >>> make_adder(resolve_sources("length"))(lists).lists.feature_names
    ('LM0', 'LengthWords')
    """
    chosen = tuple(sources)

    @cache
    def opened() -> list[Callable[[NBest], Features]]:
        return [s.cross_fitted_columns if cross_fit or s.unlearned else s.opened() for s in chosen]

    def add(lists: NBest) -> Added:
        for source in chosen:  # before anything is read or trained
            for need in sorted(source.needs - lists.extras.keys() - lists.sentence_extras.keys()):
                if getattr(lists, need, None) is None:
                    raise missing_need(lists, source, need)
        if not chosen and lists.features.flags.c_contiguous:  # the last bits of sums depend on it
            return Added(lists, ())
        pairs = zip(chosen, opened(), strict=True)
        tables = [_compute_columns(lists, source, compute) for source, compute in pairs]
        names = [name for columns, _ in tables for name in columns]
        if repeats := find_repeated([*lists.feature_names, *names]):
            raise DataError(
                f"two features {repeats[0]}: give the source another name, as in "
                "lm=general.txt,name=general",
                code="duplicate",
            )
        empty = np.zeros((len(lists.features), 0))
        values = np.concatenate([empty, *(table for _, table in tables)], axis=1)
        return Added(lists.with_features(names, values), tuple(names for names, _ in tables))

    return add


def _compute_columns(
    lists: NBest, source: FeatureSource, compute: Callable[[NBest], Features]
) -> tuple[tuple[str, ...], Float64]:
    """Return the names and the (candidates, names) values of the features of one source."""
    features = compute(lists)
    if isinstance(features, Mapping):
        features = tuple(features), np.transpose([np.asarray(c) for c in features.values()])
    names = tuple(features[0])
    values = np.asarray(select_columns(features[1], names), dtype=np.float64)
    shape = (len(lists.features), len(names))
    if names and values.shape != shape:
        name = FEATURES.name_of(source)
        raise wrong_shape(f"the features {name}", values.shape, shape)
    return names, values.reshape(shape)


FEATURES: Registry[FeatureSource] = Registry(
    "feature source",
    "bpa_ppl.features",
    FeatureSource,
    {
        "lm": "bpa_ppl.features.lm:LanguageModel",
        "length": "bpa_ppl.features.length:Length",
        "consensus": "bpa_ppl.features.consensus:Consensus",
        "indicators": "bpa_ppl.features.indicators:Indicators",
    },
)
