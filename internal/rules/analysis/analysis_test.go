package analysis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

const (
	good    = v1beta1.AnalysisSuccessful
	bad     = v1beta1.AnalysisFailed
	unclear = v1beta1.AnalysisInconclusive
	running = v1beta1.AnalysisRunning
)

func begin() time.Time { return time.Unix(1e9, 0) }

// run measures as often as it is asked to, with the outcomes in their order, and returns the last decision and when it was made.
func run(spec *v1beta1.Analysis, outcomes map[string][]v1beta1.AnalysisPhase) (last Decision, took time.Duration) {
	var status *v1beta1.AnalysisStatus
	var results []Result
	now := begin()
	for range 100 {
		last = Next(spec, status, Seen{Now: now, Of: "v2/1", Results: results})
		status = &last.Status
		if last.Status.Phase != running {
			break
		}
		for _, r := range last.Measure {
			of := outcomes[r.Check.Name]
			phase := of[min(int(r.Number), len(of))-1]
			results = append(results, Result{r.Key(), v1beta1.Measurement{Phase: phase, StartedAt: metav1.NewTime(now), Value: fmt.Sprint(r.Number)}})
		}
		if len(last.Measure) == 0 {
			now = now.Add(last.After)
		}
	}
	return last, now.Sub(begin())
}

func check1(change func(*v1beta1.Check)) *v1beta1.Analysis {
	c := v1beta1.Check{Name: "rate", IntervalSeconds: ptr.To[int32](10), Prometheus: &v1beta1.PrometheusCheck{Success: "< 1"}}
	if change != nil {
		change(&c)
	}
	return &v1beta1.Analysis{Checks: []v1beta1.Check{c}}
}

func TestOneCheck(t *testing.T) {
	three := func(c *v1beta1.Check) { c.Count = ptr.To[int32](3) }
	for name, tc := range map[string]struct {
		change   func(*v1beta1.Check)
		outcomes []v1beta1.AnalysisPhase
		want     v1beta1.AnalysisPhase
		took     time.Duration
		says     string
	}{
		"one success is enough by default":        {nil, []v1beta1.AnalysisPhase{good}, good, 0, "all 1 checks succeeded"},
		"one failure is enough by default":        {nil, []v1beta1.AnalysisPhase{bad}, bad, 0, "check rate: 1 of 1 measurements failed, and 0 may; last values 1"},
		"three are measured at intervals":         {three, []v1beta1.AnalysisPhase{good}, good, 20 * time.Second, ""},
		"a failure ends it at once":               {three, []v1beta1.AnalysisPhase{good, bad}, bad, 10 * time.Second, "1 of 2 measurements failed"},
		"what tells nothing is measured again":    {three, []v1beta1.AnalysisPhase{unclear, good}, good, 30 * time.Second, ""},
		"what tells nothing for long ends it":     {three, []v1beta1.AnalysisPhase{good, unclear}, unclear, 40 * time.Second, "4 measurements told nothing, and 3 may"},
		"the limit of what tells nothing":         {func(c *v1beta1.Check) { c.InconclusiveLimit = ptr.To[int32](0) }, []v1beta1.AnalysisPhase{unclear}, unclear, 0, "1 measurements told nothing"},
		"the first measurement waits":             {func(c *v1beta1.Check) { c.InitialDelaySeconds = 7 }, []v1beta1.AnalysisPhase{good}, good, 7 * time.Second, ""},
		"failures within the limit are forgiven":  {func(c *v1beta1.Check) { three(c); c.FailureLimit = 1 }, []v1beta1.AnalysisPhase{bad, good}, good, 20 * time.Second, ""},
		"one failure more than the limit ends it": {func(c *v1beta1.Check) { three(c); c.FailureLimit = 1 }, []v1beta1.AnalysisPhase{bad, good, bad}, bad, 20 * time.Second, "2 of 3 measurements failed, and 1 may; last values 1, 2, 3"},
	} {
		t.Run(name, func(t *testing.T) {
			got, took := run(check1(tc.change), map[string][]v1beta1.AnalysisPhase{"rate": tc.outcomes})
			if got.Status.Phase != tc.want || took != tc.took || !strings.Contains(got.Status.Message, tc.says) {
				t.Errorf("%s after %s: %q, want %s after %s: %q", got.Status.Phase, took, got.Status.Message, tc.want, tc.took, tc.says)
			}
		})
	}
}

func TestSeveralChecks(t *testing.T) {
	two := func() *v1beta1.Analysis {
		a := check1(nil)
		b := a.Checks[0]
		b.Name, b.Count, b.InconclusiveLimit = "latency", ptr.To[int32](3), ptr.To[int32](0)
		a.Checks = append(a.Checks, b)
		return a
	}
	for name, tc := range map[string]struct {
		rate, latency []v1beta1.AnalysisPhase
		want          v1beta1.AnalysisPhase
		took          time.Duration
	}{
		"all succeed":                          {[]v1beta1.AnalysisPhase{good}, []v1beta1.AnalysisPhase{good}, good, 20 * time.Second},
		"one failure ends all":                 {[]v1beta1.AnalysisPhase{bad}, []v1beta1.AnalysisPhase{good}, bad, 0},
		"a failure counts more than not told":  {[]v1beta1.AnalysisPhase{unclear, unclear, bad}, []v1beta1.AnalysisPhase{unclear}, bad, 20 * time.Second},
		"what is not told waits for the other": {[]v1beta1.AnalysisPhase{unclear, unclear, good}, []v1beta1.AnalysisPhase{unclear}, unclear, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			got, took := run(two(), map[string][]v1beta1.AnalysisPhase{"rate": tc.rate, "latency": tc.latency})
			if got.Status.Phase != tc.want || took != tc.took {
				t.Errorf("%s after %s, want %s after %s", got.Status.Phase, took, tc.want, tc.took)
			}
		})
	}
}

