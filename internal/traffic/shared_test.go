package traffic

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
)

func TestASharedTrafficRouting(t *testing.T) {
	own, other := rules.ProgressingFinalizer("web"), rules.ProgressingFinalizer("other")
	for name, tc := range map[string]struct {
		finalizers []string
		phase      v1alpha1.TrafficRoutingPhase
		want       release.Traffic
		join       bool
	}{
		"nobody uses it":          {nil, v1alpha1.TrafficRoutingPhaseHealthy, release.Traffic{}, true},
		"somebody else uses it":   {[]string{other}, v1alpha1.TrafficRoutingPhaseProgressing, release.Traffic{}, true},
		"this release uses it":    {[]string{own, other}, v1alpha1.TrafficRoutingPhaseProgressing, release.Traffic{Joined: true}, false},
		"the last one has left":   {nil, v1alpha1.TrafficRoutingPhaseProgressing, release.Traffic{Leaving: true}, true},
		"its routes come back":    {nil, v1alpha1.TrafficRoutingPhaseFinalizing, release.Traffic{Leaving: true, Problem: "TrafficRouting gray restores its routes first"}, false},
		"it has still to be seen": {nil, "", release.Traffic{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, objects)
			r := w.rollout.DeepCopy()
			r.Spec.Strategy.Canary.TrafficRoutings, r.Spec.Strategy.Canary.TrafficRoutingRef = nil, "gray"
			if missing, err := ObserveShared(context.Background(), observe.Reader{Reader: w.client}, r); err != nil || missing.Seen().Missing != "TrafficRouting gray" {
				t.Errorf("there is none, and it is seen: %v", err)
			}
			stored := w.create(&v1alpha1.TrafficRouting{ObjectMeta: metav1.ObjectMeta{Name: "gray", Namespace: "ns", Finalizers: tc.finalizers}}).(*v1alpha1.TrafficRouting)
			alter(w, stored, func(t *v1alpha1.TrafficRouting) { t.Status.Phase = tc.phase })
			shared, err := ObserveShared(context.Background(), observe.Reader{Reader: w.client}, r)
			if err != nil {
				t.Fatal(err)
			}
			w.expect("seen", tc.want, shared.Seen())
			if joins := len(shared.Plan(verb(release.Join))) == 1; joins != tc.join {
				t.Errorf("it joins: %v", joins)
			}
			leaves := shared.Plan(verb(release.Leave))
			if len(leaves) == 1 != tc.want.Joined || len(leaves) == 1 && strings.Join(leaves[0].After.GetFinalizers(), " ") != other {
				t.Errorf("it leaves by %+v", leaves)
			}
			if others := shared.Plan(verb(release.RestoreRoutes)); others != nil {
				t.Errorf("it restores routes by %+v", others)
			}
		})
	}
}

// TestFinalizersOfLongNames fit, and are told apart.
func TestFinalizersOfLongNames(t *testing.T) {
	long := strings.Repeat("a", 70)
	a, b := rules.ProgressingFinalizer(long+"1"), rules.ProgressingFinalizer(long+"2")
	if a == b || len(a)-len(keys.TrafficRoutingProgressing) > 63 || rules.ProgressingFinalizer("web") != keys.TrafficRoutingProgressing+"web" {
		t.Errorf("%s, %s", a, b)
	}
}

// TestTheFieldWinsOverTheAnnotation: rule C5.
func TestTheFieldWinsOverTheAnnotation(t *testing.T) {
	r := rollout()
	r.Annotations = map[string]string{keys.TrafficRoutingName: "annotated"}
	if got := rules.SharedName(r); got != "annotated" {
		t.Error(got)
	}
	r.Spec.Strategy.Canary.TrafficRoutingRef = "field"
	if got := rules.SharedName(r); got != "field" {
		t.Error(got)
	}
}
