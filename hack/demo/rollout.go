package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/backends"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/measure"
)

const (
	// shop is the name of everything in examples/rollout-deployment.yaml, and shopHost the host of its route.
	shop, shopHost = "shop", "shop.example.com"
	// shopRate is the number of requests in a second that are measured.
	shopRate = 100
	// shareOf is how long a share is measured, again and again.
	shareOf = time.Second
)

// rolloutDemo is the demo of a Rollout, whose requests are led by a real proxy.
type rolloutDemo struct {
	*cluster.Cluster
	manager   *cluster.Manager
	plane     *cluster.DataPlane
	requests  *measure.Client
	screen    *screen
	namespace string
	// told is what condition Progressing said last.
	told string
}

// release is a step of it: a change, what it is to bring about, and the version whose share is shown.
type release struct {
	title   string
	version string
	change  func(context.Context) error
	done    func(*v1beta1.Rollout) bool
}

// released shows releases of a Deployment with traffic. The servers of its Pods are part of this process, so it ends the cluster.
func released(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kruise-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Println("Bringing up a Kubernetes control plane with three simulated nodes, Kruise's manager of Rollouts and a proxy (Traefik) ...")
	c, err := cluster.Up(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Nodes: 3, Args: []string{
		"--owner", strconv.Itoa(os.Getpid()), "--audit=false", "--sim-start", "500ms", "--sim-ready", "300ms",
	}})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.Down(context.WithoutCancel(ctx)))
		fmt.Println("\nThe control plane and the proxy are gone. Next: docs/rollouts.md, to have the same in a cluster of your own.")
	}()
	d := &rolloutDemo{Cluster: c, screen: newScreen(os.Stdout), namespace: namespace}
	stop, err := d.begin(ctx, dir)
	if err != nil {
		return err
	}
	err = d.perform(ctx)
	if stopped := stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return errors.Join(err, fmt.Errorf("the manager's last words:\n%s", d.manager.Tail(20)))
	}
	return nil
}

// begin starts what the demo needs beside the control plane, and returns what ends it.
func (d *rolloutDemo) begin(ctx context.Context, dir string) (stop func() error, err error) {
	d.manager, err = d.StartManager(ctx, cluster.ManagerOptions{
		Dir: filepath.Join(dir, "manager"), Program: cluster.RolloutManager(), Args: []string{"--leader-elect=false"},
	})
	if err != nil {
		return nil, err
	}
	if err := d.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}); err != nil {
		return nil, fmt.Errorf("making namespace %s: %w", d.namespace, err)
	}
	network, err := backends.Listen()
	if err != nil {
		return nil, err
	}
	stopServing, err := network.Serve(ctx, d.Cluster, d.namespace)
	if err != nil {
		return nil, err
	}
	d.plane, err = d.StartDataPlane(ctx, cluster.DataPlaneOptions{Dir: filepath.Join(dir, "data-plane"), PodProxy: network.Proxy()})
	if err != nil {
		return nil, errors.Join(err, stopServing())
	}
	return func() error {
		d.plane.Stop()
		d.manager.Stop()
		return errors.Join(stopServing(), network.Close())
	}, nil
}

func (d *rolloutDemo) steps() []release {
	return []release{
		{"A Deployment of ten Pods with a route, and a Rollout for it (examples/rollout-deployment.yaml)", "v1", d.create, isHealthy},
		{"A new image: the first step leads 30 % of the requests to 30 % of the Pods, and waits", "v2", d.image("shop:v2"), waitsAt(1)},
		{"The step is approved: 50 %, and the Rollout waits again", "v2", d.approve, waitsAt(2)},
		{"Approved, too: all Pods and all requests, and the Rollout is done", "v2", d.approve, isHealthy},
		{
			"A bad image, whose containers exit: the guard stops the release and goes back by itself", "v3-crash", d.image("shop:v3-crash"),
			func(r *v1beta1.Rollout) bool {
				return isHealthy(r) && conditionOf(r, v1beta1.ConditionSucceeded).Status == corev1.ConditionFalse
			},
		},
	}
}

func (d *rolloutDemo) perform(ctx context.Context) error {
	for i, s := range d.steps() {
		d.screen.begin(fmt.Sprintf("%d. %s", i+1, s.title))
		if err := s.change(ctx); err != nil {
			return err
		}
		if err := d.watch(ctx, s); err != nil {
			return fmt.Errorf("waiting in step %d: %w", i+1, err)
		}
		if i == 0 {
			d.requests = measure.Start(context.WithoutCancel(ctx), measure.Target{URL: d.plane.Gateway(), Host: shopHost, Rate: shopRate})
		}
	}
	all := d.requests.Stop()
	fmt.Printf("\nOf %d requests since the first release %d failed; the slowest took %d ms.\n",
		all.Requests, len(all.Failures), all.Slowest.Milliseconds())
	return all.Lost()
}

