// Package certificate has what requests for certificates are made of.
package certificate

// Resource is a certificate.
type Resource struct {
	Domain                  string
	PrivateKey, Certificate []byte
}

// ObtainRequest asks for a certificate.
type ObtainRequest struct {
	Domains, EmailAddresses []string
	Bundle                  bool
	Profile, PreferredChain string
}

// RenewOptions ask for a certificate anew.
type RenewOptions struct {
	EmailAddresses          []string
	Bundle                  bool
	Profile, PreferredChain string
}
