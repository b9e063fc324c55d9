# Run `make help` to see what there is. Everything needs Go and git only; tools are built from pinned Go modules on first use.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Version of the managers, and registry of their images, which `make release` names and `make images` builds.
VERSION ?= dev
REGISTRY ?= ghcr.io/openshift-agent
# What the managers say of themselves, with --version, in their first line and in a metric. The Dockerfiles have the same flags.
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
BUILD_VARIABLES := github.com/prometheus/common/version
LDFLAGS = -s -w -X $(BUILD_VARIABLES).Version=$(VERSION) -X $(BUILD_VARIABLES).Revision=$(REVISION)

# ---- tools -------------------------------------------------------------------------------------------------------------------------
# A tool lies in .tools/<module>-<checksum of its pins>: another pin is another folder, so a changed version is built anew.
pins = $(shell cat test/tools/$(1)/go.mod test/tools/$(1)/go.sum | cksum | cut -d' ' -f1)
DEV := .tools/dev-$(call pins,dev)
LINT := .tools/lint-$(call pins,lint)

# golangci-lint remembers findings with the paths of the checkout that it saw first, and then misses its own exclusions in another one.
export GOLANGCI_LINT_CACHE := $(CURDIR)/.tools/golangci-lint-cache

CONTROLLER_GEN := $(DEV)/controller-gen
CRD_REF_DOCS := $(DEV)/crd-ref-docs
GOLANGCI_LINT := $(LINT)/golangci-lint

# $(call tool,<module below test/tools>,<package>): builds into the target's place in one step, so that an interrupted build leaves nothing.
define tool
@mkdir -p $(@D)
@echo "building $(@F), once"
@go build -C test/tools/$(1) -buildvcs=false -ldflags '-s -w' -o $(abspath $@).new $(2)
@mv $@.new $@
endef

$(CONTROLLER_GEN):
	$(call tool,dev,sigs.k8s.io/controller-tools/cmd/controller-gen)
$(CRD_REF_DOCS):
	$(call tool,dev,github.com/elastic/crd-ref-docs)
