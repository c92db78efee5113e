package simnode

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
)

// addresses hands out IPv4 addresses of one range, each to one holder at a time.
type addresses struct {
	mu    sync.Mutex
	first netip.Addr
	size  uint32
	next  uint32
	used  map[netip.Addr]bool
}

func newAddresses(prefix netip.Prefix) *addresses {
	return &addresses{first: prefix.Masked().Addr(), size: 1 << (32 - prefix.Bits()), next: 1, used: map[netip.Addr]bool{}}
}

var errNoAddress = errors.New("every address is taken")

// take hands out an address that has not been used for as long as possible, as networks do.
func (a *addresses) take() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range a.size {
		ip := a.at(a.next)
		a.next++
		if a.next == a.size-1 { // the last one is the broadcast address
			a.next = 1
		}
		if !a.used[ip] {
			a.used[ip] = true
			return ip.String(), nil
		}
	}
	return "", errNoAddress
}

func (a *addresses) at(offset uint32) netip.Addr {
	base := a.first.As4()
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], binary.BigEndian.Uint32(base[:])+offset)
	return netip.AddrFrom4(ip)
}

// reserve takes a certain address, of a Pod or node that had it before.
func (a *addresses) reserve(ip string) {
	if address, err := netip.ParseAddr(ip); err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.used[address] = true
	}
}

// release gives an address back.
func (a *addresses) release(ip string) {
	if address, err := netip.ParseAddr(ip); err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.used, address)
	}
}
