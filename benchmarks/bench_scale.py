"""Scale: adapting to many lists; reranking with processes and killed workers; memory by format.

    python benchmarks/bench_scale.py [--tables NAME ...] [--lists 100 1000 10000]
        [--sizes 1000000x5 20000x100] [--workers 2] [--formats moses jsonl ...]

Tables:
    adapt    CPU time and peak memory of adapting to lists of 100 candidates, 14 features and a
             reference, by the number of lists and by step
    scale    `bpa rerank` of Moses lists (lists × candidates) by one process and by `--jobs`, and
             with a worker killed in the middle
    formats  peak memory of one process for 2,000 and for 20,000 lists of 5 candidates

Lists to adapt to are random: 20 to 40 words, drawn evenly from 100. Candidates, and a related
reference, replace a fifth of them and drop a twentieth; an unrelated reference is that of another
list. Each run is a new process that reads the lists, takes the steps of `adapt` and writes the
posterior. Its caches have the programs that a run on 100 lists needs. Printed are CPU seconds and
the peak memory, for each list, relative to a list of 1,000, and for each list more than in the row
above; then the time of each step. The alternative to TER is sacreBLEU's, measured on 300 candidates
and extrapolated to all.

The lists to rerank repeat the lists of `authored/`, or the first candidates of each, without
references. Each run is a separate command. *Lists per CPU second* divides by the CPU time of all
processes, so it is the rate of one core. Memory is measured for the command alone and summed over
the command and all workers, ten times per second. The busiest worker is killed after half the time
of the uninterrupted run; the command must then write the same bytes, or end with exit code 2, one
line and no output. No workers are started for up to 100,000 candidates.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from itertools import cycle, groupby
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any, NamedTuple

import numpy as np
import psutil
from bench_reading import fairseq_lines, with_names
from measuring import DATA, Table, canonical, few, run_tables, scratch_folder
from sacrebleu import metrics

import bpa_ppl as bpa
from bpa_ppl._runtime.streams import atomic_writer
from bpa_ppl.gains.ter import TER
from bpa_ppl.lists.labels import expand

_INTERVAL = 0.1  # seconds between two samples of memory and CPU time
_FEATURES = 15
_COMMON = 3  # features that every format can hold
_MIB = 2**20
_CANDIDATES, _WIDTH, _VOCABULARY = 100, 14, 100  # of the lists to adapt to
_BASE = len(few(range(1000), 50))  # the number of lists that others are compared with
_SAMPLE = 300  # candidates that sacreBLEU scores
_START, _TER = "start and imports", "TER of all candidates"
_OF_LIST = "a list", f"/ at {_BASE:,}", "a further list"  # than in the row above


class Run(NamedTuple):
    """A run of the command.

    Attributes:
        seconds: wall-clock time.
        cpu: CPU seconds of the command itself.
        cpu_with_workers: those of all processes.
        peak: peak memory of the command itself, in MiB.
        peak_with_workers: that of all processes.
        digest: the hash of all outputs; empty if the command failed.
        message: what the command printed to standard error.
    """

    seconds: float
    cpu: float
    cpu_with_workers: float
    peak: float
    peak_with_workers: float
    digest: str
    message: str


def authored_lists(candidates: int, features: int) -> tuple[bpa.NBest, bpa.Weights]:
    """Return lists with feature names that every format supports, and their weights."""
    parts = [
        bpa.read_nbest(
            DATA / f"authored/{name}.nbest100.gz", references=DATA / f"authored/{name}.ref"
        )
        for name in ("leaflet", "office")
    ]
    lists = bpa.concatenate(parts, renumber=True).without("totals").truncate(candidates)
    names = lists.feature_names[:features]
    weights = canonical()
    labels = expand("score", len(names))
    values = [weights.get(name, 1.0) for name in names]
    return with_names(lists, *labels), bpa.Weights(zip(labels, values, strict=True))


def write(lists: bpa.NBest, path: Path, format: str) -> None:
    """Write lists; plain text has its scores in a second file."""
    if format == "fairseq":
        path.write_text(fairseq_lines(lists))
        return
    if format == "plain":
        format = f"plain:list_size={lists.sizes[0]},scores={path}.scores"
    bpa.write_nbest(lists, path, format=format)


def write_posterior(path: Path, lists: bpa.NBest, weights: bpa.Weights, format: str) -> None:
    """Adapt to the first 100 lists, as they are read from the format."""
    lists = lists[:100]
    part = path.with_name("part")
    write(lists.without("references"), part, format)
    if format == "plain":
        format = f"plain:list_size={lists.sizes[0]},scores={part}.scores"
    sample = bpa.read_nbest(part, format=format, references=lists.references)
    canonical_weights = weights if set(weights) == set(sample.feature_names) else None
    bpa.write_posterior(bpa.adapt(sample, canonical_weights, sampler="imh"), path)


def repeat(lists: bpa.NBest, count: int) -> bpa.NBest:
    """Return a number of lists, with ids from 0."""
    repeated = lists.select(np.arange(count) % len(lists))
    return bpa.concatenate([repeated], renumber=True).without("references")


def write_many(lists: bpa.NBest, count: int, path: Path) -> None:
    """Write a number of Moses lists with ids from 0, by repeating the lines of some lists."""
    once = path.with_name("once")
    write(repeat(lists, len(lists)), once, "moses")
    parts = (line.partition(" ") for line in once.read_text().splitlines(keepends=True))
    by_list = [[rest for _, _, rest in group] for _, group in groupby(parts, lambda part: part[0])]
    with atomic_writer(path) as file:
        for number, rests in zip(range(count), cycle(by_list)):
            file.writelines(f"{number} {rest}" for rest in rests)


def run_rerank(folder: Path, lists: Path, *options: str, kill_after: float = 0.0) -> Run:
    """Rerank in a process of its own, and sample memory and CPU time.

    Args:
        folder: of the posterior and the outputs.
        lists: the file.
        options: of the command.
        kill_after: kill the busiest worker after this many seconds, if it is not 0.
    """
    outputs = [folder / "out", folder / "details"]
    for path in outputs:
        path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "bpa_ppl", "rerank", lists, "-p", folder / "posterior.nc"]
    command += ["-o", outputs[0], "--details", outputs[1], "-q", "--unchecked", *options]
    benchmark = psutil.Process()
    before = {child.pid: cpu_seconds(child) for child in benchmark.children(recursive=True)}
    cpu: dict[int, float] = {}
    peak = peak_with_workers = 0.0
    start = perf_counter()
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None:
        memory = {}
        for child in benchmark.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                cpu[child.pid] = cpu_seconds(child)
                memory[child.pid] = child.memory_info().rss / _MIB
        peak = max(peak, memory.get(process.pid, 0.0))
        peak_with_workers = max(peak_with_workers, sum(memory.values()))
        if kill_after and perf_counter() - start > kill_after:
            rest = {pid: cpu[pid] - before.get(pid, 0.0) for pid in memory if pid != process.pid}
            if not rest:
                sys.exit("no worker can be killed: more than 100,000 candidates are needed")
            psutil.Process(max(rest, key=lambda pid: rest[pid])).kill()
            kill_after = 0.0
        sleep(_INTERVAL)
    seconds = perf_counter() - start
    out, message = process.communicate()
    digest = hashlib.sha256(out.encode())
    for path in outputs if not process.returncode else ():
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    refused = process.returncode == 2 and not any(path.exists() for path in outputs)
    if process.returncode and not (refused and message.count("\n") == 1):
        sys.exit(f"bpa rerank failed with exit code {process.returncode}: {message}")
    if kill_after:
        sys.exit(f"no worker was killed: bpa rerank took {seconds:.1f} s")
    return Run(
        seconds,
        cpu[process.pid],
        sum(cpu.values()) - sum(before.get(pid, 0.0) for pid in cpu),
        peak,
        peak_with_workers,
        "" if process.returncode else digest.hexdigest(),
        message.strip(),
    )


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU time of a process."""
    times = process.cpu_times()
    return float(times.user + times.system)


