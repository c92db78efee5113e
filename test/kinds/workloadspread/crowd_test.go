package workloadspread

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/internal/spread"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// bare is a cluster without controllers but ours: Pods of a ReplicaSet are as they were created.
var bare = &scene.Site{Name: "crowd", Options: cluster.Options{Bare: true}, Args: []string{"--enable-leader-election=false"}}

// second is another manager as far as it gives room to new Pods: a process reaches the webhook of one manager only.
func (e *env) second(holder string) *spread.Assigner {
	e.Helper()
	ctx, stop := context.WithCancel(e.Afterwards())
	e.Cleanup(stop)
	c, err := cache.New(e.Config, cache.Options{Scheme: e.Client.Scheme()})
	e.Must(err)
	e.Must(observe.AddSpreadIndex(ctx, c))
	ledger := spread.NewLedger(spread.Config{
		Cached: c, Live: e.Client, Holder: holder, Pause: 5 * time.Millisecond, Patience: 250 * time.Millisecond, Now: time.Now,
		SeenPods: func(ctx context.Context) (string, error) {
			return apply.SeenBy(c)(ctx, corev1.SchemeGroupVersion.WithKind("Pod"))
		},
	})
	go func() { _ = c.Start(ctx) }()
	informer, err := c.GetInformer(ctx, &v1beta1.WorkloadSpread{})
	e.Must(err)
	_, err = informer.AddEventHandler(noteSpreads{ledger})
	e.Must(err)
	if !c.WaitForCacheSync(ctx) {
		e.Fatal("the cache of the second manager is not in sync")
	}
	go func() { _ = ledger.Start(ctx) }()
	return &spread.Assigner{Ledger: ledger, Targets: &spread.Targets{Cached: c, Live: e.Client, Namespace: "kruise-system", Now: time.Now}}
}

type noteSpreads struct{ *spread.Ledger }

func (n noteSpreads) OnAdd(any, bool) {}

func (n noteSpreads) OnUpdate(_, after any) {
	if s, ok := after.(*v1beta1.WorkloadSpread); ok {
		n.NoteSpread(nil, s)
	}
}

func (n noteSpreads) OnDelete(any) {}

