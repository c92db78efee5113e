// Package traffic measures at a real data plane what the objects do that internal/rules/traffic computes: how large the share of requests is
// that reaches the new version, and whether any request fails while Pods and weights change.
package traffic

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed-69ecc383/kruise/test/kit/backends"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// A simulated container is ready a while after it runs, so that its server is there before it is asked.
var shared = &scene.Site{
	Name: "traffic", Options: cluster.Options{Nodes: 3, Args: []string{"--sim-ready", "300ms"}},
	Args: []string{"--enable-leader-election=false"}, Rollouts: []string{"--leader-elect=false"},
}

func TestMain(m *testing.M) {
	scene.ParseNodes()
	if scene.OnRealNodes() {
		shared.Options, shared.Kruise = cluster.Options{RealNodes: 2}, scene.None // Deployments need no more than Rollouts
	}
	scene.Main(m, shared)
}

// plane is the data plane of the suite, and the network by which it reaches Pods; nil if they can be reached at their own addresses.
type plane struct {
	*cluster.DataPlane
	network *backends.Network
}

// theirs is started by the first test that needs it, and ends with the process.
var theirs = sync.OnceValues(func() (p plane, err error) {
	o := cluster.DataPlaneOptions{Dir: filepath.Join(shared.Dir, "data-plane")}
	if !scene.OnRealNodes() {
		if p.network, err = backends.Listen(); err != nil {
			return plane{}, err
		}
		o.PodProxy = p.network.Proxy()
	} else if err := backends.LoadImages(context.Background(), shared.Cluster, shared.Dir, "app", "v1", "v2", "v3", "v4", "other"); err != nil {
		return plane{}, err
	}
	p.DataPlane, err = shared.StartDataPlane(context.Background(), o)
	return p, err
})
