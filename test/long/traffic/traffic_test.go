package traffic

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/traffic"
	"github.com/seed-69ecc383/kruise/test/kit/measure"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// routes are those whose weights are measured.
func routes() map[string]func(*application) route {
	return map[string]func(*application) route{
		"HTTPRoute": func(a *application) route { return a.newGatewayRoute(traffic.HTTPRoute, 80) },
		"GRPCRoute": func(a *application) route { return a.newGatewayRoute(traffic.GRPCRoute, 81) },
		"Ingress":   func(a *application) route { return a.newIngress() },
	}
}

// TestWeightsAreShares leads more and more requests to the new version and then back, while Pods of both versions come and go: at each step
// the share of the new version is within three percent of the weight, and from first to last no request fails.
func TestWeightsAreShares(t *testing.T) {
	for name, newRoute := range routes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			weights := []int32{5, 20, 50, 100, 50, 0}
			if scene.OnRealNodes() {
				weights = []int32{20, 100, 0} // what is different there is how Pods come and go
			}
			a := deploy(t, preStop)
			r := newRoute(a)
			a.reach(r.target())
			client := measure.Start(a.Ctx, r.target())
			defer client.Stop()
			stopChurn := a.churn()
			defer stopChurn()
			for _, weight := range weights {
				a.Must(r.lead(split(weight)))
				a.expect(client, weight)
			}
			a.Must(r.restore())
			a.expect(client, 0)
			stopChurn()
			all := client.Stop()
			t.Logf("%d requests to %d Pods, the slowest took %v", all.Requests, len(all.ByPod), all.Slowest)
			if err := all.Lost(); err != nil {
				t.Error(err)
			}
		})
	}
}

// settle waits for the grace period of a change, and as long as the share of the new version is far from what it is to be: a data plane on
// a busy machine takes longer to follow.
func (a *application) settle(client *measure.Client, share float64) {
	a.Helper()
	a.settleOf(client, "v2", share)
}

// settleOf does the same for any version.
func (a *application) settleOf(client *measure.Client, version string, share float64) {
	a.Helper()
	time.Sleep(grace)
	a.Eventually("the data plane follows", func() error {
		tally, err := client.Next(a.Ctx, 100)
		a.Must(err)
		if measured := tally.Share(version); math.Abs(measured-share) > 0.1 {
			return fmt.Errorf("%.0f %% of the requests reach %s, and %.0f %% are to", 100*measured, version, 100*share)
		}
		return nil
	})
}

// expect measures what a change has brought about, once the data plane has followed it.
func (a *application) expect(client *measure.Client, weight int32) {
	a.Helper()
	a.expectOf(client, "v2", float64(weight)/100)
}

// expectOf does the same for any version, and returns what was measured.
func (a *application) expectOf(client *measure.Client, version string, share float64) measure.Tally {
	a.Helper()
	a.settleOf(client, version, share)
	tally, err := client.Next(a.Ctx, measure.Enough(share, tolerance, measure.Risk))
	a.Must(err)
	a.Logf("%3.0f %%: %s", 100*share, tally.Line(version))
	if err := tally.Within(version, share, tolerance); err != nil {
		a.Error(err)
	}
	return tally
}

// TestMatchesLeadRequests leads the requests with a header or a cookie to the new version, and no others.
func TestMatchesLeadRequests(t *testing.T) {
	match := func(name, value string) []v1beta1.HTTPRouteMatch {
		return []v1beta1.HTTPRouteMatch{{Headers: []v1beta1.HTTPHeaderMatch{{Name: name, Value: value}}}}
	}
	cases := map[string]struct {
		route   func(*application) route
		matches []v1beta1.HTTPRouteMatch
		header  string
	}{
		"a header of an HTTPRoute": {routes()["HTTPRoute"], match("X-Tester", "yes"), "X-Tester: yes"},
		"a header of a GRPCRoute":  {routes()["GRPCRoute"], match("X-Tester", "yes"), "X-Tester: yes"},
		"a header of an Ingress":   {routes()["Ingress"], match("X-Tester", "yes"), "X-Tester: yes"},
		"a cookie of an Ingress":   {routes()["Ingress"], match("canary-by-cookie", "tester"), "Cookie: tester=always"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := deploy(t, preStop)
			r := tc.route(a)
			a.reach(r.target())
			plain := r.target()
			plain.Rate = slowRate
			marked := plain
			marked.Header = header(tc.header)
			testers, others := measure.Start(a.Ctx, marked), measure.Start(a.Ctx, plain)
			defer testers.Stop()
			defer others.Stop()
			a.expectAll(testers, "v1")
			s := split(0)
			s.Matches = tc.matches
			a.Must(r.lead(s))
			a.settle(testers, 1)
			a.expectAll(testers, "v2")
			a.expectAll(others, "v1")
			a.Must(r.restore())
			a.settle(testers, 0)
			a.expectAll(testers, "v1")
			for _, client := range []*measure.Client{testers, others} {
				if err := client.Stop().Lost(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// expectAll checks that one version answers all.
func (a *application) expectAll(client *measure.Client, revision string) {
	a.Helper()
	tally, err := client.Next(a.Ctx, 200)
	a.Must(err)
	if tally.ByRevision[revision] != tally.Requests {
		a.Errorf("of %d requests, which are all for %s, were answered %v: %v", tally.Requests, revision, tally.ByRevision, tally.Lost())
	}
}
