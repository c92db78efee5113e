package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func home(t *testing.T) Home {
	t.Helper()
	dir := t.TempDir()
	return Home{Run: filepath.Join(dir, "run"), Logs: filepath.Join(dir, "logs")}
}

// start runs a shell script as a part.
func start(t *testing.T, h Home, name, script string) *Child {
	t.Helper()
	child, err := h.Start(Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(name); err != nil {
			t.Error(err)
		}
	})
	return child
}

func TestAPartIsAliveFromStartToStop(t *testing.T) {
	h := home(t)
	if _, alive := h.Alive("a"); alive {
		t.Error("alive before it was started")
	}
	child := start(t, h, "a", "sleep 60")
	if pid, alive := h.Alive("a"); !alive || pid != child.Pid {
		t.Errorf("got process %d, alive %t, want process %d", pid, alive, child.Pid)
	}
	if _, err := h.Start(Spec{Name: "a", Path: "/bin/true"}); !errors.Is(err, ErrRunning) {
		t.Errorf("a second start gives %v, want ErrRunning", err)
	}
	if err := h.Stop("a"); err != nil {
		t.Fatal(err)
	}
	if _, alive := h.Alive("a"); alive {
		t.Error("alive after it was stopped")
	}
	if err := h.Stop("a"); err != nil {
		t.Errorf("stopping it again: %v", err)
	}
}

func TestAPartThatEndsByItselfIsNotAlive(t *testing.T) {
	h := home(t)
	child := start(t, h, "a", "echo for a reason; exit 3")
	<-child.Exited
	if _, alive := h.Alive("a"); alive {
		t.Error("alive after it ended")
	}
	if log, err := Tail(h.LogFile("a"), 1); err != nil || log != "for a reason\n" {
		t.Errorf("the log ends with %q, %v", log, err)
	}
}

func TestStopEndsTheChildrenOfAPartToo(t *testing.T) {
	h := home(t)
	child := start(t, h, "a", "sleep 60 & echo $!; wait")
	var pid int
	for deadline := time.Now().Add(10 * time.Second); pid == 0; time.Sleep(10 * time.Millisecond) {
		log, err := Tail(h.LogFile("a"), 1)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no process id in the log: %v", err)
		}
		pid, _ = strconv.Atoi(strings.TrimSpace(log)) // not written yet: 0
	}
	if err := h.Stop("a"); err != nil {
		t.Fatal(err)
	}
	<-child.Exited
	deadline := time.Now().Add(10 * time.Second)
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestNamesAreThoseOfAllPartsEverStarted(t *testing.T) {
	h := home(t)
	<-start(t, h, "a", "true").Exited
	start(t, h, "b", "sleep 60")
	got, err := h.Names()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
}

func TestTailIsTheLastLines(t *testing.T) {
	tests := map[string]struct {
		content string
		lines   int
		want    string
	}{
		"all of a short log":             {"a\nb\n", 5, "a\nb\n"},
		"the end of a long one":          {"a\nb\nc\n", 2, "b\nc\n"},
		"a last line that does not end":  {"a\nb", 1, "b"},
		"nothing of an empty log":        {"", 3, ""},
		"more than is looked at is left": {strings.Repeat("x", tailBytes) + "\nend\n", 1, "end\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Tail(path, tc.lines)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFollowPrintsWhatIsAppended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	time.AfterFunc(100*time.Millisecond, func() {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		if _, err := file.WriteString("b\n"); err != nil {
			t.Error(err)
		}
	})
	var got bytes.Buffer
	if err := Follow(ctx, path, &got); err != nil {
		t.Fatal(err)
	}
	if got.String() != "a\nb\n" {
		t.Errorf("got %q", got.String())
	}
}
