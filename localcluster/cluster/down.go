package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/seed-69ecc383/kruise/localcluster/process"
)

// Down ends every process of the cluster in dir and removes all it left. No cluster there is fine: found is then false.
//
// It works from the folder alone, whatever state the processes are in.
func Down(ctx context.Context, dir string, progress Progress) (found bool, err error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if c, err := Open(dir); errors.Is(err, ErrNotFound) {
		return false, nil
	} else if err == nil {
		dir = c.Dir
	}
	unlock, err := Lock(dir)
	if err != nil {
		return false, err
	}
	defer unlock()
	c, err := Open(dir)
	if err != nil {
		// Half a cluster.json must not keep its processes alive.
		c = &Cluster{Dir: dir}
	}
	if err := c.removeRealNodes(ctx, progress); err != nil {
		return true, err
	}
	progress("Stopping all processes")
	for _, home := range []process.Home{c.guests(), c.Home()} {
		if err := stopAll(home); err != nil {
			return true, err
		}
	}
	progress("Removing " + c.Dir)
	return true, c.remove()
}

// Stop ends every process of the cluster in dir and keeps its state, so that Up starts it again as it was. Programs that run beside it go
// on: they meet a server that is gone, and comes back.
func Stop(dir string, progress Progress) error {
	c, err := Open(dir)
	if err != nil {
		return err
	}
	unlock, err := Lock(c.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	if c.state.Config.RealNodes > 0 {
		return errors.New("a cluster with real nodes cannot be stopped: its containers would run on")
	}
	progress("Stopping all processes")
	return stopAll(c.Home())
}

// remove deletes what a cluster may have left in its folder, and the folder if nothing else is in it.
func (c *Cluster) remove() error {
	for _, entry := range entries() {
		if err := os.RemoveAll(c.path(entry)); err != nil {
			return fmt.Errorf("removing the cluster's files: %w", err)
		}
	}
	rest, err := os.ReadDir(c.Dir)
	if err != nil {
		return fmt.Errorf("removing the cluster's folder: %w", err)
	}
	if len(rest) > 0 {
		return nil // somebody else's: theirs to keep
	}
	if err := os.Remove(c.Dir); err != nil {
		return fmt.Errorf("removing the cluster's folder: %w", err)
	}
	return nil
}
