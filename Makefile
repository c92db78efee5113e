.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail
export CGO_ENABLED := 0
export PATH := $(CURDIR)/bin:$(PATH)

.PHONY: help
help: ## Show what make can do.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the programs into bin, with a control plane for this machine unless Kubernetes is installed (KRUISE_LOCAL_BINARIES, PATH).
	@mkdir -p bin
	@cd localcluster && go run ./cmd/build ../bin

.PHONY: data-plane
data-plane: ## Build the proxy that tests and the demo of Rollouts measure traffic at: Traefik, from its Go modules.
	@mkdir -p bin
	@cd localcluster && go run ./cmd/build ../bin data-plane

.PHONY: gen
gen: ## Write what is generated: deep copies and CRDs from the API types, their reference in docs/reference, Helm charts from the manifests.
	hack/gen.sh

.PHONY: site
site: ## Make the site of the documentation, dist/site: open dist/site/index.html.
	cd tools/site && go run . static ../.. ../../dist/site

.PHONY: test
test: ## Run all tests. As root on a machine with apt-get, install what real nodes need; elsewhere, say at the end what was left out.
	@if why=$$(hack/real-nodes.sh); then \
	  $(MAKE) test-unit test-cluster test-real; \
	else \
	  KRUISE_REAL_NODES=none $(MAKE) test-unit test-cluster && \
	  printf '\nNOT RUN: the tests on real nodes, because %s.\nTo run them, call make test-real as root on Linux with containerd (hack/real-nodes.sh installs it).\n' "$$why"; \
	fi
	@why=$$(hack/version-before.sh) || printf '\nNOT RUN: managers of two versions in one cluster, because %s.\n' "$$why"

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster.
	go test $$(go list ./... | grep -vE '/test/(api|kinds|chaos|nodes|long)/')
	cd tools && go test ./...
	cd tools/chart && go test ./...
	cd tools/site && go test ./...

# Helm, of the version that tools/chart has, for tests.
bin/helm: tools/chart/go.mod tools/chart/go.sum
	@mkdir -p bin
	cd tools/chart && go build -trimpath -o ../../bin/helm helm.sh/helm/v3/cmd/helm

# These suites wait more than they work. Three at a time are faster on two processors, but then a webhook may take longer than API servers wait.
# The longest ones go first, so that none of them runs alone at the end.
SUITES ?= 2
LONG := ./test/chaos/crash ./test/api/install $(addprefix ./test/kinds/,rollouts statefulset images jobs)
# Requests all the time, none of which may fail while managers end, or wait for three seconds: these run alone.
ALONE := ^(TestAnUpgradeOfTheManagers|TestALeaderThatLosesItsLease)RefusesNothing$$
# What runs tests on clusters. Continuous integration has bin/retest do it, which runs what fails once more and says so (hack/retest).
CLUSTER_TEST ?= go test
.PHONY: test-cluster
test-cluster: build bin/helm ## Run the tests that bring clusters up, SUITES (2) of them at a time.
	$(CLUSTER_TEST) -p $(SUITES) -timeout 45m -skip '$(ALONE)' $(LONG) ./test/chaos/... ./test/kinds/... ./test/api/...
	$(CLUSTER_TEST) -timeout 10m ./test/chaos/operation -run '$(ALONE)'
	cd localcluster && $(CLUSTER_TEST) -p 1 -timeout 20m ./...

.PHONY: rights
rights: build bin/helm ## Record which rights the suites that bring clusters up use, and write the table of test/rights anew.
	@rm -rf dist/uses && mkdir -p dist/uses
	KRUISE_USES=$(CURDIR)/dist/uses go test -count 1 -p $(SUITES) -timeout 45m $(LONG) ./test/chaos/... ./test/kinds/... ./test/api/...
	go test ./test/rights -run TestEveryRuleOfARoleHasAUse -record $(CURDIR)/dist/uses

