"""Print constraints for `make lowest`: each requirement at its lowest version."""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"

for requirement in tomllib.loads(PROJECT.read_text("utf-8"))["project"]["dependencies"]:
    print(requirement.replace(">=", "==", 1))