$(GOLANGCI_LINT):
	$(call tool,lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

##@ Use

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

SAMPLE ?= ha
.PHONY: demo
demo: ## Install a simulated cluster on real Cluster API and show it. SAMPLE=ha|compact|sno|ha-disk-image|okd|clusterclass, or replace (a master is replaced then), upgrade (it is upgraded then), KEEP=1 leaves it running.
	go run ./test/demo -sample=$(SAMPLE) $(if $(KEEP),-keep)

##@ Develop

.PHONY: build
build: ## Build both managers into bin/.
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/bootstrap ./bootstrap
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/controlplane ./controlplane

PROVIDERS := bootstrap controlplane
GENERATED := bootstrap/api/v1beta1/zz_generated.deepcopy.go controlplane/api/v1beta1/zz_generated.deepcopy.go pkg/metal3/zz_generated.deepcopy.go \
	config/bootstrap/crd/bases config/controlplane/crd/bases config/bootstrap/rbac/role.yaml config/controlplane/rbac/role.yaml \
	config/bootstrap/rbac/cluster_role.yaml config/controlplane/rbac/cluster_role.yaml \
	config/templates docs/reference.md docs/flags.md

.PHONY: generate
generate: generate-go generate-manifests generate-templates generate-docs ## Generate deep copies, CRDs, roles, cluster templates, the API reference and the list of flags.

.PHONY: generate-go
generate-go: $(CONTROLLER_GEN)
	$(CONTROLLER_GEN) object paths=./bootstrap/api/... paths=./controlplane/api/... paths=./pkg/metal3/...

# The rights on kinds without namespace, which stand in main.go, are a role by themselves: a manager that watches one namespace has the others only there.
# What both providers need stands in pkg/provider. The metrics and leader election roles are written by hand.
.PHONY: generate-manifests
generate-manifests: $(CONTROLLER_GEN)
	@for provider in $(PROVIDERS); do \
	  $(CONTROLLER_GEN) crd paths=./$$provider/api/... output:crd:dir=config/$$provider/crd/bases; \
	  $(CONTROLLER_GEN) rbac:roleName=manager-role paths=./$$provider/internal/... paths=./pkg/... output:rbac:dir=config/$$provider/rbac; \
	  $(CONTROLLER_GEN) rbac:roleName=manager-cluster-role,fileName=cluster_role.yaml paths=./$$provider output:rbac:dir=config/$$provider/rbac; \
	done

# The cluster templates of clusterctl are the samples, with variables in place of what differs between users. Of the one with a
# ClusterClass the class is a file by itself, with the name that clusterctl looks for; the Cluster begins with its pull secret.
.PHONY: generate-templates
generate-templates:
	@mkdir -p config/templates
	@template() { \
	  sed -e "/^$${3:----$$}/,\$$!d" -e "s/: $$1\$$/: \$${CLUSTER_NAME}/" -e "s/: $$1-/: \$${CLUSTER_NAME}-/" -e "s/api\.$$1\./api.\$${CLUSTER_NAME}./" \
	    -f config/samples/template.sed config/samples/$$1.yaml > config/templates/$$2.yaml; \
	}; \
	template ha cluster-template; \
	template compact cluster-template-compact; \
	template sno cluster-template-sno; \
	template ha-disk-image cluster-template-disk-image; \
	template okd cluster-template-okd; \
	template clusterclass cluster-template-topology '# The pull secret'
	@sed -e '/^---$$/,$$!d' -e '/^# The pull secret/,$$d' config/samples/clusterclass.yaml | sed -e '$$d' > config/templates/clusterclass-agent.yaml

.PHONY: generate-docs
generate-docs: $(CRD_REF_DOCS)
	@printf '%s\n' '# API reference' '' 'Generated from the Go types by `make generate`: do not edit.' '' > docs/reference.md
	@for provider in $(PROVIDERS); do \
	  $(CRD_REF_DOCS) --config docs/reference.yaml --renderer markdown --log-level ERROR --source-path ./$$provider/api --output-path $(DEV)/$$provider.md; \
	  sed -e '1,/^## Packages/d' -e '/^- \[.*v1beta1\](/d' -e 's/Required: \\{\\} <br \/>/Required/' -e 's/Optional: \\{\\} <br \/>//' $(DEV)/$$provider.md | cat -s >> docs/reference.md; \
	done
	@printf '%s\n' '# Flags of the managers' '' 'Generated by `make generate`: do not edit. They are arguments of the containers `manager` of the two Deployments.' > docs/flags.md
	@for provider in $(PROVIDERS); do \
	  go build -o $(DEV)/$$provider ./$$provider && printf '\n## %s\n\n```text\n' $$provider >> docs/flags.md && TMPDIR=/tmp $(DEV)/$$provider --help 2>> docs/flags.md && printf '```\n' >> docs/flags.md || exit 1; \
	done

.PHONY: verify-generate
verify-generate: generate ## Check that the generated files are in step with their sources, and committed.
	@changed="$$(git status --porcelain -- $(GENERATED))"; \
	if [ -n "$$changed" ]; then git --no-pager diff -- $(GENERATED); echo "not in step, run 'make generate' and commit:"; echo "$$changed"; exit 1; fi

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code, and put right what the linter can.
	$(GOLANGCI_LINT) fmt
	$(GOLANGCI_LINT) run --fix

.PHONY: vet
vet: ## Run go vet.
	go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint.
	$(GOLANGCI_LINT) run

##@ Test

# What the real assisted-service is asked with every change: whole installations, its absence, and its failures. The other specs see the same of it and of the
# simulated one, which test/journeys compares.
ON_REAL := samples || workers || service || failure
.PHONY: test
test: unit ## Run the tests: unit, API server, contracts and end-to-end, on the simulated and (what concerns it) on the real assisted-service. The longest are left to make nightly.
	$(MAKE) conformance
	$(MAKE) e2e BACKEND=simulated LABELS='!(idle || nightly)' # idle is rule I5 of conformance
	$(MAKE) e2e BACKEND=real LABELS='($(ON_REAL)) && !nightly'
	$(MAKE) e2e BACKEND=real AUTH=none LABELS='failure && !nightly'

# The folders below test/tools with the other versions of Cluster API core that are tested: 1.13 and 1.14.
NEWER_CORES := cluster-api-next cluster-api-1.14
.PHONY: nightly
nightly: ## Run what takes too long for every change: the other end-to-end specs, conformance, updates in place and admission policies on the newer versions of Cluster API, and the unit tests with the race detector.
	$(MAKE) e2e BACKEND=simulated LABELS=nightly
	$(MAKE) e2e BACKEND=real LABELS='!($(ON_REAL) || restart || names || hold || healthcheck)'
	for core in $(NEWER_CORES); do \
	  $(MAKE) conformance CORE=$$core; \
	  $(MAKE) e2e CORE=$$core BACKEND=simulated LABELS='upgrade && !nightly' FOCUS='next patch in place'; \
	  CORE=$$core go test ./config -count=1; \
	done
	go test -race -timeout 90m $$($(UNIT))

# Beforehand, so that building does not count against the time-outs of tests.
.PHONY: components
components: ## Build the real components that tests start (kube-apiserver, Cluster API, assisted-service...), once; install PostgreSQL and Prometheus if they are missing. A newer Cluster API only with CORE=cluster-api-next (1.13) or CORE=cluster-api-1.14, which e2e and conformance then run on.
	@go run ./test/env/build

# The tests that may start components are those that depend, however indirectly, on the package that builds them. All others are pure.
UNIT := go list ./... | grep -v -e /test/e2e -e /test/conformance
STARTING := go list -test -f '{{.ImportPath}} {{join .Deps " "}} ' ./... | grep '/test/env/components ' | sed -E 's/(_test|\.test)? .*//' | sort -u

.PHONY: pure
pure:
	@starting="$$($(STARTING))"; go test -count=1 $$($(UNIT) | grep -vxF "$$starting")

.PHONY: quick
quick: lint pure ## Run golangci-lint and the tests that need no components: what to run before each commit.

# The pure tests go first: what they find needs no kube-apiserver to be built.
.PHONY: unit
unit: pure ## Run the tests that need no installation.
	$(MAKE) components
	@starting="$$($(STARTING))"; go test -timeout 40m $$($(UNIT) | grep -xF "$$starting")

BACKEND ?= simulated
AUTH ?= local
# CORE=cluster-api-next (1.13) and CORE=cluster-api-1.14 run e2e and conformance on a newer Cluster API: it is the folder below test/tools that core is built from.
.PHONY: e2e
e2e: components ## Run the end-to-end tests. FOCUS=<regular expression> or LABELS=<label filter> picks some, BACKEND=real takes the real assisted-service, AUTH=none one without authentication.
	BACKEND=$(BACKEND) AUTH=$(AUTH) go test ./test/e2e -count=1 -timeout 45m -v \
	  $(if $(FOCUS),-ginkgo.focus='$(FOCUS)') $(if $(LABELS),-ginkgo.label-filter='$(LABELS)')

.PHONY: conformance
conformance: components ## Test the contracts of Cluster API, rule by rule; writes _artifacts/conformance.md. FOCUS as above.
	go test ./test/conformance -count=1 -timeout 45m -v $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

.PHONY: bench
bench: components ## Measure reaction times, API requests, CPU and memory; writes _artifacts/bench.json.
	go run ./test/bench

# SCALE takes more flags: SCALE='-dead=0.3 -foreign=1 -reactions=100'.
CLUSTERS ?= 200
.PHONY: scale
scale: components ## Measure memory, goroutines, requests and CPU beside CLUSTERS=200 installed clusters; writes _artifacts/scale.json, fails beyond the targets.
	go run ./test/scale -clusters=$(CLUSTERS) $(SCALE)

##@ Release

.PHONY: images
images: ## Build the container images of both managers. ENGINE=podman|docker.
	$(ENGINE) build $(BUILD_ARGS) -f Dockerfile.bootstrap -t $(REGISTRY)/agent-bootstrap-provider:$(VERSION) .
	$(ENGINE) build $(BUILD_ARGS) -f Dockerfile.controlplane -t $(REGISTRY)/agent-control-plane-provider:$(VERSION) .
ENGINE ?= podman
BUILD_ARGS = --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION)

OUT ?= out
.PHONY: release
release: ## Write what is released into out/: what clusterctl installs, bills of materials, checksums. VERSION=v0.1.0, REGISTRY=registry/path, OUT=folder.
	@go run ./release -version '$(VERSION)' -registry '$(REGISTRY)' -out '$(OUT)'
	@cd '$(OUT)' && sha256sum --check --quiet --strict SHA256SUMS
	@echo "release $(VERSION) is in $(OUT)"

.PHONY: clean
clean: ## Remove what was built and the logs of tests; the tools stay.
	rm -rf bin out _artifacts

.PHONY: clean-tools
clean-tools: ## Remove the built tools and components too.
	rm -rf .tools
