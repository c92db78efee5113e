package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// releaseSteps are the steps of a release, in percent of the Pods; each may be as many Pods more than the workload has.
func releaseSteps() []int { return []int{20, 40, 60, 80, 100} }

// release is one release of a Deployment to another image.
type release struct {
	Way     string  `json:"way"`
	Seconds float64 `json:"seconds"`
	// Ratio is the time over that of the same steps by hand.
	Ratio  float64   `json:"ratio,omitempty"`
	Rounds []float64 `json:"rounds,omitempty"`
	// Labels are the writes to Pods of the manager of Rollouts, Writes all others, and Requests all of its requests by verb, resource and
	// answer.
	Labels   int            `json:"writesToPods"`
	Writes   int            `json:"otherWrites"`
	Reads    int            `json:"reads"`
	Requests map[string]int `json:"requests"`
	// Native is how many writes the controllers of Kubernetes make that are not to Pods.
	Native          int `json:"nativeWrites"`
	MostUnavailable int `json:"mostUnavailable"`
	MostPods        int `json:"mostPods"`
}

// releases is what releases in steps cost.
type releases struct {
	Pods     int       `json:"pods"`
	Steps    []int     `json:"stepsInPercent"`
	Releases []release `json:"releases"`
	// WritesAtRest is how many writes the manager makes in so many seconds in which nothing is to be done.
	WritesAtRest  int     `json:"writesAtRest"`
	SecondsAtRest float64 `json:"secondsAtRest"`
}

// releaser is a way to release a Deployment.
type releaser struct {
	name string
	// prepare makes what has to be there before it, and run does it and returns when all Pods are updated and available.
	prepare, run func(context.Context, *bench, *appsv1.Deployment) error
}

const byHand, byRollout = "by hand", "Rollout"

func releasers() []releaser {
	nothing := func(context.Context, *bench, *appsv1.Deployment) error { return nil }
	return []releaser{
		{"native", nothing, releaseNatively},
		{byHand, makeSecond, releaseByHand},
		{byRollout, makeRollout, releaseByRollout},
	}
}

// runRollout measures releases of a Deployment in steps: by the native controller without steps, by a person who scales a second Deployment
// up and the first one down, and by a Rollout whose steps a person approves as soon as they wait for it.
func runRollout(ctx context.Context, s settings) (err error) {
	b := &bench{settings: s}
	if b.dir, err = os.MkdirTemp("", "kruise-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	at := &site{dir: filepath.Join(b.dir, "hub")}
	at.audit = filepath.Join(at.dir, "cluster", "logs", "audit.log")
	o := cluster.Options{Dir: filepath.Join(at.dir, "cluster"), Nodes: s.nodes, Args: s.clusterArgs(), Log: os.Stderr}
	if at.Cluster, err = cluster.Up(ctx, o); err != nil {
		return err
	}
	b.sites = append(b.sites, at)
	if b.neighbour, err = newNeighbour(ctx, at.Config); err != nil {
		return err
	}
	manager := at.options()
	manager.Program = cluster.RolloutManager()
	if at.manager, err = at.StartManager(ctx, manager); err != nil {
		return err
	}
	if err := b.warmUp(ctx); err != nil {
		return err
	}
	result := releases{Pods: s.pods, Steps: releaseSteps()}
	if result.Releases, err = b.releaseAll(ctx); err != nil {
		return err
	}
	if result.WritesAtRest, err = b.writesAtRest(ctx); err != nil {
		return err
	}
	result.SecondsAtRest = s.idle.Seconds()
	result.print(os.Stdout)
	return s.store(result)
}

// releaseAll has the ways take turns, and returns the median round of each.
func (b *bench) releaseAll(ctx context.Context) ([]release, error) {
	rounds := map[string][]release{}
	for round := range b.rounds {
		for _, w := range releasers() {
			if b.only != "" && w.name != b.only {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s: release %d\n", w.name, round+1)
			r, err := b.release(ctx, w, fmt.Sprintf("bench-%s-%d", strings.ReplaceAll(strings.ToLower(w.name), " ", "-"), round))
			if err != nil {
				return nil, fmt.Errorf("releasing, %s: %w", w.name, err)
			}
			rounds[w.name] = append(rounds[w.name], r)
		}
	}
	var out []release
	base := 0.0
	for _, w := range releasers() {
		all := rounds[w.name]
		if len(all) == 0 {
			continue
		}
		slices.SortFunc(all, func(a, b release) int { return cmp.Compare(a.Seconds, b.Seconds) })
		median := all[len(all)/2]
		for _, r := range all {
			median.Rounds = append(median.Rounds, r.Seconds)
		}
		if w.name == byHand {
			base = median.Seconds
		}
		out = append(out, median)
	}
	for i := range out {
		if base > 0 {
			out[i].Ratio = out[i].Seconds / base
		}
	}
	return out, nil
}

// release measures one release in a namespace of its own, whose Pods it removes again.
func (b *bench) release(ctx context.Context, w releaser, namespace string) (release, error) {
	r := release{Way: w.name}
	c := b.hub().Client
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return r, err
	}
	d := deployment(namespace).object.(*appsv1.Deployment)
	all, none := int32(b.pods), intstr.FromInt32(0)
	surge := intstr.FromString(fmt.Sprintf("%d%%", releaseSteps()[0]))
	d.Spec.Replicas = &all
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &surge}
	if err := c.Create(ctx, d); err != nil {
		return r, err
	}
	if err := errors.Join(b.awaitDeployment(ctx, d, all), w.prepare(ctx, b, d), sleep(ctx, 3*time.Second)); err != nil {
		return r, err
	}
	seen, err := watchPods(ctx, b.sites, namespace)
	if err != nil {
		return r, err
	}
	defer seen.stop()
	began := time.Now()
	if err := w.run(ctx, b, d); err != nil {
		return r, err
	}
	if err := b.until(ctx, "only updated Pods are left", func() (bool, error) { return seen.settled(b.pods), nil }); err != nil {
		return r, err
	}
	r.Seconds = time.Since(began).Seconds()
	r.MostUnavailable, r.MostPods = seen.extremes()
	if err := sleep(ctx, 3*time.Second); err != nil { // what is written after the end counts, too
		return r, err
	}
	if err := b.count(&r, namespace, began); err != nil {
		return r, err
	}
	return r, b.removeAll(ctx, namespace)
}

