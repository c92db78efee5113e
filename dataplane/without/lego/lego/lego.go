// Package lego has a client that obtains no certificates.
package lego

import (
	"crypto/x509"
	"errors"
	"net/http"
	"time"

	"github.com/go-acme/lego/v4/certcrypto"
	"github.com/go-acme/lego/v4/certificate"
	"github.com/go-acme/lego/v4/challenge"
	"github.com/go-acme/lego/v4/challenge/dns01"
	"github.com/go-acme/lego/v4/challenge/http01"
	"github.com/go-acme/lego/v4/challenge/tlsalpn01"
	"github.com/go-acme/lego/v4/registration"
)

// LEDirectoryProduction is where certificates would come from.
const LEDirectoryProduction = "https://acme-v02.api.letsencrypt.org/directory"

var errLeftOut = errors.New("this build obtains no certificates")

// Config is that of a client.
type Config struct {
	CADirURL, UserAgent string
	HTTPClient          *http.Client
	Certificate         struct {
		KeyType           certcrypto.KeyType
		DisableCommonName bool
		Timeout           time.Duration
	}
}

// Client does nothing: NewClient returns none.
type Client struct {
	Challenge    challenges
	Registration registrar
	Certificate  certifier
}

// NewConfig returns an empty configuration.
func NewConfig(any) *Config { return &Config{} }

// NewClient returns an error.
func NewClient(*Config) (*Client, error) { return nil, errLeftOut }

// CreateCertPool returns an error.
func CreateCertPool([]string, bool) (*x509.CertPool, error) { return nil, errLeftOut }

type challenges struct{}

func (challenges) SetDNS01Provider(challenge.Provider, ...dns01.ChallengeOption) error {
	return errLeftOut
}

func (challenges) SetHTTP01Provider(challenge.Provider, ...http01.ChallengeOption) error {
	return errLeftOut
}

func (challenges) SetTLSALPN01Provider(challenge.Provider, ...tlsalpn01.ChallengeOption) error {
	return errLeftOut
}

type registrar struct{}

func (registrar) Register(registration.RegisterOptions) (*registration.Resource, error) {
	return nil, errLeftOut
}

func (registrar) RegisterWithExternalAccountBinding(registration.RegisterEABOptions) (*registration.Resource, error) {
	return nil, errLeftOut
}

type certifier struct{}

func (certifier) Obtain(certificate.ObtainRequest) (*certificate.Resource, error) {
	return nil, errLeftOut
}

func (certifier) RenewWithOptions(certificate.Resource, *certificate.RenewOptions) (*certificate.Resource, error) {
	return nil, errLeftOut
}
