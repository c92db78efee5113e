package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are the TCP ports of one cluster. They are chosen once, so that kubeconfigs stay right.
type Ports struct {
	APIServer         int `json:"apiServer"`
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
	Registry          int `json:"registry"`
}

// Ports below those that systems hand out for outgoing connections: a free one stays free until its server starts.
const firstPort, lastPort = 20000, 32000

func choosePorts() (Ports, error) {
	var ports Ports
	taken := map[int]bool{}
	for _, port := range []*int{&ports.APIServer, &ports.Etcd, &ports.EtcdPeer, &ports.ControllerManager, &ports.Scheduler,
		&ports.Registry} {
		chosen, err := freePort(taken)
		if err != nil {
			return Ports{}, err
		}
		*port, taken[chosen] = chosen, true
	}
	return ports, nil
}

func freePort(taken map[int]bool) (int, error) {
	for range 200 {
		// Random, not the lowest free: clusters that start at the same moment must not meet.
		port := firstPort + rand.IntN(lastPort-firstPort)
		if taken[port] {
			continue
		}
		// All addresses, as an API server for real nodes listens on all.
		listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("choosing a port: %w", err)
		}
		return port, nil
	}
	return 0, errors.New("choosing a port: none of 200 tried ports is free")
}
