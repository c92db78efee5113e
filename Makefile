.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail
export CGO_ENABLED := 0
export PATH := $(CURDIR)/bin:$(PATH)

.PHONY: help
help: ## Show what make can do.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/kruise-manager and bin/kruise-local, the control plane of this machine.
	@mkdir -p bin
	go build -trimpath -o bin/kruise-manager ./cmd/kruise-manager
	cd localcluster && go build -o ../bin/kruise-local ./cmd/kruise-local

.PHONY: gen
gen: ## Write what is generated from the API types: deep copies and CRDs.
	hack/gen.sh

.PHONY: test
test: build ## Run all tests.
	go test $$(go list ./... | grep -v -e /test/e2e -e /test/takeover)
	cd localcluster && go test ./...
