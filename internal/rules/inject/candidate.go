// Package inject puts sidecars into new Pods: which SidecarSets apply to a Pod, which revision of each, and what the Pod is then.
//
// SidecarSets are taken in the order of their names, so that the same Pod always comes out the same. A list of containers becomes
//
//	[sidecars before] + the Pod's own + [sidecars after]
//
// where init containers are sorted by name and containers stand in the order of their SidecarSets. What the Pod itself defines wins over
// what a SidecarSet does, in volumes and annotations; only a container of a sidecar's name is replaced, at its place, because it is the
// sidecar of a Pod that was written from another one. Done again, it all changes nothing.
package inject

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Sidecars is what one revision of a SidecarSet puts into Pods. It is made once and read for many Pods.
type Sidecars struct {
	set      *v1beta1.SidecarSet
	hashes   sidecar.Hashes
	revision string
	names    []string
	policies map[string]policy // by the name of the container
	volumes  []*corev1.Volume  // those that its containers mount or map
}

// Revision returns the name of the revision.
func (s *Sidecars) Revision() string { return s.revision }

// Compile reads what a SidecarSet puts into Pods. The name of its revision follows from that, and is right before the revision is stored.
func Compile(set *v1beta1.SidecarSet) (*Sidecars, error) {
	name, err := sidecar.RevisionName(set)
	if err != nil {
		return nil, err
	}
	return CompileRevision(set, name)
}

// CompileRevision reads what a SidecarSet put into Pods at a revision, which set has been taken back to.
func CompileRevision(set *v1beta1.SidecarSet, revision string) (*Sidecars, error) {
	hashes, err := sidecar.HashesOf(&set.Spec)
	if err != nil {
		return nil, err
	}
	s := &Sidecars{
		set: set, hashes: hashes, revision: revision, names: sidecar.Names(&set.Spec),
		policies: map[string]policy{}, volumes: usedVolumes(&set.Spec),
	}
	for c := range sidecar.All(&set.Spec) {
		if c.ResourcesPolicy == nil {
			continue
		}
		if s.policies[c.Name], err = compilePolicy(c.ResourcesPolicy); err != nil {
			return nil, fmt.Errorf("container %s: %w", c.Name, err)
		}
	}
	return s, nil
}

// usedVolumes returns the volumes that sidecars mount or map.
func usedVolumes(spec *v1beta1.SidecarSetSpec) []*corev1.Volume {
	used := map[string]bool{}
	for c := range sidecar.All(spec) {
		for _, mount := range c.VolumeMounts {
			used[mount.Name] = true
		}
		for _, device := range c.VolumeDevices {
			used[device.Name] = true
		}
	}
	var volumes []*corev1.Volume
	for j := range spec.Volumes {
		if used[spec.Volumes[j].Name] {
			volumes = append(volumes, &spec.Volumes[j])
		}
	}
	return volumes
}

// Candidate is a SidecarSet that may apply to a Pod.
type Candidate struct {
	Set       *v1beta1.SidecarSet
	selection sidecar.Selection
	// updated are the Pods that the update strategy's selector lets have the present spec; all, if it has none.
	updated sidecar.Selection
	// Current is what its present spec puts into Pods.
	Current *Sidecars
	// Problem is why it can't be applied; nil mostly.
	Problem error
}

// NewCandidate reads a SidecarSet, once for each change of it.
func NewCandidate(set *v1beta1.SidecarSet) *Candidate {
	c := &Candidate{Set: set}
	if c.selection, c.Problem = sidecar.Select(set.Spec.Selector, set.Spec.NamespaceSelector); c.Problem != nil {
		return c
	}
	if selector := set.Spec.UpdateStrategy.Selector; selector != nil {
		if c.updated, c.Problem = sidecar.Select(selector, nil); c.Problem != nil {
			return c
		}
	}
	c.Current, c.Problem = Compile(set)
	return c
}

// base returns the name of the SidecarSet that this one is the canary of; nothing if it is none.
func (c *Candidate) base() string {
	if c.Set.Annotations[keys.SidecarSetCanary] != "true" {
		return ""
	}
	return c.Set.Annotations[keys.SidecarSetBase]
}

// Candidates are SidecarSets, kept such that those which may select a Pod are found by the Pod's labels: of hundreds, mostly very few. They
// are made once for each change of a SidecarSet and not changed after.
type Candidates struct {
	// byName has them in the order of their names; the others hold places in it.
	byName []*Candidate
	// byLabel are those that select only Pods with this label.
	byLabel map[label][]int
	// others are those that every Pod has to be compared with.
	others []int
}

// label is a label of a Pod.
type label struct{ key, value string }

// NewCandidates takes SidecarSets together.
func NewCandidates(all ...*Candidate) *Candidates {
	c := &Candidates{byName: slices.Clone(all), byLabel: map[label][]int{}}
	slices.SortFunc(c.byName, func(a, b *Candidate) int { return strings.Compare(a.Set.Name, b.Set.Name) })
	for place, one := range c.byName {
		required := one.requiredLabels()
		for _, l := range required {
			c.byLabel[l] = append(c.byLabel[l], place)
		}
		if len(required) == 0 {
			c.others = append(c.others, place)
		}
	}
	return c
}

