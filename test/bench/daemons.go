package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/rest"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/logging"
	"github.com/seed-69ecc383/kruise/internal/node"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// daemonsKind is the -kind by which the daemons of many nodes are measured.
const daemonsKind = "daemons"

// podsPerDaemon is how many Pods each node has, each with two containers.
const podsPerDaemon = 10

// watchesPerDaemon is how many watches a daemon has: of its NodeImage and NodePodProbe, its Pods, and the requests for them.
const watchesPerDaemon = 4

// filesPerDaemon is how many files a daemon may have open at once: three sockets at rest, of the API server and of both ends of its
// container runtime, and six while the API server restarts, as each watch dials then. One more is for what else is open.
const filesPerDaemon = 7

// daemonAgent is the name by which the audit log knows daemons.
const daemonAgent = "kruise-daemon"

// daemons is what daemons of so many nodes take.
type daemons struct {
	Nodes     int           `json:"nodes"`
	Pods      int           `json:"pods"`
	Processor string        `json:"processor"`
	Phases    []daemonPhase `json:"phases"`
	// Alone is what the daemon of one node takes at rest, which is a process of its own, and whose Pods are probed, too.
	Alone aloneDaemon `json:"alone"`
}

// daemonPhase is what one thing takes that all daemons have a part in.
type daemonPhase struct {
	Phase   string  `json:"phase"`
	Seconds float64 `json:"seconds"`
	// Daemons and Manager are their requests by verb, resource and answer, without watches.
	Daemons map[string]int `json:"daemonRequests"`
	Manager map[string]int `json:"managerRequests"`
	// Writes are those of the daemons and of the manager, without events.
	DaemonWrites  int `json:"daemonWrites"`
	ManagerWrites int `json:"managerWrites"`
	// The CPU time of the API server, of the manager, and of all daemons together with their container runtimes.
	ServerCPUSeconds  float64 `json:"serverCPUSeconds"`
	ManagerCPUSeconds float64 `json:"managerCPUSeconds"`
	DaemonCPUSeconds  float64 `json:"daemonCPUSeconds"`
	// ServerMiB and ManagerMiB are the memory of the API server and of the manager at the end, Watches how many watches the server has
	// then.
	ServerMiB  float64 `json:"serverMiB"`
	ManagerMiB float64 `json:"managerMiB"`
	Watches    int     `json:"watches"`
	// ManagerStarts is how often the manager was started anew because it had ended, as one does that can't renew its Lease. The CPU time is
	// of the last one then.
	ManagerStarts int `json:"managerStarts,omitempty"`
}

// aloneDaemon is what one daemon takes at rest.
type aloneDaemon struct {
	MiB float64 `json:"mib"`
	// CPUPercent is the share of one processor.
	CPUPercent float64 `json:"cpuPercent"`
}

// daemonsWorld is an API server with nodes and Pods, a manager, and the daemons of all nodes in this process. One container runtime that
// only says that it does anything serves all of them.
type daemonsWorld struct {
	*foreignWorld
	runtime *runtimeOfAll
	socket  string
	// server is the process id of the API server, and managerStarts how often the manager was started anew in this phase.
	server, managerStarts int
	// running are the daemons, until stopDaemons is called.
	running     sync.WaitGroup
	stopDaemons context.CancelFunc
	result      daemons
}

// runDaemons measures what the daemons of many nodes take.
func runDaemons(ctx context.Context, s settings) (err error) {
	s.nodes = s.pods
	if err := mayOpen(s.nodes * filesPerDaemon); err != nil {
		return fmt.Errorf("%d daemons in one process: %w, or measure fewer daemons", s.nodes, err)
	}
	foreign, err := s.foreignWorld(ctx)
	if err != nil {
		return err
	}
	daemonsCtx, stopDaemons := context.WithCancel(ctx)
	w := &daemonsWorld{foreignWorld: foreign, stopDaemons: stopDaemons, socket: filepath.Join(foreign.dir, "cri.sock")}
	defer func() {
		stopDaemons()
		w.running.Wait()
		err = errors.Join(err, w.end(ctx))
	}()
	w.result = daemons{Nodes: s.nodes, Pods: s.nodes * podsPerDaemon, Processor: processor()}
	fmt.Fprintf(os.Stderr, "creating %d Pods\n", w.result.Pods)
	if err := w.crowd.grow(ctx, w.result.Pods); err != nil {
		return err
	}
	if err := w.awaitCalm(ctx); err != nil {
		return err
	}
	if w.server, err = w.hub().ProcessOf(ctx, "kube-apiserver"); err != nil {
		return err
	}
	logging.Options{Format: "text"}.Set(io.Discard) // the logs of that many daemons help nobody
	w.runtime = newRuntimeOfAll(w)
	if err := w.fill(ctx); err != nil {
		return err
	}
	if err := w.runtime.cri.Serve(w.socket); err != nil {
		return err
	}
	err = w.walk(ctx, daemonsCtx)
	w.result.print(os.Stdout)
	return errors.Join(err, s.store(w.result))
}

