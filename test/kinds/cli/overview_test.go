package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// TestOverviewAndTree looks at a namespace in which one workload is at rest, and another one is not.
func TestOverviewAndTree(t *testing.T) {
	e := newEnv(t)
	running(kruiseSet("replicas: 2\n  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}}"), "clone/web")(e)
	e.ok("At rest: 1 CloneSet", "overview") // and SidecarSets of other tests, which are in no namespace
	e.Make(strings.NewReplacer("name: web", "name: other", "app: web", "app: other").Replace(replicated("apps/v1", "Deployment", "replicas: 1")))
	e.done("deployment/other")
	e.ok("paused", "pause", "clone/web")
	e.ok("image updated", "set", "image", "clone/web", "main=web:v2")
	e.eventually(0, "cloneset/web waits HeldByPause", "overview")
	e.ok(e.Namespace+" cloneset/web", "-A") // no command at all
	var seen struct {
		Objects []struct{ Name, State, Code string }
		AtRest  map[string]int
	}
	e.encoded(&seen, "overview")
	seen.Objects = slices.DeleteFunc(seen.Objects, func(o struct{ Name, State, Code string }) bool {
		return strings.HasPrefix(o.Name, "cli-") // a SidecarSet of another test
	})
	if len(seen.Objects) != 1 || seen.Objects[0].State != "waits" || seen.Objects[0].Code != "HeldByPause" || seen.AtRest["Deployment"] != 1 {
		t.Errorf("the overview is %+v", seen)
	}
	e.ends(1, "you may list none of", "overview", "--as", "nobody")

	e.ok("resumed", "resume", "clone/web")
	e.done("clone/web")
	e.ok("in place", "tree", "clone/web")
	e.ok("revision 1", "tree", "deployment/other")
	var grown struct {
		Revisions []struct {
			Revision int
			List     []struct{ Pod, How, Ready, Code string }
		}
	}
	e.encoded(&grown, "tree", "clone/web")
	if len(grown.Revisions) != 2 || grown.Revisions[0].Revision != 2 || len(grown.Revisions[0].List) != 2 || len(grown.Revisions[1].List) != 0 {
		t.Fatalf("the tree is %+v", grown)
	}
	if p := grown.Revisions[0].List[0]; p.How != "in place" || p.Ready != "1/1" || p.Code != "UpToDate" {
		t.Errorf("its first Pod is %+v", p)
	}
	e.eventually(0, "cloneset/web\n", "__complete", "tree", "cloneset/")
}

// TestRequests counts what the screens ask of the API server: each kind once, and no Pods where none are shown.
func TestRequests(t *testing.T) {
	e := newEnv(t)
	running(kruiseSet("replicas: 2"), "clone/web")(e)
	for name, tc := range map[string]struct {
		args []string
		want map[string]int
	}{
		"tree":    {[]string{"tree", "clone/web"}, map[string]int{"get clonesets 200": 1, "list pods 200": 1, "list controllerrevisions 200": 1}},
		"explain": {[]string{"explain", "clone/web"}, map[string]int{"get clonesets 200": 1, "list pods 200": 1, "list controllerrevisions 200": 1}},
		"status":  {[]string{"status", "clone/web", "--watch=false"}, map[string]int{"get clonesets 200": 1}},
		"overview": {[]string{"overview"}, map[string]int{
			"list clonesets 200": 1, "list statefulsets 200": 2, "list daemonsets 200": 2, "list uniteddeployments 200": 1, "list broadcastjobs 200": 1,
			"list imagepulljobs 200": 1, "list imagelistpulljobs 200": 1, "list deployments 200": 1, "list jobs 200": 1, "list rollouts 200": 1,
		}},
	} {
		began := time.Now()
		e.ok("", tc.args...)
		var got map[string]int
		e.Eventually("the audit log has it", func() error {
			asked, err := audit.Read(shared.AuditLog(), audit.Query{Agent: "kubectl-kruise", Namespace: e.Namespace, From: began})
			if got = asked.Counts; err == nil && len(got) < len(tc.want) {
				err = errNotYet
			}
			return err
		})
		if !maps.Equal(got, tc.want) {
			t.Errorf("%s: (-want +got)\n%s", name, cmp.Diff(tc.want, got))
		}
	}
}
