package steer

import (
	"encoding/json"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// noDeadline is a progressDeadlineSeconds that never passes. It has to be more than minReadySeconds.
//
// Wire: it is written to users' objects.
const noDeadline = math.MaxInt32

// original is the annotation keys.OriginalDeploymentStrategy: what a workload says of its updates when no release is under way.
//
// Wire: tools read it.
type original struct {
	MaxUnavailable          *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	MaxSurge                *intstr.IntOrString `json:"maxSurge,omitempty"`
	MinReadySeconds         int32               `json:"minReadySeconds,omitempty"`
	ProgressDeadlineSeconds *int32              `json:"progressDeadlineSeconds,omitempty"`
	// Surge is what the release has set maxSurge to; nil as long as it has changed none of these fields.
	Surge *intstr.IntOrString `json:"surge,omitempty"`
	// Paused says that no Pod of the present template may be made: nobody has decided about it yet.
	Paused bool `json:"paused,omitempty"`
}

func (n original) String() string {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err) // numbers, strings and booleans can be written
	}
	return string(text)
}

// besideStrategy is what a release of blueGreen style changes in the spec of a workload.
type besideStrategy struct {
	maxUnavailable, maxSurge *intstr.IntOrString
	minReadySeconds          int32
	progressDeadlineSeconds  *int32
	// stands says that no Pod of a new template is made, whatever the rest says: a Deployment is paused, a CloneSet keeps all Pods old.
	stands bool
}

// original returns what is to be restored of a strategy that no release has changed.
func (s besideStrategy) original() original {
	return original{
		MaxUnavailable: s.maxUnavailable, MaxSurge: s.maxSurge,
		MinReadySeconds: s.minReadySeconds, ProgressDeadlineSeconds: s.progressDeadlineSeconds,
	}
}

// during returns the strategy of a release that has so much surge.
func during(n original) besideStrategy {
	return besideStrategy{
		maxUnavailable: ptr.To(intstr.FromInt32(0)), maxSurge: n.Surge, minReadySeconds: budget.BesideSeconds,
		progressDeadlineSeconds: ptr.To[int32](noDeadline), stands: n.Paused,
	}
}

// part is one field of a strategy: as it is, as the release has set it, and as it was before.
type part struct {
	name            string
	is, during, was any
	// keep has the field restored to what it is.
	keep func(*original)
	// restore gives a strategy what it was before.
	restore func(*besideStrategy)
}

// parts compares a strategy with a note of it.
func (s besideStrategy) parts(n original) []part {
	d := during(n)
	return []part{
		{"maxUnavailable", s.maxUnavailable, d.maxUnavailable, n.MaxUnavailable,
			func(o *original) { o.MaxUnavailable = s.maxUnavailable },
			func(to *besideStrategy) { to.maxUnavailable = n.MaxUnavailable }},
		{"maxSurge", s.maxSurge, d.maxSurge, n.MaxSurge,
			func(o *original) { o.MaxSurge = s.maxSurge },
			func(to *besideStrategy) { to.maxSurge = n.MaxSurge }},
		{"minReadySeconds", s.minReadySeconds, d.minReadySeconds, n.MinReadySeconds,
			func(o *original) { o.MinReadySeconds = s.minReadySeconds },
			func(to *besideStrategy) { to.minReadySeconds = n.MinReadySeconds }},
		{"progressDeadlineSeconds", s.progressDeadlineSeconds, d.progressDeadlineSeconds, n.ProgressDeadlineSeconds,
			func(o *original) { o.ProgressDeadlineSeconds = s.progressDeadlineSeconds },
			func(to *besideStrategy) { to.progressDeadlineSeconds = n.ProgressDeadlineSeconds }},
	}
}

