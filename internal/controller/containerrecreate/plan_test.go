package containerrecreate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

func now() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// underWay returns a request that its daemon works at, and its Pod, which has the gate.
func underWay() Snapshot {
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "r", UID: "r", CreationTimestamp: metav1.NewTime(now().Add(-10 * time.Second)),
		Labels: map[string]string{keys.RecreatePodUID: "p", keys.RecreateActive: "true"},
	}}
	r.Spec.PodName, r.Spec.Containers = "p", []v1beta1.ContainerRecreateRequestContainer{
		{Name: "a", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "c://0"}},
	}
	r.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.KruisePodReady}}
	return Snapshot{Request: r, Pod: p, Now: now()}
}

func (v Snapshot) after(change func(*Snapshot)) Snapshot { change(&v); return v }

func TestPlan(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	ttl := int32(5)
	held := func(v *Snapshot) {
		v.Request.Finalizers = []string{keys.RecreateUnreadyAcquired}
		lifecycle.Hold(v.Pod, v.mark(), now())
	}
	ended := func(v *Snapshot) { recreate.Complete(&v.Request.Status, "", now().Add(-time.Second)) }
	grace := func(v *Snapshot) {
		v.Request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: seconds(5)}
	}
	cases := map[string]struct {
		change []func(*Snapshot)
		want   []string // kind of write, and name
		wait   time.Duration
	}{
		"nothing to do":                  {nil, nil, 0},
		"the new container is passed on": {[]func(*Snapshot){recreated}, []string{"update status r"}, 0},
		"the new container is passed on when its daemon has had time to see it": {
			[]func(*Snapshot){recreated, func(v *Snapshot) {
				v.Pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(now().Add(-time.Second))
			}}, nil, time.Second,
		},
		"so is that it is ready": {
			[]func(*Snapshot){recreated, func(v *Snapshot) {
				v.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, LastTransitionTime: metav1.NewTime(now())}}
			}}, nil, 2 * time.Second,
		},
		"the Pod is taken out of service": {[]func(*Snapshot){grace}, []string{"update r", "update status p", "update status r"}, 0},
		"it goes on after half of that":   {[]func(*Snapshot){grace, held}, []string{"update status r"}, 0},
		"a Pod without the gate is left": {
			[]func(*Snapshot){grace, func(v *Snapshot) { v.Pod.Spec.ReadinessGates = nil }}, []string{"update status r"}, 0,
		},
		"the grace has begun": {[]func(*Snapshot){grace, held, begun}, nil, 0},
		"the Pod is gone":     {[]func(*Snapshot){func(v *Snapshot) { v.Pod = nil }}, []string{"update status r"}, 0},
		"the deadline is near": {
			[]func(*Snapshot){func(v *Snapshot) { v.Request.Spec.ActiveDeadlineSeconds = seconds(12) }}, nil, 2 * time.Second,
		},
		"it has ended": {[]func(*Snapshot){ended}, []string{"update r"}, 0},
		"it has ended, by a daemon that tells nothing of the new container": {
			[]func(*Snapshot){ended, recreated}, []string{"update status r", "update r"}, 0,
		},
		"it has ended, and tells of the new container": {
			[]func(*Snapshot){ended, recreated, func(v *Snapshot) {
				v.Request.Status.ContainerStatusSnapshot = recreate.Snapshot(v.Request, v.Pod)
			}}, []string{"update r"}, 0,
		},
		"it has ended and is closed, and only now its Pod tells of the new container": {
			[]func(*Snapshot){ended, closed, recreated}, []string{"update status r"}, 0,
		},
		"it has ended and is closed for long, and its Pod tells of a new container": {
			[]func(*Snapshot){ended, closed, recreated, func(v *Snapshot) { v.Now = now().Add(time.Minute) }}, nil, 0,
		},
		"it has ended, and held its Pod": {[]func(*Snapshot){held, ended}, []string{"update status p", "update r"}, 0},
		"it has ended, and its Pod too":  {[]func(*Snapshot){held, ended, func(v *Snapshot) { v.Pod = nil }}, []string{"update r"}, 0},
		"it has ended, and is closed":    {[]func(*Snapshot){ended, closed}, nil, 0},
		"it has ended, and is kept for a bit": {
			[]func(*Snapshot){ended, closed, func(v *Snapshot) { v.Request.Spec.TTLSecondsAfterFinished = &ttl }}, nil, 4 * time.Second,
		},
		"it has been kept for long enough": {[]func(*Snapshot){ended, closed, func(v *Snapshot) {
			v.Request.Spec.TTLSecondsAfterFinished, v.Now = &ttl, now().Add(time.Minute)
		}}, []string{"delete r"}, 0},
		"it is deleted while it holds its Pod":   {[]func(*Snapshot){held, deleted}, []string{"update status p", "update r"}, 0},
		"it is deleted by somebody else's leave": {[]func(*Snapshot){deleted}, nil, 0},
		"another Pod has the Pod's name": {
			[]func(*Snapshot){held, func(v *Snapshot) { v.Pod.UID = "other" }, ended}, []string{"update r"}, 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := underWay()
			for _, change := range tc.change {
				v = v.after(change)
			}
			request, p := v.Request.DeepCopy(), v.Pod.DeepCopy()
			decided := Plan(v)
			var got []string
			for _, a := range decided.Actions() {
				got = append(got, string(a.Verb)+" "+a.Object().GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || decided.Recheck != tc.wait {
				t.Errorf("recheck in %s, want %s; writes (-want +got):\n%s", decided.Recheck, tc.wait, diff)
			}
			if diff := cmp.Diff(request, v.Request) + cmp.Diff(p, v.Pod); diff != "" {
				t.Errorf("the plan changed what it looked at:\n%s", diff)
			}
		})
	}
}

func recreated(v *Snapshot) {
	v.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "a", ContainerID: "c://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
}

func begun(v *Snapshot) { recreate.BeginGrace(&v.Request.Status, now()) }

func closed(v *Snapshot) { delete(v.Request.Labels, keys.RecreateActive) }

func deleted(v *Snapshot) { v.Request.DeletionTimestamp = &metav1.Time{Time: now()} }

func TestPlanIsPrinted(t *testing.T) {
	v := underWay()
	v.Pod = nil
	want := "ContainerRecreateRequest ns/r   Pod p, Recreating\n  update   r   end   pod has gone\n"
	if got := Plan(v).String(); !strings.Contains(got, want) {
		t.Errorf("it says\n%swant\n%s", got, want)
	}
}
