// Package cli runs the built kubectl-kruise against a real control plane with simulated nodes, with a manager of each kind: each command at
// least once, with the exit codes that pipelines go by.
package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

var shared = &scene.Site{
	Name: "cli", Options: cluster.Options{Nodes: 3}, Args: []string{"--enable-leader-election=false"},
	Rollouts: []string{"--leader-elect=false"},
}

func TestMain(m *testing.M) { scene.Main(m, shared) }

// cobraComplete is the command by which shells ask for completions.
const cobraComplete = "__complete"

// env is a namespace of the shared cluster, for one test.
type env struct {
	*scene.Env
	// binary is the program, cache the folder in which it keeps which kinds the API server has.
	binary, cache string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return alone(t)
}

// alone is newEnv for a test that runs alone.
func alone(t *testing.T) *env {
	t.Helper()
	e := &env{Env: shared.Enter(t), cache: t.TempDir()}
	var err error
	e.binary, err = cluster.Binary("kubectl-kruise")
	e.Must(err)
	return e
}

// result is what a command has left behind.
type result struct {
	out, err string
	code     int
}

// says reports whether the command has written a text, in however many lines.
func (r result) says(text string) bool {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return strings.Contains(r.out+r.err, text) || strings.Contains(flat(r.out+" "+r.err), flat(text))
}

func (r result) String() string { return fmt.Sprintf("exit code %d\n%s%s", r.code, r.out, r.err) }

// run runs a command in the test's namespace.
func (e *env) run(args ...string) result {
	e.Helper()
	// Before the command: what follows is completed.
	cmd := exec.CommandContext(e.Ctx, e.binary, args...)
	at := 1
	if args[0] == cobraComplete {
		at = 2
	}
	cmd.Args = slices.Insert(cmd.Args, at, "--kubeconfig", e.Kubeconfig, "-n", e.Namespace, "--cache-dir", e.cache)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var code *exec.ExitError
	if err != nil && !errors.As(err, &code) {
		e.Fatal(err)
	}
	return result{out.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// ok runs a command that succeeds and says something.
func (e *env) ok(says string, args ...string) result {
	e.Helper()
	return e.ends(0, says, args...)
}

// ends runs a command that ends with a code and says something.
func (e *env) ends(code int, says string, args ...string) result {
	e.Helper()
	r := e.run(args...)
	if r.code != code || !r.says(says) {
		e.Fatalf("kubectl kruise %s: %s\nwant exit code %d and %q", strings.Join(args, " "), r, code, says)
	}
	return r
}

// eventually runs a command until it ends with a code and says something.
func (e *env) eventually(code int, says string, args ...string) {
	e.Helper()
	e.Eventually("kubectl kruise "+strings.Join(args, " ")+" says "+says, func() error {
		if r := e.run(args...); r.code != code || !r.says(says) {
			return errors.New(r.String())
		}
		return nil
	})
}

// cause waits until the first line of an explanation names a reason.
func (e *env) cause(code string, args ...string) {
	e.Helper()
	e.Eventually("the cause is "+code, func() error {
		r := e.run(append([]string{"explain"}, args...)...)
		first, _, _ := strings.Cut(r.out, "\n")
		if r.code != 0 || !strings.Contains(first, ": "+code) {
			return errors.New(r.String())
		}
		return nil
	})
}

// done waits by the command itself until a rollout is over.
func (e *env) done(object string) {
	e.Helper()
	e.ok("", "status", object, "--timeout", "2m")
}

// encoded runs a command that writes JSON, into a value.
func (e *env) encoded(into any, args ...string) {
	e.Helper()
	r := e.run(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(r.out), into); err != nil {
		e.Fatalf("%v: %s", err, r)
	}
}

// replicated returns the manifest of a workload of some kind with the label app=web.
func replicated(apiVersion, kind, spec string) string {
	return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: web}
spec:
  %s
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:v1"}]}
`, apiVersion, kind, spec)
}

// images returns how many Pods run which image.
func (e *env) images() map[string]int {
	out := map[string]int{}
	for _, p := range e.Pods() {
		if p.DeletionTimestamp == nil {
			out[p.Spec.Containers[0].Image]++
		}
	}
	return out
}

func (e *env) allRun(image string, n int) {
	e.Helper()
	if got := e.images(); len(got) != 1 || got[image] != n {
		e.Fatalf("the Pods run %v, want %d of %s", got, n, image)
	}
}

// names returns the names of the Pods that are there to stay.
func (e *env) names() []string {
	var out []string
	for _, p := range e.Pods() {
		if p.DeletionTimestamp == nil {
			out = append(out, p.Name)
		}
	}
	return out
}

// uids returns the UIDs of the Pods that are there to stay.
func (e *env) uids() []string {
	var out []string
	for _, p := range e.Pods() {
		if p.DeletionTimestamp == nil {
			out = append(out, string(p.UID))
		}
	}
	return out
}

// inOrder returns the Pods that were updated in place, in the order in which that began.
func (e *env) inOrder() []string {
	type at struct{ name, time string }
	var all []at
	for _, p := range e.Pods() {
		var record struct {
			UpdateTimestamp string `json:"updateTimestamp"`
		}
		text, updated := p.Annotations[keys.InPlaceUpdateState]
		if !updated {
			continue
		}
		e.Must(json.Unmarshal([]byte(text), &record))
		all = append(all, at{p.Name, record.UpdateTimestamp})
	}
	slices.SortFunc(all, func(a, b at) int { return strings.Compare(a.time, b.time) })
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = one.name
		if i > 0 && one.time == all[i-1].time {
			e.Fatalf("%s and %s were updated within a second: their order is not known", one.name, all[i-1].name)
		}
	}
	return out
}
