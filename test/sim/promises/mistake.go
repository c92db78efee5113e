package promises

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// Mistake is a bug put into what surrounds a controller's planner on purpose.
type Mistake struct {
	// IsDeaf says which events the controller does not listen to.
	IsDeaf func(simulate.Event) bool
	// TrustsCache has it look at a cache that is older than its own writes.
	TrustsCache bool
	// TrustsPast has it take the cache with which it starts for as new as what the one before it has done.
	TrustsPast bool
	// GlancesAtCache has it read its cache where it reads around it to be sure.
	GlancesAtCache bool
	// Unconditional has it write whatever has become of the object meanwhile.
	Unconditional bool
}

func (m Mistake) seen(honest apply.Seen) apply.Seen {
	if !m.TrustsCache {
		return honest
	}
	return func(context.Context, schema.GroupVersionKind) (string, error) { return "999999999", nil }
}

func (m Mistake) glance(honest, cache client.Reader) client.Reader {
	if m.GlancesAtCache {
		return cache
	}
	return honest
}

func (m Mistake) writer(honest apply.Writer) apply.Writer {
	if !m.Unconditional {
		return honest
	}
	return unconditional{honest}
}

// deaf hears only some of what happens.
type deaf struct {
	simulate.Process
	to func(simulate.Event) bool
}

func (d deaf) Hear(e simulate.Event, queue *simulate.Queue) {
	if !d.to(e) {
		d.Process.Hear(e, queue)
	}
}

// unconditional leaves the preconditions out of writes.
type unconditional struct{ apply.Writer }

func (u unconditional) Patch(ctx context.Context, object plan.Object, subresource string, kind types.PatchType, patch []byte) error {
	text := string(patch)
	if _, rest, ok := strings.Cut(text, `"resourceVersion":"`); ok {
		version, _, _ := strings.Cut(rest, `"`)
		text = strings.Replace(text, `"resourceVersion":"`+version+`",`, "", 1)
	}
	return u.Writer.Patch(ctx, object, subresource, kind, []byte(text))
}

func (u unconditional) Delete(ctx context.Context, object plan.Object, _ metav1.Preconditions) (string, error) {
	return u.Writer.Delete(ctx, object, metav1.Preconditions{})
}

// Misplan returns a planner that does wrong to each action of an honest one.
func Misplan[V any](honest func(V) plan.Plan, wrong func(*plan.Action)) func(V) plan.Plan {
	return func(v V) plan.Plan {
		p := honest(v)
		for _, stage := range p.Stages {
			for _, chain := range stage {
				for i := range chain {
					wrong(&chain[i])
				}
			}
		}
		return p
	}
}
