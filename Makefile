# Only Python >= 3.11 and make are needed. `make up` runs the platform, `make test` proves it.
# Works with the make of macOS (GNU make 3.81).

SUPPORTED := import sys; sys.exit(sys.version_info < (3, 11))
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11
# The first one that is new enough; only looked for when the virtual environment is made. PYTHON=... overrides it.
PYTHON ?= $(firstword $(foreach name,$(CANDIDATES),$(shell $(name) -c '$(SUPPORTED)' 2>/dev/null && echo $(name))) python3)

BIN := .venv/bin
# What is not everybody's, installed on request: make install EXTRAS="ccxt fix mcp"; mcp is an extra of tip and no package of its own
OPTIONAL := shared/broker_ccxt shared/broker_fix
PROJECTS := $(filter-out shared/testing/% $(addsuffix /%,$(OPTIONAL)),$(wildcard shared/*/pyproject.toml services/*/pyproject.toml proto/pyproject.toml \
                                                     deploy/local/pyproject.toml clients/pyproject.toml clients/python/pyproject.toml))
PACKAGES := $(patsubst %/pyproject.toml,%,$(PROJECTS))
SOURCES := $(wildcard $(addsuffix /src,$(PACKAGES) $(OPTIONAL) shared/testing) shared/brokers/example)
# Those that take longest come first, so that at the end no worker waits for another. No folder contains another: pytest would drop it.
LONGEST := tests-e2e clients services/console services/stream-gateway services/intents shared deploy
TESTED := $(LONGEST) $(filter-out $(LONGEST),$(wildcard services/*) proto clients)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Another active virtual environment, or settings that send packages elsewhere, must not leak into ours. Nor the one by which
# every process compiles all it imports.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV

.DEFAULT_GOAL := help
.PHONY: help install install-dev up start stop status logs lock proto client fmt lint types imports security checks pytest sbom test e2e-containers chaos attack bench clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

install: .venv/.installed $(if $(EXTRAS),extras) ## Make the virtual environment and install the pinned dependencies [EXTRAS="ccxt fix mcp"]

.PHONY: extras
extras: .venv/.installed
	@$(PIP) install --require-hashes -r requirements-extras.lock
	@$(if $(filter-out mcp,$(EXTRAS)),$(PIP) install --no-deps --no-build-isolation $(addprefix -e shared/broker_,$(filter-out mcp,$(EXTRAS))))

install-dev: .venv/.installed-dev ## The same, with what the tests and checks need

.venv/bin/python:
	@$(PYTHON) -c '$(SUPPORTED)' 2>/dev/null || \
		{ echo "Python 3.11 or newer is needed; '$(PYTHON)' is not. Choose one with: make PYTHON=/path/to/python3 ..."; exit 1; }
	@echo "Making the virtual environment .venv"
	@$(PYTHON) -m venv --clear .venv || \
		{ rm -rf .venv; echo "The virtual environment could not be made: see above (Debian: install python3-venv)"; exit 1; }

.venv/.installed: .venv/bin/python requirements.lock $(PROJECTS)
	@echo "Installing the pinned dependencies"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip  # an interrupted first attempt
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation $(addprefix -e ,$(PACKAGES))
	@touch $@

.venv/.installed-dev: .venv/.installed requirements-dev.lock shared/testing/pyproject.toml $(addsuffix /pyproject.toml,$(OPTIONAL))
	@echo "Installing what tests and checks need"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@$(PIP) install --no-deps --no-build-isolation -e shared/testing $(addprefix -e ,$(OPTIONAL))
	@touch $@

up: install ## Run the whole platform here, until Ctrl-C
	@exec $(BIN)/tip up

start: install ## Run it in the background; returns when it is ready
	@exec $(BIN)/tip start

# Without an installation nothing can be running.
INSTALLED = [ -x $(BIN)/tip ] || { echo "tip: not running"; exit $(1); }

stop: ## Stop it; returns when everything has ended
	@$(call INSTALLED,0); exec $(BIN)/tip stop

status: ## Show what is running
	@$(call INSTALLED,3); exec $(BIN)/tip status

logs: ## Follow the log of everything, or of one process: make logs NAME=web
	@$(call INSTALLED,3); exec $(BIN)/tip logs -f $(NAME)

lock: install ## Resolve the dependencies anew into the lock files (needs uv)
	@PATH="$(CURDIR)/$(BIN):$$PATH"; command -v uv >/dev/null || { echo "uv is needed: $(BIN)/pip install uv"; exit 1; }; \
		$(BIN)/python deploy/lock.py

proto: install-dev ## Make the stubs of the event stream anew from proto/trading.proto
	@$(BIN)/python proto/generate.py
	@$(BIN)/python clients/python/generate.py

client: install-dev ## Make the synchronous client and its messages anew from the asynchronous one
	@$(BIN)/python clients/python/generate.py

fmt: install-dev ## Format the code and repair what can be repaired
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: install-dev ## Style and common mistakes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: install-dev ## Type check, strict
	@$(BIN)/mypy $(SOURCES)

imports: install-dev ## Who may import whom
	@$(BIN)/lint-imports

# In an environment of their own: semgrep wants other versions of what the platform uses.
.venv/.installed-security: .venv/bin/python requirements-security.lock
	@echo "Installing what looks for security faults"
	@$(BIN)/python -m venv --clear .venv/security
	@.venv/security/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements-security.lock
	@touch $@

# What semgrep would keep in the home directory, and fetch, stays away.
SEMGREP := SEMGREP_SETTINGS_FILE=.venv/security/semgrep.yml SEMGREP_LOG_FILE=.venv/security/semgrep.log .venv/security/bin/semgrep \
           scan --metrics off --disable-version-check --quiet
CHECKED := shared services clients deploy proto

security: .venv/.installed-security ## Known kinds of security faults: bandit, semgrep with our own rules, pip-audit
	@.venv/security/bin/bandit --quiet --recursive --configfile pyproject.toml $(CHECKED)
	@$(SEMGREP) --test --config deploy/checks/semgrep deploy/checks/semgrep
	@$(SEMGREP) --error --config deploy/checks/semgrep --exclude tests --exclude bench --exclude semgrep --exclude shared/testing $(CHECKED)
	@.venv/security/bin/python deploy/checks/audit.py

SBOM := build/sbom.cdx.json

sbom: .venv/.installed-security ## The software bill of materials, CycloneDX, as build/sbom.cdx.json
	@.venv/security/bin/python deploy/checks/sbom.py $(SBOM)

checks: lint types imports security

# Four at once, also on two cores: many tests wait, for a claim to run out or a process to come back. Each has its own servers.
# In a new clone the tests are compiled first, once: every worker would compile all of them.
pytest:
	@[ -d tests-e2e/__pycache__ ] || $(BIN)/pytest --collect-only -qq $(TESTED) >/dev/null || true
	@$(BIN)/pytest -n 4 --no-loadscope-reorder $(TESTED) $(ARGS)

# The checks run beside the tests and say what they found when they have ended.
test: install-dev .venv/.installed-security ## Everything that must pass: lint, types, imports, security, all tests on real servers
	@began=$$(date +%s); said=$$(mktemp); $(MAKE) --no-print-directory checks >"$$said" 2>&1 & checks=$$!; \
		$(MAKE) --no-print-directory pytest; code=$$?; wait $$checks || code=$$?; cat "$$said"; rm -f "$$said"; \
		echo "make test: $$([ $$code = 0 ] && echo passed || echo FAILED) after $$(( $$(date +%s) - began )) s"; exit $$code

e2e-containers: install-dev ## The journeys and the deployment's own tests on containers (needs Docker and Compose)
	@docker info >/dev/null 2>&1 || { echo "no container engine answers here: deploy/ci-containers.sh can start one as root on Debian"; exit 1; }
	@PYTHONPATH=tests-e2e/containers TESTCONTAINERS_RYUK_DISABLED=true \
		$(BIN)/pytest -p compose_platform tests-e2e --ignore=tests-e2e/fault --ignore=tests-e2e/attack --ignore=tests-e2e/test_one_port.py --ignore=tests-e2e/test_broker_plugin.py --ignore=tests-e2e/test_process_secrets.py --ignore=tests-e2e/test_documented_examples.py --ignore=tests-e2e/test_first_run.py --timeout=600 $(ARGS)

# The scenarios by name: make chaos SCENARIO=list
chaos: install-dev ## Faults of every kind for ten minutes: make chaos [SIZE=small|full] [SEED=7] [SCENARIO=name]
	@if [ "$(SCENARIO)" = list ]; then exec $(BIN)/python tests-e2e/fault/run_scenario.py --list; \
	elif [ -n "$(SCENARIO)" ]; then exec $(BIN)/python tests-e2e/fault/run_scenario.py $(SCENARIO); \
	else exec $(BIN)/python tests-e2e/fault/run.py --size $(or $(SIZE),ten-minutes) $(addprefix --seed ,$(SEED)) $(ARGS); fi

attack: install-dev ## Attack it as another tenant would: make attack [SIZE=small|full] [SEED=7] [PART=matrix|fuzz|tokens|sockets|streams|fairness|secrets]
	@exec $(BIN)/python tests-e2e/attack/run.py --size $(or $(SIZE),ten-minutes) $(addprefix --seed ,$(SEED)) $(addprefix --part ,$(PART)) $(ARGS)

.venv/.installed-bench: .venv/.installed-dev requirements-bench.lock
	@echo "Installing the peers that benchmarks measure against"
	@$(PIP) install --require-hashes -r requirements-bench.lock
	@touch $@

bench: .venv/.installed-bench ## One benchmark: make bench NAME=submit
	@test -n "$(NAME)" || { echo "Which one? make bench NAME=..., see bench/README.md"; exit 2; }
	@exec $(BIN)/python -m bench.$(NAME)

clean: ## Remove the virtual environment and caches; data in .tip stays
	@if [ -x $(BIN)/tip ]; then $(BIN)/tip stop; fi
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
