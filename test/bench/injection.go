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
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/audit"
	"github.com/seed-69ecc383/kruise/test/cluster"
)

// injection is what it costs to create Pods that so many SidecarSets apply to, in milliseconds for one Pod.
type injection struct {
	SidecarSets int `json:"sidecarSets"`
	// Without is the time in a namespace that the webhook leaves alone, With that in any other one. Ready is again the time without, but of Pods
	// that hold the sidecars already: what the API server itself takes for the greater Pod.
	Without quantiles `json:"withoutMilliseconds"`
	With    quantiles `json:"withMilliseconds"`
	Ready   quantiles `json:"readyMilliseconds"`
	// Reads are the manager's reads for one Pod.
	Reads float64 `json:"readsPerPod"`
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

// runInjection tries to create Pods, one at a time, by turns with and without the webhook. Nothing is stored: what is measured is admission.
func runInjection(ctx context.Context, s settings) (err error) {
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
	manager, err := c.StartManager(ctx, cluster.ManagerOptions{Dir: filepath.Join(dir, "manager")})
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
	var results []injection
	made := 0
	for _, sets := range []int{0, 1, 10, 100} {
		for ; made < sets; made++ {
			if err := c.Client.Create(ctx, sidecarSet(made)); err != nil {
				return err
			}
		}
		measured, err := measureInjection(ctx, c, sets, s.pods)
		if err != nil {
			return fmt.Errorf("measuring with %d SidecarSets: %w", sets, err)
		}
		requests, err := audit.Read(filepath.Join(dir, "cluster", "logs", "audit.log"), audit.Query{Agent: "kruise-manager", From: measured.began})
		if err != nil {
			return err
		}
		measured.Reads = float64(requests.Reads) / float64(s.pods)
		results = append(results, measured.injection)
	}
	printInjections(os.Stdout, s.pods, results)
	encoded, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.out, append(encoded, '\n'), 0o644)
}

func sidecarSet(number int) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%03d", number)}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bench"}}
	set.Spec.UpdateStrategy.Type = v1beta1.NotUpdateSidecarSetStrategyType
	volume := fmt.Sprintf("data-%03d", number)
	set.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{
		Name: fmt.Sprintf("sidecar-%03d", number), Image: "busybox:1.36", VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: "/data"}},
	}}}
	return set
}

type measuredInjection struct {
	injection
	began time.Time
}

func measureInjection(ctx context.Context, c *cluster.Cluster, sets, pods int) (measuredInjection, error) {
	m := measuredInjection{injection: injection{SidecarSets: sets}}
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-", Labels: map[string]string{"app": "bench"}}}
	bare.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:alpine"}}
	create := func(namespace string, like *corev1.Pod) (time.Duration, *corev1.Pod, error) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: like.GenerateName, Namespace: namespace, Labels: like.Labels, Annotations: like.Annotations}}
		p.Spec = *like.Spec.DeepCopy()
		began := time.Now()
		err := c.Client.Create(ctx, p, client.DryRunAll)
		return time.Since(began), p, err
	}
	var ready *corev1.Pod
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		_, p, err := create("with", bare)
		if err == nil && len(p.Spec.Containers) == sets+1 {
			ready = p
			break
		}
		if time.Now().After(deadline) {
			return m, fmt.Errorf("a Pod has %d containers, want %d: %w", len(p.Spec.Containers), sets+1, err)
		}
	}
	m.began = time.Now()
	var without, with, complete []time.Duration
	for range pods {
		for _, one := range []struct {
			namespace string
			like      *corev1.Pod
			times     *[]time.Duration
		}{{"without", bare, &without}, {"with", bare, &with}, {"without", ready, &complete}} {
			took, _, err := create(one.namespace, one.like)
			if err != nil {
				return m, err
			}
			*one.times = append(*one.times, took)
		}
	}
	m.Without, m.With, m.Ready = quantilesOf(without), quantilesOf(with), quantilesOf(complete)
	return m, nil
}

func printInjections(to io.Writer, pods int, results []injection) {
	fmt.Fprintf(to, "%d Pods each, one at a time, %s\n\n", pods, processor())
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "SidecarSets\twithout p50 ms\tp99\tready p50 ms\tp99\twith p50 ms\tp99\tadded p50 ms\tp99\tto ready p50 ms\tp99\treads/Pod\t")
	for _, r := range results {
		fmt.Fprintf(table, "%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t\n", r.SidecarSets,
			r.Without.P50, r.Without.P99, r.Ready.P50, r.Ready.P99, r.With.P50, r.With.P99,
			r.With.P50-r.Without.P50, r.With.P99-r.Without.P99, r.With.P50-r.Ready.P50, r.With.P99-r.Ready.P99, r.Reads)
	}
	_ = table.Flush() // a terminal that is gone can't be told
}
