# Muster. `make` alone lists what can be made.

SHELL   := /bin/bash
BIN     := bin
FLEET   ?= p3
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

SERVICES         := muster muster-dev intake capacity-watcher queue-manager dispatcher console
DEVCLUSTER_FILES := $(shell find deploy/devcluster -name testdata -prune -o -type f ! -name '*_test.go' ! -name '*.md' -print)
MODULES          := $(shell sed -n 's|^\t\./||p' go.work) deploy/devcluster deploy/helm

# Everything that is linked without race detector is linked statically, and
# with the same flags, so that the build cache serves all of it.
export CGO_ENABLED ?= 0
GORUN := go run -trimpath -buildvcs=false

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: services $(BIN)/devcluster $(BIN)/kubectl $(BIN)/nats ## build all binaries into bin/

.PHONY: services
services:
	@mkdir -p $(BIN)
	@echo "services: building into $(BIN)/"
	@go build -trimpath -buildvcs=false -ldflags="-X muster.dev/muster/pkg/service/version.release=$(VERSION)" \
		-o $(BIN)/ $(SERVICES:%=./services/%)

$(BIN)/devcluster: $(DEVCLUSTER_FILES) deploy/local/kubernetes-flags.sh
	@mkdir -p $(BIN)
	@deploy/local/build-devcluster.sh $@
	@touch $@

# kubectl of the dev cluster's Kubernetes, for tests of what people type.
$(BIN)/kubectl: deploy/devcluster/go.mod deploy/local/kubernetes-flags.sh
	@mkdir -p $(BIN)
	@echo "kubectl: building into $(BIN)/"
	@GOWORK=off go -C deploy/devcluster build -trimpath -buildvcs=false -ldflags="-s -w $$(deploy/local/kubernetes-flags.sh)" \
		-o $(CURDIR)/$@ k8s.io/kubernetes/cmd/kubectl
	@touch $@

# The kubeconfig that `make up` writes and asks to export is that of the stack itself, not of
# a cluster that the demo and the next stack should use.
ifeq ($(KUBECONFIG),$(CURDIR)/.devstate/kubeconfig)
override KUBECONFIG :=
unexport KUBECONFIG
endif

# The command line of NATS, for tests of the commands in the pages.
$(BIN)/nats: .tools/nats/go.mod
	@mkdir -p $(BIN)
	@echo "nats: building into $(BIN)/"
	@GOWORK=off go -C .tools/nats build -trimpath -buildvcs=false -ldflags="-s -w" -o $(CURDIR)/$@ github.com/nats-io/natscli/nats
	@touch $@

# With KUBECONFIG set the demo and the local stack use that cluster.
.PHONY: stack-parts
stack-parts: need-postgres services $(if $(KUBECONFIG),,$(BIN)/devcluster)

.PHONY: need-postgres need-compiler need-browser
need-postgres need-compiler need-browser: need-%:
	@deploy/local/machine.sh install $*

.PHONY: demo
demo: stack-parts ## run the demo on real parts and check it (KUBECONFIG=... uses your cluster)
	@$(BIN)/muster-dev demo

.PHONY: demo-provisioning
demo-provisioning: override KUBECONFIG :=
demo-provisioning: ## run the demo of a job that gets nodes which do not exist yet, on real parts
	@$(MAKE) --no-print-directory KUBECONFIG= stack-parts
	@KUBECONFIG= $(BIN)/muster-dev demo --provisioning

.PHONY: demo-clusters
demo-clusters: override KUBECONFIG :=
demo-clusters: ## run the demo of two clusters under one queue-manager: overflow, a lost cluster, its return, a drain
	@$(MAKE) --no-print-directory KUBECONFIG= stack-parts
	@KUBECONFIG= $(BIN)/muster-dev demo --clusters

