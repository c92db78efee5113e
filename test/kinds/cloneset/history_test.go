package cloneset

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// history is what the API server's watches told of a CloneSet and its Pods: every version of each, in order.
type history struct {
	mu sync.Mutex
	// rows are the distinct values, in order, of the columns DESIRED UPDATED UPDATED_READY READY TOTAL.
	rows []string
	// fewestAvailable and mostPods are the extremes since watching began; both are counted over Pods that are not being deleted.
	fewestAvailable, mostPods int
	pods                      map[string]*corev1.Pod
	// states lists, by Pod, the lifecycle states that it was seen in, in order.
	states map[string][]string
	// updated lists the Pods in the order in which they left their first revision label or were deleted.
	updated []string
	// versions lists, by Pod, every version of it, in order.
	versions map[string][]*corev1.Pod
}

// record starts to watch; call it while the CloneSet is at rest.
func (e *env) record(name string) *history {
	e.Helper()
	h := &history{pods: map[string]*corev1.Pod{}, states: map[string][]string{}, versions: map[string][]*corev1.Pod{}}
	for _, p := range e.pods(name) {
		h.pods[p.Name] = &p
	}
	h.fewestAvailable, h.mostPods = len(h.pods), len(h.pods)
	follow := func(list client.ObjectList, see func(watch.Event)) {
		stop, err := e.Follow(context.Background(), list, e.Namespace, func(event watch.Event) {
			h.mu.Lock()
			defer h.mu.Unlock()
			see(event)
		})
		e.Must(err)
		e.Cleanup(func() {
			if err := stop(); err != nil {
				e.Error(err)
			}
		})
	}
	follow(&v1beta1.CloneSetList{}, func(event watch.Event) {
		if set, ok := event.Object.(*v1beta1.CloneSet); ok && set.Name == name && set.Status.ObservedGeneration == set.Generation {
			h.addRow(set)
		}
	})
	follow(&corev1.PodList{}, h.seePod)
	return h
}

func (h *history) addRow(set *v1beta1.CloneSet) {
	s := set.Status
	row := fmt.Sprintf("%d %d %d %d %d", *set.Spec.Replicas, s.UpdatedReplicas, s.UpdatedReadyReplicas, s.ReadyReplicas, s.Replicas)
	if len(h.rows) == 0 || h.rows[len(h.rows)-1] != row {
		h.rows = append(h.rows, row)
	}
}

func (h *history) seePod(event watch.Event) {
	p := event.Object.(*corev1.Pod)
	h.versions[p.Name] = append(h.versions[p.Name], p)
	old := h.pods[p.Name]
	gone := event.Type == watch.Deleted || p.DeletionTimestamp != nil
	relabelled := old != nil && old.Labels["controller-revision-hash"] != p.Labels["controller-revision-hash"]
	if (gone && old != nil || relabelled) && !slices.Contains(h.updated, p.Name) {
		h.updated = append(h.updated, p.Name)
	}
	if gone {
		delete(h.pods, p.Name)
	} else {
		h.pods[p.Name] = p
	}
	if seen := h.states[p.Name]; !gone && (len(seen) == 0 || seen[len(seen)-1] != string(pod.State(p))) {
		h.states[p.Name] = append(seen, string(pod.State(p)))
	}
	available := 0
	for _, p := range h.pods {
		// A Pod still counts while it waits for a lifecycle hook: only readiness is judged here.
		if pod.IsReady(p) {
			available++
		}
	}
	h.fewestAvailable = min(h.fewestAvailable, available)
	h.mostPods = max(h.mostPods, len(h.pods))
}

// read runs f with the history at rest.
func (h *history) read(f func(h *history)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h)
}

// inOrder checks that the rows were seen in this order, with others in between or not.
func (h *history) inOrder(rows ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := rows
	for _, row := range h.rows {
		if len(left) > 0 && row == left[0] {
			left = left[1:]
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("row %q is missing or out of order in %q", left[0], h.rows)
	}
	return nil
}
