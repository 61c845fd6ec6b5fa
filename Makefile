# make quickstart   set up, then parse, prepare, train, translate, score and analyse what ships with the project
# make test         set up, then check the style and run the tests
# make check        the types too (pyright)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
# the release to fall back on where PyTorch's own index of CPU builds is out of reach; any torch >= 2.6 that is there is kept
TORCH ?= torch==2.13.0
CPU_BUILDS := https://download.pytorch.org/whl/cpu

.PHONY: quickstart test check clean

quickstart: $(VENV)/.plot
	@$(BIN)/python -m synmt train recipes/quickstart.yaml
	@echo; echo "A sentence of your own, parsed and translated:"
	@echo "The boy next to the girls sees the dog." | tee /dev/stderr | $(BIN)/python -m synmt -q translate --run runs/quickstart
	@echo; $(BIN)/python -m synmt analyze --run runs/quickstart --by-length --plot runs/quickstart/by-length.png
	@echo; $(BIN)/python -m synmt analyze --run runs/quickstart --by-label --label attractors --where 'split!=length'
	@cat docs/after-quickstart.txt

test: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

check: test
	$(BIN)/pyright

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
