# Run `make help` to see what there is. Everything needs Go and git only, but the documentation site Node.js; tools are built from pinned Go modules on first use.
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
LDFLAGS = -s -w -buildid= -X $(BUILD_VARIABLES).Version=$(VERSION) -X $(BUILD_VARIABLES).Revision=$(REVISION)

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
demo: ## Install a simulated cluster on real Cluster API and show it. SAMPLE=<a file in config/samples without .yaml>, or replace (a master is replaced then), upgrade (it is upgraded then), KEEP=1 leaves it running.
	@go run ./test/env/build -demo
	.tools/managers/demo -sample=$(SAMPLE) $(if $(KEEP),-keep)

##@ Develop

.PHONY: build
build: ## Build both managers into bin/.
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/bootstrap ./bootstrap
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/controlplane ./controlplane

PROVIDERS := bootstrap controlplane
GENERATED := bootstrap/api/v1beta1/zz_generated.deepcopy.go controlplane/api/v1beta1/zz_generated.deepcopy.go pkg/metal3/zz_generated.deepcopy.go pkg/assisted/zz_generated.deepcopy.go \
	test/plainmetal/api/v1beta1/zz_generated.deepcopy.go test/plainmetal/crd \
	config/bootstrap/crd/bases config/controlplane/crd/bases config/bootstrap/rbac/role.yaml config/controlplane/rbac/role.yaml \
	config/bootstrap/rbac/cluster_role.yaml config/controlplane/rbac/cluster_role.yaml \
	config/templates docs/reference.md docs/flags.md

.PHONY: generate
generate: generate-go generate-manifests generate-templates generate-docs ## Generate deep copies, CRDs, roles, cluster templates, the API reference and the list of flags.

.PHONY: generate-go
generate-go: $(CONTROLLER_GEN)
	$(CONTROLLER_GEN) object paths=./bootstrap/api/... paths=./controlplane/api/... paths=./pkg/assisted/... paths=./pkg/metal3/... paths=./test/plainmetal/api/...

# The rights on kinds without namespace, which stand in main.go, are a role by themselves: a manager that watches one namespace has the others only there.
# What both providers need stands in pkg/provider. The metrics and leader election roles are written by hand.
.PHONY: generate-manifests
generate-manifests: $(CONTROLLER_GEN)
	@for provider in $(PROVIDERS); do \
	  $(CONTROLLER_GEN) crd paths=./$$provider/api/... output:crd:dir=config/$$provider/crd/bases; \
	  $(CONTROLLER_GEN) rbac:roleName=manager-role paths=./$$provider/internal/... paths=./pkg/... output:rbac:dir=config/$$provider/rbac; \
	  $(CONTROLLER_GEN) rbac:roleName=manager-cluster-role,fileName=cluster_role.yaml paths=./$$provider output:rbac:dir=config/$$provider/rbac; \
	done
	@$(CONTROLLER_GEN) crd paths=./test/plainmetal/api/... output:crd:dir=test/plainmetal/crd

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
	template arbiter cluster-template-arbiter; \
	template two-node cluster-template-two-node; \
	template dual-stack cluster-template-dual-stack; \
	template disconnected cluster-template-disconnected; \
	template proxy cluster-template-proxy; \
	template clusterclass cluster-template-topology '# The pull secret'
	@sed -e '/^---$$/,$$!d' -e '/^# The pull secret/,$$d' config/samples/clusterclass.yaml | sed -e '$$d' > config/templates/clusterclass-agent.yaml

