"""Print constraints for `make lowest`: each requirement, also of `serve`, at its lowest version."""

from __future__ import annotations

import tomllib
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / "pyproject.toml"
PROJECT = tomllib.loads(PATH.read_text("utf-8"))["project"]

for requirement in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["serve"]:
    print(requirement.replace(">=", "==", 1))
