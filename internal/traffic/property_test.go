package traffic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestWhateverHappensTheUsersObjectsAreRestored lets releases jump between steps, crash at writes, lose answers and meet edits of others.
// In the end each object is what the user wrote, with what others have changed, and nothing else is left.
func TestWhateverHappensTheUsersObjectsAreRestored(t *testing.T) {
	for seed := range int64(40) {
		if problem := live(t, seed, func(*plan.Action) {}); problem != "" {
			t.Errorf("seed %d: %s", seed, problem)
			return
		}
	}
}

// TestMistakesShow makes mistakes on purpose, which the check must see.
func TestMistakesShow(t *testing.T) {
	for name, wrong := range map[string]func(*plan.Action){
		"the original is not kept": func(a *plan.Action) {
			if after, is := a.After.(*unstructured.Unstructured); is {
				annotations := after.GetAnnotations()
				delete(annotations, keys.OriginalSpecConfiguration)
				after.SetAnnotations(annotations)
			}
		},
		"the last result is kept as the original": func(a *plan.Action) {
			after, is := a.After.(*unstructured.Unstructured)
			if is && a.Before != nil && annotation(after) != "" && after.GetAnnotations()[keys.OriginalSpecConfiguration] != "" {
				original := contentOf(a.Before.(*unstructured.Unstructured), true)
				annotations := after.GetAnnotations()
				annotations[keys.OriginalSpecConfiguration] = original.Text()
				after.SetAnnotations(annotations)
			}
		},
		"the original comes back, and the edits of others are lost": func(a *plan.Action) {
			after, is := a.After.(*unstructured.Unstructured)
			if !is || a.Before == nil {
				return
			}
			text, marked := a.Before.GetAnnotations()[keys.OriginalSpecConfiguration]
			if _, still := after.GetAnnotations()[keys.OriginalSpecConfiguration]; marked && !still {
				original, _ := rules.ParseOriginal(text)
				after.Object["spec"] = original.Spec
			}
		},
		"it writes over edits": func(a *plan.Action) { a.AnyVersion = true },
		"the Service stays pinned": func(a *plan.Action) {
			if s, is := a.After.(*corev1.Service); is && a.Before != nil {
				s.Spec.Selector = maps.Clone(s.Spec.Selector)
				s.Spec.Selector["pod-template-hash"] = "old"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(50) {
				if live(t, seed, wrong) != "" {
					return
				}
			}
			t.Error("the mistake does not show")
		})
	}
}

// live returns what went wrong.
func live(t *testing.T, seed int64, wrong func(*plan.Action)) string {
	w := newWorld(t, seed, objects)
	w.wrong = wrong
	shadow := newWorld(t, seed, objects) // in which only others act
	edits := 0
	for range 60 {
		w.client.SetFaults(simulate.Faults{Crash: 0.1, Lost: 0.1, Dropped: 0.1, Conflict: 0.1})
		between := func() {}
		if w.rand.Intn(3) == 0 {
			edits++
			change := others()[w.rand.Intn(len(others()))]
			between = func() { change(w, edits); change(shadow, edits) }
		}
		w.do(w.someAction(), between)
	}
	w.client.SetFaults(simulate.Faults{})
	w.act(verb(release.RestoreRoutes), verb(release.Unpin), verb(release.RemoveService))
	if seen := w.seen(); seen != (release.Traffic{}) {
		return fmt.Sprintf("in the end there is %+v", seen)
	}
	return cmp.Diff(shadow.stored(), w.stored())
}

func (w *world) someAction() release.Action {
	actions := []release.Action{
		verb(release.Pin), verb(release.Unpin), verb(release.CreateService), verb(release.RemoveService), step(0), step(1), step(2), step(4), step(5),
		verb(release.RestoreRoutes),
	}
	return actions[w.rand.Intn(len(actions))]
}

