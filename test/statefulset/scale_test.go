package statefulset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestOrderedPodsAreCreatedOneByOneWithTheirIdentity(t *testing.T) {
	e := newEnv(t)
	const minReady = 2
	e.create(ordered, func(set *v1beta1.StatefulSet) { set.Spec.MinReadySeconds = minReady })
	e.settled(at("1.27", 0, 1, 2)...)
	pods := e.allPods()
	for i, p := range pods {
		labels := []string{p.Labels["statefulset.kubernetes.io/pod-name"], p.Labels["apps.kubernetes.io/pod-index"], p.Spec.Hostname, p.Spec.Subdomain}
		if want := []string{p.Name, fmt.Sprint(i), p.Name, "web"}; !slices.Equal(labels, want) {
			t.Errorf("%s has %v, want %v", p.Name, labels, want)
		}
		if p.Labels[appsv1.ControllerRevisionHashLabelKey] != e.set().Status.UpdateRevision {
			t.Errorf("%s is at %s", p.Name, p.Labels[appsv1.ControllerRevisionHashLabelKey])
		}
		if i == 0 {
			continue
		}
		ready := readySince(&pods[i-1])
		if wait := p.CreationTimestamp.Sub(ready); wait < minReady*time.Second {
			t.Errorf("%s was created %s after the Pod below it got ready, want %d s at least", p.Name, wait, minReady)
		}
	}
}

