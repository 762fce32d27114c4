# Rejoinder. `make serve` is all a newcomer needs; `make help` lists the rest.
#
# torch is installed first, on its own. The package index's torch for Linux is a CUDA build of several gigabytes that
# brings nothing here, so a CPU build (a version that ends in +cpu) is taken where one can be found: from whatever pip
# is set up for, else from PyTorch's own index of CPU builds, else the plain version.
#   make setup GPU=1                    the plain version at once (its CUDA build on Linux)
#   make setup TORCH=torch==2.14.1      another version
#   PIP_EXTRA_INDEX_URL, pip.conf, ...  your mirror: used as they are, and PyTorch's index is left alone

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
TORCH ?= torch==2.13.0
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
GPU ?=
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALLED := $(VENV)/installed
PREPARED := $(VENV)/prepared
DEBIAN_FOR_TESTS := chromium espeak-ng nginx-light pocketsphinx-testdata sox strace
PIPECAT := $(VENV)/pipecat
PIPECAT_FOR_TESTS := pipecat-ai==1.14.0 'aiofiles<27' 'docstring_parser<1' 'loguru<0.8' 'loudness<1' 'pillow<14' \
	sentencex==1.0.32 'wait_for2<1'

.DEFAULT_GOAL := help
.PHONY: help setup serve test check docs test-packages coqui test-coqui clean

help: ## this list
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(PREPARED) ## create .venv, install, fetch the default models, build the kernel
	@echo "Ready: make serve"

serve: setup ## serve the demo page, the realtime socket and the phone bridge (ARGS="--port 9000")
	@exec $(BIN)/rejoinder serve $(ARGS)

test: setup test-packages check ## everything CI runs: lint, types, tests (ARGS="tests/llm -k draft")
	@$(BIN)/rejoinder models pull --all
	$(BIN)/python -m pytest $(ARGS)

check: $(INSTALLED) ## lint, types and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: $(INSTALLED) ## write the tables of docs/ that are made from the code
	$(BIN)/python -m web.reference

bench-%: setup ## a benchmark, e.g. make bench-calls (bench/calls.py)
	$(BIN)/python -m bench.$(subst -,_,$*) $(ARGS)

# The package index's torchaudio for Linux loads CUDA's libraries when it is imported. Beside a CPU build of torch it
# goes without its own compiled library, of which Coqui uses nothing.
coqui: $(INSTALLED) ## add Coqui voices to the environment (about 500 MB; XTTS weights are non-commercial)
	@echo "installing Coqui"
	@$(PIP) install --quiet --editable '.[coqui]'
	@$(BIN)/python -c 'import torchaudio' 2>/dev/null || rm -f $(VENV)/lib/python3*/site-packages/torchaudio/lib/_torchaudio.so
	@$(BIN)/python -c 'import torchaudio'

test-coqui: ## test Coqui voices with the real package, in .venv-coqui (2.4 GB; not part of `make test`)
	@$(MAKE) --no-print-directory coqui VENV=.venv-coqui
	.venv-coqui/bin/python -m pytest tests/coqui $(ARGS)

clean: ## remove the environment and caches; models stay (rejoinder models list says where)
	rm -rf $(VENV) .venv-coqui build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PREPARED): $(INSTALLED) pipeline/models/catalogue.toml $(wildcard llm/targets/cpu/kernel/*)
	@$(BIN)/rejoinder setup
	@touch $@

$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed; none was found. PYTHON=/path/to/python names one."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(MAKE) --no-print-directory torch
	@echo "installing Rejoinder and what it needs (a few minutes the first time)"
	@$(PIP) install --quiet --editable '.[dev]'
	@touch $@

.PHONY: torch
torch:
	@echo "installing $(TORCH)"
ifneq ($(GPU),)
	@$(PIP) install --quiet '$(TORCH)'
else
	@$(PIP) install --quiet '$(TORCH)+cpu' 2>/dev/null \
	|| { test -z "$$PIP_EXTRA_INDEX_URL$$PIP_INDEX_URL" \
	     && $(PIP) install --quiet --retries 1 --extra-index-url $(TORCH_CPU_INDEX) '$(TORCH)+cpu' 2>/dev/null; } \
	|| { echo "no CPU build of $(TORCH) found: taking the plain one"; $(PIP) install --quiet '$(TORCH)'; }
endif

# The tests of whole calls play recorded speech through a real browser. Without these packages they say what is missing.
test-packages: $(PIPECAT)/installed ## fetch what some tests need: a browser, recordings, phonemes, pipecat's serializers
	@missing=$$(for p in $(DEBIAN_FOR_TESTS); do \
		dpkg-query -W -f '$${db:Status-Status}' $$p 2>/dev/null | grep -qx installed || echo $$p; done); \
	test -z "$$missing" || ! command -v apt-get >/dev/null || { \
		echo "installing" $$missing; \
		if test "$$(id -u)" = 0; then sudo=; else sudo="sudo -n"; fi; \
		$$sudo apt-get update -qq \
		&& $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null \
		|| echo "could not install them; some tests will say what they miss"; }

# The phone bridge's wire is checked against pipecat's serializers. pipecat-ai wants older sound libraries than ours
# and brings a compiler (numba's): what its serializers import, and no more, stands in a folder of its own.
$(PIPECAT)/installed: $(INSTALLED)
	@echo "installing pipecat's serializers"
	@$(PIP) install --quiet --no-deps --upgrade --target $(PIPECAT) $(PIPECAT_FOR_TESTS) && touch $@ \
	|| echo "could not install them; some tests will say what they miss"
