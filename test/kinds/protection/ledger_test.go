package protection

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// permit enters a permission into the ledger, as whoever judges requests does.
func (e *env) permit(budget, pod string, operation v1beta1.PubOperation) {
	e.Helper()
	scene.EditStatus(e.Env, budget, &v1beta1.PodUnavailableBudget{}, func(b *v1beta1.PodUnavailableBudget) {
		ledger := disruption.LedgerOf(&b.Status).With(pod, operation, time.Now())
		b.Status.DisruptedPods, b.Status.UnavailablePods = ledger.Disrupted, ledger.Unavailable
		b.Status.UnavailableAllowed--
	})
}

// TestAPermissionThatNobodyUses is given back after 20 seconds, with an event on the Pod; one to update after 10, without.
func TestAPermissionThatNobodyUses(t *testing.T) {
	e := newEnv(t)
	e.deployment("web", 4)
	e.Make(fmt.Sprintf(ofWeb, "guard", "maxUnavailable: 2"))
	e.counts("guard", disruption.Counts{Allowed: 2, Current: 4, Desired: 2, Total: 4})
	pods := e.Pods()
	began := e.permitBoth(pods[0].Name, pods[1].Name)
	e.Eventually("the updated one counts again", func() error {
		if s := e.budget("guard").Status; s.CurrentAvailable != 3 || len(s.UnavailablePods) > 0 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	if after := time.Since(began); after < 9*time.Second {
		t.Errorf("the permission to update ended after %s", after)
	}
	e.counts("guard", disruption.Counts{Allowed: 2, Current: 4, Desired: 2, Total: 4})
	if after := time.Since(began); after < 19*time.Second {
		t.Errorf("the permission to delete ended after %s", after)
	}
	e.Eventually("an event tells of the deletion that did not come", func() error {
		if reasons := e.Reasons(pods[0].Name); !slices.Contains(reasons, "NotDeleted") {
			return fmt.Errorf("the events are %v", reasons)
		}
		return nil
	})
	if reasons := e.Reasons(pods[1].Name); slices.Contains(reasons, "NotDeleted") {
		t.Errorf("the events of the updated Pod are %v", reasons)
	}
}

// permitBoth notes that one Pod may be deleted and another updated, and returns when, once both count as unavailable. On a machine that is
// so busy that a permission ends before it is seen, both are noted again.
func (e *env) permitBoth(deleted, updated string) time.Time {
	e.Helper()
	for range 5 {
		began := time.Now()
		e.permit("guard", deleted, v1beta1.PubDeleteOperation)
		e.permit("guard", updated, v1beta1.PubUpdateOperation)
		for time.Since(began) < disruption.UnavailableFor {
			if s := e.budget("guard").Status; s.CurrentAvailable == 2 && s.UnavailableAllowed == 0 {
				return began
			}
			time.Sleep(50 * time.Millisecond)
		}
		e.counts("guard", disruption.Counts{Allowed: 2, Current: 4, Desired: 2, Total: 4})
	}
	e.Fatal("both were never seen unavailable")
	return time.Time{}
}

// TestADeletionThatTakesLong: the entry leaves with the deletion, and the Pod does not count until its replacement is there.
func TestADeletionThatTakesLong(t *testing.T) {
	e := newEnv(t)
	e.deployment("web", 3)
	e.Make(fmt.Sprintf(ofWeb, "guard", "maxUnavailable: 1"))
	e.counts("guard", disruption.Counts{Allowed: 1, Current: 3, Desired: 2, Total: 3})
	p := e.Pods()[0]
	before := p.DeepCopy()
	p.Finalizers = append(p.Finalizers, "example.com/held")
	e.Must(e.Client.Patch(e.Ctx, &p, client.MergeFrom(before)))
	e.permit("guard", p.Name, v1beta1.PubDeleteOperation)
	e.Must(e.Client.Delete(e.Ctx, &p))
	e.counts("guard", disruption.Counts{Allowed: 1, Current: 3, Desired: 2, Total: 3})
	if reasons := e.Reasons(p.Name); slices.Contains(reasons, "NotDeleted") {
		t.Errorf("the events are %v", reasons)
	}
	scene.Edit(e.Env, p.Name, &corev1.Pod{}, func(p *corev1.Pod) { p.Finalizers = nil })
}

// TestPodsWithoutAWorkload are counted by what the budget itself says.
func TestPodsWithoutAWorkload(t *testing.T) {
	e := newEnv(t)
	for i := range 4 {
		e.Make(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: bare-%d, labels: {app: bare}}
spec: {containers: [{name: app, image: "nginx:1"}], terminationGracePeriodSeconds: 0}`, i))
	}
	b := e.Make(`
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: guard}
spec:
  selector: {matchLabels: {app: bare}}
  maxUnavailable: 40%
  protectTotalReplicas: 5`)
	e.counts("guard", disruption.Counts{Allowed: 1, Current: 4, Desired: 3, Total: 5})
	before := b.DeepCopy()
	unset := b.DeepCopy()
	delete(unset.Object["spec"].(map[string]any), "protectTotalReplicas")
	e.Must(e.Client.Patch(e.Ctx, unset, client.MergeFrom(before)))
	e.counts("guard", disruption.Counts{Allowed: 4, Current: 4}) // nobody says how many there should be
}

// TestAnotherNameForABudget: Pods go over to it.
func TestAnotherNameForABudget(t *testing.T) {
	e := newEnv(t)
	e.deployment("web", 3)
	e.Make(fmt.Sprintf(ofWeb, "first", "maxUnavailable: 1"))
	linked := func(want string) {
		e.Helper()
		e.Eventually("all Pods are linked to "+want, func() error {
			for _, p := range e.Pods() {
				if p.Annotations["pub.kruise.io/related-pub"] != want || p.Annotations["kruise.io/related-pub"] != want {
					return fmt.Errorf("%s has %v", p.Name, p.Annotations)
				}
			}
			return nil
		})
	}
	linked("first")
	e.Must(e.Client.Delete(e.Ctx, e.budget("first")))
	e.Make(fmt.Sprintf(ofWeb, "second", "maxUnavailable: 1"))
	linked("second")
}

// TestPodsThatNoBudgetWantsAnyMore are let go, or go over to one that does.
func TestPodsThatNoBudgetWantsAnyMore(t *testing.T) {
	e := newEnv(t)
	e.deployment("web", 2)
	for _, name := range []string{"web", "shop"} {
		e.Make(fmt.Sprintf("{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: %[1]s}, spec: {selector: {matchLabels: {role: %[1]s}}, maxUnavailable: 1}}", name))
	}
	p := e.Pods()[0]
	label := func(role string) {
		e.Helper()
		e.Read(p.Name, &p)
		before := p.DeepCopy()
		p.Labels["role"] = role
		e.Must(e.Client.Patch(e.Ctx, &p, client.MergeFrom(before)))
	}
	for _, role := range []string{"web", "shop", "none"} {
		label(role)
		want := role
		if role == "none" {
			want = ""
		}
		e.Eventually("the Pod is linked to "+want, func() error {
			var now corev1.Pod
			e.Read(p.Name, &now)
			if got := disruption.Related(now.Annotations); got != want {
				return fmt.Errorf("it is linked to %q", got)
			}
			return nil
		})
	}
	e.counts("shop", disruption.Counts{})
}

// TestNoWritesAtRest: a budget and its Pods stay as they are while nothing happens, and after a restart of the manager.
func TestNoWritesAtRest(t *testing.T) {
	e := newSerialEnv(t)
	e.deployment("web", 3)
	e.Make(fmt.Sprintf(ofWeb, "guard", "maxUnavailable: 1"))
	e.counts("guard", disruption.Counts{Allowed: 1, Current: 3, Desired: 2, Total: 3})
	linked := func() error {
		for _, p := range e.Pods() {
			if disruption.Related(p.Annotations) != "guard" {
				return fmt.Errorf("%s is linked to %q", p.Name, disruption.Related(p.Annotations))
			}
		}
		return nil
	}
	e.Eventually("all Pods are linked", linked)
	versions := func() string {
		out := map[string]string{"guard": e.budget("guard").ResourceVersion}
		for _, p := range e.Pods() {
			out[p.Name] = p.ResourceVersion
		}
		return fmt.Sprint(out)
	}
	before := e.AtRest(2*time.Second, "what is stored", versions)
	e.CrashManager()
	e.Always(3*time.Second, "nothing is written", func() error {
		if now := versions(); now != before {
			return fmt.Errorf("the versions were %v and are %v", before, now)
		}
		return nil
	})
}