# The tests of kinds that speak of no simulation: of CloneSets, StatefulSets and SidecarSets. On real nodes, Kruise is installed by its chart.
REAL_CLONESETS := BasicManifest|ClaimsManifest|SurgeWithPartition|InPlaceKeepsPods|InPlaceWithGrace|HooksByFinalizer|ChosenPodsAreDeleted|UpdateByWeight|UpdateByTrailingInteger|UpdateScattered|PausedStillScales
REAL_STATEFULSETS := OrderedPodsAreCreatedOneByOneWithTheirIdentity|ScaleInIsOrdered|ParallelUpdateStaysWithinMaxUnavailable|Partition|UnorderedUpdate|PausedUpdateLetsScalingGoOn|InPlaceUpdateKeepsThePod|ClaimsGoWhereThePolicySaysSo|ClaimsStayWhereThePolicySaysSo
REAL_SIDECARSETS := OnlyTheSidecarRestarts|OtherChangesWaitForNewPods|SelectedPodsAreUpdated|Pauses|History|AnOlderRevisionForNewPods|AnnotationsFollowTheImage

.PHONY: test-real
test-real: build bin/helm ## Run the tests that need real nodes: root, Linux and containerd.
	$(CLUSTER_TEST) -p 2 -timeout 20m ./test/nodes/...
	$(CLUSTER_TEST) -p 2 -timeout 20m -parallel 8 ./test/kinds/cloneset ./test/kinds/statefulset ./test/kinds/sidecarset -nodes real -run '^Test($(REAL_CLONESETS)|$(REAL_STATEFULSETS)|$(REAL_SIDECARSETS))$$'

.PHONY: e2e
e2e: build ## Run the end-to-end tests of CloneSet.
	go test -timeout 20m ./test/kinds/cloneset

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (10s).
	@for target in $$(grep -rhoE 'func (Fuzz[A-Za-z0-9]+)' --include=*_test.go internal test | awk '{print $$2}' | sort -u); do \
	  for package in $$(grep -rlE "func $$target\(" --include=*_test.go internal test | xargs -n1 dirname | sort -u); do \
	    echo "$$package $$target"; go test ./$$package -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),10s) -fuzzminimizetime 10x || exit 1; \
	  done; done

SEEDS ?= 100000
.PHONY: soak
soak: ## Run the promises of all controllers over SEEDS (100000) simulated clusters each, or TOTAL together; goes on where it was. Broken seeds go to dist/soak/broken.txt.
	go run ./hack/soak -seeds $(SEEDS) -total $(or $(TOTAL),0)

.PHONY: test-traffic
test-traffic: build data-plane ## Measure at a real proxy how routes of a release lead requests: a quarter of an hour, no part of test.
	go test -timeout 20m -count 1 ./test/long/traffic
	go test -timeout 20m -count 1 ./test/long/traffic -nodes real -run '^Test(WeightsAreShares|AReleaseLosesNothing)$$/(HTTPRoute|Ingress)$$'

.PHONY: test-faults
test-faults: build ## Run managers behind a proxy that loses, delays and refuses what they ask for, from a random KRUISE_SEED: five minutes, no part of test.
	go test -timeout 20m -count 1 ./test/long/faults

RELEASES ?= 200
.PHONY: test-releases
test-releases: build ## Release RELEASES (200) Deployments beside a tool that writes manifests back, and as many with a manager that is killed, 12 at a time: no part of test, which does it with three.
	go test -timeout 90m -count 1 -parallel 12 ./test/kinds/rollouts -run '^TestScenario1[45]OverSeeds$$' -seeds $(RELEASES)

KIND ?= cloneset
.PHONY: demo
demo: build $(if $(filter rollout,$(KIND)),data-plane) ## Show rollouts of a CloneSet, with KIND=statefulset or daemonset of such a set, with KIND=multicluster of a UnitedDeployment over three clusters, or with KIND=rollout releases of a Deployment with measured traffic, on control planes of this machine.
	go run ./hack/demo -kind $(KIND)

