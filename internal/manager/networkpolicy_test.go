package manager

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestTheNetworkPolicyOpensTheWebhooksAlone: the shipped NetworkPolicy selects the Pods of the shipped Deployment, of which everything but
// the port of the webhooks is closed to other Pods.
func TestTheNetworkPolicyOpensTheWebhooksAlone(t *testing.T) {
	for _, dir := range []string{"manager", "rollouts/manager"} {
		t.Run(dir, func(t *testing.T) {
			var deployment appsv1.Deployment
			var policy networkingv1.NetworkPolicy
			decodeShipped(t, filepath.Join("..", "..", "config", dir, "manager.yaml"), map[string]any{
				"Deployment": &deployment, "NetworkPolicy": &policy,
			})
			if policy.Namespace != deployment.Namespace || policy.Namespace == "" {
				t.Errorf("the policy is in namespace %q, the Deployment in %q", policy.Namespace, deployment.Namespace)
			}
			selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
			if err != nil {
				t.Fatal(err)
			}
			if selector.Empty() || !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
				t.Errorf("the policy selects %q, the Pods have %v", selector, deployment.Spec.Template.Labels)
			}
			if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
				t.Errorf("the policy is for %v, want Ingress: managers ask API servers", policy.Spec.PolicyTypes)
			}
			if len(policy.Spec.Ingress) != 1 || len(policy.Spec.Ingress[0].Ports) != 1 {
				t.Fatalf("the policy lets %+v in, want one port", policy.Spec.Ingress)
			}
			open := policy.Spec.Ingress[0].Ports[0]
			if open.Port == nil || open.Port.StrVal != "webhook" || open.EndPort != nil || *open.Protocol != corev1.ProtocolTCP {
				t.Errorf("the policy opens %+v, want the port of the webhooks", open)
			}
			ports := deployment.Spec.Template.Spec.Containers[0].Ports
			if !slices.ContainsFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == "webhook" }) {
				t.Errorf("the container has the ports %+v: none is named as the policy does", ports)
			}
		})
	}
}

// decodeShipped decodes the objects of a manifest that are wanted, by their kind.
func decodeShipped(t *testing.T, path string, wanted map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	found := 0
	for {
		var document map[string]any
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kind, _ := document["kind"].(string)
		into, ok := wanted[kind]
		if !ok {
			continue
		}
		found++
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(document, into, true); err != nil {
			t.Fatal(err)
		}
	}
	if found != len(wanted) {
		t.Fatalf("%s has %d of %d objects that are wanted", path, found, len(wanted))
	}
}
