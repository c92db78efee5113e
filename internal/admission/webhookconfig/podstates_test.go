package webhookconfig

import (
	"context"
	"fmt"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// TestPodsOfPersistentPodStatesAreSent: just those of their workloads; whoever must not run elsewhere waits for a manager.
func TestPodsOfPersistentPodStatesAreSent(t *testing.T) {
	w := newWorld(t)
	stateOf := func(target string, required bool) *v1beta1.PersistentPodState {
		s := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: target}}
		s.Spec.TargetRef = v1beta1.PersistentPodStateTarget{APIVersion: "apps/v1beta2", Kind: "StatefulSet", Name: target}
		if required {
			s.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{"zone"}}
		}
		return s
	}
	web, db := stateOf("web", true), stateOf("db", false)
	w.must(w.client.Create(context.Background(), web))
	w.must(w.client.Create(context.Background(), db))
	w.lead()
	w.isAsInstalled() // nobody wants that
	w.leader.PodStates = true
	w.lead()
	hook := func(name string) *admissionv1.MutatingWebhook {
		all := w.configuration().Webhooks
		i := slices.IndexFunc(all, func(w admissionv1.MutatingWebhook) bool { return w.Name == name })
		if i < 0 {
			t.Fatalf("there is no webhook %s", name)
		}
		return &all[i]
	}
	bound, preferring := hook(boundWebhook), hook(preferringWebhook)
	if *bound.FailurePolicy != admissionv1.Fail || *preferring.FailurePolicy != admissionv1.Ignore {
		t.Errorf("while no manager is there, %s and %s", *bound.FailurePolicy, *preferring.FailurePolicy)
	}
	for name, tc := range map[string]struct {
		apiVersion, owner, namespace string
		bound, preferring            bool
	}{
		"of one that requires":  {"apps/v1", "web", "shop", true, false},
		"of one that prefers":   {"apps/v1", "db", "shop", false, true},
		"of another workload":   {"apps/v1", "cache", "shop", false, false},
		"of another group":      {"apps.kruise.io/v1beta1", "web", "shop", false, false},
		"of the core group":     {"v1", "web", "shop", false, false},
		"of another namespace":  {"apps/v1", "web", "default", false, false},
		"that nobody controls":  {"", "", "shop", false, false},
		"of the system's names": {"apps/v1", "web", "kube-system", false, false},
	} {
		p := podOf("any")
		if tc.owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: tc.apiVersion, Kind: "StatefulSet", Name: tc.owner, Controller: new(true)}}
		}
		for webhook, want := range map[*admissionv1.MutatingWebhook]bool{bound: tc.bound, preferring: tc.preferring} {
			called, err := dispatch.Read(webhook).Calls(p, tc.namespace, map[string]string{corev1.LabelMetadataName: tc.namespace})
			w.must(err)
			if called != want {
				t.Errorf("a Pod %s is sent to %s: %t", name, webhook.Name, called)
			}
		}
	}
	writes := w.writes
	w.lead()
	if w.writes != writes {
		t.Error("at rest something is written")
	}
	for i := range 400 { // more than can be told one by one
		w.must(w.client.Create(context.Background(), stateOf(fmt.Sprintf("a-stateful-set-with-a-long-name-%d", i), true)))
	}
	w.lead()
	p := podOf("any")
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "a-stateful-set-with-a-long-name-399", Controller: new(true)}}
	called, err := dispatch.Read(hook(boundWebhook)).Calls(p, "shop", map[string]string{corev1.LabelMetadataName: "shop"})
	w.must(err)
	if !called {
		t.Error("one of many is not sent")
	}
}
