# Everything a fresh machine with Python 3.11+ needs is made by these targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.dev
DEMO := $(VENV)/.demo
UV := $(BIN)/uv
# Bytecode now: where PYTHONDONTWRITEBYTECODE is set, each process would compile everything anew.
INSTALL = $(UV) pip install --quiet --compile-bytecode --python $(BIN)/python
PYTEST_WORKERS ?= 2
export PATH := $(CURDIR)/.cache/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo demo-governance test check bench testbed lock lint types rooms docs clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(UV):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/uv.txt

$(DEMO): requirements/demo.txt pyproject.toml | $(UV)
	$(INSTALL) --require-hashes -r requirements/demo.txt
	$(INSTALL) --no-deps -e .
	$(BIN)/python -m compileall -q verderer
	@touch $@

$(DEV): requirements/dev.txt pyproject.toml | $(UV)
	$(INSTALL) --require-hashes -r requirements/dev.txt
	$(INSTALL) --no-deps -e .
	$(BIN)/python -m compileall -q verderer
	@touch $@ $(DEMO)

lock: | $(UV) ## pin every dependency again
	$(UV) pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --extra dev \
	  --custom-compile-command "make lock" -o requirements/dev.txt pyproject.toml
	$(UV) pip compile -q --generate-hashes --universal --python-version 3.11 --extra demo \
	  --custom-compile-command "make lock" -c requirements/dev.txt -o requirements/demo.txt pyproject.toml

lint: $(DEV)
	$(BIN)/ruff check verderer tests bench examples
	$(BIN)/ruff format --check verderer tests bench examples

types: $(DEV)
	$(BIN)/mypy

rooms: $(DEV)
	$(BIN)/lint-imports

check: lint types rooms ## lint, types, import rules, house and core tests: under a minute
	$(BIN)/pytest tests/house tests/core

test: check testbed ## everything that this machine can run; says at its end what was skipped
	$(BIN)/pytest --numprocesses $(PYTEST_WORKERS) --dist loadgroup --ignore tests/house --ignore tests/core

testbed: ## real peers for the tests: a browser, an S3 server, Kubernetes, Slurm
	-testbeds/browser.sh
	-testbeds/s3.sh
	-testbeds/kubernetes/build.sh
	-testbeds/kubernetes/helm.sh
	-testbeds/slurm/install.sh

demo: $(DEMO) ## start the platform and train a model with it
	$(BIN)/python examples/digits/demo.py

demo-governance: $(DEMO) ## two teams, three clusters and a common one by approval, to play with
	$(BIN)/python examples/governance/demo.py

bench: $(DEV) ## measure; figures beside the limits of this machine (BENCH="--quick --only life")
	$(BIN)/python -m bench --json bench/results/$$(date -u +%Y%m%dT%H%M%SZ).json $(BENCH)

clean: ## remove the environment and caches, never data
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
