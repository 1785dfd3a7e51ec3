"""What a user gets wrong: one clear message, the right exit code, and nothing half-written."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from command_line import refused, run, write_draws_around

import bpa_ppl as bpa
from bpa_ppl.posterior import read_draws


@pytest.fixture(scope="session")
def spoiled(originals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the originals, and others in which something is wrong."""
    folder = tmp_path_factory.mktemp("spoiled") / "all"
    shutil.copytree(originals, folder)
    lines = (originals / "nbest").read_text("utf-8").splitlines(keepends=True)
    references = (originals / "ref").read_text("utf-8").splitlines(keepends=True)
    texts = {
        "much": "".join([*lines[:13], re.sub(r"LM0= \S+", "LM0= much", lines[13]), *lines[14:]]),
        "nan": "".join([*lines[:13], re.sub(r"LM0= \S+", "LM0= nan", lines[13]), *lines[14:]]),
        "beyond": "".join([*lines[:-1], re.sub("^11 ", "99 ", lines[-1])]),
        "rest": re.sub(r"^\d+", lambda n: str(int(n[0]) - 8), "".join(lines[80:]), flags=re.M),
        "rest.ref": "".join(references[8:]),
        "one": "".join(lines[:10]),
        "few.ini": "LM0= 0.5\n",
        "bare.csv": "0,a cat,-1.5\n0,the cat,-2\n",
        "strange": "0 ||| a ||| Other= 1 ||| 1\n0 ||| b ||| Other= 2 ||| 2\n",
        "renamed": "".join(lines).replace("LM0=", "LM1="),
        "empty": "",
        "broken.arpa": "\\data\\\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    for name in ("report", "results"):
        (folder / name).mkdir()
    os.link(folder / "nbest", folder / "hard-link")
    (folder / "short.nc").write_bytes((originals / "good.nc").read_bytes()[:5000])
    mode = folder / "good.nc"
    write_draws_around(mode, folder / "drawn.nc", (4, 500), "imh", likelihood=False)
    drawn = read_draws(folder / "drawn.nc")
    names = tuple(f"Other{number}" for number in range(len(drawn.features)))
    bpa.write_posterior(replace(drawn, features=names), folder / "films.nc")
    return folder


ADAPT = "adapt nbest -r ref -w moses.ini -o new.nc --sampler map"
PLAIN = "rerank one -p good.nc --unchecked"
RERANK = "rerank nbest -p good.nc -o new.txt"
COMPARE = "compare nbest -w moses.ini -r ref -o report"
TUNE = "tune nbest -r ref -w moses.ini -o new.json -q"
POOL = "-w moses.ini --sampler map -o new.nc"
MIX = "lm mix ref rest.ref"

#: Commands, and the parts of their messages.
COMMANDS = [
    ("adapt much -r ref -w moses.ini -o new.nc", "much:14: ", "'much'"),
    ("rerank nan -p good.nc -o new.txt", "nan:14: ", "(--bad)"),
    ("adapt beyond -r ref -w moses.ini -o new.nc", "beyond:120: ", "id 99: ref has 12 lines"),
    (f"{ADAPT} -r nbest", "nbest:1: "),
    (f"{ADAPT} -w few.ini", "few.ini: no weight for LexicalReordering0"),
    (f"{ADAPT} -w none.ini", "none.ini: no such file"),
    ("adapt bare.csv -r ref -w none -o new.nc", "bare.csv:1: "),
    ("adapt bare.csv -r ref -w none -o new.nc --format csv", "bare.csv:1: no column id"),
    ("rerank strange -p good.nc -o new.txt", "strange: no feature LexicalReordering0", "Other"),
    ("oracle nbest", "(--references)"),
    (f"adapt nbest {POOL}", "(--references)"),
    (f"adapt empty -r ref {POOL}", "empty: the file is empty"),
    ("rerank empty -p good.nc -o new.txt", "empty: the file is empty"),
    ("rerank none -p good.nc -o new.txt", "none: no such file"),
    ("check none.nc", "none.nc: no such file"),
    ("check results", "results: a folder"),
    ("check short.nc", "short.nc: "),
    ("report short.nc -o r", "short.nc: "),
    ("weights short.nc -o w", "short.nc: "),
    ("rerank nbest -p short.nc", "short.nc: "),
    # Outputs.
    (f"{RERANK} -o nbest", "nbest is also another file"),
    (f"{RERANK} -o hard-link", "hard-link is also another file"),
    (f"{RERANK} -o a --details ./a", "a is also another file"),
    (f"{ADAPT} -r other,ref -o ref", "ref is also another file"),
    ("adapt nb*t -w moses.ini -r ref -o nbest", "nbest is also another file"),
    ("features nbest --add lm=ref,order=2 -o ref", "ref is also another file"),
    ("weights good.nc --template moses.ini -o moses.ini", "moses.ini is also another file"),
    ("judge nbest -o nbest", "nbest is also another file"),
    (f"{ADAPT} -o none/x", "none/x: "),
    (f"{RERANK} -o .", ".: "),
    ("weights good.nc -o none/x", "none/x: "),
    # Options of `adapt`.
    (f"{ADAPT} --sampler rwm --set draws=many", "many"),
    (f"{ADAPT} --default LM0=big", "'big' (--default)"),
    (f"{ADAPT} --likelihood margin:gamma", "'gamma' (--likelihood)"),
    (f"{ADAPT} --preset paper", "paper"),
    (f"{ADAPT} --extra nbest", "--extra-references"),
    (f"{ADAPT} --no-sentences", "(--no-sentences)"),
    ("adapt nbest -r ref -o new.nc", "--weights"),
    (f"adapt nbest rest -r ref {POOL}", "2 files of n-best lists"),
    (f"adapt nbest rest -r ref,rest.ref -s ref {POOL}", "(--sources)"),
    (f"adapt nbest rest -r ref,rest.ref,ref {POOL}", "ref,rest.ref,ref (--references)"),
    (f"adapt nbest rest -r rest.ref,ref {POOL}", "rest.ref"),
    (f"adapt nbest renamed -r ref,ref {POOL}", "LM0"),
    # Options of `rerank`, `weights` and `report`.
    (f"{RERANK} --jobs 0", "jobs"),
    (f"{RERANK} --backend slurm", "slurm"),
    (f"{RERANK} --backend dask", "dask"),
    (f"{RERANK} --first-id 1", "sentence id 0"),
    (f"{PLAIN} --scores scores.txt", "(--list-size)"),
    (f"{PLAIN} --list-size 2 --format csv", "csv"),
    (f"{PLAIN} --list-size 0", "(--list-size)"),
    (f"{PLAIN} --list-size 7", "one: "),
    (f"{PLAIN} --format jsonl --extract a", "(--extract)"),
    (f"{PLAIN} --list-size 2 --extract a", "(--extract)"),
    (f"{PLAIN} --extract (", "--extract"),
    ("weights good.nc -o w --point draw --draw 9", "draw 9"),
    ("weights good.nc -o w --template other.ini", "other.ini: no such file"),
    ("report good.nc -o r -r ref", "--nbest"),
    # Posteriors and priors.
    (f"{ADAPT} --prior ref", "ref: neither a prior (JSON) nor a posterior (NetCDF)"),
    (f"{ADAPT} --prior none.nc", "none.nc: no such file"),
    (f"{ADAPT} --prior none.json", "none.json: no such file"),
    (f"{ADAPT} --prior short.nc", "short.nc: not a readable NetCDF posterior"),
    (f"{ADAPT} --prior good.nc", "only its mode", "(--prior)"),
    ("learn-prior good.nc -o p.json", "good: it holds only its mode"),
    ("learn-prior drawn.nc films.nc -o p.json", "drawn and films"),
    # Lists and texts.
    ("lists nbest --gain none", "'none'", "(--metric)"),
    ("lists no*", "no*"),
    ("features nbest -o more.nbest", "(--add)"),
    ("features nbest -o more.nbest --add lm", "lm needs text"),
    ("features nbest -o more.nbest --add length=3", "length takes no file"),
    ("features nbest -o more.nbest --add lm=self", "references"),
    (f"{MIX} --dev rest.ref", "(--dev)"),
    (f"{MIX} --dev empty", "empty: "),
    ("lm ref --test empty -o new", "empty: "),
    ("lm ref broken.arpa", "broken.arpa"),
    ("lm broken.arpa -o new.arpa", "(--output)"),
    # Comparisons and tuning.
    ("compare nbest -w moses.ini -o report", "(--references)"),
    (f"{COMPARE} --runs 0", "one run"),
    (f"{COMPARE} --samplers ''", "(--samplers)"),
    (f"{COMPARE} --posterior imh=poor.nc", "imh"),
    (f"{COMPARE} --posterior mine=none.nc", "none.nc: no such file"),
    (f"{COMPARE} --set draws=5", "'draws' (--set)"),
    ("compare -w moses.ini -o report", "--target"),
    ("compare nbest --target skewed -o report", "(--target)"),
    ("sweep nbest -w moses.ini -r ref -o report --vary draws=", "(--vary)"),
    ("calibrate nbest -w moses.ini --likelihood margin -r ref", "margin"),
    (f"{TUNE} --decoder 'moses -f {{weights}}'", "{nbest}"),
]


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case[0])
def test_a_command_that_cannot_be_run(
    spoiled: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[str, ...]
) -> None:
    """It leaves the files of all these commands as they are."""
    monkeypatch.chdir(spoiled)
    command, *parts = case
    error = refused(*shlex.split(command), mention=parts[0])
    assert [part for part in parts if part not in error] == []


