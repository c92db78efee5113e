package loop

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// oneOwner is a cache and an API server that hold one owner, or none.
type oneOwner struct {
	client.Reader
	owner *corev1.Pod
	// patched is called before a patch is answered.
	patched func()
}

func (o *oneOwner) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if o.owner == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
	}
	o.owner.DeepCopyInto(into.(*corev1.Pod))
	return nil
}

func (o *oneOwner) Create(context.Context, plan.Object) error { return nil }

func (o *oneOwner) Patch(_ context.Context, object plan.Object, _ string, _ types.PatchType, _ []byte) error {
	o.patched()
	object.SetResourceVersion("2")
	return nil
}

func (o *oneOwner) Delete(context.Context, plan.Object, metav1.Preconditions) (string, error) {
	return "", nil
}

func (o *oneOwner) Read(context.Context, plan.Object) error { return nil }

// TestNothingIsKeptOfAnOwnerThatIsGone: memory must not grow with each owner that ever was.
func TestNothingIsKeptOfAnOwnerThatIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		// status is the one that the pass wants, and deleted whether the owner is deleted while it is written.
		status  string
		deleted bool
		want    int
	}{
		"a pass that writes":                          {status: "new", want: 1},
		"a pass that ends after the owner is gone":    {status: "new", deleted: true},
		"a pass that finds everything as it is to be": {status: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &oneOwner{
				owner: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}, Status: corev1.PodStatus{Message: "old"}},
			}
			executor := &apply.Executor{Config: apply.Config{
				Writer: server, Scheme: clientgoscheme.Scheme, Events: record.NewFakeRecorder(10), Parallel: 1, Now: time.Now,
				Seen: func(context.Context, schema.GroupVersionKind) (string, error) { return "1", nil },
			}}
			l := New(Kind[*corev1.Pod, int, corev1.PodStatus]{
				Read:     func(context.Context, Reads, *corev1.Pod) (int, error) { return 0, nil },
				Plan:     func(int) plan.Plan { return plan.Plan{} },
				Status:   func(int, plan.Plan, apply.Outcome) corev1.PodStatus { return corev1.PodStatus{Message: tc.status} },
				StatusOf: func(p *corev1.Pod) *corev1.PodStatus { return &p.Status },
			}, Runtime{Executor: executor}, observe.Reader{Reader: server, Indexed: true}, observe.Reader{Reader: server})
			server.patched = func() {
				if tc.deleted {
					gone := server.owner
					server.owner = nil
					l.Forget(gone)
				}
			}
			if _, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}); err != nil {
				t.Fatal(err)
			}
			if got := executor.Remembered(); got != tc.want {
				t.Errorf("something is remembered of %d owners, want %d", got, tc.want)
			}
		})
	}
}
