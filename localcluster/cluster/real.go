package cluster

import (
	"context"
	"errors"
)

// ErrNoRealNodes says that this build cannot run real nodes.
var ErrNoRealNodes = errors.New("real nodes are not part of this build")

func (c *Cluster) preflight() error {
	if c.state.Config.RealNodes > 0 {
		return ErrNoRealNodes
	}
	return nil
}

func (c *Cluster) ensureRealNodes(context.Context, Progress) error { return nil }

func (c *Cluster) removeRealNodes(context.Context, Progress) error { return nil }
