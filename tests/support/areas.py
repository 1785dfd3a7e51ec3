"""The areas of `fuzz.py`: files and values that others give to readers, functions and samplers."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import json
import lzma
import math
import random
import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import jax.numpy as jnp
import msgspec
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyarrow as pa
import pyarrow.parquet as pq
import xarray
from numpyro.distributions import constraints

import bpa_ppl as bpa
import bpa_ppl.extras.convert as convert
from bpa_ppl import Draws, NBest, Prior, from_arrays, from_lists, from_records
from bpa_ppl.decoding.writing import rerank_to
from bpa_ppl.diagnostics.ways.compare_ways import BaselineComparison
from bpa_ppl.extending import gains, oracles
from bpa_ppl.extras.convert.records import read_json, read_text_lines, write_lists
from bpa_ppl.extras.judging.juries import judges
from bpa_ppl.extras.judging.serving.app import application
from bpa_ppl.extras.judging.serving.limits import Limits
from bpa_ppl.extras.phrases.subdomains import Subdomains
from bpa_ppl.extras.phrases.table_files import read_counts, read_table, write_counts, write_table
from bpa_ppl.extras.phrases.tables import PhraseCounts
from bpa_ppl.extras.studies.study import read_study
from bpa_ppl.extras.studies.tuning.tuner import TUNERS
from bpa_ppl.features.recipe import record_sources, with_absolute_paths
from bpa_ppl.features.source import FEATURES, resolve_sources
from bpa_ppl.formats.format import WEIGHT_FORMATS
from bpa_ppl.formats.references import read_references
from bpa_ppl.gains.metric import GAINS
from bpa_ppl.gains.preferences import choice_sets
from bpa_ppl.lists.columns import read_column
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.models.lists import tabulate
from bpa_ppl.posterior.arviz_functions import to_arviz_data
from bpa_ppl.posterior.files import read_draws
from bpa_ppl.posterior.formulas import FORMULAS, format_weights
from bpa_ppl.posterior.record import (
    ObservedRecord,
    RecipeRecord,
    Record,
    SamplerRecord,
    from_attributes,
    to_attributes,
)
from bpa_ppl.samplers.sampler import SAMPLERS
from bpa_ppl.text.model_files import read_arpa, read_or_train
from bpa_ppl.text.words import NumberedText
from bpa_ppl.weights import match
from support.attempts import (
    NUMBERS,
    area,
    changed,
    must_accept,
    odd_array,
    odd_json,
    odd_path,
    odd_value,
    verdict,
)
from support.fuzzing import (
    GOLDEN,
    REFUSED,
    Failure,
    edited,
    examine,
    examine_weights,
    names,
    outcome,
    random_edits,
    subject,
    weight_samples,
)
from support.user_files import compress_zstd, stream_zstd

LISTS = b"""0 ||| a cat ||| LM0= -1.5 ||| -1
0 ||| the cat ||| LM0= -1 ||| -1
1 ||| b ||| LM0= 2 ||| 1
"""
REFERENCES = "the cat\nun café noir\n".encode()


def sample_lists() -> NBest:
    """Return two small lists."""
    return from_lists(
        [["a cat", "the cat"], ["un café", "b"]],
        [[[-1.5, 0.5], [-1.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]]],
        ["LM0", "W"],
        sources=["un chat", "un café"],
    )


def sample_draws() -> Draws:
    """Return draws with all kinds of groups."""
    rng, size = np.random.default_rng(3), (2, 5)
    return Draws(
        {"weights": rng.normal(size=(*size, 2))},
        ("LM0", "W"),
        log_density=rng.normal(size=size),
        log_likelihood={"oracle": rng.normal(size=(*size, 3))},
        sentence_sites=("oracle",),
        statistics={"accepted": rng.random(size) > 0.5},
        constants={"canonical": np.ones(2), "prior_mean": np.ones(2), "prior_variance": np.ones(2)},
        sentence_ids=np.arange(3),
        record=Record(
            sampler=SamplerRecord(name="imh"), observed=ObservedRecord(gain="ter"), seed=1
        ),
    )


def damaged(rng: random.Random, sample: bytes) -> bytes:
    """Return text that is damaged, in another encoding, or out of proportion."""
    kind, text = rng.randrange(12), sample.decode()
    if kind == 0:
        return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig")))
    if kind == 1:
        return sample.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\r", b"\x0b")))
    if kind == 2:
        return sample + "\ud800\udfff".encode(errors="surrogatepass")
    if kind == 3:
        piece = rng.choice((b"a", b"a ", b"\n", b"\xcc\x81", b"\0"))
        return piece * 10 ** rng.choice((3, 3, 4, 4, 5, 6))
    if kind == 4:
        return rng.randbytes(rng.randrange(200))
    return edited(sample, random_edits(rng))


def lines_of(rows: list[dict[str, Any]], header: list[str], suffix: str) -> list[str]:
    """Return rows as the lines of a file: JSON lines, or cells with commas or tabs."""
    if suffix == ".jsonl":
        return [json.dumps(row) for row in rows]
    mark = "," if suffix == ".csv" else "\t"
    return [mark.join(map(str, cells)) for cells in (header, *(row.values() for row in rows))]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file."""
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8", errors="surrogateescape")


@area("lists", 2_500)
def lists(rng: random.Random, folder: Path) -> str:
    """Files of lists in all formats, read at once, as streams and in blocks."""
    tried = subject(rng.choice(names()), folder)
    sample = rng.choice(tried.samples)
    return examine(tried, sample, edited(sample, random_edits(rng)), folder)


_TURNS = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
#: Rows of two answers, of which one is preferred.
_JUDGED: list[dict[str, Any]] = [
    {"prompt": "q", "chosen": "a", "rejected": {"text": "b", "lm": 1}, "turn": 1},
    {"prompt": "q", "chosen": _TURNS, "rejected": [_TURNS[0], {**_TURNS[1], "content": "b"}]},
    {"model_a": "X", "model_b": "Y", "winner": "X", "response_a": "a", "response_b": "b"},
]
_WINNERS = ["X", "model_b", "tie", "A", 0, "both bad", "", None]


@area("preference rows", 3_000)
def preference_rows(rng: random.Random, folder: Path) -> None:
    """Rows of preferences with odd values: both answers are candidates, and `adapt` takes them."""
    usual = rng.choice(_JUDGED)
    row = dict(usual)
    if "winner" in row:
        row["winner"] = rng.choice(_WINNERS)
    odd = changed(row, rng, lambda rng: rng.choice([odd_json(rng), "a", _TURNS, None]))
    rows = [usual, odd if isinstance(odd, dict) else row] * rng.choice((1, 2))
    bad, lines = rng.choice(("error", "drop")), [json.dumps(one).encode() for one in rows]
    read, given = rng.choice(((bpa.read_nbest, lines), (from_records, rows)))
    table = read(given, bad=bad)
    with must_accept():
        counts = choice_sets(table).counts
    if bad == "error" and counts["lists"] < len(rows):
        raise Failure(f"a list without a judgement: {rows}")


@area("weights", 16_000)
def weights(rng: random.Random, folder: Path) -> str:
    """Files of weights in all formats."""
    name = rng.choice(list(WEIGHT_FORMATS))
    content = edited(rng.choice(weight_samples(name)), random_edits(rng))
    return examine_weights(name, content, folder / "weights")


