# The commands people and CI run. Needs git, make and Python >= 3.11; everything else is installed into .venv.
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
READY := .venv/.ready
# Folders that exist; some rooms come later.
TYPED_LENIENTLY = $(wildcard tests examples benchmarks)

.DEFAULT_GOAL := help
.PHONY: help install check test crash soak demo histories screenshots format clean

help: ## Show these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

install: $(READY) ## Make .venv with everything in it

check: $(READY) ## Lint, format, types, walls between rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p countersign
	$(BIN)/mypy $(TYPED_LENIENTLY)
	$(BIN)/lint-imports

test: $(READY) ## Run the tests; ARGS="-k name" for some of them
	$(BIN)/python -m pytest --numprocesses=2 --dist=loadfile $(ARGS)

crash: $(READY) ## Kill worker and server at every point; ARGS="--help"
	$(BIN)/python -m tests.crash.matrix $(ARGS)

soak: $(READY) ## Many sessions, workers killed; ARGS="--sessions 100 --minutes 1"
	$(BIN)/python -m tests.crash.soak $(ARGS)

demo: $(READY) ## Run the demo
	$(BIN)/python -m examples.demo

histories: $(READY) ## Record tests/replay/histories of this version anew
	$(BIN)/python -m tests.replay.record $(ARGS)

screenshots: $(READY) ## Make docs/images anew; needs Chromium
	$(BIN)/python -m docs.screenshots

format: $(READY) ## Format the code and apply safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove .venv, caches and builds
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "No '$(PYTHON)' found. Install Python 3.11 or newer, or name one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Countersign needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name a newer one: make PYTHON=python3.12"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv || \
	  { echo "Could not make .venv. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@# The pip that comes with Python 3.11 gives up on sets of requirements that a newer one resolves.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@echo "installed into .venv; next: make demo, or . .venv/bin/activate for the command countersign"
	@touch $@
