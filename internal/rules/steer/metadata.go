package steer

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// undressing is what a Pod had under the keys that the metadata of its batch has; null where it had nothing.
//
// Wire: it is in an annotation of Pods.
type undressing struct {
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
}

// of returns the metadata of a batch, counted from 1; nil where it has none.
func of(metadata []*v1beta1.PodMetadata, batch int) *v1beta1.PodMetadata {
	if batch > len(metadata) {
		return nil
	}
	return metadata[batch-1]
}

// dressed returns a Pod with the metadata of its batch instead of what a batch has given it before: a copy, or the same one if neither has
// given it anything.
func dressed(before *corev1.Pod, want *v1beta1.PodMetadata) *corev1.Pod {
	text, has := before.Annotations[keys.BatchMetadata]
	isBare := want == nil || len(want.Labels)+len(want.Annotations) == 0
	if isBare && !has {
		return before
	}
	after := before.DeepCopy()
	var was undressing
	if has {
		if json.Unmarshal([]byte(text), &was) == nil { // what somebody has written over tells nothing any more
			restore(after.Labels, was.Labels)
			restore(after.Annotations, was.Annotations)
		}
		delete(after.Annotations, keys.BatchMetadata)
	}
	if isBare {
		return after
	}
	var note undressing
	after.Labels, note.Labels = put(after.Labels, want.Labels)
	after.Annotations, note.Annotations = put(after.Annotations, want.Annotations)
	noted, _ := json.Marshal(note) // texts alone, which can be written
	after.Annotations = with(after.Annotations, keys.BatchMetadata, string(noted))
	return after
}

// put sets values, and returns what was there before.
func put(texts, values map[string]string) (after map[string]string, before map[string]*string) {
	after = maps.Clone(texts)
	for key, value := range values {
		if before == nil {
			before = map[string]*string{}
		}
		before[key] = nil
		if was, has := texts[key]; has {
			before[key] = &was
		}
		after = with(after, key, value)
	}
	return after, before
}

func restore(texts map[string]string, before map[string]*string) {
	for key, value := range before {
		if value == nil {
			delete(texts, key)
		} else {
			texts[key] = *value
		}
	}
}

// Undressed returns the changes that take the metadata of batches off Pods.
func Undressed(o Objects) []Change {
	var out []Change
	for _, p := range o.Pods {
		if _, has := p.Annotations[keys.BatchMetadata]; has && pod.IsActive(p) {
			out = append(out, Change{Before: p, After: dressed(p, nil), What: "take the metadata of its batch off"})
		}
	}
	return out
}

// Misdresses says which label of a batch its Pods can't be given, because the workload would lose them; empty if there is none.
func Misdresses(workload Object, metadata *v1beta1.PodMetadata) string {
	if metadata == nil {
		return ""
	}
	selector := selectorOf(workload)
	if selector == nil {
		return ""
	}
	selects := map[string]bool{}
	for key := range selector.MatchLabels {
		selects[key] = true
	}
	for _, r := range selector.MatchExpressions {
		selects[r.Key] = true
	}
	for key := range metadata.Labels {
		if selects[key] {
			return fmt.Sprintf("podMetadata.labels: the workload selects its Pods by %s; leave it out", key)
		}
	}
	return ""
}

func selectorOf(workload Object) *metav1.LabelSelector {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return w.Spec.Selector
	case *appsv1.StatefulSet:
		return w.Spec.Selector
	case *appsv1.DaemonSet:
		return w.Spec.Selector
	case *appsv1beta1.CloneSet:
		return w.Spec.Selector
	case *appsv1beta1.StatefulSet:
		return w.Spec.Selector
	case *appsv1beta1.DaemonSet:
		return w.Spec.Selector
	case *unstructured.Unstructured:
		out := &metav1.LabelSelector{}
		found, is := field(w.Object, "spec", "selector").(map[string]any)
		if is && runtime.DefaultUnstructuredConverter.FromUnstructured(found, out) == nil {
			return out
		}
	}
	return nil
}
