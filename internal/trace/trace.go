// Package trace sends what passes come to as OpenTelemetry traces: one trace for each rollout of a revision of a workload, and for each
// release of a Rollout.
//
// The trace ID and the ID of the root span follow from the UID of the owner and the release, so that several managers, and one that
// restarts, go on with the same trace. A span is sent when what it shows is over:
//
//	rollout                      the root: from the first pass until all is updated, or another release takes over
//	├── pass                     a pass that wrote something, with the numbers of the status after it
//	│   ├── update Pod           one write: what, why, and what became of it
//	│   └── create Pod
//	└── wait WaitLifecycleHook   for how long the plan or the status told of one reason
//
// Who has no collector has no Tracer: nothing of this runs then.
package trace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Options say where traces go.
type Options struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP.
	Endpoint string
	// Sampling is the share of traces that is sent, 0 to 1. All managers send the same ones, as a trace ID decides.
	Sampling float64
	// Headers are those of requests to it, joined by commas as KEY=VALUE, with values as in a URL.
	Headers string
	// Service and Instance name the process.
	Service, Instance string
	Log               logr.Logger
}

const (
	// maxQueue is how many spans wait for the collector at most: those of a burst of a thousand Pods. Further ones are lost.
	maxQueue = 8192
	// quiet is how long nothing more is said of a collector that does not answer.
	quiet = time.Minute
)

// Tracer sends traces.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer

	mu     sync.Mutex
	owners map[types.UID]*release
}

// New returns a tracer that sends to a collector. It does not wait for the collector: spans are lost while there is none.
func New(ctx context.Context, o Options) (*Tracer, error) {
	to, err := newClient(o.Endpoint, o.Headers)
	if err != nil {
		return nil, err
	}
	exporter := otlptrace.NewUnstarted(to)
	if err := exporter.Start(ctx); err != nil {
		return nil, fmt.Errorf("making the exporter of traces: %w", err)
	}
	from, err := resource.New(ctx, resource.WithFromEnv(), resource.WithAttributes(
		semconv.ServiceName(o.Service), semconv.ServiceInstanceID(o.Instance)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("describing the source of traces: %w", err), exporter.Shutdown(ctx))
	}
	otel.SetErrorHandler(saysSeldom(o.Log))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithMaxQueueSize(maxQueue)), sdktrace.WithResource(from),
		sdktrace.WithIDGenerator(generator{}), sdktrace.WithSampler(sdktrace.TraceIDRatioBased(o.Sampling)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("kruise"), owners: map[types.UID]*release{}}, nil
}

// saysSeldom logs what goes wrong with the collector, and nothing of it for a while after that.
func saysSeldom(log logr.Logger) otel.ErrorHandler {
	var mu sync.Mutex
	var last time.Time
	return otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) > quiet {
			last = now
			log.Error(err, "Traces are lost")
		}
	})
}

// Shutdown sends what has not been sent yet: also the waits that are under way, of which the next manager begins new ones.
func (t *Tracer) Shutdown(ctx context.Context, now time.Time) error {
	t.mu.Lock()
	for _, r := range t.owners {
		t.endWait(r, now)
	}
	t.mu.Unlock()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last traces: %w", err)
	}
	return nil
}

// Forget drops what is remembered of an owner that is gone.
func (t *Tracer) Forget(owner types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.owners, owner)
}

// release is what is remembered of the last release of an owner.
type release struct {
	ids
	name  string
	began time.Time
	// over means that the root span was sent, or that the release was over at the first look.
	over bool
	// attributes name the owner and the release.
	attributes []attribute.KeyValue
	wait       wait
}

// wait is the reason that an owner waits for; none with an empty code.
type wait struct {
	code  reason.Code
	why   string
	since time.Time
}

// Note takes in what a pass came to.
func (t *Tracer) Note(p loop.Pass) {
	at, err := progress.Of(p.Owner)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.current(p, at)
	if r == nil || r.over {
		return
	}
	if len(p.Outcome.Results) > 0 {
		t.pass(r, p, at)
	}
	if now := waitOf(p, at); now.code != r.wait.code {
		t.endWait(r, p.Ended)
		now.since = p.Ended
		r.wait = now
	}
	if isOver(at) {
		t.end(r, p.Ended, at)
	}
}

// current returns the release that a pass is of; nil if it is of none. One that was over when this process first looked is not traced:
// another process has done so.
func (t *Tracer) current(p loop.Pass, at progress.Progress) *release {
	r := t.owners[p.Owner.GetUID()]
	if p.Release.Name == "" || r != nil && r.name == p.Release.Name {
		return r // a status may forget of which release it tells the end
	}
	began := p.Release.Began
	if began.IsZero() || began.After(p.Began) {
		began = p.Began
	}
	next := &release{ids: idsOf(p.Owner.GetUID(), p.Release.Name), name: p.Release.Name, began: began, attributes: attributesOf(p)}
	switch {
	case r == nil:
		next.over = isOver(at) || at.Total > 0 && at.Updated >= at.Total // a Pod that is not in service is no rollout
	case !r.over:
		t.supersede(r, p)
	}
	t.owners[p.Owner.GetUID()] = next
	return next
}

// isOver reports whether a release has come to its end: a partition that keeps Pods back is none.
func isOver(at progress.Progress) bool {
	return at.Phase == progress.Done && at.Code == reason.Nothing || at.Phase == progress.Failed && at.Reason == progress.GivenUp
}

// waitOf returns what an owner waits for after a pass: as the status says, or else what the plan holds back first.
func waitOf(p loop.Pass, at progress.Progress) wait {
	switch at.Code {
	case reason.Updating, reason.Nothing, reason.ControllerLag:
	default:
		return wait{code: at.Code, why: at.Message}
	}
	if isOver(at) {
		return wait{}
	}
	for _, h := range p.Plan.Holds {
		if h.Code != reason.Nothing && h.Code != "" {
			return wait{code: h.Code, why: h.Why}
		}
	}
	return wait{}
}
