package statefulset

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/test/kit/build"
	"github.com/seed-69ecc383/kruise/test/kit/reading"
)

// readingSnapshot is a StatefulSet with one Pod at its revision, which has annotation conf=2 as the template, in the environment of its container.
// The node daemon tells that the container runs with another value of it.
func readingSnapshot(t *testing.T, runs string) Snapshot {
	t.Helper()
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "uid", Generation: 1}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Replicas = new(int32(1))
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType,
	}
	set.Spec.Template = reading.Template()
	s := Snapshot{Set: set, Now: build.After(3600)}
	s.Options.InPlace.EnvFromMetadata = true

	owner := *metav1.NewControllerRef(set, kind())
	history, err := readHistory(s, owner)
	if err != nil {
		t.Fatal(err)
	}
	s.Revisions = []*appsv1.ControllerRevision{history.Update}
	p := reading.Pod("web-0", owner, history.Update, runs)
	p.Labels[appsv1.StatefulSetPodNameLabel], p.Labels[appsv1.PodIndexLabel] = p.Name, "0"
	s.Pods = []*corev1.Pod{p}
	return s
}

// TestAPodThatRunsWithAnOldValueIsUpdated: somebody gave the Pod the value by hand before the template got it. Its labels say that it is
// updated; what its container runs with decides.
func TestAPodThatRunsWithAnOldValueIsUpdated(t *testing.T) {
	for runs, updated := range map[string]int32{"1": 0, "2": 1} {
		v := Classify(readingSnapshot(t, runs))
		p := Plan(v)
		if got := Status(v, p, apply.Outcome{}).UpdatedReplicas; got != updated {
			t.Errorf("a container runs with %s: %d Pods are updated, want %d", runs, got, updated)
		}
		if restarts := strings.Contains(p.String(), "in place: main environment from metadata"); restarts != (updated == 0) {
			t.Errorf("a container runs with %s, and the plan is:\n%s", runs, p)
		}
	}
}
