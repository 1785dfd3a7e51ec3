"""What a user gets wrong: one clear message, the right exit code, and nothing half-written."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.command_line import refused, run

from bpa_ppl import read_posterior, write_posterior
from bpa_ppl.cli.app import app


@pytest.fixture(scope="session")
def spoiled(originals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the originals, and others in which something is wrong."""
    folder = tmp_path_factory.mktemp("spoiled") / "all"
    shutil.copytree(originals, folder)
    lines = (originals / "nbest").read_text("utf-8").splitlines(keepends=True)
    references = (originals / "ref").read_text("utf-8").splitlines(keepends=True)
    texts = {
        "much": "".join([*lines[:13], re.sub(r"LM0= \S+", "LM0= much", lines[13]), *lines[14:]]),
        "rest": re.sub(r"^\d+", lambda n: str(int(n[0]) - 8), "".join(lines[80:]), flags=re.M),
        "rest.ref": "".join(references[8:]),
        "one": "".join(lines[:10]),
        "empty": "",
        "broken.arpa": "\\data\\\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "report").mkdir()
    return folder


ADAPT = "adapt nbest -r ref -w moses.ini -o new.nc --sampler map"
PLAIN = "rerank one -p good.nc --unchecked"
RERANK = "rerank nbest -p good.nc -o new.txt"
CORPORA = "--in-corpus a b --out-corpus c d"
POOL = "-w moses.ini --sampler map -o new.nc"

#: Commands, and the parts of their messages.
COMMANDS = [
    ("adapt much -r ref -w moses.ini -o new.nc", "much:14: ", "'much'"),
    ("oracle nbest", "(--references)"),
    (f"adapt nbest {POOL}", "(--references)"),
    # Words and options.
    ("adapted nbest", '"adapt"'),
    ("adapt x --gian ter", "did you mean --gain?"),
    ("adapt x -w none --ouput x.nc", "--ouput"),
    ("adapt x -w none -o x.nc --seed 1.5", "an integer, not '1.5' (--seed)"),
    ("adapt x -w none -o x.nc --sampler imh:drws=5", "'drws'", "draws?"),
    ("adapt x -w none -o x.nc --likelihood margin:gama=5", "'gama'", "gamma?"),
    ("rerank x -p x.nc --rule mbr:gian=ter", "'gian'", "gain?"),
    ("adapt x -o x.nc", "--weights"),
    ("adapt x -w none -o", "give --output FILE (bpa adapt --help"),
    ("adapt x -w none --format", "give --format VALUE (bpa adapt --help"),
    ("adapt x -w none --references", "give --references FILE (bpa adapt --help"),
    ("check a.nc b.nc", "'b.nc': nothing is expected there; bpa check --help"),
    ("lists nbest --features --json", "--features"),
    ("trace poor.nc -o x.png --var-names", "give --var-names NAME"),
    ("trace poor.nc --var-names -o x.png", "give --var-names NAME"),
    ("trace -o x.png --var-names LM poor.nc", "give POSTERIOR"),
    ("trace poor.nc -o x.png --var-names LM0 no", "no: choose from"),
    # Options that exclude each other.
    ("compare --model json:dumps --no-reference", "a model needs neither", "(--model)"),
    ("compare --model json:dumps --log-weights w", "a model needs neither", "(--model)"),
    ("trace a.nc -o x.png --var-names lm --top 3", "give --var-names or --top"),
    ("compare a.nc --model json:dumps --reference-draws 100", "a.nc is the reference"),
    (f"{RERANK} --ask-below 0.9 --agree 0.9", "leave out one of them"),
    # Outputs.
    (f"{RERANK} -o a --details ./a", "a is also another file"),
    (f"{RERANK} --details NEW.txt", "is also another file"),
    (f"{RERANK} -o caf\u00e9.txt --details cafe\u0301.txt", "is also another file"),
    (f"{RERANK} --ask-below 0.9 --ask same -o same", "same is also another file"),
    (f"{ADAPT} -r other,ref -o ref", "ref is also another file"),
    ("adapt nb*t -w moses.ini -r ref -o nbest", "nbest is also another file"),
    ("judge nbest", "--output"),
    (f"{ADAPT} -o none/x", "none/x: "),
    (f"{RERANK} -o ref/x", "ref/x: "),
    (f"{RERANK} -o ''", "empty", "(--output)"),
    (f"{RERANK} --details=", "empty", "(--details)"),
    (f"{ADAPT} -o ''", "empty", "(--output)"),
    ("rerank '' -p good.nc", "empty"),
    # Folders that are not left empty.
    ("compare none good.nc -o new/page", "none: no such file"),  # with a new parent
    # Options of `adapt`.
    (f"{ADAPT} --prior isotropic:single.LM0=big", "single must be numbers by name"),
    (f"{ADAPT} -w none:pretrained=7", "must be true or false"),
    (f"{ADAPT} -w equal:lower=LM0", "unknown setting 'lower' of the start equal"),
    (f"adapt nbest rest -r ref {POOL}", "2 files of n-best lists"),
    (f"adapt nbest rest -r ref,rest.ref -s ref {POOL}", "(--sources)"),
    (f"adapt nbest rest -r rest.ref,ref {POOL}", "rest.ref"),
    # Options of `rerank`, `weights` and `report`.
    (f"{RERANK} --ask unsure.jsonl", "give ask_below or agree"),
    (f"{RERANK} --ask-below 90", "not 90"),
    (f"{PLAIN} --format plain:scores=scores.txt", "give list_size"),
    (f"{PLAIN} --format csv:list_size=2", "list_size"),
    (f"{PLAIN} --format jsonl:extract=a", "unknown setting 'extract' of"),
    ("report good.nc -o r -r ref", "--lists"),
    # Posteriors and priors.
    ("check missing.nc", "missing.nc: no such file"),
    ("check .", "a folder"),
    ("check /dev/zero", "/dev/zero: a device or a socket: give a NetCDF file"),
    (f"{ADAPT} --prior ref", "ref: not a readable NetCDF posterior"),
    ("learn-prior good.nc -o p.json", "good: it holds only its mode"),
    # Lists and texts.
    ("features nbest -o more.nbest", "(--add)"),
    ("features nbest -o more.nbest --add lm", "lm needs text"),
    ("lm ref --test empty -o new", "empty: "),
    ("lm broken.arpa -o new.arpa", "(--output)"),
    # Comparisons and tuning.
    ("tune nbest -r ref -w moses.ini -o new.json --tuner mart", "mart", "mert"),
    ("tune nbest -w moses.ini -o new.json --decoder moses", "--decoder"),
    ("compare a.nc", "give two or more posteriors, or a --model"),
    ("compare a.nc b.nc -w none", "unknown option"),
    ("compare --model json:dumps --set draws=5", "'draws' (--set)"),
    ("calibrate nbest", "nothing is expected there"),
    ("calibrate", "give a NumPyro model", "(--model)"),
]

#: Commands with an option that needs another one.
ALONE = [
    ("compare a.nc b.nc --runs 3", "--runs", "--model"),
    ("compare a.nc b.nc --data x", "--data", "--model"),
    ("report a.nc -o x --references y", "--references", "--lists"),
    ("report a.nc -o x --missing 0", "--missing", "--lists"),
    ("report a.nc -o x --moved-file lm=y", "--moved-file", "--lists"),
    ("weights a.nc -o x --draw 3", "--draw", "--point draw"),
    ("weights a.nc -o x --point mode --draw 3", "--draw", "--point draw"),
    ("judge x -o y --unchecked", "--unchecked", "--prior"),
    ("subdomains a b -o x --side target", "--side", "--induction lda"),
    ("phrases extract a b c -o x --keep 0", "--keep", "--like"),
    (f"phrases weigh a b -o x --dev c {CORPORA} --negatives source", "--negatives", "--form svm"),
]
COMMANDS += [(words, f"needs {other}: give", f"({option})") for words, option, other in ALONE]


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case[0])
def test_a_command_that_cannot_be_run(
    spoiled: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[str, ...]
) -> None:
    """It leaves the files of all these commands as they are."""
    monkeypatch.chdir(spoiled)
    command, *parts = case
    error = refused(*shlex.split(command), mention=parts[0])
    assert [part for part in parts if part not in error] == []


