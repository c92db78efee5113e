package sidecarset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// State is a Snapshot classified once: what the plan and the status both speak of.
type State struct {
	Snapshot
	target  sidecar.Target
	history revision.History
	// matched are the Pods that hold the sidecars and are selected.
	matched []sidecar.PodStatus
	// decision is which of them are updated now, were the update not paused or turned off.
	decision sidecar.Decision
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// Classify classifies a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	v.problem = v.classify()
	return v
}

func (v *State) classify() error {
	selection, err := sidecar.Select(v.Set.Spec.Selector, v.Set.Spec.NamespaceSelector)
	if err != nil {
		return err
	}
	if v.history, err = readHistory(v.Snapshot); err != nil {
		return err
	}
	if v.target, err = sidecar.NewTarget(v.Set, v.history.Update.Name); err != nil {
		return err
	}
	for _, p := range v.Pods {
		if selection.MatchesLabels(p.Labels) && selection.MatchesNamespace(v.Namespaces[p.Namespace]) && v.target.IsHeldBy(p) {
			v.matched = append(v.matched, v.classifyPod(p))
		}
	}
	v.decision, err = v.target.Decide(v.matched)
	return err
}

func (v *State) classifyPod(p *corev1.Pod) sidecar.PodStatus {
	s := v.target.Classify(p, v.Now)
	if until, refused := v.Refused[p.UID]; refused && !s.Updated && s.Waits == "" {
		s.Waits, s.Recheck = "its update was refused", until.Sub(v.Now)
	}
	return s
}

func (v *State) exists(set string) bool { return v.Sets[set] }

// updates reports whether the strategy has existing Pods updated.
func (v *State) updates() bool {
	return v.Set.Spec.UpdateStrategy.Type != v1beta1.NotUpdateSidecarSetStrategyType
}

// mayUpdate reports whether Pods may be updated now.
func (v *State) mayUpdate() bool { return v.updates() && !v.Set.Spec.UpdateStrategy.Paused }

// onlyCounts reports whether nothing is under way but that Pods come, get ready and go: no Pod is being updated, waits for that, or has a
// container that is to go idle.
func (v *State) onlyCounts() bool {
	d := &v.decision
	if v.problem != nil || v.history.Stored == nil {
		return false
	}
	if v.mayUpdate() && len(d.Update)+len(d.Waiting)+len(d.OverBudget) > 0 {
		return false
	}
	for i := range v.matched {
		if s := &v.matched[i]; len(s.Resets) > 0 || s.IsSettling() {
			return false
		}
	}
	return true
}

func nameOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func readHistory(s Snapshot) (revision.History, error) {
	h, err := revision.Read(s.Revisions, revision.Wanted{
		Make: func(collisionCount int32) (*appsv1.ControllerRevision, error) {
			return sidecar.NewRevision(s.Set, s.Options.Namespace, collisionCount)
		},
		Owner:          *metav1.NewControllerRef(s.Set, v1beta1.GroupVersion.WithKind("SidecarSet")),
		CollisionCount: s.Set.Status.CollisionCount,
	})
	if err != nil {
		return revision.History{}, fmt.Errorf("reading the revisions: %w", err)
	}
	// A name that the user gives to what is there already goes to the revision that is there already.
	if version := s.Set.Spec.CustomVersion; version != "" && h.Update.Labels[keys.SidecarSetCustomVersion] != version {
		if h.Update.Labels == nil {
			h.Update.Labels = map[string]string{}
		}
		h.Update.Labels[keys.SidecarSetCustomVersion] = version
	}
	return h, nil
}
