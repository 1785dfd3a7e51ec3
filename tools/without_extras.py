"""Copy the repository without `bpa_ppl.extras`: the core must work alone.

    python tools/without_extras.py TARGET

`TARGET` must not exist. The copy has the files that git tracks and new ones that it does not
ignore, as they are now, except the folders of extras; `pyproject.toml` loses each line that names
`bpa_ppl.extras`: packages, data and entry points.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess  # noqa: TID251 - runs git
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("bpa_ppl/extras/", "docs/extras/", "tests/extras/")


def copy_core(target: Path) -> None:
    """Write the copy; `FileExistsError` if the target exists."""
    target.mkdir(parents=True)
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=ROOT, check=True, capture_output=True, encoding="utf-8").stdout
    for name in listed.split("\0"):
        # Git also lists files that were removed, but not yet from its index.
        if not name.startswith(FOLDERS) and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    project = target / "pyproject.toml"
    lines = project.read_text("utf-8").splitlines(keepends=True)
    project.write_text("".join(one for one in lines if "bpa_ppl.extras" not in one), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", type=Path)
    copy_core(parser.parse_args().target)
