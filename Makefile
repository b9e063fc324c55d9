# `make help` lists the targets. All targets need only Go and git, except the documentation site, which needs
# Node.js. Tools are built from pinned Go modules on first use.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Version of the managers and registry of their images. `make images` builds these images and `make release`
# refers to them.
VERSION ?= dev
REGISTRY ?= ghcr.io/openshift-agent
# The version that the managers report with --version, in their first log line and in a metric. The Dockerfiles
# have the same flags.
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
BUILD_VARIABLES := github.com/prometheus/common/version
LDFLAGS = -s -w -buildid= -X $(BUILD_VARIABLES).Version=$(VERSION) -X $(BUILD_VARIABLES).Revision=$(REVISION)

# Without this tag gRPC contains pages for browsers, whose templates call methods by name. Then the linker keeps
# all methods of all types, and a manager needs 8 MiB more memory. The Dockerfiles have the same tags.
TAGS := grpcnotrace

# A tool lies in .tools/<module>-<checksum of its pins>. Other pins give another folder, so that the tool is
# built again.
pins = $(shell cat test/tools/$(1)/go.mod test/tools/$(1)/go.sum | cksum | cut -d' ' -f1)
DEV := .tools/dev-$(call pins,dev)
LINT := .tools/lint-$(call pins,lint)
WORKFLOWS := .tools/workflows-$(call pins,workflows)

# golangci-lint caches findings with the paths of the first checkout. In another checkout its own exclusions
# would not match these paths.
export GOLANGCI_LINT_CACHE := $(CURDIR)/.tools/golangci-lint-cache

CONTROLLER_GEN := $(DEV)/controller-gen
CRD_REF_DOCS := $(DEV)/crd-ref-docs
GOLANGCI_LINT := $(LINT)/golangci-lint
ACTIONLINT := $(WORKFLOWS)/actionlint

# $(call tool,<module below test/tools>,<package>) builds a tool and moves it to the target in one step, so
# that an interrupted build leaves no file.
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
$(ACTIONLINT):
	$(call tool,workflows,github.com/rhysd/actionlint/cmd/actionlint)

##@ Use

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

SAMPLE ?= ha
.PHONY: demo
demo: ## Install a simulated cluster on real Cluster API and show it. SAMPLE=<file in config/samples without .yaml>, or SAMPLE=replace (replaces a master afterwards) or SAMPLE=upgrade (upgrades the cluster afterwards). KEEP=1 leaves the cluster running.
	@go -C test run ./env/build -demo
	.tools/managers/demo -sample=$(SAMPLE) $(if $(KEEP),-keep)

##@ Develop

# The kubectl plugin is a separate module, so that the managers do not require the libraries of commands.
PLUGIN := cmd/kubectl-openshift_agent

.PHONY: build
build: ## Build both managers and the kubectl plugin into bin/.
	CGO_ENABLED=0 go build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/bootstrap ./bootstrap
	CGO_ENABLED=0 go build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/controlplane ./controlplane
	CGO_ENABLED=0 go build -C $(PLUGIN) -ldflags '-s -w -buildid= -X main.version=$(VERSION)' -o $(CURDIR)/bin/kubectl-openshift_agent .

PROVIDERS := bootstrap controlplane
GENERATED := bootstrap/api/v1beta1/zz_generated.deepcopy.go controlplane/api/v1beta1/zz_generated.deepcopy.go pkg/metal3/zz_generated.deepcopy.go pkg/assisted/v1beta1/zz_generated.deepcopy.go \
	test/assistedsim/zz_generated.deepcopy.go test/plainmetal/api/v1beta1/zz_generated.deepcopy.go test/plainmetal/crd \
	config/bootstrap/crd/bases config/controlplane/crd/bases config/bootstrap/rbac/role.yaml config/controlplane/rbac/role.yaml \
	config/bootstrap/rbac/cluster_role.yaml config/controlplane/rbac/cluster_role.yaml \
	config/templates docs/reference.md docs/flags.md $(PLUGIN)/judge/advice.json

