package statefulset

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestTakeoverWhileTheOtherOneIsBeingDeleted creates ours in the moment in which the StatefulSet of Kubernetes still has its Pods. Their names are
// taken, and so nothing can come beside them; once they are let go of, they are taken over as they are.
func TestTakeoverWhileTheOtherOneIsBeingDeleted(t *testing.T) {
	e := newEnv(t)
	native := e.nativeReady()
	before := e.identities()
	e.Must(e.Delete(e.Ctx, native, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	e.create(claims("data"))
	e.settled(at("1.27", 0, 1, 2)...)
	if after := e.identities(); after != before {
		t.Errorf("Pods, claims and revisions were\n%s\nand are\n%s", before, after)
	}
	e.Eventually("what stood in the way is over", func() error {
		for _, c := range e.set().Status.Conditions {
			if c.Type != v1beta1.StatefulSetConditionProgressing && c.Status != corev1.ConditionFalse {
				return fmt.Errorf("condition %s is %s: %s", c.Type, c.Status, c.Message)
			}
		}
		return nil
	})
}

// TestTakeoverWhileTheRevisionIsStillTheOthers has the Pods let go of before their revision, as the garbage collector may: no Pod is replaced,
// although a revision of another name is made.
func TestTakeoverWhileTheRevisionIsStillTheOthers(t *testing.T) {
	e := newEnv(t)
	native := e.nativeReady()
	rev := &appsv1.ControllerRevision{}
	e.Must(e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: native.Status.UpdateRevision}, rev))
	e.Must(e.Delete(e.Ctx, native, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	e.Eventually("the revision and the Pods are let go of", func() error {
		e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(rev), rev))
		owned := metav1.GetControllerOf(rev) != nil
		for _, p := range e.allPods() {
			owned = owned || metav1.GetControllerOf(&p) != nil
		}
		if owned {
			return errors.New("they are not")
		}
		return nil
	})
	pods := func() (out []string) {
		for _, p := range e.allPods() {
			out = append(out, fmt.Sprintf("%s %s %d", p.Name, p.UID, p.Status.ContainerStatuses[0].RestartCount))
		}
		return out
	}
	before := pods()

	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: e.Namespace}}
	e.Must(e.Create(e.Ctx, other))
	held := rev.DeepCopy()
	held.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: other.Name, UID: other.UID, Controller: ptr.To(true)}}
	e.Must(e.Patch(e.Ctx, held, client.MergeFrom(rev)))
	e.create(claims("data"), func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent // as the other one has it
	})
	e.settled(at("1.27", 0, 1, 2)...)
	if after := pods(); !slices.Equal(after, before) {
		t.Errorf("Pods were\n%s\nand are\n%s", before, after)
	}
	e.Must(e.Patch(e.Ctx, rev.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))))
	e.edit(func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Annotations = map[string]string{"example.com/after": "the takeover"}
	})
	e.settled(at("1.27", 0, 1, 2)...)
}

// nativeReady returns a StatefulSet of Kubernetes whose three Pods are ready.
func (e *env) nativeReady() *appsv1.StatefulSet {
	e.Helper()
	native := e.native()
	e.Must(e.Create(e.Ctx, native))
	e.Eventually("three Pods are ready", func() error {
		e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(native), native))
		if native.Status.ReadyReplicas != 3 {
			return fmt.Errorf("the status is %+v", native.Status)
		}
		return nil
	})
	return native
}
