"""What `bpa lists` prints is what `bpa adapt` uses, in every registered format.

Each format has a writer here that does not use the package, so that ids, texts, features,
references, sources and gains are compared with what was written, and not with another reading.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.command_line import run, succeed

from bpa_ppl import NBest, adapting, describe, from_lists, gains
from bpa_ppl.errors import UsageError
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.metrics.gains import resolve
from bpa_ppl.sampling.observations import Compared, Scored

TOKENS = ("logprob.sum", "logprob.mean", "logprob.min", "length")


class Content(NamedTuple):
    """Lists, as they are written.

    Attributes:
        ids: integers in ascending order.
        texts: of the candidates of each list.
        values: two numbers of each candidate, multiples of ¼ below 0.
        references: one of each list.
        sources: one of each list.
    """

    ids: list[int]
    texts: list[list[str]]
    values: list[list[tuple[float, float]]]
    references: list[str]
    sources: list[str]

    def rows(self) -> list[tuple[int, int, int, str, tuple[float, float]]]:
        """Return the place of the list, its id, the rank, the text and the numbers of each row."""
        return [
            (s, identifier, rank, text, values)
            for s, identifier in enumerate(self.ids)
            for rank, (text, values) in enumerate(
                zip(self.texts[s], self.values[s], strict=True), 1
            )
        ]


class File(NamedTuple):
    """What a writer has written.

    Attributes:
        format: by which the file is read; "auto" if it is detected.
        names: of the features.
        values: of the features of a candidate, from its two numbers; None if these are they.
        whole: whether the file has sources and references.
        named: whether the ids are texts, `u` and the integer.
    """

    format: str
    names: tuple[str, ...] = ("LM0", "W0")
    values: Callable[[tuple[float, float]], tuple[float, ...]] | None = None
    whole: bool = False
    named: bool = False


def write_moses(content: Content, path: Path) -> File:
    lines = [
        f"{i} ||| {t} ||| LM0= {a} W0= {b} ||| {a + b}" for _, i, _, t, (a, b) in content.rows()
    ]
    path.write_text("\n".join([*lines, ""]))
    return File("auto")


def write_marian(content: Content, path: Path) -> File:
    lines = [f"{i} ||| {t} ||| F0= {a} F1= {b} ||| {a}" for _, i, _, t, (a, b) in content.rows()]
    path.write_text("\n".join([*lines, ""]))
    return File("auto", ("F0", "F1"))


def token_features(values: tuple[float, float]) -> tuple[float, ...]:
    return sum(values), sum(values) / 2, min(values), 2.0


def write_fairseq(content: Content, path: Path) -> File:
    lines = []
    for s, i, rank, text, (a, b) in content.rows():
        if rank == 1:
            lines += [f"S-{i}\t{content.sources[s]}", f"T-{i}\t{content.references[s]}"]
        score = (a + b) / 2
        lines += [f"H-{i}\t{score}\tsub@@ {text}", f"D-{i}\t{score}\t{text}", f"P-{i}\t{a} {b}"]
    path.write_text("\n".join(["INFO | log", *lines, ""]))
    values = lambda v: (sum(v) / 2, *token_features(v))  # noqa: E731
    return File("fairseq", ("score", *TOKENS), values, whole=True)


def write_openai(content: Content, path: Path) -> File:
    lines = []
    for s, i in enumerate(content.ids):
        choices = [
            {
                "index": n,
                "finish_reason": "stop",
                "message": {"content": text},
                "logprobs": {"content": [{"token": "t", "logprob": v} for v in values]},
            }
            for n, (text, values) in enumerate(
                zip(content.texts[s], content.values[s], strict=True)
            )
        ]
        body = {"model": "m", "choices": choices}
        lines.append(
            json.dumps({"custom_id": f"u{i}", "response": {"body": body, "status_code": 200}})
        )
    path.write_text("\n".join([*lines, ""]))
    values = lambda v: (*token_features(v), 1.0)  # noqa: E731
    return File("auto", (*TOKENS, "count"), values, named=True)


def write_jsonl(content: Content, path: Path) -> File:
    with path.open("w") as file:
        for s, identifier in enumerate(content.ids):
            pairs = zip(content.texts[s], content.values[s], strict=True)
            record = {
                "id": f"u{identifier}",
                "source": content.sources[s],
                "references": [content.references[s]],
                "candidates": [{"text": t, "LM0": a, "W0": b} for t, (a, b) in pairs],
            }
            print(json.dumps(record), file=file)
    return File("auto", whole=True, named=True)


def table(content: Content) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "reference": content.references[s],
            "source": content.sources[s],
            "text": text,
            "LM0": a,
            "W0": b,
        }
        for s, i, _, text, (a, b) in content.rows()
    ]


def write_tsv(content: Content, path: Path) -> File:
    rows = table(content)
    lines = ["\t".join(rows[0]), *("\t".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join([*lines, ""]))
    return File("auto", whole=True)


def write_csv(content: Content, path: Path) -> File:
    rows, text = table(content), io.StringIO()
    cell = lambda value: '"' + str(value).replace('"', '""') + '"'  # noqa: E731
    for row in (list(rows[0]), *(list(row.values()) for row in rows)):
        text.write(",".join(map(cell, row)) + "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.getvalue().encode())
    return File("auto", whole=True)


def write_parquet(content: Content, path: Path) -> File:
    pq.write_table(pa.Table.from_pylist(table(content)), path, row_group_size=2)
    return File("auto", whole=True)


def write_plain(content: Content, path: Path) -> File:
    path.write_text("\n".join([*(text for _, _, _, text, _ in content.rows()), ""]))
    scores = path.with_name("scores.txt")
    lines = [f"{a} {b}" for *_, (a, b) in content.rows()]
    scores.write_text("\n".join(["LM0 W0", *lines, ""]))
    return File(f"plain:list_size={len(content.texts[0])},scores={scores}")


def write_kaldi(content: Content, path: Path) -> File:
    lines = [f"u{i}-{rank} {a} {text}" for _, i, rank, text, (a, _) in content.rows()]
    path.write_text("\n".join([*lines, ""]))
    scores = [f"u{i}-{rank} {b}" for _, i, rank, _, (_, b) in reversed(content.rows())]
    path.with_name("W0").write_text("\n".join([*scores, ""]))
    return File(f"kaldi:score=true,scores={path.with_name('W0')}", ("score", "W0"), named=True)


def write_espnet(content: Content, path: Path) -> File:
    for _, i, rank, text, (a, b) in content.rows():
        folder = path / f"{rank}best_recog"
        folder.mkdir(parents=True, exist_ok=True)
        tokens = " ".join(["t"] * int(-4 * b))
        for name, cell in {"text": text, "score": f"tensor({a})", "token": tokens}.items():
            with (folder / name).open("a") as file:
                print(f"u{i}", cell, file=file)
    values = lambda v: (v[0], -4 * v[1])  # noqa: E731
    return File("auto", ("score", "tokens"), values, named=True)


WRITERS: dict[str, Callable[[Content, Path], File]] = {
    "fairseq": write_fairseq,
    "openai": write_openai,
    "jsonl": write_jsonl,
    "tsv": write_tsv,
    "csv": write_csv,
    "parquet": write_parquet,
    "plain": write_plain,
    "kaldi": write_kaldi,
    "espnet": write_espnet,
    "marian": write_marian,
    "moses": write_moses,
}
WORD = st.sampled_from(
    ["the", "cat", "café", "0", "12", "-1.5", "日本", '"no"', "a,b", "=", "NA", "x=1"]
)
TEXT = st.lists(WORD, min_size=1, max_size=4).map(" ".join)
NUMBER = st.integers(-40, -1).map(lambda quarters: quarters / 4)


@st.composite
def contents(draw: st.DrawFn, *, equal: bool, distinct: bool) -> Content:
    """Return lists.

    Args:
        draw: of Candidate.
        equal: whether all have one size, and ids from 0.
        distinct: whether no candidate occurs twice in a list.
    """
    count, size = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    sizes = [size if equal else draw(st.integers(2, 3)) for _ in range(count)]
    ids = (
        list(range(count))
        if equal
        else sorted(draw(st.sets(st.integers(0, 12), min_size=count, max_size=count)))
    )
    each = lambda kind, unique=False: [  # noqa: E731
        draw(st.lists(kind, min_size=n, max_size=n, unique=unique)) for n in sizes
    ]
    texts = [[draw(TEXT) for _ in range(count)] for _ in range(2)]
    return Content(ids, each(TEXT, distinct), each(st.tuples(NUMBER, NUMBER)), *texts)


def expected_lists(content: Content, file: File, sources: bool) -> NBest:
    """Return the lists that a file says."""
    values = file.values or (lambda pair: pair)
    return from_lists(
        content.texts,
        [[values(pair) for pair in pairs] for pairs in content.values],
        file.names,
        references=content.references,
        sources=content.sources if sources else None,
        sentence_ids=None if file.named else content.ids,
        sentence_extras={"id": [f"u{i}" for i in content.ids]} if file.named else None,
    )


class Captured(UsageError):
    """Ends `adapt` when the lists are observed."""


def observed_by_adapt(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Scored | Compared:
    """Return what `bpa adapt` tabulates."""
    found: list[Scored | Compared] = []
    observe = adapting.observe

    def capture(*args: Any, **named: Any) -> Scored | Compared:
        found.append(observe(*args, **named))
        raise Captured("observed")

    with monkeypatch.context() as patch:
        patch.setattr(adapting, "observe", capture)
        done = run("adapt", *arguments, "-w", "none", "-o", "p.nc", "--sampler", "map", "-q")
    assert len(found) == 1, done.err
    return found[0]


def test_every_format_has_a_writer() -> None:
    assert set(WRITERS) == set(NBEST_FORMATS)


@pytest.mark.parametrize("name", WRITERS)
@settings(
    max_examples=5,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_what_is_printed_is_what_is_used(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("read")
    monkeypatch.chdir(folder)
    content = data.draw(contents(equal=name == "plain", distinct=name == "openai"))
    file = WRITERS[name](content, folder / "lists")
    expected = expected_lists(content, file, sources=file.whole)
    arguments: list[object] = [folder / "lists", "--format", file.format]
    how = data.draw(st.sampled_from(["lines", "ids", "objects", *["inside"] * file.whole]))
    if how != "inside":
        ids = [f"u{i}" if file.named else i for i in content.ids]
        pairs = list(zip(ids, content.references, strict=True))
        if how == "lines":
            lines = content.references
            if not file.named or name == "openai":  # the numbers in the ids are those of lines
                own = dict(zip(content.ids, content.references, strict=True))
                lines = [own.get(number, "filler") for number in range(content.ids[-1] + 1)]
        elif how == "ids":
            lines = [f"{i}\t{text}" for i, text in reversed(pairs)]
        else:
            lines = [json.dumps({"id": str(i), "reference": text}) for i, text in pairs]
        (folder / "ref").write_text("\n".join([*lines, ""]))
        arguments += ["-r", folder / "ref"]
    gain = data.draw(st.sampled_from(["ter", "chrf", file.names[-1]]))
    arguments += ["--gain", gain]

    printed = json.loads(succeed("lists", *arguments, "--json").out)
    described = json.loads(json.dumps(describe(expected, gain).as_dict()))
    formats = printed.pop("formats")
    assert formats == [name]
    different = ("origin", "plan", "warnings", "of_sentences", "missing_ids", "texts")
    # Totals, which not every format has, decide between equal oracles.
    for field in printed.keys() - set(different):
        assert printed[field] == described[field], field

    used = observed_by_adapt(monkeypatch, *arguments)
    lists = used.lists
    features = [name for name in file.names if name != gain]
    assert [c["name"] for c in printed["columns"] if c["kind"] == "feature"] == features
    assert lists.feature_names == tuple(features)
    assert lists.ids == expected.ids
    assert [lists.texts(s) for s in range(len(lists))] == content.texts
    columns = [file.names.index(feature) for feature in features]
    assert lists.features.tolist() == expected.features[:, columns].tolist()
    assert lists.references == expected.references
    assert lists.sources == expected.sources
    metric = resolve(gain, expected)
    assert used.gain is not None
    assert used.gain.key == metric.key == printed["plan"]["gain"]
    assert len(lists) == printed["plan"]["judged"]
    known = gains(expected, gain)
    assert used.gains is None or used.gains.tolist() == known.tolist()
    first = expected.offsets[:-1]
    assert known[first + used.oracles.index].tolist() == np.maximum.reduceat(known, first).tolist()
