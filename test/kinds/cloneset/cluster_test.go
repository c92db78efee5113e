package cloneset

import (
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

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // what the API server warns of is no part of these tests
	scene.MainOfKind(m, usual, gated)
}