.PHONY: generate
generate: generate-go generate-manifests generate-templates generate-docs generate-advice ## Generate deep copies, CRDs, roles, cluster templates, the API reference, the list of flags and the advice of the kubectl plugin.

.PHONY: generate-go
generate-go: $(CONTROLLER_GEN)
	$(CONTROLLER_GEN) object paths=./bootstrap/api/... paths=./controlplane/api/... paths=./pkg/assisted/... paths=./pkg/metal3/...
	cd test && $(abspath $(CONTROLLER_GEN)) object paths=./plainmetal/api/... paths=./assistedsim/...

# The rights on kinds without namespace stand in main.go and are a separate role. A manager that watches one
# namespace has all other rights only in that namespace. The rights that both providers need stand in
# pkg/provider. The metrics and leader election roles are written by hand.
.PHONY: generate-manifests
generate-manifests: $(CONTROLLER_GEN)
	@for provider in $(PROVIDERS); do \
	  $(CONTROLLER_GEN) crd paths=./$$provider/api/... output:crd:dir=config/$$provider/crd/bases; \
	  $(CONTROLLER_GEN) rbac:roleName=manager-role paths=./$$provider/internal/... paths=./pkg/... output:rbac:dir=config/$$provider/rbac; \
	  $(CONTROLLER_GEN) rbac:roleName=manager-cluster-role,fileName=cluster_role.yaml paths=./$$provider output:rbac:dir=config/$$provider/rbac; \
	done
	@cd test && $(abspath $(CONTROLLER_GEN)) crd paths=./plainmetal/api/... output:crd:dir=plainmetal/crd

# The cluster templates of clusterctl are the samples with variables for the values that differ between users.
# The ClusterClass of its sample is a separate file with the name that clusterctl requires. The template of its
# Cluster begins with the pull secret.
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
	@printf '%s\n' '# API reference' '' 'Generated from the Go types by `make generate`: do not edit.' > docs/reference.md
	@for provider in $(PROVIDERS); do \
	  $(CRD_REF_DOCS) --config docs/reference.yaml --templates-dir docs/reference --renderer markdown --log-level ERROR --source-path ./$$provider/api --output-path $(DEV)/$$provider.md; \
	  cat -s $(DEV)/$$provider.md >> docs/reference.md; \
	done
	@printf '%s\n' '# Flags of the managers' '' 'Generated by `make generate`: do not edit. The flags are arguments of container `manager` of the two Deployments.' > docs/flags.md
	@for provider in $(PROVIDERS); do \
	  go build -o $(DEV)/$$provider ./$$provider && printf '\n## %s\n\n```text\n' $$provider >> docs/flags.md && TMPDIR=/tmp $(DEV)/$$provider --help 2>> docs/flags.md && printf '```\n' >> docs/flags.md || exit 1; \
	done

# The kubectl plugin shows what docs/conditions.md states about a reason.
.PHONY: generate-advice
generate-advice:
	@output="$$(UPDATE_GOLDEN=1 go -C $(PLUGIN) test -vet=off -count=1 -run '^TestAdviceIsDocumentation$$' ./judge)" || { echo "$$output"; exit 1; }

.PHONY: verify-generate
verify-generate: generate ## Check that the generated files match their sources and are committed.
	@changed="$$(git status --porcelain -- $(GENERATED))"; \
	if [ -n "$$changed" ]; then git --no-pager diff -- $(GENERATED); echo "These files do not match their sources. Run 'make generate' and commit:"; echo "$$changed"; exit 1; fi

