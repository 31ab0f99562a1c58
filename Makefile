# Everything runs inside $(VENV); `make setup` makes it. Delete it with `make clean`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= offline,evaluate,training,agreement,demo,llm,ray,dev
CONSTRAINTS ?= constraints.txt
READY := $(VENV)/.ready
# The Pythons of `make test-versions`, and where it keeps its environments.
PYTHONS ?= 3.11 3.12 3.13
VERSIONS ?= .venv-versions
# Files of tests side by side, each in one process from its first test to its last.
PYTEST := python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
EXAMPLES ?= .venv-examples
# Alterations of each kind that `make fuzz` tries.
FUZZ ?= 20000
# What `make results` measures again, each by the command in its run.json.
MEASURED ?= results $(addprefix results/,judge/without_facts judge/dstc9 dailydialogpp cmn robustness robustness/adversarial_khalid)
CALIBRATED := 'judge,density,density?scoring=classifier&name=density_classifier,deb,quantidce'
SETS := fbd_personam@as_released,fbd_dailyh@as_released,fbd_convai2@as_released,fbd_empathetic@as_released,fbd_dailyz@as_released,fbd_personaz@as_released
DISTANCES := -b $(SETS) --curves fbd_dailyz@as_released --conicity dailydialogpp_test
DIALOGUES := dailydialog:test,convai2:validation,empathetic_dialogues:test,topical_chat:test
INSTALL_CHROMIUM := echo "== dialeval: installing Chromium for the browser tests"; \
	(apt-get -o Acquire::http::Timeout=20 update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium) >/dev/null 2>&1 \
	|| echo "== dialeval: apt-get could not install Chromium; browser tests are skipped"
export HF_HUB_DISABLE_TELEMETRY := 1
export HF_UPDATE_DOWNLOAD_COUNTS := 0
export TOKENIZERS_PARALLELISM := true

.DEFAULT_GOAL := help
.PHONY: help setup browser large demo space test test-fast test-versions test-examples lint docs screenshots bench results fuzz mutants dist clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(READY) ## Make the virtual environment and install everything

# Only what is imported is ever compiled: all of it takes a minute or two.
# torch goes first and by itself: anything that depends on it would otherwise pull the newest CUDA build.
$(READY): pyproject.toml plugins/dialeval-baselines/pyproject.toml $(CONSTRAINTS)
	@echo "== dialeval: creating $(VENV) and installing packages (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check "$$(grep '^torch==' $(CONSTRAINTS))"
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --use-pep517 -c $(CONSTRAINTS) -e ".[$(EXTRAS)]" -e plugins/dialeval-baselines
	@$(BIN)/python -m pip check
	@touch $@
	@echo "== dialeval: ready"

large: setup ## Install the base encoder of the large judge (412 MB)
	@echo "== dialeval: installing the base encoder of the large judge"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[large]"

demo: setup ## Score a sample conversation with every metric, through evaluate.load
	@echo "== dialeval: installing the evaluate modules into this user's module cache"
	@$(BIN)/dialeval install-modules --quiet
	@echo "== dialeval: scoring a sample conversation with every metric"
	@HF_EVALUATE_OFFLINE=1 $(BIN)/python examples/demo.py

space: setup ## Start the side-by-side page in the browser, on the embedded checkpoints
	@echo "== dialeval: starting the page; open the address below, stop with Ctrl-C"
	@HF_HUB_OFFLINE=1 $(BIN)/python spaces/side_by_side/app.py

# Debian's Chromium for the browser tests. Where it cannot be had, they are skipped and say so.
browser:
	@if { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null; then :; \
	elif ! command -v apt-get >/dev/null; then echo "== dialeval: no Chromium and no apt-get here; browser tests are skipped"; \
	elif [ "$$(id -u)" = 0 ]; then $(INSTALL_CHROMIUM); \
	elif sudo -n true 2>/dev/null; then sudo -n sh -c '$(INSTALL_CHROMIUM)'; \
	else echo "== dialeval: installing Chromium needs root (apt-get install chromium); browser tests are skipped"; fi

test: setup browser ## Run the tests
	@echo "== dialeval: running the tests"
	@$(BIN)/$(PYTEST)

test-fast: setup ## Run the tests that take no more than about a second each, about a minute
	@echo "== dialeval: running the tests that are not slow"
	@$(BIN)/$(PYTEST) -m "not slow"

# The lowest versions go with the lowest Python, for which they were made; the newest with every Python on the path.
test-versions: browser ## Run the tests on the lowest and the newest versions that are allowed
	@failed=; for version in $(PYTHONS); do \
		if ! python$$version --version >/dev/null 2>&1; then echo "== dialeval: no python$$version here; left out"; continue; fi; \
		for which in $$([ $$version = 3.11 ] && echo lowest) newest; do \
			case $$which in lowest) file=constraints-lowest.txt;; *) file=constraints.txt;; esac; \
			at=$(VERSIONS)/$$which-$$version; \
			echo "== dialeval: the tests with Python $$version and $$file"; \
			$(MAKE) --no-print-directory setup VENV=$$at PYTHON=python$$version CONSTRAINTS=$$file \
				&& $$at/bin/$(PYTEST) || failed="$$failed $$at"; \
		done; \
	done; \
	if [ -n "$$failed" ]; then echo "== dialeval: the tests failed in$$failed"; exit 1; fi

