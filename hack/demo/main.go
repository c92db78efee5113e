// Command demo brings up a control plane on this machine, starts Kruise beside it, and shows rollouts of one kind of workload as they
// happen. It leaves the cluster up, to play with. With -kind multicluster it brings up four, which it ends, and
// with -kind rollout one, which it ends, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

const (
	namespace = "kruise-demo"
	// stepLimit ends a rollout that does not come to its end.
	stepLimit = 3 * time.Minute
)

// performance is what a demo shows: the life of one workload.
type performance interface {
	perform(ctx context.Context, d *demo) error
}

// shows are the demos by their names.
func shows() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"cloneset": alone(cloneSet()), "statefulset": alone(statefulSet()), "daemonset": alone(daemonSet()), "multicluster": overClusters,
		"rollout": released,
	}
}

func main() {
	kind := flag.String("kind", "cloneset", "what to show: cloneset, statefulset, daemonset, multicluster or rollout")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := fmt.Errorf("there is no demo of %q", *kind)
	if show, known := shows()[*kind]; known {
		err = show(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// alone is the demo of a workload in one cluster.
func alone(shown performance) func(context.Context) error {
	return func(ctx context.Context) error {
		fmt.Println("Bringing up a Kubernetes control plane with five simulated nodes ...")
		c, err := cluster.Up(ctx,
			cluster.Options{Nodes: 5, Log: os.Stdout, Args: []string{"--sim-start", "1s", "--sim-restart", "1s", "--sim-stop", "500ms"}})
		if err != nil {
			return err
		}
		fmt.Println("Installing Kruise, and starting its manager beside the cluster ...")
		dir := filepath.Join(filepath.Dir(c.Kubeconfig), "beside", "kruise-manager")
		manager, err := c.StartManager(ctx,
			cluster.ManagerOptions{Dir: dir, Detached: true, Args: []string{"-v", "1", "--logging-format", "json"}})
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
		if err := shown.perform(ctx, d); err != nil {
			return errors.Join(err, fmt.Errorf("the manager's last words:\n%s", manager.Tail(20)))
		}
		return nil
	}
}

type demo struct {
	cluster *cluster.Cluster
	screen  *screen
	plans   *plans
	pods    podTable
}

// emptyNamespace makes the demo's namespace, without anything that an earlier demo left in it.
func (d *demo) emptyNamespace(ctx context.Context) error {
	err := d.cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %s: %w", namespace, err)
	}
	for _, kind := range []client.Object{&v1beta1.CloneSet{}, &v1beta1.StatefulSet{}, &v1beta1.DaemonSet{}} {
		if err := d.cluster.Client.DeleteAllOf(ctx, kind, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("removing every %T of an earlier demo: %w", kind, err)
		}
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
