# Everything runs inside $(VENV); `make setup` makes it. Delete it with `make clean`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= offline,evaluate,training,agreement,demo,ray,dev
READY := $(VENV)/.ready
export HF_HUB_DISABLE_TELEMETRY := 1
export HF_UPDATE_DOWNLOAD_COUNTS := 0
export TOKENIZERS_PARALLELISM := true

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## Make the virtual environment and install everything

# torch goes first and by itself: anything that depends on it would otherwise pull the newest CUDA build.
$(READY): pyproject.toml constraints.txt
	@echo "== dialeval: creating $(VENV) and installing packages (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	@$(BIN)/python -m pip check
	@touch $@
	@echo "== dialeval: ready"

demo: setup ## Score a sample conversation with every metric, through evaluate.load
	@echo "== dialeval: installing the evaluate modules into this user's module cache"
	@$(BIN)/dialeval install-modules --quiet
	@echo "== dialeval: scoring a sample conversation with every metric"
	@HF_EVALUATE_OFFLINE=1 $(BIN)/python examples/demo.py

test: setup ## Run the tests
	@echo "== dialeval: running the tests"
	@$(BIN)/python -m pytest

lint: setup ## Check style and types
	@echo "== dialeval: ruff and mypy"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: setup ## Measure speed and memory against named alternatives
	@echo "== dialeval: measuring speed (some minutes)"
	@$(BIN)/python performance/speed.py

clean: ## Remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
