package operation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// newServiceSite returns a cluster with a Service for managers, and no manager yet.
func newServiceSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, cluster.Options{Nodes: 1})
	s.Must(s.Install(s.Ctx))
	root, err := cluster.Root()
	s.Must(err)
	s.Must(s.ApplyFile(s.Ctx, filepath.Join(root, "config/webhook/service.yaml")))
	return s
}

// TestALeaderThatWasPausedDoesNoHarm: it is stopped in the middle of a rollout until another one leads, and then goes on where it was.
func TestALeaderThatWasPausedDoesNoHarm(t *testing.T) {
	s := newServiceSite(t)
	managers := []*colleague{s.join("a"), s.join("b")}
	const replicas, unavailable = 16, 2
	s.create(rolling("paused", replicas, unavailable))
	s.available("paused", replicas)
	before := s.pods("paused")
	watched := s.watchAvailable("paused", replicas-unavailable)
	s.setImage("paused", "nginx:mainline")
	s.haveUpdated("paused", 4)

	leader, other := s.leading(managers)
	s.Must(s.Client.Delete(s.Ctx, s.slice(leader.name, "1"))) // what a paused webhook does is another test's
	was := s.holder()
	s.Must(syscall.Kill(leader.PID(), syscall.SIGSTOP))
	s.Eventually("another manager leads", func() error {
		if now := s.holder(); now == was || now == "" {
			return fmt.Errorf("%q leads", now)
		}
		return nil
	})
	takeover := time.Now()
	s.haveUpdated("paused", 8)
	s.Must(syscall.Kill(leader.PID(), syscall.SIGCONT))
	s.Eventually("the former leader is gone", func() error {
		if err := syscall.Kill(leader.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			return errors.New("it runs")
		}
		return nil
	})
	s.haveUpdated("paused", replicas)
	s.available("paused", replicas)
	watched()
	for _, w := range leader.line.since(takeover) {
		if !w.isFenced() {
			t.Errorf("the former leader has written after its Lease was taken over: %s", w)
		}
	}
	if len(other.line.since(takeover)) == 0 {
		t.Error("no write of the other manager was seen: the test sees nothing")
	}
	s.sameObjects(before, s.pods("paused"))
}

// TestALeaderThatLosesItsLeaseRefusesNothing: its controllers stop at once, and it serves webhooks until nobody asks it any more.
func TestALeaderThatLosesItsLeaseRefusesNothing(t *testing.T) {
	s := newServiceSite(t)
	managers := []*colleague{s.join("a"), s.join("b")}
	s.selected()
	s.create(rolling("led", 2, 1))
	s.available("led", 2)
	leader, _ := s.leading(managers)
	load := &load{site: s}
	ctx, stop := context.WithCancel(s.Ctx)
	var ending sync.WaitGroup
	ending.Go(func() { load.run(ctx, 50, load.create) })
	leader.line.cutLease()
	s.Eventually("the leader is not ready", func() error {
		ask, cancel := context.WithTimeout(s.Ctx, time.Second)
		defer cancel()
		if leader.IsReady(ask) {
			return errors.New("it is ready")
		}
		return nil
	})
	lost := time.Now()
	time.Sleep(endpointLag)
	s.Must(s.Client.Delete(s.Ctx, s.slice(leader.name, "1")))
	s.Eventually("the former leader is gone", func() error {
		if err := syscall.Kill(leader.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			return errors.New("it runs")
		}
		return nil
	})
	stop()
	ending.Wait()
	t.Logf("%d Pods were created", load.created.Load())
	if load.created.Load() < 100 {
		t.Error("that is too few to tell anything")
	}
	for _, w := range leader.line.since(lost.Add(time.Second)) {
		t.Errorf("the former leader has written a second after it lost its Lease: %s", w)
	}
}

// TestAManagerThatHangsDelaysOnlyWhatIsSelected: the only manager is slow; then one of two is stopped for a while, and then for good.
func TestAManagerThatHangsDelaysOnlyWhatIsSelected(t *testing.T) {
	s := newServiceSite(t)
	other := s.launchAs("leader", "")
	hangs := s.launchAs("hangs", "")
	way := s.detourTo(hangs.WebhookPort())
	s.addEndpoint(hangs.name, way.port)
	s.selected()
	load := &hanging{load: load{site: s}}
	s.servesSlowly(way, load)
	s.addEndpoint(other.name, other.WebhookPort()) // the API server keeps its connections to the other one
	ctx, stop := context.WithCancel(s.Ctx)
	var ending sync.WaitGroup
	ending.Go(func() { load.run(ctx, 20, load.createSelected) })
	ending.Go(func() { load.run(ctx, 20, load.createOther) })

	time.Sleep(time.Second)
	s.Must(syscall.Kill(hangs.PID(), syscall.SIGSTOP))
	probe, cancel := context.WithTimeout(s.Ctx, 3*time.Second)
	if hangs.IsReady(probe) {
		t.Error("a manager that hangs answers the probe of its kubelet")
	}
	cancel()
	s.Eventually("selected Pods are refused for the manager that hangs: the test sees something", func() error {
		load.createAtOnce(10)
		if load.refused.Load() == 0 {
			return errors.New("none was")
		}
		return nil
	})
	s.Must(syscall.Kill(hangs.PID(), syscall.SIGCONT))
	load.refusesNoMore("after the manager went on")

	s.Must(syscall.Kill(hangs.PID(), syscall.SIGSTOP))
	s.Must(s.Client.Delete(s.Ctx, s.slice(hangs.name, "1"))) // as it is no longer ready
	time.Sleep(3 * time.Second)                              // connections that are open already lead to it until they have failed
	load.refusesNoMore("after the Service no longer led to the manager")
	stop()
	ending.Wait()
	s.Must(syscall.Kill(hangs.PID(), syscall.SIGCONT))
	t.Logf("%d selected Pods were created and %d refused; %d others were created, the slowest in %s",
		load.created.Load(), load.refused.Load(), load.others.Load(), time.Duration(load.slowest.Load()))
	if load.others.Load() < 100 || load.created.Load() < 100 {
		t.Error("that is too few to tell anything")
	}
}