# Their pins differ from ours, so each has an environment of its own. promptfoo needs npm.
test-examples: ## Run the examples for MLflow, deepeval, Opik, Inspect and promptfoo, in environments of their own
	@echo "== dialeval: installing each tool into a folder of $(EXAMPLES), and running its example"
	@$(PYTHON) examples/run.py --into $(EXAMPLES) $(NAMES)

lint: setup ## Check style and types
	@echo "== dialeval: ruff and mypy"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@cd spaces/side_by_side && MYPYPATH=../../src $(abspath $(BIN))/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache *.py

screenshots: setup browser ## Take the documentation's pictures of the page anew
	@echo "== dialeval: taking the pictures; look at each one before committing it"
	@HF_HUB_OFFLINE=1 PYTHONPATH=tests/support $(BIN)/python tests/spaces/space_screenshots.py

docs: setup ## Build the documentation's site into build/site
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[docs]"
	@echo "== dialeval: building the site"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "== dialeval: open build/site/index.html"

bench: setup ## Measure speed, memory and precision again: make bench MIRROR=...
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[bench]" \
	|| echo "== dialeval: mauve-text could not be installed; the page says so in its place"
	@echo "== dialeval: writing the tables of performance/README.md (an hour or two; leave the machine alone meanwhile)"
	@$(BIN)/python performance/suite.py
	@$(BIN)/python performance/suite.py --instructions avx2
	@$(BIN)/python performance/together.py
	@$(BIN)/python performance/million.py
	@$(BIN)/python performance/million.py --short --minutes 10
	@$(BIN)/python performance/startup.py
	@test -z "$(MIRROR)" || DIALEVAL_MIRROR="$(MIRROR)" $(BIN)/python performance/precision.py

results: setup ## Measure results/ again with the embedded weights, an hour or two: make results CORPORA=... RATINGS=... MIRROR=...
	@test -d "$(CORPORA)" -a -d "$(RATINGS)" -a -d "$(MIRROR)" || { echo "CORPORA, RATINGS and MIRROR are folders, see training/README.md"; exit 2; }
	@for folder in $(MEASURED); do echo "== dialeval: $$folder"; \
		said=$$($(BIN)/python -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"])' $$folder/run.json) && \
		PATH="$(abspath $(BIN)):$$PATH" DIALEVAL_MIRROR="$(MIRROR)" sh -c "$$said" || exit 1; done
	@echo "== dialeval: results/faults, results/charges, results/calibration, results/distances, model_cards"
	@$(BIN)/python training/twins.py --corpora "$(CORPORA)" --ratings "$(RATINGS)" --out results/faults
	@$(BIN)/python training/charges.py --corpora "$(CORPORA)" --out results/charges
	@$(BIN)/python -m reproduce calibration -m $(CALIBRATED) --corpora "$(CORPORA)" --dialogues $(DIALOGUES) --pairs 400 --out results/calibration
	@DIALEVAL_MIRROR="$(MIRROR)" $(BIN)/python -m reproduce distances $(DISTANCES) --out results/distances
	@echo "== dialeval: results/papers, docs/tune.md"
	@DIALEVAL_MIRROR="$(MIRROR)" $(BIN)/python -m reproduce papers --measure --values .cache/suite --out results/papers
	@$(BIN)/python performance/tuning.py --ratings "$(RATINGS)"
	@$(BIN)/python training/cards.py

# New examples in every run; what is found is kept in the file as an example.
fuzz: setup ## Alter files, answers and settings in new ways for about an hour, and see whether each is read or refused
	@echo "== dialeval: trying $(FUZZ) alterations of each kind"
	@DIALEVAL_FUZZ=$(FUZZ) $(BIN)/python -m pytest tests/reliability/test_fuzz.py

# FILE is one or more files below src/dialeval that tests/mutation/targets.py names; all of them by default.
mutants: setup ## Change FILE a little at a time and see whether its tests notice
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[mutation]"
	@echo "== dialeval: trying mutants at low priority (a few minutes a file; goes on where it was stopped)"
	@$(BIN)/python tests/mutation/mutants.py $(or $(FILE),--all) --table docs/reliability.md

dist: setup ## Build wheels and source archives of the package and of the trained baselines into dist
	@rm -rf dist
	@for folder in . plugins/dialeval-baselines; do (cd $$folder && "$(abspath $(BIN))/hatchling" build -d "$(CURDIR)/dist" -t sdist -t wheel) || exit 1; done

clean: ## Remove the environment and caches
	rm -rf $(VENV) $(VERSIONS) $(EXAMPLES) .mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