// others are edits of users and tools. Each finds its place in an object that a release has changed as well as in one that it has not.
func others() []func(w *world, n int) {
	return []func(w *world, n int){
		func(w *world, n int) { // a new rule at the end
			w.rules("HTTPRoute", "rules", func(rules []any) []any {
				return append(rules, map[string]any{"backendRefs": []any{map[string]any{"name": fmt.Sprint("new-", n)}}})
			})
		},
		func(w *world, n int) { // a new rule in front
			w.rules("HTTPRoute", "rules", func(rules []any) []any {
				first := map[string]any{"matches": []any{map[string]any{"path": map[string]any{"value": fmt.Sprint("/", n)}}}}
				return append([]any{first}, rules...)
			})
		},
		func(w *world, n int) { // a change of a rule that leads elsewhere
			w.each("HTTPRoute", "rules", func(rule map[string]any) bool {
				return fmt.Sprint(rule["backendRefs"]) == "[map[name:unrelated port:80]]"
			},
				func(rule map[string]any) { rule["timeouts"] = fmt.Sprint(n) })
		},
		func(w *world, n int) { // a change of a rule that is split
			w.each("HTTPRoute", "rules", func(rule map[string]any) bool { return leadsTo(rule, "backendRefs", "web") },
				func(rule map[string]any) { rule["timeouts"] = fmt.Sprint(n) })
		},
		func(w *world, n int) { // a field that no build knows
			alter(w, w.untyped("HTTPRoute", "web"), func(u *unstructured.Unstructured) {
				u.Object["spec"].(map[string]any)["unknown"] = map[string]any{"n": int64(n)}
			})
		},
		func(w *world, n int) {
			w.rules("VirtualService", "http", func(routes []any) []any {
				return append(routes, map[string]any{"route": []any{map[string]any{"destination": map[string]any{"host": fmt.Sprint("new-", n)}}}})
			})
		},
		func(w *world, n int) {
			w.each("VirtualService", "http", func(route map[string]any) bool { return route["match"] == nil && leadsTo(route, "route", "web") },
				func(route map[string]any) { route["timeout"] = fmt.Sprint(n) })
		},
		func(w *world, n int) {
			w.rules("DestinationRule", "subsets", func(subsets []any) []any {
				return append(subsets, map[string]any{"name": fmt.Sprint("v", n)})
			})
		},
		func(w *world, n int) {
			alter(w, w.untyped("Router", "web"), func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["kept"] = int64(n) })
		},
		func(w *world, n int) {
			for _, kind := range []string{"Router", "HTTPRoute", "VirtualService"} {
				alter(w, w.untyped(kind, "web"), func(u *unstructured.Unstructured) { annotate(u, n) })
			}
		},
		func(w *world, n int) { // the manifest is written back, with another weight
			alter(w, w.untyped("HTTPRoute", "web"), func(u *unstructured.Unstructured) {
				manifest := parse(w.t, objects)[3].(*unstructured.Unstructured)
				w.weigh(manifest, n)
				u.Object["spec"] = manifest.Object["spec"]
			})
		},
		func(w *world, n int) { // the object is replaced, annotations and all
			alter(w, w.untyped("VirtualService", "web"), func(u *unstructured.Unstructured) {
				u.Object["spec"] = parse(w.t, objects)[4].(*unstructured.Unstructured).Object["spec"]
				u.SetAnnotations(map[string]string{"n": fmt.Sprint(n)})
			})
		},
		func(w *world, n int) {
			alter(w, w.service("web"), func(s *corev1.Service) { s.Spec.Selector["tier"] = fmt.Sprint(n); annotate(s, n) })
		},
		func(w *world, _ int) { // the Service is written back, without the pin
			alter(w, w.service("api"), func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "api"} })
		},
		func(w *world, n int) {
			alter(w, w.ingress("web"), func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = fmt.Sprint("h", n); annotate(i, n) })
		},
	}
}

func annotate(object client.Object, n int) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["n"] = fmt.Sprint(n)
	object.SetAnnotations(annotations)
}

// weigh sets the first weight of a route.
func (w *world) weigh(u *unstructured.Unstructured, n int) {
	rule := u.Object["spec"].(map[string]any)["rules"].([]any)[0].(map[string]any)
	rule["backendRefs"].([]any)[0].(map[string]any)["weight"] = int64(n)
}

// rules changes a list in the spec of a route.
func (w *world) rules(kind, field string, change func([]any) []any) {
	alter(w, w.untyped(kind, "web"), func(u *unstructured.Unstructured) {
		spec := u.Object["spec"].(map[string]any)
		list, _ := spec[field].([]any)
		spec[field] = change(slices.Clone(list))
	})
}

// each changes the first item of a list that fits.
func (w *world) each(kind, field string, fits func(map[string]any) bool, change func(map[string]any)) {
	w.rules(kind, field, func(items []any) []any {
		for _, item := range items {
			if rule := item.(map[string]any); fits(rule) {
				change(rule)
				break
			}
		}
		return items
	})
}

// leadsTo reports whether a rule leads to a Service, of whichever version.
func leadsTo(rule map[string]any, field, service string) bool {
	text, _ := json.Marshal(rule[field])
	refs, _ := rule[field].([]any)
	return len(refs) > 0 && (contains(text, `"name":"`+service+`"`) || contains(text, `"host":"`+service+`"`))
}

func contains(text []byte, part string) bool {
	for i := range text {
		if len(text)-i >= len(part) && string(text[i:i+len(part)]) == part {
			return true
		}
	}
	return false
}
