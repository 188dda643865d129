# Two commands do everything: `make demo` runs the main job and writes its report, `make test` passes the tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test check docs clean

demo: $(VENV)/ready
	$(BIN)/fathom run copy --scale smoke

test: $(VENV)/ready-to-test
	$(BIN)/pytest

check: $(VENV)/ready-to-test
	$(BIN)/ruff check --output-format concise
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs: $(VENV)/ready-to-test
	$(BIN)/mkdocs serve

clean:
	rm -rf $(VENV) site

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/ready-to-test: $(VENV)/ready
	$(PIP) -e ".[test]"
	touch $@
