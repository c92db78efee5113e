package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

func TestContainerFor(t *testing.T) {
	first, second := sidecar.HotContainers("proxy")
	in := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-a"}}
	for _, name := range []string{"app", first, second, "log"} {
		in.Spec.Containers = append(in.Spec.Containers, corev1.Container{Name: name})
	}
	upgraded := in.DeepCopy()
	sidecar.SetWorking(upgraded, "proxy", second)
	sidecar.SetWorking(in, "proxy", first)
	marked := in.DeepCopy()
	marked.Annotations[defaultContainer] = "log"
	for name, tc := range map[string]struct {
		in                 *corev1.Pod
		container, sidecar string
		want, refused      string
	}{
		"the one that works":             {in, "", "proxy", first, ""},
		"the one that works after all":   {upgraded, "", "proxy", second, ""},
		"a sidecar with one container":   {in, "", "log", "log", ""},
		"by its name":                    {in, second, "", second, ""},
		"none named":                     {in, "", "", "app", ""},
		"none named, and the Pod says":   {marked, "", "", "log", ""},
		"no such sidecar":                {in, "", "mesh", "", `has no sidecar "mesh": its containers are app, proxy-1, proxy-2, log`},
		"no such container":              {in, "proxy", "", "", `has no container "proxy"`},
		"both":                           {in, "app", "proxy", "", "give only one of them"},
		"an annotation that is no JSON":  {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kruise.io/sidecarset-working-hotupgrade-container": "{"}}}, "", "proxy", "", "finding the container of sidecar proxy"},
		"a container that was taken out": {func() *corev1.Pod { p := in.DeepCopy(); p.Spec.Containers = p.Spec.Containers[:1]; return p }(), "", "proxy", "", "has no sidecar"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := containerFor(tc.in, tc.container, tc.sidecar)
			if got != tc.want || (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("it is %q, %v, want %q and an error about %q", got, err, tc.want, tc.refused)
			}
		})
	}
}

func TestInService(t *testing.T) {
	at := func(name string, phase corev1.PodPhase, ready corev1.ConditionStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
			Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
		}}
	}
	gone := at("a", corev1.PodRunning, corev1.ConditionTrue)
	gone.DeletionTimestamp = &metav1.Time{}
	pods := []corev1.Pod{at("d", corev1.PodRunning, corev1.ConditionTrue), at("b", corev1.PodRunning, corev1.ConditionFalse), gone}
	if got, err := inService("clone/web", pods); err != nil || got.Name != "d" {
		t.Errorf("it is %v, %v, want the Pod that is ready", got, err)
	}
	if got, err := inService("clone/web", pods[1:2]); err != nil || got.Name != "b" {
		t.Errorf("it is %v, %v, want the Pod that runs", got, err)
	}
	if _, err := inService("clone/web", []corev1.Pod{gone}); err == nil {
		t.Error("a Pod that is being deleted is taken")
	}
}
