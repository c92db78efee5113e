package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// screensNamespace is where all workloads are that the screens of the command line show, and few the Pods of each but one.
const (
	screensNamespace = "bench-screens"
	few              = 10
)

// screens are what the command line takes to show a workload of so many Pods, half of them updated, in a cluster of more.
type screens struct {
	Pods int `json:"pods"`
	// AllPods are the Pods of the cluster, in so many workloads.
	AllPods   int         `json:"allPods"`
	Workloads int         `json:"workloads"`
	Processor string      `json:"processor"`
	Screens   []shownOnce `json:"screens"`
}

// shownOnce is what one screen takes.
type shownOnce struct {
	Screen string `json:"screen"`
	// Seconds is the median of the rounds, CPUSeconds the least that the command used in one of them.
	Seconds    float64   `json:"seconds"`
	Rounds     []float64 `json:"rounds"`
	CPUSeconds float64   `json:"cpuSeconds"`
	// Requests are those of one round, by verb, resource and answer, and Received how many bytes came in for them, as they went over the
	// wire.
	Requests map[string]int `json:"requests"`
	Received int64          `json:"receivedBytes"`
	Lines    int            `json:"lines"`
}

// commands are the screens that are measured. Of CloneSet web, half of the Pods are updated.
func commands() [][]string {
	const web = "cloneset/web"
	return [][]string{
		{"overview"},
		{"overview", "-A"},
		{"status", web, "--watch=false"},
		{"tree", web},
		{"explain", web},
		{"plan", web, "--set", "partition=0"},
		{"plan", web, "--set", "partition=0", "--set", "maxUnavailable=1"},
		{"plan", web, "--set", "replicas=0"},
		{"history", web},
		{"diff", web},
	}
}

// runScreens measures the screens of the command line.
func runScreens(ctx context.Context, s settings) (err error) {
	b := &bench{settings: s}
	if b.dir, err = os.MkdirTemp("", "kruise-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	at := &site{dir: filepath.Join(b.dir, "hub")}
	at.audit = filepath.Join(at.dir, "cluster", "logs", "audit.log")
	o := cluster.Options{Dir: filepath.Join(at.dir, "cluster"), Nodes: s.nodes, Log: os.Stderr}
	o.Args = append(s.clusterArgs(), "--sim-terse")
	if at.Cluster, err = cluster.Up(ctx, o); err != nil {
		return err
	}
	b.sites = append(b.sites, at)
	manager := at.options()
	manager.Args = []string{"--enable-leader-election=false"} // it is not what is measured, and may be slow on a busy machine
	if at.manager, err = at.StartManager(ctx, manager); err != nil {
		return err
	}
	result := screens{Pods: s.pods, AllPods: s.pods, Workloads: 1, Processor: processor()}
	if err := b.fill(ctx, &result); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "showing the screens")
	if result.Screens, err = b.showAll(ctx); err != nil {
		return err
	}
	result.print(os.Stdout)
	return s.store(result)
}

// fill makes the workloads, and waits until they are where they are to be.
func (b *bench) fill(ctx context.Context, result *screens) error {
	if err := b.hub().Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: screensNamespace}}); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "making a CloneSet of %d Pods, half of them updated\n", b.pods)
	web := named(screensNamespace, "web", b.pods)
	if err := b.hub().Client.Create(ctx, web); err != nil {
		return err
	}
	if err := b.awaitAvailable(ctx, screensNamespace, b.pods); err != nil {
		return err
	}
	half := intstr.FromInt32(int32(b.pods / 2))
	if err := b.edit(ctx, web, func() {
		web.Spec.Template.Spec.Containers[0].Image = releasedImage
		web.Spec.UpdateStrategy.RollingUpdate.Partition = &half
	}); err != nil {
		return err
	}
	if err := b.until(ctx, "half of the Pods are updated", func() (bool, error) {
		err := b.hub().Client.Get(ctx, client.ObjectKeyFromObject(web), web)
		return int(web.Status.UpdatedAvailableReplicas) == b.pods-b.pods/2, err
	}); err != nil {
		return err
	}
	return b.fillRest(ctx, result)
}

// fillRest makes all other workloads, of which one in twenty is paused amid an update. Their Pods have their nodes by their template: they
// are not there to measure the scheduler.
func (b *bench) fillRest(ctx context.Context, result *screens) error {
	fmt.Fprintf(os.Stderr, "making CloneSets of %d Pods each until there are %d\n", few, b.allPods)
	for i := 0; result.AllPods+few <= b.allPods; i++ {
		set := named(screensNamespace, fmt.Sprintf("other-%04d", i), few)
		set.Spec.Template.Spec.NodeName = fmt.Sprintf("sim-%d", i%b.nodes)
		if err := b.hub().Client.Create(ctx, set); err != nil {
			return err
		}
		result.AllPods, result.Workloads = result.AllPods+few, result.Workloads+1
	}
	if err := b.awaitAvailable(ctx, screensNamespace, result.AllPods); err != nil {
		return err
	}
	for i := 0; i < result.Workloads-1; i += 20 {
		set := named(screensNamespace, fmt.Sprintf("other-%04d", i), few)
		if err := b.edit(ctx, set, func() {
			set.Spec.UpdateStrategy.RollingUpdate.Paused = true
			set.Spec.Template.Spec.Containers[0].Image = releasedImage
		}); err != nil {
			return err
		}
	}
	return b.awaitCalm(ctx)
}

