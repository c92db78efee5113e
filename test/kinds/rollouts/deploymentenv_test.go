package rollouts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const ofDeployment = "apiVersion: apps/v1, kind: Deployment"

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: %s, maxUnavailable: %s}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {sim.kruise.io/ready-delay: 300ms}}
    spec: {containers: [{name: main, image: "web:v1"}]}
`

// held is a ReplicaSet that is held at its size.
const held = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: held, annotations: {rollouts.kruise.io/held-replicas: "%[1]d"}}
spec:
  replicas: %[1]d
  selector: {matchLabels: {app: held}}
  template: {metadata: {labels: {app: held}}, spec: {containers: [{name: main, image: "web:v1"}]}}
`

// deploymentEnv is a namespace with a Deployment, and a Rollout of it.
type deploymentEnv struct {
	*env
	// applied is the manifest of the Deployment.
	applied string
}

// newDeploymentEnv makes both, and returns when they are at rest. Without steps there is no Rollout.
func newDeploymentEnv(t *testing.T, replicas int32, budget [2]string, steps string) *deploymentEnv {
	t.Helper()
	e := &deploymentEnv{env: newEnv(t)}
	e.begin(replicas, budget, steps)
	return e
}

func (e *deploymentEnv) begin(replicas int32, budget [2]string, steps string) {
	e.Helper()
	rollout := ""
	if steps != "" {
		rollout = rolloutOf(ofDeployment, steps)
	}
	e.beginWith(replicas, budget, rollout)
}

// beginWith makes a Deployment and, unless it is empty, a Rollout.
func (e *deploymentEnv) beginWith(replicas int32, budget [2]string, rollout string) {
	e.Helper()
	others := e.Describe
	e.Describe = func() string { return e.describe() + others() }
	e.holds()
	e.applied = fmt.Sprintf(deployment, replicas, budget[0], budget[1])
	e.Make(e.applied)
	if rollout != "" {
		e.Make(rollout)
	}
	e.Eventually("the Deployment has its Pods, and its Rollout is healthy", func() error {
		d := e.deployment()
		if d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != replicas {
			return fmt.Errorf("status %+v", d.Status)
		}
		if rollout == "" {
			return nil
		}
		if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseHealthy || releaseOf(r) == nil || d.Labels[keys.WorkloadType] == "" {
			return fmt.Errorf("phase %s, labels %v", r.Status.Phase, d.Labels)
		}
		return nil
	})
}

