package release

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Stage is what a step of a release comes to, once its Pods are ready and its traffic is led.
type Stage struct {
	// Step is counted from 1, of Steps.
	Step  int32 `json:"step"`
	Steps int32 `json:"steps"`
	// Pods are the updated Pods, those of earlier steps included, of Replicas.
	Pods     int32 `json:"pods"`
	Replicas int32 `json:"replicas"`
	// Routes is what the routes lead to the new version: "5%", or "matches"; empty for a step that leads none, in which requests go to all
	// Pods. Led says whether the Rollout leads traffic at all.
	Routes string `json:"routes,omitempty"`
	Led    bool   `json:"led"`
	// Analysed says that the new version is measured before the step pauses.
	Analysed bool `json:"analysed,omitempty"`
	// Approval says that the step waits for an approval, Seconds how long it waits by itself otherwise.
	Approval bool  `json:"approval,omitempty"`
	Seconds  int32 `json:"seconds,omitempty"`
	// Remarks say what of the step may not be as it is meant.
	Remarks []string `json:"remarks,omitempty"`

	route string
}

// Preview returns what each step of a plan comes to, one after the other, from a workload of which no Pod is updated yet. Planned says how
// many Pods a step updates, as the kind of the workload has it.
func Preview(p Plan, replicas int32, planned func(*intstr.IntOrString) (int32, error)) ([]Stage, error) {
	var out []Stage
	for i, step := range p.Steps {
		n, err := planned(step.Replicas)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		s := Stage{
			Step: int32(i) + 1, Steps: int32(len(p.Steps)), Pods: n, Replicas: replicas, Led: p.Routed || p.Shared,
			Analysed: step.Analysis != nil,
		}
		if i > 0 {
			s.Pods = max(n, out[i-1].Pods) // no update is taken back
		}
		if p.Routed && Route(step) != "" && !updatesAll(p.Style, step.Replicas, replicas) {
			s.route = Route(step)
			if s.Routes = s.route; len(step.Matches) > 0 {
				s.Routes = "matches"
			} else {
				s.Routes = *step.Traffic
			}
		}
		if !endsAtOnce(p.Style, p.Steps, i) {
			s.Approval = step.Pause.Duration == nil
			if !s.Approval {
				s.Seconds = *step.Pause.Duration
			}
		}
		out = append(out, s)
		out[i].Remarks = remarks(p, out, n)
	}
	return out, nil
}

// remarks says what of the last stage may not be as it is meant. Alone is what its step would update without those before.
func remarks(p Plan, stages []Stage, alone int32) []string {
	i := len(stages) - 1
	s, step := stages[i], p.Steps[i]
	var out []string
	if i > 0 {
		before := stages[i-1]
		switch {
		case alone < before.Pods:
			out = append(out, fmt.Sprintf("%s of %d Pods are %d, and step %d has updated %d: none of them goes back",
				step.Replicas, s.Replicas, alone, before.Step, before.Pods))
		case s.Pods == before.Pods && s.route == before.route:
			out = append(out, fmt.Sprintf("%s of %d Pods are %d, as many as at step %d: it changes nothing", step.Replicas, s.Replicas,
				alone, before.Step))
		}
	}
	full, _ := Planned(step.Replicas, s.Replicas) // alone could be told, so this can
	switch {
	case step.Replicas.Type == intstr.Int && step.Replicas.IntVal > s.Replicas:
		out = append(out, fmt.Sprintf("it says %d Pods, and there are %d", step.Replicas.IntVal, s.Replicas))
	case full > alone:
		out = append(out, fmt.Sprintf("%s of %d Pods, rounded up, are all: one stays old", step.Replicas, s.Replicas))
	case step.Replicas.Type == intstr.String && !isAll(step.Replicas) && s.Replicas > 0 && full >= s.Replicas:
		out = append(out, fmt.Sprintf("%s of %d Pods, rounded up, are all: none stays old", step.Replicas, s.Replicas))
	}
	if Route(step) != "" && s.Led && !p.Shared && s.route == "" {
		out = append(out, "it leads no traffic, because it updates all Pods: requests go to all of them")
	}
	return out
}

// String says what the stage comes to: "step 1 of 3: 1 of 10 Pods, 5% of requests, then waits for an approval".
func (s Stage) String() string {
	return fmt.Sprintf("step %d of %d: %s", s.Step, s.Steps, strings.Join([]string{s.PodsText(), s.TrafficText(), s.ThenText()}, ", "))
}

// PodsText says how many Pods are updated.
func (s Stage) PodsText() string { return fmt.Sprintf("%d of %d Pods", s.Pods, s.Replicas) }

// TrafficText says which requests go to the new version.
func (s Stage) TrafficText() string {
	switch {
	case s.Routes == "matches":
		return "requests that match"
	case s.Routes != "":
		return s.Routes + " of requests"
	case s.Pods >= s.Replicas:
		return "all requests"
	}
	return "requests as they come"
}

// ThenText says what follows.
func (s Stage) ThenText() string {
	then := "then goes on"
	switch {
	case s.Approval:
		then = "then waits for an approval"
	case s.Seconds > 0:
		then = fmt.Sprintf("then waits %d s", s.Seconds)
	case s.Step == s.Steps:
		then = "then ends"
	}
	if s.Analysed {
		return "is analysed, " + then
	}
	return then
}

// PlanOf returns what of a Rollout's strategy its preview follows from.
func PlanOf(style Style, steps *v1beta1.StepsStrategy) Plan {
	return Plan{
		Style: style, Steps: steps.Steps, Routed: len(steps.TrafficRoutings) > 0, Shared: steps.TrafficRoutingRef != "",
	}
}
