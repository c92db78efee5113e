package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// upgradedAtOnce is the share of the Pods, in percent, whose sidecar may be out of service at a time.
const upgradedAtOnce = 5

// upgrade is what it takes to give the sidecar of many Pods another image.
type upgrade struct {
	Nodes     int    `json:"nodes"`
	Processor string `json:"processor"`
	Pods      int    `json:"pods"`
	// AtOnce is how many Pods maxUnavailable lets be out of service at a time, and MostUnavailable how many were.
	AtOnce          int `json:"maxUnavailable"`
	MostUnavailable int `json:"mostUnavailable"`
	// BoundSeconds is what it would take if as many as may be were out of service from the first to the last, each for as long as it was.
	BoundSeconds float64 `json:"boundSeconds"`
	// OutageSeconds is how long a Pod was out of service, on average.
	OutageSeconds float64 `json:"outageSeconds"`
	measurement
}

// runUpgrade changes the image of a sidecar in all Pods of a CloneSet.
func runUpgrade(ctx context.Context, s settings) (err error) {
	s.kind, s.only = "cloneset", "CloneSet"
	b, err := s.bringUp(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	const namespace = "bench-upgrade"
	share := intstr.FromString(fmt.Sprintf("%d%%", upgradedAtOnce))
	set := sidecarSet(0, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bench"}})
	set.Spec.UpdateStrategy = v1beta1.SidecarSetUpdateStrategy{Type: v1beta1.RollingUpdateSidecarSetStrategyType, MaxUnavailable: &share}
	if err := b.hub().Client.Create(ctx, set); err != nil {
		return err
	}
	w, err := b.workload(ctx, b.chosen[0], namespace)
	if err != nil {
		return err
	}
	if _, err := b.walk(ctx, b.chosen[0], w, []step{b.create(w)}); err != nil {
		return err
	}
	if err := b.awaitUpgraded(ctx, set); err != nil {
		return err
	}
	result := upgrade{Nodes: s.nodes, Processor: processor(), Pods: s.pods, AtOnce: int(math.Ceil(float64(s.pods*upgradedAtOnce) / 100))}
	if err := b.upgrade(ctx, set, namespace, &result); err != nil {
		return err
	}
	result.print(os.Stdout)
	return s.store(result)
}

// upgrade changes the image, and measures until all Pods have it and are ready.
func (b *bench) upgrade(ctx context.Context, set *v1beta1.SidecarSet, namespace string, into *upgrade) error {
	fmt.Fprintln(os.Stderr, "SidecarSet: upgrade")
	out := &outages{since: map[string]time.Time{}}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	pods, err := followPods(watching, b.hub(), namespace, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { out.see(object.(*corev1.Pod), time.Now()) },
		UpdateFunc: func(_, object any) { out.see(object.(*corev1.Pod), time.Now()) },
	})
	if err != nil {
		return err
	}
	into.measurement, err = b.counted(b.chosen[0], namespace, func() (int, error) {
		if err := b.edit(ctx, set, func() { set.Spec.Containers[0].Image = "busybox:1.37" }); err != nil {
			return 0, err
		}
		return b.pods, b.awaitUpgraded(ctx, set)
	})
	stop()
	pods.Shutdown()
	if err != nil {
		return err
	}
	into.Phase, into.MostUnavailable = "upgrade", out.most
	into.BoundSeconds = out.sum.Seconds() / float64(into.AtOnce)
	into.OutageSeconds = out.sum.Seconds() / float64(b.pods)
	return nil
}

// awaitUpgraded waits until all Pods have the sidecar as it is wanted, and are ready.
func (b *bench) awaitUpgraded(ctx context.Context, set *v1beta1.SidecarSet) error {
	return b.until(ctx, "all Pods have their sidecar", func() (bool, error) {
		err := b.hub().Client.Get(ctx, client.ObjectKeyFromObject(set), set)
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.UpdatedReadyPods == int32(b.pods) && s.MatchedPods == int32(b.pods), err
	})
}

// outages adds up how long Pods were not ready.
type outages struct {
	mu    sync.Mutex
	since map[string]time.Time
	sum   time.Duration
	most  int
}

func (o *outages) see(p *corev1.Pod, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, isOut := o.since[p.Name]
	switch ready := pod.IsReady(p); {
	case ready && isOut:
		o.sum += now.Sub(since)
		delete(o.since, p.Name)
	case !ready && !isOut:
		o.since[p.Name] = now
		o.most = max(o.most, len(o.since))
	}
}

func (u upgrade) print(to io.Writer) {
	fmt.Fprintf(to, "%d Pods on %d nodes, maxUnavailable %d %%, %s\n\n", u.Pods, u.Nodes, upgradedAtOnce, u.Processor)
	fmt.Fprintf(to,
		"upgraded within %.1f s: %.2f of the %.1f s that maxUnavailable %d asks for, where each Pod is out of service for %.2f s\n",
		u.Seconds, u.Seconds/u.BoundSeconds, u.BoundSeconds, u.AtOnce, u.OutageSeconds)
	fmt.Fprintf(to, "at most %d Pods were out of service; %.2f writes to Pods and %.2f ms of CPU time of the manager for each\n",
		u.MostUnavailable, u.WritesPerPod, u.CPUPerPod)
}
