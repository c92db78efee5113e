package trace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// ids are the IDs of a trace and of its root span.
type ids struct {
	trace trace.TraceID
	root  trace.SpanID
}

// idsOf returns the IDs for a release of an owner: the first bytes of a hash of its UID and of what names the release.
//
// Wire: managers of several versions go on with one trace.
func idsOf(owner types.UID, release string) (out ids) {
	sum := sha256.Sum256([]byte(string(owner) + "/" + release))
	copy(out.trace[:], sum[:16])
	copy(out.root[:], sum[16:24])
	return out
}

// parent returns a context whose spans are children of the root, which is sent later than they are.
func (i ids) parent() context.Context {
	return trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: i.trace, SpanID: i.root, TraceFlags: trace.FlagsSampled,
	}))
}

// rootKey is where a context holds the IDs of a root span that is about to be made.
type rootKey struct{}

// asRoot returns a context in which the root span itself is made.
func (i ids) asRoot() context.Context { return context.WithValue(context.Background(), rootKey{}, i) }

// generator makes the IDs of spans.
type generator struct{}

// NewIDs returns the IDs of the root span that a context asks for.
func (g generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if i, ok := ctx.Value(rootKey{}).(ids); ok {
		return i.trace, i.root
	}
	var id trace.TraceID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())   //nolint:gosec // no secret
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64()|1) //nolint:gosec // as above; it must not be zero
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID returns a random ID.
func (generator) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	binary.NativeEndian.PutUint64(id[:], rand.Uint64()|1) //nolint:gosec // no secret; it must not be zero
	return id
}
