package invariant

import (
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules that CheckDaemonSet knows besides those of CloneSets.
const (
	RuleNode     = "no Pod on a node that its template does not fit"
	RuleOneANode = "no more than one Pod on a node, or the two of a surge"
	RuleSurge    = "no more nodes with two Pods than maxSurge"
	RuleReach    = "no update of a node beyond the partition, the selector, or while updates rest"
)

// daemons is the history of DaemonSets, their Pods and all nodes up to a change.
type daemons struct {
	sets  map[types.UID][]dated[*v1beta1.DaemonSet]
	nodes map[string][]dated[*corev1.Node]
	of    map[types.UID][]*life
	pods  map[types.UID]*life
	// templates are what is behind each hash of a revision, by the controller of the revision: what belongs to another one says nothing.
	templates  map[types.UID]map[string]*corev1.PodTemplateSpec
	violations []Violation
}

// CheckDaemonSet returns the promises that a DaemonSet controller has broken in a history.
func CheckDaemonSet(history []simulate.Change) []Violation {
	d := &daemons{
		sets: map[types.UID][]dated[*v1beta1.DaemonSet]{}, nodes: map[string][]dated[*corev1.Node]{},
		of: map[types.UID][]*life{}, pods: map[types.UID]*life{}, templates: map[types.UID]map[string]*corev1.PodTemplateSpec{},
	}
	for _, c := range history {
		d.record(c)
		if c.Pass != nil && !c.Late && c.Key.Kind.Kind == "Pod" {
			d.judge(c)
		}
	}
	return d.violations
}

func (d *daemons) note(rev *appsv1.ControllerRevision, template *corev1.PodTemplateSpec) {
	var owner types.UID
	if controller := metav1.GetControllerOfNoCopy(rev); controller != nil {
		owner = controller.UID
	}
	if d.templates[owner] == nil {
		d.templates[owner] = map[string]*corev1.PodTemplateSpec{}
	}
	d.templates[owner][revision.ShortHash(rev.Name)] = template
}

func (d *daemons) record(c simulate.Change) {
	object := eitherOf(c)
	switch c.Key.Kind.Kind {
	case "ControllerRevision":
		if rev, ok := c.After.(*appsv1.ControllerRevision); ok {
			if template, err := revision.Template(rev); err == nil {
				d.note(rev, template)
			}
		}
	case "DaemonSet":
		after, _ := c.After.(*v1beta1.DaemonSet)
		d.sets[object.GetUID()] = append(d.sets[object.GetUID()], dated[*v1beta1.DaemonSet]{c.Revision, c.Time, c.Pass, c.Late, after})
	case "Node":
		after, _ := c.After.(*corev1.Node)
		d.nodes[c.Key.Name] = append(d.nodes[c.Key.Name], dated[*corev1.Node]{c.Revision, c.Time, c.Pass, c.Late, after})
	case "Pod":
		after, _ := c.After.(*corev1.Pod)
		known := d.pods[object.GetUID()]
		if known == nil {
			known = &life{late: c.Late}
			d.pods[object.GetUID()] = known
		}
		// A Pod may be let go and adopted by another DaemonSet of the same name.
		if owner := metav1.GetControllerOfNoCopy(object); owner != nil && !slices.Contains(d.of[owner.UID], known) {
			d.of[owner.UID] = append(d.of[owner.UID], known)
		}
		known.versions = append(known.versions, dated[*corev1.Pod]{c.Revision, c.Time, c.Pass, c.Late, after})
	}
}

// sight is what a controller believed when it made a write, that write included.
type sight struct {
	*daemons
	c    simulate.Change
	set  *v1beta1.DaemonSet
	pods map[string][]*corev1.Pod
	// fitting are the nodes that should run a Pod.
	fitting []string
}

func (d *daemons) sightOf(c simulate.Change) (*sight, bool) {
	owner := metav1.GetControllerOfNoCopy(eitherOf(c))
	if owner == nil {
		return nil, false
	}
	s := &sight{daemons: d, c: c, pods: map[string][]*corev1.Pod{}}
	s.set = at(d.sets[owner.UID], c.Pass.Seen[v1beta1.GroupVersion.WithKind("DaemonSet")])
	if s.set == nil {
		return nil, false
	}
	for name := range d.nodes {
		if s.fits(name, corev1.TaintEffectNoSchedule) {
			s.fitting = append(s.fitting, name)
		}
	}
	for _, l := range d.of[owner.UID] {
		if p := s.believed(l); p != nil && metav1.IsControlledBy(p, s.set) && p.Labels["app"] == s.set.Spec.Selector.MatchLabels["app"] {
			s.pods[nodeOf(p)] = append(s.pods[nodeOf(p)], p)
		}
	}
	return s, true
}

// believed returns a Pod as its controller saw it and wrote it since.
func (s *sight) believed(l *life) *corev1.Pod {
	seen := s.c.Pass.Seen[s.c.Key.Kind]
	p := at(l.versions, seen)
	for _, v := range l.versions {
		if v.revision > seen && v.pass != nil && !v.late {
			p = v.object
		}
	}
	return p
}

func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

// fits reports whether a Pod may be on a node, as far as taints of an effect go: those against new Pods, and, in any case, those against
// all.
func (s *sight) fits(name string, effect corev1.TaintEffect) bool {
	return fitsNode(s.set, at(s.nodes[name], s.c.Pass.Seen[corev1.SchemeGroupVersion.WithKind("Node")]), effect)
}

func fitsNode(set *v1beta1.DaemonSet, node *corev1.Node, effect corev1.TaintEffect) bool {
	if node == nil {
		return false
	}
	for key, value := range set.Spec.Template.Spec.NodeSelector {
		if node.Labels[key] != value {
			return false
		}
	}
	for _, taint := range node.Spec.Taints {
		tolerated := taint.Effect != effect && taint.Effect != corev1.TaintEffectNoExecute
		for _, t := range set.Spec.Template.Spec.Tolerations {
			tolerated = tolerated || t.Key == taint.Key
		}
		if !tolerated {
			return false
		}
	}
	return true
}

func (s *sight) rolling() *v1beta1.RollingUpdateDaemonSet {
	return s.set.Spec.UpdateStrategy.RollingUpdate
}

func (s *sight) rests() bool {
	return s.onDelete() || s.rolling().Paused != nil && *s.rolling().Paused
}

func (s *sight) onDelete() bool {
	return s.set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteDaemonSetStrategyType
}

func (s *sight) maxSurge() int {
	if s.onDelete() || s.rolling().Type == v1beta1.InPlaceRollingUpdateType {
		return 0
	}
	return number(s.rolling().MaxSurge, len(s.fitting), math.Ceil)
}

// isNew reports whether the Pod is of the present template.
func (s *sight) isNew(p *corev1.Pod) bool {
	template, known := s.templates[s.set.UID][revisionOf(p)]
	if !known {
		template, known = s.templates[""][revisionOf(p)]
	}
	want := &s.set.Spec.Template
	return known && equality.Semantic.DeepEqual(template.Spec, want.Spec) &&
		equality.Semantic.DeepEqual(template.Labels, want.Labels) && equality.Semantic.DeepEqual(template.Finalizers, want.Finalizers)
}

func (d *daemons) judge(c simulate.Change) {
	s, ok := d.sightOf(c)
	if !ok {
		return
	}
	before, _ := c.Before.(*corev1.Pod)
	after, _ := c.After.(*corev1.Pod)
	if before == nil {
		s.judgeCreation(after)
		return
	}
	node := nodeOf(before)
	if isActive(before) && !isActive(after) && s.set.Spec.Lifecycle != nil && isHooked(before, s.set.Spec.Lifecycle.PreDelete) {
		s.breaks(RuleHook, "%s is deleted while its preDelete hook holds it", before.Name)
	}
	if !s.fits(node, corev1.TaintEffectNoSchedule) {
		return
	}
	minReady := s.set.Spec.MinReadySeconds
	if serves(before, minReady, c.Pass.Time) && !(serves(after, minReady, c.Pass.Time) && sameImages(before, after)) {
		s.judgeHarm(before, node)
	}
	if isUsable(before) && !s.isNew(before) && (!isUsable(after) || s.isNew(after)) {
		s.judgeReach(before, node)
	}
}

func (s *sight) judgeCreation(p *corev1.Pod) {
	node := nodeOf(p)
	if !s.fits(node, corev1.TaintEffectNoSchedule) {
		s.breaks(RuleNode, "%s is created on %s", p.Name, node)
	}
	var beside []*corev1.Pod
	for _, other := range s.pods[node] {
		ended := other.Status.Phase == corev1.PodFailed || other.Status.Phase == corev1.PodSucceeded
		gone := other.DeletionTimestamp != nil && (ended || s.maxSurge() > 0)
		if other.UID != p.UID && !gone {
			beside = append(beside, other)
		}
	}
	if len(beside) == 0 {
		return
	}
	if s.maxSurge() == 0 || len(beside) > 1 || s.isNew(beside[0]) {
		s.breaks(RuleOneANode, "%s is created on %s beside %s", p.Name, node, beside[0].Name)
		return
	}
	if !serves(beside[0], s.set.Spec.MinReadySeconds, s.c.Pass.Time) {
		return // one that is not available gets help at once
	}
	pairs := 0
	for _, name := range s.fitting {
		active := 0
		for _, other := range s.pods[name] {
			if isActive(other) {
				active++
			}
		}
		if active > 1 {
			pairs++
		}
	}
	if pairs > s.maxSurge() {
		s.breaks(RuleSurge, "with %s %d nodes have two Pods, of at most %d", p.Name, pairs, s.maxSurge())
	}
}

// judgeHarm checks that a write which takes a Pod out of service leaves enough nodes with one that is in it.
func (s *sight) judgeHarm(p *corev1.Pod, node string) {
	down, here := 0, false
	for _, name := range s.fitting {
		served := false
		for _, other := range s.pods[name] {
			served = served || serves(other, s.set.Spec.MinReadySeconds, s.c.Pass.Time)
		}
		if !served {
			down++
			here = here || name == node
		}
	}
	most := 0
	if !s.rests() && s.maxSurge() == 0 {
		most = max(number(s.rolling().MaxUnavailable, len(s.fitting), math.Ceil), 1)
	}
	if here && down > most {
		s.breaks(RuleUnavailable, "with %s %d of %d nodes have no available Pod, of at most %d", p.Name, down, len(s.fitting), most)
	}
}

// judgeReach checks a write that takes a node's only old Pod away, or makes it a new one.
func (s *sight) judgeReach(p *corev1.Pod, node string) {
	touched := 0
	for _, name := range s.fitting {
		old, updated := 0, 0
		for _, other := range s.pods[name] {
			switch {
			case !isUsable(other):
			case s.isNew(other):
				updated++
			default:
				old++
			}
		}
		if name == node && (old > 0 || updated > 0 && !s.isNew(s.now(p))) {
			return // it was not the only one
		}
		if old == 0 || updated > 0 {
			touched++
		}
	}
	most := 0
	if !s.rests() {
		most = len(s.fitting) - number(s.rolling().Partition, len(s.fitting), math.Floor)
	}
	if touched > most {
		s.breaks(RuleReach, "with %s %d nodes are updated, of at most %d", p.Name, touched, most)
	}
	if canary := s.rolling().Selector; canary != nil {
		seen := at(s.nodes[node], s.c.Pass.Seen[corev1.SchemeGroupVersion.WithKind("Node")])
		for key, value := range canary.MatchLabels {
			if seen.Labels[key] != value {
				s.breaks(RuleReach, "%s is updated on %s, which is not selected", p.Name, node)
			}
		}
	}
}

// now returns a Pod as it is after the write.
func (s *sight) now(p *corev1.Pod) *corev1.Pod {
	if after, ok := s.c.After.(*corev1.Pod); ok {
		return after
	}
	return p
}

func (s *sight) breaks(rule, format string, args ...any) {
	s.violations = append(s.violations, Violation{Rule: rule, Revision: s.c.Revision, Text: fmt.Sprintf(format, args...)})
}

// DaemonsConverged returns how a cluster at rest differs from what a DaemonSet wants.
func DaemonsConverged(c *simulate.Cluster, set *v1beta1.DaemonSet) []string {
	var problems []string
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	byNode := map[string][]*corev1.Pod{}
	for _, object := range c.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		if p := object.(*corev1.Pod); metav1.IsControlledBy(p, set) {
			byNode[nodeOf(p)] = append(byNode[nodeOf(p)], p)
		}
	}
	fitting, updated, misplaced := 0, 0, 0
	for _, object := range c.Of(corev1.SchemeGroupVersion.WithKind("Node")) {
		node := object.(*corev1.Node)
		pods := byNode[node.Name]
		delete(byNode, node.Name)
		switch {
		case fitsNode(set, node, corev1.TaintEffectNoSchedule):
			fitting++
			if len(pods) != 1 || !serves(pods[0], set.Spec.MinReadySeconds, c.Now()) {
				wrong("%s has %d Pods, not one that is available", node.Name, len(pods))
				continue
			}
			if isAt(pods[0], set.Status.UpdateRevision) {
				updated++
				if !equality.Semantic.DeepEqual(imagesOf(pods[0].Spec.Containers), imagesOf(set.Spec.Template.Spec.Containers)) {
					wrong("%s is labelled %s and is not like its template", pods[0].Name, revisionOf(pods[0]))
				}
			}
		case len(pods) > 0 && !fitsNode(set, node, corev1.TaintEffectNoExecute):
			wrong("%s has %d Pods, and its template does not fit it", node.Name, len(pods))
		case len(pods) > 0:
			misplaced++
		}
	}
	if len(byNode) > 0 {
		wrong("there are Pods on %d nodes that are gone", len(byNode))
	}
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if least := fitting - number(rolling.Partition, fitting, math.Floor); rolling.Selector == nil && updated < least {
		wrong("%d nodes are updated, of %d", updated, least)
	}
	s := set.Status
	got := []int32{s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.NumberAvailable, s.UpdatedNumberScheduled,
		s.NumberMisscheduled, s.NumberUnavailable}
	want := []int32{int32(fitting), int32(fitting), int32(fitting), int32(fitting), int32(updated), int32(misplaced), 0}
	if !equality.Semantic.DeepEqual(got, want) || s.ObservedGeneration != set.Generation {
		wrong("the status says %v of generation %d; it is %v of generation %d", got, s.ObservedGeneration, want, set.Generation)
	}
	return problems
}
