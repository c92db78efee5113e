package manager

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// SetLogger sends all logs, also those of the client libraries, to one place in one format.
func SetLogger(to io.Writer, o Options) {
	options := &slog.HandlerOptions{Level: slog.Level(-o.Verbosity)}
	var handler slog.Handler = slog.NewTextHandler(to, options)
	if o.LoggingFormat == "json" {
		handler = slog.NewJSONHandler(to, options)
	}
	logger := logr.FromSlogHandler(handler)
	log.SetLogger(logger)
	klog.SetLogger(logger)
}