def random_lists(count: int, *, related: bool) -> bpa.NBest:
    """Return lists to adapt to, with one reference each."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(_VOCABULARY)])
    texts, references = list[list[str]](), list[str]()
    for _ in range(count):
        length = int(rng.integers(20, 41))
        shape = _CANDIDATES + 1, length
        is_kept, is_other = rng.random(shape) > 0.05, rng.random(shape) < 0.2
        table = np.where(
            is_other, rng.integers(_VOCABULARY, size=shape), rng.integers(_VOCABULARY, size=length)
        )
        reference, *candidates = (
            " ".join(words[row[kept]]) for row, kept in zip(table, is_kept, strict=True)
        )
        texts.append(candidates)
        references.append(reference)
    if not related:
        references = [*references[1:], references[0]]
    features = rng.normal(size=(count, _CANDIDATES, _WIDTH))
    names = [f"f{number}" for number in range(_WIDTH)]
    return bpa.from_lists(texts, features, names, references=references)


def write_random(path: str, count: int, related: bool) -> None:
    """Write lists to adapt to; in a process of its own, because a child starts with its memory."""
    bpa.write_nbest(random_lists(count, related=related), path)
    print("{}")


def adapt_in_steps(path: str) -> None:
    """Adapt as `bpa adapt` does, and print CPU seconds and peak memory, in all and by step.

    Then two parts of a step are repeated, to print their seconds.
    """
    from bpa_ppl.adapting.build import build_target
    from bpa_ppl.adapting.observe import observe
    from bpa_ppl.adapting.prepare import prepare
    from bpa_ppl.adapting.prior import choose_prior
    from bpa_ppl.adapting.warn import warn_about
    from bpa_ppl.evaluation.leave_one_out import leave_out
    from bpa_ppl.evaluation.simple_ways import fit_ways
    from bpa_ppl.sampling.finish import draw_posterior

    steps, start = {_START: (process_time(), peak_memory())}, process_time()

    def finish(step: str) -> None:
        nonlocal start
        steps[step], start = (process_time() - start, peak_memory()), process_time()

    lists = bpa.read_nbest(path)
    finish("reading")
    prepared = prepare(lists, None, gain="ter")
    warn_about(prepared)
    finish("preparing")
    observed = observe(prepared)
    finish(_TER)
    prior = choose_prior(observed, prepared)
    finish("scale of the prior")
    target = build_target(prepared, observed, prior)
    finish("target")
    draws = draw_posterior(
        target, prepared.sampler, seed=prepared.settings.seed, clock=process_time
    )
    finish("draws")
    bpa.write_posterior(draws, f"{path}.nc")
    finish("writing")
    used, mib = resource.getrusage(resource.RUSAGE_SELF), peak_memory()
    steps["draws: sampling"] = draws.record.sampler.seconds or 0.0, steps["draws"][1]
    judged = target.source.judged.scored(observed.gain)
    weights, start = bpa.as_weight_draws(draws), process_time()
    for _ in fit_ways(judged, weights):
        pass
    finish("draws: simple ways")
    leave_out(weights, judged.lists).score()
    finish("draws: leave-one-out")
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "mib": mib, "steps": steps}))


def peak_memory() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_apart(function: str, *arguments: object) -> dict[str, Any]:
    """Call a function of this script in a new process, and return what it printed."""
    code = f"import bench_scale; bench_scale.{function}{arguments}"
    # With this variable Python stores no bytecode, and each run would compile the modules again.
    kept = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    command, folder = [sys.executable, "-W", "ignore", "-c", code], Path(__file__).parent
    done = subprocess.run(command, cwd=folder, env=kept, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def score_sample(related: bool) -> float:
    """Return the CPU seconds of sacreBLEU's TER of a candidate; TER has to be the same."""
    lists = random_lists(_SAMPLE, related=related)
    references = lists.references
    assert references is not None
    pairs = [(lists.texts(s)[s % _CANDIDATES], references[s]) for s in range(len(lists))]
    scorer, start = metrics.TER(), process_time()
    edits = [scorer.sentence_score(text, of_list).num_edits for text, of_list in pairs]
    seconds = process_time() - start
    counts = TER().counts([[text] for text, _ in pairs], [of_list for _, of_list in pairs])
    if counts[:, 0].tolist() != edits:
        sys.exit("TER differs from sacreBLEU's")
    return seconds / len(pairs)


