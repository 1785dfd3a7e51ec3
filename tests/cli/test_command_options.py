"""The options of commands: those of Python, their defaults, help, and completion."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import chain

import pytest
from cyclopts import App
from cyclopts.argument import Argument
from support.command_line import run
from support.registries import FEATURES, GAINS, NBEST_FORMATS, RULES, SAMPLERS

from bpa_ppl.cli.app import app, suggest_option
from bpa_ppl.cli.options import ChoiceOptions, describe_setting
from bpa_ppl.extending import Settings


def words_of(group: App, *before: str) -> list[tuple[str, ...]]:
    """Return the words of each command in a group of commands."""
    words = [(*before, name) for name in group if not name.startswith("-")]
    below = [one for path in words for one in words_of(group[path[-1]], *path)]
    return words + below


def find_command(words: tuple[str, ...]) -> App:
    return app.parse_commands(list(words))[1][-1]


#: The words of each command that does something.
RUN = [words for words in words_of(app) if find_command(words).default_command is not None]


@cache
def parameters_of(*words: str) -> list[Argument]:
    """Return the parameters of a command."""
    return list(find_command(words).assemble_argument_collection(parse_docstring=True))


def options_of(*words: str) -> dict[str, Argument]:
    """Return the options of a command by the names of their parameters."""
    return {one.field_info.name: one for one in parameters_of(*words) if one.parse}


@pytest.mark.parametrize("words", words_of(app), ids=" ".join)
def test_a_command_has_an_example_and_its_options_are_described(words: tuple[str, ...]) -> None:
    """A name stands for one option, and a box of the help has few."""
    command = find_command(words)
    assert command.help
    if command.default_command is not None:
        assert "Example: `bpa " in command.help
        options = parameters_of(*words)
        shown = [one for one in options if one.parse and not one.children]  # else a group of them
        assert [option.name for option in shown if not option.parameter.help] == []
        names = [name for one in shown for name in one.names]
        assert len(names) == len(set(names))
        sizes = Counter(group.name for one in shown for group in one.parameter.group or ())
        assert max(sizes.values(), default=0) <= 11, sizes


def boxes_of(*words: str) -> dict[str, str]:
    """Return the boxes of a help page by their titles."""
    printed = run(*words, "--help").out
    return dict(re.findall(r"^╭─ (.*?) ─.*?\n(.*?)^╰─", printed, re.MULTILINE | re.DOTALL))


@pytest.mark.needs_extras
def test_what_everybody_needs_comes_first() -> None:
    boxes = boxes_of("adapt")
    assert list(boxes)[:3] == ["Arguments", "Options", "What is observed"]
    first_options = ["--output", "--weights", "--references", "--gain", "--sampler"]
    assert re.findall(r"│[ *]*(--[\w-]+)", boxes["Options"]) == first_options
    assert "bpa adapt dev.jsonl" in run("adapt", "--help").out.partition("╭")[0]
    boxes = boxes_of()
    more = ["Lists and priors", "Judges", "Research", "Phrases and language models"]
    assert list(boxes) == ["Everyday", *more, "Help"]
    listed = {title: re.findall(r"^│ ([a-z-]+) ", box, re.M) for title, box in boxes.items()}
    everyday = "lists adapt check trace compare report rerank weights demo"
    assert listed["Everyday"] == everyday.split()
    assert listed["Lists and priors"] == ["features", "oracle", "learn-prior", "convert"]
    assert listed["Judges"] == ["judge", "judges"]
    assert listed["Research"] == ["calibrate", "tune"]
    assert listed["Phrases and language models"] == ["lm", "phrases", "subdomains"]


@pytest.mark.parametrize("words", RUN, ids=" ".join)
def test_what_is_missing_is_named(words: tuple[str, ...]) -> None:
    """First an argument of the command, then an option, with a word for its value."""
    needed = [one.name for one in parameters_of(*words) if one.required]
    arguments = [name for name in needed if not name.startswith("-")]
    options = [name for name in needed if name.startswith("-")]
    if arguments:
        missing_is_named(words, [], "|".join(arguments))
    if options:
        value = r"(FILE|FILE FILE|FOLDER|FILE\|none\|equal|NAME=VALUE,VALUE)"
        missing_is_named(words, ["FILE"] * len(arguments), f"({'|'.join(options)}) {value}")


def missing_is_named(words: tuple[str, ...], files: list[str], pattern: str) -> None:
    """Check that a command with some files says what else it needs."""
    done = run(*words, *files)
    assert (done.code, done.out) == (2, "")
    expected = rf"error: give ({pattern}) \(bpa {' '.join(words)} --help describes it\)\n"
    assert re.fullmatch(expected, done.err), done.err


def test_help_names_every_choice() -> None:
    """Names are compared as words: `rwm` is a part of `rwm-isotropic`."""
    tuners = pytest.importorskip("bpa_ppl.extras.tuning.tuner").TUNERS
    registries = {"sampler": SAMPLERS, "gain": GAINS, "format": NBEST_FORMATS, "rule": RULES}
    shown = {**options_of("tune"), **options_of("rerank"), **options_of("adapt")}
    for option, registry in {**registries, "tuner": tuners}.items():
        words = set(re.findall(r"[\w+-]+", shown[option].parameter.help or ""))
        assert set(registry) - words == set(), option


def test_the_options_of_reranking_are_those_of_python() -> None:
    shown = options_of("rerank")
    for name in ChoiceOptions.__annotations__:
        assert shown[name].parameter.help


def test_the_options_of_adapt_are_its_declared_settings() -> None:
    """One declaration has a setting for Python, its option, its help, and how it is recorded."""
    shown = {name for name, option in options_of("adapt").items() if not option.children}
    others = {"nbest", "output", "weights", "fixed", "like", "judgements", "quiet"}
    reading = {"references", "sources", "bad", "format", "missing"}
    assert shown == others | reading | {"scheduler"} | (
        Settings.__annotations__.keys() - {"progress"}
    )
    assert len(shown) - 1 == 25  # without the files
    for name in Settings.__annotations__:
        assert f"\n        {name}: " in (Settings.__doc__ or "")
        if name != "progress":
            assert options_of("adapt")[name].parameter.help == describe_setting(name).help


@pytest.mark.parametrize("words", RUN, ids=" ".join)
def test_a_prefix_of_one_option_is_taken_for_it(words: tuple[str, ...]) -> None:
    options = parameters_of(*words)
    names = [name for one in options if one.parse for name in one.names if name.startswith("--")]
    for name in names:
        for end in range(3, len(name)):
            begin = [other for other in names if other.startswith(name[:end])]
            shown = suggest_option(name[:end], options)
            if begin == [name]:
                assert shown == f" (did you mean {name}?)"
            elif name[:end] not in names:
                assert ", ".join(begin[:2]) in shown
                assert "did you mean" not in shown


@pytest.mark.parametrize("typed", ["metric", "objective", "reward", "label", "score"])
def test_synonyms_of_options_are_known(typed: str) -> None:
    """Where the command has the option."""
    done = run("adapt", "dev.jsonl", "-w", "none", "-o", "out.nc", f"--{typed}", "human")
    assert (done.code, done.out) == (2, "")
    assert f"unknown option '--{typed}' (did you mean --gain?): bpa adapt --help" in done.err
    assert "did you mean" not in run("check", "out.nc", f"--{typed}", "human").err


def test_other_unknown_options_are_compared_by_their_letters() -> None:
    assert suggest_option("--gian", parameters_of("adapt")) == " (did you mean --gain?)"
    assert suggest_option("--var_names", parameters_of("check")) == " (did you mean --var-names?)"
    assert suggest_option("--such", parameters_of("check")) == ""


#: Options of several values that are not names: files, and values of something that is named.
_OF_FILES = {"--references", "--judgements", "--test"}
_OF_VALUES = {"--missing", "--default", "--set", "--moved-file", "--posterior"}
#: Names of components, of which one has settings; other options take names of any form.
_NAMES = {
    "--samplers": ("imh", "nuts:warmup=500,draws=100", "numpyro:HMC"),
    "--add": ("length", "lm=in.txt,out.txt,order=2", "consensus"),
}
_OTHERS = ("lm", "judge_*", "TM0[0]", "theta[0,1]", "system=A", "a name")
OF_NAMES = [
    (words, one.name)
    for words in RUN
    for one in parameters_of(*words)
    if one.parse and one.names and one.name.startswith("-") and one.token_count()[1]
    if one.name not in _OF_FILES | _OF_VALUES
]


def parse_option(words: tuple[str, ...], option: str, *values: str) -> dict[str, object]:
    """Return the arguments of a command with an option; what else it needs is given."""
    needed = [one.name for one in parameters_of(*words) if one.required]
    files = ["file" for name in needed if not name.startswith("-")]
    others = [[name, "none"] for name in needed if name.startswith("-") and name != option]
    given = [*words, *files, *chain(*others), *values]
    command, bound, _ = app.parse_args(given, print_error=False, exit_on_error=False)
    assert command is find_command(words).default_command
    return bound.arguments


def test_options_of_names_are_found() -> None:
    named = {f"{' '.join(words)} {option}" for words, option in OF_NAMES}
    assert len(OF_NAMES) >= 25
    assert named >= {
        "adapt --features",
        "check --var-names",
        "compare --samplers",
        "rerank --without",
    }


@pytest.mark.parametrize(("words", "option"), OF_NAMES, ids=str)
def test_names_are_separated_by_spaces_or_commas(words: tuple[str, ...], option: str) -> None:
    names = _NAMES.get(option, _OTHERS)
    apart = parse_option(words, option, option, *names)
    assert parse_option(words, option, option, ",".join(names)) == apart
    assert parse_option(words, option, option, *(f"{name}," for name in names)) == apart
    assert parse_option(words, option, *chain(*([option, name] for name in names))) == apart
    mixed = [option, ",".join(names[:2]), *names[2:]]
    assert parse_option(words, option, *mixed) == apart
    assert parse_option(words, option, option, names[0]) != apart
    if option not in _NAMES:
        odd = ["loss, log", 'a "b"', '"b" c,']
        quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in odd]
        found = str(parse_option(words, option, option, ",".join(quoted)))
        assert str(odd) in found, found


def test_no_setting_is_called_as_a_component() -> None:
    """Else it would begin another component after a comma."""
    for registry in (SAMPLERS, FEATURES):
        settings = {name for _, kind in registry.load() for name in kind.__struct_fields__}
        assert settings.isdisjoint(registry)


def test_an_option_of_names_takes_the_files_that_follow() -> None:
    done = run("adapt", "-w", "none", "-o", "out.nc", "--features", "lm", "dev.jsonl")
    assert done.code == 2
    assert "give NBEST before --features, which takes all words that follow it" in done.err


@pytest.mark.parametrize("values", ["0,1", "a=1,b=x"])
def test_values_of_names_are_separated_by_commas(values: str) -> None:
    pairs = parse_option(("rerank",), "--default", "--default", 'a=1,"b, c"=2', "--default", "d=3")
    assert pairs["options"] == {"defaults": {"a": 1.0, "b, c": 2.0, "d": 3.0}}
    done = run("lists", "dev.jsonl", "--missing", values)
    assert (done.code, "number" in done.err) == (2, True)
