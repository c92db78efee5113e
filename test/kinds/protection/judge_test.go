package protection

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// bench is a cluster whose Pods are made by hand, with three managers behind a Service that judge what is done to them.
type bench struct {
	*scene.Stage
	managers []*cluster.Manager
	// plain is a client that does not try again by itself what it is told to try later.
	plain     *kubernetes.Clientset
	namespace string
}

// TestJudge brings up one cluster for all tests below, each of which has a namespace of its own.
func TestJudge(t *testing.T) {
	b := &bench{Stage: scene.NewStage(t, cluster.Options{Bare: true})}
	b.Must(b.Install(b.Ctx))
	b.ApplyService()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sim"}}
	b.Must(b.Client.Create(b.Ctx, node))
	plenty := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("1000")}
	node.Status = corev1.NodeStatus{Capacity: plenty, Allocatable: plenty}
	b.Must(b.Client.Status().Update(b.Ctx, node))
	for _, name := range []string{"a", "b", "c"} {
		b.launch(name)
	}
	for _, m := range b.managers {
		b.Must(m.WaitReady(b.Ctx))
	}
	config := rest.CopyConfig(b.Config)
	config.QPS = -1
	var err error
	b.plain, err = kubernetes.NewForConfig(config)
	b.Must(err)
	for _, test := range []struct {
		name string
		run  func(*bench)
	}{
		{"exactly as many deletions as are allowed, by three managers", exactlyAsManyDeletions},
		{"an eviction too many is told to wait", anEvictionTooMany},
		{"what budgets do not guard against is free", whatIsFree},
		{"a dry run leaves the status as it is", aDryRun},
		{"a label that marks a Pod as unavailable", aMark},
		{"a thousand Pods go with their namespace", aThousandPods},
		{"without a manager, what no budget guards goes on", withoutAManager},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := *b
			in.Stage = b.On(t)
			in.namespace = in.newNamespace()
			test.run(&in)
		})
	}
}

func exactlyAsManyDeletions(b *bench) {
	const pods, allowed = 20, 3
	made := b.pods(pods)
	b.budget(allowed, "{maxUnavailable: 3, protectTotalReplicas: 20}")
	errs := make([]error, pods)
	var deleting sync.WaitGroup
	for i, p := range made {
		deleting.Go(func() { errs[i] = b.Client.Delete(b.Ctx, p) })
	}
	deleting.Wait()
	gone := 0
	for i, err := range errs {
		if err == nil {
			gone++
			continue
		}
		if err := refusedBy(err, "it needs 17 available Pods"); err != nil {
			b.Errorf("Pod %d: %v", i, err)
		}
	}
	if gone != allowed {
		b.Errorf("%d Pods were deleted, want %d", gone, allowed)
	}
	var left corev1.PodList
	b.Must(b.Client.List(b.Ctx, &left, client.InNamespace(b.namespace)))
	if len(left.Items) != pods-gone {
		b.Errorf("%d Pods are left, want %d", len(left.Items), pods-gone)
	}
	b.Eventually("an event on a Pod says why it is still there", func() error {
		var events corev1.EventList
		b.Must(b.Client.List(b.Ctx, &events, client.InNamespace(b.namespace)))
		for _, e := range events.Items {
			if e.Reason == "PubPreventPodDeletion" && e.InvolvedObject.Kind == "Pod" && strings.Contains(e.Message, "PodUnavailableBudget web") {
				return nil
			}
		}
		return fmt.Errorf("events %v", events.Items)
	})
}

func anEvictionTooMany(b *bench) {
	b.pods(4)
	b.budget(1, "{maxUnavailable: 1, protectTotalReplicas: 4}")
	b.Must(b.evict("web-0"))
	err := b.evict("web-1")
	var status apierrors.APIStatus
	if !apierrors.IsTooManyRequests(err) || !errors.As(err, &status) {
		b.Fatalf("the second eviction: %v", err)
	}
	details := status.Status().Details
	if details.RetryAfterSeconds != 10 || len(details.Causes) != 1 || details.Causes[0].Type != policyv1.DisruptionBudgetCause ||
		!strings.HasPrefix(details.Causes[0].Message, "The budget web needs 3 available pods and has ") {
		b.Errorf("details %+v", details)
	}
	b.pods(1) // in the place of the one that is gone
	b.allows(1)
	b.Must(b.evict("web-1"))
}

