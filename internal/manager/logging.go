package manager

import (
	"io"

	"github.com/seed-69ecc383/kruise/internal/logging"
)

// SetLogger sends all logs, also those of the client libraries, to one place in one format.
func SetLogger(to io.Writer, o Options) { logging.Set(to, o.LoggingFormat, o.Verbosity) }
