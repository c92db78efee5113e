package operation

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// TestTwoVersionsShareARollout: the manager of the version before leads, and this one takes over in the middle of a rollout; and then the
// other way round.
func TestTwoVersionsShareARollout(t *testing.T) {
	before := previousManager(t)
	s := newServiceSite(t)
	const replicas, unavailable = 12, 2
	old := s.joinAs("before", before)
	s.create(rolling("rolling", replicas, unavailable))
	s.available("rolling", replicas)
	pods := s.pods("rolling")
	watched := s.watchAvailable("rolling", replicas-unavailable)
	roll := func(image string, leading *colleague, name, next string) *colleague {
		s.setImage("rolling", image)
		s.haveUpdated("rolling", 4)
		successor := s.joinAs(name, next)
		leading.Stop()
		s.Must(s.Client.Delete(s.Ctx, s.slice(leading.name, "1")))
		s.haveUpdated("rolling", replicas)
		s.available("rolling", replicas)
		if len(successor.line.since(time.Time{})) == 0 {
			t.Errorf("manager %s has written nothing: the other one did it all", name)
		}
		s.restsFor("rolling", successor)
		return successor
	}
	today := roll("nginx:mainline", old, "today", "")
	roll("nginx:stable", today, "before-again", before)
	watched()
	s.sameObjects(pods, s.pods("rolling"))
}

// restsFor checks that a manager which came to Pods of another version writes nothing once the rollout is complete.
func (s *site) restsFor(app string, m *colleague) {
	s.Helper()
	s.Eventually("the manager has nothing more to write", func() (err error) {
		began, pods := time.Now(), s.pods(app)
		time.Sleep(3 * time.Second)
		for _, w := range m.line.since(began) {
			err = errors.Join(err, fmt.Errorf("it writes %s", w))
		}
		for i, p := range s.pods(app) {
			if p.ResourceVersion != pods[i].ResourceVersion {
				err = errors.Join(err, fmt.Errorf("Pod %s changes", p.Name))
			}
		}
		return err
	})
}

// previousManager builds the manager of the version before this one, and returns the path of its binary. The test is skipped where this
// checkout does not have that version; make test says so.
func previousManager(t *testing.T) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(root, "hack/version-before.sh")).CombinedOutput()
	commit := strings.TrimSpace(string(said))
	if err != nil {
		t.Skipf("NOT RUN: %s (%v)", commit, err)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("building the manager of commit %s: %s: %v\n%s", commit, name, err, out)
		}
	}
	run("git", "-C", root, "archive", "--output="+filepath.Join(dir, "sources.tar"), commit)
	run("tar", "-xf", "sources.tar")
	run("go", "build", "-buildvcs=false", "-o", "kruise-manager", "./cmd/kruise-manager")
	t.Logf("the version before is commit %s", commit)
	return filepath.Join(dir, "kruise-manager")
}
