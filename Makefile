# make demo: set up, run self-play on the embedded tiny policy, write the report.
# make test: set up, run the tests.    make check: what CI runs besides the tests.
# make evidence: every arm on three seeds (hours, resumable), compared, told in docs/evidence.
#   SEEDS="1 2 3"  ARMS="full frozen_designer"  STEPS=20  JOBS=2  STALE=redo  RUNS=runs/other

PYTHON ?= python3
RUN ?= runs/demo
SEED ?= 0
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The arithmetic of small models is fastest with one thread a process and no spinning.
export OMP_NUM_THREADS ?= 1
export KMP_BLOCKTIME ?= 0
export OMP_WAIT_POLICY ?= passive
export TOKENIZERS_PARALLELISM ?= false

.PHONY: setup demo test check bench evidence schemas format clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Say: make setup PYTHON=python3.11"; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "This Python can't make virtual environments; on Debian: apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@echo "Installing torch, then the rest (a few minutes) ..."
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,eval,report,dev]'
	@touch $(STAMP)

demo: setup
	$(BIN)/spade train --preset tiny seed=$(SEED) run_dir=$(RUN)

test: setup
	$(BIN)/python -m pytest

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m spade_train.schema_files --check

bench: setup
	$(BIN)/python -m benchmarks

evidence: setup
	$(BIN)/python -m spade_train.evidence --seeds "$(or $(SEEDS),1 2 3)" --arms "$(ARMS)" \
	  --steps "$(STEPS)" --jobs "$(or $(JOBS),1)" --stale "$(or $(STALE),refuse)" \
	  --runs "$(or $(RUNS),runs/evidence)" $(SET)

schemas: setup
	$(BIN)/python -m spade_train.schema_files --write

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
