"""The demos: adapt on 50 lists of the included data, check, and rerank the rest.

`run_demo` translates. It runs twice: with the features of the lists, and with an additional
language model of the domain. `run_judges_demo` chooses answers by the grades of five judges.
`write_demo_files` writes the data as files like those of users, which the documentation reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from bpa_ppl._runtime.arguments import check_seed
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl._runtime.streams import atomic_writer, output_folder, read_lines
from bpa_ppl.adapting.adapt import run_adaptation
from bpa_ppl.adapting.settings import resolve_settings
from bpa_ppl.decoding.choices import Choices
from bpa_ppl.decoding.reranker import rerank
from bpa_ppl.decoding.writing import write_texts
from bpa_ppl.diagnostics.check.report import Report
from bpa_ppl.errors import DataError
from bpa_ppl.evaluation.compare_ways import compare_baselines
from bpa_ppl.evaluation.paired import Scoreboard, compare_choices
from bpa_ppl.evaluation.simple_ways import Way
from bpa_ppl.extras.judging.juries import judges
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.formats.in_memory import concatenate
from bpa_ppl.formats.reading import read_nbest
from bpa_ppl.formats.weight_files import read_weights
from bpa_ppl.formats.writing import write_nbest
from bpa_ppl.posterior.files import write_posterior

_ADAPTATION = 50
_EXAMPLES_SHOWN = 3
#: What `write_demo_files` writes.
_FILES = (
    *("adapt.nbest.gz", "adapt.src", "adapt.ref", "test.nbest.gz", "test.src", "test.ref"),
    *("moses.ini", "domain.txt", "judged.csv", "new.csv", "schools.py", "schools.json"),
)


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demo; `str` describes them.

    Attributes:
        report: the check of the posterior with the language model.
        baseline: scores of the reranked sentences with only the features of the lists.
        scores: scores with the language model.
        result: the sentences reranked with the language model.
        lines: the number of lines of the text of the language model.
        files: the written files.
    """

    report: Report
    baseline: Scoreboard
    scores: Scoreboard
    result: Choices
    lines: int
    files: tuple[Path, ...]

    def __str__(self) -> str:
        result = self.result
        references = result.lists.references or ()
        examples = [
            f"sentence {result.ids[s]}\n  reference  {references[s][0]}\n"
            f"  canonical  {result.canonical_texts[s]}\n  adapted    {result.texts[s]}"
            for s in np.flatnonzero(result.changed)[:_EXAMPLES_SHOWN]
        ]
        parts = [
            str(self.report),
            f"with only the features of the lists\n{self.baseline}",
            f"with a language model of {self.lines} lines of the domain\n{self.scores}",
            *examples,
            "\n".join(f"wrote {path}" for path in self.files),
        ]
        return "\n\n".join(parts)


def run_demo(folder: Path, *, seed: int = 0, progress: bool | Reporter = False) -> Demo:
    """Adapt on 50 sentences of the demo data, check, rerank the other 190, write the results.

    Args:
        folder: for the posterior and the translations; created if it does not exist.
        seed: of the split and of the sampler.
        progress: True draws a bar on standard error.

    Raises:
        DataError: if the folder cannot be made or written.
        UsageError: if the seed is invalid.
        NotConverged: if the posterior fails its check.
    """
    check_seed(seed)
    with output_folder(folder):
        with as_file(files("bpa_ppl.demo_data")) as data:
            pool = read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
            canonical = read_weights(data / "moses.ini")
            # The posterior contains the text, so that it needs no other file.
            text = LanguageModel(text=str(data / "leaflet.domain.txt"), carry=True).fitted(pool)
        order = np.random.default_rng(seed).permutation(len(pool))
        adaptation = pool.select(order[:_ADAPTATION])
        rest = pool.select(np.sort(order[_ADAPTATION:]))
        first, (posterior, report) = (
            run_adaptation(
                adaptation,
                canonical,
                resolve_settings(sampler="imh", seed=seed, progress=progress, add=add),
                quiet=True,
            )
            for add in ((), text)
        )
        baseline, result = (rerank(rest, p, progress=progress) for p in (first.draws, posterior))
        paths = tuple(folder / name for name in ("posterior.nc", "translations.txt"))
        write_posterior(posterior, paths[0])
        write_texts(result, paths[1])
    before, after = (compare_choices(rest, of.canonical, of.choice) for of in (baseline, result))
    return Demo(report, before, after, result, len(text.lines), paths)


