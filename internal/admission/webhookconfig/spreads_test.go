package webhookconfig

import (
	"context"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// spreadHook returns the webhook for Pods of workloads with a WorkloadSpread; nil if there is none.
func (w *world) spreadHook() *admissionv1.MutatingWebhook {
	w.t.Helper()
	all := w.configuration().Webhooks
	i := slices.IndexFunc(all, func(w admissionv1.MutatingWebhook) bool { return w.Name == spreadWebhook })
	if i < 0 {
		return nil
	}
	return &all[i]
}

func spreadOf(kind, name string) *v1beta1.WorkloadSpread {
	s := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-of-ws"}}
	s.Spec.TargetReference = &v1beta1.SpreadTargetReference{APIVersion: "apps/v1", Kind: kind, Name: "web"}
	return s
}

// isSent reports whether a Pod of an owner is sent.
func (w *world) isSent(kind, owner, namespace string) bool {
	w.t.Helper()
	hook := w.spreadHook()
	if hook == nil {
		return false
	}
	p := podOf("game")
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner, UID: "u", Controller: new(true)}}
	}
	called, err := dispatch.Read(hook).Calls(p, namespace, map[string]string{corev1.LabelMetadataName: namespace})
	w.must(err)
	return called
}

// TestPodsOfSpreadWorkloadsAreSent: exactly those whose controller may belong to the workload, and none has to wait for a manager.
func TestPodsOfSpreadWorkloadsAreSent(t *testing.T) {
	w := newWorld(t)
	s := spreadOf("Deployment", "web")
	w.must(w.client.Create(context.Background(), s))
	w.lead()
	if w.spreadHook() != nil {
		t.Fatal("Pods are sent though nobody wants that")
	}
	w.leader.Spreads = true
	w.lead()
	if hook := w.spreadHook(); hook == nil || hook.FailurePolicy == nil || *hook.FailurePolicy != admissionv1.Ignore {
		t.Fatalf("the webhook is %+v", hook)
	}
	for name, tc := range map[string]struct {
		kind, owner, namespace string
		want                   bool
	}{
		"of the Deployment":       {"ReplicaSet", "web-5d4f", "shop", true},
		"of another Deployment":   {"ReplicaSet", "db-5d4f", "shop", false},
		"of another kind":         {"StatefulSet", "web-5d4f", "shop", false},
		"of another namespace":    {"ReplicaSet", "web-5d4f", "default", false},
		"of nobody":               {"", "", "shop", false},
		"of a system's namespace": {"ReplicaSet", "web-5d4f", "kube-system", false},
	} {
		if got := w.isSent(tc.kind, tc.owner, tc.namespace); got != tc.want {
			t.Errorf("a Pod %s is sent: %t", name, got)
		}
	}
	writes := w.writes
	w.lead()
	if w.writes != writes {
		t.Error("at rest something is written")
	}
	w.must(w.client.Delete(context.Background(), s))
	w.lead()
	w.isAsInstalled()
}

// TestTheWebhookIsThereBeforeTheWorkloadSpread: what is admitted is sent before it is stored, and no longer if it never is.
func TestTheWebhookIsThereBeforeTheWorkloadSpread(t *testing.T) {
	w := newWorld(t)
	w.leader.Spreads = true
	w.lead()
	s := spreadOf("CloneSet", "web")
	s.Spec.TargetReference.APIVersion = "apps.kruise.io/v1alpha1"
	w.must(w.leader.AdmitSpread(context.Background(), nil, s))
	if !w.isSent("CloneSet", "web", "shop") {
		t.Error("its Pods are not sent when it is about to be stored")
	}
	if w.configuration().Annotations[keys.SpreadScopePending] == "" {
		t.Error("nothing tells that it is pending")
	}
	w.lead()
	if !w.isSent("CloneSet", "web", "shop") {
		t.Error("the leader has taken it away before it was stored")
	}
	writes := w.writes
	w.must(w.leader.AdmitSpread(context.Background(), s, s))
	if w.writes != writes {
		t.Error("an update, which changes no workload, writes something")
	}
	w.now = w.now.Add(requestTimeout + time.Second)
	w.lead()
	w.isAsInstalled()
}

// TestASpreadIsAwaited has a Pod wait for a WorkloadSpread that is stored and not in the cache yet.
func TestASpreadIsAwaited(t *testing.T) {
	w := newWorld(t)
	s := spreadOf("CloneSet", "web")
	w.must(w.client.Create(context.Background(), s))
	p := pendingSpread{Namespace: "shop", Name: "web", UID: s.UID, Target: s.Spec.TargetReference}
	cached := newWorld(t).client
	o := AwaitOptions{Cached: cached, Live: w.client}
	done := make(chan error, 1)
	go func() { done <- o.awaitSpread(context.Background(), p) }()
	select {
	case err := <-done:
		t.Fatalf("the Pod does not wait: %v", err)
	case <-time.After(20 * awaitInterval):
	}
	w.must(cached.Create(context.Background(), spreadOf("CloneSet", "web")))
	if err := <-done; err != nil {
		t.Errorf("the Pod fails: %v", err)
	}
	p.UID = "of another one"
	if err := o.awaitSpread(context.Background(), p); err != nil {
		t.Errorf("a Pod waits for one that is not stored: %v", err)
	}
}
