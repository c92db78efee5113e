package distribution

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestServed(t *testing.T) {
	for name, tc := range map[string]struct {
		further []string
		want    []string
		err     string
	}{
		"those that are always":   {want: []string{"Secret", "ConfigMap"}},
		"some further ones":       {further: []string{"NetworkPolicy", "ServiceAccount"}, want: []string{"Secret", "ConfigMap", "ServiceAccount", "NetworkPolicy"}},
		"a kind that is never":    {further: []string{"RoleBinding"}, err: `"RoleBinding" is none of ServiceAccount, LimitRange, NetworkPolicy`},
		"one that is always":      {further: []string{"Secret"}, err: `"Secret" is none of`},
		"another way of spelling": {further: []string{"limitrange"}, err: `"limitrange" is none of`},
	} {
		kinds, err := Served(tc.further)
		if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q", name, err, tc.err)
		}
		var got []string
		for _, kind := range kinds {
			got = append(got, kind.Kind)
		}
		if err == nil && !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	for _, kind := range Kinds() {
		if object := New(kind.Kind); object == nil || KindOf(object) != kind.Kind {
			t.Errorf("an empty %s is %T", kind.Kind, object)
		}
	}
	if New("Pod") != nil {
		t.Error("there is an empty Pod")
	}
}

// TestWhatTheAPIServerWouldWrite is in each copy, so that one that is stored with it is not copied again.
func TestWhatTheAPIServerWouldWrite(t *testing.T) {
	for name, tc := range map[string]struct{ text, stored string }{
		"a NetworkPolicy for what comes in": {
			`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n"},"spec":{"podSelector":{},"ingress":[{"ports":[{"port":80},{"protocol":"UDP","port":53}]}]}}`,
			`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n"},"spec":{"podSelector":{},"ingress":[{"ports":[{"protocol":"TCP","port":80},{"protocol":"UDP","port":53}]}],"policyTypes":["Ingress"]}}`,
		},
		"a NetworkPolicy for what goes out": {
			`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n"},"spec":{"podSelector":{},"egress":[{"ports":[{"port":80}]}]}}`,
			`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n"},"spec":{"podSelector":{},"egress":[{"ports":[{"protocol":"TCP","port":80}]}],"policyTypes":["Ingress","Egress"]}}`,
		},
		"a LimitRange": {
			`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","max":{"cpu":"2","memory":"1Gi"},"min":{"cpu":"1","storage":"1"},"default":{"cpu":"1"}},{"type":"Pod","max":{"cpu":"4"}}]}}`,
			`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","max":{"cpu":"2","memory":"1Gi"},"min":{"cpu":"1","storage":"1"},"default":{"cpu":"1","memory":"1Gi"},"defaultRequest":{"cpu":"1","memory":"1Gi","storage":"1"}},{"type":"Pod","max":{"cpu":"4"}}]}}`,
		},
		"a ServiceAccount, but for its tokens": {
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"s"},"imagePullSecrets":[{"name":"pull"}]}`,
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"s"},"imagePullSecrets":[{"name":"pull"}],"secrets":[{"name":"token"}]}`,
		},
	} {
		s, stored := source(t, tc.text), source(t, tc.stored)
		if diff := cmp.Diff(stored.Object, s.Object); diff != "" {
			t.Errorf("%s (-stored +read):\n%s", name, diff)
		}
	}
	if _, err := Parse([]byte(`{"apiVersion":"v1","kind":"NetworkPolicy","metadata":{"name":"n"}}`)); err == nil {
		t.Error("a NetworkPolicy of another group is read")
	}
}

// TestTokensStay: a copy of a ServiceAccount keeps those that were made for it.
func TestTokensStay(t *testing.T) {
	s := source(t, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"s"},"secrets":[{"name":"of-another"}]}`)
	is := s.Copy(owner(), "ns", nil).(*corev1.ServiceAccount)
	if len(is.Secrets) > 0 {
		t.Errorf("the copy has the tokens %v", is.Secrets)
	}
	is.Secrets = []corev1.ObjectReference{{Name: "own"}}
	again := s.Copy(owner(), "ns", is).(*corev1.ServiceAccount)
	if len(again.Secrets) != 1 || !IsSame(is, again) {
		t.Errorf("the copy over it is %+v", again)
	}
}

// TestCopiesOfAnotherName have also other labels and annotations, in place of those of the resource.
func TestCopiesOfAnotherName(t *testing.T) {
	s := source(t, `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n","labels":{"a":"1","b":"1"}},"spec":{"podSelector":{}}}`)
	of := owner()
	if name := s.NameOf(of); name != "n" {
		t.Errorf("the copies are called %s", name)
	}
	of.Spec.Copies = &v1beta1.DistributedCopies{Name: "m", Labels: map[string]string{"a": "2"}, Annotations: map[string]string{"c": "$(namespace)"}}
	of.Spec.ExpandNamespace = true
	is := s.Copy(of, "ns", nil).(*networkingv1.NetworkPolicy)
	if is.Name != "m" || s.NameOf(of) != "m" || is.Labels["a"] != "2" || is.Labels["b"] != "1" || is.Annotations["c"] != "ns" {
		t.Errorf("the copy is %+v", is.ObjectMeta)
	}
	of.Spec.Copies = &v1beta1.DistributedCopies{Name: "m"}
	again := s.Copy(of, "ns", is).(*networkingv1.NetworkPolicy)
	if again.Labels["a"] != "1" || metav1.HasAnnotation(again.ObjectMeta, "c") {
		t.Errorf("the next copy is %+v", again.ObjectMeta)
	}
}