@pytest.mark.parametrize(
    "command",
    [
        "rerank nbest -p poor.nc -o new.txt",
        "weights poor.nc -o new.txt",
    ],
)
def test_a_posterior_that_failed_its_check(folder: Path, command: str) -> None:
    refused(*command.split(), mention="--unchecked", status=3)
    assert run(*command.split(), "--unchecked").code in (0, 3)


def test_outputs_that_only_look_like_an_input(folder: Path) -> None:
    os.mkdir("out")
    rerank = RERANK.split()[:4]
    assert run(*rerank, "-o", "out/nbest", "-q", "--details", os.devnull).code == 0
    assert run(*rerank, "-o", os.devnull, "-q", "--details", os.devnull).code == 0
    assert run(*rerank, "-o", "/dev/stdout", "-q") == run(*rerank, "-q")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(folder: Path) -> None:
    refused(*RERANK.split(), "-o", "/dev/full", mention="No space left on device")


def test_no_space_for_temporary_files(folder: Path) -> None:
    none = f"No usable temporary directory found in ['/tmp', '{folder}']"
    with patch("bpa_ppl.posterior.read_draws", side_effect=FileNotFoundError(errno.ENOENT, none)):
        refused("check", "good.nc", mention=f"{none}: free some space, or name a folder in TMPDIR")


def test_names_that_are_not_utf_8_are_refused_before_any_work(folder: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.nc")
    for command in ((*ADAPT.split(), "-o", odd), (*RERANK.split(), "--details", odd)):
        refused(*command, mention="'caf\\udce9.nc'")


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J\rb"])
def test_messages_are_one_line_whatever_names_contain(folder: Path, name: str) -> None:
    for command in (("rerank", name, "-p", "good.nc"), ("weights", "good.nc", "-o", f"{name}/x")):
        assert not {"\x1b", "\r"} & set(refused(*command, mention=""))