// named returns a CloneSet of so many Pods that are updated in place.
func named(namespace, name string, pods int) *v1beta1.CloneSet {
	w := cloneSet(namespace)
	w.replicas(int32(pods))
	w.inPlace(0)
	set := w.object.(*v1beta1.CloneSet)
	labels := map[string]string{"app": name}
	set.Name, set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = name, labels, labels
	return set
}

// awaitAvailable waits until the CloneSets of a namespace have so many available Pods together.
func (b *bench) awaitAvailable(ctx context.Context, namespace string, want int) error {
	return b.awaitSets(ctx, namespace, func(set *v1beta1.CloneSet) int32 { return set.Status.AvailableReplicas }, want)
}

// awaitSets waits until what is counted of the CloneSets of a namespace comes to so much.
func (b *bench) awaitSets(ctx context.Context, namespace string, count func(*v1beta1.CloneSet) int32, want int) error {
	return b.until(ctx, fmt.Sprintf("the CloneSets of %s count %d Pods", namespace, want), func() (bool, error) {
		var list v1beta1.CloneSetList
		began := time.Now()
		err := b.hub().Client.List(ctx, &list, client.InNamespace(namespace))
		took := time.Since(began)
		got := 0
		for i := range list.Items {
			got += int(count(&list.Items[i]))
		}
		if got < want && err == nil {
			err = sleep(ctx, max(200*time.Millisecond, 10*took)) // a list of thousands is work for the API server
		}
		return got == want, err
	})
}

// showAll runs each screen as often as there are rounds, after once that fills the cache of what kinds there are.
func (b *bench) showAll(ctx context.Context) ([]shownOnce, error) {
	through, err := countBytes(b.hub().Kubeconfig, filepath.Join(b.dir, "counted.kubeconfig"))
	if err != nil {
		return nil, err
	}
	defer through.close()
	program, err := cluster.Binary("kubectl-kruise")
	if err != nil {
		return nil, err
	}
	var out []shownOnce
	for _, args := range commands() {
		one := shownOnce{Screen: strings.Join(args, " ")}
		args = append([]string{
			"--kubeconfig", through.kubeconfig, "-n", screensNamespace, "--cache-dir", filepath.Join(b.dir, "cache"),
		}, args...)
		if _, err := runScreen(ctx, program, args, &shownOnce{}); err != nil {
			return out, err
		}
		began, before := time.Now(), through.received.Load()
		for range b.rounds {
			if one.Lines, err = runScreen(ctx, program, args, &one); err != nil {
				return out, err
			}
		}
		one.Received = (through.received.Load() - before) / int64(b.rounds)
		slices.Sort(one.Rounds)
		one.Seconds = one.Rounds[len(one.Rounds)/2]
		if one.Requests, err = b.askedByScreen(ctx, began); err != nil {
			return out, err
		}
		out = append(out, one)
	}
	return out, nil
}

// askedByScreen returns the requests of one round, once the audit log has those of all.
func (b *bench) askedByScreen(ctx context.Context, began time.Time) (map[string]int, error) {
	ended := time.Now()
	if err := sleep(ctx, 200*time.Millisecond); err != nil {
		return nil, err
	}
	asked, err := audit.Read(b.hub().audit, audit.Query{Agent: "kubectl-kruise", From: began, To: ended})
	for what := range asked.Counts {
		asked.Counts[what] /= b.rounds
	}
	return asked.Counts, err
}

// runScreen runs a command once, notes how long that took, and returns how many lines it wrote.
func runScreen(ctx context.Context, program string, args []string, into *shownOnce) (lines int, err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	began := time.Now()
	err = cmd.Run()
	took := time.Since(began).Seconds()
	var code *exec.ExitError
	if err != nil && (!errors.As(err, &code) || out.Len() == 0) { // other codes say how a rollout stands
		return 0, fmt.Errorf("running %v: %w\n%s", args, err, problems.String())
	}
	used := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if len(into.Rounds) == 0 || used < into.CPUSeconds {
		into.CPUSeconds = used
	}
	into.Rounds = append(into.Rounds, took)
	return bytes.Count(out.Bytes(), []byte("\n")), nil
}

func (s screens) print(to io.Writer) {
	fmt.Fprintf(to, "a CloneSet of %d Pods, half of them updated, in a namespace of %d CloneSets with %d Pods, %s\n\n", s.Pods, s.Workloads,
		s.AllPods, s.Processor)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "screen\tseconds\tslowest\tCPU s\trequests\tKiB\tlines\t")
	for _, one := range s.Screens {
		requests := 0
		for _, n := range one.Requests {
			requests += n
		}
		fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.2f\t%d\t%d\t%d\t\n", one.Screen, one.Seconds, one.Rounds[len(one.Rounds)-1], one.CPUSeconds,
			requests, one.Received/1024, one.Lines)
	}
	_ = table.Flush() // a terminal that is gone can't be told
	for _, one := range s.Screens {
		fmt.Fprintf(to, "%s: %v\n", one.Screen, one.Requests)
	}
}
