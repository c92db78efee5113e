#!/usr/bin/env bash
# Writes what is generated from the API types: deep copies and CRDs.
set -euo pipefail
cd "$(dirname "$0")/.."

generate() { go tool -modfile=tools/go.mod controller-gen "$@"; }

generate object paths=./api/...
generate crd paths=./api/... output:crd:dir=config/crd/bases

# Of the kinds with two served versions the manager converts between them. It fills in its certificate when it starts.
for crd in config/crd/bases/*.yaml; do
	if [ "$(grep -c '^    served: true$' "$crd")" -lt 2 ]; then continue; fi
	sed -i 's|^spec:$|spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n      clientConfig:\n        service:\n          name: kruise-webhook-service\n          namespace: kruise-system\n          path: /convert\n          port: 443\n      conversionReviewVersions:\n      - v1|' "$crd"
done
