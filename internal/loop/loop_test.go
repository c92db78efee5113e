package loop

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// refusing is an API server that answers every deletion with a conflict.
type refusing struct{ *oneOwner }

func (refusing) Delete(context.Context, plan.Object, metav1.Preconditions) (string, error) {
	return "", apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "left", nil)
}

// executorFor returns an executor that writes to a server and whose caches are as new as can be.
func executorFor(w apply.Writer) *apply.Executor {
	return &apply.Executor{Config: apply.Config{
		Writer: w, Scheme: clientgoscheme.Scheme, Events: record.NewFakeRecorder(10), Parallel: 1, Now: time.Now,
		Seen: func(context.Context, schema.GroupVersionKind) (string, error) { return "1", nil },
	}}
}

// TestWhatADeletedOwnerLeftIsTriedAgain: a conflict is no failure, and no event has to follow it.
func TestWhatADeletedOwnerLeftIsTriedAgain(t *testing.T) {
	server := &oneOwner{}
	left := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "left", UID: "left", ResourceVersion: "1"}}
	l := New(Kind[*corev1.Pod, int, corev1.PodStatus]{
		Deleted: func(context.Context, Reads, types.NamespacedName) (plan.Object, plan.Plan, error) {
			b := plan.For("what is left")
			b.Do(plan.Action{Verb: plan.Delete, Before: left})
			return left, b.Plan(), nil
		},
	}, Runtime{Executor: executorFor(refusing{server})}, observe.Reader{Reader: server, Indexed: true}, observe.Reader{Reader: server})
	result, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("result %+v, error %v; want another pass and no error", result, err)
	}
}

// TestTheFirstObjectsAreCreatedByALiveRead: an earlier process may have created them in its last moment.
func TestTheFirstObjectsAreCreatedByALiveRead(t *testing.T) {
	server := &oneOwner{owner: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}}
	var reads []string
	wanted := true
	l := New(Kind[*corev1.Pod, bool, corev1.PodStatus]{
		CreatesLive: true,
		Read: func(_ context.Context, r Reads, _ *corev1.Pod) (bool, error) {
			reads = append(reads, map[bool]string{true: "cache", false: "live"}[r.Indexed])
			return wanted, nil
		},
		Plan: func(wanted bool) plan.Plan {
			b := plan.For("one Pod")
			if wanted {
				b.Do(plan.Action{Verb: plan.Create, After: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}}})
			}
			return b.Plan()
		},
	}, Runtime{Executor: executorFor(server)}, observe.Reader{Reader: server, Indexed: true}, observe.Reader{Reader: server})
	for _, wanted = range []bool{false, true, true, true} {
		if _, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"cache", "cache", "live", "cache"}, reads); diff != "" {
		t.Errorf("reads of passes that create nothing, and three times a Pod (-want +got):\n%s", diff)
	}
}

// ordered is an API server that notes the order of writes, and refuses patches if it is told to.
type ordered struct {
	*oneOwner
	writes  []string
	refuses error
}

func (o *ordered) Create(_ context.Context, object plan.Object) error {
	o.writes = append(o.writes, "create "+object.GetName())
	return nil
}

func (o *ordered) Patch(_ context.Context, object plan.Object, part string, _ types.PatchType, _ []byte) error {
	if o.refuses != nil {
		return o.refuses
	}
	o.writes = append(o.writes, "patch "+part)
	object.SetResourceVersion("2")
	return nil
}

