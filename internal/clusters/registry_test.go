package clusters

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

func TestAClusterIsConnectedAndRead(t *testing.T) {
	r, m := newRig(t), newFakeMember(t, "member")
	ref := r.hub.secret("a", m.kubeconfig(t))
	if v := r.Look(ref); v.Reason != connection.Connecting || v.Ready() || v.Cached() != nil || v.Client() != nil {
		t.Errorf("before anybody wants it, it is %+v", v.State)
	}
	r.Want("owner", ref)
	v := r.becomes(ref, connection.Connected)
	if v.ID != "member" || !v.Ready() || v.Labels["region"] != "a" || v.LastContact.IsZero() {
		t.Errorf("it is %+v with labels %v", v.State, v.Labels)
	}
	var list appsv1.DeploymentList
	if err := v.Cached().List(t.Context(), &list); err != nil || len(list.Items) != 0 {
		t.Errorf("its Deployments: %d, %v", len(list.Items), err)
	}
	if r.news("owner") == 0 {
		t.Error("its owner was told nothing")
	}
}

// TestTwoSilentClustersDelayNobody: of five clusters, two accept connections and say nothing.
func TestTwoSilentClustersDelayNobody(t *testing.T) {
	r := newRig(t)
	r.options.Times.Join = time.Minute
	refs := map[Ref]bool{}
	for _, name := range []string{"silent-1", "silent-2"} {
		config := good(t)
		config.Clusters["member"].Server = silent(t)
		ref := r.hub.secret(name, written(t, config))
		refs[ref] = false
		r.Want("impatient", ref)
		r.until(ref, "asked", func(View) bool { return true })
	}
	time.Sleep(50 * time.Millisecond) // they are being waited for by now
	begin := time.Now()
	for _, name := range []string{"a", "b", "c"} {
		refs[r.hub.secret(name, newFakeMember(t, name).kubeconfig(t))] = true
	}
	var all []Ref
	for ref := range refs {
		all = append(all, ref)
	}
	r.Want("owner", all...)
	for ref, answers := range refs {
		if answers {
			r.becomes(ref, connection.Connected)
		}
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("three clusters were joined after %s, want a second at most", took)
	}
	for ref, answers := range refs {
		begin := time.Now()
		v := r.Look(ref)
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("looking at %s took %s", ref, took)
		}
		if v.Ready() != answers {
			t.Errorf("%s is %s", ref, v.Reason)
		}
	}
}

func TestWhatIsWrongWithAClusterIsTold(t *testing.T) {
	tests := map[string]struct {
		secret func(*fakeMember) *corev1.Secret
		change func(*fakeMember)
		want   connection.Reason
		says   string
	}{
		"no such Secret": {secret: func(*fakeMember) *corev1.Secret { return nil }, want: connection.NotFound, says: "does not exist"},
		"a Secret that is no cluster": {
			secret: func(m *fakeMember) *corev1.Secret {
				return &corev1.Secret{Data: map[string][]byte{keys.KubeconfigKey: m.kubeconfig(t)}}
			},
			want: connection.NotFound, says: keys.KubeconfigSecret,
		},
		"a kubeconfig that starts a program": {
			secret: func(*fakeMember) *corev1.Secret {
				return &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{keys.KubeconfigSecret: "true"}},
					Data:       map[string][]byte{keys.KubeconfigKey: []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'https://a'}}]\nusers: [{name: a, user: {exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}}]\n")},
				}
			},
			want: connection.CredentialsInvalid, says: "exec",
		},
		"a token that is not accepted": {change: func(m *fakeMember) { m.code = 401 }, want: connection.CredentialsInvalid, says: "401"},
		"an account without rights":    {change: func(m *fakeMember) { m.code = 403 }, want: connection.Forbidden, says: "403"},
		"a server that is ill":         {change: func(m *fakeMember) { m.code = 500 }, want: connection.Unreachable, says: "500"},
		"the hub":                      {change: func(m *fakeMember) { m.uid = "hub" }, want: connection.TargetIsHub, says: "leave targetCluster out"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, m := newRig(t), newFakeMember(t, "member")
			if tc.change != nil {
				m.change(func() { tc.change(m) })
			}
			ref := r.hub.secret("a", m.kubeconfig(t))
			if tc.secret != nil {
				r.hub.change(func() { r.hub.secrets[ref.key()] = tc.secret(m) })
				if r.hub.secrets[ref.key()] == nil {
					r.hub.change(func() { delete(r.hub.secrets, ref.key()) })
				}
			}
			r.Want("owner", ref)
			v := r.becomes(ref, tc.want)
			if v.Ready() || !strings.Contains(v.Message, tc.says) {
				t.Errorf("it is ready: %t; message is %q, want %q in it", v.Ready(), v.Message, tc.says)
			}
		})
	}
}