func whatIsFree(b *bench) {
	for name, tc := range map[string]struct {
		spec   string
		change func(*corev1.Pod)
		do     func(*bench, *corev1.Pod) error
		// held is what the budget does not let be done to the same Pod.
		held func(*bench, *corev1.Pod) error
	}{
		"a Pod that is freed": {
			spec: "{maxUnavailable: 0, protectTotalReplicas: 1}", change: func(p *corev1.Pod) { p.Annotations[keys.NoProtect] = "true" }, do: deletePod,
		},
		"a Pod that the budget ignores": {
			spec: "{maxUnavailable: 0, protectTotalReplicas: 1, ignoredPodSelector: {matchLabels: {tier: test}}}", change: func(p *corev1.Pod) { p.Labels["tier"] = "test" },
			do: deletePod,
		},
		"what is not among the operations": {
			spec: "{maxUnavailable: 0, protectTotalReplicas: 1, protectOperations: [EVICT]}", do: deletePod,
			held: func(b *bench, p *corev1.Pod) error {
				if err := b.evict(p.Name); !apierrors.IsTooManyRequests(err) {
					return fmt.Errorf("its eviction: %w", err)
				}
				return nil
			},
		},
		"a Pod that is not ready": {
			spec: "{maxUnavailable: 0, protectTotalReplicas: 1}",
			do: func(b *bench, p *corev1.Pod) error {
				p.Status.Conditions[0].Status = corev1.ConditionFalse
				b.Must(b.Client.Status().Update(b.Ctx, p))
				return deletePod(b, p)
			},
			held: heldFromDeletion,
		},
		"labels and annotations": {
			spec: "{maxUnavailable: 0, protectTotalReplicas: 1}",
			do: func(b *bench, p *corev1.Pod) error {
				p.Labels["more"], p.Annotations["more"] = "x", "y"
				return b.Client.Update(b.Ctx, p)
			},
			held: func(b *bench, p *corev1.Pod) error {
				after := p.DeepCopy()
				after.Spec.Containers[0].Image = "nginx:2"
				return refusedBy(b.Client.Update(b.Ctx, after), "UPDATE")
			},
		},
		"a resize that the budget does not name": {
			spec: "{maxUnavailable: 0, protectTotalReplicas: 1}", do: resizePod,
		},
		"a resize where nothing else is guarded": {
			spec: "{maxUnavailable: 0, protectTotalReplicas: 1, protectOperations: [RESIZE]}", do: deletePod,
			held: func(b *bench, p *corev1.Pod) error { return refusedBy(resizePod(b, p), "RESIZE") },
		},
	} {
		in := *b
		in.namespace = b.newNamespace()
		p := in.pods(1, func(p *corev1.Pod) {
			if tc.change != nil {
				tc.change(p)
			}
		})[0]
		in.budget(0, tc.spec)
		if tc.held != nil {
			if err := tc.held(&in, p.DeepCopy()); err != nil {
				b.Errorf("%s: %v", name, err)
			}
		}
		if err := tc.do(&in, p); err != nil {
			b.Errorf("%s: %v", name, err)
		}
		if s := in.status(); len(s.DisruptedPods)+len(s.UnavailablePods) > 0 {
			b.Errorf("%s: the ledger is %+v", name, s)
		}
	}
}

func deletePod(b *bench, p *corev1.Pod) error { return b.Client.Delete(b.Ctx, p) }

func heldFromDeletion(b *bench, p *corev1.Pod) error { return refusedBy(deletePod(b, p), "DELETE") }

