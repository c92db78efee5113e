package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/rules/traffic"
	"github.com/seed-69ecc383/kruise/test/kit/backends"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/measure"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const (
	stable, canary = "web", "web-canary"
	// grace is how long a change of Services and routes is given to reach the data plane: the default of gracePeriodSeconds.
	grace = 3 * time.Second
	// tolerance is how far a share may be from the weight of the step.
	tolerance = 0.03
	// rate is that of requests, in a second, and slowRate that where shares need not be told exactly.
	rate, slowRate = 200, 50
	// preStop is how long Pods serve on after their deletion, in seconds: until the data plane knows of it, also on a busy machine.
	preStop = 15
)

// application is one in two versions, v1 and v2, each with Pods and a Service of its own, as it is in the middle of a release.
type application struct {
	*scene.Env
	plane plane
	// kind is that of the workload which a Rollout releases, if one does.
	kind schema.GroupVersionKind
}

// enter returns a namespace without an application, whose Pods the data plane reaches.
func enter(t *testing.T) *application {
	t.Helper()
	a := &application{Env: shared.Enter(t)}
	var err error
	a.plane, err = theirs()
	a.Must(err)
	a.Describe = func() string { return a.plane.Tail(30) }
	if !scene.OnRealNodes() {
		stop, err := a.plane.network.Serve(a.Afterwards(), a.Cluster, a.Namespace)
		a.Must(err)
		t.Cleanup(func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
	return a
}

// deploy brings an application up whose Pods serve on for some seconds after their deletion.
func deploy(t *testing.T, sleep int64) *application {
	t.Helper()
	a := enter(t)
	for service, version := range map[string]string{stable: "v1", canary: "v2"} {
		a.Must(a.Client.Create(a.Ctx, a.deployment(version, sleep)))
		a.serve(service, version)
	}
	a.ready(8)
	return a
}

// ready waits until so many Pods are ready.
func (a *application) ready(want int) {
	a.Helper()
	a.Eventually("all Pods are ready", func() error {
		ready := 0
		for _, p := range a.Pods() {
			if scene.IsReady(&p) {
				ready++
			}
		}
		if ready < want {
			return fmt.Errorf("%d Pods are ready", ready)
		}
		return nil
	})
}

func (a *application) deployment(version string, sleep int64) *appsv1.Deployment {
	labels := map[string]string{"app": "web", "version": version}
	container := corev1.Container{Name: "web", Image: "app:" + version, Env: []corev1.EnvVar{{Name: "PORT", Value: fmt.Sprint(backends.Port)}}}
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(backends.Port)},
	}}
	if sleep > 0 {
		container.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: sleep}}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: version},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](4), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
		},
	}
}

// serve makes a Service for the Pods of a version.
func (a *application) serve(name, version string) {
	a.Helper()
	a.Must(a.Client.Create(a.Ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web", "version": version},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromInt32(backends.Port)},
				{Name: "grpc", Port: 81, TargetPort: intstr.FromInt32(backends.TLSPort), AppProtocol: ptr.To("https")},
			},
		},
	}))
}

// host is the host that requests for the application name.
func (a *application) host() string { return a.Namespace + ".example" }

func (a *application) targetAt(url string) measure.Target {
	return measure.Target{URL: url, Host: a.host(), Rate: rate}
}