// count reads from the audit log what a release has cost.
func (b *bench) count(r *release, namespace string, from time.Time) error {
	ours, err := audit.Read(b.hub().audit, audit.Query{Agent: "kruise-rollout", Namespace: namespace, From: from})
	if err != nil {
		return err
	}
	r.Requests, r.Reads, r.Labels = ours.Counts, ours.Reads, ours.PodWrites
	r.Writes = ours.Writes() - ours.PodWrites
	native, err := audit.Read(b.hub().audit, audit.Query{Agent: "kube-controller-manager", Namespace: namespace, From: from})
	r.Native = native.Writes() - native.PodWrites
	return err
}

// removeAll removes the Deployments of a namespace and waits until their Pods are gone.
func (b *bench) removeAll(ctx context.Context, namespace string) error {
	c, in := b.hub().Client, client.InNamespace(namespace)
	if err := c.DeleteAllOf(ctx, &v1beta1.Rollout{}, in); err != nil {
		return err
	}
	if err := c.DeleteAllOf(ctx, &appsv1.Deployment{}, in, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	return b.until(ctx, "the Pods are gone", func() (bool, error) {
		var pods corev1.PodList
		err := c.List(ctx, &pods, in, client.Limit(1))
		return len(pods.Items) == 0, err
	})
}

// until asks every tenth of a second whether something is so.
func (b *bench) until(ctx context.Context, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	for {
		if yes, err := is(); yes || err != nil {
			return err
		}
		if err := sleep(ctx, 100*time.Millisecond); errors.Is(err, context.DeadlineExceeded) {
			return b.brokenOff("until " + what)
		} else if err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
	}
}

// awaitDeployment waits until a Deployment has so many updated Pods, all of them available.
func (b *bench) awaitDeployment(ctx context.Context, d *appsv1.Deployment, want int32) error {
	return b.until(ctx, fmt.Sprintf("%s has %d Pods", d.Name, want), func() (bool, error) {
		err := b.hub().Client.Get(ctx, client.ObjectKeyFromObject(d), d)
		s := d.Status
		return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want, err
	})
}

const releasedImage = "nginx:mainline"

func setReleased(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = releasedImage }

func releaseNatively(ctx context.Context, b *bench, d *appsv1.Deployment) error {
	if err := b.edit(ctx, d, func() { setReleased(d) }); err != nil {
		return err
	}
	return b.awaitDeployment(ctx, d, int32(b.pods))
}

// secondOf returns the Deployment that a person scales up while the first one goes.
func secondOf(d *appsv1.Deployment) *appsv1.Deployment {
	labels := map[string]string{"app": "bench", "track": "new"}
	second := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "bench-new"}, Spec: *d.Spec.DeepCopy()}
	second.Spec.Replicas, second.Spec.Selector = new(int32), &metav1.LabelSelector{MatchLabels: labels}
	second.Spec.Template.Labels = labels
	setReleased(second)
	return second
}

func makeSecond(ctx context.Context, b *bench, d *appsv1.Deployment) error {
	second := secondOf(d)
	if err := b.hub().Client.Create(ctx, second); err != nil {
		return err
	}
	return b.awaitDeployment(ctx, second, 0)
}

