# Everything happens in .venv, which is made on the first call and renewed when pyproject.toml changes.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKERS ?= 2
PYTEST_ARGS ?=
PYTHON ?=
BENCH_ARGS ?=
FIXTURES_ARGS ?=

.PHONY: help
help: ## Say what can be made (this list)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(VENV)/.runtime ## Watch a conversation survive a broken stream and a kill
	@$(BIN)/onrecord demo

.PHONY: test
test: $(VENV)/.dev ## Run all tests (PYTEST_ARGS="-k name" for some, WORKERS=0 for one process)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

.PHONY: lint
lint: $(VENV)/.dev ## Check style and types: ruff, mypy --strict, pyright
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python

.PHONY: format
format: $(VENV)/.dev ## Mend what ruff can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: kill
kill: $(VENV)/.dev ## Kill the gateway at every write, sync and send (needs strace)
	@command -v strace >/dev/null || { echo "make kill: strace is not on the PATH; install it (apt-get install strace) and run again." >&2; exit 1; }
	@$(BIN)/python tests/faults/kill_sweep.py

.PHONY: faults
faults: $(VENV)/.dev ## Let every write and sync call fail, once and from then on
	@$(BIN)/python tests/faults/fault_sweep.py

.PHONY: soak
soak: $(VENV)/.dev ## Let the state machines try far more examples than make test does
	@ONRECORD_HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n $(WORKERS) tests/machines $(PYTEST_ARGS)

.PHONY: bench
bench: $(VENV)/.bench ## Measure us, a bare SQLite and other stores (BENCH_ARGS="--quick --only W1")
	@$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

.PHONY: bench-import
bench-import: $(VENV)/.bench ## Measure an import of a million of Hermes's messages (needs bench-peers)
	@$(BIN)/python benchmarks/import_hermes.py $(BENCH_ARGS)

.PHONY: bench-peers
bench-peers: $(VENV)/.bench ## Install the other stores that make bench compares with
	@$(BIN)/python benchmarks/peers.py

.PHONY: fixtures
fixtures: $(BIN)/python ## Drive Hermes and others, and keep what they leave as fixtures (FIXTURES_ARGS=hermes)
	@$(BIN)/python tests/interop/make_fixtures.py $(FIXTURES_ARGS)

.PHONY: clean
clean: ## Remove the environment and everything that was made
	@rm -rf $(VENV) build dist .import/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# The first Python that is new enough and can make an environment with pip in it.
$(BIN)/python:
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making $(VENV) with $$("$$python" --version)"; \
	    "$$python" -m venv --clear $(VENV); exit 0; \
	  fi; \
	done; \
	echo "onrecord needs Python 3.11 or newer with venv and pip, and none was found: install one (on Debian: python3 and python3-venv) or name it, as in make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)." >&2; \
	exit 1

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	@echo "installing onrecord into $(VENV) (a quarter of a minute, the first time)"
	@$(PIP) install -qq --editable .
	@touch $@

# Dependency groups need pip 25.1; a new environment has the pip of its Python.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "installing onrecord and its tools into $(VENV) (a minute, the first time)"
	@$(PIP) install -qq --upgrade 'pip>=25.1'
	@$(PIP) install -qq --editable . --group dev
	@touch $@ $(VENV)/.runtime

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	@echo "installing onrecord and what measuring it needs into $(VENV) (half a minute, the first time)"
	@$(PIP) install -qq --upgrade 'pip>=25.1'
	@$(PIP) install -qq --editable . --group bench
	@touch $@ $(VENV)/.runtime
