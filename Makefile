.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail
export CGO_ENABLED := 0
export PATH := $(CURDIR)/bin:$(PATH)

CONTROLLER_GEN := go tool -modfile=tools/go.mod controller-gen

.PHONY: help
help: ## Show what make can do.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/kruise-local (the control plane of this machine) and, beside it, the product.
	@mkdir -p bin
	cd localcluster && go build -trimpath -o ../bin/kruise-local ./cmd/kruise-local

.PHONY: gen
gen: ## Write what is generated from the API types: deep copies and CRDs.
	$(CONTROLLER_GEN) object paths=./api/...
	$(CONTROLLER_GEN) crd paths=./api/apps/... output:crd:dir=config/crd/bases

.PHONY: test
test: build ## Run all tests.
	go test $$(go list ./... | grep -v -e /test/e2e -e /test/takeover)
	cd localcluster && go test ./...
