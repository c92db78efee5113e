package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/clusters"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
	"github.com/seed-69ecc383/kruise/internal/rules/member"
)

// lone is a member with Deployments, and the hub with one tombstone, all in one.
type lone struct {
	away    bool // nobody wants it
	session int
	denies  bool // the hub stores nothing
	labels  map[string]string
	names   []string
	stones  map[string]string
	deleted []string
}

func (l *lone) Want(types.UID, ...clusters.Ref) {}
func (l *lone) Forget(types.UID)                {}
func (l *lone) Known() []clusters.Ref {
	if l.away {
		return nil
	}
	return []clusters.Ref{{Kind: clusters.Secret, Namespace: "default", Name: "m"}}
}
func (l *lone) Look(clusters.Ref) View {
	return View{State: connection.State{Reason: connection.Connected, ID: "id"}, Session: l.session, Labels: l.labels, Link: oneLink{l}}
}

// Get reads the tombstones.
func (l *lone) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.(*corev1.ConfigMap).Data = l.stones
	return nil
}

// List reads the Deployments.
func (l *lone) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for _, name := range l.names {
		list.(*appsv1.DeploymentList).Items = append(list.(*appsv1.DeploymentList).Items, appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: "7", Annotations: map[string]string{keys.HubOwner: "shop/web"},
			Labels: map[string]string{keys.HubID: "hub", keys.HubOwnerUID: "owner-of-" + name},
		}})
	}
	return nil
}

// hubOf is the hub, which a sweep that deletes nothing does not write to.
type hubOf struct {
	*lone
	client.Writer
}

// Create stores the first tombstone.
func (h hubOf) Create(context.Context, client.Object, ...client.CreateOption) error {
	if h.denies {
		return errors.New("denied")
	}
	return nil
}

type oneLink struct{ *lone }

func (l oneLink) Cached() client.Reader                                  { return l.lone }
func (l oneLink) Live() client.Reader                                    { return l.lone }
func (l oneLink) Writer() apply.Writer                                   { return deleter(l) }
func (l oneLink) Seen(schema.GroupVersionKind) (string, error)           { return "7", nil }
func (l oneLink) Serves(schema.GroupVersionKind) (served, readable bool) { return true, true }

type deleter struct{ *lone }

func (d deleter) Create(context.Context, plan.Object) error { panic("a sweep creates nothing") }
func (d deleter) Read(context.Context, plan.Object) error {
	panic("a sweep reads nothing live in a member")
}
func (d deleter) Patch(context.Context, plan.Object, string, types.PatchType, []byte) error {
	panic("a sweep changes nothing")
}

// Delete deletes a Deployment, which has to be the one that was seen.
func (d deleter) Delete(_ context.Context, o plan.Object, conditions metav1.Preconditions) (string, error) {
	d.deleted = append(d.deleted, fmt.Sprintf("%s %s %s", o.GetName(), *conditions.UID, *conditions.ResourceVersion))
	return "", nil
}

// TestWhatIsTooMuchToSweepIsToldOnce: a tombstone has the member looked at every few seconds, and events are told of every ten minutes, or
// when a person has changed what may be deleted.
func TestWhatIsTooMuchToSweepIsToldOnce(t *testing.T) {
	at := &lone{session: 1, names: strings.Fields("a b c d e f"), stones: map[string]string{"id.owner-of-a": "Secret/default/m"}}
	now, events := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), record.NewFakeRecorder(100)
	s := &Sweeper{
		Members: New(Options{
			Registry: at, HubID: "hub", Scheme: scheme.Scheme, Events: events, Now: func() time.Time { return now }, Parallel: 1,
			Lists: func() []client.ObjectList { return []client.ObjectList{&appsv1.DeploymentList{}} }, Tombstones: &Tombstones{Hub: hubOf{lone: at}},
		}),
		Wants: func(context.Context, member.Workload, Cluster) (bool, error) { return false, nil },
	}
	pass := func(d time.Duration, times int) (told []string) {
		for range times {
			now = now.Add(d)
			s.Sweep(t.Context())
		}
		for len(events.Events) > 0 {
			told = append(told, <-events.Events)
		}
		return told
	}
	if told := pass(5*time.Second, 10); len(told) != 1 || !strings.Contains(told[0], "6 of 6 workloads") {
		t.Errorf("in a minute it tells %q", told)
	}
	if told := pass(5*time.Minute, 2); len(told) != 1 {
		t.Errorf("in the next ten minutes it tells %q", told)
	}
	at.labels = map[string]string{keys.AllowSweep: "5"}
	if told := pass(5*time.Second, 10); len(told) != 1 || len(at.deleted) > 0 {
		t.Errorf("with too few allowed it tells %q, and deletes %q", told, at.deleted)
	}
	at.labels = map[string]string{keys.AllowSweep: "6"}
	if told := pass(5*time.Second, 1); len(told) > 0 || len(at.deleted) != 6 || at.deleted[0] != "a a 7" {
		t.Errorf("with as many allowed it tells %q, and deletes %q", told, at.deleted)
	}
}