func same(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// held returns the strategy that a release keeps a workload at, whatever somebody has written, and the note with what they want when it is
// over.
func (s besideStrategy) held(n original) (besideStrategy, original) {
	if n.Surge == nil {
		s.stands = s.stands || n.Paused
		return s, n
	}
	noted := n
	for _, p := range s.parts(n) {
		if !same(p.is, p.during) {
			p.keep(&noted)
		}
	}
	return during(noted), noted
}

// restored returns the strategy when the release is over: what it has changed is as before, and what somebody else has changed meanwhile,
// as no webhook was there, stays.
func (s besideStrategy) restored(n original) besideStrategy {
	out := s
	out.stands = false
	if n.Surge == nil {
		return out
	}
	for _, p := range s.parts(n) {
		if same(p.is, p.during) {
			p.restore(&out)
		}
	}
	return out
}

// misfit says which field is neither as the release has set it nor as it was before; empty if all are.
func (s besideStrategy) misfit(n original) string {
	if n.Surge == nil {
		return ""
	}
	for _, p := range s.parts(n) {
		if !same(p.is, p.during) && !same(p.is, p.was) {
			return fmt.Sprintf("%s is %s: the release has set it to %s, and it was %s before; set it to one of the two, or put the old "+
				"template back", p.name, shown(p.is), shown(p.during), shown(p.was))
		}
	}
	return ""
}

func shown(v any) string {
	switch v := v.(type) {
	case *intstr.IntOrString:
		if v != nil {
			return v.String()
		}
	case *int32:
		if v != nil {
			return fmt.Sprint(*v)
		}
	default:
		return fmt.Sprint(v)
	}
	return "not set"
}

// noteOf returns what a workload says of what is to be restored; false if it says nothing. The original does not say what it has set
// maxSurge to.
func noteOf(workload Object, is besideStrategy) (n original, noted bool, err error) {
	text, noted := workload.GetAnnotations()[keys.OriginalDeploymentStrategy]
	if !noted {
		return n, false, nil
	}
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return original{}, true, fmt.Errorf("annotation %s is not JSON of the form {\"maxSurge\":\"25%%\"}: %w",
			keys.OriginalDeploymentStrategy, err)
	}
	if n.Surge == nil && is.minReadySeconds == budget.BesideSeconds {
		n.Surge = is.maxSurge
	}
	return n, true, nil
}

func note(workload Object, n original) {
	annotate(workload, keys.OriginalDeploymentStrategy, n.String())
}

func readDeployment(workload Object) besideStrategy {
	spec := &workload.(*appsv1.Deployment).Spec
	s := besideStrategy{minReadySeconds: spec.MinReadySeconds, progressDeadlineSeconds: spec.ProgressDeadlineSeconds, stands: spec.Paused}
	if r := spec.Strategy.RollingUpdate; r != nil {
		s.maxUnavailable, s.maxSurge = r.MaxUnavailable, r.MaxSurge
	}
	return s
}

func writeDeployment(workload Object, s besideStrategy) {
	spec := &workload.(*appsv1.Deployment).Spec
	spec.MinReadySeconds, spec.ProgressDeadlineSeconds, spec.Paused = s.minReadySeconds, s.progressDeadlineSeconds, s.stands
	if s.maxUnavailable == nil && s.maxSurge == nil && spec.Strategy.RollingUpdate == nil {
		return
	}
	spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: s.maxUnavailable, MaxSurge: s.maxSurge}
}

func readCloneSet(workload Object) besideStrategy {
	spec := &workload.(*v1beta1.CloneSet).Spec
	s := besideStrategy{minReadySeconds: spec.MinReadySeconds, progressDeadlineSeconds: spec.ProgressDeadlineSeconds}
	if r := spec.UpdateStrategy.RollingUpdate; r != nil {
		s.maxUnavailable, s.maxSurge, s.stands = r.MaxUnavailable, r.MaxSurge, !isLeftOut(r.Partition)
	}
	return s
}

func writeCloneSet(workload Object, s besideStrategy) {
	spec := &workload.(*v1beta1.CloneSet).Spec
	spec.MinReadySeconds, spec.ProgressDeadlineSeconds = s.minReadySeconds, s.progressDeadlineSeconds
	r := ptr.Deref(spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateCloneSetStrategy{})
	r.MaxUnavailable, r.MaxSurge = s.maxUnavailable, s.maxSurge
	switch {
	case s.stands:
		r.Partition = ptr.To(intstr.FromString("100%"))
	case !isLeftOut(r.Partition):
		r.Partition = nil
	}
	spec.UpdateStrategy.RollingUpdate = unlessZero(r)
}
