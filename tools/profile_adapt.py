"""Count what one `bpa adapt` does: functions, modules, moves between modules, and repeated work.

    python tools/profile_adapt.py

The lists are `judged.csv` of the README: 50 pairs of answers with the grades of five judges.
Functions are those of this package; a move is a call of a function in another module. Work that
should be done once has a line each.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from bpa_ppl.cli.app import run_command
from bpa_ppl.extras.demo.demo import write_demo_files

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = (
    *("--weights", "none", "--gain", "better", "--quiet"),
    *("--features", "large", "medium", "small", "friendly", "hasty"),
)
#: What is done -> the functions that do it, by name.
WORK = {
    "verdicts": ("BurnIn.measure",),
    "hashes of all draws": ("_hash_inputs",),
    "columns read": ("read_column",),
    "judged lists selected": ("select_marked",),
    "of two candidates?": ("find_judged",),
}


def profile(command: list[str]) -> tuple[Counter[tuple[str, str]], int]:
    """Return the number of calls by module and name of each function, and of moves."""
    calls, moves = Counter[tuple[str, str]](), 0
    folders = tuple(str(ROOT / name) for name in ("bpa_ppl", "models", "diagnostics"))

    def is_ours(frame: FrameType | None) -> bool:
        named = frame is not None and not frame.f_code.co_name.startswith("<")
        return named and frame.f_code.co_filename.startswith(folders)

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal moves
        if event != "call" or not is_ours(frame):
            return
        code, caller = frame.f_code, frame.f_back
        calls[code.co_filename, code.co_qualname] += 1
        if caller is not None and is_ours(caller):
            moves += caller.f_code.co_filename != code.co_filename

    run_command(command)  # imports and compiles
    sys.setprofile(count)
    try:
        run_command(command)
    finally:
        sys.setprofile(None)
    return calls, moves


def main() -> None:
    """Print the counts."""
    with TemporaryDirectory() as folder:
        write_demo_files(Path(folder))
        files = (str(Path(folder) / "judged.csv"), "--output", str(Path(folder) / "posterior.nc"))
        calls, moves = profile(["adapt", *files, *OPTIONS])
    modules = {path for path, _ in calls}
    print(f"functions {len(calls)}, modules {len(modules)}, moves between modules {moves}")
    for work, names in WORK.items():
        print(f"{work}: {sum(n for (_, name), n in calls.items() if name in names)}")


if __name__ == "__main__":
    main()
