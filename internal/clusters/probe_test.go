package clusters

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// joined is a connection to a member that only the test asks.
func joined(t *testing.T) (*rig, *fakeMember, *session) {
	t.Helper()
	r, m := newRig(t), newFakeMember(t, "member")
	config, why := Kubeconfig(m.kubeconfig(t))
	if why != nil {
		t.Fatal(why)
	}
	s, why := join(t.Context(), config, &r.options)
	if why != nil {
		t.Fatal(why)
	}
	t.Cleanup(s.close)
	return r, m, s
}

func wantTurn(t *testing.T, s *session, want turned) {
	t.Helper()
	if got, why := s.probe(t.Context()); got != want || why != nil {
		t.Errorf("the probe finds %q (%v), want %q", got, why, want)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happens that %s", what)
		}
	}
}

// TestAClusterThatWasRestoredIsRecognisedByWhatACacheHasSeen: the cache saw a Deployment of revision 120 since the last probe. It lists anew
// when the storage is back at 110, and has forgotten what it saw when the next probe finds 115.
func TestAClusterThatWasRestoredIsRecognisedByWhatACacheHasSeen(t *testing.T) {
	r, m, s := joined(t)
	wantTurn(t, s, same)
	m.change(func() { m.revision, m.news = 120, 120 })
	eventually(t, "the cache tells of the Deployment", func() bool { return r.news("owner") > 0 })
	m.change(func() { m.revision, m.news, m.restored = 110, 0, 1 })
	deployments := s.informer(appsv1.SchemeGroupVersion.WithKind("Deployment")).(interface{ GetStore() toolscache.Store })
	eventually(t, "the cache lists anew", func() bool { return deployments.GetStore().LastStoreSyncResourceVersion() == "110" })
	m.change(func() { m.revision = 115 })
	wantTurn(t, s, earlier)
}

// TestAProbeForgetsNothing: while a list is under way that the member answers as of revision 101, a cache sees 130.
func TestAProbeForgetsNothing(t *testing.T) {
	_, m, s := joined(t)
	m.change(func() {
		m.revision = 101
		m.listing = func() { s.saw(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "130"}}) }
	})
	wantTurn(t, s, same)
	m.change(func() { m.revision, m.listing = 125, nil })
	wantTurn(t, s, earlier)
}
