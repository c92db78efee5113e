package statemetrics

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind says which metrics the objects of a kind have.
type Kind struct {
	// kind is its name as in manifests.
	kind     string
	list     func() client.ObjectList
	families []family
	samples  func(o client.Object, now time.Time) []sample
}

// family is a metric.
type family struct {
	name, help string
	labels     []string
}

// sample is the value of one series.
type sample struct {
	name   string
	value  float64
	labels []string
}

// Names of metrics that all kinds have in common.
const (
	waitingSeconds = "kruise_workload_waiting_seconds"
	workloadPods   = "kruise_workload_pods"
)

// scope says which labels name an object.
type scope int

const (
	namespaced scope = iota
	clusterWide
)

// described are the metrics of a kind, by the part of their names that follows kruise_ and the kind.
type described map[string]string

// labelsOf returns the labels that a metric has besides those that name the object.
func labelsOf(metric string) []string {
	switch metric {
	case "status_condition":
		return []string{"condition", "status", "reason"}
	case "status_phase":
		return []string{"phase"}
	case "status_step_state":
		return []string{"state"}
	case "info":
		return []string{"workload_kind", "workload", "style"}
	}
	return nil
}

// builder puts the metrics of a kind together.
type builder struct {
	kind   string
	prefix string
	names  []string
	scope  scope
}

func of(kind string, s scope) builder {
	label := strings.ToLower(kind)
	b := builder{kind: kind, prefix: "kruise_" + label + "_", names: []string{"namespace", label}, scope: s}
	if s == clusterWide {
		b.names = b.names[1:]
	}
	return b
}

// families returns the metrics that are described, with those that every kind has.
func (b builder) families(d described) []family {
	d["created"] = "When it was created, in seconds since 1970."
	d["metadata_generation"] = "The generation of its spec."
	var out []family
	for name, help := range d {
		out = append(out, family{b.prefix + name, help, append(append([]string{}, b.names...), labelsOf(name)...)})
	}
	return out
}

// workload returns the same and the metrics that all workloads have under one name.
func (b builder) workload(d described) []family {
	return append(b.families(d),
		family{waitingSeconds, "How long the condition Waiting has been True, by its reason: what keeps the workload from its end.",
			[]string{"namespace", "kind", "name", "reason"}},
		family{workloadPods,
			"Pods of a workload by state: desired, current, ready, available, updated, updated_available, and to_update, " +
				"how many the update revision is wanted on.", []string{"namespace", "kind", "name", "state"}})
}

// record collects the samples of one object.
type record struct {
	builder
	object client.Object
	now    time.Time
	out    []sample
}

func (b builder) record(o client.Object, now time.Time) *record {
	r := &record{builder: b, object: o, now: now}
	r.put("created", float64(o.GetCreationTimestamp().Unix()))
	r.put("metadata_generation", float64(o.GetGeneration()))
	return r
}

func (r *record) identity() []string {
	if r.scope == clusterWide {
		return []string{r.object.GetName()}
	}
	return []string{r.object.GetNamespace(), r.object.GetName()}
}

// put adds a value of a metric of the kind.
func (r *record) put(metric string, value float64, labels ...string) {
	r.out = append(r.out, sample{r.prefix + metric, value, append(r.identity(), labels...)})
}

// phase adds the phase that an object is in, if it is in one.
func (r *record) phase(in string) {
	if in != "" {
		r.put("status_phase", 1, in)
	}
}

// pods adds Pods by their state.
func (r *record) pods(states map[string]int32) {
	for state, number := range states {
		r.out = append(r.out, sample{workloadPods, float64(number),
			[]string{r.object.GetNamespace(), r.kind, r.object.GetName(), state}})
	}
}

// condition is what a condition of any kind says.
type condition struct {
	kind, status, reason string
	since                metav1.Time
}

// conditions adds what conditions say. A series is there only for the status that a condition has. typeWaiting also says for how long.
func (r *record) conditions(all []condition) {
	for _, c := range all {
		r.put("status_condition", 1, c.kind, c.status, c.reason)
		if c.kind == typeWaiting && c.status == string(metav1.ConditionTrue) {
			r.waits(c.reason, c.since)
		}
	}
}

// typeWaiting is the condition of workloads that says what they wait for.
const typeWaiting = "Waiting"

// waits adds how long a workload has waited for a reason.
func (r *record) waits(reason string, since metav1.Time) {
	if since.IsZero() {
		return
	}
	r.out = append(r.out, sample{waitingSeconds, max(0, r.now.Sub(since.Time).Seconds()),
		[]string{r.object.GetNamespace(), r.kind, r.object.GetName(), reason}})
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}
