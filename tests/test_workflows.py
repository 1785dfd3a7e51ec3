"""The workflows of continuous integration and of the release."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import bpa_ppl

ROOT = Path(__file__).resolve().parent.parent
VERSION = bpa_ppl.__version__
WORKFLOWS = {
    name: yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8"))
    for name in ("ci", "release")
}


def test_pythons_are_those_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [re.fullmatch(r".*Python :: (3\.\d+)", entry) for entry in project["classifiers"]]
    tested = WORKFLOWS["ci"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert tested == [match[1] for match in named if match]
    assert project["requires-python"] == f">={tested[0]}"


STEPS = WORKFLOWS["release"]["jobs"]["build"]["steps"]
NOTES = next(step["run"] for step in STEPS if step.get("name") == "Versions and notes")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder with the files that name the version, and a dated section of the changelog."""
    (tmp_path / "bpa_ppl").mkdir()
    for name in ("bpa_ppl/__init__.py", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    changelog = tmp_path / "CHANGELOG.md"
    title = rf"(## \[{re.escape(VERSION)}\]) - .*"
    dated = re.sub(title, r"\1 - 2030-01-02", changelog.read_text("utf-8"))
    changelog.write_text(f"{dated}\n## [0.0.1] - 2020-01-01\n\n- An older change.\n", "utf-8")
    return tmp_path


def run_notes(folder: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"GITHUB_REF_NAME": f"v{VERSION}"}
    command = ["bash", "-e", "-c", NOTES]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def test_release_notes_are_the_section_of_the_changelog(release: Path) -> None:
    """This also holds that CITATION.cff names the version of the package."""
    result = run_notes(release)
    assert result.returncode == 0, result.stdout
    notes = (release / "notes.md").read_text("utf-8")
    assert "### Added" in notes
    assert "`adapt`" in notes
    assert "An older change" not in notes
    assert "## [" not in notes


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("bpa_ppl/__init__.py", f'"{VERSION}"', '"99.0.0"', "__version__ is 99.0.0"),
        ("CITATION.cff", f"version: {VERSION}", "version: 99.0.0", "another version"),
        ("CHANGELOG.md", "2030-01-02", "unreleased", "no section"),
    ],
)
def test_a_release_with_other_versions_is_refused(
    release: Path, name: str, old: str, new: str, message: str
) -> None:
    path = release / name
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    result = run_notes(release)
    assert result.returncode == 1
    assert message in result.stdout
