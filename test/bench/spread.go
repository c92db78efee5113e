package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// spreading is what it costs to create Pods at a steady rate that a WorkloadSpread gives to subsets. Times are milliseconds from the moment
// at which a Pod was due to the API server's answer.
type spreading struct {
	Pods int     `json:"pods"`
	Rate float64 `json:"podsPerSecond"`
	// Without are Pods of the same workload without a WorkloadSpread, With those with one.
	Without quantiles `json:"withoutMilliseconds"`
	With    quantiles `json:"withMilliseconds"`
	// Reads are the manager's reads for one Pod, StatusWrites its writes of the status of the WorkloadSpread for one Pod, and PodWrites
	// those to Pods.
	Reads        float64 `json:"readsPerPod"`
	StatusWrites float64 `json:"statusWritesPerPod"`
	PodWrites    float64 `json:"podWritesPerPod"`
	// Requests are all requests of the manager about the namespace of these Pods, by verb, resource and answer.
	Requests map[string]int `json:"requests"`
	// Subsets is how many Pods each subset has; half of them are the limit of the first.
	Subsets map[string]int `json:"subsets"`
}

// runSpread creates Pods of a ReplicaSet at a steady rate, where no webhook is called and where a WorkloadSpread takes half of them into
// its first subset.
func runSpread(ctx context.Context, s settings) error {
	return s.onBareCluster(ctx, func(w admissionWorld) error {
		result := spreading{Pods: s.pods, Rate: s.rate, Subsets: map[string]int{}}
		if err := w.measureSpread(ctx, s, &result); err != nil {
			return err
		}
		result.print(os.Stdout)
		return s.store(result)
	})
}

func (w admissionWorld) measureSpread(ctx context.Context, s settings, result *spreading) (err error) {
	owners := map[string]*appsv1.ReplicaSet{}
	for _, namespace := range []string{"without", "with"} {
		if owners[namespace], err = w.owner(ctx, namespace, s.pods); err != nil {
			return err
		}
	}
	ws := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "with", Name: "web"}}
	ws.Spec.TargetReference = &v1beta1.SpreadTargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}
	ws.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "first", MaxReplicas: new(intstr.FromInt32(int32(s.pods / 2)))}, {Name: "rest"}}
	if err := w.Client.Create(ctx, ws); err != nil {
		return err
	}
	if err := w.awaitRest(ctx); err != nil {
		return err
	}
	if result.Without, err = w.createOwned(ctx, s, owners["without"]); err != nil {
		return err
	}
	began := time.Now()
	if result.With, err = w.createOwned(ctx, s, owners["with"]); err != nil {
		return err
	}
	if err := w.awaitRest(ctx); err != nil {
		return err
	}
	requests, err := audit.Read(w.audit, audit.Query{Agent: "kruise-manager", Namespace: "with", From: began})
	if err != nil {
		return err
	}
	result.Requests = requests.Counts
	result.Reads = float64(requests.Reads) / float64(s.pods)
	for request, count := range requests.Counts {
		switch {
		case strings.Contains(request, "workloadspreads/status"):
			result.StatusWrites += float64(count) / float64(s.pods)
		case strings.HasPrefix(request, "patch pods"):
			result.PodWrites += float64(count) / float64(s.pods)
		}
	}
	return w.countSubsets(ctx, result)
}

// owner makes a ReplicaSet that is to have so many Pods, which nobody looks after: there is no controller manager.
func (w admissionWorld) owner(ctx context.Context, namespace string, pods int) (*appsv1.ReplicaSet, error) {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	set.Spec.Replicas = new(int32(pods))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:alpine"}}
	return set, w.Client.Create(ctx, set)
}

// createOwned creates Pods of a ReplicaSet, each when it is due, and returns how long that took.
func (w admissionWorld) createOwned(ctx context.Context, s settings, owner *appsv1.ReplicaSet) (quantiles, error) {
	var running sync.WaitGroup
	took := make([]time.Duration, s.pods)
	problems := make([]error, s.pods)
	began := time.Now()
	for number := range s.pods {
		due := began.Add(time.Duration(float64(number) / s.rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		running.Go(func() {
			p := &corev1.Pod{ObjectMeta: owner.Spec.Template.ObjectMeta}
			p.Namespace, p.GenerateName = owner.Namespace, "web-"
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			p.Spec = *owner.Spec.Template.Spec.DeepCopy()
			problems[number] = w.Client.Create(ctx, p)
			took[number] = time.Since(due)
		})
	}
	running.Wait()
	return quantilesOf(took), errors.Join(problems...)
}

func (w admissionWorld) countSubsets(ctx context.Context, result *spreading) error {
	var list corev1.PodList
	if err := w.Client.List(ctx, &list, client.InNamespace("with")); err != nil {
		return err
	}
	for i := range list.Items {
		m, _ := spread.MatchedOf(&list.Items[i])
		result.Subsets[m.Subset]++
	}
	return nil
}

func (r spreading) print(to io.Writer) {
	fmt.Fprintf(to, "%d Pods, %.0f a second, %s\n\nwithout a WorkloadSpread: p50 %.2f ms, p99 %.2f ms\nwith one: p50 %.2f ms, "+
		"p99 %.2f ms; for each Pod %.3f reads, %.3f writes of its status, %.3f writes to Pods\nsubsets: %v\nrequests: %v\n",
		r.Pods, r.Rate, processor(), r.Without.P50, r.Without.P99, r.With.P50, r.With.P99,
		r.Reads, r.StatusWrites, r.PodWrites, r.Subsets, r.Requests)
}
