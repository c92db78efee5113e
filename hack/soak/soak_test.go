package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// program writes a test program in which these seeds are broken; it gives up after the second broken one, and lists the seeds that it ran.
func program(t *testing.T, dir, broken string) *suite {
	t.Helper()
	script := `#!/bin/sh
echo "$KRUISE_FIRST_SEED $KRUISE_SEEDS" >> ` + filepath.Join(dir, "calls") + `
code=0
found=0
seed=$KRUISE_FIRST_SEED
while [ $seed -lt $((KRUISE_FIRST_SEED + KRUISE_SEEDS)) ]; do
  for b in ` + broken + `; do
    if [ $seed = $b ]; then
      echo "    suite.go:1: KRUISE_SEED=$seed: more Pods than replicas"
      code=1
      found=$((found + 1))
      if [ $found = 2 ]; then exit 1; fi
    fi
  done
  seed=$((seed + 1))
done
exit $code
`
	path := filepath.Join(dir, "web.test")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := newSuite("./internal/controller/web", "TestPromises", path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

func TestEveryBrokenSeedHasALineAndTheRestIsRun(t *testing.T) {
	dir := t.TempDir()
	s := soak{suites: []*suite{program(t, dir, "3 5 8 21")}, seeds: 25, chunk: 10, workers: 2, broken: filepath.Join(dir, "broken.txt")}
	count, err := s.run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if count != 4 || s.ran.Load() != 25 {
		t.Errorf("%d of %d seeds are broken, want 4 of 25", count, s.ran.Load())
	}
	for i, line := range lines(t, s.broken) {
		seed := []int{3, 5, 8, 21}[i]
		want := "KRUISE_SEED=" + strconv.Itoa(seed) + " go test ./internal/controller/web -run '^TestPromises$' -v   # more Pods than replicas"
		if line != want {
			t.Errorf("got %q, want %q", line, want)
		}
	}
	if got, want := strings.Join(lines(t, filepath.Join(dir, "calls")), ", "), "0 10, 6 10, 9 10, 19 6, 22 3"; got != want {
		t.Errorf("ran from and how many: %s, want %s", got, want)
	}
}

func TestASoakGoesOnUntilTheProgramChanges(t *testing.T) {
	dir := t.TempDir()
	run := func(broken string, seeds int64) int64 {
		t.Helper()
		s := soak{suites: []*suite{program(t, dir, broken)}, seeds: seeds, chunk: 10, workers: 1, broken: filepath.Join(dir, "broken.txt")}
		if _, err := s.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		return s.ran.Load()
	}
	for _, step := range []struct {
		broken      string
		seeds, want int64
	}{{"99", 20, 20}, {"99", 20, 0}, {"99", 35, 15}, {"98", 35, 35}} {
		if got := run(step.broken, step.seeds); got != step.want {
			t.Errorf("to %d: ran %d seeds, want %d", step.seeds, got, step.want)
		}
	}
}

func TestAProgramThatEndsWithoutASeedIsReported(t *testing.T) {
	dir := t.TempDir()
	member := program(t, dir, "99")
	if err := os.WriteFile(member.program, []byte("#!/bin/sh\necho 'panic: index out of range'\nexit 2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := soak{suites: []*suite{member}, seeds: 5, chunk: 10, workers: 1, broken: filepath.Join(dir, "broken.txt")}
	if count, err := s.run(context.Background()); err != nil || count != 1 {
		t.Fatalf("%d broken (%v), want 1", count, err)
	}
	want := "KRUISE_FIRST_SEED=0 KRUISE_SEEDS=5 go test ./internal/controller/web -run '^TestPromises$' -v   # it ended without naming a seed: panic: index out of range"
	if got := lines(t, s.broken)[0]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSuitesGoOnForTheSameTimeUntilTheTotal runs a suite that is ten times slower than another one: both reach the seeds of each, and then the
// faster one runs more.
func TestSuitesGoOnForTheSameTimeUntilTheTotal(t *testing.T) {
	slow, fast := &suite{path: "slow"}, &suite{path: "fast"}
	dir := t.TempDir()
	for _, member := range []*suite{slow, fast} {
		member.program = filepath.Join(dir, member.path)
	}
	s := soak{suites: []*suite{slow, fast}, seeds: 20, total: 500, chunk: 10}
	for {
		member, count := s.take()
		if member == nil {
			break
		}
		took := time.Duration(count) * time.Second
		if member == slow {
			took *= 10
		}
		if err := s.put(member, member.next+count, took); err != nil {
			t.Fatal(err)
		}
	}
	if sum := slow.next + fast.next; sum != 500 || slow.next < 20 || slow.next > 60 {
		t.Errorf("the slow one has run %d seeds and the fast one %d, want 500 together, and 20 to 60 of the slow one", slow.next, fast.next)
	}
}

// TestAProgramLeavesTheProcessorToOthers looks at the priority that a program runs with.
func TestAProgramLeavesTheProcessorToOthers(t *testing.T) {
	output, err := behindOthers(t.Context(), "nice").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(output)); got != "19" {
		t.Errorf("it runs at niceness %s, want 19", got)
	}
}

// TestAllPromisesAreFound: a package may have more than one test of them, and each goes on from where it was.
func TestAllPromisesAreFound(t *testing.T) {
	t.Chdir("../..")
	found, err := suites(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tests := found["./internal/controller/uniteddeployment"]
	slices.Sort(tests)
	if want := []string{"TestPromises", "TestPromisesOverClusters"}; !slices.Equal(tests, want) {
		t.Errorf("of UnitedDeployment, it finds %v, want %v", tests, want)
	}
	if tests := found["./test/long/faults"]; tests != nil {
		t.Errorf("it finds %v, which need a cluster", tests)
	}
	one, over := &suite{program: "a/ud.test", test: tests[0]}, &suite{program: "a/ud.test", test: tests[1]}
	if one.record() != "a/ud.reached" || over.record() != "a/udOverClusters.reached" {
		t.Errorf("it records in %s and %s", one.record(), over.record())
	}
}
