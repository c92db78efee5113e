package members

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/clusters"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/member"
)

// tombstonesName is the ConfigMap in the namespace of the manager that tells what was left behind in which cluster.
//
// Wire: the policy on what the manager may write names it.
const tombstonesName = "kruise-multicluster-tombstones"

// Tombstones keep what owners have left behind in members that did not answer, so that it is deleted should they ever be connected to
// again.
type Tombstones struct {
	// Hub reads and writes the hub's API server itself.
	Hub interface {
		client.Reader
		client.Writer
	}
	Namespace string
}

// stone says what was left behind: all that an owner has in the cluster of an identity.
type stone struct {
	cluster string
	owner   types.UID
}

// key is that of the stone in the ConfigMap.
func (s stone) key() string { return s.cluster + "." + string(s.owner) }

// tombstones are the keys of the places of the clusters.
type tombstones map[stone]string

// has reports whether something was left behind in a cluster, and is not known to be gone yet.
func (t tombstones) has(cluster string) bool {
	for of := range t {
		if of.cluster == cluster {
			return true
		}
	}
	return false
}

func (t tombstones) sorted() []stone {
	return slices.SortedFunc(maps.Keys(t), func(a, b stone) int { return strings.Compare(a.key(), b.key()) })
}

func (t tombstones) refs() (out []clusters.Ref) {
	for _, place := range slices.Compact(slices.Sorted(maps.Values(t))) {
		out = append(out, refOf(member.PlaceOf(place)))
	}
	return out
}

func (t *Tombstones) read(ctx context.Context) (tombstones, error) {
	stored := &corev1.ConfigMap{}
	err := t.Hub.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: tombstonesName}, stored)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading what was left behind: %w", err)
	}
	out := tombstones{}
	for key, place := range stored.Data {
		if cluster, owner, ok := strings.Cut(key, "."); ok {
			out[stone{cluster, types.UID(owner)}] = place
		}
	}
	return out, nil
}

func (t *Tombstones) add(ctx context.Context, s stone, place member.Place) error {
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: tombstonesName}, Data: map[string]string{s.key(): place.Key()},
	}
	err := t.Hub.Create(ctx, object.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = t.patch(ctx, map[string]any{s.key(): place.Key()})
	}
	return err
}

func (t *Tombstones) remove(ctx context.Context, s stone) error {
	return t.patch(ctx, map[string]any{s.key(): nil})
}

func (t *Tombstones) patch(ctx context.Context, data map[string]any) error {
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: tombstonesName}}
	return t.Hub.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

// Bury has it stored that an owner leaves behind what it has in a cluster, and asks for a pass when it is.
func (m *Members) Bury(owner plan.Object, place member.Place, cluster string) {
	s := stone{cluster, owner.GetUID()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.buried[s]; known {
		return
	}
	m.buried[s] = false
	m.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := m.Tombstones.add(ctx, s, place)
		m.mu.Lock()
		if m.buried[s] = true; err != nil {
			delete(m.buried, s)
		}
		m.mu.Unlock()
		m.Changed(owner.GetUID())
	})
}

// exhume drops what is stored of what was left behind: nothing is left, or its owner wants it again.
func (m *Members) exhume(ctx context.Context, s stone) error {
	m.mu.Lock()
	delete(m.buried, s)
	m.mu.Unlock()
	return m.Tombstones.remove(ctx, s)
}

// IsBuried reports whether that is stored.
func (m *Members) IsBuried(owner plan.Object, cluster string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buried[stone{cluster, owner.GetUID()}]
}
