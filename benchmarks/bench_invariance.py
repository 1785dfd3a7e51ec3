"""Test scores on captions with features of domain invariance.

    python benchmarks/bench_invariance.py [--tables NAME ...] [--draws 10]
        [--subdomains NAME=FILE ...] [--k 12] [--no-lda] [--pairs 0] [--folder FOLDER]

Each FILE has latent subdomains of the general corpus (from `bpa subdomains`), and NAME is the start
of the names of its features. Without this option, `--k` subdomains are induced by EM and, unless
`--no-lda` is set, by LDA over either side, which takes minutes; `--pairs` uses only the first pairs
of the corpus.

Tables:
    in         adaptation sentences of captions
    mixed      a quarter from captions, and a quarter from each of three other domains
    without    a third from each other domain
    stacked    the three features of the first file, and in addition those of each other file
    distances  the coherence of the first file, with other distances
    soft       the features of soft EM, which count occurrences
    risk       the expected TER of the rule `mbr` as a feature (all candidates equally probable),
               without and with the three features of the first file
    phrases    phrases in the chosen candidate / words in a phrase, with each row of the first file
    single     P(z | phrase) of both sides and their difference, for one subdomain of the first file
    signs      the weights of the features: mean over the draws, and share of positive ones
    outputs    choices that the features of the first file change, on captions and on the texts of
               this project (leaflet and office, shuffled, half of the sentences to adapt on)

Only the lists of captions have segmentations. For 100 sentences of each other domain, and for the
texts of this project, they are reconstructed, which is also tested
on captions. A derivation builds a candidate from pairs of the phrase table, and covers each source
word once. Of the derivations with the number of phrases and the distance of the jumps that the
decoder printed (`PhrasePenalty0`, `Distortion0`), the search returns the most probable one by
log p(t|s) + log p(s|t). It uses a beam and may miss some; candidates without any are left out.
`--folder` keeps the slow intermediate results.

Each draw has its own adaptation sentences (seeds 0, 1, ..., with replacement, the same for every
row). The posterior mode, with the default margin, chooses from the 500-best lists of 500 test
sentences. A cell has the mean TER ± two standard deviations over the draws / BLEU / length ratio,
and the differences in TER and in BLEU from the list's 14 features on the same draws, ± 2 standard
errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import (
    CORPORA,
    Table,
    Task,
    authored_lists,
    cell,
    draw,
    few,
    read_lists,
    run_tables,
    scratch_folder,
    segmented_captions,
    summary,
)
from numba import njit

import bpa_ppl as bpa
from bpa_ppl._runtime.arrays import Float64, Int32, Int64
from bpa_ppl.extras.phrases.extraction import extract_phrases
from bpa_ppl.extras.phrases.induction import induce
from bpa_ppl.extras.phrases.invariance import Invariance
from bpa_ppl.extras.phrases.subdomains import Subdomains
from bpa_ppl.extras.phrases.tables import PhraseCounts
from bpa_ppl.extras.phrases.tree import PhraseTree, build_tree
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.features.source import make_adder
from bpa_ppl.formats.in_memory import concatenate
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.text.words import NumberedText, iter_sentences

MAX_WORDS = 5  # of a phrase
_MAX_SOURCE = 60  # words of a source sentence; longer ones are left out
_BEAM = 200
_COPY_SCORE = -10.0  # of a word that the table does not contain
_IMPOSSIBLE = -1e30


class PhraseIndex(NamedTuple):
    """Phrase counts that can be looked up by the spans of a sentence.

    Attributes:
        counts: the counts of an extraction.
        trees: the source phrases and the target phrases.
        numbers: from the nodes of each tree to the phrases, or −1.
        first_rows: (source phrases + 1,) the first pair of each.
    """

    counts: PhraseCounts
    trees: tuple[PhraseTree, PhraseTree]
    numbers: tuple[Int32, Int32]
    first_rows: Int64

    @classmethod
    def of(cls, counts: PhraseCounts) -> PhraseIndex:
        """Return an index of the counts of an extraction."""
        source, target = build_tree(counts.sources), build_tree(counts.targets)
        first = np.searchsorted(counts.source, np.arange(len(counts.sources) + 1))
        return cls(counts, (source[0], target[0]), (source[1], target[1]), first)

    def phrases(self, side: int, texts: list[str]) -> tuple[Int64, Int64]:
        """Return the phrase in each span of each text, or −1, and the first span of each text."""
        words, starts = self.trees[side].words((text.encode() for text in texts), add=False)
        spans = [_spans(length) for length in np.diff(starts).tolist()]
        first = np.cumsum([0, *map(len, spans)])
        begin, count = np.concatenate(spans).astype(np.int32).T.copy()
        nodes = self.trees[side].numbers((words, starts), first, begin, count, add=False)
        numbers = np.where(nodes >= 0, self.numbers[side][np.maximum(nodes, 0)], -1)
        return numbers.astype(np.int64), first

    def scores(self, sources: Int64, targets: Int64) -> Float64:
        """Return (sources, targets + 1) log p(t|s) + log p(s|t), or `_IMPOSSIBLE`.

        Args:
            sources: source phrases, or −1.
            targets: target phrases, ascending.
        """
        counts = self.counts
        scores = np.full((len(sources), len(targets) + 1), _IMPOSSIBLE)
        for row, source in enumerate(sources.tolist()):
            if source < 0 or not len(targets):
                continue
            pairs = slice(self.first_rows[source], self.first_rows[source + 1])
            target = counts.target[pairs]
            columns = np.minimum(np.searchsorted(targets, target), len(targets) - 1)
            present = targets[columns] == target
            log_p = 2 * np.log(counts.count[pairs]) - np.log(counts.source_count[source])
            log_p -= np.log(counts.target_count[target])
            scores[row, columns[present]] = log_p[present]
        return scores


def segment(lists: NBest, index: PhraseIndex) -> NBest:
    """Return the candidates that have a derivation, with the extra `segmentation`."""
    parts = []
    for nbest in lists:
        words = (nbest.sources or ("",))[0].split()
        if not 0 < len(words) <= _MAX_SOURCE:
            continue
        derivations = dict(_derivations(nbest, index, words))
        if derivations:
            rows = np.array(list(derivations))
            part = nbest.regroup(np.array([0]), rows, [len(rows)])
            parts.append(part.with_extras(segmentation=list(derivations.values())))
    return concatenate(parts)


def _derivations(nbest: NBest, index: PhraseIndex, words: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the rows of one list that have a derivation, with its segmentation."""
    source_phrases, _ = index.phrases(0, [" ".join(words)])
    target_phrases, first = index.phrases(1, list(nbest.strings))
    targets = np.unique(target_phrases[target_phrases >= 0])
    scores = index.scores(source_phrases, targets)
    columns = np.where(target_phrases >= 0, np.searchsorted(targets, target_phrases), len(targets))
    spans = _spans(len(words))
    single = np.flatnonzero(spans[:, 1] == 1)
    unknown = (scores[single] <= _IMPOSSIBLE).all(axis=1)
    names = list(nbest.feature_names)
    phrases = np.rint(nbest.features[:, names.index("PhrasePenalty0")]).astype(int)
    jumps = np.rint(-nbest.features[:, names.index("Distortion0")]).astype(int)
    cache: dict[tuple[int, int, int], str | None] = {}
    for row in range(len(nbest.features)):
        string = int(nbest.string_index[row])
        key = string, int(phrases[row]), int(jumps[row])
        if key not in cache:
            target = np.array(nbest.strings[string].split())
            copied = (np.array(words)[:, None] == target) & unknown[:, None]
            of_string = scores[:, columns[first[string] : first[string + 1]]]
            pairs, values = _pairs(of_string, spans, _spans(len(target)), copied)
            starts = np.searchsorted(pairs[:, 0], np.arange(len(target) + 1))
            path = search(pairs, values, starts, (len(words), len(target), *key[1:]), _BEAM)
            cache[key] = " ".join(
                f"{_format_span(*pairs[p, 2:])}={_format_span(*pairs[p, :2])}" for p in path
            )
        if cache[key]:
            yield row, cache[key]


