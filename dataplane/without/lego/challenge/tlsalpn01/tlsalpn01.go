// Package tlsalpn01 has the options of challenges by TLS.
package tlsalpn01

import (
	"errors"
	"time"
)

// ACMETLS1Protocol is the protocol of challenges.
const ACMETLS1Protocol = "acme-tls/1"

// ChallengeOption is an option, without effect.
type ChallengeOption struct{}

// SetDelay is without effect.
func SetDelay(time.Duration) ChallengeOption { return ChallengeOption{} }

// ChallengeBlocks returns an error.
func ChallengeBlocks(string, string) (certificate, key []byte, err error) {
	return nil, nil, errors.New("this build answers no challenges")
}
