# Everything a developer runs. It needs Go, make and git; all other tools are built from hack/tools.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

export NO_COLOR := 1
export GINKGO_NO_COLOR := TRUE

# The same flags for all that is built, the test fleet too: so each package is compiled once.
export CGO_ENABLED ?= 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

# Options of single targets; see `make help`.
LAB_MEMBERS ?=
E2E_ARGS ?=
export E2E_ARGS
FUZZTIME ?= 10s
PLATFORMS ?=
IMAGE_REPO ?=
IMAGE_TAG ?=
BASE_IMAGE ?=
VERSION ?=
ifneq ($(LAB_MEMBERS),)
export LAB_MEMBERS
endif
# Members of it in Karmada's pull mode, and whether OCM's work webhook runs; see docs/test-fleet.md.
export LAB_PULL ?=
export LAB_WORK_WEBHOOK ?=
# Versions that a new test fleet has instead of its usual ones; see docs/versions.md.
export KARMADA ?=
export OCM ?=
export KRUISE ?=
export KUBERNETES ?=

BIN := bin
CHART := charts/fleetworkload
TOOLS := hack/tools/go.mod hack/tools/go.sum
GENERATED := api/v1alpha1/zz_generated.deepcopy.go config/crd/bases $(CHART)/files docs/api-reference.md docs/metrics.md docs/hand-over.svg docs/dashboard.svg
MODULES := . hack/tools hack/images hack/krew hack/monitoring hack/statemetrics $(patsubst %/go.mod,%,$(wildcard e2e/lab/components/*/go.mod))

# say prints a step with the time, so that a log shows where it went.
say = printf '%s %s\n' "$$(date +%H:%M:%S)"
# tagged lists the packages that have tests with a build tag.
tagged = $$({ grep -rl --include='*_test.go' '^//go:build $(1)$$' $(2) || true; } | xargs -r -n1 dirname | sort -u | sed 's|^|./|')

##@ Try it

.PHONY: demo
demo: ## Show the operator at work on a small fleet
	@$(say) 'building the demo'
	@go run ./hack/demo

.PHONY: lab-up
lab-up: ## Start the test fleet and leave it running (LAB_MEMBERS=n; KARMADA=, OCM=, KRUISE=, KUBERNETES= choose versions; LAB_PULL=member3, LAB_WORK_WEBHOOK=1)
	@go run ./e2e/lab/cmd/lab up

.PHONY: lab-status
lab-status: ## Show what of the test fleet runs
	@go run ./e2e/lab/cmd/lab status

.PHONY: lab-down
lab-down: ## Stop the test fleet and remove its state
	@go run ./e2e/lab/cmd/lab down

##@ Build

.PHONY: build
build: ## Build bin/manager and bin/kubectl-fw, and bin/kubectl_complete-fw by which kubectl completes it
	@go build -o $(BIN)/ ./cmd/manager ./cmd/kubectl-fw
	@install -m 755 cmd/kubectl-fw/kubectl_complete-fw $(BIN)/

.PHONY: images
images: ## Build the operator's image into bin/images (IMAGE_REPO=host/name pushes it; IMAGE_TAG, PLATFORMS=linux/amd64, BASE_IMAGE)
	@$(say) 'image'
	@cd hack/images && go run . -root '$(CURDIR)' -out '$(CURDIR)/$(BIN)/images' -repository '$(IMAGE_REPO)' -tag '$(IMAGE_TAG)' \
		-base '$(BASE_IMAGE)' $(if $(PLATFORMS),-platforms '$(PLATFORMS)')

.PHONY: plugin-archives
plugin-archives: ## Build kubectl-fw for krew into bin/plugin: an archive a platform, and the manifest (VERSION=v0.1.0; PLATFORMS=linux/amd64)
	@$(say) 'plugin archives'
	@cd hack/krew && go run . -root '$(CURDIR)' -out '$(CURDIR)/$(BIN)/plugin' -version '$(VERSION)' $(if $(PLATFORMS),-platforms '$(PLATFORMS)')

.PHONY: generate
generate: $(BIN)/controller-gen ## Generate deepcopy code
	@$(BIN)/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: $(BIN)/controller-gen ## Generate the CRD, and the chart's copies of CRD and roles
	@$(BIN)/controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	@go run ./hack/chartsync

.PHONY: api-reference
api-reference: $(BIN)/crd-ref-docs ## Generate docs/api-reference.md
	@mkdir -p docs
	@$(BIN)/crd-ref-docs --source-path=api/v1alpha1 --config=hack/api-reference.yaml \
		--renderer=markdown --output-path=docs/api-reference.md --log-level=ERROR --max-depth=20

.PHONY: metrics-reference
metrics-reference: ## Generate docs/metrics.md
	@go run ./hack/metrics

.PHONY: pictures
pictures: ## Draw docs/hand-over.svg and docs/dashboard.svg
	@go run ./hack/picture
	@cd hack/monitoring && go test -count=1 -run TestPicture . -update >/dev/null

##@ Test

.PHONY: test
test: ## Run all tests: unit, test-api, bench-shape, e2e
	@$(MAKE) unit
	@$(MAKE) test-api
	@$(MAKE) bench-shape
	@$(MAKE) e2e

.PHONY: unit
unit: ## Run the tests that need nothing but Go
	@source hack/phase.bash; phase 'unit tests' go test -vet=off ./... # make lint vets

.PHONY: race
race: ## Run the unit tests of what works in parallel with the race detector (needs a C compiler)
	@$(say) 'race detector'
	@CGO_ENABLED=1 go test -race -short ./backends/... ./controllers/... ./internal/connection/... ./internal/sources/... ./internal/interpreter/...

.PHONY: test-api
test-api: $(BIN)/helm ## Run the tests that need an API server (built and started by the tests)
	@source hack/phase.bash; packages="$(call tagged,api,api backends cmd controllers internal e2e)"; \
	if [ -z "$$packages" ]; then echo 'no package has tests with build tag api' >&2; exit 1; fi; \
	phase 'tests on a real API server' go test -vet=off -tags api -count=1 -timeout 20m $$packages

.PHONY: e2e
e2e: ## Run drivers, scenarios and a short soak, each on fleets of their own (LAB_DIR=.lab reuses one; versions as for lab-up)
	@hack/e2e drivers scenarios soak

.PHONY: drivers
drivers: ## Run the drivers' suites (LAB_DIR=.lab reuses a fleet; versions as for lab-up)
	@hack/e2e drivers

.PHONY: scenarios
scenarios: ## Run the operator's scenarios (E2E_ARGS=--label-filter=ocm, E2E_PROCS=1; LAB_DIR=.lab reuses a fleet)
	@hack/e2e scenarios

.PHONY: upgrade
upgrade: $(BIN)/helm ## Upgrade the chart of an earlier commit and roll back, with hand-overs under way (BEFORE=<commit>; LAB_DIR=.lab reuses a fleet)
	@before=$$(mktemp -d); trap 'rm -rf "$$before"' EXIT; git archive '$(BEFORE)' | tar -x -C "$$before"; \
	go build -C "$$before" -buildvcs=false -o bin/manager ./cmd/manager; \
	E2E_BEFORE="$$before" E2E_HELM='$(CURDIR)/$(BIN)/helm' E2E_PROCS=1 E2E_ARGS='--label-filter=upgrade' hack/e2e scenarios

.PHONY: soak
soak: ## Hunt with random edits and faults, then run the sweeps whole (SECONDS=600, SEED=n, SWEEPS=none leaves them out)
	@SOAK_SECONDS=$(or $(SECONDS),600) SOAK_CALM=1m SOAK_SEED=$(SEED) hack/e2e soak
	@if [ '$(SWEEPS)' != none ]; then E2E_SWEEPS=whole DRIVERS_RUN=TestConformance/conformance/cut_off E2E_ARGS='--label-filter=sweep' hack/e2e drivers scenarios; fi

.PHONY: histories
histories: ## Hunt with random histories through the decision (HISTORIES=n, HISTORY=seed tells one of them)
	@HISTORIES=$(or $(HISTORIES),10000) go test -vet=off -count=1 -timeout 0 -v -run '^TestHistories$$' ./internal/pass/histories

.PHONY: histories-reconciler
histories-reconciler: ## The same through the reconciler and the contract's backends in memory, which is slow (HISTORIES=n, HISTORY=seed)
	@HISTORIES=$(or $(HISTORIES),100) go test -vet=off -count=1 -timeout 0 -run '^TestHistories$$' ./controllers

.PHONY: mutants
mutants: ## Break laws on purpose, a line at a time in a copy of the tree, and see that tests find it (MUTANTS=regexp runs some)
	@go run ./hack/mutants -run '$(MUTANTS)' -histories $(or $(HISTORIES),1000)

.PHONY: rights
rights: ## Take each right of config/ away alone, and see that a scenario misses it; after `make scenarios`, which says who used which (RIGHTS=regexp takes some)
	@go run ./hack/rights -run '$(RIGHTS)'

.PHONY: fuzz
fuzz: ## Run each fuzz target for a short time (FUZZTIME=10s)
	@FUZZTIME=$(FUZZTIME) hack/fuzz

.PHONY: bench
bench: ## Measure our work beside other people's, in the same run; fails when a bar is missed
	@$(say) 'comparisons' >&2
	@go run ./hack/bench

.PHONY: bench-scale
bench-scale: ## Measure many FleetWorkloads on many simulated clusters beside a bare client (SCALE=300x100, REST=1m); fails when a bar is missed
	@$(say) 'scale' >&2
	@go run ./hack/bench -scale $(or $(SCALE),300x100) -rest $(or $(REST),1m)

.PHONY: bench-many
bench-many: ## Measure what comes after the creation of many FleetWorkloads on many simulated clusters (SCALE=1000x100, REST=1m): 20 minutes, and 16 GiB of memory
	@$(say) 'many' >&2
	@go run ./hack/bench -scale $(or $(SCALE),1000x100) -copied -rest $(or $(REST),1m)

.PHONY: bench-shape
bench-shape: ## The same with few and at once: nothing is refused, and nothing is written after a restart or at rest
	@source hack/phase.bash; phase 'few FleetWorkloads on simulated clusters' go run ./hack/bench -scale 4x8 -rest 5s -shape

.PHONY: bench-karmada
bench-karmada: ## Measure workloads on Karmada with three real members, or CLUSTERS=100 simulated ones, beside plain Karmada (WORKLOADS=60; LAB_DIR=.lab reuses a fleet without an operator)
	@$(say) 'workloads on Karmada' >&2
	@go run ./hack/bench -karmada $(or $(WORKLOADS),60) -registered $(or $(CLUSTERS),0) -fleet "$${LAB_DIR:-}"

.PHONY: bench-migration
bench-migration: ## Measure hand-overs of 1 and 100 FleetWorkloads on a fleet of its own (LAB_DIR=.lab reuses one without an operator)
	@$(say) 'hand-overs' >&2
	@go run ./hack/bench -migrations 1,100 -fleet "$${LAB_DIR:-}"

##@ Check

.PHONY: lint
lint: $(BIN)/golangci-lint ## Check the code and the API types against the rules
	@$(say) 'lint'
	@go run ./hack/apilint
	@$(BIN)/golangci-lint run --color never ./...
	@for dir in hack/images hack/krew hack/monitoring hack/statemetrics; do (cd "$$dir" && ../../$(BIN)/golangci-lint run --color never --config ../../.golangci.yml ./...); done

.PHONY: verify
verify: ## Check that everything generated is up to date, formatted, tidy, linted
	@$(MAKE) verify-generated
	@$(MAKE) verify-format
	@$(MAKE) verify-tidy
	@$(MAKE) verify-chart
	@$(MAKE) verify-images
	@$(MAKE) verify-plugin
	@$(MAKE) verify-monitoring
	@$(MAKE) lint
	@$(say) 'verified'

.PHONY: verify-generated
verify-generated:
	@$(say) 'generated files'
	@$(MAKE) generate manifests api-reference metrics-reference pictures
	@hack/unchanged $(GENERATED)

.PHONY: verify-format
verify-format:
	@$(say) 'format'
	@files="$$(git ls-files --cached --others --exclude-standard '*.go' | while read -r f; do if [ -e "$$f" ]; then echo "$$f"; fi; done | xargs gofmt -l)"; \
	if [ -n "$$files" ]; then printf 'not formatted, run gofmt -w on them:\n%s\n' "$$files" >&2; exit 1; fi

.PHONY: verify-tidy
verify-tidy:
	@failed=0; \
	for dir in $(MODULES); do \
		$(say) "go mod tidy in $$dir"; \
		if ! (cd "$$dir" && go mod tidy -diff); then echo "$$dir is not tidy, run go mod tidy there" >&2; failed=1; fi; \
	done; \
	exit $$failed

.PHONY: verify-chart
verify-chart:
	@$(say) 'chart and kustomize bases'
	@cd hack/tools && go test -count=1 ./... # not from the cache, which does not look at files of other modules

.PHONY: verify-images
verify-images:
	@$(say) 'image'
	@cd hack/images && PLATFORMS='$(PLATFORMS)' go test -count=1 ./...

.PHONY: verify-plugin
verify-plugin:
	@$(say) 'plugin'
	@cd hack/krew && go test -count=1 ./... # as above

.PHONY: verify-monitoring
verify-monitoring:
	@$(say) 'monitoring'
	@for dir in hack/monitoring hack/statemetrics; do (cd "$$dir" && go test -count=1 ./...) || exit; done # as above

##@ Other

.PHONY: clean
clean: ## Remove what was built (lab-down removes the test fleet)
	@rm -rf $(BIN)

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*##"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*##/ {printf "  %-14s%s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# Tools are pinned in a module of their own.
tool = @$(say) 'build $@'; cd hack/tools && go build -ldflags '-s -w' -o ../../$@ $(1)

$(BIN)/controller-gen: $(TOOLS)
	$(call tool,sigs.k8s.io/controller-tools/cmd/controller-gen)

$(BIN)/crd-ref-docs: $(TOOLS)
	$(call tool,github.com/elastic/crd-ref-docs)

$(BIN)/helm: $(TOOLS)
	$(call tool,helm.sh/helm/v3/cmd/helm)

$(BIN)/golangci-lint: $(TOOLS)
	$(call tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
