"""Files, records and values that others give, damaged or odd: each is used, or refused.

Refused means by one of our errors, of one line, which names the file if there is one. A command
ends with exit code 2 and writes nothing then. `tests/formats/test_damaged_lists.py` has the formats
of lists and weights, `tests/extras/test_odd_input_of_extras.py` the converters.
More examples: `--hypothesis-profile soak`.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpyro.distributions import constraints
from support.command_line import use_or_refuse
from support.damage import GOLDEN, Edit, edited
from support.posteriors import name_weights, read_weight_draws
from support.registries import FEATURES, GAINS, LIKELIHOODS, SAMPLERS
from support.strategies import EDITS, ODD_ARRAYS, ODD_JSON, ODD_VALUES, changed, damaged, outcome
from support.user_files import compress_zstd, stream_zstd, talk

import bpa_ppl as bpa
from bpa_ppl import Draws, NBest, Prior, from_arrays, from_lists, from_records
from bpa_ppl.extending import gains, match, observe, oracles, prepare

LISTS = b"""0 ||| a cat ||| LM0= -1.5 W= 1 ||| -1
0 ||| the cat ||| LM0= -1 W= 2 ||| -1
1 ||| b ||| LM0= 2 W= 0 ||| 1
1 ||| c ||| LM0= 3 W= 0 ||| 1
"""
REFERENCES = "the cat\nun café noir\n".encode()
PRIOR = b'{"mean": {"LM0": 0.5, "W": -1}, "covariance": [[0.2, 0.1], [0.1, 0.2]]}'
ARPA = b"""\\data\\
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


def sample_lists() -> NBest:
    return from_lists(
        [["a cat", "the cat"], ["un café", "b"]],
        [[[-1.5, 0.5], [-1.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]]],
        ["LM0", "W"],
        sources=["un chat", "un café"],
    )


def sample_draws() -> Draws:
    return name_weights(np.random.default_rng(3).normal(size=(2, 5, 2)), ("LM0", "W"))


# --- files --------------------------------------------------------------------------------------


def read_of_lists(references: Path) -> NBest:
    return bpa.read_nbest(LISTS.splitlines(), references=references)


READERS: dict[str, tuple[bytes, Callable[[Path], Any]]] = {
    "references": (REFERENCES, read_of_lists),
    "references.tsv": (b"id\treference\n1\tthe cat\n\n0\tun caf\xc3\xa9\n", read_of_lists),
    "references.csv": (b'id,reference\n1,"the, cat"\n\n0,un caf\xc3\xa9\n', read_of_lists),
    "references.jsonl": (
        b'{"id": "1", "reference": "a"}\n{"id": 0, "references": ["b"]}\n',
        read_of_lists,
    ),
    "prior.json": (PRIOR, Prior.read),
    "model.arpa": (ARPA, lambda path: bpa.add_features(sample_lists(), f"lm={path}")),
    "text": (
        b"a cat\nthe cat sat\n" * 3,
        lambda path: bpa.add_features(sample_lists(), f"lm={path}"),
    ),
}


@pytest.mark.parametrize("name", READERS)
@given(st.data())
def test_a_damaged_text_file_is_read_or_refused(name: str, folder: Path, data: Any) -> None:
    sample, read = READERS[name]
    path = folder / name
    path.write_bytes(data.draw(damaged(sample)))
    outcome(lambda: read(path), path)
    path.write_bytes(sample)
    assert not isinstance(outcome(lambda: read(path), path), str)


@given(changed(json.loads(PRIOR)))
def test_a_prior_with_odd_values_is_finite_or_refused(folder: Path, record: Any) -> None:
    path = folder / "odd.json"
    path.write_text(json.dumps(record), "utf-8")
    prior = outcome(lambda: Prior.read(path), path)
    if not isinstance(prior, str):
        assert np.isfinite(prior.mean).all()
        assert np.isfinite(prior.full_covariance).all()
        outcome(lambda: prior.write(folder / "again.json"))


PACKERS = [gzip.compress, bz2.compress, lzma.compress, compress_zstd, stream_zstd]


