package realnode

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-69ecc383/kruise/localcluster/internal/needs"
	"github.com/seed-69ecc383/kruise/localcluster/process"
)

// found makes a site with one node that is prepared and not started.
func found(t *testing.T, dir string) Site {
	t.Helper()
	site, err := Found(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Remove(dir, process.Home{Run: filepath.Join(dir, "run")}); err != nil {
			t.Error(err)
		}
	})
	if err := site.EnsureNetwork("10.96.0.1", 6443); err != nil {
		t.Fatal(err)
	}
	if err := site.Node(0).Prepare(Credentials{}); err != nil {
		t.Fatal(err)
	}
	return site
}

// there tells what a prepared node has outside of its site's folder.
func there(n Node) map[string]bool {
	_, bridge := net.InterfaceByName(n.bridge())
	_, cgroup := os.Stat(filepath.Join("/sys/fs/cgroup/pids", n.cgroup()))
	if errors.Is(cgroup, os.ErrNotExist) { // version 2
		_, cgroup = os.Stat(filepath.Join("/sys/fs/cgroup", n.cgroup()))
	}
	_, run := os.Stat(n.runFolder())
	return map[string]bool{
		"bridge": bridge == nil, "cgroup": cgroup == nil, "folder of sockets": run == nil,
		"rules for addresses":  chain{table: "nat", name: n.chains("", 0)[0].name}.exists(),
		"rules for forwarding": chain{table: "filter", name: n.chains("", 0)[0].name}.exists(),
	}
}

func check(t *testing.T, n Node, want bool) {
	t.Helper()
	for what, is := range there(n) {
		if is != want {
			t.Errorf("%s of site %d is there: %t, want %t", what, n.Number, is, want)
		}
	}
}

func TestASiteLeavesNothingBehind(t *testing.T) {
	needs.RealNodes(t)
	dir := t.TempDir()
	site := found(t, dir)
	check(t, site.Node(0), true)
	if again := found(t, dir); again.Number != site.Number {
		t.Errorf("founded again, the site has number %d, want %d as before", again.Number, site.Number)
	}
	if err := Remove(dir, process.Home{Run: filepath.Join(dir, "run")}); err != nil {
		t.Fatal(err)
	}
	check(t, site.Node(0), false)
}

func TestTheNextSiteRemovesWhatOneWithoutFolderLeft(t *testing.T) {
	needs.RealNodes(t)
	dir := t.TempDir()
	lost, kept := found(t, filepath.Join(dir, "lost")), found(t, filepath.Join(dir, "kept"))
	if err := os.RemoveAll(lost.Dir); err != nil {
		t.Fatal(err)
	}
	check(t, lost.Node(0), true)
	found(t, filepath.Join(dir, "next"))
	check(t, lost.Node(0), false)
	check(t, kept.Node(0), true)
}

func TestSettingsOfTheMachineComeBackWithTheLastSite(t *testing.T) {
	needs.RealNodes(t)
	setting := filepath.Join("/proc/sys", forwarding)
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Fatal(err)
	}
	if sites, err := filepath.Glob(filepath.Join(runFolder, "*", "home")); err == nil && len(sites) == 0 {
		usual := string(before)
		t.Cleanup(func() {
			if err := set(forwarding, usual); err != nil {
				t.Error(err)
			}
		})
		before = []byte("0\n") // which nobody relies on now
		if err := set(forwarding, string(before)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	found(t, dir)
	if now, err := os.ReadFile(setting); err != nil || string(now) != "1\n" {
		t.Errorf("the machine forwards packets: %q (%v), want 1", now, err)
	}
	if err := Remove(dir, process.Home{Run: filepath.Join(dir, "run")}); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(setting); err != nil || string(now) != string(before) {
		t.Errorf("the machine forwards packets: %q (%v), want %q as before", now, err, before)
	}
}
