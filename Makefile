# Everything one can do here. `make demo` and `make test` set the machine up by themselves.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := .venv/bin
PYTEST_ARGS ?=
# Each worker has servers of its own.
WORKERS ?= 2
# One more where tests wait, for browsers and refusals; whole systems have one neighbour, as three starve each other.
WORKERS_OF_POOL ?= $(shell expr $(WORKERS) + 1)
# Each of the many processes would compile all of it anew, where the environment keeps them from writing it down.
export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist

.PHONY: compiled check-compiled fuzz advisories help demo dev check test verify verify-long lint fmt types contracts lock bench bench-peers soak simulate sim cluster-sim chaos mutants planted-bugs k8s-lint k8s-check kind-up kind-down demo-failover docs reference

help: ## what there is
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Puts build/compiled first: what it holds runs instead of the sources here, in this process and in those that it starts.
COMPILED := PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/compiled:$(CURDIR)

# What apt installs and what .venv takes come side by side.
demo: ## the whole system, its leader killed again and again, with a report (KEEP=1 leaves it running; SHARDS=4)
	@$(MAKE) --no-print-directory --jobs=2 servers
	$(BIN)/hascheduler demo $(if $(KEEP),--keep) $(if $(SHARDS),--shards $(SHARDS))

demo-failover: .venv/.ready ## the same in a Kubernetes cluster, the one of kubectl's current context (ARGS="--kills 6")
	scripts/demo-failover $(ARGS)

kind-up: ## hascheduler in a kind cluster on this machine
	scripts/kind-up

kind-down: ## that cluster gone
	scripts/kind-down

dev: .venv/.ready servers ## the whole system on this machine, until Ctrl-C (SHARDS=4)
	$(BIN)/hascheduler dev $(if $(SHARDS),--shards $(SHARDS))

# What needs no server, or shares one with others, or waits for a browser most of the time, its longest test first; and
# what starts whole systems and servers of its own.
README := tests/system/readme
BROWSER := tests/system/ui
POOL := $(README) tests/unit tests/contract tests/integration $(BROWSER)
WHOLE := tests/system tests/integration/bootstrap tests/integration/embedded
WHOLE_SYSTEMS := $(WHOLE) $(addprefix --ignore=,$(README) $(BROWSER))
# What speaks over sockets, run on the loop of replicas and processors, which is uvloop. `check` runs it on asyncio's own,
# and verify-long on both.
SOCKETS := tests/unit/tls $(addprefix tests/unit/api/test_,server.py events.py) \
	$(addprefix tests/unit/security/test_,message_ends.py tls_handshakes.py places.py)
# How thorough: see tests/tiers.py.
TIER ?= test
CHOSEN := $(if $(filter long,$(TIER)),,-m "not thorough")
NOT_IN_POOL := $(WHOLE) $(if $(filter long,$(TIER)),,$(SOCKETS))

# In processes side by side, each of which collects its own part: of xdist's workers each would collect all of it.
# Three, as some tests wait, and about equally long; what renders manifests is in one of them, which renders each once.
API_PART := $(addprefix tests/unit/,api bench check daemon dispatch model mutants testing)
CLI_PART := $(addprefix tests/unit/,cli cluster_simulation processor shards simulate triggers)
# Where no schema is tested, a third of what pytest imports is not needed.
NO_SCHEMATHESIS := -p no:schemathesis
check-api-part: PART := $(API_PART)
check-cli-part: PART := $(NO_SCHEMATHESIS) $(CLI_PART)
check-other-part: PART := $(NO_SCHEMATHESIS) tests/unit tests/contract $(addprefix --ignore=,$(API_PART) $(CLI_PART))

QUICK := "not real and not slow"

check: .venv/.ready ## after each edit: style, types, contracts, tests that need no server and no second
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint types contracts
	@$(MAKE) --no-print-directory --jobs=3 check-api-part check-cli-part check-other-part

