package persistentpodstate

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/podstate"
)

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	State *v1beta1.PersistentPodState
	// Target is the workload; nil if there is none of the name.
	Target *Target
	// Pods are those that the workload controls.
	Pods []*corev1.Pod
	// Nodes are the labels of those nodes that have to be known and are.
	Nodes map[string]map[string]string
	Now   time.Time
}

// Target is what is known of a workload.
type Target struct {
	UID      types.UID
	Deleting bool
	Places   podstate.Places
	// Polled means that nothing tells when it changes.
	Polled bool
	// Renames means that no new Pod has the name of one before it: it is a CloneSet that does not give instance ids again.
	Renames bool
}

// read makes every read of a pass.
func (o Options) read(ctx context.Context, r loop.Reads, state *v1beta1.PersistentPodState) (s Snapshot, err error) {
	s.State, s.Now = state, r.Now
	if s.Target, err = o.target(ctx, r.Reader, state); err != nil || s.Target == nil {
		return s, err
	}
	if s.Pods, err = s.pods(ctx, r.Reader); err != nil {
		return s, err
	}
	var asked []*corev1.Pod
	for _, p := range s.Pods {
		if podstate.NeedsNode(state, p) {
			asked = append(asked, p)
		}
	}
	if s.Nodes, err = r.NodeLabels(ctx, asked); err != nil {
		return s, err
	}
	for name, has := range s.Nodes {
		if has == nil { // the cache does not know it yet, or it is gone
			delete(s.Nodes, name)
		}
	}
	return s, nil
}

// target returns the workload; nil if there is none of the name.
func (o Options) target(ctx context.Context, r observe.Reader, state *v1beta1.PersistentPodState) (*Target, error) {
	ref := state.Spec.TargetRef
	key := types.NamespacedName{Namespace: state.Namespace, Name: ref.Name}
	switch kind := podstate.TargetOf(state); {
	case kind == (schema.GroupKind{Group: "apps", Kind: "StatefulSet"}):
		set, err := observe.Find(ctx, r, key, &appsv1.StatefulSet{})
		if set == nil || err != nil {
			return nil, err
		}
		return o.statefulSet(set)
	case podstate.IsStatefulSet(kind):
		set, err := observe.Find(ctx, r, key, &v1beta1.StatefulSet{})
		if set == nil || err != nil {
			return nil, err
		}
		return o.statefulSet(set)
	case podstate.IsCloneSet(kind):
		set, err := observe.Find(ctx, r, key, &v1beta1.CloneSet{})
		if set == nil || err != nil {
			return nil, err
		}
		return cloneSet(set), nil
	}
	w, err := o.Scales.Get(ctx, state.Namespace, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Name)
	if w == nil || err != nil {
		return nil, err
	}
	out := &Target{UID: w.UID, Polled: true, Places: podstate.Places{Workload: ref.Name}}
	if w.Replicas != nil {
		out.Places.Known, out.Places.Replicas = true, *w.Replicas
	}
	return out, nil
}

// cloneSet returns what is known of a CloneSet. It gives an instance id again only with claims that wait for a Pod.
func cloneSet(set *v1beta1.CloneSet) *Target {
	out := &Target{UID: set.UID, Deleting: set.DeletionTimestamp != nil, Renames: !reuses(set)}
	out.Places = podstate.Places{Known: true, Instance: true, Workload: set.Name, Replicas: 1}
	if set.Spec.Replicas != nil {
		out.Places.Replicas = *set.Spec.Replicas
	}
	return out
}

func reuses(set *v1beta1.CloneSet) bool {
	return set.Spec.ScaleStrategy.EnablePVCReuse && len(set.Spec.VolumeClaimTemplates) > 0
}

// statefulSet returns what is known of a StatefulSet of either kind.
func (o Options) statefulSet(set client.Object) (*Target, error) {
	places := podstate.Places{Known: true, Ordinal: true, Workload: set.GetName(), Replicas: 1}
	switch s := set.(type) {
	case *appsv1.StatefulSet:
		if s.Spec.Replicas != nil {
			places.Replicas = *s.Spec.Replicas
		}
		if s.Spec.Ordinals != nil {
			places.Start = s.Spec.Ordinals.Start
		}
	case *v1beta1.StatefulSet:
		if s.Spec.Replicas != nil {
			places.Replicas = *s.Spec.Replicas
		}
		if s.Spec.Ordinals != nil && o.StartOrdinal {
			places.Start = s.Spec.Ordinals.Start
		}
		var err error
		if places.Reserved, err = ordinal.Parse(s.Spec.ReserveOrdinals); err != nil {
			places.Known = false // its own controller reports it; nothing is dropped meanwhile
		}
	}
	return &Target{UID: set.GetUID(), Deleting: set.GetDeletionTimestamp() != nil, Places: places}, nil
}

// placesText returns what of a StatefulSet or CloneSet says which Pods it has places for, to be compared.
func placesText(set client.Object) []string {
	text := []string{string(set.GetUID()), fmt.Sprint(set.GetDeletionTimestamp() != nil)}
	switch s := set.(type) {
	case *v1beta1.CloneSet:
		text = append(text, fmt.Sprint(cloneSet(s).Places.Replicas), fmt.Sprint(reuses(s)))
	case *appsv1.StatefulSet:
		if s.Spec.Replicas != nil {
			text = append(text, fmt.Sprint(*s.Spec.Replicas))
		}
		if s.Spec.Ordinals != nil {
			text = append(text, "from", fmt.Sprint(s.Spec.Ordinals.Start))
		}
	case *v1beta1.StatefulSet:
		if s.Spec.Replicas != nil {
			text = append(text, fmt.Sprint(*s.Spec.Replicas))
		}
		if s.Spec.Ordinals != nil {
			text = append(text, "from", fmt.Sprint(s.Spec.Ordinals.Start))
		}
		for _, entry := range s.Spec.ReserveOrdinals {
			text = append(text, entry.String())
		}
	}
	return text
}

// kindOf returns the kind of a StatefulSet or CloneSet.
func kindOf(set client.Object) schema.GroupKind {
	switch set.(type) {
	case *appsv1.StatefulSet:
		return schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	case *v1beta1.CloneSet:
		return v1beta1.GroupVersion.WithKind("CloneSet").GroupKind()
	}
	return v1beta1.GroupVersion.WithKind("StatefulSet").GroupKind()
}

// pods returns the Pods that the workload controls. A scale need not tell the UID of its workload: then the name decides.
func (s Snapshot) pods(ctx context.Context, r observe.Reader) ([]*corev1.Pod, error) {
	if s.Target.UID != "" {
		return r.Pods(ctx, s.State.Namespace, s.Target.UID)
	}
	all, err := r.SelectedPods(ctx, s.State.Namespace, labels.Everything())
	var out []*corev1.Pod
	for _, p := range all {
		if podstate.IsFor(s.State, metav1.GetControllerOfNoCopy(p)) {
			out = append(out, p)
		}
	}
	return out, err
}