@given(
    st.lists(st.sampled_from(PACKERS), min_size=1, max_size=2),
    st.sampled_from([b"", LISTS, b"a ||| " * 9999, b"0" * (1 << 20), b"\n" * (1 << 16)]),
    EDITS | st.just([]),
    st.sampled_from([0, 1, 3000]),
)
def test_a_compressed_file_that_is_cut_joined_or_damaged_is_read_or_refused(
    folder: Path, packers: list[Any], content: bytes, edits: list[Edit], empty: int
) -> None:
    for pack in packers:
        content = pack(content)
    path = folder / "packed"
    path.write_bytes(edited(content, edits) + packers[0](b"") * empty)
    for read in (bpa.read_nbest, bpa.read_weights, read_of_lists, Prior.read):
        outcome(lambda read=read: read(path), path)  # type: ignore[misc]


#: Types of columns with values, some of which are odd in a table of lists.
COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["a cat", "", "\0", "0", "doc-1", "nan", "b" * 999]),
    *((kind, [0, 1, 2, 100]) for kind in (pa.int64(), pa.int8(), pa.uint64(), pa.date32())),
    *((kind, [0.0, -1.5, np.nan, np.inf]) for kind in (pa.float64(), pa.float32())),
    *((kind, ["a cat", ""]) for kind in (pa.large_string(), pa.string_view())),
    *((kind, [1, 2]) for kind in (pa.decimal128(20, 3), pa.timestamp("us", "UTC"))),
    *((pa.bool_(), [True, False]), (pa.binary(), [b"a", b"\xff"]), (pa.null(), [None])),
    (pa.list_(pa.string()), [["a"], ["a", "b"], [], ["b"] * 500]),
    (pa.large_list(pa.float64()), [[0.5], [1.0, np.nan], []]),
    (pa.list_(pa.struct({"text": pa.string(), "lm": pa.float64()})), [[{"text": "a"}], []]),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
]
NAMES = st.sampled_from(
    [
        *("id", "text", "lm", "candidates", "source", "reference", "references", "reference[0]"),
        *("total", "sentence.doc", "", "a.b", "preferences", "ties", "winner", "chosen"),
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Tables of Arrow with a column of ids and one of texts, which others may replace."""
    columns: dict[str, Any] = {"id": COLUMNS[1], "text": COLUMNS[0]}
    columns |= draw(st.dictionaries(NAMES, st.sampled_from(COLUMNS), max_size=4))
    rows = draw(st.sampled_from([0, 1, 2, 3, 40]))
    arrays = []
    for kind, values in columns.values():
        cells = draw(st.lists(st.sampled_from([*values, None]), min_size=rows, max_size=rows))
        arrays.append(pa.array(cells, kind))
    return pa.table(arrays, names=list(columns))


@given(tables(), st.sampled_from(["error", "drop"]), st.sampled_from([1, 2, 1000]))
def test_a_table_of_odd_columns_is_read_or_refused(
    folder: Path, table: pa.Table, bad: Any, size: int
) -> None:
    path = folder / "table.parquet"
    pq.write_table(table, path, row_group_size=size)
    outcome(lambda: from_records(table, bad=bad))
    outcome(lambda: bpa.read_nbest(path, bad=bad), path)
    outcome(lambda: list(bpa.iter_nbest(path, chunk=1, bad=bad)), path)


@given(st.data())
def test_responses_of_servers_with_odd_values_are_read_or_refused(folder: Path, data: Any) -> None:
    names = ("openai-batch.jsonl", "openai-completions.jsonl")
    lines = [line for name in names for line in (GOLDEN / name).read_text("utf-8").splitlines()]
    records = [json.loads(data.draw(st.sampled_from(lines))) for _ in range(2)]
    records[0] = data.draw(changed(data.draw(changed(records[0]))))
    path = folder / "responses.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    bad = data.draw(st.sampled_from(["drop", "error"]))
    format = data.draw(st.sampled_from(["auto", "openai"]))
    outcome(lambda: bpa.read_nbest(path, format=format, bad=bad), path)


@given(st.data())
def test_a_damaged_posterior_is_read_or_refused(commands: Path, folder: Path, data: Any) -> None:
    path = folder / "posterior.nc"
    content = bytearray((commands / "good.nc").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(8, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(edited(bytes(content), data.draw(st.just([]) | EDITS)))
    draws = outcome(lambda: read_weight_draws(path), path)
    if not isinstance(draws, str):
        outcome(lambda: bpa.rerank(sample_lists(), draws, unchecked=True))


# --- records and values -------------------------------------------------------------------------

ROW: dict[str, Any] = {
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


@given(changed([ROW, {**ROW, "id": 1}], ODD_JSON | ODD_VALUES))
@example([ROW, {**ROW, "id": 1}])
def test_lists_with_odd_judgements_are_used_or_refused(records: Any) -> None:
    lists = outcome(lambda: from_records(records, features=["lm"]))
    if isinstance(lists, str):
        return
    for gain in ("mqm", "-mqm", "rank", "lm", "ter"):
        outcome(lambda gain=gain: (gains(lists, gain), oracles(lists, gain)))  # type: ignore[misc]
    outcome(lambda: observe(prepare(lists, None, likelihood="preference")))
    draws = name_weights(np.ones((1, 4, 1)), ("lm",))
    outcome(lambda: bpa.rerank(lists, draws, unchecked=True))


TURNS = talk("q", "a")
#: Rows of two answers, of which one is preferred.
PREFERENCES: list[dict[str, Any]] = [
    {"prompt": "q", "chosen": "a", "rejected": {"text": "b", "lm": 1}, "turn": 1},
    {"prompt": "q", "chosen": TURNS, "rejected": [TURNS[0], {**TURNS[1], "content": "b"}]},
    {"model_a": "X", "model_b": "Y", "winner": "X", "response_a": "a", "response_b": "b"},
]


@given(st.data())
def test_every_row_of_preferences_that_is_read_has_a_judgement(data: Any) -> None:
    usual = data.draw(st.sampled_from(PREFERENCES))
    odd = data.draw(changed(usual, ODD_JSON | st.sampled_from(["tie", "model_b", "X", TURNS])))
    rows = [usual, odd]
    lines = [json.dumps(row).encode() for row in rows]
    bad = data.draw(st.sampled_from(["error", "drop"]))
    for work in (lambda: bpa.read_nbest(lines, bad=bad), lambda: from_records(rows, bad=bad)):
        lists = outcome(work)
        if not isinstance(lists, str):
            extras = lists.sentence_extras
            names = [name for name in ("preferences", "ties", "rankings") if name in extras]
            assert all(any(extras[name][s] for name in names) for s in range(len(lists)))
            assert bad == "drop" or len(lists) == len(rows)


@given(
    name=st.sampled_from(["doc-{}", "{}", "a/b{}x", "s{:03}", "{:02}", "{}.0"]),
    form=st.sampled_from(["txt", "tsv", "csv", "jsonl"]),
    order=st.permutations(range(4)),
    first=st.integers(0, 1),
    odd=st.sampled_from([None, "txt", "tsv", "csv", "jsonl"]),
)
def test_references_are_those_of_their_ids_or_refused(
    folder: Path, name: str, form: str, order: list[int], first: int, odd: str | None
) -> None:
    """Also if one row is in the form of another kind of file."""
    forms: dict[str, Callable[[str, str], str]] = {
        "txt": lambda identifier, text: text,
        "tsv": "{}\t{}".format,
        "csv": '"{}","{}"'.format,
        "jsonl": lambda identifier, text: json.dumps({"id": identifier, "reference": text}),
    }
    ids = [name.format(n + first) for n in range(4)]
    texts = [f"the, cat no{n}" for n in range(4)]
    order = list(range(4)) if form == "txt" else order
    rows = [forms[odd if odd and n == 2 else form](ids[n], texts[n]) for n in order]
    header = {"tsv": ["id\treference"], "csv": ["id,reference"]}.get(form, [])
    path = folder / f"ref.{form}"
    path.write_text("".join(f"{row}\n" for row in [*header, *rows]), "utf-8")
    records = [json.dumps({"id": identifier, "text": "a", "lm": 1}).encode() for identifier in ids]
    lists = outcome(lambda: bpa.read_nbest(records, references=path))
    if not isinstance(lists, str):
        if odd is not None and odd != form:
            assert form == "txt"  # any line is a text
            texts[2] = rows[2]
        assert lists.references == tuple((text,) for text in texts)


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


def method(name: str) -> Callable[..., Any]:
    return lambda **arguments: getattr(sample_lists(), name)(*arguments.values())


def settings_of(registry: Any, name: str) -> Callable[..., Any]:
    return lambda **settings: registry.resolve(name, settings)


#: Public functions with valid arguments, one of which is replaced.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "from_lists": (from_lists, _LISTS),
    "from_arrays": (from_arrays, _ARRAYS),
    "from_records": (from_records, _RECORDS),
    "with_features": (method("with_features"), {"n": ["new"], "v": [[1.0], [2.0], [3.0], [4.0]]}),
    "with_references": (method("with_references"), {"references": ["a", "b"]}),
    "with_extras": (lambda **extras: sample_lists().with_extras(**extras), {"mqm": [1, 2, 3, 4]}),
    "select": (method("select"), {"rows": [0, 1]}),
    "truncate": (method("truncate"), {"size": 1}),
    "scores": (method("scores"), {"weights": {"LM0": 1.0, "W": 0.5}}),
    "match": (
        lambda weights, defaults: match(weights, sample_lists(), defaults=defaults),
        {"weights": {"LM0": 1.0, "W": 2.0}, "defaults": {"LM0": 1.0}},
    ),
    "gaussian": (Prior.gaussian, {"weights": {"LM0": 0.5}, "covariance": [[0.2]]}),
    "isotropic": (Prior.isotropic, {"weights": {"LM0": 0.5}, "variance": [0.2]}),
    "read_references": (
        lambda references: from_records([{"id": 1, "text": "a", "lm": 1}], references=references),
        {"references": {1: "a"}},
    ),
    "corpus_score": (
        bpa.corpus_score,
        {"candidates": ["a cat"], "references": [("the cat",)], "metric": "ter"},
    ),
    "add_features": (lambda s: bpa.add_features(sample_lists(), s), {"s": ["length"]}),
    "rerank": (
        lambda **options: bpa.rerank(sample_lists(), sample_draws(), unchecked=True, **options),
        {"rule": "mean", "draws": 3},
    ),
    "sampler": (settings_of(SAMPLERS, "imh"), {"draws": 100, "chains": 2}),
    "gain": (settings_of(GAINS, "bleu"), {"lowercase": True}),
    "likelihood": (settings_of(LIKELIHOODS, "margin"), {"gamma": 1.0}),
    "feature": (settings_of(FEATURES, "consensus"), {"metric": "ter"}),
}


@pytest.mark.parametrize("name", CALLS)
@given(st.data())
def test_odd_arguments_are_used_or_refused(name: str, data: Any) -> None:
    function, arguments = CALLS[name]
    replaced = data.draw(st.sampled_from(list(arguments)))
    odd = data.draw(changed(arguments[replaced], ODD_VALUES | ODD_ARRAYS))
    outcome(lambda: function(**{**arguments, replaced: odd}))
    assert not isinstance(outcome(lambda: function(**arguments)), str)


# --- draws --------------------------------------------------------------------------------------


@given(st.data())
def test_draws_of_other_programs_are_used_or_refused(folder: Path, data: Any) -> None:
    sizes = {"chain": 2, "draw": 5, "feature": 2, "beta_dim_0": 3, "sample": 4}
    names = st.sampled_from(["weights", "theta", "b_lm", "Intercept", "1|judge", "lp__"])
    usual = st.just(("chain", "draw", "feature"))
    dims = usual | st.permutations(list(sizes)).flatmap(
        lambda order: st.integers(0, 4).map(lambda n: tuple(order[:n]))
    )
    shapes = data.draw(st.dictionaries(names, dims, min_size=1, max_size=3))
    arrays = {name: np.ones([sizes[dim] for dim in dims]) for name, dims in shapes.items()}
    labels = data.draw(st.sampled_from([{"feature": ["LM0", "W"]}, {}]))
    data_set = xarray.Dataset({n: (shapes[n], array) for n, array in arrays.items()}, labels)
    group = data.draw(st.sampled_from(["posterior", "prior"]))
    tree = xarray.DataTree.from_dict({group: data_set, "log_prior": data_set})
    form = data.draw(st.sampled_from([data_set, tree, arrays, [arrays], data_set.to_dict()]))
    draws = outcome(lambda: bpa.as_weight_draws(form))
    outcome(lambda: bpa.write_posterior(form, folder / "other.nc"))
    if not isinstance(draws, str):
        outcome(lambda: bpa.rerank(sample_lists(), draws, unchecked=True))


DRAWS = npst.arrays(
    float,
    st.tuples(st.integers(1, 3), st.integers(1, 40)),
    elements=st.floats(-3, 3) | st.sampled_from([0.0, 1e-50, 1e50, np.nan, np.inf]),
)


@given(DRAWS, DRAWS)
@example(np.zeros((1, 1)), np.full((2, 30), np.inf))
@example(np.zeros((1, 1)), np.array([[0.0, 9e-288, *[5e-291] * 8]]))  # whose squares are 0
def test_draws_are_compared_or_refused(ours: np.ndarray, theirs: np.ndarray) -> None:
    result = outcome(lambda: bpa.compare({"x": ours}, {"x": theirs}))
    assert "discrete" not in str(result) or any(np.isfinite(x).all() for x in (ours, theirs))


@st.composite
def extreme_lists(draw: st.DrawFn) -> NBest:
    """Lists whose features have any size, with a column of judgements."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 5]), min_size=1, max_size=4))
    scales = [10.0**n for n in draw(st.sampled_from([(0,), (-60, 0), (38, 0, -8), (59, -45)]))]
    odd = st.sampled_from([0.0, 1e60, -1e60, 1e-200]) | st.just(None)
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    features = [rng.normal(size=(size, len(scales))) * scales for size in sizes]
    for table in features:
        if (value := draw(odd)) is not None:
            table[draw(st.integers(0, len(table) - 1)), 0] = value
    texts = [[f"w{h} x" for h in range(size)] for size in sizes]
    names = [f"f{k}" for k in range(len(scales))]
    return from_lists(texts, features, names, references=["w0 x"] * len(sizes))


def lists_in_different_units() -> NBest:
    """Lists for which the covariance at the mode is positive only up to rounding."""
    features = np.random.default_rng(0).normal(size=(8, 3)) * [1e38, 1.0, 1e-8]
    features[0, 0] = 1e60
    texts = [["w0 x", "w1 x", "w2 x", "w3 x", "w4 x"], ["w0 x"], ["w0 x", "w1 x"]]
    tables = np.split(features, [5, 6])
    return from_lists(texts, tables, ["f0", "f1", "f2"], references=["w0 x"] * 3)


@pytest.mark.slow
@settings(max_examples=25)
@example(lists_in_different_units(), 0.0, None, "nuts")
@given(
    extreme_lists(),
    st.sampled_from([None, "equal", 0.0, 1.0, 1e-300, 1e308, -1.0]),
    st.sampled_from([None, *(10.0**n for n in (-30, -3, 0, 3))]),
    st.sampled_from(["map", "laplace", "imh", "auto", "rwm", "nuts"]),
)
def test_lists_of_extreme_numbers_are_adapted_to_or_refused(
    lists: NBest, weights: Any, variance: float | None, sampler: str
) -> None:
    if isinstance(weights, float):
        weights = dict.fromkeys(lists.feature_names, weights)
    prior = {} if variance is None else {"prior": f"isotropic:variance={variance}"}
    draws = outcome(lambda: bpa.adapt(lists, weights, sampler=sampler, **prior))
    if not isinstance(draws, str):
        outcome(lambda: bpa.rerank(lists, draws, unchecked=True))


#: Distributions of three numbers, some of which cannot be those of weights or are hard to sample.
PRIORS: dict[str, Callable[[Any], Any]] = {
    "the prior": lambda prior: prior.distribution(),
    "above 0": lambda prior: dist.HalfNormal(1.0).expand([3]).to_event(1),
    "far away": lambda prior: dist.Uniform(2.0, 3.0).expand([3]).to_event(1),
    "simplex": lambda prior: dist.Dirichlet(jnp.ones(3)),
    "heavy": lambda prior: dist.Pareto(1.0, 2.0).expand([3]).to_event(1),
    "no event": lambda prior: dist.Normal(0.0, 1.0).expand([3]),
    "one number": lambda prior: dist.Normal(0.0, 1.0),
    "improper": lambda prior: dist.ImproperUniform(constraints.real_vector, (), (3,)),
    "constant": lambda prior: dist.Delta(jnp.ones(3), event_dim=1),
    "not a number": lambda prior: dist.Normal(0.0, jnp.nan).expand([3]).to_event(1),
    "whole numbers": lambda prior: dist.Poisson(1.0).expand([3]).to_event(1),
}
TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "same": lambda x: x,
    "exp": jnp.exp,
    "log": jnp.log,
    "root": lambda x: jnp.sqrt(jnp.abs(x)),
    "inverse": lambda x: 1 / x,
    "zero": lambda x: 0.0 * x,
    "some": lambda x: x[:2],
    "if": lambda x: x if x[0] > 0 else -x,
}


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.sampled_from(list(PRIORS)),
    st.sampled_from(list(TRANSFORMATIONS)),
    st.sampled_from(["weights", "raw", "lambda"]),
    st.sampled_from([None, 0.0, -np.inf, np.inf, np.nan]),
    st.sampled_from(["weights", "nothing", "constant", "twice", "no plate"]),
)
def test_an_odd_program_is_sampled_or_refused(
    prior_name: str, change: str, site: str, factor: float | None, observed: str
) -> None:
    def model(lists: Any, prior: Any, likelihood: Any) -> None:
        value = TRANSFORMATIONS[change](numpyro.sample(site, PRIORS[prior_name](prior)))
        if site == "raw":
            numpyro.deterministic("weights", value)
        if factor is not None:
            numpyro.factor("bound", factor + 0.0 * value.sum())
        weights = jnp.ones(3) if observed == "constant" else value
        if observed == "no plate":
            likelihood.observe(lists, weights)
        for _ in range({"nothing": 0, "no plate": 0, "twice": 2}.get(observed, 1)):
            with numpyro.plate("sentence", len(lists.oracle)):
                likelihood.observe(lists, weights)

    numbers = np.random.default_rng(0)
    lists = from_lists([["a", "b", "c"]] * 5, numbers.normal(size=(5, 3, 3)), ["x", "y", "z"])
    lists = lists.with_extras(judged=numbers.normal(size=15))
    posterior = outcome(lambda: bpa.adapt(lists, gain="judged", model=model, sampler="map"))
    if not isinstance(posterior, str):
        weights = posterior["posterior"]["weights"].values
        assert weights.shape[-1] == 3
        assert np.isfinite(weights).all()
        assert change != "same" or prior_name != "far away" or weights.min() >= 2


