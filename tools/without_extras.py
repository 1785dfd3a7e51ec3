"""Copy the repository without its extras, to run the tests of the core as in an installation of it.

    python tools/without_extras.py FOLDER

The folder receives all tracked files but those of `bpa_ppl/extras`, and its tests and pages;
`pyproject.toml` no longer names its packages and entry points.
"""

from __future__ import annotations

import shutil
import subprocess  # noqa: TID251 - asks Git for the tracked files
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("bpa_ppl/extras/", "tests/extras/", "docs/extras/")


def copy_core(folder: Path) -> None:
    """Copy the tracked files of the core to a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if name.startswith(EXTRAS) or not (ROOT / name).exists():
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    project = folder / "pyproject.toml"
    lines = project.read_text("utf-8").splitlines(keepends=True)
    project.write_text("".join(one for one in lines if "bpa_ppl.extras" not in one), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    copy_core(Path(sys.argv[1]))
