// Package analysis decides, from what was measured so far, whether a new version is good, and what is measured next.
//
// An analysis is a set of checks. Each is measured at intervals until enough of its measurements have told whether the version is good, too
// many have failed, or too many have told nothing. All that is known is in the status: measurements are numbered, a result counts only if
// it is of the next number, so none counts twice, and a controller that stops at any point goes on.
package analysis

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Request asks for a measurement.
type Request struct {
	// ID is the same for all measurements of one analysis, and no other. Number is that of the measurement of the check, counted from 1.
	ID     string
	Number int32
	Check  v1beta1.Check
}

// Key identifies a measurement of a Rollout.
type Key struct {
	ID, Check string
	Number    int32
}

// Key returns the key of the measurement that is asked for.
func (r Request) Key() Key { return Key{r.ID, r.Check.Name, r.Number} }

// Result is what a measurement has told.
type Result struct {
	Key
	v1beta1.Measurement
}

// Decision is what follows from the measurements so far.
type Decision struct {
	// Status is stored before anything is measured.
	Status v1beta1.AnalysisStatus
	// Measure are the measurements to make now. Asking for one again does not make it again, as long as it is asked for.
	Measure []Request
	// After is when the next measurement is due; 0 if none waits for its time.
	After time.Duration
}

// Seen is what the next decision rests on besides the stored status.
type Seen struct {
	Now time.Time
	// Of names the release and the step: an analysis is of one only.
	Of string
	// Results are those of measurements that were asked for, in any order, those that were counted included.
	Results []Result
}

// How many measurements a status keeps of each check, and how long texts may be.
const (
	maxMeasurements = 5
	maxValue        = 64
	maxMessage      = 256
)

// Next counts the results, and returns what is measured next. A status of another analysis, step or release is dropped.
func Next(spec *v1beta1.Analysis, was *v1beta1.AnalysisStatus, seen Seen) Decision {
	out := Decision{}
	hash := Hash(spec, seen.Of)
	if was != nil && was.Hash == hash {
		was.DeepCopyInto(&out.Status)
	} else {
		out.Status = v1beta1.AnalysisStatus{Phase: v1beta1.AnalysisRunning, Hash: hash, StartedAt: metav1.NewTime(seen.Now).Rfc3339Copy()}
	}
	if out.Status.Phase != v1beta1.AnalysisRunning {
		return out
	}
	id := ID(out.Status)
	old := out.Status.Checks
	out.Status.Checks = nil
	for i := range spec.Checks {
		c := check{&spec.Checks[i], v1beta1.CheckStatus{Name: spec.Checks[i].Name}}
		if n := slices.IndexFunc(old, func(s v1beta1.CheckStatus) bool { return s.Name == c.spec.Name }); n >= 0 {
			c.CheckStatus = old[n]
		}
		c.count(id, seen.Results)
		c.Phase = c.verdict()
		if c.Phase == v1beta1.AnalysisRunning {
			if wait := c.due(out.Status.StartedAt.Time).Sub(seen.Now); wait <= 0 {
				out.Measure = append(out.Measure, Request{ID: id, Number: c.next(), Check: *c.spec})
			} else if out.After == 0 || wait < out.After {
				out.After = wait
			}
		}
		out.Status.Checks = append(out.Status.Checks, c.CheckStatus)
	}
	out.Status.Phase, out.Status.Message = summary(spec, out.Status.Checks)
	if out.Status.Phase != v1beta1.AnalysisRunning {
		out.Measure, out.After = nil, 0
	}
	return out
}

// Hash returns what an analysis is compared by: all that it says, and what it is of.
func Hash(spec *v1beta1.Analysis, of string) string { return digest(of, spec) }

// ID returns what identifies an analysis that has begun.
func ID(s v1beta1.AnalysisStatus) string { return digest(s.Hash, s.StartedAt.Unix()) }

