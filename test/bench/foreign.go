package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// afterStop and afterCrash are the two ways in which a manager is started: after another one that has ended in order and given up its
// Lease, so that it leads at once, or after one that was killed, so that it leads once the Lease has run out.
const afterStop, afterCrash = "start", "restart"

// footprint is what a manager takes from its start, in a cluster with so many Pods.
type footprint struct {
	// Start is "start" after a manager that has ended in order, or "restart" after one that was killed.
	Start string `json:"start"`
	// Foreign are Pods that are not Kruise's, Own those of CloneSets.
	Foreign int `json:"foreignPods"`
	Own     int `json:"ownPods"`
	// ReadySeconds is the time until the manager said that it is ready, and ReadyCPUSeconds its CPU time until then; CPUSeconds is that of
	// the whole time that it was watched.
	ReadySeconds    float64 `json:"readySeconds"`
	ReadyCPUSeconds float64 `json:"readyCPUSeconds"`
	CPUSeconds      float64 `json:"cpuSeconds"`
	// ReadyPeakMiB is the most memory that the process has had when it was ready, PeakMiB the most until the end, as the kernel tells it.
	// ResidentMiB is what it had at each second.
	ReadyPeakMiB float64   `json:"readyPeakMiB"`
	PeakMiB      float64   `json:"peakMiB"`
	ResidentMiB  []float64 `json:"residentMiB"`
	// RestMiB, HeapInUseMiB and HeapMiB are its memory, its heap in use and what it has allocated there, by its own metrics, at the end.
	// LiveMiB is what is left of the heap right after a garbage collection.
	RestMiB      float64 `json:"restMiB"`
	HeapInUseMiB float64 `json:"heapInUseMiB"`
	HeapMiB      float64 `json:"heapMiB"`
	LiveMiB      float64 `json:"liveMiB"`
	// Writes are the manager's writes without those of events, of which there should be none; Requests are all its requests by verb,
	// resource and answer, but for watches and leases.
	Writes   int            `json:"writes"`
	Requests map[string]int `json:"requests"`
}

// foreignPods is what a run has measured.
type foreignPods struct {
	Nodes     int    `json:"nodes"`
	Processor string `json:"processor"`
	// MemoryLimit is what the manager's garbage collector was told to stay below; WatchSeconds is how long each was watched.
	MemoryLimit  string      `json:"memoryLimit"`
	WatchSeconds float64     `json:"watchSeconds"`
	Footprints   []footprint `json:"footprints"`
	// PerForeign is what one foreign Pod adds, for each kind of start.
	PerForeign map[string]bytesPerPod `json:"bytesPerForeignPod"`
}

// bytesPerPod is what one more Pod adds to the memory of a manager.
type bytesPerPod struct {
	Peak float64 `json:"peak"`
	Rest float64 `json:"rest"`
	Live float64 `json:"live"`
}

// runForeign starts managers in a cluster without and with Pods that are not Kruise's.
func runForeign(ctx context.Context, s settings) (err error) {
	w, err := s.foreignWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.end(ctx)) }()
	result := foreignPods{Nodes: s.nodes, Processor: processor(), MemoryLimit: s.memoryLimit, WatchSeconds: s.watch.Seconds()}
	if s.own > 0 {
		if err := w.watchStarts(ctx, &result); err != nil {
			return err
		}
		if err := w.makeOwn(ctx); err != nil {
			return err
		}
	}
	for _, pods := range []int{0, s.pods} {
		if err := w.setForeign(ctx, pods); err != nil {
			return err
		}
		if err := w.watchStarts(ctx, &result); err != nil {
			return err
		}
	}
	result.PerForeign = perForeign(result.Footprints)
	result.print(os.Stdout)
	return s.store(result)
}

// foreignWorld is an API server with nodes and Pods that nobody looks after, and a manager.
type foreignWorld struct {
	*bench
	crowd *crowd
	// foreign and ours are how many Pods there are.
	foreign, ours int
	// port is that of the webhooks: a manager at another one would have to tell the API server.
	port string
}

