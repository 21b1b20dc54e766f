# One command checks everything: `make check`. PYTHON is the interpreter of an environment with `.[test]` installed.
PYTHON ?= python
WORKERS ?= auto

.PHONY: check format-check format lint types test quick bench docs

check: format-check lint types test

format-check:
	$(PYTHON) -m ruff format --check .

format:
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lint:
	$(PYTHON) -m ruff check .

# mypy reads packages from folders of their name, and a clone may have any: it finds this one by a link.
types:
	mkdir -p .mypy_cache/tree && ln -sfn ../.. .mypy_cache/tree/partita
	$(PYTHON) -m mypy -p partita
	$(PYTHON) -m mypy -p tests

test:
	$(PYTHON) -m pytest -n $(WORKERS)

quick:
	$(PYTHON) -m pytest -n $(WORKERS) -m "not slow"

bench:
	$(PYTHON) -m benchmarks $(FLAGS)

# Needs `.[docs]`; every warning, such as a link that leads nowhere, is an error.
docs:
	$(PYTHON) -m sphinx --fail-on-warning --keep-going --nitpicky --quiet docs build/docs
