"""Areas of binary files: posteriors in HDF5, the recipes in them, tables of Arrow, subdomains."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attempts import area, changed, odd_array, odd_json, odd_path, odd_value, verdict
from fuzzing import edited, random_edits
from text_areas import sample_lists

from bpa_ppl import (
    Draws,
    NBest,
    as_draws,
    iter_nbest,
    point_weights,
    read_nbest,
    read_posterior,
    rerank,
    write_nbest,
    write_posterior,
)
from bpa_ppl.features.base import resolve_sources
from bpa_ppl.features.recipes import absolute, recorded
from bpa_ppl.phrases import (
    NumberedText,
    PhraseCounts,
    Subdomains,
    read_counts,
    read_pairs,
    read_table,
    write_counts,
)
from bpa_ppl.posterior import read_draws
from bpa_ppl.registry import FEATURES


def sample_draws(**attrs: Any) -> Draws:
    """Return draws with all kinds of groups."""
    rng = np.random.default_rng(3)
    size = (2, 5)
    return Draws(
        {"weights": rng.normal(size=(*size, 2))},
        ("LM0", "W"),
        log_density=rng.normal(size=size),
        log_likelihood={"oracle": rng.normal(size=(*size, 3))},
        sentence_sites=("oracle",),
        statistics={"accepted": rng.random(size) > 0.5},
        constants={"canonical": np.ones(2), "prior_mean": np.ones(2), "prior_variance": np.ones(2)},
        sentence_ids=np.arange(3),
        attrs={"sampler": "imh", "oracle_metric": "ter", "seed": 1, **attrs},
    )


def use_posterior(read: Any, path: Path) -> None:
    """Read a posterior and compute what the commands print of it."""
    draws = as_draws(read(path))
    point_weights(draws)
    _ = draws.importance, draws.deviation, draws.interval(0.9), draws.pointwise
    rerank(sample_lists(), draws, unchecked=True)


@cache
def _posterior(folder: Path) -> bytes:
    write_posterior(sample_draws(), folder / "sample.nc")
    return (folder / "sample.nc").read_bytes()


@area("posteriors, damaged", 600)
def damaged_posteriors(rng: random.Random, folder: Path) -> str:
    """Posteriors with bytes changed, moved, cut or repeated."""
    path = folder / "posterior.nc"
    content = _posterior(folder)
    if rng.random() < 0.5:  # a few bytes, so that the file is read further
        changeable = bytearray(content)
        for _ in range(rng.choice((1, 2, 8))):
            changeable[rng.randrange(8, len(content))] = rng.choice((0, 1, 255, rng.randrange(256)))
        content = bytes(changeable)
    else:
        content = edited(content, random_edits(rng))
    path.write_bytes(content)
    read = rng.choice((read_draws, read_posterior))
    return verdict(lambda: use_posterior(read, path))


@area("posteriors, crafted", 800)
def crafted_posteriors(rng: random.Random, folder: Path) -> str:
    """Posteriors with storage, types, links, shapes and attributes that `bpa_ppl` never writes."""
    path = folder / "posterior.nc"
    path.write_bytes(_posterior(folder))
    with h5py.File(path, "r+") as file:
        for _ in range(rng.choice((1, 1, 2, 3))):
            try:
                rng.choice(_CRAFTS)(file, rng, folder)
            except (TypeError, ValueError, OSError, KeyError, RuntimeError, OverflowError):
                continue  # HDF5 itself does not write this
    read = rng.choice((read_draws, read_posterior))
    return verdict(lambda: use_posterior(read, path))


def _place(file: h5py.File, rng: random.Random) -> tuple[Any, str]:
    """Return a group and the name of a variable in it."""
    group = file[rng.choice(["posterior", "posterior", *file])]
    names = [name for name in group if isinstance(group[name], h5py.Dataset)]
    return group, rng.choice([*names, "weights", "chain", "feature", "odd"])


def _dataset(file: h5py.File, rng: random.Random, folder: Path) -> None:
    """Replace a variable by one of another type, shape and storage."""
    group, name = _place(file, rng)
    if name in group:
        del group[name]
    shape = rng.choice(
        [(), (0,), (2,), (5,), (2, 5), (2, 5, 2), (2, 5, 1), (5, 2, 2, 2), (1, 0, 2)]
    )
    kind = rng.randrange(13)
    if kind == 0:
        layout = h5py.VirtualLayout((2, 5, 2), "f8")
        layout[...] = h5py.VirtualSource(
            rng.choice((".", "other.h5")), "posterior/weights", (2, 5, 2)
        )
        group.create_virtual_dataset(name, layout)
    elif kind == 1:
        target = rng.choice(("/etc/passwd", "/dev/zero", str(folder / "none"), "sample.nc"))
        group.create_dataset(name, (2, 5, 2), "f8", external=[(target, 0, h5py.h5f.UNLIMITED)])
    elif kind == 2:
        compound = np.dtype([("r", "f8"), ("i", rng.choice(["f8", "i4", "S3"]))])
        group.create_dataset(name, shape, compound)
    elif kind == 3:
        references = [file.ref, file["posterior"].ref]
        types = (h5py.ref_dtype, h5py.regionref_dtype)
        group.create_dataset(name, (2,), types[rng.randrange(2)], data=references)
    elif kind == 4:
        data = [rng.choice(("a", "é", "", "\n", "a" * 999)) for _ in range(3)]
        group.create_dataset(name, data=data, dtype=h5py.string_dtype())
    elif kind == 5:
        huge = rng.choice([(2**20, 2**10), (2**31,), (2, 2**40, 2), (2**61,)])
        chunks = rng.choice([None, True, tuple(min(n, 2**8) for n in huge), huge])
        group.create_dataset(
            name, huge, rng.choice(("f8", "u1")), chunks=chunks, compression="gzip"
        )
    elif kind == 6:
        group[name] = h5py.Empty(rng.choice(("f8", "S3")))
    elif kind == 7:
        group.create_dataset(name, shape, h5py.vlen_dtype(np.float64))
    elif kind == 8:
        group.create_dataset(name, shape, h5py.enum_dtype({"NO": 0, "YES": 1}, basetype="i1"))
    elif kind == 9:
        group.create_dataset(name, shape, np.dtype(("f8", (2,))))
    elif kind == 10:
        types = [np.dtype(code) for code in ("f2", "f4", "g", "i8", "u1", ">f8", "V4", "S5", "c16")]
        group.create_dataset(name, shape, rng.choice(types))
    elif kind == 11:
        fill = rng.choice([np.nan, np.inf, 1e308, 1e-320, 0.0])
        group.create_dataset(name, data=np.full(shape, fill))
    else:
        group.create_group(name).create_group("weights")
    _dimensions(group, name, rng)


def _dimensions(group: Any, name: str, rng: random.Random) -> None:
    """Attach some scales to a variable, often as many as it has dimensions."""
    if not isinstance(group[name], h5py.Dataset) or rng.random() < 0.2:
        return
    names = (
        ["chain", "draw", "feature"]
        if rng.random() < 0.7
        else [rng.choice([*group]) for _ in "abc"]
    )
    for dimension, scale in zip(group[name].dims, names, strict=False):
        dimension.attach_scale(group[scale])


def _link(file: h5py.File, rng: random.Random, folder: Path) -> None:
    """Replace a variable or a group by a link."""
    group, name = _place(file, rng)
    if rng.random() < 0.3:
        group, name = file, rng.choice([*file])
    target = rng.choice(
        ("/", "/posterior", "/posterior/weights", "/none", ".", f"/posterior/{name}")
    )
    if name in group and rng.random() < 0.8:
        del group[name]
    kind = rng.randrange(3)
    if kind == 0:
        group[name] = h5py.SoftLink(target)
    elif kind == 1:
        other = rng.choice(("sample.nc", "/etc/passwd", "posterior.nc", "/dev/zero"))
        group[name] = h5py.ExternalLink(other, target)
    else:
        group[name] = file[target]  # a hard link, perhaps from a group into itself


_NAMES = [
    *("_FillValue", "missing_value", "scale_factor", "add_offset", "units", "calendar", "dtype"),
    *("coordinates", "DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "_Netcdf4Dimid"),
    *("_Netcdf4Coordinates", "_NCProperties", "kind", "sites", "schema_version", "feature_sources"),
    *(
        "fixed",
        "dims",
        "likelihood_exponent",
        "sampler",
        "oracle_metric",
        "rule",
        "a/b",
        "é",
        "_Unsigned",
    ),
]


def _attribute(file: h5py.File, rng: random.Random, folder: Path) -> None:
    """Set an attribute of the file, a group or a variable to a value of any type."""
    group, name = _place(file, rng)
    owner = rng.choice([file, group, group.get(name, file)])
    attribute = rng.choice([*_NAMES, *owner.attrs])
    kind = rng.randrange(8)
    if attribute in owner.attrs:
        del owner.attrs[attribute]
    if kind == 0:
        return
    values: dict[int, Any] = {
        1: lambda: file["posterior"].ref,
        2: lambda: h5py.Empty("f8"),
        3: lambda: rng.choice(
            ["days since 2000-01-01", "days since x", "[" * 999, '{"a": NaN}', "x y"]
        ),
        4: lambda: json.dumps(odd_json(rng)),
        5: lambda: odd_array(rng),
        6: lambda: np.zeros(2, [("a", "f8")]),
        7: lambda: odd_value(rng, 0),
    }
    owner.attrs[attribute] = values[kind]()


def _delete(file: h5py.File, rng: random.Random, folder: Path) -> None:
    """Delete a variable or a group."""
    group, name = _place(file, rng)
    if rng.random() < 0.7:
        del group[name]
    else:
        del file[rng.choice([*file])]


_CRAFTS = [_dataset, _dataset, _dataset, _link, _attribute, _attribute, _attribute, _delete]


# --- recipes -------------------------------------------------------------------------------------


def _recipes(folder: Path) -> list[dict[str, Any]]:
    """Return valid records of all sources of features, and write the files that they name."""
    (folder / "text").write_text("the cat\na cat\nun chat\n" * 4)
    (folder / "table").write_text("un ||| a ||| 0.6 0.75\nun ||| one ||| 0.9 0.25\n")
    text = str(folder / "text")
    given: list[dict[str, Any]] = [
        {"lm": {"text": text}},
        {"lexicon": {"pairs": (text, text)}},
        {"phrases": {"table": str(folder / "table")}},
        {"length": {}},
        {"consensus": {}},
        {"consensus": {"metric": "chrf"}},
    ]
    records = []
    for entry in given:
        ((name, settings),) = entry.items()
        (source,) = resolve_sources([FEATURES.resolve(name, settings)])
        records += recorded([absolute(source)], [("LM0",)])
    return records


@area("recipes", 400)
def recipes(rng: random.Random, folder: Path) -> str:
    """Posteriors whose recipe of features has other values, paths that are no files, and depth."""
    records: Any = json.loads(json.dumps(_recipes(folder)))
    records = rng.sample(records, rng.choice((1, 1, 2)))
    for _ in range(rng.choice((1, 1, 2))):
        records = changed(records, rng, _odd_setting(rng, folder))
    learned: Any = {}
    if rng.random() < 0.3:
        texts = [json.dumps(odd_json(rng)), "[" * 10**5, '{"lines": ["a"]}', '{"lines": "a"}', "{"]
        learned = {"feature_source_0": np.array([rng.choice(texts)])}
    draws = sample_draws()
    constants = {**draws.constants, **learned}

    def use() -> None:
        features = ("LM0", "W")
        recipe = Draws(
            draws.values, features, constants=constants, attrs={"feature_sources": records}
        )
        write_posterior(recipe, folder / "posterior.nc")
        bare = sample_lists().without(rng.choice(("LM0", "W")))
        rerank(bare, read_draws(folder / "posterior.nc"), unchecked=True)

    return verdict(use)


def _odd_setting(rng: random.Random, folder: Path) -> Any:
    kinds = [
        odd_json,
        odd_json,
        lambda rng: odd_path(rng, folder),
        lambda rng: [odd_path(rng, folder)],
    ]

    def odd(rng: random.Random) -> Any:
        if rng.random() < 0.05:
            value: Any = 0
            for _ in range(rng.choice((50, 900, 5000))):
                value = [value]
            return value
        return rng.choice(kinds)(rng)

    return odd


# --- tables of Arrow -----------------------------------------------------------------------------

_COLUMNS = [
    *("id", "text", "lm", "candidates", "source", "target", "reference", "references", "total"),
    *("reference[0]", "sentence.doc", "candidates.text", "count", "source_count", "direct"),
    *(
        "inverse",
        "subdomain",
        "posteriors",
        "scores",
        "",
        "a.b",
        "__index_level_0__",
        "preferences",
    ),
]


def _type(rng: random.Random, depth: int = 2) -> pa.DataType:
    flat = [
        *(pa.null(), pa.bool_(), pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32()),
        *(pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary()),
        *(
            pa.binary(3),
            pa.decimal128(20, 3),
            pa.decimal256(60, 2),
            pa.date32(),
            pa.timestamp("ns"),
        ),
        *(
            pa.timestamp("us", "UTC"),
            pa.duration("s"),
            pa.time64("ns"),
            pa.month_day_nano_interval(),
        ),
    ]
    usual = [pa.string(), pa.int64(), pa.float64()]
    kind = rng.randrange(12 if depth else 6)
    if kind < 4:
        return rng.choice(usual)
    if kind < 6:
        return rng.choice(flat)
    if kind == 6:
        return pa.dictionary(rng.choice([pa.int8(), pa.int32(), pa.uint64()]), rng.choice(usual))
    inner = _type(rng, depth - 1)
    if kind < 9:
        return rng.choice([pa.list_, pa.large_list, pa.list_view, lambda t: pa.list_(t, 2)])(inner)
    if kind == 9:
        return pa.map_(pa.string(), inner)
    names = rng.sample(["text", "lm", "mqm", "a.b", ""], rng.choice((1, 2)))
    return pa.struct([(name, _type(rng, depth - 1)) for name in names])


def _value(kind: pa.DataType, rng: random.Random) -> Any:
    """Return a value that a column of some type can hold, or None."""
    types = pa.types
    if rng.random() < 0.15:
        return None
    if types.is_dictionary(kind):
        return _value(kind.value_type, rng)
    if types.is_map(kind):
        return [(rng.choice("ab"), _value(kind.item_type, rng))]
    if types.is_struct(kind):
        return {field.name: _value(field.type, rng) for field in kind}
    if types.is_fixed_size_list(kind):
        return [_value(kind.value_type, rng) for _ in range(2)]
    if types.is_nested(kind):
        return [_value(kind.value_type, rng) for _ in range(rng.choice((0, 1, 2, 2, 500)))]
    if types.is_boolean(kind):
        return rng.random() < 0.5
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return rng.choice(
            ["a cat", "the cat", "", "\0", "é", "0", "doc-1", "nan", "a\nb", "b" * 999]
        )
    if types.is_fixed_size_binary(kind):
        return b"\xff\0a"
    if types.is_binary(kind):
        return rng.choice([b"", b"a", b"\xff\xfe"])
    if types.is_floating(kind):
        return np.float16(rng.choice([0.0, -1.5, np.nan, np.inf, 6e4])).item()
    if types.is_null(kind):
        return None
    if types.is_interval(kind):
        return (1, 2, 3)
    return rng.choice([0, 0, 1, 2, 100])


def _odd_table(rng: random.Random) -> pa.Table:
    """Return a table with a schema that is close to a valid one."""
    valid = {
        "lists": {"id": pa.int64(), "text": pa.string(), "lm": pa.float64(), "source": pa.string()},
        "nested": {
            "id": pa.string(),
            "candidates": pa.list_(pa.struct([("text", pa.string()), ("lm", pa.float64())])),
        },
        "columns": {"text": pa.list_(pa.string()), "lm": pa.list_(pa.float64()), "id": pa.int64()},
        "counts": {
            "source": pa.string(),
            "target": pa.string(),
            "count": pa.float64(),
            "source_count": pa.float64(),
            "target_count": pa.float64(),
        },
        "table": {n: pa.string() for n in ("source", "target")} | {"direct": pa.float64()},
    }
    schema = dict(rng.choice(list(valid.values())))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        name = rng.choice([*schema, rng.choice(_COLUMNS)]) if schema else "id"
        if name in schema and rng.random() < 0.2:
            del schema[name]
        else:
            schema[name] = _type(rng)
    rows = rng.choice((0, 1, 2, 3, 3, 3, 40))
    columns = []
    for kind in schema.values():
        storage = kind.value_type if pa.types.is_dictionary(kind) else kind
        column = pa.array([_value(storage, rng) for _ in range(rows)], storage)
        columns.append(column.dictionary_encode() if storage is not kind else column)
    names = list(schema)
    if names and rng.random() < 0.05:
        names.append(names[0])
        columns.append(columns[0])
    return pa.table(columns, names=names)


@cache
def _parquet_samples(folder: Path) -> list[bytes]:
    path = folder / "sample.parquet"
    write_nbest(sample_lists(), path)
    samples = [path.read_bytes()]
    write_counts(PhraseCounts.of(["un", "le chat"], ["a", "the cat"], [3, 1]), path)
    samples.append(path.read_bytes())
    _subdomains().save(path)
    return [*samples, path.read_bytes()]


def _subdomains() -> Subdomains:
    source, target = (NumberedText.of([["a", "b"], [], ["b"]]) for _ in range(2))
    return Subdomains(source, target, np.array([0, 1, 1]), [0.5, 0.5], {"k": 2})


_READERS: list[Any] = [
    read_nbest,
    lambda path: list(iter_nbest(path, chunk=1)),
    lambda path: read_table(path).columns,
    lambda path: read_counts(path).conditional("source"),
    read_pairs,
    Subdomains.load,
]


@area("tables, damaged", 3_000)
def damaged_tables(rng: random.Random, folder: Path) -> str:
    """Parquet with bytes changed, through every reader that takes it."""
    path = folder / "table.parquet"
    content = bytearray(rng.choice(_parquet_samples(folder)))
    if rng.random() < 0.6:
        for _ in range(rng.choice((1, 1, 2, 8))):
            content[rng.randrange(4, len(content) - 4)] = rng.choice((0, 255, rng.randrange(256)))
        path.write_bytes(content)
    else:
        path.write_bytes(edited(bytes(content), random_edits(rng)))
    read = rng.choice(_READERS)
    return verdict(lambda: read(path), folder)


@area("tables, crafted", 4_000)
def crafted_tables(rng: random.Random, folder: Path) -> str:
    """Tables with other columns, types and nesting, as Parquet and as data frames."""
    path = folder / "table.parquet"
    table = _odd_table(rng)
    if rng.random() < 0.3:
        bad = rng.choice(("error", "drop"))
        return verdict(lambda: NBest.from_dataframe(table, bad=bad))
    try:
        pq.write_table(table, path, row_group_size=rng.choice((1, 2, 1000)))
    except pa.ArrowException:
        return verdict(lambda: NBest.from_dataframe(table))
    read = rng.choice(_READERS)
    return verdict(lambda: read(path), folder)


@area("subdomains", 1_000)
def subdomains(rng: random.Random, folder: Path) -> str:
    """Files of subdomains with other metadata and columns."""
    path = folder / "subdomains.parquet"
    _subdomains().save(path)
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.randrange(3)
        if kind == 0:
            ((name, facts),) = [(n, v) for n, v in metadata.items() if v.startswith(b"{")][:1] or [
                (b"x", b"{}")
            ]
            metadata[name] = json.dumps(changed(json.loads(facts), rng, odd_json)).encode()
        elif kind == 1:
            place = rng.randrange(table.num_columns)
            one = _type(rng)
            values = (
                [_value(one, rng) for _ in range(len(table))]
                if not pa.types.is_dictionary(one)
                else None
            )
            column = pa.nulls(len(table)) if values is None else pa.array(values, one)
            table = table.set_column(place, table.column_names[place], column)
        else:
            number = rng.choice([-1, 2, 255, 2**31, 2**62])
            values = pa.array([0, number, None][: len(table)])
            table = table.set_column(2, rng.choice(("subdomain", "posteriors")), values)
    try:
        pq.write_table(table.replace_schema_metadata(metadata), path)
    except pa.ArrowException:
        return "refused"

    def use() -> None:
        Subdomains.load(path).save(folder / "again.parquet")
        Subdomains.load(folder / "again.parquet")

    return verdict(use, folder)
