package explain

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/forecast"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// TestWordsOfControllers checks that the codes follow from what the controllers really say in their plans: a code is read off their words.
func TestWordsOfControllers(t *testing.T) {
	labels := map[string]string{"app": "web"}
	for name, tc := range map[string]struct {
		policy v1beta1.CloneSetPodUpdatePolicyType
		change func(*corev1.Container)
		want   map[reason.Code]int
	}{
		"some now, the rest later": {v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, func(c *corev1.Container) { c.Image = "web:v2" },
			map[reason.Code]int{reason.Updating: 1, reason.WaitBudget: 2}},
		"in place only, and it can't": {v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType, func(c *corev1.Container) { c.Command = []string{"serve"} },
			map[reason.Code]int{reason.InPlaceRefused: 1, reason.WaitBudget: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u", Generation: 1}}
			set.Spec.Replicas, set.Spec.Selector = ptr.To(int32(3)), &metav1.LabelSelector{MatchLabels: labels}
			set.Spec.Template.Labels = labels
			set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:v1"}}
			set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: tc.policy, MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			}
			w := forecast.NewWorld(now(), set)
			if _, err := forecast.Run(t.Context(), w, set); err != nil {
				t.Fatal(err)
			}
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
				t.Fatal(err)
			}
			tc.change(&set.Spec.Template.Spec.Containers[0])
			s := Situation{
				Arg: "cloneset/web", Updated: "web-new", Now: now().Add(time.Hour),
				Progress: progress.Progress{Phase: progress.Updating, Seen: true, Wanted: 3, Total: 3},
			}
			w.Now = s.Now
			var err error
			if s.Plan, err = forecast.First(t.Context(), w, set); err != nil {
				t.Fatal(err)
			}
			var pods corev1.PodList
			if err := w.List(t.Context(), &pods); err != nil {
				t.Fatal(err)
			}
			for i := range pods.Items {
				if pods.Items[i].Labels[appsv1.ControllerRevisionHashLabelKey] == "" {
					t.Fatalf("Pod %s has no revision", pods.Items[i].Name)
				}
				s.Pods = append(s.Pods, &pods.Items[i])
			}
			got := map[reason.Code]int{}
			for _, r := range Explain(s).Pods {
				got[r.Code]++
			}
			for code, n := range tc.want {
				if got[code] != n {
					t.Errorf("of %s there are %d, want %d: %v, holds %+v", code, got[code], n, got, s.Plan.Holds)
				}
			}
		})
	}
}
