package apply

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// bench is an executor over a simulated cluster, with a hook before each write.
type bench struct {
	*Executor
	cluster *simulate.Cluster
	owner   *v1beta1.CloneSet
	events  *record.FakeRecorder
	// seen is how far the cache has come.
	seen string

	mu     sync.Mutex
	before func(what string) error
	writes []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := simulate.NewCluster(scheme, time.Unix(1_800_000_000, 0))
	owner, err := cluster.Create("user", &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{cluster: cluster, owner: owner.(*v1beta1.CloneSet), events: record.NewFakeRecorder(100), seen: "1"}
	b.Executor = &Executor{Config: Config{
		Writer: &watchedWriter{Writer: cluster.Connect("controller", rand.New(rand.NewSource(1))), bench: b},
		Scheme: scheme, Events: b.events, Parallel: 1, Now: cluster.Now,
		Seen: func(context.Context, schema.GroupVersionKind) (string, error) { return b.seen, nil },
	}}
	return b
}

func (b *bench) pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(b.owner, v1beta1.GroupVersion.WithKind("CloneSet"))},
	}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}}}
}

func (b *bench) stored(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	object, err := b.cluster.Create("test", b.pod(name))
	if err != nil {
		t.Fatal(err)
	}
	return object.(*corev1.Pod)
}

func (b *bench) now(name string) *corev1.Pod {
	p, _ := b.cluster.Get(simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespace: "default", Name: name}).(*corev1.Pod)
	return p
}

func (b *bench) run(t *testing.T, stages ...plan.Stage) Outcome {
	t.Helper()
	return b.Run(t.Context(), b.owner, plan.Plan{Stages: stages})
}

// watchedWriter notes each write, and lets the bench refuse it.
type watchedWriter struct {
	Writer
	bench *bench
}

func (w *watchedWriter) note(what string) error {
	w.bench.mu.Lock()
	defer w.bench.mu.Unlock()
	w.bench.writes = append(w.bench.writes, what)
	if w.bench.before == nil {
		return nil
	}
	return w.bench.before(what)
}

func (w *watchedWriter) Create(ctx context.Context, object plan.Object) error {
	if err := w.note("create " + object.GetName()); err != nil {
		return err
	}
	return w.Writer.Create(ctx, object)
}

func (w *watchedWriter) Patch(ctx context.Context, object plan.Object, subresource string, kind types.PatchType, patch []byte) error {
	if err := w.note(fmt.Sprintf("patch %s %s %s", object.GetName(), subresource, patch)); err != nil {
		return err
	}
	return w.Writer.Patch(ctx, object, subresource, kind, patch)
}

func (w *watchedWriter) Delete(ctx context.Context, object plan.Object, conditions metav1.Preconditions) (string, error) {
	if err := w.note("delete " + object.GetName()); err != nil {
		return "", err
	}
	return w.Writer.Delete(ctx, object, conditions)
}

func create(p *corev1.Pod) plan.Chain { return plan.Chain{{Verb: plan.Create, After: p}} }

func withImage(p *corev1.Pod, image string) *corev1.Pod {
	after := p.DeepCopy()
	after.Spec.Containers[0].Image = image
	return after
}

func withPhase(p *corev1.Pod, phase corev1.PodPhase, label string) *corev1.Pod {
	after := p.DeepCopy()
	after.Status.Phase = phase
	after.Labels["state"] = label
	return after
}
