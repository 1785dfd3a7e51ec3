"""No output of a command replaces what the command reads, or another output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cyclopts import App
from support.command_line import refused, run, succeed
from support.posteriors import RecipeRecord, SourceRecord, read_weight_draws, with_record

from bpa_ppl import UsageError, write_posterior
from bpa_ppl.cli.app import app, run_command
from bpa_ppl.cli.outputs import IN_FOLDERS, OUTPUTS, WORDS, check_outputs

#: Parameters that name no output, and take any text. One that is not here fails the tests: add it,
#: or its name to `OUTPUTS` or `WORDS`.
READ = set(
    re.findall(
        r"\S+",
        """
        FILES NBEST POSTERIOR POSTERIORS TEXT SOURCE TARGET ALIGNMENT IN OUT --allowed-hosts --bad
        --data --derivations --dev --extract --fixed --form
        --gain --gaps --host --in-corpus --induction --judgements --like --method --mixture
        --lists --log-weights --out-corpus --posterior --preset --prior --qrels --reference-sampler
        --references --sampler --scheduler --side --sources --template --test
        --tuner --var-names --weights --without
        """,
    )
)
#: How parameters that are parsed name a file; None of those that name none.
PARSED = {
    "--add": "lm=other.txt,{}",
    "--format": "plain:scores={}",  # the name of a format is no file
    "--moved-file": "lm=other.txt,{}",
    "--posterior": "mine={}",  # of `compare`
    **dict.fromkeys(["--default", "--draws", "--likelihood", "--missing"]),
    **dict.fromkeys(["--model", "--rule", "--samplers", "--set"]),
    **dict.fromkeys(["--categorical", "--exclude", "--features", "--missing"]),
}


class Command(NamedTuple):
    """A command line in which all parameters that take texts name files, each another one.

    Attributes:
        words: of the command.
        line: with all parameters.
        outputs: the files that are written, by parameter.
        named: a file that each parameter names, outputs too.
    """

    words: tuple[str, ...]
    line: list[str]
    outputs: dict[str, tuple[Path, ...]]
    named: dict[str, Path]


def iter_commands(parent: App, *words: str) -> Iterator[tuple[tuple[str, ...], App]]:
    """Yield the words of each command, and the command."""
    for name in parent:
        if not name.startswith("-"):
            if parent[name].default_command is not None:
                yield (*words, name), parent[name]
            yield from iter_commands(parent[name], *words, name)


def takes_texts(kind: object) -> bool:
    """Return whether a parameter of a type may name a file."""
    return kind in (str, Path, Any) or any(map(takes_texts, typing.get_args(kind)))


@cache
def list_commands() -> tuple[list[Command], set[str], set[str]]:
    """Return each command that has outputs, and the names of parameters not known here, and all."""
    commands, unknown, names = [], set[str](), set[str]()
    for words, command in iter_commands(app):
        named = [one for one in command.assemble_argument_collection() if one.names]
        names |= {one.name for one in named}
        outputs, files, line = dict[str, tuple[Path, ...]](), dict[str, Path](), [*words]
        for number, one in enumerate(one for one in named if takes_texts(one.hint)):
            text, name = f"file{number}", one.field_info.name
            if name in OUTPUTS:
                outputs[one.name] = (Path(text), Path(text, IN_FOLDERS[0]))
            is_other = name not in WORDS and PARSED.get(one.name, one.name) is not None
            if is_other:
                files[one.name] = outputs.get(one.name, (Path(text),))[0]
                is_plain = (*words, one.name) == ("rerank", "--posterior")
                form = "{}" if is_plain else PARSED.get(one.name) or "{}"
                text = form.format(text)
            elif not one.required:
                text = ""
            if text:
                line += [one.name] * (one.name[0] == "-")
                line += [text] + ["x"] * (one.hint == tuple[str, str])
        unknown |= {*files} - READ - {*PARSED} - {*outputs}
        if outputs:
            commands.append(Command(words, line, outputs, files))
    return commands, unknown, names


@pytest.mark.needs_extras
def test_all_parameters_are_known_as_outputs_or_others() -> None:
    commands, unknown, names = list_commands()
    assert unknown == set()
    assert {output for command in commands for output in command.outputs} == {
        *("--output", "--details", "--probabilities", "--ask")
    }
    assert {("adapt",), ("compare",), ("phrases", "mix")} <= {of.words for of in commands}
    assert names >= READ | {*PARSED}  # none in vain


@contextmanager
def linked(file: Path, other: Path) -> Iterator[None]:
    """Two names of one file, which is not written."""
    for path in (file, other):
        path.parent.mkdir(exist_ok=True)
    file.write_text("content", "utf-8")
    os.link(file, other)
    yield
    assert file.read_text("utf-8") == "content"
    for path in (file, other):
        path.unlink()
    for folder in {file.parent, other.parent} - {Path()}:
        folder.rmdir()


def test_every_output_of_every_command_against_everything_that_it_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    accepted = []
    for command in list_commands()[0]:
        _, bound, _ = app.parse_args(command.line, print_error=False, exit_on_error=False)
        check_outputs(bound)  # no file has two names
        for output, files in command.outputs.items():
            for file, other in product(files, command.named.keys() - {output}):
                with linked(file, command.named[other]):
                    try:
                        check_outputs(bound)
                        accepted.append((command.words, output, other))
                    except UsageError as error:
                        if "is also another file" not in str(error):
                            accepted.append((command.words, output, other, str(error)))
    assert accepted == []


def test_no_command_runs_if_an_output_is_also_an_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _, line, outputs, named in list_commands()[0]:
        (file, *_), *_ = outputs.values()
        if others := {*named.values()} - {file}:
            with (
                linked(file, min(others)),
                pytest.raises(UsageError, match="is also another file"),
            ):
                run_command(line)


#: Names of the file `nbest`, in a folder with `prepare_names`.
SPELLINGS = (
    *("nbest", "./nbest", ".//nbest", "sub/../nbest", "sub//..//./nbest", "{folder}/nbest"),
    *("symbolic", "chain", "hard", "linked/nbest", "sub/up/nbest", "/proc/self/cwd/nbest"),
    "/proc/self/fd/{number}",
)


@pytest.fixture
def number(folder: Path) -> Iterator[int]:
    """The number of the open file `nbest`, which has more names in its folder."""
    os.mkdir("sub")
    os.symlink("..", "sub/up")
    os.symlink(".", "linked")
    os.symlink("nbest", "symbolic")
    os.symlink("sub/../symbolic", "chain")
    os.link("nbest", "hard")
    with open("nbest", "rb") as file:
        yield file.fileno()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_output_with_another_name_of_an_input(number: int, spelling: str) -> None:
    name = spelling.format(folder=Path.cwd(), number=number)
    refused("rerank", "nbest", "-o", name, "-p", "good.nc", mention="is also another file")
    refused("rerank", name, "-o", "symbolic", "-p", "good.nc", mention="is also another file")


@pytest.mark.needs_extras
def test_an_output_that_is_a_file_from_which_the_posterior_computes_features(folder: Path) -> None:
    Path("domain.txt").write_text("the cat sat\non the mat\n" * 9, "utf-8")
    os.link("domain.txt", "picture.png")
    source = SourceRecord(source="lm", settings={"text": "domain.txt"}, file_hashes=("0",))
    recipe = RecipeRecord(sources=(source,))
    write_posterior(with_record(read_weight_draws("good.nc"), recipe=recipe), "lm.nc")
    for words in (
        ("rerank", "nbest", "-p", "lm.nc", "-o", "domain.txt"),
        ("rerank", "nbest", "-p", "lm.nc", "-o", "new.txt", "--details", "./domain.txt"),
        ("report", "lm.nc", "-o", "domain.txt"),
        ("judges", "lm.nc", "nbest", "-r", "ref", "-o", "picture.png"),
        ("adapt", "nbest", "-r", "ref", "--like", "lm.nc", "-o", "domain.txt"),
    ):
        refused(*words, mention="is also another file")


def test_an_output_inside_a_folder_of_lists(folder: Path) -> None:
    rank = Path("run/1best_recog")
    rank.mkdir(parents=True)
    (rank / "text").write_text("utt1 a cat\n", "utf-8")
    words = ("rerank", "run", "-p", "good.nc", "-o", rank / "text")
    refused(*words, mention="is also another file")


def test_a_page_next_to_a_figure(folder: Path) -> None:
    os.link("good.nc", "new.html")
    refused("trace", "good.nc", "-o", "new.png", "--html", mention="new.html is also another file")


@pytest.mark.parametrize("pattern", ["*", "p*"])
def test_patterns_of_columns_name_no_files(folder: Path, pattern: str) -> None:
    """Also where a shell would replace them by the names of files."""
    rows = [f"{s},{s} {place},{s * place % 3},{place}" for s in range(9) for place in range(2)]
    Path("rows.csv").write_text("\n".join(["id,text,p1,human", *rows]), "utf-8")
    words = ("-w", "none", "--gain", "human", "--sampler", "map", "-o", "p.nc")
    words += ("--prior", "isotropic:variance=0.5")
    for _ in range(2):  # the second one replaces a file that fits the pattern
        done = run("adapt", "rows.csv", "--features", pattern, *words)
        assert done.code == 0, done.err
    assert read_weight_draws("p.nc").features == ("p1",)


STREAMS = """
import os, sys
from bpa_ppl.cli.app import run_command
def attempt(words, stdin, stdout, mode):
    os.dup2(os.open(stdin, os.O_RDONLY), 0)
    os.dup2(os.open(stdout, mode), 1)
    try:
        run_command(["rerank", "-p", "good.nc", *words])
    except Exception as error:
        print(error, file=sys.stderr)
    else:
        print("accepted", words, file=sys.stderr)
