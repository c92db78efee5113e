// Package fakenode plays a node for the daemon where no container runtime can run: it serves the part of the Container Runtime Interface
// that the daemon asks for on a socket, and restarts containers and reports on Pods as a kubelet would. What it was asked for it remembers,
// with the time.
package fakenode
