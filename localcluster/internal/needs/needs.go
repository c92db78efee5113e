// Package needs tells tests what the machine lacks.
package needs

import (
	"os"
	"testing"
)

// RealNodesEnv says, with the value "none", that the machine can't run real nodes. `make test` sets it, and says at its end what was left
// out. Without it, tests of real nodes fail on such a machine.
const RealNodesEnv = "KRUISE_REAL_NODES"

// RealNodes skips a test of real nodes on a machine that can't run them.
func RealNodes(t *testing.T) {
	t.Helper()
	if os.Getenv(RealNodesEnv) == "none" {
		t.Skip("this machine can't run real nodes: see hack/real-nodes.sh")
	}
}
