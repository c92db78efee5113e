// Package envtest checks, against a real API server, what the rest of the project takes for granted about one, and that the simulated one
// answers alike.
package envtest

import (
	"context"
	"math/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// shared is the API server of all tests.
var shared = &scene.Site{Name: "envtest", Options: cluster.Options{Bare: true}, Kruise: scene.Manifests}

func TestMain(m *testing.M) { scene.Main(m, shared) }

// counting counts the writes that reach the server.
type counting struct {
	apply.Writer
	writes int
}

func (c *counting) Patch(ctx context.Context, o plan.Object, subresource string, kind types.PatchType, patch []byte) error {
	c.writes++
	return c.Writer.Patch(ctx, o, subresource, kind, patch)
}

type server struct {
	*apply.Executor
	*counting
	owner plan.Object
	cache cache.Cache
}

// onBoth runs a test on the real API server and on the simulated one.
func onBoth(t *testing.T, test func(*testing.T, *server)) {
	t.Run("real", func(t *testing.T) { test(t, connect(t)) })
	t.Run("simulated", func(t *testing.T) { test(t, simulated(t)) })
}

// simulated returns an executor on a simulated cluster, which has no cache.
func simulated(t *testing.T) *server {
	t.Helper()
	scheme, err := cluster.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := simulate.NewCluster(scheme, time.Now())
	owner, err := c.Create("test", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}})
	if err != nil {
		t.Fatal(err)
	}
	writer := &counting{Writer: c.Connect("controller", rand.New(rand.NewSource(1)))}
	return &server{counting: writer, owner: owner, Executor: &apply.Executor{Config: apply.Config{
		Writer: writer, Scheme: scheme, Events: &record.FakeRecorder{}, Parallel: 1,
		Seen: c.NewView().Seen, Now: time.Now,
	}}}
}

// connect returns an executor that works for a config map, and a cache of Pods.
func connect(t *testing.T) *server {
	t.Helper()
	if err := shared.Up(); err != nil {
		t.Fatal(err)
	}
	informers, err := cache.New(shared.Config, cache.Options{Scheme: shared.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informers.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = informers.Start(t.Context()) }()
	if !informers.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not fill")
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "owner-"}}
	if err := shared.Client.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	http, err := rest.HTTPClientFor(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	writer := &counting{Writer: apply.NewWriter(shared.Client, shared.Config, http)}
	return &server{counting: writer, owner: owner, cache: informers, Executor: &apply.Executor{Config: apply.Config{
		Writer: writer, Scheme: shared.Client.Scheme(), Events: &record.FakeRecorder{}, Parallel: 4,
		Seen: apply.SeenBy(informers), Now: time.Now,
	}}}
}

func (s *server) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
	}
}

func (s *server) read(t *testing.T, object plan.Object) {
	t.Helper()
	if err := s.Read(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (s *server) one(t *testing.T, a plan.Action) apply.Result {
	t.Helper()
	done := s.Run(t.Context(), s.owner, plan.Plan{Stages: []plan.Stage{{{a}}}})
	if len(done.Results) != 1 {
		t.Fatalf("got %d results", len(done.Results))
	}
	return done.Results[0]
}

func (s *server) created(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	result := s.one(t, plan.Action{Verb: plan.Create, After: p})
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	return result.Object.(*corev1.Pod)
}

// caughtUp waits until the cache shows what was written.
func (s *server) caughtUp(t *testing.T) {
	t.Helper()
	for start := time.Now(); time.Since(start) < 5*time.Second; time.Sleep(5 * time.Millisecond) {
		fresh, err := s.Freshness(t.Context(), s.owner)
		if err != nil {
			t.Fatal(err)
		}
		if fresh == apply.Fresh {
			return
		}
	}
	t.Fatal("the cache does not catch up with our own writes")
}
