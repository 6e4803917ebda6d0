# Everything one can do here. `make demo` and `make test` set the machine up by themselves.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := .venv/bin
PYTEST_ARGS ?=

.PHONY: help demo dev test lint fmt types contracts lock bench simulate

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/.ready servers ## the whole system, its leader killed again and again, with a report (KEEP=1 leaves it running)
	$(BIN)/hascheduler demo $(if $(KEEP),--keep)

dev: .venv/.ready servers ## the whole system on this machine, until Ctrl-C
	$(BIN)/hascheduler dev

test: .venv/.ready servers ## all tests, on a real MongoDB and a real RabbitMQ
	$(BIN)/python -m pytest $(PYTEST_ARGS)

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

bench: .venv/.ready servers ## figures: fires per second and their lag, takeover times
	$(BIN)/python -m tests.bench all

simulate: .venv/.ready ## a day of a mixed cluster under three policies, with a picture (SCENARIO=file for another)
	$(BIN)/hascheduler simulate $(or $(SCENARIO),--example mixed-day) --compare fair,swimlanes --plot simulate.png

lock: ## pin the newest dependencies, with hashes
	scripts/lock

.PHONY: servers
servers: .venv/.ready
	@scripts/ensure-mongod
	@scripts/ensure-rabbitmq

.venv/.ready: requirements.lock pyproject.toml scripts/setup-venv
	scripts/setup-venv
	@touch $@
