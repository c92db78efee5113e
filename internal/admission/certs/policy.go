package certs

import (
	"crypto/x509"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

const (
	leafLife = 90 * day
	caLife   = 365 * day
	// DefaultRenewBefore is how long before its end a certificate is replaced.
	DefaultRenewBefore = 30 * day
	// overlap is how long a CA that signs nothing any more stays in the configurations.
	overlap = day
)

// policy says when what is replaced.
type policy struct {
	// hosts are the names and addresses that the certificate is for.
	hosts []string
	// renewBefore is how long before its end a certificate is replaced.
	renewBefore time.Duration
}

// next returns what is to be stored in place of m; m itself when all is well.
//
// With the default of 30 days: on day 60 of 90 the certificate is made anew by the same CA, which no client notices. 120 days before a CA's
// end, the last moment at which a certificate of 90 days with 30 to spare fits into its life, a new CA takes its place.
func (p policy) next(m Material, now time.Time) (Material, error) {
	ca, err := m.ca.parse()
	if err != nil || !ca.IsCA || ca.NotAfter.Sub(now) < leafLife+p.renewBefore {
		return p.fresh(now)
	}
	leaf, err := m.leaf.parse()
	if err == nil && trusts(m.ca.cert, leaf, p.hosts, now) && leaf.NotAfter.Sub(now) >= p.renewBefore {
		return m, nil
	}
	m.leaf, err = newLeaf(m.ca, p.hosts, life{from: now.Add(-skew), to: now.Add(leafLife)})
	return m, err
}

// keep returns which CAs of a configuration stay beside the CA of m, because a manager may still present a certificate of theirs, or
// already does: all that are alive for a day after a certificate was made, and at any time those that are newer than what was just read.
func (p policy) keep(m Material, live []byte, now time.Time) []byte {
	leaf, err := m.leaf.parse()
	overlapping := err != nil || now.Before(leaf.NotBefore.Add(skew+overlap))
	ca, err := m.ca.parse()
	var kept []byte
	for _, der := range split(live) {
		c, errOther := x509.ParseCertificate(der)
		if errOther != nil || now.After(c.NotAfter) {
			continue
		}
		if overlapping || err == nil && c.NotBefore.After(ca.NotBefore) {
			kept = append(kept, encode(der)...)
		}
	}
	return kept
}

func (p policy) fresh(now time.Time) (Material, error) {
	ca, err := newCA(life{from: now.Add(-skew), to: now.Add(caLife)})
	if err != nil {
		return Material{}, err
	}
	leaf, err := newLeaf(ca, p.hosts, life{from: now.Add(-skew), to: now.Add(leafLife)})
	return Material{ca: ca, leaf: leaf}, err
}

// ParseRenewBefore reads the value of CERTS_RENEW_BEFORE: a whole number and one of d (days), m (months of 30 days) and y (years of 365
// days), such as 45d. Empty is DefaultRenewBefore. More than half of the certificate's life, which existing installations may have set for
// certificates of ten years, is taken as half of it.
func ParseRenewBefore(value string) (time.Duration, error) {
	if value == "" {
		return DefaultRenewBefore, nil
	}
	units := map[string]time.Duration{"d": day, "m": 30 * day, "y": 365 * day}
	number, err := strconv.ParseUint(strings.TrimRight(value, "dmy"), 10, 16)
	unit, known := units[value[len(value)-1:]]
	if err != nil || !known || number == 0 || len(strings.TrimRight(value, "dmy")) != len(value)-1 {
		return 0, fmt.Errorf("%q is not a time before the end of a certificate, write days, months or years as 45d, 6m or 1y", value)
	}
	return min(time.Duration(number)*unit, leafLife/2), nil
}
