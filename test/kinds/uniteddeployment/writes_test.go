package uniteddeployment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// alone is an environment of a test that runs beside no other, because it counts all that the manager writes, or ends it.
func alone(t *testing.T) *env {
	t.Helper()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	return e
}

// asked is what the manager has asked of the API server since a moment, about what is in the namespace: other namespaces may still be on
// their way out.
func (e *env) asked(since time.Time) audit.Requests {
	e.Helper()
	requests, err := audit.Read(shared.AuditLog(), audit.Query{Agent: "kruise-manager", Namespace: e.Namespace, From: since})
	e.Must(err)
	return requests
}

// TestTheExample: 1, 3 and 2 Pods, each on a node of the zone of its subset.
func TestTheExample(t *testing.T) {
	e := alone(t)
	for node, zone := range map[string]string{"sim-2": "zone-a", "sim-3": "zone-b", "sim-4": "zone-c"} {
		e.EditNode(node, func(n *corev1.Node) { n.Labels["node"] = zone })
	}
	e.Make(e.Examples("uniteddeployment.yaml")["uniteddeployment.yaml"])
	e.Eventually("6 Pods are ready", func() error {
		if got := e.ready(all); got != "subset-a=1 subset-b=3 subset-c=2" {
			return fmt.Errorf("%s are", got)
		}
		return nil
	})
	nodes := map[string]string{"subset-a": "sim-2", "subset-b": "sim-3", "subset-c": "sim-4"}
	for _, p := range e.Pods() {
		if want := nodes[p.Labels["apps.kruise.io/subset-name"]]; p.Spec.NodeName != want {
			t.Errorf("%s runs on %s instead of %s", p.Name, p.Spec.NodeName, want)
		}
	}
}

// TestWrites: a UnitedDeployment writes its workloads, a revision and its status, and nothing of its Pods; at rest and after a restart of
// the manager nothing.
func TestWrites(t *testing.T) {
	const pods, subsets = 60, 3
	e := alone(t)
	began := time.Now()
	e.create(pods, template(deployment, "nginx:1.27"), "topology: {subsets: [{name: a}, {name: b}, {name: c}]}")
	e.settles("a=20 b=20 c=20")
	requests, took := e.asked(began), time.Since(began)
	count := func(verb, resource string) (n int) {
		for key, times := range requests.Counts {
			if strings.HasPrefix(key, verb+" "+resource+" ") {
				n += times
			}
		}
		return n
	}
	if requests.PodWrites > 0 || count("create", "deployments") != subsets || count("patch", "deployments") > 0 {
		t.Errorf("the manager asked %v", requests.Counts)
	}
	// A burst of 20 is free, and then one a second.
	if most := 20 + int(took.Seconds()) + 1; count("patch", "uniteddeployments/status") > most {
		t.Errorf("the manager wrote the status of %d Pods more than %d times: %v", pods, most, requests.Counts)
	}
	e.isAtRest("all Pods are ready")
	e.CrashManager()
	e.isAtRest("the manager was started anew")
}

// isAtRest checks that the manager writes nothing of UnitedDeployments and their workloads. Its own certificates, webhooks and events of its
// lease do not count.
func (e *env) isAtRest(when string) {
	e.Helper()
	written := func(what string) func() error {
		return func() error {
			rest := time.Now()
			time.Sleep(2 * time.Second)
			if requests := e.asked(rest); requests.Writes() > 0 {
				return fmt.Errorf("after %s the manager %s %v", when, what, requests.Counts)
			}
			return nil
		}
	}
	e.Eventually("what has just happened is written", written("still writes"))
	e.Must(written("writes")())
}

// TestEachKindIsAtRest: defaults and webhooks of no kind are taken for changes by somebody else.
func TestEachKindIsAtRest(t *testing.T) {
	for _, kind := range []string{deployment, cloneSet, native, advanced} {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			e.create(2, template(kind, "nginx:1.27"), "topology: {subsets: [{name: a}, {name: b}]}")
			e.settles("a=1 b=1")
			e.Eventually("it is updated", func() error {
				if c := e.condition(v1beta1.UnitedDeploymentUpdated); c != "True UnitedDeploymentRevisionUpdated" {
					return fmt.Errorf("condition %q", c)
				}
				return nil
			})
			e.isAtRest("all Pods were ready")
		})
	}
}