@area("references", 9_000)
def references(rng: random.Random, folder: Path) -> None:
    """References and sources: other encodings and line ends, long lines, objects in memory."""
    lists = folder / "lists"
    lists.write_bytes(LISTS)
    samples = {
        "ref": REFERENCES,
        "ref.tsv": b"id\treference\n1\tthe cat\n\n0\tun caf\xc3\xa9\n",
        "ref.csv": b'id,reference\n1,"the, cat"\n\n0,un caf\xc3\xa9\n',
        "ref.jsonl": b'{"id": "1", "reference": "a"}\n{"id": 0, "references": ["b"]}\n',
    }
    path = folder / rng.choice(list(samples))
    path.write_bytes(damaged(rng, samples[path.name]))
    written = rng.choice((int, str, float, "s{}".format))
    records = [{"id": written(n), "text": "a"} for n in rng.sample(range(4), 3)]
    some = {rng.choice((0, "1", 2.0, "s3", odd_value(rng, 0))): odd_value(rng)}
    given: Any = rng.choice((some, ["a"] * rng.randint(2, 5)))
    uses: list[Callable[[], Any]] = [
        lambda: read_references(path),
        lambda: read_references([path, lists, path][:: rng.choice((1, 2))]),
        lambda: gains(bpa.read_nbest(lists, references=path)),
        lambda: bpa.read_nbest(lists, sources=path),
        lambda: from_records(records, references=given, first_id=rng.randint(0, 1)),
        lambda: list(bpa.iter_nbest(lists, references=odd_value(rng), chunk=1)),
        lambda: read_references(odd_path(rng, folder, endless=False)),
    ]
    rng.choice(uses)()


#: How files of references write an id and a text, by their endings.
_FORMS: dict[str, tuple[str, Callable[[str, str], str]]] = {
    ".tsv": ("id\treference\n", "{}\t{}".format),
    ".csv": ("id,reference\n", '"{}","{}"'.format),
    ".jsonl": ("", lambda name, text: json.dumps({"id": name, "reference": text})),
    ".txt": ("", lambda name, text: text),
}


@area("ids", 1_500)
def ids(rng: random.Random, folder: Path) -> None:
    """References by line or by id, some rows in another form: no list has those of another one."""
    count = rng.choice((4, 5, 12))
    names = [rng.choice(("doc-{}", "{}", "a/b{}x", "s{:03}")).format] * count
    listed = [name(n) for n, name in enumerate(names, rng.choice((0, 1)))]
    begins = "the", "3", "a,", "Yes:"
    texts = {name: f"{rng.choice(begins)} cat no{n}" for n, name in enumerate(listed)}
    ending = rng.choice(list(_FORMS))
    header, form = _FORMS[ending]
    _, other = _FORMS[rng.choice((ending, ending, *_FORMS))] if ending != ".txt" else ("", form)
    odd = set(rng.sample(listed, rng.choice((0, 1, 1, 2 if count > 4 else 1))))
    order = rng.sample(listed, count) if ending != ".txt" else listed
    order = order[: count - rng.choice((0, 0, 1))]
    lines = [(other if name in odd else form)(name, texts[name]) for name in order]
    head = header if rng.random() < 0.9 else ""
    end = rng.choice(("\n", "\n", "\r\n"))
    path = folder / f"ref{ending}"
    content = rng.choice(("", "\ufeff")) + head + end.join([*lines, ""])
    path.write_text(content, "utf-8", newline="")
    whole = all(name.isdigit() and str(int(name)) == name for name in listed) and rng.random() < 0.7
    records = [{"id": int(name) if whole else name, "text": "a", "lm": 1} for name in listed]
    first = int(listed[0]) if whole or listed[0] == "1" else 0
    data = "\n".join(map(json.dumps, records)).encode()
    read = bpa.read_nbest(data, references=path, format=f"auto:first_id={first}").references
    if read != tuple((texts[name],) for name in listed):
        raise Failure(f"the references are {read}, not {texts}: {lines}")


@area("equal numbers", 500)
def equal_numbers(rng: random.Random, folder: Path) -> None:
    """Ids that are written in several ways: lists of other ids are never joined."""
    numbers = [rng.choice((0, 1, 1, 7, 10)) for _ in range(4)]
    written = [rng.choice(("{}", "{}", "{:02}", "{:03}", "{}.0")).format(n) for n in numbers]
    forms = {
        "a.csv": ["id,text,lm", *(f"{i},t{i},1" for i in written)],
        "a.tsv": ["id\ttext\tlm", *(f"{i}\tt{i}\t1" for i in written)],
        "a.nbest": [f"{i} ||| t{i} ||| LM0= 1 ||| 1" for i in written],
        "a.fairseq": [f"H-{i}\t-1\tt{i}" for i in written],
        "a.kaldi": [f"{i}-{rank} -1.5 t{i}" for rank, i in enumerate(written, 1)],
        "a.jsonl": [json.dumps({"id": i, "text": f"t{i}", "lm": 1}) for i in written],
    }
    name = rng.choice(list(forms))
    write_lines(folder / name, forms[name])
    references: Any = rng.choice((None, None, dict.fromkeys(written, "x"), ["x"] * 11))
    for lists in bpa.read_nbest(folder / name, references=references):
        if len(set(lists.texts(0))) > 1:
            raise Failure(f"{lists.texts(0)} are in one list: {forms[name]}")


@area("sorted lines", 1_000, names_file=True)
def sorted_lines(rng: random.Random, folder: Path) -> None:
    """Output of fairseq in another order: texts and scores of tokens stay with their scores."""
    power = rng.choice((1.0, 1.0, 0.0, 0.6, 2.0))
    lines: list[str] = []
    tokens: list[float] = []
    expected: dict[str, list[Any]] = {}
    for identifier in rng.sample(range(12), rng.choice((1, 2, 3))):
        for place in range(rng.choice((1, 2, 3, 5))):
            again = place and rng.random() < 0.1  # with an equal score
            fresh = [round(-rng.expovariate(0.5), 4) for _ in range(rng.randint(1, 9))]
            tokens = tokens[:: rng.choice((1, -1))] if again else fresh
            score = str(float(np.float32(sum(tokens) / len(tokens) ** power)))
            text = f"w{identifier} {place}"
            lines += [f"H-{identifier}\t{score}\t{text}", f"D-{identifier}\t{score}\t{text}."]
            lines.append(f"P-{identifier}\t" + " ".join(f"{token:.4f}" for token in tokens))
            expected[f"{text}."] = [float(score), sum(tokens), len(tokens)]
    kind = rng.choice((0, 1, 2, 3) if power == 1 else (0, 2, 3))
    if kind == 0:
        lines.sort()
    elif kind == 1:
        rng.shuffle(lines)
    elif kind == 2:
        lines.sort(key=lambda line: (line.split("\t")[0][1:], line[0], rng.random()))
    if kind and rng.random() < 0.2:
        lines = [line for line in lines if line[0] != "P"]
    write_lines(folder / "out", lines)
    lists = bpa.read_nbest(folder / "out", format="fairseq")
    for row, values in enumerate(lists.features.tolist()):
        found = values if len(values) == 1 else [values[0], values[1], values[4]]
        right = expected[lists.text(row)][: len(found)]
        if not np.allclose(found, right, rtol=1e-5, atol=1e-5):
            raise Failure(f"{lists.text(row)} has {found}, not {right}: {lines}")


