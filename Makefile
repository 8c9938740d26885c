# make demo · make test · make check · make docs · make lock · make clean
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
HASHED := --require-hashes --only-binary :all:
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--fork-strategy fewest --no-emit-index-url --no-annotate --custom-compile-command "make lock"

.PHONY: help demo test check docs lock clean need-git

help:
	@echo "make demo   installs the locked set and runs onnx-ci on four example models"
	@echo "make test   installs the locked set and runs all checks and tests"
	@echo "make check  linters, types and generated files only"
	@echo "make docs   writes the files that are made of the code"
	@echo "make lock   resolves the lock files anew"
	@echo "make clean  removes the environment and what was generated"

demo: $(VENV)/.ready
	$(BIN)/onnx-ci run --config fixtures/demo.toml --python "$(CURDIR)/$(BIN)/python" --out onnx-ci-out

test: check
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadgroup $(PYTEST_ARGS)

check: $(VENV)/.ready need-git
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check

docs: $(VENV)/.ready
	$(BIN)/python docs/generate.py

need-git:
	@command -v git >/dev/null 2>&1 || { echo "make: git is missing: install it, the tests make repositories" >&2; exit 1; }

# The first interpreter that is new enough; PYTHON=... on the command line overrides.
$(VENV)/.locked: requirements/dev.lock requirements/weights.lock requirements/torch.txt
	@for python in $(PYTHON) python3.11 python3 python3.12 python3.13 python3.14 python; do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
		"$$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || { \
			echo "make: $$python has no venv module: install it (Debian: apt-get install python3-venv)" >&2; exit 1; }; \
		echo "Making $(VENV) with $$("$$python" --version)"; \
		exec "$$python" -m venv $(VENV); \
	done; echo "make: Python 3.11 or newer is missing: install it, or name it with PYTHON=/path/to/python3" >&2; exit 1
	@echo "Installing the locked packages; torch is among them, so the first time takes minutes"
	@$(PIP) install $(HASHED) -r requirements/dev.lock
	@$(PIP) install -r requirements/torch.txt
	@$(PIP) install $(HASHED) --no-deps -r requirements/weights.lock
	@touch $@

$(VENV)/.ready: $(VENV)/.locked pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# Upgrades all that is not pinned; the tool's lock binds the development lock, so that tests run what the action installs.
lock: $(VENV)/.locked
	$(COMPILE) --upgrade pyproject.toml --output-file requirements/tool.lock
	$(COMPILE) --upgrade pyproject.toml requirements/dev.in --constraints requirements/tool.lock \
		--output-file requirements/dev.lock
	$(COMPILE) --upgrade --no-deps requirements/weights.in --output-file requirements/weights.lock
	$(COMPILE) --upgrade requirements/old-pydantic.in --output-file requirements/old-pydantic.lock

clean:
	rm -rf $(VENV) build dist onnx-ci-out src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
