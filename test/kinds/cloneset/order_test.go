package cloneset

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

func TestUpdateByWeight(t *testing.T) {
	e := newEnv(t)
	text := strings.Replace(e.manifest("cloneset-order.yaml"), "replicas: 10", "replicas: 6", 1)
	e.Make(strings.Replace(text, "updateStrategy:", "updateStrategy:\n    type: InPlaceIfPossible\n    maxUnavailable: 1", 1))
	e.settled("ordered", 6, 6)
	order := e.labelAll("ordered", "test-key", "", "bar", "foo", "", "bar", "foo")
	h := e.record("ordered")
	e.edit("ordered", image("nginx:mainline"))
	e.settled("ordered", 6, 6)
	e.inLabelOrder(h, order, []string{"foo", "foo", "bar", "bar", "", ""})
}

func TestUpdateByTrailingInteger(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("counted", 4)
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = number(1)
	set.Spec.UpdateStrategy.RollingUpdate.PriorityStrategy = &pub.UpdatePriorityStrategy{
		OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "some-label-key"}},
	}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("counted", 4, 4)
	order := e.labelAll("counted", "some-label-key", "a-3", "a-10", "a-1", "")
	h := e.record("counted")
	e.edit("counted", image("nginx:mainline"))
	e.settled("counted", 4, 4)
	e.inLabelOrder(h, order, []string{"", "a-10", "a-3", "a-1"})
}

func TestUpdateScattered(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("scattered", 10)
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = number(1)
	set.Spec.UpdateStrategy.RollingUpdate.ScatterStrategy = pub.UpdateScatterStrategy{{Key: "foo", Value: "bar"}}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("scattered", 10, 10)
	order := e.labelAll("scattered", "foo", "bar", "", "", "bar", "", "", "bar", "", "", "")
	h := e.record("scattered")
	e.edit("scattered", image("nginx:mainline"))
	e.settled("scattered", 10, 10)
	e.inLabelOrder(h, order, []string{"bar", "", "", "", "", "bar", "", "", "", "bar"})
}

// labelAll gives each Pod, in the order of names, one of the values, and returns them by name; an empty value is no label.
func (e *env) labelAll(name, key string, values ...string) map[string]string {
	e.Helper()
	out := map[string]string{}
	for i, p := range e.pods(name) {
		out[p.Name] = values[i]
		if values[i] != "" {
			e.patchPod(p.Name, func(p *corev1.Pod) { p.Labels[key] = values[i] })
		}
	}
	return out
}

func (e *env) inLabelOrder(h *history, values map[string]string, want []string) {
	e.Helper()
	h.read(func(h *history) {
		var got []string
		for _, name := range h.updated {
			got = append(got, values[name])
		}
		if !slices.Equal(got, want) {
			e.Errorf("Pods were updated in the order %q, want %q", got, want)
		}
	})
}