_OTHER_NAMES = {
    "id": (
        *("id", "seg", "segment_id", "idx", "prompt_id", "question-id", "Sentence", "key", "qid"),
        *("Segment ID", "Sentence no"),
    ),
    "text": (
        *("text", "hyp", "output", "Response", "generated_text", "mt", "utterance", "candidate"),
        *("MT output", "docno"),
    ),
    "lm": ("lm", "score", "text_length", "7", "response_score"),
}
#: Columns next to these, which are neither: their names and their values by row.
_DECOYS: list[tuple[str, Callable[[int], Any]]] = [
    ("target", lambda row: "the reference"),
    ("answer", "42".format),
    ("index", lambda row: row),
    ("response_id", lambda row: row),
    ("prompt_text", lambda row: "a prompt"),
    ("source_text", lambda row: "un chat"),
    ("test", lambda row: row % 2),
    ("samples", lambda row: 3),
    ("model_id", "m{}".format),
    ("Source text", lambda row: "un chat"),
    ("Translation quality", lambda row: row % 5),
]


@area("hints", 1_000)
def hints(rng: random.Random, folder: Path) -> str | None:
    """Columns under other names, or without: the setting that a message shows reads the lists."""
    names = {usual: rng.choice(others) for usual, others in _OTHER_NAMES.items()}
    decoys = dict(rng.sample(_DECOYS, rng.randint(0, 3)))
    columns = [*names.values(), *decoys]
    rng.shuffle(columns)
    expected = [[f"t {s} {h}" for h in range(rng.randint(2, 3))] for s in range(rng.randint(2, 4))]
    rows: list[dict[str, Any]] = []
    for s, texts in enumerate(expected):
        for text in texts:
            own = {names["id"]: s, names["text"]: text, names["lm"]: rng.random()}
            rows.append(own | {name: value(len(rows)) for name, value in decoys.items()})
    rows = [{name: row[name] for name in columns} for row in rows]
    kind = rng.choice((".csv", ".tsv", ".jsonl", ""))
    lines = lines_of(rows, columns, kind)
    headed = rng.random() < 0.7 or kind == ".jsonl"
    if not headed:
        del lines[0]
    path = folder / f"lists{kind}"
    write_lines(path, lines)
    lists = outcome(lambda: bpa.read_nbest(path))
    if isinstance(lists, str):
        setting = re.search(r"(\w+:(?:(?:id|text)=NAME,?)+)", lists)
        if setting is None or not headed:
            return REFUSED
        format = setting[1].rstrip(",")
        for usual in ("id", "text"):
            format = format.replace(f"{usual}=NAME", f"{usual}={names[usual]}")
        with must_accept():
            lists = bpa.read_nbest(path, format=format)
    found = [lists.texts(place) for place in range(len(lists))]
    if found != expected:
        raise Failure(f"{found}, not {expected}: {lines}")
    return None


@area("packed", 1_000)
def packed(rng: random.Random, folder: Path) -> None:
    """Files that unpack to far more than they hold, or are cut, nested, joined or damaged."""
    line = rng.choice((LISTS, REFERENCES, b"a " * 99, b"LM0= 0.5\n", b"0", b"\n", b"\0"))
    content = line * (1 + rng.choice((1, 10, 1 << 16, 1 << 21, 1 << 23)) // len(line))
    packers = [
        lambda data: gzip.compress(data, 1),
        lambda data: bz2.compress(data[: 1 << 20]),
        lambda data: lzma.compress(data[: 1 << 21], preset=0),
        lambda data: compress_zstd(data, rng.choice((1, 3))),
        stream_zstd,
    ]
    for _ in range(rng.choice((1, 1, 1, 2))):
        content = rng.choice(packers)(content)
    kind = rng.randrange(6)
    if kind == 0:
        content = edited(content, random_edits(rng))
    elif kind == 1:
        content += rng.choice(packers)(LISTS)
    elif kind == 2:  # thousands of streams, most of them empty
        content += rng.choice(packers)(b"") * rng.randrange(5000)
    elif kind == 3:
        content = content[: rng.randrange(len(content) + 1)]
    path = folder / rng.choice(("lists", "lists.gz", "lists.jsonl.zst", "lists.parquet"))
    path.write_bytes(content)
    streamed = [bpa.read_nbest, lambda path: sum(map(len, bpa.iter_nbest(path, chunk=1)))]
    others = [read_table, read_counts, read_arpa, read_study, Prior.read]
    rng.choice([*streamed, bpa.read_weights, read_references, *others])(path)


@area("priors", 16_000)
def priors(rng: random.Random, folder: Path) -> None:
    """Priors in JSON and as arrays: wrong shapes and types, numbers of all sizes."""
    path, means, spread = folder / "prior.json", {"LM0": 0.5, "W": -1.0}, [[0.2, 0.1], [0.1, 0.2]]
    rng.choice((Prior.gaussian(means, spread), Prior.isotropic(means, [0.1, 0.2]))).write(path)
    kind = rng.randrange(4)
    if kind == 0:
        path.write_bytes(damaged(rng, path.read_bytes()))
    elif kind < 3:
        record = changed(json.loads(path.read_bytes()), rng, odd_json)
        text = json.dumps(record, ensure_ascii=rng.random() < 0.5)
        path.write_text(text, "utf-8", errors="surrogatepass")

    if kind == 3:
        build = rng.choice((Prior.gaussian, Prior.isotropic))
        odd = rng.choice((odd_value, odd_array))
        prior = build(changed(means, rng, odd_value), changed(spread, rng, odd))
    else:
        prior = Prior.read(path)
    if not (np.isfinite(prior.mean).all() and np.isfinite(prior.full_covariance).all()):
        raise Failure(f"the prior is not finite: {prior}")
    names = tuple(prior.names or ())
    prior.sample(np.random.default_rng(0), 3)
    prior.matched(names[::-1])
    prior.completed(Prior.isotropic({"LM0": 0.0, "new": 0.0}))
    prior.conditioned(dict.fromkeys(names[:1], 1.0))
    prior.write(folder / "again.json")


LIMIT = 100_000  # bytes of the body of a request
_TYPES_OF_BODIES = (*["application/json"] * 2, "application/x-ndjson", "a/b; =", "\xff")
_PATHS = (*["/rerank"] * 3, "//rerank", "/%00", "/rerank?x=" + "a" * 999)


@area("requests", 488)
def requests(rng: random.Random, folder: Path) -> str | None:
    """Requests to the HTTP service: damaged JSON, other values, and bodies beyond the limit."""
    first = {"text": "a cat", "LM0": -1.5, "W": 2}
    record: Any = {"id": "1", "source": "un chat", "candidates": [first, first | {"text": "b"}]}
    record = rng.choice((record, [record, record]))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        record = changed(record, rng, odd_json)
    body = json.dumps(record, ensure_ascii=rng.random() < 0.8).encode("utf-8", "surrogatepass")
    kind = rng.randrange(6)
    if kind == 0:
        body = damaged(rng, b'{"candidates": [{"text": "\xc3\xa9", "LM0": 1, "W": 2}]}\n')
    elif kind == 1:
        body = rng.choice((b"[" * 9000, b'{"candidates":' * 2000, b"9" * 5000, b'"\\ud800"'))
    elif kind == 2:
        body = b" " * rng.choice((LIMIT - 10, LIMIT + 10, 3 * LIMIT)) + body
    headers = {"Content-Type": rng.choice(_TYPES_OF_BODIES).encode("latin-1")}
    path = rng.choice(_PATHS)
    service = application(
        partial(bpa.Reranker, sample_draws(), unchecked=True), Limits(max_body=LIMIT)
    )
    transport = httpx.ASGITransport(service)

    async def status_of() -> int:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.post(path, content=body, headers=headers)).status_code

    status = asyncio.run(status_of())
    if not (status == 200 or 400 <= status < 500):
        raise Failure(f"status {status}")
    return None if status == 200 else REFUSED


