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
texts of this project, they are reconstructed (`segmenting.py`); the reconstruction is also tested
on captions. `--folder` keeps the slow intermediate results.

Each draw has its own adaptation sentences (seeds 0, 1, ..., with replacement, the same for every
row). The posterior mode, with the default margin, chooses from the 500-best lists of 500 test
sentences. A cell has the mean TER ± two standard deviations over the draws / BLEU / length ratio,
and the differences in TER and in BLEU from the list's 14 features on the same draws, ± 2 standard
errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

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
from segmenting import PhraseIndex, segment

import bpa_ppl as bpa
from bpa_ppl.extras.phrases.extraction import extract_phrases
from bpa_ppl.extras.phrases.induction import induce
from bpa_ppl.extras.phrases.invariance import Invariance
from bpa_ppl.extras.phrases.subdomains import Subdomains
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.features.source import make_adder
from bpa_ppl.lists.building import concatenate
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.text.words import NumberedText, iter_sentences

SIZES = few((10, 100))
OUTPUTS = 8  # sentences of the table of outputs
TABLES = ("in", "mixed", "without", "stacked", "distances", "soft", "risk", "phrases", "single")
TABLES = (*TABLES, "signs", "outputs")
DISTANCES = ("hellinger", "kullback-leibler", "reverse-kullback-leibler")
#: Domains besides captions -> the part to draw from.
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
