package rolloutmanager

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/seed-69ecc383/kruise/internal/analysis"
)

// measurements returns what makes measurements, which starts when the manager leads.
func (s settings) measurements(ctx context.Context) (*analysis.Runner, error) {
	allow, err := networks("analysis-allow", s.AnalysisAllow)
	if err != nil {
		return nil, err
	}
	refuse, err := networks("analysis-refuse", s.AnalysisRefuse)
	if err != nil {
		return nil, err
	}
	hosts := []string{os.Getenv("KUBERNETES_SERVICE_HOST")}
	host := s.mgr.GetConfig().Host
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	if server, err := url.Parse(host); err == nil {
		hosts = append(hosts, server.Hostname())
	}
	for _, host := range hosts {
		refuse = append(refuse, addressesOf(ctx, host)...)
	}
	r := analysis.New(analysis.Options{Addresses: analysis.Addresses{Allow: allow, Refuse: refuse}, Secrets: s.live, Now: s.clock.Now})
	return r, s.mgr.Add(r)
}

// addressesOf returns the addresses of an API server; none of one that has no name, or that can't be found.
func addressesOf(ctx context.Context, host string) (out []netip.Prefix) {
	if host == "" {
		return nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // the manager does not reach it either
	}
	for _, address := range found {
		address = address.Unmap()
		out = append(out, netip.PrefixFrom(address, address.BitLen()))
	}
	return out
}

// networks reads the value of a flag.
func networks(name, value string) (out []netip.Prefix, err error) {
	for _, text := range strings.Split(value, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %q, want a network such as 10.1.0.0/16", name, text)
		}
		out = append(out, network)
	}
	return out, nil
}

// labelled selects what has a label.
func labelled(key string) labels.Selector {
	wanted, err := labels.NewRequirement(key, selection.Exists, nil)
	if err != nil {
		return labels.Nothing() // of a key that is no label
	}
	return labels.NewSelector().Add(*wanted)
}
