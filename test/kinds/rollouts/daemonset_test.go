package rollouts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

const (
	ofDaemonSet     = "apiVersion: apps/v1, kind: DaemonSet"
	nativeDaemonSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:v1"}]}
`
)

// daemonEnv is a namespace with a DaemonSet of Kubernetes on five nodes, and a Rollout of it.
type daemonEnv struct{ *env }

func newDaemonEnv(t *testing.T) *daemonEnv {
	t.Helper()
	return beginDaemons(newEnv(t))
}

func beginDaemons(in *env) *daemonEnv {
	in.Helper()
	e := &daemonEnv{in}
	others := e.Describe
	e.Describe = func() string {
		d := &appsv1.DaemonSet{}
		if err := e.Get(e.Afterwards(), client.ObjectKey{Namespace: e.Namespace, Name: "web"}, d); err != nil {
			return others()
		}
		return fmt.Sprintf("DaemonSet %v %v %+v\n  %+v\n", d.Labels, d.Annotations, d.Spec.UpdateStrategy, d.Status) + others()
	}
	e.startOther(nativeDaemonSet, ofDaemonSet, func() map[string]string { return e.set().Labels })
	return e
}

func (e *daemonEnv) set() *appsv1.DaemonSet {
	e.Helper()
	set := &appsv1.DaemonSet{}
	e.Read("web", set)
	return set
}

func (e *daemonEnv) setImage(version string) {
	e.Helper()
	edit(e.env, "web", &appsv1.DaemonSet{}, func(set *appsv1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = "web:" + version })
}

// uids returns the Pods of a version.
func (e *daemonEnv) uids(version string) []types.UID {
	var out []types.UID
	for _, p := range e.Pods() {
		if p.DeletionTimestamp == nil && strings.HasSuffix(p.Spec.Containers[0].Image, ":"+version) {
			out = append(out, p.UID)
		}
	}
	slices.Sort(out)
	return out
}

// untouched waits until nothing of a release is left on the DaemonSet but the label of its kind, and its strategy is the one of its user.
func (e *daemonEnv) untouched(before *appsv1.DaemonSet) {
	e.Helper()
	e.Eventually("the DaemonSet is as its user wrote it", func() error {
		set := e.set()
		if diff := cmp.Diff(before.Spec.UpdateStrategy, set.Spec.UpdateStrategy); diff != "" {
			return fmt.Errorf("updateStrategy (-want +got):\n%s", diff)
		}
		own := func(all map[string]string) map[string]string {
			out := maps.Clone(all)
			maps.DeleteFunc(out, func(key, _ string) bool {
				return key == appsv1.DeprecatedTemplateGeneration || key == keys.WorkloadType
			})
			return out
		}
		if diff := cmp.Diff(own(before.Annotations), own(set.Annotations), cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("annotations (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(own(before.Labels), own(set.Labels), cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("labels (-want +got):\n%s", diff)
		}
		return nil
	})
}

// TestADaemonSet of Kubernetes is released in steps and rolled back. The Pods of a step stay when the next one goes, and its strategy is the
// user's in the end.
func TestADaemonSet(t *testing.T) {
	e := newDaemonEnv(t)
	before := e.set()
	annotations := func() map[string]string { return e.set().Annotations }
	e.setImage("v2")
	e.paused(1, "v2", 2)
	if set := e.set(); set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType || set.Spec.UpdateStrategy.RollingUpdate == nil {
		t.Errorf("during the release its strategy is %+v", set.Spec.UpdateStrategy)
	}
	if err := e.batches(map[string]int{"1": 2}); err != nil {
		t.Error(err)
	}
	e.Eventually("an event tells of each Pod that was deleted", func() error {
		if reasons := e.Reasons("web"); !slices.Contains(reasons, "PodDeleted") {
			return fmt.Errorf("events %v", reasons)
		}
		return nil
	})
	e.setImage("v1")
	e.ended("v1", corev1.ConditionFalse, annotations)
	e.untouched(before)
	e.setImage("v3")
	e.paused(1, "v3", 2)
	e.setImage("v4")
	e.paused(1, "v4", 2)
	if got := len(e.uids("v3")); got > 2 {
		t.Errorf("%d Pods of the version between", got)
	}
	e.approve()
	e.ended("v4", corev1.ConditionTrue, annotations)
	e.untouched(before)
}

// TestADaemonSetKeepsWhatIsUpdated: a manager that is killed in each state goes on where it was.
func TestADaemonSetKeepsWhatIsUpdated(t *testing.T) {
	e := beginDaemons(newRestartEnv(t))
	e.setImage("v2")
	e.restart()
	e.paused(1, "v2", 2)
	updated := e.uids("v2")
	e.restart()
	e.paused(1, "v2", 2)
	if diff := cmp.Diff(updated, e.uids("v2")); diff != "" {
		t.Errorf("updated Pods were replaced (-want +got):\n%s", diff)
	}
	e.approve()
	e.restart()
	e.ended("v2", corev1.ConditionTrue, func() map[string]string { return e.set().Annotations })
}

// TestADaemonSetBesideAHostileWriter: a tool writes the manifest back all the time. The steps are kept to, and a Rollout that is disabled or
// deleted leaves a DaemonSet that its own controller updates.
func TestADaemonSetBesideAHostileWriter(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*daemonEnv){
		"disabled": func(e *daemonEnv) {
			e.change(func(r *v1beta1.Rollout) { r.Spec.Disabled = true })
			e.Eventually("it is disabled", func() error {
				if phase := e.rollout().Status.Phase; phase != v1beta1.RolloutPhaseDisabled {
					return fmt.Errorf("phase %s", phase)
				}
				return nil
			})
		},
		"deleted": func(e *daemonEnv) {
			e.Must(e.Delete(e.Ctx, e.rollout()))
			e.Eventually("it is gone", func() error {
				err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "demo"}, &v1beta1.Rollout{})
				if !apierrors.IsNotFound(err) {
					return fmt.Errorf("it is there: %w", err)
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newDaemonEnv(t)
			before := e.set()
			replace := func() error {
				o := e.Manifest(strings.ReplaceAll(nativeDaemonSet, "web:v1", "web:v2"))
				o.SetResourceVersion(e.set().ResourceVersion)
				if err := e.Update(e.Ctx, o); err != nil && !apierrors.IsConflict(err) {
					return err
				}
				return nil
			}
			e.setImage("v2")
			e.paused(1, "v2", 2)
			for range 5 {
				e.Must(replace())
			}
			e.Never("a Pod more is updated", func() bool { return e.images()["v2"] > 2 })
			end(e)
			e.Must(replace())
			e.Eventually("its own controller updates it", func() error { return e.ready("v2", 5) })
			e.untouched(before)
		})
	}
}

// TestADaemonSetOfAForcedRollout: somebody removes the finalizer of the Rollout and the BatchRelease, and deletes both. The DaemonSet is not
// left frozen.
func TestADaemonSetOfAForcedRollout(t *testing.T) {
	e := newDaemonEnv(t)
	before := e.set()
	e.setImage("v2")
	e.paused(1, "v2", 2)
	force := func(o client.Object, name string) {
		e.Eventually(name+" is forced away", func() error {
			key := client.ObjectKey{Namespace: e.Namespace, Name: "demo"}
			if err := e.Get(e.Ctx, key, o); err != nil {
				return client.IgnoreNotFound(err)
			}
			if err := e.Delete(e.Ctx, o); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := e.Patch(e.Ctx, o, patch); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			return errors.New("it may be there")
		})
	}
	force(&v1beta1.Rollout{}, "the Rollout")
	force(&v1beta1.BatchRelease{}, "the BatchRelease")
	e.Eventually("its own controller updates it", func() error { return e.ready("v2", 5) })
	e.untouched(before)
}