def _spans(length: int) -> Int64:
    """Return (spans, 2) the first word and the words of each span, by the first word."""
    spans = [(b, c) for b in range(length) for c in range(1, min(MAX_WORDS, length - b) + 1)]
    return np.array(spans, np.int64).reshape(-1, 2)


def _pairs(
    scores: Float64, source: Int64, target: Int64, copied: np.ndarray
) -> tuple[Int64, Float64]:
    """Return the pairs that may build a candidate, and their scores, as `search` takes them.

    Args:
        scores: (source spans, target spans).
        source: (source spans, 2) first word and words.
        target: (target spans, 2) the same.
        copied: (source words, target words) whether a word may be copied.
    """
    first, second = np.nonzero(scores > _IMPOSSIBLE)
    pairs = np.hstack([target[second], source[first]])
    words, places = np.nonzero(copied)
    ones = np.ones(len(words), np.int64)
    pairs = np.vstack([pairs, np.stack([places, ones, words, ones], axis=1)])
    values = np.append(scores[first, second], np.full(len(words), _COPY_SCORE))
    order = np.argsort(pairs[:, 0], kind="stable")
    return pairs[order], values[order]


def _format_span(begin: int, words: int) -> str:
    return f"{begin}" if words == 1 else f"{begin}-{begin + words - 1}"


