package statefulset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/scene"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	e.Eventually("all are there although none is ready", func() error {
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
					if p.DeletionTimestamp == nil && scene.IsReady(&p) {
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

func TestScaleStrategyLimitsHowManyPodsStartAtOnce(t *testing.T) {
	e := newEnv(t)
	limit := intstr.FromInt32(3)
	e.create(replicas(10), image("nginx:never-ready"), func(set *v1beta1.StatefulSet) {
		set.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: &limit}
	})
	e.Eventually("three are there", func() error {
		if n := len(e.allPods()); n != 3 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	e.Never("there are more than three", func() bool { return len(e.allPods()) > 3 })
	e.edit(image("nginx:1.27"), unavailable(intstr.FromString("100%")))
	e.settled(at("1.27", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)...)
}

// TestEndedPodsAreReplaced has a node without a kubelet, so that nobody but the test says what becomes of its Pods.
func TestEndedPodsAreReplaced(t *testing.T) {
	e := newEnv(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "silent-" + e.Namespace}}
	e.Must(e.Create(e.Ctx, node))
	t.Cleanup(func() { _ = shared.Client.Delete(context.Background(), node) })
	one := intstr.FromInt32(1)
	e.create(replicas(2), claims("data"), func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Spec.NodeName = node.Name
		set.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: &one}
	})
	report := func(phase corev1.PodPhase, ready corev1.ConditionStatus) {
		e.Eventually("Pod 0 is there", func() error {
			p, err := e.tryPod(0)
			if err != nil || p.DeletionTimestamp != nil {
				return fmt.Errorf("it is not, deleted=%v: %w", p.DeletionTimestamp, err)
			}
			p.Status.Phase = phase
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()}}
			return e.Status().Update(e.Ctx, &p)
		})
	}
	report(corev1.PodRunning, corev1.ConditionTrue)
	before := e.uid(0)
	claim, err := e.claim("data-web-0")
	e.Must(err)
	report(corev1.PodFailed, corev1.ConditionFalse)
	e.Eventually("Pod 0 is a new one", func() error {
		p, err := e.tryPod(0)
		if err == nil && p.DeletionTimestamp != nil {
			// There is no kubelet that would say when its containers have ended.
			now := int64(0)
			err = e.Delete(e.Ctx, &p, &client.DeleteOptions{GracePeriodSeconds: &now})
		}
		if string(p.UID) == before || err != nil {
			return fmt.Errorf("it is %s: %w", p.UID, err)
		}
		return nil
	})
	if again, err := e.claim("data-web-0"); err != nil || again.UID != claim.UID {
		t.Errorf("its claim is %s now, was %s: %v", again.UID, claim.UID, err)
	}
}

func TestScaleInIsOrdered(t *testing.T) {
	e := newEnv(t)
	e.create(ordered, replicas(3))
	e.settled(at("1.27", 0, 1, 2)...)
	// What is to go is broken or missing by then: that must not keep it.
	e.edit(partition(1), image("nginx:crash"), unavailable(intstr.FromInt32(2)))
	e.Eventually("Pod 1 has crashed", func() error {
		p, err := e.tryPod(1)
		if err == nil && (p.Spec.Containers[0].Image != "nginx:crash" || scene.IsReady(&p) || p.Status.Phase == corev1.PodPending) {
			err = fmt.Errorf("%s is fine, or not there yet", p.Name)
		}
		return err
	})
	e.edit(replicas(1))
	e.settled(at("1.27", 0)...)
	e.edit(replicas(0))
	e.settled()
}

func TestQuotaIsReportedAndForgotten(t *testing.T) {
	e := newEnv(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods", Namespace: e.Namespace}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
	e.Must(e.Create(e.Ctx, quota))
	e.create()
	condition := func(t v1beta1.StatefulSetConditionType) *v1beta1.StatefulSetCondition {
		for _, c := range e.set().Status.Conditions {
			if c.Type == t {
				return &c
			}
		}
		return nil
	}
	e.Eventually("the third Pod is refused", func() error {
		c := condition(v1beta1.StatefulSetConditionFailedCreatePod)
		if c == nil || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "exceeded quota") {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	e.Must(e.Patch(e.Ctx, quota, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hard":{"pods":"9"}}}`))))
	e.settled(at("1.27", 0, 1, 2)...)
	e.Eventually("it is forgotten", func() error {
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
	if err := e.Delete(e.Ctx, set); !apierrors.IsForbidden(err) {
		t.Errorf("deleting answers %v, want that it is forbidden", err)
	}
	e.edit(replicas(0))
	e.settled()
	e.Must(e.Delete(e.Ctx, e.set()))
}
