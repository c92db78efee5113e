package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tetherEnv names the lock file that a child holds open as file 3.
	tetherEnv = "KRUISE_LOCAL_TETHER"
	// OwnerEnv names a process id: a part ends when that process has.
	OwnerEnv = "KRUISE_LOCAL_OWNER"

	tetherFile     = 3
	tetherInterval = 2 * time.Second
)

// Tether ties this process, a part started by Home.Start, to its cluster: it exits when the cluster's folder or its
// owner process is gone, so that deleting a test's temporary folder never leaves a server behind. Without effect in a
// process that Home.Start did not start.
func Tether() error {
	path := os.Getenv(tetherEnv)
	if path == "" {
		return nil
	}
	unix.CloseOnExec(tetherFile) // children of this part must not keep its lock
	file := os.NewFile(tetherFile, path)
	mine, err := file.Stat()
	if err != nil {
		return fmt.Errorf("inspecting the inherited lock file: %w", err)
	}
	owner, _ := strconv.Atoi(os.Getenv(OwnerEnv)) // no owner: 0
	go func() {
		defer file.Close() // never reached: keeps the lock referenced as long as the process lives
		for {
			time.Sleep(tetherInterval)
			if now, err := os.Stat(path); err != nil || !os.SameFile(mine, now) {
				fmt.Fprintf(os.Stderr, "exiting: %s is gone\n", path)
				os.Exit(1)
			}
			if owner > 0 && errors.Is(unix.Kill(owner, 0), unix.ESRCH) {
				fmt.Fprintf(os.Stderr, "exiting: the owner, process %d, is gone\n", owner)
				os.Exit(1)
			}
		}
	}()
	return nil
}