@njit(nogil=True, cache=True)
def search(
    pairs: Int64, values: Float64, firsts: Int64, sizes: tuple[int, int, int, int], beam: int
) -> Int64:
    """Return the pairs of the best derivation, in target order; empty if there is none.

    Args:
        pairs: (pairs, 4) first target word, words, first source word, words; sorted.
        values: (pairs,) their scores.
        firsts: (target words + 1,) the first pair that begins at each target word.
        sizes: source words, target words, phrases, and the total distance of the jumps.
        beam: the number of states for each number of target words.
    """
    source, target, phrases, jump = sizes
    # A state: covered source words, end of the last phrase, phrases, distance of the jumps, and the
    # previous state and pair.
    states = np.zeros((target + 1, beam, 6), np.int64)
    best = np.full((target + 1, beam), _IMPOSSIBLE)
    filled = np.zeros(target + 1, np.int64)
    filled[0], best[0, 0] = 1, 0.0
    for j in range(target):
        for i in range(filled[j]):
            state = states[j, i]
            if state[2] == phrases:
                continue
            for pair in range(firsts[j], firsts[j + 1]):
                _, words, begin, covered = pairs[pair]
                mask = ((np.int64(1) << covered) - 1) << begin
                distance = state[3] + abs(begin - state[1])
                if state[0] & mask or distance > jump:
                    continue
                new = (state[0] | mask, begin + covered, state[2] + 1, distance, i, pair)
                _add_state(states, best, filled, j + words, new, best[j, i] + values[pair])
    full, last = (np.int64(1) << source) - 1, -1
    for i in range(filled[target]):
        state = states[target, i]
        if state[0] != full or state[2] != phrases or state[3] != jump:
            continue
        if last < 0 or best[target, i] > best[target, last]:
            last = i
    path = np.empty(phrases if last >= 0 else 0, np.int64)
    j = target
    for place in range(len(path) - 1, -1, -1):
        path[place] = states[j, last, 5]
        last = states[j, last, 4]
        j -= pairs[path[place], 1]
    return path


@njit
def _add_state(
    states: Int64,
    best: Float64,
    filled: Int64,
    j: int,
    new: tuple[int, int, int, int, int, int],
    score: float,
) -> None:
    """Add a state to the beam; it replaces an equal state, or the worst one if the beam is full."""
    size, place, worst = filled[j], -1, 0
    for i in range(size):
        one = states[j, i]
        if one[0] == new[0] and one[1] == new[1] and one[2] == new[2] and one[3] == new[3]:
            place = i
            break
        if best[j, i] < best[j, worst]:
            worst = i
    if place < 0:
        place = worst
        if size < states.shape[1]:
            place = size
            filled[j] += 1
    if score > best[j, place]:
        best[j, place] = score
        for f in range(6):
            states[j, place, f] = new[f]


SIZES = few((10, 100))
OUTPUTS = 8  # sentences of the table of outputs
TABLES = ("in", "mixed", "without", "stacked", "distances", "soft", "risk", "phrases", "single")
TABLES = (*TABLES, "signs", "outputs")
DISTANCES = ("hellinger", "kullback-leibler", "reverse-kullback-leibler")
#: Domains other than captions -> the part to draw from.
OTHERS = {"medical": "adapt", "conversation": "adapt", "out-of-domain": "dev"}
RISK = "consensus.ter"
OWN = "authored"  # the folder of the texts of this project


@cache
def phrase_index() -> PhraseIndex:
    """Extract the phrase pairs of the general corpus."""
    return PhraseIndex.of(
        extract_phrases(*(CORPORA / f"out.{s}.xz" for s in ("fr", "en", "align")))
    )


