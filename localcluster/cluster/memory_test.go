package cluster

import (
	"slices"
	"testing"
)

func TestServersRelaxTheirCollectionOfGarbage(t *testing.T) {
	t.Setenv("GOGC", "")
	if memoryOfMachine() < 1<<28 {
		t.Errorf("the machine has %d bytes of memory", memoryOfMachine())
	}
	if got := relaxedGC(); len(got) != 2 || !slices.Contains(got, "GOGC=400") {
		t.Errorf("the environment of servers is %q", got)
	}
	t.Setenv("GOGC", "50")
	if got := relaxedGC(); got != nil {
		t.Errorf("with GOGC set, the environment of servers is %q", got)
	}
}
