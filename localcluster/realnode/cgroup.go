package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// hierarchies are the folders in which cgroups are: one for each controller of version 1, or the one of version 2, or both.
func hierarchies() ([]string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("listing cgroup hierarchies: %w", err)
	}
	var folders []string
	for _, mount := range mounts {
		folders = append(folders, mount.Mountpoint)
	}
	return folders, nil
}

// makeCgroup makes the node's cgroup in every hierarchy, ready to have children.
func (n Node) makeCgroup() error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, parent := range folders {
		folder := filepath.Join(parent, n.cgroup())
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("making cgroup %s: %w", folder, err)
		}
		if err := inherit(parent, folder); err != nil {
			return fmt.Errorf("making cgroup %s: %w", folder, err)
		}
	}
	return nil
}

// inherit gives a new cgroup the processors and memory of its parent, which version 1 leaves empty, or the controllers, which version 2
// leaves out.
func inherit(parent, folder string) error {
	for _, setting := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, setting))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, setting), value, 0)
		}
		if err != nil {
			return err
		}
	}
	controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return nil //nolint:nilerr // not version 2
	}
	for _, controller := range strings.Fields(string(controllers)) {
		for _, group := range []string{parent, folder} {
			if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// cgroupProcesses are all processes in the node's cgroup and those below.
func (n Node) cgroupProcesses() ([]int, error) {
	var found []int
	err := n.eachCgroup(func(folder string) error {
		content, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, line := range strings.Fields(string(content)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
				found = append(found, pid)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the processes of node %s: %w", n.Name, err)
	}
	return found, nil
}

// eachCgroup visits the node's cgroups, the innermost first.
func (n Node) eachCgroup(visit func(folder string) error) error {
	parents, err := hierarchies()
	if err != nil {
		return err
	}
	for _, parent := range parents {
		var folders []string
		err := filepath.WalkDir(filepath.Join(parent, n.cgroup()), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			return err
		})
		if err != nil {
			return err
		}
		slices.Reverse(folders)
		for _, folder := range folders {
			if err := visit(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n Node) removeCgroup() error {
	deadline := time.Now().Add(10 * time.Second)
	return n.eachCgroup(func(folder string) error {
		for {
			err := unix.Rmdir(folder)
			if err == nil || errors.Is(err, unix.ENOENT) {
				return nil
			}
			// A process that was killed is in its cgroup until the kernel has cleared up behind it.
			if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
				return fmt.Errorf("removing cgroup %s: %w", folder, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}
