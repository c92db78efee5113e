package workloadspread

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// TestAllStepsTogether: one Pod is given a subset, a sidecar, its budget, the place where it ran before and its launch order, all at its creation.
func TestAllStepsTogether(t *testing.T) {
	e := newEnv(t)
	e.over(clone, "StatefulSet", "web", "a=1", "b")
	e.Make(`{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: web},
		spec: {targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: web}, maxUnavailable: 100%}}`)
	e.Make(`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: web},
		spec: {targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: web}, requiredPersistentTopology: {keys: [kubernetes.io/hostname]}}}`)
	sidecars := e.Manifest(fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: %[1]s-proxy}
spec:
  selector: {matchLabels: {subset: a}} # which the WorkloadSpread gives
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  containers: [{name: proxy, image: "proxy:1"}]`, e.Namespace))
	sidecars.SetNamespace("")
	e.Must(e.Client.Create(e.Ctx, sidecars))
	e.CleanUp(sidecars)
	e.workload(clone, "StatefulSet", "web", 1)
	e.patch(clone, "StatefulSet", "web", `{"spec":{"template":{"metadata":{"annotations":{"apps.kruise.io/container-launch-priority":"Ordered"}}}}}`)
	e.Eventually("a Pod made anew has all of it", func() error {
		state := &v1beta1.PersistentPodState{}
		e.Read("web", state)
		if state.Status.PodStates["web-0"].NodeName == "" {
			return errors.New("nothing is recorded")
		}
		p := &corev1.Pod{}
		if err := e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "web-0"}, p); err != nil {
			return err
		}
		if missing := missingOf(p, state.Status.PodStates["web-0"].NodeName); len(missing) > 0 {
			_ = e.Client.Delete(e.Ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID}) // it may be on its way out
			return fmt.Errorf("%s lacks %v", p.Name, missing)
		}
		return nil
	})
}

// missingOf returns which steps have left nothing on a Pod that ran on a node before.
func missingOf(p *corev1.Pod, node string) (missing []string) {
	for what, has := range map[string]bool{
		"its subset":  p.Labels["subset"] == "a" && p.Annotations[keys.MatchedWorkloadSpread] != "",
		"its sidecar": slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == "proxy" }),
		"its budget":  p.Annotations[keys.RelatedBudget] == "web",
		"its place":   p.Annotations[keys.InjectedPodState] == "web" && p.Spec.NodeSelector[corev1.LabelHostname] == node,
		"its launch order": !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
			return !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == keys.ContainerBarrierEnv })
		}),
	} {
		if !has {
			missing = append(missing, what)
		}
	}
	return missing
}
