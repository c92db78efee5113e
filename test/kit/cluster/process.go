package cluster

import (
	"context"
	"fmt"
	"os"
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

// ticksPerSecond is the unit of CPU times in /proc on every Linux that Go runs on.
const ticksPerSecond = 100

// CPUSeconds returns the CPU time that a process has used.
func CPUSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold blanks; user and system time are the 12th and 13th fields after it.
	_, rest, ok := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("reading the CPU time of process %d: %q", pid, stat)
	}
	ticks := 0.0
	for _, field := range fields[11:13] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return ticks / ticksPerSecond, nil
}
