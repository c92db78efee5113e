package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// reportInterval is how often a line says how far the soak is.
const reportInterval = 30 * time.Second

// suite is the promises of one package, and how many seeds of them were run.
type suite struct {
	path    string // of the package
	program string // compiled
	hash    string // of the program: what was reached with another one does not count
	next    int64  // the first seed that was not run yet
}

// newSuite finds out how far a suite had come.
func newSuite(path, program string) (*suite, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	s := &suite{path: path, program: program, hash: hex.EncodeToString(sum[:])}
	recorded, err := os.ReadFile(s.record())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if hash, next, ok := strings.Cut(strings.TrimSpace(string(recorded)), " "); ok && hash == s.hash {
		if s.next, err = strconv.ParseInt(next, 10, 64); err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.record(), err)
		}
	}
	return s, nil
}

// record is the file that says how far the suite has come.
func (s *suite) record() string { return s.program + ".reached" }

// reached records that all seeds before next were run.
func (s *suite) reached(next int64) error {
	s.next = next
	return os.WriteFile(s.record(), fmt.Appendf(nil, "%s %d\n", s.hash, next), 0o600)
}

// soak runs suites, each over the same number of seeds. A suite's chunks run one after the other, several suites at a time.
type soak struct {
	suites       []*suite
	seeds, chunk int64
	workers      int
	broken       string // file of a line for each broken seed

	ran, count atomic.Int64 // seeds that were run, and that were broken
	writing    sync.Mutex
}

// run runs what is left and returns the number of broken seeds.
func (s *soak) run(ctx context.Context) (broken int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan *suite, len(s.suites))
	for _, member := range s.suites {
		todo <- member
	}
	var left atomic.Int64
	left.Store(int64(len(s.suites)))
	var running sync.WaitGroup
	running.Go(func() { s.report(ctx) })
	var working sync.WaitGroup
	for range max(1, min(s.workers, len(s.suites))) {
		working.Go(func() {
			for left.Load() > 0 && ctx.Err() == nil {
				select {
				case member := <-todo:
					if member.next >= s.seeds {
						left.Add(-1)
						continue
					}
					if err := s.runChunk(ctx, member); err != nil {
						cancel(err)
						return
					}
					todo <- member // behind the others, so that all of them advance
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	working.Wait()
	err = context.Cause(ctx)
	cancel(nil)
	running.Wait()
	return s.count.Load(), err
}

var brokenSeed = regexp.MustCompile(`KRUISE_SEED=(\d+): ?(.*)`)

// runChunk runs the next seeds of a suite and records what came of them.
func (s *soak) runChunk(ctx context.Context, member *suite) error {
	count := min(s.chunk, s.seeds-member.next)
	cmd := exec.CommandContext(ctx, member.program, "-test.run", "^"+test+"$", "-test.timeout", "1h")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprintf("KRUISE_FIRST_SEED=%d", member.next), fmt.Sprintf("KRUISE_SEEDS=%d", count))
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the process was stopped from outside: the chunk runs again next time
	}
	next := member.next + count
	if err != nil {
		if next, err = s.tellBroken(member, output, next); err != nil {
			return err
		}
	}
	s.ran.Add(next - member.next)
	return member.reached(next)
}

// tellBroken records the broken seeds that a process named, and returns the first seed that it did not run: it gives up after a few broken
// ones.
func (s *soak) tellBroken(member *suite, output []byte, end int64) (next int64, err error) {
	found := brokenSeed.FindAllSubmatch(output, -1)
	if len(found) == 0 {
		seeds := fmt.Sprintf("KRUISE_FIRST_SEED=%d KRUISE_SEEDS=%d", member.next, end-member.next)
		return end, s.tell(member, seeds, "it ended without naming a seed: "+lastLine(output))
	}
	for _, match := range found {
		seed, err := strconv.ParseInt(string(match[1]), 10, 64)
		if err != nil {
			return 0, err
		}
		if err := s.tell(member, fmt.Sprintf("KRUISE_SEED=%d", seed), string(match[2])); err != nil {
			return 0, err
		}
		next = max(next, seed+1)
	}
	return next, nil
}

// tell adds a line about a broken seed to the file and to the output.
func (s *soak) tell(member *suite, seed, problem string) error {
	s.count.Add(1)
	s.writing.Lock()
	defer s.writing.Unlock()
	line := fmt.Sprintf("%s go test %s -run '^%s$' -v   # %s\n", seed, member.path, test, problem)
	fmt.Print("BROKEN: ", line)
	file, err := os.OpenFile(s.broken, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line)
	return errors.Join(err, file.Close())
}

// report says how far it is, until ctx ends.
func (s *soak) report(ctx context.Context) {
	begin := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportInterval):
			ran := s.ran.Load()
			fmt.Printf("%s: %d seeds, %.0f a second, %d broken\n", time.Since(begin).Round(time.Second), ran,
				float64(ran)/time.Since(begin).Seconds(), s.count.Load())
		}
	}
}

// lastLine returns the last line of a program's output that says anything.
func lastLine(output []byte) string {
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	return string(lines[len(lines)-1])
}
