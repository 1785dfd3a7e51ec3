from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from support.raising import raises
from support.user_files import Write

from bpa_ppl import from_records, iter_nbest, read_nbest, read_references
from bpa_ppl.errors import BpaWarning, DataError, UsageError


def test_files_that_are_no_references(write: Write, tmp_path: Path) -> None:
    two, three, tabs = (write(*t, name=t[0]) for t in (["a", "b"], ["c", "d", "e"], ["0\ta"]))
    wrong = {"wrong-length": [two, three], "mismatch": tabs, "missing-file": tmp_path / "none"}
    for code, paths in (wrong | {"no-data": write(name="empty")}).items():
        with raises(DataError, code):
            read_references(paths)
    with raises(UsageError, "no-data", parameter="paths"):
        read_references([])
    with raises(DataError, "mismatch"):  # with and without ids
        read_nbest(OF_NUMBERS[:1], references=[tabs, write("a")])


def test_other_values_are_no_references() -> None:
    with raises(UsageError, "wrong-type", parameter="references"):
        read_nbest(OF_NUMBERS, references=1.5)  # type: ignore[arg-type]
    with raises(UsageError, "missing-file", parameter="references"):  # names of files
        read_nbest(OF_NUMBERS, references=["the cat", "a dog"])


LINES = ["r0", "r1", "r2"]


def records(ids: list[Any]) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"t{place}", "lm": 1.0} for place, i in enumerate(ids)]


# --- pairing by ids, never by chance of the order ------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "expected", "numbers"),
    [
        ([0, 1, 2], "012", [0, 1, 2]),
        (["2", "0", "1"], "201", [2, 0, 1]),
        (["2.0", "00"], "20", [2, 0]),
        (["1", "3", "2"], "021", [0, 2, 1]),  # as many references as ids from 1
        (["7", "8", "9"], "012", [0, 1, 2]),
        (["a", "b", "c"], "012", [0, 1, 2]),
    ],
)
@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
def test_by_value(ids: list[Any], expected: str, numbers: list[int]) -> None:
    lists = from_records(records(ids), references=LINES, sources=LINES)
    assert lists.references == tuple((LINES[int(i)],) for i in expected)
    assert lists.sources == tuple(LINES[int(i)] for i in expected)
    assert lists.sentence_ids.tolist() == numbers
    if ids[0] not in ("1", "7"):  # the lists of a stream are not counted before they are read
        lines, references = map(json.dumps, records(ids)), [(line,) for line in LINES]
        parts = iter_nbest(lines, references=references, chunk=1)
        assert tuple(part.references[0] for part in parts) == lists.references


@pytest.mark.parametrize(
    ("ids", "line", "parameter"),
    [
        ([1, 2, 3], 3, "first_id"),
        (["4", "9"], 1, "references"),
        (["a", "b"], None, "references"),  # which of the three is missing?
        (["s0", "s2", "s0", "s1", "s2"], None, "references"),  # by system, one lacks s1
    ],
)
@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
def test_doubtful_order_is_refused(ids: list[Any], line: int | None, parameter: str) -> None:
    with raises(DataError, parameter=parameter, line=line):
        from_records(records(ids), references=LINES)
    if isinstance(ids[0], str):
        some = from_records(records(ids), references={ids[1]: ["x", "y"]}).references
        assert some is not None
        assert some[:2] == ((), ("x", "y"))


def test_lists_of_some_sentences_are_noted(write: Write) -> None:
    lists, references = [json.dumps(record) for record in records([2, 0])], write(*LINES)
    with pytest.warns(BpaWarning, match="lists for 2 sentences, but .*dev.nbest has 3 references"):
        assert read_nbest(lists, references=references).references == (("r2",), ("r0",))