// foreignWorld brings up such a world, in which no Pods are yet, and the first manager has written all that a first start asks for.
func (s settings) foreignWorld(ctx context.Context) (_ *foreignWorld, err error) {
	w := &foreignWorld{bench: &bench{settings: s}}
	if w.dir, err = os.MkdirTemp("", "kruise-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.end(ctx))
		}
	}()
	at := &site{dir: w.dir, audit: filepath.Join(w.dir, "cluster", "logs", "audit.log")}
	o := cluster.Options{Dir: filepath.Join(w.dir, "cluster"), Bare: true, Args: s.clusterArgs(), Log: os.Stderr}
	if at.Cluster, err = cluster.Up(ctx, o); err != nil {
		return w, err
	}
	w.sites = []*site{at}
	w.crowd = &crowd{Client: at.Client, nodes: s.nodes}
	if err = w.crowd.prepare(ctx); err != nil {
		return w, err
	}
	if at.manager, err = at.StartManager(ctx, w.managerOptions()); err != nil {
		return w, err
	}
	w.port = at.manager.WebhookPort()
	return w, w.awaitCalm(ctx)
}

// managerOptions are those of every manager: it has the limit of memory that manifests set, and can be asked to collect garbage.
func (w *foreignWorld) managerOptions() cluster.ManagerOptions {
	var env []string
	if w.port != "" {
		env = append(env, "WEBHOOK_PORT="+w.port)
	}
	if w.memoryLimit != "" {
		env = append(env, "GOMEMLIMIT="+w.memoryLimit)
	}
	o := w.hub().options(env...)
	o.Args = []string{"--enable-pprof=true", "--pprof-addr", pprofAddress}
	if w.kind == daemonsKind {
		o.Args = append(o.Args, "--feature-gates=ImagePullJobGate=true")
	}
	return o
}

// setForeign ends the manager, and creates Pods until there are so many.
func (w *foreignWorld) setForeign(ctx context.Context, pods int) error {
	w.hub().manager.Stop()
	fmt.Fprintf(os.Stderr, "creating foreign Pods until there are %d\n", pods)
	began := time.Now()
	if err := w.crowd.grow(ctx, pods); err != nil {
		return err
	}
	if pods > 0 {
		fmt.Fprintf(os.Stderr, "created within %.0f s\n", time.Since(began).Seconds())
	}
	w.foreign = pods
	return sleep(ctx, 5*time.Second) // the API server may have to catch up
}

// makeOwn makes CloneSets, of few Pods each that are like those that are foreign, and has their Pods run.
func (w *foreignWorld) makeOwn(ctx context.Context) error {
	const namespace = "bench-own"
	fmt.Fprintf(os.Stderr, "making CloneSets of %d Pods each until there are %d\n", few, w.own)
	if err := w.hub().Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	sets := (w.own + few - 1) / few
	if err := atOnce(crowdWorkers/4, sets, func(number int) error {
		app := fmt.Sprintf("own-%05d", number)
		set := named(namespace, app, few)
		set.Spec.Template = crowdTemplate(app)
		set.Spec.Template.Spec.NodeName = nodeName(number % w.nodes)
		set.Spec.Selector.MatchLabels = map[string]string{"app.kubernetes.io/name": app}
		return w.hub().Client.Create(ctx, set)
	}); err != nil {
		return err
	}
	w.ours = sets * few
	there := func(set *v1beta1.CloneSet) int32 { return set.Status.Replicas }
	if err := w.awaitSets(ctx, namespace, there, w.ours); err != nil {
		return err
	}
	return w.runOwn(ctx, namespace)
}

// runOwn has the Pods of a namespace run.
func (w *foreignWorld) runOwn(ctx context.Context, namespace string) error {
	var list corev1.PodList
	if err := w.hub().Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	if err := atOnce(crowdWorkers, len(list.Items), func(number int) error {
		return w.crowd.run(ctx, &list.Items[number], 1<<20+number)
	}); err != nil {
		return err
	}
	if err := w.awaitAvailable(ctx, namespace, w.ours); err != nil {
		return err
	}
	return w.awaitCalm(ctx)
}