@area("responses", 1_500, names_file=True)
def responses(rng: random.Random, folder: Path) -> None:
    """Responses of chats and completions, and batches, with other values, types and fields."""
    files = ("openai-batch.jsonl", "openai-completions.jsonl")
    lines = [line for name in files for line in (GOLDEN / name).read_text().splitlines()]
    records = [json.loads(line) for line in rng.sample(lines, rng.choice((1, 2, 4)))]
    for _ in range(rng.choice((1, 1, 2, 3))):
        records = changed(records, rng, odd_json)
    path = folder / "responses.jsonl"
    rows = records if isinstance(records, list) else [records]
    write_lines(path, map(json.dumps, rows))
    bad, format = rng.choice(("drop", "drop", "error")), rng.choice(("auto", "openai"))
    bpa.read_nbest(path, format=format, bad=bad)


_PAGE = Path(__file__).resolve().parents[2] / "docs" / "extras" / "other-tools.md"
#: Records of other tools, by their kind.
_OF_TOOLS = [
    (kind, json.loads(shown) if shown.startswith("{") else shown)
    for shown_all in re.findall(r"```text\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL)
    for kind, shown in (line.split(None, 1) for line in shown_all.splitlines())
]


@area("converters", 1_500, names_file=True)
def converters(rng: random.Random, folder: Path) -> None:
    """Records of other tools with other values, types and fields: what is converted is read."""
    kind, record = rng.choice(_OF_TOOLS)
    path, records = folder / "records", [record, record]
    for _ in range(rng.choice((1, 1, 2, 3))):
        records = changed(records, rng, odd_json)
    if isinstance(record, str):
        path.write_bytes(damaged(rng, f"{record}\n{record}\n".encode()))
        lists = getattr(convert, kind)(read_text_lines(path))
    else:
        rows = records if isinstance(records, list) else [records]
        path.write_text(rng.choice(("\n".join(map(json.dumps, rows)), json.dumps(rows, indent=1))))
        lists = getattr(convert, kind)(read_json(path))
    write_lists(lists, folder / "lists.jsonl")
    read = (folder / "lists.jsonl").read_text("utf-8").split("\n")[:-1]
    if list(map(json.loads, read)) != lists:
        raise Failure(f"{lists} are written as {read}")


_PHRASES = [
    b"un ||| a ||| 3\nun ||| one ||| 1\nle chat ||| the cat ||| 2.5\n",
    b"un ||| a ||| 0-0\nun ||| one ||| 0-0\nle chat ||| the cat ||| 0-0 1-1\n",
    b"un ||| a ||| 0.6 0.75\nun ||| one ||| 0.9 0.25\n",
    b"un ||| a ||| 0.6 0.5 0.75 0.5 ||| 0-0 ||| 3 4 3\nun ||| one ||| 0.9 1 0.25 1 ||| ||| 1 4 1\n",
]


@area("phrase tables", 15_000, names_file=True)
def phrase_tables(rng: random.Random, folder: Path) -> None:
    """Phrase tables of Moses, counts and the output of `extract`."""
    path = folder / "table"
    path.write_bytes(damaged(rng, rng.choice(_PHRASES)))
    if rng.randrange(2):
        read_counts(path).find_marginals("source", ["un"])
    else:
        write_table(read_table(path), folder / "again.parquet")


_ARPA = b"""\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1.5\t<unk>
-99\t<s>\t-0.5
-0.5\t</s>
-1\ta\t-0.25

\\2-grams:
-0.2\t<s> a
-0.3\ta </s>

\\end\\
"""


@area("language models", 9_000)
def language_models(rng: random.Random, folder: Path) -> None:
    """ARPA files, and text that models are trained on."""
    content = damaged(rng, rng.choice((_ARPA, _ARPA, b"a cat\nthe cat sat\n" * 3)))
    if rng.random() < 0.2:
        counts = b"=99999999999999", b"=" + b"9" * 5000, b"=-1", b"=1e9", b"="
        content = content.replace(b"=2", rng.choice(counts))
    (folder / "model").write_bytes(content)
    read_or_train([folder / "model"]).score([["a", "cat"], [], ["<s>", "a\0"]])


_STUDY = b"""sizes = [1, 2]
draws = 2
seed = 3
methods = ["canonical", "imh", "mert", "mine"]
columns = ["mqm"]
[domains.one]
weights = "weights"
adapt = "lists"
adapt_references = ["ref"]
held_out = 1
[domains.two]
weights = "weights"
adapt = "lists"
adapt_references = ["ref"]
test = "lists"
test_references = ["ref"]
first_id = 0
[variants.mine]
like = "imh"
likelihood = "margin"
gamma = 4
[sweeps.prior]
setting = "variance"
values = [0.01, 1.0]
methods = ["imh"]
sizes = [2]
"""
_STUDY_WORDS = [
    *("inf", "nan", "-1", "1e400", "9" * 30, "9" * 5000, "true", "[]", "{}", '""', "'a'", "[[]]"),
    *('"/dev/zero"', '"fifo"', '"."', '"none"', '"\\u0000"', "2026-01-01", "0x10", '"numpyro:HMC"'),
    *('"imh"', '["imh", "imh"]', "[0]", "{a=1}", "[" * 2000, "{a=" * 500, '"""', '"numpyro:x"'),
]


@area("studies", 4_000)
def studies(rng: random.Random, folder: Path) -> None:
    """Study files: damaged TOML, values of other types, paths that are no files."""
    for name, content in (("lists", LISTS), ("ref", REFERENCES), ("weights", b"LM0= 0.5\n")):
        (folder / name).write_bytes(content)
    odd_path(rng, folder)
    rows = _STUDY.decode().splitlines()
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.choice([n for n, row in enumerate(rows) if " = " in row])
        rows[place] = f"{rows[place].partition(' = ')[0]} = {rng.choice(_STUDY_WORDS)}"
    study = damaged(rng, _STUDY) if rng.random() < 0.4 else "\n".join(rows).encode()
    (folder / "study.toml").write_bytes(study)
    read_study(folder / "study.toml")


@area("judgements", 4_000)
def judgements(rng: random.Random, folder: Path) -> None:
    """Columns of judgements, and preferences, with values of any type."""
    first = {"text": "a cat", "lm": -1.5, "mqm": 1, "rank": None}
    others = [{"text": "the cat", "lm": 1, "mqm": -2.5}, {"text": "b", "lm": 0.0, "mqm": 1}]
    record = {"id": 0, "source": "un chat", "references": ["the cat"], "rankings": [[2, 0, 1]]}
    record |= {"candidates": [first, *others], "preferences": [[0, 1], [1, 2]], "ties": [[0, 2]]}
    odd = rng.choice((odd_json, odd_value))
    records: Any = [record, {**record, "id": 1}]
    for _ in range(rng.choice((1, 1, 2, 3))):
        records = changed(records, rng, odd)
    metric = rng.choice(("mqm", "-mqm", "rank", "lm", "ter"))
    draws = Draws({"weights": np.ones((1, 4, 1))}, ("lm",))
    uses: list[Callable[[NBest], Any]] = [
        lambda nbest: gains(nbest, metric),
        lambda nbest: oracles(nbest, metric),
        choice_sets,
        lambda nbest: bpa.rerank(nbest, draws, unchecked=True),
    ]
    lists = from_records(records)
    rng.choice(uses)(lists)


@area("posteriors", 600)
def posteriors(rng: random.Random, folder: Path) -> None:
    """Posteriors with bytes changed, moved, cut or repeated."""
    path = folder / "posterior.nc"
    bpa.write_posterior(sample_draws(), path)
    content = path.read_bytes()
    if rng.random() < 0.5:  # a few bytes, so that the file is read further
        changeable = bytearray(content)
        for _ in range(rng.choice((1, 2, 8))):
            changeable[rng.randrange(8, len(content))] = rng.choice((0, 1, 255, rng.randrange(256)))
        content = bytes(changeable)
    else:
        content = edited(content, random_edits(rng))
    path.write_bytes(content)
    read = rng.choice((read_draws, bpa.read_posterior))
    draws = bpa.as_draws(read(path))
    bpa.point_weights(draws, unchecked=True)
    _ = draws.importance, draws.deviation, draws.interval(0.9), draws.pointwise
    bpa.rerank(sample_lists(), draws, unchecked=True)


@area("other posteriors", 300)
def other_posteriors(rng: random.Random, folder: Path) -> None:
    """Draws in the forms of other programs, with other variables, dimensions and labels."""
    sizes = {"chain": 2, "draw": rng.choice((0, 1, 5)), "feature": 2, "beta_dim_0": 3, "sample": 4}
    variables = {}
    names = ["weights" if rng.random() < 0.7 else "theta"]
    for name in names + rng.sample(("b_lm", "Intercept", "beta", "1|judge", "lp__"), 2):
        usual = ("chain", "draw", "feature")
        dims = rng.choice((usual, usual, ("chain", "draw"), tuple(sizes)))
        dims = tuple(rng.sample(dims, rng.randint(0, len(dims))) if rng.random() < 0.3 else dims)
        variables[name] = (dims, np.ones([sizes[dim] for dim in dims]))
    labels: dict[str, Any] = {"feature": ["LM0", "W"]} if rng.random() < 0.7 else {}
    data = xarray.Dataset(variables, labels)
    arrays = {name: array for name, (_, array) in variables.items()}
    group = rng.choice(("posterior", "posterior", "prior"))
    other = data.isel(chain=[0]) if "chain" in data.dims else data
    tree = xarray.DataTree.from_dict({group: data, "log_prior": other})
    odd: list[Any] = [arrays, [arrays], data.to_dict(), None, folder]
    form = rng.choice([data, xarray.DataTree(data), tree, to_arviz_data(tree), rng.choice(odd)])
    draws = bpa.as_draws(form)
    bpa.write_posterior(form, folder / "posterior.nc")
    bpa.rerank(sample_lists(), draws, unchecked=True)


@area("recipes", 400)
def recipes(rng: random.Random, folder: Path) -> None:
    """Posteriors whose recipe of features has other values, paths that are no files, and depth."""
    (folder / "text").write_text("the cat\na cat\nun chat\n" * 4)
    text = str(folder / "text")
    sources: dict[str, dict[str, Any]] = {
        "lm": {"text": text},
        "lexicon": {"pairs": (text, text)},
        "length": {},
        "consensus": {"metric": "chrf"},
    }
    name = rng.choice(list(sources))
    (source,) = resolve_sources([FEATURES.resolve(name, sources[name])])
    names = bpa.add_features(sample_lists(), source).feature_names
    recipe = RecipeRecord(sources=record_sources([with_absolute_paths(source)], [names[2:]]))
    records = json.loads(json.dumps(to_attributes(Record(recipe=recipe))["feature_sources"]))
    deep: Any = 0
    for _ in range(rng.choice((50, 900, 5000))):
        deep = [deep]
    path = odd_path(rng, folder)
    for _ in range(rng.choice((1, 1, 2))):
        odd = rng.choice((odd_json, odd_json, lambda _: path, lambda _: [path], lambda _: deep))
        records = changed(records, rng, odd)
    record = from_attributes({"feature_sources": records})
    draws = Draws({"weights": np.ones((1, 5, len(names)))}, names, record=record)
    bpa.write_posterior(draws, folder / "posterior.nc")
    bpa.rerank(sample_lists(), read_draws(folder / "posterior.nc"), unchecked=True)


#: Types of columns with values, some of which are odd in a table of lists.
_TYPES: list[tuple[pa.DataType, list[Any]]] = [
    *((pa.string(), ["a cat", "", "\0", "0", "doc-1", "nan", "b" * 999]) for _ in range(3)),
    *((kind, [0, 1, 2, 100]) for kind in (pa.int64(), pa.int8(), pa.uint64(), pa.date32())),
    *((kind, [0.0, -1.5, np.nan, np.inf]) for kind in (pa.float64(), pa.float32(), pa.float64())),
    *((kind, ["a cat", ""]) for kind in (pa.large_string(), pa.string_view())),
    *((kind, [1, 2]) for kind in (pa.decimal128(20, 3), pa.timestamp("us", "UTC"))),
    *((pa.bool_(), [True, False]), (pa.binary(), [b"a", b"\xff"]), (pa.null(), [None])),
    (pa.list_(pa.string()), [["a"], ["a", "b"], [], ["b"] * 500]),
    (pa.large_list(pa.float64()), [[0.5], [1.0, np.nan], []]),
    (pa.list_(pa.struct({"text": pa.string(), "lm": pa.float64()})), [[{"text": "a"}], []]),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
]
_COLUMNS = [
    *("id", "text", "lm", "candidates", "source", "target", "reference", "references", "total"),
    *("reference[0]", "sentence.doc", "count", "source_count", "direct", "", "a.b", "preferences"),
]
_TABLE_READERS: list[Any] = [
    bpa.read_nbest,
    lambda path: list(bpa.iter_nbest(path, chunk=1)),
    lambda path: read_table(path).columns,
    lambda path: read_counts(path).find_marginals("source", ["un"]),
    Subdomains.load,
]


def _write_subdomains(rng: random.Random, path: Path) -> None:
    """Write subdomains without one of their columns, or with another column or other facts."""
    text = NumberedText.of([["a", "b"], ["c"]])
    weights = np.array([0.5, 0.5])
    Subdomains(text, text, rng.choice(([0, 1], [[0.5, 0.5], [1, 0]])), weights).save(path)
    table = pq.read_table(path)
    ((key, facts),) = table.schema.metadata.items()
    kind = rng.randrange(3)
    if kind == 0:
        table = table.drop_columns([rng.choice(table.column_names)])
    elif kind == 1:
        place = rng.randrange(table.num_columns)
        odd_type, values = rng.choice(_TYPES)
        column = pa.array(rng.choices([*values, None], k=len(table)), odd_type)
        table = table.set_column(place, table.column_names[place], column)
    else:
        facts = json.dumps(changed(json.loads(facts), rng, odd_json)).encode()
    pq.write_table(table.replace_schema_metadata({key: facts}), path)


@area("tables", 7_000, names_file=True)
def tables(rng: random.Random, folder: Path) -> str | None:
    """Parquet with bytes changed, or with other columns, types and nesting; and data frames."""
    path, read = folder / "table.parquet", rng.choice(_TABLE_READERS)
    if rng.random() < 0.4:
        if rng.random() < 0.5:
            bpa.write_nbest(sample_lists(), path)
        else:
            write_counts(PhraseCounts.of(["un", "le chat"], ["a", "the cat"], [3, 1]), path)
        if read is Subdomains.load:
            _write_subdomains(rng, path)
        else:
            path.write_bytes(edited(path.read_bytes(), random_edits(rng)))
        read(path)
        return None
    rows, columns = rng.choice((0, 1, 2, 3, 3, 40)), {}
    usual = (("id", 3), ("text", 0), ("lm", 7), ("source", 0), ("target", 0), ("count", 7))
    for name, kind in rng.sample(usual, rng.randint(2, 6)):
        columns[name] = _TYPES[kind]
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        columns[rng.choice([*columns, *_COLUMNS])] = rng.choice(_TYPES)
    arrays = [pa.array(rng.choices([*of, None], k=rows), kind) for kind, of in columns.values()]
    if rng.random() < 0.2 and not pa.types.is_nested(arrays[0].type):
        arrays[0] = arrays[0].dictionary_encode()
    table = pa.table(arrays, names=list(columns))
    if rng.random() < 0.3:
        bad = rng.choice(("error", "drop"))
        return verdict(lambda: from_records(table, bad=bad))
    size = rng.choice((1, 2, 1000))
    encoded = [of.value_type for of in table.schema.types if pa.types.is_dictionary(of)]
    if any(pa.types.is_string_view(of) or pa.types.is_null(of) for of in encoded):
        return REFUSED  # by Arrow, which does not write it
    pq.write_table(table, path, row_group_size=size)
    read(path)
    return None


_LISTS: dict[str, Any] = {
    "texts": [["a cat", "the cat"], ["b"]],
    "features": [[[1.0, 2.0], [0.5, 0.0]], [[3.0, 4.0]]],
    "feature_names": ["LM0", "W"],
    "references": ["the cat", ("b", "c")],
    "totals": [[0.0, 1.0], [2.0]],
    "sources": ["un chat", "b"],
    "extras": {"mqm": [[1, 2], [None]]},
    "sentence_extras": {"doc": ["x", "y"]},
    "sentence_ids": [0, 4],
}
_ARRAYS: dict[str, Any] = _LISTS | {
    **{name: [*chain(*_LISTS[name])] for name in ("texts", "features", "totals")},
    "sizes": [2, 1],
    "extras": {"mqm": [1, 2, None]},
}
_RECORDS: dict[str, Any] = {
    "records": [{"id": 0, "text": text, "lm": 1, "scores": {"tm": 1}} for text in "ab"],
    "references": ["the cat"],
    "sources": ["un chat"],
    "bad": "error",
    "first_id": 0,
}


def _of_lists(method: str, *arguments: Any, **named: Any) -> tuple[Callable[..., Any], Any]:
    """Return a method of lists and its valid arguments by position or name."""
    call = lambda args, named: getattr(sample_lists(), method)(*args, **named)  # noqa: E731
    return call, {"args": list(arguments), "named": named}


def _setting(registry: Any, name: str, **settings: Any) -> tuple[Callable[..., Any], Any]:
    return registry.resolve, {"chosen": name, "settings": settings}


#: Public functions with valid arguments, of which some are replaced.
_CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    *((from_lists, _LISTS), (from_arrays, _ARRAYS), (from_records, _RECORDS)),
    _of_lists("with_features", ["new"], [[1.0], [2.0], [3.0], [4.0]]),
    _of_lists("with_references", ["a", "b"]),
    _of_lists("with_extras", mqm=[1, 2, 3, 4]),
    _of_lists("select", [0, 1]),
    _of_lists("truncate", 1),
    _of_lists("scores", {"LM0": 1.0, "W": 0.5}),
    (
        lambda weights, defaults: match(weights, sample_lists(), defaults=defaults),
        {"weights": {"LM0": 1.0, "W": 2.0}, "defaults": {"LM0": 1.0}},
    ),
    (bpa.corpus_score, {"candidates": ["a cat"], "references": [("the cat",)], "metric": "ter"}),
    (lambda sources: bpa.add_features(sample_lists(), sources), {"sources": ["length"]}),
    (lambda oracle: tabulate(sample_lists(), oracle), {"oracle": [0, 1]}),
    (
        lambda **options: bpa.rerank(sample_lists(), sample_draws(), unchecked=True, **options),
        {"rule": "mean", "draws": 3, "defaults": {"W": 1.0}},
    ),
    _setting(SAMPLERS, "imh", draws=100, chains=2),
    _setting(GAINS, "bleu", order=4),
    _setting(LIKELIHOODS, "margin", gamma=1.0),
    _setting(TUNERS, "mira", epochs=3),
    _setting(FEATURES, "length", words=True),
]


