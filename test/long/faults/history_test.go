package faults

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/test/kit/proxy"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// resources are the kinds of a history, by the names that a proxy's record knows them by.
var resources = map[string]schema.GroupVersionKind{
	"pods":                        corev1.SchemeGroupVersion.WithKind("Pod"),
	"nodes":                       corev1.SchemeGroupVersion.WithKind("Node"),
	"persistentvolumeclaims":      corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	"controllerrevisions.apps":    appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
	"clonesets.apps.kruise.io":    v1beta1.GroupVersion.WithKind("CloneSet"),
	"statefulsets.apps.kruise.io": v1beta1.GroupVersion.WithKind("StatefulSet"),
	"daemonsets.apps.kruise.io":   v1beta1.GroupVersion.WithKind("DaemonSet"),
}

// history is every version of every object that the API server told of, straight and not through a proxy.
type history struct {
	mu      sync.Mutex
	changes []observed
	last    map[simulate.Key]client.Object
	stops   []func() error
}

// observed is a change, and when it was heard of.
type observed struct {
	simulate.Change
	at  time.Time
	uid types.UID
}

// record begins a history.
func (w *world) record() *history {
	w.Helper()
	h := &history{last: map[simulate.Key]client.Object{}}
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.NodeList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.ControllerRevisionList{},
		&v1beta1.CloneSetList{}, &v1beta1.StatefulSetList{}, &v1beta1.DaemonSetList{},
	} {
		within := namespace
		if _, global := list.(*corev1.NodeList); global {
			within = ""
		}
		stop, err := w.Follow(w.Ctx, list, within, func(e watch.Event) { h.see(w.keyOf(e.Object.(client.Object)), e) })
		w.Must(err)
		if _, isPods := list.(*corev1.PodList); !isPods {
			// A manager that starts has the API server forget the versions of our own kinds: it writes their CustomResourceDefinitions. A
			// history with such holes may show a promise as broken that was kept, and never the other way round.
			whole := stop
			stop = func() error {
				if err := whole(); err != nil {
					w.Logf("the history has holes: %v", err)
				}
				return nil
			}
		}
		h.stops = append(h.stops, stop)
	}
	return h
}

func (w *world) keyOf(o client.Object) simulate.Key {
	kind, err := w.Client.GroupVersionKindFor(o)
	if err != nil {
		panic(err) // a type that the history does not follow
	}
	return simulate.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (h *history) see(key simulate.Key, e watch.Event) {
	object, ok := e.Object.(client.Object)
	if !ok || e.Type == watch.Bookmark {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	change := simulate.Change{Revision: version(object), Time: now, Key: key, Before: h.last[key], After: object}
	if h.last[key] == nil {
		change.Before = nil // and not an interface that holds nothing
	}
	h.last[key] = object
	if e.Type == watch.Deleted {
		delete(h.last, key)
		change.After = nil
		if change.Before == nil {
			change.Before = object
		}
	}
	h.changes = append(h.changes, observed{Change: change, at: now, uid: object.GetUID()})
}

func version(o client.Object) int64 {
	n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err) // an API server's versions are numbers
	}
	return n
}

// end ends the history, and says what may have been missed.
func (h *history) end() error {
	var err error
	for _, stop := range h.stops {
		err = errors.Join(err, stop())
	}
	return err
}

// sorted returns all changes so far in the order in which the API server made them.
func (h *history) sorted() []observed {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := slices.Clone(h.changes)
	slices.SortStableFunc(out, func(a, b observed) int { return cmp.Compare(a.Revision, b.Revision) })
	return out
}

// told says which of the changes were made by a manager, and what it had been shown a while before it asked for them.
func told(changes []observed, records []*proxy.Record, lag time.Duration) []simulate.Change {
	type write struct {
		proxy.Request
		record *proxy.Record
	}
	byVersion, deletions := map[int64]write{}, map[types.UID][]write{}
	for _, r := range records {
		for _, asked := range r.Requests(time.Time{}) {
			switch {
			case asked.Verb == "delete" && asked.WroteUID != "":
				deletions[asked.WroteUID] = append(deletions[asked.WroteUID], write{asked, r})
			case asked.IsWrite() && asked.Wrote > 0:
				if _, known := byVersion[asked.Wrote]; !known {
					byVersion[asked.Wrote] = write{asked, r}
				}
			}
		}
	}
	out := make([]simulate.Change, len(changes))
	for i, c := range changes {
		by, ours := byVersion[c.Revision]
		if begins := c.Before != nil && c.Before.GetDeletionTimestamp() == nil && (c.After == nil || c.After.GetDeletionTimestamp() != nil); begins {
			for _, d := range deletions[c.uid] {
				by, ours = d, true
			}
		}
		out[i] = c.Change
		// A write that changes nothing is answered with the version of somebody else's.
		if ours && !c.at.Before(by.At) && !isOfSidecars(c.Change) {
			// The time is the manager's, which its grace periods begin and end by: a slow API server makes them no longer.
			out[i].Actor, out[i].Time = "manager", by.At
			out[i].Pass = passOf(by.Request, by.record, lag)
		}
	}
	return out
}

