"""Whatever command a posterior is given to: damaged or crafted, it is refused in the same words."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from command_line import Outcome, run
from external_posterior import autoregressive, external_posterior

from bpa_ppl.posterior import write_posterior
from bpa_ppl.posterior.arviz_functions import data_tree
from bpa_ppl.posterior.files import to_bytes

NAMES = ("LM0", "TM0")
LISTS = "0 ||| a ||| LM0= 1 TM0= 2 ||| 0\n0 ||| b ||| LM0= 2 TM0= 1 ||| 0\n"


@pytest.fixture
def good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("nbest").write_text(LISTS, encoding="utf-8")
    write_posterior(
        external_posterior(autoregressive(0.1, 4, 400, 2, seed=3), NAMES), "posterior.nc"
    )
    return Path("posterior.nc")


def outcomes(posterior: Path) -> dict[str, Outcome]:
    """What all commands that take a posterior say of one."""
    return {
        "check": run("check", posterior),
        "report": run("report", posterior, "-o", "page.html", "-q"),
        "weights": run("weights", posterior, "-o", "new.weights", "--unchecked"),
        "rerank": run("rerank", "nbest", "-p", posterior, "-o", "new.txt", "-q", "--unchecked"),
    }


def test_what_one_command_takes_all_take(good: Path) -> None:
    assert {name: done.code for name, done in outcomes(good).items()} == dict.fromkeys(
        ("check", "report", "weights", "rerank"), 0
    )


def test_what_one_command_refuses_all_refuse_in_one_line(good: Path) -> None:
    broken = autoregressive(0.1, 4, 400, 2, seed=3)
    broken[1, 7, 0] = np.nan
    content = good.read_bytes()
    Path("nan.nc").write_bytes(to_bytes(data_tree(external_posterior(broken, NAMES))))
    with h5py.File(good, "r") as file:
        place = file["posterior/weights"].id.get_chunk_info(0).byte_offset + 100
    damaged = bytearray(content)
    damaged[place] ^= 4
    Path("flipped.nc").write_bytes(damaged)
    Path("short.nc").write_bytes(content[:5000])
    before = sorted(path.name for path in Path().iterdir())
    for name in ("nan.nc", "flipped.nc", "short.nc"):
        said = set(outcomes(Path(name)).values())
        assert len(said) == 1, said
        (only,) = said
        assert (only.code, only.out) == (2, "")
        assert only.err.startswith(f"error: {name}: ")
        assert only.err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == before