@area("columns of users", 4_000, names_file=True)
def columns_of_users(rng: random.Random, folder: Path) -> str | None:
    """Rows of raters, lists, objects and missing numbers under names that the format gives."""
    numbers: list[Any] = [1, 2.5, -3, None, "None", "N/A", "-", "nan", float("nan"), "x", True, [4]]
    entries: list[Any] = [1, 2, None, "a", True, {"x": 3}, {"x": None, "y": 1}, [], 1e39]
    records = []
    for row in range(rng.randrange(1, 12)):
        record: dict[str, Any] = {
            "meta": {"id": row // 4, "n": row} if rng.random() < 0.95 else odd_json(rng),
            "message": {"content": rng.choice("ab"), "role": "x"},
            "rater": rng.choice([*"uvw", 7, None] if rng.random() < 0.1 else "uvwxyz"),
            "lm": rng.choice(numbers[: rng.choice((3, 9, 12))]),
            "by": [rng.choice(entries[: rng.choice((2, 9))]) for _ in range(rng.randrange(4))],
            "doc": {"q": rng.choice(("one", None))},
        }
        if rng.random() < 0.1:
            record = changed(record, rng, odd_json)
        records.append(record)
    name = rng.choice(("jsonl", "jsonl", "parquet", "csv", "records"))
    path = folder / f"lists.{name}"
    settings = f"id=meta.id,text=message.{rng.choice(('content', 'content', 'content', 'no'))}"
    if name != "csv":
        settings += rng.choice(("", "", ",source=doc.q", ",source=doc.z", ",reference=doc.q"))
    flat = []
    for of in records if name in ("records", "csv") else ():
        if not (isinstance(of, dict) and {"meta", "message", "rater", "lm"} <= of.keys()):
            continue
        if isinstance(of["meta"], dict) and isinstance(of["message"], dict):
            flat.append({"id": of["meta"].get("id"), "text": of["message"].get("content"), **of})
    if name == "records":
        return verdict(lambda: bpa.describe(from_records(flat)))
    if name == "csv":
        names = {"id": "meta.id", "text": "message.content", "rater": "rater", "lm": "lm"}
        rows = [{own: row[usual] for usual, own in names.items()} for row in flat]
        write_lines(path, lines_of(rows, list(names.values()), ".csv"))
    elif name == "parquet":
        try:
            pq.write_table(pa.Table.from_pylist(records), path)
        except (pa.ArrowException, TypeError, OverflowError, ValueError, AttributeError):
            return REFUSED  # not by us
    else:
        write_lines(path, map(json.dumps, records))
    chunk = rng.randrange(1, 3)
    str(bpa.describe(bpa.read_nbest(path, format=f"{name}:{settings}")))
    list(bpa.iter_nbest(path, format=f"{name}:{settings}", chunk=chunk))
    return None


#: Values of features that are missing, or no numbers.
_ODD_VALUES = [None, math.nan, "", "x", "85%", "1", "None", True, [1], math.inf, 1e61]


@area("roles of columns", 2_000)
def roles_of_columns(rng: random.Random, folder: Path) -> str | None:
    """Declared features, some of them incomplete: they are as in the file, or refused."""
    name, count = rng.choice(("jsonl", "csv", "tsv", "parquet", "records")), rng.randrange(1, 9)
    names = rng.sample(("lm", "judge_a", "judge_b", "Unnamed: 0", "tm[0]", "tm[1]", "year"), 4)
    columns: dict[str, list[Any]] = {
        column: [rng.choice((0.5, -1.25, 7.0, 1e-9, 3.0)) for _ in range(count)] for column in names
    }
    odd = rng.choice(_ODD_VALUES[: 1 if name == "parquet" else None])
    place = rng.randrange(count)
    is_odd = rng.random() < 0.4
    if is_odd:
        columns[names[0]][place] = "" if odd is None and name in ("csv", "tsv") else odd
    declared = rng.choice((names[:1], names[1:], names[1:3], ["*"], ["judge_*"], ["tm"], []))
    roles: dict[str, Any] = {"features": declared}
    if rng.random() < 0.3:
        roles["missing"] = rng.choice((-9.0, {names[0]: -9.0}))
    if rng.random() < 0.3:
        roles["exclude"] = rng.sample(names, 1)
    columns |= {"id": [row // 3 for row in range(count)], "text": rng.choices("ab", k=count)}
    order = rng.sample(list(columns), len(columns))
    cells = zip(*(columns[column] for column in order), strict=True)
    rows = [dict(zip(order, row, strict=True)) for row in cells]
    path = folder / f"lists.{name}"
    if name == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        write_lines(path, lines_of(rows, order, f".{name}"))
    lists = from_records(rows, **roles) if name == "records" else bpa.read_nbest(path, **roles)
    printed = name in ("csv", "tsv")
    for column in lists.feature_names:
        for value, found in zip(columns[column], read_column(lists, column), strict=True):
            absent = value is None or value == "" or value != value
            number = float(value) if printed and value == "1" else -9.0 if absent else value
            if isinstance(number, bool) or found != number:
                raise Failure(f"{column} is {found}, not {value!r}: {rows}")
    for column, values in lists.extras.items():
        if column in declared and column not in roles.get("exclude", ()):
            raise Failure(f"{column} is an extra: {roles}")
        if not printed and is_odd and column == names[0] and odd == odd and values[place] != odd:
            raise Failure(f"the extra {column} is {values}: {rows}")
    return None


@area("arguments", 12_000)
def arguments(rng: random.Random, folder: Path) -> None:
    """Public functions and constructors with arguments of other types, shapes and values."""
    function, valid = rng.choice(_CALLS)
    options = dict(valid)
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(list(options))
        odd = rng.choice((odd_value, odd_value, odd_array))
        if name == "args":  # as many as the function has
            options[name] = [changed(value, rng, odd) for value in options[name]]
        elif name in ("named", "settings"):
            options[name] = {key: changed(value, rng, odd) for key, value in options[name].items()}
        else:
            options[name] = changed(options[name], rng, odd)
    function(**options)


@area("formulas", 3_000)
def formulas(rng: random.Random, folder: Path) -> None:
    """Weights for other programs, with odd names: each chooses as the rule `mean`."""
    numbers, size = np.random.default_rng(rng.randrange(1 << 30)), rng.randint(1, 4)
    every = ["am", "lm", "a,b", 'say "x"', "é", "1", "a=b", "# c", "x y", "\\"]
    names = rng.sample(every, size + 1)
    scale = 10.0 ** rng.choice((-30, -3, 0, 0, 3, 30))
    kind = rng.choice(("chains", "chains", "weighted", "point"))
    shape = (1, 1) if kind == "point" else (2, 50)
    weights = scale * numbers.normal(rng.choice((0.0, 3.0)), 1.0, (*shape, size))
    weights *= rng.choice((0, 1, 1, 1, 1))
    fixed = bpa.Weights({names[size]: rng.choice((0.0, 2.0, -scale))} if rng.random() < 0.5 else {})
    log_weight = numbers.normal(size=shape) if kind == "weighted" else None
    draws = Draws({"weights": weights}, tuple(names[:size]), kind, log_weight, fixed=fixed)
    program, point = rng.choice((*FORMULAS, *FORMULAS, "icefall")), draws.at_point()
    text = format_weights(draws, program, point, rng.choice((None, None, *names)))
    lines = text.splitlines()
    if program in ("trl", "trulens"):
        order, row = json.loads(lines[0].partition(": ")[2]), lines[-1].partition("= ")[2]
        found = dict(zip(order, json.loads(row), strict=True))
    elif program == "lm-scale":
        pairs = (row.rpartition("= ") for row in lines[1:])
        found = {name: float(value) for name, _, value in pairs}
    else:
        content = json.loads(text)
        if program == "opensearch":
            model = content["model"]["model"]
            assert not model["feature_normalizers"]
            found = json.loads(model["definition"])
        elif program == "elasticsearch":
            query = content["rescore"]["query"]["rescore_query"]
            found = query["script_score"]["script"]["params"]["weights"]
        else:
            found = content["weights"]
    expected = np.array(list(point.values()))
    values = np.array([found[name] for name in point])
    if not np.allclose(values / np.abs(values).max(), expected / np.abs(expected).max(), atol=1e-9):
        raise Failure(f"{found}, not {point}")


@area("asking", 500)
def asking(rng: random.Random, folder: Path) -> None:
    """Choices that are sure, or asked about: all that are at least as probable are sure, too."""
    count, odd = rng.choice((0, 1, 2, 30, 600)), (0.0, 0.5, 1.0, 1e-12, 1 - 1e-12)
    shares = (rng.choice(odd) if rng.random() < 0.2 else rng.random() ** 0.3 for _ in range(count))
    predictions = tuple((p, rng.choice((0.5, 1.0, 1.0))) for p in shares)
    comparison = msgspec.to_builtins(
        BaselineComparison((), "accuracy", "", predictions=predictions)
    )
    weights = np.random.default_rng(count).normal(1.0, 0.2, (2, 50, 2))
    draws = Draws({"weights": weights}, ("LM0", "W"), record=Record(comparison=comparison))
    value = rng.choice((0.6, 0.85, 0.9, 0.99, 1, odd_value(rng)))
    options = {rng.choice(("agree", "agree", "ask_below")): value}
    ask = folder / rng.choice(("unsure.jsonl", "unsure.jsonl.gz", "unsure.jsonl", "unsure.txt"))
    reranker = bpa.Reranker(draws, unchecked=True, **options)
    result = reranker(sample_lists())
    summary = rerank_to(sample_lists(), reranker, folder / "chosen.txt", ask=ask)
    p, sure, threshold = result.probability, result.sure, reranker.ask_below
    if sure is None or threshold is None or sure.tolist() != (p >= threshold).tolist():
        raise Failure(f"sure are {sure} of {p} from {threshold} on")
    asked = len(bpa.read_nbest(ask)) if summary.unsure else 0
    if not summary.unsure == asked == (~sure).sum():
        raise Failure(f"{summary.unsure} lists are asked about, {asked} written, not {~sure}")


@area("judges", 60)
def judges_of_pairs(rng: random.Random, folder: Path) -> None:
    """What judges are worth: copies, constants, ties, huge numbers and few pairs."""
    numbers, count, size = np.random.default_rng(rng.randrange(1000)), rng.choice((2, 3, 12)), 3
    features = numbers.normal(size=(count, 2, size))
    for column in range(size):
        kind = rng.randrange(6)
        if kind == 0:
            features[..., column] = features[..., 0]
        elif kind == 1:
            features[..., column] = rng.choice((0.0, 1.0, 1e30))
        elif kind == 2:
            features[..., column] *= 10.0 ** rng.choice((-30, -6, 6, 30))
        elif kind == 3:
            features[..., column] = features[..., column].round()
    lists = from_lists([["a", "b"]] * count, features, ["x", "y, z", "é"])
    answers = [rng.choice(([[0, 1]], [[0, 1]], [[1, 0]], None)) for _ in range(count)]
    ties = [[[0, 1]] if rng.random() < 0.2 else None for _ in range(count)]
    lists = lists.with_sentence_extras(preferences=answers)
    lists = lists.with_sentence_extras(ties=ties) if rng.random() < 0.3 else lists
    priced = rng.sample(["x", "y, z", "é", "no"], 2)
    prices = {name: rng.choice((1.0, 2.0, 2.0, *NUMBERS)) for name in priced}
    sampler = rng.choice(("laplace", "map"))
    posterior = bpa.adapt(lists, sampler=sampler)
    options = {"prices": rng.choice(({}, prices)), "cascade": rng.random() < 0.4}
    result = judges(posterior, lists, **options)
    str(result), json.dumps(result.as_dict(), allow_nan=False)
    number, low, high, good = result.effective
    assert all(row.low <= row.weight <= row.high and 0.5 <= row.sign <= 1 for row in result.rows)
    assert all(abs(row.lost) <= 1 for row in (*result.rows, *result.juries))
    assert 0 <= low <= high <= good
    assert 0 <= number <= good
    assert np.abs(result.correlation).max() <= 1 + 1e-6
    assert all(0 <= gain <= 1 for _, gain in result.curve)
    assert all(0 <= value <= 1 for value in result.remaining)
    if (cascade := result.cascade) is not None:
        assert 0.5 <= cascade.below <= 1
        assert 0 <= cascade.share <= 1
        assert 0 <= cascade.saved <= 1


#: Distributions of three numbers, some of which cannot be those of weights or are hard to sample.
_OF_SITES: dict[str, Callable[[Any], Any]] = {
    "the prior": lambda prior: prior.distribution(),
    "above 0": lambda prior: dist.HalfNormal(1.0).expand([3]).to_event(1),
    "far away": lambda prior: dist.Uniform(2.0, 3.0).expand([3]).to_event(1),
    "below 0": lambda prior: dist.TruncatedNormal(high=-0.5).expand([3]).to_event(1),
    "simplex": lambda prior: dist.Dirichlet(jnp.ones(3)),
    "heavy": lambda prior: dist.Pareto(1.0, 2.0).expand([3]).to_event(1),
    "no event": lambda prior: dist.Normal(0.0, 1.0).expand([3]),
    "one number": lambda prior: dist.Normal(0.0, 1.0),
    "improper": lambda prior: dist.ImproperUniform(constraints.real_vector, (), (3,)),
    "constant": lambda prior: dist.Delta(jnp.ones(3), event_dim=1),
    "not a number": lambda prior: dist.Normal(0.0, jnp.nan).expand([3]).to_event(1),
    "whole numbers": lambda prior: dist.Poisson(1.0).expand([3]).to_event(1),
}
_OF_VALUES: dict[str, Callable[[Any], Any]] = {
    "same": lambda x: x,
    "minus": lambda x: -x,
    "exp": jnp.exp,
    "log": jnp.log,
    "root": lambda x: jnp.sqrt(jnp.abs(x)),
    "inverse": lambda x: 1 / x,
    "zero": lambda x: 0.0 * x,
    "some": lambda x: x[:2],
    "if": lambda x: x if x[0] > 0 else -x,
}


@area("own models", 200)
def own_models(rng: random.Random, folder: Path) -> None:
    """NumPyro programs with odd priors, transformations, factors, plates and sites."""
    usual = {"prior": "the prior", "change": "same", "site": "weights", "observed": "weights"}
    odd = {
        "prior": list(_OF_SITES),
        "change": list(_OF_VALUES),
        "site": ["raw", "lambda"],
        "observed": ["nothing", "constant", "other", "twice", "no plate"],
        "factor": [0.0, -np.inf, np.inf, np.nan, "steep"],
        "more": ["scale", "weights", "sentence"],
    }
    given = usual | {
        name: rng.choice(odd[name]) for name in rng.sample(list(odd), rng.choice((1, 2)))
    }
    prior_of, change, site, observed = map(given.__getitem__, usual)
    factor, more = given.get("factor"), given.get("more")

    def model(lists: Any, prior: Any, likelihood: Any) -> None:
        value = weights = _OF_VALUES[change](numpyro.sample(site, _OF_SITES[prior_of](prior)))
        if site == "raw":
            numpyro.deterministic("weights", value)
        if more is not None:
            numpyro.sample(more, dist.LogNormal(0.0, 1.0))
        if factor is not None:
            steep = jnp.linalg.norm(0.0 * value)
            numpyro.factor("bound", steep if factor == "steep" else factor + 0.0 * value.sum())
        if observed in ("constant", "other"):
            weights = jnp.ones(3)
            if observed == "other":
                weights = numpyro.sample("other", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
        if observed == "no plate":
            likelihood.observe(lists, weights)
        for _ in range({"nothing": 0, "no plate": 0, "twice": 2}.get(observed, 1)):
            with numpyro.plate("sentence", len(lists.oracle)):
                likelihood.observe(lists, weights)

    numbers = np.random.default_rng(rng.randrange(1000))
    lists = from_lists([["a", "b", "c"]] * 5, numbers.normal(size=(5, 3, 3)), ["x", "y", "z"])
    lists = lists.with_extras(judged=numbers.normal(size=15))
    posterior = bpa.adapt(lists, gain="judged", model=model, sampler="map")
    weights = posterior["posterior"]["weights"].values
    assert weights.shape[-1] == 3
    assert np.isfinite(weights).all()
    if change == "same" and prior_of in ("above 0", "far away"):
        assert weights.min() >= {"above 0": 0, "far away": 2}[prior_of]


@area("extreme numbers", 12)
def extreme_numbers(rng: random.Random, folder: Path) -> None:
    """Adaptation to features, weights and priors of any size."""
    numbers = np.random.default_rng(rng.randrange(1000))
    sizes = [rng.choice((1, 2, 5)) for _ in range(rng.choice((1, 4)))]
    columns = rng.choice((1, 2, 3))
    scales = [10.0 ** rng.choice((-60, -45, -8, 0, 0, 0, 8, 38, 59)) for _ in range(columns)]
    features = [numbers.normal(size=(size, columns)) * scales for size in sizes]
    for table in features:
        if rng.random() < 0.3:
            value = rng.choice((0.0, 1e60, -1e60, 1e-200))
            table[rng.randrange(len(table)), rng.randrange(columns)] = value
    names = [f"f{k}" for k in range(columns)]
    equal = dict.fromkeys(names, rng.choice((0.0, 1.0, 1e-300, 1e30, 1e308, -1.0)))
    weights = rng.choice([None, "equal", equal])
    options: dict[str, Any] = {}
    if rng.random() < 0.5:
        variance = rng.choice((1e-300, 1e-30, 1e-3, 1.0, 1e30, 1e300))
        options["prior"] = f"isotropic:variance={variance}"
    sampler = rng.choice(("map", "laplace", "imh", "auto", "rwm", "heuristic", "nuts"))
    texts = [[f"w{h} x" for h in range(size)] for size in sizes]
    lists = from_lists(texts, features, names, references=["w0 x"] * len(sizes))
    draws = bpa.as_draws(bpa.adapt(lists, weights, sampler=sampler, **options))
    bpa.rerank(lists, draws, unchecked=True)
