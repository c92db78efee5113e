package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports of managers and daemons are above those of Kubernetes, and below those that kruise-local chooses and that Linux gives to whoever
// asks for any.
const firstPort, ports = 11000, 9000

// freePorts returns ports that nobody listens on. No other process that asks here gets the same ones while this one runs, although several
// suites run at once and a manager listens a second after its ports were chosen: a file is locked for each.
func freePorts(number int) ([]string, error) {
	dir := filepath.Join(os.TempDir(), "kruise-test-ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var out []string
	for range ports {
		port := strconv.Itoa(firstPort + rand.IntN(ports))
		free, err := reserve(filepath.Join(dir, port), port)
		if err != nil {
			return nil, fmt.Errorf("reserving port %s: %w", port, err)
		}
		if free {
			out = append(out, port)
		}
		if len(out) == number {
			return out, nil
		}
	}
	return nil, errors.New("there are no free ports")
}

// reserve locks the file of a port for as long as this process runs. It is false if another one has, or listens there.
func reserve(file, port string) (bool, error) {
	lock, err := syscall.Open(file, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC,
		0o666) // no os.File, which the garbage collector closes
	if err != nil {
		return false, err
	}
	if err := syscall.Flock(lock, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, syscall.Close(lock)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return false, syscall.Close(lock)
	}
	return true, listener.Close()
}
