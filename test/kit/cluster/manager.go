package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ManagerOptions say how a manager is run beside the cluster.
type ManagerOptions struct {
	// Dir holds the manager's log and certificates.
	Dir string
	// Program is which manager it is; that of Kruise if nothing is said.
	Program Program
	// Binary is the path of the manager; empty for the one of this build.
	Binary string
	// Args are further arguments, Env further variables of the environment; a later one wins over an earlier one of the same name. By
	// WEBHOOK_HOST= the API server is to reach the manager through its Service, whose endpoints are the caller's affair.
	Args, Env []string
	// Detached lets the manager live on when the process that started it ends. One that was started so before, for the same folder, is
	// replaced. It holds a lock on the file named as Dir with .pid at its end, by which kruise-local ends it with the cluster if Dir is in
	// folder beside of that.
	Detached bool
}

// Manager is a manager that runs as a process of this machine.
type Manager struct {
	cmd     *exec.Cmd
	log     string
	address string
	metrics string
	webhook string
	exited  chan error
}

// StartManager installs the CRDs and the rights, and starts a manager; it returns when the manager is ready.
func (c *Cluster) StartManager(ctx context.Context, o ManagerOptions) (*Manager, error) {
	if err := c.InstallProgram(ctx, o.program()); err != nil {
		return nil, err
	}
	m, err := c.LaunchManager(ctx, o)
	if err != nil {
		return nil, err
	}
	err = m.WaitReady(ctx)
	return m, err
}

// program is the manager that is meant.
func (o ManagerOptions) program() Program {
	if o.Program.name == "" {
		return KruiseManager()
	}
	return o.Program
}

// LaunchManager installs the webhook configurations that are missing, starts a manager in a cluster that everything else is installed in,
// and does not wait until it is ready.
func (c *Cluster) LaunchManager(ctx context.Context, o ManagerOptions) (*Manager, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	binary := o.Binary
	if binary == "" {
		if binary, err = Binary(o.program().name); err != nil {
			return nil, err
		}
	}
	if err := c.installWebhooks(ctx, o.program()); err != nil {
		return nil, err
	}
	kubeconfig, err := c.accountKubeconfig(ctx, o.program().account, nil, filepath.Join(o.Dir, "kubeconfig"))
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
		o.program().healthFlag, m.address,
		o.program().metricsFlag, m.metrics,
	}, slices.Concat(o.program().args, o.Args)...)
	m.cmd = exec.Command(binary, args...)
	m.cmd.Env = append(os.Environ(),
		"WEBHOOK_HOST=localhost", "WEBHOOK_PORT="+ports[2], "WEBHOOK_CERT_DIR="+filepath.Join(o.Dir, "certs"))
	m.cmd.Env = append(m.cmd.Env, o.Env...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if o.Detached {
		err = startDetached(m.cmd, o.Dir+".pid")
	} else {
		err = startTied(m.cmd)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the manager: %w", err)
	}
	go func() { m.exited <- m.cmd.Wait() }()
	return m, nil
}

// startTied starts a process that ends with this one.
func startTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Start()
}

// startDetached starts a process that lives on when this one ends, and holds a lock on a file with its id. One that was started so before
// is ended first.
func startDetached(cmd *exec.Cmd, file string) error {
	lock, err := replace(file)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the child holds it, too, and so the lock
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.ExtraFiles = []*os.File{lock}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = lock.WriteString(strconv.Itoa(cmd.Process.Pid))
	return err
}

// replace ends the process that holds a lock on the file with its id, if one does, and returns the file, empty and locked.
func replace(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	told := false
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return file, file.Truncate(0)
		}
		if pid := pidIn(path); pid > 0 && !told {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return nil, errors.Join(fmt.Errorf("ending an earlier process: %w", err), file.Close())
			}
			told = true
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("an earlier process, %d, does not end", pidIn(path)), file.Close())
		}
	}
}

// pidIn returns the process id in a file; zero while there is none.
func pidIn(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(string(text)) // zero if it is not written yet
	return pid
}

// WaitReady waits until the manager is ready.
func (m *Manager) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for !m.IsReady(ctx) {
		select {
		case err := <-m.exited:
			m.exited <- err
			return fmt.Errorf("the manager ended before it was ready: %w\n%s", err, m.Tail(30))
		case <-ctx.Done():
			return fmt.Errorf("the manager is not ready: %w\n%s", ctx.Err(), m.Tail(30))
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// IsReady reports whether the manager says that it is ready.
func (m *Manager) IsReady(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.address+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // nothing of it is read
	return response.StatusCode == http.StatusOK
}

// HasEnded reports whether the manager's process has ended.
func (m *Manager) HasEnded() bool {
	select {
	case err := <-m.exited:
		m.exited <- err
		return true
	default:
		return false
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
	all := slices.DeleteFunc(strings.Split(string(bytes.TrimSpace(text)), "\n"), isOfWaiting)
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// isOfWaiting reports whether a line says only that somebody has asked too early whether the manager is ready, which happens 20 times a
// second.
func isOfWaiting(line string) bool { return strings.Contains(line, "healthz check failed") }
