# make quickstart   set up, then parse, prepare, train, translate, score and analyse what ships with the project
# make test         set up, then check style and types and run all tests
# make unit         set up, then run the unit tests only
# make gpu          set up, then compare what models compute on a GPU with what they compute on a CPU
# make example      set up, then run all tests in a copy of the project that has the variant of docs/variant.md
# make laws      set up, then run tests in copies of the project without synmt/fast and without synmt/cluster
# make docs         set up, then build the documentation as a site, build/site/index.html; a broken link is an error
# make results      set up, then train and compare all systems: days on two cores; goes on where it stopped

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
# An installed torch >= 2.6 is kept. This release is the fallback where PyTorch's index of CPU builds cannot be reached.
TORCH ?= torch==2.13.0
CPU_BUILDS := https://download.pytorch.org/whl/cpu

# compiled modules are kept even where Python is told not to: every process that a test starts would compile them again
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses 3 --dist worksteal

.PHONY: quickstart test unit gpu example laws docs results clean

quickstart: $(VENV)/.plot
	@echo "1. synmt prepare: generate 6,000 sentence pairs, parse the English (a minute)"
	@$(BIN)/python -m synmt -q prepare quickstart > /dev/null
	@echo; echo "2. synmt train: a Transformer whose attention reads the trees; test it"
	@$(BIN)/python -m synmt train quickstart
	@echo; echo "3. synmt translate: parse and translate 11 new sentences, such as"
	@$(BIN)/python -m synmt -q translate --run runs/quickstart < docs/quickstart.en > runs/quickstart/new.de
	@head -n 1 docs/quickstart.en; head -n 1 runs/quickstart/new.de
	@diff docs/quickstart.de runs/quickstart/new.de && echo "All 11 translations are right." \
		|| { echo "Wrong: the lines after >; they should be those after <"; exit 1; }
	@echo; echo "4. synmt analyze: where the model fails, in sentences of usual length"
	@$(BIN)/python -m synmt analyze --run runs/quickstart --by-label --label attractors --where 'split!=length'
	@cat docs/after-quickstart.txt

test: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(PYTEST)

unit: $(VENV)/.dev
	$(PYTEST) -m unit

gpu: $(VENV)/.dev
	SYNMT_TEST_GPU=1 $(BIN)/python -m pytest -rs tests/model/test_gpu.py

example: $(VENV)/.dev
	$(BIN)/python -m pytest -o faulthandler_timeout=0 -m whole_suite tests/docs/test_variant_page.py

laws: $(VENV)/.dev
	$(BIN)/python -m pytest -o faulthandler_timeout=0 -m whole_suite tests/test_laws.py

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky -c docs . build/site
	@cp build/site/README.html build/site/index.html; echo "build/site/index.html"

SET ?=

results: $(VENV)/.plot
	@failed=0; for plan in results/*.yaml; do \
		$(BIN)/python benchmarks/results.py $$plan $(SET) || { failed=$$?; test $$failed != 130 || exit 130; }; \
	done; $(BIN)/python benchmarks/results_page.py && exit $$failed

$(VENV)/.torch:
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("synmt needs Python 3.10 or newer, this is " + sys.version)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@if $(BIN)/python -c 'import torch' 2>/dev/null; then true; \
	elif command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then $(PIP) 'torch>=2.6'; \
	else $(PIP) --retries 0 --timeout 5 --index-url $(CPU_BUILDS) 'torch>=2.6' 2>/dev/null || $(PIP) '$(TORCH)'; fi
	@touch $@

$(VENV)/.plot: $(VENV)/.torch pyproject.toml
	@$(PIP) --editable '.[plot]'
	@touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	@$(PIP) --editable '.[dev,plot]'
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info
