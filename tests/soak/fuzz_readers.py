"""Fuzz tests of all readers with damaged files, as defined in `tests/formats/fuzzing.py`.

    python tests/soak/fuzz_readers.py [--inputs 100000] [--seed 1] [--formats moses jsonl]

Prints a table of formats and exits with 1 if any reader has failed. The files of failures are
saved in the folder --keep.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "formats"))

from fuzzing import (
    Failure,
    edited,
    examine,
    examine_weights,
    names,
    random_edits,
    subject,
    weight_samples,
)

from bpa_ppl.registry import WEIGHT_FORMATS

FAILED = "failed"
_SHOWN = 5


def lists_verdict(name: str, rng: random.Random, folder: Path) -> tuple[str, bytes, str]:
    """Damage a file of n-best lists; return the verdict, the file and the error."""
    tried = subject(name, folder)
    sample = rng.choice(tried.samples)
    content = edited(sample, random_edits(rng))
    try:
        return examine(tried, sample, content, folder), content, ""
    except Failure as failure:
        return FAILED, content, str(failure)


def weights_verdict(name: str, rng: random.Random, folder: Path) -> tuple[str, bytes, str]:
    """Damage a file of weights; return the verdict, the file and the error."""
    content = edited(rng.choice(weight_samples(name)), random_edits(rng))
    try:
        return examine_weights(name, content, folder / "weights"), content, ""
    except Failure as failure:
        return FAILED, content, str(failure)


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="in all, over all formats")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--formats", nargs="*", help="names; all of lists and of weights if none")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "bpa_ppl_fuzz")
    options = parser.parse_args()
    readers = dict.fromkeys(names(), lists_verdict)
    readers |= {f"weights: {name}": weights_verdict for name in WEIGHT_FORMATS}
    chosen = options.formats or list(readers)
    print(f"{'format':<20}{'inputs':>8}{'accepted':>10}{'refused':>9}{'failures':>10}{'s':>7}")
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        for format in chosen:
            counts = _run_format(format, readers[format], options, len(chosen), Path(name))
            failures += counts[FAILED]
    return int(failures > 0)


def _run_format(format: str, verdict, options, formats: int, folder: Path) -> Counter:  # type: ignore[no-untyped-def]
    rng = random.Random(f"{options.seed} {format}")
    counts: Counter[str] = Counter()
    start = perf_counter()
    examples: dict[str, bytes] = {}
    for _ in range(options.inputs // formats):
        result, content, message = verdict(format.removeprefix("weights: "), rng, folder)
        counts[result] += 1
        if message:
            examples.setdefault(message[:60], content)
            if len(examples) <= _SHOWN and examples[message[:60]] is content:
                _keep(options.keep, f"{format.replace(' ', '_')}.{len(examples)}", content, message)
    print(
        f"{format:<20}{counts.total():>8}{counts['accepted']:>10}{counts['refused']:>9}"
        f"{counts[FAILED]:>10}{perf_counter() - start:>7.0f}",
        flush=True,
    )
    return counts


def _keep(folder: Path, name: str, content: bytes, message: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    print(f"  {folder / name}: {message[:400]}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
