package webhookconfig

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestAManagerServesBeforeObjectsCanBeRead: objects that another installation has stored in v1alpha1 can be read once a manager converts
// them, so no
// manager may wait for them before it serves.
func TestAManagerServesBeforeObjectsCanBeRead(t *testing.T) {
	w := emptyWorld(t, manifests(t))
	w.must(w.client.Create(context.Background(), setOf("logs", "web")))
	w.unconverted = errors.New("conversion webhook failed: connection refused")
	leader := w.manager(0, closed())
	for range 2 {
		for _, part := range Parts() {
			_, err := leader.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: part}})
			if selects := part != crdsPart; selects != (err != nil) {
				t.Errorf("part %s: got error %v", part, err)
			}
		}
		w.now = w.now.Add(2 * time.Second)
	}
	if err := leader.Serving.Check(nil); err != nil {
		t.Fatalf("the manager does not serve: %v", err)
	}
	w.isAsInstalled()
	w.unconverted = nil
	w.reconcile(leader, mutatingPart)
	if got := w.sent(podOf("web"), "default", nil); !slices.Equal(got, []string{"mpod.kb.io"}) {
		t.Errorf("a selected Pod is sent to %v, want mpod.kb.io", got)
	}
}
