package pods

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Facts reads what injection needs of the cluster. Callers must not change what they get.
type Facts interface {
	// Candidates returns all SidecarSets. It fails while they are not known yet.
	Candidates() (*inject.Candidates, error)
	// Namespace returns the labels of a namespace.
	Namespace(ctx context.Context, name string) (map[string]string, error)
	// Revision returns the revision that a SidecarSet's injection strategy asks for. A Denied says that there is none.
	Revision(ctx context.Context, set *v1beta1.SidecarSet) (*appsv1.ControllerRevision, error)
}

// SidecarOptions configure the injection.
type SidecarOptions struct {
	Facts Facts
	// SortByName sorts the sidecars of all SidecarSets by name.
	SortByName bool
	Now        func() time.Time
	// Metrics may be nil.
	Metrics *Metrics
}

// Sidecars puts the containers of SidecarSets into the Pods that these select.
func Sidecars(o SidecarOptions) Step {
	s := &sidecars{SidecarOptions: o, counts: map[types.UID]int{}, compiled: map[types.UID]*inject.Sidecars{}}
	return Step{Name: "sidecarset", Run: s.run}
}

type sidecars struct {
	SidecarOptions
	mu sync.Mutex
	// counts holds the number of Pods so far, modulo 100, of each SidecarSet of which some Pods get an older revision.
	counts map[types.UID]int
	// compiled are revisions, whose content never changes.
	compiled map[types.UID]*inject.Sidecars
}

func (s *sidecars) run(ctx context.Context, subject *Subject) error {
	candidates, err := s.Facts.Candidates()
	if err != nil {
		return err
	}
	matching, err := candidates.Match(subject.Pod().Labels, func() (map[string]string, error) {
		return s.Facts.Namespace(ctx, subject.Namespace)
	})
	if err != nil || len(matching) == 0 {
		return err
	}
	chosen := make([]*inject.Sidecars, 0, len(matching))
	for _, c := range matching {
		if c.Problem != nil {
			return deny(c, c.Problem)
		}
		one, err := s.choose(ctx, c, subject)
		if err != nil {
			return err
		}
		chosen = append(chosen, one)
	}
	notices, err := inject.Into(subject.Edit(), chosen, inject.Options{SortByName: s.SortByName, Now: s.Now()})
	if err != nil {
		return Denied{err}
	}
	for _, notice := range notices {
		subject.Warn("%s", notice.Text)
		if notice.Replaced != "" {
			s.Metrics.countReplaced(notice.SidecarSet)
		}
	}
	return nil
}

func deny(c *inject.Candidate, why error) Denied {
	return Denied{fmt.Errorf("SidecarSet %s: %w", c.Set.Name, why)}
}

// choose returns the revision of a SidecarSet that the Pod gets.
func (s *sidecars) choose(ctx context.Context, c *inject.Candidate, subject *Subject) (*inject.Sidecars, error) {
	choice, percent := inject.Choose(c, subject.Pod().Labels)
	if choice == inject.Current {
		return c.Current, nil
	}
	asked, err := s.Facts.Revision(ctx, c.Set)
	if err != nil {
		return nil, err
	}
	if choice == inject.Either && !s.getsAsked(c, asked, percent, subject) {
		return c.Current, nil
	}
	compiled, err := s.compile(c, asked)
	if err != nil {
		return nil, deny(c, err)
	}
	return compiled, nil
}

// getsAsked decides between the present spec and the revision that is asked for. A Pod that has one of the two, because it was asked about
// before or is written from another one, stays with it.
func (s *sidecars) getsAsked(c *inject.Candidate, asked *appsv1.ControllerRevision, percent int, subject *Subject) bool {
	records, err := sidecar.RecordsIn(subject.Pod(), keys.SidecarSetHash)
	if has := records[c.Set.Name].ControllerRevision; err == nil && (has == asked.Name || has == c.Current.Revision()) {
		return has == asked.Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	count := s.counts[c.Set.UID]
	if !subject.DryRun {
		s.counts[c.Set.UID] = (count + 1) % 100
	}
	return inject.IsTurnOfAsked(count, percent)
}

// maxCompiled is how many compiled revisions are kept; few are in use at a time.
const maxCompiled = 256

func (s *sidecars) compile(c *inject.Candidate, revision *appsv1.ControllerRevision) (*inject.Sidecars, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.compiled[revision.UID]; known != nil {
		return known, nil
	}
	set, err := sidecar.AtRevision(c.Set, revision)
	if err != nil {
		return nil, err
	}
	compiled, err := inject.CompileRevision(set, revision.Name)
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", revision.Name, err)
	}
	if len(s.compiled) >= maxCompiled {
		clear(s.compiled)
	}
	s.compiled[revision.UID] = compiled
	return compiled, nil
}
