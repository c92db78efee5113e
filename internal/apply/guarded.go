package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// guarded returns the patch of a status write that happens only while a label or an annotation is as it was, whatever else has changed; false for a
// write that can't be said so: one that leaves it, and so could be done twice, or concerns more than labels, annotations and new conditions.
//
// The API server merges other patches without looking at what is there, and of its preconditions the resourceVersion is too strict, as the kubelet
// writes to a new Pod all the time, and the UID too loose, as a write may arrive long after the controller gave it up and went on.
func guarded(a plan.Action) ([]byte, bool, error) {
	before, ok := a.Before.(*corev1.Pod)
	if !ok || a.While == "" {
		return nil, false, nil
	}
	after := a.After.(*corev1.Pod)
	test, moves := testOf(a.While, before, after)
	conditions, appended := newConditions(before, after)
	if !moves || !appended || !onlyStatus(before, after) {
		return nil, false, nil
	}
	patch := []operation{{"test", "/metadata/uid", before.UID}, test}
	patch = append(patch, changes("/metadata/labels", before.Labels, after.Labels)...)
	patch = append(patch, changes("/metadata/annotations", before.Annotations, after.Annotations)...)
	for _, c := range conditions {
		patch = append(patch, operation{"add", "/status/conditions/-", c})
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, false, fmt.Errorf("encoding a patch: %w", err)
	}
	return encoded, true, nil
}

// testOf returns the test that a label or an annotation is as it was, and whether the write changes it.
func testOf(key string, before, after *corev1.Pod) (operation, bool) {
	at, was, is := "/metadata/labels", before.Labels, after.Labels
	if _, label := is[key]; !label {
		at, was, is = "/metadata/annotations", before.Annotations, after.Annotations
	}
	test := operation{Op: "test", Path: at + "/" + escape(key)} // without a value: that there is none
	if len(was) == 0 {
		test.Path = at
	} else if value, ok := was[key]; ok {
		test.Value = value
	}
	return test, was[key] != is[key]
}

// newConditions returns what was added to the conditions; false when others changed, or there were none at all.
func newConditions(before, after *corev1.Pod) ([]corev1.PodCondition, bool) {
	was, is := before.Status.Conditions, after.Status.Conditions
	if len(was) == 0 || len(is) < len(was) || !equality.Semantic.DeepEqual(was, is[:len(was)]) {
		return nil, false
	}
	return is[len(was):], true
}

// onlyStatus reports whether nothing but conditions, labels and annotations differs.
func onlyStatus(before, after *corev1.Pod) bool {
	rest := after.DeepCopy()
	rest.Labels, rest.Annotations, rest.Status.Conditions = before.Labels, before.Annotations, before.Status.Conditions
	return equality.Semantic.DeepEqual(before, rest)
}

// changes returns what makes the map at a path what it is after.
func changes(at string, before, after map[string]string) []operation {
	if len(before) == 0 && len(after) > 0 {
		return []operation{{"add", at, after}} // the map itself is not there
	}
	var out []operation
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if was, ok := before[key]; !ok || was != after[key] {
			out = append(out, operation{"add", at + "/" + escape(key), after[key]}) // which replaces what is there
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[key]; !kept {
			out = append(out, operation{Op: "remove", Path: at + "/" + escape(key)})
		}
	}
	return out
}

// escape writes a key as one part of a JSON pointer.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// goneIsConflict turns the answer that a Pod is gone into a conflict: there is nothing to do to it any more, and nobody has failed.
func goneIsConflict(name string, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, fmt.Errorf("it is gone: %w", err))
}

// refusedIsConflict turns the refusal of a guarded patch into a conflict: what it tests has changed.
func refusedIsConflict(name string, err error) error {
	if !apierrors.IsInvalid(err) {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, fmt.Errorf("it is not as it was: %w", err))
}
