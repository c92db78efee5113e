package apply

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// statuses returns what writes the status of the bench's owner.
func (b *bench) statuses(p policy) *Statuses[*v1beta1.CloneSet, v1beta1.CloneSetStatus] {
	p.Of = func(set *v1beta1.CloneSet) *v1beta1.CloneSetStatus { return &set.Status }
	return NewStatuses(b.Executor, p)
}

// policy is that of a CloneSet.
type policy = StatusPolicy[*v1beta1.CloneSet, v1beta1.CloneSetStatus]

// ownerNow returns the stored owner.
func (b *bench) ownerNow() *v1beta1.CloneSet {
	return b.cluster.Get(b.cluster.KeyOf(b.owner)).(*v1beta1.CloneSet)
}

func TestStatusIsWrittenOnceAndInItsTime(t *testing.T) {
	b := newBench(t)
	statuses := b.statuses(policy{})
	report := func(change func(*v1beta1.CloneSetStatus)) time.Duration {
		t.Helper()
		before := b.ownerNow()
		after := before.DeepCopy()
		change(&after.Status)
		wait, err := statuses.Write(t.Context(), before, after.Status)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	report(func(s *v1beta1.CloneSetStatus) { s.Replicas = 1 })
	report(func(*v1beta1.CloneSetStatus) {})
	if len(b.writes) != 1 || b.ownerNow().Status.Replicas != 1 {
		t.Fatalf("after a change and no change: %d writes, %d replicas", len(b.writes), b.ownerNow().Status.Replicas)
	}
	for i := range int32(statusBurst - 1) {
		report(func(s *v1beta1.CloneSetStatus) { s.Replicas = 2 + i })
	}
	wait := report(func(s *v1beta1.CloneSetStatus) { s.Replicas = 99 })
	if wait != statusInterval || b.ownerNow().Status.Replicas == 99 {
		t.Errorf("after a burst: wait %s, %d replicas", wait, b.ownerNow().Status.Replicas)
	}
	if wait := report(func(s *v1beta1.CloneSetStatus) { s.ObservedGeneration = 7 }); wait != 0 ||
		b.ownerNow().Status.ObservedGeneration != 7 {
		t.Errorf("a newer spec has to wait %s", wait)
	}
	b.cluster.Sleep(2 * statusInterval)
	if wait := report(func(s *v1beta1.CloneSetStatus) { s.Replicas = 99 }); wait != 0 || b.ownerNow().Status.Replicas != 99 {
		t.Errorf("in its time it has to wait %s", wait)
	}
}

func TestAFinalStatusIsNotKeptBack(t *testing.T) {
	b := newBench(t)
	statuses := b.statuses(policy{Final: func(set *v1beta1.CloneSet) bool { return set.Status.ReadyReplicas == 100 }})
	for ready := range int32(101) {
		before := b.ownerNow()
		after := before.DeepCopy()
		after.Status.ReadyReplicas = ready
		wait, err := statuses.Write(t.Context(), before, after.Status)
		if err != nil {
			t.Fatal(err)
		}
		if late := wait > 0; late != (ready > statusBurst && ready < 100) {
			t.Errorf("with %d of 100 Pods ready: wait %s", ready, wait)
		}
	}
	if got := b.ownerNow().Status.ReadyReplicas; got != 100 {
		t.Errorf("the status shows %d of 100 Pods", got)
	}
}

func TestStatusIsNotWrittenToAnotherObjectOfTheName(t *testing.T) {
	b := newBench(t)
	before := b.ownerNow()
	b.cluster.Delete("user", before)
	recreated := before.DeepCopy()
	if _, err := b.cluster.Create("user", recreated); err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	after.Status.Replicas = 5
	wait, err := b.statuses(policy{}).Write(t.Context(), before, after.Status)
	if err != nil || wait != 0 || b.ownerNow().Status.Replicas != 0 {
		t.Errorf("wait %s, error %v, replicas %d", wait, err, b.ownerNow().Status.Replicas)
	}
}

// TestStatusThatLostARaceIsTriedAgain: no event may follow that would lead to another try.
func TestStatusThatLostARaceIsTriedAgain(t *testing.T) {
	b := newBench(t)
	b.before = func(string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "clonesets"}, "web", errors.New("the object has been modified"))
	}
	before := b.ownerNow()
	after := before.DeepCopy()
	after.Status.Replicas = 5
	wait, err := b.statuses(policy{}).Write(t.Context(), before, after.Status)
	if err != nil || wait <= 0 {
		t.Errorf("wait %s, error %v; want to wait a little", wait, err)
	}
}

