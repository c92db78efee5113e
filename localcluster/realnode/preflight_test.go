package realnode

import (
	"os"
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
	if !strings.Contains(string(script), "packages=("+Packages+")") {
		t.Errorf("hack/real-nodes.sh does not install %s", Packages)
	}
}
