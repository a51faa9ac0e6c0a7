# make book       build the book and print its address       make serve   ... and open it
# make lab        open your own copy of the chapters in JupyterLab
# make test       everything, a browser included             make check   the fast part
# make notebooks  run and normalize the chapters that have changed (PATHS=03-scaling: one of them)
# make page       build one chapter: PATHS=03-scaling
# make references write book/references.md after a change to references.bib
# make chapter    begin a chapter: NAME=14-inside-a-gpt TITLE="Inside a GPT"
# make soak       the long counts of what make test samples
# make trained    train the weights that the library ships
#
# All that is needed is make and Python 3.11 to 3.14 (another one: make PYTHON=python3.12 ...). The
# rest is installed into .venv, from where your pip is configured to install from.

PYTHON ?= python3
# Tests at a time, of one thread each: threads that wait for one another take many times as long
# where cores are shared with other programs.
WORKERS ?= 2
export OMP_NUM_THREADS := 1

VENV := .venv
BIN := $(VENV)/bin
MODULES := $(VENV)/npm/node_modules
export PATH := $(abspath $(BIN)):$(PATH)
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: book page chapter serve notebooks references lab lint check test soak trained clean test-oldest test-newest \
	colab-check
.DEFAULT_GOAL := book

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || \
		{ echo "The book needs Python 3.11 to 3.14; $(PYTHON) is another. Try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Matplotlib looks for the fonts once, and if that takes long says so on stderr, as a chapter must not.
FIND_FONTS := -c 'import matplotlib.font_manager'

$(VENV)/installed: requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -e .
	$(BIN)/python $(FIND_FONTS)
	touch $@

# The npm packages that the pages need (KaTeX's style, d3 and jQuery for bertviz) and the tests (axe).
# They are installed into .venv and never committed.
$(VENV)/npm/installed: book/package.json $(VENV)/installed
	mkdir -p $(VENV)/npm && cp book/package.json $(VENV)/npm/
	cd $(VENV)/npm && npm install --no-package-lock --ignore-scripts --no-audit --no-fund --silent
	touch $@

$(VENV)/lab/installed: book/lab.txt $(VENV)/installed
	$(BIN)/python -m venv $(VENV)/lab
	$(VENV)/lab/bin/python -m pip install --quiet --disable-pip-version-check -r book/lab.txt
	touch $@

book: $(VENV)/npm/installed
	$(BIN)/python book/build.py --jobs $(WORKERS)

page: $(VENV)/npm/installed
	$(BIN)/python book/build.py --only $(or $(PATHS),$(error say which: make page PATHS=03-scaling))

serve: book
	$(BIN)/python -m webbrowser "file://$(abspath _build/html/index.html)"

# A copy of the chapters in lab/, for the reader to write in; what is written there is never replaced.
lab: $(VENV)/lab/installed $(VENV)/npm/installed
	$(BIN)/python book/lab.py

notebooks: $(VENV)/installed
	$(BIN)/python book/notebooks.py $(PATHS)

# The list of references as plain Markdown, from references.bib.
references: $(VENV)/installed
	$(BIN)/python book/extensions/bibliography.py

chapter: $(VENV)/installed
	$(BIN)/python book/new_chapter.py "$(NAME)" "$(TITLE)"

# The formatters and linters, in seconds: Python, notebooks, JavaScript.
lint: $(VENV)/npm/installed
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(MODULES)/.bin/biome ci --error-on-warnings .

# Without the browser, without running the chapters, and without what takes seconds a test.
check: lint
	$(PYTEST) -q -m "not slow and not soak" --ignore=tests/browser --ignore=tests/chapters/test_nbval.py

# The book is built by the first test that needs it, while others run (tests/support/schedule.py).
test: lint $(VENV)/lab/installed
	$(BIN)/python tests/browser/chromium.py
	$(PYTEST) -m "not soak" --durations=10

# Hundreds of kills, damaged and forged checkpoints, full disks, and a thousand models of random
# wirings and sizes in each test, in place of 60: some minutes. Writes a run log. Then the times that
# figures take to repaint are measured.
soak: $(VENV)/npm/installed $(VENV)/lab/installed
	$(BIN)/python benchmarks/soak.py
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python -m pytest -m soak

# The library's tests and the chapters in environments of their own: with the oldest versions that
# pyproject.toml claims, and with the newest there are. The other tests need the book's own tools.
BOOK_TESTS := tests/book tests/browser tests/chapters tests/js \
	$(addprefix tests/widgets/test_,javascript.py joining.py training_engine.py)
LIBRARY_TESTS := -m "not soak" tests $(BOOK_TESTS:%=--ignore=%)
WITH_TESTS := -e '.[book]' pytest hypothesis beartype nbval nbclient
NBVAL := -m pytest -q --nbval --nbval-cell-timeout=900 --nbval-kernel-name=python3 chapters

test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet -c tests/oldest.txt $(WITH_TESTS)
	.venv-oldest/bin/python -m pytest -q $(LIBRARY_TESTS)
	.venv-oldest/bin/python $(FIND_FONTS)
	.venv-oldest/bin/python $(NBVAL)

test-newest:
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager $(WITH_TESTS)
	.venv-newest/bin/python -m pip list
	.venv-newest/bin/python -m pytest -q $(LIBRARY_TESTS)
	.venv-newest/bin/python $(FIND_FONTS)
	.venv-newest/bin/python $(NBVAL)

# The weights that the library ships, from the start: about half an hour of one core. It goes on where it
# was stopped. (Delete _build/trained to begin anew.)
TRAINING := $(BIN)/python -m transformer_lib.training
trained: $(VENV)/installed
	$(TRAINING) train --preset gifts-taught --folder _build/trained/gifts-v3 --continue
	rm -rf transformer_lib/trained/gifts-v3
	$(TRAINING) export _build/trained/gifts-v3 transformer_lib/trained/gifts-v3

# Would installing the library on Colab replace the torch or numpy that is there? Asks pip, about
# Colab's version of Python if there is one here (or: make colab-check COLAB_PYTHON=...).
colab-check: $(BIN)/python
	$(BIN)/python tests/colab.py $(if $(COLAB_PYTHON),--python $(COLAB_PYTHON))

clean:
	rm -rf _build
