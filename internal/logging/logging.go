// Package logging sends all logs of a process to one place in one format.
package logging

import (
	"flag"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	text = "text"
	json = "json" // one object a line
)

// Options say what is logged, and how.
type Options struct {
	// Format is text or json.
	Format string
	// Verbosity is 0 for what changes, and 1 also for why nothing does.
	Verbosity int
}

// Bind declares the flags.
func (o *Options) Bind(fs *flag.FlagSet) {
	fs.StringVar(&o.Format, "logging-format", text, "text or json")
	fs.IntVar(&o.Verbosity, "v", 0, "0 logs what changes, 1 also why nothing does, and whole plans")
}

// Validate returns an error for a format that there is not.
func (o Options) Validate() error {
	if o.Format != text && o.Format != json {
		return fmt.Errorf("--logging-format is %q, want text or json", o.Format)
	}
	return nil
}

// Set sends all logs, also those of the client libraries, to one place in one format.
func (o Options) Set(to io.Writer) {
	options := &slog.HandlerOptions{Level: slog.Level(-o.Verbosity)}
	var handler slog.Handler = slog.NewTextHandler(to, options)
	if o.Format == json {
		handler = slog.NewJSONHandler(to, options)
	}
	logger := logr.FromSlogHandler(handler)
	log.SetLogger(logger)
	klog.SetLogger(logger)
}
