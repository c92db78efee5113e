package cli

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/past"
	"github.com/seed-69ecc383/kruise/internal/forecast"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

// snapshot reads what the controller of a workload reads: each kind once, and no nodes unless they matter.
func (p *program) snapshot(ctx context.Context, o access.Object) (client.Object, *forecast.World, error) {
	owner := emptyOf(o)
	if owner == nil {
		return nil, nil, noForecast(o)
	}
	if err := o.Into(owner); err != nil {
		return nil, nil, err
	}
	selector, err := past.SelectorOf(o)
	if err != nil {
		return nil, nil, err
	}
	reader, err := p.cluster.Client()
	if err != nil {
		return nil, nil, err
	}
	objects := []client.Object{owner}
	reads := readsOf(o, selector)
	problems := make([]error, len(reads))
	var running sync.WaitGroup
	for i, read := range reads {
		running.Go(func() { problems[i] = reader.List(ctx, read.list, read.options...) })
	}
	running.Wait()
	for i, read := range reads {
		if err := problems[i]; err != nil {
			return nil, nil, fmt.Errorf("listing %s: %w", read.of, err)
		}
		for _, o := range read.items() {
			o.SetManagedFields(nil) // a controller does not see them either
			objects = append(objects, o)
		}
	}
	return owner, forecast.NewWorld(p.now(), objects...), nil
}

func noForecast(o access.Object) error {
	return fmt.Errorf("there is no forecast for %s: only for CloneSets, and StatefulSets and DaemonSets of Kruise", o.Kind)
}

// emptyOf returns an object of the type of a workload that there is a forecast for; nil for any other.
func emptyOf(o access.Object) client.Object {
	switch {
	case !o.Kind.IsKruise():
	case o.Kind.GroupVersionKind.Kind == "CloneSet":
		return &v1beta1.CloneSet{}
	case o.Kind.GroupVersionKind.Kind == "StatefulSet":
		return &v1beta1.StatefulSet{}
	case o.Kind.GroupVersionKind.Kind == "DaemonSet":
		return &v1beta1.DaemonSet{}
	}
	return nil
}

// forecasted reports whether there is a forecast for a workload.
func forecasted(o access.Object) bool { return emptyOf(o) != nil }

// listing is one list of a snapshot.
type listing struct {
	of      string
	list    client.ObjectList
	items   func() []client.Object
	options []client.ListOption
}

func readsOf(o access.Object, selector labels.Selector) []listing {
	in, selected := client.InNamespace(o.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}
	pods, revisions := &corev1.PodList{}, &appsv1.ControllerRevisionList{}
	claims, nodes := &corev1.PersistentVolumeClaimList{}, &corev1.NodeList{}
	out := []listing{
		{"Pods", pods, func() []client.Object { return pointers[corev1.Pod](pods.Items) }, []client.ListOption{in, selected}},
		{
			"ControllerRevisions", revisions, func() []client.Object { return pointers[appsv1.ControllerRevision](revisions.Items) },
			[]client.ListOption{in, selected},
		},
	}
	if templates, found, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates"); found && len(templates) > 0 {
		// A StatefulSet knows its claims by their names, whatever labels they have.
		items := func() []client.Object { return pointers[corev1.PersistentVolumeClaim](claims.Items) }
		out = append(out, listing{"PersistentVolumeClaims", claims, items, []client.ListOption{in}})
	}
	_, spread, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "topologySpreadConstraints")
	if spread || o.Kind.GroupVersionKind.Kind == "DaemonSet" {
		out = append(out, listing{"Nodes", nodes, func() []client.Object { return pointers[corev1.Node](nodes.Items) }, nil})
	}
	return out
}

// pointers returns the items of a list as objects.
func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	out := make([]client.Object, len(items))
	for i := range items {
		out[i] = P(&items[i])
	}
	return out
}

// budgets reads the PodUnavailableBudgets that Pods of a snapshot name. One that can't be read is told of, and left out.
func (p *program) budgets(ctx context.Context, w *forecast.World, namespace string) ([]budgetRoom, error) {
	var pods corev1.PodList
	if err := w.List(ctx, &pods); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	var out []budgetRoom
	for i := range pods.Items {
		name := disruption.Related(pods.Items[i].Annotations)
		if name == "" || names[name] {
			continue
		}
		names[name] = true
		switch allowed, err := p.cluster.UnavailableAllowed(ctx, namespace, name); {
		case apierrors.IsForbidden(err):
			fmt.Fprintf(p.Err, "Warning: it covers Pods, and may make the rollout slower: %v\n", err)
		case apierrors.IsNotFound(err) || access.IsNotInstalled(err):
		case err != nil:
			return nil, err
		default:
			out = append(out, budgetRoom{name, allowed})
		}
	}
	return out, nil
}
