package sidecar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// maxUpdate is how long an update of sidecars and one of the Pod's own containers wait for each other, so that both do not restart
// containers at once.
const maxUpdate = 5 * time.Minute

// Target is what a SidecarSet wants of the Pods that hold its sidecars. It is made once and read for many Pods.
type Target struct {
	Set    *v1beta1.SidecarSet
	Hashes Hashes
	// Revision is the name of the revision of the present spec.
	Revision string
	// updates selects the Pods that may be updated; nil selects all.
	updates labels.Selector
}

// NewTarget reads what a SidecarSet wants, which is stored at the revision of the given name.
func NewTarget(set *v1beta1.SidecarSet, revision string) (Target, error) {
	t := Target{Set: set, Revision: revision}
	var err error
	if t.Hashes, err = HashesOf(&set.Spec); err != nil {
		return Target{}, err
	}
	if selector := set.Spec.UpdateStrategy.Selector; selector != nil {
		if t.updates, err = metav1.LabelSelectorAsSelector(selector); err != nil {
			return Target{}, fmt.Errorf("reading the selector of updateStrategy: %w", err)
		}
	}
	return t, nil
}

// IsHeldBy reports whether the Pod holds all sidecars of the SidecarSet, and counts.
func (t Target) IsHeldBy(p *corev1.Pod) bool {
	if !pod.IsActive(p) || !slices.Contains(InjectedBy(p.Annotations), t.Set.Name) {
		return false
	}
	working, err := WorkingIn(p)
	for i := range t.Set.Spec.Containers {
		c := &t.Set.Spec.Containers[i]
		for _, name := range containersOf(c) {
			if pod.Container(p, name) == nil {
				return false
			}
		}
		if IsHot(c) && (err != nil || !slices.Contains(containersOf(c), working[c.Name])) {
			return false
		}
	}
	return true
}

// containersOf returns the names of the containers that a sidecar is in a Pod.
func containersOf(c *v1beta1.SidecarContainer) []string {
	if IsHot(c) {
		first, second := HotContainers(c.Name)
		return []string{first, second}
	}
	return []string{c.Name}
}

// PodStatus is the status of a Pod regarding the SidecarSet whose sidecars it holds.
type PodStatus struct {
	Pod *corev1.Pod
	// Updated means that the sidecars are those of the present spec. The containers may still have to follow.
	Updated bool
	// Upgradable means that only images stand between the Pod and the present spec, or nothing.
	Upgradable bool
	// Selected means that the strategy lets the Pod be updated.
	Selected bool
	// Unsettled says which update of a sidecar is on its way; empty where none is.
	Unsettled string
	// Ready means that the Pod is ready, and that the idle container of every hot-upgrade sidecar is idle.
	Ready bool
	// Waits says why the Pod is not to be updated at the moment although it is not Updated; empty where it may be. Recheck is when that can
	// end by time alone, zero where it can't.
	Waits   string
	Recheck time.Duration
	// Resets are the hot-upgrade sidecars whose idle container is to go idle now.
	Resets []string
	// begun means that the SidecarSet has updated the Pod before.
	begun bool
}

// IsServing reports whether the Pod is in service with no update of a sidecar on its way.
func (s *PodStatus) IsServing() bool { return s.Ready && s.Unsettled == "" }

// IsSettling reports whether an update of the Pod's sidecars by the SidecarSet is on its way.
func (s *PodStatus) IsSettling() bool { return s.begun && s.Unsettled != "" }

// Classify returns the status of a Pod that holds the sidecars.
func (t Target) Classify(p *corev1.Pod, now time.Time) PodStatus {
	o := t.observed(p)
	s := PodStatus{
		Pod:      p,
		Updated:  hasHash(p, keys.SidecarSetHash, t.Set.Name, t.Hashes.Full),
		Selected: t.updates == nil || t.updates.Matches(labels.Set(p.Labels)),
		Ready:    pod.IsReady(p),
		begun:    o.begun,
	}
	s.Upgradable = s.Updated || hasHash(p, keys.SidecarSetHashWithoutImage, t.Set.Name, t.Hashes.WithoutImage)
	s.Unsettled = o.unsettled(o.containers())
	for _, h := range o.hot() {
		if !h.isIdle() {
			s.Ready = false
		}
	}
	s.Resets = o.resets()
	if s.Updated {
		return s
	}
	if s.Waits = o.busy(); s.Waits == "" {
		s.Waits, s.Recheck = workloadUpdate(p, now)
	}
	return s
}

