"""Every reader on damaged files: see `fuzzing` for what must hold, and tests/soak for many more."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import fuzzing
import numpy as np
import pytest
from fuzzing import Failure

from bpa_ppl.errors import DataError
from bpa_ppl.formats import WEIGHT_FORMATS
from bpa_ppl.formats.moses import Moses
from bpa_ppl.formats.streams import InputFile
from bpa_ppl.rows import Columns, ReadOptions

INPUTS = 40  # of each format


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
    # Hardly any edit keeps a file of these whole.
    assert counts[fuzzing.ACCEPTED] or name in ("parquet", "kaldi acwt")
    assert counts[fuzzing.REFUSED]


@pytest.mark.parametrize("name", WEIGHT_FORMATS)
def test_damaged_weights(name: str, folder: Path) -> None:
    rng, counts = random.Random(f"3 {name}"), Counter[str]()
    for _ in range(INPUTS):
        content = fuzzing.edited(
            rng.choice(fuzzing.weight_samples(name)), fuzzing.random_edits(rng)
        )
        counts[fuzzing.examine_weights(name, content, folder / "weights")] += 1
    assert counts[fuzzing.ACCEPTED]
    assert counts[fuzzing.REFUSED]


class Careless(Moses, frozen=True):
    """A reader with a fault."""

    fault: str = ""

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        for number, columns in enumerate(super().columns(file, options)):
            values = columns.hypotheses["LM0"]
            if self.fault == "another exception":
                raise IndexError("list index out of range")
            if self.fault == "another number":
                values = np.nextafter(values, np.float32(9))
            elif self.fault == "another number in later blocks" and number:
                values = values * 2
            elif self.fault == "no file":
                raise DataError("it is bad", "somewhere")
            while self.fault == "a hang":
                pass
            yield columns._replace(hypotheses={**columns.hypotheses, "LM0": values})


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("another exception", "IndexError"),
        ("another number", "not printed in the file"),
        ("another number in later blocks", "in two"),
        ("a hang", "not finished"),
        ("no file", "without the file"),
    ],
)
def test_each_fault_is_found(
    fault: str, says: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = b"0 ||| a cat ||| LM0= -1.5 ||| -1\n"
    sound, faulty = (
        fuzzing.Subject("moses", f, [sample]) for f in (Moses(), Careless(fault=fault))
    )
    assert fuzzing.examine(sound, sample, sample, folder) == fuzzing.ACCEPTED
    if fault == "a hang":
        monkeypatch.setattr(fuzzing, "LIMIT", 0.2)
    with pytest.raises(Failure, match=says):
        fuzzing.examine(faulty, sample, sample, folder)
