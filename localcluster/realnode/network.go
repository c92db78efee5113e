package realnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
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

func (n Node) removeBridge() error {
	link, err := netlink.LinkByName(n.bridge())
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("removing bridge %s: %w", n.bridge(), err)
	}
	return nil
}

const forwarding = "/proc/sys/net/ipv4/ip_forward"

// EnsureNetwork lets the site's Pods reach each other, and the API server at port of this machine as serviceIP:443.
func (s Site) EnsureNetwork(serviceIP string, port int) error {
	now, err := os.ReadFile(forwarding)
	if err != nil {
		return fmt.Errorf("asking whether this machine forwards packets: %w", err)
	}
	if strings.TrimSpace(string(now)) == "0" {
		s.ForwardingWasOff = true
		if err := s.save(); err != nil {
			return err
		}
		if err := os.WriteFile(forwarding, []byte("1\n"), 0); err != nil {
			return fmt.Errorf("having this machine forward packets: %w", err)
		}
	}
	network := s.network().String()
	rules := map[string][][]string{
		"nat": {{"-s", network, "-d", serviceIP + "/32", "-p", "tcp", "--dport", "443", "-j", "REDIRECT", "--to-ports", strconv.Itoa(port)}},
		"filter": {
			{"-s", network, "-j", "ACCEPT"},
			{"-d", network, "-j", "ACCEPT"},
		},
	}
	for table, chain := range entrances() {
		if err := s.ensureChain(table, chain, rules[table]); err != nil {
			return err
		}
	}
	return nil
}

// entrances are the chains of iptables, by table, from which the site's own chain is called.
func entrances() map[string]string {
	return map[string]string{"nat": "PREROUTING", "filter": "FORWARD"}
}

// chain is the name of the site's own chain in each table.
func (s Site) chain() string { return "KRUISE-LOCAL-" + strconv.Itoa(s.Number) }

func (s Site) ensureChain(table, entrance string, rules [][]string) error {
	if err := iptables(table, "-n", "-L", s.chain()); err != nil {
		if err := iptables(table, "-N", s.chain()); err != nil {
			return err
		}
	}
	if err := iptables(table, "-F", s.chain()); err != nil {
		return err
	}
	for _, rule := range rules {
		if err := iptables(table, append([]string{"-A", s.chain()}, rule...)...); err != nil {
			return err
		}
	}
	if iptables(table, "-C", entrance, "-j", s.chain()) == nil {
		return nil
	}
	return iptables(table, "-I", entrance, "-j", s.chain())
}

func (s Site) removeNetwork() error {
	for table, entrance := range entrances() {
		if iptables(table, "-n", "-L", s.chain()) != nil {
			continue
		}
		for iptables(table, "-C", entrance, "-j", s.chain()) == nil {
			if err := iptables(table, "-D", entrance, "-j", s.chain()); err != nil {
				return err
			}
		}
		for _, verb := range []string{"-F", "-X"} {
			if err := iptables(table, verb, s.chain()); err != nil {
				return err
			}
		}
	}
	if !s.ForwardingWasOff {
		return nil
	}
	// Another site may have come to rely on it.
	if others, err := os.ReadDir(runFolder); err == nil && len(others) > 1 {
		return nil
	}
	if err := os.WriteFile(forwarding, []byte("0\n"), 0); err != nil {
		return fmt.Errorf("having this machine forward no packets, as before: %w", err)
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
