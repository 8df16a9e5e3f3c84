# Pilotlight: `make demo` shows it, `make test` proves it, `make help` lists the rest.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PROVIDER := $(VENV)/.provider
PROMTOOL := $(VENV)/.promtool
PYTEST := $(BIN)/python -m pytest
BY_FILE := --dist loadfile --no-loadscope-reorder

# The seed of the randomised suites; they print it, so that a failure can be had again with `make ... SEED=...`.
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
export SEED := $(SEED)

# Tests start hundreds of processes, each of which would compile the whole platform anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# -- set up ------------------------------------------------------------------------------------------------------------

.PHONY: setup
setup: system $(READY) ## Install everything into .venv (a second run is instant)

.PHONY: system
system:
	@infra/setup/system_packages.sh

$(READY): pyproject.toml constraints.txt infra/setup/python_packages.sh
	@infra/setup/python_packages.sh $(VENV)
	@touch $@

# The OpenID provider that tests log in at. Without a network, or on a machine for which there is no node, they are skipped.
# It is tried once: a registry that cannot be reached is in the way of no second run.
$(PROVIDER): tests/identity_provider/package-lock.json infra/setup/identity_provider.sh | $(READY)
	@infra/setup/identity_provider.sh $(VENV) || echo "note: tests of logging in will be skipped; rm $@ to try again" >&2
	@touch $@

# The same holds for what checks the rules of alerts.
$(PROMTOOL): infra/setup/monitoring_tools.sh | $(READY)
	@infra/setup/monitoring_tools.sh $(VENV) || echo "note: tests of the rules of alerts will be skipped; rm $@ to try again" >&2
	@touch $@

# -- run ---------------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: setup ## See it work: cold start, batching, a stream, scale to zero, the bill, a rollout; then everything stops
	@$(BIN)/python -m examples.demo

.PHONY: up
up: setup ## Run the platform on this machine until Ctrl-C
	@$(BIN)/pilotlight up

.PHONY: bench
bench: setup ## Run every benchmark (NAME=overhead for one); needs wrk for some
	@command -v wrk > /dev/null || { echo "wrk is missing: sudo apt-get install -y wrk" >&2; exit 1; }
	@for name in $(or $(NAME),overhead cold_start stream memory); do $(BIN)/python -m benchmarks.$$name; done

# -- build -------------------------------------------------------------------------------------------------------------

.PHONY: wheel
wheel: setup ## Build dist/*.whl: compiled where there is a C compiler, else (or with PILOTLIGHT_PURE=1) plain Python
	@$(BIN)/python -m hatchling build --target wheel --directory dist

.PHONY: compiled
compiled: setup ## Build what the wheel ships into build/compiled (a second run is instant)
	@$(BIN)/python -m tools.compiled_tree

# -- test --------------------------------------------------------------------------------------------------------------

# Tests wait for other processes half of the time: two cores have room for four workers.
.PHONY: test
test: setup $(PROVIDER) $(PROMTOOL) ## Run every test that takes no minutes of its own (ARGS="tests/sdk -x" passes options on)
	@$(PYTEST) --numprocesses 4 $(BY_FILE) $(ARGS)

.PHONY: test-seeds
test-seeds: setup $(PROVIDER) $(PROMTOOL) ## Run the property tests on examples of their own (SEED=123 repeats a run)
	@echo "seed $(SEED): make test-seeds SEED=$(SEED) repeats this run"
	@$(PYTEST) -m "hypothesis and not long" --hypothesis-profile=seeded --hypothesis-seed=$(SEED) --numprocesses 2 $(BY_FILE) $(ARGS)

.PHONY: test-crash
test-crash: setup $(PROVIDER) $(PROMTOOL) ## Kill processes at seeded instants (SEED=123 repeats a run)
	@echo "seed $(SEED): make test-crash SEED=$(SEED) repeats this run"
	@$(PYTEST) tests/system -m "crash and not long" --numprocesses 4 $(BY_FILE) $(ARGS)

.PHONY: test-both
test-both: setup $(PROVIDER) $(PROMTOOL) ## Run what `make test` and, but for variants, `make test-crash` run, each in the pauses of the other
	@echo "seed $(SEED): make test-crash SEED=$(SEED) repeats this run"
	@$(PYTEST) -m "not gpu and not long and not variant" --numprocesses 5 $(BY_FILE) $(ARGS)

.PHONY: test-again
test-again: setup ## Run the files again, one after the other, of tests that failed when `make test-both` ran last
	@files=$$(sed -n 's/^ *"\([^":]*\).*/\1/p' .pytest_cache/v/cache/lastfailed 2> /dev/null | sort -u || true); \
	[[ -z $$files ]] || $(PYTEST) -m "not gpu and not long and not variant" $$files $(ARGS)

.PHONY: test-hosts
test-hosts: setup ## Run the platform over network namespaces of this machine as hosts, and part them (needs root)
	@$(PYTEST) tests/hosts -m "not gpu and not long and not drill" --numprocesses 3 $(BY_FILE) $(ARGS)

.PHONY: test-drills
test-drills: setup ## Restart, upgrade and restore platforms under load, over hosts and beside earlier releases (needs root)
	@$(PYTEST) tests/hosts -m "drill and not gpu" $(ARGS)

.PHONY: test-hosts-long
test-hosts-long: setup ## Kill, part, deploy and call over hosts for minutes, at random (SEED=123 repeats a run, MINUTES=5)
	@echo "seed $(SEED): make test-hosts-long SEED=$(SEED) repeats this run"
	@$(PYTEST) tests/hosts -m "long and not gpu and not drill" $(ARGS)

