package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFailures(t *testing.T) {
	const one = "--- FAIL: TestA (1.00s)\n    --- FAIL: TestA/part (0.10s)\n        a_test.go:1: no\nFAIL\nFAIL\tk/a\t1.2s\nok  \tk/b\t1.0s\n"
	for name, tc := range map[string]struct {
		output, want string
		again        bool
	}{
		"one test":                     {one + "FAIL\n", "k/a TestA", true},
		"two packages":                 {one + "--- FAIL: TestC (1.00s)\n--- FAIL: TestB (1.00s)\nFAIL\tk/c\t2s\nFAIL\n", "k/a TestA, k/c TestB TestC", true},
		"more than a few":              {one + tests("BCDEFGHI") + "FAIL\tk/c\t2s\n", "k/a TestA, k/c TestB TestC TestD TestE TestF TestG TestH TestI", false},
		"a few":                        {one + tests("BCDEFGH") + "FAIL\tk/c\t2s\n", "k/a TestA, k/c TestB TestC TestD TestE TestF TestG TestH", true},
		"a package is not compiled":    {one + "FAIL\tk/c [build failed]\n", "", false},
		"a test panics":                {"--- FAIL: TestA (0.00s)\npanic: no [recovered]\nFAIL\tk/a\t0.1s\n", "", false},
		"a package runs out of time":   {"panic: test timed out after 1s\nFAIL\tk/a\t1.0s\n", "", false},
		"TestMain fails":               {"FAIL\tk/a\t0.1s\n", "", false},
		"nothing is known of why":      {"", "", false},
		"another package fails beside": {one + "FAIL\tk/b\t0.1s\n", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			failed, again := failures(tc.output)
			var got []string
			for _, p := range failed {
				got = append(got, p.name+" "+strings.Join(p.tests, " "))
			}
			if text := strings.Join(got, ", "); text != tc.want || again != tc.again {
				t.Errorf("%q, %v, want %q, %v", text, again, tc.want, tc.again)
			}
		})
	}
}

// tests returns what is printed of tests that fail, each named by a letter.
func tests(letters string) string {
	out := ""
	for _, letter := range letters {
		out += "--- FAIL: Test" + string(letter) + " (0s)\n"
	}
	return out
}

func TestArgs(t *testing.T) {
	p := failedPackage{name: "k/a", tests: []string{"TestA", "TestB"}}
	all := []string{"-p", "2", "-skip", "^TestX$", "./test/a", "./test/...", "-nodes", "real"}
	want := []string{"-p", "2", "-skip", "^TestX$", "k/a", "-nodes", "real", "-count=1", "-run=^(TestA|TestB)$"}
	if got := p.args(all); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRun with tests that really fail: always, or the first time only.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.24\n",
		"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestPasses(*testing.T) {}\n",
		"a/a_test.go": `package a

import ("os"; "testing")

func TestPasses(*testing.T) {}

func TestFailsOnce(t *testing.T) {
	if err := os.Mkdir(os.Getenv("STATE"), 0o700); err == nil {
		t.Error("the first time")
	}
}

func TestFails(t *testing.T) {
	if os.Getenv("FAILS") != "" {
		t.Error("always")
	}
}
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	const said = "PASSED ONLY WHEN RUN AGAIN: example.com/m/a TestFailsOnce"
	t.Setenv("STATE", filepath.Join(dir, "first"))
	var out strings.Builder
	code := run(context.Background(), []string{"./..."}, &out)
	for _, text := range []string{said, "failed so far: example.com/m/a", "> --- FAIL: TestFailsOnce", "the first time", "ok  \texample.com/m/b"} {
		if code != 0 || !strings.Contains(out.String(), text) {
			t.Errorf("a test that passes when it is run again ends with %d and does not say %q:\n%s", code, text, out.String())
		}
	}
	if strings.Contains("\n"+out.String(), "\n--- FAIL") || strings.Contains("\n"+out.String(), "\nFAIL") {
		t.Errorf("it looks as if it had failed:\n%s", out.String())
	}
	t.Setenv("STATE", filepath.Join(dir, "second"))
	t.Setenv("FAILS", "yes")
	out.Reset()
	code = run(context.Background(), []string{"./..."}, &out)
	if code != 1 || strings.Contains(out.String(), said) || !strings.Contains(out.String(), "\n--- FAIL: TestFailsOnce") {
		t.Errorf("a test that always fails ends with %d and says\n%s", code, out.String())
	}
}
