package traffic

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
)

// route is an object that is edited in place.
type route struct {
	routeName
	live *unstructured.Unstructured
	// by names whose release has changed it; empty for nobody's. others means that it is somebody else's, who is there.
	by     string
	others bool
	// leads is what a release last had it lead to the new version.
	leads string
	// broken says why the annotation with the original can't be read.
	broken error
	// whole means that labels and annotations are edited as well.
	whole bool
	// user is the object as the user wants it: what it was before the release, with what others have changed since.
	user rules.Original
	// edits is what each goal makes of it.
	edits map[string]edit
}

// edit is what a goal makes of an object, or why it can't.
type edit struct {
	rules.Original
	err error
}

// nobody stands for the release of an object that does not say whose it is.
const nobody = "an earlier release"

// newRoute returns what is known of an object, given what edits it.
func newRoute(name routeName, live *unstructured.Unstructured, e rules.Editor, goals []goal) *route {
	r := &route{routeName: name, live: live, whole: e.Whole, edits: map[string]edit{}}
	now, services := contentOf(live, e.Whole), rules.Split{}
	if len(goals) > 0 {
		services = goals[0].split
	}
	r.user = now
	if text, marked := live.GetAnnotations()[keys.OriginalSpecConfiguration]; marked {
		original, err := rules.ParseOriginal(text)
		r.by, r.leads, r.broken = cmp.Or(original.By, nobody), original.Leads, err
		if err == nil {
			r.user = e.Restore(original, now, services)
		}
	} else if e.Marked && services.Stable != services.Canary {
		// Somebody may have taken the annotation off and left what the release added.
		r.user = e.Restore(rules.Original{}, now, services)
		if !equality.Semantic.DeepEqual(r.user.Spec, now.Spec) {
			r.by = nobody
		}
	}
	for _, g := range goals {
		edited, err := rules.Original{}, g.err
		if err == nil {
			edited, err = e.Edit(r.user, g.split)
		}
		r.edits[g.key] = edit{edited, err}
	}
	return r
}

// contentOf returns what a release may change of an object.
func contentOf(live *unstructured.Unstructured, whole bool) rules.Original {
	spec, _ := live.Object["spec"].(map[string]any)
	out := rules.Original{Spec: spec}
	if whole {
		out.Labels, out.Annotations = live.GetLabels(), maps.Clone(live.GetAnnotations())
		delete(out.Annotations, keys.OriginalSpecConfiguration)
	}
	return out
}

// is reports whether the object is like this now. If it was last written for this goal, it may have fields more: an API server fills in
// those that have defaults.
func (r *route) is(key string, wanted rules.Original) bool {
	now := contentOf(r.live, r.whole)
	same := func(a, b map[string]string) bool { return len(a) == 0 && len(b) == 0 || maps.Equal(a, b) }
	filled := r.leads == key && rules.Holds(now.Spec, wanted.Spec)
	return (filled || equality.Semantic.DeepEqual(now.Spec, wanted.Spec)) &&
		(!r.whole || same(now.Labels, wanted.Labels) && same(now.Annotations, wanted.Annotations))
}

func (r *route) shows(key string) bool {
	e, known := r.edits[key]
	_, marked := r.live.GetAnnotations()[keys.OriginalSpecConfiguration]
	return known && e.err == nil && marked && !r.others && r.broken == nil && r.is(key, e.Original)
}

func (r *route) untouched() bool { return r.by == "" || r.others }

func (r *route) problem(key string) string {
	switch e := r.edits[key]; {
	case r.others:
		return fmt.Sprintf("%s is changed by the release of %s: this one goes on when that has ended", r.routeName, r.by)
	case r.broken != nil:
		return fmt.Sprintf("%s: %v: put its spec right and delete the annotation %s", r.routeName, r.broken, keys.OriginalSpecConfiguration)
	case e.err != nil:
		return fmt.Sprintf("%s: %v", r.routeName, e.err)
	}
	return ""
}

func (r *route) set(key string, w *Routings) plan.Chain {
	e, known := r.edits[key]
	if !known || e.err != nil || r.others || r.broken != nil || r.live.GetDeletionTimestamp() != nil || r.shows(key) {
		return nil
	}
	original := r.user
	original.By, original.Leads = w.by(), key
	after := r.with(e.Original)
	annotations := after.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[keys.OriginalSpecConfiguration] = original.Text()
	after.SetAnnotations(annotations)
	return plan.Chain{{
		Verb: plan.Update, Before: r.live, After: after,
		What: fmt.Sprintf("have %s lead %s to the new version", r.routeName, key), Why: "the step says so",
	}}
}

func (r *route) restore() plan.Chain {
	if r.untouched() || r.broken != nil || r.live.GetDeletionTimestamp() != nil {
		return nil
	}
	after := r.with(r.user)
	annotations := after.GetAnnotations()
	delete(annotations, keys.OriginalSpecConfiguration)
	after.SetAnnotations(annotations)
	return plan.Chain{{
		Verb: plan.Update, Before: r.live, After: after,
		What: fmt.Sprintf("restore %s", r.routeName), Why: "the release leads no traffic by it any more",
	}}
}

// with returns the object with a content.
func (r *route) with(content rules.Original) *unstructured.Unstructured {
	after := r.live.DeepCopy()
	if after.Object["spec"] = runtime.DeepCopyJSONValue(content.Spec); content.Spec == nil {
		delete(after.Object, "spec")
	}
	if !r.whole {
		return after
	}
	annotations := maps.Clone(content.Annotations)
	if kept, marked := r.live.GetAnnotations()[keys.OriginalSpecConfiguration]; marked {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[keys.OriginalSpecConfiguration] = kept
	}
	after.SetLabels(content.Labels)
	after.SetAnnotations(annotations)
	return after
}
