package clock

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"pgregory.net/rapid"
)

// TestTheClockIsWithinTwoSecondsOfTheAPIServers: wherever this machine's clock stands, and if the time does not pass here for a while, as in
// a machine that is suspended.
func TestTheClockIsWithinTwoSecondsOfTheAPIServers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("here", 3600))
		var ran time.Duration
		pass := func(d time.Duration) { truth, ran = truth.Add(d), ran+d }
		wrong := time.Duration(rapid.Int64Range(int64(-2*time.Hour), int64(2*time.Hour)).Draw(t, "wrong"))
		c := &Clock{running: func() time.Duration { return ran }, log: logr.Discard(), start: truth.Add(wrong)}
		span := rapid.Int64Range(0, int64(3*time.Second))
		for range rapid.IntRange(1, 20).Draw(t, "answers") {
			sent, there, back := ran, time.Duration(span.Draw(t, "there")), time.Duration(span.Draw(t, "back"))
			pass(there)
			told := truth.Truncate(time.Second).UTC()
			pass(back)
			before := c.Now()
			c.observe(sent, told)
			limit := time.Second + tolerance + there + back
			if off := c.Now().Sub(truth).Abs(); off > limit {
				t.Fatalf("the clock is off by %s, want %s at most", off, limit)
			}
			if off := before.Sub(truth).Abs(); off <= tolerance && !c.Now().Equal(before) {
				t.Fatalf("a clock that is off by %s only is set", off)
			}
			if c.Now().Location() != truth.Location() {
				t.Fatal("the time zone is another one")
			}
			pass(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "until the next")))
			truth = truth.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, time.Hour}).Draw(t, "suspended"))
		}
	})
}

// TestTheClockIsSetByAnswers: by those of the API server itself, which tell a time.
func TestTheClockIsSetByAnswers(t *testing.T) {
	const ahead = time.Hour
	for name, tc := range map[string]struct {
		path, date string
		set        bool
	}{
		"a list of Pods":                  {path: "/api/v1/pods", set: true},
		"a Lease":                         {path: "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", set: true},
		"an object of another API server": {path: "/apis/metrics.k8s.io/v1beta1/nodes"},
		"an answer that tells no time":    {path: "/api/v1/pods", date: "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				date := tc.date
				if date == "" {
					date = time.Now().Add(ahead).UTC().Format(http.TimeFormat)
				}
				w.Header().Set("Date", date)
			}))
			defer server.Close()
			c := New(logr.Discard())
			answer, err := (&http.Client{Transport: c.Transport(http.DefaultTransport)}).Get(server.URL + tc.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := answer.Body.Close(); err != nil {
				t.Error(err)
			}
			if off := time.Until(c.Now()); (off > ahead-5*time.Second) != tc.set {
				t.Errorf("the clock is %s ahead of this machine's", off)
			}
		})
	}
}

func TestARequestThatFailsSetsNothing(t *testing.T) {
	c := New(logr.Discard())
	if _, err := (&http.Client{Transport: c.Transport(http.DefaultTransport)}).Get("http://127.0.0.1:1/api/v1/pods"); err == nil { //nolint:bodyclose // there is none
		t.Fatal("it did not fail")
	}
	if off := time.Until(c.Now()).Abs(); off > time.Second {
		t.Errorf("the clock is off by %s", off)
	}
}
