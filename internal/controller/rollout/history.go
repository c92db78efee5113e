package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// keptHistories is how many releases of a Rollout stay recorded.
const keptHistories = 10

// maxName is the length of the longest name of an object.
const maxName = 253

// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=rollouthistories,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get

// RecordedTraffic is what leads traffic to a workload, as a record has it. What there is none of has no name.
type RecordedTraffic struct {
	Service, Ingress, HTTPRoute v1alpha1.NamedData
}

// readHistories reads, at the end of a release that is to be recorded, the records and what they are to hold.
func (s *Snapshot) readHistories(ctx context.Context, r loop.Reads) error {
	rollout := s.Rollout
	isOver := rollout.Status.Phase == v1beta1.RolloutPhaseProgressing && reasonOf(&rollout.Status) == v1beta1.ReasonCompleted
	if !s.Options.Histories || !isOver {
		return nil
	}
	all := observe.Reader{Reader: r.Reader.Reader} // there is no index of them
	found, err := all.Controlled(ctx, &v1alpha1.RolloutHistoryList{}, rollout.Namespace, rollout.UID)
	if err != nil {
		return err
	}
	for _, history := range found {
		s.Histories = append(s.Histories, history.(*v1alpha1.RolloutHistory))
	}
	steps := steer.StepsOf(&rollout.Spec.Strategy)
	if steps == nil || len(steps.TrafficRoutings) == 0 {
		return nil
	}
	routing := steps.TrafficRoutings[0]
	named := func(group, version, kind, name string) (v1alpha1.NamedData, error) {
		return readSpec(ctx, r.Live, schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
			types.NamespacedName{Namespace: rollout.Namespace, Name: name})
	}
	if s.Traffic.Service, err = named("", "v1", "Service", routing.Service); err != nil {
		return err
	}
	if routing.Ingress != nil {
		if s.Traffic.Ingress, err = named("networking.k8s.io", "v1", "Ingress", routing.Ingress.Name); err != nil {
			return err
		}
	}
	if routing.Gateway != nil && routing.Gateway.HTTPRouteName != nil {
		s.Traffic.HTTPRoute, err = named("gateway.networking.k8s.io", "v1", "HTTPRoute", *routing.Gateway.HTTPRouteName)
	}
	return err
}

// readSpec reads the spec of an object of any kind; only its name is known of one that is not there.
func readSpec(ctx context.Context, live client.Reader, of schema.GroupVersionKind, name types.NamespacedName) (v1alpha1.NamedData, error) {
	out, object := v1alpha1.NamedData{Name: name.Name}, &unstructured.Unstructured{}
	object.SetGroupVersionKind(of)
	switch err := live.Get(ctx, name, object); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return out, nil
	case err != nil:
		return out, fmt.Errorf("reading %s %s: %w", of.Kind, name, err)
	}
	out.Data = raw(object.Object["spec"])
	return out, nil
}

// raw returns a value as an API object holds it that knows nothing of its fields.
func raw(value any) runtime.RawExtension {
	text, err := json.Marshal(value)
	if err != nil || string(text) == "null" { // of the API, which can be written
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Raw: text}
}

// isRecorded tells whether the record of the release that is over is there.
func (v *State) isRecorded() bool {
	return slices.ContainsFunc(v.Histories, func(h *v1alpha1.RolloutHistory) bool { return h.Name == v.historyName() })
}

// historyName returns the name of the record of the release that is over. It follows from what is stored of the release, so that none is
// recorded twice.
func (v *State) historyName() string {
	h, r := fnv.New32a(), v.Rollout
	ended := int64(0)
	if c := find(&r.Status, v1beta1.ConditionSucceeded); c != nil {
		ended = c.LastTransitionTime.Unix()
	}
	_, _ = fmt.Fprint(h, r.UID, " ", v.releaseID(), " ", ended) // a hash takes everything
	suffix := fmt.Sprintf("-%06s", strconv.FormatUint(uint64(h.Sum32())%(36*36*36*36*36*36), 36))
	return r.Name[:min(len(r.Name), maxName-len(suffix))] + suffix
}

// record writes the record of the release that is over, and deletes the oldest ones.
func (v *State) record() plan.Chain {
	history := v.history()
	out := plan.Chain{{
		Verb: plan.Create, Concern: plan.Tidy, After: history, What: "record the release", Why: v.why(), FailedEvent: "FailedCreate",
		FailedPrefix: "Creating the RolloutHistory: ",
	}}
	old := slices.Clone(v.Histories)
	slices.SortFunc(old, func(a, b *v1alpha1.RolloutHistory) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, surplus := range old[min(len(old), keptHistories-1):] {
		if surplus.DeletionTimestamp == nil {
			out = append(out, plan.Action{
				Verb: plan.Delete, Concern: plan.Tidy, Before: surplus, AnyVersion: true, What: "delete an old record",
				Why: fmt.Sprintf("%d are kept", keptHistories),
			})
		}
	}
	return out
}

// history returns the record of the release that is over.
func (v *State) history() *v1alpha1.RolloutHistory {
	r := v.Rollout
	h := &v1alpha1.RolloutHistory{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: v.historyName(), OwnerReferences: []metav1.OwnerReference{referenceTo(r)},
	}}
	if len(validation.IsValidLabelValue(r.Name)) == 0 {
		h.Labels = map[string]string{keys.RolloutName: r.Name}
	}
	h.Spec.Rollout = v1alpha1.RolloutInfo{NamedData: v1alpha1.NamedData{Name: r.Name, Data: raw(r.Spec)}, RolloutID: v.releaseID()}
	h.Spec.Workload = v1alpha1.WorkloadInfo{WorkloadReference: r.Spec.WorkloadRef}
	if v.Objects.Workload != nil {
		if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v.Objects.Workload); err == nil {
			h.Spec.Workload.Data = raw(fields["spec"])
		}
	}
	h.Spec.Service = v.Traffic.Service
	if v.Traffic.Ingress.Name != "" {
		h.Spec.TrafficRouting.Ingress = &v.Traffic.Ingress
	}
	if v.Traffic.HTTPRoute.Name != "" {
		h.Spec.TrafficRouting.HTTPRoute = &v.Traffic.HTTPRoute
	}
	return h
}
