package clusters

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// numbered is the template of a StatefulSet of either kind.
const numbered = `
KIND:
  metadata: {labels: {app: APP}}
  spec:
    selector: {matchLabels: {app: APP}}
    template: {metadata: {labels: {app: APP}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: app, image: "app:v1"}]}}`

// serve has a member serve a kind of Kruise.
func (f *fleet) serve(member, plural string) {
	f.Helper()
	root, err := cluster.Root()
	f.Must(err)
	f.Must(f.members[member].ApplyFile(f.Ctx, filepath.Join(root, "config", "crd", "bases", "apps.kruise.io_"+plural+".yaml")))
}

// statefulSets of both kinds are made, scaled and deleted in a member.
func (u *united) statefulSets() {
	for template, kind := range map[string]client.ObjectList{
		"statefulSetTemplate": &appsv1.StatefulSetList{}, "advancedStatefulSetTemplate": &v1beta1.StatefulSetList{},
	} {
		name := "of-" + strings.ToLower(template)
		u.namespace(name, "member-1")
		u.createIn(name, name, strings.ReplaceAll(numbered, "KIND", template),
			"{replicas: 1, topology: {subsets: [{name: a, targetCluster: {name: member-1}}]}}")
		u.sizes(name, kind, "[1]")
		u.scale(name, 2)
		u.sizes(name, kind, "[2]")
		u.delete(name)
		u.sizes(name, kind, "[]")
		u.isGone(name, "member-1")
	}
}

// sizes waits until the workloads of a kind in a namespace of a member have these replicas.
func (u *united) sizes(namespace string, list client.ObjectList, want string) {
	u.Helper()
	u.Eventually(fmt.Sprintf("the member has %T of %s replicas", list, want), func() error {
		if err := u.members["member-1"].Client.List(u.Ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		got := []int64{}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			replicas, _, _ := unstructured.NestedInt64(fields, "spec", "replicas")
			got = append(got, replicas)
			return err
		}); err != nil {
			return err
		}
		if fmt.Sprint(got) != want {
			return fmt.Errorf("they have %v", got)
		}
		return nil
	})
}

// reserved: a Pod that no node of a member takes is reserved, and another one stands in for it in the hub.
func (u *united) reserved() {
	u.create("reserved", 1, `[{name: b, maxReplicas: 1, targetCluster: {name: member-1},
nodeSelectorTerm: {matchExpressions: [{key: none-has-it, operator: Exists}]}}, {name: a}],
scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 1, unschedulableDuration: 600, reserveUnschedulablePods: true}}`, "member-1")
	u.Eventually("the Pod is reserved, and another one is there", func() error {
		var pods corev1.PodList
		if err := u.members["member-1"].Client.List(u.Ctx, &pods, client.InNamespace("reserved")); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Labels[keys.ReservedPod] != "true" {
			return fmt.Errorf("the member has %d Pods", len(pods.Items))
		}
		if here := u.specified(u.hub, "reserved"); here != 1 {
			return errors.New("nothing stands in for it")
		}
		return nil
	})
	u.delete("reserved")
	u.isGone("reserved", "member-1")
}
