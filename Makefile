# `make test` and `make demo` need only make and a CPython 3.11 or newer; everything else goes into .venv.

VENV ?= .venv
# The first interpreter that runs, is new enough and can make virtual environments.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python; do \
  $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
PY := $(VENV)/bin/python
WORKERS ?= 2
# A test that hangs is stopped and reported; it does not hold up the rest.
PYTEST_ARGS ?= --timeout 180

# Tests and figures use one BLAS thread.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK ?= 1

.PHONY: help test demo lint format types layers docs map bench ci clean
.DEFAULT_GOAL := help

help:
	@echo "make test    all tests, in a virtual environment made here"
	@echo "make demo    fit a model to data and differentiate a library that knows nothing of us"
	@echo "make lint | types | layers | docs | map | bench | ci | clean"

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "plaingrad needs CPython 3.11 or newer with venv: none found (set PYTHON=...)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# One stamp an extra: `$(VENV)/.test` says that the extra `test` of this pyproject.toml is installed.
$(VENV)/.%: pyproject.toml $(VENV)/.made
	$(PY) -m pip install -q -e '.[$*]'
	@touch $@

test: $(VENV)/.test
	$(PY) -m pytest -q -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

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

bench: $(VENV)/.bench
	$(PY) -m benchmarks

ci:
	bash .ci/run

clean:
	rm -rf .venv .venv-* .nox build dist docs/_build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
