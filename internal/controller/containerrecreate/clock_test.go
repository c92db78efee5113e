package containerrecreate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// asked is a cluster of one Pod and one request for it, whose clock the test moves.
type asked struct {
	*testing.T
	*promises.World
	pod, request simulate.Key
}

func newAsked(t *testing.T, change func(*v1beta1.ContainerRecreateRequestSpec)) *asked {
	t.Helper()
	a := &asked{
		T: t, pod: simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespace: "ns", Name: "p"},
		request: simulate.Key{Kind: v1beta1.GroupVersion.WithKind("ContainerRecreateRequest"), Namespace: "ns", Name: "r"},
	}
	suite := promises.Suite{
		Scheme: promises.Scheme(), Watched: []client.Object{&v1beta1.ContainerRecreateRequest{}, &corev1.Pod{}},
		Populate: func(w *promises.World) promises.Scenario {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
			p.Spec.NodeName, p.Spec.Containers = "n", []corev1.Container{{Name: "main", Image: "image"}}
			created, err := w.Cluster.Create(promises.UserActor, p)
			if err != nil {
				t.Fatal(err)
			}
			r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", Labels: map[string]string{
				keys.RecreatePodUID: string(created.GetUID()), keys.RecreateNodeName: "n", keys.RecreateActive: "true",
			}}}
			r.Spec.PodName, r.Spec.Containers = "p", []v1beta1.ContainerRecreateRequestContainer{{Name: "main"}}
			change(&r.Spec)
			if _, err := w.Cluster.Create(promises.UserActor, r); err != nil {
				t.Fatal(err)
			}
			return promises.Scenario{Start: start, Act: func() {}}
		},
	}
	a.World = suite.World(0)
	a.Rig.Turmoil(t.Context(), 0) // it starts, and nothing goes wrong
	return a
}

func start(c promises.Connection) simulate.Process { return promises.Start(Kind(), c.Runtime(), c) }

// settle lets everything happen that is due within a time; the clock moves on to what the controller waits for, and no further.
func (a *asked) settle(patience time.Duration) {
	a.Helper()
	if err := a.Rig.Settle(a.Context(), patience); err != nil {
		a.Fatal(err)
	}
}

// now returns the request as it is; nil when it is gone.
func (a *asked) now() *v1beta1.ContainerRecreateRequest {
	r, _ := a.Cluster.Get(a.request).(*v1beta1.ContainerRecreateRequest)
	return r
}

// ended returns after how long the request has ended, and with what message; zero while it has not.
func (a *asked) ended() (time.Duration, string) {
	a.Helper()
	r := a.now()
	if r.Status.CompletionTime == nil {
		return 0, r.Status.Message
	}
	if _, active := r.Labels[keys.RecreateActive]; active {
		a.Error("it has ended and is active still: daemons go on watching it")
	}
	return r.Status.CompletionTime.Sub(r.CreationTimestamp.Time), r.Status.Message
}

// daemon writes what the daemon of the node makes of the request.
func (a *asked) daemon(phase v1beta1.ContainerRecreateRequestPhase, states ...v1beta1.ContainerRecreateRequestContainerRecreateState) {
	simulate.Update(a.Cluster, "daemon", a.now(), func(r *v1beta1.ContainerRecreateRequest) {
		r.Status.Phase, r.Status.ContainerRecreateStates = phase, states
	})
}

func TestADaemonThatSaysNothing(t *testing.T) {
	a := newAsked(t, func(s *v1beta1.ContainerRecreateRequestSpec) {
		ttl := int32(5)
		s.TTLSecondsAfterFinished = &ttl
	})
	a.settle(59 * time.Second)
	if took, _ := a.ended(); took != 0 {
		t.Fatalf("it ended after %s: a daemon has a minute", took)
	}
	a.settle(time.Minute + time.Second)
	if a.now() != nil {
		t.Fatalf("it is kept: %+v", a.now().Status)
	}
	var last *v1beta1.ContainerRecreateRequest
	var gone time.Time
	for _, c := range a.Cluster.History() {
		if r, ok := c.After.(*v1beta1.ContainerRecreateRequest); ok && r.Status.CompletionTime != nil {
			last = r
		}
		if c.Key == a.request && c.After == nil {
			gone = c.Time
		}
	}
	if took := last.Status.CompletionTime.Sub(last.CreationTimestamp.Time); took != time.Minute || last.Status.Message != "daemon has not responded for a long time" {
		t.Errorf("it ended after %s: %s", took, last.Status.Message)
	}
	if kept := gone.Sub(last.Status.CompletionTime.Time); kept < 5*time.Second || kept > 10*time.Second {
		t.Errorf("it was kept for %s, want 5 to 10 s", kept)
	}
}

func TestARequestThatWaitsItsTurn(t *testing.T) {
	a := newAsked(t, func(*v1beta1.ContainerRecreateRequestSpec) {})
	a.daemon(v1beta1.ContainerRecreateRequestPending)
	a.settle(24 * time.Hour)
	if took, message := a.ended(); took != 0 {
		t.Errorf("it ended after %s: %s; its turn may come yet", took, message)
	}
}

func TestADeadlineThatPasses(t *testing.T) {
	a := newAsked(t, func(s *v1beta1.ContainerRecreateRequestSpec) {
		deadline := int64(10)
		s.ActiveDeadlineSeconds = &deadline
	})
	a.daemon(v1beta1.ContainerRecreateRequestRecreating, v1beta1.ContainerRecreateRequestContainerRecreateState{
		Name: "main", Phase: v1beta1.ContainerRecreateRequestRecreating, IsKilled: true,
	})
	a.settle(time.Hour)
	took, message := a.ended()
	if took < 10*time.Second || took > 14*time.Second || message != "recreating has exceeded the activeDeadlineSeconds" {
		t.Errorf("it ended after %s: %s", took, message)
	}
	if state := a.now().Status.ContainerRecreateStates[0]; state.Phase != v1beta1.ContainerRecreateRequestRecreating || state.Message != "" {
		t.Errorf("its container, which was not done, is %+v", state)
	}
}

func TestAPodThatGoesMeanwhile(t *testing.T) {
	a := newAsked(t, func(*v1beta1.ContainerRecreateRequestSpec) {})
	a.settle(time.Second)
	a.Cluster.Delete(promises.UserActor, a.Cluster.Get(a.pod))
	a.settle(time.Second)
	if a.now().Status.Message != "pod has gone" || a.now().Status.CompletionTime == nil {
		t.Errorf("it is %+v", a.now().Status)
	}
}
