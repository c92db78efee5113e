package traffic

import (
	"errors"
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
	type change func(*application, route, *measure.Client)
	cases := map[string]struct {
		sleep int64
		do    change
		// loses are the kinds of routes with which requests are lost.
		loses []string
	}{
		"Pods go that serve on after their deletion": {sleep: preStop, do: deletePods},
		"Pods go that end when they are deleted":     {sleep: 0, do: deletePods, loses: []string{"HTTPRoute", "Ingress"}},
		"the route leads to a Service before that has Pods": {sleep: preStop, do: func(a *application, r route, _ *measure.Client) {
			a.scale("v2", 0)
			a.gone("v2") // while they end, an Ingress loses requests, too
			a.Must(r.lead(split(50)))
		}, loses: []string{"HTTPRoute"}}, // what an Ingress leads to nobody goes to the old version
		"the old Pods go after the Service leads to all": {sleep: preStop, do: func(a *application, r route, c *measure.Client) {
			a.Must(r.lead(split(50)))
			a.settle(c, 0.5)
			a.selectAll(stable)
			a.settle(c, 0.75) // the half that goes to this Service is answered by both versions
			a.scale("v1", 0)
			a.settle(c, 1)
			a.Must(r.restore())
			a.settle(c, 1)
		}},
		"the old Pods go while the Service leads to them alone": {sleep: preStop, do: func(a *application, r route, c *measure.Client) {
			a.Must(r.lead(split(50)))
			a.settle(c, 0.5)
			a.scale("v1", 0)
		}, loses: []string{"HTTPRoute", "Ingress"}},
		"the Service of the new version goes after the route": {sleep: preStop, do: func(a *application, r route, c *measure.Client) {
			a.Must(r.lead(split(50)))
			a.settle(c, 0.5)
			a.Must(r.restore())
			a.settle(c, 0)
			a.removeService(canary)
		}},
		"the Service of the new version goes before the route": {sleep: preStop, do: func(a *application, r route, c *measure.Client) {
			a.Must(r.lead(split(50)))
			a.settle(c, 0.5)
			a.removeService(canary)
		}, loses: []string{"HTTPRoute"}},
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
				target := r.target()
				target.Rate = slowRate
				client := measure.Start(a.Ctx, target)
				defer client.Stop()
				tc.do(a, r, client)
				if slices.Contains(tc.loses, kind) {
					a.Eventually("requests are lost", func() error {
						if client.Since(time.Time{}).Lost() == nil {
							return errors.New("none is")
						}
						return nil
					})
					return
				}
				time.Sleep(2 * grace)
				if err := client.Stop().Lost(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// deletePods deletes Pods of the old version, to which all requests go, one after the other.
func deletePods(a *application, _ route, _ *measure.Client) {
	for _, p := range a.Pods() {
		if p.Labels["version"] != "v1" {
			continue
		}

		a.Must(client.IgnoreNotFound(a.Client.Delete(a.Ctx, &p)))
		time.Sleep(time.Second)
	}
}

// scale sets the number of Pods of a version, and waits until no more than that are to stay.
func (a *application) scale(version string, replicas int32) {
	a.Helper()
	d := a.deployment(version, 0)
	a.Must(a.Client.Patch(a.Ctx, d, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
	a.Eventually("there are as many Pods as wanted", func() error {
		var pods corev1.PodList
		a.Must(a.Client.List(a.Ctx, &pods, client.InNamespace(a.Namespace), client.MatchingLabels{"version": version}))
		stay := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if len(stay) != int(replicas) {
			return fmt.Errorf("there are %d", len(stay))
		}
		return nil
	})
}

// gone waits until no Pod of a version is left.
func (a *application) gone(version string) {
	a.Helper()
	a.Eventually("the Pods have ended", func() error {
		var pods corev1.PodList
		a.Must(a.Client.List(a.Ctx, &pods, client.InNamespace(a.Namespace), client.MatchingLabels{"version": version}))
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d are there", len(pods.Items))
		}
		return nil
	})
}

// selectAll has a Service select the Pods of both versions, as one does that a release lets go.
func (a *application) selectAll(name string) {
	a.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"selector":{"version":null}}}`))
	a.Must(a.Client.Patch(a.Ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name}}, patch))
}

func (a *application) removeService(name string) {
	a.Helper()
	a.Must(a.Client.Delete(a.Ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name}}))
}
