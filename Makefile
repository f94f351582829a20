# Needs only Python >= 3.11 and make: every target makes .venv itself.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 1
SAMPLE ?= 12
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
# what `make quick` runs, in one process beside mypy: what a person moves, noise, cost, ledger and
# certificate; that files know no more than the guard has told; recipe, columns, floors, old files
CORE := $(addprefix tests/privacy/test_,guard.py questions.py noise.py events.py ledger.py \
	guarantee.py certificate.py fit_leaks.py slab_guard.py) tests/measures/test_counts.py \
	$(addprefix tests/test_,recipe.py columns.py floors.py files.py old_files.py)

.PHONY: help demo quick test test-all lint core unit thorough x64 kills mutants operators fuzz docs evidence house
.PHONY: attest audit lock check-lock sbom wheel
.PHONY: reproduce bench bench-regret bench-stream bench-utility clean

help:
	@echo "make demo      fit the simulated growth clinic and write everything to demo/"
	@echo "make quick     lint, types, fast tests of the core and of privacy; a minute"
	@echo "make test      lint, types and tests; ten minutes on two cores"
	@echo "make test-all  everything else: browser, databases, scripts, site, float64, planted breaks"
	@echo "make house     the size of the code beside its bars"
	@echo "make kills     200 processes killed while they write a ledger, 200 of watch, fit and extend (KILLS=n for more)"
	@echo "make mutants   plant every break of docs/privacy.md and demand that a test fails (ONLY=names)"
	@echo "make operators breaks that are found in the source itself: the last whole run, a dozen anew (SAMPLE=all)"
	@echo "make fuzz      random tables and questions to the guard, ten minutes (FUZZ_SECONDS=600 FUZZ_SEED=1)"
	@echo "make attest    what was tested of this version, signed (KEY=FILE of privtraj sign --new-key)"
	@echo "make wheel     the wheel, the same bytes each time; make lock, check-lock (ADVISORIES=FILE), sbom: what it is built from"
	@echo "make docs      the documentation, as a site in site/"
	@echo "make evidence  the quality tables (STROKES=path/to/mnist_strokes_dejong.npz for the strokes)"
	@echo "make reproduce the paper's tables and figures again, to paper/ (STROKES=FILE for the digits, QUICK=1)"
	@echo "make bench     speed, as ratios against peers in the same run"
	@echo "make bench-regret  what a fit decides by itself against the best set by hand, 300 populations (QUICK=1)"
	@echo "make bench-stream  a model that grows by 24 batches against one fit and baselines (QUICK=1; UNSEEN=12)"
	@echo "make bench-utility  every method over budgets, people, features and times (QUICK=1 for a part)"

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "privtraj needs Python 3.11 or newer; run make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/privtraj demo --out demo --force

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

quick:
	$(MAKE) --jobs 2 lint core

core: $(READY)
	$(BIN)/python -m pytest -m "not slow and not thorough" $(CORE)

test:
	$(MAKE) --jobs 2 lint unit

unit: $(READY)
	$(PYTEST) -m "not thorough" --junitxml results/tests.xml

test-all: thorough x64 mutants operators fuzz

thorough: $(READY)
	$(PYTEST) -m thorough --junitxml results/thorough.xml

# the core once more, as users of libraries see it that let JAX compute in float64
x64: $(READY)
	JAX_ENABLE_X64=1 $(PYTEST) -m "not slow and not thorough" tests/motion tests/measures

house: $(READY)
	$(BIN)/python experiments/house.py --walk

# whatever a ledger confirmed has to survive; minutes
kills: $(READY)
	PRIVTRAJ_KILLS=$(or $(KILLS),200) $(BIN)/python -m pytest tests/privacy/test_ledger_file.py tests/stream -k kill

mutants: $(READY)
	PYTHONPATH=tests $(BIN)/python -m mutants $(ONLY)

# breaks found in the source itself: the table of the last whole run (tests/mutants/operators.csv),
# and some planted again; SAMPLE=all is a whole run, which goes on from results/operators/outcomes.csv
operators: $(READY)
	PYTHONPATH=tests $(BIN)/python -m mutants --operators --sample $(SAMPLE) --out results/operators

# attest reads what test, test-all, mutants, operators and audit have left in results/
audit: $(READY)
	mkdir -p results
	$(BIN)/privtraj audit --epsilon 1 --delta 1e-5 --out results/audit.json --force

attest: $(READY)
	$(BIN)/python experiments/attest.py --key $(KEY)

# ADVISORIES: known weaknesses, where a data base is at hand (experiments/supply.py says in which form)
lock check-lock sbom: $(READY)
	$(BIN)/python experiments/supply.py $(patsubst check-lock,check,$@) $(ADVISORIES)

# archives carry times: those of the last commit
wheel: $(READY)
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

fuzz: $(READY)
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

evidence: $(READY)
	$(BIN)/python experiments/three_modes.py
	$(if $(STROKES),$(BIN)/python experiments/strokes.py $(STROKES))

# everything with pen strokes; without them what needs none
reproduce: $(READY)
	$(if $(STROKES),$(BIN)/python -m reproduce all --out paper --strokes $(STROKES) --force $(if $(QUICK),--quick))
	$(if $(STROKES),,for name in table-budgets fig-multimodal rates; do \
	    $(BIN)/python -m reproduce $$name --out paper --force $(if $(QUICK),--quick) || exit 1; done)

bench: $(READY)
	mkdir -p results
	$(BIN)/python benchmarks/speed.py --json results/speed.json

# what is set by hand is read from docs/results/regret.csv; remove it to fit everything again
bench-regret: $(READY)
	mkdir -p results
	$(BIN)/python benchmarks/regret.py $(if $(QUICK),--quick --out results/regret.csv)

bench-stream: $(READY)
	$(BIN)/python benchmarks/stream.py $(if $(QUICK),--quick) $(if $(UNSEEN),--unseen $(UNSEEN))

bench-utility: $(READY)
	mkdir -p results
	$(BIN)/python benchmarks/utility.py --out results/utility $(if $(QUICK),--quick)

clean:
	rm -rf .venv demo paper site build dist .pytest_cache .ruff_cache .mypy_cache