def adapt_table(options: Any) -> None:
    """Print the time and memory of adapting, and the time of its steps, by the number of lists."""
    counts = sorted({*options.lists, _BASE})
    path = scratch_folder() / "random.jsonl"
    run_apart("write_random", str(path), min(counts), True)
    run_apart("adapt_in_steps", str(path))  # fills the caches
    for related in few((True, False)):
        name = "related references" if related else "unrelated references"
        runs = {}
        for count in counts:
            run_apart("write_random", str(path), count, related)
            runs[count] = run_apart("adapt_in_steps", str(path))
        heads = (f"{unit} {of}" for unit in ("ms", "KiB") for of in _OF_LIST)
        table = Table(f"lists, {name}", "CPU seconds", "MiB", *heads)
        base, before = runs[_BASE], None
        for count, run in runs.items():
            cells = []
            for unit, key in ((1000, "cpu"), (1024, "mib")):
                a_list, of_base = unit * run[key] / count, unit * base[key] / _BASE
                cells += [f"{a_list:.1f}", f"{a_list / of_base:.2f}", ""]
                if before is not None:
                    further = (run[key] - runs[before][key]) / (count - before)
                    cells[-1] = f"{unit * further:.1f}"
            table.row(f"{count:,}", run["cpu"], f"{run['mib']:.0f}", *cells)
            before = count
        heads = (f"{count:,} lists" for count in counts)
        peak = f"peak MiB after it, {counts[-1]:,} lists"
        table = Table(f"ms a list, {name}", *heads, peak, width=14)
        for step in base["steps"]:
            times = (1000 * run["steps"][step][0] / count for count, run in runs.items())
            table.row(step, *times, f"{runs[counts[-1]]['steps'][step][1]:.0f}")
        of_sacrebleu = 1000 * _CANDIDATES * score_sample(related)
        table.row("sacreBLEU's TER, extrapolated", *[of_sacrebleu] * len(counts))
        ratios = (of_sacrebleu / (1000 * r["steps"][_TER][0] / n) for n, r in runs.items())
        table.row("TER, times as fast as sacreBLEU", *ratios)


