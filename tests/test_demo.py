"""The demo converges, writes its files and improves the translations."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from support.raising import raises

from bpa_ppl import DataError, as_draws, check, read_posterior
from bpa_ppl.cli.app import app
from bpa_ppl.demo import Demo, run_demo
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.features.recipe import Recipe

pytestmark = pytest.mark.filterwarnings("ignore:no canonical weight:bpa_ppl.BpaWarning")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The results of `bpa demo`."""
    results: list[Demo] = []

    def run(*arguments: Any, **options: Any) -> Demo:
        results.append(run_demo(*arguments, **options))
        return results[0]

    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with patch("bpa_ppl.demo.run_demo", run):
        app(["demo", "-o", str(folder), "-q"], result_action="return_value")
    return results[0]


def test_posterior_converges_and_is_written(demo: Demo) -> None:
    assert demo.report
    posterior = read_posterior(demo.files[0])
    assert str(check(posterior)) == str(demo.report)
    (source,) = Recipe.of(as_draws(posterior)).sources
    assert isinstance(source, LanguageModel)
    assert (len(source.lines), source.files()) == (demo.lines, ())


def test_adaptation_and_in_domain_text_improve_translations(demo: Demo) -> None:
    before, adapted, with_text = demo.baseline.before, demo.baseline.after, demo.scores.after
    assert [score.value for score in before] == [score.value for score in demo.scores.before]
    assert adapted[0].value < before[0].value - 1
    # Oracles with the lowest TER are short, so the adapted weights prefer short translations.
    assert adapted[1].value > before[1].value - 0.5
    assert with_text[0].value < adapted[0].value - 0.5
    assert with_text[1].value > adapted[1].value + 0.5


def test_files_and_printed_summary(demo: Demo) -> None:
    _, translations = demo.files
    assert translations.read_text("utf-8").splitlines() == demo.result.texts
    assert len(demo.result.texts) == 190
    output = str(demo)
    parts = (demo.report, demo.baseline, demo.scores, *(f"wrote {path}" for path in demo.files))
    assert [str(part) for part in parts if str(part) not in output] == []
    assert output.count("\nsentence ") == 3


def test_rejects_file_as_output_folder(tmp_path: Path) -> None:
    existing = tmp_path / "taken"
    existing.touch()
    with raises(DataError, "cannot-write", match="taken"):
        run_demo(existing)
