package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	line := func(agent, verb, resource, subresource, namespace string, code, second int) string {
		return fmt.Sprintf(`{"stage":"ResponseComplete","verb":%q,"userAgent":"%s/v1 (linux)","requestReceivedTimestamp":"2026-01-01T00:00:%02d.000000Z",`+
			`"objectRef":{"resource":%q,"subresource":%q,"namespace":%q},"responseStatus":{"code":%d}}`,
			verb, agent, second, resource, subresource, namespace, code)
	}
	log := strings.Join([]string{
		line("kruise-manager", "create", "pods", "", "a", 201, 1),
		line("kruise-manager", "patch", "pods", "status", "a", 200, 2),
		line("kruise-manager", "patch", "pods", "status", "a", 409, 3),
		line("kruise-manager", "list", "pods", "", "a", 200, 4),
		line("kruise-manager", "create", "events", "", "a", 201, 5),
		line("kruise-manager", "create", "selfsubjectaccessreviews", "", "", 201, 5),
		line("kruise-manager", "watch", "pods", "", "a", 200, 6),
		line("kruise-manager", "update", "leases", "", "a", 200, 7),
		line("kruise-manager", "create", "pods", "", "b", 201, 8),
		line("kubelet", "patch", "pods", "status", "a", 200, 9),
		`{"stage":"Respon`,
	}, "\n")
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	cases := map[string]struct {
		query  Query
		want   Requests
		writes int
	}{
		"one client in one namespace": {
			query: Query{Agent: "kruise-manager", Namespace: "a"},
			want: Requests{
				Counts: map[string]int{
					"create pods 201": 1, "patch pods/status 200": 1, "patch pods/status 409": 1, "list pods 200": 1, "create events 201": 1,
				},
				PodWrites: 3, Reads: 1, Conflicts: 1,
			},
			writes: 3,
		},
		"from and to a time": {
			query:  Query{Agent: "kruise-manager", From: at(2), To: at(2)},
			want:   Requests{Counts: map[string]int{"patch pods/status 200": 1}, PodWrites: 1},
			writes: 1,
		},
		"all namespaces": {
			query:  Query{Agent: "kruise-manager", From: at(5)},
			want:   Requests{Counts: map[string]int{"create events 201": 1, "create pods 201": 1, "create selfsubjectaccessreviews 201": 1}, PodWrites: 1},
			writes: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Read(file, tc.query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || got.Writes() != tc.writes {
				t.Errorf("%d writes, want %d; requests (-want +got):\n%s", got.Writes(), tc.writes, diff)
			}
		})
	}
}