// summary returns the phase of an analysis, and what the first check says that decides it. One that could not tell waits for the others:
// one of them may still fail.
func summary(spec *v1beta1.Analysis, checks []v1beta1.CheckStatus) (phase v1beta1.AnalysisPhase, message string) {
	for _, phase := range []v1beta1.AnalysisPhase{v1beta1.AnalysisFailed, v1beta1.AnalysisRunning, v1beta1.AnalysisInconclusive} {
		for i := range checks {
			if checks[i].Phase == phase {
				return phase, check{&spec.Checks[i], checks[i]}.says()
			}
		}
	}
	return v1beta1.AnalysisSuccessful, fmt.Sprintf("all %d checks succeeded", len(checks))
}

// check is one of an analysis.
type check struct {
	spec *v1beta1.Check
	v1beta1.CheckStatus
}

// next returns the number of the measurement that follows those that were counted.
func (c check) next() int32 { return c.Successful + c.Failed + c.Inconclusive + 1 }

// count adds the results that come next.
func (c *check) count(id string, results []Result) {
	for _, r := range results {
		if r.Key != (Key{id, c.spec.Name, c.next()}) || c.verdict() != v1beta1.AnalysisRunning {
			continue
		}
		switch r.Phase {
		case v1beta1.AnalysisSuccessful:
			c.Successful++
		case v1beta1.AnalysisFailed:
			c.Failed++
		default:
			r.Phase = v1beta1.AnalysisInconclusive
			c.Inconclusive++
		}
		r.Value, r.Message = cut(r.Value, maxValue), cut(r.Message, maxMessage)
		kept := append(slices.Clone(c.Measurements), r.Measurement)
		c.Measurements = kept[max(len(kept)-maxMeasurements, 0):]
	}
}

func (c check) verdict() v1beta1.AnalysisPhase {
	switch {
	case c.Failed > c.spec.FailureLimit:
		return v1beta1.AnalysisFailed
	case c.Inconclusive > ptr.Deref(c.spec.InconclusiveLimit, 3):
		return v1beta1.AnalysisInconclusive
	case c.Successful+c.Failed >= ptr.Deref(c.spec.Count, 1):
		return v1beta1.AnalysisSuccessful
	}
	return v1beta1.AnalysisRunning
}

// due returns when the next measurement begins, of an analysis that began at start.
func (c check) due(start time.Time) time.Time {
	if len(c.Measurements) == 0 {
		return start.Add(time.Duration(c.spec.InitialDelaySeconds) * time.Second)
	}
	last := c.Measurements[len(c.Measurements)-1].StartedAt
	return last.Add(time.Duration(ptr.Deref(c.spec.IntervalSeconds, 60)) * time.Second)
}

// says tells how a check does, with what was measured last.
func (c check) says() string {
	told, wanted := c.Successful+c.Failed, ptr.Deref(c.spec.Count, 1)
	text := fmt.Sprintf("check %s: %d of %d measurements made", c.Name, told, wanted)
	switch {
	case c.Phase == v1beta1.AnalysisFailed:
		text = fmt.Sprintf("check %s: %d of %d measurements failed, and %d may", c.Name, c.Failed, told, c.spec.FailureLimit)
	case c.Phase == v1beta1.AnalysisInconclusive:
		text = fmt.Sprintf("check %s: %d measurements told nothing, and %d may", c.Name, c.Inconclusive, ptr.Deref(c.spec.InconclusiveLimit, 3))
	case c.Failed > 0:
		text += fmt.Sprintf(", %d failed", c.Failed)
	}
	var values []string
	for _, m := range c.Measurements {
		if m.Value != "" {
			values = append(values, m.Value)
		}
	}
	if len(values) > 0 {
		text += "; last values " + strings.Join(values, ", ")
	}
	if n := len(c.Measurements); n > 0 && c.Measurements[n-1].Message != "" {
		text += ": " + c.Measurements[n-1].Message
	}
	return text
}

// cut returns at most n bytes of a text, and of what UTF-8 can say.
func cut(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-3], "") + "..."
}

// digest returns a short text that differs for values that differ.
func digest(values ...any) string {
	h := fnv.New64a()
	for _, v := range values {
		text, _ := json.Marshal(v) // of the API, which can be written
		_, _ = h.Write(append(text, 0))
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
