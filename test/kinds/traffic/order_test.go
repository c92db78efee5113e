package traffic

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/measure"
)

// TestTheOrderOfWritesDecidesWhetherRequestsAreLost takes each step of a release in the order that loses nothing, and in one that does: the
// second is the proof that the first is needed, and would fail with a data plane that has no such need.
func TestTheOrderOfWritesDecidesWhetherRequestsAreLost(t *testing.T) {
	cases := map[string]struct {
		sleep int64
		do    func(*testing.T, *application, route)
		// loses are the kinds of routes with which requests are lost.
		loses []string
	}{
		"Pods go that serve on after their deletion": {sleep: preStop, do: deletePods},
		"Pods go that end when they are deleted":     {sleep: 0, do: deletePods, loses: []string{"HTTPRoute", "Ingress"}},
		"the route leads to a Service before that has Pods": {sleep: preStop, do: func(_ *testing.T, a *application, r route) {
			a.scale("v2", 0)
			a.Must(r.lead(split(50)))
			time.Sleep(grace)
		}, loses: []string{"HTTPRoute"}}, // what an Ingress leads to nobody goes to the old version
		"the Service of the new version goes after the route": {sleep: preStop, do: func(_ *testing.T, a *application, r route) {
			a.Must(r.lead(split(50)))
			time.Sleep(grace)
			a.Must(r.restore())
			time.Sleep(grace)
			a.removeService(canary)
			time.Sleep(grace)
		}},
		"the Service of the new version goes before the route": {sleep: preStop, do: func(_ *testing.T, a *application, r route) {
			a.Must(r.lead(split(50)))
			time.Sleep(grace)
			a.removeService(canary)
			time.Sleep(grace)
			a.Must(r.restore())
			time.Sleep(grace)
		}, loses: []string{"HTTPRoute"}}, // what an Ingress leads to nobody goes to the old version
	}
	for name, tc := range cases {
		for kind, newRoute := range routes() {
			if kind == "GRPCRoute" {
				continue // the data plane makes the same of it as of an HTTPRoute
			}
			t.Run(kind+": "+name, func(t *testing.T) {
				t.Parallel()
				a := deploy(t, tc.sleep)
				r := newRoute(a)
				a.reach(r.target())
				client := measure.Start(a.Ctx, r.target())
				defer client.Stop()
				tc.do(t, a, r)
				lost := client.Stop().Lost()
				t.Logf("lost: %v", lost)
				if loses := slices.Contains(tc.loses, kind); (lost != nil) != loses {
					t.Errorf("requests were lost: %v, want that: %v", lost, loses)
				}
			})
		}
	}
}

// deletePods deletes Pods of the old version, to which all requests go, one after the other.
func deletePods(_ *testing.T, a *application, _ route) {
	for _, p := range a.Pods() {
		if p.Labels["version"] != "v1" {
			continue
		}

		a.Must(client.IgnoreNotFound(a.Client.Delete(a.Ctx, &p)))
		time.Sleep(time.Second)
	}
	time.Sleep(grace)
}

// scale sets the number of Pods of a version, and waits until there are as many.
func (a *application) scale(version string, replicas int32) {
	a.Helper()
	d := a.deployment(version, 0)
	a.Must(a.Client.Patch(a.Ctx, d, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
	a.Eventually("there are as many Pods as wanted", func() error {
		var pods corev1.PodList
		a.Must(a.Client.List(a.Ctx, &pods, client.InNamespace(a.Namespace), client.MatchingLabels{"version": version}))
		if len(pods.Items) != int(replicas) {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		return nil
	})
}

func (a *application) removeService(name string) {
	a.Helper()
	a.Must(a.Client.Delete(a.Ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name}}))
}
