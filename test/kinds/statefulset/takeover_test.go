package statefulset

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestTakeoverWhileTheOtherOneIsBeingDeleted creates ours in the moment in which the StatefulSet of Kubernetes still has its Pods. Their names are
// taken, and so nothing can come beside them; once they are let go of, they are taken over as they are.
func TestTakeoverWhileTheOtherOneIsBeingDeleted(t *testing.T) {
	e := newEnv(t)
	native := e.native()
	e.Must(e.Create(e.Ctx, native))
	e.Eventually("three Pods are ready", func() error {
		e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(native), native))
		if native.Status.ReadyReplicas != 3 {
			return fmt.Errorf("the status is %+v", native.Status)
		}
		return nil
	})
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