def induced_subdomains(folder: Path, options: Any) -> dict[str, str]:
    """Return files with subdomains of the general corpus, by EM and by LDA over each side."""
    k, pairs = options.k, options.pairs
    inductions: dict[str, dict[str, Any]] = {"EM": {}}
    if "soft" in options.tables:
        inductions["soft EM"] = {"em": "soft"}
    if options.lda:
        for side in ("source", "target"):
            inductions[f"LDA, {side}"] = {"induction": "lda", "side": side}
    paths = {name: folder / f"{name}, {k}, {pairs}.parquet" for name in inductions}
    for name, path in paths.items():
        if not path.exists():
            corpus = [
                chain.from_iterable(iter_sentences(CORPORA / f"out.{side}.xz"))
                for side in ("fr", "en")
            ]
            texts = [NumberedText.of(list(islice(side, pairs or None))) for side in corpus]
            induce(*texts, k, jobs=-1, **inductions[name]).save(path)
    return {name: str(path) for name, path in paths.items()}


def lists_without_segmentations(domain: str) -> NBest:
    """Return 100 lists of another domain, or all of the texts of this project, shuffled."""
    if domain != OWN:
        return read_lists(domain, OTHERS[domain])[:100]
    lists = authored_lists()
    return lists.select(np.random.default_rng(0).permutation(len(lists)))


def segmented_lists(domain: str, folder: Path) -> NBest:
    """Return lists of another domain with searched segmentations."""
    path = folder / f"{domain}.parquet"
    if not path.exists():
        lists = lists_without_segmentations(domain)
        segmented = segment(lists, phrase_index())
        share = len(segmented.features) / len(lists.features)
        print(f"{domain}: {share:.1%} of the candidates have a segmentation", flush=True)
        bpa.write_nbest(segmented, path)
    return bpa.read_nbest(path)


def print_agreement(pool: NBest, source: Invariance) -> None:
    """Print how far searched segmentations of captions agree with those of the decoder."""
    lists = pool[:100]
    searched = segment(lists.without("segmentation"), phrase_index())
    share = len(searched.features) / len(lists.features)
    pairs = zip(lists.extras["segmentation"], searched.extras["segmentation"], strict=True)
    equal = np.mean([first == second for first, second in pairs])
    print(f"\ncaptions: {share:.1%} have a segmentation, {equal:.1%} that of the decoder")
    add, first = make_adder([source]), len(lists.feature_names)
    both = [add(part).lists for part in (lists, searched)]
    owner = np.repeat(np.arange(len(lists)), lists.sizes)
    for column, name in enumerate(both[0].feature_names[first:], first):
        values = np.array([part.features[:, column] for part in both])
        means = np.array([np.bincount(owner, row) for row in values]) / lists.sizes
        print(f"{name}: correlation {np.corrcoef(values - means[:, owner])[0, 1]:.3f} within lists")


def published_columns(name: str) -> tuple[str, str, str]:
    """Return the names of the three features of the paper."""
    return f"{name}.specificity.source", f"{name}.specificity.target", f"{name}.coherence"


def rows_of(name: str) -> dict[str, tuple[str, ...]]:
    """Return the rows of a file of subdomains, with their new features."""
    source, target, coherence = published_columns(name)
    return {
        f"{name}: specificity, source": (source,),
        f"{name}: specificity, target": (target,),
        f"{name}: coherence": (coherence,),
        f"{name}: all three": (source, target, coherence),
    }


