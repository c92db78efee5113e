package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// RunForeign runs the program that os.Args[1:] names until it ends, and returns its exit code. It stands between the cluster and a foreign
// program, which would hand on to its own children what marks a part of the cluster as running.
func RunForeign() int {
	runtime.LockOSThread() // the signal below comes when this thread ends
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, tetherEnv+"=") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}
