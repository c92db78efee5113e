package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/analysis"
	"github.com/seed-69ecc383/kruise/internal/rules/guard"
)

// world does what Next asks for: a workload whose Pods follow at once, Services and routes.
type world struct {
	plan   Plan
	status v1beta1.RolloutStatus
	seen   Seen
	done   bool
	// old are the Pods of the first version. It is told of them no more than NoneOld.
	old int32
	// stranded says that there were none in the round before, either: nothing can be done about it before it is seen.
	stranded bool
	// routed and served are when the routes were last changed, and when the Service of the new version was created.
	routed, served time.Time
	// log is what was done. broken is a promise that was broken.
	log    []string
	broken string
	// crashing has updated Pods fail. outcome is what a measurement tells.
	crashing bool
	outcome  func(analysis.Request) v1beta1.AnalysisPhase
	measured map[analysis.Key]bool
	// abandoned says that the workload was left frozen. recordless has no record be written.
	abandoned, recordless bool
	// next decides; Next unless a mistake is put in.
	next func(Plan, v1beta1.RolloutStatus, Seen) Decision
}

func newWorld(plan Plan) *world {
	plan.Hash = Hash(plan.Steps)
	w := &world{plan: plan, next: Next, old: 10, seen: Seen{Now: time.Unix(1e9, 0), Workload: &Workload{Settled: true, Replicas: 10, Stable: "v1", Update: "v1", PodHash: "v1"}}}
	for i := range 10 {
		since := w.seen.Now.Add(-time.Hour)
		w.seen.OldPods = append(w.seen.OldPods, guard.Pod{Name: fmt.Sprint("old-", i), Since: since, Ready: true, ReadyChanged: since.Add(time.Second)})
	}
	w.round(whole)
	return w
}

// crash says where a round ends.
type crash int

const (
	whole crash = iota
	beforeStoring
	beforeActing
)

// round is a reconcile.
func (w *world) round(c crash) Decision {
	d := w.next(w.plan, w.status, w.seen)
	if c == beforeStoring {
		return d
	}
	w.status = d.Status
	w.done = w.done || d.Done
	if c == beforeActing {
		return d
	}
	for _, a := range d.Do {
		w.act(a)
	}
	w.measure(d.Measure)
	w.follow()
	w.pods()
	w.check()
	w.stranded = w.old == 0
	return d
}

func (w *world) act(a Action) {
	line := string(a.Do)
	if a.Step > 0 {
		line += fmt.Sprint(" ", a.Step)
	}
	if len(w.log) == 0 || w.log[len(w.log)-1] != line {
		w.log = append(w.log, line)
	}
	b, t := &w.seen.Batch, &w.seen.Traffic
	switch a.Do {
	case Upgrade:
		b.Exists, b.Allowed, b.Resumed, b.Paused = true, a.Step, false, false
	case Hold:
		b.Paused = true
	case Pin:
		t.Pinned = true
	case Unpin:
		t.Pinned = false
	case CreateService:
		if !t.NewService {
			w.served = w.seen.Now
		}
		t.NewService = true
	case RemoveService:
		if t.NewService && w.isRecent(w.routed) {
			w.broken = "a Service goes that the data plane may still lead to"
		}
		t.NewService = false
	case SetRoutes:
		if t.Routes == "" && w.isRecent(w.served) {
			w.broken = "routes lead to a Service of which the data plane may not know yet"
		}
		if t.Routes = AllTraffic; a.Step > 0 {
			t.Routes = Route(w.plan.Steps[a.Step-1])
		}
		w.routed = w.seen.Now
	case RestoreRoutes:
		if t.Routes != "" {
			w.routed = w.seen.Now
		}
		t.Routes = ""
	case Join:
		t.Joined = true
	case Leave:
		t.Joined, t.Leaving = false, true
	case PutBack:
		if w.seen.Workload.Update != w.seen.Workload.Stable {
			w.template(w.seen.Workload.Stable)
		}
	case Resume:
		w.seen.Workload.Frozen = false
	case Release:
		*b = Batch{}
	case Unmark:
		w.seen.Workload.Marked, w.seen.Workload.Frozen = false, false
	case Abandon:
		w.seen.Workload.Marked, w.seen.Workload.Frozen, w.abandoned = false, false, true // nothing says any more that a release has frozen it
	case Record:
		w.seen.Recorded = !w.recordless
	}
}

// isRecent reports whether the data plane may not have followed a change yet.
func (w *world) isRecent(change time.Time) bool {
	return !change.IsZero() && w.seen.Now.Sub(change) < w.plan.Grace
}