def test_the_order_of_texts_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "bpa_ppl"):
        from_records(records(["d1", "d2", "d10"]), references=LINES)
    assert "'d1' with line 1, …, 'd10' with line 3" in caplog.text
    with pytest.warns(BpaWarning, match="'d10' with line 1, …, 'd2' with line 3"):
        from_records(records(["d10", "d1", "d2"]), references=LINES)
    names = [f"{n}{'1' * 5000}x" for n in (2, 10)]
    assert from_records(records(names), references=LINES[:2]).references == (("r0",), ("r1",))


@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
def test_references_with_ids(write: Write) -> None:
    tabs = write("id\ttext", "3\td", "", "0\ta ", "3\tD", name="tabs")
    objects = write('{"id": "3", "references": ["d", "D"]}', '{"id": 0, "reference": "a"}')
    expected = (("a",), (), (), ("d", "D"))
    for given in (tabs, objects, {0: "a", "3": ["d", "D"]}, {0.0: ("a",), 3: ("d", "D")}):
        with pytest.warns(BpaWarning, match="no reference for 2 sentences"):
            lists = read_nbest(OF_NUMBERS, references=given)
        assert lists.references == expected
    assert lists.with_references({3: ["d", "D"], 0: "a"}).references == expected
    with raises(DataError, "mismatch", parameter="references"):
        lists.with_references({"x": "a"})
    with pytest.warns(BpaWarning, match="no list for 1 of 2 ids in the references"):
        read_nbest(OF_NUMBERS, references={9: "x", 1: "y"})


def test_files_compressed_or_not(write: Write) -> None:
    path = write("a cat ", "", "un café", name="ref")
    assert read_references(path) == [("a cat",), ("",), ("un café",)]
    assert read_references(str(path)) == read_references([path])
    files = [write("a", "b", name="0"), write(gzip.compress(b"A\r\nB\r\n"), name="1")]
    assert read_references(files) == [("a", "A"), ("b", "B")]


NAMES = [f"doc-{n}" for n in (1, 2, 3, 4)]
TABS = [f"{name}\tthe cat {name[-1]}" for name in NAMES]
OF_NAMES = [json.dumps({"id": name, "text": "a cat", "lm": 1}) for name in NAMES]
OF_NUMBERS = [f"{n} ||| a cat ||| LM0= 1 ||| 1" for n in range(4)]
LABELS = {"1089-134686-0000": "A CAT", "121-121726-0003": "CATS", "237-134500-0010": "THE CAT"}
LABELS_BEFORE = [f"{label} {text}" for label, text in LABELS.items()]
LABELS_AFTER = [f"{text} ({label})" for label, text in LABELS.items()]


# --- no id, quotation mark or JSON becomes a part of all references ------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        TABS[::-1],
        ["\ufeff" + TABS[0], *TABS[1:]],
        [line + "\r" for line in TABS],
        ["", TABS[0], " ", *TABS[1:], ""],
        ["ID\tText", *TABS],
        [f" {line}\t" for line in TABS],
        ["", *(json.dumps({"id": n, "reference": f"the cat {n[-1]}"}) for n in NAMES)],
    ],
)
def test_forms_that_are_read(write: Write, lines: list[str]) -> None:
    references = read_nbest(OF_NAMES, references=write(*lines, name="ref")).references
    assert references == tuple((f"the cat {n}",) for n in (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (1, "doc-2\tthe\tcat"),
        (1, "doc-2 the cat"),
        (3, "doc-4"),
        (2, "\tthe cat"),
        (3, '{"id": "doc-4", "reference": "the cat"}'),
        (0, "the cat"),
    ],
)
def test_one_line_of_another_kind(write: Write, place: int, line: str) -> None:
    lines = [*TABS[:place], line, *TABS[place + 1 :]]
    for lists in (OF_NAMES, OF_NUMBERS):
        with raises(DataError, "bad-line", line=place + 1):
            read_nbest(lists, references=write(*lines, name="ref"))


