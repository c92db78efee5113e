package cloneset

import (
	"context"
	"math/rand"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/simulate"
	"github.com/seed-69ecc383/kruise/test/invariant"
)

// mistake is a bug put into the controller on purpose.
type mistake struct {
	plan          func(Survey) plan.Plan
	isDeaf        func(simulate.Event) bool
	trustsCache   bool
	unconditional bool
}

func (m mistake) seen(honest apply.Seen) apply.Seen {
	if !m.trustsCache {
		return honest
	}
	return func(context.Context, schema.GroupVersionKind) (string, error) { return "999999999", nil }
}

func (m mistake) writer(honest apply.Writer) apply.Writer {
	if !m.unconditional {
		return honest
	}
	return unconditional{honest}
}

// unconditional leaves the preconditions out of writes.
type unconditional struct{ apply.Writer }

func (u unconditional) Patch(ctx context.Context, object plan.Object, subresource string, kind types.PatchType, patch []byte) error {
	text := string(patch)
	if _, rest, ok := strings.Cut(text, `"resourceVersion":"`); ok {
		version, _, _ := strings.Cut(rest, `"`)
		text = strings.Replace(text, `"resourceVersion":"`+version+`",`, "", 1)
	}
	return u.Writer.Patch(ctx, object, subresource, kind, []byte(text))
}

func (u unconditional) Delete(ctx context.Context, object plan.Object, _ metav1.Preconditions) (string, error) {
	return u.Writer.Delete(ctx, object, metav1.Preconditions{})
}

// misread returns a Plan of a survey with something wrong in it.
func misread(wrong func(*Survey)) func(Survey) plan.Plan {
	return func(v Survey) plan.Plan {
		if v.problem == nil {
			wrong(&v)
		}
		return Plan(v)
	}
}

// miswrite returns a Plan of which each action goes wrong.
func miswrite(wrong func(*plan.Action)) func(Survey) plan.Plan {
	return func(v Survey) plan.Plan {
		p := Plan(v)
		for _, stage := range p.Stages {
			for _, chain := range stage {
				for i := range chain {
					wrong(&chain[i])
				}
			}
		}
		return p
	}
}

// TestMistakesAreCaught puts bugs into the controller and expects each to break the promise that it should: a check that lets them pass
// proves nothing.
func TestMistakesAreCaught(t *testing.T) {
	scheme := testScheme(t)
	cases := map[string]struct {
		mistake mistake
		want    string
	}{
		"one more Pod unavailable than allowed": {
			mistake{plan: misread(func(v *Survey) { v.limits.MaxUnavailable++ })}, invariant.RuleUnavailable,
		},
		"one more Pod than allowed": {
			mistake{plan: misread(func(v *Survey) { v.limits.Replicas++ })}, invariant.RuleTotal,
		},
		"one more Pod updated than the partition leaves": {
			mistake{plan: misread(func(v *Survey) { v.limits.Partition = max(v.limits.Partition-1, 0) })}, invariant.RulePartition,
		},
		"a pause overlooked": {
			mistake{plan: misread(func(v *Survey) { v.strategy.Paused = false })}, invariant.RulePaused,
		},
		"a grace period overlooked": {
			mistake{plan: misread(func(v *Survey) { v.strategy.InPlaceUpdateStrategy = nil })}, invariant.RuleGrace,
		},
		"hooks overlooked": {
			mistake{plan: misread(func(v *Survey) {
				set := v.Set.DeepCopy()
				set.Spec.Lifecycle = nil
				v.Set = set
			})}, invariant.RuleHook,
		},
		"InPlaceOnly overlooked": {
			mistake{plan: misread(func(v *Survey) { v.strategy.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdatePolicyType })}, invariant.RuleInPlaceOnly,
		},
		"claims deleted that are in use": {
			mistake{plan: func(v Survey) plan.Plan {
				p := Plan(v)
				for _, c := range v.Claims {
					p.Stages = append(p.Stages, plan.Stage{{{Verb: plan.Delete, Concern: plan.Tidy, Before: c}}})
				}
				return p
			}}, invariant.RuleClaims,
		},
		"an update believed to be over as soon as it is written": {
			mistake{plan: func(v Survey) plan.Plan {
				p := Plan(v)
				for _, m := range v.fleet.members {
					if m.state == pub.LifecycleStateUpdating && !inplace.Pending(m.pod) {
						after := m.pod.DeepCopy()
						after.Labels[keys.LifecycleState] = string(pub.LifecycleStateNormal)
						p.Stages = append(p.Stages, plan.Stage{{{Verb: plan.Update, Concern: plan.Settle, Before: m.pod, After: after}}})
					}
				}
				return p
			}}, invariant.RuleService,
		},
		"a cache believed that is older than our own writes": {
			mistake{trustsCache: true, unconditional: true}, invariant.RuleUnavailable,
		},
		"names of new Pods that differ each time": {
			mistake{plan: func() func(Survey) plan.Plan {
				r := rand.New(rand.NewSource(1))
				return miswrite(func(a *plan.Action) {
					if p, ok := a.After.(*corev1.Pod); ok && a.Verb == plan.Create {
						p.Name += string(rune('a' + r.Intn(26)))
						p.Labels[keys.InstanceID] = p.Name[len("web-"):]
					}
				})
			}(), trustsCache: true}, invariant.RuleTotal,
		},
		"a time that nobody is woken at": {
			mistake{plan: func(v Survey) plan.Plan {
				p := Plan(v)
				p.Recheck = 0
				return p
			}}, "at rest",
		},
		"an event that nobody listens to": {
			mistake{isDeaf: func(e simulate.Event) bool { return e.Key.Kind.Kind == "Pod" }}, "at rest",
		},
		"a write for nothing": {
			mistake{plan: func(v Survey) plan.Plan {
				p := Plan(v)
				for _, m := range v.fleet.members {
					after := m.pod.DeepCopy()
					after.Labels["seen"] = v.Now.Format("150405")
					p.Stages = append(p.Stages, plan.Stage{{{Verb: plan.Update, Concern: plan.Tidy, Before: m.pod, After: after}}})
				}
				return p
			}}, "a restart makes the controller write",
		},
		"an object of the cache changed": {
			mistake{plan: misread(func(v *Survey) {
				for _, m := range v.fleet.members {
					m.pod.Labels["planned"] = v.Now.Format(time.RFC3339)
				}
			})}, "planning changes what was read",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			const most = 400
			for seed := range int64(most) {
				w := newWorld(scheme, seed)
				w.mistake = tc.mistake
				if strings.Contains(strings.Join(w.run(t.Context()), "\n"), tc.want) {
					return
				}
			}
			t.Errorf("%d clusters do not show it as %q", most, tc.want)
		})
	}
}
