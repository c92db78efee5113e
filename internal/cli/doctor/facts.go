// Package doctor judges whether an installation of Kruise can do its work: what is read of a cluster goes in, and what is amiss comes out,
// with why it matters and what mends it.
//
// It is pure.
package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"time"
)

// Facts are what was read of a cluster.
type Facts struct {
	Now time.Time
	// Server is the version of the API server, such as v1.36.3; Minor its second number, 0 if it is not known.
	Server string
	Minor  int
	Parts  []Part
	// Nodes are those that a daemon should be ready on, Daemons those on which one is. Daemon is false where none is installed.
	Daemon         bool
	Nodes, Daemons []string
	// Unread says what could not be read, and why.
	Unread []string
	// Held are objects that an absent manager holds.
	Held []Held
	// Older is what tells of an installation of OpenKruise.
	Older Older
}

// Part is one of the two managers with what belongs to it.
type Part struct {
	// Name is that of the manager, Namespace where it runs.
	Name, Namespace string
	// Definitions are its CustomResourceDefinitions.
	Definitions []Definition
	// Deployed says that its Deployment is there; Wanted and Ready are its Pods.
	Deployed      bool
	Image         string
	Wanted, Ready int32
	Lease         *Lease
	Webhooks      []Webhook
	// Asked says that a webhook was asked by a dry run, Answer what came of it: empty if it answered.
	Asked  bool
	Answer string
}

// Installed reports whether any of it is there.
func (p Part) Installed() bool {
	for _, d := range p.Definitions {
		if d.There {
			return true
		}
	}
	return p.Deployed || len(p.Webhooks) > 0
}

// runs reports whether a manager leads now.
func (p Part) runs(now time.Time) bool { return p.Lease != nil && p.Lease.Fresh(now) }

// Definition is a CustomResourceDefinition.
type Definition struct {
	Name  string
	There bool
	// Served are the versions that the cluster has, Ours those that this program knows, Stored those that objects may be stored in.
	Served, Ours, Stored []string
	// Storage is the version that objects are stored in from now on.
	Storage string
	// Bundle is the CA that conversions trust; Converts says that they go by a webhook.
	Converts bool
	Bundle   []byte
}

// Lease is that of a leader.
type Lease struct {
	Name, Holder string
	Renewed      time.Time
	Duration     time.Duration
}

// Fresh reports whether a leader has renewed the Lease in time. Clocks may differ a little.
func (l Lease) Fresh(now time.Time) bool {
	return l.Holder != "" && now.Before(l.Renewed.Add(2*l.Duration))
}

// Webhook is a webhook of a configuration.
type Webhook struct {
	Configuration, Name string
	Bundle              []byte
}

// Held is an object that waits for a manager.
type Held struct{ Object, By, Free string }

// expiry returns when the last certificate of a bundle ends: as long as one is valid, managers can serve under it.
func expiry(bundle []byte) (last time.Time, err error) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return last, err
		}
		if certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
	if last.IsZero() {
		err = errors.New("it holds no certificate")
	}
	return last, err
}
