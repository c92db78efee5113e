package ephemeraljob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
)

func TestOfPod(t *testing.T) {
	plain, marked := fleet(t, "new")[0], fleet(t, "running")[0]
	stray := marked.DeepCopy()
	stray.Labels = map[string]string{"app": "other"}
	foreign := plain.DeepCopy()
	foreign.Labels = nil
	ended := marked.DeepCopy()
	ended.Status.EphemeralContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	ready := plain.DeepCopy()
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	over := jobWith(func(job *v1alpha1.EphemeralJob) { job.Name, job.Status.Phase = "over", v1alpha1.EphemeralJobFailed })
	elsewhere := jobWith(func(job *v1alpha1.EphemeralJob) { job.Namespace = "elsewhere" })
	found := jobs{
		Reader: fake.NewClientBuilder().WithScheme(promises.Scheme(v1alpha1.AddToScheme)).WithObjects(jobWith(), over, elsewhere).Build(),
	}
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"a Pod comes":                           {nil, plain, true},
		"a Pod goes":                            {plain, nil, true},
		"a Pod gets ready":                      {plain, ready, false},
		"a Pod comes that it is not for":        {nil, foreign, false},
		"a Pod that has its containers comes":   {nil, stray, true},
		"its labels change":                     {marked, stray, true},
		"it loses the labels":                   {plain, foreign, true},
		"a container ends":                      {marked, ended, true},
		"containers are added":                  {plain, marked, true},
		"a Pod without a node gets one":         {fleet(t, "pending")[0], plain, true},
		"a Pod is being deleted":                {plain, fleet(t, "gone")[0], true},
		"a Pod ends":                            {plain, fleet(t, "over")[0], true},
		"a version of the Pod that is the same": {marked, marked.DeepCopy(), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := found.ofPod(t.Context(), tc.before, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			var want []types.NamespacedName
			if tc.want {
				want = []types.NamespacedName{{Namespace: "default", Name: "shell"}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the jobs that it concerns (-want +got):\n%s", diff)
			}
		})
	}
}
