# Everything happens in a virtual environment inside this folder. Paths are relative, so that the folder may
# lie anywhere, also where its name has a space.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

PROMPT ?= Say hello, and change nothing.
AGENT ?=
# Both reach the shell as they were given: a $ in them is none of make's. The prompt goes in by stdin, where one
# that begins with a dash is no option.
override PROMPT := $(value PROMPT)
override AGENT := $(value AGENT)
export PROMPT

.PHONY: help run test test-fast test-agents matrix soak check format bench clean

help:
	@echo 'make run                     delegate a prompt to the bundled fake agent'
	@echo 'make run AGENT="..." PROMPT="..."   the same with a real agent'
	@echo 'make test                    all tests, those with real third-party agents last'
	@echo 'make test-fast               all tests but those'
	@echo 'make test-agents             only those'
	@echo 'make matrix                  the full product of the fault matrix'
	@echo 'make soak                    ten thousand turns with faults at random'
	@echo 'make check                   lint and strict types'
	@echo 'make bench                   speed and memory beside what else one could use (some minutes)'

run: $(VENV)/run.stamp
	@printf %s "$$PROMPT" | $(PY) -m acp_subagent run --permission allow - $(if $(AGENT),-- $(AGENT))

test: test-fast test-agents

# What the tests need of the package registries comes first: a test that waits for a download would meet its
# timeout, and a download that is impossible is told once instead of by every test.
test-fast: $(VENV)/dev.stamp
	@$(PY) -m tests.support.agent_packages schema typescript-sdk python-sdk
	$(PY) -m pytest -m "not agents" -n logical --dist worksteal tests

test-agents: $(VENV)/dev.stamp
	@$(PY) -m tests.support.agent_packages
	$(PY) -m pytest -m agents -n logical --dist worksteal tests/agents

matrix: $(VENV)/dev.stamp
	$(PY) -m tests.matrix

soak: $(VENV)/dev.stamp
	$(PY) -m tests.soak --turns 10000

check: $(VENV)/dev.stamp
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(VENV)/dev.stamp
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(PY)
	$(PY) -m benchmarks $(BENCH)

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache dist build

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; say which with make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: $(PY) pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check -e '.[cli]'
	@touch $@

$(VENV)/dev.stamp: $(PY) pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
