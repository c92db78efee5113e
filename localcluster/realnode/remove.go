package realnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/seed-69ecc383/kruise/localcluster/process"
)

// Remove ends all nodes of the site in dir and removes all that they left outside of it, whatever state they are in. No site there is fine.
func Remove(dir string, home process.Home) error {
	site, err := Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	nodes, err := site.nodes()
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if err := node.remove(home); err != nil {
			return fmt.Errorf("removing node %s: %w", node.Name, err)
		}
	}
	if err := site.removeNetwork(); err != nil {
		return err
	}
	if err := os.RemoveAll(site.runFolder()); err != nil {
		return fmt.Errorf("removing the real nodes' sockets: %w", err)
	}
	if err := os.Remove(runFolder); err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the real nodes' sockets: %w", err)
	}
	return nil
}

func (n Node) remove(home process.Home) error {
	processes := n.Processes()
	slices.Reverse(processes) // the kubelet would start again what it sees end
	for _, name := range processes {
		if err := home.Stop(name); err != nil {
			return err
		}
	}
	for _, step := range []func() error{n.killAll, n.removeShimSockets, n.removeNetworkNamespaces, n.unmountAll, n.removeCgroup, n.removeBridge} {
		if err := step(); err != nil {
			return err
		}
	}
	return os.RemoveAll(n.runFolder())
}

// killAll ends the containers and the shims that hold them.
func (n Node) killAll() error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		contained, err := n.cgroupProcesses()
		if err != nil {
			return err
		}
		shims, err := n.shims()
		if err != nil {
			return err
		}
		all := append(shims, contained...)
		if len(all) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("ending containers: processes %v are still there", all)
		}
		for _, pid := range all {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("ending containers: %w", err)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// shims are the processes that were told of the node's containerd.
func (n Node) shims() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process that went meanwhile reads as empty; so does one that has ended and waits for its parent.
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err == nil && bytes.Contains(line, []byte("containerd-shim")) && bytes.Contains(line, []byte(n.Socket())) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// removeShimSockets removes the sockets that shims leave behind when they are killed: containerd keeps them in one folder for all that run on a
// machine, and notes where in the folder of each container.
func (n Node) removeShimSockets() error {
	notes, err := filepath.Glob(filepath.Join(n.runFolder(), "containerd", "io.containerd.runtime.v2.task", "*", "*", "address"))
	if err != nil {
		return fmt.Errorf("finding shims' sockets: %w", err)
	}
	for _, note := range notes {
		address, err := os.ReadFile(note)
		if err != nil {
			return fmt.Errorf("finding shims' sockets: %w", err)
		}
		path, isSocket := strings.CutPrefix(strings.TrimSpace(string(address)), "unix://")
		if !isSocket {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing shims' sockets: %w", err)
		}
	}
	return nil
}

// cniRecords is where the network plugins remember what they gave to whom.
const cniRecords = "/var/lib/cni/results"

// removeNetworkNamespaces removes the network namespaces of the node's Pods, and with them the devices inside.
func (n Node) removeNetworkNamespaces() error {
	records, err := filepath.Glob(filepath.Join(cniRecords, n.cniNetwork()+"-*"))
	if err != nil {
		return fmt.Errorf("finding network namespaces: %w", err)
	}
	loopbacks, err := filepath.Glob(filepath.Join(cniRecords, "cni-loopback-*"))
	if err != nil {
		return fmt.Errorf("finding network namespaces: %w", err)
	}
	containers := map[string]bool{}
	for _, record := range records {
		var pod struct {
			ContainerID string `json:"containerId"`
			Result      struct {
				Interfaces []struct {
					Sandbox string `json:"sandbox"`
				} `json:"interfaces"`
			} `json:"result"`
		}
		content, err := os.ReadFile(record)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("finding network namespaces: %w", err)
		}
		if err := json.Unmarshal(content, &pod); err != nil {
			return fmt.Errorf("reading %s: %w", record, err)
		}
		containers[pod.ContainerID] = true
		for _, device := range pod.Result.Interfaces {
			if err := removeNamespace(device.Sandbox); err != nil {
				return err
			}
		}
		if err := os.Remove(record); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", record, err)
		}
	}
	for _, record := range loopbacks {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(record), "cni-loopback-"), "-")
		if containers[id] {
			if err := os.Remove(record); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("removing %s: %w", record, err)
			}
		}
	}
	return nil
}

func removeNamespace(path string) error {
	name := filepath.Base(path)
	if !strings.HasPrefix(name, "cni-") {
		return nil // not made for a Pod
	}
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("releasing network namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing network namespace %s: %w", name, err)
	}
	return nil
}

// unmountAll releases what is mounted in the node's folders, the innermost first.
func (n Node) unmountAll() error {
	for _, folder := range []string{n.path(), n.runFolder()} {
		mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(folder))
		if err != nil {
			return fmt.Errorf("listing mounts: %w", err)
		}
		for _, mount := range slices.Backward(mounts) {
			if err := unix.Unmount(mount.Mountpoint, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("unmounting %s: %w", mount.Mountpoint, err)
			}
		}
	}
	return nil
}