@pytest.mark.parametrize(
    "lines",
    [
        [f"{line}\tnews" for line in TABS],
        ["id\treference\tdomain", *(f"{line}\tnews" for line in TABS)],
        [line.replace("\t", ",") for line in TABS],
        ["id,reference", *(line.replace("\t", ",") for line in TABS)],
        ['"id";"reference"', *('"{}";"{}"'.format(*line.split("\t")) for line in TABS)],
        ['"{}","{}"'.format(*line.split("\t")) for line in TABS],
        ['"{}"\t"{}"'.format(*line.split("\t")) for line in TABS],
        ['{}\t"{}"'.format(*line.split("\t")) for line in TABS],
        [line.replace("\t", " ") for line in TABS],
        [line.replace("\t", " ") for line in TABS[::-1]],
        [line.replace("\t", " ||| ") for line in TABS],
        [json.dumps(line.split("\t")) for line in TABS],
        [json.dumps("the cat") for _ in TABS],
        ['"He said ""yes"""' for _ in TABS],
        [json.dumps({"reference": "the cat"}) for _ in TABS],
        ["[", *(f'"{line}",' for line in NAMES), "]"],
        [f"{n},the cat" for n in range(4)],
        [f"{n} the cat" for n in range(1, 5)],
        ["id\treference"],
    ],
)
def test_other_forms_are_refused(write: Write, lines: list[str]) -> None:
    for lists in (OF_NAMES, OF_NUMBERS):
        with pytest.raises(DataError, match="ref:"):
            read_nbest(lists, references=write(*lines, name="ref"))


@pytest.mark.parametrize("what", ["references", "sources"])
def test_texts_that_begin_with_ids_of_lists(write: Write, what: str) -> None:
    names = ["news/a", "news/c", "web/b"]
    lists = [json.dumps({"id": name, "text": "a cat", "lm": 1}) for name in names]
    for order in (names, names[::-1]):
        forms = ["{} the cat", "{},the cat", "{} ||| the cat", "{}: the cat", '"{}","the cat"']
        for form in (*forms, "({}) the cat", "the cat ({})"):
            texts = write(*map(form.format, order), name="texts")
            with raises(DataError, "mismatch", parameter=what):
                read_nbest(lists, **{what: texts})
    with raises(DataError, "mismatch", parameter=what):
        read_nbest(OF_NAMES[:1], **{what: write("doc-1 the cat", name="texts")})
    numbers = write("0 the cat", "1 a dog", name="texts")
    with raises(DataError, "mismatch", parameter=what):
        read_nbest(OF_NUMBERS[:2], **{what: numbers})


@pytest.mark.parametrize(
    "lines",
    [
        TABS,
        [json.dumps({"id": name, "source": "un chat"}) for name in NAMES],
        ["id,source", *NAMES],
        [f'<seg id="{name}">un chat</seg>' for name in NAMES],
    ],
)
def test_sources_that_are_not_plain_text(write: Write, lines: list[str]) -> None:
    for blank in ([], [" "]):
        with raises(DataError, "mismatch", line=len(blank) + 1):
            read_nbest(OF_NAMES, sources=write(*blank, *lines, name="texts"))


@pytest.mark.parametrize(
    "lines",
    [
        ["the cat, 1", "a dog", "3 people came", "Yes, I do"],
        ["12 people", "3 people", "7 people", "1 person"],
        ['"Yes."', "No.", "He left.", '"No," she said.'],
        ["a\ttab", "a dog", "", "a cat"],
        ["(1) a", "(2) b", "(3) c", "(4) d"],
        ["{braces}", "[applause] thanks", "[1] see", "{"],
        ["2.5 million", "3.5 million", "$5", "$7 each"],
        ["7 4 2", "1", "0", "2 2"],
        ["\t", "a dog ", "\ta cat", "b\t"],
        ["COVID-19 is here", "COVID-19 was here", "COVID-19 is back"],
        ["$3.50, please", "$4, please", "12.5% of it"],
        ["00:01:05 hello", "00:02:10 you", "[00:03] bye"],
        ["in Rome (2019)", "in Oslo (2021)", "in Bonn (2022)"],
        ["x1", "y2", "z3"],
    ],
)
@pytest.mark.filterwarnings("ignore:.*blank reference:bpa_ppl.errors.BpaWarning")
def test_plain_text_stays_plain(write: Write, lines: list[str]) -> None:
    lists = OF_NUMBERS[: len(lines)]
    references = read_nbest(lists, references=write(*lines, name="ref")).references
    assert references == tuple((line.strip(),) for line in lines)