// walk leads the daemons through the phases. What is measured is stored after each, so that a run that is broken off was not for nothing.
func (w *daemonsWorld) walk(ctx, daemonsCtx context.Context) error {
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"start", func(ctx context.Context) error { return w.start(ctx, daemonsCtx) }},
		{atRest, func(ctx context.Context) error { return sleep(ctx, w.watch) }},
		{"restart of the API server", w.restartServer},
		{"an image on all nodes", w.pullEverywhere},
		{fmt.Sprintf("%d restarts of containers", restartsAtOnce), w.restartContainers},
		{"probes of all Pods begin", w.beginProbes},
		{"probes run", func(ctx context.Context) error { return sleep(ctx, w.watch) }},
		{fmt.Sprintf("probes of %d Pods fail", changedProbes), w.changeProbes},
	} {
		fmt.Fprintf(os.Stderr, "%d daemons: %s\n", w.nodes, phase.name)
		if err := errors.Join(w.measured(ctx, phase.name, phase.do), w.store(w.result)); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	return w.measureAlone(ctx)
}

// measured measures what something takes.
func (w *daemonsWorld) measured(ctx context.Context, name string, do func(context.Context) error) error {
	p := daemonPhase{Phase: name}
	w.managerStarts = 0
	began, mine := time.Now(), ownCPUSeconds()
	server, err := used(w.server)
	if err != nil {
		return err
	}
	manager, err := used(w.hub().manager.PID())
	if err != nil {
		return err
	}
	if err := errors.Join(do(ctx), w.keepManager(ctx)); err != nil {
		return err
	}
	p.Seconds, p.ManagerStarts = time.Since(began).Seconds(), w.managerStarts
	p.DaemonCPUSeconds = ownCPUSeconds() - mine
	if p.ServerCPUSeconds, err = server.until(w.server); err != nil {
		return err
	}
	if p.ManagerCPUSeconds, err = manager.until(w.hub().manager.PID()); err != nil {
		return err
	}
	if p.ServerMiB, err = residentOf(w.server); err != nil {
		return err
	}
	if p.ManagerMiB, err = residentOf(w.hub().manager.PID()); err != nil {
		return err
	}
	if p.Watches, err = w.watches(ctx); err != nil {
		return err
	}
	if err := p.count(w.hub().audit, began); err != nil {
		return err
	}
	w.result.Phases = append(w.result.Phases, p)
	return nil
}

// count counts the requests since a moment.
func (p *daemonPhase) count(log string, since time.Time) error {
	now := time.Now()
	ofDaemons, err := audit.Read(log, audit.Query{Agent: daemonAgent, From: since, To: now})
	if err != nil {
		return err
	}
	ofManager, err := audit.Read(log, audit.Query{Agent: "kruise-manager", From: since, To: now})
	if err != nil {
		return err
	}
	p.Daemons, p.DaemonWrites = ofDaemons.Counts, ofDaemons.Writes()
	p.Manager, p.ManagerWrites = ofManager.Counts, ofManager.Writes()
	return nil
}

// usedBy is the CPU time that a process has used.
type usedBy struct {
	pid     int
	seconds float64
}

func used(pid int) (usedBy, error) {
	seconds, err := cluster.CPUSeconds(pid)
	return usedBy{pid, seconds}, err
}

// until returns what the process has used since, or the one that has taken its place.
func (u usedBy) until(pid int) (float64, error) {
	now, err := used(pid)
	if pid == u.pid {
		now.seconds -= u.seconds
	}
	return now.seconds, err
}

// ownCPUSeconds is the CPU time that this process has used.
func ownCPUSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// watches returns how many watches the API server has.
func (w *daemonsWorld) watches(ctx context.Context) (int, error) {
	authorized, err := rest.HTTPClientFor(w.hub().Config)
	if err != nil {
		return 0, err
	}
	metrics, err := fetch(ctx, authorized, w.hub().Config.Host+"/metrics")
	if err != nil {
		return 0, err
	}
	sum, err := sumOf(metrics, "apiserver_longrunning_requests", `verb="WATCH"`)
	return int(sum), err
}

// start starts the daemons of all nodes, and waits until each has told its manager the key for credentials, which is the first that it
// writes, and watches all that it is to watch.
func (w *daemonsWorld) start(ctx, daemonsCtx context.Context) error {
	if err := atOnce(crowdWorkers, w.nodes, func(number int) error {
		name := nodeName(number)
		kubeconfig := filepath.Join(w.dir, name+".kubeconfig")
		if err := w.hub().DaemonKubeconfig(ctx, name, kubeconfig); err != nil {
			return err
		}
		w.running.Go(func() {
			o := node.Options{NodeName: name, Kubeconfig: kubeconfig, Addr: "0", SocketFile: w.socket, MaxPulls: -1, Several: true}
			o.Log.Format = "text" // nothing is written there
			if err := node.Run(daemonsCtx, o); err != nil && daemonsCtx.Err() == nil {
				fmt.Fprintf(os.Stderr, "the daemon of %s: %v\n", name, err)
			}
		})
		return nil
	}); err != nil {
		return err
	}
	return w.await(ctx, "all daemons tell of themselves and watch", func() (bool, error) {
		var all v1beta1.NodeImageList
		if err := w.hub().Client.List(ctx, &all); err != nil {
			return false, err
		}
		told := 0
		for i := range all.Items {
			if len(all.Items[i].Status.CredentialsKey) > 0 {
				told++
			}
		}
		watches, err := w.watches(ctx)
		return told == w.nodes && watches >= w.nodes*watchesPerDaemon, err
	})
}