// passOf returns what a manager could know when it decided on a write, had it done so a while before; nil if it did not run by then.
func passOf(asked proxy.Request, record *proxy.Record, lag time.Duration) *simulate.Pass {
	seen := record.Seen(asked.At.Add(-lag))
	if seen["pods"] == 0 {
		seen = record.Seen(asked.At)
	}
	pass := &simulate.Pass{Owner: types.NamespacedName{Namespace: asked.Namespace}, Time: asked.At, Seen: map[schema.GroupVersionKind]int64{}}
	for name, kind := range resources {
		pass.Seen[kind] = seen[name]
	}
	return pass
}

// isOfSidecars reports whether a change gives a Pod other images of sidecars only: that is the SidecarSet's, and not its owner's.
func isOfSidecars(c simulate.Change) bool {
	before, _ := c.Before.(*corev1.Pod)
	after, _ := c.After.(*corev1.Pod)
	if before == nil || after == nil {
		return false
	}
	differs := false
	for i := range before.Spec.Containers {
		if i < len(after.Spec.Containers) && before.Spec.Containers[i].Image != after.Spec.Containers[i].Image {
			if before.Spec.Containers[i].Name != sidecar {
				return false
			}
			differs = true
		}
	}
	return differs
}

// lags are how long before a write its controller may have looked at the cluster: longer where an API server is slow.
var lags = []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 25 * time.Second}

// broken returns the promises that were broken, whenever the controllers had looked: nothing tells from outside when that was.
func broken(changes []observed, records ...*proxy.Record) []string {
	var out []invariant.Violation
	for i, lag := range lags {
		seen := told(changes, records, lag)
		var found []invariant.Violation
		found = append(found, invariant.Check(withClaimsOf(seen, recreated))...)
		found = append(found, invariant.CheckStatefulSet(withClaimsOf(seen, numbered))...)
		found = append(found, invariant.CheckDaemonSet(seen)...)
		if i == 0 {
			out = found
			continue
		}
		out = slices.DeleteFunc(out, func(v invariant.Violation) bool {
			return !slices.ContainsFunc(found, func(w invariant.Violation) bool { return w.Rule == v.Rule && w.Revision == v.Revision })
		})
	}
	var texts []string
	for _, v := range out {
		texts = append(texts, v.String()+story(changes, records, v.Revision))
	}
	return append(texts, overspent(changes)...)
}

// story tells who made a change, and what was asked for in the seconds before it.
func story(changes []observed, records []*proxy.Record, revision int64) string {
	var out strings.Builder
	for i, r := range records {
		var at time.Time
		for _, asked := range r.Requests(time.Time{}) {
			if asked.Wrote == revision {
				at = asked.At
				fmt.Fprintf(&out, "\n  manager %d asked at %s to %s %s %s, fault %q", i, at.Format(clock), asked.Verb, asked.Resource, asked.Name, asked.Fault)
			}
		}
		for _, asked := range r.Requests(at.Add(-2 * time.Second)) {
			if !at.IsZero() && asked.At.Before(at) && asked.IsWork() && asked.Resource != "events" {
				fmt.Fprintf(&out, "\n    %s %s %s %s: %d", asked.At.Format(clock), asked.Verb, asked.Resource, asked.Name, asked.Code)
			}
		}
	}
	for _, c := range changes {
		if c.Revision > revision-60 && c.Revision <= revision {
			detail := ""
			switch o := c.After.(type) {
			case *v1beta1.CloneSet:
				detail = fmt.Sprintf("generation %d of %d, replicas %d", o.Status.ObservedGeneration, o.Generation, *o.Spec.Replicas)
			case *v1beta1.StatefulSet:
				detail = fmt.Sprintf("generation %d of %d, replicas %d", o.Status.ObservedGeneration, o.Generation, *o.Spec.Replicas)
			}
			fmt.Fprintf(&out, "\n    %s %d %s %s %s, was there: %t, is there: %t", c.at.Format(clock), c.Revision, c.Key.Kind.Kind, c.Key.Name, detail,
				c.Before != nil, c.After != nil && c.After.GetDeletionTimestamp() == nil)
		}
	}
	return out.String()
}

// clock is how times are told.
const clock = "04:05.000"

// withClaimsOf returns a history without the claims of other workloads.
func withClaimsOf(changes []simulate.Change, workload string) []simulate.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c simulate.Change) bool {
		return c.Key.Kind.Kind == "PersistentVolumeClaim" && !strings.HasPrefix(c.Key.Name, "data-"+workload+"-")
	})
}

// overspent returns when fewer Pods under the budget were available than it allows. None fails by itself here.
func overspent(changes []observed) []string {
	var out []string
	pods := map[types.UID]*corev1.Pod{}
	complete := false
	for _, c := range changes {
		p, isPod := either(c.Change).(*corev1.Pod)
		if !isPod || p.Labels["app"] != guarded {
			continue
		}
		delete(pods, c.uid)
		if c.After != nil {
			pods[c.uid] = c.After.(*corev1.Pod)
		}
		available := 0
		for _, p := range pods {
			if disruption.Available(p) {
				available++
			}
		}
		complete = complete || available == guardedReplicas
		if before, ok := c.Before.(*corev1.Pod); complete && ok && disruption.Available(before) && available < guardedReplicas-budget {
			out = append(out, fmt.Sprintf("revision %d: the budget is overspent: %d Pods are available after a change of %s", c.Revision, available, p.Name))
		}
	}
	return out
}

func either(c simulate.Change) client.Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}
