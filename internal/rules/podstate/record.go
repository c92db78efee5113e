// Package podstate says what is recorded of where the Pods of a workload ran, how long a record is kept, and what a new Pod of the same
// name is given of it.
//
//	a Pod is ready on a node ──► its record: the node, labels of the node, annotations of the Pod
//	                                │ kept while the Pod is not ready, on its way out or gone
//	                                ▼
//	the next Pod of the name ──► nodeSelector, preferred node affinity and annotations from the record
//
// A record is dropped when the workload has no place for the Pod any more, when it is too old, or when the Pod that was bound to it could
// not be scheduled for too long; all are dropped when the workload is gone.
package podstate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// maxSize is how many bytes all records may have, of the 1.5 MB that an object can have. A record has about 200.
const maxSize = 900 << 10

// Places says for which Pods a workload has places.
type Places struct {
	// Known means that the workload says how many Pods it has. Else it has a place for every Pod.
	Known bool
	// Ordinal means that it is a StatefulSet, whose Pods are numbered. Instance means that it is a CloneSet, whose Pods have instance ids,
	// which are no numbers even if they look like some. The Pods of any other kind may be numbered.
	Ordinal, Instance bool
	// Workload is its name.
	Workload string
	// Replicas is how many Pods it has, numbered from Start on without the ordinals in Reserved.
	Replicas, Start int32
	Reserved        ordinal.Reserved
}

// has returns what tells whether there is a place for a Pod. With 2 replicas from 5 on and the ordinal 6 reserved these are the Pods 5 and
// 7. Numbered is false for a Pod of another kind than StatefulSet whose name has no number.
func (p Places) has() func(name string) (place, numbered bool) {
	slots := p.Reserved.Slots(p.Start, p.Replicas)
	return func(name string) (place, numbered bool) {
		set, n, ok := ordinal.Split(name)
		if !ok || set != p.Workload || p.Instance {
			return !p.Known, p.Ordinal
		}
		_, found := slices.BinarySearch(slots, n)
		return found || !p.Known, true
	}
}

// Seen is what records follow from.
type Seen struct {
	State *v1beta1.PersistentPodState
	// Gone means that the workload does not exist or is being deleted.
	Gone   bool
	Places Places
	// Pods are those that the workload controls.
	Pods []*corev1.Pod
	// Nodes are the labels of the nodes that the Pods are on. A node that is not known is left out.
	Nodes map[string]map[string]string
	Now   time.Time
}

