package daemonset

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// heir is a user who has a DaemonSet of Kubernetes leave its Pods behind, and ours take them over.
type heir struct {
	cluster *simulate.Cluster
	before  *appsv1.DaemonSet
}

func newHeir(c *simulate.Cluster) *heir {
	h := &heir{cluster: c, before: &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default"}}}
	h.before = h.create(h.before).(*appsv1.DaemonSet)
	for i := range 3 {
		node := h.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}})
		template := podTemplate()
		p := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		p.Name, p.Namespace, p.Spec.NodeName = fmt.Sprintf("agent-%d", i), h.before.Namespace, node.GetName()
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(h.before, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
		h.create(p)
	}
	return h
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
	}
}

func (h *heir) create(object client.Object) client.Object {
	stored, err := h.cluster.Create(promises.UserActor, object)
	if err != nil {
		panic(err)
	}
	return stored
}

// inherit deletes the DaemonSet such that its Pods stay, and creates ours: at once, or after that one is gone.
func (h *heir) inherit(atOnce bool) {
	if h.before == nil {
		return
	}
	h.cluster.Orphan(promises.UserActor, h.before)
	for key := h.cluster.KeyOf(h.before); !atOnce && h.cluster.Get(key) != nil; {
		h.cluster.Housekeep()
	}
	h.before = nil
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: podTemplate().Labels}
	set.Spec.Template = podTemplate()
	set.Spec.UpdateStrategy.Type = v1beta1.OnDeleteDaemonSetStrategyType
	h.create(set)
}

const ruleBeside = "no Pod beside another"

// createdBeside finds the Pods that were created on a node that had one, whoever controlled that.
func createdBeside(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	pods := map[string]*corev1.Pod{}
	// late are creations that the controller had given up on, by the name of the Pod.
	late := map[string]int64{}
	for _, c := range history {
		p, isPod := c.After.(*corev1.Pod)
		if c.Key.Kind.Kind != "Pod" {
			continue
		}
		delete(pods, c.Key.Name)
		if !isPod {
			continue
		}
		if c.Before == nil && c.Late {
			late[p.Name] = c.Revision
		}
		for _, other := range pods {
			if c.Before == nil && c.Pass != nil && !c.Late && late[other.Name] <= c.Pass.Seen[c.Key.Kind] && nodefit.NodeOf(other) == nodefit.NodeOf(p) {
				out = append(out, invariant.Violation{Rule: ruleBeside, Revision: c.Revision, Text: p.Name + " is created beside " + other.Name})
			}
		}
		pods[p.Name] = p
	}
	return out
}

// TestTakeoverCreatesNoPod has caches, each at its own pace, tell of the new DaemonSet before they tell that nobody controls the Pods any more, and
// has it created while the garbage collector is still about to let go of them.
func TestTakeoverCreatesNoPod(t *testing.T) {
	for name, atOnce := range map[string]bool{"after the other one is gone": false, "while it is being deleted": true} {
		t.Run(name, func(t *testing.T) { takeover(atOnce, Plan).Hold(t) })
	}
	t.Run("it does not wait for the other one", func(t *testing.T) {
		takeover(true, func(v State) plan.Plan {
			v.Predecessor = false
			return Plan(v)
		}).Break(t, ruleBeside)
	})
}

func takeover(atOnce bool, planned func(State) plan.Plan) promises.Suite {
	s := suite(planned)
	s.Populate = func(w *promises.World) promises.Scenario {
		h := newHeir(w.Cluster)
		inherit := func() { h.inherit(atOnce) }
		return promises.Scenario{
			Start: starter(w, Options{}, planned), Act: inherit, Relent: inherit,
			Check: createdBeside,
			Converged: func() []string {
				var out []string
				for _, object := range w.Cluster.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
					if metav1.GetControllerOf(object) == nil {
						out = append(out, object.GetName()+" is not taken over")
					}
				}
				return out
			},
		}
	}
	return s
}
