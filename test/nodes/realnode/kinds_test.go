package realnode

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// stateful returns a StatefulSet of Pods with two containers and a claim, which updates in place where it can.
func stateful(name string, replicas int32) *v1beta1.StatefulSet {
	labels := map[string]string{"app": name}
	s := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	s.Spec = v1beta1.StatefulSetSpec{
		Replicas: &replicas, ServiceName: name, PodManagementPolicy: appsv1.ParallelPodManagement,
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{build.ClaimTemplate("data", "1Gi")},
	}
	s.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
	two := intstr.FromInt32(2)
	s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType, MaxUnavailable: &two,
		InPlaceUpdateStrategy: &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 1},
	}
	return s
}

// statefulSet goes from an update in place to one that recreates the Pods, and scales in and out: what is on the volumes outlives all of it.
func (w *world) statefulSet() {
	s := stateful("ledger", 3)
	w.Must(w.Client.Create(w.Ctx, s))
	settled := func() {
		w.Helper()
		w.Eventually("ledger has settled", func() error {
			if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(s), s); err != nil {
				return err
			}
			want := *s.Spec.Replicas
			got := []int32{s.Status.Replicas, s.Status.UpdatedReplicas, s.Status.UpdatedAvailableReplicas}
			if s.Status.ObservedGeneration != s.Generation || !slices.Equal(got, []int32{want, want, want}) {
				return fmt.Errorf("replicas, updated, available are %v", got)
			}
			return nil
		})
	}
	settled()
	before := w.takeNotes("ledger")
	w.editObject(s, func() { s.Spec.Template.Spec.Containers[0].Image = "nginx:mainline" })
	settled()
	w.changedInPlace("ledger", before)

	claims := w.claims("ledger")
	w.editObject(s, func() { s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "2"}} })
	settled()
	w.editObject(s, func() { *s.Spec.Replicas = 1 })
	settled()
	w.editObject(s, func() { *s.Spec.Replicas = 3 })
	settled()
	for i, p := range w.pods("ledger") {
		if p.Name != before[i].Name || p.UID == before[i].UID {
			w.Errorf("Pod %s of %s is there, want another one of the same name as %s", p.Name, p.UID, before[i].UID)
		}
		if note := w.run(&p, "web", "cat", "/data/note"); note != "kept" {
			w.Errorf("container web of %s finds %q on its volume", p.Name, note)
		}
	}
	if now := w.claims("ledger"); len(now) != 3 || !slices.Equal(now, claims) {
		w.Errorf("the claims are %v, were %v", now, claims)
	}
}

func (w *world) claims(name string) []string {
	w.Helper()
	var list corev1.PersistentVolumeClaimList
	w.Must(w.Client.List(w.Ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": name}))
	var out []string
	for i := range list.Items {
		out = append(out, fmt.Sprintf("%s is %s on %s", list.Items[i].Name, list.Items[i].UID, list.Items[i].Spec.VolumeName))
	}
	return out
}

// daemon returns a DaemonSet of Pods with two containers and a volume.
func daemon(name string, rolling v1beta1.RollingUpdateDaemonSet) *v1beta1.DaemonSet {
	labels := map[string]string{"app": name}
	s := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	s.Spec.Template = template(labels)
	s.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	s.Spec.UpdateStrategy.RollingUpdate = &rolling
	return s
}

// covers waits until a DaemonSet has an updated, available Pod on both nodes and no other.
func (w *world) covers(s *v1beta1.DaemonSet) {
	w.Helper()
	w.Eventually(s.Name+" covers both nodes", func() error {
		if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		got := []int32{s.Status.DesiredNumberScheduled, s.Status.UpdatedNumberScheduled, s.Status.NumberAvailable, int32(len(w.pods(s.Name)))}
		if s.Status.ObservedGeneration != s.Generation || !slices.Equal(got, []int32{2, 2, 2, 2}) {
			return fmt.Errorf("desired, updated, available and all Pods are %v", got)
		}
		return nil
	})
	nodes := map[string]bool{}
	for _, p := range w.pods(s.Name) {
		nodes[p.Spec.NodeName] = true
	}
	if len(nodes) != 2 {
		w.Errorf("the Pods are on %v, want them on both nodes", nodes)
	}
}

func (w *world) daemonSetInPlace() {
	s := daemon("agent", v1beta1.RollingUpdateDaemonSet{
		Type: v1beta1.InPlaceRollingUpdateType, RollingUpdateDaemonSetBase: v1beta1.RollingUpdateDaemonSetBase{
			InPlaceUpdateStrategy: &v1beta1.DaemonSetInPlaceUpdateStrategy{GracePeriodSeconds: 1},
		},
	})
	w.Must(w.Client.Create(w.Ctx, s))
	w.covers(s)
	before := w.takeNotes("agent")
	w.editObject(s, func() { s.Spec.Template.Spec.Containers[0].Image = "nginx:mainline" })
	w.covers(s)
	w.changedInPlace("agent", before)
}

func (w *world) daemonSetSurges() {
	one := intstr.FromInt32(1)
	s := daemon("guard", v1beta1.RollingUpdateDaemonSet{RollingUpdateDaemonSetBase: v1beta1.RollingUpdateDaemonSetBase{MaxSurge: &one}})
	s.Spec.MinReadySeconds = 2
	w.Must(w.Client.Create(w.Ctx, s))
	w.covers(s)
	before := map[types.UID]bool{}
	for _, p := range w.pods("guard") {
		before[p.UID] = true
	}
	h := w.follow()
	w.editObject(s, func() { s.Spec.Template.Spec.Containers[0].Image = "nginx:mainline" })
	w.covers(s)
	w.Must(h.stop())
	h.neverWithoutAReadyPod(w.T, "guard")
	for _, p := range w.pods("guard") {
		if before[p.UID] || strings.TrimSpace(w.run(&p, "web", "cat", "/etc/image-tag")) != "mainline" {
			w.Errorf("Pod %s is one of before, or runs another image than mainline", p.Name)
		}
	}
}
