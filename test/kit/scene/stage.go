package scene

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// Stage is a cluster of one test's own.
type Stage struct {
	*Test
	*cluster.Cluster
	// Dir is a folder of the stage's own.
	Dir string
}

// NewStage brings a cluster up, which is ended when the test is. The test runs beside others; all that it does has to be done in
// twenty minutes.
func NewStage(t *testing.T, o cluster.Options) *Stage {
	t.Helper()
	t.Parallel()
	s := &Stage{Test: NewTest(t)}
	var cancel context.CancelFunc
	s.Ctx, cancel = context.WithTimeout(s.Ctx, 20*time.Minute)
	t.Cleanup(cancel)
	var err error
	s.Dir, err = newDir("stage")
	s.Must(err)
	t.Cleanup(func() {
		if err := os.RemoveAll(s.Dir); err != nil {
			t.Error(err)
		}
	})
	name := topOf(t.Name())
	o.TestOf = func(string) string { return name }
	s.Cluster, err = cluster.Up(s.Ctx, placed(o, s.Dir))
	s.Must(err)
	t.Cleanup(func() {
		if err := s.Down(s.Afterwards()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// On returns the stage for a subtest.
func (s *Stage) On(t *testing.T) *Stage {
	stage, test := *s, *s.Test
	test.T, stage.Test = t, &test
	return &stage
}

// Launch starts a manager of a name, in a folder of that name, and does not wait until it is ready. Should the test fail, it tells what the
// manager said last.
func (s *Stage) Launch(name string, o cluster.ManagerOptions) *cluster.Manager {
	s.Helper()
	o.Dir = filepath.Join(s.Dir, name)
	m, err := s.LaunchManager(s.Ctx, o)
	s.Must(err)
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("the end of the log of manager %s:\n%s", name, m.Tail(tailLines))
		}
		m.Stop()
	})
	return m
}

// AuditLog returns the path of the API server's audit log.
func (s *Stage) AuditLog() string { return auditLog(s.Dir) }
