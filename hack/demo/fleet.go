package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// fleet is a hub and the members that it has workloads in, each a control plane of its own.
type fleet struct {
	hub     *cluster.Cluster
	members []*member
	manager *cluster.Manager
}

// member is one of them.
type member struct {
	*cluster.Cluster
	name string
	// isStopped means that its control plane was ended for a while.
	isStopped bool
}

// bringUp brings all of them up in folders below dir, with the namespace of the demo, and has the hub know its members.
func bringUp(ctx context.Context, dir string, members ...string) (_ *fleet, err error) {
	owner := strconv.Itoa(os.Getpid())
	options := []cluster.Options{{Dir: filepath.Join(dir, "hub"), Bare: true, Args: []string{"--owner", owner, "--audit=false"}}}
	for _, name := range members {
		options = append(options, cluster.Options{Dir: filepath.Join(dir, name), Nodes: 2, Args: []string{
			"--owner", owner, "--audit=false", "--sim-start", "500ms", "--sim-stop", "200ms",
		}})
	}
	began := time.Now()
	up, err := cluster.UpAll(ctx, options)
	if err != nil {
		return nil, err
	}
	f := &fleet{hub: up[0]}
	for i, name := range members {
		f.members = append(f.members, &member{Cluster: up[i+1], name: name})
	}
	fmt.Printf("%6.1fs  %d control planes are up\n", time.Since(began).Seconds(), len(up))
	if err := f.connect(ctx, dir); err != nil {
		return nil, errors.Join(err, f.end(ctx))
	}
	fmt.Printf("%6.1fs  the manager of the hub is ready, with a kubeconfig of each member in a Secret\n", time.Since(began).Seconds())
	return f, nil
}

func (f *fleet) connect(ctx context.Context, dir string) (err error) {
	o := cluster.ManagerOptions{Dir: filepath.Join(dir, "manager"), Args: []string{"--enable-leader-election=false"}}
	if f.manager, err = f.hub.StartHub(ctx, o); err != nil {
		return err
	}
	all := []*cluster.Cluster{f.hub}
	for _, m := range f.members {
		all = append(all, m.Cluster)
		if err := f.hub.Register(ctx, m.Cluster, m.name); err != nil {
			return err
		}
	}
	for _, c := range all {
		if err := c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return fmt.Errorf("making namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// end ends all of them, also after the demo was interrupted.
func (f *fleet) end(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if f.manager != nil {
		f.manager.Stop()
	}
	err := f.hub.Down(ctx)
	for _, m := range f.members {
		err = errors.Join(err, m.Down(ctx))
	}
	return err
}