// hasHash reports whether the annotation holds this hash for the SidecarSet; one that can't be read holds none. Parsing the JSON of
// thousands of Pods takes most of a reconcile, so that it is left out where the text alone tells: for nearly all Pods.
func hasHash(p *corev1.Pod, key, set, hash string) bool {
	text := p.Annotations[key]
	if !strings.Contains(text, hash) {
		return false
	}
	if hasCurrentForm(text, set, hash) {
		return true
	}
	record, err := recordIn(p, key, set)
	return err == nil && record.Hash == hash
}

// hasCurrentForm reports whether records in JSON have one of the SidecarSet with this hash, in the form in which such records are written
// now. Neither string can stand in the text with these quotes for anything else, and a record holds no braces.
func hasCurrentForm(text, set, hash string) bool {
	_, rest, found := strings.Cut(text, `"`+set+`":{`)
	record, _, closed := strings.Cut(rest, "}")
	return found && closed && strings.Contains(record, `"hash":"`+hash+`"`)
}

// RecentlyUpdating says which update of the Pod's sidecars, by whatever SidecarSet, is on its way; empty where none is, or where it takes
// too long. Recheck is when it will have taken too long.
func RecentlyUpdating(p *corev1.Pod, now time.Time) (why string, recheck time.Duration) {
	return updating(p, func(s State) time.Duration { return s.UpdateTimestamp.Add(maxUpdate).Sub(now) })
}

// Updating says which update of the Pod's sidecars, by whatever SidecarSet, is on its way, however long it takes; empty where none is.
func Updating(p *corev1.Pod) string {
	why, _ := updating(p, func(State) time.Duration { return maxUpdate })
	return why
}

// updating returns the first update that is on its way and has time left.
func updating(p *corev1.Pod, timeLeft func(State) time.Duration) (why string, left time.Duration) {
	states, err := StatesIn(p)
	if err != nil {
		return "", 0 // what can't be read delays nothing
	}
	for _, set := range slices.Sorted(maps.Keys(states)) {
		if left = timeLeft(states[set]); left <= 0 {
			continue
		}
		if why = states[set].unsettled(p); why != "" {
			return "SidecarSet " + set + " updates it: " + why, left
		}
	}
	return "", 0
}

// unsettled says which container that was changed does not run its new image yet; empty where all do.
func (s State) unsettled(p *corev1.Pod) string {
	for _, name := range slices.Sorted(maps.Keys(s.LastContainerStatuses)) {
		if verdict := inplace.ImageProgress(p, name, s.LastContainerStatuses[name]); !verdict.Done {
			return verdict.Why
		}
	}
	return ""
}

// workloadUpdate says which update in place of the Pod's own containers is on its way; empty where none is, or where it takes too long.
func workloadUpdate(p *corev1.Pod, now time.Time) (waits string, recheck time.Duration) {
	var since time.Time
	switch state := pod.State(p); state {
	case pub.LifecycleStatePreparingUpdate, pub.LifecycleStateUpdating:
		waits = "its workload updates it (lifecycle state " + string(state) + ")"
		since, _ = time.Parse(time.RFC3339, p.Annotations[keys.LifecycleTimestamp]) // none counts as long ago
	default:
		verdict := inplace.Progress(p, inplace.Options{})
		if verdict.Done {
			return "", 0
		}
		waits = "its workload updates it: " + verdict.Why
		if record, err := inplace.State(p); err == nil && record != nil {
			since = record.UpdateTimestamp.Time
		}
	}
	left := since.Add(maxUpdate).Sub(now)
	if left <= 0 {
		return "", 0
	}
	return waits, left
}

// observed is a Pod with the annotations that a SidecarSet has written to it, parsed once.
type observed struct {
	pod     *corev1.Pod
	set     *v1beta1.SidecarSet
	state   State
	begun   bool
	working map[string]string
}

