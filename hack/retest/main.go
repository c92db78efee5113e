// Retest runs "go test" with its arguments, and tests that failed once more, by themselves.
//
//	retest -p 2 -timeout 30m ./test/kinds/...
//
// Tests on clusters share a machine with control planes, and on one that is not theirs alone a wait can be too short. So continuous
// integration tells two things apart: a test that fails twice is a failure; one that fails and then passes is said at the end, with a line
// that begins with "PASSED ONLY WHEN RUN AGAIN". Its first output is above, and it is a defect of the test or of the product all the same:
// whoever sees the line looks into it. Tests without a cluster, and so all properties of the rules, are never run this way.
//
// What a package with a failed test has printed is shown when that is known; until then one line says that it failed. Where all passes in
// the end it is shown with "> " before each line, so that nobody takes it for the result.
//
// A package that does not compile, panics or runs out of time is not run again, and nothing is where more than eight tests fail.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// most is how many tests are run again at most: where more fail, it is not for a wait that was too short. A machine at half its speed
// has failed four of some hundred.
const most = 8

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

// run returns the exit code.
func run(ctx context.Context, args []string, out io.Writer) int {
	first := &results{out: out}
	err := goTest(ctx, args, first)
	if err == nil {
		return 0
	}
	failed, again := failures(first.held.String())
	passed := again && ctx.Err() == nil
	for _, p := range failed {
		if passed {
			fmt.Fprintf(out, "Run again: %s %s\n", p.name, strings.Join(p.tests, " "))
			passed = goTest(ctx, p.args(args), out) == nil
		}
	}
	if !passed {
		fmt.Fprint(out, first.held.String())
		return 1
	}
	for line := range strings.Lines(first.held.String()) {
		fmt.Fprint(out, "> ", line)
	}
	for _, p := range failed {
		fmt.Fprintf(out, "PASSED ONLY WHEN RUN AGAIN: %s %s\n", p.name, strings.Join(p.tests, " "))
	}
	return 0
}

// goTest runs "go test".
func goTest(ctx context.Context, args []string, out io.Writer) error {
	c := exec.CommandContext(ctx, "go", append([]string{"test"}, args...)...)
	c.Stdout, c.Stderr = out, os.Stderr
	return c.Run()
}

// results passes on what packages print that pass, and holds what others do.
type results struct {
	out io.Writer
	// part is a line that has not ended, and lines are those of the package that is printed now.
	part, lines, held bytes.Buffer
}

func (r *results) Write(text []byte) (int, error) {
	for part := range bytes.Lines(text) {
		r.part.Write(part)
		if !bytes.HasSuffix(part, []byte("\n")) {
			break
		}
		line := r.part.String()
		r.part.Reset()
		r.lines.WriteString(line)
		end := strings.TrimRight(line, "\r\n")
		m := endsFailed.FindStringSubmatch(end)
		if m != nil {
			fmt.Fprintf(r.out, "failed so far: %s\n", m[1])
		}
		switch {
		case m != nil, end == "FAIL", ends.MatchString(end):
			_, _ = r.lines.WriteTo(&r.held) // a buffer takes everything
		case endsPassed.MatchString(end):
			if _, err := r.lines.WriteTo(r.out); err != nil {
				return 0, err
			}
		}
	}
	return len(text), nil
}

// failedPackage is a package of which tests have failed.
type failedPackage struct {
	name  string
	tests []string
}

var (
	failedTest = regexp.MustCompile(`^--- FAIL: (Test\S+) `)
	endsFailed = regexp.MustCompile(`^FAIL\s+(\S+)(\s.*)?$`)
	endsPassed = regexp.MustCompile(`^(ok|\?)\s+\S+`)
	ends       = regexp.MustCompile(`^panic: |^fatal error: |\[(build|setup) failed\]`)
)

// failures returns which tests have failed, by the output of "go test", and whether they are to be run again.
func failures(output string) (failed []failedPackage, again bool) {
	var tests []string
	number := 0
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if ends.MatchString(line) {
			return nil, false
		}
		if m := failedTest.FindStringSubmatch(line); m != nil {
			tests = append(tests, m[1])
			continue
		}
		m := endsFailed.FindStringSubmatch(line)
		switch {
		case m != nil && len(tests) == 0: // something else than a test has failed
			return nil, false
		case m != nil:
			slices.Sort(tests)
			failed = append(failed, failedPackage{name: m[1], tests: slices.Compact(tests)})
			number += len(tests)
			tests = nil
		case endsPassed.MatchString(line):
			tests = nil
		}
	}
	return failed, number > 0 && number <= most
}

// args returns the arguments for the tests of one package that have failed, from those for all.
func (p failedPackage) args(all []string) []string {
	var out []string
	isNamed := false
	for _, arg := range all {
		switch {
		case !strings.HasPrefix(arg, "./"):
			out = append(out, arg)
		case !isNamed:
			out, isNamed = append(out, p.name), true
		}
	}
	return append(out, "-count=1", "-run=^("+strings.Join(p.tests, "|")+")$")
}
