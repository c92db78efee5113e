package operation

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// TestTwoVersionsShareARollout: the manager before this one leads, and this one takes over in the middle of a rollout; and the other way
// round.
func TestTwoVersionsShareARollout(t *testing.T) {
	before := previousManager(t)
	for name, versions := range map[string][2]string{"upgrade": {before, ""}, "downgrade": {"", before}} {
		t.Run(name, func(t *testing.T) {
			s := newServiceSite(t)
			const replicas, unavailable = 20, 2
			first := s.joinAs("first", versions[0])
			s.create(rolling("rolling", replicas, unavailable))
			s.available("rolling", replicas)
			pods := s.pods("rolling")
			watched := s.watchAvailable("rolling", replicas-unavailable)
			s.setImage("rolling", "nginx:mainline")
			s.haveUpdated("rolling", 4)
			second := s.joinAs("second", versions[1])
			first.Stop()
			s.Must(s.Client.Delete(s.Ctx, s.slice("first", "1")))
			s.haveUpdated("rolling", replicas)
			s.available("rolling", replicas)
			watched()
			s.sameObjects(pods, s.pods("rolling"))
			if len(second.line.since(time.Time{})) == 0 {
				t.Error("the second manager has written nothing: the first one did it all")
			}
		})
	}
}

// previousManager builds the manager of the commit before this one, and returns the path of its binary. The test is skipped where there is
// no history.
func previousManager(t *testing.T) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) (string, error) {
		command := exec.CommandContext(context.WithoutCancel(t.Context()), "git", append([]string{"-C", root}, args...)...)
		var complaint bytes.Buffer
		command.Stderr = &complaint
		out, err := command.Output()
		if err != nil {
			err = fmt.Errorf("git %s: %w: %s", args[0], err, complaint.String())
		}
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--verify", "HEAD^")
	if err != nil {
		t.Skipf("NOT RUN: this version is not tried beside the one before it, for there is no history of it here (%v)", err)
	}
	dir := t.TempDir()
	sources, binary := filepath.Join(dir, "sources"), filepath.Join(dir, "kruise-manager")
	if _, err := git("worktree", "add", "--detach", sources, commit); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := git("worktree", "remove", "--force", sources); err != nil {
			t.Error(err)
		}
	})
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/kruise-manager")
	build.Dir, build.Env = sources, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the manager of commit %s: %v\n%s", commit, err, out)
	}
	t.Logf("the version before is commit %s", commit)
	return binary
}
