package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/seed-69ecc383/kruise/localcluster/realnode"
)

// site tells what belongs to the cluster's real nodes, while it is there.
type site struct {
	number string
	run    string // the folder of sockets
	// veths and sockets are devices and files whose names do not tell whose they are, as they were while the nodes ran.
	veths, sockets []string
}

func (r realNodes) leaveNoTrace() {
	s := r.site()
	for kind, found := range r.traces(s) {
		if len(found) == 0 {
			r.Errorf("no %s while nodes run: the search is broken", kind)
		}
	}
	for _, pid := range processes(r.T, r.dir) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			r.Error(err)
		}
	}
	kruiseLocal(r.T, r.dir, "down")
	for kind, found := range r.traces(s) {
		if len(found) > 0 {
			r.Errorf("%s are left:\n%s", kind, strings.Join(found, "\n"))
		}
	}
	if _, err := os.Stat(r.dir); !os.IsNotExist(err) {
		r.Errorf("the folder is still there: %v", err)
	}
}

func (r realNodes) site() site {
	r.Helper()
	opened, err := realnode.Open(filepath.Join(r.dir, "nodes"))
	if err != nil {
		r.Fatal(err)
	}
	s := site{number: strconv.Itoa(opened.Number)}
	s.run = "/run/kruise-local/" + s.number
	for _, port := range r.glob("/sys/class/net/krl" + s.number + "-*/brif/*") {
		s.veths = append(s.veths, filepath.Base(port))
	}
	for _, note := range r.glob(s.run + "/*/containerd/io.containerd.runtime.v2.task/k8s.io/*/address") {
		s.sockets = append(s.sockets, strings.TrimPrefix(r.read(note), "unix://"))
	}
	return s
}

// traces are all that is on this machine because of the nodes, by kind.
func (r realNodes) traces(s site) map[string][]string {
	r.Helper()
	ours := func(text string) bool { return strings.Contains(text, r.dir+"/") || strings.Contains(text, s.run+"/") }
	rules, err := exec.Command("iptables-save").Output()
	if err != nil {
		r.Fatal(err)
	}
	return map[string][]string{
		"processes":      slices.DeleteFunc(r.contents("/proc/[0-9]*/cmdline"), func(line string) bool { return !ours(line) }),
		"mounts":         slices.DeleteFunc(strings.Split(r.read("/proc/self/mountinfo"), "\n"), func(line string) bool { return !ours(line) }),
		"devices":        r.devices(s),
		"cgroups":        append(r.glob("/sys/fs/cgroup/kruise-local-"+s.number+"-*"), r.glob("/sys/fs/cgroup/*/kruise-local-"+s.number+"-*")...),
		"rules":          slices.DeleteFunc(strings.Split(string(rules), "\n"), func(line string) bool { return !strings.Contains(line, "KRUISE-LOCAL-"+s.number) }),
		"networks":       slices.DeleteFunc(r.contents("/var/lib/cni/results/*"), func(record string) bool { return !ours(record) }),
		"links to logs":  r.logLinks(),
		"shims' sockets": slices.DeleteFunc(slices.Clone(s.sockets), func(path string) bool { return len(r.glob(path)) == 0 }),
		"sockets":        r.glob(s.run),
	}
}

func (r realNodes) devices(s site) []string {
	r.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		r.Fatal(err)
	}
	var found []string
	for _, device := range interfaces {
		if strings.HasPrefix(device.Name, "krl"+s.number+"-") || slices.Contains(s.veths, device.Name) {
			found = append(found, device.Name)
		}
	}
	return found
}

func (r realNodes) logLinks() []string {
	var found []string
	for _, link := range r.glob("/var/log/containers/*") {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, r.dir+"/") {
			found = append(found, link)
		}
	}
	return found
}

func (r realNodes) glob(pattern string) []string {
	r.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		r.Fatal(err)
	}
	return found
}

func (r realNodes) read(path string) string {
	r.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		r.Fatal(err)
	}
	return string(content)
}

// contents are those of all files that match; files may go while they are read.
func (r realNodes) contents(pattern string) []string {
	r.Helper()
	var all []string
	for _, path := range r.glob(pattern) {
		if content, err := os.ReadFile(path); err == nil {
			all = append(all, strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
	return all
}
