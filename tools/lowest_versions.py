"""Print constraints for `make lowest`: each requirement, also of `judge`, at its lowest version."""

from __future__ import annotations

import tomllib
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / "pyproject.toml"
PROJECT = tomllib.loads(PATH.read_text("utf-8"))["project"]

for requirement in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["judge"]:
    print(requirement.replace(">=", "==", 1))
