package kubernetes

import (
	"fmt"
	"strings"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
)

// The variables that Kubernetes' release scripts set with -ldflags -X.
//
//go:linkname serverVersion k8s.io/component-base/version.gitVersion
var serverVersion string

//go:linkname serverMajor k8s.io/component-base/version.gitMajor
var serverMajor string

//go:linkname serverMinor k8s.io/component-base/version.gitMinor
var serverMinor string

//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
var clientVersion string

// Stamp sets the version that the programs of this binary report. It is called once, before any of them starts.
//
// Kubernetes' own release scripts stamp the version with linker flags; a plain `go build` or `go test` leaves "v0.0.0" behind, which
// clients take for an ancient server. The build info has the version of the module k8s.io/kubernetes, so no flag needs to repeat it.
func Stamp() error {
	v := binaries.Wanted()
	parts := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
	if len(parts) != 3 {
		return fmt.Errorf("reading the version of k8s.io/kubernetes from the build info: got %q", v)
	}
	serverVersion, clientVersion = v, v
	serverMajor, serverMinor = parts[0], parts[1]
	if err := version.SetDynamicVersion(v); err != nil {
		return fmt.Errorf("stamping version %s: %w", v, err)
	}
	return nil
}
