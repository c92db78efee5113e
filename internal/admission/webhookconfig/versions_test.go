package webhookconfig

import (
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// TestManagersOfTwoVersionsDoNotUndoEachOthersWork: the leader is of the version before, or has a gate off that the next manager has on. It
// removes a webhook that it does not serve. The next manager must not wait for that webhook to be ready: a Deployment ends the leader only
// then.
func TestManagersOfTwoVersionsDoNotUndoEachOthersWork(t *testing.T) {
	w := newWorld(t)
	const path, webhook = "/mutate-apps-kruise-io-cloneset", "mcloneset.kb.io"
	has := func() bool {
		return slices.ContainsFunc(w.configuration().Webhooks, func(h admissionv1.MutatingWebhook) bool { return h.Name == webhook })
	}
	if !has() {
		t.Fatalf("the manifest has no webhook %s", webhook)
	}
	w.leader.Serves = func(asked string) bool { return asked != path }
	elected := make(chan struct{})
	next := w.manager(0, elected)
	for range 5 {
		for _, m := range []*Reconciler{w.leader, next} {
			w.reconcile(m, allParts)
			w.now = w.now.Add(500 * time.Millisecond)
		}
	}
	if err := next.Serving.Check(nil); err != nil {
		t.Errorf("the next manager is not ready: %v", err)
	}
	writes := w.writes
	w.reconcile(w.leader, allParts)
	w.reconcile(next, allParts)
	if w.writes != writes {
		t.Errorf("there are %d more writes, although nothing has changed", w.writes-writes)
	}
	close(elected)
	w.reconcile(next, allParts)
	if !has() {
		t.Error("the webhook is not there, although the manager that serves it leads")
	}
	if err := next.Serving.Check(nil); err != nil {
		t.Errorf("the next manager is no longer ready: %v", err)
	}
}
