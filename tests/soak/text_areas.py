"""Areas of text: lists, weights, references, packed files, priors, tables, models, studies."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from attempts import area, changed, odd_array, odd_json, odd_path, odd_value, verdict
from fuzzing import (
    edited,
    examine,
    examine_weights,
    names,
    random_edits,
    subject,
    weight_samples,
)

from bpa_ppl import (
    Draws,
    NBest,
    Prior,
    gains,
    iter_nbest,
    oracles,
    read_nbest,
    read_references,
    read_weights,
    rerank,
)
from bpa_ppl.experiments import read_study
from bpa_ppl.phrases import read_counts, read_pairs, read_table, write_table
from bpa_ppl.quality.preferences import choice_sets
from bpa_ppl.registry import WEIGHT_FORMATS
from bpa_ppl.text.arpa import read_arpa
from bpa_ppl.text.model_files import model_of

LISTS = b"""0 ||| a cat ||| LM0= -1.5 ||| -1
0 ||| the cat ||| LM0= -1 ||| -1
1 ||| b ||| LM0= 2 ||| 1
"""
REFERENCES = "the cat\nun café noir\n".encode()
WEIGHTS = {"LM0": 1.0}


def sample_lists() -> NBest:
    """Return two small lists."""
    return NBest.from_lists(
        [["a cat", "the cat"], ["un café", "b"]],
        [[[-1.5, 0.5], [-1.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]]],
        ["LM0", "W"],
        references=["the cat", "un café noir"],
        sources=["un chat", "un café"],
    )


@area("lists", 2_500)
def lists(rng: random.Random, folder: Path) -> str:
    """Files of lists in all formats, read at once, as streams and in blocks."""
    tried = subject(rng.choice(names()), folder)
    sample = rng.choice(tried.samples)
    return examine(tried, sample, edited(sample, random_edits(rng)), folder)


@area("weights", 16_000)
def weights(rng: random.Random, folder: Path) -> str:
    """Files of weights in all formats."""
    name = rng.choice(list(WEIGHT_FORMATS))
    content = edited(rng.choice(weight_samples(name)), random_edits(rng))
    return examine_weights(name, content, folder / "weights")


@area("references", 12_000)
def references(rng: random.Random, folder: Path) -> str:
    """References and sources: other encodings and line ends, long lines, objects in memory."""
    (folder / "lists").write_bytes(LISTS)
    path = folder / "ref"
    with_ids = b'{"id": "1", "reference": "a"}\n{"id": 0, "references": ["b"]}\n'
    samples = REFERENCES, b"id\ttext\n1\tthe cat\n\n0\tun caf\xc3\xa9\n", with_ids
    path.write_bytes(_text(rng, rng.choice(samples)))
    kind = rng.randrange(7)
    written = rng.choice((int, str, float, "s{}".format))
    records = [{"id": written(n), "text": "a"} for n in rng.sample(range(4), 3)]

    def use() -> None:
        if kind == 0:
            read_references(path)
        elif kind == 1:
            read_references([path, folder / "lists", path][:: rng.choice((1, 2))])
        elif kind == 2:
            gains(read_nbest(folder / "lists", references=path), cache=False)
        elif kind == 3:
            read_nbest(folder / "lists", sources=path)
        elif kind == 4:
            some = {rng.choice((0, "1", 2.0, "s3", odd_value(rng, 0))): odd_value(rng)}
            references = rng.choice((some, ["a"] * rng.randint(2, 5)))
            NBest.from_records(records, references=references, first_id=rng.randint(0, 1))
        elif kind == 5:
            list(iter_nbest(folder / "lists", references=odd_value(rng), chunk=1))
        else:
            read_references(odd_path(rng, folder, endless=False))

    return verdict(use)


def _text(rng: random.Random, sample: bytes) -> bytes:
    """Return text that is damaged, in another encoding, or out of proportion."""
    kind, text = rng.randrange(12), sample.decode()
    if kind == 0:
        return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig")))
    if kind == 1:
        return sample.replace(
            b"\n", rng.choice((b"\r", b"\r\n", b"\n\r", b"\x0b", b"\xe2\x80\xa8"))
        )
    if kind == 2:
        return sample + "\ud800\udfff".encode(errors="surrogatepass")
    if kind == 3:
        return rng.choice((b"a", b"a ", b"\n", b"\xcc\x81", b"\0")) * 10 ** rng.choice(
            (3, 3, 4, 4, 5, 6)
        )
    if kind == 4:
        return rng.randbytes(rng.randrange(200))
    return edited(sample, random_edits(rng))


@area("packed", 1_000)
def packed(rng: random.Random, folder: Path) -> str:
    """Files that unpack to far more than they hold, or are cut, nested, joined or damaged."""
    line = rng.choice((LISTS, REFERENCES, b"a " * 99, b"LM0= 0.5\n", b"0", b"\n", b"\0"))
    content = line * (1 + rng.choice((1, 10, 1 << 16, 1 << 21, 1 << 23)) // len(line))
    packers = [
        lambda data: gzip.compress(data, 1),
        lambda data: bz2.compress(data[: 1 << 20]),
        lambda data: lzma.compress(data[: 1 << 21], preset=0),
        lambda data: zstandard.compress(data, rng.choice((1, 3))),
        lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data),
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
    read = rng.choice(
        [
            read_nbest,
            lambda path: sum(len(part) for part in iter_nbest(path, chunk=1)),
            lambda path: read_nbest(path.read_bytes()),
            read_weights,
            read_references,
            read_table,
            read_counts,
            read_arpa,
            read_study,
            Prior.read,
        ]
    )
    os.environ["BPA_PPL_UNPACKED_LIMIT"] = rng.choice(
        ("0.001", "0.003", "0.001", "1e-9", "nan", "-1")
    )
    try:
        return verdict(lambda: read(path))
    finally:
        del os.environ["BPA_PPL_UNPACKED_LIMIT"]


@cache
def _priors(folder: Path) -> list[bytes]:
    diagonal = Prior.isotropic({"LM0": 0.5, "W": -1.0, "TM0[0]": 0.0}, [0.1, 0.2, 0.3])
    means = {"LM0": 0.5, "W": -1.0}
    full = Prior.gaussian(means, [[0.2, 0.1], [0.1, 0.2]])
    contents = []
    for prior in (diagonal, full):
        prior.write(folder / "prior.json", {"made_from": ["talks"]})
        contents.append((folder / "prior.json").read_bytes())
    return contents


@area("priors", 16_000)
def priors(rng: random.Random, folder: Path) -> str:
    """Priors in JSON and as arrays: wrong shapes and types, numbers of all sizes."""
    sample = rng.choice(_priors(folder))
    path = folder / "prior.json"
    kind = rng.randrange(4)
    if kind == 0:
        path.write_bytes(_text(rng, sample))
    elif kind < 3:
        record = json.loads(sample)
        for _ in range(rng.choice((1, 1, 2))):
            record = changed(record, rng, odd_json)
        text = json.dumps(record, ensure_ascii=rng.random() < 0.5)
        path.write_text(text, "utf-8", errors="surrogatepass")

    def use() -> None:
        if kind == 3:
            means = changed({"LM0": 0.5, "W": -1.0}, rng, odd_value)
            spread = changed([[0.2, 0.1], [0.1, 0.2]], rng, rng.choice((odd_value, odd_array)))
            build = rng.choice((Prior.gaussian, Prior.isotropic))
            prior = build(means, spread)
        else:
            prior = Prior.read(path)
        if not (np.isfinite(prior.mean).all() and np.isfinite(prior.full_covariance).all()):
            raise AssertionError(f"the prior is not finite: {prior}")
        names = tuple(prior.names or ())
        prior.sample(np.random.default_rng(0), 3)
        prior.matched(names[::-1])
        prior.completed(Prior.isotropic({"LM0": 0.0, "new": 0.0}))
        prior.conditioned(dict.fromkeys(names[:1], 1.0))
        prior.write(folder / "again.json")

    return verdict(use)


_PHRASES = [
    b"un ||| a ||| 3\nun ||| one ||| 1\nle chat ||| the cat ||| 2.5\n",
    b"un ||| a ||| 0-0\nun ||| one ||| 0-0\nle chat ||| the cat ||| 0-0 1-1\n",
    b"un ||| a ||| 0.6 0.75\nun ||| one ||| 0.9 0.25\n",
    b"un ||| a ||| 0.6 0.5 0.75 0.5 ||| 0-0 ||| 3 4 3\nun ||| one ||| 0.9 1 0.25 1 ||| ||| 1 4 1\n",
]


@area("phrase tables", 15_000)
def phrase_tables(rng: random.Random, folder: Path) -> str:
    """Phrase tables of Moses, counts and the output of `extract`."""
    path, marginal = folder / "table", folder / "marginal"
    path.write_bytes(_text(rng, rng.choice(_PHRASES)))
    marginal.write_bytes(_text(rng, b"un ||| 4\nle chat ||| 3\n"))

    def write() -> None:
        write_table(read_table(path), folder / "again.parquet")
        read_table(folder / "again.parquet")

    read = rng.choice(
        [
            write,
            lambda: read_pairs(path),
            lambda: read_counts(path).conditional("source"),
            lambda: read_counts(path, source_counts=marginal),
        ]
    )
    return verdict(read, folder)


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
def language_models(rng: random.Random, folder: Path) -> str:
    """ARPA files, and text that models are trained on."""
    path = folder / "model"
    sample = rng.choice((_ARPA, _ARPA, b"a cat\nthe cat sat\n" * 3))
    content = _text(rng, sample)
    if rng.random() < 0.2:
        content = content.replace(b"=2", rng.choice((b"=99999999999999", b"=-1", b"=1e9", b"=")))
    path.write_bytes(content)

    def use() -> None:
        model = model_of([path])
        model.scored([["a", "cat"], [], ["<s>", "a\0"]])

    return verdict(use)


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
weights = "none"
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
setting = "prior_variance"
values = [0.01, 1.0]
methods = ["imh"]
sizes = [2]

[development]
nbest = "lists"
references = ["ref"]
"""
_STUDY_WORDS = [
    *("inf", "nan", "-1", "1e400", "9" * 30, "9" * 5000, "true", "[]", "{}", '""', "'a'", "[[]]"),
    *('"/dev/zero"', '"fifo"', '"."', '"none"', '"\\u0000"', "2026-01-01", "0x10", '"numpyro:HMC"'),
    *('"imh"', '["imh", "imh"]', "[0]", "{a=1}", "[" * 2000, "{a=" * 500, '"""', '"numpyro:x"'),
]


