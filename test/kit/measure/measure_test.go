package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestEnoughIsWhatTheExamplesSay(t *testing.T) {
	for share, want := range map[float64]int{0.5: 5499, 0.05: 1972} {
		if got := Enough(share, 0.03, 1e-4); got != want {
			t.Errorf("for a share of %v it takes %d requests, want %d", share, got, want)
		}
	}
}

// TestEnoughKeepsToItsRisk counts over many measurements how often one is wrong, of a share that is right and of one that is not.
func TestEnoughKeepsToItsRisk(t *testing.T) {
	const measurements, tolerance, risk = 2000, 0.03, 0.01
	random := rand.New(rand.NewPCG(1, 2))
	for _, share := range []float64{0, 0.05, 0.2, 0.5, 1} {
		n := Enough(share, tolerance, risk)
		for name, tc := range map[string]struct {
			real  float64
			right bool
		}{"the share itself": {share, true}, "more by twice the tolerance": {share + 2*tolerance, false}, "less by twice the tolerance": {share - 2*tolerance, false}} {
			if tc.real < 0 || tc.real > 1 {
				continue
			}
			wrong := 0
			for range measurements {
				hits := 0
				for range n {
					if random.Float64() < tc.real {
						hits++
					}
				}
				measured := float64(hits) / float64(n)
				if within := measured >= share-tolerance && measured <= share+tolerance; within != tc.right {
					wrong++
				}
			}
			if limit := int(measurements * risk); wrong > limit {
				t.Errorf("share %v, %s: %d of %d measurements of %d requests are wrong, and at most %d may be", share, name, wrong, measurements, n, limit)
			}
		}
	}
}

// backend answers as two versions in turn, and fails as often as it is told.
type backend struct {
	asked, failEvery atomic.Int64
	share            int64
}

func (b *backend) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n := b.asked.Add(1)
	if every := b.failEvery.Load(); every > 0 && n%every == 0 {
		http.Error(w, "no server is there", http.StatusBadGateway)
		return
	}
	revision := "v1"
	if n%100 < b.share {
		revision = "v2"
	}
	w.Header().Set(RevisionHeader, revision)
	w.Header().Set(PodHeader, fmt.Sprint("pod-", n%3))
}

func TestAClientCountsSharesAndFailures(t *testing.T) {
	b := &backend{share: 20}
	server := httptest.NewServer(b)
	defer server.Close()
	c := Start(context.Background(), Target{URL: server.URL, Rate: 500})
	right, err := c.Next(t.Context(), Enough(0.2, 0.03, Risk))
	if err != nil {
		t.Fatal(err)
	}
	if err := right.Within("v2", 0.2, 0.03); err != nil {
		t.Error(err)
	}
	if err := right.Within("v2", 0.24, 0.03); err == nil {
		t.Error("20 % counts as 24 %")
	}
	if err := right.Lost(); err != nil {
		t.Error(err)
	}
	b.failEvery.Store(10)
	if _, err := c.Next(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	all := c.Stop()
	if lost := all.Lost(); lost == nil || !strings.Contains(lost.Error(), "502") || !strings.Contains(lost.Error(), "no server is there") {
		t.Errorf("requests failed with 502, and the client says: %v", lost)
	}
	if int64(all.Requests) != b.asked.Load() {
		t.Errorf("the client counts %d requests, and the server %d", all.Requests, b.asked.Load())
	}
	if len(all.ByPod) != 3 {
		t.Errorf("three Pods have answered, and the client knows %v", all.ByPod)
	}
}

func TestTooFewRequestsTellNothing(t *testing.T) {
	b := &backend{share: 50}
	server := httptest.NewServer(b)
	defer server.Close()
	c := Start(context.Background(), Target{URL: server.URL, Rate: 1000})
	if _, err := c.Next(t.Context(), 200); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop().Within("v2", 0.5, 0.03); err == nil || !strings.Contains(err.Error(), "it takes") {
		t.Errorf("a few hundred requests are taken for enough: %v", err)
	}
}

// TestASlowAnswerDelaysNoOtherRequest lets the first answers hang.
func TestASlowAnswerDelaysNoOtherRequest(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 20 {
			time.Sleep(500 * time.Millisecond)
		}
		w.Header().Set(RevisionHeader, "v1")
	}))
	defer server.Close()
	c := Start(context.Background(), Target{URL: server.URL, Rate: 400})
	time.Sleep(400 * time.Millisecond)
	if n := asked.Load(); n < 80 {
		t.Errorf("after 400 ms at 400 requests a second, %d were sent", n)
	}
	if tally := c.Stop(); tally.Requests != int(asked.Load()) || tally.Slowest < 500*time.Millisecond {
		t.Errorf("%d of %d requests are counted, the slowest took %v", tally.Requests, asked.Load(), tally.Slowest)
	}
}

// TestAnOverloadIsNotMadeWorse lets no request be answered for a while.
func TestAnOverloadIsNotMadeWorse(t *testing.T) {
	var waiting, most atomic.Int64
	answer := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		most.Store(max(most.Load(), waiting.Add(1)))
		<-answer
		w.Header().Set(RevisionHeader, "v1")
	}))
	defer server.Close()
	c := Start(context.Background(), Target{URL: server.URL, Rate: 1000})
	time.Sleep(time.Second)
	close(answer)
	tally := c.Stop()
	if lost := tally.Lost(); most.Load() > unanswered || lost == nil || !strings.Contains(lost.Error(), "not sent") {
		t.Errorf("%d requests were sent before one was answered, of the others it is said: %v", most.Load(), lost)
	}
}

func TestALineTellsTheShare(t *testing.T) {
	var tally Tally
	for i := range 1000 {
		r := Result{Revision: "v1", Took: 3 * time.Millisecond}
		if i%4 == 0 {
			r.Revision = "v2"
		}
		tally.add(r)
	}
	tally.add(Result{Failure: "no server"})
	want := "[##########------------------------------]  25.0 % to v2   1001 requests, 1 failed, slowest 3 ms"
	if got := tally.Line("v2"); got != want {
		t.Errorf("the line is\n%s, want\n%s", got, want)
	}
}