// TestTheStatusIsStoredBeforeAnythingIsDone: where it says how far a sequence is, nothing may be done that it does not say.
func TestTheStatusIsStoredBeforeAnythingIsDone(t *testing.T) {
	for name, tc := range map[string]struct {
		refuses error
		isMinor bool
		want    []string
	}{
		"it is stored":                        {nil, false, []string{"patch status", "create b"}},
		"somebody has written another one":    {apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", nil), false, nil},
		"it is minor, and may be stored late": {apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", nil), true, []string{"create b"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &ordered{
				oneOwner: &oneOwner{owner: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}, Status: corev1.PodStatus{Message: "old"}}},
				refuses:  tc.refuses,
			}
			l := New(Kind[*corev1.Pod, int, corev1.PodStatus]{
				StatusFirst: true, Exact: true,
				Read: func(context.Context, Reads, *corev1.Pod) (int, error) { return 0, nil },
				Plan: func(int) plan.Plan {
					b := plan.For("one Pod")
					b.Do(plan.Action{Verb: plan.Create, After: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}}})
					return b.Plan()
				},
				Status:   func(int, plan.Plan, apply.Outcome) corev1.PodStatus { return corev1.PodStatus{Message: "new"} },
				StatusOf: func(p *corev1.Pod) *corev1.PodStatus { return &p.Status },
				Minor:    func(_, _ *corev1.PodStatus) bool { return tc.isMinor },
			}, Runtime{Executor: executorFor(server)}, observe.Reader{Reader: server, Indexed: true}, observe.Reader{Reader: server})
			result, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
			if err != nil || tc.refuses != nil && result.RequeueAfter == 0 {
				t.Errorf("result %+v, error %v", result, err)
			}
			if diff := cmp.Diff(tc.want, server.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnExactStatusIsNotStoredOverAWriteToTheOwner: it would be refused, which is a request that nobody needs.
func TestAnExactStatusIsNotStoredOverAWriteToTheOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		exact bool
		want  []string
	}{
		"exact": {true, []string{"patch "}},
		"any":   {false, []string{"patch ", "patch status"}},
	} {
		t.Run(name, func(t *testing.T) {
			owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", ResourceVersion: "1"}}
			server := &ordered{oneOwner: &oneOwner{owner: owner}}
			l := New(Kind[*corev1.Pod, int, corev1.PodStatus]{
				Exact: tc.exact,
				Read:  func(context.Context, Reads, *corev1.Pod) (int, error) { return 0, nil },
				Plan: func(int) plan.Plan {
					after := owner.DeepCopy()
					after.Finalizers = []string{"example.com/guard"}
					b := plan.For("one Pod")
					b.Last(plan.Action{Verb: plan.Update, Before: owner, After: after})
					return b.Plan()
				},
				Status:   func(int, plan.Plan, apply.Outcome) corev1.PodStatus { return corev1.PodStatus{Message: "new"} },
				StatusOf: func(p *corev1.Pod) *corev1.PodStatus { return &p.Status },
			}, Runtime{Executor: executorFor(server)}, observe.Reader{Reader: server, Indexed: true}, observe.Reader{Reader: server})
			result, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
			if err != nil || tc.exact && result.RequeueAfter == 0 {
				t.Errorf("result %+v, error %v", result, err)
			}
			if diff := cmp.Diff(tc.want, server.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPassThatIsCutShortGoesOnAtOnce: no event may come of what was not begun.
func TestAPassThatIsCutShortGoesOnAtOnce(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}
	server := &oneOwner{owner: owner, patched: func() { now = now.Add(time.Minute) }}
	left := 2
	l := New(Kind[*corev1.Pod, int, any]{
		Read: func(context.Context, Reads, *corev1.Pod) (int, error) { return left, nil },
		Plan: func(left int) plan.Plan {
			b := plan.For("owner a")
			for n := range left {
				before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(rune('b' + n)), ResourceVersion: "1"}}
				after := before.DeepCopy()
				after.Labels = map[string]string{"state": "done"}
				b.Do(plan.Action{Verb: plan.Update, Before: before, After: after})
			}
			return b.Plan()
		},
		MinInterval: func(int) time.Duration { return time.Hour },
	}, Runtime{Executor: &apply.Executor{Config: apply.Config{
		Writer: server, Scheme: clientgoscheme.Scheme, Events: record.NewFakeRecorder(10), Parallel: 1, Now: func() time.Time { return now },
		Seen: func(context.Context, schema.GroupVersionKind) (string, error) { return "2", nil },
	}}}, observe.Reader{Reader: server, Indexed: true}, observe.Reader{Reader: server})
	for _, want := range []time.Duration{time.Millisecond, 0} {
		result, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(owner)})
		if err != nil || result.RequeueAfter != want {
			t.Errorf("with %d objects left, the next pass is to begin after %v (error %v), want %v", left, result.RequeueAfter, err, want)
		}
		left--
	}
}