# nats-server of the version that package localnats embeds.
$(BIN)/nats-server: pkg/go.mod
	@mkdir -p $(BIN)
	@echo "nats-server: building"
	@go build -trimpath -buildvcs=false -ldflags="-s -w" -o $@ github.com/nats-io/nats-server/v2

.PHONY: images secrets
images: services $(BIN)/devcluster $(BIN)/nats-server secrets ## build the container images, without a registry, and load them
	@deploy/images/build.sh $(VERSION)

secrets:
	@$(GORUN) ./deploy/compose .devstate/compose

.PHONY: up up-containers up-process
up: ## start the local stack and leave it running (FLEET=laptop: other nodes)
	@if [ -z "$(KUBECONFIG)" ] && deploy/local/compose.sh able; then \
		$(MAKE) --no-print-directory up-containers; else $(MAKE) --no-print-directory up-process; fi

up-containers: images
	@FLEET=$(FLEET) deploy/local/compose.sh up

up-process: stack-parts ## the same in one process, where there is a Docker engine, too
	@deploy/local/stack.sh up --fleet $(FLEET)

.PHONY: down
down: ## stop the local stack
	@deploy/local/compose.sh down
	@deploy/local/stack.sh down

.PHONY: test
test: need-postgres need-compiler need-browser services $(BIN)/devcluster $(BIN)/kubectl $(BIN)/nats-server $(BIN)/nats ## run all tests, with the race detector where it has work, against real parts
	@if deploy/local/compose.sh able; then $(MAKE) --no-print-directory images; fi
	@MUSTER_DEVCLUSTER=$(CURDIR)/$(BIN)/devcluster MUSTER_CLIENT=$(CURDIR)/$(BIN)/muster test/run.sh

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZ_TIME=5s (TARGET=pattern selects)
	@FUZZ_TIME=$(or $(FUZZ_TIME),5s) .ci/fuzz '$(or $(TARGET),.)'

.PHONY: properties
properties: ## draw more for the properties, with new seeds, for PROPERTY_TIME=60 seconds (TARGET=pattern selects)
	@PROPERTY_TIME=$(or $(PROPERTY_TIME),60) .ci/properties '$(or $(TARGET),.)'

.PHONY: lint
lint: ## gofmt, vet, staticcheck, import rules, licences, tidy modules, each module on its own
	@.ci/lint $(MODULES)

.PHONY: counts
counts: ## print figures on the code: packages, lines, exported names, circular calls between files, retired words, sizes
	@$(GORUN) ./test/arch/counts

.PHONY: licences
licences: ## rewrite the list of licences of what is linked (docs/licences.md)
	@mkdir -p $(BIN)/tools
	@GOWORK=off go -C .tools build -o $(CURDIR)/$(BIN)/tools/licences ./licences
	@.ci/modules >$(BIN)/tools/modules
	@$(BIN)/tools/licences -write docs/licences.md <$(BIN)/tools/modules

.PHONY: sbom
sbom: services $(BIN)/devcluster $(BIN)/kubectl $(BIN)/nats-server ## list what each program is made of (CycloneDX, bin/sbom)
	@.ci/sbom $(SERVICES) devcluster kubectl nats-server

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities (needs vuln.go.dev, and reports when it cannot be reached)
	@.ci/vulncheck $(MODULES) || { code=$$?; echo "vulncheck: ended with $$code"; exit $$code; }

.PHONY: bench
bench: need-postgres services $(BIN)/devcluster ## measure; prints what docs/performance.md shows
	@MUSTER_DEVCLUSTER=$(CURDIR)/$(BIN)/devcluster $(GORUN) ./test/bench
	@$(GORUN) ./test/decisions
	@$(GORUN) ./services/queue-manager/ledgerbench
	@$(GORUN) ./test/packing

.PHONY: soak
soak: need-postgres services $(BIN)/devcluster ## churn for MINUTES=10 on the dev cluster, watched by an independent recorder; prints figures
	@MUSTER_DEVCLUSTER=$(CURDIR)/$(BIN)/devcluster $(GORUN) ./test/soak -minutes $(or $(MINUTES),10)

