package credentials

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProgramsThatHangLeaveNobodyBehind: what they have started ends with them.
func TestProgramsThatHangLeaveNobodyBehind(t *testing.T) {
	f := newFolder(t)
	// The one that stays behind would say so.
	f.write("bad", "#!/bin/sh\n(sleep 3; touch "+filepath.Join(f.dir, "alive")+") & echo $! > "+filepath.Join(f.dir, "child")+"\nexec sleep 60\n", 0o700)
	p := f.must(provider("bad", "a.example.com"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := p.For(ctx, named(t, "a.example.com/app")); err == nil {
		t.Fatal("it does not hang")
	}
	text, err := os.ReadFile(filepath.Join(f.dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	if _, err := os.Stat(filepath.Join(f.dir, "alive")); err == nil {
		if err := syscall.Kill(id, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Log(err)
		}
		t.Error("what it had started goes on")
	}
}
