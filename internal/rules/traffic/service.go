package traffic

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CanaryName returns the name of what is created for the new version beside an object of the user.
func CanaryName(stable string) string { return stable + "-canary" }

// Selection says which Pods the Service of the new version selects.
type Selection struct {
	// Label is the revision label of Pods, Hash its value on new ones.
	Label, Hash string
	// Patched are labels that new Pods have and old ones may not: keys of the Service's selector take their values.
	Patched map[string]string
	// Append adds the other keys of Patched to the selector.
	Append bool
}

// CanaryService returns the Service for Pods of the new version: the ports, labels and selector of the user's Service, which is not
// changed, with the revision in the selector. It is of type ClusterIP whatever the user's is: no second load balancer, no ports of nodes,
// and none of the addresses.
func CanaryService(stable *corev1.Service, s Selection) *corev1.Service {
	out := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Name: CanaryName(stable.Name), Namespace: stable.Namespace, Labels: maps.Clone(stable.Labels),
	}}
	out.Spec.Type = corev1.ServiceTypeClusterIP
	out.Spec.Selector = maps.Clone(stable.Spec.Selector)
	if out.Spec.Selector == nil {
		out.Spec.Selector = map[string]string{}
	}
	for key, value := range s.Patched {
		if _, selects := out.Spec.Selector[key]; selects || s.Append {
			out.Spec.Selector[key] = value
		}
	}
	out.Spec.Selector[s.Label] = s.Hash // in the place of that of a pinned Service
	for i := range stable.Spec.Ports {
		port := stable.Spec.Ports[i]
		port.NodePort = 0
		out.Spec.Ports = append(out.Spec.Ports, port)
	}
	return out
}
