package realnode

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/localcluster/internal/needs"
)

func TestAMachineWithEverythingPasses(t *testing.T) {
	needs.RealNodes(t)
	if err := Preflight(); err != nil {
		t.Error(err)
	}
}

func TestWhatAMachineLacksIsNamedWithTheCommandThatInstallsIt(t *testing.T) {
	needs.RealNodes(t) // the first lack of a user that is not root is another one
	t.Setenv("PATH", t.TempDir())
	err := Preflight()
	if err == nil {
		t.Fatal("a machine without any program passes")
	}
	for _, want := range []string{"containerd", "runc", "iptables", "conntrack", "apt-get install -y containerd runc"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %s", err, want)
		}
	}
}

func TestTheScriptInstallsThePackagesThatPreflightNames(t *testing.T) {
	script, err := os.ReadFile("../../hack/real-nodes.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "packages=("+Packages+" prometheus)") { // and a Prometheus for tests of analyses
		t.Errorf("hack/real-nodes.sh does not install %s", Packages)
	}
}

// TestMakeTestSaysWhatItLeavesOut calls it where there is neither a container runtime nor apt-get: it does not fail, and says so once at its end.
// What it would run is replaced by nothing.
func TestMakeTestSaysWhatItLeavesOut(t *testing.T) {
	make, err := exec.LookPath("make")
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	for _, tool := range []string{"bash", "dirname", "env", "git", "gzip", "paste", "sed", "uname"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(tools, tool)); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), make, "-C", "../..", "test", "MAKE=true")
	command.Env = []string{"PATH=" + tools, "HOME=" + t.TempDir()}
	out, err := command.CombinedOutput()
	if err != nil || strings.Count(string(out), "NOT RUN: the tests on real nodes, because real nodes need ") != 1 ||
		!strings.Contains(string(out), "call make test-real as root") {
		t.Errorf("%v:\n%s", err, out)
	}
}
