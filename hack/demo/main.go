// Command demo brings up a control plane on this machine, starts Kruise beside it, and shows two rollouts as they happen: a canary with surge,
// and an update in place. It leaves the cluster up, to play with.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/cluster"
)

const (
	namespace = "kruise-demo"
	// name is what the example calls its CloneSet.
	name = "demo"
	// stepLimit ends a rollout that does not come to its end.
	stepLimit = 3 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	fmt.Println("Bringing up a Kubernetes control plane with five simulated nodes ...")
	c, err := cluster.Up(ctx, cluster.Options{Nodes: 5, Log: os.Stdout, Args: []string{"--sim-start", "1s", "--sim-restart", "1s", "--sim-stop", "500ms"}})
	if err != nil {
		return err
	}
	fmt.Println("Installing Kruise, and starting its manager beside the cluster ...")
	dir := filepath.Join(filepath.Dir(c.Kubeconfig), "beside", "kruise-manager")
	manager, err := c.StartManager(ctx, cluster.ManagerOptions{Dir: dir, Detached: true, Args: []string{"-v", "1", "--logging-format", "json"}})
	if err != nil {
		return err
	}
	log, err := followPlans(manager.Log())
	if err != nil {
		return err
	}
	d := &demo{cluster: c, screen: newScreen(os.Stdout), plans: log}
	if err := d.emptyNamespace(ctx); err != nil {
		return err
	}
	for _, show := range []func(context.Context) error{d.canary, d.inPlace} {
		if err := show(ctx); err != nil {
			return errors.Join(err, fmt.Errorf("the manager's last words:\n%s", manager.Tail(20)))
		}
	}
	d.farewell()
	return nil
}

type demo struct {
	cluster *cluster.Cluster
	screen  *screen
	plans   *plans
}

// emptyNamespace makes the demo's namespace, without anything that an earlier demo left in it.
func (d *demo) emptyNamespace(ctx context.Context) error {
	err := d.cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %s: %w", namespace, err)
	}
	if err := d.cluster.Client.DeleteAllOf(ctx, &v1beta1.CloneSet{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("removing earlier CloneSets: %w", err)
	}
	for {
		var pods corev1.PodList
		if err := d.cluster.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// canary is the first rollout: two of five Pods at first, with one Pod of surge, then the rest.
func (d *demo) canary(ctx context.Context) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	file := filepath.Join(root, "examples", "cloneset-surge-partition.yaml")
	if err := d.cluster.ApplyFileIn(ctx, file, namespace); err != nil {
		return err
	}
	if err := d.watch(ctx, "1. A CloneSet of five Pods (examples/cloneset-surge-partition.yaml)", all); err != nil {
		return err
	}
	if err := d.edit(ctx, setImage("nginx:mainline")); err != nil {
		return err
	}
	if err := d.watch(ctx, "2. A new image, to two of five Pods (partition 3), one Pod of surge, none unavailable", canaried); err != nil {
		return err
	}
	if err := d.edit(ctx, func(set *v1beta1.CloneSet) {
		none := intstr.FromInt32(0)
		set.Spec.UpdateStrategy.RollingUpdate.Partition = &none
	}); err != nil {
		return err
	}
	return d.watch(ctx, "3. The canary is good: partition 0, to all Pods", all)
}

// inPlace is the second rollout: the Pods stay, only their containers are exchanged.
func (d *demo) inPlace(ctx context.Context) error {
	if err := d.edit(ctx, func(set *v1beta1.CloneSet) {
		none, two := intstr.FromInt32(0), intstr.FromInt32(2)
		rolling := set.Spec.UpdateStrategy.RollingUpdate
		rolling.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
		rolling.MaxSurge, rolling.MaxUnavailable = &none, &two
		setImage("nginx:1.29")(set)
	}); err != nil {
		return err
	}
	return d.watch(ctx, "4. Another image, in place: the same Pods, IPs and nodes, two at a time", all)
}

func setImage(image string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = image }
}

func (d *demo) edit(ctx context.Context, change func(*v1beta1.CloneSet)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var set v1beta1.CloneSet
		if err := d.cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &set); err != nil {
			return err
		}
		change(&set)
		return d.cluster.Client.Update(ctx, &set)
	})
}

// all reports whether every Pod is updated and available, canaried whether as many as the partition allows are.
func all(set *v1beta1.CloneSet) bool {
	s := set.Status
	return canaried(set) && s.UpdatedAvailableReplicas == *set.Spec.Replicas
}

func canaried(set *v1beta1.CloneSet) bool {
	s := set.Status
	return s.ObservedGeneration == set.Generation && s.Replicas == *set.Spec.Replicas && s.AvailableReplicas == s.Replicas &&
		s.UpdatedAvailableReplicas >= s.ExpectedUpdatedReplicas
}

func (d *demo) farewell() {
	fmt.Printf(`
The cluster is still up. Try next:

  alias k='bin/kruise-local kubectl -n %s'              the real kubectl, at this cluster
  k get clone,pods -w
  k scale clone/demo --replicas=8
  k label pod -l app=demo apps.kruise.io/specified-delete=true   all of them, as maxUnavailable allows
  k explain cloneset.spec.updateStrategy.rollingUpdate
  ls examples/                                         more manifests
  bin/kruise-local down                                removes all of it
`, namespace)
}