@pytest.mark.parametrize(
    ("what", "lines", "match"),
    [
        ("references", LABELS_BEFORE, "begin with different words with digits, .* '1089-1346"),
        ("references", LABELS_AFTER, r"end with different words with digits, .* '\(1089-1346"),
        ("references", ["ted_1_a it is", "ted_2_b it was", "wmt_17 it will be"], "different"),
        ("references", ['"Yes."', '"No."', "No.", '"Why?"'], "3 of 4 texts are in quotation"),
        ("sources", ["d1 un", "d2 deux", "d3 trois"], "'d1' to 'd3', which look like ids"),
        ("sources", LABELS_BEFORE, "begin with different words with digits"),
        ("sources", ['"un"', '"deux"', "trois"], "2 of 3 texts are in quotation marks"),
    ],
)
def test_lines_that_may_have_ids(write: Write, what: str, lines: list[str], match: str) -> None:
    texts = write(*lines, name="texts")
    with pytest.warns(BpaWarning, match=match):
        lists = read_nbest(OF_NUMBERS[: len(lines)], **{what: texts})
    of_lists = tuple((line,) for line in lines) if what == "references" else tuple(lines)
    assert getattr(lists, what) == of_lists


def test_a_few_ids_before_tabs_are_noted(write: Write) -> None:
    lines = ["0\tthe cat", "1\tthe dog", "the cow", "the hen", "the fox"]
    lists = [json.dumps({"id": n, "text": line[-7:], "lm": n}) for n, line in enumerate(lines)]
    with pytest.warns(BpaWarning, match="2 of 5 lines have tabs, .* write all lines as `id<TAB>"):
        references = read_nbest(lists, references=write(*lines, name="ref")).references
    assert references == tuple((line,) for line in lines)


def test_ways_out_of_a_refusal(write: Write) -> None:
    texts = ['"Yes."', "doc-7 is lost", "a\tb", "0 left"]
    objects = write(*(json.dumps({"id": n, "reference": text}) for n, text in enumerate(texts)))
    expected = tuple((text,) for text in texts)
    assert read_nbest(OF_NUMBERS, references=objects).references == expected
    tabs = write(*(f"{n}\t{n} {n} left" for n in range(4)))
    assert read_nbest(OF_NUMBERS, references=tabs).references[3] == ("3 3 left",)
    plain = write(*(f"one{n}\ttab" for n in range(4)))
    with raises(DataError, "mismatch", parameter="references", match="tabs"):
        read_nbest(OF_NUMBERS, references=plain)


# --- ids `0` and `00` are never joined: refused, or kept apart where they are texts --------------


def test_untyped_formats() -> None:
    for row in ("{},{},{}", "{}\t{}\t{}"):
        header = row.format("id", "text", "lm")
        for other in ("00", "0.0", "-0"):
            with raises(DataError, "duplicate", line=3):
                read_nbest([header, row.format(0, "a", 1), row.format(other, "b", 2)])
        padded = [header, row.format("01", "a", 1), row.format("10", "b", 2)]
        assert read_nbest(padded).sentence_ids.tolist() == [1, 10]
        names = [header, *(row.format(name, "a", 1) for name in ("x", "0", "00"))]
        assert read_nbest(names).ids == ("x", "0", "00")


@pytest.mark.parametrize("by_arrow", [False, True])
def test_moses(monkeypatch: pytest.MonkeyPatch, write: Write, by_arrow: bool) -> None:
    if by_arrow:
        monkeypatch.setattr("bpa_ppl.formats.moses._ARROW_FROM", 0)
    for ids in (["0", "00"], ["007", "7"], ["1", "2", "01"]):
        lines = [f"{i} ||| a ||| LM0= 1 ||| 1" for i in ids]
        with raises(DataError, "duplicate", line=len(ids)):
            read_nbest(write(*lines))
    lines = [f"{i:03} ||| a ||| LM0= 1 ||| 1" for i in (0, 0, 1, 10)]
    assert read_nbest(write(*lines)).sentence_ids.tolist() == [0, 1, 10]


