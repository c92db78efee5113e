package doctor

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// bundle returns a CA that ends at a time.
func bundle(t *testing.T, end time.Time) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: end, IsCA: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// sound returns the facts of an installation with which nothing is amiss.
func sound(t *testing.T) Facts {
	t.Helper()
	ca := bundle(t, noon.AddDate(5, 0, 0))
	return Facts{
		Now: noon, Server: "v1.36.3", Minor: 36, Daemon: true, Nodes: []string{"a", "b"}, Daemons: []string{"a", "b"},
		Parts: []Part{{
			Name: "kruise-controller-manager", Namespace: "kruise-system", Deployed: true, Wanted: 2, Ready: 2, Asked: true,
			Definitions: []Definition{{
				Name: "clonesets.apps.kruise.io", There: true, Served: []string{"v1beta1", "v1alpha1"}, Ours: []string{"v1beta1", "v1alpha1"},
				Stored: []string{"v1beta1"}, Storage: "v1beta1", Converts: true, Bundle: ca,
			}},
			Lease:    &Lease{Name: "kruise-manager", Holder: "m-1", Renewed: noon.Add(-5 * time.Second), Duration: 15 * time.Second},
			Webhooks: []Webhook{{Configuration: "kruise-mutating-webhook-configuration", Name: "mcloneset.kb.io", Bundle: ca}},
		}},
	}
}

// TestDiagnose breaks one thing at a time: each is named, with the rest being in order.
func TestDiagnose(t *testing.T) {
	if found := Diagnose(sound(t)); len(found) > 0 {
		t.Fatalf("of a sound installation it finds %+v", found)
	}
	for name, tc := range map[string]struct {
		change func(*Facts)
		how    Severity
		want   string
	}{
		"an old API server":         {func(f *Facts) { f.Server, f.Minor = "v1.30.1", 30 }, Broken, "the API server is v1.30.1"},
		"nothing":                   {func(f *Facts) { f.Parts = nil }, Broken, "Kruise is not installed"},
		"a kind that is missing":    {func(f *Facts) { f.Parts[0].Definitions = append(f.Parts[0].Definitions, Definition{Name: "x"}) }, Broken, "are missing: x"},
		"a version that is missing": {func(f *Facts) { f.Parts[0].Definitions[0].Served = []string{"v1beta1"} }, Broken, "does not serve v1alpha1"},
		"objects in no version":     {func(f *Facts) { f.Parts[0].Definitions[0].Stored = []string{"v1", "v1beta1"} }, Broken, "may be stored in v1, which it does not serve"},
		"no manager": {func(f *Facts) {
			f.Parts[0].Deployed, f.Parts[0].Lease = false, nil
		}, Broken, "there is no Deployment kruise-controller-manager"},
		"no Pod is ready":          {func(f *Facts) { f.Parts[0].Ready = 0 }, Broken, "no Pod of kruise-controller-manager is ready"},
		"a Pod is not ready":       {func(f *Facts) { f.Parts[0].Ready = 1 }, Warning, "1 of 2 Pods of kruise-controller-manager"},
		"no Lease":                 {func(f *Facts) { f.Parts[0].Lease = nil }, Warning, "there is no Lease"},
		"a leader that is gone":    {func(f *Facts) { f.Parts[0].Lease.Renewed = noon.Add(-time.Minute) }, Broken, "was last renewed 1m0s ago"},
		"no CA":                    {func(f *Facts) { f.Parts[0].Webhooks[0].Bundle = nil }, Broken, "has no CA"},
		"a CA that is none":        {func(f *Facts) { f.Parts[0].Webhooks[0].Bundle = []byte("x") }, Broken, "it holds no certificate"},
		"a CA that has ended":      {func(f *Facts) { f.Parts[0].Webhooks[0].Bundle = bundle(t, noon.AddDate(0, 0, -1)) }, Broken, "ended on 2026-01-01"},
		"a CA that ends soon":      {func(f *Facts) { f.Parts[0].Webhooks[0].Bundle = bundle(t, noon.AddDate(0, 0, 9)) }, Warning, "ends on 2026-01-11"},
		"a conversion without CA":  {func(f *Facts) { f.Parts[0].Definitions[0].Bundle = nil }, Broken, "the conversion of clonesets.apps.kruise.io has no CA"},
		"no webhooks":              {func(f *Facts) { f.Parts[0].Webhooks = nil }, Broken, "no webhook of kruise-controller-manager"},
		"webhooks that are silent": {func(f *Facts) { f.Parts[0].Answer = "context deadline exceeded" }, Broken, "do not answer: context deadline exceeded"},
		"a node without a daemon":  {func(f *Facts) { f.Daemons = []string{"a"} }, Warning, "1 nodes have no daemon that is ready: b"},
		"an object that is held":   {func(f *Facts) { f.Held = []Held{{"Deployment shop/web", "kruise-rollout-manager", "run it"}} }, Broken, "Deployment shop/web is held"},
		"what could not be read":   {func(f *Facts) { f.Unread = []string{"Leases could not be read: forbidden"} }, Warning, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			f := sound(t)
			tc.change(&f)
			found := Diagnose(f)
			if len(found) != 1 || found[0].Severity != tc.how || !strings.Contains(found[0].What, tc.want) {
				t.Errorf("it finds %+v, want %s: %s", found, tc.how, tc.want)
			}
			for _, one := range found {
				if one.Why == "" || one.Mend == "" {
					t.Errorf("%q says not why it matters or what mends it", one.What)
				}
			}
		})
	}
	wrong := sound(t)
	wrong.Parts[0].Answer = "x509: certificate signed by unknown authority"
	if found := Diagnose(wrong); len(found) != 1 || !strings.Contains(found[0].Mend, "not that of the manager") {
		t.Errorf("of a CA that is not that of the manager it says %+v", found)
	}
}

func TestPlan(t *testing.T) {
	if got := Plan(Facts{Now: noon}); len(got.Found)+len(got.Against)+len(got.Steps) > 0 {
		t.Errorf("of an empty cluster it says %+v", got)
	}
	f := sound(t)
	f.Parts[0].Definitions[0].Storage, f.Parts[0].Definitions[0].Stored = "v1alpha1", []string{"v1alpha1", "v1"}
	f.Older = Older{
		Managers: []string{"kruise-system/kruise-controller-manager: openkruise/kruise-manager:v1.8.0"}, Objects: map[string]int{"CloneSet.apps.kruise.io": 3},
		Updating: []string{"shop/a", "shop/b", "shop/c", "shop/d"}, Hooked: []string{"shop/e"}, Protected: []string{"Namespace shop"}, Releasing: []string{"shop/web"},
	}
	got := Plan(f)
	all := strings.Join(append(append(got.Found, got.Steps...), got.Back...), "\n")
	for _, a := range got.Against {
		all += "\n" + a.What
	}
	for _, want := range []string{
		"openkruise/kruise-manager:v1.8.0", "a leader: Lease kruise-manager of m-1", "1 kinds with objects that may be stored in an older version",
		"3 objects of kind CloneSet.apps.kruise.io", "4 Pods in the middle of an update in place go on from where they are: shop/a, shop/b, shop/c and 1 more",
		"1 Pods wait for a lifecycle hook as before: shop/e", "may be stored in v1", "1 objects have a label of deletion protection: Namespace shop",
		"1 Rollouts are in the middle of a release: shop/web", "--replicas=0",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not say %q:\n%s", want, all)
		}
	}
}
