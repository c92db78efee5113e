package release

import (
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestAThirdVersionBesideTwo asks to roll back, once there are Pods of the second one, and goes on when that is back.
func TestAThirdVersionBesideTwo(t *testing.T) {
	blueGreen := batches(step("100%", ""))
	blueGreen.Style = v1beta1.RollingStyleBlueGreen
	w := newWorld(blueGreen)
	w.template("v2")
	w.wait()
	w.log = nil
	w.template("v3")
	w.wait()
	if !strings.Contains(w.status.Message, "put the old one back first") || len(w.log) > 0 {
		t.Errorf("says %q, does %v", w.status.Message, w.log)
	}
	wantShow(t, w, show{"Progressing", v1beta1.ReasonThirdVersion, 1, -1, "StepPaused", 10, ""})
	w.template("v2")
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, -1, "StepPaused", 10, ""})
	w = newWorld(blueGreen)
	w.template("v2")
	w.template("v3") // no Pod of v2 is there yet: nothing is to be gone back from
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, -1, "StepPaused", 10, ""})
}
