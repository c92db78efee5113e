package promises

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	// usual is the number of clusters if KRUISE_SEEDS does not say it.
	usual = 150
	// tally is after how many clusters a long run tells how it stands.
	tally = 5000
	// fewBroken clusters are enough to see what is wrong.
	fewBroken = 5
	// mostForMistake is the number of clusters in one of which a mistake must show.
	mostForMistake = 1200
)

// Suite is a controller in the clusters that it is tried in.
type Suite struct {
	// Scheme knows the types of all that is in the cluster; Scheme makes one.
	Scheme *kruntime.Scheme
	// Watched are the kinds that the controller has caches of, as empty objects.
	Watched []client.Object
	// Populate creates what is there at first, and says who acts from then on. All chance is from the world's Rand.
	Populate func(*World) Scenario
	// Mistake is made on purpose; none by default.
	Mistake Mistake
}

// Scenario is a controller, who acts in the cluster beside it, and what is promised to them.
type Scenario struct {
	// Start starts the controller, and again after each crash.
	Start func(Connection) simulate.Process
	// Act does something that a user might do at any moment.
	Act func()
	// Owner returns the workload; nil if there is none. MinReadySeconds are those in force. Only NameBlockers needs them.
	Owner           func() client.Object
	MinReadySeconds func() int32
	// Rollout gives the workload another template. Only CrashAnywhere needs it.
	Rollout func()
	// Relent lifts what a user may set to keep the controller from coming to an end.
	Relent func()
	// Others do what other controllers do sooner or later, and report whether there was anything to do.
	Others []func() bool
	// Check returns the promises that were broken in all that happened.
	Check func([]simulate.Change) []invariant.Violation
	// Converged returns what is not as the user wants it, now that the cluster is at rest.
	Converged func() []string
	// Restarted returns what the controller has done after a restart that it should not have, besides writes in the cluster; nil for none.
	Restarted func() []string
}

// Scheme returns the types of Kubernetes, those of apps.kruise.io/v1beta1, and more.
func Scheme(more ...func(*kruntime.Scheme) error) *kruntime.Scheme {
	scheme := kruntime.NewScheme()
	for _, add := range append(more, clientgoscheme.AddToScheme, v1beta1.AddToScheme) {
		if err := add(scheme); err != nil {
			panic(err) // two types of one name: a mistake in the test
		}
	}
	return scheme
}

// Hold lets many clusters live, and fails the test for each in which a promise was broken.
func (s Suite) Hold(t *testing.T) {
	t.Helper()
	if seed, ok := number(t, "KRUISE_SEED"); ok {
		w := s.World(seed)
		problems := w.Live(t.Context())
		t.Log(w.Story())
		if problems != nil {
			t.Errorf("seed %d: %s", seed, strings.Join(problems, "\n"))
		}
		return
	}
	most, ok := number(t, "KRUISE_SEEDS")
	if !ok {
		most = usual
	}
	first, _ := number(t, "KRUISE_FIRST_SEED")
	most += first
	var next, broken atomic.Int64
	next.Store(first)
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for seed := next.Add(1) - 1; seed < most && broken.Load() < fewBroken; seed = next.Add(1) - 1 {
				if lived := seed - first; lived > 0 && lived%tally == 0 {
					t.Logf("%d clusters, %d broken", lived, broken.Load())
				}
				if problems := s.World(seed).Live(t.Context()); problems != nil {
					broken.Add(1)
					t.Errorf("KRUISE_SEED=%d: %s", seed, strings.Join(problems, "\n"))
				}
			}
		})
	}
	running.Wait()
}

// Again lets the clusters of seeds live in which a promise was broken once.
func (s Suite) Again(t *testing.T, seeds ...int64) {
	t.Helper()
	for _, seed := range seeds {
		if problems := s.World(seed).Live(t.Context()); problems != nil {
			t.Errorf("KRUISE_SEED=%d: %s", seed, strings.Join(problems, "\n"))
		}
	}
}

// Repeat checks that a seed tells the whole story: else a failure could not be repeated.
func (s Suite) Repeat(t *testing.T) {
	t.Helper()
	for seed := range int64(8) {
		first, second := s.World(seed), s.World(seed)
		first.Live(t.Context())
		second.Live(t.Context())
		if diff := cmp.Diff(first.Story(), second.Story()); diff != "" {
			t.Fatalf("seed %d goes another way the second time (-first +second):\n%s", seed, diff)
		}
	}
}

// Break expects the mistake that the suite makes to show as a problem that contains the text: a check that lets it pass proves nothing.
func (s Suite) Break(t *testing.T, text string) {
	t.Helper()
	for seed := range int64(mostForMistake) {
		if strings.Contains(strings.Join(s.World(seed).Live(t.Context()), "\n"), text) {
			t.Logf("seed %d shows it", seed) // a high one says that a change elsewhere may hide it: have people do what shows it
			return
		}
	}
	t.Errorf("%d clusters do not show it as %q", mostForMistake, text)
}

// number reads a variable of the environment; false if it is not set.
func number(t *testing.T, name string) (int64, bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return n, true
}
