package realops

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/backends"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/measure"
)

// released is a Deployment with all that a release with traffic needs. Nobody serves its Ingress: those who call the Service itself are what
// is looked at.
const released = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 4
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: web
        image: app:v1
        readinessProbe: {periodSeconds: 1, httpGet: {path: /, port: 80}}
        lifecycle: {preStop: {sleep: {seconds: 5}}}
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {selector: {app: shop}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec: {ingressClassName: nginx, rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}}]}
---
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: shop}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  strategy:
    canary:
      steps: [{replicas: 50%, traffic: 50%}, {replicas: 100%}]
      trafficRoutings: [{service: shop, gracePeriodSeconds: 1, ingress: {name: shop}}]
`

// release takes a Deployment through a release in steps, and then back from another one: at a step who calls the Service gets the old version,
// and no call fails from the first to the last.
func (w *world) release() {
	w.Must(w.InstallProgram(w.Ctx, cluster.RolloutManager()))
	manager := w.Launch("rollouts", cluster.ManagerOptions{Program: cluster.RolloutManager(), Args: []string{"--leader-elect=false"}})
	w.Must(manager.WaitReady(w.Ctx))
	for _, text := range strings.Split(released, "---") {
		o := &unstructured.Unstructured{}
		w.Must(yaml.Unmarshal([]byte(text), &o.Object))
		o.SetNamespace(namespace)
		w.Must(w.Client.Create(w.Ctx, o))
	}
	name := client.ObjectKey{Namespace: namespace, Name: "shop"}
	defer w.forget(name)
	// is waits for a phase, of a release at its first step, and for so many updated Pods beside those that have to be available.
	is := func(phase v1beta1.RolloutPhase, updated int32) {
		w.Helper()
		w.Eventually(fmt.Sprintf("the Rollout is %s with %d updated Pods", phase, updated), func() error {
			r, d := &v1beta1.Rollout{}, &appsv1.Deployment{}
			if err := errors.Join(w.Client.Get(w.Ctx, name, r), w.Client.Get(w.Ctx, name, d)); err != nil {
				return err
			}
			s := r.Status
			if s.Phase != phase || s.CanaryStatus == nil || phase == v1beta1.RolloutPhaseProgressing && s.CurrentStepState != v1beta1.StepStatePaused {
				return fmt.Errorf("it is %s at step %d, %s: %s", s.Phase, s.CurrentStepIndex, s.CurrentStepState, s.Message)
			}
			if d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas < 4 || d.Status.UpdatedReplicas != updated {
				return fmt.Errorf("%d of %d available Pods are updated", d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
			}
			return nil
		})
	}
	image := func(tag string) {
		w.Helper()
		d := &appsv1.Deployment{}
		d.Name, d.Namespace = name.Name, name.Namespace
		patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:%s"}]`, tag)
		w.Must(w.Client.Patch(w.Ctx, d, client.RawPatch("application/json-patch+json", []byte(patch))))
	}
	is(v1beta1.RolloutPhaseHealthy, 4)
	service, err := backends.Call(w.Ctx, w.Cluster, namespace, "shop")
	w.Must(err)
	defer func() { w.Must(service.Close()) }()
	calls := measure.Start(w.Ctx, measure.Target{URL: service.URL, Method: http.MethodGet, Rate: 50})
	defer calls.Stop()
	reaches := func(version string) {
		w.Helper()
		w.Eventually("all calls reach "+version, func() error {
			tally, err := calls.Next(w.Ctx, 50)
			w.Must(err)
			if n := tally.ByRevision[version]; n != tally.Requests {
				return fmt.Errorf("calls were answered by %v: %w", tally.ByRevision, tally.Lost())
			}
			return nil
		})
	}

	image("v2")
	is(v1beta1.RolloutPhaseProgressing, 2)
	reaches("v1")
	canary := &corev1.Service{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "shop-canary"}, canary))
	approved := &v1beta1.Rollout{}
	approved.Name, approved.Namespace = name.Name, name.Namespace
	w.Must(w.Client.Status().Patch(w.Ctx, approved, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"status":{"canaryStatus":{"currentStepState":"%s"}}}`, v1beta1.StepStateReady))))
	is(v1beta1.RolloutPhaseHealthy, 4)
	reaches("v2")

	image("v3")
	is(v1beta1.RolloutPhaseProgressing, 2)
	reaches("v2")
	image("v2")
	is(v1beta1.RolloutPhaseHealthy, 4)
	reaches("v2")
	all := calls.Stop()
	w.Logf("%d calls, the slowest took %v", all.Requests, all.Slowest.Round(time.Millisecond))
	if err := all.Lost(); err != nil {
		w.Error(err)
	}
}

// forget deletes the Rollout, and waits until it has let go: its manager ends with the test.
func (w *world) forget(name client.ObjectKey) {
	r := &v1beta1.Rollout{}
	r.Name, r.Namespace = name.Name, name.Namespace
	w.Must(client.IgnoreNotFound(w.Client.Delete(w.Ctx, r)))
	w.Eventually("the Rollout is gone", func() error {
		if err := w.Client.Get(w.Ctx, name, r); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