def run_judges_demo(folder: Path, *, seed: int = 0, progress: bool | Reporter = False) -> str:
    """Adapt on 50 pairs of answers with the grades of five judges, and choose from 200 others.

    Returns a summary: the check, what the judges are worth, the share of right choices, examples.

    Args:
        folder: for the posterior and the chosen answers; created if it does not exist.
        seed: of the sampler.
        progress: True draws a bar on standard error.

    Raises:
        DataError: if the folder cannot be made or written.
        UsageError: if the seed is invalid.
        NotConverged: if the posterior fails its check.
    """
    check_seed(seed)
    with output_folder(folder):
        with as_file(files("bpa_ppl.demo_data")) as data:
            judged, new = (read_nbest(data / f"answers.{name}.jsonl") for name in ("judged", "new"))
        settings = resolve_settings(seed=seed, progress=progress)
        posterior, report = run_adaptation(judged, None, settings, quiet=True)
        result = rerank(new, posterior, progress=progress)
        paths = tuple(folder / name for name in ("posterior.nc", "answers.txt"))
        write_posterior(posterior, paths[0])
        write_texts(result, paths[1])
    rows = {row.name: row for row in compare_baselines(new, posterior, choice=result.choice).rows}
    mean, adapted = rows[Way.MEAN], rows[Way.ADAPTED]
    triples = zip(new.sources or (), new.chosen(mean.choose(new)), result.texts, strict=True)
    changed = [
        f"{question}\n  mean of the judges  {before}\n  adapted             {after}"
        for question, before, after in triples
        if before != after
    ]
    parts = [
        str(report),
        str(judges(posterior, judged)),
        f"right choices from {len(new)} new pairs: mean of the judges {mean.gain:.1%}, "
        f"adapted {adapted.gain:.1%}\n"
        f"{len(changed)} of {len(new)} choices differ from those of the mean",
        *changed[:_EXAMPLES_SHOWN],
        "\n".join(f"wrote {path}" for path in paths),
    ]
    return "\n\n".join(parts)


def write_demo_files(folder: Path) -> tuple[Path, ...]:
    """Write the data of all examples as files like those of users, and return their paths.

    The lists, sources and references of the leaflet are `adapt.*`, the first 50 sentences, and
    `test.*`, the other 190; `moses.ini` has the weights of their decoder, and `domain.txt` text of
    the domain. `judged.csv` and `new.csv` have a row for each answer: the grades of the judges, and
    in the column `better` 1 for the better answer to a question and 0 for the other one.
    `schools.py` has a NumPyro model, and `schools.json` its data.

    Args:
        folder: for the files; created if it does not exist.

    Raises:
        DataError: if the folder has a file with one of these names, or cannot be made or written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     paths = write_demo_files(Path(folder))
    ...     print([path.name for path in paths if path.suffix == ".csv"])
    ['judged.csv', 'new.csv']
    """
    paths = {name: folder / name for name in _FILES}
    for path in paths.values():
        if path.exists():
            problem = "this file exists and is not replaced: choose another folder"
            raise DataError(problem, path, code="cannot-write")
    with output_folder(folder), as_file(files("bpa_ppl.demo_data")) as data:
        lists = read_nbest(data / "leaflet.nbest100.gz")
        text = {kind: read_lines(data / f"leaflet.{kind}") for kind in ("src", "ref", "domain.txt")}
        parts = (("adapt", slice(_ADAPTATION)), ("test", slice(_ADAPTATION, None)))
        for name, part in parts:
            write_nbest(concatenate([lists[part]], renumber=True), paths[f"{name}.nbest.gz"])
            for kind in ("src", "ref"):
                _write_lines(text[kind][part], paths[f"{name}.{kind}"])
        _write_lines(text["domain.txt"], paths["domain.txt"])
        for name in ("moses.ini", "schools.py", "schools.json"):
            _write_lines(read_lines(data / name), paths[name])
        for name in ("judged", "new"):
            pairs = read_nbest(data / f"answers.{name}.jsonl")
            better = np.zeros(len(pairs.features), dtype=np.int64)
            winners = [winner for ((winner, _),) in pairs.sentence_extras["preferences"]]
            better[pairs.offsets[:-1] + winners] = 1
            # Plain columns, as a file of a user has them: the reader names the features.
            columns = zip(pairs.feature_names, pairs.features.T.astype(np.int64), strict=True)
            pairs = pairs.without(*pairs.feature_names, "preferences")
            write_nbest(pairs.with_extras(**dict(columns), better=better), paths[f"{name}.csv"])
    return tuple(paths.values())


def _write_lines(lines: Iterable[str], path: Path) -> None:
    with atomic_writer(path) as file:
        file.writelines(f"{line}\n" for line in lines)