.PHONY: test-long
test-long: setup $(PROVIDER) $(PROMTOOL) ## Run the tests that take minutes (SEED=123 repeats a run)
	@echo "seed $(SEED): make test-long SEED=$(SEED) repeats this run"
	@$(PYTEST) -m long $(ARGS)

# Not `setup`'s plain files, which pytest's own path names, but those of build/compiled.
COMPILED := $(CURDIR)/build/compiled
.PHONY: test-compiled
test-compiled: compiled $(PROVIDER) $(PROMTOOL) ## Run the tests of compiled rooms, the simulation and the crash tests on compiled modules
	@PYTHONPATH=$(COMPILED) $(PYTEST) -o pythonpath="$(COMPILED) ." -m "not gpu and not long and not variant and not crash" \
		--numprocesses 4 $(BY_FILE) tests/autoscaler tests/placement tests/gateway tests/runtime tests/core/bus tests/core/links tests/simulation $(ARGS)
	@PYTHONPATH=$(COMPILED) $(PYTEST) -o pythonpath="$(COMPILED) ." -m "crash and not long" \
		--numprocesses 4 $(BY_FILE) tests/system $(ARGS)

# -- check -------------------------------------------------------------------------------------------------------------

.PHONY: check
check: lint types floors tree docs infra ## Run every check that is not a test

.PHONY: lint
lint: $(READY) # ruff: rules and format
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

.PHONY: types
types: $(READY) # mypy --strict over the folders that pyproject.toml names
	@$(BIN)/mypy

.PHONY: floors
floors: $(READY) # import-linter: which package may import which
	@$(BIN)/lint-imports --no-logo

# House, words, mirror, lengths, requirements and pages read the same files: one process reads each once.
.PHONY: tree
tree: $(READY) # all that holds the tree
	@$(BIN)/python -m tools

.PHONY: house
house: $(READY) # rooms stand on floors, no circles of modules, no folder too full
	@$(BIN)/python -m tools.house

.PHONY: mirror
mirror: $(READY) # every module with behaviour has its test, or says where
	@$(BIN)/python -m tools.mirror

.PHONY: lengths
lengths: $(READY) # files and functions stay short
	@$(BIN)/python -m tools.lengths

.PHONY: requirements
requirements: $(READY) # docs/requirements.md names what exists
	@$(BIN)/python -m tools.requirements

.PHONY: pages
pages: $(READY) # files that a page names exist, and each package has its page
	@$(BIN)/python -m tools.pages

.PHONY: docs
docs: $(READY) ## Build the guide and the reference as a site, in site/
	@$(BIN)/python -m tools.reference
	@NO_COLOR=1 $(BIN)/zensical build --strict

.PHONY: docs-serve
docs-serve: $(READY) ## Show the site at http://127.0.0.1:8000, and anew when a page changes
	@$(BIN)/python -m tools.reference
	@$(BIN)/zensical serve --dev-addr 127.0.0.1:8000

.PHONY: words
words: $(READY) # names are those of docs/design/words.md, and none means two things
	@$(BIN)/python -m tools.words

.PHONY: infra
infra: $(READY) # the images, the compose files and the bus's configuration
	@$(BIN)/hadolint infra/Dockerfile
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec infra/compose.yaml infra/compose.two-hosts.yaml
	@passwords=$$(mktemp) && infra/setup/bus_passwords.sh $$passwords && set -a && . $$passwords && rm $$passwords && \
	said=$$($(BIN)/nats-server -t -c infra/nats.conf 2>&1) || { echo "$$said" >&2; exit 1; }

.PHONY: chart
chart: $(READY) ## Write the Helm chart anew from infra/kustomize
	@$(BIN)/python -m tools.chart

.PHONY: monitoring
monitoring: $(READY) ## Write the rules of service levels and the dashboards anew from tools/monitoring
	@$(BIN)/python -m tools.monitoring

# What Terraform's provider for AWS takes, when infra/terraform comes to use another type: the wheel has 60 MB.
.PHONY: aws-schema
aws-schema: $(READY)
	@folder=$$(mktemp -d) && $(BIN)/pip download -qq --disable-pip-version-check --no-deps --dest $$folder cdktf-cdktf-provider-aws==21.22.1 && \
	$(BIN)/python -m tools.aws_schema $$folder/*.whl && rm -r $$folder

# It pins what this tree does not: an environment of its own, and its rules are read beside its code.
FOCUS := build/focus
.PHONY: focus
focus: setup ## Hold the FOCUS file of docs/reports against the FinOps Foundation's validator
	@[ -x $(FOCUS)/bin/focus-validator ] || { $(BIN)/python -m venv $(FOCUS) && \
	$(FOCUS)/bin/pip install -qq --disable-pip-version-check focus-validator==1.0.0 'multimethod<2'; }
	@cd $(FOCUS)/lib/python3*/site-packages && said=$$(../../../bin/focus-validator \
	--data-file $(CURDIR)/docs/reports/focus-cedar-2026-11.csv 2>&1) && echo "$$said" | tail -1 && \
	[[ "$$said" == *"Validation succeeded"* ]]

.PHONY: fmt
fmt: $(READY) ## Format the code and fix what can be fixed
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

.PHONY: clean
clean: ## Remove the environment, caches and the local platform's state
	@rm -rf $(VENV) tests/identity_provider/node_modules .pilotlight .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage dist build site .cache docs/reference
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
