// Package past reads the earlier templates of an object, and compares them.
package past

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// deploymentRevision is the annotation of a ReplicaSet with the number of its revision.
const deploymentRevision = "deployment.kubernetes.io/revision"

// Entry is a template that an object has, or had.
type Entry struct {
	// Revision is its number; the highest is the newest.
	Revision int64 `json:"revision"`
	// Name is that of the ControllerRevision or ReplicaSet that holds it.
	Name    string      `json:"name"`
	Created metav1.Time `json:"created"`
	// Images are those of its containers, as NAME=IMAGE.
	Images []string `json:"images"`
	// Pods are how many Pods are at it; nil where Pods do not tell.
	Pods *int `json:"pods,omitempty"`
	// Template is spec.template as it was.
	Template map[string]any `json:"template,omitempty"`
	// Stored is the ControllerRevision; nil for a ReplicaSet.
	Stored *appsv1.ControllerRevision `json:"-"`
}

// Read returns the templates of an object, the newest first.
func Read(ctx context.Context, c *access.Cluster, o access.Object) ([]Entry, error) {
	selector, err := SelectorOf(o)
	if err != nil {
		return nil, err
	}
	reader, err := c.Client()
	if err != nil {
		return nil, err
	}
	options := []client.ListOption{client.InNamespace(o.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}}
	var entries []Entry
	switch o.Kind.Revisions {
	case kinds.ControllerRevisions:
		var list appsv1.ControllerRevisionList
		if err := reader.List(ctx, &list, options...); err != nil {
			return nil, fmt.Errorf("listing revisions: %w", err)
		}
		return FromRevisions(list.Items, o)
	case kinds.ReplicaSets:
		var list appsv1.ReplicaSetList
		if err := reader.List(ctx, &list, options...); err != nil {
			return nil, fmt.Errorf("listing ReplicaSets: %w", err)
		}
		entries, err = fromReplicaSets(list.Items, o)
	default:
		return nil, fmt.Errorf("%s keeps no earlier templates", o.Kind)
	}
	if err != nil {
		return nil, err
	}
	newestFirst(entries)
	return entries, nil
}

func newestFirst(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(b.Revision, a.Revision) })
}

// SelectorOf returns the selector of the Pods of an object, by which its revisions are found as well.
func SelectorOf(o access.Object) (labels.Selector, error) {
	if o.Kind.Selector == nil {
		return nil, fmt.Errorf("the history of a %s is not shown by this command", o.Kind)
	}
	fields, _, err := unstructured.NestedMap(o.Object, o.Kind.Selector...)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of %s: %w", o, err)
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return nil, fmt.Errorf("reading the selector of %s: %w", o, err)
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of %s: %w", o, err)
	}
	return parsed, nil
}

// FromRevisions returns the templates that ControllerRevisions of an object hold, the newest first.
func FromRevisions(revisions []appsv1.ControllerRevision, o access.Object) ([]Entry, error) {
	var out []Entry
	for i := range revisions {
		rev := &revisions[i]
		if !metav1.IsControlledBy(rev, o) {
			continue
		}
		var data map[string]any
		if err := utiljson.Unmarshal(rev.Data.Raw, &data); err != nil {
			return nil, fmt.Errorf("reading revision %s: %w", rev.Name, err)
		}
		template, found, err := unstructured.NestedMap(data, "spec", "template")
		if err != nil || !found {
			return nil, fmt.Errorf("reading revision %s: it holds no template at spec.template", rev.Name)
		}
		delete(template, "$patch")
		out = append(out, newEntry(o, rev.Revision, rev, withoutNulls(template)))
		out[len(out)-1].Stored = rev
	}
	newestFirst(out)
	return out, nil
}

func fromReplicaSets(sets []appsv1.ReplicaSet, o access.Object) ([]Entry, error) {
	var out []Entry
	for i := range sets {
		set := &sets[i]
		number, err := strconv.ParseInt(set.Annotations[deploymentRevision], 10, 64)
		if !metav1.IsControlledBy(set, o) || err != nil { // a ReplicaSet without a number is not numbered yet
			continue
		}
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&set.Spec.Template)
		if err != nil {
			return nil, fmt.Errorf("reading ReplicaSet %s: %w", set.Name, err)
		}
		unstructured.RemoveNestedField(template, "metadata", "labels", keys.PodTemplateHash)
		out = append(out, newEntry(o, number, set, withoutNulls(template)))
	}
	return out, nil
}

func newEntry(o access.Object, number int64, stored client.Object, template map[string]any) Entry {
	whole := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": template}}}
	return Entry{
		Revision: number, Name: stored.GetName(), Created: stored.GetCreationTimestamp(), Template: template, Images: o.Kind.Images(whole),
	}
}

// withoutNulls leaves out fields without a value, such as the time of creation in stored revisions.
func withoutNulls(fields map[string]any) map[string]any {
	for key, field := range fields {
		switch field := field.(type) {
		case nil:
			delete(fields, key)
		case map[string]any:
			withoutNulls(field)
		case []any:
			for _, item := range field {
				if item, ok := item.(map[string]any); ok {
					withoutNulls(item)
				}
			}
		}
	}
	return fields
}

// CountPods notes how many of the Pods are at each entry.
func CountPods(entries []Entry, pods []corev1.Pod) {
	for i := range entries {
		n := 0
		for j := range pods {
			if entries[i].IsOf(&pods[j]) {
				n++
			}
		}
		entries[i].Pods = &n
	}
}

// IsOf reports whether a Pod says that it is at the entry.
func (e Entry) IsOf(p *corev1.Pod) bool {
	if e.Stored == nil {
		return revision.IsOf(p.Labels[keys.PodTemplateHash], e.Name)
	}
	return revision.IsOf(p.Labels[appsv1.ControllerRevisionHashLabelKey], e.Name)
}

// ErrNoEarlier means that an object has only one template.
var ErrNoEarlier = errors.New("there is no earlier revision")

// Find returns the entry of a number; 0 is the newest but one.
func Find(entries []Entry, number int64) (Entry, error) {
	if number == 0 {
		if len(entries) < 2 {
			return Entry{}, ErrNoEarlier
		}
		return entries[1], nil
	}
	var have []string
	for _, e := range entries {
		if e.Revision == number {
			return e, nil
		}
		have = append(have, strconv.FormatInt(e.Revision, 10))
	}
	return Entry{}, fmt.Errorf("there is no revision %d: there are %v", number, have)
}

// Named returns the entry whose name a label of Pods or a status gives, in full or as a hash.
func Named(entries []Entry, name string) (Entry, bool) {
	i := slices.IndexFunc(entries, func(e Entry) bool { return name != "" && revision.IsOf(name, e.Name) })
	if i < 0 {
		return Entry{}, false
	}
	return entries[i], true
}

// Restore puts a template into an object.
func (e Entry) Restore(o *unstructured.Unstructured) error {
	if err := unstructured.SetNestedMap(o.Object, e.Template, "spec", "template"); err != nil {
		return fmt.Errorf("putting back revision %d: %w", e.Revision, err)
	}
	return nil
}
