package spread

import (
	"context"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
)

const (
	// lookInterval is how often it is looked whether what is set aside is still wanted.
	lookInterval = 250 * time.Millisecond
	// endTimeout is how long giving back may take when the process ends.
	endTimeout = 5 * time.Second
)

// Start gives back what is set aside and not wanted, until the context ends, and then all.
func (l *Ledger) Start(ctx context.Context) error {
	ticks := time.NewTicker(lookInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			l.end(context.WithoutCancel(ctx))
			return nil
		case <-ticks.C:
			l.GiveBack(ctx)
		case <-l.due:
			l.GiveBack(ctx)
		}
	}
}

// end gives back all that is set aside, and has nothing set aside any more.
func (l *Ledger) end(ctx context.Context) {
	l.ended.Store(true)
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	l.giveBack(ctx, everything)
}

// NeedLeaderElection says that every manager does this.
func (l *Ledger) NeedLeaderElection() bool { return false }

// surplus chooses, of what is held of a place, what is given back.
type surplus func(m *memory, s *v1beta1.WorkloadSpread, at rules.Place) []held

func everything(m *memory, _ *v1beta1.WorkloadSpread, at rules.Place) []held { return m.held[at] }

// unwanted returns all that is held of a place when no Pod has asked for it for a while or others may be short of it, and else what is too
// old to be given.
func (l *Ledger) unwanted(m *memory, s *v1beta1.WorkloadSpread, at rules.Place) []held {
	all := m.held[at]
	if l.Now().Sub(m.used) >= rules.LeaseIdle || rules.IsScarce(rules.RoomIn(s, m.limits, at), int32(len(all))) {
		return all
	}
	var out []held
	for _, h := range all {
		if l.Now().Sub(h.at) >= rules.LeaseFor {
			out = append(out, h)
		}
	}
	return out
}

// GiveBack gives back what is set aside and not wanted.
func (l *Ledger) GiveBack(ctx context.Context) { l.giveBack(ctx, l.unwanted) }

// giveBack gives back what is chosen, of all WorkloadSpreads.
func (l *Ledger) giveBack(ctx context.Context, choose surplus) {
	l.spreads.Range(func(_, value any) bool {
		m := value.(*memory)
		m.Lock()
		defer m.Unlock()
		if err := l.giveBackOf(ctx, m, choose); err != nil {
			// It leaves the ledger by its age.
			log.FromContext(ctx).Error(err, "Room that was set aside could not be given back", "workloadSpread", m.key)
		}
		return true
	})
}

func (l *Ledger) giveBackOf(ctx context.Context, m *memory, choose surplus) error {
	if len(m.held) == 0 {
		return nil
	}
	stored, err := l.newest(ctx, m, nil)
	if err != nil {
		clear(m.held)
		return client.IgnoreNotFound(err)
	}
	back := map[rules.Place][]string{}
	for at := range m.held {
		for _, h := range choose(m, stored, at) {
			back[at] = append(back[at], h.entry)
		}
		m.drop(at, back[at])
	}
	backoff := wait.Backoff{Duration: l.Pause, Factor: 2, Jitter: 0.5, Steps: maxTries}
	for range maxTries {
		next, changed := stored.DeepCopy(), false
		for at, entries := range back {
			changed = rules.GiveBack(next, m.limits, at, entries) || changed
		}
		if !changed {
			return nil
		}
		err := l.writeOver(ctx, stored, next)
		if err == nil {
			m.written = next
		}
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		if err := pause(ctx, backoff.Step()); err != nil {
			return err
		}
		stored = &v1beta1.WorkloadSpread{}
		if err := l.Live.Get(ctx, m.key, stored); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return nil
}

// drop takes entries out of what is held: they are never given to a Pod again.
func (m *memory) drop(at rules.Place, entries []string) {
	gone := map[string]bool{}
	for _, entry := range entries {
		gone[entry] = true
	}
	var left []held
	for _, h := range m.held[at] {
		if !gone[h.entry] {
			left = append(left, h)
		}
	}
	if m.held[at] = left; len(left) == 0 {
		delete(m.held, at)
	}
}

func (l *Ledger) isOwn(entry string) bool {
	return strings.HasPrefix(entry, rules.LeaseEntry(l.Holder+"-"))
}

// NoteSpread has it looked soon whether others are short of room; after is nil for a WorkloadSpread that is gone.
func (l *Ledger) NoteSpread(before, after *v1beta1.WorkloadSpread) {
	if after == nil {
		l.spreads.Delete(before.UID)
		return
	}
	if _, known := l.spreads.Load(after.UID); !known {
		return
	}
	select {
	case l.due <- struct{}{}:
	default:
	}
}

// NotePod notes when a Pod of a WorkloadSpread no longer counts where it did; after is nil for one that is gone.
func (l *Ledger) NotePod(before, after *corev1.Pod) {
	if before == nil {
		return
	}
	m, ok := rules.MatchedOf(before)
	if ok && after == nil && m.UID != "" {
		l.noteGone(client.ObjectKey{Namespace: before.Namespace, Name: m.Name}, m.UID)
	}
	if !ok || after != nil && (!pod.IsActive(before) || pod.IsActive(after) && sameCount(before, after)) {
		return
	}
	key := client.ObjectKey{Namespace: before.Namespace, Name: m.Name}
	l.spreads.Range(func(_, value any) bool {
		if of := value.(*memory); of.key == key {
			of.freed.Store(true)
		}
		return true
	})
}

// noteGone notes that the Pod of an entry was seen and is gone, and forgets what no status can hold any more.
func (l *Ledger) noteGone(of client.ObjectKey, entry string) {
	l.goneMu.Lock()
	defer l.goneMu.Unlock()
	now := l.Now()
	for key, entries := range l.gone {
		maps.DeleteFunc(entries, func(_ string, at time.Time) bool { return now.Sub(at) > 2*rules.CreatingFor })
		if len(entries) == 0 {
			delete(l.gone, key)
		}
	}
	if l.gone[of] == nil {
		l.gone[of] = map[string]time.Time{}
	}
	l.gone[of][entry] = now
}

// Gone returns the entries of Pods of a WorkloadSpread that were seen and are gone.
func (l *Ledger) Gone(of client.ObjectKey) map[string]bool {
	l.goneMu.Lock()
	defer l.goneMu.Unlock()
	out := make(map[string]bool, len(l.gone[of]))
	for entry := range l.gone[of] {
		out[entry] = true
	}
	return out
}
