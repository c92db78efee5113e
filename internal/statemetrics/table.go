package statemetrics

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// table says which metrics objects of the type O have: a line for each metric.
type table[O client.Object] struct {
	kind  string
	scope scope
	list  func() client.ObjectList
	// numbers are metrics with one value for an object.
	numbers []number[O]
	// conditions returns those that the status has, for status_condition and for the wait of a workload; nil for a kind without.
	conditions func(O) []condition
	// pods returns the Pods by state, of a kind that is a workload.
	pods func(O) map[string]int32
	// described are further metrics, whose values more adds.
	described described
	more      func(*record, O)
}

// number is a metric with one value.
type number[O client.Object] struct {
	name, help string
	of         func(O) float64
}

// tally is a metric that counts something.
func tally[O client.Object, N int | int32 | int64](name, help string, of func(O) N) number[O] {
	return number[O]{name, help, func(o O) float64 { return float64(of(o)) }}
}

// yes is a metric that is 1 while something holds, and 0 else.
func yes[O client.Object](name, help string, holds func(O) bool) number[O] {
	return number[O]{name, help, func(o O) float64 { return flag(holds(o)) }}
}

// generation is the metric of the generation that a status speaks of.
func generation[O client.Object](of func(O) int64) number[O] {
	return tally("status_observed_generation", "The generation of the spec that its status speaks of.", of)
}

// Kind returns the metrics of the table.
func (t table[O]) Kind() Kind {
	b := of(t.kind, t.scope)
	d := described{}
	for name, help := range t.described {
		d[name] = help
	}
	for _, n := range t.numbers {
		d[n.name] = n.help
	}
	if t.conditions != nil {
		d["status_condition"] = "1 for the status and the reason that a condition has."
	}
	families := b.families
	if t.pods != nil {
		families = b.workload
	}
	return Kind{kind: t.kind, list: t.list, families: families(d), samples: func(o client.Object, now time.Time) []sample {
		return t.samples(b.record(o, now), o.(O))
	}}
}

func (t table[O]) samples(r *record, o O) []sample {
	for _, n := range t.numbers {
		r.put(n.name, n.of(o))
	}
	if t.conditions != nil {
		r.conditions(t.conditions(o))
	}
	if t.pods != nil {
		r.pods(t.pods(o))
	}
	if t.more != nil {
		t.more(r, o)
	}
	return r.out
}

// conditionsOf returns conditions of any kind.
func conditionsOf[C any](all []C, read func(C) condition) []condition {
	var out []condition
	for _, c := range all {
		out = append(out, read(c))
	}
	return out
}

func standard(c metav1.Condition) condition {
	return condition{c.Type, string(c.Status), c.Reason, c.LastTransitionTime}
}