func releaseByHand(ctx context.Context, b *bench, first *appsv1.Deployment) error {
	second := secondOf(first)
	for _, percent := range releaseSteps() {
		fresh := int32(b.pods * percent / 100)
		if err := b.edit(ctx, second, func() { second.Spec.Replicas = &fresh }); err != nil {
			return err
		}
		if err := b.awaitDeployment(ctx, second, fresh); err != nil {
			return err
		}
		old := int32(b.pods) - fresh
		if err := b.edit(ctx, first, func() { first.Spec.Replicas = &old }); err != nil {
			return err
		}
	}
	return nil
}

func makeRollout(ctx context.Context, b *bench, d *appsv1.Deployment) error {
	r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "bench"}}
	r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name}
	r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{}
	for _, percent := range releaseSteps() {
		share := intstr.FromString(fmt.Sprintf("%d%%", percent))
		r.Spec.Strategy.Canary.Steps = append(r.Spec.Strategy.Canary.Steps, v1beta1.Step{Replicas: &share})
	}
	if err := b.hub().Client.Create(ctx, r); err != nil {
		return err
	}
	return b.until(ctx, "the Rollout is healthy", func() (bool, error) {
		err := b.hub().Client.Get(ctx, client.ObjectKeyFromObject(r), r)
		return r.Status.Phase == v1beta1.RolloutPhaseHealthy, err
	})
}

func releaseByRollout(ctx context.Context, b *bench, d *appsv1.Deployment) error {
	if err := b.edit(ctx, d, func() { setReleased(d) }); err != nil {
		return err
	}
	c, r := b.hub().Client, &v1beta1.Rollout{}
	key := client.ObjectKey{Namespace: d.Namespace, Name: "bench"}
	for step := range len(releaseSteps()) - 1 {
		err := b.until(ctx, fmt.Sprintf("step %d waits", step+1), func() (bool, error) {
			err := c.Get(ctx, key, r)
			at := r.Status.CanaryStatus
			return at != nil && at.CurrentStepIndex == int32(step+1) && at.CurrentStepState == v1beta1.StepStatePaused, err
		})
		if err != nil {
			return err
		}
		approval := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"canaryStatus":{"currentStepState":"StepReady"}}}`))
		if err := c.Status().Patch(ctx, r, approval); err != nil {
			return err
		}
	}
	err := b.until(ctx, "the release is over", func() (bool, error) {
		err := c.Get(ctx, key, r)
		return r.Status.Phase == v1beta1.RolloutPhaseHealthy, err
	})
	return errors.Join(err, b.awaitDeployment(ctx, d, int32(b.pods)))
}

// writesAtRest counts what the manager writes while a Rollout has nothing to do.
func (b *bench) writesAtRest(ctx context.Context) (int, error) {
	const namespace = "bench-rest"
	c := b.hub().Client
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return 0, err
	}
	d, few := deployment(namespace).object.(*appsv1.Deployment), int32(10)
	d.Spec.Replicas = &few
	if err := c.Create(ctx, d); err != nil {
		return 0, err
	}
	if err := errors.Join(b.awaitDeployment(ctx, d, few), makeRollout(ctx, b, d), sleep(ctx, 5*time.Second)); err != nil {
		return 0, err
	}
	fmt.Fprintln(os.Stderr, "Rollout: at rest")
	began := time.Now()
	if err := sleep(ctx, b.idle); err != nil {
		return 0, err
	}
	requests, err := audit.Read(b.hub().audit, audit.Query{Agent: "kruise-rollout", From: began})
	return requests.Writes(), err
}

func (r releases) print(to io.Writer) {
	fmt.Fprintf(to, "a Deployment of %d Pods, released in steps of %v %%, %s\n\n", r.Pods, r.Steps, processor())
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "release\tseconds\tratio\tunavailable\tPods\tPod writes\tother writes\treads\tnative other writes\t")
	for _, one := range r.Releases {
		fmt.Fprintf(table, "%s\t%.1f\t%.2f\t%d\t%d\t%d\t%d\t%d\t%d\t\n", one.Way, one.Seconds, one.Ratio, one.MostUnavailable, one.MostPods,
			one.Labels, one.Writes, one.Reads, one.Native)
	}
	_ = table.Flush() // a terminal that is gone can't be told
	for _, one := range r.Releases {
		fmt.Fprintf(to, "%s, seconds of the rounds: %.1f\n", one.Way, one.Rounds)
		if one.Way == byRollout {
			fmt.Fprintf(to, "%s, requests: %v\n", one.Way, one.Requests)
		}
	}
	fmt.Fprintf(to, "at rest, %.0f s: %d writes\n", r.SecondsAtRest, r.WritesAtRest)
}
