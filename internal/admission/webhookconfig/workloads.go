package webhookconfig

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// StatefulSetWebhook is the name of the webhook of the manifest for StatefulSets that Rollouts release.
	StatefulSetWebhook = "mstatefulset.rollouts.kb.io"
	// workloadWebhook is the name of the webhook for workloads of kinds that are only like a StatefulSet.
	workloadWebhook = "mworkload.rollouts.kb.io"
)

// WorkloadScope says which further kinds of workloads are sent: never all kinds, but those that Rollouts name.
type WorkloadScope struct {
	// Resources are sorted.
	Resources []schema.GroupVersionResource
}

// webhooks returns all webhooks, with that for further kinds made anew, at the end, if there are any. It copies what users set in the
// webhook for StatefulSets.
func (s WorkloadScope) webhooks(all []admissionv1.MutatingWebhook) []admissionv1.MutatingWebhook {
	out := slices.DeleteFunc(slices.Clone(all), func(w admissionv1.MutatingWebhook) bool { return w.Name == workloadWebhook })
	i := slices.IndexFunc(out, func(w admissionv1.MutatingWebhook) bool { return w.Name == StatefulSetWebhook })
	if i < 0 || len(s.Resources) == 0 {
		return out
	}
	added := *out[i].DeepCopy()
	added.Name, added.Rules = workloadWebhook, nil
	for _, r := range s.Resources {
		added.Rules = append(added.Rules, admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule: admissionv1.Rule{
				APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Resources: []string{r.Resource},
				Scope: new(admissionv1.NamespacedScope),
			},
		})
	}
	return append(out, added)
}

// SendsWorkloads reports whether a configuration sends the managers updates of a resource because a Rollout names its kind.
func SendsWorkloads(c *admissionv1.MutatingWebhookConfiguration, r schema.GroupVersionResource) bool {
	for _, w := range c.Webhooks {
		for _, rule := range w.Rules {
			if w.Name == workloadWebhook && slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.APIVersions, r.Version) &&
				slices.Contains(rule.Resources, r.Resource) {
				return true
			}
		}
	}
	return false
}