// hanging is a load of which a part may be refused.
type hanging struct {
	load
	refused, others, slowest atomic.Int64
}

// refusesNoMore waits until no selected Pod is refused for three seconds.
func (h *hanging) refusesNoMore(when string) {
	h.Helper()
	h.Eventually("no selected Pod is refused "+when, func() error {
		before := h.refused.Load()
		time.Sleep(3 * time.Second)
		if now := h.refused.Load(); now != before {
			return fmt.Errorf("%d were in three seconds", now-before)
		}
		return nil
	})
}

// createAtOnce creates so many selected Pods at the same time: the API server opens connections for them, and chooses for each of
// these which manager it leads to. Pods that come one after the other may all take a connection that it has kept.
func (h *hanging) createAtOnce(number int) {
	var calls sync.WaitGroup
	for range number {
		calls.Go(func() {
			if err := h.createSelected(); err != nil {
				h.Error(err)
			}
		})
	}
	calls.Wait()
}

// createSelected creates a selected Pod: it has its sidecar, or is refused in time with the webhook's name.
func (h *hanging) createSelected() error {
	began := time.Now()
	err := h.create()
	took := time.Since(began)
	if err == nil {
		return nil
	}
	h.refused.Add(1)
	if !strings.Contains(err.Error(), "failed calling webhook") {
		return err
	}
	if took > webhookPatience {
		return fmt.Errorf("refused only after %s: %w", took, err)
	}
	return nil
}

// webhookPatience is more than the API server waits for a webhook of Pods, with what a busy machine takes.
const webhookPatience = 15 * time.Second

// createOther creates a Pod that nothing selects. It would be refused like the others if a manager were asked about it.
func (h *hanging) createOther() error {
	began := time.Now()
	p := h.pod("other")
	if err := h.Client.Create(h.Ctx, p, client.DryRunAll); err != nil {
		return fmt.Errorf("creating a Pod that nothing selects: %w", err)
	}
	took := time.Since(began)
	h.others.Add(1)
	for was := h.slowest.Load(); int64(took) > was && !h.slowest.CompareAndSwap(was, int64(took)); was = h.slowest.Load() {
	}
	return nil
}

// rolling returns a CloneSet that is updated in place, a few Pods at a time, a second for each.
func rolling(name string, replicas int32, unavailable int) *v1beta1.CloneSet {
	set := cloneSet(name, replicas)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, MaxUnavailable: new(intstr.FromInt(unavailable)),
		InPlaceUpdateStrategy: &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 1},
	}
	return set
}

// create creates a CloneSet as soon as the API server finds a manager.
func (s *site) create(set *v1beta1.CloneSet) {
	s.Helper()
	s.Eventually("a CloneSet is created", func() error { return s.Client.Create(s.Ctx, set.DeepCopy()) })
}

// leading returns the manager that leads, and one that does not.
func (s *site) leading(managers []*colleague) (leader, other *colleague) {
	s.Helper()
	all := map[string]*cluster.Manager{}
	for _, m := range managers {
		all[m.name] = m.Manager
	}
	name, _ := s.leader(all)
	for _, m := range managers {
		if m.name == name {
			leader = m
		} else {
			other = m
		}
	}
	return leader, other
}

func (s *site) setImage(name, image string) {
	s.Helper()
	set := cloneSet(name, 0)
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image)
	s.Eventually("the image is set", func() error {
		return s.Client.Patch(s.Ctx, set.DeepCopy(), client.RawPatch("application/json-patch+json", []byte(patch)))
	})
}

// haveUpdated waits until so many Pods are updated and ready.
func (s *site) haveUpdated(name string, number int32) {
	s.Helper()
	s.Eventually(fmt.Sprintf("%d Pods of %s are updated", number, name), func() error {
		set := &v1beta1.CloneSet{}
		s.Must(s.Client.Get(s.Ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, set))
		if now := set.Status.UpdatedReadyReplicas; now < number || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("%d are", now)
		}
		return nil
	})
}

// watchAvailable looks all the time how many Pods are ready, until what it returns is called.
func (s *site) watchAvailable(app string, least int) (stop func()) {
	ctx, cancel := context.WithCancel(s.Ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		for ctx.Err() == nil {
			var list corev1.PodList
			err := s.Client.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app})
			ready := 0
			for i := range list.Items {
				if p := &list.Items[i]; p.DeletionTimestamp == nil && scene.IsReady(p) {
					ready++
				}
			}
			if err == nil && ready < least {
				s.Errorf("%d Pods of %s are ready, want %d all the time", ready, app, least)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return func() {
		cancel()
		looking.Wait()
	}
}

// sameObjects checks that Pods are the same as before.
func (s *site) sameObjects(before, after []corev1.Pod) {
	s.Helper()
	if len(before) != len(after) {
		s.Errorf("there are %d Pods, want %d", len(after), len(before))
		return
	}
	for i := range before {
		if before[i].UID != after[i].UID {
			s.Errorf("Pod %s is another one, now %s", before[i].Name, after[i].Name)
		}
	}
}