def scale_table(options: Any) -> None:
    """Print a table for each size."""
    folder = scratch_folder()
    path = folder / "lists.zst"
    rates = "lists a second", "lists per CPU second"
    columns = "seconds", *rates, "times as fast", "MiB", "MiB with workers", "output"
    jobs = "--jobs", f"{options.workers}"
    for size in options.sizes:
        count, candidates = map(int, size.split("x"))
        lists, weights = authored_lists(candidates, _FEATURES)
        write_posterior(folder / "posterior.nc", lists, weights, "moses")
        write_many(lists, count, path)
        one = run_rerank(folder, path)
        several = run_rerank(folder, path, *jobs)
        killed = run_rerank(folder, path, *jobs, kill_after=several.seconds / 2)
        name = f"processes, {options.workers} workers"
        runs = {"one process": one, name: several, f"{name}, one of them killed": killed}
        table = Table(f"{count:,} lists of {candidates}", *columns)
        for label, run in runs.items():
            table.row(
                label,
                f"{run.seconds:.1f}",
                f"{count / run.seconds:,.0f}" if run.digest else "",
                f"{count / run.cpu_with_workers:,.0f}" if run.digest else "",
                f"{one.seconds / run.seconds:.2f}" if run.digest else "",
                f"{run.peak:.0f}",
                f"{run.peak_with_workers:.0f}",
                run.message or ("same bytes" if run.digest == one.digest else "OTHER BYTES"),
            )
            if run.digest not in (one.digest, ""):
                sys.exit(f"{label}: the output differs from that of one process")


def formats_table(options: Any) -> None:
    """Print the peak memory of one process by format and number of lists."""
    folder = scratch_folder()
    lists, weights = authored_lists(5, _COMMON)
    counts = few((2_000, 20_000))
    table = Table("MiB of one process", *(f"{count:,} lists of 5" for count in counts))
    for format in options.formats:
        write_posterior(folder / "posterior.nc", lists, weights, format)
        path, peaks = folder / "lists", []
        arguments = ["--format", format]
        if format == "plain":
            arguments = ["--format", f"plain:list_size=5,scores={path}.scores"]
        for count in counts:
            write(repeat(lists, count), path, format)
            peaks.append(f"{run_rerank(folder, path, *arguments).peak:.0f}")
        table.row(format, *peaks)


if __name__ == "__main__":
    run_tables(
        __doc__,
        (adapt_table, scale_table, formats_table),
        lists=(100, 300, 1000, 3000, 10000),
        sizes=("1000000x5", "20000x100"),
        workers=2,
        formats=("moses", "jsonl", "csv", "parquet", "plain", "fairseq"),
    )
