package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// perPod is how many of the SidecarSets select each Pod.
const perPod = 3

// load is what becomes of Pods that are created at a steady rate while there are many SidecarSets. Times are milliseconds from the moment
// at which a Pod was due to the API server's answer, so that Pods which have to wait for others show.
type load struct {
	SidecarSets int     `json:"sidecarSets"`
	Pods        int     `json:"pods"`
	Rate        float64 `json:"podsPerSecond"`
	// Without are Pods that the webhook leaves alone, With those that get sidecars.
	Without quantiles `json:"withoutMilliseconds"`
	With    quantiles `json:"withMilliseconds"`
	// Lacking is the number of Pods without all of their sidecars; none is what is promised.
	Lacking int `json:"lacking"`
	// Handling is how long the manager itself took over those, by its own histogram.
	Handling quantiles `json:"handlingMilliseconds"`
	// Reads are the manager's reads for one Pod, Writes its writes by verb and resource, nearly all of them those of the SidecarSets'
	// counts.
	Reads  float64        `json:"readsPerPod"`
	Writes map[string]int `json:"writes"`
	// CPUSeconds is the manager's CPU time for all, from the first Pod to when the SidecarSets have counted the last; ServerCPUSeconds that
	// of the API server, and ServerCPUWithout that of the API server for the Pods that the webhook leaves alone.
	CPUSeconds       float64 `json:"cpuSeconds"`
	ServerCPUSeconds float64 `json:"serverCPUSeconds"`
	ServerCPUWithout float64 `json:"serverCPUSecondsWithout"`
	// SetsCPUSeconds is the manager's CPU time while the SidecarSets were created.
	SetsCPUSeconds float64 `json:"setsCPUSeconds"`
	// Counted is the time from the last Pod's creation until the SidecarSets have counted all.
	Counted float64 `json:"countedAfterSeconds"`
}

// runLoad creates Pods at a steady rate, first where no webhook is called and then where many SidecarSets select them.
func runLoad(ctx context.Context, s settings) error {
	return s.onBareCluster(ctx, func(w admissionWorld) error {
		result := load{SidecarSets: s.sets, Pods: s.pods, Rate: s.rate}
		if err := w.measure(ctx, s, &result); err != nil {
			return err
		}
		result.print(os.Stdout)
		return s.store(result)
	})
}

func (w admissionWorld) measure(ctx context.Context, s settings, result *load) error {
	for _, step := range []func(context.Context, settings, *load) error{w.measureSets, w.measureWithout, w.measureLoad} {
		if err := step(ctx, s, result); err != nil {
			return err
		}
	}
	return nil
}

// appOf returns the app whose Pods a SidecarSet selects, or that a Pod is of.
func appOf(s settings, number int) string { return fmt.Sprintf("bench-%d", number%(s.sets/perPod)) }

// measureSets creates the SidecarSets and waits until nothing more follows from that.
func (w admissionWorld) measureSets(ctx context.Context, s settings, result *load) error {
	used, err := w.using(func() error {
		if err := w.createSets(ctx, s); err != nil {
			return err
		}
		return w.awaitSidecars(ctx, s)
	})
	result.SetsCPUSeconds = used.manager
	if err != nil {
		return err
	}
	return w.awaitRest(ctx)
}

// measureWithout creates Pods where no webhook is called.
func (w admissionWorld) measureWithout(ctx context.Context, s settings, result *load) error {
	used, err := w.using(func() (err error) {
		result.Without, err = w.create(ctx, s, "without")
		return err
	})
	result.ServerCPUWithout = used.server
	return err
}

// measureLoad creates Pods that get sidecars, until the SidecarSets have counted them.
func (w admissionWorld) measureLoad(ctx context.Context, s settings, result *load) error {
	began := time.Now()
	before, err := scrape(ctx, w.manager.MetricsAddress(), handling, "")
	if err != nil {
		return err
	}
	profiled := make(<-chan error)
	if s.profile != "" {
		profiled = w.profile(ctx, s.profile, time.Duration(float64(s.pods)/s.rate*float64(time.Second)))
	}
	used, err := w.using(func() error { return w.createAndCount(ctx, s, result) })
	if err != nil {
		return err
	}
	result.CPUSeconds, result.ServerCPUSeconds = used.manager, used.server
	after, err := scrape(ctx, w.manager.MetricsAddress(), handling, "")
	if err != nil {
		return err
	}
	result.Handling = after.since(before).quantiles()
	requests, err := audit.Read(w.audit, audit.Query{Agent: "kruise-manager", From: began})
	if err != nil {
		return err
	}
	result.Reads, result.Writes = float64(requests.Reads)/float64(s.pods), map[string]int{}
	for request, count := range requests.Counts {
		if verb, _, _ := strings.Cut(request, " "); verb != "get" && verb != "list" {
			result.Writes[request] = count
		}
	}
	if s.profile != "" {
		return <-profiled
	}
	return nil
}

func (w admissionWorld) createAndCount(ctx context.Context, s settings, result *load) (err error) {
	if result.With, err = w.create(ctx, s, "with"); err != nil {
		return err
	}
	created := time.Now()
	if err := w.awaitCounts(ctx, s.pods*perPod); err != nil {
		return err
	}
	result.Counted = time.Since(created).Seconds()
	result.Lacking, err = w.lacking(ctx)
	return err
}

