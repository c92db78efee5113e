package clusters

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestTheDemo runs make demo KIND=multicluster, and reads what it shows.
func TestTheDemo(t *testing.T) {
	e := scene.NewTest(t)
	root, err := cluster.Root()
	e.Must(err)
	demo := exec.CommandContext(e.Ctx, "go", "run", "./hack/demo", "-kind", "multicluster")
	demo.Dir = root
	began := time.Now()
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("it took %s", time.Since(began).Round(time.Second))
	rest := string(out)
	for _, shown := range []string{
		`UPDATED 2 of 10 .* WAVE canary  WavePaused`,
		`member-2 +Connected +4 +4 +4 `,
		`member-3 \(stopped\) +Unreachable +4 +4 +0 `,
		`member-3 +Connected +4 +4 +4 `,
		`UPDATED 10 of 10  UNAVAILABLE 0 of 2, [12] at most so far  WAVE -  updated`,
		`[12] were unavailable at a time at most, and the budget is 2`,
		`nothing of it is left in any cluster`,
		`All four control planes are gone`,
	} {
		at := regexp.MustCompile(shown).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("it does not show %q, or not in this order:\n%s", shown, out)
		}
		rest = rest[at[1]:]
	}
	if strings.Contains(string(out), "\x1b[") {
		t.Error("it draws a table where there is no terminal")
	}
}
