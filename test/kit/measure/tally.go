package measure

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Risk is the probability with which Tally.Within may be wrong.
const Risk = 1e-4

// Tally sums results up.
type Tally struct {
	// Requests is the number of requests that have come to their end, ByRevision how many of them each version answered, ByPod each Pod.
	Requests          int
	ByRevision, ByPod map[string]int
	// Failures are the requests that no back end answered.
	Failures []Result
	// First is when the first of the requests was sent, Last when the last was, and Slowest how long the slowest answer took.
	First, Last time.Time
	Slowest     time.Duration
}

func (t *Tally) add(r Result) {
	if t.Requests == 0 {
		t.ByRevision, t.ByPod, t.First, t.Last = map[string]int{}, map[string]int{}, r.Sent, r.Sent
	}
	t.Requests++
	if r.Sent.Before(t.First) {
		t.First = r.Sent
	}
	if r.Sent.After(t.Last) {
		t.Last = r.Sent
	}
	if r.Failure != "" {
		t.Failures = append(t.Failures, r)
		return
	}
	t.ByRevision[r.Revision]++
	if r.Pod != "" {
		t.ByPod[r.Pod]++
	}
	t.Slowest = max(t.Slowest, r.Took)
}

// Share returns which part of the requests that were answered a version has answered, from 0 to 1.
func (t Tally) Share(revision string) float64 {
	answered := t.Requests - len(t.Failures)
	if answered == 0 {
		return 0
	}
	return float64(t.ByRevision[revision]) / float64(answered)
}

// Within returns an error if the share of a version is off by more than tolerance, or if there were too few requests to tell.
func (t Tally) Within(revision string, share, tolerance float64) error {
	if enough := Enough(share, tolerance, Risk); t.Requests-len(t.Failures) < enough {
		return fmt.Errorf("%d of %d requests were answered, and it takes %d to tell", t.Requests-len(t.Failures), t.Requests, enough)
	}
	if measured := t.Share(revision); math.Abs(measured-share) > tolerance {
		return fmt.Errorf("version %s has answered %.1f %% of %d requests, and not %.0f %%", revision, 100*measured, t.Requests, 100*share)
	}
	return nil
}

// Lost returns an error that says which requests failed, and when; nil if none did.
func (t Tally) Lost() error {
	if len(t.Failures) == 0 {
		return nil
	}
	counts := map[string]int{}
	for _, f := range t.Failures {
		counts[f.Failure]++
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		reasons = append(reasons, fmt.Sprintf("%d times %s", counts[reason], reason))
	}
	first, last := t.Failures[0].Sent, t.Failures[len(t.Failures)-1].Sent
	return fmt.Errorf("%d of %d requests failed, from %s to %s: %s", len(t.Failures), t.Requests,
		first.Format(time.StampMilli), last.Format(time.StampMilli), strings.Join(reasons, "; "))
}

// width is that of the bar of a line, in characters.
const width = 40

// Line returns a line for people: a bar that is filled as far as the new version answers, its share, and how many requests failed.
func (t Tally) Line(updated string) string {
	share := t.Share(updated)
	filled := int(math.Round(share * width))
	return fmt.Sprintf("[%s%s] %5.1f %% to %s   %d requests, %d failed, slowest %d ms", strings.Repeat("#", filled),
		strings.Repeat("-", width-filled), 100*share, updated, t.Requests, len(t.Failures), t.Slowest.Milliseconds())
}
