package simnode

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressesAreEachGivenToOneHolder(t *testing.T) {
	a := newAddresses(netip.MustParsePrefix("10.0.0.0/29"))
	a.reserve("10.0.0.2")
	var got []string
	for range 5 {
		ip, err := a.take()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ip)
	}
	if diff := cmp.Diff([]string{"10.0.0.1", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"}, got); diff != "" {
		t.Errorf("addresses differ (-want +got):\n%s", diff)
	}
	if ip, err := a.take(); err == nil {
		t.Errorf("got %s from an empty range", ip)
	}
	a.release("10.0.0.4")
	if ip, err := a.take(); err != nil || ip != "10.0.0.4" {
		t.Errorf("got %s, %v, want the address that was given back", ip, err)
	}
}
