package realnode

import (
	"bytes"
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
		processes := node.Processes()
		slices.Reverse(processes) // the kubelet would start again what it sees end
		for _, name := range processes {
			if err := home.Stop(name); err != nil {
				return err
			}
		}
	}
	unlock, err := lockMachine()
	if err != nil {
		return err
	}
	defer unlock()
	if err := site.removeTraces(); err != nil {
		return err
	}
	return restore()
}

// sweep removes what sites left whose folders were removed with no regard to what they hold, as a killed test's are. Their kubelets and
// containerds end by themselves when that happens; containers do not. The caller has the lock.
func sweep() error {
	homes, err := filepath.Glob(filepath.Join(runFolder, "*", "home"))
	if err != nil {
		return fmt.Errorf("looking for left real nodes: %w", err)
	}
	for _, file := range homes {
		dir, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("looking for left real nodes: %w", err)
		}
		number, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue // not a site
		}
		site := Site{Dir: string(dir), Number: number}
		if now, err := Open(site.Dir); err == nil && now.Number == number {
			continue
		}
		if err := site.removeTraces(); err != nil {
			return fmt.Errorf("removing what is left of the real nodes of %s: %w", site.Dir, err)
		}
	}
	return nil
}

// removeTraces removes what the site's nodes left outside of its folder, and releases what they have mounted inside.
func (s Site) removeTraces() error {
	nodes, err := s.nodes()
	if err != nil {
		return err
	}
	for _, node := range nodes {
		for _, step := range []func() error{
			node.killAll, node.removeShimSockets, node.removeNetworkRecords, node.removeLogLinks, node.removeBridge, node.unmountAll,
			node.removeCgroup,
		} {
			if err := step(); err != nil {
				return fmt.Errorf("removing node %s: %w", node.Name, err)
			}
		}
	}
	if err := s.removeNetwork(); err != nil {
		return err
	}
	if err := os.RemoveAll(s.runFolder()); err != nil {
		return fmt.Errorf("removing the real nodes' sockets: %w", err)
	}
	return nil
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
		all := slices.Concat(shims, contained)
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

// removeShimSockets removes the sockets that shims leave behind when they are killed: containerd keeps them in one folder for all that run
// on a machine, and notes where in the folder of each container.
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

// removeNetworkRecords removes what the network plugins remember of the node's Pods: each record names the Pod's network namespace, which
// is a file in the node's folder.
func (n Node) removeNetworkRecords() error {
	records, err := filepath.Glob(filepath.Join(cniRecords, "*"))
	if err != nil {
		return fmt.Errorf("finding records of networks: %w", err)
	}
	for _, record := range records {
		content, err := os.ReadFile(record)
		if err == nil && bytes.Contains(content, []byte(n.runFolder()+"/")) {
			err = os.Remove(record)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // another node's, whose Pod has ended
			return fmt.Errorf("removing records of networks: %w", err)
		}
	}
	return nil
}

// removeLogLinks removes the links to the logs of the node's containers.
func (n Node) removeLogLinks() error {
	links, err := filepath.Glob(filepath.Join(logLinks, "*.log"))
	if err != nil {
		return fmt.Errorf("finding links to logs: %w", err)
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(target, n.path("pod-logs")+"/") {
			err = os.Remove(link)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EINVAL) { // gone meanwhile, or not a link
			return fmt.Errorf("removing links to logs: %w", err)
		}
	}
	return nil
}

// unmountAll releases what is mounted in the node's folders, the innermost first.
func (n Node) unmountAll() error {
	for _, folder := range []string{n.path(), n.runFolder()} {
		folder, err := filepath.EvalSymlinks(folder) // as the kernel lists them
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("listing mounts: %w", err)
		}
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
