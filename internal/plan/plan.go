// Package plan is the vocabulary of decisions: what a controller wants written, in which order, and what it held back and why.
//
// A Plan is a value. It can be printed, compared, saved as a test case and replayed by a simulator; it holds no client and no clock, and
// making one changes nothing. Package apply carries it out.
package plan

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Verb is the kind of write that an Action asks for.
type Verb string

const (
	// Create makes After.
	Create Verb = "create"
	// Update patches the object with the differences of Before and After outside its status.
	Update Verb = "update"
	// UpdateStatus patches the object's status with the differences of Before and After in status, labels and annotations. Of Pods the API
	// server stores all three in one write.
	UpdateStatus Verb = "update status"
	// Resize patches the Pod's resize subresource with the differences of Before and After in the containers' resources.
	Resize Verb = "resize"
	// AddContainers patches the Pod's ephemeralcontainers subresource with the ephemeral containers that After has and Before has not. What
	// was added once stays.
	AddContainers Verb = "add containers"
	// Delete deletes Before.
	Delete Verb = "delete"
)

// Method is how the update of a Pod is made.
type Method string

const (
	// InPlace changes the containers of a Pod that stays.
	InPlace Method = "InPlace"
	// Recreate deletes a Pod, so that another one comes.
	Recreate Method = "Recreate"
)

// Object is what a plan speaks of: any API object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Concern is the part of a controller's duty that an Action serves; a failure is reported under it.
type Concern string

const (
	// Settle finishes what is in flight: hooks, grace periods, the next batch of containers.
	Settle Concern = "settle"
	// Scale creates and deletes to keep the number of replicas.
	Scale Concern = "scale"
	// Rollout moves Pods to another revision.
	Rollout Concern = "update"
	// Tidy keeps records: revisions, references, lists of names.
	Tidy Concern = "tidy"
)

// Action is one write.
type Action struct {
	Verb Verb
	// Concern says under which heading a failure is reported.
	Concern Concern
	// Before is the object as it was read: its UID and, unless AnyVersion, its resourceVersion are the precondition of the write. Nil for
	// Create.
	Before Object
	// After is the object as it is wanted. Nil for Delete.
	After Object
	// Cluster names another cluster, in which the write is made without waiting for it: its outcome comes with a later pass. Empty for the
	// cluster of the owner. The writes of a chain are all for one cluster.
	Cluster string
	// AnyVersion leaves the resourceVersion out of the precondition: for a write that is right whatever else has changed meanwhile.
	AnyVersion bool
	// While names a label or an annotation that must still be as it was in Before, or be missing as it was, instead of the resourceVersion:
	// for a status write of a Pod, or a write of labels and annotations alone, that others' writes to the same object do not concern, but
	// that must not happen late, when the controller has gone on. The write itself has to change it. Empty for none.
	While string
	// Optional means that nothing depends on the write: when it fails, its event says so and all else goes on.
	Optional bool
	// Method is how the write updates a Pod; empty on a write that begins no update. NotInPlace is the field of the template for which it
	// is Recreate although InPlace was wanted.
	Method     Method
	NotInPlace string
	// What says what is done, and Why what makes it due, both in words for people; empty on a write that merely follows another one.
	What, Why string
	// Event is the reason of the event to emit on the owner once the write has succeeded; empty for none.
	Event string
	// EventType is that event's type; Normal when empty.
	EventType string
	// EventMessage is that event's message.
	EventMessage string
	// FailedEvent is the reason of the Warning event to emit on the owner when the write fails; empty for none. Its message is FailedPrefix
	// and the error.
	FailedEvent, FailedPrefix string
	// OnObject emits both events on the object that is written instead.
	OnObject bool
}

// Object returns the object that the action writes.
func (a Action) Object() Object {
	if a.After != nil {
		return a.After
	}
	return a.Before
}

// Chain is a sequence of writes that depend on each other, mostly on one object: each starts from the result of the one before, and a
// failure ends the chain.
type Chain []Action

// Stage is a set of chains that do not depend on each other: they run in parallel, and the failure of one does not stop the others.
// Chains that create are started in batches that double from 1, of which a failed one is the last, so that a quota is not hammered.
type Stage []Chain

// Hold is something that was wanted and not done, and the rule that said no.
type Hold struct {
	// Name is the object held back, often a Pod; empty when it is the owner itself.
	Name string
	// Code is the reason by which programs go; Nothing where the hold only tells of something.
	Code reason.Code
	// Why names the rule and the numbers or objects behind it.
	Why string
	// Event is the reason of the event to emit on the owner; empty for none.
	Event string
	// EventType is that event's type; Warning when empty.
	EventType string
	// On is the object to emit it on instead of the owner; none for the owner.
	On Reference
	// Failure is the heading under which the hold is reported as a failure, because only a person can end it; empty for an ordinary wait.
	Failure Concern
}

// Reference names an object that an event is about.
type Reference struct {
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
}

// Release is what a plan is a part of: bringing out one revision of an owner.
type Release struct {
	// Name tells it from all other releases of the owner, those of the same revision among them; empty where there is none.
	Name string
	// Revision is what it brings out.
	Revision string
	// Began is when it began, as far as stored objects tell; zero where they do not.
	Began time.Time
}

