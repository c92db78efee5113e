package cloneset

import (
	"flag"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// Tests only read these: usual has the manager as it is shipped, gated one with the feature gates on that change what a CloneSet does.
var (
	usual = &scene.Site{Name: "usual", Options: cluster.Options{Nodes: 5}}
	gated = &scene.Site{Name: "gated", Options: cluster.Options{Nodes: 5}, Args: []string{"--feature-gates=" + strings.Join([]string{
		"CloneSetPartitionRollback=true",
		"CloneSetShortHash=true",
		"InPlaceWorkloadVerticalScaling=true",
		"PreparingUpdateAsUpdate=true",
		"RecreatePodWhenChangeVCTInCloneSetGate=true",
	}, ",")}}
)

// nodes says what the usual cluster is made of. On real nodes, the manager runs as Pods, installed as on a user's cluster.
var nodes = flag.String("nodes", "simulated", "nodes of the usual cluster: simulated or real; real ones want only the tests that speak of no simulation")

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // what the API server warns of is no part of these tests
	scene.ParseFlags()
	if *nodes == "real" {
		usual.Options, usual.Kruise = cluster.Options{RealNodes: 2}, scene.Pods
	}
	scene.Main(m, usual, gated)
}
