//go:build unix

package plugin

import (
	"os/exec"
	"syscall"
)

// together has a program end with all that it has started: one that hangs is run again for the next pull, and must not leave a crowd behind.
func together(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