@area("studies", 4_000)
def studies(rng: random.Random, folder: Path) -> str:
    """Study files: damaged TOML, values of other types, paths that are no files."""
    for name, content in (("lists", LISTS), ("ref", REFERENCES), ("weights", b"LM0= 0.5\n")):
        (folder / name).write_bytes(content)
    odd_path(rng, folder)
    if rng.random() < 0.4:
        content = _text(rng, _STUDY)
    else:
        rows = _STUDY.decode().splitlines()
        for _ in range(rng.choice((1, 1, 2))):
            place = rng.choice([n for n, row in enumerate(rows) if " = " in row])
            name = rows[place].partition(" = ")[0]
            rows[place] = f"{name} = {rng.choice(_STUDY_WORDS)}"
        content = "\n".join(rows).encode()
    (folder / "study.toml").write_bytes(content)
    return verdict(lambda: read_study(folder / "study.toml"))


@area("judgements", 4_000)
def judgements(rng: random.Random, folder: Path) -> str:
    """Columns of judgements, and preferences, with values of any type."""
    record = {
        "id": 0,
        "source": "un chat",
        "references": ["the cat"],
        "candidates": [
            {"text": "a cat", "lm": -1.5, "mqm": 1, "rank": None},
            {"text": "the cat", "lm": 1, "mqm": -2.5},
            {"text": "b", "lm": 0.0, "mqm": 1},
        ],
        "preferences": [[0, 1], [1, 2]],
        "ties": [[0, 2]],
        "rankings": [[2, 0, 1]],
    }
    odd = rng.choice((odd_json, odd_value))
    records: Any = [record, {**record, "id": 1}]
    for _ in range(rng.choice((1, 1, 2, 3))):
        records = changed(records, rng, odd)

    def use() -> None:
        nbest = NBest.from_records(records)
        kind = rng.randrange(4)
        if kind == 0:
            gains(nbest, rng.choice(("mqm", "-mqm", "rank", "lm", "ter")), cache=False)
        elif kind == 1:
            oracles(nbest, rng.choice(("mqm", "-mqm", "lm")), cache=False)
        elif kind == 2:
            choice_sets(nbest)
        else:
            draws = Draws({"weights": np.ones((1, 4, 1))}, ("lm",))
            rerank(nbest, draws, unchecked=True)

    return verdict(use)
