package webhookconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWhichFurtherWorkloadsAreSent: those that are named, as users have tuned the webhook for StatefulSets, and none any more once none is.
func TestWhichFurtherWorkloadsAreSent(t *testing.T) {
	tuned := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	all := []admissionv1.MutatingWebhook{{Name: "other.example.com"}, {
		Name: StatefulSetWebhook, ObjectSelector: tuned, Rules: []admissionv1.RuleWithOperations{{Rule: admissionv1.Rule{Resources: []string{"statefulsets"}}}},
	}}
	ranks := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "ranksets"}
	rings := schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "rings"}
	sends := func(webhooks []admissionv1.MutatingWebhook, r schema.GroupVersionResource) bool {
		return SendsWorkloads(&admissionv1.MutatingWebhookConfiguration{Webhooks: webhooks}, r)
	}
	named := WorkloadScope{Resources: []schema.GroupVersionResource{ranks}}.webhooks(all)
	if len(named) != 3 || !sends(named, ranks) || sends(named, rings) || sends(all, ranks) {
		t.Fatalf("webhooks %+v", named)
	}
	if got := named[2]; got.ObjectSelector.MatchLabels["team"] != "a" || len(got.Rules) != 1 || got.Rules[0].Operations[0] != admissionv1.Update {
		t.Errorf("the webhook for further kinds is %+v", got)
	}
	if diff := cmp.Diff(named, WorkloadScope{Resources: []schema.GroupVersionResource{ranks}}.webhooks(named)); diff != "" {
		t.Errorf("the same kinds again (-want +got):\n%s", diff)
	}
	if others := (WorkloadScope{Resources: []schema.GroupVersionResource{rings}}).webhooks(named); sends(others, ranks) || !sends(others, rings) {
		t.Errorf("with another kind the webhooks are %+v", others)
	}
	if diff := cmp.Diff(all, WorkloadScope{}.webhooks(named)); diff != "" {
		t.Errorf("with none (-want +got):\n%s", diff)
	}
}
