package main

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHistogramTellsWhatWasObservedInBetween(t *testing.T) {
	const earlier = `# TYPE kruise_pod_admission_seconds histogram
kruise_pod_admission_seconds_bucket{le="0.001"} 10
kruise_pod_admission_seconds_bucket{le="0.002"} 10
kruise_pod_admission_seconds_bucket{le="+Inf"} 10
kruise_pod_admission_seconds_sum 0.004
kruise_pod_admission_seconds_count 10
kruise_pod_admission_step_seconds_bucket{step="sidecarset",le="0.001"} 10
`
	const later = `kruise_pod_admission_seconds_bucket{le="0.001"} 60
kruise_pod_admission_seconds_bucket{le="0.002"} 109
kruise_pod_admission_seconds_bucket{le="+Inf"} 110
`
	parsed := func(text string) histogram {
		h, err := parseHistogram(strings.NewReader(text), handling, "")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	between := parsed(later).since(parsed(earlier))
	want := histogram{{0.001, 50}, {0.002, 99}, {math.Inf(1), 100}}
	if diff := cmp.Diff(want, between, cmp.AllowUnexported(bucket{})); diff != "" {
		t.Errorf("observed in between (-want +got):\n%s", diff)
	}
	for share, want := range map[float64]float64{0.25: 0.0005, 0.5: 0.001, 0.99: 0.002, 1: 0.002} {
		if got := between.seconds(share); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v of them within %v s, want %v s", share, got, want)
		}
	}
	if got := between.since(between).seconds(0.5); got != 0 {
		t.Errorf("half of none within %v s", got)
	}
	if _, err := parseHistogram(strings.NewReader(""), handling, ""); err == nil {
		t.Error("metrics without the histogram are read as one")
	}
	if got := between.most(); got != 0.002 {
		t.Errorf("the greatest bound is %v s", got)
	}
	if got := between.since(between).most(); got != 0 {
		t.Errorf("without observations, the longest is %v s", got)
	}
	step, err := parseHistogram(strings.NewReader(earlier), "kruise_pod_admission_step_seconds", `step="sidecarset",`)
	if err != nil || step.most() != 0.001 {
		t.Errorf("of those with a label, none took longer than %v s, %v", step.most(), err)
	}
}

func TestGauge(t *testing.T) {
	metrics := []byte("# TYPE go_threads gauge\ngo_threads_total 1\ngo_threads 1.5e+07\n")
	if got, err := gauge(metrics, "go_threads"); err != nil || got != 1.5e7 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := gauge(metrics, "go_goroutines"); err == nil {
		t.Error("metrics without the gauge are read as some with it")
	}
}

func TestPerForeignComparesLikeWithLike(t *testing.T) {
	const mib = 1 << 20
	got := perForeign([]footprint{
		{Start: afterStop, PeakMiB: 50, RestMiB: 40, LiveMiB: 20},
		{Start: afterStop, Own: 10, PeakMiB: 60, RestMiB: 50, LiveMiB: 30},
		{Start: afterCrash, Own: 10, PeakMiB: 70, RestMiB: 50, LiveMiB: 30},
		{Start: afterStop, Own: 10, Foreign: 10, PeakMiB: 80, RestMiB: 60, LiveMiB: 35},
		{Start: afterCrash, Own: 10, Foreign: 10, PeakMiB: 100, RestMiB: 60, LiveMiB: 35},
	})
	want := map[string]bytesPerPod{
		afterStop:  {Peak: 2 * mib, Rest: mib, Live: mib / 2},
		afterCrash: {Peak: 3 * mib, Rest: mib, Live: mib / 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
