package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
)

func (p *program) scaledown() *cobra.Command {
	var dry dryRun
	var pods []string
	c := &cobra.Command{
		Use:   "scaledown CLONESET --pods POD,...",
		Short: "Delete chosen Pods of a CloneSet, and lower its replicas by as many",
		Long: `Delete chosen Pods of a CloneSet, and lower its replicas by as many: in one
write, so that no other Pod goes and none comes in their place.

Replicas is lowered once for a Pod: one that is named for deletion already
does not count again.`,
		Example:           "  kubectl kruise scaledown cloneset/web --pods web-x7k2p,web-9fj4c",
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			dryRun, err := dry.on()
			if err != nil {
				return err
			}
			if len(pods) == 0 {
				return errors.New("no Pods are named: add --pods POD")
			}
			o, err := p.cluster.One(c.Context(), args, "cloneset")
			if err != nil {
				return err
			}
			if o.Kind.PodsToDelete == nil {
				return fmt.Errorf("%s can't be told which Pods to delete: only a CloneSet can, and a StatefulSet of Kruise by "+
					"reserveOrdinals", o.Kind)
			}
			there, err := p.pods(c.Context(), o)
			if err != nil {
				return err
			}
			wanted := slices.Compact(slices.Sorted(slices.Values(pods)))
			if err := areMembers(wanted, there, o); err != nil {
				return err
			}
			after, changed, err := p.cluster.Edit(c.Context(), o, dryRun, func(u *unstructured.Unstructured) error {
				return scaleDown(u, o.Kind.PodsToDelete, wanted)
			})
			if err != nil {
				return err
			}
			what := "has these Pods in podsToDelete already"
			if changed {
				replicas, _, _ := unstructured.NestedInt64(after.Object, "spec", "replicas")
				what = fmt.Sprintf("scaled down to %d", replicas)
			}
			p.changed(after, what, dryRun && changed)
			return nil
		},
	}
	dry.add(c)
	c.Flags().StringSliceVar(&pods, "pods", nil, "the names of the Pods")
	return c
}

// areMembers refuses Pods that are not of the CloneSet, or are on their way out: for these no place is to go.
func areMembers(wanted []string, pods []corev1.Pod, o access.Object) error {
	for _, name := range wanted {
		i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name })
		switch {
		case i < 0:
			return fmt.Errorf("%s has no Pod %q", o.Arg(), name)
		case pods[i].DeletionTimestamp != nil:
			return fmt.Errorf("pod %s is being deleted already, and another one comes in its place: wait for that, or lower replicas", name)
		}
	}
	return nil
}

// scaleDown lists Pods for deletion and lowers replicas by as many as were not listed.
func scaleDown(u *unstructured.Unstructured, path, wanted []string) error {
	listed, _, err := unstructured.NestedStringSlice(u.Object, path...)
	if err != nil {
		return fmt.Errorf("reading podsToDelete: %w", err)
	}
	replicas, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if err != nil {
		return fmt.Errorf("reading spec.replicas: %w", err)
	}
	if !found {
		replicas = 1
	}
	added := int64(0)
	for _, name := range wanted {
		if !slices.Contains(listed, name) {
			listed, added = append(listed, name), added+1
		}
	}
	if added == 0 {
		return nil
	}
	if added > replicas {
		return fmt.Errorf("%d Pods are named, and spec.replicas is %d", added, replicas)
	}
	if err := unstructured.SetNestedStringSlice(u.Object, listed, path...); err != nil {
		return err
	}
	return unstructured.SetNestedField(u.Object, replicas-added, "spec", "replicas")
}
