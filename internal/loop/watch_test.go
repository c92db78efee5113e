package loop

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// added is a queue that only notes what is added to it.
type added struct {
	Queue
	now, later []string
}

func (a *added) Add(r reconcile.Request) { a.now = append(a.now, r.String()) }

func (a *added) AddAfter(r reconcile.Request, _ time.Duration) { a.later = append(a.later, r.String()) }

func TestWatches(t *testing.T) {
	isController := true
	pod := func(owner string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "p", ResourceVersion: "1", Generation: 1}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: owner, Controller: &isController},
			}
		}
		if change != nil {
			p.ResourceVersion = "2"
			change(p)
		}
		return p
	}
	same := func(*corev1.Pod) {}
	other := func(p *corev1.Pod) { p.UID = "other" }
	owned := Owned(&corev1.Pod{}, schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"})
	named := Named(&corev1.Pod{}, func(p *corev1.Pod) []string { return []string{p.Name + "-owner"} })
	found := Affected(&corev1.Pod{}, func(_ context.Context, before, after *corev1.Pod) (out []types.NamespacedName, _ error) {
		if before == nil || after == nil {
			out = append(out, types.NamespacedName{Name: "comes-or-goes"})
		}
		return out, nil
	})
	var forgotten []types.UID
	itself := owners(&corev1.Pod{}, nil, func(p *corev1.Pod) { forgotten = append(forgotten, p.UID) })
	picky := owners(
		&corev1.Pod{},
		func(before, after *corev1.Pod) bool { return before == nil && after.Generation == 1 },
		func(*corev1.Pod) {},
	)
	for name, tc := range map[string]struct {
		watch         Watch
		before, after *corev1.Pod
		now, later    []string
	}{
		"an object that its owner controls":     {watch: owned, after: pod("a", nil), later: []string{"ns/a"}},
		"one that nobody controls":              {watch: owned, after: pod("", nil)},
		"one that is given to another owner":    {watch: owned, before: pod("a", nil), after: pod("b", same), later: []string{"ns/a", "ns/b"}},
		"one that is released":                  {watch: owned, before: pod("a", nil), after: pod("", same), later: []string{"ns/a"}},
		"one that is gone":                      {watch: owned, before: pod("a", nil), later: []string{"ns/a"}},
		"a resync":                              {watch: owned, before: pod("a", nil), after: pod("a", nil)},
		"an owner named after the object":       {watch: named, after: pod("", nil), later: []string{"ns/web-1-owner"}},
		"the same, when the object is gone":     {watch: named, before: pod("", nil), later: []string{"ns/web-1-owner"}},
		"the same, at a resync":                 {watch: named, before: pod("", nil), after: pod("", nil)},
		"what is found for an object that came": {watch: found, after: pod("", nil), later: []string{"/comes-or-goes"}},
		"what is found for one that is gone":    {watch: found, before: pod("", nil), later: []string{"/comes-or-goes"}},
		"what is found for a change":            {watch: found, before: pod("", nil), after: pod("", same)},
		"what is found for another object of the name": {
			watch: found, before: pod("", nil), after: pod("", other), later: []string{"/comes-or-goes", "/comes-or-goes"},
		},
		"another owner of the name": {watch: itself, before: pod("", nil), after: pod("", other), now: []string{"ns/web-1"}},
		"another owner of the name, which is of concern": {
			watch: picky, before: pod("", nil), after: pod("", other), now: []string{"ns/web-1"},
		},
		"a new owner":                               {watch: itself, after: pod("", nil), now: []string{"ns/web-1"}},
		"an owner with a new status":                {watch: itself, before: pod("", nil), after: pod("", same), later: []string{"ns/web-1"}},
		"an owner with a new spec":                  {watch: itself, before: pod("", nil), after: pod("", func(p *corev1.Pod) { p.Generation = 2 }), now: []string{"ns/web-1"}},
		"an owner that is gone is forgotten only":   {watch: itself, before: pod("", nil)},
		"a new owner of concern":                    {watch: picky, after: pod("", nil), now: []string{"ns/web-1"}},
		"a change of an owner that is of no matter": {watch: picky, before: pod("", nil), after: pod("", same)},
	} {
		t.Run(name, func(t *testing.T) {
			q := &added{}
			switch ctx := t.Context(); {
			case tc.before == nil:
				tc.watch.Handler.Create(ctx, event.CreateEvent{Object: tc.after}, q)
			case tc.after == nil:
				tc.watch.Handler.Delete(ctx, event.DeleteEvent{Object: tc.before}, q)
			default:
				tc.watch.Handler.Update(ctx, event.UpdateEvent{ObjectOld: client.Object(tc.before), ObjectNew: tc.after}, q)
			}
			slices.Sort(q.later)
			if diff := cmp.Diff([][]string{tc.now, tc.later}, [][]string{q.now, q.later}); diff != "" {
				t.Errorf("requests at once and a little later (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]types.UID{"p", "p"}, forgotten); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
}