// await waits until something is so. It looks once a second: what it reads is of all nodes.
func (w *daemonsWorld) await(ctx context.Context, what string, is func() (bool, error)) error {
	return w.until(ctx, what, func() (bool, error) {
		if err := errors.Join(sleep(ctx, time.Second), w.keepManager(ctx)); err != nil {
			return false, err
		}
		return is()
	})
}

// keepManager starts the manager anew if it has ended, as its kubelet would.
func (w *daemonsWorld) keepManager(ctx context.Context) (err error) {
	m := w.hub().manager
	if !m.HasEnded() {
		return nil
	}
	fmt.Fprintf(os.Stderr, "the manager has ended, and is started anew: %s\n", m.Tail(1))
	w.managerStarts++
	w.hub().manager, err = w.hub().StartManager(ctx, w.managerOptions())
	return err
}

// restartServer ends the API server and etcd, and waits until all watches are there again. The manager, which ends when it can't renew its
// Lease, is started anew, as its kubelet would.
func (w *daemonsWorld) restartServer(ctx context.Context) error {
	before, err := w.watches(ctx)
	if err != nil {
		return err
	}
	if err := w.hub().Cluster.Stop(ctx); err != nil {
		return err
	}
	if err := w.hub().Cluster.Start(ctx); err != nil {
		return err
	}
	if w.server, err = w.hub().ProcessOf(ctx, "kube-apiserver"); err != nil {
		return err
	}
	w.hub().manager.Kill()
	if w.hub().manager, err = w.hub().StartManager(ctx, w.managerOptions()); err != nil {
		return err
	}
	want := min(before, w.nodes*watchesPerDaemon)
	return w.await(ctx, "all daemons watch again", func() (bool, error) {
		now, err := w.watches(ctx)
		return now >= want, err
	})
}

// measureAlone measures the daemon of the first node as a process of its own, in place of the one in this process.
func (w *daemonsWorld) measureAlone(ctx context.Context) error {
	w.stopDaemons()
	w.running.Wait()
	d, err := w.hub().StartDaemon(ctx, cluster.DaemonOptions{Node: nodeName(0), Socket: w.socket, Dir: w.dir})
	if err != nil {
		return err
	}
	defer d.Stop()
	if err := sleep(ctx, 20*time.Second); err != nil { // it reads what it watches, and probes begin
		return err
	}
	began := time.Now()
	before, err := cluster.CPUSeconds(d.PID())
	if err != nil {
		return err
	}
	if err := sleep(ctx, w.watch); err != nil {
		return err
	}
	after, err := cluster.CPUSeconds(d.PID())
	if err != nil {
		return err
	}
	w.result.Alone.CPUPercent = 100 * (after - before) / time.Since(began).Seconds()
	w.result.Alone.MiB, err = residentOf(d.PID())
	return err
}

func (d daemons) print(to io.Writer) {
	fmt.Fprintf(to, "%d daemons, %d Pods, %s\n\n", d.Nodes, d.Pods, d.Processor)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "phase\tseconds\tdaemons' writes\tmanager's writes\tAPI server CPU s\tmanager CPU s\tdaemons CPU s\t"+
		"API server MiB\tmanager MiB\twatches\t")
	for _, p := range d.Phases {
		fmt.Fprintf(table, "%s\t%.1f\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t%d\t\n", p.Phase, p.Seconds, p.DaemonWrites, p.ManagerWrites,
			p.ServerCPUSeconds, p.ManagerCPUSeconds, p.DaemonCPUSeconds, p.ServerMiB, p.ManagerMiB, p.Watches)
	}
	_ = table.Flush() // a terminal that is gone can't be told
	if d.Alone.MiB > 0 {
		fmt.Fprintf(to, "\none daemon at rest, with probes of %d Pods: %.0f MiB, %.2f %% of a processor\n", podsPerDaemon, d.Alone.MiB,
			d.Alone.CPUPercent)
	}
	for _, p := range d.Phases {
		if p.ManagerStarts > 0 {
			fmt.Fprintf(to, "%s: the manager had ended and was started anew %d times\n", p.Phase, p.ManagerStarts)
		}
		for _, request := range slices.Sorted(maps.Keys(p.Daemons)) {
			fmt.Fprintf(to, "%s, daemons: %d %s\n", p.Phase, p.Daemons[request], request)
		}
		for _, request := range slices.Sorted(maps.Keys(p.Manager)) {
			fmt.Fprintf(to, "%s, manager: %d %s\n", p.Phase, p.Manager[request], request)
		}
	}
}
