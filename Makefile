# Each target runs in a virtual environment of its own, made on first use with pinned versions.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
LOWEST := .venv-lowest
CORE := build/core

INSTALL := $(BIN)/python -m pip install --quiet --no-compile \
	--constraint .ci/constraints.txt --constraint .ci/constraints-others.txt
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# Python compiles what it imports, once: processes that may not keep the bytecode take seconds longer.
export PYTHONDONTWRITEBYTECODE :=

# Tests that depend most on the versions of Python and of ArviZ.
QUICK := tests/posterior tests/diagnostics/check/test_check.py \
	tests/evaluation/test_predictive_checks.py tests/diagnostics/pages/test_traces.py tests/cli/test_process.py

.PHONY: demo test slow core quick compare lowest coverage check types package bench docs wheel clean \
	store-results compare-results store-reading compare-reading

demo: $(INSTALLED)
	$(BIN)/bpa demo

test: $(READY)
	$(PYTEST) --durations 10

# The tests that take long: chains against quadrature, levels, calibration, damaged inputs.
slow: $(READY)
	$(PYTEST) -m slow --durations 10

# A copy without bpa_ppl.extras, in an environment of its own with links to the other packages.
core: $(READY)
	rm -rf $(CORE)
	$(BIN)/python tools/without_extras.py $(CORE)
	$(BIN)/python -m venv --without-pip $(CORE)/$(VENV)
	find "$(CURDIR)"/$(VENV)/lib/python3*/site-packages -mindepth 1 -maxdepth 1 \
		! -name '*bpa_ppl*' -exec ln -s {} $(CORE)/$(VENV)/lib/python3*/site-packages \;
	cd $(CORE) && $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	cd $(CORE) && JAX_COMPILATION_CACHE_DIR="$(CURDIR)/build/compiled" $(PYTEST) $(TESTS)

quick: $(READY)
	$(PYTEST) --quiet $(QUICK)

# The samplers and the draws of other packages, which the other tests skip.
compare: $(READY)
	$(INSTALL) --editable '.[compare]' cmdstanpy emcee zarr
	$(PYTEST) --quiet tests/samplers/test_other_packages.py tests/posterior/test_other_programs.py

# The lowest versions that pyproject.toml allows; they may warn of deprecations.
lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) tools/lowest_versions.py >$(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/lowest.txt \
		--editable '.[judge]' httpx hypothesis pytest pytest-xdist setuptools
	$(LOWEST)/bin/python -m pytest --numprocesses 2 --quiet --override-ini filterwarnings=default \
		$(QUICK) tests/extras/judging/test_judge_app.py tests/soak tests/test_sklearn.py

coverage: $(READY)
	$(INSTALL) pytest-cov
	$(PYTEST) -m "" --cov --cov-report= $(TESTS)
	$(BIN)/coverage report

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory types

types: package
	$(BIN)/mypy

# The package as it is installed, in build/lib, for programs that read files instead of importing
# them: they do not find models/ and diagnostics/ in it otherwise.
package: $(READY)
	rm -rf build/lib
	$(BIN)/python -c 'import setuptools; setuptools.setup()' --quiet build_py

bench: $(READY)
	$(INSTALL) --editable '.[bench]'
	set -e; for script in benchmarks/bench_*.py; do $(BIN)/python "$$script"; done

# Whether a change keeps all results to the bit: `make store-results` before it, and
# `make compare-results` after it.
store-results compare-results: $(READY)
	$(BIN)/python tools/compare_results.py $(@:-results=) build/results.json.gz

# The same for what is read: the inputs of the tests are recorded the first time.
store-reading compare-reading: $(READY)
	PYTHONHASHSEED=0 $(BIN)/python tools/compare_reading.py $(@:-reading=)

docs: package
	$(INSTALL) --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The wheel is built from the source archive, so that it has no files of earlier builds.
wheel: $(READY)
	$(INSTALL) build
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) $(LOWEST) build dist *.egg-info

$(READY): $(INSTALLED)
	$(INSTALL) --editable '.[dev]'
	touch $@

$(INSTALLED): pyproject.toml .ci/constraints.txt
	@$(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is not Python 3.11 or later with the module venv" \
			"(Debian and Ubuntu: python3-venv): install it, or run make PYTHON=/path/to/python"; \
		exit 1; } >&2
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@
