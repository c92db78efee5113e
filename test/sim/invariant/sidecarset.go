package invariant

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules that CheckSidecarSet knows besides those of workloads.
const (
	RuleSidecarsOnly = "nothing of a Pod changes but images of sidecars, notes of them and one condition"
	RuleResting      = "no new image while updates rest, or for a Pod that is not selected"
	RuleOldSidecars  = "no fewer Pods with older sidecars than the partition says"
	RuleTakeover     = "no other image for a container that works and serves"
)

// sidecars is the history of SidecarSets and all Pods up to a change.
type sidecars struct {
	sets       map[string][]dated[*v1beta1.SidecarSet]
	pods       map[types.UID]*life
	order      []*life
	violations []Violation
}

// CheckSidecarSet returns the promises that a SidecarSet controller has broken to one SidecarSet or several.
func CheckSidecarSet(history []simulate.Change) []Violation {
	s := &sidecars{sets: map[string][]dated[*v1beta1.SidecarSet]{}, pods: map[types.UID]*life{}}
	for _, c := range history {
		s.record(c)
		if c.Pass != nil && !c.Late && c.Key.Kind.Kind == "Pod" {
			s.judge(c)
		}
	}
	return s.violations
}

func (s *sidecars) record(c simulate.Change) {
	switch c.Key.Kind.Kind {
	case "SidecarSet":
		after, _ := c.After.(*v1beta1.SidecarSet)
		s.sets[c.Key.Name] = append(s.sets[c.Key.Name], dated[*v1beta1.SidecarSet]{c.Revision, c.Time, c.Pass, c.Late, after})
	case "Pod":
		after, _ := c.After.(*corev1.Pod)
		uid := eitherOf(c).GetUID()
		known := s.pods[uid]
		if known == nil {
			known = &life{}
			s.pods[uid] = known
			s.order = append(s.order, known)
		}
		known.versions = append(known.versions, dated[*corev1.Pod]{c.Revision, c.Time, c.Pass, c.Late, after})
	}
}

// outlook is what the controller believed when it made a write, that write included.
type outlook struct {
	*sidecars
	c    simulate.Change
	set  *v1beta1.SidecarSet
	pods []*corev1.Pod
}

func (s *sidecars) judge(c simulate.Change) {
	o := &outlook{sidecars: s, c: c}
	o.set = at(s.sets[c.Pass.Owner.Name], c.Pass.Seen[v1beta1.GroupVersion.WithKind("SidecarSet")])
	before, _ := c.Before.(*corev1.Pod)
	after, _ := c.After.(*corev1.Pod)
	if before == nil || after == nil || o.set == nil {
		o.breaks(RuleSidecarsOnly, "%s is created or deleted", c.Key.Name)
		return
	}
	o.judgeReach(before, after)
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return
	}
	for _, l := range s.order {
		if p := o.believed(l); p != nil && o.holds(p) {
			o.pods = append(o.pods, p)
		}
	}
	o.judgeImages(before, after)
	if sidecarHash(before, o.set.Name) == sidecarHash(after, o.set.Name) {
		return // a container goes idle
	}
	o.judgeRollout(before, after)
}

// believed returns a Pod as the controller saw it, and wrote it since on behalf of the SidecarSet.
func (o *outlook) believed(l *life) *corev1.Pod {
	seen := o.c.Pass.Seen[o.c.Key.Kind]
	p := at(l.versions, seen)
	for _, v := range l.versions {
		if v.revision > seen && v.pass != nil && v.pass.Owner == o.c.Pass.Owner && !v.late {
			p = v.object
		}
	}
	return p
}

func (o *outlook) holds(p *corev1.Pod) bool { return holdsSidecars(p, o.set) }

func holdsSidecars(p *corev1.Pod, set *v1beta1.SidecarSet) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(p.Labels)) || !isActive(p) ||
		!strings.Contains(p.Annotations["kruise.io/sidecarset-injected-list"], set.Name) {
		return false
	}
	for i := range set.Spec.Containers {
		for _, name := range namesOf(&set.Spec.Containers[i]) {
			if imageOf(p, name) == "" {
				return false
			}
		}
	}
	return true
}