touched: .venv/.ready ## after a small edit, in seconds: style, types, contracts, and the tests nearest to what has changed
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint types contracts
	@nearest=$$($(BIN)/python scripts/nearest-tests) && \
		TESTS_TIER=check $(BIN)/python -m pytest -q -p no:xdist -m $(QUICK) $$nearest $(PYTEST_ARGS)

.PHONY: touched check-api-part check-cli-part check-other-part
check-api-part check-cli-part check-other-part:
	@TESTS_TIER=check $(BIN)/python -m pytest -q -p no:xdist -m $(QUICK) $(PART) $(PYTEST_ARGS)

test: .venv/.ready servers browser ## on a real MongoDB and a real RabbitMQ: every contract, real kills, 24 simulated clusters
	TESTS_TIER=$(TIER) $(PYTEST) worksteal $(CHOSEN) $(POOL) $(NOT_IN_POOL:%=--ignore=%) --numprocesses $(WORKERS_OF_POOL) $(PYTEST_ARGS)
	TESTS_TIER=$(TIER) TESTS_LOOP=uvloop $(PYTEST) worksteal $(SOCKETS) $(PYTEST_ARGS)
	TESTS_TIER=$(TIER) $(PYTEST) worksteal $(CHOSEN) $(WHOLE_SYSTEMS) $(PYTEST_ARGS)

verify: .venv/.ready ## before a change lands, in half an hour; `.ci/run` calls it
	$(MAKE) --jobs=2 --output-sync=target compiled browser types docs wheel k8s-lint ui-types lint contracts
	$(MAKE) test
	$(RUN_COMPILED) tests/unit/house/test_compiled.py
	$(MAKE) chaos ROWS=smoke

verify-long: .venv/.ready servers ## what is random or long, in full: each night, and by hand before a release
	$(MAKE) test TIER=long
	$(MAKE) check-compiled
	$(MAKE) chaos ARGS=--short ROWS=leader-dies-at-writes,leader-loses-mongodb,history-lost,malformed-documents,strange-messages,broker-away-with-fallback,clock-day-ahead
	$(BIN)/python -m tests.bench stalls

# The rooms that are compiled, and whole systems that fail.
ON_COMPILED := tests/unit/dispatch tests/unit/mirror tests/unit/model tests/unit/triggers tests/unit/simulate \
	tests/unit/house/test_compiled.py tests/system/replicas/test_leader_lost.py
RUN_COMPILED := TESTS_TIER=check TESTS_COMPILED=1 $(COMPILED) $(PYTEST) worksteal -o "pythonpath=build/compiled ." -m "not thorough"

check-compiled: .venv/.ready servers compiled ## the core as native code: its tests, hostile documents, simulated clusters, real kills
	$(RUN_COMPILED) $(ON_COMPILED)
	$(COMPILED) $(BIN)/python -m tests.fuzz --minutes 0.3
	$(COMPILED) $(BIN)/python -m tests.cluster_simulation --seeds 10

compiled: build/compiled/.ready ## build/compiled: the core as native code, where there is a C compiler; see docs/install.md

build/compiled/.ready: .venv/.ready hatch_build.py scripts/compile-core $(shell find hascheduler -type f -not -name "*.pyc")
	@mkdir -p build && touch build/began  # what is edited while it compiles is newer than this
	$(BIN)/python scripts/compile-core
	@touch -r build/began $@

lint: .venv/.ready ## style and common mistakes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

fmt: .venv/.ready ## put the code into its one form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: .venv/.ready ## static types, strictly
	$(BIN)/mypy

contracts: .venv/.ready ## which room may import which
	$(BIN)/lint-imports --no-logo

bench: .venv/.ready servers compiled ## figures: jobs and fires per second, lag, takeovers, cost, scale (BENCH=throughput,fires)
	$(COMPILED) $(BIN)/python -m tests.bench all $(if $(BENCH),--only $(BENCH))

bench-peers: .venv/.ready servers compiled ## the same work on Agenda, APScheduler, Celery and taskiq beside it (ARGS="--systems agenda")
	$(COMPILED) $(BIN)/python -m tests.bench.peers $(ARGS)

