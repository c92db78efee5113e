package native

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Beside returns a writer before whose patches the controllers may act.
func (n *Controllers) Beside(w apply.Writer) apply.Writer {
	return beside{Writer: w, act: func() {
		for n.Chance(60) {
			if n.Chance(70) {
				n.StepDeployment()
			} else {
				n.StepSets()
			}
		}
	}}
}

// Beside returns a writer before whose patches and deletions the controller may act.
func (n *Daemons) Beside(w apply.Writer) apply.Writer {
	act := func() {
		for n.Chance(60) {
			n.Step()
		}
	}
	return besideDeletions{beside{Writer: w, act: act}}
}

// beside has the native controllers act between the writes of a pass.
type beside struct {
	apply.Writer
	act func()
}

// Patch patches an object after the native controllers may have acted.
func (b beside) Patch(ctx context.Context, object plan.Object, subresource string, kind types.PatchType, patch []byte) error {
	b.act()
	return b.Writer.Patch(ctx, object, subresource, kind, patch)
}

type besideDeletions struct{ beside }

// Delete deletes an object after the native controller may have acted.
func (b besideDeletions) Delete(ctx context.Context, object plan.Object, only metav1.Preconditions) (string, error) {
	b.act()
	return b.Writer.Delete(ctx, object, only)
}
