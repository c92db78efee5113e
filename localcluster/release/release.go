// Package release makes every component of this binary report the Kubernetes version it was built from.
//
// Kubernetes' own release scripts stamp the version with linker flags; a plain `go build` or `go test` leaves "v0.0.0"
// behind, which clients take for an ancient server. The version is already in the binary, though: it is the version of
// the module k8s.io/kubernetes in the build info, so no flag needs to repeat it.
package release

import (
	"fmt"
	"runtime/debug"
	"strings"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
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

// Kubernetes is the version of the k8s.io/kubernetes module in this binary, such as "v1.36.3"; "" if it cannot be known.
func Kubernetes() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			return module.Version
		}
	}
	return ""
}

// Stamp sets the version that the components of this process report. It is called once, before any of them starts.
func Stamp() error {
	v := Kubernetes()
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
