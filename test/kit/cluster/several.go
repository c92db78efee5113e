package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// UpAll brings several clusters up at the same time, each in its own folder; on an error, it ends those that came up.
func UpAll(ctx context.Context, all []Options) ([]*Cluster, error) {
	up := make([]*Cluster, len(all))
	var group errgroup.Group
	for i, o := range all {
		group.Go(func() (err error) {
			up[i], err = Up(ctx, o)
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		return up, nil
	}
	for _, c := range up {
		if c != nil {
			err = errors.Join(err, c.Down(ctx))
		}
	}
	return nil, err
}

// Stop ends the cluster's processes at once and keeps its state.
func (c *Cluster) Stop(ctx context.Context) error {
	_, err := kruiseLocal(ctx, c.options, "stop")
	return err
}

// Start starts a cluster that was stopped, as it was, at the same address.
func (c *Cluster) Start(ctx context.Context) error {
	_, err := kruiseLocal(ctx, c.options, "up")
	return err
}

// Replace ends the cluster and brings up another in its folder, with other credentials and at another address.
func (c *Cluster) Replace(ctx context.Context) (*Cluster, error) {
	if err := c.Down(ctx); err != nil {
		return nil, err
	}
	return Up(ctx, c.options)
}

// SaveEtcd copies what the cluster holds into a folder that does not exist yet. The cluster is stopped for it, and started again.
func (c *Cluster) SaveEtcd(ctx context.Context, to string) error {
	return c.whileStopped(ctx, func(etcd string) error { return os.CopyFS(to, os.DirFS(etcd)) })
}

// RestoreEtcd has the cluster hold what it held when it was copied into a folder. The cluster is stopped for it, and started again.
func (c *Cluster) RestoreEtcd(ctx context.Context, from string) error {
	return c.whileStopped(ctx, func(etcd string) error {
		if err := os.RemoveAll(etcd); err != nil {
			return err
		}
		return os.CopyFS(etcd, os.DirFS(from))
	})
}

func (c *Cluster) whileStopped(ctx context.Context, change func(etcd string) error) error {
	if c.options.Dir == "" {
		return errors.New("the state of a cluster in the default folder is its user's")
	}
	if err := c.Stop(ctx); err != nil {
		return err
	}
	if err := change(filepath.Join(c.options.Dir, "etcd")); err != nil {
		return fmt.Errorf("changing the state of the cluster in %s: %w", c.options.Dir, err)
	}
	return c.Start(ctx)
}
