// Package webhook holds the webhook configurations of Rollouts as they are shipped.
package webhook

import _ "embed"

// Manifests is the YAML of the mutating and the validating configuration, in this order.
//
//go:embed manifests.yaml
var Manifests []byte