# The API types are separate modules (see docs/go-types.md), which ./... does not include.
APIS := $(PROVIDERS:%=%/api)
# Neither does ./... include the tools. Most tools are only pins of foreign programs; these contain our code.
CODED_TOOLS = $(sort $(dir $(wildcard test/tools/*/*.go)))
# The product, its API types, the kubectl plugin, the tests, the conformance suite, and the tools with our code.
MODULES = . $(APIS) $(PLUGIN) test test/conformance $(CODED_TOOLS)

.PHONY: tidy
tidy: ## Tidy the go.mod of the managers, of the API types, of the kubectl plugin, of the tests and of the conformance suite, with equal versions.
	go mod tidy
	@tidy() { \
	  go -C $$1 mod edit $$(go -C $$2 list -m -e -f '{{with or .Replace .}}{{if .Version}}-require={{.Path}}@{{.Version}}{{end}}{{end}}' $$(sed -n 's/^\t\([^ ]*\) v.*/\1/p' $$1/go.mod)) && \
	  go -C $$1 mod tidy || exit 1; \
	}; \
	for module in $(APIS) $(PLUGIN); do tidy $$module .; done; \
	tidy test/conformance test
	go -C test mod tidy

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code, and apply the automatic fixes of the linter.
	@for module in $(MODULES); do (cd $$module && $(abspath $(GOLANGCI_LINT)) fmt && $(abspath $(GOLANGCI_LINT)) run --fix) || exit 1; done

.PHONY: vet
vet: ## Run go vet.
	@for module in $(MODULES); do go -C $$module vet ./... || exit 1; done

.PHONY: lint
lint: $(GOLANGCI_LINT) lint-language lint-workflows ## Run golangci-lint, check the language of comments, strings, names, documents and manifests, and check the GitHub workflows. LINT_FLAGS passes additional flags to golangci-lint.
	@for module in $(MODULES); do (cd $$module && $(abspath $(GOLANGCI_LINT)) run $(LINT_FLAGS)) || exit 1; done

# Vale checks the language. Building Vale needs a C compiler.
.PHONY: lint-language
lint-language:
	@go -C test/tools/language run .

# Without the two flags, actionlint runs shellcheck and pyflakes where they are installed, with their installed version.
.PHONY: lint-workflows
lint-workflows: $(ACTIONLINT)
	@$(ACTIONLINT) -shellcheck= -pyflakes= .github/workflows/*.yaml
	@echo "workflows: no findings"

# Subjects up to this commit do not follow the rules.
SUBJECTS_AFTER := 5fb92d4a
.PHONY: lint-commits
lint-commits: ## Check the subjects of commits: "area: change", imperative, at most 72 characters.
	@if git cat-file -e $(SUBJECTS_AFTER) 2>/dev/null; then go -C test/tools/language run . -commits $(SUBJECTS_AFTER)..HEAD; \
	else echo "commits: not checked, because this clone has no history back to $(SUBJECTS_AFTER)"; fi

# The commits of this repository before its publication have no sign-off, so only the commits of a pull request are
# checked.
.PHONY: lint-sign-off
lint-sign-off: ## Check that each commit after SINCE=<commit> has the sign-off of its author (Developer Certificate of Origin).
	@go -C test/tools/language run . -sign-off '$(or $(SINCE),$(error set SINCE to the commit before the first commit to check))..HEAD'

##@ Test

# Specs that each change runs on the real assisted-service: complete installations, outages and failures.
# test/journeys compares the real and the simulated assisted-service, so that all other specs may use the
# simulated one.
ON_REAL := samples || workers || service || failure
# Of these specs, the simulated assisted-service runs the following only at night.
ONLY_REAL := workers || failure || service
# Specs on installed clusters take as long as all other specs together.
DAY_TWO := etcd || upgrade || remediation || healthcheck || move
# Specs that each night runs on the real Bare Metal Operator and the simulated assisted-service: complete and
# failing installations, added and removed workers, unusual and foreign hosts, and specs on installed clusters.
ON_OPERATOR := samples || workers || hosts || failure || $(DAY_TWO)
# Tests that start components mostly wait, above all for polls of other components. Three suites at a time keep
# two processors busy. They also pass with six suites at a time. The longest suites begin, so that all end at
# about the same time.
SUITES := suite-day-two suite-day-one suite-starting suite-conformance suite-real suite-bmo
AT_ONCE ?= 3
.PHONY: test
test: ## Run the tests of each change: unit, API server, contracts and end-to-end, on the simulated and partly on the real assisted-service. AT_ONCE=1 runs one suite after the other, with half the memory. A summary of the failures ends the output.
	@mkdir -p _artifacts
	@{ $(MAKE) --no-print-directory -j2 -Oline pure && $(MAKE) components end-to-end-program && $(MAKE) --no-print-directory -k -j$(AT_ONCE) -Oline $(SUITES); } 2>&1 | tee _artifacts/test.log || { go -C test run ./summary $(CURDIR)/_artifacts/test.log; exit 1; }

# Programs that run for minutes collect garbage less often, which saves a twentieth of all work.
$(SUITES): export GOGC ?= 400
.PHONY: $(SUITES)
suite-day-two:
	@echo "==> $@ begins"
	$(MAKE) e2e LOGS=e2e-day-two LABELS='($(DAY_TWO)) && !(idle || nightly)'
suite-day-one:
	@echo "==> $@ begins"
	$(MAKE) e2e LOGS=e2e-day-one LABELS='!($(DAY_TWO) || idle || nightly || bmo || $(ONLY_REAL))' # idle is rule I5 of conformance
# Make would start these two suites last if they had a prerequisite.
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

# Folders of test/tools with older versions of Cluster API core.
OLDER_CORES := cluster-api-1.12 cluster-api-1.13
# Each spec of a topology starts with the cluster of the former one, so those of every change run again.
# Specs with the labels restart and nightly wait until no client writes to clusters without hosts. The real
# assisted-service writes to such clusters every second: see docs/assisted-service.md.
.PHONY: nightly
# Without a browser, the tests of the page of the kubectl plugin fail instead of being skipped.
nightly: export REQUIRE_BROWSER := 1
nightly: ## Run the checks that take too long for every change. The linter staticcheck. All other end-to-end specs. Specs, conformance and chaos with the real Bare Metal Operator. Conformance, in-place updates and admission policies on older versions of Cluster API. clusterctl with a cluster of each template. Chaos, the bench, and the costs of the managers with 200 clusters. Unit tests and a round of chaos with the race detector. Fuzz targets. Known vulnerabilities.
	$(MAKE) lint
	$(MAKE) e2e BACKEND=simulated LONG=1 LABELS='nightly || samples || topology || $(ONLY_REAL)'
	$(MAKE) e2e BACKEND=real LABELS='!($(ON_REAL) || (restart && nightly))'
	$(MAKE) e2e BACKEND=real LONG=1 LABELS='samples'
	$(MAKE) e2e BACKEND=real LONG=1 AUTH=none LOGS=e2e-open LABELS='failure && !nightly'
	$(MAKE) e2e BMO=real LONG=1 LOGS=e2e-operator LABELS='($(ON_OPERATOR)) && !(idle || nightly) || failure && nightly || healthcheck'
	$(MAKE) conformance BMO=real
	$(MAKE) chaos BMO=real ROUNDS=2 CLUSTERS=5 CHAOS='-storm=4m -bound=15m'
	for core in $(OLDER_CORES); do \
	  $(MAKE) conformance CORE=$$core; \
	  $(MAKE) e2e CORE=$$core BACKEND=simulated LABELS='upgrade' FOCUS='next patch in place|A topology|is being upgraded'; \
	  CORE=$$core go -C test test ./config -count=1; \
	done
	$(MAKE) conformance LONG=1 FOCUS='I15 '
	LONG=1 go -C test test ./providers -count=1 -timeout 60m -run '^TestCommandChecksRunningProviders$$'
	LONG=1 go -C test test ./clusterctl -count=1 -timeout 60m
	$(MAKE) chaos ROUNDS=12 CLUSTERS=9 CHAOS=-bound=15m
	GOFLAGS="$(GOFLAGS) -race" $(MAKE) chaos ROUNDS=1 CLUSTERS=9 CHAOS=-bound=15m
	$(MAKE) bench BENCH='-samples=1 -clusters=5 -margin=3'
	$(MAKE) scale SCALE=-margin=1.3
	REPRODUCE=1 go test ./release -count=1 -run 'TestManagerBuildsAreReproducible|TestReleaseContainsThePlugin'
	$(MAKE) release VERSION=v0.1.0
	go test -race -count=1 -timeout 90m ./...
	go -C $(PLUGIN) test -race -count=1 ./...
	go -C test test -race -count=1 -timeout 90m $$(go -C test list ./... | grep -v $(NO_UNIT))
	go -C test/conformance test -race -count=1 ./...
	$(MAKE) fuzz FUZZTIME=2m
	$(MAKE) vulnerabilities

# Components are built first, so that the timeouts of tests do not include the build.
.PHONY: components
components: ## Build the real components that tests start (kube-apiserver, Cluster API, assisted-service...) once, and install PostgreSQL, Prometheus and tmux if they are missing. REQUIRE_BROWSER=1 also installs Chromium. CORE=cluster-api-1.12 or CORE=cluster-api-1.13 also builds an older Cluster API.
	@go -C test run ./env/build

# Eventually without a timeout waits for one minute, instead of the second of Gomega. A successful wait ends
# earlier.
export GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT ?= 1m

# The linter runs all checks of vet. With empty caches, go test would vet every imported package again.
GO_TEST := test -vet=off
# test/run links only changed test programs.
RUN_TESTS := go -C test run ./run -programs=$(CURDIR)/bin/tests
# Tools are separate modules, which ./... does not include.
TESTED_TOOLS = $(sort $(dir $(wildcard test/tools/*/*_test.go)))
# Tests that may start components depend, directly or indirectly, on the package that builds the components.
# All other tests are pure.
NO_UNIT := -e /test/e2e -e /test/providers
CONFORMANCE := go -C test/conformance list ./...
UNIT := { go list ./... && go -C $(PLUGIN) list ./... && go -C test list ./... && $(CONFORMANCE); } | grep -v $(NO_UNIT)
# etcd's package is in the other module and runs the builder of the components. The tests of the conformance suite
# are pure, but wait too long for make quick.
STARTING := { go -C test list -test -f '{{.ImportPath}} {{join .Deps " "}} ' ./... | grep '/test/env/components ' | sed -E 's/(_test|\.test)? .*//'; go list ./controlplane/internal/etcd; $(CONFORMANCE); } | sort -u

