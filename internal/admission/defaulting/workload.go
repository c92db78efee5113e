package defaulting

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// CloneSet returns the handler that fills in the defaults of CloneSets of both versions.
func CloneSet(o defaults.Options) admission.Handler {
	return kind[v1beta1.CloneSet, *v1beta1.CloneSet]{
		hub: v1beta1.GroupVersion,
		fill: func(_ context.Context, set, old *v1beta1.CloneSet) error {
			defaults.CloneSet(set, old, o)
			return nil
		},
	}.handler()
}

// DaemonSet returns the handler that fills in the defaults of DaemonSets of both versions.
func DaemonSet() admission.Handler {
	return kind[v1beta1.DaemonSet, *v1beta1.DaemonSet]{
		hub: v1beta1.GroupVersion,
		fill: func(_ context.Context, set, _ *v1beta1.DaemonSet) error {
			defaults.DaemonSet(set)
			return nil
		},
		older: surging,
	}.handler()
}

// surging spells out for the type Surging, which the hub version does not have, that no node may be without a Pod.
func surging(set, _ *unstructured.Unstructured) error {
	path := []string{"spec", "updateStrategy", "rollingUpdate"}
	rolling, _, err := unstructured.NestedMap(set.Object, path...)
	if err != nil || rolling["rollingUpdateType"] != string(v1alpha1.DeprecatedSurgingRollingUpdateType) || rolling["maxUnavailable"] != nil {
		return nil // what can't be read is reported later
	}
	return unstructured.SetNestedField(set.Object, int64(0), append(path, "maxUnavailable")...)
}