// Plan is the next step of one owner.
type Plan struct {
	// Summary describes the owner and its limits in a line.
	Summary string
	// Stages run in order. A stage starts only when the one before has had no failure.
	Stages []Stage
	// Holds lists what has to wait.
	Holds []Hold
	// More means that more is due already than the plan writes, which is as much as a pass gets to: the next one follows at once, if this
	// one has written anything.
	More bool
	// Recheck is the time until the answer can change without an event; zero for never.
	Recheck time.Duration
	// RecheckWhy says what changes then.
	RecheckWhy string
	// Problem is what is wrong with the owner's spec such that no step can be planned; nil mostly.
	Problem error
}

// Empty reports whether the plan writes nothing.
func (p Plan) Empty() bool {
	for _, stage := range p.Stages {
		if len(stage) > 0 {
			return false
		}
	}
	return true
}

// Actions returns all writes in the order of their stages and chains.
func (p Plan) Actions() []Action {
	var all []Action
	for _, stage := range p.Stages {
		for _, chain := range stage {
			all = append(all, chain...)
		}
	}
	return all
}

// Builder collects the parts of a Plan.
type Builder struct {
	plan  Plan
	first Stage
	main  Stage
	last  Stage
}

// For starts the plan of an owner that summary describes in a line.
func For(summary string) *Builder {
	return &Builder{plan: Plan{Summary: summary}}
}

// First adds writes that all others must wait for, such as the revision that new Pods refer to.
func (b *Builder) First(chain ...Action) {
	b.first = append(b.first, chain)
}

// Do adds writes that depend on each other and on nothing else. No writes add nothing.
func (b *Builder) Do(chain ...Action) {
	if len(chain) > 0 {
		b.main = append(b.main, chain)
	}
}

// Last adds writes that wait for all others. No writes add nothing.
func (b *Builder) Last(chain ...Action) {
	if len(chain) > 0 {
		b.last = append(b.last, chain)
	}
}

// Hold notes what has to wait, and why.
func (b *Builder) Hold(h Hold) {
	b.plan.Holds = append(b.plan.Holds, h)
}

// More notes that more is due already than is worth planning in one pass.
func (b *Builder) More() { b.plan.More = true }

// Recheck asks for another pass after wait. The soonest of several requests counts; one that is not positive is ignored.
func (b *Builder) Recheck(wait time.Duration, why string) {
	if wait <= 0 || (b.plan.Recheck > 0 && b.plan.Recheck <= wait) {
		return
	}
	b.plan.Recheck, b.plan.RecheckWhy = wait, why
}

// Stop returns a plan that does nothing because the owner's spec can't be read, and says so.
func (b *Builder) Stop(problem error) Plan {
	return Plan{Summary: b.plan.Summary, Problem: problem}
}

// Plan returns what has been collected.
func (b *Builder) Plan() Plan {
	p := b.plan
	for _, stage := range []Stage{b.first, b.main, b.last} {
		if len(stage) > 0 {
			p.Stages = append(p.Stages, stage)
		}
	}
	return p
}

// UntilDeadline returns how long what began at start may still take; a start of nil is now. It is not limited without a deadline. With a
// deadline of 60 seconds, 20 seconds after the start, 40 seconds are left. A deadline above 2147483647 counts as that number, which is 68
// years: a larger one would overflow, and be over at once.
func UntilDeadline(start *metav1.Time, deadlineSeconds *int64, now time.Time) (left time.Duration, limited bool) {
	if deadlineSeconds == nil {
		return 0, false
	}
	left = time.Duration(min(*deadlineSeconds, math.MaxInt32)) * time.Second
	if start != nil {
		left -= now.Sub(start.Time)
	}
	return left, true
}

// TTL says how long an object is kept after it has finished.
type TTL struct {
	// Seconds is nil for an object that is kept for ever.
	Seconds *int32
	// Finished is when the object finished; nil while that is not known.
	Finished *metav1.Time
	Now      time.Time
}

// Expire deletes the object once its time to live is over, and asks for another look then.
func (b *Builder) Expire(object Object, ttl TTL) {
	if ttl.Seconds == nil || ttl.Finished == nil {
		return
	}
	why := fmt.Sprintf("ttlSecondsAfterFinished %d", *ttl.Seconds)
	if left := ttl.Finished.Add(time.Duration(*ttl.Seconds) * time.Second).Sub(ttl.Now); left > 0 {
		b.Recheck(left, why)
		return
	}
	b.Do(Action{Verb: Delete, Concern: Tidy, Before: object, What: "delete", Why: why})
}

// String prints the plan for people: the summary, then a line for every write, every hold, and the next look.
func (p Plan) String() string {
	var out strings.Builder
	out.WriteString(p.Summary)
	out.WriteByte('\n')
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	row := func(cells ...string) {
		for len(cells) > 2 && cells[len(cells)-1] == "" {
			cells = cells[:len(cells)-1]
		}
		_, _ = fmt.Fprintf(table, "  %s\n", strings.Join(cells, "\t"))
	}
	if p.Problem != nil {
		row("problem", p.Problem.Error())
	}
	for _, a := range p.Actions() {
		if a.What != "" {
			row(a.verb(), a.Object().GetName(), a.What, a.Why)
		}
	}
	for _, h := range p.Holds {
		row("hold", h.Name, h.Why)
	}
	if p.Recheck > 0 {
		row("recheck", "in "+p.Recheck.Round(time.Millisecond).String(), p.RecheckWhy)
	}
	_ = table.Flush() // a strings.Builder does not fail
	return out.String()
}

// verb is the word that people read: how a change is written does not matter to them.
func (a Action) verb() string {
	switch a.Verb {
	case UpdateStatus, Resize, AddContainers:
		return string(Update)
	default:
		return string(a.Verb)
	}
}