# Tests and linkers wait. More of them than processors keep all processors busy.
.PHONY: pure
pure: pure-packages pure-tools

.PHONY: pure-packages
pure-packages:
	@starting="$$($(STARTING))"; GOGC=400 $(RUN_TESTS) -at-once=8 -parallel=8 $$($(UNIT) | grep -vxF "$$starting")

.PHONY: pure-tools
pure-tools:
	@for tool in $(TESTED_TOOLS); do go -C $$tool test -vet=off -count=1 ./... || exit 1; done

.PHONY: quick
quick: lint pure ## Run golangci-lint and the tests that need no components. Run this before each commit.

# The pure tests run first: their failures show before kube-apiserver is built.
.PHONY: unit
unit: pure ## Run the tests that need no installation.
	$(MAKE) starting

# A vulnerability may become known without a change of this repository, so this target is no part of make test.
.PHONY: vulnerabilities
vulnerabilities: ## Check with govulncheck that the managers, the API types and the kubectl plugin call no code with a known vulnerability, in a module or in Go. Uses https://vuln.go.dev, or the pinned copy of its database if it cannot be reached.
	go -C test/tools/vulnerabilities run .

# pure runs the seeds of the fuzz targets and the inputs that earlier runs found (testdata/fuzz).
FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Fuzz each parser of foreign input (ignition overrides, kubeconfigs, pull secrets, registries.conf, certificate requests, names...) for FUZZTIME=30s. A failing input is written to testdata/fuzz: commit it with the fix.
	@for file in $$(grep -rl --include=fuzz_test.go "^func Fuzz" ./bootstrap ./controlplane ./pkg); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$file); do \
	    echo "==> $$(dirname $$file) $$target"; \
	    go $(GO_TEST) -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$(dirname $$file) || exit 1; \
	  done; \
	done

