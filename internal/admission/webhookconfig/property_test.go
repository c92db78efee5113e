package webhookconfig

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// request is a change of a SidecarSet that has been admitted and is not stored yet.
type request struct {
	before, after *v1beta1.SidecarSet
	at            time.Time
}

// history lets users, admission on several managers and two leaders do things at any time, in the middle of each other's as well.
type history struct {
	*world
	t       *rapid.T
	flying  []request
	created int
	depth   int
}

// TestWhatIsStoredIsSentWhateverHappensAtOnce: no order of events leaves a stored SidecarSet without the webhook that it needs, and in the
// end the configuration says no more than what the stored ones need, and is written no more.
func TestWhatIsStoredIsSentWhateverHappensAtOnce(t *testing.T) {
	read := map[string]dispatch.Webhook{}
	rapid.Check(t, func(t *rapid.T) { checkHistory(t, read) })
}

func checkHistory(t *rapid.T, read map[string]dispatch.Webhook) {
	h := &history{world: newWorld(t), t: t}
	h.read = read
	h.between = func() {
		if h.depth < 3 && rapid.IntRange(0, 2).Draw(t, "interrupted") == 0 {
			h.step()
		}
	}
	for range rapid.IntRange(1, 15).Draw(t, "steps") {
		h.step()
	}
	h.between = func() {}
	h.flying = nil
	h.now = h.now.Add(requestTimeout + 2*time.Second)
	h.lead()
	h.isExact()
	writes := h.writes
	h.lead()
	if h.writes != writes {
		t.Fatal("the leader writes although nothing has changed")
	}
}

func (h *history) step() {
	h.depth++
	defer func() { h.depth-- }()
	switch rapid.IntRange(0, 6).Draw(h.t, "step") {
	case 0, 1:
		h.admit()
	case 2, 3:
		h.store()
	case 4:
		h.remove()
	case 5:
		if _, err := h.another().reconcile(context.Background(), mutatingPart); err != nil && !apierrors.IsConflict(err) {
			h.t.Fatal(err)
		}
	case 6:
		h.pass(time.Duration(rapid.IntRange(1, 90).Draw(h.t, "seconds")) * time.Second)
	}
	h.isCovered()
}

// another returns another manager, which leads, too.
func (h *history) another() *Reconciler { return h.manager(0, closed()) }

func (h *history) stored() []v1beta1.SidecarSet {
	var list v1beta1.SidecarSetList
	h.must(h.client.List(context.Background(), &list))
	return list.Items
}

// admit asks for a new SidecarSet, or another selection of a stored one.
func (h *history) admit() {
	app := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(h.t, "app")
	r := request{at: h.now}
	sets := h.stored()
	if len(sets) == 0 || rapid.Bool().Draw(h.t, "new") {
		h.created++
		r.after = setOf(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(h.t, "name"), app)
		r.after.UID = types.UID(fmt.Sprint(h.created))
	} else {
		r.before = &sets[rapid.IntRange(0, len(sets)-1).Draw(h.t, "which")]
		r.after = r.before.DeepCopy()
		r.after.Generation++
		r.after.Spec.Selector.MatchLabels["app"] = app
		r.after.Spec.InjectionStrategy.Paused = rapid.IntRange(0, 3).Draw(h.t, "paused") == 0
	}
	if err := h.another().Admit(context.Background(), r.before, r.after); err == nil {
		h.flying = append(h.flying, r)
		h.pass(0) // it may have taken too long by itself
	} else if !apierrors.IsConflict(err) {
		h.t.Fatal(err)
	}
}

// store stores what is on its way if the API server lets it: nothing new under a name that is taken, and a change only of what it was made
// from.
func (h *history) store() {
	if len(h.flying) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.flying)-1).Draw(h.t, "request")
	r := h.flying[i]
	h.flying = slices.Delete(h.flying, i, i+1)
	now := &v1beta1.SidecarSet{}
	err := h.client.Get(context.Background(), client.ObjectKey{Name: r.after.Name}, now)
	switch {
	case apierrors.IsNotFound(err) && r.before == nil:
		h.must(h.client.Create(context.Background(), r.after.DeepCopy()))
	case err == nil && r.before != nil && now.UID == r.before.UID && now.Generation == r.before.Generation:
		next := r.after.DeepCopy()
		next.ResourceVersion = now.ResourceVersion
		h.must(h.client.Update(context.Background(), next))
	}
}

func (h *history) remove() {
	sets := h.stored()
	if len(sets) > 0 {
		h.must(h.client.Delete(context.Background(), &sets[rapid.IntRange(0, len(sets)-1).Draw(h.t, "gone")]))
	}
}

// pass lets time go by, in which requests end.
func (h *history) pass(d time.Duration) {
	h.now = h.now.Add(d)
	h.flying = slices.DeleteFunc(h.flying, func(r request) bool { return h.now.Sub(r.at) > time.Minute })
}

// isCovered checks that the Pods of all stored SidecarSets are sent.
func (h *history) isCovered() {
	sets := h.stored()
	for i := range sets {
		if app := sets[i].Spec.Selector.MatchLabels["app"]; !sets[i].Spec.InjectionStrategy.Paused &&
			len(h.sent(podOf(app), "default", nil)) == 0 {
			h.t.Fatalf("SidecarSet %s is stored, and its Pods are not sent: %v", sets[i].Name, h.configuration().Annotations)
		}
	}
}

// isExact checks that the configuration is made of the stored SidecarSets and nothing else.
func (h *history) isExact() {
	var interests []scope.Interest
	sets := h.stored()
	for i := range sets {
		if interest, ok := scope.OfSidecarSet(&sets[i]); ok {
			interests = append(interests, interest)
		}
	}
	live := h.configuration()
	in := Input{Manifests: h.leader.Manifests, Pods: &PodScope{SidecarSets: scope.Entries(interests)}}
	want := in.mutating(manifests(h.t).Mutating).Webhooks
	same := func(a, b admissionv1.MutatingWebhook) bool {
		return a.Name == b.Name && slices.Equal(a.MatchConditions, b.MatchConditions)
	}
	if !slices.EqualFunc(want, live.Webhooks, same) || len(live.Annotations) != 0 {
		h.t.Fatalf("the configuration is %+v %v, want %+v", live.Webhooks, live.Annotations, want)
	}
}
