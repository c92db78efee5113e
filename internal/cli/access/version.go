package access

import (
	"fmt"
	"strconv"
	"strings"
)

// ServerVersion returns the version of the API server, and its second number; 0 if that can't be read.
func (c *Cluster) ServerVersion() (version string, minor int, err error) {
	discovered, err := c.flags.ToDiscoveryClient()
	if err != nil {
		return "", 0, fmt.Errorf("finding the cluster: %w", err)
	}
	info, err := discovered.ServerVersion()
	if err != nil {
		return "", 0, fmt.Errorf("asking the API server for its version: %w", err)
	}
	minor, _ = strconv.Atoi(strings.TrimRight(info.Minor, "+")) // some write 32+
	return info.GitVersion, minor, nil
}