# The tests of the simulated operators of OpenShift take a tenth of the time of all tests. make nightly runs them with the
# race detector.
OPERATORS := -e /test/openshift/etcdoperator -e /test/openshift/versionoperator
.PHONY: starting
starting: components
	@starting="$$($(STARTING))"; $(RUN_TESTS) -timeout=40m $$($(UNIT) | grep -xF "$$starting" | grep -v $(OPERATORS))

BACKEND ?= simulated
BMO ?= simulated
AUTH ?= local
LOGS ?= e2e-$(BACKEND)
# In a file, color codes would be most of the text. Ginkgo ends a suite that takes too long and reports the
# running spec before the timeout of the program. A FOCUS or LABELS that selects no spec is an error.
GINKGO := -ginkgo.timeout=100m -ginkgo.fail-on-empty $(if $(MAKE_TERMOUT),,-ginkgo.no-color)
# A compiled program, because several suites run it and go test would link it for each suite.
END_TO_END := $(CURDIR)/bin/e2e.test
.PHONY: end-to-end-program
end-to-end-program:
	@go -C test $(GO_TEST) -c -o $(END_TO_END) ./e2e

# CORE=cluster-api-1.12 and CORE=cluster-api-1.13 run e2e and conformance on an older Cluster API. CORE
# is the folder of test/tools that core is built from.
.PHONY: e2e
e2e: components end-to-end-program ## Run the end-to-end tests. FOCUS=<regular expression> or LABELS=<label filter> selects specs. BACKEND=real uses the real assisted-service, BMO=real the real Bare Metal Operator, AUTH=none an assisted-service without authentication. LONG=1 installs further samples, and a cluster of several hosts with AUTH=none. HOST_SEED=<number> repeats the durations of the run that printed the number. LOGS is the folder of the logs in _artifacts/; parallel runs need different folders.
	cd test/e2e && BACKEND=$(BACKEND) BMO=$(BMO) AUTH=$(AUTH) LOGS=$(LOGS) LONG=$(LONG) $(END_TO_END) -test.timeout=120m -test.v $(GINKGO) -ginkgo.junit-report=$(CURDIR)/_artifacts/$(LOGS).xml \
	  $(if $(FOCUS),-ginkgo.focus='$(FOCUS)') $(if $(LABELS),-ginkgo.label-filter='$(LABELS)')

