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
PATHS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in PATHS}


def test_actions_are_pinned_by_commit() -> None:
    """The comment after the commit names its version, the same in all workflows."""
    lines = [line for path in PATHS for line in path.read_text("utf-8").splitlines()]
    pins = [line.split("uses: ")[1].split("@") for line in lines if "uses:" in line]
    assert len(pins) > 10
    assert all(re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin) for _, pin in pins)
    assert len({(name, pin) for name, pin in pins}) == len({name for name, _ in pins})


def test_jobs_are_limited_and_only_publishing_has_the_identity_of_the_project() -> None:
    identified = []
    for workflow in WORKFLOWS.values():
        assert workflow["permissions"] == {}
        for name, job in workflow["jobs"].items():
            assert {"permissions", "timeout-minutes"} <= job.keys()
            identified += [name] * ("id-token" in job["permissions"])
    assert identified == ["publish"]


def test_pythons_are_those_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [re.fullmatch(r".*Python :: (3\.\d+)", entry) for entry in project["classifiers"]]
    tested = WORKFLOWS["ci.yml"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert tested == [match[1] for match in named if match]
    assert project["requires-python"] == f">={tested[0]}"


RELEASE = WORKFLOWS["release.yml"]["jobs"]["build"]["steps"]
NOTES = next(step["run"] for step in RELEASE if step.get("name") == "Versions and notes")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder with the files that name the version, and a dated section of the changelog."""
    (tmp_path / "bpa_ppl").mkdir()
    for name in ("bpa_ppl/__init__.py", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    changelog = tmp_path / "CHANGELOG.md"
    dated = re.sub(
        rf"(## \[{re.escape(VERSION)}\]) - .*", r"\1 - 2030-01-02", changelog.read_text()
    )
    changelog.write_text(f"{dated}\n## [0.0.1] - 2020-01-01\n\n- An older change.\n", "utf-8")
    return tmp_path


def run_notes(folder: Path, tag: str = f"v{VERSION}") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"GITHUB_REF_NAME": tag}
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
    assert run_notes(release, "v99.0.0").returncode == 1
    path = release / name
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    result = run_notes(release)
    assert result.returncode == 1
    assert message in result.stdout
