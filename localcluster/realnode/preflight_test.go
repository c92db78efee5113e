package realnode

import (
	"strings"
	"testing"
)

func TestAMachineWithEverythingPasses(t *testing.T) {
	if err := Preflight(); err != nil {
		t.Error(err)
	}
}

func TestWhatAMachineLacksIsNamedWithTheCommandThatInstallsIt(t *testing.T) {
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