# --- commands -----------------------------------------------------------------------------------

#: Commands that read a file, and the sample that is damaged.
COMMANDS: dict[str, bytes] = {
    "rerank FILE -p good.nc --unchecked -o out": LISTS,
    "rerank lists -p good.nc --unchecked --references FILE -o out": REFERENCES,
    "oracle FILE -r ref -o out": LISTS,
    "features FILE --add length -o out": LISTS,
    "lists FILE": LISTS,
    "adapt lists -r FILE -w none --gain ter --prior isotropic:variance=1,mean=0 --sampler map -q "
    "-o out": REFERENCES,
    "adapt lists -r ref -w none --gain ter --prior FILE.json --sampler map -q -o out": PRIOR,
    "lm FILE --test ref": ARPA,
    "lm FILE -o out": REFERENCES,
    "lm ref --test FILE -o out": REFERENCES,
    "weights good.nc --unchecked --template FILE -o out": b"[weight]\nLM0= 0.5\nW= 1\n",
}


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    (folder / "lists").write_bytes(LISTS)
    (folder / "ref").write_bytes(REFERENCES)
    bpa.write_posterior(sample_draws(), folder / "good.nc")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
@settings(max_examples=settings.default.max_examples // 2)
@given(st.data())
def test_a_command_uses_a_damaged_file_or_ends_with_one_line_and_no_output(
    command: str, commands: Path, data: Any
) -> None:
    content = data.draw(st.just(COMMANDS[command]) | damaged(COMMANDS[command]))
    use_or_refuse(command, commands, content)
    assert content != COMMANDS[command] or "-o" not in command or (commands / "out").exists()


@settings(max_examples=settings.default.max_examples // 2)
@given(EDITS)
def test_commands_refuse_a_damaged_posterior_with_one_line_and_no_output(
    commands: Path, edits: list[Edit]
) -> None:
    content = edited((commands / "good.nc").read_bytes(), edits)
    for command in ("weights FILE -o out", "learn-prior FILE good.nc -q -o out"):
        use_or_refuse(f"{command} --unchecked", commands, content)
