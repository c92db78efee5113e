package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ManagerOptions say how a manager is run beside the cluster.
type ManagerOptions struct {
	// Dir holds the manager's log and certificates.
	Dir string
	// Args are further arguments, Env further variables of the environment; a later one wins over an earlier one of the same name. By
	// WEBHOOK_HOST= the API server is to reach the manager through its Service, whose endpoints are the caller's affair.
	Args, Env []string
	// Detached lets the manager live on when the process that started it ends. One that was started so before, for the same folder, is
	// replaced. It ends by itself when the cluster does.
	Detached bool
}

// Manager is a kruise-manager that runs as a process of this machine.
type Manager struct {
	cmd     *exec.Cmd
	log     string
	address string
	metrics string
	webhook string
	exited  chan error
}

// StartManager installs the CRDs and the webhook configurations, and starts a manager; it returns when the manager is ready.
func (c *Cluster) StartManager(ctx context.Context, o ManagerOptions) (*Manager, error) {
	if err := c.Install(ctx); err != nil {
		return nil, err
	}
	m, err := c.LaunchManager(ctx, o)
	if err != nil {
		return nil, err
	}
	err = m.WaitReady(ctx)
	return m, err
}

// LaunchManager starts a manager in a cluster that everything is installed in, and does not wait until it is ready.
func (c *Cluster) LaunchManager(ctx context.Context, o ManagerOptions) (*Manager, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	binary, err := Binary("kruise-manager")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.managerKubeconfig(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		log:     filepath.Join(o.Dir, "manager.log"),
		address: "127.0.0.1:" + ports[0], metrics: "127.0.0.1:" + ports[1], webhook: ports[2], exited: make(chan error, 1),
	}
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	args := append([]string{
		"--kubeconfig", kubeconfig,
		"--health-probe-addr", m.address,
		"--metrics-addr", m.metrics,
		"--enable-pprof=false",
	}, o.Args...)
	m.cmd = exec.Command(binary, args...)
	m.cmd.Env = append(os.Environ(),
		"WEBHOOK_HOST=localhost", "WEBHOOK_PORT="+ports[2], "WEBHOOK_CERT_DIR="+filepath.Join(o.Dir, "certs"))
	m.cmd.Env = append(m.cmd.Env, o.Env...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if o.Detached {
		m.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := replace(filepath.Join(o.Dir, "pid"), binary); err != nil {
			return nil, err
		}
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the manager: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "pid"), []byte(strconv.Itoa(m.cmd.Process.Pid)), 0o644); err != nil {
		return nil, err
	}
	go func() { m.exited <- m.cmd.Wait() }()
	return m, nil
}

// replace ends the process whose id the file holds, if it still is one of the binary's.
func replace(pidFile, binary string) error {
	text, err := os.ReadFile(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	pid, convErr := strconv.Atoi(string(text))
	if err := errors.Join(err, convErr); err != nil {
		return fmt.Errorf("looking for an earlier manager: %w", err)
	}
	running := func() bool {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && strings.HasPrefix(string(command), binary+"\x00")
	}
	if !running() {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending an earlier manager: %w", err)
	}
	for deadline := time.Now().Add(20 * time.Second); running(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("an earlier manager, process %d, does not end", pid)
		}
	}
	return nil
}

// WaitReady waits until the manager is ready.
func (m *Manager) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.address+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close() // nothing of it is read
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-m.exited:
			m.exited <- err
			return fmt.Errorf("the manager ended before it was ready: %w\n%s", err, m.Tail(30))
		case <-ctx.Done():
			return fmt.Errorf("the manager is not ready: %w\n%s", ctx.Err(), m.Tail(30))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// PID returns the manager's process id.
func (m *Manager) PID() int { return m.cmd.Process.Pid }

// WebhookPort returns the port of the manager's webhooks.
func (m *Manager) WebhookPort() string { return m.webhook }

// MetricsAddress returns the host and port where the manager serves its metrics.
func (m *Manager) MetricsAddress() string { return m.metrics }

// Log returns the path of the manager's log.
func (m *Manager) Log() string { return m.log }

// Stop asks the manager to end, and waits until it has.
func (m *Manager) Stop() {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	m.wait(20 * time.Second)
}

// Kill ends the manager at once, as a crash would.
func (m *Manager) Kill() {
	_ = m.cmd.Process.Kill() // an error means that it has ended
	m.wait(20 * time.Second)
}

func (m *Manager) wait(limit time.Duration) {
	select {
	case err := <-m.exited:
		m.exited <- err
	case <-time.After(limit):
		_ = m.cmd.Process.Kill() // an error means that it has ended
	}
}

// Tail returns the last lines of the manager's log.
func (m *Manager) Tail(lines int) string { return tail(m.log, lines) }

func tail(log string, lines int) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func freePorts(number int) ([]string, error) {
	var ports []string
	var taken []net.Listener // until all are chosen, or one would be chosen twice
	defer func() {
		for _, listener := range taken {
			_ = listener.Close() // nothing was sent
		}
	}()
	for range number {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		taken = append(taken, listener)
		ports = append(ports, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}
