package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUses(t *testing.T) {
	line := func(stage, user, verb, resource, subresource, namespace, name string, code int) string {
		return fmt.Sprintf(`{"stage":%q,"verb":%q,"user":{"username":%q},"objectRef":{"apiGroup":"g","resource":%q,"subresource":%q,"namespace":%q,"name":%q},`+
			`"responseStatus":{"code":%d}}`, stage, verb, user, resource, subresource, namespace, name, code)
	}
	const manager = "system:serviceaccount:kruise-system:kruise-manager"
	log := strings.Join([]string{
		line("ResponseComplete", manager, "patch", "pods", "status", "a", "web-1", 200),
		line("ResponseComplete", manager, "patch", "pods", "status", "a", "web-2", 200),
		line("ResponseComplete", manager, "delete", "pods", "", "a", "web-1", 403),
		line("ResponseComplete", manager, "create", "pods", "", "a", "web-1", 409),
		line("ResponseComplete", manager, "update", "leases", "", "kruise-system", "kruise-manager", 200),
		line("ResponseStarted", manager, "watch", "pods", "", "", "", 200),
		line("ResponseComplete", "system:admin", "create", "pods", "", "a", "web-1", 201),
		line("ResponseComplete", manager, "get", "", "", "", "", 200),
		`{"stage":"Respon`,
	}, "\n")
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Uses(file)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b Use) int { return strings.Compare(a.Verb, b.Verb) })
	want := []Use{
		{Account: "kruise-system/kruise-manager", Verb: "patch", Group: "g", Resource: "pods/status", Namespace: "a"},
		{Account: "kruise-system/kruise-manager", Verb: "update", Group: "g", Resource: "leases", Namespace: "kruise-system", Name: "kruise-manager"},
		{Account: "kruise-system/kruise-manager", Verb: "watch", Group: "g", Resource: "pods"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
