"""Run a benchmark, and store its output next to the page of the documentation that shows it.

    python benchmarks/record.py PAGE [OPTIONS OF THE SCRIPT]

`docs/results/PAGE.txt` has what each command printed, with the date and the versions; a new run of
a command replaces its last one. `docs/results/PAGE.md` explains the numbers and shows the main
tables: update it by hand. Nothing is written if the script fails.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "docs/results"
SCRIPTS = {
    "asking": "bench_asking.py",
    "choices": "bench_choices.py",
    "confidence": "bench_confidence.py",
    "constants": "bench_held_out.py",
    "control": "bench_control.py",
    "features": "bench_features.py",
    "gallery": "bench_gallery.py",
    "instance-weighting": "bench_instance_weighting.py",
    "invariance": "bench_invariance.py",
    "judged-lists": "bench_judged.py",
    "judging": "bench_judging.py",
    "juries": "bench_juries.py",
    "learned-priors": "bench_learned_priors.py",
    "likelihoods": "bench_likelihoods.py",
    "minimum-risk": "bench_mbr.py",
    "pairs": "bench_pairs.py",
    "posteriordb": "bench_posteriordb.py",
    "published-study": "bench_published.py",
    "samplers": "bench_domains.py",
    "scale": "bench_scale.py",
    "speech": "bench_speech.py",
    "subdomains": "bench_subdomains.py",
    "tuners": "bench_opponents.py",
    "updates": "bench_updates.py",
}
PACKAGES = ("bpa_ppl", "jax", "numpyro", "numpy", "sacrebleu")


def run(command: list[str]) -> str:
    """Run a command and return its output, which is shown as it comes."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return "".join(lines)


def replace_record(records: str, command: str, record: str) -> str:
    """Return records with a new one in place of the last one of the same command, or at the end."""
    kept = re.split(r"^(?=Printed by `)", records, flags=re.MULTILINE)
    start = f"Printed by `{command}`"
    if not any(one.startswith(start) for one in kept):
        kept.append(record)
    replaced = (record if one.startswith(start) else one for one in kept)
    return "\n\n".join(one.strip("\n") for one in replaced if one.strip()) + "\n"


def main() -> None:
    """Read the command line, run the script, and store what it prints."""
    page, *options = sys.argv[1:] or [""]
    if page not in SCRIPTS:
        sys.exit(f"no page {page!r}: choose from {', '.join(SCRIPTS)}")
    script = FOLDER / SCRIPTS[page]
    start = perf_counter()
    output = run([sys.executable, str(script), *options])
    minutes = (perf_counter() - start) / 60
    command = shlex.join(["python", f"benchmarks/{script.name}", *options])
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    took = f"on {date.today()}, in {minutes:.1f} minutes"
    record = f"Printed by `{command}` {took}, with {versions}.\n\n{output}"
    path = RESULTS / f"{page}.txt"
    before = path.read_text("utf-8") if path.exists() else ""
    path.write_text(replace_record(before, command, record), encoding="utf-8")


if __name__ == "__main__":
    main()
