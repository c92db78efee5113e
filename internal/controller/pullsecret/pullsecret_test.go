package pullsecret

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

func TestPlan(t *testing.T) {
	made := func(annotations map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "config", Name: "reg-3fa9c1", Annotations: annotations}}
	}
	leftover := made(map[string]string{keys.PullSecretSource: "ns/reg"})
	for name, tc := range map[string]struct {
		in      Snapshot
		deletes bool
		looks   bool
	}{
		"a copy that no daemon reads":             {Snapshot{Copy: leftover}, true, false},
		"one that a daemon may read":              {Snapshot{Copy: leftover, Needed: true}, false, true},
		"a Secret that a user has put there":      {Snapshot{Copy: made(nil)}, false, false},
		"one with annotations of somebody else's": {Snapshot{Copy: made(map[string]string{"a": "b"})}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(tc.in)
			actions := p.Actions()
			deletes := len(actions) == 1 && actions[0].Verb == plan.Delete
			if deletes != tc.deletes || len(actions) > 1 || (p.Recheck > 0) != tc.looks {
				t.Errorf("plan:\n%s", p)
			}
		})
	}
}