// TestAMemberThatNobodyWantsIsForgotten: what is kept to write to it holds the caches of its last connection.
func TestAMemberThatNobodyWantsIsForgotten(t *testing.T) {
	at := &lone{session: 1}
	s := &Sweeper{
		Members: New(Options{
			Registry: at, HubID: "hub", Scheme: scheme.Scheme, Now: time.Now, Lists: func() []client.ObjectList { return nil },
			Tombstones: &Tombstones{Hub: hubOf{lone: at}},
		}),
	}
	s.Sweep(t.Context())
	if len(s.sites) != 1 || len(s.swept) != 1 {
		t.Fatalf("of one member that is swept, %d and %d are kept", len(s.sites), len(s.swept))
	}
	at.away = true
	s.Sweep(t.Context())
	if len(s.sites)+len(s.swept) > 0 {
		t.Errorf("of a member that nobody wants any more, %d and %d are kept", len(s.sites), len(s.swept))
	}
}

// TestATombstoneThatIsRefusedIsTriedAgainLater: at once would be as often as the hub can refuse it.
func TestATombstoneThatIsRefusedIsTriedAgainLater(t *testing.T) {
	at, owner := &lone{denies: true}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "owner"}}
	place := member.Place{Kind: "Secret", Namespace: "default", Name: "m"}
	var did []string
	var begun func()
	m := New(Options{
		Registry: at, Tombstones: &Tombstones{Hub: hubOf{lone: at}}, Go: func(do func()) { begun = do },
		Sleep: func(d time.Duration) { did = append(did, "wait "+d.String()) },
	})
	m.Asked(func(types.NamespacedName) { did = append(did, "ask for a pass") })
	m.Want(owner, place)
	m.Bury(owner, place, "id")
	begun()
	if m.IsBuried(owner, "id") || !slices.Equal(did, []string{"wait 1s", "ask for a pass"}) {
		t.Errorf("after it is refused: stored %t, %q", m.IsBuried(owner, "id"), did)
	}
	at.denies, did = false, nil
	m.Bury(owner, place, "id")
	begun()
	if !m.IsBuried(owner, "id") || !slices.Equal(did, []string{"ask for a pass"}) {
		t.Errorf("after it is stored: stored %t, %q", m.IsBuried(owner, "id"), did)
	}
}

// TestACacheOfAnEarlierConnectionIsNotRead: somebody looked at the member when it had been connected to anew, and somebody else just before.
// How new the cache has to be is only known of that of the last connection.
func TestACacheOfAnEarlierConnectionIsNotRead(t *testing.T) {
	at, owner := &lone{session: 2}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "owner"}}
	m := New(Options{Registry: at, HubID: "hub", Scheme: scheme.Scheme, Now: time.Now})
	place := member.Place{Kind: "Secret", Namespace: "default", Name: "m"}
	m.Want(owner, place)
	if now := m.Look(t.Context(), owner, place); now.Cached == nil {
		t.Fatalf("the cache of the last connection is not read: %+v", now)
	}
	at.session = 1
	if now := m.Look(t.Context(), owner, place); now.Cached != nil || now.Wait == 0 {
		t.Errorf("the cache of the one before is read: %t; look again after %s", now.Cached != nil, now.Wait)
	}
}