// watch shows the Rollout and the shares of the requests until the step is done.
func (d *rolloutDemo) watch(ctx context.Context, s release) error {
	return poll(ctx, func() (bool, error) {
		r := &v1beta1.Rollout{}
		if err := d.Client.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: shop}, r); err != nil {
			return false, err
		}
		deployment := &appsv1.Deployment{}
		if err := d.Client.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: shop}, deployment); err != nil {
			return false, err
		}
		d.screen.show(picture{counts: counts(r), table: d.shares(s.version), news: d.news(r)})
		if !s.done(r) || deployment.Status.AvailableReplicas < *deployment.Spec.Replicas || !d.reaches(ctx) {
			return false, nil
		}
		if d.requests != nil { // the proxy follows within the grace period of the step
			if _, err := d.requests.Next(ctx, 2*shopRate); err != nil {
				return false, err
			}
			d.screen.show(picture{counts: counts(r), table: d.shares(s.version)})
		}
		d.screen.end()
		return true, nil
	})
}

// reaches reports whether the route leads to the Deployment: it is new to the proxy.
func (d *rolloutDemo) reaches(ctx context.Context) bool {
	if d.requests != nil {
		return true
	}
	probe := measure.Start(ctx, measure.Target{URL: d.plane.Gateway(), Host: shopHost, Rate: shopRate})
	_, err := probe.Next(ctx, 5)
	return err == nil && probe.Stop().Lost() == nil
}

// counts are the numbers of the status, as kubectl get shows them.
func counts(r *v1beta1.Rollout) string {
	out := fmt.Sprintf("PHASE %s", r.Status.Phase)
	if s := r.Status.CanaryStatus; s != nil {
		out += fmt.Sprintf("  STEP %d/%d %s  UPDATED %d  UPDATED_READY %d",
			s.CurrentStepIndex, len(r.Spec.Strategy.Canary.Steps), s.CurrentStepState, s.CanaryReplicas, s.CanaryReadyReplicas)
	}
	return out
}

// news is what condition Progressing says, where that is new.
func (d *rolloutDemo) news(r *v1beta1.Rollout) []string {
	c := conditionOf(r, v1beta1.ConditionProgressing)
	if c.Message == "" || c.Message == d.told {
		return nil
	}
	d.told = c.Message
	return []string{c.Reason + ": " + c.Message}
}

// shares is what became of the requests of the last second.
func (d *rolloutDemo) shares(version string) string {
	if d.requests == nil {
		return ""
	}
	return "  " + d.requests.Since(time.Now().Add(-shareOf)).Line(version) + "\n"
}

func (d *rolloutDemo) create(ctx context.Context) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	return d.ApplyFileIn(ctx, filepath.Join(root, "examples", "rollout-deployment.yaml"), d.namespace)
}

// image returns what gives the Deployment another image.
func (d *rolloutDemo) image(image string) func(context.Context) error {
	return func(ctx context.Context) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			now := &appsv1.Deployment{}
			if err := d.Client.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: shop}, now); err != nil {
				return err
			}
			now.Spec.Template.Spec.Containers[0].Image = image
			return d.Client.Update(ctx, now)
		})
	}
}

// approve approves the step that waits, and no other.
func (d *rolloutDemo) approve(ctx context.Context) error {
	patch := fmt.Sprintf(`[{"op": "test", "path": "/status/canaryStatus/currentStepState", "value": %q},
		{"op": "replace", "path": "/status/canaryStatus/currentStepState", "value": %q}]`, v1beta1.StepStatePaused, v1beta1.StepStateReady)
	r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: shop}}
	return d.Client.Status().Patch(ctx, r, client.RawPatch("application/json-patch+json", []byte(patch)))
}

// isHealthy reports whether no release is under way, and the status is of the present spec.
func isHealthy(r *v1beta1.Rollout) bool {
	return r.Status.Phase == v1beta1.RolloutPhaseHealthy && r.Status.ObservedGeneration == r.Generation
}

// waitsAt returns what reports whether a release waits for an approval of a step, counted from 1.
func waitsAt(step int32) func(*v1beta1.Rollout) bool {
	return func(r *v1beta1.Rollout) bool {
		s := r.Status.CanaryStatus
		return s != nil && s.CurrentStepIndex == step && s.CurrentStepState == v1beta1.StepStatePaused
	}
}

// conditionOf returns the condition of a type; an empty one where there is none.
func conditionOf(r *v1beta1.Rollout, of string) v1beta1.RolloutCondition {
	for _, c := range r.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return v1beta1.RolloutCondition{}
}