// Named returns the SidecarSet of a name, nil if there is none.
func (c *Candidates) Named(name string) *Candidate {
	compare := func(one *Candidate, name string) int { return strings.Compare(one.Set.Name, name) }
	place, found := slices.BinarySearchFunc(c.byName, name, compare)
	if !found {
		return nil
	}
	return c.byName[place]
}

// requiredLabels returns labels of which a Pod needs one to be selected, at most one of which it can have: the values that the selector
// allows for one key. There are none where the selector names no value.
func (c *Candidate) requiredLabels() []label {
	requirements, _ := c.selection.Requirements()
	for i := range requirements {
		r := &requirements[i]
		if !sidecar.NamesValues(r) {
			continue
		}
		var required []label
		for _, value := range r.ValuesUnsorted() {
			required = append(required, label{r.Key(), value})
		}
		return required
	}
	return nil
}

// Match returns those that apply to a Pod with these labels, in the order of their names. A canary takes the place of its base. namespace
// returns the labels of the Pod's namespace; it is only asked where they matter.
//
// A selector that can't be read selects nothing: its SidecarSet can't have been accepted as it is.
func (c *Candidates) Match(of labels.Set, namespace func() (map[string]string, error)) ([]*Candidate, error) {
	places := slices.Clone(c.others)
	for key, value := range of {
		places = append(places, c.byLabel[label{key, value}]...)
	}
	slices.Sort(places)
	places = slices.Compact(places) // selectors may name a value twice
	var matching []*Candidate
	var canaryOf []string
	for _, place := range places {
		one := c.byName[place]
		if applies, err := one.appliesTo(of, namespace); err != nil {
			return nil, err
		} else if !applies {
			continue
		}
		matching = append(matching, one)
		if base := one.base(); base != "" {
			canaryOf = append(canaryOf, base)
		}
	}
	return slices.DeleteFunc(matching, func(c *Candidate) bool { return slices.Contains(canaryOf, c.Set.Name) }), nil
}

// appliesTo reports whether a Pod with these labels is selected and gets sidecars now.
func (c *Candidate) appliesTo(of labels.Set, namespace func() (map[string]string, error)) (bool, error) {
	if c.Set.Spec.InjectionStrategy.Paused || c.Set.DeletionTimestamp != nil || !c.selection.MatchesLabels(of) {
		return false, nil
	}
	if !c.selection.NeedsNamespace() {
		return true, nil
	}
	theirs, err := namespace()
	return err == nil && c.selection.MatchesNamespace(theirs), err
}

// Choice says which revision of a SidecarSet a Pod gets.
type Choice int

const (
	// Current is the present spec.
	Current Choice = iota
	// Requested is the revision that the injection strategy names.
	Requested
	// Split is one or the other, by turns: the share of the Pods that get the revision is what the partition says.
	Split
)

// Choose returns which revision a Pod with these labels gets, and with Split the share of the Pods, in percent, that get the one
// requested.
func Choose(c *Candidate, labels map[string]string) (Choice, int) {
	revision, update := c.Set.Spec.InjectionStrategy.Revision, c.Set.Spec.UpdateStrategy
	switch {
	case !RequestsRevision(revision):
		return Current, 0
	case update.Paused || revision.Policy != v1beta1.PartialSidecarSetInjectRevisionPolicy:
		return Requested, 0
	case update.Selector != nil && !c.updated.MatchesLabels(labels):
		return Requested, 0
	}
	percent, ok := percentOf(update.Partition)
	if !ok {
		return Current, 0
	}
	return Split, percent
}

// RequestsRevision reports whether a strategy names a revision.
func RequestsRevision(r *v1beta1.SidecarSetInjectRevision) bool {
	return r != nil && (ptr.Deref(r.RevisionName, "") != "" || ptr.Deref(r.CustomVersion, "") != "")
}

func percentOf(partition *intstr.IntOrString) (int, bool) {
	if partition == nil || partition.Type != intstr.String {
		return 0, false
	}
	percent, err := budget.Scaled(partition, 100, budget.Up)
	return min(percent, 100), err == nil
}

// GetsRequested reports whether, of Pods that are counted from 0, the n-th gets the requested revision, such that at any time their share
// is as near as can be to what is wanted: with 70 percent, three of any ten Pods get the present spec.
func GetsRequested(n, percent int) bool {
	present := 100 - percent
	return (n+1)*present/100 == n*present/100
}

// Find returns the revision that a strategy names. Only those of the SidecarSet itself count.
func Find(set *v1beta1.SidecarSet, revisions []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	requested := set.Spec.InjectionStrategy.Revision
	own := slices.DeleteFunc(slices.Clone(revisions), func(r *appsv1.ControllerRevision) bool {
		return r.Labels[keys.SidecarSetName] != set.Name
	})
	name, version := ptr.Deref(requested.RevisionName, ""), ptr.Deref(requested.CustomVersion, "")
	switch found := sidecar.Requested(requested, own); {
	case found != nil:
		return found, nil
	case name != "":
		return nil, fmt.Errorf("there is no revision %s of it, which injectionStrategy.revision.revisionName asks for", name)
	default:
		return nil, fmt.Errorf("there is no revision of it with the version %s, "+
			"which injectionStrategy.revision.customVersion asks for", version)
	}
}