N ?= 1000
OUT ?= bench.json
# Further flags of a measurement, as in -only CloneSet; go run ./test/bench -h tells them.
ARGS ?=
# The sizes that KIND=scale measures in each dimension, as in 100,300,1000,3000, and the folder for its plots.
POINTS ?=
PLOTS ?= dist/scale
.PHONY: bench
bench: build ## Measure CloneSet against Deployment, or with KIND=statefulset or daemonset such a set against its native namesake, or with KIND=uniteddeployment ten subsets, and three clusters, against one CloneSet, or with KIND=injection, load or spread the creation of Pods among SidecarSets that match them or not, one at a time or 100 a second, against that without, or with KIND=gates what a readiness gate costs the creation of Pods, or with KIND=upgrade another image of a sidecar in all Pods against what maxUnavailable asks for, or with KIND=rollout a release in steps by a Rollout against the same by hand, or with KIND=screens what kubectl-kruise takes to show a CloneSet, or with KIND=foreign what Pods that are not Kruise's cost a manager, or with KIND=daemons what the daemons of N nodes cost the API server, or with KIND=scale how cost grows with Pods, CloneSets, foreign Pods, nodes and SidecarSets, of sizes POINTS, drawn into PLOTS: N Pods, figures to OUT.
	go run ./test/bench -kind $(KIND) -n $(N) -out $(OUT)$(if $(POINTS), -points $(POINTS)) $(ARGS)
	$(if $(filter scale,$(KIND)),cd tools && go run ./plot $(abspath $(OUT)) $(abspath $(PLOTS)))

bin/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	@mkdir -p bin
	cd tools/lint && go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: bin/golangci-lint ## Run the linters over all modules.
	bin/golangci-lint run ./...
	cd localcluster && ../bin/golangci-lint run ./...
	cd tools && ../bin/golangci-lint run ./...
	cd tools/chart && ../../bin/golangci-lint run --config ../../.golangci.yml ./...
	cd tools/site && ../../bin/golangci-lint run --config ../../.golangci.yml ./...

MODULES := . localcluster dataplane tools tools/chart tools/lint tools/site tools/vuln
.PHONY: verify
verify: gen lint ## Check that what is generated is up to date, and all is formatted and free of what linters find.
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	@for module in $(MODULES); do (cd $$module && go mod tidy -diff) || { echo "$$module/go.mod is not tidy: call go mod tidy there"; exit 1; }; done
	git diff --exit-code

.PHONY: vulnerabilities
vulnerabilities: ## Check that no code with a known vulnerability is used; GOVULNDB names another database than that of the Go project.
	hack/vulnerabilities.sh

ARCH ?= amd64
# The version of images, which config/manager, config/daemon and config/rollouts name, too.
VERSION := v0.1.0
TAG ?= kruise-manager:$(VERSION)
DAEMON_TAG ?= kruise-daemon:$(VERSION)
ROLLOUT_TAG ?= kruise-rollout:$(VERSION)
.PHONY: image
image: ## Build the images of manager, daemon and Rollouts for ARCH as dist/kruise-*.tar, named TAG, DAEMON_TAG and ROLLOUT_TAG, without a Docker engine; with SBOM and provenance.
	@mkdir -p dist
	GOOS=linux GOARCH=$(ARCH) go build -trimpath -ldflags '-s -w' -o dist/manager ./cmd/kruise-manager
	GOOS=linux GOARCH=$(ARCH) go build -trimpath -tags grpcnotrace -ldflags '-s -w' -o dist/daemon ./cmd/kruise-daemon
	GOOS=linux GOARCH=$(ARCH) go build -trimpath -ldflags '-s -w' -o dist/rollout ./cmd/kruise-rollout
	cd tools && go run ./image -binary ../dist/manager -arch $(ARCH) -tag $(TAG) -out ../dist/kruise-manager.tar
	cd tools && go run ./image -binary ../dist/daemon -entry /daemon -arch $(ARCH) -tag $(DAEMON_TAG) -out ../dist/kruise-daemon.tar
	cd tools && go run ./image -binary ../dist/rollout -entry /rollout -arch $(ARCH) -tag $(ROLLOUT_TAG) -out ../dist/kruise-rollout.tar

REGISTRY ?=
.PHONY: release
release: ## Build all that a release consists of into dist/release: images for amd64 and arm64 with SBOM and provenance, programs, charts, install.yaml, SHA256SUMS. REGISTRY is where images will be.
	hack/release.sh "$(VERSION)" "$(REGISTRY)"

.PHONY: cluster-up
cluster-up: build ## Bring a cluster up: the control plane and three simulated nodes.
	bin/kruise-local up

.PHONY: cluster-down
cluster-down: ## End the cluster and remove all of it.
	bin/kruise-local down

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin dist