// churn deletes one Pod after the other, of both versions, until the function that it returns is called: the Deployments make others.
func (a *application) churn() (stop func()) {
	ctx, cancel := context.WithCancel(a.Ctx)
	var running sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 1)) // which Pods is of no importance
	interval := 700 * time.Millisecond
	if scene.OnRealNodes() {
		interval = 2 * time.Second // containers start on the processors that serve requests
	}
	running.Go(func() {
		for version := 0; ; version++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(interval):
			}
			if err := a.deleteOne(ctx, fmt.Sprint("v", 1+version%2), random); err != nil && ctx.Err() == nil {
				a.Error(err)
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// deleteOne deletes a Pod of a version, if all of them are ready.
func (a *application) deleteOne(ctx context.Context, version string, random *rand.Rand) error {
	var pods corev1.PodList
	if err := a.Client.List(ctx, &pods, client.InNamespace(a.Namespace), client.MatchingLabels{"version": version}); err != nil {
		return err
	}
	var ready []corev1.Pod
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil && scene.IsReady(&p) {
			ready = append(ready, p)
		}
	}
	if len(ready) < 4 {
		return nil
	}
	return client.IgnoreNotFound(a.Client.Delete(ctx, &ready[random.IntN(len(ready))]))
}

// split leads a share of the requests to the new version.
func split(weight int32) traffic.Split {
	return traffic.Split{Stable: stable, Canary: canary, Weight: weight}
}

// gatewayRoute is a route of Gateway API as its user wrote it.
type gatewayRoute struct {
	*application
	kind     traffic.RouteKind
	original *unstructured.Unstructured
}

// newGatewayRoute makes a route to a port of the stable Service.
func (a *application) newGatewayRoute(kind traffic.RouteKind, port int) *gatewayRoute {
	a.Helper()
	return &gatewayRoute{application: a, kind: kind, original: a.Make(fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: %s
metadata: {name: web}
spec:
  parentRefs: [{name: %s, namespace: %s}]
  hostnames: [%s]
  rules:
  - backendRefs: [{name: %s, port: %d}]
`, kind, cluster.GatewayName, cluster.GatewayName, a.host(), stable, port))}
}

func (g *gatewayRoute) target() measure.Target {
	t := g.targetAt(g.plane.Gateway())
	if g.kind == traffic.GRPCRoute {
		t.URL, t.GRPC = t.URL+"/web.Versions/Ask", true
	}
	return t
}

func (g *gatewayRoute) lead(s traffic.Split) error {
	spec, err := traffic.GatewayRoute(g.kind, g.original.Object["spec"].(map[string]any), s)
	if err != nil {
		return err
	}
	return g.write(spec)
}

func (g *gatewayRoute) restore() error {
	now, err := g.read()
	if err != nil {
		return err
	}
	original := g.original.Object["spec"].(map[string]any)
	return g.write(traffic.RestoredRoute(original, now.Object["spec"].(map[string]any), split(0)))
}

func (g *gatewayRoute) read() (*unstructured.Unstructured, error) {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(g.original.GroupVersionKind())
	return now, g.Client.Get(g.Ctx, client.ObjectKeyFromObject(g.original), now)
}

func (g *gatewayRoute) write(spec map[string]any) error {
	now, err := g.read()
	if err != nil {
		return err
	}
	now.Object["spec"] = spec
	return g.Client.Update(g.Ctx, now)
}

// ingress is an Ingress of class nginx as its user wrote it.
type ingress struct {
	*application
	original *networkingv1.Ingress
}

func (a *application) newIngress() *ingress {
	a.Helper()
	i := &ingress{application: a, original: scene.Parse(a.Env, &networkingv1.Ingress{}, fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  ingressClassName: nginx
  rules:
  - host: %s
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: %s, port: {number: 80}}}}]}
`, a.host(), stable))}
	a.Must(a.Client.Create(a.Ctx, i.original))
	return i
}

func (i *ingress) target() measure.Target {
	return i.targetAt(i.plane.Ingress())
}

func (i *ingress) lead(s traffic.Split) error {
	wanted, err := traffic.CanaryIngress(i.original, "nginx", s)
	if err != nil {
		return err
	}
	now := &networkingv1.Ingress{}
	err = i.Client.Get(i.Ctx, client.ObjectKeyFromObject(wanted), now)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		return i.Client.Create(i.Ctx, wanted)
	}
	now.Annotations, now.Spec = wanted.Annotations, wanted.Spec
	return i.Client.Update(i.Ctx, now)
}

func (i *ingress) restore() error {
	return i.Client.Delete(i.Ctx, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: "web-canary"}})
}

// route is a way by which requests reach the application.
type route interface {
	target() measure.Target
	// lead writes what leads requests as a split says, restore what the user wrote.
	lead(traffic.Split) error
	restore() error
}

// reach waits until a route leads to the application: it is new to the data plane.
func (a *application) reach(target measure.Target) {
	a.Helper()
	a.Eventually("the data plane knows the route", func() error {
		probe := target
		probe.Rate = 50
		client := measure.Start(a.Ctx, probe)
		_, err := client.Next(a.Ctx, 5)
		return errors.Join(err, client.Stop().Lost())
	})
}

// header returns headers of requests, from "Name: value".
func header(text string) http.Header {
	name, value, _ := strings.Cut(text, ": ")
	return http.Header{name: {value}}
}
