// Package takeover starts Kruise on what the original OpenKruise left in a cluster, as recorded on a live one: CloneSets, revisions, claims and
// Pods, at rest and in the middle of an update.
package takeover

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const namespace = "fx"

// world is an API server with recorded objects in it, and no controllers but ours.
type world struct{ *scene.Stage }

func newWorld(t *testing.T, recorded ...string) *world {
	t.Helper()
	w := &world{scene.NewStage(t, cluster.Options{Bare: true})}
	w.Must(w.Client.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	w.Must(w.Client.Create(w.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}}))
	// The first manager installs the CRDs and the webhooks; the recorded objects then come in, while no controller looks at them.
	manager, err := w.StartManager(w.Ctx, cluster.ManagerOptions{Dir: filepath.Join(w.Dir, "installer"), Args: []string{"--namespace", "kruise-nothing"}})
	w.Must(err)
	for _, file := range recorded {
		w.load(file)
	}
	manager.Stop()
	return w
}

// load creates the recorded objects, with the owners' new UIDs and with their status.
func (w *world) load(file string) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	w.Must(err)
	var list struct {
		Items []*unstructured.Unstructured `json:"items"`
	}
	w.Must(json.Unmarshal(text, &list))
	uids := map[types.UID]types.UID{}
	for _, o := range list.Items {
		old := o.GetUID()
		status := o.Object["status"]
		references := o.GetOwnerReferences()
		for i := range references {
			references[i].UID = uids[references[i].UID]
		}
		o.SetOwnerReferences(references)
		o.SetUID("")
		deleted := o.GetDeletionTimestamp() != nil
		if deleted {
			continue
		}
		w.Must(w.Client.Create(w.Ctx, o))
		uids[old] = o.GetUID()
		if status != nil { // the installer, which looks after all that has no namespace, may have written one, too
			w.Must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(o), o); err != nil {
					return err
				}
				o.Object["status"] = status
				return w.Client.Status().Update(w.Ctx, o)
			}))
		}
	}
}

func (w *world) pods() []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	w.Must(w.Client.List(w.Ctx, &list, client.InNamespace(namespace)))
	return list.Items
}

// versions lists every object of a kind as name, UID and resource version.
func (w *world) versions(apiVersion, kind string) map[string]string {
	w.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	w.Must(w.Client.List(w.Ctx, list, client.InNamespace(namespace)))
	out := map[string]string{}
	for i := range list.Items {
		o := &list.Items[i]
		out[o.GetName()] = fmt.Sprintf("%s at version %s", o.GetUID(), o.GetResourceVersion())
	}
	return out
}

func (w *world) unchanged(kind string, before, after map[string]string) {
	w.Helper()
	for name, was := range before {
		if is := after[name]; is != was {
			w.Errorf("%s %s is %q, was %q", kind, name, is, was)
		}
	}
	for name := range after {
		if _, known := before[name]; !known {
			w.Errorf("%s %s is new", kind, name)
		}
	}
}

func TestTakeoverAtRest(t *testing.T) {
	w := newWorld(t, "rest.json", "budget.json")
	kinds := map[string]string{
		"Pod": "v1", "PersistentVolumeClaim": "v1", "ControllerRevision": "apps/v1", "PodUnavailableBudget": "policy.kruise.io/v1beta1",
	}
	before := map[string]map[string]string{}
	for kind, version := range kinds {
		before[kind] = w.versions(version, kind)
	}
	manager, err := w.StartManager(w.Ctx, cluster.ManagerOptions{Dir: filepath.Join(w.Dir, "manager")})
	w.Must(err)
	defer manager.Stop()
	w.awaitNoFailure()
	w.sidecarSetIsAsRecorded()
	time.Sleep(5 * time.Second)
	for kind, version := range kinds {
		w.unchanged(kind, before[kind], w.versions(version, kind))
	}
	if t.Failed() {
		t.Log(manager.Tail(40))
	}
}

