package defaults

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestDefaultsOfTheOriginalForDaemonSets fills in what a user applied to a cluster of the original and compares with what was stored there.
func TestDefaultsOfTheOriginalForDaemonSets(t *testing.T) {
	data, err := os.ReadFile("../convert/testdata/daemonsets.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []v1beta1.DaemonSet
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	want := recorded[0]
	var got v1beta1.DaemonSet
	decode(t, []byte(want.Annotations[corev1.LastAppliedConfigAnnotation]), &got)
	DaemonSet(&got)
	same(t, want.Spec, got.Spec)
}

func TestDaemonSetDefaults(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nothing said":                   {"{}", "{type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxUnavailable: 1, maxSurge: 0}}"},
		"surge alone":                    {"{rollingUpdate: {maxSurge: 2}}", "{type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxSurge: 2}}"},
		"a limit alone":                  {"{rollingUpdate: {maxUnavailable: 30%}}", "{type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxUnavailable: 30%}}"},
		"no defaults beyond OnDelete":    {"{type: OnDelete}", "{type: OnDelete}"},
		"in place keeps its type":        {"{rollingUpdate: {rollingUpdateType: InPlaceIfPossible}}", "{type: RollingUpdate, rollingUpdate: {rollingUpdateType: InPlaceIfPossible, maxUnavailable: 1, maxSurge: 0}}"},
		"partition and paused stay open": {"{rollingUpdate: {partition: 3}}", "{type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, partition: 3, maxUnavailable: 1, maxSurge: 0}}"},
	} {
		t.Run(name, func(t *testing.T) {
			var set, want v1beta1.DaemonSet
			for _, one := range []struct {
				from string
				into any
			}{
				{tc.in, &set.Spec.UpdateStrategy}, {tc.want, &want.Spec.UpdateStrategy},
			} {
				if err := yaml.Unmarshal([]byte(one.from), one.into); err != nil {
					t.Fatal(err)
				}
			}
			limit, burst := int32(10), intstr.FromInt32(250)
			want.Spec.RevisionHistoryLimit, want.Spec.BurstReplicas = &limit, &burst
			DaemonSet(&set)
			if diff := cmp.Diff(want, set); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
