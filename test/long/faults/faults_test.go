// Package faults runs managers behind proxies that answer as API servers in trouble do, with users who change their minds meanwhile, and
// judges every version of every object that the API server tells of by the promises of test/sim/invariant.
package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/proxy"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// turmoil is how long each kind of faults lasts if KRUISE_FAULTS_SECONDS does not say it.
const turmoil = 6 * time.Second

// retryAfter is what clients are told to wait who asked too much.
const retryAfter = 2 * time.Second

// trouble is a kind of faults.
type trouble struct {
	name  string
	rules []proxy.Rule
	// judge says what is wrong with what the manager asked for meanwhile; nil for nothing more than the promises.
	judge func([]proxy.Request) []string
}

func troubles() []trouble {
	work := []string{"*"}
	return []trouble{
		{name: "answers are lost, and servers fail", rules: []proxy.Rule{
			{Name: "lost", Verbs: proxy.Writes(), Resources: work, Share: 0.1, Lost: true},
			{Name: "failed", Resources: work, Share: 0.05, Code: 500},
			{Name: "unavailable", Resources: work, Share: 0.05, Code: 503},
			{Name: "timed out", Verbs: proxy.Writes(), Resources: work, Share: 0.05, Code: 504},
		}},
		{name: "caches lag behind", rules: []proxy.Rule{
			{Name: "held", Verbs: []string{"watch"}, Resources: []string{"pods"}, Hold: 3 * time.Second},
			{Name: "held less", Verbs: []string{"watch"}, Resources: []string{"clonesets", "statefulsets", "persistentvolumeclaims"}, Hold: time.Second},
		}},
		{name: "watches break", rules: []proxy.Rule{
			{Name: "cut", Verbs: []string{"watch"}, Resources: work, Share: 0.03, Cut: true},
			{Name: "expired", Verbs: []string{"watch"}, Resources: work, Share: 0.3, Code: 410},
		}},
		{name: "the API server is slow", rules: []proxy.Rule{
			{Name: "slow", Resources: work, Share: 1, Delay: 200 * time.Millisecond, DelayMost: time.Second},
		}, judge: listsNothing},
		{name: "there are too many requests", rules: []proxy.Rule{
			{Name: "throttled", Resources: work, Share: 0.4, Code: 429, RetryAfter: retryAfter},
		}, judge: waitsAsTold},
	}
}

// listsNothing returns the lists of all objects of a kind in a namespace: what a busy API server needs least. Those of the whole cluster are
// of what is few, such as SidecarSets, which the admission of one lists.
func listsNothing(asked []proxy.Request) (problems []string) {
	for _, r := range asked {
		if r.Verb == "list" && r.Limit == "" && r.Namespace != "" {
			problems = append(problems, fmt.Sprintf("all %s of %q are listed because the API server is slow", r.Resource, r.Namespace))
		}
	}
	return problems
}

// waitsAsTold returns the requests that came again before the time was over that the manager was told to wait. Two controllers may ask for
// the same, so that one in twenty may.
func waitsAsTold(asked []proxy.Request) (problems []string) {
	type same struct{ verb, resource, namespace, name string }
	told := map[same]time.Time{}
	waits := 0
	for _, r := range asked {
		if r.Name == "" {
			continue // creations of many names
		}
		key := same{r.Verb, r.Resource, r.Namespace, r.Name}
		if at, ok := told[key]; ok && r.At.Sub(at) < retryAfter-100*time.Millisecond {
			problems = append(problems, fmt.Sprintf("%s %s %s comes again after %s", r.Verb, r.Resource, r.Name, r.At.Sub(at)))
		}
		delete(told, key)
		if r.Code == http.StatusTooManyRequests {
			waits++
			told[key] = r.Done
		}
	}
	switch {
	case waits == 0:
		return []string{"no request was told to wait"}
	case len(problems) <= waits/20:
		return nil
	}
	return problems
}

func TestPromisesHoldThroughFaults(t *testing.T) {
	w := newWorld(t)
	w.Must(w.Install(w.Ctx))
	m := w.launch("first")
	w.create()
	w.settled()
	h := w.record()
	records := []*proxy.Record{m.Record()}
	known := map[string]bool{}
	judge := func(t *testing.T) {
		for _, problem := range broken(h.sorted(), records...) {
			if !known[problem] {
				t.Error(problem)
			}
			known[problem] = true
		}
	}
	for _, trouble := range troubles() {
		t.Run(trouble.name, func(t *testing.T) {
			w := w.on(t)
			began := time.Now()
			m.Set(trouble.rules...)
			w.turmoil(t)
			during := m.Record().Requests(began)
			m.Set()
			w.relent()
			w.settled()
			w.quiet(m)
			struck := 0
			for _, r := range during {
				if r.Fault != "" {
					struck++
				}
			}
			t.Logf("%d requests, %d of them struck", len(during), struck)
			if trouble.judge != nil {
				for _, problem := range trouble.judge(during) {
					t.Error(problem)
				}
			}
			judge(t)
		})
	}
	t.Run("another manager takes over, and its cache lags behind", func(t *testing.T) {
		w := w.on(t)
		// All but the first view, which no API server may show as it was before.
		second := w.launch("second")
		records = append(records, second.Record())
		second.Set(proxy.Rule{Name: "held", Verbs: []string{"watch"}, Resources: []string{"pods"}, Hold: 8 * time.Second})
		w.turmoil(t)
		m.Stop()
		w.turmoil(t)
		second.Set()
		w.relent()
		w.settled()
		w.quiet(second)
		judge(t)
	})
	w.Must(h.end())
	for _, r := range records {
		consistentAtFirst(t, r)
	}
}

// consistentAtFirst checks that no first view of a kind is asked for such that an API server may answer with an older one than there is.
func consistentAtFirst(t *testing.T, r *proxy.Record) {
	t.Helper()
	for _, asked := range r.Requests(time.Time{}) {
		if (asked.Verb == "list" || asked.Verb == "watch") && asked.Version == "0" {
			t.Errorf("any version of %s will do for the manager: %+v", asked.Kind(), asked)
		}
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("KRUISE_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("reading KRUISE_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("KRUISE_SEED=%d", seed)
	return &world{Stage: scene.NewStage(t, cluster.Options{Nodes: nodes}), rand: rand.New(rand.NewPCG(seed, 0))}
}

// on returns the world for a subtest.
func (w *world) on(t *testing.T) *world { return &world{Stage: w.On(t), rand: w.rand} }

// turmoil lets users act for a while.
func (w *world) turmoil(t *testing.T) {
	t.Helper()
	lasts := turmoil
	if text := os.Getenv("KRUISE_FAULTS_SECONDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("reading KRUISE_FAULTS_SECONDS: %v", err)
		}
		lasts = time.Duration(n) * time.Second
	}
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(time.Duration(w.rand.IntN(1000)) * time.Millisecond) {
		w.act()
	}
}
