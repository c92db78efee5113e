package sidecar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Record notes on a Pod what one SidecarSet last put into it.
//
// Wire: it is stored as JSON in annotations, keyed by the SidecarSet's name; other software reads it and goes on from it.
type Record struct {
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	Hash            string      `json:"hash"`
	SidecarSetName  string      `json:"sidecarSetName"`
	// SidecarList are the names of the sidecars, as Names returns them.
	SidecarList []string `json:"sidecarList"`
	// ControllerRevision is the name of the revision; only the annotation SidecarSetHash has it.
	ControllerRevision string `json:"controllerRevision,omitempty"`
}

// Records are the records of all SidecarSets on a Pod, by name.
type Records map[string]Record

// UnmarshalJSON reads records, of which the oldest form is the bare hash.
func (r *Records) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*r = Records{}
	for name, text := range raw {
		record, err := readRecord(name, text)
		if err != nil {
			return err
		}
		(*r)[name] = record
	}
	return nil
}

func readRecord(name string, text json.RawMessage) (Record, error) {
	record := Record{SidecarSetName: name}
	into := any(&record)
	if len(text) > 0 && text[0] == '"' {
		into = &record.Hash
	}
	if err := json.Unmarshal(text, into); err != nil {
		return Record{}, fmt.Errorf("reading the record of SidecarSet %s: %w", name, err)
	}
	return record, nil
}

// recordIn reads the record of one SidecarSet, for which those of others need not be read; an empty one where there is none.
func recordIn(p *corev1.Pod, key, set string) (Record, error) {
	raw, err := read[map[string]json.RawMessage](p, key)
	text, ok := raw[set]
	if err != nil || !ok {
		return Record{}, err
	}
	return readRecord(set, text)
}

// RecordsIn reads the annotation SidecarSetHash or SidecarSetHashWithoutImage of a Pod; there may be none.
func RecordsIn(p *corev1.Pod, key string) (Records, error) {
	return read[Records](p, key)
}

// SetRecord puts records of SidecarSets into one of these annotations. It writes all of them in the present form, and drops what can't be
// read.
func SetRecord(p *corev1.Pod, key string, changed ...Record) {
	records, _ := RecordsIn(p, key)
	for _, record := range changed {
		records[record.SidecarSetName] = record
	}
	write(p, key, records)
}

// State notes on a Pod what its sidecars ran before the last update.
//
// Wire: it is stored as JSON in an annotation, keyed by the SidecarSet's name.
type State struct {
	// Revision is the hash that the Pod was updated to.
	Revision              string                                      `json:"revision"`
	UpdateTimestamp       metav1.Time                                 `json:"updateTimestamp"`
	LastContainerStatuses map[string]pub.InPlaceUpdateContainerStatus `json:"lastContainerStatuses"`
}

// StatesIn reads the states of all SidecarSets on a Pod; there may be none.
func StatesIn(p *corev1.Pod) (map[string]State, error) {
	return read[map[string]State](p, keys.SidecarSetInPlaceUpdateState)
}

func setState(p *corev1.Pod, set string, state State) {
	states, _ := StatesIn(p) // what can't be read is dropped
	states[set] = state
	write(p, keys.SidecarSetInPlaceUpdateState, states)
}

// WorkingIn reads which container each hot-upgrade sidecar works in; there may be none.
func WorkingIn(p *corev1.Pod) (map[string]string, error) {
	return read[map[string]string](p, keys.SidecarSetWorkingHotUpgradeContainer)
}

// SetWorking notes which container a hot-upgrade sidecar works in.
func SetWorking(p *corev1.Pod, sidecar, container string) {
	working, _ := WorkingIn(p) // what can't be read is dropped
	working[sidecar] = container
	write(p, keys.SidecarSetWorkingHotUpgradeContainer, working)
}

