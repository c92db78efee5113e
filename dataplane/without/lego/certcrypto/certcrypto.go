// Package certcrypto has the names of keys.
package certcrypto

// KeyType is a kind of key.
type KeyType string

// The kinds that Traefik knows.
const (
	EC256   = KeyType("P256")
	EC384   = KeyType("P384")
	RSA2048 = KeyType("2048")
	RSA4096 = KeyType("4096")
	RSA8192 = KeyType("8192")
)
