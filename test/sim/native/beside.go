package native

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Beside returns a writer before whose patches the controllers may act.
func (n *Controllers) Beside(w apply.Writer) apply.Writer { return beside{Writer: w, native: n} }

// beside has the native controllers act between the writes of a pass.
type beside struct {
	apply.Writer
	native *Controllers
}

// Patch patches an object after the native controllers may have acted.
func (b beside) Patch(ctx context.Context, object plan.Object, subresource string, kind types.PatchType, patch []byte) error {
	for b.native.Chance(60) {
		if b.native.Chance(70) {
			b.native.StepDeployment()
		} else {
			b.native.StepSets()
		}
	}
	return b.Writer.Patch(ctx, object, subresource, kind, patch)
}
