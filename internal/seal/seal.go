// Package seal encrypts credentials so that only the daemon of one node can read them, although others may see what is written for it.
//
// The daemon makes a key at each start and keeps it in memory; the public half is in the status of its NodeImage, which only the daemon of
// that node may write. The scheme is HPKE (RFC 9180) with X25519, HKDF-SHA256 and AES-256-GCM. What is sealed is bound to a context, the
// image and the job that it is for, and opens in no other.
package seal

import (
	"crypto/ecdh"
	"crypto/hpke"
	"fmt"
)

// Key is the private key of one daemon.
type Key struct{ private hpke.PrivateKey }

// NewKey returns a key that nobody else has.
func NewKey() (*Key, error) {
	private, err := hpke.DHKEM(ecdh.X25519()).GenerateKey()
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Key{private}, nil
}

// Public returns the half of the key that others seal with.
func (k *Key) Public() []byte { return k.private.PublicKey().Bytes() }

// Open decrypts what was sealed for the key in the same context. The error does not say whether key, context or content differ.
func (k *Key) Open(sealed []byte, context string) ([]byte, error) {
	return hpke.Open(k.private, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(context), sealed)
}

// Seal encrypts a text for the owner of a public key. It fails for what is no key.
func Seal(public, text []byte, context string) ([]byte, error) {
	key, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("reading the key of a daemon: %w", err)
	}
	return hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(context), text)
}
