// Package dns01 has the options of challenges by DNS.
package dns01

import (
	"strings"
	"time"
)

// ChallengeOption is an option, without effect.
type ChallengeOption struct{}

// AddRecursiveNameservers is without effect.
func AddRecursiveNameservers([]string) ChallengeOption { return ChallengeOption{} }

// RecursiveNSsPropagationRequirement is without effect.
func RecursiveNSsPropagationRequirement() ChallengeOption { return ChallengeOption{} }

// DisableAuthoritativeNssPropagationRequirement is without effect.
func DisableAuthoritativeNssPropagationRequirement() ChallengeOption { return ChallengeOption{} }

// PropagationWait is without effect.
func PropagationWait(time.Duration, bool) ChallengeOption { return ChallengeOption{} }

// UnFqdn returns a name without the dot at its end.
func UnFqdn(name string) string { return strings.TrimSuffix(name, ".") }