// Keys returns the node labels that are recorded, each once.
func Keys(spec *v1beta1.PersistentPodStateSpec) []string {
	var all []string
	if spec.RequiredPersistentTopology != nil {
		all = append(all, spec.RequiredPersistentTopology.Keys...)
	}
	for _, term := range spec.PreferredPersistentTopology {
		all = append(all, term.Preference.Keys...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Records returns the records as they are to be, and the names of the Pods for which there is no room.
func (s Seen) Records() (records map[string]v1beta1.PodState, beyond []string) {
	if s.Gone {
		return nil, nil
	}
	pods := map[string]*corev1.Pod{}
	records = s.kept()
	for _, p := range s.Pods {
		pods[p.Name] = p
		if now, ok := s.present(p); ok {
			records[p.Name] = now
		}
	}
	s.prune(records, pods)
	for name, record := range records {
		if records[name] = s.dated(record, pods[name]); s.isTooOld(records[name]) {
			delete(records, name)
		}
	}
	if len(records) == 0 {
		return nil, nil
	}
	return records, fit(records)
}

// kept returns the records of before, without those of Pods that could not be scheduled for too long.
func (s Seen) kept() map[string]v1beta1.PodState {
	records := maps.Clone(s.State.Status.PodStates)
	if records == nil {
		records = map[string]v1beta1.PodState{}
	}
	for _, p := range s.Pods {
		if s.IsOverdue(p) {
			delete(records, p.Name)
		}
	}
	return records
}

// NeedsNode reports whether the labels of its node have to be known to record a Pod. Where all of them are recorded already they do not:
// the labels that the Pod was placed by count, not what the node is labelled with since.
func NeedsNode(state *v1beta1.PersistentPodState, p *corev1.Pod) bool {
	if p.Spec.NodeName == "" || !pod.IsReady(p) {
		return false
	}
	record, ok := state.Status.PodStates[p.Name]
	recorded := slices.Sorted(maps.Keys(record.NodeTopologyLabels))
	return !ok || record.NodeName != p.Spec.NodeName || !slices.Equal(recorded, Keys(&state.Spec))
}

// present returns the record of a Pod that is ready on a node. The labels recorded before stay where node and keys are the same.
func (s Seen) present(p *corev1.Pod) (v1beta1.PodState, bool) {
	if p.Spec.NodeName == "" || !pod.IsReady(p) {
		return v1beta1.PodState{}, false
	}
	before := s.State.Status.PodStates[p.Name]
	now := v1beta1.PodState{NodeName: p.Spec.NodeName, NodeTopologyLabels: before.NodeTopologyLabels}
	if NeedsNode(s.State, p) {
		labels, known := s.Nodes[p.Spec.NodeName]
		if !known {
			return v1beta1.PodState{}, false
		}
		found := some(labels, Keys(&s.State.Spec))
		if before.NodeName != now.NodeName || !sameKeys(before.NodeTopologyLabels, found) {
			now.NodeTopologyLabels = found
		}
	}
	var keys []string
	for _, annotation := range s.State.Spec.PersistentPodAnnotations {
		keys = append(keys, annotation.Key)
	}
	now.Annotations = some(p.Annotations, keys)
	keys = nil
	for _, label := range s.State.Spec.PersistentPodLabels {
		keys = append(keys, label.Key)
	}
	now.Labels = some(p.Labels, keys)
	now.PreviousNodes = previousNodes(before, now.NodeName, int(s.State.Spec.PreviousNodes))
	if s.State.Spec.RecordPodIPs {
		for _, ip := range p.Status.PodIPs {
			now.PodIPs = append(now.PodIPs, ip.IP)
		}
	}
	return now, true
}

// previousNodes returns the nodes on which the Pod of a name ran before the one that it is on now, the last one first, each once.
func previousNodes(before v1beta1.PodState, now string, most int) []string {
	var out []string
	for _, node := range slices.Concat([]string{before.NodeName}, before.PreviousNodes) {
		if node != "" && node != now && !slices.Contains(out, node) && len(out) < most {
			out = append(out, node)
		}
	}
	return out
}

// some returns the entries of a map that keys name; nil if there are none.
func some(of map[string]string, keys []string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		if value, ok := of[key]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

func sameKeys(a, b map[string]string) bool {
	return slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
}

// prune drops the records of Pods that are gone and that the workload has no place for. Of a workload whose Pods are not numbered nobody
// knows which of them come back: as many records stay as Pods are missing, in the order of their names, which is the order in which a
// CloneSet gives instance ids again.
func (s Seen) prune(records map[string]v1beta1.PodState, pods map[string]*corev1.Pod) {
	if s.State.Spec.PersistentPodStateRetentionPolicy == v1beta1.PersistentPodStateRetentionWhenDeleted {
		return
	}
	has := s.Places.has()
	missing := int(s.Places.Replicas) - len(pods)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if pods[name] != nil {
			continue
		}
		place, numbered := has(name)
		if !numbered && !place {
			missing--
			place = missing >= 0
		}
		if !place {
			delete(records, name)
		}
	}
}

// dated returns a record with the time since when no Pod is ready in its place, where records have an age.
func (s Seen) dated(record v1beta1.PodState, p *corev1.Pod) v1beta1.PodState {
	inPlace := p != nil && p.Spec.NodeName == record.NodeName && pod.IsReady(p)
	switch {
	case s.State.Spec.MaxAgeSeconds == nil || inPlace:
		record.ReleasedTime = nil
	case record.ReleasedTime == nil:
		record.ReleasedTime = &metav1.Time{Time: s.Now.Truncate(time.Second)}
	}
	return record
}

// leftOf returns how long a record is kept from now on; limited is false for one that does not age.
func (s Seen) leftOf(record v1beta1.PodState) (left time.Duration, limited bool) {
	if s.State.Spec.MaxAgeSeconds == nil || record.ReleasedTime == nil {
		return 0, false
	}
	return record.ReleasedTime.Add(time.Duration(*s.State.Spec.MaxAgeSeconds) * time.Second).Sub(s.Now), true
}

func (s Seen) isTooOld(record v1beta1.PodState) bool {
	left, limited := s.leftOf(record)
	return limited && left <= 0
}

// UntilDropped returns how long it takes until the first of the records is too old; 0 if none ages.
func (s Seen) UntilDropped(records map[string]v1beta1.PodState) time.Duration {
	var soonest time.Duration
	for _, record := range records {
		if left, limited := s.leftOf(record); limited && (soonest == 0 || left < soonest) {
			soonest = left
		}
	}
	return soonest
}

// fit drops the records, from the last name on, for which there is no room in the object, and returns their names.
func fit(records map[string]v1beta1.PodState) (beyond []string) {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(records)) {
		record := records[name]
		size += len(name) + len(record.NodeName) + 100
		for _, m := range []map[string]string{record.NodeTopologyLabels, record.Annotations, record.Labels} {
			for key, value := range m {
				size += len(key) + len(value) + 6
			}
		}
		for _, text := range slices.Concat(record.PodIPs, record.PreviousNodes) {
			size += len(text) + 3
		}
		if size > maxSize {
			beyond = append(beyond, name)
			delete(records, name)
		}
	}
	return beyond
}

// Unscheduled returns since when the scheduler has found no node for a Pod that was bound to its place by this PersistentPodState, and what
// it says of it; false for any other Pod.
func Unscheduled(state *v1beta1.PersistentPodState, p *corev1.Pod) (since time.Time, message string, ok bool) {
	if p.Annotations == nil || p.Spec.NodeName != "" || p.DeletionTimestamp != nil {
		return time.Time{}, "", false
	}
	c := pod.Condition(p, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable || !isBoundBy(state.Name, p) {
		return time.Time{}, "", false
	}
	return c.LastTransitionTime.Time, c.Message, true
}

// UntilOverdue returns how long a Pod may still wait to be scheduled where it ran; limited is false for one that may wait for ever.
func (s Seen) UntilOverdue(p *corev1.Pod) (left time.Duration, limited bool) {
	since, _, waits := Unscheduled(s.State, p)
	if !waits || s.State.Spec.Fallback == nil {
		return 0, false
	}
	return since.Add(time.Duration(s.State.Spec.Fallback.AfterSeconds) * time.Second).Sub(s.Now), true
}

// IsOverdue reports whether a Pod has waited too long to be scheduled where it ran.
func (s Seen) IsOverdue(p *corev1.Pod) bool {
	left, limited := s.UntilOverdue(p)
	return limited && left <= 0
}

// Describe names a place in a line, such as "kubernetes.io/hostname=n2, topology.kubernetes.io/zone=a".
func Describe(record v1beta1.PodState) string {
	text := ""
	for _, key := range slices.Sorted(maps.Keys(record.NodeTopologyLabels)) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s=%s", key, record.NodeTopologyLabels[key])
	}
	return text
}