func readySince(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func TestParallelPodsDoNotWaitForEachOther(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(20), image("nginx:never-ready"))
	e.eventually("all are there although none is ready", func() error {
		if n := len(e.allPods()); n != 20 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

func TestOrdinals(t *testing.T) {
	e := newEnv(t)
	e.create(func(set *v1beta1.StatefulSet) { set.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: 2} })
	e.settled(at("1.27", 2, 3, 4)...)
	two := e.uid(2)
	e.edit(func(set *v1beta1.StatefulSet) { set.Spec.Ordinals.Start = 0 })
	e.settled(at("1.27", 0, 1, 2)...)
	if e.uid(2) != two {
		t.Error("Pod 2 was replaced")
	}
	e.edit(replicas(4), reserve(intstr.FromString("2-5"), intstr.FromInt32(7)))
	e.settled(at("1.27", 0, 1, 6, 8)...)
	e.edit(reserve(intstr.FromString("2-5"), intstr.FromInt32(6), intstr.FromString("7")))
	e.settled(at("1.27", 0, 1, 8, 9)...)
	for _, entry := range []intstr.IntOrString{intstr.FromString("5-2"), intstr.FromString("a-b"), intstr.FromInt32(-1)} {
		err := e.tryEdit(reserve(intstr.FromInt32(1), entry))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.reserveOrdinals[1]") {
			t.Errorf("reserving %v: %v, want that entry 1 is refused", &entry, err)
		}
	}
}

// TestReservedPodsStayUntilTheyAreReplaced reserves the ordinals of two of three Pods at once.
func TestReservedPodsStayUntilTheyAreReplaced(t *testing.T) {
	e := newEnv(t)
	e.create()
	e.settled(at("1.27", 0, 1, 2)...)
	watch := e.watchAvailable()
	e.edit(reserve(intstr.FromString("0-1")))
	e.settled(at("1.27", 2, 3, 4)...)
	if least := watch(); least < 2 {
		t.Errorf("there were %d available Pods, want 2 at least", least)
	}
}

// watchAvailable notes how many Pods are available from now on, and returns the least of it when it is asked.
func (e *env) watchAvailable() func() int {
	e.Helper()
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		least := 1 << 30
		for {
			select {
			case <-stop:
				done <- least
				return
			case <-time.After(20 * time.Millisecond):
				available := 0
				for _, p := range e.allPods() {
					if p.DeletionTimestamp == nil && isReady(&p) {
						available++
					}
				}
				least = min(least, available)
			}
		}
	}()
	return func() int {
		close(stop)
		return <-done
	}
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func TestScaleStrategyLimitsHowManyPodsStartAtOnce(t *testing.T) {
	e := newEnv(t)
	limit := intstr.FromInt32(3)
	e.create(replicas(10), image("nginx:never-ready"), func(set *v1beta1.StatefulSet) {
		set.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: &limit}
	})
	e.eventually("three are there", func() error {
		if n := len(e.allPods()); n != 3 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	e.never("there are more than three", func() bool { return len(e.allPods()) > 3 })
	e.edit(image("nginx:1.27"), unavailable(intstr.FromString("100%")))
	e.settled(at("1.27", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)...)
}

func TestEndedPodsAreReplaced(t *testing.T) {
	e := newEnv(t)
	one := intstr.FromInt32(1)
	e.create(claims("data"), func(set *v1beta1.StatefulSet) {
		set.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: &one}
	})
	e.settled(at("1.27", 0, 1, 2)...)
	before := e.uid(1)
	claim, err := e.claim("data-web-1")
	e.must(err)
	p := e.pod(1)
	p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
	e.must(e.Status().Update(e.ctx, &p))
	e.eventually("Pod 1 is a new one", func() error {
		if now := e.uid(1); now == before || now == "" {
			return fmt.Errorf("it is %q", now)
		}
		return nil
	})
	e.settled(at("1.27", 0, 1, 2)...)
	if again, err := e.claim("data-web-1"); err != nil || again.UID != claim.UID {
		t.Errorf("its claim is %s now, was %s: %v", again.UID, claim.UID, err)
	}
}

func TestScaleInIsOrdered(t *testing.T) {
	e := newEnv(t)
	e.create(ordered, replicas(3))
	e.settled(at("1.27", 0, 1, 2)...)
	// Both that are to go are broken: neither may keep the other.
	e.edit(partition(1), image("nginx:crash"), unavailable(intstr.FromInt32(2)))
	e.eventually("both have crashed", func() error {
		for _, n := range []int{1} {
			if p := e.pod(n); p.Spec.Containers[0].Image != "nginx:crash" || isReady(&p) {
				return fmt.Errorf("%s is fine", p.Name)
			}
		}
		return nil
	})
	e.edit(replicas(1))
	e.settled(at("1.27", 0)...)
	e.edit(replicas(0))
	e.settled()
}

func TestQuotaIsReportedAndForgotten(t *testing.T) {
	e := newEnv(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods", Namespace: e.namespace}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
	e.must(e.Create(e.ctx, quota))
	e.create()
	condition := func(t appsv1.StatefulSetConditionType) *appsv1.StatefulSetCondition {
		for _, c := range e.set().Status.Conditions {
			if c.Type == t {
				return &c
			}
		}
		return nil
	}
	e.eventually("the third Pod is refused", func() error {
		c := condition(v1beta1.StatefulSetConditionFailedCreatePod)
		if c == nil || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "exceeded quota") {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	quota.Spec.Hard[corev1.ResourcePods] = resource.MustParse("9")
	e.must(e.Update(e.ctx, quota))
	e.settled(at("1.27", 0, 1, 2)...)
	e.eventually("it is forgotten", func() error {
		if c := condition(v1beta1.StatefulSetConditionFailedCreatePod); c != nil && c.Status != corev1.ConditionFalse {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
}

func TestScaleSubresourceAndDeletionProtection(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(1), func(set *v1beta1.StatefulSet) {
		set.Labels = map[string]string{"policy.kruise.io/delete-protection": "Cascading"}
	})
	set := e.settled(at("1.27", 0)...)
	if set.Status.LabelSelector != "app=web" {
		t.Errorf("the selector in the status is %q", set.Status.LabelSelector)
	}
	if err := e.Delete(e.ctx, set); !apierrors.IsForbidden(err) {
		t.Errorf("deleting answers %v, want that it is forbidden", err)
	}
	e.edit(replicas(0))
	e.settled()
	e.must(e.Delete(e.ctx, e.set()))
}
