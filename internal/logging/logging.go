// Package logging sends all logs of a process to one place in one format.
package logging

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// JSON is the format with one JSON object a line; any other is text.
const JSON = "json"

// Set sends all logs, also those of the client libraries, to one place in one format. Verbosity 0 tells what changes, 1 also why nothing
// does.
func Set(to io.Writer, format string, verbosity int) {
	options := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	var handler slog.Handler = slog.NewTextHandler(to, options)
	if format == JSON {
		handler = slog.NewJSONHandler(to, options)
	}
	logger := logr.FromSlogHandler(handler)
	log.SetLogger(logger)
	klog.SetLogger(logger)
}
