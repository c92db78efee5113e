package admission

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// paths notes where handlers are put.
type paths []string

func (p *paths) Register(path string, hook http.Handler) {
	if hook != nil {
		*p = append(*p, path)
	}
}

// TestRegister: installations of the original name these paths in their webhook configurations and CRDs.
func TestRegister(t *testing.T) {
	var got paths
	Register(&got, Options{})
	slices.Sort(got)
	want := paths{"/convert", "/mutate-apps-kruise-io-containerrecreaterequest", "/validate-apps-kruise-io-podprobemarker",
		"/validate-policy-kruise-io-podunavailablebudget"}
	for _, verb := range []string{"mutate", "validate"} {
		for _, kind := range []string{"advancedcronjob", "broadcastjob", "cloneset", "daemonset", "sidecarset", "statefulset", "uniteddeployment"} {
			want = append(want, "/"+verb+"-apps-kruise-io-"+kind, "/"+verb+"-apps-kruise-io-v1alpha1-"+kind)
		}
	}
	for _, group := range []string{"apps-kruise-io", "apps-kruise-io-v1alpha1"} {
		want = append(want, "/mutate-"+group+"-nodeimage", "/validate-"+group+"-nodeimage",
			"/validate-"+group+"-imagepulljob", "/validate-"+group+"-imagelistpulljob", "/validate-"+group+"-ephemeraljob", "/validate-"+group+"-persistentpodstate", "/validate-"+group+"-resourcedistribution",
			"/validate-"+group+"-workloadspread")
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
