package inject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// TestOnlyHotSidecarsHaveTwins: a container of the Pod that is called as a twin would be counts, unless there is such a twin.
func TestOnlyHotSidecarsHaveTwins(t *testing.T) {
	for name, tc := range map[string]struct{ upgrade, want string }{
		"cold": {"", `{limits: {cpu: 700m}}`},
		"hot":  {`upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}, `, `{limits: {cpu: 400m}}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := parse[corev1.Pod](t, `{spec: {containers: [{name: log-1, resources: {limits: {cpu: 300m}}}, {name: app, resources: {limits: {cpu: 400m}}}]}}`)
			set := `{containers: [{name: log, ` + tc.upgrade + `podInjectPolicy: AfterAppContainer}], initContainers: [{name: asks, restartPolicy: Always,
				resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu}}}}]}`
			if _, err := Into(p, []*Sidecars{compiled(t, "set", set)}, Options{Now: now}); err != nil {
				t.Fatal(err)
			}
			if got, want := p.Spec.InitContainers[0].Resources, *parse[corev1.ResourceRequirements](t, tc.want); !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// TestEveryCutIsToldOf: the user hears of each request that was above its limit.
func TestEveryCutIsToldOf(t *testing.T) {
	p := parse[corev1.Pod](t, `{spec: {containers: [{name: app, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1, memory: 1Gi}}}]}}`)
	set := `{containers: [{name: log, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: 100m, memory: 100Mi}, requests: {cpu: cpu, memory: memory}}}}]}`
	notices, err := Into(p, []*Sidecars{compiled(t, "set", set)}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	want := []Notice{
		{SidecarSet: "set", Text: "SidecarSet set: container log: its computed request of 1 cpu is above the limit, and becomes 100m"},
		{SidecarSet: "set", Text: "SidecarSet set: container log: its computed request of 1Gi memory is above the limit, and becomes 100Mi"},
	}
	if diff := cmp.Diff(want, notices); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
