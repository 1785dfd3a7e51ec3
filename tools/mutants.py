"""Print the changes of a module that its tests do not notice.

    python tools/mutants.py bpa_ppl/weights.py tests/test_weights.py

A mutant is a copy of the module with one small change: `<=` for `<`, `/` for `*`, 2 for 1. If all
tests pass, it survives. A survivor gets a test against something independent, or its code is
removed, or it is equivalent and stays. Changes that nobody makes by mistake, such as `>>` for `+`,
are left out. Cosmic Ray, which `pip install cosmic-ray` installs, changes the module in place and
restores it: commit first. One run of the tests should take a few seconds.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess  # noqa: TID251 - runs Cosmic Ray
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "build" / "mutants"
CONFIGURATION = r"""
[cosmic-ray]
module-path = "{module}"
test-command = "{command}"
timeout = {timeout}

[cosmic-ray.distributor]
name = "local"

[cosmic-ray.filters.operators-filter]
exclude-operators = [
  'core/ReplaceBinaryOperator_\w+_(RShift|LShift|BitAnd|BitOr|BitXor|Mod|FloorDiv|Pow)$',
  'core/ReplaceBinaryOperator_BitOr_',  # mostly in type hints
  'core/ReplaceUnaryOperator_\w+_(Invert|Not|UAdd)$',
  'core/ReplaceComparisonOperator_(Eq|NotEq|Lt|LtE|Gt|GtE)_Is',
]
"""


def main() -> None:
    """Make the mutants of a module, run the tests with each, and print the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("module")
    parser.add_argument("tests", nargs="+", help="files or folders of tests that cover the module")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one mutant")
    options = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", *options.tests]
    FOLDER.mkdir(parents=True, exist_ok=True)
    settings, session = FOLDER / "settings.toml", FOLDER / "session.sqlite"
    values = {"module": options.module, "command": shlex.join(command), "timeout": options.timeout}
    settings.write_text(CONFIGURATION.format(**values), "utf-8")
    session.unlink(missing_ok=True)  # of another module
    for program, *arguments in (
        ("cosmic-ray", "baseline", settings),  # the tests have to pass without a change
        ("cosmic-ray", "init", settings, session),
        ("cr-filter-operators", session, settings),
        ("cosmic-ray", "exec", settings, session),
        ("cr-report", "--surviving-only", "--show-diff", session),
    ):
        subprocess.run([Path(sys.executable).parent / program, *arguments], check=True)


if __name__ == "__main__":
    main()
