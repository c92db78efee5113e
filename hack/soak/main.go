// Command soak runs the promises of all controllers over many seeds: each seed is a simulated cluster full of faults, whose history is
// checked.
//
//	go run ./hack/soak -seeds 100000
//	go run ./hack/soak -seeds 10000 -total 1000000
//
// Every suite runs -seeds seeds. With -total they go on until all of them together have run so many, each for as long as the others: the
// clusters of some take ten times longer than those of others.
//
// It goes on where it was when it ended, as long as the tests and what they test are the same. A line for each seed in which a promise was
// broken, with the command that repeats it, goes to broken.txt in the folder of -out. It leaves the processors to whoever else wants them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	promises = "TestPromises"
	// everything is the module's packages.
	everything = "./..."
)

func main() {
	seeds := flag.Int64("seeds", 100_000, "seeds of each suite, from 0")
	total := flag.Int64("total", 0, "seeds of all suites together")
	chunk := flag.Int64("chunk", 500, "seeds that a process runs before it is recorded that they hold")
	workers := flag.Int("workers", runtime.NumCPU(), "processes at a time")
	out := flag.String("out", "dist/soak", "folder of the test programs, of what was reached, and of broken.txt")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *out, &soak{seeds: *seeds, total: *total, chunk: *chunk, workers: *workers})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, s *soak) error {
	packages, err := suites(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // a folder like that of any build
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		fmt.Println("Compiling", path)
		program := filepath.Join(out, strings.ReplaceAll(strings.TrimPrefix(path, "./"), "/", "_")+".test")
		cmd := behindOthers(ctx, "go", "test", "-c", "-trimpath", "-o", program, path)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("compiling the tests of %s: %w", path, err)
		}
		for _, test := range packages[path] {
			member, err := newSuite(path, test, program)
			if err != nil {
				return err
			}
			s.suites = append(s.suites, member)
		}
	}
	s.broken = filepath.Join(out, "broken.txt")
	begin := time.Now()
	broken, err := s.run(ctx)
	fmt.Printf("%d seeds in %s, %d broken\n", s.ran.Load(), time.Since(begin).Round(time.Second), broken)
	if err == nil && broken > 0 {
		err = fmt.Errorf("promises were broken: see %s", s.broken)
	}
	return err
}

// declared finds tests of promises in simulated clusters: TestPromises, and those of other kinds of clusters, such as
// TestPromisesOverClusters.
var declared = regexp.MustCompile(`(?m)^func (` + promises + `(?:Over\w+)?)\(t \*testing\.T\)`)

// suites lists the tests of promises of each package, by its path from here.
func suites(ctx context.Context) (map[string][]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}} {{.TestGoFiles}} {{.XTestGoFiles}}", everything)
	cmd.Stderr = os.Stderr
	listed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(listed)) {
		fields := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(line))
		for _, file := range fields[1:] {
			source, err := os.ReadFile(filepath.Join(fields[0], file))
			if err != nil {
				return nil, err
			}
			for _, match := range declared.FindAllSubmatch(source, -1) {
				relative, err := filepath.Rel(here, fields[0])
				if err != nil {
					return nil, err
				}
				found["./"+relative] = append(found["./"+relative], string(match[1]))
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no package has promises: call this from the root of the repository")
	}
	return found, nil
}