// sidecarsOf returns the sidecars of a SidecarSet that are updated: its containers, and the init containers that run beside them.
func sidecarsOf(set *v1beta1.SidecarSet) []*v1beta1.SidecarContainer {
	var all []*v1beta1.SidecarContainer
	for i := range set.Spec.Containers {
		all = append(all, &set.Spec.Containers[i])
	}
	for i := range set.Spec.InitContainers {
		if policy := set.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			all = append(all, &set.Spec.InitContainers[i])
		}
	}
	return all
}

func namesOf(c *v1beta1.SidecarContainer) []string {
	if c.UpgradeStrategy.UpgradeType == v1beta1.SidecarContainerHotUpgrade {
		return []string{c.Name + "-1", c.Name + "-2"}
	}
	return []string{c.Name}
}

func imageOf(p *corev1.Pod, name string) string {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return list[i].Image
			}
		}
	}
	return ""
}

// judgeReach checks that a write leaves alone what is not the SidecarSet's.
func (o *outlook) judgeReach(before, after *corev1.Pod) {
	was, is := before.DeepCopy(), after.DeepCopy()
	for _, p := range []*corev1.Pod{was, is} {
		for _, sidecar := range sidecarsOf(o.set) {
			blankImages(p, namesOf(sidecar))
		}
		for key := range p.Annotations {
			if strings.Contains(key, "sidecarset") {
				delete(p.Annotations, key)
			}
		}
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == "SidecarSetUpgradable" })
		p.ResourceVersion, p.Generation, p.ManagedFields = "", 0, nil
		if len(p.Annotations) == 0 {
			p.Annotations = nil
		}
	}
	if !equality.Semantic.DeepEqual(was, is) {
		o.breaks(RuleSidecarsOnly, "%s", after.Name)
	}
	for name := range o.sets {
		if name != o.set.Name && sidecarHash(before, name) != sidecarHash(after, name) {
			o.breaks(RuleSidecarsOnly, "what %s notes of SidecarSet %s", after.Name, name)
		}
	}
}

func blankImages(p *corev1.Pod, containers []string) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if slices.Contains(containers, list[i].Name) {
				list[i].Image = ""
			}
		}
	}
}

// judgeImages checks that a hot upgrade leaves the container alone that serves.
func (o *outlook) judgeImages(before, after *corev1.Pod) {
	working := map[string]string{}
	_ = json.Unmarshal([]byte(before.Annotations["kruise.io/sidecarset-working-hotupgrade-container"]), &working)
	for i := range o.set.Spec.Containers {
		c := &o.set.Spec.Containers[i]
		if c.UpgradeStrategy.UpgradeType != v1beta1.SidecarContainerHotUpgrade {
			continue
		}
		changed := 0
		for _, name := range namesOf(c) {
			if imageOf(before, name) == imageOf(after, name) {
				continue
			}
			changed++
			if working[c.Name] == name && before.Status.ObservedGeneration == before.Generation && runs(before, name) {
				o.breaks(RuleTakeover, "%s of %s", name, before.Name)
			}
		}
		if changed > 1 {
			o.breaks(RuleTakeover, "both containers of %s in %s change at once", c.Name, before.Name)
		}
	}
}

// runs reports whether a container is ready with the image of its spec.
func runs(p *corev1.Pod, name string) bool {
	for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if status.Name == name {
			return status.Ready && status.Image == imageOf(p, name)
		}
	}
	return false
}

// judgeRollout checks a write that brings new images to a Pod against the strategy.
func (o *outlook) judgeRollout(before, after *corev1.Pod) {
	strategy := &o.set.Spec.UpdateStrategy
	if strategy.Paused || strategy.Type == v1beta1.NotUpdateSidecarSetStrategyType {
		o.breaks(RuleResting, "%s is updated", after.Name)
	}
	if strategy.Selector != nil {
		if selector, err := metav1.LabelSelectorAsSelector(strategy.Selector); err == nil && !selector.Matches(labels.Set(before.Labels)) {
			o.breaks(RuleResting, "%s is updated and not selected", after.Name)
		}
	}
	old, down := 0, 0
	hash := sidecarHash(after, o.set.Name)
	for _, p := range o.pods {
		if sidecarHash(p, o.set.Name) != hash {
			old++
		} else if !inService(p, o.set) && !o.wasDown(p) {
			down++
		}
	}
	if kept := number(strategy.Partition, len(o.pods), math.Ceil); old < kept &&
		!(strategy.Partition.StrVal != "" && strategy.Partition.StrVal != "100%" && old == len(o.pods)-1) {
		o.breaks(RuleOldSidecars, "with %s %d Pods are left, of at least %d", after.Name, old, kept)
	}
	if most := number(strategy.MaxUnavailable, len(o.pods), math.Ceil); inService(before, o.set) && down > most {
		o.breaks(RuleUnavailable, "with %s %d updated Pods are out of service, of at most %d", after.Name, down, most)
	}
}

