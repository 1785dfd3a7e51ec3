"""The demo converges, writes its files and improves the translations."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpa_ppl import DataError, as_draws, check, read_posterior
from bpa_ppl.demo import Demo, run_demo
from bpa_ppl.features import LanguageModel
from bpa_ppl.models import Preparation

pytestmark = pytest.mark.filterwarnings("ignore:no canonical weight:bpa_ppl.BpaWarning")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return run_demo(tmp_path_factory.mktemp("demo") / "new" / "folder")


def test_posterior_converges_and_is_written(demo: Demo) -> None:
    assert demo.report
    assert str(check(read_posterior(demo.files[0]))) == str(demo.report)


def test_adaptation_improves_translations(demo: Demo) -> None:
    (ter, bleu), (adapted_ter, adapted_bleu) = demo.baseline.before, demo.baseline.after
    assert adapted_ter.value < ter.value - 1
    # Oracles with the lowest TER are short, so the adapted weights prefer short translations.
    assert adapted_bleu.value > bleu.value - 0.5


def test_in_domain_text_improves_translations_further(demo: Demo) -> None:
    assert [score.value for score in demo.baseline.before] == [s.value for s in demo.scores.before]
    (ter, bleu), (text_ter, text_bleu) = demo.baseline.after, demo.scores.after
    assert text_ter.value < ter.value - 0.5
    assert text_bleu.value > bleu.value + 0.5


def test_posterior_includes_the_in_domain_text(demo: Demo) -> None:
    draws = as_draws(read_posterior(demo.files[0]))
    (source,) = Preparation.recorded(draws.attrs, draws.constants).sources
    assert isinstance(source, LanguageModel)
    assert (len(source.lines), source.files()) == (demo.lines, ())


def test_plot_and_translations_are_written(demo: Demo) -> None:
    _, plot, translations = demo.files
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert translations.read_text("utf-8").splitlines() == demo.result.texts
    assert len(demo.result.texts) == 190


def test_printed_summary_has_check_scores_examples_and_files(demo: Demo) -> None:
    output = str(demo)
    assert str(demo.report) in output
    assert str(demo.baseline) in output
    assert str(demo.scores) in output
    assert output.count("\nsentence ") == 3
    assert all(f"wrote {path}" in output for path in demo.files)


def test_rejects_file_as_output_folder(tmp_path: Path) -> None:
    existing = tmp_path / "taken"
    existing.touch()
    with pytest.raises(DataError, match="taken: cannot create this folder"):
        run_demo(existing)
