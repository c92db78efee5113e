package apply

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// newcomer is a new Pod that has a node, with a label and maybe an annotation.
func newcomer(state, stamp string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.UID = "web-0", "uid"
	p.Labels = map[string]string{"app": "web", "example.io/state": state}
	if stamp != "" {
		p.Annotations = map[string]string{"example.io/since": stamp}
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	return p
}

// ready gives the Pod a condition.
func ready(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "Ready", Status: corev1.ConditionTrue})
}

func apply(t *testing.T, patch []byte, to *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := operations.Apply(encoded)
	if err != nil {
		return nil, err
	}
	out := &corev1.Pod{}
	if err := json.Unmarshal(patched, out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

func TestGuardedWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		before *corev1.Pod
		while  string
		change func(*corev1.Pod)
		// meanwhile is what others do before the write arrives, and refused that it must not happen then.
		meanwhile func(*corev1.Pod)
		refused   bool
	}{
		"a label moves along": {
			before: newcomer("new", "1"), while: "example.io/state", change: func(p *corev1.Pod) { p.Labels["example.io/state"] = "normal" },
		},
		"the kubelet has reported": {
			before: newcomer("new", "1"), while: "example.io/state", change: func(p *corev1.Pod) { p.Labels["example.io/state"] = "normal" },
			meanwhile: func(p *corev1.Pod) {
				p.ResourceVersion = "2"
				p.Status.Conditions = append([]corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}, p.Status.Conditions...)
			},
		},
		"the label has moved on": {
			before: newcomer("new", "1"), while: "example.io/state", change: func(p *corev1.Pod) { p.Labels["example.io/state"] = "normal" },
			meanwhile: func(p *corev1.Pod) { p.Labels["example.io/state"] = "updating" }, refused: true,
		},
		"another Pod has the name": {
			before: newcomer("new", "1"), while: "example.io/state", change: func(p *corev1.Pod) { p.Labels["example.io/state"] = "normal" },
			meanwhile: func(p *corev1.Pod) { p.UID = "other" }, refused: true,
		},
		"an annotation is renewed": {
			before: newcomer("normal", "1"), while: "example.io/since", change: func(p *corev1.Pod) { p.Annotations["example.io/since"] = "2" },
		},
		"the annotation was renewed before": {
			before: newcomer("normal", "1"), while: "example.io/since", change: func(p *corev1.Pod) { p.Annotations["example.io/since"] = "2" },
			meanwhile: func(p *corev1.Pod) { p.Annotations["example.io/since"] = "3" }, refused: true,
		},
		"the first of all annotations": {
			before: newcomer("normal", ""), while: "example.io/since", change: func(p *corev1.Pod) { p.Annotations = map[string]string{"example.io/since": "2"} },
		},
		"no longer the first of all annotations": {
			before: newcomer("normal", ""), while: "example.io/since", change: func(p *corev1.Pod) { p.Annotations = map[string]string{"example.io/since": "2"} },
			meanwhile: func(p *corev1.Pod) { p.Annotations = map[string]string{"other": "o"} }, refused: true,
		},
		"an annotation beside others": {
			before: newcomer("normal", "1"), while: "example.io/until", change: func(p *corev1.Pod) { p.Annotations["example.io/until"] = "2" },
		},
		"an annotation that is there by now": {
			before: newcomer("normal", "1"), while: "example.io/until", change: func(p *corev1.Pod) { p.Annotations["example.io/until"] = "2" },
			meanwhile: func(p *corev1.Pod) { p.Annotations["example.io/until"] = "1" }, refused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := tc.before.DeepCopy()
			tc.change(after)
			ready(after)
			patch, ok, err := conditional(plan.Action{Verb: plan.UpdateStatus, Before: tc.before, After: after, While: tc.while})
			if err != nil || !ok {
				t.Fatalf("guarded: %t, %v", ok, err)
			}
			stored := tc.before.DeepCopy()
			if tc.meanwhile != nil {
				tc.meanwhile(stored)
			}
			got, err := apply(t, patch, stored)
			if refused := err != nil; refused != tc.refused {
				t.Fatalf("refused: %t (%v), want %t", refused, err, tc.refused)
			}
			if tc.refused {
				return
			}
			if last := got.Status.Conditions[len(got.Status.Conditions)-1]; last.Type != "Ready" ||
				len(got.Status.Conditions) != len(stored.Status.Conditions)+1 {
				t.Errorf("conditions %v", got.Status.Conditions)
			}
			if again, err := apply(t, patch, got); err == nil {
				t.Errorf("done twice it leaves %v", again.Status.Conditions)
			}
		})
	}
}

func TestWritesThatCannotBeGuarded(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"the label stays":            func(*corev1.Pod) {},
		"the spec changes":           func(p *corev1.Pod) { p.Labels["example.io/state"], p.Spec.NodeName = "normal", "n" },
		"an old condition changes":   func(p *corev1.Pod) { p.Labels["example.io/state"], p.Status.Conditions[0].Reason = "normal", "R" },
		"another part of the status": func(p *corev1.Pod) { p.Labels["example.io/state"], p.Status.Phase = "normal", corev1.PodRunning },
	} {
		t.Run(name, func(t *testing.T) {
			before := newcomer("new", "1")
			after := before.DeepCopy()
			change(after)
			ready(after)
			action := plan.Action{Verb: plan.UpdateStatus, Before: before, After: after, While: "example.io/state"}
			if patch, ok, err := conditional(action); ok || err != nil {
				t.Errorf("guarded by %s, %v", patch, err)
			}
		})
	}
}

// TestGuardedAnnotations: of any object, an annotation is taken off whatever else has changed, but only if it is as it was; and together with
// nothing else.
func TestGuardedAnnotations(t *testing.T) {
	held := func(size string, pods int32) *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{}
		rs.Name, rs.UID, rs.Annotations = "web", "uid", map[string]string{"example.io/held": size, "example.io/note": "kept"}
		rs.Status.Replicas = pods
		return rs
	}
	after := held("8", 8)
	delete(after.Annotations, "example.io/held")
	patch, ok, err := conditional(plan.Action{Verb: plan.Update, Before: held("8", 8), After: after, While: "example.io/held"})
	if err != nil || !ok {
		t.Fatalf("no patch: %v", err)
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		now     *appsv1.ReplicaSet
		refused bool
	}{
		"nothing has changed": {held("8", 8), false}, "its status has changed": {held("8", 9), false}, "it is held at another size": {held("5", 8), true},
		"it is not held": {after, true},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := json.Marshal(tc.now)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := operations.Apply(encoded)
			if refused := err != nil; refused != tc.refused {
				t.Fatalf("error %v, want one: %t", err, tc.refused)
			}
			is := &appsv1.ReplicaSet{}
			if err == nil {
				err = json.Unmarshal(patched, is)
			}
			if !tc.refused && (err != nil || len(is.Annotations) != 1 || is.Status.Replicas != tc.now.Status.Replicas) {
				t.Errorf("%+v, error %v", is, err)
			}
		})
	}
	after.Spec.MinReadySeconds = 1
	if _, ok, _ := conditional(plan.Action{Verb: plan.Update, Before: held("8", 8), After: after, While: "example.io/held"}); ok {
		t.Error("a change of the spec is not guarded by an annotation")
	}
}