for words in (["-", "-o", "nbest"], ["/dev/stdin", "-o", "nbest"], ["nbest", "-o", "/dev/stdin"],
              ["-", "-o", "/dev/fd/0"], ["-", "-o", "sub/../nbest"]):
    attempt(words, "nbest", "/dev/null", os.O_WRONLY)
for words in (["nbest"], ["nbest", "-o", "-"], ["nbest", "-o", "/dev/stdout"],
              ["ref", "-o", "new", "--details", "-", "-r", "nbest"]):
    attempt(words, "/dev/null", "nbest", os.O_WRONLY | os.O_APPEND)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/stdin and /dev/fd")
def test_standard_streams_that_are_another_file_of_the_command(number: int) -> None:
    before = Path("nbest").read_bytes()
    done = subprocess.run([sys.executable, "-c", STREAMS], capture_output=True, encoding="utf-8")
    lines = done.stderr.splitlines()
    assert len(lines) == 9
    assert [line for line in lines if "is also another file" not in line] == []
    assert Path("nbest").read_bytes() == before


def test_outputs_that_are_one_device_or_a_new_file_next_to_the_lists(number: int) -> None:
    words = ("rerank", "nbest", "-p", "good.nc", "-q")
    assert run(*words, "-o", os.devnull, "--details", os.devnull).code == 0
    assert run(*words, "-o", "sub/nbest", "--details", os.devnull).code == 0
    assert run(*words, "-o", "sub/up/new", "--details", "sub/new").code == 0
    os.symlink("sub/later", "leads-to-a-new-file")
    assert run(*words, "-o", "leads-to-a-new-file").code == 0
    assert Path("sub/later").read_bytes() == Path("new").read_bytes()
    assert run("weights", "good.nc", "-o", "mean", "--point", "mean").code == 0
    assert run("weights", "good.nc", "-o", "mean", "--point", "mean").code == 0


def test_a_file_with_the_name_of_a_format_is_written_again(folder: Path) -> None:
    for _ in range(2):
        succeed("weights", "good.nc", "--format", "json", "-o", "json")
    assert Path("json").exists()
