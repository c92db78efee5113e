package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/test/cluster"
)

// site is a cluster with a manager in it. It is brought up when the first test asks for it.
type site struct {
	name string
	// args are what the manager is started with besides the usual.
	args []string

	once    sync.Once
	err     error
	cluster *cluster.Cluster
	manager *cluster.Manager
	// dir is the folder of the cluster.
	dir string
}

// Tests only read these: usual has the manager as it is shipped, gated one with the feature gates on that change what a CloneSet does.
var (
	usual = &site{name: "usual"}
	gated = &site{name: "gated", args: []string{"--feature-gates=" + strings.Join([]string{
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
	// They wait far more than they work, so that more of them run at once than there are processors. What the command line says comes later.
	err := flag.Set("test.parallel", "6")
	code := 1
	if err == nil {
		code, err = run(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "kruise-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sites := []*site{usual, gated}
	for _, s := range sites {
		s.dir = filepath.Join(dir, s.name)
	}
	code = m.Run()
	for _, s := range sites {
		err = errors.Join(err, s.down(code != 0))
	}
	return code, err
}

// up returns the cluster, with a manager that is ready.
func (s *site) up() (*cluster.Cluster, error) {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if *nodes == "real" && s == usual {
			s.cluster, s.err = cluster.Up(ctx, cluster.Options{Dir: filepath.Join(s.dir, "cluster"), RealNodes: 2})
			if s.err == nil {
				s.err = s.cluster.InstallPods(ctx)
			}
			return
		}
		s.cluster, s.err = cluster.Up(ctx, cluster.Options{Dir: filepath.Join(s.dir, "cluster"), Nodes: 5})
		if s.err == nil {
			s.manager, s.err = s.cluster.StartManager(ctx, cluster.ManagerOptions{Dir: filepath.Join(s.dir, "manager"), Args: s.args})
		}
	})
	return s.cluster, s.err
}

// down ends what up has started; what the manager said last helps to understand tests that failed.
func (s *site) down(failed bool) error {
	if s.manager != nil {
		if failed {
			fmt.Fprintf(os.Stderr, "the last words of the %s manager:\n%s\n", s.name, s.manager.Tail(400))
		}
		s.manager.Stop()
	}
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Down(context.Background())
}
