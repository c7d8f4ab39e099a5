# Every target sets up what it needs first, once; later runs skip that in a moment. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help setup demo ui test test-fast test-plain test-spark test-loaded test-debian check check-types check-rules bench prove mutate prove-long test-slow doctor format docs

RUN := .venv/bin
SITE := .redolake/docs
SCALE ?= day
SUITE ?= trixie
PYTEST_ARGS ?=
PROVE_ARGS ?=
# What the plain tests run under beside Spark's: Spark's one JVM decides how long both take, so it goes first.
BESIDE ?=
# More than there are cores: a test waits for redo, leases and processes of its own for a sixth of its time.
WORKERS ?= 3
BUSY ?= 8
# How often a test that failed is run again, before it counts; what passes then is named.
RERUNS ?= 1
unexport PYTHONDONTWRITEBYTECODE # imports are compiled once, not by each process
ifeq ($(origin SEED), undefined)
SEED := $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
endif
BENCH_ARGS ?=
MUTATE_ARGS ?=

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 18

setup: ## Set up Python packages, Delta's jars and Java in .venv and .redolake
	@sh deploy/setup/setup

demo: setup ## Flights from an Oracle database into Delta Lake, proved equal (SCALE=day|month|year)
	@$(RUN)/redolake demo --scale $(SCALE)

ui: setup ## Open Dagster's web page on what the demo made
	@$(RUN)/redolake ui

test: setup ## Run all tests but the long forms: two test runs side by side, each prints when it ends
	@$(MAKE) --no-print-directory -j2 --output-sync=target BESIDE="nice -n 10" test-plain test-spark

test-fast: setup ## Run the tests that need neither Spark nor Dagster and are no stories, in three processes (WORKERS=n for others)
	@$(RUN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not oracle and not slow and not spark and not dagster and not story" $(PYTEST_ARGS)

test-plain: setup ## The same with Dagster's tests and the stories: a whole pipeline lives through something, some seconds each
	@$(BESIDE) $(RUN)/python -m tests.twice --reruns $(RERUNS) -- -n $(WORKERS) --dist worksteal -m "not oracle and not slow and not spark" $(PYTEST_ARGS)

test-spark: setup ## Run the tests that need Spark
	@$(RUN)/python -m tests.twice --reruns $(RERUNS) -- -m "spark and not oracle and not slow" $(PYTEST_ARGS)

test-loaded: setup ## Run all tests beside BUSY=8 processes that use the CPU: a test that fails only there relies on time
	@$(RUN)/python -m tests.busy --processes $(BUSY) -- $(MAKE) --no-print-directory RERUNS=0 test

test-debian: ## Run the demo and all tests in a fresh Debian release (SUITE=trixie; as root, needs debootstrap)
	@deploy/setup/debian $(SUITE) demo test

check: setup ## Check format, lint, types and import contracts
	@$(MAKE) --no-print-directory -j2 --output-sync=target check-types check-rules

check-types: setup
	@$(RUN)/mypy

check-rules: setup
	@$(RUN)/ruff format --check .
	@$(RUN)/ruff check .
	@$(RUN)/lint-imports --no-logo

bench: setup ## Measure, compare with peers, keep the run in benchmarks/history (BENCH_ARGS=--quick for less)
	@$(RUN)/python -m benchmarks.run $(BENCH_ARGS); code=$$?; $(RUN)/python -m docs.tools.generate; exit $$code

prove: setup ## Load, kill, restart, replay under a new seed: nothing is lost or doubled (SEED=n repeats a run)
	@echo "make prove SEED=$(SEED) repeats this run"
	@$(RUN)/python -m tests.invariants.prove --seed $(SEED) --events 150
	@$(RUN)/python -m tests.invariants.prove --seed $(SEED) --events 24 --lake delta

prove-long: setup ## Many lives side by side, 200 kills at least, one summary of all (PROVE_ARGS=--resume to go on)
	@echo "make prove-long SEED=$(SEED) repeats this run"
	@$(RUN)/python -m tests.invariants.long --seed $(SEED) $(PROVE_ARGS)

test-slow: setup ## Run the long form of every suite, every rule broken on purpose, the killed demo, new generated cases
	@$(RUN)/python -m pytest -m "slow and not oracle" -s $(PYTEST_ARGS)
	@$(RUN)/python -m pytest -m "hypothesis and not oracle" --hypothesis-profile=random $(PYTEST_ARGS)

mutate: setup ## Break each rule in many small ways and show that its tests notice (MUTATE_ARGS="--rule 3 --sample 15", or --resume)
	@$(RUN)/python -m tests.mutants.run $(MUTATE_ARGS)

docs: setup $(SITE)/ready ## Build the documentation into site/; fails on a broken link
	@$(RUN)/python -m docs.tools.generate
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet
	@echo "The documentation is in site/index.html"

$(SITE)/ready: docs/requirements.lock
	@$(RUN)/python -m venv --clear $(SITE)
	@$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r docs/requirements.lock
	@touch $@

doctor: setup ## Report what is installed, what is missing, and how to fix it
	@$(RUN)/redolake doctor

format: setup ## Format the code and fix what the linter can
	@$(RUN)/ruff format .
	@$(RUN)/ruff check --fix .