#: Commands that use a posterior. One ends because of the address, which is none of this machine.
USING = {
    "rerank": "rerank nbest -p poor.nc -o new.txt",
    "weights": "weights poor.nc -o new.txt",
    "judges": "judges poor.nc rest -r rest.ref",
    "learn-prior": "learn-prior poor.nc -o new.json",
    "adapt": f"{ADAPT} --prior poor.nc",
    "judge": "judge nbest --prior poor.nc -o new.jsonl --host 192.0.2.1",
}
#: What only describes one.
DESCRIBING = {"check", "compare", "report", "trace"}


@pytest.mark.parametrize("command", USING)
def test_a_posterior_that_failed_its_check(
    spoiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    shutil.copytree(spoiled, tmp_path / "all")
    monkeypatch.chdir(tmp_path / "all")
    words = USING[command].split()
    refused(*words, mention="(--unchecked)", status=3)
    assert "failed its check" not in run(*words, "--unchecked").err


def test_only_the_options_of_a_repeated_posterior_count(folder: Path) -> None:
    """So one that failed its check can be repeated, with other settings."""
    assert run("adapt", "nbest", "-r", "ref", "--like", "poor.nc", "-o", "new.nc", "-q").code == 0


@pytest.mark.needs_extras
def test_every_command_that_takes_a_posterior_is_listed() -> None:
    def takes(name: str) -> bool:
        arguments = app[name].assemble_argument_collection()
        return bool({"posterior", "posteriors", "prior"} & {a.field_info.name for a in arguments})

    commands = [name for name in app if not name.startswith("-") and app[name].default_command]
    assert set(filter(takes, commands)) == USING.keys() | DESCRIBING


def test_outputs_that_only_look_like_an_input(folder: Path) -> None:
    rerank = RERANK.split()[:4]
    assert run(*rerank, "-o", "/dev/stdout", "-q") == run(*rerank, "-q")
    shutil.copy("nbest", "draws")  # the name of a setting
    more = ("--sampler", "laplace:draws=4", "-o", "draws")
    assert run(*ADAPT.split(), *more, "-q").code in (0, 3)


def test_names_that_are_not_utf_8_are_refused_before_any_work(folder: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.nc")
    for command in ((*ADAPT.split(), "-o", odd), (*RERANK.split(), "--details", odd)):
        refused(*command, mention="'caf\\udce9.nc'")


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J\rb"])
def test_messages_are_one_line_for_any_names(folder: Path, name: str) -> None:
    for command in (("rerank", name, "-p", "good.nc"), ("weights", "good.nc", "-o", f"{name}/x")):
        assert not {"\x1b", "\r"} & set(refused(*command, mention=""))


def test_an_attribute_of_another_type_is_named_with_its_file(folder: Path) -> None:
    tree = read_posterior("good.nc")
    tree.attrs["observed"] = "much"
    write_posterior(tree, "odd.nc")
    lines = (
        "check odd.nc",
        "report odd.nc -o x.html",
        "rerank nbest -p odd.nc -o x",
        "weights odd.nc -o w",
    )
    for line in lines:
        assert "attribute observed" in refused(*line.split(), mention="odd.nc: ")


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        (
            "wards.csv",
            "x,y\n1,2.0\n",
            "not JSON: the arguments of the model are one object of JSON",
        ),
        ("wards.npz", b"PK\x03\x04\x14\x00\x00\x00", "the arguments of the model are one object"),
        ("wards.json", "[1, 2]", "[1, 2] is no object: the arguments of the model are one object"),
    ],
)
def test_data_of_a_program_are_one_object_of_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str | bytes, shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text("def model(x):\n    pass\n")
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    words = (
        "calibrate",
        "--model",
        "program:model",
        "--samplers",
        "imh",
        "--data",
        name,
        "-o",
        "out",
    )
    refused(*words, mention=shown)


def test_a_pattern_of_other_files_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        Path(f"x.{number}.txt").write_text("# weight mu\n1 0.5\n")
    error = refused("check", "x.*.txt", mention="2 files of this pattern, such as x.1.txt")
    assert "no such file" not in error
    refused("check", "y.*.txt", mention="no such file")


def test_a_quiet_rerank_prints_the_choices_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["id,text,lm,human", *(f"{n // 3},t{n},{n % 3},{n % 3}" for n in range(36))]
    Path("lists.csv").write_text("\n".join([*rows, ""]))
    options = ("--features", "lm", "--gain", "human", "-w", "none", "--sampler", "map")
    done = run("adapt", "lists.csv", *options, "-o", "posterior.nc", "-q")
    assert (done.code, done.out) == (0, "")
    quiet = run("rerank", "lists.csv", "-p", "posterior.nc", "-q", "-o", "chosen.txt")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert "human" in run("rerank", "lists.csv", "-p", "posterior.nc", "-o", "chosen.txt").out
    assert len(run("rerank", "lists.csv", "-p", "posterior.nc", "-q").out.splitlines()) == 12
