#!/usr/bin/env bash
# Generates what is derived from the types in api/: deep copies and CRDs.
set -euo pipefail
cd "$(dirname "$0")/.."

generate() { go tool -modfile=tools/go.mod controller-gen "$@"; }

generate object paths=./api/...
generate crd:crdVersions=v1 paths=./api/... output:crd:dir=config/crd

# Every kind has two served versions, so every CRD is converted by the manager, which fills in where it listens.
for crd in config/crd/apps.kruise.io_*.yaml; do
	grep -q '^  conversion:' "$crd" && continue
	sed -i 's|^spec:$|spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n      clientConfig:\n        service:\n          name: kruise-webhook-service\n          namespace: kruise-system\n          path: /convert\n          port: 443\n      conversionReviewVersions:\n      - v1|' "$crd"
done
