// Package fleet rolls many CloneSets out at the same time, and judges every version of every Pod and every request of the manager.
package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const (
	namespace = "fleet"
	// replicas of each, and how many of them may be unavailable: maxUnavailable 20%.
	replicas, maxUnavailable = 20, 4
)

// fleet is a cluster with many CloneSets.
type fleet struct {
	// sets is the number of CloneSets, one half of which is updated in place and the other one recreated, and pods that of their Pods.
	sets, pods int
	*scene.Stage
}

// TestManyCloneSetsRollOutAtTheSameTime has KRUISE_CLONESETS of them: 100 take minutes on two cores.
func TestManyCloneSetsRollOutAtTheSameTime(t *testing.T) {
	sets := cloneSets(t)
	f := &fleet{sets: sets, pods: sets * replicas, Stage: scene.NewStage(t, cluster.Options{Nodes: 20})}
	manager, err := f.StartManager(f.Ctx, cluster.ManagerOptions{Dir: filepath.Join(f.Dir, "manager")})
	f.Must(err)
	defer manager.Stop()
	f.Must(f.Client.Create(f.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	f.probesReady()
	h := f.record()
	defer h.stop()

	began := time.Now()
	f.each(func(name string) error { return f.Client.Create(f.Ctx, cloneSet(name)) })
	f.settled()
	created := f.asked(began)
	t.Logf("created after %s: %v", time.Since(began).Round(time.Second), created.Counts)
	f.exactly(created, "create pods", f.pods)
	f.exactly(created, "delete pods", 0)
	f.atMost("writes of Pods while they are created", created.PodWrites, 2*f.pods)

	h.expectRollout()
	began = time.Now()
	f.each(f.rollOut)
	f.settled()
	updated := f.asked(began)
	t.Logf("rolled out after %s: %v", time.Since(began).Round(time.Second), updated.Counts)
	f.exactly(updated, "create pods", f.pods/2)
	f.exactly(updated, "delete pods", f.pods/2)
	f.atMost("writes of Pods while they are updated", updated.PodWrites, 3*f.pods)
	h.judge()
}

// probesReady waits until every node has its NodePodProbe. The first pass over a node that was there before the manager reads around the
// cache if that is late: once for each node, whatever the number of Pods, and so no part of what is counted.
func (f *fleet) probesReady() {
	f.Helper()
	f.Eventually("every node has a NodePodProbe", func() error {
		var nodes corev1.NodeList
		f.Must(f.Client.List(f.Ctx, &nodes))
		var list v1alpha1.NodePodProbeList
		f.Must(f.Client.List(f.Ctx, &list))
		if len(nodes.Items) == 0 || len(list.Items) != len(nodes.Items) {
			return fmt.Errorf("there are %d of %d", len(list.Items), len(nodes.Items))
		}
		return nil
	})
}

// cloneSets returns the number of CloneSets, an even one.
func cloneSets(t *testing.T) int {
	t.Helper()
	text := os.Getenv("KRUISE_CLONESETS")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || n%2 != 0 {
		t.Fatalf("KRUISE_CLONESETS is %q, want an even number", text)
	}
	return n
}

// each does something for every CloneSet, many at a time.
func (f *fleet) each(do func(name string) error) {
	f.Helper()
	var running sync.WaitGroup
	slots := make(chan struct{}, 20)
	for i := range f.sets {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if err := do(nameOf(i)); err != nil {
				f.Error(err)
			}
		})
	}
	running.Wait()
	if f.Failed() {
		f.FailNow()
	}
}

// nameOf names the CloneSets after what an update does to them.
func nameOf(i int) string {
	way := "recreated"
	if i%2 == 0 {
		way = "in-place"
	}
	return fmt.Sprintf("%s-%02d", way, i)
}

func isInPlace(name string) bool { return strings.HasPrefix(name, "in-place") }

func cloneSet(name string) *v1beta1.CloneSet {
	labels := map[string]string{"app": name}
	n := int32(replicas)
	strategy := &v1beta1.RollingUpdateCloneSetStrategy{}
	if isInPlace(name) {
		strategy.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
	}
	return &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1beta1.CloneSetSpec{
			CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{
				Replicas: &n,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:alpine"}}},
				},
			},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{RollingUpdate: strategy},
		},
	}
}

func (f *fleet) rollOut(name string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var set v1beta1.CloneSet
		if err := f.Client.Get(f.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, &set); err != nil {
			return err
		}
		set.Spec.Template.Spec.Containers[0].Image = "nginx:mainline"
		return f.Client.Update(f.Ctx, &set)
	})
}

// settled waits until all Pods of all CloneSets are updated and available.
func (f *fleet) settled() {
	f.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		var list v1beta1.CloneSetList
		f.Must(f.Client.List(f.Ctx, &list, client.InNamespace(namespace)))
		done := 0
		for i := range list.Items {
			set, status := &list.Items[i], list.Items[i].Status
			if status.ObservedGeneration == set.Generation && status.Replicas == replicas && status.UpdatedAvailableReplicas == replicas {
				done++
			}
		}
		if done == f.sets {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("%d of %d CloneSets have settled", done, f.sets)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// asked returns the manager's requests in the namespace since a time.
func (f *fleet) asked(since time.Time) audit.Requests {
	f.Helper()
	requests, err := audit.Read(f.AuditLog(), audit.Query{Agent: "kruise-manager", Namespace: namespace, From: since})
	f.Must(err)
	f.atMost("reads by name or list: the watches tell all", requests.Reads, f.sets/10)
	f.atMost("conflicts", requests.Conflicts, f.pods/100)
	return requests
}

// exactly checks the number of requests of a kind, whatever their answers.
func (f *fleet) exactly(r audit.Requests, kind string, want int) {
	f.Helper()
	got := 0
	for key, count := range r.Counts {
		if strings.HasPrefix(key, kind+" ") {
			got += count
		}
	}
	if got != want {
		f.Errorf("there were %d requests %q, want %d", got, kind, want)
	}
}

// atMost checks a number of requests; one in a hundred may have to be repeated.
func (f *fleet) atMost(what string, got, most int) {
	f.Helper()
	if got > most+f.pods/100 {
		f.Errorf("there were %d %s, want %d at most", got, what, most)
	}
}
