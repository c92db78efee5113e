package analysis

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// Addresses says where connections of measurements may lead. Never to this host, to its neighbours by link-local addresses, to the metadata
// services of clouds, and to what Refuse lists; elsewhere they may.
type Addresses struct {
	// Refuse are more addresses that connections may not lead to, such as those of API servers.
	Refuse []netip.Prefix
	// Allow are exceptions from all that is refused.
	Allow []netip.Prefix
}

// metadata are addresses, outside of the link-local ones, by which clouds tell machines about themselves, credentials included.
func metadata() []netip.Addr {
	return []netip.Addr{
		netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"),
		netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("fd00:ec2::254"),
	}
}

// refuses returns why a connection may not lead to an address; empty if it may.
func (a Addresses) refuses(to netip.Addr) string {
	to = plain(to)
	within := func(all []netip.Prefix) bool {
		return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(to) })
	}
	switch {
	case !to.IsValid():
		return "it is no address"
	case within(a.Allow):
		return ""
	case to.IsLoopback(), to.IsUnspecified(), to.Is4() && to.As4()[0] == 0:
		return "it is the host of the managers"
	case to.IsLinkLocalUnicast(), slices.Contains(metadata(), to):
		return "it is link-local, or tells machines about themselves"
	case to.IsMulticast(), to == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "it is of many hosts"
	case within(a.Refuse):
		return "it is not allowed"
	}
	return ""
}

// nat64 is the prefix under which hosts of IPv4 are reached by IPv6.
func nat64() netip.Prefix { return netip.MustParsePrefix("64:ff9b::/96") }

// plain returns the address of IPv4 that one of IPv6 stands for, and any other without its zone.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64().Contains(a) {
		bytes := a.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return a
}

// refusedError is a connection that is not made.
type refusedError struct {
	address netip.Addr
	why     string
}

func (e refusedError) Error() string {
	return fmt.Sprintf("connections to %s are refused: %s", e.address, e.why)
}

// control looks at the address of a connection, after names are resolved and before it is made.
func (a Addresses) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("reading address %s: %w", address, err)
	}
	if why := a.refuses(to.Addr()); why != "" {
		return refusedError{to.Addr(), why}
	}
	return nil
}
