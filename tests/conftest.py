"""Configuration and fixtures of all tests: strict JAX, real n-best lists and small tables."""

from __future__ import annotations

import gc
import logging
import os
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from copy import copy
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Waiting threads of OpenBLAS spin: small matrices would take five times the processor time. NumPy
# reads this variable when it is imported, here and in the processes that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from support.browser import CHROMIUM, Browser
from support.extras import require_extras

from bpa_ppl import NBest, from_lists, read_nbest
from bpa_ppl.extending import WarningsHandler

if TYPE_CHECKING:
    from support.registries import Registry

ROOT = Path(__file__).resolve().parent.parent

# Examples of Hypothesis are the same in each run, on slow machines too. `tests/soak` tries many
# more with `--hypothesis-profile soak`, others in each run.
settings.register_profile(
    "tests",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak", settings.get_profile("tests"), derandomize=False, max_examples=2_000, print_blob=True
)
settings.load_profile("tests")

# JAX reads these variables when it is imported, here and in the processes that tests start.
# Compiled programs are shared by all test processes, and by later runs; `make clean` removes them.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / "build" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Most programs are compiled for one test only: XLA's optimisations would cost more than they save.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# pytest handles all loggers; this handler issues Python warnings in addition to the log records.
logging.getLogger("bpa_ppl").addHandler(WarningsHandler())


def pytest_configure(config: pytest.Config) -> None:
    """Ignore compilation cache entries that another process is writing, and set up JAX."""
    config.addinivalue_line(
        "filterwarnings", "ignore:Error reading persistent compilation cache entry:UserWarning"
    )
    if config.getoption("numprocesses", None):
        # ArviZ 0.23 writes the date of its daily warning when it is first imported on a day, and
        # fails if two processes write it at once: the main process writes it before the others.
        from support.posteriors import import_arviz

        import_arviz()
    else:  # the main process of pytest-xdist runs no tests
        _set_up_jax()


def pytest_collection_finish() -> None:
    """Collect garbage less often, and never what was imported: it took a tenth of the time."""
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the extras if they are not installed."""
    if item.get_closest_marker("needs_extras") is not None:
        require_extras()


def _set_up_jax() -> None:
    import jax

    # XLA's newer fusion emitters compile 50 % slower, and programs that are split for compilation
    # by several threads 15 %. Versions without these flags would exit.
    if jax.__version_info__ < (0, 11):
        flags = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
        os.environ.setdefault("XLA_FLAGS", flags)
    # No implicit float32 and no implicit broadcasting of ranks.
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session")
def demo_data() -> Path:
    """The folder of the demo's n-best lists."""
    return ROOT / "examples" / "demo_data"


@pytest.fixture(scope="session")
def leaflet(demo_data: Path) -> NBest:
    """The demo's lists with their references."""
    return read_nbest(demo_data / "leaflet.nbest100.gz", references=demo_data / "leaflet.ref")


@pytest.fixture
def toy() -> NBest:
    """Three lists of sizes 4, 2 and 3 with three features and references."""
    rng = np.random.default_rng(7)
    texts = [
        ["the cat sat", "a cat sat", "the cat sat down", "cat"],
        ["hello world", "hello"],
        ["one two three", "one three two", "three"],
    ]
    features = [rng.normal(size=(len(t), 3)) for t in texts]
    references = [("the cat sat down",), ("hello world",), ("one two three",)]
    return from_lists(texts, features, ["LM0", "TM0[0]", "TM0[1]"], references=references)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A running Chromium."""
    if CHROMIUM is None:
        pytest.skip("needs chromium, which is not installed")
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


#: Images without content.
EMPTY = {
    "svg": b'<svg xmlns="http://www.w3.org/2000/svg"/>',
    "webp": b64decode("UklGRhoAAABXRUJQVlA4TA4AAAAvAAAAAAcQEf0PRET/Aw=="),
}


@pytest.fixture
def without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the pages of a test empty images: drawing takes most of the time of a page."""
    from matplotlib.figure import Figure

    save = Figure.savefig

    def save_if_a_file(figure: Figure, file: Any, **options: Any) -> None:
        if isinstance(file, BytesIO):
            file.write(EMPTY[options["format"]])
        else:
            save(figure, file, **options)

    monkeypatch.setattr(Figure, "savefig", save_if_a_file)


@pytest.fixture
def optimised() -> Iterator[None]:
    """Compile as for users, for programs that run longer than XLA takes to optimise them."""
    import jax

    name = "jax_disable_most_optimizations"
    before = jax.config.read(name)
    jax.config.update(name, False)
    yield
    jax.config.update(name, before)


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Registry]]:
    """All registries, which are restored after the test."""
    from support.registries import REGISTRIES, forget_plugins

    result = list(REGISTRIES.values())
    for one in result:
        for name, value in vars(one).items():
            monkeypatch.setattr(one, name, copy(value))
    yield result
    forget_plugins()


@pytest.fixture
def install_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registries: list[Registry]
) -> Iterator[Callable[[str, str, str], None]]:
    """A function that installs a module and `entry_points.txt`, in an empty working folder."""
    from support.registries import forget_plugins

    site, info, modules = tmp_path / "site", tmp_path / "site" / "theirs-1.0.dist-info", set()
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)

    def install(module: str, source: str, entry_points: str) -> None:
        modules.add(module)
        sys.modules.pop(module, None)
        (site / f"{module}.py").write_text(source, "utf-8")
        (info / "entry_points.txt").write_text(entry_points)
        forget_plugins()

    yield install
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture(scope="module")
def pool() -> NBest:
    """Twenty lists of eight candidates with two features."""
    rng = np.random.default_rng(5)
    texts = [[f"w{h}" for h in range(8)] for _ in range(20)]
    features = [rng.normal(size=(8, 2)) for _ in texts]
    return from_lists(texts, features, ["A", "B"], references=[("w0",)] * 20)
