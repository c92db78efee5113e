// Package http01 has the options of challenges by HTTP.
package http01

import "time"

// PathPrefix is where challenges are answered.
const PathPrefix = "/.well-known/acme-challenge/"

// ChallengeOption is an option, without effect.
type ChallengeOption struct{}

// SetDelay is without effect.
func SetDelay(time.Duration) ChallengeOption { return ChallengeOption{} }