.PHONY: conformance
conformance: components ## Test the contracts of Cluster API, rule by rule, and write _artifacts/conformance.md. FOCUS and BMO as for e2e. LONG=1 includes the rules that take long.
	LONG=$(LONG) BMO=$(BMO) go -C test $(GO_TEST) ./providers -count=1 -timeout 120m -v $(GINKGO) -ginkgo.junit-report=$(CURDIR)/_artifacts/conformance.xml $(if $(FOCUS),-run '^TestConformance$$' -ginkgo.focus='$(FOCUS)')

# The programs of the tests run at the top of the repository, where they write into _artifacts.
program = go -C test build -o $(CURDIR)/bin/$(1) ./$(1) && bin/$(1)

# BENCH passes additional flags: BENCH='-clusters=20 -margin=1.5'.
.PHONY: bench
bench: components ## Measure reaction times, requests to the hub and to clusters per phase, CPU and memory. Writes _artifacts/bench.json and fails if a target is missed.
	$(call program,measure) bench $(BENCH)

# SEED repeats the round that a failure names. CHAOS passes additional flags:
# CHAOS='-only=answer-lost,kill-bootstrap'.
ROUNDS ?= 25
SEED ?= 0
.PHONY: chaos
chaos: components ## Install, scale and delete CLUSTERS=9 clusters in each of ROUNDS=25 rounds, with faults in requests, managers, assisted-service and objects. Writes _artifacts/chaos.json and fails if a rule is broken. SEED=n begins with round n, BMO as for e2e.
	$(call program,chaos) -bmo=$(BMO) -seed=$(SEED) -rounds=$(ROUNDS) $(if $(filter file,$(origin CLUSTERS)),,-clusters=$(CLUSTERS)) $(CHAOS)

