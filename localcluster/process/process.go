// Package process runs the parts of a local cluster as detached child processes.
//
// Promise: whether a part runs is never guessed from a process id, which the system may have given to somebody else.
// Each child inherits a locked file; the kernel drops the lock when the child is gone, however it went. A part runs
// exactly as long as its file is locked.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrRunning says that a part was asked to start while it runs.
var ErrRunning = errors.New("already running")

// Spec describes one child.
type Spec struct {
	// Name is what the part is called: in its lock file, its log file and as its argument zero.
	Name string
	// Path is the executable; empty means this one again, which then acts by its argument zero.
	Path string
	// Args are the arguments after argument zero.
	Args []string
	// Env is added to this process's environment.
	Env []string
}

// Home is where parts leave their traces: one lock file and one log file each.
type Home struct {
	Run  string // directory of lock files
	Logs string // directory of log files
}

// LogFile is the path of a part's log.
func (h Home) LogFile(name string) string { return filepath.Join(h.Logs, name+".log") }

func (h Home) lockFile(name string) string { return filepath.Join(h.Run, name+".pid") }

// Names lists the parts that were ever started here, running or not.
func (h Home) Names() ([]string, error) {
	entries, err := os.ReadDir(h.Run)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing parts: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".pid"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// Child is a started part, while its parent lives.
type Child struct {
	Name string
	Pid  int
	// Exited is closed when the part ends; its error is then in Err.
	Exited chan struct{}
	Err    error
}

// Start runs a part in a session of its own, its output appended to its log. The part outlives this process.
func (h Home) Start(spec Spec) (*Child, error) {
	for _, dir := range []string{h.Run, h.Logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
		}
	}
	lock, err := h.lock(spec.Name)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	defer lock.Close()
	log, err := os.OpenFile(h.LogFile(spec.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	defer log.Close()
	path := spec.Path
	if path == "" {
		if path, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
		}
	}
	cmd := &exec.Cmd{
		Path:       path,
		Args:       append([]string{spec.Name}, spec.Args...),
		Env:        append(append(os.Environ(), tetherEnv+"="+h.lockFile(spec.Name)), spec.Env...),
		Dir:        h.Run,
		Stdout:     log,
		Stderr:     log,
		ExtraFiles: []*os.File{lock},
		// A session of its own: neither Ctrl-C nor a closed terminal reaches it, and its group can be ended as one.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	child := &Child{Name: spec.Name, Pid: cmd.Process.Pid, Exited: make(chan struct{})}
	go func() {
		child.Err = cmd.Wait()
		close(child.Exited)
	}()
	if err := writePid(lock, child.Pid); err != nil {
		return nil, errors.Join(err, h.Stop(spec.Name))
	}
	return child, nil
}

// lock takes a part's lock file for the child that is about to start.
func (h Home) lock(name string) (*os.File, error) {
	file, err := os.OpenFile(h.lockFile(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// Somebody who merely asks whether the part runs holds the lock for an instant: look again before believing it.
	for attempt := 0; ; attempt++ {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if attempt == 5 {
			file.Close()
			return nil, ErrRunning
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func writePid(lock *os.File, pid int) error {
	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("recording process id: %w", err)
	}
	if _, err := lock.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0); err != nil {
		return fmt.Errorf("recording process id: %w", err)
	}
	return nil
}

// Alive reports whether a part runs, and its process id if so.
func (h Home) Alive(name string) (pid int, alive bool) {
	file, err := os.Open(h.lockFile(name))
	if err != nil {
		return 0, false
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
		return 0, false
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return 0, true
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(string(content))) // 0 while the parent has not written it yet
	return pid, true
}

// Stop ends a part and all of its process group at once, and returns when it is gone. A part that does not run is fine.
//
// There is no gentle phase: the only things that stop are about to be thrown away or restarted from etcd's log.
func (h Home) Stop(name string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		pid, alive := h.Alive(name)
		if !alive {
			return nil
		}
		if pid > 1 {
			// ESRCH: it went between the two looks; the next look tells.
			if err := unix.Kill(-pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("stopping %s (process %d): %w", name, pid, err)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("stopping %s: process %d is still there after 10s", name, pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Forget removes the lock file of a part that is gone.
func (h Home) Forget(name string) error {
	if err := os.Remove(h.lockFile(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forgetting %s: %w", name, err)
	}
	return nil
}