func (t Target) observed(p *corev1.Pod) observed {
	o := observed{pod: p, set: t.Set}
	if states, err := StatesIn(p); err == nil {
		o.state, o.begun = states[t.Set.Name]
	}
	o.working, _ = WorkingIn(p) // IsHeldBy has read it
	return o
}

// containers returns the names of all containers that are sidecars of the set.
func (o observed) containers() []string {
	var names []string
	for i := range o.set.Spec.Containers {
		names = append(names, containersOf(&o.set.Spec.Containers[i])...)
	}
	for i := range o.set.Spec.InitContainers {
		if c := &o.set.Spec.InitContainers[i]; IsNative(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// unsettled says which of the containers does not run what it should yet; empty where all do. Containers that were never updated do.
func (o observed) unsettled(names []string) string {
	switch {
	case len(o.pod.Status.ContainerStatuses) != len(o.pod.Spec.Containers):
		return "its containers have not all started"
	case !o.begun:
		return ""
	case inplace.IsUnseen(o.pod):
		return "the kubelet has not seen the change yet"
	}
	for _, name := range names {
		if last, changed := o.state.LastContainerStatuses[name]; changed {
			if verdict := inplace.ImageProgress(o.pod, name, last); !verdict.Done {
				return verdict.Why
			}
		}
	}
	return ""
}

// isServing reports whether a container is ready and runs what it should.
func (o observed) isServing(name string) bool {
	return o.isReady(name) && o.unsettled([]string{name}) == ""
}

func (o observed) isReady(name string) bool {
	status := pod.LastingStatus(o.pod, name)
	return status != nil && status.Ready
}

// busy says why the Pod can't take another update yet; empty where it can. One whose sidecar is not ready can: the next image may be what
// mends it. For the same reason a hot upgrade need not be finished in a Pod whose containers are not ready, which it would have to be for
// that.
func (o observed) busy() string {
	for _, name := range o.containers() {
		if why := o.unsettled([]string{name}); why != "" && o.begun && o.isReady(name) {
			return why
		}
	}
	var idle []string
	for _, h := range o.hot() {
		idle = append(idle, h.idle.Name)
	}
	for _, h := range o.hot() {
		if !h.isIdle() && o.othersReady(idle) {
			return "container " + h.idle.Name + " has to go idle first"
		}
	}
	return ""
}

// hot is a hot-upgrade sidecar in a Pod.
type hot struct {
	sidecar       *v1beta1.SidecarContainer
	working, idle *corev1.Container
}

// isIdle reports whether the container that does not work has the image of an idle one.
func (h hot) isIdle() bool { return h.idle.Image == h.sidecar.UpgradeStrategy.HotUpgradeEmptyImage }

// hot returns the hot-upgrade sidecars of the Pod.
func (o observed) hot() []hot {
	var out []hot
	for i := range o.set.Spec.Containers {
		c := &o.set.Spec.Containers[i]
		if !IsHot(c) {
			continue
		}
		first, second := HotContainers(c.Name)
		if o.working[c.Name] == second {
			first, second = second, first
		}
		out = append(out, hot{sidecar: c, working: pod.Container(o.pod, first), idle: pod.Container(o.pod, second)})
	}
	return out
}

// resets returns the hot-upgrade sidecars whose idle container is to get the image of an idle one: the working one has taken over by then.
func (o observed) resets() []string {
	var due, idle []string
	for _, h := range o.hot() {
		idle = append(idle, h.idle.Name)
		if !h.isIdle() {
			due = append(due, h.sidecar.Name)
		}
	}
	if len(due) == 0 {
		return nil
	}
	rest := slices.DeleteFunc(o.containers(), func(name string) bool { return slices.Contains(idle, name) })
	if o.unsettled(rest) != "" || !pod.IsReady(o.pod) && !o.othersReady(idle) {
		return nil
	}
	return due
}

// othersReady reports whether every container but these is ready.
func (o observed) othersReady(idle []string) bool {
	for i := range o.pod.Spec.Containers {
		if name := o.pod.Spec.Containers[i].Name; !slices.Contains(idle, name) && !o.isReady(name) {
			return false
		}
	}
	return true
}