.PHONY: generate-docs
generate-docs: $(CRD_REF_DOCS)
	@printf '%s\n' '# API reference' '' 'Generated from the Go types by `make generate`: do not edit.' '' > docs/reference.md
	@for provider in $(PROVIDERS); do \
	  $(CRD_REF_DOCS) --config docs/reference.yaml --renderer markdown --log-level ERROR --source-path ./$$provider/api --output-path $(DEV)/$$provider.md; \
	  sed -e '1,/^## Packages/d' -e '/^- \[.*v1beta1\](/d' -e 's/Required: \\{\\} <br \/>/Required/' -e 's/Optional: \\{\\} <br \/>//' -e 's/<\([A-Za-z ]*\)>/\&lt;\1\&gt;/g' $(DEV)/$$provider.md | cat -s >> docs/reference.md; \
	done
	@printf '%s\n' '# Flags of the managers' '' 'Generated by `make generate`: do not edit. The flags are arguments of container `manager` of the two Deployments.' > docs/flags.md
	@for provider in $(PROVIDERS); do \
	  go build -o $(DEV)/$$provider ./$$provider && printf '\n## %s\n\n```text\n' $$provider >> docs/flags.md && TMPDIR=/tmp $(DEV)/$$provider --help 2>> docs/flags.md && printf '```\n' >> docs/flags.md || exit 1; \
	done

.PHONY: verify-generate
verify-generate: generate ## Check that the generated files are in step with their sources, and committed.
	@changed="$$(git status --porcelain -- $(GENERATED))"; \
	if [ -n "$$changed" ]; then git --no-pager diff -- $(GENERATED); echo "not in step, run 'make generate' and commit:"; echo "$$changed"; exit 1; fi

