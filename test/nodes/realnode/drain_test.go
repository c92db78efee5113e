package realnode

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// drain has kubectl drain a node whose Pods belong to a CloneSet under a WorkloadSpread and a PodUnavailableBudget: it ends, no more Pods are out of service
// than the budget allows, no subset has more Pods than it takes, and all Pods are on the other node in the end.
func (w *world) drain() {
	const replicas, most, budget = 4, 3, 1
	var nodes corev1.NodeList
	w.Must(w.Client.List(w.Ctx, &nodes))
	drained, other := nodes.Items[0].Name, nodes.Items[1].Name
	w.Must(w.Client.Create(w.Ctx, nearFirst("drained", drained, other, most)))
	s := set("drained", replicas)
	s.Spec.VolumeClaimTemplates = nil // local volumes would keep the Pods from leaving
	s.Spec.Template.Spec.Containers = s.Spec.Template.Spec.Containers[1:]
	w.Must(w.Client.Create(w.Ctx, s))
	w.settled("drained")
	w.Must(w.Client.Create(w.Ctx, budgetOf("drained", budget)))
	w.Eventually("the budget is in force", func() error {
		b := &policyv1beta1.PodUnavailableBudget{}
		w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "drained"}, b))
		if b.Status.ObservedGeneration != b.Generation || b.Status.UnavailableAllowed != budget {
			return fmt.Errorf("its status is %+v", b.Status)
		}
		return nil
	})
	if got := w.nodesOf("drained"); !slices.Contains(got, drained) {
		w.Fatalf("the Pods are on %v, and none on %s, which is to be drained", got, drained)
	}
	h := w.follow()
	w.Cleanup(func() {
		w.Ctx = w.Afterwards()
		_, err := w.Kubectl(w.Ctx, "uncordon", drained)
		w.Must(err)
	})
	_, err := w.Kubectl(w.Ctx, "drain", drained, "--pod-selector=app=drained", "--timeout=110s")
	w.Must(err)
	w.settled("drained")
	w.Must(h.stop())
	h.neverFewerReady(w.T, "drained", replicas-budget)
	h.neverMoreIn(w.T, "drained", "near", most)
	for _, node := range w.nodesOf("drained") {
		if node != other {
			w.Errorf("a Pod is on %s after %s was drained", node, drained)
		}
	}
}

// nodesOf returns the nodes of the Pods that are not on their way out.
func (w *world) nodesOf(name string) (out []string) {
	w.Helper()
	for _, p := range w.pods(name) {
		if pod.IsActive(&p) {
			out = append(out, p.Spec.NodeName)
		}
	}
	return out
}

// nearFirst returns a WorkloadSpread whose first subset prefers one node and takes so many Pods; the second one takes the rest, on the other node.
func nearFirst(name, near, far string, most int32) *v1beta1.WorkloadSpread {
	host := func(node string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}
	}
	limit, farOnly := intstr.FromInt32(most), host(far)
	return &v1beta1.WorkloadSpread{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1beta1.WorkloadSpreadSpec{
			TargetReference: &v1beta1.SpreadTargetReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: name},
			Subsets: []v1beta1.WorkloadSpreadSubset{
				{Name: "near", MaxReplicas: &limit, PreferredNodeSelector: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: host(near)}}},
				{Name: "far", RequiredNodeSelector: &farOnly},
			},
		},
	}
}

func budgetOf(name string, maxUnavailable int32) *policyv1beta1.PodUnavailableBudget {
	most := intstr.FromInt32(maxUnavailable)
	b := &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	b.Spec.TargetReference = &policyv1beta1.TargetReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: name}
	b.Spec.MaxUnavailable = &most
	return b
}

// neverMoreIn checks that at no moment a subset had more active Pods of a workload, and that it had so many at some moment.
func (h *history) neverMoreIn(t *testing.T, name, subset string, most int) {
	t.Helper()
	in := map[types.UID]bool{}
	full := false
	for _, v := range h.versions {
		if m, _ := spread.MatchedOf(v.pod); v.pod.Labels["app"] != name || m.Subset != subset {
			continue
		}
		delete(in, v.pod.UID)
		if v.event != watch.Deleted && pod.IsActive(v.pod) {
			in[v.pod.UID] = true
		}
		if full = full || len(in) == most; len(in) > most {
			t.Errorf("subset %s has %d Pods, want %d at most", subset, len(in), most)
			return
		}
	}
	if !full {
		t.Errorf("subset %s never had its %d Pods", subset, most)
	}
}
