package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// DaemonOptions say how the daemon of a node is run beside the cluster.
type DaemonOptions struct {
	// Node is the node that it is the daemon of, which must exist, and Socket that of the node's container runtime.
	Node, Socket string
	// Dir holds its kubeconfig and its log.
	Dir string
	// Args are further arguments.
	Args []string
}

// Daemon is a kruise-daemon that runs as a process of this machine.
type Daemon struct {
	cmd     *exec.Cmd
	log     string
	address string
	exited  chan struct{}
}

// StartDaemon starts the daemon of a node, with the rights of that node's and no more. It does not wait until it is ready.
func (c *Cluster) StartDaemon(ctx context.Context, o DaemonOptions) (*Daemon, error) {
	binary, err := Binary("kruise-daemon")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(o.Dir, o.Node+".kubeconfig")
	if err := c.DaemonKubeconfig(ctx, o.Node, kubeconfig); err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	d := &Daemon{log: filepath.Join(o.Dir, o.Node+".log"), address: "127.0.0.1:" + ports[0], exited: make(chan struct{})}
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	d.cmd = exec.Command(binary, append([]string{"--kubeconfig", kubeconfig, "--addr", d.address, "--socket-file", o.Socket}, o.Args...)...)
	d.cmd.Env = append(os.Environ(), "NODE_NAME="+o.Node)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the daemon: %w", err)
	}
	go func() {
		_ = d.cmd.Wait() // how it ended is in its log
		close(d.exited)
	}()
	return d, nil
}

// Answers returns what the daemon answers at a path: the code of the status, or 0 if it does not answer.
func (d *Daemon) Answers(ctx context.Context, path string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+path, http.NoBody)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close() // nothing of it is read
	return response.StatusCode
}

// PID returns the daemon's process id.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Stop asks the daemon to end, and waits until it has.
func (d *Daemon) Stop() { d.end(syscall.SIGTERM) }

// Kill ends the daemon at once, as a crash would.
func (d *Daemon) Kill() { d.end(syscall.SIGKILL) }

func (d *Daemon) end(signal os.Signal) {
	_ = d.cmd.Process.Signal(signal) // an error means that it has ended
	select {
	case <-d.exited:
	case <-time.After(20 * time.Second):
		_ = d.cmd.Process.Kill() // an error means that it has ended
		<-d.exited
	}
}

// Tail returns the last lines of the daemon's log.
func (d *Daemon) Tail(lines int) string { return tail(d.log, lines) }
