// Package log has the logger that Traefik sets.
package log

// Logger is set, and nothing is logged.
var Logger interface{ Print(args ...any) }