// InjectedBy returns the names of the SidecarSets that put sidecars into a Pod.
func InjectedBy(annotations map[string]string) []string {
	list := annotations[keys.SidecarSetInjectedList]
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// HasSidecars reports whether a SidecarSet put sidecars into the Pod.
func HasSidecars(p *corev1.Pod) bool { return p.Annotations[keys.SidecarSetInjectedList] != "" }

// AddInjected adds names to those of the SidecarSets that put sidecars into a Pod.
func AddInjected(p *corev1.Pod, names ...string) {
	all := append(InjectedBy(p.Annotations), names...)
	slices.Sort(all)
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, keys.SidecarSetInjectedList, strings.Join(slices.Compact(all), ","))
}

// read returns what an annotation notes by name, which is never nil. Whoever may write to a Pod can write anything there, null as well; of
// what can't be read nothing is returned.
func read[M ~map[string]V, V any](p *corev1.Pod, key string) (M, error) {
	text, ok := p.Annotations[key]
	if !ok {
		return M{}, nil
	}
	var notes M
	if err := json.Unmarshal([]byte(text), &notes); err != nil {
		return M{}, fmt.Errorf("reading annotation %s: %w", key, err)
	}
	if notes == nil {
		return M{}, nil
	}
	return notes, nil
}

func write(p *corev1.Pod, key string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		// Strings and times: the types have no value that can't be encoded.
		panic(fmt.Sprintf("encoding annotation %s: %v", key, err))
	}
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, string(text))
}

// Upgradable is the condition of a Pod that tells, for each SidecarSet, whether its sidecars can be updated in place.
//
// Wire: the message is JSON from the SidecarSet's name to true or false.
const Upgradable corev1.PodConditionType = "SidecarSetUpgradable"

// SetUpgradable sets in the condition whether the sidecars of a set can be updated in place, and drops sets that are gone. It reports
// whether anything changed.
func SetUpgradable(p *corev1.Pod, set string, upgradable bool, at At) bool {
	stored := upgradables(p)
	for name := range stored {
		if !at.Exists(name) || !slices.Contains(InjectedBy(p.Annotations), name) {
			delete(stored, name)
		}
	}
	stored[set] = upgradable
	message, err := json.Marshal(stored)
	if err != nil {
		panic(fmt.Sprintf("encoding a condition: %v", err)) // names and truth values can be encoded
	}
	want := corev1.PodCondition{Type: Upgradable, Status: corev1.ConditionTrue, Reason: "AllSidecarsetUpgradable", Message: string(message)}
	for _, can := range stored {
		if !can {
			want.Status, want.Reason = corev1.ConditionFalse, "UpdateImmutableField"
		}
	}
	old := pod.Condition(p, Upgradable)
	if old != nil && old.Status == want.Status && old.Reason == want.Reason && old.Message == want.Message {
		return false
	}
	pod.SetCondition(p, want, at.Now)
	return true
}

// At is when a condition is written, and which SidecarSets there are then.
type At struct {
	Now    time.Time
	Exists func(set string) bool
}

// HasUpgradable reports whether a Pod has the condition.
func HasUpgradable(p *corev1.Pod) bool { return pod.Condition(p, Upgradable) != nil }

// IsConditionStale reports whether what the Pod says of this set is not true any more, or is missing after an update whose second write did
// not come about, or whether it speaks of a set that is gone.
func (s *PodStatus) IsConditionStale(set string, exists func(set string) bool) bool {
	stored := upgradables(s.Pod)
	for name := range stored {
		if !exists(name) {
			return true
		}
	}
	can, has := stored[set]
	return has && !can && s.Upgradable || !has && s.Updated && s.begun
}

// upgradables returns the message of the condition, by set; nothing if it can't be read.
func upgradables(p *corev1.Pod) map[string]bool {
	stored := map[string]bool{}
	if c := pod.Condition(p, Upgradable); c != nil {
		if err := json.Unmarshal([]byte(c.Message), &stored); err != nil || stored == nil {
			return map[string]bool{}
		}
	}
	return stored
}
