package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"

	"k8s.io/client-go/tools/clientcmd"
)

// forward passes connections on to an API server, and counts the bytes that come back: as they are on the wire, compressed and encrypted.
type forward struct {
	// kubeconfig is the file by which clients go through it.
	kubeconfig string
	received   atomic.Int64

	listener net.Listener
	target   string
}

// countBytes makes a kubeconfig, in a file, whose clients reach the API server of another one through a forward.
func countBytes(of, file string) (*forward, error) {
	config, err := clientcmd.LoadFromFile(of)
	if err != nil {
		return nil, err
	}
	f := &forward{kubeconfig: file}
	if f.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	for _, c := range config.Clusters {
		server, err := url.Parse(c.Server)
		if err != nil {
			return nil, errors.Join(err, f.listener.Close())
		}
		f.target, c.TLSServerName = server.Host, server.Hostname()
		c.Server = "https://" + f.listener.Addr().String()
	}
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return nil, errors.Join(fmt.Errorf("writing %s: %w", file, err), f.listener.Close())
	}
	go f.serve()
	return f, nil
}

func (f *forward) close() { _ = f.listener.Close() } // nothing was written to it

func (f *forward) serve() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return // it is closed
		}
		go f.pass(client)
	}
}

// pass copies both ways until both sides have ended.
func (f *forward) pass(client net.Conn) {
	defer func() { _ = client.Close() }() // what is lost shows in the client
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }() // as above
	go func() {
		_, _ = io.Copy(server, client) // as above
		_ = server.Close()
	}()
	_, _ = io.Copy(client, io.TeeReader(server, counter{&f.received})) // as above
}

// counter counts what is written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