# SCALE passes additional flags: SCALE='-dead=0.3 -foreign=1 -reactions=100'.
CLUSTERS ?= 200
.PHONY: scale
scale: components ## Measure memory, goroutines, requests and CPU with CLUSTERS=200 installed clusters. Writes _artifacts/scale.json and fails if a target is missed.
	$(call program,measure) scale -clusters=$(CLUSTERS) $(SCALE)

##@ Document

# Like tools, the packages of the site lie in a folder with the checksum of their pins. Node resolves them from
# a parent folder of the importing files.
SITE := .tools/site-$(shell cat site/package.json site/package-lock.json | cksum | cut -d' ' -f1)
$(SITE):
	@site/provide-node
	@mkdir -p $@.new
	@cp site/package.json site/package-lock.json $@.new
	@npm ci --prefix $@.new --ignore-scripts --no-audit --no-fund --loglevel=error
	@mv $@.new $@

VITEPRESS = ln -sfn $(SITE)/node_modules node_modules && node_modules/.bin/vitepress

.PHONY: docs
docs: $(SITE) ## Build the documentation site in site/dist. Fails if a link or diagram is broken, a page is missing in the navigation, or the search ranks a wrong page first. DOCS_BASE=/path/ is the path of the site on its server. Needs Node.js.
	@$(VITEPRESS) build site

.PHONY: docs-serve
docs-serve: $(SITE) ## Show the documentation site at http://localhost:5173 and reload it after changes.
	@$(VITEPRESS) dev site

FREEZE := .tools/freeze-$(call pins,freeze)/freeze
$(FREEZE):
	$(call tool,freeze,github.com/charmbracelet/freeze)