// TestManyAtOnceThroughTwoManagers is scenario 14: 200 Pods at the same time, through the webhook of one manager and the ledger of another. All places of the
// limited subset are taken, and none is taken twice; with a third manager that is killed in the middle, what it held is left.
func TestManyAtOnceThroughTwoManagers(t *testing.T) {
	for name, killed := range map[string]bool{"both run": false, "one is killed": true} {
		t.Run(name, func(t *testing.T) {
			e := &env{bare.Enter(t)}
			e.Describe = e.describe
			set := &appsv1.ReplicaSet{}
			e.workload("apps/v1", "ReplicaSet", "web", 200)
			e.Read("web", set)
			const most = 90
			e.over("apps/v1", "ReplicaSet", "web", fmt.Sprint("a=", most), "b")
			other := e.second("second")
			held := 0
			if killed {
				held = e.holdAndDie(set)
			}
			began := time.Now()
			var running sync.WaitGroup
			for i := range 200 {
				running.Go(func() {
					p := e.ownedBy(set)
					if i%2 == 0 {
						assigned, err := other.Assign(e.Ctx, e.Namespace, p)
						if err != nil || assigned.Subset < 0 {
							t.Errorf("assigned is %+v, error %v", assigned, err)
							return
						}
						if err := rules.Inject(p, assigned.Spread, assigned.Given); err != nil {
							t.Error(err)
							return
						}
					}
					time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
					if err := e.Client.Create(e.Ctx, p); err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
			took := time.Since(began)
			got := e.subsets()
			if got["a"] != most-held || got["a"]+got["b"] != 200 {
				t.Errorf("the subsets are %v, want %d in a, where %d are held, and 200 in all", got, most-held, held)
			}
			e.Within(time.Minute, "the status is exact", func() error {
				s := e.read("web").Status.SubsetStatuses
				if len(s) != 2 || int(s[0].Replicas) != got["a"] || int(s[1].Replicas) != got["b"] || len(s[0].CreatingPods) > 0 ||
					int(s[0].MissingReplicas) != most-got["a"] {
					return fmt.Errorf("it is %+v", s)
				}
				return nil
			})
			requests, err := audit.Read(e.Site.AuditLog(), audit.Query{Agent: "kruise-manager", From: began})
			e.Must(err)
			t.Logf("200 Pods in %s: %v", took, requests.Counts)
		})
	}
}

// TestAManagerIsKilledWhileItGivesRoom kills the only manager in the middle of many creations. Pods that it does not answer for are created without a subset;
// whatever it had given or set aside is heeded by the next one, and all other room is given.
func TestAManagerIsKilledWhileItGivesRoom(t *testing.T) {
	const most, pods, creators = 80, 240, 8
	e := &env{bare.Enter(t)}
	e.Describe = e.describe
	e.workload("apps/v1", "ReplicaSet", "web", pods)
	set := &appsv1.ReplicaSet{}
	e.Read("web", set)
	e.over("apps/v1", "ReplicaSet", "web", fmt.Sprint("a=", most), "b")
	var made atomic.Int32
	half := make(chan struct{})
	var running sync.WaitGroup
	create := func(n int) {
		for range creators {
			running.Go(func() {
				for range n / creators {
					if err := e.Client.Create(e.Ctx, e.ownedBy(set)); err != nil {
						t.Error(err)
					}
					if made.Add(1) == most/2 {
						close(half)
					}
				}
			})
		}
	}
	create(pods / 2)
	<-half
	e.CrashManager()
	running.Wait()
	create(pods / 2)
	running.Wait()
	e.Eventually("all room is given, and none twice", func() error {
		got, s := e.subsets(), e.read("web").Status.SubsetStatuses
		if got["a"] > most {
			t.Errorf("%d Pods are in subset a, want %d at most", got["a"], most)
		}
		if len(s) != 2 || int(s[0].Replicas) != got["a"] || got["a"]+len(s[0].CreatingPods) != most || got["b"] == 0 {
			return fmt.Errorf("the subsets are %v, the status is %+v", got, s)
		}
		return nil
	})
}

// holdAndDie has one more manager set room aside and be killed, and returns how much it has.
func (e *env) holdAndDie(set *appsv1.ReplicaSet) int {
	e.Helper()
	ctx, kill := context.WithCancel(e.Ctx)
	defer kill()
	c, err := cache.New(e.Config, cache.Options{Scheme: e.Client.Scheme()})
	e.Must(err)
	e.Must(observe.AddSpreadIndex(ctx, c))
	go func() { _ = c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		e.Fatal("the cache of the manager to be killed is not in sync")
	}
	ledger := spread.NewLedger(spread.Config{
		Cached: c, Live: e.Client, Holder: "dead", Pause: time.Millisecond, Now: time.Now,
		SeenPods: func(context.Context) (string, error) { return "0", nil },
	})
	dead := &spread.Assigner{Ledger: ledger, Targets: &spread.Targets{Cached: c, Live: e.Client, Now: time.Now}}
	for range 4 {
		_, err := dead.Assign(ctx, e.Namespace, e.ownedBy(set))
		e.Must(err)
	}
	s := e.read("web").Status.SubsetStatuses
	if len(s) == 0 || len(s[0].CreatingPods) <= 4 {
		e.Must(errors.New("nothing is set aside"))
	}
	return len(s[0].CreatingPods)
}

// ownedBy returns a new Pod of a ReplicaSet.
func (e *env) ownedBy(set *appsv1.ReplicaSet) *corev1.Pod {
	p := newPod(e)
	p.Labels = labels.Set(set.Spec.Template.Labels)
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	return p
}
