package operation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// endpointLag is how long a Service may go on leading to a Pod that is being deleted.
const endpointLag = time.Second

// TestAnUpgradeOfTheManagersRefusesNothing replaces three managers one by one while Pods that a SidecarSet selects are created, 100 a
// second,
// and Pods with a budget are deleted, 20 a second: each Pod gets its sidecar, and nothing is refused.
func TestAnUpgradeOfTheManagersRefusesNothing(t *testing.T) {
	s := newSite(t, cluster.Options{Nodes: 1})
	s.Must(s.Install(s.Ctx))
	root, err := cluster.Root()
	s.Must(err)
	s.Must(s.ApplyFile(s.Ctx, filepath.Join(root, "config/webhook/service.yaml")))
	var old []*cluster.Manager
	for i := range 3 {
		old = append(old, s.enter("old-"+strconv.Itoa(i)))
	}
	s.selected()
	s.guarded()
	load := &load{site: s}
	ctx, stop := context.WithCancel(s.Ctx)
	var ending sync.WaitGroup
	ending.Go(func() { load.run(ctx, 100, load.create) })
	ending.Go(func() { load.run(ctx, 20, load.remove) })
	for i, m := range old {
		s.enter("new-" + strconv.Itoa(i))
		left := make(chan struct{})
		go func() {
			m.Stop()
			close(left)
		}()
		time.Sleep(endpointLag)
		s.Must(s.Client.Delete(s.Ctx, s.slice("old-"+strconv.Itoa(i), "1")))
		<-left
	}
	stop()
	ending.Wait()
	t.Logf("%d Pods were created and %d deleted", load.created.Load(), load.removed.Load())
	if load.created.Load() < 500 || load.removed.Load() < 100 {
		t.Error("that is too few to tell anything")
	}
}

// enter launches a manager behind the Service, and returns when it is one of its endpoints.
func (s *site) enter(name string) *cluster.Manager {
	s.Helper()
	m := s.Launch(name, cluster.ManagerOptions{Env: []string{"WEBHOOK_HOST="}})
	s.Must(m.WaitReady(s.Ctx))
	s.addEndpoint(name, m.WebhookPort())
	return m
}

// selected makes a SidecarSet that selects app=selected.
func (s *site) selected() {
	s.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "selected"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "logs", Image: "busybox:1.36"}}}
	s.Eventually("the SidecarSet is stored", func() error { return s.Client.Create(s.Ctx, set) })
	// The API server reads of the new selector in a watch of its own, a moment after the configuration is stored.
	s.Eventually("selected Pods have their sidecar", (&load{site: s}).create)
}

// guarded makes a budget for app=guarded that permits everything, and whose ledger is written all the same.
func (s *site) guarded() {
	s.Helper()
	budget := &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: metav1.NamespaceDefault}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}
	budget.Spec.MaxUnavailable = new(intstr.FromString("100%"))
	s.Must(s.Client.Create(s.Ctx, budget))
	s.Eventually("the budget is in force", func() error {
		s.Must(s.Client.Get(s.Ctx, client.ObjectKeyFromObject(budget), budget))
		if budget.Status.ObservedGeneration != budget.Generation {
			return errors.New("its status says nothing")
		}
		return nil
	})
}

// load is what users do meanwhile.
type load struct {
	*site
	created, removed, names atomic.Int64
}

// run calls a function so many times a second until the context ends, and does not wait for one call before the next.
func (l *load) run(ctx context.Context, perSecond int, f func() error) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			calls.Go(func() {
				if err := f(); err != nil {
					l.Error(err)
				}
			})
		}
	}
}

func (l *load) pod(app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", app, l.names.Add(1)), Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": app},
		},
		Spec: corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}}},
	}
}

// create has a Pod go through admission, and not be stored: it is about the managers, and not about etcd.
func (l *load) create() error {
	p := l.pod("selected")
	if err := l.Client.Create(l.Ctx, p, client.DryRunAll); err != nil {
		return fmt.Errorf("creating a selected Pod: %w", err)
	}
	l.created.Add(1)
	if len(p.Spec.Containers) != 2 {
		return fmt.Errorf("a selected Pod has %d containers, want its sidecar, too", len(p.Spec.Containers))
	}
	return nil
}

// remove deletes a Pod with a budget, that is ready.
func (l *load) remove() error {
	p := l.pod("guarded")
	p.Annotations = map[string]string{"pub.kruise.io/related-pub": "all"}
	if err := l.Client.Create(l.Ctx, p); err != nil {
		return fmt.Errorf("creating a Pod with a budget: %w", err)
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := l.Client.Status().Update(l.Ctx, p); err != nil {
		return fmt.Errorf("making a Pod ready: %w", err)
	}
	if err := l.Client.Delete(l.Ctx, p); err != nil {
		return fmt.Errorf("deleting a Pod with a budget: %w", err)
	}
	l.removed.Add(1)
	return nil
}
