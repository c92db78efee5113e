package realnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// runFolder holds sockets and what lives no longer than the machine is on: paths of sockets must be short. It has a folder for each site,
// which is the site's claim to its number.
const runFolder = "/run/kruise-local"

// machine is what this machine was like before its first site, so that the last one to go can leave it so.
type machine struct {
	// Settings are kernel settings that nodes change, by path below /proc/sys.
	Settings map[string]string `json:"settings"`
	// Absent are the folders that nodes make and that were not there.
	Absent []string `json:"absent"`
}

// settings are what nodes need of the kernel, and what the kubelet sets whether one likes it or not.
func settings() []string {
	return []string{
		forwarding, "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
		"kernel/keys/root_maxbytes",
	}
}

const (
	devicePlugins = "/var/lib/kubelet/device-plugins"
	// cniRecords is where the network plugins remember what they gave to whom.
	cniRecords = "/var/lib/cni/results"
	// logLinks is where the kubelet puts links to containers' logs.
	logLinks = "/var/log/containers"
)

// sharedFolders are those that programs of nodes insist on, whatever folder they are told to use; inner ones come first.
func sharedFolders() []string {
	return []string{
		devicePlugins, filepath.Dir(devicePlugins), cniRecords, filepath.Dir(cniRecords), logLinks, "/run/containerd/s", "/run/containerd",
	}
}

func machineFile() string { return filepath.Join(runFolder, "machine.json") }

// lockMachine keeps other sites from coming and going until the returned function is called.
func lockMachine() (unlock func(), err error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if err := os.MkdirAll(runFolder, 0o755); err != nil {
			return nil, fmt.Errorf("locking %s: %w", runFolder, err)
		}
		folder, err := os.Open(runFolder)
		if errors.Is(err, os.ErrNotExist) {
			continue // the last site has just gone
		}
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", runFolder, err)
		}
		err = unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && sameFile(folder, runFolder) {
			return func() { folder.Close() }, nil
		}
		folder.Close()
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return nil, fmt.Errorf("locking %s: %w", runFolder, err)
		}
	}
}

func sameFile(file *os.File, path string) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(mine, now)
}

// remember notes what the machine is like, unless an earlier site has. The caller has the lock.
func remember() error {
	if _, err := os.Stat(machineFile()); err == nil {
		return nil
	}
	m := machine{Settings: map[string]string{}}
	for _, name := range settings() {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("noting kernel setting %s: %w", name, err)
		}
		m.Settings[name] = string(value)
	}
	for _, folder := range sharedFolders() {
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
			m.Absent = append(m.Absent, folder)
		}
	}
	return writeJSON(machineFile(), m)
}

// restore leaves the machine as it was before its first site, if no site is left. The caller has the lock.
func restore() error {
	entries, err := os.ReadDir(runFolder)
	if err != nil {
		return fmt.Errorf("looking for other real nodes: %w", err)
	}
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err == nil {
			return nil // a site that goes on
		}
	}
	var before machine
	content, err := os.ReadFile(machineFile())
	if err == nil {
		err = json.Unmarshal(content, &before)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) { // after the machine was off, there is nothing to restore
		return fmt.Errorf("reading what this machine was like: %w", err)
	}
	for name, value := range before.Settings {
		if err := set(name, value); err != nil {
			return err
		}
	}
	for _, folder := range before.Absent {
		if err := removeShared(folder); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(runFolder); err != nil {
		return fmt.Errorf("removing the real nodes' sockets: %w", err)
	}
	return nil
}

// removeShared removes a folder that was not there before nodes were, unless somebody else has put something into it meanwhile.
func removeShared(folder string) error {
	if folder == devicePlugins {
		for _, name := range []string{"kubelet.sock", "kubelet_internal_checkpoint"} {
			if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("removing %s: %w", folder, err)
			}
		}
	}
	if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("removing %s: %w", folder, err)
	}
	return nil
}

// set changes a kernel setting if it has another value.
func set(name, value string) error {
	path := filepath.Join("/proc/sys", name)
	now, err := os.ReadFile(path)
	if err == nil && string(now) != value {
		err = os.WriteFile(path, []byte(value), 0)
	}
	if err != nil {
		return fmt.Errorf("changing kernel setting %s: %w", name, err)
	}
	return nil
}

// writeJSON writes a file whole or not at all.
func writeJSON(path string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	draft := path + ".new"
	if err := os.WriteFile(draft, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