.PHONY: pictures
pictures: $(FREEZE) components ## Take the pictures of the live view in docs/pictures from a run of the demo.
	$(call program,demo) -sample=ha -delay=3s -pictures=_artifacts/pictures # the delay keeps short states out of the pictures
	@mkdir -p docs/pictures
	@for picture in _artifacts/pictures/*.ansi; do \
	  $(FREEZE) --language ansi --config test/demo/freeze.json --output docs/pictures/$$(basename $$picture .ansi).svg $$picture; \
	done

.PHONY: dashboard-picture
dashboard-picture: components ## Draw the Grafana dashboard in docs/pictures from its queries. A real Prometheus scrapes managers that install clusters in the lab.
	$(call program,dashboard)

##@ Release

# GO_IMAGE and BASE_IMAGE replace the base images of the Dockerfiles:
# GO_IMAGE=docker.io/library/golang@sha256:..., BASE_IMAGE=gcr.io/distroless/static@sha256:... Files and images
# get the time of the commit, which podman takes as a flag.
ENGINE ?= podman
ENGINE_IS_PODMAN = $(findstring podman,$(notdir $(ENGINE)))
SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
BUILD_ARGS = --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --build-arg SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) \
  $(foreach base,GO_IMAGE BASE_IMAGE,$(if $($(base)),--build-arg $(base)=$($(base)))) $(if $(ENGINE_IS_PODMAN),--timestamp $(SOURCE_DATE_EPOCH)) \
  $(IMAGE_FLAGS)

.PHONY: images
images: ## Build the container images of both managers. ENGINE=podman|docker.
	$(ENGINE) build $(BUILD_ARGS) -f Dockerfile.bootstrap -t $(REGISTRY)/agent-bootstrap-provider:$(VERSION) .
	$(ENGINE) build $(BUILD_ARGS) -f Dockerfile.controlplane -t $(REGISTRY)/agent-control-plane-provider:$(VERSION) .

# An image for several platforms exists only in a registry: docker builds and pushes it at once. With mode=max the
# provenance includes the build arguments. rewrite-timestamp gives all files of the layers the time of the commit.
PLATFORMS ?=
PUBLISHED = --platform=$(PLATFORMS) --provenance=mode=max --sbom=true --output=type=registry,rewrite-timestamp=true

# The registry returns the digests.
DIGESTS = bin/images.txt
.PHONY: push
push: ## Push both images, and write their digests to bin/images.txt for make release IMAGES=bin/images.txt. ENGINE=podman|docker. PLATFORMS=linux/amd64,linux/arm64 builds the images for these platforms, with attestations of provenance and of the bill of materials, and needs ENGINE=docker.
	$(if $(PLATFORMS),$(if $(ENGINE_IS_PODMAN),$(error PLATFORMS needs ENGINE=docker)))
	@mkdir -p bin && rm -f $(DIGESTS) $(DIGESTS).new
	$(if $(PLATFORMS),@$(MAKE) --no-print-directory images ENGINE='$(ENGINE) buildx' IMAGE_FLAGS='$(PUBLISHED)')
	@for image in $(REGISTRY)/agent-bootstrap-provider $(REGISTRY)/agent-control-plane-provider; do \
	  $(if $(ENGINE_IS_PODMAN),$(ENGINE) push --digestfile bin/digest $$image:$(VERSION),$(if $(PLATFORMS),,$(ENGINE) push $$image:$(VERSION);) \
	    $(ENGINE) buildx imagetools inspect --format '{{.Manifest.Digest}}' $$image:$(VERSION) > bin/digest); \
	  echo "$$image@$$(cat bin/digest)" >> $(DIGESTS).new; \
	done
	@rm -f bin/digest && mv $(DIGESTS).new $(DIGESTS)
	@cat $(DIGESTS)

OUT ?= out
PLUGINS ?= true
.PHONY: release
release: ## Write the files of a release to out/: components for clusterctl, a Helm chart, manifests for monitoring, Argo CD and siteconfig, the samples, the kubectl plugin for all platforms with a manifest for krew, software bills of materials and checksums. VERSION=v0.1.0, REGISTRY=registry/path, OUT=folder, IMAGES=file that make push wrote. ASSETS=<new folder> also writes the files with the names of a GitHub release. PLUGINS=false leaves out the kubectl plugin, whose first build takes minutes.
	@go run ./release -version '$(VERSION)' -registry '$(REGISTRY)' -images '$(IMAGES)' -out '$(OUT)' -assets '$(ASSETS)' -plugin='$(PLUGINS)'
	@cd '$(OUT)' && sha256sum --check --quiet --strict SHA256SUMS
	@echo "release $(VERSION) is in $(OUT)"

# Helm uses the credentials of docker login, and reports the digest on its standard error.
HELM ?= go -C test/tools/helm tool helm
CHART := cluster-api-provider-openshift-agent
.PHONY: push-chart
push-chart: ## Push the Helm chart that make release wrote to oci://$(REGISTRY)/charts, and write its digest to bin/chart.txt. VERSION, REGISTRY and OUT as for make release.
	@mkdir -p bin && rm -f bin/chart.txt
	@$(HELM) push '$(abspath $(OUT))/$(CHART)-$(VERSION:v%=%).tgz' 'oci://$(REGISTRY)/charts' 2>&1 | tee bin/helm.txt
	@sed -n 's|^Digest: |$(REGISTRY)/charts/$(CHART)@|p' bin/helm.txt | grep . > bin/chart.txt
	@rm bin/helm.txt && cat bin/chart.txt

.PHONY: clean
clean: ## Remove built files and the logs of tests. The tools stay.
	rm -rf bin out _artifacts site/dist

.PHONY: clean-tools
clean-tools: ## Remove the built tools and components.
	rm -rf .tools
