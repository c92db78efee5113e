package realnode

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// makeBridge makes the node's bridge and gives it the node's address, before the first Pod does, because the kubelet serves there.
func (n Node) makeBridge() error {
	link, err := netlink.LinkByName(n.bridge())
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = n.bridge()
		link = &netlink.Bridge{LinkAttrs: attributes}
		err = netlink.LinkAdd(link)
	}
	if err != nil {
		return fmt.Errorf("making bridge %s: %w", n.bridge(), err)
	}
	address, err := netlink.ParseAddr(n.gateway())
	if err != nil {
		return fmt.Errorf("making bridge %s: %w", n.bridge(), err)
	}
	if err := netlink.AddrReplace(link, address); err != nil {
		return fmt.Errorf("giving bridge %s its address: %w", n.bridge(), err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("starting bridge %s: %w", n.bridge(), err)
	}
	return nil
}

// removeBridge removes the bridge and what is plugged into it, whose other ends went with their Pods or are about to.
func (n Node) removeBridge() error {
	bridge, err := netlink.LinkByName(n.bridge())
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing bridge %s: %w", n.bridge(), err)
	}
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing what is plugged into bridge %s: %w", n.bridge(), err)
	}
	for _, link := range links {
		if link.Attrs().MasterIndex != bridge.Attrs().Index {
			continue
		}
		if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("removing %s from bridge %s: %w", link.Attrs().Name, n.bridge(), err)
		}
	}
	if err := netlink.LinkDel(bridge); err != nil {
		return fmt.Errorf("removing bridge %s: %w", n.bridge(), err)
	}
	return nil
}

const forwarding = "net/ipv4/ip_forward"

// chain is one of the site's own chains of iptables.
type chain struct {
	table string
	// entrance is the chain from which this one is called.
	entrance string
	name     string
	rules    [][]string
}

// chains lead the site's Pods to each other, to the API server at port of this machine as serviceIP:443, and out into the world, which does
// not know Pods' addresses.
func (s Site) chains(serviceIP string, port int) []chain {
	network, name := s.network().String(), "KRUISE-LOCAL-"+strconv.Itoa(s.Number)
	return []chain{
		{"nat", "PREROUTING", name, [][]string{
			{"-s", network, "-d", serviceIP + "/32", "-p", "tcp", "--dport", "443", "-j", "REDIRECT", "--to-ports", strconv.Itoa(port)},
		}},
		{"nat", "POSTROUTING", name + "-OUT", [][]string{{"-s", network, "!", "-d", network, "-j", "MASQUERADE"}}},
		{"filter", "FORWARD", name, [][]string{{"-s", network, "-j", "ACCEPT"}, {"-d", network, "-j", "ACCEPT"}}},
	}
}

// EnsureNetwork lets the site's Pods reach each other, the world, and the API server at port of this machine as serviceIP:443.
func (s Site) EnsureNetwork(serviceIP string, port int) error {
	if err := set(forwarding, "1\n"); err != nil {
		return err
	}
	for _, chain := range s.chains(serviceIP, port) {
		if err := chain.ensure(); err != nil {
			return err
		}
	}
	return nil
}

func (c chain) exists() bool { return iptables(c.table, "-n", "-L", c.name) == nil }

func (c chain) called() bool { return iptables(c.table, "-C", c.entrance, "-j", c.name) == nil }

func (c chain) ensure() error {
	var calls [][]string
	if !c.exists() {
		calls = append(calls, []string{"-N", c.name})
	}
	calls = append(calls, []string{"-F", c.name})
	for _, rule := range c.rules {
		calls = append(calls, append([]string{"-A", c.name}, rule...))
	}
	if !c.called() {
		calls = append(calls, []string{"-I", c.entrance, "-j", c.name})
	}
	return c.run(calls)
}

func (c chain) remove() error {
	if !c.exists() {
		return nil
	}
	for c.called() {
		if err := c.run([][]string{{"-D", c.entrance, "-j", c.name}}); err != nil {
			return err
		}
	}
	return c.run([][]string{{"-F", c.name}, {"-X", c.name}})
}

func (c chain) run(calls [][]string) error {
	for _, call := range calls {
		if err := iptables(c.table, call...); err != nil {
			return err
		}
	}
	return nil
}

func (s Site) removeNetwork() error {
	for _, chain := range s.chains("", 0) {
		if err := chain.remove(); err != nil {
			return err
		}
	}
	return nil
}

func iptables(table string, args ...string) error {
	out, err := exec.Command("iptables", append([]string{"-w", "-t", table}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running iptables %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