soak: .venv/.ready servers ## a long run in which leaders are killed: memory, lag, what is lost (MINUTES=30)
	$(BIN)/python -m tests.bench soak --minutes $(or $(MINUTES),30)

simulate: .venv/.ready ## a day of a mixed cluster under three policies, with a picture (SCENARIO=file for another)
	$(BIN)/hascheduler simulate $(or $(SCENARIO),--example mixed-day) --compare fair,swimlanes --plot simulate.png

cluster-sim: .venv/.ready ## clusters in trouble on virtual time, one a seed (SEEDS=500; SEED=7 replays one; SHARDS=1: of three shards, FOLLOWING=1: of which replicas host some)
	$(BIN)/python -m tests.cluster_simulation $(if $(SHARDS),--shards) $(if $(FOLLOWING),--following) $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),500))

sim: cluster-sim

fuzz: .venv/.ready ## every decoder is given what nobody meant to write, within bounds of CPU and memory (MINUTES=10)
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) $(ARGS)

chaos: .venv/.ready servers ## real processes in real trouble, with a report (ROWS=smoke is short; ROWS=name,name)
	@$(if $(filter smoke,$(ROWS)),,scripts/ensure-faketime)
	$(BIN)/python -m tests.chaos --rows $(or $(ROWS),all) $(ARGS)

mutants: .venv/.ready servers ## bugs on purpose, in simulations and in real processes: each must be noticed
	$(BIN)/python -m tests.cluster_simulation --planted all
	$(BIN)/python -m tests.chaos --planted all
	$(BIN)/python -m pytest tests/unit/mutants tests/contract/test_mutants.py $(PYTEST_ARGS)

planted-bugs: mutants

docs: .venv/.ready ## the site of docs/, in site/; a broken link or a stale generated page is an error
	$(BIN)/python -m docs.generate --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reference: .venv/.ready ## write what follows from the code: the SDK's types and synchronous half, the pages of docs/
	$(BIN)/python scripts/generate-client
	$(BIN)/python -m docs.generate

wheel: .venv/.ready servers node-packages ## the built wheel works alone, with each extra, and with the oldest and the newest packages
	scripts/check-wheel

ui-types: .venv/.ready node-packages ## the dashboard's modules against their types
	scripts/check-ui-types

ui-vendor: ## fetch the libraries that the dashboard is drawn with, and verify them (ARGS=--update after a new version)
	scripts/vendor-ui $(ARGS)

ui-pictures: .venv/.ready servers browser ## .run/ui: a picture of each view of the dashboard, light and dark; docs/ui has one of them
	UI_PICTURES=.run/ui $(BIN)/python -m pytest tests/system/ui/test_views.py -k each_view

.PHONY: browser wheel node-packages ui-types ui-vendor ui-pictures
browser: node-packages # in which the dashboard's tests look at it, and what judges there who can use it
	scripts/ensure-chromium
node-packages:
	scripts/ensure-node-packages

k8s-lint: .venv/.ready
	scripts/ensure-kubectl
	scripts/ensure-promtool
	$(BIN)/hadolint Dockerfile
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec k8s/compose/compose.yaml
	$(BIN)/shellcheck $$(grep --files-with-matches --line-regexp "#!/usr/bin/env bash" scripts/*) .ci/run k8s/base/mongodb/member-ready

k8s-check: k8s-lint servers ## what can be known of images and manifests without a cluster
	$(PYTEST) loadfile tests/unit/manifests tests/integration/manifests tests/system/manifests tests/unit/monitoring tests/unit/scripts tests/system/local_pods $(PYTEST_ARGS)

advisories: ## known weaknesses of the locked packages; needs a network that reaches an advisory database
	scripts/advisories

lock: ## pin the newest dependencies, with hashes
	scripts/lock

.PHONY: servers mongod rabbitmq
servers: mongod rabbitmq
mongod: .venv/.ready
	@scripts/ensure-mongod
rabbitmq:
	@scripts/ensure-rabbitmq

.venv/.ready: requirements.lock pyproject.toml scripts/setup-venv
	scripts/setup-venv
	@touch $@
