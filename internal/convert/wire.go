package convert

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1alpha1 "github.com/seed-69ecc383/kruise/api/policy/v1alpha1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// pair is a kind with two versions.
type pair struct {
	hub, spoke schema.GroupVersionKind
	// differ are the fields of spec that the versions spell differently. All others are carried over as they came and never decoded.
	differ []string
	// differInStatus are the fields of status that do.
	differInStatus []string
	toHub, fromHub conversion
}

// conversion turns decoded JSON of one version into that of the other.
type conversion func(src map[string]any) (map[string]any, error)

func pairs() []pair { return append(apps(), policy()...) }

// policy are the kinds of the group policy.kruise.io.
func policy() []pair {
	return []pair{{
		hub:     policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget"),
		spoke:   policyv1alpha1.GroupVersion.WithKind("PodUnavailableBudget"),
		differ:  []string{"protectOperations", "protectTotalReplicas", "ignoredPodSelector"},
		toHub:   typed(PodUnavailableBudgetToHub),
		fromHub: typed(PodUnavailableBudgetFromHub),
	}}
}

// apps are the kinds of the group apps.kruise.io.
func apps() []pair {
	return []pair{{
		hub:     v1beta1.GroupVersion.WithKind("AdvancedCronJob"),
		spoke:   v1alpha1.GroupVersion.WithKind("AdvancedCronJob"),
		differ:  []string{"template"},
		toHub:   advancedCronJobToHub,
		fromHub: advancedCronJobFromHub,
	}, {
		hub:     v1beta1.GroupVersion.WithKind("BroadcastJob"),
		spoke:   v1alpha1.GroupVersion.WithKind("BroadcastJob"),
		toHub:   typed(BroadcastJobToHub),
		fromHub: typed(BroadcastJobFromHub),
	}, {
		hub:            v1beta1.GroupVersion.WithKind("ContainerRecreateRequest"),
		spoke:          v1alpha1.GroupVersion.WithKind("ContainerRecreateRequest"),
		differInStatus: []string{"conditions", "containerStatusSnapshot"},
		toHub:          typed(recreateToHub),
		fromHub:        typed(recreateFromHub),
	}, {
		hub:     v1beta1.GroupVersion.WithKind("CloneSet"),
		spoke:   v1alpha1.GroupVersion.WithKind("CloneSet"),
		differ:  []string{"scaleStrategy", "updateStrategy"},
		toHub:   typed(CloneSetToHub),
		fromHub: typed(CloneSetFromHub),
	}, {
		hub:            v1beta1.GroupVersion.WithKind("DaemonSet"),
		spoke:          v1alpha1.GroupVersion.WithKind("DaemonSet"),
		differ:         []string{"scaleStrategy", "updateStrategy"},
		differInStatus: []string{"updateRevision", "daemonSetHash"},
		toHub:          typed(DaemonSetToHub),
		fromHub:        typed(DaemonSetFromHub),
	}, {
		hub:     v1beta1.GroupVersion.WithKind("SidecarSet"),
		spoke:   v1alpha1.GroupVersion.WithKind("SidecarSet"),
		differ:  []string{"namespace", "namespaceSelector", "customVersion", "strategy", "paused"},
		toHub:   typed(SidecarSetToHub),
		fromHub: typed(SidecarSetFromHub),
	}, {
		hub:     v1beta1.GroupVersion.WithKind("ImageListPullJob"),
		spoke:   v1alpha1.GroupVersion.WithKind("ImageListPullJob"),
		toHub:   typed(ImageListPullJobToHub),
		fromHub: typed(ImageListPullJobFromHub),
	}, {
		hub:     v1beta1.GroupVersion.WithKind("ImagePullJob"),
		spoke:   v1alpha1.GroupVersion.WithKind("ImagePullJob"),
		toHub:   typed(ImagePullJobToHub),
		fromHub: typed(ImagePullJobFromHub),
	}, {
		hub:     v1beta1.GroupVersion.WithKind("NodeImage"),
		spoke:   v1alpha1.GroupVersion.WithKind("NodeImage"),
		differ:  []string{"images"},
		toHub:   typed(NodeImageToHub),
		fromHub: typed(NodeImageFromHub),
	}, {
		hub:     v1beta1.GroupVersion.WithKind("StatefulSet"),
		spoke:   v1alpha1.GroupVersion.WithKind("StatefulSet"),
		toHub:   typed(StatefulSetToHub),
		fromHub: typed(StatefulSetFromHub),
	}}
}

func typed[S, D any](convert func(*S, *D)) conversion {
	return func(src map[string]any) (map[string]any, error) {
		from, to := new(S), new(D)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(src, from); err != nil {
			return nil, err
		}
		convert(from, to)
		return runtime.DefaultUnstructuredConverter.ToUnstructured(to)
	}
}

// Object returns src in another version of its kind; src is not changed, but shares memory with the result. Of the metadata only labels and
// annotations differ: the API server lets a conversion change no more.
func Object(src *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error) {
	from := src.GroupVersionKind()
	to := schema.FromAPIVersionAndKind(apiVersion, from.Kind)
	for _, p := range pairs() {
		switch {
		case p.spoke == from && p.hub == to:
			return p.convert(src, to, p.toHub)
		case p.hub == from && p.spoke == to:
			return p.convert(src, to, p.fromHub)
		}
	}
	return nil, fmt.Errorf("there is no conversion from %s to %s", from, to)
}

// convert gives the conversion only what the versions spell differently, and puts the result in the place of it.
func (p pair) convert(src *unstructured.Unstructured, to schema.GroupVersionKind, convert conversion) (*unstructured.Unstructured, error) {
	labelled := []string{"labels", "annotations"}
	spec, hasSpec := src.Object["spec"].(map[string]any)
	status, hasStatus := src.Object["status"].(map[string]any)
	metadata, _ := src.Object["metadata"].(map[string]any)
	converted, err := convert(map[string]any{
		"metadata": subset(metadata, labelled...),
		"spec":     subset(spec, p.differ...),
		"status":   subset(status, p.differInStatus...),
	})
	if err != nil {
		return nil, fmt.Errorf("converting %s %s/%s to %s: %w", to.Kind, src.GetNamespace(), src.GetName(), to.GroupVersion(), err)
	}
	out := &unstructured.Unstructured{Object: maps.Clone(src.Object)}
	out.SetGroupVersionKind(to)
	out.Object["metadata"] = replace(metadata, converted["metadata"], labelled...)
	if hasSpec {
		out.Object["spec"] = replace(spec, converted["spec"], p.differ...)
	}
	if told := replace(status, converted["status"], p.differInStatus...); hasStatus && len(p.differInStatus) > 0 || len(told) > 0 {
		out.Object["status"] = told
	}
	return out, nil
}

// replace returns m with the given fields as they are in converted, or gone where it has none.
func replace(m map[string]any, converted any, fields ...string) map[string]any {
	from, _ := converted.(map[string]any)
	out := maps.Clone(m)
	if out == nil {
		out = map[string]any{}
	}
	maps.DeleteFunc(out, func(key string, _ any) bool { return slices.Contains(fields, key) })
	maps.Copy(out, subset(from, fields...))
	return out
}

func subset(m map[string]any, fields ...string) map[string]any {
	out := map[string]any{}
	for _, field := range fields {
		if value, ok := m[field]; ok {
			out[field] = value
		}
	}
	return out
}
