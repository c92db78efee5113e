// Package cluster brings a local cluster up, tells how it is, and takes it down without a trace.
//
// Promise: all that a cluster is lies in one folder, and Up and Down go from whatever state they find to the one that
// is asked for. Up repairs what is missing or differs and leaves alone what is right, so calling it again is cheap.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-69ecc383/kruise/localcluster/images"
	"github.com/seed-69ecc383/kruise/localcluster/pki"
	"github.com/seed-69ecc383/kruise/localcluster/process"
)

// Config is what a user asks of a cluster. It is kept, so that a second Up needs to name only what changes.
type Config struct {
	// Name tells the cluster from others of the same user, in kubeconfigs; empty for the one cluster of who has only one.
	Name string `json:"name,omitempty"`
	// Nodes is how many simulated nodes there are at least, Unset in a cluster that nobody asked anything of yet. More
	// nodes are never taken away.
	Nodes int `json:"nodes"`
	// RealNodes is how many kubelets with containers of their own there are at least.
	RealNodes int `json:"realNodes,omitempty"`
	// Daemon is the path of kruise-daemon, which then runs for every real node; empty for none.
	Daemon string `json:"daemon,omitempty"`
	// Binaries is a folder of installed programs of Kubernetes, which are used in place of compiled ones; empty for none.
	Binaries string `json:"binaries,omitempty"`
	// Bare leaves out everything but etcd and the API server: no controllers, no scheduler, no nodes.
	Bare bool `json:"bare,omitempty"`
	// NoAudit turns the audit log off.
	NoAudit bool `json:"noAudit,omitempty"`
	// Args are further flags of components, by component, such as "kube-apiserver": ["--v=4"].
	Args map[string][]string `json:"args,omitempty"`
	// Simulation are the values of the simulator's flags, by flag, such as "sim-start": "1s".
	Simulation map[string]string `json:"simulation,omitempty"`
	// Owner is a process whose end is also the cluster's; 0 for none.
	Owner int `json:"owner,omitempty"`
}

// Unset is the number of nodes of a new cluster.
const Unset = -1

// state is what cluster.json holds.
type state struct {
	Config Config `json:"config"`
	Ports  Ports  `json:"ports"`
}

// Cluster is one cluster, at home in one folder.
type Cluster struct {
	// Dir is the folder, an absolute path.
	Dir   string
	state state
}

// ErrNotFound says that a folder holds no cluster.
var ErrNotFound = errors.New("no cluster")

// Open reads the cluster in dir.
func Open(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", dir, err)
	}
	c := &Cluster{Dir: dir}
	content, err := os.ReadFile(c.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNotFound, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	if err := json.Unmarshal(content, &c.state); err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.stateFile(), err)
	}
	return c, nil
}

// OpenOrCreate reads the cluster in dir, or founds one there. A folder with other things in it is refused: Down will
// remove what it finds. What guests of an earlier cluster left there is none of these.
func OpenOrCreate(dir string) (c *Cluster, created bool, err error) {
	c, err = Open(dir)
	if !errors.Is(err, ErrNotFound) {
		return c, false, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, false, fmt.Errorf("finding %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, false, fmt.Errorf("reading %s: %w", dir, err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != lockName && name != guestsName {
			return nil, false, fmt.Errorf("%s has other files in it (%s): choose an empty folder", dir, entry.Name())
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, false, fmt.Errorf("making the cluster's folder: %w", err)
	}
	c = &Cluster{Dir: dir, state: state{Config: Config{Nodes: Unset}}}
	if c.state.Ports, err = choosePorts(); err != nil {
		return nil, false, err
	}
	return c, true, nil
}

// Config is what was asked of the cluster so far.
func (c *Cluster) Config() Config { return c.state.Config }

// save writes cluster.json whole or not at all.
func (c *Cluster) save() error {
	content, err := json.MarshalIndent(c.state, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the cluster: %w", err)
	}
	return writeFile(c.stateFile(), append(content, '\n'))
}

// writeFile replaces a file in one step, and leaves it alone if it already reads so.
func writeFile(path string, content []byte) error {
	if now, err := os.ReadFile(path); err == nil && string(now) == string(content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	draft := path + ".new"
	if err := os.WriteFile(draft, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

const (
	lockName   = "lock"
	guestsName = "beside"
)

// entries are all that a cluster's folder may hold, which is also all that Down removes.
func entries() []string {
	return []string{
		guestsName, "cluster.json", "cluster.json.new", "kubeconfig", "config", "etcd", "logs", "nodes", "pki", "registry", "run",
		"volumes", lockName,
	}
}

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.Dir}, parts...)...)
}

func (c *Cluster) stateFile() string { return c.path("cluster.json") }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.path("kubeconfig") }

// AuditLog is the path of the API server's audit log.
func (c *Cluster) AuditLog() string { return c.path("logs", "audit.log") }

// Volumes is the folder of the claims' volumes.
func (c *Cluster) Volumes() string { return c.path("volumes") }

// Images are what was loaded for real nodes.
func (c *Cluster) Images() images.Store { return images.Store(c.path("registry")) }

// RegistryAddress is where real nodes pull images, as host:port. Only clusters with real nodes answer there.
func (c *Cluster) RegistryAddress() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.state.Ports.Registry))
}

// Home is where the cluster's processes leave their traces.
func (c *Cluster) Home() process.Home {
	return process.Home{Run: c.path("run"), Logs: c.path("logs")}
}

// guests is where programs that run beside the cluster keep what they have: all of it goes with the cluster. One that holds a lock on its
// file NAME.pid there while it runs, with its process id in it, which is that of its process group, too, goes before: it could write again
// what is removed.
func (c *Cluster) guests() process.Home { return process.Home{Run: c.path(guestsName)} }

func (c *Cluster) pki() pki.Folder { return pki.Folder(c.path("pki")) }

// Lock keeps other calls of kruise-local off the folder until the returned function is called.
func Lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("locking the cluster: %w", err)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("locking the cluster: %w", err)
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil && stillThere(file) {
			return func() { file.Close() }, nil
		}
		file.Close()
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("locking the cluster: another kruise-local has been busy with %s for two minutes", dir)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stillThere is false when the lock was won on a file that Down has removed meanwhile.
func stillThere(file *os.File) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(file.Name())
	return err == nil && os.SameFile(mine, now)
}
