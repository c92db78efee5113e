package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// injection is what it costs to create Pods while there are so many SidecarSets, in milliseconds for one Pod.
type injection struct {
	SidecarSets int `json:"sidecarSets"`
	// Matching is how many of them select the Pod: each puts one container into it.
	Matching int `json:"matching"`
	// Without is the time in a namespace that the webhook leaves alone, With that in any other one. Ready is again the time without, but of
	// Pods that hold the sidecars already: what the API server itself takes for the greater Pod.
	Without quantiles `json:"withoutMilliseconds"`
	With    quantiles `json:"withMilliseconds"`
	Ready   quantiles `json:"readyMilliseconds"`
	// Reads are the manager's reads for one Pod.
	Reads float64 `json:"readsPerPod"`
	// ManagerCPU is the CPU time of the manager for one Pod, ServerCPUWithout, ServerCPUWith and ServerCPUReady that of the API server.
	// Other than times by the clock they tell something on a busy machine, too.
	ManagerCPU       float64 `json:"managerCPUMilliseconds"`
	ServerCPUWithout float64 `json:"serverCPUMillisecondsWithout"`
	ServerCPUReady   float64 `json:"serverCPUMillisecondsReady"`
	ServerCPUWith    float64 `json:"serverCPUMillisecondsWith"`
}

type quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func quantilesOf(all []time.Duration) quantiles {
	slices.Sort(all)
	at := func(share float64) float64 {
		return float64(all[int(share*float64(len(all)-1))].Microseconds()) / 1000
	}
	return quantiles{P50: at(0.5), P99: at(0.99)}
}

// runInjection tries to create Pods, one at a time, by turns with and without the webhook. Nothing is stored: what is measured is
// admission.
func runInjection(ctx context.Context, s settings) error {
	return s.onBareCluster(ctx, func(w admissionWorld) error { return w.runInjection(ctx, s) })
}

// admissionWorld is an API server and a manager, and nothing else that would write or wait.
type admissionWorld struct {
	*cluster.Cluster
	manager *cluster.Manager
	server  int // the process id of the API server
	audit   string
}

// onBareCluster does something in such a world, in which Pods of the namespace "with" are sent to the manager and those of "without" are
// not.
func (s settings) onBareCluster(ctx context.Context, do func(admissionWorld) error) (err error) {
	dir, err := os.MkdirTemp("", "kruise-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, err := cluster.Up(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Bare: true, Args: s.clusterArgs(), Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Down(context.WithoutCancel(ctx))) }()
	manager, err := c.StartManager(ctx, cluster.ManagerOptions{Dir: filepath.Join(dir, "manager"), Args: s.managerArgs()})
	if err != nil {
		return err
	}
	defer manager.Stop()
	for name, labels := range map[string]map[string]string{"with": nil, "without": {"control-plane": "openkruise"}} {
		// Nobody else makes the account on a bare control plane.
		for _, object := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: name}},
		} {
			if err := c.Client.Create(ctx, object); err != nil {
				return err
			}
		}
	}
	server, err := c.ProcessOf(ctx, "kube-apiserver")
	if err != nil {
		return err
	}
	return do(admissionWorld{Cluster: c, manager: manager, server: server, audit: filepath.Join(dir, "cluster", "logs", "audit.log")})
}

// pprofAddress is where a manager that is profiled serves its profiles.
const pprofAddress = "127.0.0.1:18090"

func (s settings) managerArgs() []string {
	if s.profile == "" {
		return nil
	}
	return []string{"--enable-pprof=true", "--pprof-addr", pprofAddress}
}

func (w admissionWorld) runInjection(ctx context.Context, s settings) error {
	var results []injection
	made := 0
	for _, c := range []injection{{}, {SidecarSets: 1, Matching: 1}, {SidecarSets: 10, Matching: 10}, {SidecarSets: 100, Matching: 1},
		{SidecarSets: 100, Matching: 9}, {SidecarSets: 100, Matching: most}} {
		for ; made < c.SidecarSets; made++ {
			if err := w.Client.Create(ctx, sidecarSet(made, forPodsOfMore(made))); err != nil {
				return err
			}
		}
		measured, err := w.measureInjection(ctx, c, s.pods)
		if err != nil {
			return fmt.Errorf("measuring with %d SidecarSets of which %d match: %w", c.SidecarSets, c.Matching, err)
		}
		requests, err := audit.Read(w.audit, audit.Query{Agent: "kruise-manager", From: measured.began})
		if err != nil {
			return err
		}
		measured.Reads = float64(requests.Reads) / float64(s.pods)
		results = append(results, measured.injection)
	}
	printInjections(os.Stdout, s.pods, results)
	return s.store(results)
}

// store writes the figures to the file that was asked for.
func (s settings) store(figures any) error {
	encoded, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.out, append(encoded, '\n'), 0o644)
}

// sidecarSet returns a SidecarSet with one sidecar and one volume.
func sidecarSet(number int, selector *metav1.LabelSelector) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%03d", number)}}
	set.Spec.Selector = selector
	set.Spec.UpdateStrategy.Type = v1beta1.NotUpdateSidecarSetStrategyType
	volume := fmt.Sprintf("data-%03d", number)
	set.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{
		Name: fmt.Sprintf("sidecar-%03d",
			number), Image: "busybox:1.36", VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: "/data"}},
	}}}
	return set
}

// sidecarsLabel is where a Pod says how many of the SidecarSets match it, at most: the first ones.
const sidecarsLabel = "sidecars"

// most is the largest number of SidecarSets, all of which match a Pod.
const most = 100

