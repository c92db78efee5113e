// Package realnode runs real Kubernetes nodes on this machine: for each a kubelet, a containerd and a network bridge of its own.
//
// No virtual machine and no namespace is around a node: what keeps nodes apart is that each has its own folders, cgroup, sockets, addresses
// and network. All that a node leaves outside its folder carries the number of its site, so that Remove finds it whatever has crashed.
package realnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
)

// Real is the value of the label that tells simulated nodes from others, on real ones.
const Real = "real"

// Site is what the real nodes of one cluster share.
type Site struct {
	// Dir is the folder where nodes keep their state.
	Dir string `json:"-"`
	// Number makes names and addresses unique on this machine: nodes and Pods have addresses of 10.Number.0.0/16.
	Number int `json:"number"`
	// ForwardingWasOff says that this machine did not forward packets before, so that Remove restores that.
	ForwardingWasOff bool `json:"forwardingWasOff,omitempty"`
}

// runFolder holds sockets and what lives no longer than the machine is on: paths of sockets must be short.
const runFolder = "/run/kruise-local"

// The numbers of sites, which are few enough to look through and many enough for tests that run at the same time.
const firstNumber, lastNumber = 64, 127

// Found makes sure that a site exists in dir.
func Found(dir string) (Site, error) {
	site, err := Open(dir)
	if !errors.Is(err, os.ErrNotExist) {
		return site, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Site{}, fmt.Errorf("founding the real nodes' site: %w", err)
	}
	if err := os.MkdirAll(runFolder, 0o755); err != nil {
		return Site{}, fmt.Errorf("founding the real nodes' site: %w", err)
	}
	for _, i := range rand.Perm(lastNumber - firstNumber + 1) {
		site = Site{Dir: dir, Number: firstNumber + i}
		if inUse, err := site.addressesInUse(); err != nil || inUse {
			if err != nil {
				return Site{}, err
			}
			continue
		}
		// Who makes the folder has the number.
		if err := os.Mkdir(site.runFolder(), 0o711); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return Site{}, fmt.Errorf("founding the real nodes' site: %w", err)
		}
		return site, site.save()
	}
	return Site{}, fmt.Errorf("founding the real nodes' site: every network from 10.%d to 10.%d is in use; %s has a folder for each, which may be left from clusters that were not taken down",
		firstNumber, lastNumber, runFolder)
}

// Open reads the site in dir; os.ErrNotExist when there is none.
func Open(dir string) (Site, error) {
	site := Site{Dir: dir}
	content, err := os.ReadFile(site.file())
	if err != nil {
		return Site{}, fmt.Errorf("reading the real nodes' site: %w", err)
	}
	if err := json.Unmarshal(content, &site); err != nil {
		return Site{}, fmt.Errorf("reading the real nodes' site: %w", err)
	}
	return site, nil
}

func (s Site) file() string { return filepath.Join(s.Dir, "site.json") }

func (s Site) save() error {
	content, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the real nodes' site: %w", err)
	}
	draft := s.file() + ".new"
	if err := os.WriteFile(draft, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the real nodes' site: %w", err)
	}
	if err := os.Rename(draft, s.file()); err != nil {
		return fmt.Errorf("writing the real nodes' site: %w", err)
	}
	return nil
}

func (s Site) runFolder() string { return filepath.Join(runFolder, strconv.Itoa(s.Number)) }

// network is the range of all nodes' and Pods' addresses.
func (s Site) network() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(s.Number), 0, 0}), 16)
}

func (s Site) addressesInUse() (bool, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("listing this machine's addresses: %w", err)
	}
	for _, address := range addresses {
		prefix, err := netip.ParsePrefix(address.String())
		if err == nil && prefix.Overlaps(s.network()) {
			return true, nil
		}
	}
	return false, nil
}

// Node returns the site's node number i, from 0.
func (s Site) Node(i int) Node { return Node{Site: s, Index: i, Name: "real-" + strconv.Itoa(i)} }

// nodes are the nodes that ever were.
func (s Site) nodes() ([]Node, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("listing real nodes: %w", err)
	}
	var nodes []Node
	for _, entry := range entries {
		var i int
		if n, _ := fmt.Sscanf(entry.Name(), "real-%d", &i); n == 1 && entry.IsDir() {
			nodes = append(nodes, s.Node(i))
		}
	}
	return nodes, nil
}