// wasDown reports whether a Pod was out of service before the write that updated it: that costs nothing.
func (o *outlook) wasDown(p *corev1.Pod) bool {
	hash := sidecarHash(p, o.set.Name)
	var last *corev1.Pod
	down := false
	for _, v := range o.sidecars.pods[p.UID].versions {
		if v.object == nil || v.revision > o.c.Revision {
			break
		}
		if last != nil && sidecarHash(last, o.set.Name) != hash && sidecarHash(v.object, o.set.Name) == hash {
			down = !inService(last, o.set)
		}
		last = v.object
	}
	return down
}

// inService reports whether a Pod is ready with all containers of the SidecarSet running what they should.
func inService(p *corev1.Pod, set *v1beta1.SidecarSet) bool {
	ready := condition(p, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionTrue {
		return false
	}
	for _, sidecar := range sidecarsOf(set) {
		for _, name := range namesOf(sidecar) {
			if !runs(p, name) {
				return false
			}
		}
	}
	return true
}

func sidecarHash(p *corev1.Pod, set string) string {
	var records map[string]struct{ Hash string }
	if err := json.Unmarshal([]byte(p.Annotations["kruise.io/sidecarset-hash"]), &records); err != nil {
		return ""
	}
	return records[set].Hash
}

func (o *outlook) breaks(rule, format string, args ...any) {
	o.violations = append(o.violations, Violation{Rule: rule, Revision: o.c.Revision, Text: fmt.Sprintf(format, args...)})
}

// SidecarsConverged returns how a cluster at rest, with nothing that keeps Pods from being updated, differs from what a SidecarSet wants.
// Full and withoutImage are the hashes of its sidecars.
func SidecarsConverged(c *simulate.Cluster, set *v1beta1.SidecarSet, full, withoutImage string) []string {
	var problems []string
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	var matched, updated, stuck int32
	for _, object := range c.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		p := object.(*corev1.Pod)
		if !holdsSidecars(p, set) {
			continue
		}
		matched++
		said := ""
		if c := condition(p, "SidecarSetUpgradable"); c != nil {
			said = c.Message
		}
		switch isUpdated := sidecarHash(p, set.Name) == full; {
		case isUpdated:
			updated++
			problems = append(problems, sidecarsRun(p, set)...)
		case strings.Contains(p.Annotations["kruise.io/sidecarset-hash-without-image"], withoutImage):
			wrong("%s could be updated and is not", p.Name)
		default:
			stuck++
			if !strings.Contains(said, fmt.Sprintf("%q:false", set.Name)) {
				wrong("%s can't be updated, and says %q", p.Name, said)
			}
			continue
		}
		if strings.Contains(said, fmt.Sprintf("%q:false", set.Name)) {
			wrong("%s says %q", p.Name, said)
		}
	}
	s := set.Status
	got := []int32{s.MatchedPods, s.UpdatedPods, s.NotUpgradablePods, s.UpdatedReadyPods}
	if want := []int32{matched, updated, stuck, updated}; !slices.Equal(got, want) || s.ObservedGeneration != set.Generation {
		wrong("the status says %v of generation %d; it is %v of generation %d", got, s.ObservedGeneration, want, set.Generation)
	}
	return problems
}

// sidecarsRun returns what is wrong with the sidecars of an updated Pod.
func sidecarsRun(p *corev1.Pod, set *v1beta1.SidecarSet) []string {
	if !inService(p, set) {
		return []string{"at rest, " + p.Name + " is not in service"}
	}
	working := map[string]string{}
	_ = json.Unmarshal([]byte(p.Annotations["kruise.io/sidecarset-working-hotupgrade-container"]), &working)
	var problems []string
	for _, c := range sidecarsOf(set) {
		for _, name := range namesOf(c) {
			want := c.Image
			if name != c.Name && working[c.Name] != name {
				want = c.UpgradeStrategy.HotUpgradeEmptyImage
			}
			if got := imageOf(p, name); got != want {
				problems = append(problems, fmt.Sprintf("at rest, container %s of %s has image %s, not %s", name, p.Name, got, want))
			}
		}
	}
	return problems
}