def stacked_rows(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return rows with the features of the first file and of each other one."""
    first, *others = names
    return {
        f"{first} + {other}: all six": published_columns(first) + published_columns(other)
        for other in others
    }


def other_sources(name: str, path: str, table: str) -> list[Invariance]:
    """Return the features of the first file for the tables `distances` and `single`."""
    if table == "single":
        return [Invariance(subdomains=path, name=name, z=z) for z in range(Subdomains.load(path).k)]
    settings = {"subdomains": path, "features": "coherence"}
    distances = DISTANCES if table == "distances" else ()
    return [Invariance(name=f"{name}, {one}", distance=one, **settings) for one in distances]


def other_rows(name: str, sources: Sequence[Invariance]) -> dict[str, tuple[str, ...]]:
    """Return the rows of these features; Chebyshev's distance comes first."""
    rows = {} if sources[0].z is not None else {f"{name}: coherence": (f"{name}.coherence",)}
    for source in sources:
        if source.z is None:
            rows[f"{source.name}: coherence"] = (f"{source.name}.coherence",)
        else:
            columns = ("source", "target", "difference")
            rows[f"{name}: subdomain {source.z}"] = tuple(
                f"{name}.z{source.z}.{column}" for column in columns
            )
    return rows


def deviations(pool: NBest, columns: Sequence[str]) -> np.ndarray:
    """Return (columns, candidates) the values of features minus their mean within each list."""
    owner = np.repeat(np.arange(len(pool)), pool.sizes)
    rows = pool.features[:, [pool.feature_names.index(one) for one in columns]].T.astype(float)
    return rows - (np.array([np.bincount(owner, row) for row in rows]) / pool.sizes)[:, owner]


def print_signs(task: Task, names: Sequence[str], draws: int) -> None:
    """Print the weights of the three features, together and each alone, by size of A.

    The weights are multiplied by the mean standard deviation of their feature within a list.
    """
    columns = [f"|A| = {size}{more}" for size in SIZES for more in ("", ", positive")]
    table = Table("weight × SD within lists", *columns, width=16)
    owner = np.repeat(np.arange(len(task.pool)), task.pool.sizes)
    for name in names:
        three = published_columns(name)
        within = deviations(task.pool, three)
        variances = np.array([np.bincount(owner, row**2) for row in within]) / task.pool.sizes
        scale = dict(zip(three, np.sqrt(variances).mean(axis=1), strict=True))
        for new in (three, *((one,) for one in three)):
            chosen = task.keep_features(*new)
            weights: dict[tuple[str, int], list[float]] = {}
            for size in SIZES:
                for seed in range(draws):
                    posterior = chosen.adapt(draw(chosen.pool, size, seed), likelihood="margin")
                    mode = bpa.point_weights(posterior, unchecked=True)
                    for one in new:
                        weights.setdefault((one, size), []).append(mode[one] * scale[one])
            for one in new:
                cells = []
                for size in SIZES:
                    values = np.array(weights[one, size])
                    spread = 2 * values.std(ddof=min(1, draws - 1))
                    cells += [f"{values.mean():+.3f} ± {spread:.3f}", f"{(values > 0).mean():.0%}"]
                table.row(one if new == three else f"{one}, alone", *cells)
        correlations = np.corrcoef(within)[np.triu_indices(3, 1)]
        print("correlations within lists:", *(f"{value:.2f}" for value in correlations))


def print_outputs(title: str, task: Task, name: str) -> None:
    """Print choices that the features change, after adaptation to 100 sentences (seed 0)."""
    texts = []
    for new in ((), published_columns(name)):
        chosen = task.keep_features(*new)
        sample = draw(chosen.pool, SIZES[-1], 0)
        posterior = chosen.adapt(sample, likelihood="margin")
        weights = bpa.point_weights(posterior, unchecked=True)
        values = np.array([weights[one] for one in chosen.test.feature_names])
        texts.append(chosen.test.chosen(chosen.test.best(chosen.test.scores(values))))
    changed = [n for n, (a, b) in enumerate(zip(*texts, strict=True)) if a != b]
    ter = np.array(
        [
            [bpa.corpus_score([side[n]], [task.test.references[n]], "ter").value for n in changed]
            for side in texts
        ]
    )
    better, worse = (ter[1] < ter[0]).sum(), (ter[1] > ter[0]).sum()
    print(f"\n{title}, {name}: {len(changed)} of {len(task.test)} choices change; ", end="")
    print(f"sentence TER is lower for {better} and higher for {worse}")
    for n in np.random.default_rng(0).permutation(changed)[:OUTPUTS]:
        print(f"\nsource     {task.test.sources[n]}\nreference  {task.test.references[n][0]}")
        print(f"14         {texts[0][n]}\n14 + 3     {texts[1][n]}")


def draw_mixed(pools: Sequence[NBest], size: int, seed: int) -> np.ndarray:
    """Draw equally many sentences of each pool; of one pool, those of `measuring.draw`.

    Returns:
        their positions in the concatenated pools.
    """
    sizes = [len(part) for part in np.array_split(np.arange(size), len(pools))]
    starts = np.cumsum([0, *map(len, pools)])
    return np.concatenate(
        [
            starts[place] + np.random.default_rng(seed + 1000 * place).integers(len(pool), size=n)
            for place, (pool, n) in enumerate(zip(pools, sizes, strict=True))
        ]
    )


def count_phrases(task: Task, weights: Mapping[str, float]) -> np.ndarray:
    """Return the mean number of phrases in a choice, and of words in a phrase."""
    rows = task.test.offsets[:-1] + task.test.best(task.test.scores(weights))
    phrases = task.test.features[rows, task.test.feature_names.index("PhrasePenalty0")]
    words = [len(task.test.text(row).split()) for row in rows]
    return np.array([phrases.mean(), np.sum(words) / phrases.sum()])


def print_table(
    title: str,
    tasks: Sequence[Task],
    rows: Mapping[str, tuple[str, ...]],
    draws: int,
    measure: Callable[[Task, Mapping[str, float]], np.ndarray] = Task.scores,
) -> None:
    """Print a table; the tasks have different pools, each of which gets an equal share of A."""
    table = Table(title, *(f"|A| = {size}" for size in SIZES), width=46)
    baseline: dict[int, np.ndarray] = {}
    for name, new in {"the list's 14": (), **rows}.items():
        chosen = [task.keep_features(*new) for task in tasks]
        pools = [task.pool for task in chosen]
        pool = concatenate(pools, renumber=True)
        cells = []
        for size in SIZES:
            samples = (pool.select(draw_mixed(pools, size, seed)) for seed in range(draws))
            posteriors = (chosen[0].adapt(sample, likelihood="margin") for sample in samples)
            weights = [bpa.point_weights(one, unchecked=True) for one in posteriors]
            scores = np.array([measure(chosen[0], one) for one in weights])
            change = scores - baseline.setdefault(size, scores)
            errors = 2 * change.std(axis=0, ddof=min(1, draws - 1)) / np.sqrt(draws)
            pairs = zip(change.mean(axis=0), errors, strict=True)
            first, second, *_ = (f"{mean:+.2f} ± {error:.2f}" for mean, error in pairs)
            cells.append(cell(summary([scores])) + (f" ({first}; {second})" if new else ""))
        table.row(name, *cells)


def prepare(options: Any) -> None:
    """Compute the features of all selected tables."""
    folder = Path(options.folder) if options.folder else scratch_folder()
    paths = dict(one.split("=", 1) for one in options.subdomains)
    paths = paths or induced_subdomains(folder, options)
    sources = [Invariance(subdomains=path, name=name) for name, path in paths.items()]
    names = [name for name in paths if name != "soft EM"]
    others = {table: other_sources(names[0], paths[names[0]], table) for table in options.tables}
    captions = segmented_captions().with_features(*sources, *chain(*others.values()))
    if "risk" in options.tables:
        captions = captions.with_features(Consensus(metric="ter"))
    options.prepared = folder, sources, names, others, captions
    if {"mixed", "without"} & set(options.tables):
        task = captions.keep_features(*chain.from_iterable(map(published_columns, paths)))
        print_agreement(segmented_captions().pool, sources[0])
        add = make_adder(sources)
        pools = [add(segmented_lists(domain, folder)).lists for domain in OTHERS]
        options.mixed = [task, *(task._replace(pool=pool) for pool in pools)]


def print_selected(table: str, options: Any) -> None:
    """Print a table."""
    if "prepared" not in options:
        prepare(options)
    folder, sources, names, others, captions = options.prepared
    if table == "signs":
        print_signs(captions, names, options.draws)
        return
    if table == "outputs":
        print_outputs("captions", captions, names[0])
        own = segmented_lists(OWN, folder)
        half = len(own) // 2
        task = Task.of(own[:half], own[half:]).with_features(*sources)
        print_outputs("leaflet and office", task, names[0])
        return
    parts = [rows_of(name) for name in names]
    rows = {row: new for part in parts for row, new in part.items()}
    if table == "stacked":
        rows = stacked_rows(names)
    elif table == "soft":
        rows = rows_of("soft EM")
    elif table == "risk":
        three = published_columns(names[0])
        rows = {"risk": (RISK,), f"risk + {names[0]}: all three": (RISK, *three)}
    elif table == "phrases":
        rows = parts[0]
    elif others[table]:
        rows = other_rows(names[0], others[table])
    tasks = [captions]
    if table in ("mixed", "without"):
        tasks = options.mixed[table == "without" :]
    measure = count_phrases if table == "phrases" else Task.scores
    print_table(f"captions, {table}", tasks, rows, options.draws, measure)


if __name__ == "__main__":
    tables = {table: partial(print_selected, table) for table in TABLES}
    run_tables(__doc__, tables, subdomains=(), draws=10, pairs=0, k=12, lda=True, folder="")
