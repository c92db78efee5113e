// Package imports checks who imports whom: the walls of docs/architecture.md.
package imports

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seed-69ecc383/kruise/"

// room is a group of packages and what they may import besides the standard library. A name that ends in "/..." means all below it.
type room struct {
	packages []string
	ours     []string
	others   []string
	// pure rooms decide; they must not read the clock, draw random numbers, log, or do I/O.
	pure bool
}

// kubernetes are the libraries of types and pointers, without clients.
func kubernetes(more ...string) []string {
	return append([]string{"k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/utils/ptr"}, more...)
}

func rooms() []room {
	return []room{
		{packages: []string{"api/..."}, ours: []string{"api/..."}, others: kubernetes()},
		{packages: []string{"internal/rules/reason"}, pure: true},
		{packages: []string{"internal/rules/pod"}, ours: []string{"api/...", "internal/rules/reason"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/progress"}, ours: []string{"api/...", "internal/rules/budget", "internal/rules/pod", "internal/rules/reason"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/inplace"}, ours: []string{"api/...", "internal/rules/pod", "internal/rules/revision", "internal/rules/launch"}, others: kubernetes("github.com/distribution/reference", "k8s.io/utils/dump"), pure: true},
		{packages: []string{"internal/rules/order"}, ours: []string{"api/...", "internal/rules/pod", "internal/rules/order"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/ordinal"}, ours: []string{"api/...", "internal/rules/pod", "internal/rules/order"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/podstate"}, ours: []string{"api/...", "internal/rules/pod", "internal/rules/ordinal"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/distribution"}, ours: []string{"api/..."}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/sidecar"}, ours: []string{"api/...", "internal/rules/pod", "internal/rules/inplace", "internal/rules/revision", "internal/rules/order", "internal/rules/budget"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/disruption"}, ours: []string{"api/...", "internal/rules/pod", "internal/rules/inplace", "internal/rules/sidecar", "internal/rules/budget"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/inject"}, ours: []string{"api/...", "internal/rules/budget", "internal/rules/pod", "internal/rules/sidecar", "internal/rules/expression"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/scope"}, ours: []string{"api/...", "internal/rules/sidecar"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/spread"}, ours: []string{"api/...", "internal/rules/pod", "internal/rules/order", "internal/rules/budget"}, others: kubernetes("k8s.io/component-helpers/scheduling/corev1/nodeaffinity"), pure: true},
		{packages: []string{"internal/rules/claim"}, ours: []string{"api/...", "internal/rules/pod"}, others: kubernetes("k8s.io/utils/dump")}, // it draws ids from a seed
		{packages: []string{"internal/rules/cron"}, others: kubernetes("github.com/robfig/cron/v3"), pure: true},
		{packages: []string{"internal/rules/nodefit"}, ours: []string{"api/..."}, others: kubernetes("k8s.io/component-helpers/resource", "k8s.io/component-helpers/scheduling/corev1/nodeaffinity", "github.com/go-logr/logr"), pure: true},
		{packages: []string{"internal/rules/member"}, ours: []string{"api/...", "internal/rules/connection"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/pull"}, ours: []string{"api/...", "internal/rules/registry"}, others: kubernetes("k8s.io/utils/dump", "github.com/distribution/reference"), pure: true},
		{packages: []string{"internal/rules/ondelete"}, ours: []string{"api/...", "internal/rules/budget", "internal/rules/pod"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/replicasets"}, ours: []string{"api/...", "internal/rules/budget", "internal/rules/release"}, others: kubernetes("k8s.io/utils/dump"), pure: true},
		{packages: []string{"internal/rules/guard"}, ours: []string{"api/...", "internal/rules/inplace"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/release"}, ours: []string{"api/...", "internal/rules/analysis", "internal/rules/budget", "internal/rules/guard"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/steer"}, ours: []string{"api/...", "internal/rules/pod", "internal/rules/budget", "internal/rules/inplace", "internal/rules/ondelete", "internal/rules/ordinal", "internal/rules/release", "internal/rules/replicasets", "internal/rules/revision"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/rules/registry"}, others: kubernetes("github.com/distribution/reference"), pure: true},
		{packages: []string{"internal/rules/..."}, ours: []string{"api/...", "internal/rules/pod"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/plan"}, ours: []string{"internal/rules/reason"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/seal"}},
		{packages: []string{"internal/clock"}, others: []string{"github.com/go-logr/logr"}},
		{packages: []string{"internal/convert", "internal/defaults"}, ours: []string{"api/...", "internal/rules/..."},
			others: kubernetes("k8s.io/apiextensions-apiserver/...", "github.com/distribution/reference")},
		{packages: []string{"internal/observe"}, ours: []string{"api/..."}, others: kubernetes("sigs.k8s.io/controller-runtime/...", "k8s.io/client-go/tools/cache")},
		{packages: []string{"internal/apply"}, ours: []string{"api/...", "internal/plan", "internal/rules/reason"}, others: kubernetes("sigs.k8s.io/controller-runtime/...",
			"k8s.io/client-go/...", "github.com/prometheus/client_golang/...", "golang.org/x/time/rate", "gopkg.in/evanphx/json-patch.v4", "k8s.io/utils/...")},
		{packages: []string{"internal/analysis"}, ours: []string{"api/...", "internal/rules/analysis"}, others: kubernetes("sigs.k8s.io/controller-runtime/pkg/client")},
		{packages: []string{"internal/loop"}, ours: []string{"api/policy/v1beta1", "internal/plan", "internal/apply", "internal/observe"},
			others: kubernetes("sigs.k8s.io/controller-runtime/...", "k8s.io/client-go/util/workqueue")},
		{packages: []string{"internal/trace"}, ours: []string{"internal/apply", "internal/loop", "internal/plan", "internal/rules/progress", "internal/rules/reason"},
			others: kubernetes("go.opentelemetry.io/otel/...", "go.opentelemetry.io/proto/otlp/trace/v1", "google.golang.org/protobuf/proto", "github.com/go-logr/logr")},
		{packages: []string{"internal/clusters"}, ours: []string{"api/...", "internal/observe", "internal/rules/connection"},
			others: kubernetes("sigs.k8s.io/controller-runtime/...", "k8s.io/client-go/...", "github.com/go-logr/logr")},
		{packages: []string{"internal/members"}, ours: []string{"api/...", "internal/apply", "internal/clusters", "internal/plan", "internal/rules/connection", "internal/rules/member"},
			others: kubernetes("sigs.k8s.io/controller-runtime/...", "k8s.io/client-go/tools/record")},
		{packages: []string{"internal/rollout"}, ours: []string{"api/...", "internal/rules/...", "internal/plan", "internal/apply"}, others: kubernetes(), pure: true},
		{packages: []string{"internal/script"}, others: []string{"github.com/yuin/gopher-lua/...", "k8s.io/apimachinery/pkg/util/json"}, pure: true},
		{packages: []string{"internal/traffic"}, ours: []string{"api/...", "internal/plan", "internal/observe", "internal/rules/release", "internal/rules/traffic", "internal/script"},
			others: kubernetes("sigs.k8s.io/controller-runtime/...")},
		{packages: []string{"internal/releases"}, ours: []string{"api/...", "internal/rules/release", "internal/rules/steer", "internal/plan", "internal/observe", "internal/loop"},
			others: kubernetes("sigs.k8s.io/controller-runtime/pkg/client")},
		{packages: []string{"internal/controller/rollout"}, ours: []string{"api/...", "internal/rules/...", "internal/plan", "internal/observe", "internal/apply", "internal/loop", "internal/releases", "internal/traffic"},
			others: kubernetes("sigs.k8s.io/controller-runtime/...", "github.com/prometheus/client_golang/prometheus")},
		{packages: []string{"internal/controller/..."}, ours: []string{"api/...", "internal/rules/...", "internal/plan", "internal/releases", "internal/rollout", "internal/observe", "internal/apply", "internal/loop", "internal/defaults", "internal/members", "internal/traffic"},
			others: kubernetes("sigs.k8s.io/controller-runtime/...")},
		{packages: []string{"internal/disruption"}, ours: []string{"api/...", "internal/plan", "internal/rules/disruption", "internal/rules/pod"}, others: kubernetes("sigs.k8s.io/controller-runtime/pkg/client")},
		{packages: []string{"internal/spread"}, ours: []string{"api/...", "internal/observe", "internal/rules/pod", "internal/rules/spread"}, others: kubernetes("sigs.k8s.io/controller-runtime/...", "github.com/prometheus/client_golang/prometheus")},
		{packages: []string{"internal/admission/..."}, ours: []string{"api/...", "internal/disruption", "internal/observe", "internal/releases", "internal/spread", "internal/convert", "internal/defaults", "internal/rules/...", "internal/admission/..."},
			others: []string{"..."}},
		{packages: []string{"internal/node/cri"}, ours: []string{"internal/rules/registry"}, others: []string{"google.golang.org/grpc/...", "k8s.io/cri-api/...", "github.com/go-logr/logr"}},
		{packages: []string{"internal/node/..."}, ours: []string{"api/...", "internal/features", "internal/logging", "internal/rules/...", "internal/seal", "internal/node/..."},
			others: []string{"..."}},
		{packages: []string{"internal/cli/kinds", "internal/cli/explain", "internal/cli/migrate", "internal/cli/doctor"}, ours: []string{"api/...", "internal/cli/kinds", "internal/plan", "internal/rollout", "internal/rules/..."}, others: kubernetes(), pure: true},
		{packages: []string{"internal/cli/screen"}, others: kubernetes("golang.org/x/term", "sigs.k8s.io/yaml")},
		{packages: []string{"internal/cli/access", "internal/cli/past"}, ours: []string{"api/...", "internal/cli/access", "internal/cli/kinds", "internal/convert", "internal/rules/..."},
			others: kubernetes("k8s.io/streaming/pkg/httpstream", "k8s.io/cli-runtime/...", "k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/pkg/client", "github.com/spf13/pflag", "gopkg.in/evanphx/json-patch.v4")},
		{packages: []string{"internal/cli/lint"}, ours: []string{"api/...", "config/...", "internal/admission/...", "internal/convert", "internal/defaults", "internal/features", "internal/rules/..."},
			others: kubernetes("k8s.io/apiextensions-apiserver/...", "k8s.io/apiserver/pkg/apis/cel", "sigs.k8s.io/controller-runtime/pkg/client/...", "sigs.k8s.io/controller-runtime/pkg/webhook/...",
				"gopkg.in/evanphx/json-patch.v4", "sigs.k8s.io/yaml")},
		{packages: []string{"internal/forecast"}, ours: []string{"api/...", "internal/apply", "internal/controller/...", "internal/loop", "internal/observe", "internal/plan", "internal/rules/..."},
			others: kubernetes("sigs.k8s.io/controller-runtime/pkg/client")},
		{packages: []string{"internal/cli"}, ours: []string{"api/...", "internal/cli/...", "internal/forecast", "internal/plan", "internal/rules/..."},
			others: kubernetes("sigs.k8s.io/controller-runtime/pkg/client", "github.com/spf13/cobra", "golang.org/x/term", "sigs.k8s.io/yaml")},
		{packages: []string{"test/sim/simulate"}, ours: []string{"api/...", "internal/plan", "internal/rules/..."}, others: kubernetes("sigs.k8s.io/controller-runtime/...",
			"k8s.io/client-go/...", "gopkg.in/evanphx/json-patch.v4", "k8s.io/utils/...")},
		{packages: []string{"internal/statemetrics"}, ours: []string{"api/...", "internal/rules/budget"}, others: kubernetes("sigs.k8s.io/controller-runtime/pkg/client", "github.com/prometheus/client_golang/prometheus")},
		{packages: []string{"internal/features", "internal/logging", "internal/command", "internal/process", "internal/manager", "internal/rolloutmanager", "internal/uninstall", "cmd/...", "config/...", "hack/...", "integrations", "test/..."}, ours: []string{"..."}, others: []string{"..."}},
	}
}

func within(pkg string, allowed []string) bool {
	return slices.ContainsFunc(allowed, func(pattern string) bool {
		below, all := strings.CutSuffix(pattern, "...")
		return pkg == pattern || all && (strings.HasPrefix(pkg+"/", below))
	})
}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestWalls(t *testing.T) {
	found := 0
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		i := slices.IndexFunc(rooms(), func(r room) bool { return within(name, r.packages) })
		if i < 0 {
			t.Errorf("package %s is in no room: say in this test what it may import", name)
			continue
		}
		found++
		for _, imported := range p.Imports {
			if why := rooms()[i].refuses(imported); why != "" {
				t.Errorf("package %s imports %s: %s", name, imported, why)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d packages were looked at", found)
	}
}

// refuses says why the room may not import a package; empty when it may.
func (r room) refuses(imported string) string {
	own, ours := strings.CutPrefix(imported, module)
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case ours && !within(own, r.ours):
		return "that room is not open to it"
	case ours:
		return ""
	case !strings.Contains(first, "."):
		if impure := []string{"log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "io/ioutil"}; r.pure && slices.Contains(impure, imported) {
			return "a pure package does no I/O and draws no random numbers"
		}
		return ""
	case !within(imported, r.others):
		return "that library is not among those that it may use"
	}
	return ""
}

func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", path.Join(module, "...")).Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	var all []listed
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestWallsStand breaks the rules on purpose.
func TestWallsStand(t *testing.T) {
	cases := map[string]struct{ room, imported string }{
		"a rule that reads the cluster":        {"internal/rules/budget", "sigs.k8s.io/controller-runtime/pkg/client"},
		"a rule that logs":                     {"internal/rules/order", "log"},
		"a rule that knows plans":              {"internal/rules/pod", module + "internal/plan"},
		"a plan that knows a client":           {"internal/plan", "k8s.io/client-go/rest"},
		"an executor that knows rules":         {"internal/apply", module + "internal/rules/budget"},
		"a controller that knows the gates":    {"internal/controller/cloneset", module + "internal/features"},
		"admission that knows a controller":    {"internal/admission/validating", module + "internal/controller/cloneset"},
		"types that know behaviour":            {"api/apps/v1beta1", module + "internal/rules/pod"},
		"a rule that draws its random numbers": {"internal/rules/order", "math/rand/v2"},
	}
	for name, tc := range cases {
		i := slices.IndexFunc(rooms(), func(r room) bool { return within(tc.room, r.packages) })
		if why := rooms()[i].refuses(tc.imported); why == "" {
			t.Errorf("%s is let through: %s imports %s", name, tc.room, tc.imported)
		}
	}
}