// sidecarSetIsAsRecorded checks that we count the Pods as the original did, find all of them up to date, and give the revision the same name.
func (w *world) sidecarSetIsAsRecorded() {
	w.Helper()
	w.Eventually("the SidecarSet counts its Pods", func() error {
		var set v1beta1.SidecarSet
		w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Name: "log-sidecar"}, &set))
		s := set.Status
		if s.MatchedPods != 2 || s.UpdatedPods != 2 || s.ReadyPods != 2 || s.UpdatedReadyPods != 2 || s.LatestRevision != "log-sidecar-54c65669c6" || len(s.Conditions) == 0 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

// awaitNoFailure waits until the manager has looked at every CloneSet: the failures that the original left in their conditions are over then.
func (w *world) awaitNoFailure() {
	w.Helper()
	w.Eventually("no CloneSet has a failure", func() error {
		var sets v1beta1.CloneSetList
		w.Must(w.Client.List(w.Ctx, &sets, client.InNamespace(namespace)))
		for _, set := range sets.Items {
			for _, c := range set.Status.Conditions {
				if c.Status == corev1.ConditionTrue && strings.HasPrefix(string(c.Type), "Failed") {
					return fmt.Errorf("%s: %s: %s", set.Name, c.Type, c.Message)
				}
			}
		}
		return nil
	})
}

func TestTakeoverMidway(t *testing.T) {
	w := newWorld(t, "midway.json")
	revisions := w.versions("apps/v1", "ControllerRevision")
	before := map[string]types.UID{}
	restarts := map[string]int32{}
	for _, p := range w.pods() {
		before[p.Name], restarts[p.Name] = p.UID, pod.MaxRestarts(&p)
	}
	manager, err := w.StartManager(w.Ctx, cluster.ManagerOptions{Dir: filepath.Join(w.Dir, "manager")})
	w.Must(err)
	defer manager.Stop()
	w.gracefulIsUpdated()
	w.unchanged("ControllerRevision", revisions, w.versions("apps/v1", "ControllerRevision"))
	after := w.pods()
	if len(after) != len(before) {
		t.Errorf("%d Pods are there, were %d", len(after), len(before))
	}
	for _, p := range after {
		if p.UID != before[p.Name] || p.DeletionTimestamp != nil {
			t.Errorf("Pod %s is another one, or is being deleted", p.Name)
		}
		if !strings.HasPrefix(p.Name, "graceful-") && pod.MaxRestarts(&p) != restarts[p.Name] {
			t.Errorf("Pod %s was restarted", p.Name)
		}
	}
	if t.Failed() {
		t.Log(manager.Tail(40))
	}
}

// playKubelet does to each Pod what a kubelet would: a changed image becomes another container, and gates become readiness.
func (w *world) playKubelet() {
	w.Helper()
	for _, p := range w.pods() {
		before := p.DeepCopy()
		for i := range p.Status.ContainerStatuses {
			status := &p.Status.ContainerStatuses[i]
			image := pod.Container(&p, status.Name).Image
			if !strings.HasSuffix(status.Image, image) {
				status.Image, status.ImageID = "docker.io/library/"+image, "docker.io/library/nginx@sha256:"+strings.Repeat("0", 64)
				status.RestartCount++
				status.ContainerID += "0"
			}
		}
		p.Status.ObservedGeneration = p.Generation
		ready := corev1.ConditionTrue
		for _, gate := range p.Spec.ReadinessGates {
			if c := pod.Condition(&p, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
				ready = corev1.ConditionFalse
			}
		}
		if c := pod.Condition(&p, corev1.PodReady); c != nil && c.Status != ready {
			pod.SetCondition(&p, corev1.PodCondition{Type: corev1.PodReady, Status: ready}, time.Now())
		}
		// A Pod that changed meanwhile comes again in the next round.
		_ = w.Client.Status().Patch(w.Ctx, &p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
}
