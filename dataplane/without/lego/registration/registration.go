// Package registration has what registrations are made of.
package registration

// Resource is a registration.
type Resource struct{ URI string }

// RegisterOptions ask for a registration.
type RegisterOptions struct{ TermsOfServiceAgreed bool }

// RegisterEABOptions ask for a registration with a key.
type RegisterEABOptions struct {
	TermsOfServiceAgreed bool
	Kid, HmacEncoded     string
}
