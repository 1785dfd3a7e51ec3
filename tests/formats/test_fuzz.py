"""Every reader on damaged files: see `fuzzing` for what must hold, and tests/soak for many more."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import fuzzing
import numpy as np
import pytest
from fuzzing import Edit, Failure
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpa_ppl.formats.moses import Moses
from bpa_ppl.registry import NBEST_FORMATS, WEIGHT_FORMATS

INPUTS = 20  # of each format and kind of damage
BUDGET = settings(
    max_examples=INPUTS // 2,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PLACES = st.integers(0, 1 << 20)
EDITS = st.lists(
    st.builds(Edit, st.sampled_from(list(fuzzing.KINDS)), PLACES, PLACES, st.binary(max_size=6)),
    min_size=1,
    max_size=3,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", fuzzing.names())
def test_damaged_lists(name: str, folder: Path) -> None:
    rng, counts = random.Random(f"1 {name}"), Counter[str]()
    tried = fuzzing.subject(name, folder)
    for _ in range(INPUTS):
        sample = rng.choice(tried.samples)
        content = fuzzing.edited(sample, fuzzing.random_edits(rng))
        counts[fuzzing.examine(tried, sample, content, folder)] += 1
    assert counts[fuzzing.ACCEPTED]
    assert counts[fuzzing.REFUSED]


@pytest.mark.parametrize("name", NBEST_FORMATS)
def test_lists_of_other_texts(name: str, folder: Path) -> None:
    rng, accepted = random.Random(f"2 {name}"), 0
    tried = fuzzing.subject(name, folder)
    for _ in range(INPUTS // 4):
        sample = rng.choice(tried.samples)
        sound = fuzzing.table(tried, sample, folder)
        content = fuzzing.other_text(rng, sample, list(sound.strings))
        accepted += fuzzing.examine(tried, sample, content, folder, sound) == fuzzing.ACCEPTED
    assert accepted or name == "parquet"  # whose texts have their lengths before them


@pytest.mark.parametrize("name", fuzzing.names())
def test_lists_that_hypothesis_damages(name: str, folder: Path) -> None:
    tried = fuzzing.subject(name, folder)

    @BUDGET
    @given(st.sampled_from(tried.samples), EDITS)
    def damaged(sample: bytes, edits: list[Edit]) -> None:
        fuzzing.examine(tried, sample, fuzzing.edited(sample, edits), folder)

    damaged()


@pytest.mark.parametrize("name", WEIGHT_FORMATS)
def test_damaged_weights(name: str, folder: Path) -> None:
    rng, counts = random.Random(f"3 {name}"), Counter[str]()
    for _ in range(2 * INPUTS):
        content = fuzzing.edited(
            rng.choice(fuzzing.weight_samples(name)), fuzzing.random_edits(rng)
        )
        counts[fuzzing.examine_weights(name, content, folder / "weights")] += 1
    assert counts[fuzzing.ACCEPTED]
    assert counts[fuzzing.REFUSED]


class Careless(Moses, frozen=True):
    """A reader with a fault."""

    fault: str = ""

    def parse(self, blocks, options):  # type: ignore[no-untyped-def]
        for number, rows in enumerate(super().parse(blocks, options)):
            if self.fault == "another exception":
                raise IndexError("list index out of range")
            if self.fault == "another number":
                rows = rows._replace(features=np.nextafter(rows.features, np.float32(9)))
            if self.fault == "another number in later blocks" and number:
                rows = rows._replace(features=rows.features * 2)
            if self.fault == "a hang":
                while True:
                    pass
            if self.fault == "no file":
                options = options._replace(origin="somewhere")
                list(super().parse([b"\n"], options))
            yield rows


SOUND = b"0 ||| a cat ||| LM0= -1.5 ||| -1\n"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("another exception", "IndexError"),
        ("another number", "do not stand in the file"),
        ("another number in later blocks", "in two"),
        ("a hang", "not finished"),
        ("no file", "without the file"),
    ],
)
def test_each_fault_is_found(
    fault: str, told: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, faulty = (fuzzing.Subject("moses", f, [SOUND]) for f in (Moses(), Careless(fault=fault)))
    assert fuzzing.examine(sound, SOUND, SOUND, folder) == fuzzing.ACCEPTED
    for clock in fuzzing.LIMITS if fault == "a hang" else ():
        monkeypatch.setitem(fuzzing.LIMITS, clock, 0.2)
    with pytest.raises(Failure, match=told):
        fuzzing.examine(faulty, SOUND, SOUND, folder)


def test_numbers_that_another_text_changes_are_found(folder: Path) -> None:
    tried = fuzzing.Subject("moses", Moses(), [SOUND])
    sound = fuzzing.table(tried, SOUND, folder)
    with pytest.raises(Failure, match="another text has changed the features"):
        fuzzing.examine(tried, SOUND, SOUND.replace(b"-1.5", b"-2"), folder, sound)


def test_every_kind_of_damage_changes_a_file() -> None:
    lines = b"one\ntwo\nthree\n"
    for kind in fuzzing.KINDS:
        assert fuzzing.edited(lines, [Edit(kind, 5, 1, b"x")]) != lines
