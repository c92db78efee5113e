package deployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/releases"
)

// TestWhatIsOrphaned where no Rollout and no BatchRelease is there.
func TestWhatIsOrphaned(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	nothing := fake.NewClientBuilder().WithScheme(scheme).Build()
	for name, tc := range map[string]struct {
		change func(*appsv1.Deployment)
		want   bool
	}{
		"it waits for a Rollout":                   {func(*appsv1.Deployment) {}, true},
		"somebody has removed the mark":            {func(d *appsv1.Deployment) { delete(d.Annotations, keys.InProgressing) }, true},
		"no BatchRelease has claimed it yet":       {func(d *appsv1.Deployment) { delete(d.Annotations, keys.ControlInfo) }, true},
		"its release was left to a person":         {func(d *appsv1.Deployment) { d.Annotations = nil }, false},
		"its user has paused it, without releases": {func(d *appsv1.Deployment) { d.Labels, d.Annotations = nil, nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := released()
			tc.change(d)
			got, err := releases.IsOrphaned(t.Context(), loop.Reads{Reader: observe.Reader{Reader: nothing}, Live: nothing}, d, ofDeployment())
			if err != nil || got != tc.want {
				t.Errorf("orphaned: %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}
