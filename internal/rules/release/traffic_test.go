package release

import (
	"testing"
	"time"
)

// TestNothingIsLedToOldPodsThatAreGone: a Service that selects old Pods alone would lead requests to nothing once there are none.
func TestNothingIsLedToOldPodsThatAreGone(t *testing.T) {
	for name, then := range map[string]func(*world){
		"a jump back":                     func(w *world) { w.at().NextStepIndex = 1 },
		"a third version":                 func(w *world) { w.template("v3") },
		"the way back":                    func(w *world) { w.template("v1") },
		"a jump back, and then a pause":   func(w *world) { w.at().NextStepIndex = 1; w.round(whole); w.plan.Paused = true },
		"a jump back, and then the end":   func(w *world) { w.at().NextStepIndex = 1; w.wait(); w.plan.Disabled = true },
		"a jump back, and then a restart": func(w *world) { w.at().NextStepIndex = 1; w.wait(); w.template("v1") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(withTraffic(batches(step(2, "20%"), step(10, ""), step("100%", ""))))
			w.template("v2")
			w.wait()
			w.approve()
			w.wait()
			wantShow(t, w, show{"Progressing", "InRolling", 2, 3, "StepPaused", 10, ""})
			then(w)
			w.wait()
			if w.broken != "" {
				t.Errorf("%s: %v", w.broken, w.log)
			}
		})
	}
	t.Run("scaled down to where a step leaves none", func(t *testing.T) {
		w := newWorld(withTraffic(batches(step("50%", "20%"), step("100%", ""))))
		w.template("v2")
		w.wait()
		w.seen.Workload.Replicas = 1
		w.wait()
		wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 5, ""})
		if w.seen.Traffic.Pinned {
			t.Errorf("the Service selects old Pods, and there are none: %v", w.log)
		}
	})
}

// TestTheDataPlaneIsGivenTimeBetweenChanges: a Service is there a while before routes lead to it, and goes a while after.
func TestTheDataPlaneIsGivenTimeBetweenChanges(t *testing.T) {
	for name, then := range map[string]func(*world){
		"a third version":              func(w *world) { w.template("v3") },
		"a jump to a step without":     func(w *world) { w.at().NextStepIndex = 2 },
		"the way back":                 func(w *world) { w.template("v1") },
		"disabled":                     func(w *world) { w.plan.Disabled = true },
		"the steps lead none any more": func(w *world) { w.plan.Steps[0].Traffic, w.plan.Hash = nil, "other" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(withTraffic(batches(step(2, "20%"), step(3, ""), step("100%", ""))))
			w.template("v2")
			w.often()
			then(w)
			w.often()
			if w.broken != "" {
				t.Errorf("%s: %v", w.broken, w.log)
			}
		})
	}
}

// often lets twenty seconds go by, with a round in each.
func (w *world) often() {
	for range 20 {
		w.seen.Now = w.seen.Now.Add(time.Second)
		w.round(whole)
	}
}

// TestARevisionThatIsNotKnownIsSaid: requests can't be led to Pods whose revision label is not known. The step waits, and says why: trap T7.
func TestARevisionThatIsNotKnownIsSaid(t *testing.T) {
	w := newWorld(withTraffic(batches(step(2, "20%"), step("100%", ""))))
	w.template("v2")
	w.often()
	w.at().NextStepIndex, w.seen.Workload.PodHash = 1, ""
	w.often()
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepTrafficRouting", 2, "waiting for the revision label of its Pods"})
	w.seen.Workload.PodHash = "v2"
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 2, ""})
}
