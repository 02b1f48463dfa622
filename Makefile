# `make test` and `make demo` need only make and a CPython 3.11 or newer; everything else goes into .venv.

VENV ?= .venv
# The first interpreter that runs, is new enough and can make virtual environments.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python; do \
  $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
PY := $(VENV)/bin/python
PIP_INSTALL ?= $(PY) -m pip install -q
WORKERS ?= 2
# A test that hangs is stopped and reported; it does not hold up the rest.
PYTEST_ARGS ?= --timeout 180
# Of what has many tests that are alike (PARTED in tests/conftest.py) a sixth runs here, the others in CI.
PART ?= 1/5

# Tests and figures use one BLAS thread.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK ?= 1

.PHONY: help test optimised suite slow demo lint format types layers docs map bench wheels ci clean
.DEFAULT_GOAL := help

help:
	@echo "make test    all tests, in a virtual environment made here"
	@echo "make slow    the fifty slowest tests of the last run of make test"
	@echo "make demo    fit a model to data and differentiate a library that knows nothing of us"
	@echo "make lint | types | layers | docs | map | bench | wheels | ci | clean"

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "plaingrad needs CPython 3.11 or newer with venv: none found (set PYTHON=...)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# One stamp a dependency group: `$(VENV)/.test` says that the group `test` of this pyproject.toml is installed.
SOURCES := pyproject.toml hatch_build.py $(wildcard src/plaingrad/engine/compiled/*.px? src/plaingrad/engine/compiled/*.pyx)
$(VENV)/.%: $(SOURCES) $(VENV)/.made
	$(PIP_INSTALL) $$($(PY) .ci/groups.py $*)
	@touch $@

# The extra that users have, too.
$(VENV)/.demo: $(SOURCES) $(VENV)/.made
	$(PIP_INSTALL) -e '.[demo]'
	@touch $@

# What .ci/run needs of its own interpreter: one look at the registry for all of it.
$(VENV)/.checks: $(SOURCES) $(VENV)/.made
	$(PIP_INSTALL) $$($(PY) .ci/groups.py test lint docs)
	@touch $(VENV)/.test $(VENV)/.lint $(VENV)/.docs $@

# Modules are compiled once, not in each worker and each process that a test starts, whatever the environment says.
PYTEST := PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -q -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# LLVM takes two fifths of the time of native tests if it optimises, and only those marked `optimised` are about that.
UNOPTIMISED := NUMBA_OPT=0 NUMBA_LLVM_REFPRUNE_PASS=0
OPTIMISED_TESTS := $(shell grep -l 'mark\.optimised' tests/native/test_*.py)

test: $(VENV)/.test
	@$(MAKE) --no-print-directory optimised; first=$$?; $(MAKE) --no-print-directory suite && exit $$first

optimised: $(VENV)/.test
	$(PYTEST) -m optimised --part $(PART) --junitxml $(VENV)/optimised.xml $(OPTIMISED_TESTS)

suite: $(VENV)/.test
	$(UNOPTIMISED) $(PYTEST) -m "not optimised" --part $(PART) --junitxml $(VENV)/suite.xml

slow: $(VENV)/.test
	@test -f $(VENV)/suite.xml || $(MAKE) --no-print-directory test
	@$(PY) tests/slowest.py $(VENV)/optimised.xml $(VENV)/suite.xml

demo: $(VENV)/.demo
	MPLBACKEND=Agg $(PY) examples/demo.py

lint: $(VENV)/.lint
	$(PY) -m ruff check --output-format concise .
	$(PY) -m ruff format --check -q .

format: $(VENV)/.lint
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

types: $(VENV)/.lint
	$(PY) -m pyright --pythonpath $(PY)

layers: $(VENV)/.lint
	$(VENV)/bin/lint-imports

docs: $(VENV)/.docs
	$(PY) -m sphinx -q -E -W --keep-going -b html docs docs/_build/html
	$(PY) docs/check_pages.py docs/_build/html
	@echo "docs/_build/html/index.html"

map:
	$(PYTHON) docs/draw_map.py
	$(PYTHON) docs/draw_adjoints.py
	$(PYTHON) docs/draw_choice.py

bench: $(VENV)/.bench
	$(PY) -m benchmarks

wheels: $(VENV)/.wheels
	$(PY) .ci/wheels.py dist

ci:
	bash .ci/run

clean:
	rm -rf .venv .venv-* .nox build dist docs/_build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
