# Every target does its own set-up, from Python 3.11, pip and git upwards, and says nothing the second time.

export VENV ?= .venv
PYTHON_HERE := $(VENV)/bin/python
JOBS ?= auto

.DEFAULT_GOAL := help
.PHONY: help demo docs dist pictures test test-all lint bench prove lock clean

help:
	@echo 'make demo      watch a run from request to result, on this machine, without a model'
	@echo 'make test      lint, types and all tests; installs what they need where it may'
	@echo 'make test-all  the tests on every supported Python that this machine has, or can get'
	@echo 'make lint      ruff and mypy only'
	@echo 'make bench     the figures, side by side with the limits and the peers'
	@echo 'make prove     the promises, in full (long)'
	@echo 'make pictures  the pictures of the pages, taken of the demo in chromium'
	@echo 'make docs      the documentation as a site with a search, in build/site'
	@echo 'make dist      what a version is made of, built and checked, in dist/'
	@echo 'make lock      renew constraints.txt'
	@echo 'make clean     remove .venv, .venvs, .agent-programs and caches'

demo:
	@scripts/set-up run
	@$(PYTHON_HERE) -m tenuto.demo $(ARGS)

test:
	@scripts/set-up dev
	@scripts/system-tools
	@scripts/agent-programs
	@$(PYTHON_HERE) -m ruff check
	@$(PYTHON_HERE) -m ruff format --check --quiet
	@$(PYTHON_HERE) -m mypy
	@$(PYTHON_HERE) -m pytest -n $(JOBS) $(ARGS) </dev/null

test-all:
	@scripts/set-up dev
	@scripts/test-all $(ARGS)

lint:
	@scripts/set-up dev
	@$(PYTHON_HERE) -m ruff check
	@$(PYTHON_HERE) -m ruff format --check --quiet
	@$(PYTHON_HERE) -m mypy

bench:
	@test -f bench/__main__.py || { echo 'nothing to measure yet: bench/__main__.py does not exist' >&2; exit 1; }
	@scripts/set-up dev
	@scripts/system-tools bench
	@$(PYTHON_HERE) -m bench $(ARGS)

prove:
	@test -f prove/__main__.py || { echo 'nothing to prove yet: prove/__main__.py does not exist' >&2; exit 1; }
	@scripts/set-up dev
	@scripts/system-tools
	@$(PYTHON_HERE) -m prove $(ARGS)

pictures:
	@scripts/set-up dev
	@scripts/system-tools
	@$(PYTHON_HERE) scripts/pictures $(ARGS)

docs:
	@scripts/set-up dev
	@$(PYTHON_HERE) scripts/site $(ARGS)

dist:
	@scripts/set-up dev
	@rm -rf dist
	@$(PYTHON_HERE) -m build --no-isolation
	@$(PYTHON_HERE) -m twine check --strict dist/*
	@scripts/bill-of-materials dist/*.whl

lock:
	@scripts/set-up dev
	@scripts/lock

clean:
	rm -rf .venv .venvs .agent-programs .bench .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find tenuto tests -name __pycache__ -type d -prune -exec rm -rf {} +
