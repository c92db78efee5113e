package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAfterTakeover(t *testing.T) {
	line := func(second int, process, verb, resource, name string, code int) string {
		return fmt.Sprintf(`{"stage":"ResponseComplete","verb":%q,"requestReceivedTimestamp":"2026-01-01T00:00:%02d.000000Z",`+
			`"user":{"extra":{"authentication.kubernetes.io/credential-id":["JTI=%s"]}},`+
			`"objectRef":{"resource":%q,"namespace":"ns","name":%q},"responseStatus":{"code":%d}}`, verb, second, process, resource, name, code)
	}
	const leader = "leader"
	log := []string{
		line(1, "a", "create", "leases", leader, 201),
		line(2, "a", "patch", "pods", "of the leader", 200),
		line(2, "b", "patch", "budgets", "of a standby", 200),
		line(3, "b", "update", "leases", leader, 409),
		line(4, "a", "patch", "pods", "of the leader still", 200),
		line(5, "b", "update", "leases", "another", 200),
		line(5, "a", "patch", "pods", "of the leader of the other lease", 200),
		line(6, "b", "update", "leases", leader, 200),
		line(7, "a", "patch", "pods", "too late", 200),
		line(7, "b", "patch", "pods", "of the next leader", 200),
		line(8, "a", "patch", "pods", "refused", 409),
		line(8, "a", "get", "pods", "read", 200),
		line(8, "a", "create", "events", "told", 201),
		line(8, "a", "create", "subjectaccessreviews", "asked", 201),
		line(9, "a", "update", "leases", leader, 200),
		line(10, "a", "patch", "pods", "it leads again", 200),
		line(11, "b", "delete", "pods", "too late, too", 200),
	}
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(strings.Join(log, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	writes, err := AfterTakeover(file, Lease{Namespace: "ns", Name: leader})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range writes {
		got = append(got, fmt.Sprintf("%s %s %s %s", w.Process, w.Verb, w.Resource, w.Name))
	}
	if diff := cmp.Diff([]string{"JTI=a patch pods too late", "JTI=b delete pods too late, too"}, got); diff != "" {
		t.Errorf("writes after the lease was taken over (-want +got):\n%s", diff)
	}
}
