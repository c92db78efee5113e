package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// ProcessOf returns the process id of a component of the control plane, such as kube-controller-manager.
func (c *Cluster) ProcessOf(ctx context.Context, component string) (int, error) {
	status, err := c.Local(ctx, "status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[0] == component && fields[2] == "process" {
			return strconv.Atoi(fields[3])
		}
	}
	return 0, fmt.Errorf("kruise-local does not tell of a process %s", component)
}
