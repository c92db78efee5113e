package statefulset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/scene"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// course is what became of the Pods, by every version that the API server told of.
type course struct {
	mu   sync.Mutex
	pods map[string]*corev1.Pod
	// left are the Pods in the order in which they were told to go.
	left []string
	// mostDown is the most Pods that were not ready at a time, of those that are there or were.
	mostDown int
	// readyAfter is, for each Pod that was told to go, how many Pods had become ready before that.
	ready      int
	readyAfter map[string]int
}

// follow notes what happens to the Pods from now on, and ends when it is asked for the course.
func (e *env) follow() func() *course {
	e.Helper()
	c := &course{pods: map[string]*corev1.Pod{}, readyAfter: map[string]int{}}
	stop, err := shared.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		if p, ok := event.Object.(*corev1.Pod); ok {
			c.see(event.Type, p)
		}
	})
	e.Must(err)
	c.mu.Lock()
	c.mostDown, c.ready = 0, 0
	c.mu.Unlock()
	return func() *course {
		e.Must(stop())
		return c
	}
}

func (c *course) see(kind watch.EventType, p *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.pods[p.Name]
	if kind == watch.Deleted || p.DeletionTimestamp != nil {
		if before == nil || before.UID != p.UID || before.DeletionTimestamp == nil {
			c.left = append(c.left, strings.TrimPrefix(p.Name, "web-"))
			c.readyAfter[p.Name] = c.ready
		}
	} else if scene.IsReady(p) && (before == nil || before.UID != p.UID || !scene.IsReady(before)) {
		c.ready++
	}
	c.pods[p.Name] = p
	down := 0
	for _, p := range c.pods {
		if p.DeletionTimestamp != nil || !scene.IsReady(p) {
			down++
		}
	}
	c.mostDown = max(c.mostDown, down)
}

func TestPodsAreUpdatedFromTheHighestOrdinalDown(t *testing.T) {
	for name, tc := range map[string]struct {
		limit intstr.IntOrString
		most  int
	}{
		"two at a time":           {intstr.FromInt32(2), 2},
		"34% of five, which is 1": {intstr.FromString("34%"), 1},
		"all at once":             {intstr.FromString("100%"), 5},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.create(replicas(5), unavailable(tc.limit), slow)
			e.settled(at("1.27", 0, 1, 2, 3, 4)...)
			course := e.follow()
			e.edit(image("nginx:1.28"))
			e.settled(at("1.28", 0, 1, 2, 3, 4)...)
			c := course()
			if c.mostDown != tc.most {
				t.Errorf("%d Pods were not ready at a time, want %d", c.mostDown, tc.most)
			}
			if len(c.left) != 5 {
				t.Errorf("the Pods that were replaced are %v", c.left)
			}
			for i, n := range c.left {
				// Those of one step are deleted at the same time, in any order.
				if place := slices.Index([]string{"4", "3", "2", "1", "0"}, n); tc.most < 5 && (place < i-(tc.most-1) || place > i+(tc.most-1)) {
					t.Errorf("Pods were replaced in the order %v", c.left)
					break
				}
			}
			if n := c.readyAfter["web-0"]; tc.most == 5 && n > 0 {
				t.Errorf("%d new Pods were ready before the last old one went", n)
			}
		})
	}
}

func TestStatusFollowsAnOrderedStart(t *testing.T) {
	e := newEnv(t)
	var seen []string
	stop, err := shared.Follow(e.Ctx, &v1beta1.StatefulSetList{}, e.Namespace, func(event watch.Event) {
		set, ok := event.Object.(*v1beta1.StatefulSet)
		if !ok || set.Status.ObservedGeneration == 0 {
			return
		}
		if now := fmt.Sprintf("%d", set.Status.AvailableReplicas); len(seen) == 0 || seen[len(seen)-1] != now {
			seen = append(seen, now)
		}
	})
	e.Must(err)
	course := e.follow()
	e.create(ordered, func(set *v1beta1.StatefulSet) {
		seconds := int32(5)
		set.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds = &seconds
	})
	e.settled(at("1.27", 0, 1, 2)...)
	e.Must(stop())
	if want := []string{"0", "1", "2", "3"}; !slices.Equal(seen, want) {
		t.Errorf("the available Pods were %v, want %v", seen, want)
	}
	if c := course(); c.mostDown != 1 {
		t.Errorf("%d Pods were starting at a time, want 1", c.mostDown)
	}
	pods := e.allPods()
	for i := range pods[:2] {
		if wait := pods[i+1].CreationTimestamp.Sub(readySince(&pods[i])); wait < 5*time.Second {
			t.Errorf("%s was created %s after %s got ready, want 5 s at least", pods[i+1].Name, wait, pods[i].Name)
		}
	}
}

func TestPodsStartWithinTheLimitOfScaling(t *testing.T) {
	e := newEnv(t)
	limit := intstr.FromInt32(3)
	course := e.follow()
	e.create(replicas(10), slow, func(set *v1beta1.StatefulSet) {
		set.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: &limit}
	})
	e.settled(at("1.27", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)...)
	if c := course(); c.mostDown != 3 {
		t.Errorf("%d Pods were starting at a time, want 3", c.mostDown)
	}
}

