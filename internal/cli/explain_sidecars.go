package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/explain"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// notInjected says of the first SidecarSet by name that selects a Pod why the Pod has not its sidecars; false where it has those of all, or
// the user may not read SidecarSets.
func (p *program) notInjected(ctx context.Context, of *corev1.Pod) (explain.Reason, bool) {
	kind, err := kinds.Of(v1beta1.GroupVersion.WithKind("SidecarSet").GroupKind())
	if err != nil {
		return explain.Reason{}, false
	}
	var missing []*v1beta1.SidecarSet
	_ = p.cluster.Each(ctx, kind, "", func(o access.Object) error { // one that can't be read explains nothing
		set := &v1beta1.SidecarSet{}
		if err := o.Into(set); err == nil && p.selects(ctx, set, of) && !hasSidecars(of, set) {
			missing = append(missing, set)
		}
		return nil
	})
	if len(missing) == 0 {
		return explain.Reason{}, false
	}
	slices.SortFunc(missing, func(a, b *v1beta1.SidecarSet) int { return strings.Compare(a.Name, b.Name) })
	return whyNotInjected(missing[0], of), true
}

// selects reports whether a SidecarSet selects a Pod. Its namespace is read only for a set that asks for labels of it.
func (p *program) selects(ctx context.Context, set *v1beta1.SidecarSet, of *corev1.Pod) bool {
	selection, err := sidecar.Select(set.Spec.Selector, set.Spec.NamespaceSelector)
	if err != nil || !selection.MatchesLabels(of.Labels) {
		return false
	}
	if !selection.NeedsNamespace() {
		return true
	}
	reader, err := p.cluster.Client()
	if err != nil {
		return false
	}
	var namespace corev1.Namespace
	err = reader.Get(ctx, client.ObjectKey{Name: of.Namespace}, &namespace)
	return err == nil && selection.MatchesNamespace(namespace.Labels)
}

// hasSidecars reports whether a Pod has all containers that a SidecarSet injects.
func hasSidecars(of *corev1.Pod, set *v1beta1.SidecarSet) bool {
	have := map[string]bool{}
	for _, c := range slices.Concat(of.Spec.Containers, of.Spec.InitContainers) {
		have[c.Name] = true
	}
	return !slices.ContainsFunc(sidecar.Names(&set.Spec), func(name string) bool { return !have[name] })
}

// whyNotInjected says why a Pod that a SidecarSet selects has not its sidecars.
func whyNotInjected(set *v1beta1.SidecarSet, of *corev1.Pod) explain.Reason {
	r := explain.Reason{Pod: of.Name, Code: reason.NotInjected, Since: &of.CreationTimestamp.Time}
	arg := "sidecarset/" + set.Name
	switch {
	case set.Spec.InjectionStrategy.Paused:
		r.Why = fmt.Sprintf("%s selects it, and injects nothing: its injectionStrategy is paused", arg)
		r.Free = fmt.Sprintf("set spec.injectionStrategy.paused false in %s, and recreate Pod %s", arg, of.Name)
	case !set.CreationTimestamp.Before(&of.CreationTimestamp): // which tell no more than the second
		when := "before " + arg
		if of.CreationTimestamp.Equal(&set.CreationTimestamp) {
			when += ", or in the same second"
		}
		r.Why = fmt.Sprintf("it was created %s, and sidecars are injected into new Pods alone", when)
		r.Free = "recreate Pod " + of.Name + ", for example by a restart of its workload"
	default:
		r.Why = fmt.Sprintf("it was created without the sidecars of %s: its labels have changed since, or the webhook of kruise-manager "+
			"was not asked", arg)
		r.Free = "recreate Pod " + of.Name + "; if that does not help, see to it that kruise-manager runs and its " +
			"MutatingWebhookConfiguration is there"
	}
	return r
}