// follow is what the workload does by itself, and a TrafficRouting.
func (w *world) follow() {
	w.seen.Traffic.Leaving = false
	work, b := w.seen.Workload, &w.seen.Batch
	if work == nil {
		return
	}
	switch {
	case w.abandoned:
	case !work.Frozen && work.Update == "v1":
		work.Updated, work.RolledBack, b.Resumed = 0, false, b.Exists
	case !work.Frozen:
		work.Updated, b.Resumed = work.Replicas, b.Exists
	case b.Exists && !b.Paused:
		n, err := Planned(w.plan.Steps[b.Allowed-1].Replicas, work.Replicas)
		if err != nil {
			w.broken = err.Error()
		}
		work.Updated = max(work.Updated, n)
		b.Step = b.Allowed
	}
	work.Ready = work.Updated
	if w.old = min(w.old, work.Replicas); w.plan.Style == v1beta1.RollingStylePartition || !work.Frozen {
		w.old = min(w.old, max(work.Replicas-work.Updated, 0))
	}
	if !work.Frozen && work.Update == "v1" {
		w.old = work.Replicas
	}
	work.NoneOld = w.old == 0
}

// measure has what is measured tell at once what it tells.
func (w *world) measure(wanted []analysis.Request) {
	for _, r := range wanted {
		if w.measured[r.Key()] {
			continue
		}
		if w.measured == nil {
			w.measured = map[analysis.Key]bool{}
		}
		w.measured[r.Key()] = true
		w.seen.Measured = append(w.seen.Measured, analysis.Result{
			Key: r.Key(), Measurement: v1beta1.Measurement{Phase: w.outcome(r), StartedAt: metav1.NewTime(w.seen.Now), Value: "7"},
		})
	}
}

// pods brings up the Pods that are updated.
func (w *world) pods() {
	if w.seen.Workload == nil {
		return
	}
	w.seen.NewPods = w.seen.NewPods[:min(len(w.seen.NewPods), int(w.seen.Workload.Updated))]
	for i := len(w.seen.NewPods); i < int(w.seen.Workload.Updated); i++ {
		p := guard.Pod{Name: fmt.Sprint("new-", i), Since: w.seen.Now, Ready: true, ReadyChanged: w.seen.Now.Add(time.Second)}
		if w.crashing {
			p.ExitCode, p.ExitedAt, p.Restarts = 1, w.seen.Now.Add(time.Second), 1
		}
		w.seen.NewPods = append(w.seen.NewPods, p)
	}
}

// check tells whether requests would fail.
func (w *world) check() {
	work, t := w.seen.Workload, w.seen.Traffic
	if work == nil || w.broken != "" {
		return
	}
	switch share := t.Routes; {
	case share != "" && share != "0%" && !t.NewService && !w.plan.OneService:
		w.broken = "routes lead to a Service that is not there"
	case share != "" && share != "0%" && work.Updated == 0 && !work.RolledBack:
		w.broken = "routes lead to no Pods"
	case share == AllTraffic && work.Ready < work.Replicas:
		w.broken = "all requests go to fewer Pods than they need"
	case t.Pinned && w.old == 0 && w.stranded:
		w.broken = "the Service selects old Pods, and there are none"
	}
}

// template gives the workload another template, as the webhook lets it through.
func (w *world) template(revision string) {
	work := w.seen.Workload
	work.Marked, work.Frozen, work.Update, work.PodHash = true, true, revision, revision
	work.Generation++
	work.RolledBack = revision == work.Stable && work.Updated > 0
	if revision != work.Stable {
		work.Updated, work.Ready = 0, 0
	}
}

func (w *world) at() *v1beta1.CommonStatus {
	m := machine{out: Decision{Status: w.status}}
	return m.at()
}

func (w *world) approve() { w.at().CurrentStepState = v1beta1.StepStateReady }

// wait lets time pass and rounds happen until nothing changes any more, for as long as measurements are apart.
func (w *world) wait() *world {
	quiet := 0
	for range 100 {
		before := w.seen
		state := *w.status.DeepCopy()
		w.seen.Now = w.seen.Now.Add(4 * time.Second)
		d := w.round(whole)
		if len(d.Do) == 0 && fmt.Sprint(before.Batch, before.Traffic) == fmt.Sprint(w.seen.Batch, w.seen.Traffic) && same(state, w.status) {
			quiet++
		} else {
			quiet = 0
		}
		if quiet == 3 {
			return w
		}
	}
	w.broken = "it never comes to rest"
	return w
}

func same(a, b v1beta1.RolloutStatus) bool {
	return digest(a) == digest(b)
}

// clean tells what of a release is left.
func (w *world) clean() string {
	t := w.seen.Traffic
	switch {
	case w.seen.Batch.Exists:
		return "a BatchRelease is left"
	case t.Pinned || t.NewService || t.Routes != "" || t.Joined || t.Leaving:
		return fmt.Sprintf("traffic is left: %+v", t)
	case w.seen.Workload != nil && w.seen.Workload.Marked:
		return "the workload is still marked"
	case w.seen.Workload != nil && w.seen.Workload.Frozen:
		return "the workload is left frozen: trap T1"
	}
	return ""
}

func step(replicas any, traffic string) v1beta1.Step {
	s := v1beta1.Step{Replicas: value(replicas)}
	if traffic != "" {
		s.Traffic = &traffic
	}
	return s
}

func passing(s v1beta1.Step) v1beta1.Step {
	s.Pause.Duration = ptr.To[int32](0)
	return s
}