// forPodsOfMore selects the Pods that are to have more than so many sidecars.
func forPodsOfMore(than int) *metav1.LabelSelector {
	var values []string
	for _, sidecars := range []int{1, 9, 10, most} {
		if sidecars > than {
			values = append(values, strconv.Itoa(sidecars))
		}
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: sidecarsLabel,
		Operator: metav1.LabelSelectorOpIn, Values: values}}}
}

// podOf returns a Pod that is to have so many sidecars.
func podOf(sidecars int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{sidecarsLabel: strconv.Itoa(sidecars)}}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:alpine"}}
	return p
}

type measuredInjection struct {
	injection
	began time.Time
}

// try tries to create a Pod like the given one, and returns how long that took and what it would be.
func (w admissionWorld) try(ctx context.Context, namespace string, like *corev1.Pod) (time.Duration, *corev1.Pod, error) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-", Namespace: namespace, Labels: like.Labels,
		Annotations: like.Annotations}}
	p.Spec = *like.Spec.DeepCopy()
	began := time.Now()
	err := w.Client.Create(ctx, p, client.DryRunAll)
	return time.Since(began), p, err
}

// way is one of the ways in which Pods are created.
type way struct {
	namespace string
	like      *corev1.Pod
	// times and serverCPU are where the figures go.
	times     *quantiles
	serverCPU *float64
}

// awaitInjected waits until a Pod gets so many sidecars, and returns it.
func (w admissionWorld) awaitInjected(ctx context.Context, like *corev1.Pod, sidecars int) (*corev1.Pod, error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		_, p, err := w.try(ctx, "with", like)
		if err == nil && len(p.Spec.Containers) == sidecars+1 {
			return p, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("a Pod has %d containers, want %d", len(p.Spec.Containers), sidecars+1), err)
		}
	}
}

// awaitRest waits until the manager is done with what follows from new SidecarSets, which is not the Pods' affair; a minute at most, as
// what is left then shows in the reads.
func (w admissionWorld) awaitRest(ctx context.Context) error {
	const pause, busy = 2 * time.Second, 0.03
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		before, err := cluster.CPUSeconds(w.manager.PID())
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		if after, err := cluster.CPUSeconds(w.manager.PID()); err != nil || after-before < busy {
			return err
		}
	}
	return nil
}

func (w admissionWorld) measureInjection(ctx context.Context, wanted injection, pods int) (measuredInjection, error) {
	m := measuredInjection{injection: wanted}
	// A Pod that all of them match tells when all are known.
	if _, err := w.awaitInjected(ctx, podOf(most), wanted.SidecarSets); err != nil {
		return m, err
	}
	bare := podOf(wanted.Matching)
	ready, err := w.awaitInjected(ctx, bare, wanted.Matching)
	if err != nil {
		return m, err
	}
	if err := w.awaitRest(ctx); err != nil {
		return m, err
	}
	ways := []way{
		{"without", bare, &m.Without, &m.ServerCPUWithout}, {"with", bare, &m.With, &m.ServerCPUWith}, {"without", ready, &m.Ready,
			&m.ServerCPUReady},
	}
	m.began = time.Now()
	times := make([][]time.Duration, len(ways))
	for range pods {
		for i, one := range ways {
			took, _, err := w.try(ctx, one.namespace, one.like)
			if err != nil {
				return m, err
			}
			times[i] = append(times[i], took)
		}
	}
	for i, one := range ways {
		*one.times = quantilesOf(times[i])
		if err := w.measureCPU(ctx, pods, one, &m.injection); err != nil {
			return m, err
		}
	}
	return m, nil
}

// measureCPU tries Pods in one way only, and reckons what each cost.
func (w admissionWorld) measureCPU(ctx context.Context, pods int, one way, m *injection) error {
	costs := map[int]*float64{w.server: one.serverCPU}
	if one.namespace == "with" {
		costs[w.manager.PID()] = &m.ManagerCPU
	}
	before := map[int]float64{}
	for process := range costs {
		used, err := cluster.CPUSeconds(process)
		if err != nil {
			return err
		}
		before[process] = used
	}
	for range pods {
		if _, _, err := w.try(ctx, one.namespace, one.like); err != nil {
			return err
		}
	}
	for process, cost := range costs {
		used, err := cluster.CPUSeconds(process)
		if err != nil {
			return err
		}
		*cost = 1000 * (used - before[process]) / float64(pods)
	}
	return nil
}

func printInjections(to io.Writer, pods int, results []injection) {
	fmt.Fprintf(to, "%d Pods each, one at a time, %s; matching: SidecarSets that select the Pod; ready: with the sidecars in it "+
		"already, and no webhook\n\n", pods, processor())
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "SidecarSets\tmatching\twithout p50 ms\tp99\tready p50 ms\tp99\twith p50 ms\tp99\tadded p50 ms\tp99\tto ready "+
		"p50 ms\tp99\treads/Pod\tCPU ms/Pod: manager\tserver without\tready\twith\t")
	for _, r := range results {
		fmt.Fprintf(table, "%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
			r.SidecarSets, r.Matching,
			r.Without.P50, r.Without.P99, r.Ready.P50, r.Ready.P99, r.With.P50, r.With.P99,
			r.With.P50-r.Without.P50, r.With.P99-r.Without.P99, r.With.P50-r.Ready.P50, r.With.P99-r.Ready.P99, r.Reads,
			r.ManagerCPU, r.ServerCPUWithout, r.ServerCPUReady, r.ServerCPUWith)
	}
	_ = table.Flush() // a terminal that is gone can't be told
}
