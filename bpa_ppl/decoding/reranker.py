"""Reranker and rerank: choose from each n-best list with a checked posterior."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack, cast

import numpy as np
import numpy.typing as npt
from msgspec import structs

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import FINITE, LARGEST, Float64, Int64, to_array, to_floats, to_texts
from bpa_ppl._runtime.messages import format_count, log_info, warn_user
from bpa_ppl._runtime.named_columns import name_columns, name_values
from bpa_ppl._runtime.progress import reporter
from bpa_ppl._runtime.workers import count_workers, parallel_workers
from bpa_ppl.components import complete_settings
from bpa_ppl.decoding.choices import Candidate, Choices
from bpa_ppl.decoding.options import OPTIONS, RerankOptions
from bpa_ppl.decoding.rules import RULES, Decided, Decider, Mean, Predictive
from bpa_ppl.decoding.scales import ScaleGuard
from bpa_ppl.diagnostics.check.report import refuse_unconverged
from bpa_ppl.errors import (
    DataError,
    UsageError,
    bad_value,
    list_names,
    quote,
    suggest_name,
    wrong_shape,
    wrong_type,
    wrong_value,
)
from bpa_ppl.evaluation.reliability import CONFIDENCE, choose_threshold
from bpa_ppl.features.recipe import Recipe
from bpa_ppl.formats.in_memory import from_lists
from bpa_ppl.gains.pairwise import PAIRED
from bpa_ppl.lists.labels import matches, with_labels
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weight_draws import (
    DOMAIN,
    FIXED,
    FIXED_FEATURE,
    WeightDraws,
    as_weight_draws,
    read_weight_draws,
)
from bpa_ppl.weights import Weights

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

#: A number for one candidate from those of its features.
Reward: TypeAlias = Callable[[Sequence[float | None]], float | None]

#: The candidates of a list: derivations, or strings with their derivations summed.
_DERIVATIONS: Final = ("separate", "summed")

#: Lists per task of a worker, a multiple of the batch of a decider; and for how many domains.
_TABLE, _MAX_DOMAINS = 64, 16
_FEW_CANDIDATES = 100_000  # up to this number, starting worker processes takes longer
_ORDERS = 8  # orders of columns whose draws are kept aligned
#: What a reranker was made with, and is sent to other processes; the draws were checked.
_SETTINGS = frozenset(
    ["draws", "rule", "unchecked", "ask_below", "promise", "_derivations", "_count"]
).union(["_moved_files", "_jobs", "_progress"])


class Reranker:
    """A posterior that was checked once, and chooses from n-best lists.

    It can be called from several threads at once, and be pickled to other processes. It warns of
    features whose unit or sign differs between the first lists and those of the adaptation, or that
    no longer vary.

    Attributes:
        draws: the draws of the posterior.
        required_features: the columns that lists must have: features with adapted weights that are
            not computed from texts or categories.
        needs: what else they must have, to compute the other features from: `sources`, or names of
            columns of texts.
        feature_names: these, and those with fixed weights: the order of the columns of `choose`.
        recipe: how the columns of lists become features.
        rule: by which it chooses.
        unchecked: whether it is used although it may fail its check.
        ask_below: the probability of a choice below which a person is asked, or None.
        promise: what is promised of the other choices; empty without `agree`.

    >>> from bpa_ppl import Draws, from_lists
    >>> drawn = np.random.default_rng(0).normal(1.0, 0.1, size=(4, 500, 2))
    >>> from bpa_ppl.weight_draws import name_weights
    >>> reranker = Reranker(name_weights(drawn, ("lm", "tm")))
    >>> reranker.choose(["a cat", "the cat"], {"lm": [-1.2, -0.7], "tm": [-3.0, -2.5]})
    Candidate(position=1, text='the cat', probability=0.7...)
    >>> lists = from_lists([["a", "b"]], [[[0.0, 0.0], [np.log(3), 0.0]]], ["lm", "tm"])
    >>> [part.choice.tolist() for part in reranker.parts(lists)]
    [[1]]
    >>> reranker(lists).texts, reranker(lists).probabilities.round(2).tolist()
    (['b'], [0.25, 0.75])
    """

    def __init__(self, posterior: Posterior | str | Path, **options: Unpack[RerankOptions]) -> None:
        """Check a posterior and settle how it chooses.

        Args:
            posterior: from `adapt`, any other with a variable `weights` and feature names, or the
                path of a file of one.
            options: the keyword arguments of `rerank`.

        Raises:
            NotConverged: if the posterior fails `check` and `unchecked` is false.
            DataError: if the file cannot be read, or a file that features are computed from is
                missing or has changed.
            UsageError: as `rerank`.
        """
        chosen = cast("RerankOptions", complete_settings("rerank", OPTIONS, options))
        self._derivations = require_one_of(
            chosen["derivations"], _DERIVATIONS, "treatment of derivations", "derivations"
        )
        self._jobs, self._progress = chosen["jobs"], chosen["progress"]
        count_workers(self._jobs)
        self._count = draws = chosen["draws"]
        named = draws is None or (isinstance(draws, str) and draws == "all")
        if not named and not (isinstance(draws, Integral) and draws >= 1):
            raise wrong_value("draws must be an integer ≥ 1, or all", draws, "draws")
        rule = None if chosen["rule"] is None else RULES.resolve(chosen["rule"])
        if isinstance(posterior, str | Path):
            posterior = read_weight_draws(posterior)
        draws_used = without_features(as_weight_draws(posterior), chosen["without"])
        self.draws = with_defaults(draws_used, chosen["defaults"])
        self.unchecked = chosen["unchecked"]
        if not self.unchecked:
            refuse_unconverged(self.draws)
        by_default = "predictive" if self.draws.adaptation.canonical else "mean"
        self.rule = rule or RULES.resolve(by_default)
        if explanation := self.rule.explain(self.draws):
            log_info(explanation)
        agree = chosen["agree"]
        self.ask_below = choose_threshold(
            self.draws, chosen["ask_below"], agree, chosen["confidence"]
        )
        if agree is not None and type(self.rule) not in (Mean, Predictive):
            name = RULES.name_of(self.rule)
            message = (
                f"the rule {name} promises no agreement: leave out agree, or use the rule mean"
            )
            raise UsageError(message, parameter="agree", code="not-supported")
        confidence = chosen["confidence"] or CONFIDENCE
        kept = f": with {confidence:.0%} confidence at least {agree or 0:.0%} of such choices"
        self.promise = "" if agree is None else f"{kept} agree with the judge"
        self._moved_files = chosen["moved_files"]
        self._set_up()

    def _set_up(self) -> None:
        """Prepare what reads lists and decides; in another process it is prepared again."""
        record = self.draws.adaptation
        gain = record.observed.gain
        # The texts of a list cannot be compared by other gains, such as a column.
        self._gain = gain if record.recipe.gain is None and gain in PAIRED else None
        self.recipe = Recipe.of(self.draws, self._moved_files)
        self.needs = tuple(sorted({n for s in self.recipe.sources for n in s.needs}))
        computed = {name for source in record.recipe.sources for name in source.feature_names}
        absent = frozenset(self.recipe.absent)
        used = [name for name in self.draws.features if not matches(name, absent)]
        names = [name for name in (*used, *self.draws.fixed) if name not in computed]
        self.feature_names = tuple(names)
        fixed = set(self.draws.fixed).difference(used)
        self.required_features = tuple(name for name in names if name not in fixed)
        self._decider = lru_cache(_ORDERS + len(self.draws.domains))(self._new_decider)
        self._new_domains: set[str] = set()
        self._guard = ScaleGuard(record.feature_scales, self.feature_names)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name in _SETTINGS}

    def __setstate__(self, settings: dict[str, Any]) -> None:
        vars(self).update(settings)
        self._set_up()

    def __repr__(self) -> str:
        rule = RULES.name_of(self.rule)
        weights = format_count(len(self.feature_names), "weight")
        return f"Reranker({len(self.draws.flat)} draws of {weights}, {rule})"

    def __call__(self, lists: NBest | Iterable[NBest]) -> Choices:
        """Choose from each list, as `rerank` does.

        Raises:
            DataError: if lists and posterior do not have the same features.
            UsageError: if there is no list.
        """
        return Choices.concatenate(list(self.parts(lists)))

    def parts(self, lists: NBest | Iterable[NBest]) -> Iterator[Choices]:
        """Yield the choices from some lists at a time, so that few are in memory.

        Args:
            lists: lists, or a stream of them (`iter_nbest`).

        Raises:
            DataError: if lists and posterior do not have the same features.
            UsageError: if there is no list.
        """
        tables = self._prepare(lists)
        decide = self._in_this_process if count_workers(self._jobs) == 1 else self._in_workers
        done, total = 0, len(lists) if isinstance(lists, NBest) else 0
        with reporter(self._progress, "rerank") as report:
            for batch, decided in decide(tables):
                self._require_pairs(batch.sizes.tolist(), batch.ids)
                yield Choices(batch, batch.ids, *decided, self._gain, self.ask_below)
                done += len(batch)
                report(done, max(total, done), "sentences")
        if not done:
            raise UsageError("reranking needs at least one list", parameter="lists", code="no-data")

    def choose(
        self,
        texts: Sequence[str],
        features: Mapping[str, npt.ArrayLike] | npt.ArrayLike,
        *,
        source: str | None = None,
        domain: str | None = None,
        **columns: Sequence[str],
    ) -> Candidate:
        """Choose from one list.

        Args:
            texts: (N,) the candidates.
            features: by name, (N,) each, such as a data frame; or an array (N, features) in the
                order of `feature_names`.
            source: the source sentence, if features of the posterior are computed from it.
            domain: of the sentence, if the posterior has weights for each domain.
            **columns: (N,) texts each, if features of the posterior are computed from them, such as
                `system=["online", "local"]`; see `needs`.

        Raises:
            DataError: if a feature or column is missing, not known, not made of finite numbers, or
                has another length than the texts.
            UsageError: if there is no text, or features are not an array of numbers.
        """
        texts = to_texts(texts, "texts", "candidate")
        if not texts:
            raise UsageError("choosing needs at least one text", parameter="texts")
        features = name_columns(features)
        names = tuple(features) if isinstance(features, Mapping) else self.feature_names
        self._require_names(names, columns)
        self._require_pairs([len(texts)], ["of texts"])
        table, of_domain = _to_table(features, len(texts), names), self._find_domain(domain)
        if not (self.recipe.sources or self.rule.needs_texts):
            numbers = {text: number for number, text in enumerate(texts)}
            strings = np.array([numbers[text] for text in texts])
            self._guard.add(names, table, np.array([len(table)]))
            position, p, _ = self._decider(names, of_domain).decide(table, strings)
        else:
            lists = from_lists(
                [texts],
                [table],
                names,
                sources=None if source is None else [source],
                extras={name: [values] for name, values in columns.items()},
            )
            (lists,) = self._prepare(lists)
            choice, _, p, _ = self._decider(lists.feature_names, of_domain).choose(lists)
            position = int(choice[0])
        probability = float(p[position])
        sure = None if self.ask_below is None else probability >= self.ask_below
        return Candidate(position, texts[position], probability, sure)

    def _require_pairs(self, sizes: Sequence[int], ids: Sequence[int | str]) -> None:
        """Raise a DataError if choices are to be sure and a list has more than two candidates."""
        if self.ask_below is not None and max(sizes) > 2:
            name = ids[int(np.argmax(sizes))]
            message = (
                f"the list {name} has {max(sizes)} candidates, and only choices between two can be "
                "sure: give lists of two candidates, or ask about none"
            )
            raise DataError(message, parameter="ask_below", code="not-supported")

    def reward(self, names: Sequence[str] | None = None, missing: str = "error") -> Reward:
        """Return λ·h of one candidate, with the posterior mean of λ, as a function of its features.

        Rewards for different inputs are not comparable.

        Args:
            names: the features, in the order of the function's numbers; None: `feature_names`.
            missing: for None or NaN: "error"; "mean", given the others in the adaptation lists, by
                linear regression; or "none", which returns None.

        Raises:
            DataError: if a feature is missing or not known, or its mean is not recorded.
            UsageError: if the posterior has features that are computed from texts, or there is no
                such treatment of missing numbers.

        >>> from bpa_ppl import Draws
        >>> from bpa_ppl.weight_draws import name_weights
        >>> draws = name_weights(np.full((1, 4, 2), [2.0, -1.0]), ("gpt", "length"))
        >>> Reranker(draws, unchecked=True).reward(["length", "gpt"])([0.5, 0.75])
        1.0
        """
        require_one_of(
            missing, ("error", "mean", "none"), "treatment of missing numbers", "missing"
        )
        names, weights = self._mean_weights(names)
        scales, expected = self.draws.adaptation.feature_scales, []
        for name in names if missing == "mean" else ():
            if name not in scales or scales[name].mean is None:
                message = f"no mean of {name} in the posterior: adapt again"
                raise DataError(message, parameter="missing", code="no-data")
            expected.append((scales[name].mean, scales[name].slope))
        return _WeightedSum("reward", names, weights, missing, np.array(expected).T)

    def aggregate(self, names: Sequence[str] | None = None) -> Reward:
        """Return the verdict of a jury, from 0 to 1, as a function of scores from 0 to 1.

        It is their mean with the weights |λ|; a score s with a negative λ counts as 1 − s.

        Raises:
            DataError: as `reward`, or if all weights are 0.
            UsageError: as `reward`.

        >>> from bpa_ppl import Draws
        >>> from bpa_ppl.weight_draws import name_weights
        >>> draws = name_weights(np.full((1, 4, 2), [3.0, -1.0]), ("gpt", "rude"))
        >>> Reranker(draws, unchecked=True).aggregate(["gpt", "rude"])([0.5, 0.0])
        0.625
        """
        names, weights = self._mean_weights(names)
        if not (total := np.abs(weights).sum()):
            message = "no weight other than 0: there is nothing to aggregate by"
            raise DataError(message, code="no-data")
        constant = -weights[weights < 0].sum() / total
        return _WeightedSum("aggregate", names, weights / total, constant=constant)

    def _mean_weights(self, names: Sequence[str] | None) -> tuple[tuple[str, ...], Float64]:
        """Return the names of the features of a reward, and the posterior mean of their weights."""
        sources = self.draws.adaptation.recipe.sources
        if computed := [name for source in sources for name in source.feature_names]:
            message = (
                f"the posterior computes {list_names(computed)} from lists of texts, which a "
                "reward does not have: adapt without added features"
            )
            raise UsageError(message, parameter="names", code="not-supported")
        names = self.feature_names if names is None else tuple(names)
        self._require_names(names, ())
        return names, self.draws.aligned(from_lists([], [], names), self.draws.mean[None])[0]

    def _require_names(self, features: Collection[str], columns: Collection[str]) -> None:
        """Raise a DataError unless one list has the features and columns that are used."""
        needed = [name for name in self.needs if name != "sources"]
        for kind, names, required, used in (
            ("features", features, self.required_features, self.feature_names),
            ("columns", columns, needed, needed),
        ):
            received, expected = set(names), set(used)
            if missing := [name for name in required if name not in received]:
                message = f"no {list_names(missing)}, which the posterior needs"
                raise DataError(message, parameter=kind, code="missing-feature")
            if unknown := [name for name in names if name not in expected]:
                listed = f"its {kind} are {list_names(used) or 'none'}"
                problem = f"the posterior does not use {list_names(map(str, unknown))}: {listed}"
                raise DataError(problem, parameter=kind, code="unknown-name")

    def _prepare(self, lists: NBest | Iterable[NBest]) -> Iterator[NBest]:
        size = _TABLE * min(max(len(self.draws.domains), 1), _MAX_DOMAINS)  # many of each domain
        for batch in self.recipe.stream(_split(lists, size), self._progress):
            self._guard.add(batch.feature_names, batch.features, batch.sizes)
            yield batch

    def _new_decider(self, names: tuple[str, ...], domain: str | None = None) -> Decider:
        """Return the decider for lists with some columns, of a domain with weights of its own."""
        lists = from_lists([], [], names)
        draws = self.draws if domain is None else self.draws.of_domain(domain)
        return Decider.of(draws, lists, self.rule, self._count, self._derivations)

    def _find_domain(self, domain: Any) -> str | None:
        """Return a domain with weights of its own; None, with a warning, for a new one."""
        name, domains = str(domain), self.draws.domains
        if not domains or name in domains:
            return name if domains else None
        if name not in self._new_domains:
            self._new_domains.add(name)
            new = "no domain is named" if domain is None else f"the domain {quote(domain)} is new"
            warn_user(f"{new}: its weights are drawn around those of {list_names(domains)}")
        return None

    def _deciders(self, lists: NBest) -> list[tuple[Decider, Int64]]:
        """Return the decider of each domain of some lists, and the places of its lists."""
        names = lists.sentence_extras.get(DOMAIN, (None,) * len(lists))
        places = dict[str | None, list[int]]()
        for place, name in enumerate(names):
            places.setdefault(self._find_domain(name), []).append(place)
        decider = partial(self._decider, lists.feature_names)
        return [(decider(domain), np.array(of_domain)) for domain, of_domain in places.items()]

    def _in_this_process(self, tables: Iterable[NBest]) -> Iterator[tuple[NBest, Decided]]:
        for lists in tables:
            yield lists, _choose(self._deciders(lists), lists)

    def _in_workers(self, tables: Iterator[NBest]) -> Iterator[tuple[NBest, Decided]]:
        first: deque[NBest] = deque()
        waiting = 0
        while waiting < _FEW_CANDIDATES and (lists := next(tables, None)) is not None:
            first.append(lists)
            waiting += len(lists.features)
        if waiting < _FEW_CANDIDATES:
            yield from self._in_this_process(first)
            return
        from joblib import delayed

        def call(lists: NBest) -> Any:
            deciders = self._deciders(lists)
            return delayed(_choose)(deciders, deciders[0][0].strip(lists), threads=1)

        queued = (first.popleft() for _ in range(len(first)))
        calls = ((lists, call(lists)) for lists in chain(queued, tables))
        with parallel_workers(self._jobs) as parallel:
            yield from parallel.in_order(calls)


def _choose(deciders: list[tuple[Decider, Int64]], lists: NBest, **options: int) -> Decided:
    """Choose from each list by the decider of its domain.

    Args:
        deciders: with the places of their lists, in ascending order.
        lists: some lists.
        options: of `Decider.choose`.
    """
    if len(deciders) == 1:
        return deciders[0][0].choose(lists, **options)
    sentence = np.repeat(np.arange(len(lists)), lists.sizes)
    choice, canonical = np.empty((2, len(lists)), np.int64)
    probabilities, of_derivations = np.empty((2, len(sentence)))
    for decider, places in deciders:
        rows, decided = np.isin(sentence, places), decider.choose(lists.select(places), **options)
        choice[places], canonical[places], probabilities[rows], of_derivations[rows] = decided
    return choice, canonical, probabilities, of_derivations


def _to_table(
    features: Mapping[str, npt.ArrayLike] | npt.ArrayLike, count: int, names: tuple[str, ...]
) -> Float64:
    """Return the features of one list, (N, features)."""
    if isinstance(features, Mapping):
        columns = [_to_column(of, name, count) for name, of in features.items()]
        table = np.array(columns).reshape(len(columns), count).T  # there may be none
    else:
        table = _to_numbers(features, "features")
    if table.shape != (count, len(names)):
        shape = f"({count}, {len(names)}), for each text {list_names(names)}"
        raise wrong_shape("features", table.shape, shape, parameter="features")
    if not (sound := np.abs(table) <= LARGEST).all():
        row, column = np.argwhere(~sound)[0]
        where, value = f"{names[column]} of candidate {row}", float(table[row, column])
        raise bad_value(
            where, value, FINITE, remedy="correct it, or divide by a constant", parameter="features"
        )
    return table


def _to_column(values: npt.ArrayLike, name: str, count: int) -> Float64:
    """Return one feature of one list, (N,)."""
    try:
        column = _to_numbers(values, name)
    except UsageError:  # not numbers, or of different lengths
        column = np.empty((0, 0))
    if column.ndim != 1:
        rule = f"the feature {quote(name)} must be a list of numbers, one for each text"
        raise DataError(f"{rule}, not {quote(values)}", parameter="features", code="wrong-type")
    if len(column) != count:
        message = (
            f"the feature {quote(name)} has {format_count(len(column), 'score')}, but there are "
            f"{format_count(count, 'text')}: give one for each text"
        )
        raise DataError(message, parameter="features", code="wrong-length")
    return column


def _to_numbers(values: npt.ArrayLike, name: str) -> Float64:
    """Return an argument as an array of numbers, in which NaN is missing."""
    if type(values) is np.ndarray and values.dtype.kind in "iuf":
        return values.astype(np.float64, copy=False)
    if isinstance(values, list) and {float, int}.issuperset(map(type, values)):
        with suppress(OverflowError):
            return np.array(values, np.float64)
    return to_array(values, np.float64, name)


class _WeightedSum:
    """A function Σ weight · score + constant of the scores of one candidate.

    Scores with names, such as a mapping or a row of a data frame, are read by name.

    Args:
        name: of the function, as in logs of other tools.
        names: of the scores.
        weights: of the scores.
        missing: as for `Reranker.reward`.
        expected: (2, scores) their means, and their slopes on the sum of the others.
        constant: to be added.
    """

    def __init__(
        self,
        name: str,
        names: tuple[str, ...],
        weights: Float64,
        missing: str = "error",
        expected: Float64 | None = None,
        constant: float = 0.0,
    ) -> None:
        self.__name__ = name
        self._names, self._weights, self._constant = names, weights, constant
        self._missing, self._expected = missing, expected

    def __repr__(self) -> str:
        return f"{self.__name__}({', '.join(self._names)})"

    def __call__(self, scores: Any) -> float | None:
        names, weights = self._names, self._weights
        scores = name_values(scores, "scores")
        if isinstance(scores, Mapping) and scores.keys() == set(names):
            scores = [scores[name] for name in names]
        try:
            values = to_floats(scores, "scores")
        except UsageError:
            values = np.empty(0)
        complete = values.shape == weights.shape
        if complete and (gaps := np.isnan(values)).any():
            if self._missing == "none":
                return None
            if self._missing == "mean" and self._expected is not None:
                means, slopes = self._expected
                others = np.where(gaps, 0.0, values - means) @ weights
                values = np.where(gaps, means + slopes * others, values)
        bad = [names[k] for k in np.flatnonzero(~np.isfinite(values)) if complete]
        if bad or not complete:
            message = (
                f"scores must be {format_count(len(names), 'finite number')}, of "
                f"{list_names(names)}, not {quote(scores)}{': correct ' * complete}"
                f"{list_names(bad)}"
            )
            raise DataError(message, parameter="scores", code="bad-number")
        return float(values @ weights + self._constant)


def rerank(
    lists: NBest | Iterable[NBest], posterior: Posterior, **options: Unpack[RerankOptions]
) -> Choices:
    """Choose from each list by the posterior; a `Reranker` checks it only once for many calls.

    Args:
        lists: lists, or a stream of them (`iter_nbest`).
        posterior: from `adapt`, or any other with a variable `weights` and feature names.
        options: those of `bpa_ppl.decoding.options.RerankOptions`.

    Raises:
        NotConverged: if the posterior fails `check` and `unchecked` is false.
        DataError: if lists and posterior do not have the same features, or a file that features
            are computed from is missing or has changed.
        UsageError: if an option is invalid, or the posterior does not record what it needs.

    >>> from bpa_ppl import Draws, from_lists
    >>> drawn = np.random.default_rng(0).normal(1.0, 0.1, size=(4, 500, 1))
    >>> from bpa_ppl.weight_draws import name_weights
    >>> posterior = name_weights(drawn, ("LM0",))
    >>> lists = from_lists([["a", "b"]], [[[0.0], [np.log(3)]]], ["LM0"])
    >>> result = rerank(lists, posterior)
    >>> result.texts, result.probability.round(2).tolist()
    (['b'], [0.75])
    >>> rerank(lists, name_weights(drawn[:, :20], ("LM0",)))
    Traceback (most recent call last):
    bpa_ppl.errors.NotConverged: the posterior failed its check, so it is not used...
    """
    return Reranker(as_weight_draws(posterior), **options)(lists)


def with_defaults(draws: WeightDraws, defaults: Mapping[str, float] | None) -> WeightDraws:
    """Return draws with more fixed weights, of features that they do not have.

    Raises:
        DataError: if the posterior has one of them.
        UsageError: if they are not given by name.
    """
    weights = Weights({} if defaults is None else defaults, "the defaults")
    names = {*draws.features, *draws.fixed}
    clashes = [name for name in weights if name in names]
    if clashes:
        raise DataError(
            f"the posterior has weights of {list_names(clashes)}: leave out their default weights",
            parameter="defaults",
            code="duplicate",
        )
    if not weights:
        return draws
    fixed, inner = draws.fixed.updated(weights), draws.draws
    constants = {**inner.constants, FIXED: fixed.values_array}
    coords = {**inner.coords, FIXED_FEATURE: tuple(fixed)}
    return WeightDraws(replace(inner, constants=constants, coords=coords))


def without_features(draws: WeightDraws, names: str | Iterable[str] | None) -> WeightDraws:
    """Return draws that also serve for lists without some features.

    Args:
        draws: of a posterior.
        names: of these features, or labels of several.

    Raises:
        DataError: if the posterior has no such feature.

    >>> from bpa_ppl.weight_draws import name_weights
    >>> draws = name_weights(np.zeros((1, 4, 2)), ("lm", "tm"))
    >>> without_features(draws, ["tm"]).adaptation.recipe.absent
    ('tm',)
    """
    absent = (names,) if isinstance(names, str) else tuple(names or ())
    labelled = with_labels(draws.features)
    for name in absent:
        if name not in labelled:
            message = (
                f"no feature of the posterior {name}{suggest_name(name, draws.features)}: choose "
                f"from {list_names(draws.features) or 'none'}"
            )
            raise DataError(message, parameter="without", code="missing-feature")
    if not absent:
        return draws
    recipe = structs.replace(draws.adaptation.recipe, absent=absent)
    record = structs.replace(draws.adaptation, recipe=recipe).add_to(draws.record)
    return WeightDraws(replace(draws.draws, record=record))


def _split(lists: NBest | Iterable[NBest], size: int) -> Iterator[NBest]:
    """Yield lists, or those of a stream, a few at a time."""
    is_stream = isinstance(lists, Iterable) and not isinstance(lists, NBest)
    for batch in lists if is_stream else [lists]:
        if not isinstance(batch, NBest):
            rule = "rerank takes n-best lists (NBest) or a stream of them (iter_nbest)"
            raise wrong_type(rule, lists, "lists")
        yield from batch.chunks(size)
