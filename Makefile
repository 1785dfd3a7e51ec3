# Everything runs in a virtual environment of its own, made on first use with pinned versions.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Bytecode of the package, once for all processes that the tests start: where Python is told to write
# none (PYTHONDONTWRITEBYTECODE), each would compile what it imports.
BYTECODE := $(BIN)/python -m compileall -q bpa_ppl models diagnostics

# What the tests need, and what only documentation, benchmarks, coverage and other Pythons do.
PINNED := .ci/constraints.txt
PIP := $(BIN)/python -m pip install --quiet
INSTALL := $(PIP) --constraint $(PINNED) --constraint .ci/constraints-others.txt
# Every other package: pip looks up, unpacks and waits for one at a time, so two of them share it.
HALF = awk 'NR % 2 == $(1)' $(PINNED) | $(PIP) --no-compile --no-deps --requirement /dev/stdin

.PHONY: demo test core quick compare lowest coverage check package types bench docs wheel clean \
	store-results compare-results store-reading compare-reading

demo: $(READY)
	$(BIN)/bpa demo

test: $(READY)
	@$(BYTECODE)
	@# Plugins by name: of those that it finds itself, pytest rewrites all modules, Hypothesis's too.
	@# The bytecode of the tests is kept, because rewriting their assertions takes 6 s of each worker.
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --disable-plugin-autoload -p xdist.plugin -p _hypothesis_pytestplugin \
		--numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 10

# For a change that touches no satellite: all other tests.
SATELLITES := tests/phrases tests/experiments \
	tests/cli/test_phrases_commands.py tests/cli/test_comparing_commands.py

core: $(READY)
	@$(BYTECODE)
	$(BIN)/python -m pytest --disable-plugin-autoload -p xdist.plugin -p _hypothesis_pytestplugin \
		--numprocesses 2 --dist loadfile --no-loadscope-reorder $(SATELLITES:%=--ignore=%)

# For another Python: what is nearest to ArviZ and the other libraries that differ there.
QUICK := tests/posterior tests/test_posterior.py tests/diagnostics/test_check.py \
	tests/diagnostics/test_predictive.py tests/diagnostics/test_traces.py tests/cli/test_process.py

quick: $(READY)
	$(BIN)/python -m pytest --quiet --numprocesses 2 --dist loadfile $(QUICK)

# The samplers of other packages, which the other tests skip.
compare: $(READY)
	$(INSTALL) --no-build-isolation --editable '.[compare]'
	$(BIN)/python -m pytest --quiet --numprocesses 2 tests/experiments/test_other_packages.py

# The quick tests with the lowest versions that pyproject.toml allows; they may warn of deprecations.
LOWEST := .venv-lowest

lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	sed -n '/^dependencies/,/^]/p' pyproject.toml \
		| grep -oE '[A-Za-z0-9._-]+>=[0-9.]+' | sed 's/>=/==/' >$(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/lowest.txt \
		--editable . hypothesis pytest pytest-xdist setuptools
	$(LOWEST)/bin/python -m pytest --quiet --numprocesses 2 --dist loadfile \
		--override-ini filterwarnings=default $(QUICK)

coverage: $(READY)
	$(INSTALL) pytest-cov
	@$(BYTECODE)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder \
		--cov --cov-report= $(TESTS)
	$(BIN)/coverage report

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory types

# The package as it is installed, in build/lib, for programs that do not run Python's import system
# and so do not find models/ and diagnostics/ in it.
package: $(READY)
	rm -rf build/lib
	$(BIN)/python -c 'import setuptools; setuptools.setup()' --quiet build_py

types: package
	$(BIN)/mypy

bench: $(READY)
	$(INSTALL) --no-build-isolation --editable '.[bench]'
	@$(BYTECODE)
	@set -e; for script in benchmarks/bench_*.py; do \
		echo "== $$script"; $(BIN)/python "$$script"; \
	done

# Whether a change keeps all results to the bit: `make store-results` before it, and
# `make compare-results` after it.
store-results compare-results: $(READY)
	$(BIN)/python tools/compare_results.py $(@:-results=) build/results.json.gz

# The same for what is read: the inputs of the tests are recorded at the first time.
store-reading compare-reading: $(READY)
	PYTHONHASHSEED=0 $(BIN)/python tools/compare_reading.py $(@:-reading=)

docs: package
	$(INSTALL) --no-build-isolation --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(READY)
	$(INSTALL) build
	@# The wheel is built from the unpacked source archive, so it has no files of earlier builds.
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) $(LOWEST) build dist *.egg-info

$(READY): pyproject.toml $(PINNED)
	@command -v $(PYTHON) >/dev/null || \
		{ echo "error: no $(PYTHON) here: install Python 3.11 or say make PYTHON=/path/to/it"; exit 1; } >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is $$($(PYTHON) -V), and 3.11 is needed: say make PYTHON=python3.11"; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' || \
		{ echo "error: $(PYTHON) has no venv module: install it (Debian and Ubuntu: python3-venv)"; exit 1; } >&2
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	@# Bytecode is made afterwards, by two processes, but for the packages' own tests.
	$(call HALF,0) & $(call HALF,1) && wait $$!
	$(INSTALL) --no-compile --no-build-isolation --editable '.[dev]'
	$(BIN)/python -m compileall -qq -j 2 -x '[/]tests?[/]' $(VENV)/lib
	touch $@