func TestAnExactStatusTakesNothingBack(t *testing.T) {
	b := newBench(t)
	statuses := b.statuses(policy{Exact: true})
	stale := b.ownerNow()
	simulate.Update(b.cluster, "user", stale, func(set *v1beta1.CloneSet) { set.Status.Replicas = 5 })
	after := stale.DeepCopy()
	after.Status.Replicas = 1
	if wait, err := statuses.Write(t.Context(), stale, after.Status); err != nil || wait == 0 || b.ownerNow().Status.Replicas != 5 {
		t.Errorf("over a newer version: wait %s, %v, %d replicas", wait, err, b.ownerNow().Status.Replicas)
	}
	now := b.ownerNow()
	after = now.DeepCopy()
	after.Status.Replicas = 6
	if wait, err := statuses.Write(t.Context(), now, after.Status); err != nil || wait != 0 || b.ownerNow().Status.Replicas != 6 {
		t.Errorf("over the version that was judged: wait %s, %v, %d replicas", wait, err, b.ownerNow().Status.Replicas)
	}
}

// TestWhatHasBegunWaits: it is written when it has been so for ten seconds, also if it speaks of a newer spec; what it comes to is written at once.
func TestWhatHasBegunWaits(t *testing.T) {
	b := newBench(t)
	const ready, busy = 1, 0
	begins := func(stored, next *v1beta1.CloneSetStatus) bool {
		return stored.ObservedGeneration != next.ObservedGeneration && next.ReadyReplicas == busy
	}
	statuses := b.statuses(policy{Begins: begins})
	for _, step := range []struct {
		what       string
		sleep      time.Duration
		generation int64
		ready      int32
		want       time.Duration
	}{
		{"it is ready", 0, 1, ready, 0},
		{"the next one begins, long after that", time.Minute, 2, busy, minorInterval},
		{"it goes on", 4 * time.Second, 2, busy, minorInterval - 4*time.Second},
		{"it is ready, too", 4 * time.Second, 2, ready, 0},
		{"another one begins", 0, 3, busy, minorInterval},
		{"it takes long", minorInterval, 3, busy, 0},
		{"it is ready in the end", time.Second, 3, ready, 0},
	} {
		b.cluster.Sleep(step.sleep)
		before := b.ownerNow()
		after := before.DeepCopy()
		after.Status.ObservedGeneration, after.Status.ReadyReplicas = step.generation, step.ready
		wait, err := statuses.Write(t.Context(), before, after.Status)
		if err != nil || wait != step.want {
			t.Errorf("%s: wait %s, want %s, error %v", step.what, wait, step.want, err)
		}
		if stored := b.ownerNow().Status.ObservedGeneration == step.generation && b.ownerNow().Status.ReadyReplicas == step.ready; stored != (step.want == 0) {
			t.Errorf("%s: stored %v", step.what, stored)
		}
	}
}

// TestAMinorChangeWaits: counts are written ten seconds after the last status, or along with what can't wait.
func TestAMinorChangeWaits(t *testing.T) {
	b := newBench(t)
	minor := func(stored, next *v1beta1.CloneSetStatus) bool { return stored.UpdateRevision == next.UpdateRevision }
	statuses := b.statuses(policy{Minor: minor})
	write := func(revision string, replicas int32) time.Duration {
		t.Helper()
		before := b.ownerNow()
		after := before.DeepCopy()
		after.Status.UpdateRevision, after.Status.Replicas = revision, replicas
		wait, err := statuses.Write(t.Context(), before, after.Status)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	for _, step := range []struct {
		what     string
		sleep    time.Duration
		revision string
		replicas int32
		want     time.Duration
	}{
		{"the first status", 0, "a", 1, 0},
		{"a count soon after it", 4 * time.Second, "a", 2, 6 * time.Second},
		{"what can't wait", 0, "b", 3, 0},
		{"a count right after it", 0, "b", 4, minorInterval},
		{"a count in its time", minorInterval, "b", 5, 0},
	} {
		b.cluster.Sleep(step.sleep)
		if wait := write(step.revision, step.replicas); wait != step.want {
			t.Errorf("%s: wait %s, want %s", step.what, wait, step.want)
		}
		if stored := b.ownerNow().Status.Replicas == step.replicas; stored != (step.want == 0) {
			t.Errorf("%s: stored %v", step.what, stored)
		}
	}
}