func resizePod(b *bench, p *corev1.Pod) error {
	after := p.DeepCopy()
	after.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
	return b.Client.SubResource("resize").Update(b.Ctx, after)
}

func aDryRun(b *bench) {
	p := b.pods(2)
	b.budget(1, "{maxUnavailable: 1, protectTotalReplicas: 2}")
	before := b.status()
	b.Must(b.Client.Delete(b.Ctx, p[0], client.DryRunAll))
	b.Must(b.Client.Delete(b.Ctx, p[1], client.DryRunAll))
	if diff := cmp.Diff(before, b.status()); diff != "" {
		b.Errorf("status (-before +after):\n%s", diff)
	}
}

func aMark(b *bench) {
	const mark = keys.UnavailablePrefix + "x"
	pods := b.pods(2)
	b.budget(1, "{maxUnavailable: 1, protectTotalReplicas: 2}")
	for i, p := range pods {
		b.Must(b.Client.Get(b.Ctx, client.ObjectKeyFromObject(p), p))
		p.Labels[mark] = ""
		err := b.Client.Update(b.Ctx, p)
		if i == 0 {
			b.Must(err)
		} else {
			b.Must(refusedBy(err, "UPDATE"))
		}
	}
	b.Must(b.Client.Get(b.Ctx, client.ObjectKeyFromObject(pods[0]), pods[0]))
	delete(pods[0].Labels, mark)
	b.Must(b.Client.Update(b.Ctx, pods[0]))
}

// withoutAManager ends all managers: it comes last.
func withoutAManager(b *bench) {
	guarded := b.pods(5, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(30)) })
	b.budget(1, "{maxUnavailable: 1, protectTotalReplicas: 5}")
	leaving, unready, freed := guarded[2], guarded[3], guarded[4]
	b.Must(b.Client.Delete(b.Ctx, leaving))
	beside := *b // in the same namespace, of no budget
	free := beside.named("free")
	elsewhere := *b
	elsewhere.namespace = b.newNamespace()
	other := elsewhere.named("other")
	evicted := elsewhere.named("evicted")
	for _, m := range b.managers {
		m.Kill()
	}
	for _, p := range []*corev1.Pod{free, other} {
		p.Spec.Containers[0].Image = "nginx:2"
		b.quickly("updating "+p.Name, b.Client.Update(b.Ctx, p))
		b.quickly("deleting "+p.Name, b.Client.Delete(b.Ctx, p))
	}
	b.quickly("evicting a Pod where no budget is", elsewhere.evict(evicted.Name))
	guarded[0].Annotations["more"] = "x"
	b.quickly("annotating a guarded Pod", b.Client.Update(b.Ctx, guarded[0]))
	b.quickly("removing a guarded Pod that is on its way, as its kubelet does", b.Client.Delete(b.Ctx, leaving, client.GracePeriodSeconds(0)))
	unready.Status.Conditions[0].Status = corev1.ConditionFalse
	b.quickly("marking a guarded Pod as not ready", b.Client.Status().Update(b.Ctx, unready))
	b.quickly("deleting a guarded Pod that is not ready", b.Client.Delete(b.Ctx, unready))
	freed.Annotations[keys.NoProtect] = "true"
	b.quickly("freeing a guarded Pod", b.Client.Update(b.Ctx, freed))
	b.quickly("deleting a guarded Pod that is freed", b.Client.Delete(b.Ctx, freed))
	if err := b.Client.Delete(b.Ctx, guarded[1]); err == nil || !strings.Contains(err.Error(), `failed calling webhook "vpod.kb.io"`) {
		b.Errorf("deleting a guarded Pod: %v", err)
	}
}

func (b *bench) quickly(what string, err error) {
	b.Helper()
	if err != nil {
		b.Errorf("%s: %v", what, err)
	}
}

// named makes a Pod that no budget guards.
func (b *bench) named(name string) *corev1.Pod {
	b.Helper()
	return b.pods(1, func(p *corev1.Pod) { p.Name, p.Labels, p.Annotations = name, map[string]string{"app": name}, nil })[0]
}