// holds waits until the API server goes by the policy for ReplicaSets that are held.
func (e *env) holds() {
	e.Helper()
	probe := e.Manifest(fmt.Sprintf(held, 0))
	e.Must(e.Create(e.Ctx, probe))
	e.Eventually("the API server keeps held ReplicaSets as they are", func() error {
		err := e.Patch(e.Ctx, probe.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`)), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("it is scaled: %w", err)
		}
		return nil
	})
	e.Must(e.Delete(e.Ctx, probe))
}

func (e *deploymentEnv) describe() string {
	ctx := context.WithoutCancel(e.Ctx)
	var out strings.Builder
	d := &appsv1.Deployment{}
	if err := e.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: "web"}, d); err == nil {
		fmt.Fprintf(&out, "Deployment generation %d paused=%v %+v labels %v\n  %v\n  %+v\n",
			d.Generation, d.Spec.Paused, d.Spec.Strategy, d.Labels, d.Annotations, d.Status)
	}
	var list appsv1.ReplicaSetList
	if err := e.List(ctx, &list, client.InNamespace(e.Namespace)); err == nil {
		for i := range list.Items {
			rs := &list.Items[i]
			fmt.Fprintf(&out, "ReplicaSet %s replicas %d %s %v\n  %+v\n",
				rs.Name, *rs.Spec.Replicas, rs.Spec.Template.Spec.Containers[0].Image, rs.Annotations, rs.Status)
		}
	}
	return out.String()
}

func (e *deploymentEnv) deployment() *appsv1.Deployment {
	e.Helper()
	d := &appsv1.Deployment{}
	e.Read("web", d)
	return d
}

func (e *deploymentEnv) setImage(version string) {
	e.Helper()
	edit(e.env, "web", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:" + version })
}

// sets returns the ReplicaSets of the Deployment.
func (e *deploymentEnv) sets() []*appsv1.ReplicaSet {
	e.Helper()
	d := e.deployment()
	var list appsv1.ReplicaSetList
	e.Must(e.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
	var out []*appsv1.ReplicaSet
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], d) {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

// over waits until a release has ended, in success or not, with all Pods of a version, and with nothing left on any object.
func (e *deploymentEnv) over(version string, pods int32, succeeded corev1.ConditionStatus) {
	e.Helper()
	e.Eventually("the release is over with Pods of "+version, func() error {
		r := e.rollout()
		c := condition(r, v1beta1.ConditionSucceeded)
		if r.Status.Phase != v1beta1.RolloutPhaseHealthy || c == nil || c.Status != succeeded {
			return fmt.Errorf("phase %s, Succeeded %+v", r.Status.Phase, c)
		}
		return e.complete(version, pods)
	})
	e.clean()
}

// clean waits until a release has left nothing on the Deployment, its ReplicaSets, and of BatchReleases.
func (e *deploymentEnv) clean() {
	e.Helper()
	e.Eventually("nothing of the release is left", func() (err error) {
		objects := []client.Object{e.deployment()}
		for _, rs := range e.sets() {
			objects = append(objects, rs)
		}
		for _, o := range objects {
			for key := range o.GetAnnotations() {
				if strings.Contains(key, "rollouts.kruise.io/") {
					err = errors.Join(err, fmt.Errorf("%s has annotation %s", o.GetName(), key))
				}
			}
			for key := range o.GetLabels() {
				if strings.HasPrefix(key, "rollouts.kruise.io/") && key != keys.WorkloadType {
					err = errors.Join(err, fmt.Errorf("%s has label %s", o.GetName(), key))
				}
			}
		}
		var batches v1beta1.BatchReleaseList
		e.Must(e.List(e.Ctx, &batches, client.InNamespace(e.Namespace)))
		if len(batches.Items) > 0 {
			err = errors.Join(err, fmt.Errorf("BatchReleases %+v", batches.Items))
		}
		return err
	})
}

// watcher checks every change of ReplicaSets and of Pods, each in the order in which the API server made them.
type watcher struct {
	sync.Mutex
	env  *deploymentEnv
	sets map[string]*appsv1.ReplicaSet
	pods map[string]*corev1.Pod
	// most are the Pods that there may be, least those that have to be available; updated how many may have the image.
	most, least, updated int32
	image                string
	broken               []string
	stops                []func() error
}

// watch has a Deployment held against its budget from now on, and lets so many Pods be of a version.
func (e *deploymentEnv) watch(version string, updated int32) *watcher {
	e.Helper()
	d := e.deployment()
	limits, err := replicasets.LimitsOf(&d.Spec, ptr.To(intstr.FromInt32(0)))
	e.Must(err)
	w := &watcher{
		env: e, sets: map[string]*appsv1.ReplicaSet{}, pods: map[string]*corev1.Pod{}, image: "web:" + version, updated: updated,
		most: limits.Replicas + limits.Surge, least: limits.Replicas - limits.Unavailable,
	}
	for list, hear := range map[client.ObjectList]func(watch.Event){&appsv1.ReplicaSetList{}: w.hearSet, &corev1.PodList{}: w.hearPod} {
		stop, err := e.Follow(e.Ctx, list, e.Namespace, hear)
		e.Must(err)
		w.stops = append(w.stops, stop)
	}
	e.Cleanup(func() { _ = w.stop() })
	return w
}

// allow lets so many Pods be updated.
func (w *watcher) allow(updated int32) {
	w.Lock()
	defer w.Unlock()
	w.updated = updated
}

func (w *watcher) hearSet(event watch.Event) {
	rs, is := event.Object.(*appsv1.ReplicaSet)
	if !is {
		return
	}
	w.Lock()
	defer w.Unlock()
	delete(w.sets, rs.Name)
	if event.Type != watch.Deleted {
		w.sets[rs.Name] = rs
	}
	total := int32(0)
	for _, other := range w.sets {
		total += *other.Spec.Replicas
	}
	if total > w.most {
		w.broken = append(w.broken, fmt.Sprintf("%d replicas, and there may be %d, since %s was written", total, w.most, rs.Name))
	}
	if rs.Spec.Template.Spec.Containers[0].Image == w.image && *rs.Spec.Replicas > w.updated {
		w.broken = append(w.broken, fmt.Sprintf("%d Pods are to be updated, and %d may be", *rs.Spec.Replicas, w.updated))
	}
}

func (w *watcher) hearPod(event watch.Event) {
	p, is := event.Object.(*corev1.Pod)
	if !is {
		return
	}
	w.Lock()
	defer w.Unlock()
	before := w.available()
	delete(w.pods, p.Name)
	if event.Type != watch.Deleted {
		w.pods[p.Name] = p
	}
	if now := w.available(); now < before && now < w.least {
		w.broken = append(w.broken, fmt.Sprintf("%d Pods are available without %s, and %d have to be", now, p.Name, w.least))
	}
}

func (w *watcher) available() (n int32) {
	for _, p := range w.pods {
		if p.DeletionTimestamp == nil && scene.IsReady(p) {
			n++
		}
	}
	return n
}

// verdict stops watching, and fails the test for what was seen.
func (w *watcher) verdict() {
	w.env.Helper()
	w.env.Must(w.stop())
	for _, text := range w.broken {
		w.env.Error(text)
	}
}

func (w *watcher) stop() (err error) {
	for _, stop := range w.stops {
		err = errors.Join(err, stop())
	}
	w.stops = nil
	return err
}