.PHONY: provisioned
provisioned: need-postgres services $(BIN)/devcluster $(BIN)/nats-server ## have GANGS=500 gangs ask for nodes under faults, watched by an independent recorder
	@MUSTER_PROVISIONED_GANGS=$(or $(GANGS),500) MUSTER_REQUIRE_SERVICES=1 MUSTER_DEVCLUSTER=$(CURDIR)/$(BIN)/devcluster MUSTER_NATS_SERVER=$(CURDIR)/$(BIN)/nats-server \
		go test ./test/e2e -run '^TestRequestsForNodesUnderFaults$$' -count=1 -timeout=5h -v

.PHONY: sim
sim: ## play SEEDS=1000 worlds with faults, and SCALED=250 with an autoscaler, against the services' own steps; checks every promise after every event
	@$(GORUN) ./test/sim/run -seeds $(or $(SEEDS),1000) -first $(or $(FIRST),0) -scaled $(or $(SCALED),$(if $(FIRST),0,$(shell expr $(or $(SEEDS),1000) / 4))) -keep test/sim/testdata

.PHONY: sim-failover
sim-failover: ## play SEEDS=2000 losses of a cluster whose gangs move to another one; checks that no gang runs twice
	@CGO_ENABLED=0 go test -trimpath ./test/sim/failover -count=1 -timeout=6h -v -args -failovers $(or $(SEEDS),2000)

# LONG runs tests that take long, with the flags that follow it.
LONG = MUSTER_DEVCLUSTER=$${MUSTER_DEVCLUSTER:-$(CURDIR)/$(BIN)/devcluster} MUSTER_REQUIRE_SERVICES=1 go test -count=1 -timeout=6h -v
PAGE = $(CURDIR)/docs/reliability.md

.PHONY: chaos
chaos: need-postgres services $(BIN)/devcluster $(BIN)/nats-server ## cause every fault RUNS=3 times under load in real processes; with KEEP=FILE writes docs/reliability.md
	@$(LONG) ./test/chaos -run TestChaos -args -runs $(or $(RUNS),3) -pairs $(or $(PAIRS),10) -mixed-pairs $(or $(MIXED),$(if $(PAIRS),0,5)) -seed $(or $(SEED),0) -gangs $(or $(GANGS),50) \
		-nats $(or $(NATS),1) -only "$(ONLY)" -lane $(or $(LANE),1/1) -keep "$(abspath $(KEEP))" -table $(PAGE)

.PHONY: failovers failovers-to-standbys failovers-to-backups
failovers: failovers-to-standbys failovers-to-backups ## fail Postgres over under load, to each kind of standby and to a backup, RUNS=20 times more each; writes docs/reliability.md (-j2 does both at once)

failovers-to-standbys: need-postgres services $(BIN)/devcluster $(BIN)/nats-server
	@$(LONG) ./test/outage -run StandbyTakesOver -args -failovers $(or $(RUNS),20) -keep $(CURDIR)/test/outage/outcomes.json -table $(PAGE)

failovers-to-backups: need-postgres services $(BIN)/devcluster $(BIN)/nats-server
	@$(LONG) ./test/chaos -run TestPostgresIsRestoredToAnOlderState -args -runs $(or $(RUNS),20) -seed $(or $(SEED),0) -keep $(CURDIR)/test/chaos/restores.json -table $(PAGE)

.PHONY: tidy
tidy: ## format all code and tidy all modules
	@gofmt -w $(MODULES)
	@set -e; for module in $(MODULES) .tools .tools/nats test/peers/kueue; do echo "tidy $$module"; GOWORK=off go -C $$module mod tidy; done

.PHONY: clean
clean: down ## stop the local stack and remove what was built
	@rm -rf $(BIN)

.PHONY: doctor
doctor: ## report what this machine lacks and how to get it
	@deploy/local/machine.sh doctor
