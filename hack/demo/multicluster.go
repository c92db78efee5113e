package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// budget is updateStrategy.maxUnavailable of examples/clusters-waves.yaml.
const budget = 2

// overClusters shows rollouts of a UnitedDeployment over three clusters. It ends all clusters that it has brought up.
func overClusters(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kruise-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Println("Bringing up four Kubernetes control planes: a hub, and member-1 to member-3 with two simulated nodes each ...")
	f, err := bringUp(ctx, dir, "member-1", "member-2", "member-3")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.end(ctx))
		fmt.Println("\nAll four control planes are gone. Next: docs/uniteddeployment.md says how to have the same in clusters of your own.")
	}()
	s := &clusterDemo{memberTable: &memberTable{fleet: f, rows: map[*member]row{}, most: -1}, screen: newScreen(os.Stdout)}
	if err := s.perform(ctx); err != nil {
		return errors.Join(err, fmt.Errorf("the manager's last words:\n%s", f.manager.Tail(20)))
	}
	return nil
}

// clusterDemo is the demo over clusters.
type clusterDemo struct {
	*memberTable
	screen *screen
}

// clusterStep is a step of it: a change, and what it is to bring about.
type clusterStep struct {
	title  string
	change func(context.Context) error
	done   func(*v1beta1.UnitedDeployment) bool
}

func (d *clusterDemo) steps() []clusterStep {
	last := d.members[len(d.members)-1]
	return []clusterStep{
		{"A UnitedDeployment of ten Pods over three clusters (examples/clusters-waves.yaml)", d.create, d.isUpdated},
		{"A new image: the canary in member-1 comes first, and then the rollout pauses", d.image("nginx:mainline"), isPaused},
		{
			"member-3 is stopped, and the rollout continued: member-2 is updated, and nobody waits for member-3",
			func(ctx context.Context) error {
				if err := last.Stop(ctx); err != nil {
					return err
				}
				last.isStopped = true
				return d.edit(ctx, func(set *v1beta1.UnitedDeployment) {
					metav1.SetMetaDataAnnotation(&set.ObjectMeta, keys.ContinuedWave, set.Status.UpdatedRevision+"/canary")
				})
			},
			func(set *v1beta1.UnitedDeployment) bool {
				other := d.rows[d.members[1]]
				return other.updated == other.wanted && clusterReason(set, 2) == string(connection.Unreachable)
			},
		},
		{
			"member-3 is started: the hub connects to it again, and it gets the image, too",
			func(ctx context.Context) error {
				last.isStopped = false
				return last.Start(ctx)
			},
			d.isUpdated,
		},
		{
			"One more image, without waves: all clusters at once, which share the budget",
			func(ctx context.Context) error {
				return d.edit(ctx, func(set *v1beta1.UnitedDeployment) {
					set.Spec.UpdateStrategy.Waves = nil
					set.Spec.Template.DeploymentTemplate.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
				})
			},
			d.isUpdated,
		},
	}
}

func (d *clusterDemo) perform(ctx context.Context) error {
	for i, s := range d.steps() {
		d.screen.begin(fmt.Sprintf("%d. %s", i+1, s.title))
		if err := s.change(ctx); err != nil {
			return err
		}
		if err := d.watch(ctx, s.done); err != nil {
			return fmt.Errorf("waiting in step %d: %w", i+1, err)
		}
		if i == 0 {
			d.most = 0
		}
	}
	fmt.Printf("\nOf ten Pods in three clusters %d were unavailable at a time at most, and the budget is %d.\n", d.most, budget)
	return d.remove(ctx)
}

// watch shows the UnitedDeployment until it is done.
func (d *clusterDemo) watch(ctx context.Context, done func(*v1beta1.UnitedDeployment) bool) error {
	return poll(ctx, func() (bool, error) {
		set, err := d.read(ctx)
		if err != nil {
			return false, err
		}
		d.look(ctx, set.Status.UpdatedRevision)
		d.screen.show(d.picture(set))
		if !done(set) {
			return false, nil
		}
		d.screen.end()
		return true, nil
	})
}

// poll tries until it is done, or has failed, or the limit of a step is over.
func poll(ctx context.Context, try func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	for {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (d *clusterDemo) create(ctx context.Context) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	return d.hub.ApplyFileIn(ctx, filepath.Join(root, "examples", "clusters-waves.yaml"), namespace)
}

func (d *clusterDemo) read(ctx context.Context) (*v1beta1.UnitedDeployment, error) {
	set := &v1beta1.UnitedDeployment{}
	if err := d.hub.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, set); err != nil {
		return nil, fmt.Errorf("reading UnitedDeployment web: %w", err)
	}
	return set, nil
}

func (d *clusterDemo) edit(ctx context.Context, change func(*v1beta1.UnitedDeployment)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set, err := d.read(ctx)
		if err != nil {
			return err
		}
		change(set)
		return d.hub.Client.Update(ctx, set)
	})
}

func (d *clusterDemo) image(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return d.edit(ctx, func(set *v1beta1.UnitedDeployment) {
			set.Spec.Template.DeploymentTemplate.Spec.Template.Spec.Containers[0].Image = name
		})
	}
}

// isUpdated reports whether all Pods of all clusters have the newest template and are ready, as the hub and as the members say.
func (d *clusterDemo) isUpdated(set *v1beta1.UnitedDeployment) bool {
	wanted := int(*set.Spec.Replicas)
	return set.Status.ObservedGeneration == set.Generation && d.sum(func(r row) int { return r.updated }) == wanted &&
		condition(set, v1beta1.UnitedDeploymentUpdated).Status == corev1.ConditionTrue && int(set.Status.UpdatedReadyReplicas) == wanted
}

func isPaused(set *v1beta1.UnitedDeployment) bool {
	return set.Status.ObservedGeneration == set.Generation &&
		condition(set, v1beta1.UnitedDeploymentSubsetUpdated).Reason == "WavePaused"
}

// remove deletes the UnitedDeployment, and waits until nothing is left of it in any cluster.
func (d *clusterDemo) remove(ctx context.Context) error {
	fmt.Println("\nThe UnitedDeployment is deleted ...")
	began := time.Now()
	set, err := d.read(ctx)
	if err != nil {
		return err
	}
	if err := d.hub.Client.Delete(ctx, set); err != nil {
		return fmt.Errorf("deleting UnitedDeployment web: %w", err)
	}
	err = poll(ctx, func() (bool, error) {
		d.look(ctx, "")
		_, err := d.read(ctx)
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		return err != nil && d.sum(func(r row) int { return r.pods + r.wanted }) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until all clusters are clean: %w", err)
	}
	fmt.Printf("%6.1fs  nothing of it is left in any cluster\n", time.Since(began).Seconds())
	return nil
}
