package realnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// containerdProgram and the others are found on the PATH.
const containerdProgram = "containerd"

// Packages are the Debian packages that real nodes need.
const Packages = "containerd runc containernetworking-plugins iptables conntrack iproute2 busybox-static"

// Preflight tells what this machine lacks for real nodes, and what to do about it.
func Preflight() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("real nodes need Linux, and this is %s: simulated nodes (up --nodes N) run everywhere", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("real nodes need root, as they make network devices and cgroups: " +
			"call kruise-local up with sudo, or use simulated nodes (up --nodes N)")
	}
	var missing []string
	for _, program := range []string{containerdProgram, "runc", "iptables", "conntrack"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if pluginFolder() == "" {
		missing = append(missing, "network plugins (bridge, host-local, loopback)")
	}
	if len(missing) > 0 {
		return fmt.Errorf("real nodes need %s: apt-get install -y %s", strings.Join(missing, ", "), Packages)
	}
	return nil
}

// pluginFolder is where the network plugins are: Debian's place, or that of everybody else; empty when they are missing.
func pluginFolder() string {
	for _, folder := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		complete := true
		for _, plugin := range []string{"bridge", "host-local", "loopback"} {
			if _, err := os.Stat(filepath.Join(folder, plugin)); err != nil {
				complete = false
			}
		}
		if complete {
			return folder
		}
	}
	return ""
}