// cpu is CPU time, in seconds.
type cpu struct{ manager, server float64 }

// using does something and returns the CPU time that went by for it.
func (w admissionWorld) using(do func() error) (cpu, error) {
	before, err := w.cpu()
	if err != nil {
		return cpu{}, err
	}
	if err := do(); err != nil {
		return cpu{}, err
	}
	after, err := w.cpu()
	return cpu{manager: after.manager - before.manager, server: after.server - before.server}, err
}

func (w admissionWorld) cpu() (used cpu, err error) {
	if used.manager, err = cluster.CPUSeconds(w.manager.PID()); err != nil {
		return cpu{}, err
	}
	used.server, err = cluster.CPUSeconds(w.server)
	return used, err
}

func (s settings) pod(namespace string, number int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bench-%d", number), Namespace: namespace,
		Labels: map[string]string{"app": appOf(s, number)}}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:alpine"}}
	return p
}

// createSets creates the SidecarSets, some at a time: the admission of each waits a second for the API server to follow.
func (w admissionWorld) createSets(ctx context.Context, s settings) error {
	return atOnce(10, s.sets, func(number int) error {
		return w.Client.Create(ctx, sidecarSet(number, &metav1.LabelSelector{MatchLabels: map[string]string{"app": appOf(s, number)}}))
	})
}

// awaitSidecars waits until Pods of every app get all of their sidecars.
func (w admissionWorld) awaitSidecars(ctx context.Context, s settings) error {
	for number := range s.sets / perPod {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			p := s.pod("with", number)
			err := w.Client.Create(ctx, p, client.DryRunAll)
			if err == nil && len(p.Spec.Containers) == perPod+1 {
				break
			}
			if time.Now().After(deadline) {
				return errors.Join(fmt.Errorf("a Pod of app %s has %d containers", appOf(s, number), len(p.Spec.Containers)), err)
			}
		}
	}
	return nil
}

// create creates the Pods, each when it is due, and returns how long that took.
func (w admissionWorld) create(ctx context.Context, s settings, namespace string) (quantiles, error) {
	var running sync.WaitGroup
	took := make([]time.Duration, s.pods)
	problems := make([]error, s.pods)
	began := time.Now()
	for number := range s.pods {
		due := began.Add(time.Duration(float64(number) / s.rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		running.Go(func() {
			problems[number] = w.Client.Create(ctx, s.pod(namespace, number))
			took[number] = time.Since(due)
		})
	}
	running.Wait()
	return quantilesOf(took), errors.Join(problems...)
}

// lacking counts the Pods without all of their sidecars.
func (w admissionWorld) lacking(ctx context.Context) (int, error) {
	var list corev1.PodList
	if err := w.Client.List(ctx, &list, client.InNamespace("with")); err != nil {
		return 0, err
	}
	lacking := 0
	for i := range list.Items {
		if p := &list.Items[i]; len(p.Spec.Containers) != perPod+1 {
			lacking++
		}
	}
	return lacking, nil
}

// awaitCounts waits until the SidecarSets have counted so many Pods together.
func (w admissionWorld) awaitCounts(ctx context.Context, want int) error {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		var list v1beta1.SidecarSetList
		if err := w.Client.List(ctx, &list); err != nil {
			return err
		}
		counted := 0
		for i := range list.Items {
			counted += int(list.Items[i].Status.MatchedPods)
		}
		if counted == want {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the SidecarSets have counted %d Pods, want %d", counted, want)
		}
	}
}

func (l load) print(to io.Writer) {
	fmt.Fprintf(to, "%d Pods at %.0f a second, %d SidecarSets of which %d select each, %s\n", l.Pods, l.Rate, l.SidecarSets, perPod,
		processor())
	fmt.Fprintf(to, "without the webhook  p50 %.2f ms, p99 %.2f ms\nwith it              p50 %.2f ms, p99 %.2f ms\nadded               "+
		" p50 %.2f ms, p99 %.2f ms\n",
		l.Without.P50, l.Without.P99, l.With.P50, l.With.P99, l.With.P50-l.Without.P50, l.With.P99-l.Without.P99)
	fmt.Fprintf(to, "in the manager       p50 %.2f ms, p99 %.2f ms\n", l.Handling.P50, l.Handling.P99)
	fmt.Fprintf(to, "Pods that lack a sidecar: %d\nall were counted %.1f s after the last was created\n", l.Lacking, l.Counted)
	fmt.Fprintf(to,
		"CPU s of the manager: %.1f for all Pods, %.1f for the SidecarSets before; of the API server: %.1f, without the webhook %.1f\n",
		l.CPUSeconds, l.SetsCPUSeconds, l.ServerCPUSeconds, l.ServerCPUWithout)
	fmt.Fprintf(to, "the manager's reads for a Pod: %.3f; its writes in all:\n", l.Reads)
	for _, request := range slices.Sorted(maps.Keys(l.Writes)) {
		fmt.Fprintf(to, "%6d %s\n", l.Writes[request], request)
	}
}
