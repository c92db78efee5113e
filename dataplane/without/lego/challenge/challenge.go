// Package challenge has the interface of who answers challenges.
package challenge

// Provider answers challenges.
type Provider interface {
	Present(domain, token, keyAuth string) error
	CleanUp(domain, token, keyAuth string) error
}
