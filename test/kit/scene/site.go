package scene

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// Kruise says what of Kruise a site has.
type Kruise string

const (
	// Process is all that is installed, with a manager that runs beside the cluster.
	Process Kruise = ""
	// Chart is all that a user's cluster gets by the Helm chart, with managers and daemons as Pods: for clusters with real nodes.
	Chart Kruise = "Chart"
	// Manifests is all that is installed, and no manager.
	Manifests Kruise = "Manifests"
	// None is a cluster without Kruise.
	None Kruise = "None"
)

// tailLines is how many lines of the manager's log are told when tests have failed.
const tailLines = 400

// Site is a cluster with Kruise in it that the tests of a package share. It is brought up when the first of them enters it.
type Site struct {
	// The cluster itself; nil until the first test enters.
	*cluster.Cluster
	// Name is what namespaces and folders of the site begin with.
	Name string
	// Options are those of the cluster. The site gives it a folder, and has it end with this process.
	Options cluster.Options
	// Kruise is what is installed, a manager beside the cluster if nothing else is said.
	Kruise Kruise
	// Args are what that manager is started with besides the usual.
	Args []string
	// Manager is the manager that runs beside the cluster. Only a test that runs alone may end it, and has to see to it that there is one
	// afterwards.
	Manager *cluster.Manager
	// Rollouts are what the manager of Rollouts is started with besides the usual; nil for a site without Rollouts. RolloutManager is that
	// manager.
	Rollouts       []string
	RolloutManager *cluster.Manager
	// Dir is a folder of the site's own, which is there once the site is up.
	Dir string

	once  sync.Once
	err   error
	nodes pool
	owns  owners
}

// nodesFlag says what clusters are made of, for the packages that ask OnRealNodes.
const nodesFlag = "nodes"

// ParseNodes reads the command line as ParseFlags does, with the flag that says what the nodes are.
func ParseNodes() {
	flag.String(nodesFlag, "simulated", "nodes of the usual cluster: simulated or real; real ones for tests that speak of no simulation")
	ParseFlags()
}

// OnRealNodes tells whether the command line wants clusters of real nodes. It is known after ParseNodes.
func OnRealNodes() bool {
	f := flag.Lookup(nodesFlag)
	return f != nil && f.Value.String() == "real"
}

// MainOfKind is Main for the tests of a kind, some of which real nodes can run as well: then the usual site, the first one, is a cluster
// of two of them that Kruise was installed in by its chart, and so has the rights that are shipped.
func MainOfKind(m *testing.M, usual *Site, others ...*Site) {
	ParseNodes()
	if OnRealNodes() {
		usual.Options, usual.Kruise = cluster.Options{RealNodes: 2}, Chart
	}
	Main(m, append([]*Site{usual}, others...)...)
}

// parallel is how many tests of a package run at once unless the command line says another number. They wait far more than they work, so
// that more of them than there are processors fit.
const parallel = "8"

// ParseFlags reads the command line, for a TestMain that wants to know its own flags before Main.
func ParseFlags() {
	if flag.Parsed() {
		return
	}
	if err := flag.Set("test.parallel", parallel); err != nil { // what the command line says comes later, and wins
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
}

// Main runs the tests of a package, ends the sites that they have entered, and exits. It is what TestMain comes to.
func Main(m *testing.M, sites ...*Site) {
	ParseFlags()
	code := m.Run()
	for _, s := range sites {
		if code != 0 && s.Manager != nil {
			fmt.Fprintf(os.Stderr, "the end of the log of the manager of %s:\n%s\n", s.Name, s.Manager.Tail(tailLines))
		}
		if code != 0 && s.RolloutManager != nil {
			fmt.Fprintf(os.Stderr, "the end of the log of the manager of Rollouts of %s:\n%s\n", s.Name, s.RolloutManager.Tail(tailLines))
		}
		if err := s.down(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Up brings the site up, unless it is.
func (s *Site) Up() error {
	s.once.Do(func() { s.err = s.up() })
	return s.err
}

func (s *Site) up() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if s.Dir, err = newDir(s.Name); err != nil {
		return err
	}
	options := placed(s.Options, s.Dir)
	options.TestOf = s.owns.of
	if s.Cluster, err = cluster.Up(ctx, options); err != nil {
		return err
	}
	s.nodes.fill(s.Options.Nodes)
	switch s.Kruise {
	case None:
	case Chart:
		err = s.InstallChart(ctx)
	case Manifests:
		err = s.Install(ctx)
	default:
		s.Manager, err = s.StartManager(ctx, s.managerOptions())
	}
	if err == nil && s.Rollouts != nil {
		s.RolloutManager, err = s.StartManager(ctx, s.rolloutOptions())
	}
	return err
}

func (s *Site) rolloutOptions() cluster.ManagerOptions {
	return cluster.ManagerOptions{Dir: filepath.Join(s.Dir, "rollouts"), Program: cluster.RolloutManager(), Args: s.Rollouts}
}

// RelaunchRollouts starts a manager of Rollouts where the last one has ended, and waits until it is ready.
func (s *Site) RelaunchRollouts(ctx context.Context) (err error) {
	if s.RolloutManager, err = s.LaunchManager(ctx, s.rolloutOptions()); err != nil {
		return err
	}
	return s.RolloutManager.WaitReady(ctx)
}

func (s *Site) managerOptions() cluster.ManagerOptions {
	return cluster.ManagerOptions{Dir: filepath.Join(s.Dir, "manager"), Args: s.Args}
}

// Relaunch starts a manager where the last one has ended, with further arguments if any are given, and waits until it is ready. Nothing is
// installed anew: that would end the watches of tests.
func (s *Site) Relaunch(ctx context.Context, more ...string) (err error) {
	o := s.managerOptions()
	o.Args = slices.Concat(o.Args, more)
	if s.Manager, err = s.LaunchManager(ctx, o); err != nil {
		return err
	}
	return s.Manager.WaitReady(ctx)
}

// AuditLog returns the path of the API server's audit log.
func (s *Site) AuditLog() string { return auditLog(s.Dir) }

func (s *Site) down() (err error) {
	for _, m := range []*cluster.Manager{s.RolloutManager, s.Manager} {
		if m != nil {
			m.Stop()
		}
	}
	if s.Cluster != nil {
		err = s.Down(context.Background())
	}
	return errors.Join(err, os.RemoveAll(s.Dir))
}

// newDir makes a folder. It is not a test's own, whose path may be too long for a socket.
func newDir(name string) (string, error) { return os.MkdirTemp("", "kruise-"+name+"-") }

// placed gives a cluster a folder below dir, and has it end with this process, even if that is killed.
func placed(o cluster.Options, dir string) cluster.Options {
	o.Dir = filepath.Join(dir, "cluster")
	o.Args = append([]string{"--owner", strconv.Itoa(os.Getpid())}, o.Args...)
	return o
}

func auditLog(dir string) string { return filepath.Join(dir, "cluster", "logs", "audit.log") }
