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
	want := paths{
		"/convert", "/mutate-apps-kruise-io-cloneset", "/mutate-apps-kruise-io-v1alpha1-cloneset",
		"/validate-apps-kruise-io-cloneset", "/validate-apps-kruise-io-v1alpha1-cloneset",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