// watchStarts watches managers after one that has ended in order, and after one that was killed.
func (w *foreignWorld) watchStarts(ctx context.Context, into *foreignPods) error {
	for _, start := range []string{afterStop, afterCrash} {
		f, err := w.watchStart(ctx, start)
		if err != nil {
			return fmt.Errorf("with %d foreign Pods, %s: %w", w.foreign, start, err)
		}
		into.Footprints = append(into.Footprints, f)
	}
	return nil
}

// watchStart starts a manager, and measures what it takes from then on.
func (w *foreignWorld) watchStart(ctx context.Context, start string) (footprint, error) {
	f := footprint{Start: start, Foreign: w.foreign, Own: w.ours}
	fmt.Fprintf(os.Stderr, "%s of a manager, %d foreign Pods, %d of CloneSets\n", start, f.Foreign, f.Own)
	at := w.hub()
	if start == afterCrash {
		at.manager.Kill()
	} else {
		at.manager.Stop()
	}
	asked := time.Now()
	m, err := at.LaunchManager(ctx, w.managerOptions())
	if err != nil {
		return f, err
	}
	began := time.Now()
	at.manager = m
	watching, stop := context.WithCancel(ctx)
	defer stop()
	resident := residentEachSecond(watching, m.PID())
	if err := m.WaitReady(ctx); err != nil {
		return f, err
	}
	f.ReadySeconds = time.Since(began).Seconds()
	if f.ReadyCPUSeconds, err = cluster.CPUSeconds(m.PID()); err != nil {
		return f, err
	}
	if f.ReadyPeakMiB, err = peakOf(m.PID()); err != nil {
		return f, err
	}
	if err := sleep(ctx, time.Until(began.Add(w.watch))); err != nil {
		return f, err
	}
	stop()
	f.ResidentMiB = <-resident
	return f, w.atEnd(ctx, m, asked, &f)
}

// atEnd measures what a manager has taken until now.
func (w *foreignWorld) atEnd(ctx context.Context, m *cluster.Manager, since time.Time, f *footprint) (err error) {
	if f.CPUSeconds, err = cluster.CPUSeconds(m.PID()); err != nil {
		return err
	}
	if f.PeakMiB, err = peakOf(m.PID()); err != nil {
		return err
	}
	requests, err := audit.Read(w.hub().audit, audit.Query{Agent: "kruise-manager", From: since, To: time.Now()})
	if err != nil {
		return err
	}
	f.Requests, f.Writes = requests.Counts, requests.Writes()
	if err := gauges(ctx, m, map[string]*float64{
		"process_resident_memory_bytes": &f.RestMiB, "go_memstats_heap_inuse_bytes": &f.HeapInUseMiB,
		"go_memstats_heap_alloc_bytes": &f.HeapMiB,
	}); err != nil {
		return err
	}
	if _, err := fetch(ctx, http.DefaultClient, "http://"+pprofAddress+"/debug/pprof/heap?gc=1"); err != nil {
		return fmt.Errorf("having the manager collect garbage: %w", err)
	}
	return gauges(ctx, m, map[string]*float64{"go_memstats_heap_alloc_bytes": &f.LiveMiB})
}

// gauges reads metrics of a manager that are bytes, as MiB.
func gauges(ctx context.Context, m *cluster.Manager, into map[string]*float64) error {
	metrics, err := fetch(ctx, http.DefaultClient, "http://"+m.MetricsAddress()+"/metrics")
	if err != nil {
		return fmt.Errorf("reading metrics: %w", err)
	}
	for name, value := range into {
		read, err := gauge(metrics, name)
		if err != nil {
			return err
		}
		*value = read / (1 << 20)
	}
	return nil
}

// residentEachSecond notes the memory of a process each second until the context ends, and then tells it.
func residentEachSecond(ctx context.Context, pid int) <-chan []float64 {
	told := make(chan []float64, 1)
	go func() {
		var out []float64
		for sleep(ctx, time.Second) == nil {
			if now, err := residentOf(pid); err == nil { // a process that is gone shows elsewhere
				out = append(out, now)
			}
		}
		told <- out
	}()
	return told
}
