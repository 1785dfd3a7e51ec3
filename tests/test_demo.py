"""The demo: it converges, writes what it says, and better translations than it began with."""

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


def test_posterior_is_kept_and_fit(demo: Demo) -> None:
    assert demo.report
    assert str(check(read_posterior(demo.files[0]))) == str(demo.report)


def test_translations_are_better(demo: Demo) -> None:
    (ter, bleu), (adapted_ter, adapted_bleu) = demo.alone.before, demo.alone.after
    assert adapted_ter.value < ter.value - 1
    # Oracles of the lowest TER are short, and so is what is learned from them.
    assert adapted_bleu.value > bleu.value - 0.5


def test_text_of_the_domain_makes_them_better_still(demo: Demo) -> None:
    assert [score.value for score in demo.alone.before] == [s.value for s in demo.scores.before]
    (ter, bleu), (text_ter, text_bleu) = demo.alone.after, demo.scores.after
    assert text_ter.value < ter.value - 0.5
    assert text_bleu.value > bleu.value + 0.5


def test_the_posterior_carries_the_text(demo: Demo) -> None:
    draws = as_draws(read_posterior(demo.files[0]))
    (source,) = Preparation.recorded(draws.attrs, draws.constants).sources
    assert isinstance(source, LanguageModel)
    assert (len(source.lines), source.files()) == (demo.lines, ())


def test_files_are_what_they_should_be(demo: Demo) -> None:
    _, plot, translations = demo.files
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert translations.read_text("utf-8").splitlines() == demo.result.texts
    assert len(demo.result.texts) == 190


def test_the_story_shows_check_scores_examples_and_files(demo: Demo) -> None:
    told = str(demo)
    assert str(demo.report) in told
    assert str(demo.alone) in told
    assert str(demo.scores) in told
    assert told.count("\nsentence ") == 3
    assert all(f"wrote {path}" in told for path in demo.files)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.touch()
    with pytest.raises(DataError, match="taken: cannot create this folder"):
        run_demo(taken)