// TestUpdatePassesACrashedPod has the container of a low ordinal crash before the update, whose budget of one it would use up for ever.
func TestUpdatePassesACrashedPod(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(5))
	e.settled(at("1.27", 0, 1, 2, 3, 4)...)
	e.patchPod(1, func(p *corev1.Pod) {
		p.Annotations = maps.Clone(p.Annotations)
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations["sim.kruise.io/run-for"], p.Annotations["sim.kruise.io/exit-code"] = "100ms", "1"
		p.Annotations["sim.kruise.io/kill"] = "app/1"
	})
	e.Eventually("Pod 1 crashes again and again", func() error {
		p := e.pod(1)
		if w := p.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "CrashLoopBackOff" {
			return fmt.Errorf("it is %+v", p.Status.ContainerStatuses[0].State)
		}
		return nil
	})
	course := e.follow()
	e.edit(image("nginx:1.28"))
	e.settled(at("1.28", 0, 1, 2, 3, 4)...)
	// It is replaced first, and the others once it is back.
	if c := course(); c.mostDown > 1 || c.left[0] != "1" {
		t.Errorf("%d Pods were not ready at a time, replaced in the order %v", c.mostDown, c.left)
	}
}

// TestAPauseInTheMiddleOfAnUpdate stops after two of five Pods.
func TestAPauseInTheMiddleOfAnUpdate(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(5), partition(3))
	e.settled(at("1.27", 0, 1, 2, 3, 4)...)
	e.edit(image("nginx:1.28"))
	e.settled("0 1.27", "1 1.27", "2 1.27", "3 1.28", "4 1.28")
	e.edit(rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.Paused, r.Partition = true, nil }))
	e.Never("anything more is updated", func() bool { return e.set().Status.UpdatedReplicas != 2 })
	e.edit(replicas(6))
	e.settled("0 1.27", "1 1.27", "2 1.27", "3 1.28", "4 1.28", "5 1.28")
	e.edit(rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.Paused = false }))
	e.settled(at("1.28", 0, 1, 2, 3, 4, 5)...)
}

// TestGraceIsGivenBeforeTheImageChanges watches when the Pod goes out of service and when its image changes.
func TestGraceIsGivenBeforeTheImageChanges(t *testing.T) {
	e := newEnv(t)
	const grace = 5 * time.Second
	e.create(replicas(1), policy(v1beta1.InPlaceIfPossiblePodUpdateStrategyType), rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) {
		r.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: int32(grace / time.Second)}
	}))
	e.settled(at("1.27", 0)...)
	before := e.pod(0)
	var down, changed time.Time
	stop, err := shared.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		p, ok := event.Object.(*corev1.Pod)
		switch {
		case !ok:
		case !scene.IsReady(p) && down.IsZero():
			down = time.Now()
			for _, c := range p.Status.Conditions {
				if c.Type == pub.InPlaceUpdateReady && c.Status == corev1.ConditionFalse {
					down = c.LastTransitionTime.Time
				}
			}
		case p.Spec.Containers[0].Image == "nginx:1.28" && changed.IsZero():
			for _, fields := range p.ManagedFields {
				if fields.Subresource == "" && fields.Time.Time.After(changed) {
					changed = fields.Time.Time
				}
			}
		}
	})
	e.Must(err)
	e.edit(image("nginx:1.28"))
	e.settled(at("1.28", 0)...)
	e.Must(stop())
	// Both are times of the API, and the record of the update counts in whole seconds, too.
	if waited := changed.Sub(down); waited < grace-2*time.Second {
		t.Errorf("the image changed %s after the Pod was out of service, want %s", waited, grace)
	}
	after := e.pod(0)
	if after.UID != before.UID || after.Status.PodIP != before.Status.PodIP || after.Spec.NodeName != before.Spec.NodeName {
		t.Errorf("UID, address and node were %s, %s, %s and are %s, %s, %s", before.UID, before.Status.PodIP, before.Spec.NodeName, after.UID, after.Status.PodIP, after.Spec.NodeName)
	}
	want := fmt.Sprintf("SuccessfulUpdatePodInPlace successfully update pod web-0 in-place(revision %s)", e.set().Status.UpdateRevision)
	e.Eventually("an event tells of it", func() error {
		if told := e.told(); !slices.Contains(told, want) {
			return fmt.Errorf("the events are %q, want %q", told, want)
		}
		return nil
	})
}

// told lists the events on the StatefulSet as reason and message.
func (e *env) told() []string {
	e.Helper()
	var events corev1.EventList
	e.Must(e.List(e.Ctx, &events, client.InNamespace(e.Namespace)))
	var out []string
	for _, event := range events.Items {
		if event.Source.Component == "statefulset-controller" {
			out = append(out, event.Reason+" "+event.Message)
		}
	}
	return out
}