func TestAServerOfAnotherAuthorityIsNotTrusted(t *testing.T) {
	r, m := newRig(t), newFakeMember(t, "member")
	config, err := clientcmd.Load(m.kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["member"].CertificateAuthorityData, _ = pair(t)
	ref := r.hub.secret("a", written(t, config))
	r.Want("owner", ref)
	if v := r.becomes(ref, connection.CredentialsInvalid); !strings.Contains(v.Message, "certificate") {
		t.Errorf("message is %q", v.Message)
	}
}

// TestAClusterThatIsAwayComesBack: its session is a new one then, so that whoever reads it knows.
func TestAClusterThatIsAwayComesBack(t *testing.T) {
	r, m := newRig(t), newFakeMember(t, "member")
	ref := r.hub.secret("a", m.kubeconfig(t))
	r.Want("owner", ref)
	first := r.becomes(ref, connection.Connected)
	m.change(func() { m.code = 503 })
	away := r.becomes(ref, connection.Unreachable)
	if away.ID != "member" || away.LastContact.Before(first.LastContact) || away.Ready() {
		t.Errorf("while it is away, it is %+v", away.State)
	}
	m.change(func() { m.code = 0 })
	back := r.becomes(ref, connection.Connected)
	if back.Session == first.Session || !back.Ready() {
		t.Errorf("back again, it has session %d, as before %d", back.Session, first.Session)
	}
}

func TestAnotherClusterBehindTheSameAddressIsNoticed(t *testing.T) {
	r, m := newRig(t), newFakeMember(t, "member")
	ref := r.hub.secret("a", m.kubeconfig(t))
	r.Want("owner", ref)
	r.becomes(ref, connection.Connected)
	m.change(func() { m.uid = "another" })
	r.until(ref, "another", func(v View) bool { return v.ID == "another" && v.Ready() })
}

// TestAClusterThatWasRestoredIsReadAnew: watches from the time before would show nothing until its storage has come as far again.
func TestAClusterThatWasRestoredIsReadAnew(t *testing.T) {
	r, m := newRig(t), newFakeMember(t, "member")
	ref := r.hub.secret("a", m.kubeconfig(t))
	r.Want("owner", ref)
	first := r.becomes(ref, connection.Connected)
	m.change(func() { m.revision = 101 })
	time.Sleep(100 * time.Millisecond)
	if now := r.Look(ref); now.Session != first.Session {
		t.Errorf("a cluster that goes on has session %d after %d", now.Session, first.Session)
	}
	m.change(func() { m.revision = 50 })
	r.until(ref, "in a new session", func(v View) bool { return v.Session > first.Session && v.Ready() })
}

// TestCredentialsAreReplaced: in a Secret that was written anew, and as soon as a bad one is mended.
func TestCredentialsAreReplaced(t *testing.T) {
	r, m, other := newRig(t), newFakeMember(t, "member"), newFakeMember(t, "other")
	r.options.Times.Backoff, r.options.Times.MaxBackoff = time.Hour, time.Hour // which is for the same credentials only
	ref := r.hub.secret("a", []byte("none"))
	r.Want("owner", ref)
	r.becomes(ref, connection.CredentialsInvalid)
	r.hub.secret("a", m.kubeconfig(t))
	r.until(ref, "member", func(v View) bool { return v.ID == "member" && v.Ready() })
	m.change(func() { m.code = 401 })
	r.becomes(ref, connection.CredentialsInvalid)
	r.hub.secret("a", other.kubeconfig(t))
	r.until(ref, "other", func(v View) bool { return v.ID == "other" && v.Ready() })
	r.hub.change(func() { delete(r.hub.secrets, ref.key()) })
	if v := r.becomes(ref, connection.NotFound); v.Client() != nil || v.Cached() != nil {
		t.Error("without its Secret, the cluster can still be reached")
	}
}

// TestTheHubThatDoesNotAnswerChangesNothing: what it said last still counts.
func TestTheHubThatDoesNotAnswerChangesNothing(t *testing.T) {
	r, m := newRig(t), newFakeMember(t, "member")
	ref := r.hub.secret("a", m.kubeconfig(t))
	r.Want("owner", ref)
	r.becomes(ref, connection.Connected)
	r.hub.change(func() { r.hub.err = errHub{} })
	for range 20 {
		time.Sleep(10 * time.Millisecond)
		if v := r.Look(ref); !v.Ready() {
			t.Fatalf("it is %s: %s", v.Reason, v.Message)
		}
	}
}

type errHub struct{}

func (errHub) Error() string { return "the hub does not answer" }

func TestKindsThatAreInstalledLaterAreSeen(t *testing.T) {
	r, m := newRig(t), newFakeMember(t, "member")
	ref := r.hub.secret("a", m.kubeconfig(t))
	r.Want("owner", ref)
	v := r.becomes(ref, connection.Connected)
	if served, _ := v.Serves(appsv1.SchemeGroupVersion.WithKind("Deployment")); !served {
		t.Error("it does not serve Deployments")
	}
	cloneSets := v1beta1.GroupVersion.WithKind("CloneSet")
	if served, _ := v.Serves(cloneSets); served {
		t.Error("it serves CloneSets")
	}
	told := r.news("owner")
	m.change(func() { m.kruise = true })
	again := r.until(ref, "serving CloneSets", func(v View) bool { _, readable := v.Serves(cloneSets); return readable })
	if again.Session != v.Session {
		t.Error("there is a new session, which a kind does not need")
	}
	for deadline := time.Now().Add(5 * time.Second); r.news("owner") == told; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("its owner is not told that it can go on")
		}
	}
}

func TestConnectionsThatNobodyWantsEnd(t *testing.T) {
	r, m := newRig(t), newFakeMember(t, "member")
	ref := r.hub.secret("a", m.kubeconfig(t))
	r.Want("one", ref)
	r.Want("two", ref)
	first := r.becomes(ref, connection.Connected)
	r.Forget("one")
	time.Sleep(300 * time.Millisecond)
	if v := r.Look(ref); !v.Ready() {
		t.Errorf("it is %s while somebody wants it", v.Reason)
	}
	r.Want("two")
	r.becomes(ref, connection.Connecting)
	r.mu.Lock()
	left := len(r.links) + len(r.wants) + len(r.idle)
	r.mu.Unlock()
	if left != 0 {
		t.Errorf("the registry keeps %d entries of what nobody wants", left)
	}
	r.Want("two", ref)
	if again := r.becomes(ref, connection.Connected); again.Session <= first.Session {
		t.Errorf("when it is wanted again, its session is %d, and before it was %d: what was kept of that counts as present", again.Session, first.Session)
	}
}
