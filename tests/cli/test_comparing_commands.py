"""`bpa compare`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from support.command_line import run

LISTS = ("nbest", "-w", "moses.ini")
COMPARE = ("compare", *LISTS, "-r", "ref", "-o", "report")
SHORT = ("--runs", 2, "--reference-draws", 1000, "--reference-sampler", "imh", "-q")


def test_compare_writes_a_page_and_tables_and_names_what_failed(folder: Path) -> None:
    done = run(
        *(*COMPARE, *SHORT, "--samplers", "laplace, heuristic", "--samplers", "map"),
        *("--likelihood", "margin:gamma=2"),
        *("--set", "laplace.draws=1500", "--posterior", "mine=poor.nc"),
    )
    assert done.code == 2
    assert re.search("^map +failed ", done.out, re.MULTILINE)
    result = json.loads(Path("report/comparison.json").read_text("utf-8"))["samplers"]
    assert list(result) == ["laplace", "heuristic", "map", "mine"]
    assert (result["laplace"]["verdict"], result["mine"]["verdict"]) == ("agrees", "not converged")
    assert result["heuristic"]["verdict"] != "agrees"
    efficiency = result["laplace"]["efficiency"]
    assert (efficiency["draws"], len(efficiency["per_run"])) == (1500, 2)
    html = Path("report/index.html").read_text("utf-8")
    assert "bpa compare nbest -w moses.ini" in html
    assert "failed: map" in html.replace("F", "f")
    assert "<td>laplace.draws=1500</td>" in html
    assert "<td>margin, gamma 2</td>" in html
