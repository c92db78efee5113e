// Package backends plays the containers of simulated Pods: web servers that tell their version and their Pod, at the addresses of the Pods.
//
// Those addresses lead nowhere. A Network is a SOCKS proxy that leads to them, so that a program that honours HTTP_PROXY, such as a data
// plane, reaches Pods by connections of its own, each of which is refused, served or broken as the Pod's life has it. No root is needed.
package backends

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// What RFC 1928 calls these.
const (
	socksVersion    = 5
	socksConnect    = 1
	socksIPv4       = 1
	socksSucceeded  = 0
	socksRefused    = 5
	socksNotKnown   = 7 // the command or the type of address is not supported
	greetingTimeout = 10 * time.Second
)

// Network leads connections to addresses of Pods.
type Network struct {
	listener net.Listener
	// identity is the certificate of all servers.
	identity tls.Certificate

	mu    sync.Mutex
	ports map[netip.AddrPort]*port
	open  sync.WaitGroup
}

// Listen starts a network. The caller ends it by Close.
func Listen() (*Network, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the network of Pods: %w", err)
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("making a certificate for Pods: %w", err)
	}
	n := &Network{listener: listener, identity: identity, ports: map[netip.AddrPort]*port{}}
	n.open.Go(n.accept)
	return n, nil
}

// Proxy returns the URL by which the network is reached, as HTTP_PROXY and HTTPS_PROXY have it.
func (n *Network) Proxy() string { return "socks5://" + n.listener.Addr().String() }

// Close ends the network. Servers on it have to be ended by who started them.
func (n *Network) Close() error {
	err := n.listener.Close()
	n.open.Wait()
	return err
}

// Open has connections to an address lead to the listener that is returned, until that is closed.
func (n *Network) Open(address netip.AddrPort) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ports[address] != nil {
		return nil, fmt.Errorf("listening at %s: somebody does already", address)
	}
	p := &port{network: n, address: address, incoming: make(chan net.Conn), closed: make(chan struct{})}
	n.ports[address] = p
	return p, nil
}

func (n *Network) accept() {
	for {
		connection, err := n.listener.Accept()
		if err != nil {
			return // it is closed
		}
		n.open.Go(func() {
			if err := n.lead(connection); err != nil {
				_ = connection.Close() // whoever connects notices
			}
		})
	}
}

// lead answers the greeting and hands the connection over to who listens at the address that it is for.
func (n *Network) lead(connection net.Conn) error {
	if err := connection.SetDeadline(time.Now().Add(greetingTimeout)); err != nil {
		return err
	}
	address, err := greet(connection)
	if err != nil {
		return err
	}
	n.mu.Lock()
	p := n.ports[address]
	n.mu.Unlock()
	if p == nil || !p.reply(connection) {
		return errors.Join(answer(connection, socksRefused), connection.Close())
	}
	return nil
}

// greet reads which address a connection is for.
func greet(connection net.Conn) (netip.AddrPort, error) {
	in := bufio.NewReader(connection) // which has no more than the greeting: the client waits for the answer
	var hello [2]byte
	if _, err := io.ReadFull(in, hello[:]); err != nil {
		return netip.AddrPort{}, err
	}
	if hello[0] != socksVersion {
		return netip.AddrPort{}, fmt.Errorf("a greeting is of version %d", hello[0])
	}
	if _, err := in.Discard(int(hello[1])); err != nil {
		return netip.AddrPort{}, err
	}
	if _, err := connection.Write([]byte{socksVersion, 0}); err != nil { // without authentication
		return netip.AddrPort{}, err
	}
	var request struct {
		Version, Command, Reserved, Type byte
		Address                          [4]byte
		Port                             uint16
	}
	if err := binary.Read(in, binary.BigEndian, &request); err != nil {
		return netip.AddrPort{}, err
	}
	if request.Command != socksConnect || request.Type != socksIPv4 {
		return netip.AddrPort{}, errors.Join(errors.New("only connections to IPv4 addresses are led"), answer(connection, socksNotKnown))
	}
	return netip.AddrPortFrom(netip.AddrFrom4(request.Address), request.Port), nil
}

func answer(connection net.Conn, code byte) error {
	_, err := connection.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}

// port is an address that somebody listens at.
type port struct {
	network  *Network
	address  netip.AddrPort
	incoming chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

// reply tells a client that it is connected, and hands the connection over; false if nobody listens any more.
func (p *port) reply(connection net.Conn) bool {
	select {
	case <-p.closed:
		return false
	default:
	}
	if answer(connection, socksSucceeded) != nil || connection.SetDeadline(time.Time{}) != nil {
		return false
	}
	select {
	case p.incoming <- connection:
	case <-p.closed: // as a connection that waits to be accepted when its server ends
		_ = connection.Close()
	}
	return true
}

// Accept waits for a connection.
func (p *port) Accept() (net.Conn, error) {
	select {
	case connection := <-p.incoming:
		return connection, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close has connections be refused from now on.
func (p *port) Close() error {
	p.once.Do(func() {
		close(p.closed)
		p.network.mu.Lock()
		defer p.network.mu.Unlock()
		delete(p.network.ports, p.address)
	})
	return nil
}

// Addr returns the address of the Pod.
func (p *port) Addr() net.Addr { return net.TCPAddrFromAddrPort(p.address) }