# The types are modules of their own (see "Use the types" in README.md): ./... does not reach them.
APIS := $(PROVIDERS:%=%/api)
# Neither does it reach tools, most of which are pins of others' programs alone; these have code of ours.
CODED_TOOLS = $(sort $(dir $(wildcard test/tools/*/*.go)))

.PHONY: tidy
tidy: ## Tidy the go.mod of the managers and those of the API types, which get the same versions.
	go mod tidy
	@for api in $(APIS); do \
	  go -C $$api mod edit $$(go list -m -f '{{with or .Replace .}}{{if .Version}}-require={{.Path}}@{{.Version}}{{end}}{{end}}' $$(sed -n 's/^\t\([^ ]*\) v.*/\1/p' $$api/go.mod)) && \
	  go -C $$api mod tidy || exit 1; \
	done

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code, and put right what the linter can.
	@for module in . $(APIS) $(CODED_TOOLS); do (cd $$module && $(abspath $(GOLANGCI_LINT)) fmt && $(abspath $(GOLANGCI_LINT)) run --fix) || exit 1; done

.PHONY: vet
vet: ## Run go vet.
	@for module in . $(APIS) $(CODED_TOOLS); do go -C $$module vet ./... || exit 1; done

.PHONY: lint
lint: $(GOLANGCI_LINT) lint-language ## Run golangci-lint, and check the language of comments, strings, names, documents and manifests.
	@for module in . $(APIS) $(CODED_TOOLS); do (cd $$module && $(abspath $(GOLANGCI_LINT)) run) || exit 1; done

# Vale, which the language is checked with, needs a C compiler to be built.
.PHONY: lint-language
lint-language:
	@go -C test/tools/language run .

# Subjects up to this commit do not follow the rules.
SUBJECTS_AFTER := 5fb92d4a
.PHONY: lint-commits
lint-commits: ## Check the subjects of commits: "area: change", imperative, at most 72 characters.
	@if git cat-file -e $(SUBJECTS_AFTER) 2>/dev/null; then go -C test/tools/language run . -commits $(SUBJECTS_AFTER)..HEAD; \
	else echo "commits: not checked, since this clone does not have the history back to $(SUBJECTS_AFTER)"; fi

##@ Test

# What the real assisted-service is asked with every change: whole installations, its absence, and its failures. The other specs see the same of it and of the
# simulated one, which test/journeys compares.
ON_REAL := samples || workers || service || failure
# Of these the simulated one is asked at night only: the specs are the same.
ONLY_REAL := workers || failure
# What happens to clusters that are installed takes as long as all the rest together.
DAY_TWO := etcd || upgrade || remediation || healthcheck || move
# What the real Bare Metal Operator is asked each night, beside the simulated assisted-service: whole installations and failures of them, workers that come and go, hosts that are odd or not ours, and
# all that happens to installed clusters.
ON_OPERATOR := samples || workers || hosts || failure || $(DAY_TWO)
# What starts components mostly waits, for polls of others above all: three suites at a time keep two processors busy, and pass where six are at work. Those begin that
# wait most, and as long whatever runs beside them; what ends last is what uses the processors that the others leave.
SUITES := suite-day-one suite-day-two suite-conformance suite-starting suite-real suite-chaos suite-bmo suite-open
AT_ONCE ?= 3
.PHONY: test
test: ## Run the tests: unit, API server, contracts and end-to-end, on the simulated and (what concerns it) on the real assisted-service. The longest are left to make nightly. AT_ONCE=1 runs one suite after the other, with half the memory. What failed is said again at the end.
	@mkdir -p _artifacts
	@{ $(MAKE) --no-print-directory -j2 -Oline pure && $(MAKE) components end-to-end-program && $(MAKE) --no-print-directory -k -j$(AT_ONCE) -Oline $(SUITES); } 2>&1 | tee _artifacts/test.log || { go run ./test/summary _artifacts/test.log; exit 1; }

# What runs for minutes collects its garbage less often: a twentieth of all work.
$(SUITES): export GOGC ?= 400
.PHONY: suite-day-two suite-day-one suite-conformance suite-starting suite-real suite-bmo suite-chaos suite-open
suite-day-two:
	@echo "==> $@ begins"
	$(MAKE) e2e LOGS=e2e-day-two LABELS='($(DAY_TWO)) && !(idle || nightly)'
suite-day-one:
	@echo "==> $@ begins"
	$(MAKE) e2e LOGS=e2e-day-one LABELS='!($(DAY_TWO) || idle || nightly || bmo || $(ONLY_REAL))' # idle is rule I5 of conformance
# With a prerequisite of their own, which make waits for, these two would begin last.
suite-conformance:
	@echo "==> $@ begins"
	$(MAKE) conformance
suite-starting:
	@echo "==> $@ begins"
	$(MAKE) starting
suite-real:
	@echo "==> $@ begins"
	$(MAKE) e2e BACKEND=real LABELS='($(ON_REAL)) && !nightly'
suite-bmo:
	@echo "==> $@ begins"
	$(MAKE) e2e BMO=real LOGS=e2e-bmo LABELS='bmo && !nightly'
# The same round each time: what a change breaks shows with that change. make nightly plays others.
suite-chaos:
	@echo "==> $@ begins"
	$(MAKE) chaos SEED=1 ROUNDS=1 CLUSTERS=4 CHAOS='-storm=60s -bound=15m'
suite-open:
	@echo "==> $@ begins"
	$(MAKE) e2e BACKEND=real AUTH=none LOGS=e2e-open LABELS='failure && !nightly' FOCUS='on the same hosts'

# The folders below test/tools with the other versions of Cluster API core that are tested: 1.13 and 1.14.
NEWER_CORES := cluster-api-next cluster-api-1.14
# What is restart and nightly waits until nobody writes about clusters without hosts, whose state the real service changes every second: see docs/assisted-service.md.
.PHONY: nightly
nightly: ## Run what takes too long for every change: the other end-to-end specs, installations, conformance and chaos with the real Bare Metal Operator, conformance, updates in place and admission policies on the newer versions of Cluster API, the journey with clusterctl with a cluster of each template, chaos, the bench, the unit tests and a round of chaos with the race detector, and the fuzz targets.
	$(MAKE) e2e BACKEND=simulated LONG=1 LABELS='nightly || samples || $(ONLY_REAL)'
	$(MAKE) e2e BACKEND=real LABELS='!($(ON_REAL) || (restart && nightly))'
	$(MAKE) e2e BACKEND=real LONG=1 LABELS='samples'
	$(MAKE) e2e BACKEND=real LONG=1 AUTH=none LOGS=e2e-open LABELS='failure && !nightly'
	$(MAKE) e2e BMO=real LONG=1 LOGS=e2e-operator LABELS='($(ON_OPERATOR)) && !(idle || nightly) || failure && nightly'
	$(MAKE) conformance BMO=real
	$(MAKE) chaos BMO=real ROUNDS=2 CLUSTERS=5 CHAOS='-storm=4m -bound=15m'
	for core in $(NEWER_CORES); do \
	  $(MAKE) conformance CORE=$$core; \
	  $(MAKE) e2e CORE=$$core BACKEND=simulated LABELS='upgrade && !nightly' FOCUS='next patch in place'; \
	  CORE=$$core go test ./config -count=1; \
	done
	$(MAKE) conformance LONG=1 FOCUS='I15 '
	LONG=1 go test ./test/clusterctl -count=1 -timeout 60m
	$(MAKE) chaos ROUNDS=12 CLUSTERS=9 CHAOS=-bound=15m
	GOFLAGS="$(GOFLAGS) -race" $(MAKE) chaos ROUNDS=1 CLUSTERS=9 CHAOS=-bound=15m
	$(MAKE) bench BENCH='-samples=1 -clusters=5 -margin=3'
	REPRODUCE=1 go test ./release -count=1 -run TestManagersAreTheSameWhereverTheyAreBuilt
	go test -race -count=1 -timeout 90m $$($(UNIT))
	$(MAKE) fuzz FUZZTIME=2m

# Beforehand, so that building does not count against the time-outs of tests.
.PHONY: components
components: ## Build the real components that tests start (kube-apiserver, Cluster API, assisted-service...), once; install PostgreSQL and Prometheus if they are missing. A newer Cluster API only with CORE=cluster-api-next (1.13) or CORE=cluster-api-1.14, which e2e and conformance then run on.
	@go run ./test/env/build

# What is waited for without a time of its own has a minute, not the second that Gomega gives it: a wait ends with what it waits for.
export GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT ?= 1m

# What vet finds the linter has found: it runs all checks of govet, and from empty caches go test would look through every package that is imported again.
GO_TEST := go test -vet=off
# Links only what changed.
RUN_TESTS := go run ./test/run
# Tools are modules of their own, which ./... does not reach.
TESTED_TOOLS = $(sort $(dir $(wildcard test/tools/*/*_test.go)))
# The tests that may start components are those that depend, however indirectly, on the package that builds them. All others are pure.
UNIT := go list ./... | grep -v -e /test/e2e -e /test/conformance
STARTING := go list -test -f '{{.ImportPath}} {{join .Deps " "}} ' ./... | grep '/test/env/components ' | sed -E 's/(_test|\.test)? .*//' | sort -u

# Tests wait, and so do linkers: with more of them at a time than processors, none is idle.
.PHONY: pure
pure: pure-packages pure-tools

.PHONY: pure-packages
pure-packages:
	@starting="$$($(STARTING))"; GOGC=400 $(RUN_TESTS) -at-once=8 -parallel=8 $$($(UNIT) | grep -vxF "$$starting")

.PHONY: pure-tools
pure-tools:
	@for tool in $(TESTED_TOOLS); do go -C $$tool test -vet=off -count=1 ./... || exit 1; done

.PHONY: quick
quick: lint pure ## Run golangci-lint and the tests that need no components: what to run before each commit.

# The pure tests go first: what they find needs no kube-apiserver to be built.
.PHONY: unit
unit: pure ## Run the tests that need no installation.
	$(MAKE) starting

# What pure runs of these are their seeds, and what earlier runs found (testdata/fuzz).
FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Fuzz each parser of what others write (ignition overrides, kubeconfigs, pull secrets, registries.conf, certificate requests, names...) for FUZZTIME=30s. A failing input is written into testdata/fuzz: commit it with the mend.
	@for file in $$(grep -rl --include=fuzz_test.go "^func Fuzz" ./bootstrap ./controlplane ./pkg); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$file); do \
	    echo "==> $$(dirname $$file) $$target"; \
	    $(GO_TEST) -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$(dirname $$file) || exit 1; \
	  done; \
	done

.PHONY: starting
starting: components
	@starting="$$($(STARTING))"; $(RUN_TESTS) -timeout=40m $$($(UNIT) | grep -xF "$$starting")

BACKEND ?= simulated
BMO ?= simulated
AUTH ?= local
LOGS ?= e2e-$(BACKEND)
# Colours are for terminals; in a file they are most of what is written. A suite that takes too long is ended by Ginkgo, which says what it was at, before the program ends itself.
GINKGO := -ginkgo.timeout=100m $(if $(MAKE_TERMOUT),,-ginkgo.no-color)
# A program, for several suites are run of it, each of which go test would link anew.
END_TO_END := $(CURDIR)/bin/e2e.test
.PHONY: end-to-end-program
end-to-end-program:
	@$(GO_TEST) -c -o $(END_TO_END) ./test/e2e

# CORE=cluster-api-next (1.13) and CORE=cluster-api-1.14 run e2e and conformance on a newer Cluster API: it is the folder below test/tools that core is built from.
.PHONY: e2e
e2e: components end-to-end-program ## Run the end-to-end tests. FOCUS=<regular expression> or LABELS=<label filter> picks some, BACKEND=real takes the real assisted-service, BMO=real the real Bare Metal Operator, LONG=1 installs on it those samples too that each change installs on the other, and with AUTH=none a cluster of more hosts than one, HOST_SEED=<number> lets each host take as long as in the run that printed it, AUTH=none one without authentication. LOGS names the folder of the logs below _artifacts/, which two at a time may not share.
	cd test/e2e && BACKEND=$(BACKEND) BMO=$(BMO) AUTH=$(AUTH) LOGS=$(LOGS) LONG=$(LONG) $(END_TO_END) -test.timeout=120m -test.v $(GINKGO) \
	  $(if $(FOCUS),-ginkgo.focus='$(FOCUS)') $(if $(LABELS),-ginkgo.label-filter='$(LABELS)')

.PHONY: conformance
conformance: components ## Test the contracts of Cluster API, rule by rule; writes _artifacts/conformance.md. FOCUS and BMO as above. LONG=1 tests the rules, too, that take long.
	LONG=$(LONG) BMO=$(BMO) $(GO_TEST) ./test/conformance -count=1 -timeout 120m -v $(GINKGO) $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

# BENCH takes more flags: BENCH='-clusters=20 -margin=1.5'.
.PHONY: bench
bench: components ## Measure reaction times, requests to the hub and to clusters in each phase of their lives, CPU and memory; writes _artifacts/bench.json, fails beyond the targets.
	go run ./test/bench $(BENCH)

# SEED plays a certain round again, which a failure names. CHAOS takes more flags: CHAOS='-only=answer-lost,kill-bootstrap'.
ROUNDS ?= 25
SEED ?= 0
.PHONY: chaos
chaos: components ## Install, scale and delete CLUSTERS=9 clusters in each of ROUNDS=25 rounds while requests, managers, assisted-service and objects go wrong; writes _artifacts/chaos.json, fails when a rule is broken. SEED=n begins with that round, BMO as above.
	go run ./test/chaos -bmo=$(BMO) -seed=$(SEED) -rounds=$(ROUNDS) $(if $(filter file,$(origin CLUSTERS)),,-clusters=$(CLUSTERS)) $(CHAOS)

# SCALE takes more flags: SCALE='-dead=0.3 -foreign=1 -reactions=100'.
CLUSTERS ?= 200
.PHONY: scale
scale: components ## Measure memory, goroutines, requests and CPU beside CLUSTERS=200 installed clusters; writes _artifacts/scale.json, fails beyond the targets.
	go run ./test/scale -clusters=$(CLUSTERS) $(SCALE)

##@ Document

# As tools, the packages of the site lie in a folder with the checksum of their pins. Node looks for them above the files that import them.
SITE := .tools/site-$(shell cat site/package.json site/package-lock.json | cksum | cut -d' ' -f1)
$(SITE):
	@site/provide-node
	@mkdir -p $@.new
	@cp site/package.json site/package-lock.json $@.new
	@npm ci --prefix $@.new --ignore-scripts --no-audit --no-fund --loglevel=error
	@mv $@.new $@

VITEPRESS = ln -sfn $(SITE)/node_modules node_modules && node_modules/.bin/vitepress

.PHONY: docs
docs: $(SITE) ## Build the documentation site into site/dist. Fails when a link or a diagram is broken, a page is in no navigation, or the search finds a wrong page first. DOCS_BASE=/path/ below which it will be served. Needs Node.js.
	@$(VITEPRESS) build site

.PHONY: docs-serve
docs-serve: $(SITE) ## Show the documentation site at http://localhost:5173, with changes as they are written.
	@$(VITEPRESS) dev site

FREEZE := .tools/freeze-$(call pins,freeze)/freeze
$(FREEZE):
	$(call tool,freeze,github.com/charmbracelet/freeze)

.PHONY: pictures
pictures: $(FREEZE) components ## Take the pictures of the live view in docs/pictures, of a real run of the demo.
	go run ./test/demo -sample=ha -delay=3s -pictures=_artifacts/pictures # slowly, so that what lasts a moment only is not in a picture
	@mkdir -p docs/pictures
	@for picture in _artifacts/pictures/*.ansi; do \
	  $(FREEZE) --language ansi --config test/demo/freeze.json --output docs/pictures/$$(basename $$picture .ansi).svg $$picture; \
	done

.PHONY: dashboard-picture
dashboard-picture: components ## Draw the Grafana dashboard in docs/pictures, from its queries: a real Prometheus watches clusters being installed in the laboratory.
	go run ./test/dashboard

##@ Release

# The bases of the images, where they shall not be what the Dockerfiles name: GO_IMAGE=docker.io/library/golang@sha256:..., BASE_IMAGE=gcr.io/distroless/static@sha256:...
# Files and images have the time of the commit; podman is told so by a flag of its own.
ENGINE ?= podman
ENGINE_IS_PODMAN = $(findstring podman,$(notdir $(ENGINE)))
SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
BUILD_ARGS = --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --build-arg SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) \
  $(foreach base,GO_IMAGE BASE_IMAGE,$(if $($(base)),--build-arg $(base)=$($(base)))) $(if $(ENGINE_IS_PODMAN),--timestamp $(SOURCE_DATE_EPOCH))

.PHONY: images
images: ## Build the container images of both managers. ENGINE=podman|docker.
	$(ENGINE) build $(BUILD_ARGS) -f Dockerfile.bootstrap -t $(REGISTRY)/agent-bootstrap-provider:$(VERSION) .
	$(ENGINE) build $(BUILD_ARGS) -f Dockerfile.controlplane -t $(REGISTRY)/agent-control-plane-provider:$(VERSION) .

# The digests are those that the registry has.
DIGESTS = bin/images.txt
.PHONY: push
push: ## Push both images, and write them with their digests into bin/images.txt, for make release IMAGES=bin/images.txt. ENGINE as above.
	@mkdir -p bin && rm -f $(DIGESTS) $(DIGESTS).new
	@for image in $(REGISTRY)/agent-bootstrap-provider $(REGISTRY)/agent-control-plane-provider; do \
	  $(if $(ENGINE_IS_PODMAN),$(ENGINE) push --digestfile bin/digest $$image:$(VERSION),$(ENGINE) push $$image:$(VERSION); \
	    $(ENGINE) buildx imagetools inspect --format '{{.Manifest.Digest}}' $$image:$(VERSION) > bin/digest); \
	  echo "$$image@$$(cat bin/digest)" >> $(DIGESTS).new; \
	done
	@rm -f bin/digest && mv $(DIGESTS).new $(DIGESTS)
	@cat $(DIGESTS)

OUT ?= out
.PHONY: release
release: ## Write what is released into out/: what clusterctl installs, a Helm chart, bills of materials, checksums. VERSION=v0.1.0, REGISTRY=registry/path, OUT=folder, IMAGES=file that make push wrote.
	@go run ./release -version '$(VERSION)' -registry '$(REGISTRY)' -images '$(IMAGES)' -out '$(OUT)'
	@cd '$(OUT)' && sha256sum --check --quiet --strict SHA256SUMS
	@echo "release $(VERSION) is in $(OUT)"

.PHONY: clean
clean: ## Remove what was built and the logs of tests; the tools stay.
	rm -rf bin out _artifacts site/dist

.PHONY: clean-tools
clean-tools: ## Remove the built tools and components too.
	rm -rf .tools
