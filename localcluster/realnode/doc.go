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
}

// The numbers of sites, which are few enough to look through and many enough for tests that run at the same time.
const firstNumber, lastNumber = 64, 127

// Found makes sure that a site exists in dir.
func Found(dir string) (Site, error) {
	unlock, err := lockMachine()
	if err != nil {
		return Site{}, err
	}
	defer unlock()
	if err := sweep(); err != nil {
		return Site{}, err
	}
	site, err := Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		site, err = choose(dir)
	}
	if err != nil {
		return Site{}, err
	}
	if err := remember(); err != nil {
		return Site{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Site{}, fmt.Errorf("founding the real nodes' site: %w", err)
	}
	// First the note by which Remove finds the site, then what is to be removed.
	if err := writeJSON(site.file(), site); err != nil {
		return Site{}, err
	}
	if err := os.MkdirAll(site.runFolder(), 0o711); err != nil {
		return Site{}, fmt.Errorf("founding the real nodes' site: %w", err)
	}
	if err := os.WriteFile(site.homeFile(), []byte(site.Dir), 0o600); err != nil {
		return Site{}, fmt.Errorf("founding the real nodes' site: %w", err)
	}
	return site, nil
}

// choose finds a number for a new site. The caller has the lock.
func choose(dir string) (Site, error) {
	for _, i := range rand.Perm(lastNumber - firstNumber + 1) {
		site := Site{Dir: dir, Number: firstNumber + i}
		inUse, err := site.addressesInUse()
		if err != nil {
			return Site{}, err
		}
		if _, err := os.Stat(site.runFolder()); !inUse && errors.Is(err, os.ErrNotExist) {
			return site, nil
		}
	}
	return Site{}, fmt.Errorf("founding the real nodes' site: every network from 10.%d to 10.%d is in use; "+
		"%s has a folder for each, which may be left from clusters that were not taken down",
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

func (s Site) runFolder() string { return filepath.Join(runFolder, strconv.Itoa(s.Number)) }

// homeFile says where the site's own folder is.
func (s Site) homeFile() string { return filepath.Join(s.runFolder(), "home") }

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
	known := map[int]bool{}
	var nodes []Node
	for _, folder := range []string{s.Dir, s.runFolder()} {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("listing real nodes: %w", err)
		}
		for _, entry := range entries {
			var i int
			if n, _ := fmt.Sscanf(entry.Name(), "real-%d", &i); n == 1 && entry.IsDir() && !known[i] {
				known[i] = true
				nodes = append(nodes, s.Node(i))
			}
		}
	}
	return nodes, nil
}
