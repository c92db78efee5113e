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

// suite is the promises of one test, and how many seeds of them were run.
type suite struct {
	path    string // of the package
	test    string // its name
	program string // compiled
	hash    string // of the program: what was reached with another one does not count
	next    int64  // the first seed that was not run yet

	running bool
	spent   time.Duration // how long it has run since the start
}

// newSuite finds out how far a suite had come.
func newSuite(path, test, program string) (*suite, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	s := &suite{path: path, test: test, program: program, hash: hex.EncodeToString(sum[:])}
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
func (s *suite) record() string {
	return strings.TrimSuffix(s.program, ".test") + strings.TrimPrefix(s.test, promises) + ".reached"
}

// reached records that all seeds before next were run.
func (s *suite) reached(next int64) error {
	s.next = next
	return os.WriteFile(s.record(), fmt.Appendf(nil, "%s %d\n", s.hash, next), 0o600)
}

// soak runs suites, each over the same number of seeds at least. A suite's chunks run one after the other, several suites at a time.
type soak struct {
	suites []*suite
	// seeds are those of each suite. With a total, suites go on after that, each for as long as the others, until all have run so many.
	seeds, total int64
	chunk        int64
	workers      int
	broken       string // file of a line for each broken seed

	ran, count atomic.Int64 // seeds that were run, and that were broken
	choosing   sync.Mutex
	writing    sync.Mutex
}

// run runs what is left and returns the number of broken seeds.
func (s *soak) run(ctx context.Context) (broken int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	running.Go(func() { s.report(ctx) })
	var working sync.WaitGroup
	for range max(1, min(s.workers, len(s.suites))) {
		working.Go(func() {
			if err := s.work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	working.Wait()
	err = context.Cause(ctx)
	cancel(nil)
	running.Wait()
	return s.count.Load(), err
}

// work runs chunks until there is nothing left to run.
func (s *soak) work(ctx context.Context) error {
	for ctx.Err() == nil {
		member, count := s.take()
		if member == nil {
			if count == 0 {
				return nil
			}
			time.Sleep(100 * time.Millisecond) // what is left is run by others now
			continue
		}
		begin := time.Now()
		next, err := s.runChunk(ctx, member, count)
		if err != nil {
			return err
		}
		if err := s.put(member, next, time.Since(begin)); err != nil {
			return err
		}
	}
	return nil
}

// take chooses the suite to run next, and how many seeds of it. It returns none while all that have seeds left are running, and no seeds
// either when there are none left.
func (s *soak) take() (chosen *suite, count int64) {
	s.choosing.Lock()
	defer s.choosing.Unlock()
	left := s.total
	for _, member := range s.suites {
		left -= member.next
	}
	var most int64
	for _, member := range s.suites {
		wants := max(s.seeds-member.next, min(left, s.chunk))
		most = max(most, wants)
		if wants > 0 && !member.running && (chosen == nil || s.isBefore(member, chosen)) {
			chosen, count = member, min(s.chunk, wants)
		}
	}
	if chosen == nil {
		return nil, max(most, 0)
	}
	chosen.running = true
	return chosen, count
}

// isBefore reports whether a suite has its turn before another: the one with fewer seeds while one of them has too few, and then the one
// that has run for less time.
func (s *soak) isBefore(one, other *suite) bool {
	if one.next < s.seeds || other.next < s.seeds {
		return one.next < other.next
	}
	return one.spent < other.spent
}

// put records what a suite has run.
func (s *soak) put(member *suite, next int64, took time.Duration) error {
	s.choosing.Lock()
	defer s.choosing.Unlock()
	s.ran.Add(next - member.next)
	member.running = false
	member.spent += took
	return member.reached(next)
}

var brokenSeed = regexp.MustCompile(`KRUISE_SEED=(\d+): ?(.*)`)

// runChunk runs the next seeds of a suite and returns the first one that it did not run.
func (s *soak) runChunk(ctx context.Context, member *suite, count int64) (next int64, err error) {
	cmd := behindOthers(ctx, member.program, "-test.run", "^"+member.test+"$", "-test.timeout", "1h")
	// A cluster makes much that is garbage with the next one, and memory costs less than to collect it often.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400",
		fmt.Sprintf("KRUISE_FIRST_SEED=%d", member.next), fmt.Sprintf("KRUISE_SEEDS=%d", count))
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return member.next, nil //nolint:nilerr // the process was stopped from outside: the chunk runs again next time
	}
	next = member.next + count
	if err != nil {
		return s.tellBroken(member, output, next)
	}
	return next, nil
}

// behindOthers is a command that runs when nobody else wants the processor, where there is a way to say so.
func behindOthers(ctx context.Context, name string, args ...string) *exec.Cmd {
	nice, err := exec.LookPath("nice")
	if err != nil {
		return exec.CommandContext(ctx, name, args...)
	}
	return exec.CommandContext(ctx, nice, append([]string{"-n", "19", name}, args...)...)
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
	line := fmt.Sprintf("%s go test %s -run '^%s$' -v   # %s\n", seed, member.path, member.test, problem)
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
