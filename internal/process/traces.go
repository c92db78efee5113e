package process

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/trace"
)

// tracesTimeout is how long a manager that ends waits for a collector to take the last traces.
const tracesTimeout = 5 * time.Second

// Traces says whether a manager sends traces of rollouts, and where to.
type Traces struct {
	Endpoint string
	Sampling float64
}

// Bind declares the flags.
func (o *Traces) Bind(fs *flag.FlagSet) {
	fs.StringVar(&o.Endpoint, "trace-endpoint", "",
		"URL of an OpenTelemetry collector that traces of rollouts are sent to by OTLP over HTTP, such as http://collector:4318, "+
			"see docs/observability.md; empty for none")
	fs.Float64Var(&o.Sampling, "trace-sampling", 1, "the share of rollouts that traces are sent of, 0 to 1")
}

// Validate returns an error for an address that there can't be, or a share.
func (o *Traces) Validate() error {
	if at, err := url.Parse(o.Endpoint); o.Endpoint != "" && (err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https") {
		return fmt.Errorf("--trace-endpoint is %q, want http://HOST:PORT, or https://HOST:PORT for TLS", o.Endpoint)
	}
	if !(o.Sampling >= 0 && o.Sampling <= 1) {
		return fmt.Errorf("--trace-sampling is %g, want 0 to 1", o.Sampling)
	}
	return nil
}

// Tracer returns what controllers tell of their passes; nil where traces go nowhere. End is called when the controllers have ended.
func (o *Traces) Tracer(ctx context.Context, service string, now func() time.Time) (_ loop.Tracer, end func(), err error) {
	if o.Endpoint == "" {
		return nil, func() {}, nil
	}
	logger := log.Log.WithName("traces")
	instance, err := os.Hostname() // in a cluster, the name of the Pod
	if err != nil {
		return nil, nil, fmt.Errorf("asking for the name of this host: %w", err)
	}
	t, err := trace.New(ctx, trace.Options{
		Endpoint: o.Endpoint, Headers: os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), Sampling: o.Sampling, Service: service, Instance: instance,
		Log: logger,
	})
	if err != nil {
		return nil, nil, err
	}
	return t, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesTimeout)
		defer cancel()
		if err := t.Shutdown(ctx, now()); err != nil {
			logger.Error(err, "Traces are lost")
		}
	}, nil
}
