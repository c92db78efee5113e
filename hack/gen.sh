#!/usr/bin/env bash
# Writes what is generated: from the API types deep copies, CRDs and the rights of the manager of Rollouts, from the CRDs the reference in docs/reference, and
# from the manifests the Helm charts.
set -euo pipefail
cd "$(dirname "$0")/.."

generate() { go tool -modfile=tools/go.mod controller-gen "$@"; }

generate object paths=./api/...
generate crd paths="./api/apps/...;./api/policy/..." output:crd:dir=config/crd/bases
generate crd paths="./api/rollouts/..." output:crd:dir=config/rollouts/crd # an install of its own
# The rights of the manager of Rollouts, by the markers next to its controllers.
generate rbac:roleName=kruise-rollout-role paths="./internal/traffic;$(printf './internal/controller/%s;' trafficrouting rollout batchrelease deployment nativedaemonset rollouthistory)" output:rbac:dir=config/rollouts/rbac

# Of the kinds with two served versions the manager converts between them. It fills in its certificate when it starts.
convert_by() { # SERVICE NAMESPACE CRD...
	for crd in "${@:3}"; do
		if [ "$(grep -c '^    served: true$' "$crd")" -lt 2 ]; then continue; fi
		sed -i "s|^spec:\$|spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n      clientConfig:\n        service:\n          name: $1\n          namespace: $2\n          path: /convert\n          port: 443\n      conversionReviewVersions:\n      - v1|" "$crd"
	done
}
convert_by kruise-webhook-service kruise-system config/crd/bases/*.yaml
convert_by kruise-rollout-webhook-service kruise-rollout config/rollouts/crd/*.yaml

version=$(sed -n 's/^VERSION := //p' Makefile)
(cd tools/chart && go run . generate -version "$version")
(cd tools/site && go run . reference ../..)