def test_joins(write: Write) -> None:
    texts = [json.dumps(record) for record in records(["0", "00"])]
    lists = read_nbest(texts)
    tabs = write("0\ta", "00\tb", name="tabs")
    objects = write(*(f'{{"id": "{n}", "reference": "a"}}' for n in ("1.0", "1")), name="j")
    for given in (tabs, objects):
        with raises(DataError, "duplicate", line=2):
            read_nbest(texts, references=given)
    files = [write("0\ta", name="0"), write("00\ta", name="00")]
    with raises(DataError, "duplicate", line=1):
        read_nbest(texts, references=files)
    with raises(UsageError, "duplicate", parameter="references"):
        lists.with_references({"0": "a", "00": "b"})
    with raises(DataError, "duplicate", parameter="references"):
        lists.with_references({"0": "a"})
    for given in (write("0\ta", name="one"), {"0": "a"}, write("a", "b", name="two")):
        with raises(DataError, "duplicate", line=2, parameter="references"):
            read_nbest(texts, references=given)
    with raises(DataError, "duplicate", line=2, parameter="sources"):
        read_nbest(texts, sources=["a", "b"])
    assert from_records(records([0, 1]), references={"00": "a", 1: "b"}).references


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.filterwarnings("ignore:.* look like ids")
def test_items_of_a_list_are_texts(write: Write, first: int) -> None:
    lines = [f"{first + i}. text {i}" for i in range(8)]
    lists = write(*(f"{i} ||| t{i} ||| LM0= 1 ||| 1" for i in range(8)), name="lists")
    for what in ("references", "sources"):
        with pytest.warns(BpaWarning, match="items of a list, such as"):
            read = read_nbest(lists, **{what: write(*lines, name=what)})
    assert read.sources == tuple(lines)
    with raises(DataError, "mismatch", parameter="sources"):
        read_nbest(lists, sources=write(*(line.replace(".", "", 1) for line in lines), name="s"))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"id": 1, "reference": "a", "references": ["b"]}', None),
        ('{"id": true, "reference": "a"}', None),
        ('{"id": 1, "reference": "a"},', "bad-line"),
        ('{"id": 1, "reference": NaN}', None),
        ("{'id': 1, 'reference': 'a'}", "bad-line"),
        ('{"id": 1, "reference": "a', "bad-line"),
        ('{"id": 1}', None),
        ('{"id": 1, "text": "a"}', None),
        ('<seg id="1">a</seg>', "mismatch"),
    ],
)
def test_lines_meant_as_objects_or_markup(write: Write, line: str, code: str | None) -> None:
    parameter = "references" if code == "bad-line" else None
    with raises(DataError, code, line=1, parameter=parameter):
        read_nbest(OF_NUMBERS[:2], references=write(line, line, name="ref"))
    with raises(DataError, "mismatch", line=1):
        read_nbest(OF_NUMBERS[:2], sources=write(line, line, name="src"))


def test_texts_that_are_null_or_blank(write: Write) -> None:
    lists, one, none = OF_NUMBERS[:2], write("", "b", name="one"), write("", " ", name="none")
    null = write('{"id": 0, "reference": null}', '{"id": 1, "reference": "a"}', name="null")
    with pytest.warns(BpaWarning, match="no reference for 1 sentence"):
        assert read_nbest(lists, references=null).references == ((), ("a",))
    with pytest.warns(BpaWarning, match="1 sentence with a blank reference, the first of id 0"):
        read_nbest(lists, references=one)
    with raises(DataError, "missing-references", parameter="references"):
        read_nbest(lists, references=none)
    assert read_nbest(lists, sources=none).sources == ("", "")
