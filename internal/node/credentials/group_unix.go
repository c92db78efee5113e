//go:build unix

package credentials

import (
	"os/exec"
	"syscall"
)

// killGroup has a plugin killed with all processes that it has started: one that hangs runs again for the next pull, and must leave none
// behind.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