func TestAnAnalysisBeginsAnew(t *testing.T) {
	spec := check1(nil)
	done, _ := run(spec, map[string][]v1beta1.AnalysisPhase{"rate": {good}})
	late := begin().Add(time.Hour)
	if again := Next(spec, &done.Status, Seen{Now: late, Of: "v2/1"}); again.Status.Phase != good || len(again.Measure) > 0 {
		t.Errorf("what is done is done again: %+v", again)
	}
	for name, of := range map[string]string{"another step": "v2/2", "another release": "v3/1"} {
		if next := Next(spec, &done.Status, Seen{Now: late, Of: of}); next.Status.Phase != running || len(next.Measure) != 1 {
			t.Errorf("%s: %+v", name, next)
		}
	}
	changed := check1(func(c *v1beta1.Check) { c.Prometheus.Success = "< 2" })
	if next := Next(changed, &done.Status, Seen{Now: late, Of: "v2/1"}); next.Status.Phase != running {
		t.Errorf("another rule: %+v", next)
	}
}

// TestMeasurementsWhateverHappens stops the controller at any point, loses results, repeats and mixes up results, and lets time pass as it
// likes. Each measurement counts once, none begins before its time, and the verdict is that of an undisturbed run.
func TestMeasurementsWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := check1(func(c *v1beta1.Check) {
			c.Count = ptr.To(rapid.Int32Range(1, 6).Draw(t, "count"))
			c.FailureLimit = rapid.Int32Range(0, 3).Draw(t, "failureLimit")
			c.InconclusiveLimit = ptr.To(rapid.Int32Range(0, 3).Draw(t, "inconclusiveLimit"))
			c.InitialDelaySeconds = rapid.Int32Range(0, 20).Draw(t, "delay")
		})
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		outcomes := make([]v1beta1.AnalysisPhase, 32)
		for i := range outcomes {
			outcomes[i] = []v1beta1.AnalysisPhase{good, good, bad, unclear}[r.IntN(4)]
		}
		want, _ := run(spec, map[string][]v1beta1.AnalysisPhase{"rate": outcomes})
		var status *v1beta1.AnalysisStatus
		known := map[Key]Result{} // of the runner, which forgets when it stops
		var stale []Result
		now := begin()
		for range 2000 {
			var results []Result
			for _, result := range known {
				results = append(results, result)
			}
			results = append(results, stale...)
			r.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
			d := Next(spec, status, Seen{Now: now, Of: "v2/1", Results: results})
			if r.IntN(4) > 0 { // else it stops before the status is stored
				status = d.Status.DeepCopy()
				for _, m := range d.Measure {
					if counted := status.Checks[0].Measurements; m.Number > 1 && now.Sub(counted[len(counted)-1].StartedAt.Time) < 10*time.Second {
						t.Fatalf("measurement %d begins before its time, after %v", m.Number, counted)
					}
					if _, ok := known[m.Key()]; !ok && r.IntN(3) > 0 {
						known[m.Key()] = Result{m.Key(), v1beta1.Measurement{Phase: outcomes[m.Number-1], StartedAt: metav1.NewTime(now), Value: fmt.Sprint(m.Number)}}
						stale = append(stale, known[m.Key()], Result{Key{"other", "rate", m.Number}, v1beta1.Measurement{Phase: bad}})
					}
				}
			}
			if r.IntN(5) == 0 {
				known = map[Key]Result{}
			}
			if status != nil && status.Phase != running {
				break
			}
			now = now.Add(time.Duration(r.IntN(5)) * time.Second)
		}
		got := *status.DeepCopy()
		for _, s := range []*v1beta1.AnalysisStatus{&got, &want.Status} {
			s.StartedAt = metav1.Time{}
			for m := range s.Checks[0].Measurements {
				s.Checks[0].Measurements[m].StartedAt = metav1.Time{}
			}
		}
		if diff := cmp.Diff(want.Status, got); diff != "" {
			t.Fatalf("(-undisturbed +disturbed):\n%s", diff)
		}
	})
}

func TestAStatusStaysSmall(t *testing.T) {
	spec := check1(func(c *v1beta1.Check) { c.Count = ptr.To[int32](50) })
	var status *v1beta1.AnalysisStatus
	now := begin()
	var results []Result
	for range 200 {
		d := Next(spec, status, Seen{Now: now, Of: "v2/1", Results: results})
		status, results = &d.Status, nil
		for _, r := range d.Measure {
			long := strings.Repeat("ä", 1000)
			results = append(results, Result{r.Key(), v1beta1.Measurement{Phase: good, StartedAt: metav1.NewTime(now), Value: long, Message: long}})
		}
		now = now.Add(d.After)
	}
	c := status.Checks[0]
	if status.Phase != good || len(c.Measurements) != 5 || len(c.Measurements[4].Value) > 64 || len(c.Measurements[4].Message) > 256 {
		t.Errorf("%s with %d measurements, the last %+v", status.Phase, len(c.Measurements), c.Measurements[len(c.Measurements)-1])
	}
}
