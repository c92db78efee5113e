package rollouts

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// blueGreenOf returns the manifest of a Rollout of blueGreen style, with steps as YAML, and how it leads traffic if it does.
func blueGreenOf(workload, steps, routings string) string {
	out := strings.Replace(rolloutOf(workload, steps), "    canary:\n", "    blueGreen:\n", 1)
	if routings != "" {
		out += "      trafficRoutings: [" + routings + "]\n"
	}
	return out
}

const (
	// threeShares bring all new Pods up before any request goes to them.
	threeShares = "{replicas: 100%, traffic: 0%}, {replicas: 100%, traffic: 50%}, {replicas: 100%, traffic: 100%}"

	scaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {%s, name: web}
  minReplicas: 4
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
`
)

// blueGreenEnv is a namespace with a workload that is released in blueGreen style, and an autoscaler of it.
type blueGreenEnv struct {
	*deploymentEnv
	isSet bool
}

func beginBlueGreen(in *env, workload, steps, routings string) *blueGreenEnv {
	in.Helper()
	e := &blueGreenEnv{&deploymentEnv{env: in}, workload == ofCloneSet}
	if routings != "" {
		e.Make(service)
	}
	switch routings {
	case byIngress:
		e.Make(webIngress)
	case byRoute:
		e.routes()
		e.Make(threeRules)
	}
	e.Make(fmt.Sprintf(scaler, workload))
	if e.isSet {
		e.start(fmt.Sprintf(cloneSet, 4, ""), blueGreenOf(workload, steps, routings))
	} else {
		e.beginWith(4, [2]string{"1", "0"}, blueGreenOf(workload, steps, routings))
	}
	return e
}

func (e *blueGreenEnv) setImage(version string) {
	e.Helper()
	if e.isSet {
		e.env.setImage(version)
		return
	}
	e.deploymentEnv.setImage(version)
}

// spec returns that of the workload.
func (e *blueGreenEnv) spec() any {
	e.Helper()
	if e.isSet {
		spec := e.cloneSet().Spec
		spec.Template.Spec.Containers[0].Image = ""
		return spec
	}
	spec := e.deployment().Spec
	spec.Template.Spec.Containers[0].Image = ""
	return spec
}

func (e *blueGreenEnv) scales() string {
	e.Helper()
	a := &autoscalingv2.HorizontalPodAutoscaler{}
	e.Read("web", a)
	return a.Spec.ScaleTargetRef.Name
}

// beside checks that so many Pods of each version are there, and that none of the old ones goes.
func (e *blueGreenEnv) beside(old, updated int) {
	e.Helper()
	if got := e.images(); got["v1"] != old || got["v2"] != updated {
		e.Fatalf("%v, want %d of v1 and %d of v2\n%s", got, old, updated, e.describe())
	}
	if got := e.scales(); got != "web-DisableByRollout" {
		e.Errorf("the autoscaler scales %s", got)
	}
}

// ends waits until a release is over, and has left nothing.
func (e *blueGreenEnv) ends(version string, succeeded corev1.ConditionStatus) {
	e.Helper()
	if e.isSet {
		e.env.over(version, 4, succeeded)
	} else {
		e.deploymentEnv.over(version, 4, succeeded)
	}
	if got := e.scales(); got != "web" {
		e.Errorf("the autoscaler scales %s", got)
	}
}

// leads checks the share of the new version.
func (e *blueGreenEnv) leads(routings, share string) {
	e.Helper()
	switch routings {
	case byIngress:
		canary := &networkingv1.Ingress{}
		err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "web-canary"}, canary)
		if apierrors.IsNotFound(err) && share == "0" {
			return
		}
		e.Must(err)
		if got := canary.Annotations[nginx+"canary-weight"]; got != share {
			e.Errorf("the weight is %q, want %s", got, share)
		}
	case byRoute:
		want := map[string][]string{
			"0": {"web 700", "web-canary 0", "other 300"}, "50": {"web 350", "web-canary 350", "other 300"},
			"100": {"web 0", "web-canary 700", "other 300"},
		}[share]
		got := backends(e.untyped(httpRoute, "web"), 0)
		if share == "0" && !strings.Contains(fmt.Sprint(got), "web-canary") {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			e.Errorf("the backends (-want +got):\n%s", diff)
		}
	}
}

func (e *blueGreenEnv) jump(step int32) {
	e.Helper()
	scene.EditStatus(e.Env, "demo", &v1beta1.Rollout{}, func(r *v1beta1.Rollout) { releaseOf(r).NextStepIndex = step })
	e.Eventually(fmt.Sprintf("it has jumped to step %d", step), func() error { return e.isAt(step, v1beta1.StepStatePaused) })
}
